//! What Python sees of chains while they run.

use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use stickbreak::mcmc::{ChainObserver, ChainWatcher, Sweep};

use crate::run::Event;

/// Sweeps without a draw are reported at most this often.
const REPORT: Duration = Duration::from_millis(100);

/// A sweep of a chain.
pub struct SweepEvent(Sweep);

impl SweepEvent {
    /// The event as Python reads it.
    pub fn into_dict(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let Self(sweep) = self;
        let dict = PyDict::new(py);
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

/// Sends the events of all chains.
pub struct ChainReports<'a> {
    pub events: &'a Sender<Event<SweepEvent>>,
    /// Whether every draw is shown, and its answer waited for.
    pub listens: bool,
}

impl ChainWatcher for ChainReports<'_> {
    fn observer(&self, _chain: usize) -> Box<dyn ChainObserver + '_> {
        Box::new(ChainReporter { events: self.events, listens: self.listens, last: None })
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
            // A missing listener is no reason to stop.
            let _ = self.events.send((SweepEvent(*sweep), None));
            return false;
        }
        let (answer, answered) = channel();
        self.events.send((SweepEvent(*sweep), Some(answer))).is_ok() && answered.recv().unwrap_or(false)
    }
}
