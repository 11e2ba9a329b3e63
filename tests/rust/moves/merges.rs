//! Merges of one pass: which pairs are listed, and in what order they are carried out (mathematics 4.5).

use std::collections::BTreeSet;

use proptest::prelude::*;
use stickbreak::component::{ComponentId, Edit, EditLog, position};
use stickbreak::data::{ArrayBatches, DenseRows, Rows, Sharding, TableRows, moments};
use stickbreak::executor::{Executor, InProcess};
use stickbreak::global_step::Globals;
use stickbreak::likelihood::demands;
use stickbreak::local_step::Keep;
use stickbreak::memo::Memo;
use stickbreak::model::{Model, Named, Specification};
use stickbreak::moves::{Judge, Merge, MoveState, Moves, Part, Report, Round, is_gain};
use stickbreak::parallel::Cancel;
use stickbreak::responsibilities::Sparsity;
use stickbreak::suffstats::Summary;
use stickbreak::visits::{LocalOptions, RowKind};

use super::problem::{CASES, Case, Problem, unit_covariance};
use super::replay::start;
use crate::common;

type Pair = (ComponentId, ComponentId);

/// A pass with merges: what it lists, what its visits find, and what becomes of it.
struct Pass {
    pairs: Vec<Pair>,
    /// Summary before anything is merged, with the gaps of the pairs.
    total: Summary,
    merges: Vec<Edit>,
    report: Report,
}

/// The first pass from these labels, and the passes after it.
fn passes(model: &Model<f64>, rows: &dyn Rows<f64>, labels: &[u32], sparsity: Sparsity, n: usize) -> Vec<Pass> {
    let (n_batches, cancel, moves) = (3, Cancel::default(), Moves::from(Merge));
    let moves = moves.list();
    let source = ArrayBatches::new(rows, None, Sharding::of(n_batches, Some(1))).expect("enough rows");
    let options = LocalOptions { sparsity, margin: None, bounds_memory: 0, keep: Keep::Summary };
    let mut executor = InProcess::new(&RowKind, model, &source, options, cancel.clone()).expect("in memory");
    let k = labels.iter().max().map_or(0, |&label| label as usize + 1);
    let (mut edits, mut state) = (EditLog::with_components(k), MoveState::default());
    let start = start(model, rows, None, &edits.components().expect("one append"), labels);
    let mut memo = Memo::starting_from(start, n_batches, labels.len() as f64);
    let model = model.clone();
    let round =
        Round { model: model.clone(), moves: &moves, sparsity, margin: None, seed: 3, n_batches, cancel: &cancel };
    let pass = |pass: usize| {
        round.plan(&mut state, &mut memo, &mut edits, pass).expect("definite");
        for batch in 0..n_batches {
            let globals = Globals::new(&model, memo.total(), (pass * n_batches + batch) as u64);
            let visit = executor.visit(batch, &globals, &edits, &state.plan).expect("finite");
            round.take(&mut state, batch, visit.findings).expect("of this round");
            memo.replace(batch, visit.summary).expect("the same components");
        }
        memo.resum().expect("the same components");
        let (pairs, total, version) = (state.plan.pairs.clone(), memo.total().clone(), edits.version());
        let (mut reports, _) = round.settle(&mut state, &mut memo, &mut edits, pass).expect("definite");
        Pass { pairs, total, merges: edits.since(version).to_vec(), report: reports.remove(0) }
    };
    (0..n).map(pass).collect()
}

/// The change of the bound by a merge, and its terms.
fn change(judge: &Judge<'_, f64>, total: &Summary, (keep, gone): Pair) -> (f64, [f64; 3]) {
    let place = |id| position(&total.ids, id).expect("a component");
    let (a, b) = (place(keep), place(gone));
    let gain = |part: &Part| judge.gain(part.sufficient()).expect("definite");
    let (x, y) = (Part::of(total, a), Part::of(total, b));
    let terms = [gain(&x.with(&y)), gain(&x), gain(&y)];
    let mut counts = total.counts.clone();
    counts[a] += counts[b];
    counts.remove(b);
    let tail = total.tail_count();
    let weights = judge.allocation(counts, tail) - judge.allocation(total.counts.clone(), tail);
    let gap = total.gaps.get(keep, gone).expect("listed");
    (terms[0] - terms[1] - terms[2] - gap + weights, terms)
}

