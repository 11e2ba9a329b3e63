//! The entry point that fits.

use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};
use stickbreak::fit::{Cut, Fitted, Observer, Options, Record, Schedule};
use stickbreak::init::Init;
use stickbreak::moves::Moves;
use stickbreak::parallel::{Cancel, side_by_side};
use stickbreak::responsibilities::Sparsity;
use stickbreak::{Error, Result};

use crate::arrays::{AnyData, weights, with_data};
use crate::errors::to_python;
use crate::history::record_to_dict;
use crate::run::{Event, run};
use crate::specification::{Pair, read, specification};
use crate::state::State;

/// Batches are reported at most this often.
const REPORT: Duration = Duration::from_millis(100);

/// A start as Python may write it.
#[derive(FromPyObject)]
pub enum Start<'py> {
    Name(String),
    Labels(PyReadonlyArray1<'py, i64>),
    Table(PyReadonlyArray2<'py, f64>),
    State(PyRef<'py, State>),
}

/// A number of components to keep, or "auto".
#[derive(FromPyObject)]
pub enum Width {
    Number(usize),
    Name(String),
}

/// What the core tells while it works.
enum Progress {
    Batch { run: usize, pass: usize, done: usize, n_batches: usize },
    Pass { run: usize, record: Record },
    Checkpoint(Vec<u8>),
}

/// Sends progress to the thread that holds Python.
struct Reporter {
    /// Which of the runs it is.
    run: usize,
    events: Sender<Event<Progress>>,
    last: Option<Instant>,
    checkpoints: Option<Checkpoints>,
}

/// When checkpoints are due: at the start, at the end, and a time after the last one was written.
struct Checkpoints {
    every: Duration,
    last: Option<Instant>,
    /// Answers once the last one has been written; none is made before that.
    writing: Option<Receiver<bool>>,
}

impl Checkpoints {
    fn are_due(&mut self, last: bool) -> bool {
        if self.writing.as_ref().is_some_and(|writing| writing.try_recv() != Err(TryRecvError::Empty)) {
            self.writing = None;
            self.last = Some(Instant::now());
        }
        last || (self.writing.is_none() && self.last.is_none_or(|written| written.elapsed() >= self.every))
    }
}

impl Observer for Reporter {
    fn on_batch(&mut self, pass: usize, done: usize, n_batches: usize) {
        if self.last.is_none_or(|last| last.elapsed() >= REPORT) {
            self.last = Some(Instant::now());
            // Nobody listening is no reason to stop.
            let _ = self.events.send((Progress::Batch { run: self.run, pass, done, n_batches }, None));
        }
    }

    fn on_pass(&mut self, record: &Record) -> bool {
        let (answer, answered) = channel();
        let event = Progress::Pass { run: self.run, record: record.clone() };
        self.events.send((event, Some(answer))).is_ok() && answered.recv().unwrap_or(false)
    }

    fn wants_checkpoint(&mut self, last: bool) -> bool {
        self.checkpoints.as_mut().is_some_and(|checkpoints| checkpoints.are_due(last))
    }

    fn on_checkpoint(&mut self, bytes: Vec<u8>) {
        // The run goes on while Python writes.
        let (answer, answered) = channel();
        let _ = self.events.send((Progress::Checkpoint(bytes), Some(answer)));
        if let Some(checkpoints) = &mut self.checkpoints {
            checkpoints.writing = Some(answered);
        }
    }
}

/// Fits a mixture from each of the seeds, side by side where there are threads to spare; see `stickbreak.fit`. Where an
/// interrupt ended the work, runs without a state are left out.
#[pyfunction]
#[pyo3(signature = (rows, weights, *, likelihood, process, objective, holes, n_components, init, batches, batch_size,
                    shuffle, steps, moves, sparsity, margin, bounds_memory, max_passes, tol, seeds, threads,
                    checkpoint_every, resume, observer))]
#[allow(clippy::too_many_arguments, clippy::needless_pass_by_value)]
pub fn fit(
    py: Python<'_>,
    rows: AnyData<'_>,
    weights: Option<PyReadonlyArray1<'_, f64>>,
    likelihood: Pair<'_>,
    process: Pair<'_>,
    objective: &str,
    holes: bool,
    n_components: Option<usize>,
    init: Start<'_>,
    batches: Option<usize>,
    batch_size: Option<usize>,
    shuffle: bool,
    steps: Option<(f64, f64)>,
    moves: Vec<Pair<'_>>,
    sparsity: Option<Width>,
    margin: Option<f64>,
    bounds_memory: usize,
    max_passes: usize,
    tol: f64,
    seeds: Vec<u64>,
    threads: Option<usize>,
    checkpoint_every: Option<f64>,
    resume: Option<PyBackedBytes>,
    observer: Option<Py<PyAny>>,
) -> PyResult<Vec<State>> {
    let specification = specification(&likelihood, &process, objective, holes)?;
    let resume = resume.as_deref();
    let sparsity = width(sparsity)?;
    let batches = batch_size.map(Cut::Size).or(batches.map(Cut::Number)).unwrap_or(Cut::Auto);
    let schedule = steps.map_or(Schedule::Memoized, |(delay, decay)| Schedule::Stochastic { delay, decay });
    let moves = self::moves(&moves)?;
    let options = |seed| Options {
        n_components,
        batches,
        shuffle,
        moves,
        schedule,
        sparsity,
        margin,
        bounds_memory,
        max_passes,
        tol,
        seed,
        resume,
    };
    let labels = labels(&init)?;
    let init = start(&init, &labels)?;
    let weights = self::weights(weights.as_ref())?;
    // A time too long for the clock is never.
    let every = checkpoint_every.map(|every| Duration::try_from_secs_f64(every).unwrap_or(Duration::MAX));
    let show = |py: Python<'_>, event: Progress| match &observer {
        Some(observer) => observer.call1(py, (event_to_dict(py, &event, max_passes)?,))?.is_truthy(py),
        None => Ok(false),
    };
    let fitted = with_data!(rows, weights, |data| run(py, threads, show, |cancel, events| {
        restarts(&seeds, events, every, cancel, |seed, reporter| {
            stickbreak::fit::fit(&specification, &data, &init, options(seed), reporter, cancel)
        })
    }))?;
    Ok(fitted.into_iter().map(State::new).collect())
}

