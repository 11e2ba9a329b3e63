//! Events of running chains for Python.

use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use stickbreak::Result;
use stickbreak::fit::Identity;
use stickbreak::mcmc::SavedChain;
use stickbreak::mcmc::checkpoint::write;
use stickbreak::mcmc::{ChainObserver, ChainWatcher, Sweep};

use crate::run::Event;
use crate::watcher::Checkpoints;

/// Minimum interval between reports of sweeps without a draw.
const REPORT: Duration = Duration::from_millis(100);

/// Event of running chains.
pub enum SweepEvent {
    /// A sweep of one chain.
    Sweep(Sweep),
    /// A checkpoint of all chains.
    Checkpoint(Vec<u8>),
}

impl SweepEvent {
    /// Converts the event to a dict.
    pub fn into_dict(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let dict = PyDict::new(py);
        let sweep = match self {
            Self::Sweep(sweep) => sweep,
            Self::Checkpoint(bytes) => {
                dict.set_item("kind", "checkpoint")?;
                dict.set_item("bytes", PyBytes::new(py, &bytes))?;
                return Ok(dict);
            }
        };
        dict.set_item("kind", "sweep")?;
        dict.set_item("chain", sweep.chain)?;
        dict.set_item("index", sweep.index)?;
        dict.set_item("draw", sweep.draw)?;
        dict.set_item("seconds", sweep.seconds)?;
        dict.set_item("log_joint", sweep.log_joint)?;
        dict.set_item("n_clusters", sweep.n_clusters)?;
        Ok(dict)
    }
}

/// Sends the events of all chains to Python.
pub struct ChainReports<'a> {
    pub events: &'a Sender<Event<SweepEvent>>,
    /// Whether every draw is shown and waits for an answer.
    pub listens: bool,
    /// Identity of the run and schedule of checkpoints, if checkpoints are requested.
    pub checkpoints: Option<(Identity, Mutex<Checkpoints>)>,
}

impl ChainWatcher for ChainReports<'_> {
    fn observer(&self, _chain: usize) -> Box<dyn ChainObserver + '_> {
        Box::new(ChainReporter { events: self.events, listens: self.listens, last: None })
    }

    fn wants_checkpoint(&self, last: bool) -> bool {
        self.checkpoints.as_ref().is_some_and(|(_, due)| due.lock().is_ok_and(|mut due| due.are_due(last)))
    }

    fn on_checkpoint(&self, chains: &[SavedChain]) -> Result<()> {
        let Some((identity, due)) = &self.checkpoints else { return Ok(()) };
        // Chains continue while Python writes.
        let (answer, answered) = channel();
        let _ = self.events.send((SweepEvent::Checkpoint(write(identity, chains)?), Some(answer)));
        if let Ok(mut due) = due.lock() {
            due.writing = Some(answered);
        }
        Ok(())
    }
}

struct ChainReporter<'a> {
    events: &'a Sender<Event<SweepEvent>>,
    listens: bool,
    last: Option<Instant>,
}

impl ChainObserver for ChainReporter<'_> {
    fn wants_sweep(&mut self) -> bool {
        self.listens && self.last.is_none_or(|last| last.elapsed() >= REPORT)
    }

    fn on_sweep(&mut self, sweep: &Sweep) -> bool {
        if !self.listens {
            return false;
        }
        self.last = Some(Instant::now());
        if sweep.draw.is_none() {
            // A missing receiver is no reason to stop.
            let _ = self.events.send((SweepEvent::Sweep(*sweep), None));
            return false;
        }
        let (answer, answered) = channel();
        self.events.send((SweepEvent::Sweep(*sweep), Some(answer))).is_ok() && answered.recv().unwrap_or(false)
    }
}