/// The plain rule: merge the best of all pairs, judge all pairs again, and repeat. A component is merged at most once.
fn plain(judge: &Judge<'_, f64>, mut total: Summary, pairs: &[Pair]) -> Vec<Pair> {
    let (mut left, mut merged) = (pairs.to_vec(), Vec::new());
    loop {
        let changes = left.iter().map(|&pair| (pair, change(judge, &total, pair)));
        let gains = changes.filter(|(_, (gain, terms))| is_gain(*gain, *terms));
        let Some((best, _)) = gains.reduce(|best, other| if other.1.0 > best.1.0 { other } else { best }) else {
            break;
        };
        total.apply(&Edit::Merge { keep: best.0, gone: best.1 }).expect("a listed pair");
        left.retain(|(a, b)| ![best.0, best.1].iter().any(|id| id == a || id == b));
        merged.push(best);
    }
    merged
}

/// Checks a pass against its summaries: every merge raises the bound by the predicted gain, and merges are in order of
/// their gains before the first merge.
fn check(model: &Model<f64>, pass: &Pass) -> Vec<Pair> {
    let judge = Judge::new(model);
    let mut total = pass.total.clone();
    let (mut merged, mut taken, mut before) = (Vec::new(), BTreeSet::new(), judge.bound(&total).expect("definite"));
    let (start, mut first) = (before, f64::INFINITY);
    let size = 1e-10 * (1.0 + total.mass + start.abs());
    for edit in &pass.merges {
        let &Edit::Merge { keep, gone } = edit else { panic!("{edit:?}") };
        assert!(keep < gone && pass.pairs.contains(&(keep, gone)));
        assert!(taken.insert(keep) && taken.insert(gone), "a component is merged once");
        let gain = change(&judge, &pass.total, (keep, gone)).0;
        assert!(gain <= first + size, "{gain} after {first}");
        let now = change(&judge, &total, (keep, gone)).0;
        total.apply(edit).expect("a listed pair");
        let bound = judge.bound(&total).expect("definite");
        assert!((bound - before - now).abs() <= size && now > 0.0, "from {before} to {bound}: {now}");
        merged.push((keep, gone));
        (first, before) = (gain, bound);
    }
    assert!((before - start - pass.report.gain).abs() <= size, "{} and {}", before - start, pass.report.gain);
    assert_eq!(pass.report.accepted, merged.len());
    assert_eq!(pass.report.proposed, pass.pairs.len());
    let refused: usize = pass.report.refused.iter().map(|(_, n)| n).sum();
    assert_eq!(pass.report.proposed - pass.report.accepted, refused);
    merged
}

/// Rows of `k` clusters far from each other, each under two components, and the labels of these.
fn far(k: usize) -> (Vec<f64>, Vec<u32>) {
    let n = 40 * k;
    let noise = common::clustered::<f64>(n, 2, 1, 5);
    let centre = |row: usize| [12.0 * (row % k % 11) as f64, 12.0 * (row % k / 11) as f64];
    let rows = (0..n).flat_map(|row| {
        let [x, y] = centre(row);
        [x + noise[2 * row], y + noise[2 * row + 1]]
    });
    (rows.collect(), (0..n).map(|row| (row % k + row / k % 2 * k) as u32).collect())
}

/// A model of these rows with clusters of unit covariance.
fn unit_model(process: &str, values: &[f64]) -> Model<f64> {
    let name = "KnownCovarianceGaussian";
    let likelihood = Named { name: name.to_owned(), parameters: unit_covariance(2) };
    let specification = Specification { likelihood, ..common::specification(name, process, 1) };
    let rows = DenseRows::new(values, 2);
    let asked = demands(name, &specification.likelihood.parameters).expect("a name of the registry");
    let rows = TableRows { rows: &rows, weights: None };
    let data =
        moments(&rows, asked.sought.needs, &asked.domain.into(), false, &Cancel::default()).expect("finite rows");
    specification.resolve(&data).expect("defaults").build(vec![0.0; 2]).expect("defaults")
}

