//! Uses each seam for later capabilities once.

use std::cell::RefCell;
use std::time::Instant;

use crate::common::{clustered, distance, globals_of_rows, model};
use stickbreak::component::{ComponentId, Edit, EditLog};
use stickbreak::data::{ArrayBatches, BatchSource, CallbackBatches, DenseRows, RowUnits, Sharding};
use stickbreak::elbo::collapsed;
use stickbreak::error::Error;
use stickbreak::events::{Event, Observer};
use stickbreak::executor::{Executor, InProcess};
use stickbreak::fit::{Engine, Position, Settings};
use stickbreak::fitted::StopReason;
use stickbreak::global_step::Globals;
use stickbreak::identity::Identity;
use stickbreak::likelihood::Density;
use stickbreak::local_step::{Buffers, Chunk, Keep, LocalState, Tap};
use stickbreak::memo::Memo;
use stickbreak::model::Model;
use stickbreak::moves::Plan;
use stickbreak::parallel::Cancel;
use stickbreak::responsibilities::Sparsity;
use stickbreak::suffstats::{PairGaps, Summary};
use stickbreak::visits::{LocalOptions, RowKind, RowVisits, Shard, Visitor, load_state};

const N: usize = 600;
const D: usize = 3;
const K: usize = 5;
const OPTIONS: LocalOptions =
    LocalOptions { sparsity: Sparsity::Limited(3), margin: None, bounds_memory: 1, keep: Keep::SummaryAndGaps };

/// A memo after one pass over four batches.
fn one_pass(model: &Model<f64>, source: &dyn BatchSource<f64>, edits: &EditLog) -> (Memo, RowVisits<f64>) {
    let rows = clustered::<f64>(N, D, K, 1);
    let globals = globals_of_rows(model, &rows, D, K);
    let n_batches = source.n_batches().expect("four batches");
    let mut visits = RowVisits::new(n_batches);
    let summaries = (0..n_batches).map(|b| visit(&mut visits, b, model, source, &globals, edits)).collect();
    (Memo::complete(summaries).expect("same components"), visits)
}

fn visit(
    visits: &mut RowVisits<f64>,
    batch: usize,
    model: &Model<f64>,
    source: &dyn BatchSource<f64>,
    globals: &Globals,
    edits: &EditLog,
) -> Summary {
    let (cancel, buffers) = (Cancel::default(), RefCell::default());
    let batch = Shard::new(batch, model, source, OPTIONS, &cancel, &buffers);
    visits.visit(&batch, globals, edits, &mut []).expect("in memory").summary
}

#[test]
fn a_reorder_moves_no_batch_and_changes_only_the_allocation() {
    let rows = clustered::<f64>(N, D, K, 1);
    let table = DenseRows::new(&rows, D);
    let model = model("Gaussian", "DirichletProcess", K, &rows, D);
    let source = ArrayBatches::new(&table, None, Sharding::of(4, Some(0))).expect("4 of 600");
    let mut edits = EditLog::with_components(K);
    let (mut memo, mut visits) = one_pass(&model, &source, &edits);
    let before = collapsed(&model, memo.total()).expect("definite");

    let total = memo.total();
    let mut order: Vec<usize> = (0..K).collect();
    order.sort_by(|&a, &b| total.counts[b].total_cmp(&total.counts[a]));
    let edit = Edit::Reorder { order: order.iter().map(|&k| total.ids[k]).collect() };
    let batch_before = memo.batch(2).expect("visited").clone();
    edits.push(edit.clone());
    memo.apply(&edit).expect("a permutation");

    assert_eq!(memo.batch(2), Some(&batch_before));
    assert!(memo.total().counts.is_sorted_by(|a, b| a >= b));
    let after = collapsed(&model, memo.total()).expect("definite");
    assert!(distance(&[after.data, after.entropy], &[before.data, before.entropy]) < 1e-12);
    // Mathematics 7, number 12: decreasing counts are the best order.
    assert!(after.allocation >= before.allocation);

    // Later visits use the new order, their summaries reach the right components, and the bound rises.
    let globals = Globals::new(&model, memo.total(), 1);
    let summary = visit(&mut visits, 1, &model, &source, &globals, &edits);
    assert_eq!(summary.ids, memo.total().ids);
    memo.replace(1, summary).expect("same components");
    assert!(collapsed(&model, memo.total()).expect("definite").total() >= after.total() - 1e-9);
}

