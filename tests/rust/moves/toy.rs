//! A move that is not in the registry and consists of this file alone. It merges the two smallest components if that
//! raises the bound.

use std::sync::Mutex;
use std::time::Instant;

use serde::Serialize;
use serde::de::DeserializeOwned;
use stickbreak::Result;
use stickbreak::component::{ComponentId, Edit, EditLog, position};
use stickbreak::data::{ArrayBatches, Sharding};
use stickbreak::events::{Event, Observer};
use stickbreak::executor::{Executor, InProcess, Visit};
use stickbreak::fit::{Engine, Position, Run, Settings};
use stickbreak::global_step::Globals;
use stickbreak::identity::Identity;
use stickbreak::local_step::Keep;
use stickbreak::memo::Memo;
use stickbreak::moves::{
    Merge, Move, MoveKind, MoveState, Moves, Part, Payload, Plan, Planning, Report, Round, RunShape, Settling, Visited,
    is_gain,
};
use stickbreak::parallel::Cancel;
use stickbreak::responsibilities::Sparsity;
use stickbreak::simd::Scalar;
use stickbreak::visits::{LocalOptions, RowKind};

use super::problem::{CASES, Problem};
use super::replay::start;

const KIND: MoveKind = MoveKind::new("fold");

struct Fold;

/// What visits look for: two components.
type Pair = (ComponentId, ComponentId);
/// What visits find: the number of rows with responsibilities for both.
type Overlap = u64;

impl<F: Scalar> Move<F> for Fold {
    fn kind(&self) -> MoveKind {
        KIND
    }

    fn plan(&self, planning: &mut Planning<'_, '_, F>) -> Result<()> {
        let (total, pass) = (planning.total(), planning.pass);
        let is_ready = |&k: &usize| planning.state.is_ready(&KIND, total.ids[k], total.counts[k], pass);
        let mut order: Vec<usize> = (0..total.n_components()).filter(is_ready).collect();
        order.sort_by(|&a, &b| total.counts[a].total_cmp(&total.counts[b]));
        if let [a, b, ..] = order[..] {
            let (a, b) = (total.ids[a], total.ids[b]);
            let pair: Pair = (a.min(b), a.max(b));
            planning.plan.pairs.push(pair);
            planning.plan.wanted.put(KIND, Payload::new(pair));
        }
        Ok(())
    }

    fn look(&self, wanted: &Payload, visited: &Visited<'_, F>) -> Result<Option<Payload>> {
        let (a, b) = *wanted.get::<Pair>()?;
        let has_both = |unit: &usize| {
            let ids: Vec<ComponentId> = visited.responsibilities(*unit).into_iter().map(|(id, _)| id).collect();
            ids.contains(&a) && ids.contains(&b)
        };
        let overlap = (0..visited.look.seen.n_units()).filter(has_both).count() as Overlap;
        Ok(Some(Payload::new(overlap)))
    }

    fn take(&self, _: &Payload, found: Option<Payload>, findings: Payload) -> Result<Payload> {
        let before: Overlap = found.map_or(Ok(0), Payload::into_value)?;
        Ok(Payload::new(before + findings.into_value::<Overlap>()?))
    }

