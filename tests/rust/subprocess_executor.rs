//! A second executor: batches live in worker processes, which keep their local state; globals and summaries travel as
//! bytes. The fit must be the same to the last bit. This binary is its own worker, so it has no test harness.

mod common;

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use common::{clustered, globals_of_rows, model};
use stickbreak::component::EditLog;
use stickbreak::data::{ArrayBatches, DenseRows};
use stickbreak::error::{Error, Result};
use stickbreak::executor::{Executor, InProcess, LocalOptions};
use stickbreak::fit::{Engine, Run};
use stickbreak::global_step::Globals;
use stickbreak::local_step::Keep;
use stickbreak::memo::Memo;
use stickbreak::model::Model;
use stickbreak::parallel::Cancel;
use stickbreak::responsibilities::Sparsity;
use stickbreak::suffstats::Summary;

const N: usize = 2000;
const D: usize = 4;
const K: usize = 6;
const BATCHES: usize = 5;
const OPTIONS: LocalOptions = LocalOptions { sparsity: Sparsity::Limited(3), keep: Keep::SummaryAndGaps };

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

/// Answers visits until the other end hangs up.
fn serve() {
    let rows = clustered::<f64>(N, D, K, 9);
    let table = DenseRows::new(&rows, D);
    let model = model("Gaussian", "DirichletProcess", K, &rows, D);
    let source = ArrayBatches::new(&table, None, BATCHES, Some(3), 0).expect("5 of 2000");
    let mut executor = InProcess::new(&model, &source, OPTIONS, Cancel::default()).expect("replayable");
    let (mut input, mut output) = (std::io::stdin(), std::io::stdout());
    while let Ok(request) = receive(&mut input) {
        let (batch, globals, edits): (usize, Globals, EditLog) = postcard::from_bytes(&request).expect("a request");
        let summary = executor.visit(batch, &globals, &edits).expect("in memory");
        send(&mut output, &postcard::to_stdvec(&summary).expect("serialisable")).expect("the parent listens");
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
            .env("STICKBREAK_WORKER", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a worker process");
        let (input, output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        Self { child, input, output }
    }
}

/// Batch b lives with worker b mod 2.
struct Pool {
    workers: Vec<Worker>,
}

impl Executor for Pool {
    fn n_batches(&self) -> usize {
        BATCHES
    }

    fn visit(&mut self, batch: usize, globals: &Globals, edits: &EditLog) -> Result<Summary> {
        let gone = |error: &dyn std::fmt::Display| Error::Source { batch, message: error.to_string() };
        let n = self.workers.len();
        let worker = &mut self.workers[batch % n];
        let request = postcard::to_stdvec(&(batch, globals, edits)).map_err(|error| gone(&error))?;
        send(&mut worker.input, &request).map_err(|error| gone(&error))?;
        let answer = receive(&mut worker.output).map_err(|error| gone(&error))?;
        postcard::from_bytes(&answer).map_err(|error| gone(&error))
    }
}

fn run(model: &Model<f64>, rows: &[f64], executor: &mut dyn Executor) -> Run {
    let edits = EditLog::with_components(K);
    let globals = globals_of_rows(model, rows, D, K);
    let mut start = Summary::empty(edits.components().expect("one append"), model.likelihood.n_statistics(), false);
    (start.counts, start.statistics) = (globals.counts, globals.statistics);
    let memo = Memo::starting_from(start, BATCHES, N as f64);
    let engine = Engine { model, max_passes: 4, tol: 0.0, seed: 2, started: Instant::now() };
    engine.run(executor, memo, &edits, &mut (), &Cancel::default()).expect("a fit")
}

fn main() {
    if std::env::var_os("STICKBREAK_WORKER").is_some() {
        return serve();
    }
    let rows = clustered::<f64>(N, D, K, 9);
    let table = DenseRows::new(&rows, D);
    let model = model("Gaussian", "DirichletProcess", K, &rows, D);
    let source = ArrayBatches::new(&table, None, BATCHES, Some(3), 0).expect("5 of 2000");
    let mut here = InProcess::new(&model, &source, OPTIONS, Cancel::default()).expect("replayable");
    let ours = run(&model, &rows, &mut here);
    let mut pool = Pool { workers: vec![Worker::start(), Worker::start()] };
    let theirs = run(&model, &rows, &mut pool);
    for mut worker in pool.workers {
        drop(worker.input);
        assert!(worker.child.wait().expect("the worker").success());
    }
    assert_eq!(ours.summary, theirs.summary);
    assert_eq!(ours.elbo.to_bits(), theirs.elbo.to_bits());
    assert_eq!(ours.history.len(), 4);
}
