//! Bounds that are kept between visits save work and change no bit of a result, for any edits of the components.

use crate::common::{clustered, globals_of_rows, model};
use proptest::prelude::*;
use stickbreak::component::{ComponentId, Edit, EditLog};
use stickbreak::data::{ArrayBatches, BatchSource, DenseRows, Sharding};
use stickbreak::executor::InProcess;
use stickbreak::global_step::Globals;
use stickbreak::local_step::{Bounds, Keep};
use stickbreak::model::Model;
use stickbreak::parallel::Cancel;
use stickbreak::responsibilities::Sparsity;
use stickbreak::suffstats::Summary;
use stickbreak::visits::{LocalOptions, RowKind};

const N: usize = 32_000;
const D: usize = 40;
const K: usize = 9;
const BATCHES: usize = 2;

fn options(bounds_memory: usize) -> LocalOptions {
    LocalOptions { sparsity: Sparsity::Limited(3), margin: Some(15.0), bounds_memory, keep: Keep::Summary }
}

/// A change between two visits.
#[derive(Debug, Clone)]
enum Step {
    /// Updates components from the batches.
    Update,
    /// Replaces components by those of other rows.
    Jump(u64),
    /// Moves the first component to the end.
    Reorder,
    /// Appends a component around a row.
    Append(usize),
    /// Merges the second component into the first.
    Merge,
    /// Deletes the last component.
    Delete,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Update),
        1 => (0_u64..9).prop_map(Step::Jump),
        1 => Just(Step::Reorder),
        1 => (0..N).prop_map(Step::Append),
        1 => Just(Step::Merge),
        1 => Just(Step::Delete),
    ]
}

/// A run that keeps the components by hand, so that any edit can be made.
struct Run<'a> {
    model: &'a Model<f64>,
    rows: &'a [f64],
    edits: EditLog,
    globals: Globals,
    batches: Vec<Option<Summary>>,
}

