//! Events of long work, the same for fits and for chains: progress bars, callbacks and checkpoints live on them.

use crate::fitted::{Record, Standing};

/// An event of a fit or of chains.
#[derive(Debug, Clone)]
pub enum Event {
    /// A round of `n_runs` starts begins, after `first` earlier starts.
    Round {
        /// Number of earlier starts.
        first: usize,
        /// Number of starts in this round.
        n_runs: usize,
        /// The state before the round.
        standing: Box<Standing>,
    },
    /// A batch has been visited.
    Batch {
        /// Index of the pass.
        pass: usize,
        /// Number of batches visited in this pass.
        done: usize,
        /// Number of batches.
        n_batches: usize,
    },
    /// A pass is complete.
    Pass(Record),
    /// A chain has made a sweep.
    Sweep(Sweep),
    /// The requested checkpoint.
    Checkpoint(Vec<u8>),
}

/// A sweep of a chain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sweep {
    /// Index of the sweep, warm-up included.
    pub index: usize,
    /// Index of the draw made by this sweep, if any.
    pub draw: Option<usize>,
    /// Running time of the chains in seconds.
    pub seconds: f64,
    /// log p(X, partition | hyper-parameters), nats.
    pub log_joint: f64,
    /// Number of clusters.
    pub n_clusters: usize,
}

/// Receives the events of all runs: of the starts of a round, or of chains. Runs may call it at the same time.
pub trait Observer: Sync {
    /// Whether to report a batch of a run now, or a sweep that makes no draw.
    fn wants_progress(&self, _run: usize) -> bool {
        true
    }
    /// Whether to write a checkpoint now. `last`: whether the run has ended, or all chains have.
    fn wants_checkpoint(&self, _last: bool) -> bool {
        false
    }
    /// Receives an event of a run. Returning `true` after a pass ends the run, and after a draw all chains once they
    /// have as many draws as this one.
    fn on_event(&self, run: usize, event: Event) -> bool;
}

/// Ignores all events.
impl Observer for () {
    fn wants_progress(&self, _run: usize) -> bool {
        false
    }

    fn on_event(&self, _run: usize, _event: Event) -> bool {
        false
    }
}

/// Passes on the events of a run that does not know its number.
pub(crate) struct OfRun<'a> {
    pub(crate) run: usize,
    pub(crate) observer: &'a dyn Observer,
}

impl Observer for OfRun<'_> {
    fn wants_progress(&self, _run: usize) -> bool {
        self.observer.wants_progress(self.run)
    }

    fn wants_checkpoint(&self, last: bool) -> bool {
        self.observer.wants_checkpoint(last)
    }

    fn on_event(&self, _run: usize, event: Event) -> bool {
        self.observer.on_event(self.run, event)
    }
}