/// A visit of a batch, in these buffers, that keeps `width` components of each row.
fn visit_in(
    buffers: &RefCell<Buffers<f64>>,
    model: &Model<f64>,
    source: &dyn BatchSource<f64>,
    width: usize,
) -> Summary {
    let globals = globals_of_rows(model, &clustered::<f64>(N, D, K, 1), D, K);
    let options = LocalOptions { sparsity: Sparsity::Limited(width), ..OPTIONS };
    let cancel = Cancel::default();
    let batch = Shard::new(0, model, source, options, &cancel, buffers);
    let edits = EditLog::with_components(K);
    let mut visits = RowVisits::new(source.n_batches().expect("known"));
    // The second visit scores rows in another order.
    visits.visit(&batch, &globals, &edits, &mut []).expect("in memory");
    visits.visit(&batch, &globals, &edits, &mut []).expect("in memory").summary
}

#[test]
fn what_earlier_visits_left_in_buffers_changes_nothing() {
    let rows = clustered::<f64>(N, D, K, 1);
    let table = DenseRows::new(&rows, D);
    let model = model("Gaussian", "DirichletProcess", K, &rows, D);
    let sources = [1, 7, 3].map(|n| ArrayBatches::new(&table, None, Sharding::of(n, Some(0))).expect("of 600"));
    let buffers = RefCell::default();
    for width in [5, 1, 3, 2] {
        for source in &sources {
            let fresh = visit_in(&RefCell::default(), &model, source, width);
            assert_eq!(visit_in(&buffers, &model, source, width), fresh);
        }
    }
}

#[test]
fn a_merge_edit_gives_the_summary_of_the_merged_responsibilities() {
    let rows = clustered::<f64>(N, D, K, 1);
    let table = DenseRows::new(&rows, D);
    let model = model("Gaussian", "DirichletProcess", K, &rows, D);
    let source = ArrayBatches::new(&table, None, Sharding::of(4, None)).expect("4 of 600");
    let mut edits = EditLog::with_components(K);
    let (mut memo, visits) = one_pass(&model, &source, &edits);
    let (keep, gone) = (ComponentId(3), ComponentId(1));
    let before = memo.total().clone();
    let gap = before.gaps.get(keep, gone).expect("tracked");
    let edit = Edit::Merge { keep, gone };
    edits.push(edit.clone());
    memo.apply(&edit).expect("the gap is known");

    let after = memo.total();
    assert_eq!(after.ids, [0, 2, 3, 4].map(ComponentId));
    assert!(distance(&[after.counts[2]], &[before.counts[3] + before.counts[1]]) < 1e-13);
    assert!(distance(&[after.entropies[2]], &[before.entropies[3] + before.entropies[1] - gap]) < 1e-13);
    let unknown = PairGaps::Known(std::collections::BTreeMap::new());
    assert_ne!(after.gaps, unknown);
    for other in [0, 2, 4].map(ComponentId) {
        let shared = before.gaps.get(keep, other) != Some(0.0) || before.gaps.get(gone, other) != Some(0.0);
        assert_eq!(after.gaps.get(keep, other).is_none(), shared, "{other:?}");
    }

    // The local state follows: no unit refers to the deleted component.
    let mut state = visits.state(0).clone();
    let had = state.last_best().iter().filter(|best| **best == Some(gone)).count();
    assert!(had > 0);
    state.replay(&edits);
    assert!(state.last_best().iter().all(|best| *best != Some(gone)));
}

#[test]
fn a_merge_without_known_gaps_is_refused_and_changes_nothing() {
    let ids = EditLog::with_components(2).components().expect("one append");
    let mut summary = Summary::empty(ids, 1, false);
    let before = summary.clone();
    assert!(summary.apply(&Edit::Merge { keep: ComponentId(0), gone: ComponentId(1) }).is_err());
    assert_eq!(summary, before);
}