    fn settle(&self, settling: &mut Settling<'_, '_, F>) -> Result<Report> {
        let Some(wanted) = settling.state.plan.wanted.remove(&KIND) else {
            return Ok(Report::new(KIND, 0, 0, 0.0, []));
        };
        let (keep, gone) = wanted.into_value::<Pair>()?;
        if !settling.is_alone(keep) || !settling.is_alone(gone) {
            return Ok(Report::new(KIND, 1, 0, 0.0, [("another move took one", 1)]));
        }
        let (total, judge) = (settling.memo.total(), &settling.judge);
        let (a, b) = (position(&total.ids, keep)?, position(&total.ids, gone)?);
        let (x, y) = (Part::of(total, a), Part::of(total, b));
        let both = judge.gain(x.with(&y).sufficient())?;
        let mut counts = total.counts.clone();
        counts[a] += counts[b];
        counts.remove(b);
        let tail = total.tail_count();
        let gap = total.gaps.get(keep, gone).expect("the plan lists the pair");
        let weights = judge.allocation(counts, tail) - judge.allocation(total.counts.clone(), tail);
        let gain = both - judge.gain(x.sufficient())? - judge.gain(y.sufficient())? - gap + weights;
        if is_gain(gain, [both, weights]) {
            let edit = Edit::Merge { keep, gone };
            settling.memo.apply(&edit)?;
            settling.edits.push(edit);
            settling.merged(keep, gone);
            return Ok(Report::new(KIND, 1, 1, gain, []));
        }
        settling.state.memory(&KIND).failed(keep, x.count, settling.pass, true);
        let shared = usize::from(settling.state.found.payloads.take::<Overlap>(&KIND)? > 0);
        Ok(Report::new(KIND, 1, 0, 0.0, [("they share rows", shared), ("they are apart", 1 - shared)]))
    }

    fn fits(&self, state: &MoveState, shape: &RunShape<'_>) -> bool {
        let known = |pair: &Pair| shape.ids.contains(&pair.0) && shape.ids.contains(&pair.1);
        state.plan.wanted.get(&KIND).is_ok_and(|pair| pair.is_none_or(|pair| known(&pair)))
            && state.found.payloads.get::<Overlap>(&KIND).is_ok()
    }
}

const N: usize = 240;
const BATCHES: usize = 3;

/// An executor that passes everything as bytes.
struct Wire<'a>(InProcess<'a, f64>);

fn sent<T: Serialize + DeserializeOwned>(value: &T) -> T {
    postcard::from_bytes(&postcard::to_stdvec(value).expect("serialisable")).expect("its own bytes")
}

impl Executor for Wire<'_> {
    fn n_batches(&self) -> usize {
        self.0.n_batches()
    }

    fn visit(&mut self, batch: usize, globals: &Globals, edits: &EditLog, plan: &Plan) -> Result<Visit> {
        self.0.visit(batch, &sent(globals), edits, &sent(plan)).map(|visit| sent(&visit))
    }

    fn save_states(&mut self) -> Result<Vec<Vec<u8>>> {
        self.0.save_states()
    }

    fn load_states(&mut self, states: &[Vec<u8>]) -> Result<()> {
        self.0.load_states(states)
    }
}

/// Keeps every checkpoint.
#[derive(Default)]
struct Kept(Mutex<Vec<Vec<u8>>>);

impl Observer for Kept {
    fn wants_checkpoint(&self, _last: bool) -> bool {
        true
    }

    fn on_event(&self, _run: usize, event: Event) -> bool {
        if let Event::Checkpoint(bytes) = event {
            self.0.lock().expect("no panic").push(bytes);
        }
        false
    }
}

struct Setting<'a> {
    problem: &'a Problem,
    moves: &'a [&'a dyn Move<f64>],
    sparsity: Sparsity,
}

