//! Moves, with every responsibility recorded: sums equal those computed from the responsibilities (mathematics 4.4 to
//! 4.8).

mod forgetting;
mod found;
mod merges;
mod problem;
mod replay;
mod taps;
mod toy;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use proptest::prelude::*;
use stickbreak::data::{ArrayBatches, Sharding};
use stickbreak::moves::{Birth, Delete, Merge, MoveKind, Moves, Split};
use stickbreak::responsibilities::Sparsity;

use self::problem::{CASES, Case, Form, Problem};
use self::replay::{Replay, Setting};

/// Moves of the kinds whose bits are set. With the last bit, fresh components compete for all rows.
fn moves_of(bits: u8) -> Moves {
    let birth = Birth { adopt: bits & 0b1_0000 > 0, max_subsample: 200, threshold: 0.1, fresh: 5 };
    let all: [(u8, Moves); 4] = [
        (0b1_0001, birth.into()),
        (0b10, Split { candidates: 3 }.into()),
        (0b100, Merge.into()),
        (0b1000, Delete { candidates: 4 }.into()),
    ];
    all.into_iter().filter(|(bit, _)| bits & bit > 0).fold(Moves::default(), |moves, (_, one)| moves.with(one))
}

/// Number of accepted moves of each kind, and the kinds that were judged under the base measure after the move.
type Outcome = (BTreeMap<MoveKind, usize>, Vec<MoveKind>);

/// Runs passes from `k` components, each with its set of moves.
fn run(case: Case, setting: Setting, k: usize, n_clusters: usize, passes: &[Moves]) -> Outcome {
    let n = 240;
    let problem = Problem::new(case, n, 4, n_clusters, setting.seed);
    let rows = problem.rows();
    let weights = problem.weights.as_deref();
    let divided = |sharding| ArrayBatches::new(rows.as_ref(), weights, sharding).expect("enough rows");
    let whole = Sharding::of(setting.n_batches, Some(setting.seed));
    let (batches, source) = (divided(whole), divided(Sharding { shard_rows: setting.shard_rows, ..whole }));
    let labels: Vec<u32> = (0..n as u32).map(|row| (row / 3 + row % 5) % k as u32).collect();
    let mut replay = Replay::new(&problem.model, rows.as_ref(), weights, &source, &batches, setting, &labels);
    let mut accepted = BTreeMap::new();
    for moves in passes {
        for report in replay.pass(moves) {
            *accepted.entry(report.kind).or_insert(0) += report.accepted;
        }
    }
    (accepted, replay.ahead)
}

/// Covers every likelihood and process with moves, and every form of rows: births from one component, splits from one,
/// merges and deletes from too many. No comparison is empty.
#[test]
fn gains_and_summaries_are_those_of_the_responsibilities() {
    for (number, case) in CASES.into_iter().enumerate() {
        let sparsity = [Sparsity::Dense, Sparsity::Limited(3), Sparsity::Limited(1)][number % 3];
        let margin = [None, Some(15.0)][number / 3 % 2];
        let shard_rows = [usize::MAX, 25, 7][number / 2 % 3];
        let setting = Setting { n_batches: 1 + number % 4, sparsity, margin, seed: number as u64, shard_rows };
        let mut accepted = BTreeMap::new();
        for (k, bits) in [(1, 1), (1, 2), (12, 4), (12, 8), (2, 15), (1, 16), (3, 30)] {
            for (kind, n) in run(case, setting, k, 4, &[moves_of(bits); 5]).0 {
                *accepted.entry(kind).or_insert(0) += n;
            }
        }
        for kind in ["birth", "split", "merge", "delete"].map(MoveKind::new) {
            assert!(accepted[&kind] > 0, "{case:?} {setting:?}: {accepted:?}");
        }
    }
}

/// If nothing else is left to try, edits are judged under the base measure after the edit.
#[test]
fn edits_gain_what_they_say_under_another_base_measure() {
    judged_under_another_base_measure(6..9);
}

#[test]
#[ignore = "slow"]
fn more_edits_gain_what_they_say_under_another_base_measure() {
    judged_under_another_base_measure(0..12);
}

fn judged_under_another_base_measure(seeds: Range<u64>) {
    let mut all = BTreeSet::new();
    for case in CASES.into_iter().filter(|case| ["PitmanYor", "DirichletProcess gamma"].contains(&case.process)) {
        for seed in seeds.clone() {
            let setting =
                Setting { n_batches: 2, sparsity: Sparsity::Dense, margin: None, seed, shard_rows: usize::MAX };
            all.extend(run(case, setting, 1, 6, &[moves_of(5); 25]).1);
        }
    }
    assert_eq!(all, ["birth", "merge"].map(MoveKind::new).into());
}

/// A part with almost no mass may join either of two others. If only rounding decides, the order decides.
#[test]
fn a_part_with_next_to_nothing_joins_the_first() {
    let of = |case: &Case| (case.likelihood, case.form) == ("KnownCovarianceGaussian", Form::Missing);
    let case = CASES.into_iter().find(of).expect("one of the cases");
    let setting =
        Setting { n_batches: 5, sparsity: Sparsity::Limited(2), margin: None, seed: 118, shard_rows: usize::MAX };
    let (accepted, _) = run(case, setting, 2, 3, &[moves_of(1), moves_of(13)]);
    assert!(accepted[&MoveKind::new("birth")] > 0);
}

/// A tail with 4e-12 of a row keeps its slot when a component is deleted.
#[test]
fn a_tail_with_next_to_nothing_keeps_its_place() {
    let of = |case: &Case| {
        let is_weighted = (case.form, case.weighted) == (Form::Dense, true);
        (case.likelihood, case.process) == ("Gaussian", "DirichletProcess tail") && is_weighted
    };
    let case = CASES.into_iter().find(of).expect("one of the cases");
    let setting =
        Setting { n_batches: 1, sparsity: Sparsity::Limited(3), margin: None, seed: 176, shard_rows: usize::MAX };
    let (accepted, _) = run(case, setting, 1, 3, &[moves_of(24), moves_of(16), moves_of(8)]);
    assert!(accepted[&MoveKind::new("delete")] > 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// After any sequence of passes with any moves, sums equal those of the responsibilities.
    #[test]
    fn any_sequence_of_moves(
        case in prop::sample::select(CASES.to_vec()),
        passes in prop::collection::vec(0_u8..32, 1..7),
        (k, n_clusters, n_batches) in (1_usize..14, 1_usize..6, 1_usize..6),
        width in prop::option::of(1_usize..6),
        margin in prop::option::of(5.0..30.0),
        seed in 0_u64..1000,
        shard_rows in prop_oneof![1_usize..50, Just(usize::MAX)],
    ) {
        let sparsity = width.map_or(Sparsity::Dense, Sparsity::Limited);
        let setting = Setting { n_batches, sparsity, margin, seed, shard_rows };
        let passes: Vec<Moves> = passes.into_iter().map(moves_of).collect();
        run(case, setting, k, n_clusters, &passes);
    }
}
