//! A kind of unit that only this file knows: rows with a weight that the kind keeps to itself.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use stickbreak::Result;
use stickbreak::component::EditLog;
use stickbreak::data::{ArrayBatches, DenseRows, RowBlock, RowUnits, Sample, Sharding, TableRows};
use stickbreak::events::{Event, Observer};
use stickbreak::executor::{Executor, InProcess};
use stickbreak::fit::{Engine, Position, Run, Settings};
use stickbreak::global_step::Globals;
use stickbreak::identity::Identity;
use stickbreak::local_step::{Keep, LocalState, Outcome, Tap, Units};
use stickbreak::memo::Memo;
use stickbreak::model::{Model, Specification};
use stickbreak::moves::{Birth, Delete, Merge, Moves, Round};
use stickbreak::parallel::Cancel;
use stickbreak::parameters::{Parameters, Value};
use stickbreak::responsibilities::Sparsity;
use stickbreak::suffstats::Summary;
use stickbreak::visits::{
    FEW_ROWS, LocalOptions, RowKind, Shard, Task, UnitKind, UnitOptions, Visitor, WordOptions, load_state, save_state,
};

use crate::common::{clustered, globals_of_rows, model, specification};
use crate::subprocess_executor::TREE;

const N: usize = 900;
const D: usize = 3;
const K: usize = 5;
const BATCHES: usize = 3;
const OPTIONS: LocalOptions =
    LocalOptions { sparsity: Sparsity::Limited(3), margin: None, bounds_memory: 1, keep: Keep::Summary };

/// The weight of a row.
fn weight(row: usize) -> f64 {
    [0.5, 1.0, 2.5, 0.0][row % 4]
}

/// Rows with their weights: those of a shard, or chosen ones.
enum WeightedRows<'a> {
    All(&'a RowUnits<'a, f64>),
    Chosen(RowUnits<'a, f64>),
}

impl WeightedRows<'_> {
    fn rows(&self) -> &RowUnits<'_, f64> {
        match self {
            Self::All(rows) => rows,
            Self::Chosen(rows) => rows,
        }
    }
}

impl Units<f64> for WeightedRows<'_> {
    fn len(&self) -> usize {
        self.rows().len()
    }

    fn dimension(&self) -> usize {
        D
    }

    fn row_number(&self, unit: usize) -> usize {
        self.rows().row_number(unit)
    }

    fn mass(&self, unit: usize) -> f64 {
        weight(self.row_number(unit))
    }

    fn n_values(&self) -> usize {
        D
    }

    fn read(&self, list: &[u32], origin: &[f64], out: &mut [f64]) {
        Units::read(self.rows(), list, origin, out);
    }

    fn rows<'b>(&'b self, list: &[u32], values: &'b [f64], numbers: &'b mut Vec<u32>) -> RowBlock<'b, f64> {
        Units::rows(self.rows(), list, values, numbers)
    }

    fn select(&self, list: &[u32]) -> Box<dyn Units<f64> + '_> {
        Box::new(WeightedRows::Chosen(self.rows().select(list)))
    }

    fn copy_into(&self, list: &[u32], sample: &mut Sample) {
        for &unit in list {
            sample.extend_weighted(self.rows(), &[unit], self.mass(unit as usize));
        }
    }
}

struct WeightedKind;

impl UnitKind<f64> for WeightedKind {
    fn check(&self, task: &Task<'_>) -> Result<()> {
        UnitKind::<f64>::check(&RowKind, task)
    }

    fn identity(&self) -> Vec<(&'static str, String)> {
        vec![("units", "privately weighted rows".into())]
    }

    fn visitor(&self, n_shards: usize) -> Box<dyn Visitor<f64>> {
        Box::new(WeightedVisits(vec![LocalState::default(); n_shards]))
    }
}

struct WeightedVisits(Vec<LocalState>);