#[test]
fn local_state_survives_saving_and_deletes() {
    let rows = clustered::<f64>(N, D, K, 1);
    let table = DenseRows::new(&rows, D);
    let model = model("Gaussian", "DirichletProcess", K, &rows, D);
    let source = ArrayBatches::new(&table, None, Sharding::of(4, Some(3))).expect("4 of 600");
    let mut edits = EditLog::with_components(K);
    let (_, visits) = one_pass(&model, &source, &edits);
    let bytes = visits.save(3).expect("serialisable");
    let loaded: LocalState = load_state(&bytes).expect("what was saved");
    let mut state = visits.state(3).clone();
    assert!(state.bytes() >= 150 * 8);
    edits.push(Edit::Delete { id: ComponentId(0) });
    state.replay(&edits);
    assert!(state.last_best().iter().all(|best| *best != Some(ComponentId(0))));
    // The cache is not saved.
    assert!(loaded != *visits.state(3) && loaded.last_best().is_empty());
    let mut emptied = visits.state(3).clone();
    emptied.forget();
    assert_eq!(loaded, emptied);
    assert!(matches!(load_state::<LocalState>(&bytes[..bytes.len() / 2]), Err(Error::Format { .. })));
    assert!(matches!(load_state::<LocalState>(&[&bytes[..], &[0]].concat()), Err(Error::Format { .. })));
}

/// Counts what it sees.
#[derive(Default)]
struct Census {
    seen: Vec<usize>,
    totals: Vec<f64>,
}

impl Tap for Census {
    fn observe(&mut self, chunk: &Chunk<'_>) -> stickbreak::Result<()> {
        let responsibilities = chunk.responsibilities;
        for unit in 0..responsibilities.len() {
            self.seen.push(chunk.row_number(unit));
            self.totals
                .push(responsibilities.values[unit * responsibilities.width..][..responsibilities.width].iter().sum());
        }
        Ok(())
    }
}

#[test]
fn a_tap_sees_every_row_once() {
    let rows = clustered::<f64>(N, D, K, 1);
    let table = DenseRows::new(&rows, D);
    let model = model("Gaussian", "DirichletProcess", K, &rows, D);
    let source = ArrayBatches::new(&table, None, Sharding::of(4, Some(0))).expect("4 of 600");
    let edits = EditLog::with_components(K);
    let globals = globals_of_rows(&model, &rows, D, K);
    let mut executor = InProcess::new(&RowKind, &model, &source, OPTIONS, Cancel::default()).expect("four batches");
    let mut census = Census::default();
    for batch in 0..4 {
        executor.visit_with_taps(batch, &globals, &edits, &mut [&mut census]).expect("in memory");
    }
    census.seen.sort_unstable();
    assert_eq!(census.seen, (0..N).collect::<Vec<_>>());
    assert!(census.totals.iter().all(|total| (total - 1.0).abs() < 1e-14));
}

fn run(model: &Model<f64>, source: &dyn BatchSource<f64>, passes: usize) -> stickbreak::Result<stickbreak::fit::Run> {
    run_in_order(model, source, passes, true)
}

fn run_in_order(
    model: &Model<f64>,
    source: &dyn BatchSource<f64>,
    passes: usize,
    shuffle: bool,
) -> stickbreak::Result<stickbreak::fit::Run> {
    run_watched(model, source, passes, shuffle, &(), &Cancel::default())
}

fn run_watched(
    model: &Model<f64>,
    source: &dyn BatchSource<f64>,
    passes: usize,
    shuffle: bool,
    observer: &dyn Observer,
    cancel: &Cancel,
) -> stickbreak::Result<stickbreak::fit::Run> {
    let edits = EditLog::with_components(K);
    let start = Summary::empty(edits.components()?, model.likelihood.n_statistics(), false);
    let rows = clustered::<f64>(N, D, K, 1);
    let mut start = start;
    let globals = globals_of_rows(model, &rows, D, K);
    (start.counts, start.statistics) = (globals.counts, globals.statistics);
    let mut executor = InProcess::new(&RowKind, model, source, OPTIONS, Cancel::default())?;
    let memo = Memo::starting_from(start, executor.n_batches(), N as f64);
    let identity = Identity::default();
    let settings = Settings { max_passes: passes, shuffle, seed: 5, ..Settings::default() };
    let model = model.clone();
    let position = Position::first(memo, edits, model.base.parameters.clone());
    let (identity, settings, started) = (&identity, &settings, Instant::now());
    let engine = Engine { model, identity, settings, round: None, data: &|| Ok(()), started };
    engine.run(&mut executor, position, observer, cancel)
}