/// One fit for each seed. An error of any ends the others.
fn restarts(
    seeds: &[u64],
    events: &Sender<Event<Progress>>,
    every: Option<Duration>,
    cancel: &Cancel,
    fit: impl Fn(u64, &mut Reporter) -> Result<Fitted> + Sync,
) -> Result<Vec<Fitted>> {
    let outcomes = side_by_side(seeds.len(), |run| {
        let checkpoints = every.map(|every| Checkpoints { every, last: None, writing: None });
        let mut reporter = Reporter { run, events: events.clone(), last: None, checkpoints };
        let outcome = fit(seeds[run], &mut reporter);
        if outcome.is_err() {
            cancel.cancel();
        }
        outcome
    })?;
    let mut fitted = Vec::new();
    for outcome in outcomes {
        match outcome {
            Ok(one) => fitted.push(one),
            Err(Error::Cancelled) => {}
            Err(error) => return Err(error),
        }
    }
    if fitted.is_empty() { Err(Error::Cancelled) } else { Ok(fitted) }
}

/// The moves of a run.
pub fn moves(pairs: &[Pair<'_>]) -> PyResult<Moves> {
    let mut moves = Moves::default();
    for (name, parameters) in pairs {
        moves.add(name, &read(parameters)?).map_err(|error| to_python(&error))?;
    }
    Ok(moves)
}

fn width(sparsity: Option<Width>) -> PyResult<Sparsity> {
    match sparsity {
        None => Ok(Sparsity::Dense),
        Some(Width::Number(width)) => Ok(Sparsity::Limited(width)),
        Some(Width::Name(name)) if name == "auto" => Ok(Sparsity::Auto),
        Some(Width::Name(name)) => {
            let allowed = "\"auto\", None or a number of components";
            Err(to_python(&Error::invalid("sparsity", format!("{name:?}"), allowed)))
        }
    }
}

fn labels(init: &Start<'_>) -> PyResult<Vec<u32>> {
    let Start::Labels(labels) = init else { return Ok(Vec::new()) };
    labels
        .as_array()
        .iter()
        .map(|&label| {
            u32::try_from(label).map_err(|_| to_python(&Error::invalid("init", label, "labels from 0 to 4294967295")))
        })
        .collect()
}

fn start<'a>(init: &'a Start<'_>, labels: &'a [u32]) -> PyResult<Init<'a>> {
    match init {
        Start::Name(name) => match name.as_str() {
            "kmeans++" => Ok(Init::KmeansPlusPlus),
            "random" => Ok(Init::Random),
            "sequential" => Ok(Init::Sequential),
            _ => {
                let allowed = "\"kmeans++\", \"random\" or \"sequential\"";
                Err(to_python(&Error::invalid("init", format!("{name:?}"), allowed)))
            }
        },
        Start::Labels(_) => Ok(Init::Labels(labels)),
        Start::Table(table) => Ok(Init::Table(table.as_slice()?)),
        Start::State(state) => {
            let fitted = state.fitted();
            Ok(Init::Summary { summary: &fitted.summary, origin: &fitted.origin })
        }
    }
}

fn event_to_dict<'py>(py: Python<'py>, event: &Progress, max_passes: usize) -> PyResult<Bound<'py, PyDict>> {
    match event {
        Progress::Pass { run, record } => {
            let dict = record_to_dict(py, record)?;
            dict.set_item("run", run)?;
            dict.set_item("kind", "pass")?;
            Ok(dict)
        }
        Progress::Checkpoint(bytes) => {
            let dict = PyDict::new(py);
            dict.set_item("kind", "checkpoint")?;
            dict.set_item("bytes", PyBytes::new(py, bytes))?;
            Ok(dict)
        }
        Progress::Batch { run, pass, done, n_batches } => {
            let dict = PyDict::new(py);
            dict.set_item("run", run)?;
            dict.set_item("kind", "batch")?;
            dict.set_item("pass", pass)?;
            dict.set_item("batch", done)?;
            dict.set_item("n_batches", n_batches)?;
            dict.set_item("max_passes", max_passes)?;
            Ok(dict)
        }
    }
}