impl Visitor<f64> for WeightedVisits {
    fn visit(
        &mut self,
        shard: &Shard<'_, f64>,
        globals: &Globals,
        edits: &EditLog,
        taps: &mut [&mut dyn Tap],
    ) -> Result<Outcome> {
        let (scorer, state) = (globals.scorer(shard.model)?, &mut self.0[shard.index]);
        state.replay(edits);
        shard.score(&WeightedRows::All(shard.rows()?), scorer.as_ref(), globals, state, taps)
    }

    fn show(
        &mut self,
        shard: &Shard<'_, f64>,
        _: Option<u64>,
        take: &mut dyn FnMut(&dyn Units<f64>) -> Result<()>,
    ) -> Result<()> {
        take(&WeightedRows::All(shard.rows()?))
    }

    fn rebase(&mut self) {
        self.0.iter_mut().for_each(LocalState::forget);
    }

    fn forget(&mut self, shard: usize) {
        self.0[shard].forget();
    }

    fn bytes(&self, shard: usize) -> usize {
        self.0[shard].bytes()
    }

    fn save(&self, shard: usize) -> Result<Vec<u8>> {
        save_state(&self.0[shard])
    }

    fn load(&mut self, shard: usize, bytes: &[u8]) -> Result<()> {
        self.0[shard] = load_state(bytes)?;
        Ok(())
    }
}

/// Keeps a checkpoint after the first batch of the second pass.
#[derive(Default)]
struct Kept {
    asked: AtomicUsize,
    bytes: Mutex<Vec<u8>>,
}

impl Observer for Kept {
    fn wants_checkpoint(&self, _last: bool) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed) == BATCHES + 1
    }

    fn on_event(&self, _run: usize, event: Event) -> bool {
        if let Event::Checkpoint(bytes) = event {
            *self.bytes.lock().expect("no panic") = bytes;
        }
        false
    }
}

/// A fit from one row a component.
fn run(
    model: &Model<f64>,
    rows: &[f64],
    executor: &mut dyn Executor,
    position: Option<Position>,
    observer: &dyn Observer,
) -> Run {
    let start = || {
        let edits = EditLog::with_components(K);
        let globals = globals_of_rows(model, rows, D, K);
        let ids = edits.components().expect("one append");
        let mut start = Summary::empty(ids, model.likelihood.n_statistics(), false);
        (start.counts, start.statistics) = (globals.counts, globals.statistics);
        let mass = (0..N).map(weight).sum();
        Position::first(Memo::starting_from(start, BATCHES, mass), edits, model.base.parameters.clone())
    };
    let birth = Birth { adopt: true, max_subsample: 200, threshold: 0.1, fresh: 3 };
    let (moves, cancel) = (Moves::from(birth).with(Merge).with(Delete { candidates: 3 }), Cancel::default());
    let moves = moves.list();
    let round = Round {
        model: model.clone(),
        moves: &moves,
        sparsity: OPTIONS.sparsity,
        margin: None,
        seed: 4,
        n_batches: BATCHES,
        cancel: &cancel,
    };
    let settings = Settings { local: OPTIONS, max_passes: 6, shuffle: true, seed: 4, ..Settings::default() };
    let (identity, started) = (&Identity::default(), Instant::now());
    let (model, round, settings) = (model.clone(), Some(round), &settings);
    let engine = Engine { model, identity, settings, round, data: &|| Ok(()), started };
    engine.run(executor, position.unwrap_or_else(start), observer, &cancel).expect("finite rows")
}

fn known(run: &Run) -> String {
    let history: Vec<_> = run.history.iter().map(|record| (record.elbo.to_bits(), &record.moves)).collect();
    format!("{:?} {history:?}", run.summary)
}