impl Setting<'_> {
    /// Runs from eight components, or from a checkpoint.
    fn run(&self, wire: bool, checkpoint: Option<&[u8]>, observer: &dyn Observer) -> Result<Run> {
        let model = &self.problem.model;
        let rows = self.problem.rows();
        let source = ArrayBatches::new(rows.as_ref(), None, Sharding::of(BATCHES, Some(1)))?;
        let options = LocalOptions { sparsity: self.sparsity, margin: None, bounds_memory: 0, keep: Keep::Summary };
        let cancel = Cancel::default();
        let mut executor =
            Wire(InProcess::new(&RowKind, model, &source, options, cancel.clone())?.with_moves(self.moves));
        let position = if let Some(bytes) = checkpoint {
            let (position, states) = Identity::default().read(bytes, BATCHES, model.likelihood.n_statistics())?;
            executor.load_states(&states)?;
            position
        } else {
            let labels: Vec<u32> = (0..N as u32).map(|row| row % 4 + row / 4 % 2 * 4).collect();
            let edits = EditLog::with_components(8);
            let start = start(model, rows.as_ref(), None, &edits.components()?, &labels);
            Position::first(Memo::starting_from(start, BATCHES, N as f64), edits, model.base.parameters.clone())
        };
        let (seed, sparsity, margin) = (3, self.sparsity, None);
        let model = model.clone();
        let round = Round {
            model: model.clone(),
            moves: self.moves,
            sparsity,
            margin,
            seed,
            n_batches: BATCHES,
            cancel: &cancel,
        };
        let settings = Settings { max_passes: 8, shuffle: true, seed, ..Settings::default() };
        let (identity, round) = (&Identity::default(), Some(round));
        let (settings, started) = (&settings, Instant::now());
        let engine = Engine { model, identity, settings, round, data: &|| Ok(()), started };
        if wire {
            engine.run(&mut executor, position, observer, &cancel)
        } else {
            engine.run(&mut executor.0, position, observer, &cancel)
        }
    }
}

fn known(run: &Run) -> String {
    let history: Vec<_> = run.history.iter().map(|record| (record.elbo.to_bits(), &record.moves)).collect();
    format!("{:?} {history:?}", run.summary)
}

/// The move merges some components and not others, never lowers the bound, and gives the same result through bytes and
/// from every checkpoint.
#[test]
fn a_move_needs_nothing_but_its_file() {
    let problem = Problem::new(CASES[0], N, 3, 4, 5);
    for sparsity in [Sparsity::Dense, Sparsity::Limited(1)] {
        let setting = Setting { problem: &problem, moves: &[&Fold], sparsity };
        let kept = Kept::default();
        let run = setting.run(false, None, &kept).expect("a fit");
        assert!(run.history.windows(2).all(|pair| pair[1].elbo >= pair[0].elbo));
        let reports: Vec<&Report> = run.history.iter().flat_map(|record| &record.moves).collect();
        assert_eq!(reports.len(), run.history.len());
        let accepted: usize = reports.iter().map(|report| report.accepted).sum();
        assert!(accepted > 0 && reports.iter().any(|report| report.proposed > report.accepted), "{reports:?}");
        assert_eq!(run.history.last().expect("passes").n_components, 8 - accepted);
        assert!(reports.iter().all(|report| report.kind == KIND));
        let apart = reports.iter().flat_map(|report| &report.refused).any(|(reason, _)| reason == "they are apart");
        assert_eq!(apart, sparsity == Sparsity::Limited(1), "{reports:?}");
        assert_eq!(known(&setting.run(true, None, &()).expect("a fit")), known(&run));
        let kept = kept.0.into_inner().expect("no panic");
        for bytes in &kept {
            assert_eq!(known(&setting.run(true, Some(bytes), &()).expect("a fit")), known(&run));
        }
        // Without the move, its state in a checkpoint is refused.
        let merges = Moves::from(Merge);
        let others = Setting { moves: &merges.list(), ..setting };
        assert!(others.run(false, Some(&kept[2]), &()).is_err());
    }
}

/// The move works together with moves of the registry.
#[test]
fn a_move_goes_with_those_of_the_registry() {
    let problem = Problem::new(CASES[0], N, 3, 4, 6);
    let registered = Moves::all();
    let mut moves = registered.list();
    moves.push(&Fold);
    let setting = Setting { problem: &problem, moves: &moves, sparsity: Sparsity::Limited(3) };
    let run = setting.run(true, None, &()).expect("a fit");
    let kinds: Vec<&str> = run.history[0].moves.iter().map(|report| report.kind.name()).collect();
    assert_eq!(kinds, ["birth", "split", "merge", "delete", "fold"]);
    assert!(run.history.windows(2).all(|pair| pair[1].elbo >= pair[0].elbo));
}
