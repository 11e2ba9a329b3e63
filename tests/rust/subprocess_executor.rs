//! A second executor. Batches live in worker processes, which keep their local state; globals and summaries travel as
//! bytes. The fit must be the same to the last bit. A worker is this program, started to run only the test `worker`.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::common::{clustered, globals_of_rows, model};
use stickbreak::component::EditLog;
use stickbreak::data::{ArrayBatches, DenseRows};
use stickbreak::error::{Error, Result};
use stickbreak::executor::{Executor, InProcess, LocalOptions, Visit};
use stickbreak::fit::{Engine, Identity, Observer, Position, Run, Settings};
use stickbreak::fitted::Record;
use stickbreak::global_step::Globals;
use stickbreak::local_step::{DocumentOptions, Keep};
use stickbreak::memo::Memo;
use stickbreak::model::Model;
use stickbreak::moves::{Birth, Delete, Merge, Moves, Plan, Round};
use stickbreak::parallel::Cancel;
use stickbreak::responsibilities::Sparsity;
use stickbreak::suffstats::Summary;

const N: usize = 2000;
const D: usize = 4;
const K: usize = 6;
const BATCHES: usize = 5;
const PASSES: usize = 4;
const OPTIONS: LocalOptions = LocalOptions {
    sparsity: Sparsity::Limited(3),
    margin: None,
    bounds_memory: 1,
    keep: Keep::SummaryAndGaps,
    documents: DocumentOptions::USUAL,
    tree: None,
};

/// Environment variable that marks a worker.
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
    Save,
    Load(Vec<Vec<u8>>),
}

/// Answers requests until the other side closes the stream.
fn serve() {
    let rows = clustered::<f64>(N, D, K, 9);
    let table = DenseRows::new(&rows, D);
    let model = model("Gaussian", "DirichletProcess", K, &rows, D);
    let source = ArrayBatches::new(&table, None, BATCHES, Some(3), 0).expect("5 of 2000");
    let mut executor = InProcess::new(&model, &source, OPTIONS, Cancel::default()).expect("replayable");
    let (mut input, mut output) = (std::io::stdin(), std::io::stdout());
    output.write_all(READY).and_then(|()| output.flush()).expect("the parent listens");
    while let Ok(request) = receive(&mut input) {
        let answer = match postcard::from_bytes(&request).expect("a request") {
            Request::Visit(batch, globals, edits, plan) => {
                postcard::to_stdvec(&executor.visit(batch, &globals, &edits, &plan).expect("in memory"))
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
    fn start() -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this binary"))
            .arg(concat!(module_path!(), "::worker").split_once("::").expect("the crate comes first").1)
            .args(["--exact", "--test-threads=1"]) // with more the harness writes of tests that take long
            .env(WORKER, "1")
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
struct Pool {
    workers: Vec<Worker>,
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
struct Kept {
    wanted: usize,
    asked: usize,
    bytes: Vec<u8>,
}

impl Observer for Kept {
    fn on_batch(&mut self, _: usize, _: usize, _: usize) {}

    fn on_pass(&mut self, _: &Record) -> bool {
        false
    }

    fn wants_checkpoint(&mut self, _: bool) -> bool {
        self.asked += 1;
        self.asked == self.wanted
    }

    fn on_checkpoint(&mut self, bytes: Vec<u8>) {
        self.bytes = bytes;
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
    moves: &Moves,
    position: Position,
    executor: &mut dyn Executor,
    observer: &mut dyn Observer,
) -> Run {
    let identity = Identity::default();
    let cancel = Cancel::default();
    let moves = moves.list();
    let round = (!moves.is_empty()).then_some(Round {
        model: model.clone(),
        moves: &moves,
        sparsity: OPTIONS.sparsity,
        margin: OPTIONS.margin,
        seed: 2,
        n_batches: BATCHES,
        cancel: &cancel,
    });
    let settings = Settings { max_passes: PASSES, shuffle: true, seed: 2, ..Settings::default() };
    let model = model.clone();
    let engine = Engine { model, round, identity: &identity, settings: &settings, started: Instant::now() };
    engine.run(executor, position, observer, &cancel).expect("a fit")
}

/// Compares the fit in this process, in two worker processes, and from a checkpoint of `pass` after two batches.
/// Returns the number of components after each pass.
fn compare(moves: &Moves, k: usize, pass: usize) -> Vec<usize> {
    let rows = clustered::<f64>(N, D, K, 9);
    let table = DenseRows::new(&rows, D);
    let model = model("Gaussian", "DirichletProcess", K, &rows, D);
    let source = ArrayBatches::new(&table, None, BATCHES, Some(3), 0).expect("5 of 2000");
    let mut here = InProcess::new(&model, &source, OPTIONS, Cancel::default()).expect("replayable");
    // One before the first pass, then one after every batch.
    let mut kept = Kept { wanted: 1 + pass * BATCHES + 2, asked: 0, bytes: Vec::new() };
    let ours = run(&model, moves, start(&model, &rows, k), &mut here, &mut kept);
    let mut pool = Pool { workers: vec![Worker::start(), Worker::start()] };
    let theirs = run(&model, moves, start(&model, &rows, k), &mut pool, &mut ());
    assert_eq!(pool.save_states(), here.save_states());
    // Other workers continue from the checkpoint that the first executor wrote.
    let (position, states) = Identity::default()
        .read(&kept.bytes, BATCHES, model.likelihood.n_statistics())
        .expect("a checkpoint of this run");
    assert_eq!((position.pass, position.done), (pass, 2));
    assert_eq!(position.moves.plan.proposals.is_empty(), moves.is_empty());
    pool.load_states(&states).expect("of five batches");
    let resumed = run(&model, moves, position, &mut pool, &mut ());
    assert_eq!(pool.save_states(), here.save_states());
    for mut worker in pool.workers {
        drop(worker.input);
        assert!(worker.child.wait().expect("the worker").success());
    }
    let known = |run: &Run| -> Vec<_> {
        run.history.iter().map(|record| (record.elbo.to_bits(), record.n_components, record.moves.clone())).collect()
    };
    for other in [theirs, resumed] {
        assert_eq!(ours.summary, other.summary);
        assert_eq!(ours.elbo.to_bits(), other.elbo.to_bits());
        assert_eq!(known(&ours), known(&other));
    }
    assert_eq!(ours.history.len(), PASSES);
    ours.history.iter().map(|record| record.n_components).collect()
}

/// Serves if this process is a worker; otherwise does nothing.
#[test]
fn worker() {
    if std::env::var_os(WORKER).is_some() {
        serve();
    }
}

#[test]
fn a_fit_in_two_other_processes_has_the_same_bits() {
    assert_eq!(compare(&Moves::default(), K, 0), [K; PASSES]);
    // The first pass collects parts. Proposals, and the findings of two batches for them, are in the checkpoint.
    let grown = compare(&moves(), 2, 1);
    assert!(grown[0] == 2 && grown[1] > 2, "{grown:?}");
}
