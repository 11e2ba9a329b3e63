//! Sends the events of fits and of chains to the thread that holds Python.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use stickbreak::events::{Event, Observer, Sweep};
use stickbreak::fitted::Standing;

use crate::history::record_to_dict;
use crate::run::Sent;
use crate::settings::GivenCheckpoint;
use crate::state::FitState;

/// Minimum interval between two reports of a run that no answer depends on.
const REPORT: Duration = Duration::from_millis(100);

/// An observer in Python.
#[derive(FromPyObject)]
pub struct GivenObserver<'py> {
    /// Whether it receives batches, passes and sweeps.
    listens: bool,
    /// Whether runs must be made one at a time.
    pub in_turn: bool,
    /// Seconds between two checkpoints; `None` for no checkpoints.
    checkpoint_every: Option<f64>,
    /// Content of a checkpoint to continue from.
    pub checkpoint: Option<GivenCheckpoint<'py>>,
    observe: Py<PyAny>,
}

impl GivenObserver<'_> {
    /// Shows an event to Python. Returns whether to stop.
    pub fn show(&self) -> impl Fn(Python<'_>, usize, Event) -> PyResult<bool> + Send {
        let observe = &self.observe;
        move |py, run, event| observe.call1(py, (into_dict(py, run, event)?,))?.is_truthy(py)
    }

    /// A maker of the core's observer, which needs no interpreter.
    pub fn reports(&self) -> impl Fn(&Sender<Sent>) -> Reports<'_> + Send + use<> {
        let listens = self.listens;
        // A time too long for the clock means never.
        let every = self.checkpoint_every.map(|every| Duration::try_from_secs_f64(every).unwrap_or(Duration::MAX));
        move |events| {
            let checkpoints = Mutex::new(every.map(Checkpoints::new));
            Reports { events, listens, last: Mutex::default(), checkpoints }
        }
    }
}

/// Converts an event of a run to a dict.
fn into_dict(py: Python<'_>, run: usize, event: Event) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("run", run)?;
    let kind = match event {
        Event::Round { first, n_runs, standing } => {
            let Standing { index, n_wide, best } = *standing;
            dict.set_item("first", first)?;
            dict.set_item("n_runs", n_runs)?;
            dict.set_item("index", index)?;
            dict.set_item("n_wide", n_wide)?;
            dict.set_item("best", best.map(FitState::new))?;
            "round"
        }
        Event::Batch { pass: _, done, n_batches } => {
            dict.set_item("batch", done)?;
            dict.set_item("n_batches", n_batches)?;
            "batch"
        }
        Event::Pass(record) => {
            dict.update(record_to_dict(py, &record)?.as_mapping())?;
            "pass"
        }
        Event::Sweep(Sweep { index, draw, seconds, log_joint, n_clusters }) => {
            dict.set_item("index", index)?;
            dict.set_item("draw", draw)?;
            dict.set_item("seconds", seconds)?;
            dict.set_item("log_joint", log_joint)?;
            dict.set_item("n_clusters", n_clusters)?;
            "sweep"
        }
        Event::Checkpoint(bytes) => {
            dict.set_item("bytes", PyBytes::new(py, &bytes))?;
            "checkpoint"
        }
    };
    dict.set_item("kind", kind)?;
    Ok(dict)
}

/// Sends the events of all runs.
pub struct Reports<'a> {
    events: &'a Sender<Sent>,
    listens: bool,
    /// Time of the last report of each run.
    last: Mutex<HashMap<usize, Instant>>,
    checkpoints: Mutex<Option<Checkpoints>>,
}

impl Reports<'_> {
    /// Sends an event that Python answers later. A missing receiver is no reason to stop.
    fn send(&self, run: usize, event: Event) -> Receiver<bool> {
        let (answer, answered) = channel();
        let _ = self.events.send(Sent { run, event, answer });
        answered
    }
}

impl Observer for Reports<'_> {
    fn wants_progress(&self, run: usize) -> bool {
        self.listens && locked(&self.last).get(&run).is_none_or(|last| last.elapsed() >= REPORT)
    }

    fn wants_checkpoint(&self, last: bool) -> bool {
        locked(&self.checkpoints).as_mut().is_some_and(|checkpoints| checkpoints.are_due(last))
    }

    fn on_event(&self, run: usize, event: Event) -> bool {
        let is_round = matches!(event, Event::Round { .. });
        let is_checkpoint = matches!(event, Event::Checkpoint(_));
        let waits = matches!(event, Event::Pass(_) | Event::Sweep(Sweep { draw: Some(_), .. }));
        if !self.listens && !is_round && !is_checkpoint {
            return false;
        }
        locked(&self.last).insert(run, Instant::now());
        let answered = self.send(run, event);
        if let Some(checkpoints) = locked(&self.checkpoints).as_mut() {
            if is_checkpoint {
                // The run continues while Python writes.
                checkpoints.writing = Some(answered);
                return false;
            }
            if is_round {
                *checkpoints = Checkpoints::new(checkpoints.every);
            }
        }
        waits && answered.recv().unwrap_or(false)
    }
}

/// Locks a value that no panic leaves half changed.
fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// When checkpoints are due: at the start, at the end, and a time after the last one was written.
struct Checkpoints {
    every: Duration,
    last: Option<Instant>,
    /// Answers once the last one has been written; none is made before that.
    writing: Option<Receiver<bool>>,
}

impl Checkpoints {
    /// Due at once, and then at most this often.
    fn new(every: Duration) -> Self {
        Self { every, last: None, writing: None }
    }

    /// Whether one is due; `last`: whether it is the last one.
    fn are_due(&mut self, last: bool) -> bool {
        if self.writing.as_ref().is_some_and(|writing| writing.try_recv() != Err(TryRecvError::Empty)) {
            self.writing = None;
            self.last = Some(Instant::now());
        }
        last || (self.writing.is_none() && self.last.is_none_or(|written| written.elapsed() >= self.every))
    }
}
