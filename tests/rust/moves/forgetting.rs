//! The caches of local states may be dropped at any time: no bit of a run depends on them.

use std::time::Instant;

use proptest::prelude::*;
use stickbreak::Result;
use stickbreak::component::EditLog;
use stickbreak::data::{ArrayBatches, Sharding, TableRows};
use stickbreak::executor::{Executor, InProcess, Visit};
use stickbreak::fit::{Engine, Position, Run, Settings};
use stickbreak::global_step::Globals;
use stickbreak::identity::Identity;
use stickbreak::init::{Beginning, Init};
use stickbreak::local_step::Keep;
use stickbreak::moves::{Plan, Round};
use stickbreak::parallel::Cancel;
use stickbreak::responsibilities::Sparsity;
use stickbreak::visits::{LocalOptions, RowKind};

use super::moves_of;
use super::problem::{CASES, Case, Problem};

const N: usize = 900;
const D: usize = 2;
const PASSES: usize = 6;

/// Drops the caches of some batches before some visits.
struct Forgetful<'a> {
    inner: InProcess<'a, f64>,
    /// For each visit, one bit per shard: whether to drop its cache.
    forgets: &'a [u8],
    visits: usize,
}

impl Executor for Forgetful<'_> {
    fn n_batches(&self) -> usize {
        self.inner.n_batches()
    }

    fn visit(&mut self, batch: usize, globals: &Globals, edits: &EditLog, plan: &Plan) -> Result<Visit> {
        let bits = self.forgets.get(self.visits).copied().unwrap_or(0);
        self.visits += 1;
        for forgotten in (0..self.inner.n_shards()).filter(|forgotten| bits >> (forgotten % 8) & 1 == 1) {
            self.inner.forget(forgotten);
        }
        self.inner.visit(batch, globals, edits, plan)
    }

    fn save_states(&mut self) -> Result<Vec<Vec<u8>>> {
        self.inner.save_states()
    }

    fn load_states(&mut self, states: &[Vec<u8>]) -> Result<()> {
        self.inner.load_states(states)
    }
}

fn run(
    case: Case,
    (n_batches, shard_rows): (usize, usize),
    options: LocalOptions,
    bits: u8,
    seed: u64,
    forgets: &[u8],
) -> Run {
    let problem = Problem::new(case, N, D, 5, seed);
    let (rows, weights) = (problem.rows(), problem.weights.as_deref());
    let table = TableRows { rows: rows.as_ref(), weights };
    let sharding = Sharding { shard_rows, ..Sharding::of(n_batches, Some(seed)) };
    let source = ArrayBatches::new(rows.as_ref(), weights, sharding).expect("enough rows");
    let cancel = Cancel::default();
    let edits = EditLog::with_components(6);
    let mass = weights.map_or(N as f64, |weights| weights.iter().sum());
    let beginning = Beginning {
        model: &problem.model,
        data: &table,
        source: &source,
        ids: &edits.components().expect("one append"),
        keep: Keep::Summary,
        by_batch: true,
        mass,
        seed,
        cancel: &cancel,
    };
    let mut memo = beginning.memo(&Init::KmeansPlusPlus).expect("finite rows");
    if !problem.model.process.has_tail() {
        memo.drop_tail();
    }
    let moves = moves_of(bits);
    let moves = moves.list();
    let round = (!moves.is_empty()).then_some(Round {
        model: problem.model.clone(),
        moves: &moves,
        sparsity: options.sparsity,
        margin: options.margin,
        seed,
        n_batches,
        cancel: &cancel,
    });
    let settings = Settings { local: options, max_passes: PASSES, shuffle: true, seed, ..Settings::default() };
    let (model, identity) = (problem.model.clone(), &Identity::default());
    let base = model.base.parameters.clone();
    let (settings, started) = (&settings, Instant::now());
    let engine = Engine { model, identity, settings, round, data: &|| Ok(()), started };
    let inner = InProcess::new(&RowKind, &problem.model, &source, options, cancel.clone())
        .expect("batches that can be replayed");
    let mut executor = Forgetful { inner, forgets, visits: 0 };
    engine.run(&mut executor, Position::first(memo, edits, base), &(), &cancel).expect("finite rows")
}

/// Returns everything but times and amounts of work.
fn shown(run: Run) -> String {
    let mut history = run.history;
    for record in &mut history {
        (record.seconds, record.evaluated_share) = (0.0, 0.0);
    }
    format!("{:?} {:?} {history:?} {:?}", run.summary, run.elbo, run.stop_reason)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn no_bit_depends_on_the_caches(
        case in prop::sample::select(CASES.to_vec()),
        n_batches in 1_usize..5,
        shard_rows in prop_oneof![10_usize..60, Just(usize::MAX)],
        width in prop::option::of(1_usize..5),
        margin in prop::option::of(5.0..30.0),
        bounds_memory in prop::sample::select(vec![0, 1 << 20]),
        bits in 0_u8..32,
        seed in 0_u64..1000,
        forgets in prop::collection::vec(any::<u8>(), PASSES * 4),
    ) {
        let sparsity = width.map_or(Sparsity::Dense, Sparsity::Limited);
        let keep = Keep::Summary;
        let options = LocalOptions { sparsity, margin, bounds_memory, keep };
        let kept = shown(run(case, (n_batches, shard_rows), options, bits, seed, &[]));
        let dropped = shown(run(case, (n_batches, shard_rows), options, bits, seed, &forgets));
        prop_assert_eq!(kept, dropped);
    }
}