#[test]
fn a_callback_source_gives_the_bits_of_the_array() {
    let rows = clustered::<f64>(N, D, K, 1);
    let table = DenseRows::new(&rows, D);
    let model = model("Gaussian", "DirichletProcess", K, &rows, D);
    let array = ArrayBatches::new(&table, None, Sharding::of(4, None)).expect("4 of 600");
    let from_array = run(&model, &array, 3).expect("in memory");
    let made = rows.clone();
    let callback = CallbackBatches::new(D, 4, move |batch| {
        let size = N / 4 * D;
        Ok(RowUnits::owned(Box::new(DenseRows::new(made[batch * size..(batch + 1) * size].to_vec(), D)), None))
    });
    let from_callback = run(&model, &callback, 3).expect("the same rows");
    assert_eq!(from_array.summary, from_callback.summary);
    assert_eq!(from_array.elbo.to_bits(), from_callback.elbo.to_bits());
}

/// The batches of every pass, in the order of visits.
fn visits(shuffle: bool, passes: usize) -> Vec<Vec<usize>> {
    let rows = clustered::<f64>(N, D, K, 1);
    let model = model("Gaussian", "DirichletProcess", K, &rows, D);
    let asked = std::sync::Mutex::new(Vec::new());
    let source = CallbackBatches::new(D, 4, |batch| {
        asked.lock().expect("no panic").push(batch);
        let size = N / 4 * D;
        Ok(RowUnits::owned(Box::new(DenseRows::new(rows[batch * size..(batch + 1) * size].to_vec(), D)), None))
    });
    run_in_order(&model, &source, passes, shuffle).expect("in memory");
    asked.into_inner().expect("no panic").chunks(4).map(<[usize]>::to_vec).collect()
}

#[test]
fn passes_visit_in_fresh_orders_or_as_the_batches_come() {
    assert_eq!(visits(false, 3), vec![vec![0, 1, 2, 3]; 3]);
    let shuffled = visits(true, 6);
    assert!(shuffled.iter().any(|pass| *pass != shuffled[0]));
    for mut pass in shuffled {
        pass.sort_unstable();
        assert_eq!(pass, [0, 1, 2, 3]);
    }
}

#[test]
fn a_source_that_fails_later_leaves_the_last_complete_state() {
    let rows = clustered::<f64>(N, D, K, 1);
    let model = model("Gaussian", "DirichletProcess", K, &rows, D);
    let loads = std::sync::atomic::AtomicUsize::new(0);
    let failing = |after: usize| {
        let (rows, loads) = (rows.clone(), &loads);
        loads.store(0, std::sync::atomic::Ordering::Relaxed);
        move |batch: usize| {
            if loads.fetch_add(1, std::sync::atomic::Ordering::Relaxed) >= after {
                return Err(Error::Source { batch: Some(batch), message: "gone".into() });
            }
            let size = N / 4 * D;
            Ok(RowUnits::owned(Box::new(DenseRows::new(rows[batch * size..(batch + 1) * size].to_vec(), D)), None))
        }
    };
    let late = run(&model, &CallbackBatches::new(D, 4, failing(10)), 5).expect("two passes were complete");
    assert_eq!((late.stop_reason, late.history.len()), (StopReason::SourceError, 2));
    assert!(matches!(late.error, Some(Error::Source { .. })));
    assert!(late.elbo.is_finite() && late.elbo >= late.history[1].elbo);
    let early = run(&model, &CallbackBatches::new(D, 4, failing(2)), 5);
    assert!(matches!(early, Err(Error::Source { .. })));
}

/// Interrupts after a given number of batches of a pass.
struct Presses<'a> {
    cancel: &'a Cancel,
    position: (usize, usize),
}

impl Observer for Presses<'_> {
    fn on_event(&self, _run: usize, event: Event) -> bool {
        if matches!(event, Event::Batch { pass, done, .. } if (pass, done) == self.position) {
            self.cancel.cancel();
        }
        false
    }
}