/// Where gains do not interact, the same pairs are merged as by judging all of them anew after every merge; of few
/// components, and of more than all pairs are ranked of.
#[test]
fn merges_are_those_of_the_plain_rule() {
    for (process, k) in [
        ("DirichletProcess", 20),
        ("PitmanYor", 30),
        ("DirichletProcess gamma", 20),
        ("DirichletProcess tail", 40),
        ("DirichletProcess", 115),
    ] {
        let (values, labels) = far(k);
        let (model, rows) = (unit_model(process, &values), DenseRows::new(values, 2));
        let pass = passes(&model, &rows, &labels, Sparsity::Limited(3), 1).remove(0);
        let merged: BTreeSet<Pair> = check(&model, &pass).into_iter().collect();
        assert_eq!(merged, plain(&Judge::new(&model), pass.total.clone(), &pass.pairs).into_iter().collect());
        let twins = (0..k as u32).map(|label| (ComponentId(label), ComponentId(label + k as u32)));
        assert_eq!(merged, twins.collect(), "{process}");
    }
}

/// Of many components only neighbours are ranked. They nearly always include the partner with which a merge gains most,
/// whatever the likelihood and the form of the rows. With few columns of bits, many partners are as good.
#[test]
fn neighbours_include_the_best_partners() {
    let (k, n, tried) = (202_u32, 404, 20);
    let ids = EditLog::with_components(k as usize).components().expect("one append");
    for case in CASES.into_iter().filter(|case| case.process != "DirichletProcess gamma") {
        let problem = Problem::new(Case { weighted: false, ..case }, n, 4, k as usize / 2, 7);
        let (rows, model) = (problem.rows(), &problem.model);
        let labels: Vec<u32> = (0..n as u32).map(|row| row % k).collect();
        let pass = passes(model, rows.as_ref(), &labels, Sparsity::Limited(2), 1).remove(0);
        let total = start(model, rows.as_ref(), None, &ids, &labels);
        let gain = |part: &Part| model.likelihood.gain(part.sufficient(), model.objective).expect("definite");
        let parts: Vec<Part> = (0..k as usize).map(|k| Part::of(&total, k)).collect();
        let alone: Vec<f64> = parts.iter().map(gain).collect();
        let is_listed = |a: &usize| {
            let ratio = |b: usize| gain(&parts[*a].with(&parts[b])) - alone[*a] - alone[b];
            let others = (0..parts.len()).filter(|b| b != a);
            let best = others.max_by(|&b, &c| ratio(b).total_cmp(&ratio(c))).expect("others");
            pass.pairs.contains(&(ids[*a.min(&best)], ids[*a.max(&best)]))
        };
        let n_listed = (0..tried).filter(is_listed).count();
        let least = if case.likelihood == "Bernoulli" { tried / 4 } else { tried / 2 };
        assert!(n_listed >= least, "{case:?}: {n_listed} of {tried}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Merges that compete: the bound never falls, and rises by what was predicted.
    #[test]
    fn every_merge_raises_the_bound_as_predicted(
        case in prop::sample::select(CASES.to_vec()),
        (k, n_clusters) in (2_usize..40, 1_usize..6),
        width in prop::option::of(1_usize..5),
        seed in 0_u64..1000,
    ) {
        let case = Case { weighted: false, ..case };
        let problem = Problem::new(case, 150, 3, n_clusters, seed);
        let rows = problem.rows();
        let labels: Vec<u32> = (0..150).map(|row| (row * row + row / 7) % k as u32).collect();
        let sparsity = width.map_or(Sparsity::Dense, Sparsity::Limited);
        for pass in passes(&problem.model, rows.as_ref(), &labels, sparsity, 3) {
            check(&problem.model, &pass);
        }
    }
}
