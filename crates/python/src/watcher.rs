//! What Python sees of a fit while it goes on: events, sent to the thread that holds Python.

use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use stickbreak::fit::{Observer, Standing, Watcher};
use stickbreak::fitted::Record;

use crate::history::record_to_dict;
use crate::run::Event;
use crate::state::FitState;

/// Batches are reported at most this often.
const REPORT: Duration = Duration::from_millis(100);

/// What the core tells while it works.
pub enum Progress {
    Round { first: usize, n_runs: usize, standing: Box<Standing> },
    Batch { run: usize, done: usize, n_batches: usize },
    Pass { run: usize, record: Record },
    Checkpoint(Vec<u8>),
}

impl Progress {
    /// The event as Python reads it.
    pub fn into_dict(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let dict = PyDict::new(py);
        let kind = match self {
            Self::Round { first, n_runs, standing } => {
                let Standing { index, n_wide, best } = *standing;
                dict.set_item("first", first)?;
                dict.set_item("n_runs", n_runs)?;
                dict.set_item("index", index)?;
                dict.set_item("n_wide", n_wide)?;
                dict.set_item("best", best.map(FitState::new))?;
                "round"
            }
            Self::Batch { run, done, n_batches } => {
                dict.set_item("run", run)?;
                dict.set_item("batch", done)?;
                dict.set_item("n_batches", n_batches)?;
                "batch"
            }
            Self::Pass { run, record } => {
                dict.update(record_to_dict(py, &record)?.as_mapping())?;
                dict.set_item("run", run)?;
                "pass"
            }
            Self::Checkpoint(bytes) => {
                dict.set_item("bytes", PyBytes::new(py, &bytes))?;
                "checkpoint"
            }
        };
        dict.set_item("kind", kind)?;
        Ok(dict)
    }
}

/// Sends events of all runs of a fit.
pub struct Reports<'a> {
    pub events: &'a Sender<Event<Progress>>,
    /// Time between two checkpoints, where there are any.
    pub every: Option<Duration>,
}

impl Watcher for Reports<'_> {
    fn on_round(&self, first: usize, n_runs: usize, standing: &Standing) {
        let standing = Box::new(standing.clone());
        // A missing listener is no reason to stop.
        let _ = self.events.send((Progress::Round { first, n_runs, standing }, None));
    }

    fn observer(&self, run: usize) -> Box<dyn Observer + '_> {
        let checkpoints = self.every.map(Checkpoints::new);
        Box::new(Reporter { run, events: self.events, last: None, checkpoints })
    }
}

/// Sends the events of one run.
struct Reporter<'a> {
    /// Which of the runs of the round it is.
    run: usize,
    events: &'a Sender<Event<Progress>>,
    last: Option<Instant>,
    checkpoints: Option<Checkpoints>,
}

/// When checkpoints are due: at the start, at the end, and a time after the last one was written.
pub struct Checkpoints {
    every: Duration,
    last: Option<Instant>,
    /// Answers once the last one has been written; none is made before that.
    pub writing: Option<Receiver<bool>>,
}

impl Checkpoints {
    /// Due at once, and then at most this often.
    pub fn new(every: Duration) -> Self {
        Self { every, last: None, writing: None }
    }

    /// Whether one is due; `last`: whether it is the last one.
    pub fn are_due(&mut self, last: bool) -> bool {
        if self.writing.as_ref().is_some_and(|writing| writing.try_recv() != Err(TryRecvError::Empty)) {
            self.writing = None;
            self.last = Some(Instant::now());
        }
        last || (self.writing.is_none() && self.last.is_none_or(|written| written.elapsed() >= self.every))
    }
}

impl Observer for Reporter<'_> {
    fn on_batch(&mut self, _pass: usize, done: usize, n_batches: usize) {
        if self.last.is_none_or(|last| last.elapsed() >= REPORT) {
            self.last = Some(Instant::now());
            let _ = self.events.send((Progress::Batch { run: self.run, done, n_batches }, None));
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
