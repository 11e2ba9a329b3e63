//! A second executor. Batches live in worker processes, which keep their local state; globals and summaries travel as
//! bytes. The fit must be the same to the last bit. A worker is this program, started to run only the test `worker`.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::common::{clustered, globals_of_rows, model};
use crate::toy_question::SumsAbove;
use stickbreak::component::EditLog;
use stickbreak::data::{ArrayBatches, DenseRows, NodeCut, Sharding};
use stickbreak::error::{Error, Result};
use stickbreak::events::{Event, Observer};
use stickbreak::executor::{Executor, InProcess, Visit};
use stickbreak::fit::{Engine, Position, Run, Settings};
use stickbreak::fitted::Record;
use stickbreak::global_step::Globals;
use stickbreak::identity::Identity;
use stickbreak::local_step::{Keep, OpeningRule, TreeOptions};
use stickbreak::memo::Memo;
use stickbreak::model::Model;
use stickbreak::moves::{Birth, Delete, Merge, Moves, Plan, Round};
use stickbreak::parallel::Cancel;
use stickbreak::payload::Payload;
use stickbreak::responsibilities::Sparsity;
use stickbreak::suffstats::Summary;
use stickbreak::visits::{Asked, LocalOptions, TreeSettings, UnitOptions};

pub const N: usize = 2000;
pub const D: usize = 4;
const K: usize = 6;
pub const BATCHES: usize = 5;
const PASSES: usize = 4;
/// Nodes that are opened after every pass, and become rows before the last.
pub const TREE: TreeSettings = TreeSettings {
    options: TreeOptions { depth: 2, cut: NodeCut::Axis },
    expand_every: 1,
    rule: OpeningRule::Gain,
    tolerance: 0.01,
    budget: None,
    refine: true,
    on_trial: false,
    for_moves: true,
};

const OPTIONS: LocalOptions =
    LocalOptions { sparsity: Sparsity::Limited(3), margin: None, bounds_memory: 1, keep: Keep::SummaryAndGaps };

/// Environment variable that marks a worker: "rows" or "nodes".
const WORKER: &str = "STICKBREAK_WORKER";
/// The test harness writes to stdout before a worker does. The worker's own output follows this line.
const READY: &[u8] = b"the worker is ready";

fn send(stream: &mut impl Write, bytes: &[u8]) -> std::io::Result<()> {
    stream.write_all(&(bytes.len() as u64).to_le_bytes())?;
    stream.write_all(bytes)?;
    stream.flush()
}

