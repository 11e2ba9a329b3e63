//! The entry point that fits.

use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};
use stickbreak::fit::{Observer, Options, Record};
use stickbreak::init::Init;
use stickbreak::responsibilities::Sparsity;

use crate::arrays::{AnyRows, weights, with_rows};
use crate::errors::to_python;
use crate::run::{Event, run};
use crate::specification::{Pair, specification};
use crate::state::{State, record_to_dict};

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
    Batch { pass: usize, done: usize, n_batches: usize },
    Pass(Record),
    Checkpoint(Vec<u8>),
}

/// Sends progress to the thread that holds Python.
struct Reporter<'a> {
    events: &'a Sender<Event<Progress>>,
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

impl Observer for Reporter<'_> {
    fn on_batch(&mut self, pass: usize, done: usize, n_batches: usize) {
        if self.last.is_none_or(|last| last.elapsed() >= REPORT) {
            self.last = Some(Instant::now());
            // Nobody listening is no reason to stop.
            let _ = self.events.send((Progress::Batch { pass, done, n_batches }, None));
        }
    }

    fn on_pass(&mut self, record: &Record) -> bool {
        let (answer, answered) = channel();
        self.events.send((Progress::Pass(*record), Some(answer))).is_ok() && answered.recv().unwrap_or(false)
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

/// Fits a mixture; see `stickbreak.fit`.
#[pyfunction]
#[pyo3(signature = (rows, weights, *, likelihood, process, n_components, init, batches, shuffle, sparsity, margin, bounds_memory,
                    max_passes, tol, seed, threads, checkpoint_every, resume, observer))]
#[allow(clippy::too_many_arguments, clippy::needless_pass_by_value)]
pub fn fit(
    py: Python<'_>,
    rows: AnyRows<'_>,
    weights: Option<PyReadonlyArray1<'_, f64>>,
    likelihood: Pair<'_>,
    process: Pair<'_>,
    n_components: Option<usize>,
    init: Start<'_>,
    batches: Option<usize>,
    shuffle: bool,
    sparsity: Option<Width>,
    margin: Option<f64>,
    bounds_memory: usize,
    max_passes: usize,
    tol: f64,
    seed: u64,
    threads: Option<usize>,
    checkpoint_every: Option<f64>,
    resume: Option<PyBackedBytes>,
    observer: Option<Py<PyAny>>,
) -> PyResult<State> {
    let specification = specification(&likelihood, &process)?;
    let resume = resume.as_deref();
    let sparsity = width(sparsity)?;
    let options =
        Options { n_components, batches, shuffle, sparsity, margin, bounds_memory, max_passes, tol, seed, resume };
    let labels = labels(&init)?;
    let init = start(&init, &labels)?;
    let weights = self::weights(weights.as_ref())?;
    // A time too long for the clock is never.
    let every = checkpoint_every.map(|every| Duration::try_from_secs_f64(every).unwrap_or(Duration::MAX));
    let show = |py: Python<'_>, event: Progress| match &observer {
        Some(observer) => observer.call1(py, (event_to_dict(py, &event, max_passes)?,))?.is_truthy(py),
        None => Ok(false),
    };
    let fitted = with_rows!(&rows, |view| run(py, threads, show, |cancel, events| {
        let checkpoints = every.map(|every| Checkpoints { every, last: None, writing: None });
        let mut reporter = Reporter { events, last: None, checkpoints };
        stickbreak::fit::fit(&specification, &view, weights, &init, options, &mut reporter, cancel)
    }))?;
    Ok(State::new(fitted))
}

fn width(sparsity: Option<Width>) -> PyResult<Sparsity> {
    match sparsity {
        None => Ok(Sparsity::Dense),
        Some(Width::Number(width)) => Ok(Sparsity::Limited(width)),
        Some(Width::Name(name)) if name == "auto" => Ok(Sparsity::Auto),
        Some(Width::Name(name)) => {
            let allowed = "\"auto\", None or a number of components";
            Err(to_python(&stickbreak::Error::invalid("sparsity", format!("{name:?}"), allowed)))
        }
    }
}

fn labels(init: &Start<'_>) -> PyResult<Vec<u32>> {
    let Start::Labels(labels) = init else { return Ok(Vec::new()) };
    labels
        .as_array()
        .iter()
        .map(|&label| {
            u32::try_from(label)
                .map_err(|_| to_python(&stickbreak::Error::invalid("init", label, "labels from 0 to 4294967295")))
        })
        .collect()
}

fn start<'a>(init: &'a Start<'_>, labels: &'a [u32]) -> PyResult<Init<'a>> {
    match init {
        Start::Name(name) => match name.as_str() {
            "kmeans++" => Ok(Init::KmeansPlusPlus),
            "random" => Ok(Init::Random),
            _ => Err(to_python(&stickbreak::Error::invalid("init", format!("{name:?}"), "\"kmeans++\" or \"random\""))),
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
        Progress::Pass(record) => {
            let dict = record_to_dict(py, record)?;
            dict.set_item("kind", "pass")?;
            Ok(dict)
        }
        Progress::Checkpoint(bytes) => {
            let dict = PyDict::new(py);
            dict.set_item("kind", "checkpoint")?;
            dict.set_item("bytes", PyBytes::new(py, bytes))?;
            Ok(dict)
        }
        Progress::Batch { pass, done, n_batches } => {
            let dict = PyDict::new(py);
            dict.set_item("kind", "batch")?;
            dict.set_item("pass", pass)?;
            dict.set_item("batch", done)?;
            dict.set_item("n_batches", n_batches)?;
            dict.set_item("max_passes", max_passes)?;
            Ok(dict)
        }
    }
}