impl Run<'_> {
    fn take(&mut self, step: &Step) {
        let ids = self.globals.ids.clone();
        let edit = match step {
            Step::Update => {
                if let Some(batches) = self.batches.iter().cloned().collect::<Option<Vec<_>>>() {
                    let mut total = Summary::empty(ids, self.model.likelihood.n_statistics(), false);
                    if batches.iter().all(|batch| batch.ids == total.ids) {
                        for batch in &batches {
                            total.add(batch).expect("the same components");
                        }
                        self.globals = Globals::new(self.model, &total, self.globals.version + 1);
                    }
                }
                return;
            }
            Step::Jump(seed) => {
                let other =
                    globals_of_rows(self.model, &clustered::<f64>(ids.len(), D, ids.len(), *seed), D, ids.len());
                (self.globals.counts, self.globals.statistics) = (other.counts, other.statistics);
                return;
            }
            Step::Reorder => Edit::Reorder { order: ids[1..].iter().chain(&ids[..1]).copied().collect() },
            Step::Append(_) => Edit::Append { ids: self.edits.issue(1) },
            Step::Merge | Step::Delete if ids.len() < 4 => return,
            Step::Merge => Edit::Merge { keep: ids[0], gone: ids[1] },
            Step::Delete => Edit::Delete { id: ids[ids.len() - 1] },
        };
        self.apply(&edit, step);
        self.edits.push(edit);
        self.batches = vec![None; BATCHES];
    }

    fn apply(&mut self, edit: &Edit, step: &Step) {
        let old = self.globals.clone();
        let p = self.model.likelihood.n_statistics();
        edit.apply_to(&mut self.globals.ids).expect("a valid edit");
        let of = |id: &ComponentId| old.ids.iter().position(|other| other == id);
        let mut summary = Summary::empty(self.globals.ids.clone(), p, false);
        for (component, id) in self.globals.ids.iter().enumerate() {
            let statistics = &mut summary.statistics[component * p..][..p];
            if let Some(was) = of(id) {
                summary.counts[component] = old.counts[was];
                statistics.copy_from_slice(&old.statistics[was * p..][..p]);
            } else if let Step::Append(row) = step {
                let fresh = globals_of_rows(self.model, &self.rows[row * D..][..D], D, 1);
                summary.counts[component] = 1.0;
                statistics.copy_from_slice(&fresh.statistics);
            }
        }
        if let Edit::Merge { gone, .. } = edit {
            let gone = of(gone).expect("it was there");
            summary.counts[0] += old.counts[gone];
            summary.statistics.iter_mut().zip(&old.statistics[gone * p..][..p]).for_each(|(sum, value)| *sum += value);
        }
        self.globals = Globals::new(self.model, &summary, old.version + 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn no_bit_depends_on_bounds(
        seed in 0_u64..50,
        steps in prop::collection::vec(step(), 1..6),
        zero_mean in any::<bool>(),
    ) {
        let rows = clustered::<f64>(N, D, K, seed);
        let table = DenseRows::new(&rows, D);
        let likelihood = if zero_mean { "ZeroMeanGaussian" } else { "Gaussian" };
        let model = model(likelihood, "DirichletProcess", K, &rows, D);
        let source = ArrayBatches::new(&table, None, Sharding::of(BATCHES, Some(1))).expect("2 of 32000");
        let executor = |memory| {
            InProcess::new(&RowKind, &model, &source, options(memory), Cancel::default()).expect("in memory")
        };
        let (mut with, mut without) = (executor(1 << 24), executor(1));
        let globals = globals_of_rows(&model, &rows, D, K);
        let edits = EditLog::with_components(K);
        let mut run = Run { model: &model, rows: &rows, edits, globals, batches: vec![None; BATCHES] };
        for step in std::iter::once(&Step::Update).chain(&steps) {
            run.take(step);
            for batch in 0..source.n_batches().expect("an array") {
                let a = with.visit_with_taps(batch, &run.globals, &run.edits, &mut []).expect("finite");
                let b = without.visit_with_taps(batch, &run.globals, &run.edits, &mut []).expect("finite");
                prop_assert_eq!(&a.summary, &b.summary);
                prop_assert_eq!(a.log_normalizer, b.log_normalizer);
                run.batches[batch] = Some(a.summary);
            }
        }
    }
}

/// Once the components settle, most pairs are skipped. Bounds that do not fit in memory are not kept.
#[test]
fn bounds_spare_work_where_there_is_room_for_them() {
    // Clusters are so close that partial residuals exclude little.
    let (far, noise) = (clustered::<f64>(N, D, K, 3), clustered::<f64>(N, D, 1, 4));
    let rows: Vec<f64> = far.iter().zip(&noise).map(|(x, e)| 0.375 * x + e).collect();
    let table = DenseRows::new(&rows, D);
    let model = model("Gaussian", "DirichletProcess", K, &rows, D);
    let source = ArrayBatches::new(&table, None, Sharding::of(BATCHES, Some(1))).expect("2 of 32000");
    let share = |memory| {
        let mut executor =
            InProcess::new(&RowKind, &model, &source, options(memory), Cancel::default()).expect("in memory");
        let globals = globals_of_rows(&model, &rows, D, K);
        let edits = EditLog::with_components(K);
        let mut run = Run { model: &model, rows: &rows, edits, globals, batches: vec![None; BATCHES] };
        let (mut evaluated, mut bytes) = (0, 0);
        for _ in 0..6 {
            run.take(&Step::Update);
            evaluated = 0;
            for batch in 0..BATCHES {
                let visit = executor.visit_with_taps(batch, &run.globals, &run.edits, &mut []).expect("finite");
                evaluated += visit.work.evaluated;
                run.batches[batch] = Some(visit.summary);
            }
            bytes = (0..BATCHES).map(|batch| executor.bytes(batch)).sum();
        }
        (evaluated as f64 / (N * K) as f64, bytes)
    };
    // Bounds of all rows, of one further batch, and two states of the components.
    let room = Bounds::bytes_for(N, 0, K) + Bounds::bytes_for(N / BATCHES, 0, K) + 16 * K * D * D;
    let ((plain, few_bytes), (spared, bytes)) = (share(room - 1), share(room));
    assert!(bytes >= few_bytes + 2 * N * K && bytes < few_bytes + room, "{bytes} {few_bytes}");
    assert!(spared < plain, "{spared} {plain}");
}