fn receive(stream: &mut impl Read) -> std::io::Result<Vec<u8>> {
    let mut length = [0; 8];
    stream.read_exact(&mut length)?;
    let mut bytes = vec![0; u64::from_le_bytes(length) as usize];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Reads until after the first `mark`.
fn skip_to(mark: &[u8], stream: &mut impl Read) {
    let mut seen = Vec::new();
    while !seen.ends_with(mark) {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a worker that starts");
        seen.push(byte[0]);
    }
}

#[derive(Serialize, Deserialize)]
enum Request {
    Visit(usize, Box<Globals>, EditLog, Plan),
    Answer(usize, Box<Asked>),
    Save,
    Load(Vec<Vec<u8>>),
}

/// The rows of both sides.
pub fn rows() -> Vec<f64> {
    clustered(N, D, K, 9)
}

/// Calls `check` with an executor in this process.
pub fn with_executor<T>(units: UnitOptions, check: impl FnOnce(&Model<f64>, InProcess<'_, f64>) -> T) -> T {
    let rows = rows();
    let table = DenseRows::new(&rows, D);
    let model = model("Gaussian", "DirichletProcess", K, &rows, D);
    let source = ArrayBatches::new(&table, None, Sharding::of(BATCHES, Some(3))).expect("5 of 2000");
    let executor = InProcess::new(units.kind(), &model, &source, OPTIONS, Cancel::default()).expect("replayable");
    check(&model, executor.answering::<SumsAbove>())
}

/// Answers requests until the other side closes the stream.
fn serve(executor: &mut InProcess<'_, f64>) {
    let (mut input, mut output) = (std::io::stdin(), std::io::stdout());
    output.write_all(READY).and_then(|()| output.flush()).expect("the parent listens");
    while let Ok(request) = receive(&mut input) {
        let answer = match postcard::from_bytes(&request).expect("a request") {
            Request::Visit(batch, globals, edits, plan) => {
                postcard::to_stdvec(&executor.visit(batch, &globals, &edits, &plan).expect("in memory"))
            }
            Request::Answer(batch, asked) => {
                postcard::to_stdvec(&executor.answer(batch, &asked).expect("a known question"))
            }
            Request::Save => postcard::to_stdvec(&executor.save_states().expect("serialisable")),
            Request::Load(states) => postcard::to_stdvec(&executor.load_states(&states).expect("of five batches")),
        };
        send(&mut output, &answer.expect("serialisable")).expect("the parent listens");
    }
}

struct Worker {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
}

impl Worker {
    fn start(units: UnitOptions) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this binary"))
            .arg(concat!(module_path!(), "::worker").split_once("::").expect("the crate comes first").1)
            .args(["--exact", "--test-threads=1"]) // with more the harness writes of tests that take long
            .env(WORKER, if units == UnitOptions::Rows { "rows" } else { "nodes" })
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a worker process");
        let (input, mut output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        skip_to(READY, &mut output);
        Self { child, input, output }
    }

    fn ask<T: DeserializeOwned>(&mut self, batch: usize, request: &Request) -> Result<T> {
        let gone = |error: &dyn std::fmt::Display| Error::Source { batch: Some(batch), message: error.to_string() };
        let request = postcard::to_stdvec(request).map_err(|error| gone(&error))?;
        send(&mut self.input, &request).map_err(|error| gone(&error))?;
        let answer = receive(&mut self.output).map_err(|error| gone(&error))?;
        postcard::from_bytes(&answer).map_err(|error| gone(&error))
    }
}

/// Batch b belongs to worker b mod 2.
pub struct Pool {
    workers: Vec<Worker>,
}

impl Pool {
    pub fn start(units: UnitOptions) -> Self {
        Self { workers: vec![Worker::start(units), Worker::start(units)] }
    }

    pub fn stop(self) {
        for mut worker in self.workers {
            drop(worker.input);
            assert!(worker.child.wait().expect("the worker").success());
        }
    }
}

impl Executor for Pool {
    fn n_batches(&self) -> usize {
        BATCHES
    }

    fn visit(&mut self, batch: usize, globals: &Globals, edits: &EditLog, plan: &Plan) -> Result<Visit> {
        let n = self.workers.len();
        let request = Request::Visit(batch, Box::new(globals.clone()), edits.clone(), plan.clone());
        self.workers[batch % n].ask(batch, &request)
    }

    fn answer(&mut self, batch: usize, asked: &Asked) -> Result<Payload> {
        let n = self.workers.len();
        self.workers[batch % n].ask(batch, &Request::Answer(batch, Box::new(asked.clone())))
    }

    fn save_states(&mut self) -> Result<Vec<Vec<u8>>> {
        let saved: Vec<Vec<Vec<u8>>> =
            self.workers.iter_mut().map(|worker| worker.ask(0, &Request::Save)).collect::<Result<_>>()?;
        Ok((0..BATCHES).map(|batch| saved[batch % saved.len()][batch].clone()).collect())
    }

    fn load_states(&mut self, states: &[Vec<u8>]) -> Result<()> {
        self.workers.iter_mut().try_for_each(|worker| worker.ask(0, &Request::Load(states.to_vec())))
    }
}

/// Keeps one checkpoint in the middle of a pass.
#[derive(Default)]
struct Kept {
    wanted: usize,
    asked: AtomicUsize,
    bytes: Mutex<Vec<u8>>,
}

impl Observer for Kept {
    fn wants_checkpoint(&self, _last: bool) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed) + 1 == self.wanted
    }

    fn on_event(&self, _run: usize, event: Event) -> bool {
        if let Event::Checkpoint(bytes) = event {
            *self.bytes.lock().expect("no panic") = bytes;
        }
        false
    }
}

fn start(model: &Model<f64>, rows: &[f64], k: usize) -> Position {
    let edits = EditLog::with_components(k);
    let globals = globals_of_rows(model, rows, D, k);
    let mut start = Summary::empty(edits.components().expect("one append"), model.likelihood.n_statistics(), false);
    (start.counts, start.statistics) = (globals.counts, globals.statistics);
    Position::first(Memo::starting_from(start, BATCHES, N as f64), edits, model.base.parameters.clone())
}

fn moves() -> Moves {
    let birth = Birth { adopt: false, max_subsample: 500, threshold: 0.1, fresh: 3 };
    Moves::from(birth).with(Merge).with(Delete { candidates: 3 })
}