#[test]
fn an_interrupt_within_a_pass_keeps_the_visits_before_it() {
    let rows = clustered::<f64>(N, D, K, 1);
    let table = DenseRows::new(&rows, D);
    let model = model("Gaussian", "DirichletProcess", K, &rows, D);
    let source = ArrayBatches::new(&table, None, Sharding::of(4, None)).expect("4 of 600");
    let whole = run_in_order(&model, &source, 2, false).expect("in memory");
    let mut last = f64::NEG_INFINITY;
    for done in 1..4 {
        let cancel = Cancel::default();
        let presses = Presses { cancel: &cancel, position: (1, done) };
        let broken = run_watched(&model, &source, 9, false, &presses, &cancel).expect("a complete state");
        assert_eq!((broken.stop_reason, broken.history.len()), (StopReason::Interrupted, 1));
        // Each visit is kept: the bound is that of the summary, and lies between those of the previous and the next
        // pass.
        let model = model.with_base(broken.base.clone()).expect("parameters");
        assert_eq!(broken.elbo, collapsed(&model, &broken.summary).expect("definite").total());
        assert!(broken.elbo > last.max(broken.history[0].elbo) && broken.elbo < whole.elbo, "{done}");
        assert!((broken.summary.mass - N as f64).abs() < 1e-9);
        assert!(broken.summary.counts.is_sorted_by(|a, b| a >= b), "{:?}", broken.summary.counts);
        last = broken.elbo;
    }
}

#[test]
fn a_snapshot_travels_as_bytes() {
    let rows = clustered::<f64>(N, D, K, 1);
    let model = model("ZeroMeanGaussian", "FiniteDirichlet", K, &rows, D);
    let globals = globals_of_rows(&model, &rows, D, K);
    let bytes = globals.to_bytes().expect("serialisable");
    assert_eq!(Globals::from_bytes(&bytes), Ok(globals));
    assert!(matches!(Globals::from_bytes(&bytes[1..bytes.len() / 2]), Err(Error::Format { .. })));
}

/// `|y'| >= contraction |y| - displacement` for every row and component between two versions.
#[test]
fn drift_bounds_the_residuals() {
    for likelihood in ["Gaussian", "ZeroMeanGaussian"] {
        let rows = clustered::<f64>(N, D, K, 1);
        let table = DenseRows::new(&rows, D);
        let model = model(likelihood, "DirichletProcess", K, &rows, D);
        let source = ArrayBatches::new(&table, None, Sharding::of(4, None)).expect("4 of 600");
        let edits = EditLog::with_components(K);
        let mut executor = InProcess::new(&RowKind, &model, &source, OPTIONS, Cancel::default()).expect("four batches");
        let (mut memo, _) = one_pass(&model, &source, &edits);
        let mut earlier = Globals::new(&model, memo.total(), 1);
        let mut useful = 0;
        for version in 2..12 {
            for batch in 0..4 {
                memo.replace(
                    batch,
                    executor.visit(batch, &earlier, &edits, &Plan::default()).expect("in memory").summary,
                )
                .expect("same components");
            }
            let later = Globals::new(&model, memo.total(), version);
            let scorer = |globals: &Globals| globals.scorer(&model).expect("definite");
            let (before, after) = (scorer(&earlier), scorer(&later));
            for k in 0..K {
                let drift = after.drift_since(before.as_ref(), k, k);
                let (before, after) = (lengths(&model, &earlier, &rows, k), lengths(&model, &later, &rows, k));
                for (y, moved) in before.iter().zip(&after) {
                    assert!(*moved >= drift.contraction * y - drift.displacement - 1e-9 * (1.0 + y));
                }
                useful += usize::from(drift.contraction > 0.5);
            }
            earlier = later;
        }
        // The bound must also exclude pairs once the fit settles.
        assert!(useful >= 3 * K, "{likelihood}: {useful}");
    }
}

/// |y| of every row for one component, from its log weight: W = constant - |y|^2 / 2, and W - W(at the centre).
fn lengths(model: &Model<f64>, globals: &Globals, rows: &[f64], k: usize) -> Vec<f64> {
    let scorer = model
        .likelihood
        .scorer(&globals.components(), &globals.allocation.expected_log_weights, Density::Expected(model.objective))
        .expect("definite");
    let origin = model.likelihood.origin();
    let mut centred: Vec<f64> = rows.iter().enumerate().map(|(i, x)| x - origin[i % D]).collect();
    let parameters = model.likelihood.posterior_parameters(&globals.components()).expect("definite");
    let centre: Vec<f64> = match parameters.0.get("mean") {
        Some(stickbreak::parameters::Value::Array { data, .. }) => {
            data[k * D..(k + 1) * D].iter().zip(origin).map(|(m, o)| m - o).collect()
        }
        _ => vec![0.0; D],
    };
    centred.extend(centre);
    let mut weights = vec![0.0; centred.len() / D];
    scorer.score_component(k, &centred, &mut weights);
    let top = weights.pop().expect("the centre");
    weights.iter().map(|weight| (2.0 * (top - weight)).max(0.0).sqrt()).collect()
}