/// The fit is that of the same rows with the weights given, with moves, and from a checkpoint.
#[test]
fn a_kind_of_unit_needs_nothing_but_its_file() {
    let rows = clustered::<f64>(N, D, K, 2);
    let table = DenseRows::new(&rows, D);
    let model = model("Gaussian", "DirichletProcess", K, &rows, D);
    let weights: Vec<f64> = (0..N).map(weight).collect();
    let plain = ArrayBatches::new(&table, Some(&weights), Sharding::of(BATCHES, Some(1))).expect("3 of 900");
    let mut executor = InProcess::new(&RowKind, &model, &plain, OPTIONS, Cancel::default()).expect("replayable");
    let expected = run(&model, &rows, &mut executor, None, &());
    assert!(expected.history.iter().any(|record| record.moves.iter().any(|report| report.accepted > 0)));
    assert!(expected.base != model.base.parameters);

    let unweighted = ArrayBatches::new(&table, None, Sharding::of(BATCHES, Some(1))).expect("3 of 900");
    let executor =
        || InProcess::new(&WeightedKind, &model, &unweighted, OPTIONS, Cancel::default()).expect("replayable");
    let kept = Kept::default();
    let mut weighted = executor();
    assert_eq!(known(&run(&model, &rows, &mut weighted, None, &kept)), known(&expected));
    assert!(weighted.bytes(0) > N / BATCHES * 8);
    weighted.forget(0);
    assert!(weighted.bytes(0) < N / BATCHES * 8);

    let mut weighted = executor();
    let (position, states) = Identity::default()
        .read(&kept.bytes.lock().expect("no panic"), BATCHES, model.likelihood.n_statistics())
        .expect("its own");
    weighted.load_states(&states).expect("of three batches");
    assert_eq!(known(&run(&model, &rows, &mut weighted, Some(position), &())), known(&expected));
}

/// Each kind of the package takes its own models and refuses those of others.
#[test]
fn kinds_refuse_other_models() {
    let mixture = specification("Gaussian", "DirichletProcess", K);
    let mut topics = specification("Multinomial", "LatentDirichlet", K);
    topics.process.parameters = Parameters::from_pairs([("n_topics", Value::Number(K as f64))]);
    let (words, nodes) = (UnitOptions::Words(WordOptions::default()), UnitOptions::Nodes(TREE));
    assert_eq!(UnitOptions::usual(&mixture, WordOptions::default()), Ok(UnitOptions::Rows));
    assert_eq!(UnitOptions::usual(&topics, WordOptions::default()), Ok(words));
    let check = |units: UnitOptions, specification: &Specification, is_sparse: bool, estimates: bool| {
        let error = units.kind::<f64>().check(&Task { specification, is_sparse, estimates }).err();
        error.map(|error| error.to_string().split(" is not supported").next().unwrap_or_default().to_owned())
    };
    for units in [UnitOptions::Rows, nodes] {
        assert_eq!(check(units, &mixture, false, false), None);
    }
    assert_eq!(check(words, &topics, true, true), None);
    for (units, specification, is_sparse, estimates, found) in [
        (UnitOptions::Rows, &topics, false, false, "rows for a TopicModel"),
        (nodes, &topics, false, false, "a tree for a TopicModel"),
        (words, &mixture, false, false, "words for a Mixture"),
        (nodes, &mixture, true, false, "a tree over a sparse array"),
        (nodes, &mixture, false, true, "a tree with Stochastic"),
    ] {
        assert_eq!(check(units, specification, is_sparse, estimates).as_deref(), Some(found));
    }
    // A tree that would become rows at once is left out.
    assert_eq!((nodes.for_rows(FEW_ROWS), nodes.for_rows(FEW_ROWS + 1)), (UnitOptions::Rows, nodes));
}

/// What a kind does not say is as for rows.
#[test]
fn sizes_of_a_kind_are_those_of_rows() {
    let rows = vec![0.0; 12_000 * D];
    let table = DenseRows::new(&rows, D);
    let data = TableRows { rows: &table, weights: None };
    let extent = WeightedKind.extent(&data, 12_000).expect("rows in memory");
    assert_eq!((extent.rows, extent.units, extent.batches), (12_000, 12_000, 2));
    assert_eq!(WeightedKind.sparsity(Sparsity::Auto, 30), Sparsity::Auto);
}