fn run(
    model: &Model<f64>,
    units: UnitOptions,
    moves: &Moves,
    position: Position,
    executor: &mut dyn Executor,
    observer: &dyn Observer,
) -> Run {
    let identity = Identity::default();
    let cancel = Cancel::default();
    let (moves, local) = (moves.list(), OPTIONS);
    let round = (!moves.is_empty()).then_some(Round {
        model: model.clone(),
        moves: &moves,
        sparsity: local.sparsity,
        margin: local.margin,
        seed: 2,
        n_batches: BATCHES,
        cancel: &cancel,
    });
    let settings = Settings { local, units, max_passes: PASSES, shuffle: true, seed: 2, ..Settings::default() };
    let model = model.clone();
    let (identity, settings, started) = (&identity, &settings, Instant::now());
    let engine = Engine { model, identity, settings, round, data: &|| Ok(()), started };
    engine.run(executor, position, observer, &cancel).expect("a fit")
}

/// Compares the fit in this process, in two worker processes, and from a checkpoint of `pass` after two batches.
/// Returns the records of the passes.
fn compare(units: UnitOptions, moves: &Moves, k: usize, pass: usize) -> Vec<Record> {
    with_executor(units, |model, mut here| {
        let rows = rows();
        // One before the first pass, then one after every batch.
        let kept = Kept { wanted: 1 + pass * BATCHES + 2, ..Kept::default() };
        let ours = run(model, units, moves, start(model, &rows, k), &mut here, &kept);
        let mut pool = Pool::start(units);
        let theirs = run(model, units, moves, start(model, &rows, k), &mut pool, &());
        assert_eq!(pool.save_states(), here.save_states());
        // Other workers continue from the checkpoint that the first executor wrote.
        let (position, states) = Identity::default()
            .read(&kept.bytes.lock().expect("no panic"), BATCHES, model.likelihood.n_statistics())
            .expect("a checkpoint of this run");
        assert_eq!((position.pass, position.done), (pass, 2));
        assert_eq!(position.moves.plan.proposals.is_empty(), moves.is_empty());
        pool.load_states(&states).expect("of five batches");
        let resumed = run(model, units, moves, position, &mut pool, &());
        assert_eq!(pool.save_states(), here.save_states());
        pool.stop();
        let known = |run: &Run| -> Vec<_> {
            let known =
                |record: &Record| (record.elbo.to_bits(), record.n_components, record.n_units, record.moves.clone());
            run.history.iter().map(known).collect()
        };
        for other in [theirs, resumed] {
            assert_eq!(ours.summary, other.summary);
            assert_eq!(ours.elbo.to_bits(), other.elbo.to_bits());
            assert_eq!(known(&ours), known(&other));
        }
        assert_eq!(ours.history.len(), PASSES);
        ours.history
    })
}

fn numbers(history: &[Record], number: impl Fn(&Record) -> usize) -> Vec<usize> {
    history.iter().map(number).collect()
}

/// Serves if this process is a worker; otherwise does nothing.
#[test]
fn worker() {
    if let Some(word) = std::env::var_os(WORKER) {
        let units = if word == "rows" { UnitOptions::Rows } else { UnitOptions::Nodes(TREE) };
        with_executor(units, |_, mut executor| serve(&mut executor));
    }
}

#[test]
fn a_fit_in_two_other_processes_has_the_same_bits() {
    let fixed = compare(UnitOptions::Rows, &Moves::default(), K, 0);
    assert_eq!(numbers(&fixed, |record| record.n_components), [K; PASSES]);
    // The first pass collects parts. Proposals, and the findings of two batches for them, are in the checkpoint.
    let grown = numbers(&compare(UnitOptions::Rows, &moves(), 2, 1), |record| record.n_components);
    assert!(grown[0] == 2 && grown[1] > 2, "{grown:?}");
}

/// Which nodes to open is asked of the workers, and their answers add up to the same choice.
#[test]
fn a_fit_of_nodes_in_two_other_processes_has_the_same_bits() {
    let history = compare(UnitOptions::Nodes(TREE), &Moves::default(), K, 1);
    let n_units = numbers(&history, |record| record.n_units);
    assert!(BATCHES * 4 < n_units[0] && n_units.is_sorted() && n_units[PASSES - 2] < N, "{n_units:?}");
    assert_eq!(n_units[PASSES - 1], N);
}
