//! What moves cost beside a local step: gaps of pairs, the ranking of pairs, and fresh parts of components, by threads.
//!
//! Useful operations: of the local step as in its own bench; of the ranking a Cholesky factor, `D^3 / 3`, for every
//! pair; of the creation of parts, scores and statistics of 20 turns over a subsample, `2 n J D (D + 1)` each, of which
//! most stop earlier.

use stickbreak::component::{ComponentId, EditLog};
use stickbreak::data::{DenseRows, RowUnits};
use stickbreak::local_step::{ByScore, Keep};
use stickbreak::memo::Memo;
use stickbreak::moves::{Bag, MoveState, Moves, Round};
use stickbreak::parallel::Cancel;
use stickbreak::parameters::Parameters;
use stickbreak::responsibilities::Sparsity;
use stickbreak::simd::Scalar;
use stickbreak_benches::{Bench, Sizes, State as Mixture, generate, short_name};

const DEFAULT: Sizes = Sizes { n: 32_768, d: 50, k: 80, width: 4, threads: 1 };
/// Parts of a component, and turns over its subsample.
const FRESH: usize = 10;
const TURNS: usize = 20;

fn id<F: Scalar>(sizes: Sizes) -> String {
    format!("threads={}/D={}/K={}/L={}/{}", sizes.threads, sizes.d, sizes.k, sizes.width, short_name::<F>())
}

fn gaps<F: Scalar>(bench: &mut Bench, sizes: Sizes) {
    let data = generate::<F>(sizes);
    let mixture = Mixture::new(&data, sizes);
    let globals = mixture.globals();
    let scorer = globals.scorer(&mixture.model).expect("definite");
    let (has_tail, margin, row_terms) = (false, Some(20.0), false);
    let assign =
        ByScore { scorer: scorer.as_ref(), has_tail, width: sizes.width, margin, abandon: true, row_terms, mask: None };
    for (group, keep) in [("without_gaps", Keep::Summary), ("with_gaps", Keep::SummaryAndGaps)] {
        bench.measure::<F>((group, &id::<F>(sizes)), sizes.threads, sizes.local_operations(), || {
            mixture.local_step(&globals, &assign, keep);
        });
    }
}

/// Plans a pass with one kind of move; `found` says whether there are rows to make parts of.
fn plan<F: Scalar>(bench: &mut Bench, sizes: Sizes, name: &str, found: bool, operations: f64) {
    let data = generate::<F>(sizes);
    let mixture = Mixture::new(&data, sizes);
    let mut moves = Moves::default();
    moves.add(name, &Parameters::default()).expect("a name of the registry");
    let moves = moves.list();
    let cancel = Cancel::default();
    let round = Round {
        model: mixture.model.clone(),
        moves: &moves,
        sparsity: Sparsity::Limited(sizes.width),
        margin: Some(20.0),
        seed: 0,
        n_batches: 1,
        cancel: &cancel,
    };
    let rows = DenseRows::new(&data.rows, sizes.d);
    let units = RowUnits::all(&rows, None);
    let mut start = MoveState::default();
    for k in (0..sizes.k as u32).filter(|_| found) {
        let own: Vec<u32> = (0..sizes.n as u32).filter(|&row| data.labels[row as usize] == k).collect();
        let mut bag = Bag { keys: own.iter().map(|&row| u64::from(row)).collect(), ..Bag::default() };
        bag.rows.extend(&units, &own);
        start.start_from(ComponentId(k), bag);
    }
    let memo = Memo::complete(vec![mixture.summary.clone()]).expect("one batch");
    bench.measure::<F>((name, &id::<F>(sizes)), sizes.threads, operations, || {
        let (mut memo, mut edits) = (memo.clone(), EditLog::with_components(sizes.k));
        round.plan(&mut start.clone(), &mut memo, &mut edits, 1).expect("definite");
    });
}

fn main() {
    let mut bench = Bench::from_arguments();
    for threads in [1, 2, 4, 8, 16].into_iter().filter(|&threads| threads <= rayon::current_num_threads()) {
        let sizes = Sizes { threads, ..DEFAULT };
        gaps::<f32>(&mut bench, sizes);
        let (n, d, k) = (sizes.n as f64, sizes.d as f64, sizes.k as f64);
        plan::<f32>(&mut bench, sizes, "Merge", false, 0.5 * k * (k - 1.0) * d.powi(3) / 3.0);
        let turns = (2 * TURNS * FRESH) as f64 * n * d * (d + 1.0);
        plan::<f32>(&mut bench, sizes, "Birth", true, turns);
    }
    bench.finish();
}
