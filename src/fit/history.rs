//! Records and events of a run, and why it ended.

use serde::{Deserialize, Serialize};

use crate::moves::Report;

/// One pass over the data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// 0, 1, ...
    pub index: usize,
    /// Since the fit began.
    pub seconds: f64,
    /// The bound after the pass, nats; NaN until every batch has been visited.
    pub elbo: f64,
    /// The bound and the guard of the base measure: what every pass raises (mathematics 10.1), nats.
    pub objective: f64,
    /// Gain of the update of the base measure after the pass, nats.
    pub base_measure_gain: f64,
    /// Components after the pass.
    pub n_components: usize,
    /// Units of the pass: rows, or nodes that stand for many of them; of topic models the distinct words of documents.
    pub n_units: usize,
    /// Moves proposed.
    pub proposed: usize,
    /// Moves accepted.
    pub accepted: usize,
    /// Fraction of the (row, component) pairs whose log weight was computed.
    pub evaluated_share: f64,
    /// Reports of the moves, by kind.
    pub moves: Vec<Report>,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// A pass gained less than the tolerance.
    Converged,
    /// The last pass allowed was made.
    MaxPasses,
    /// The user interrupted.
    Interrupted,
    /// An observer asked for it.
    Callback,
    /// The batch source failed.
    SourceError,
}

impl StopReason {
    /// The name used outside.
    pub fn name(self) -> &'static str {
        match self {
            Self::Converged => "converged",
            Self::MaxPasses => "max_passes",
            Self::Interrupted => "interrupted",
            Self::Callback => "callback",
            Self::SourceError => "source_error",
        }
    }

    /// The reason of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Converged, Self::MaxPasses, Self::Interrupted, Self::Callback, Self::SourceError]
            .into_iter()
            .find(|reason| reason.name() == name)
    }
}

/// Sees a run from outside: progress bars, callbacks, checkpoints.
pub trait Observer {
    /// `done` of `n_batches` batches of pass `pass` have been visited.
    fn on_batch(&mut self, pass: usize, done: usize, n_batches: usize);
    /// A pass is complete; `true` ends the run.
    fn on_pass(&mut self, record: &Record) -> bool;
    /// Whether it wants a checkpoint now; `last`: whether the run has ended.
    fn wants_checkpoint(&mut self, _last: bool) -> bool {
        false
    }
    /// The checkpoint that it wanted.
    fn on_checkpoint(&mut self, _bytes: Vec<u8>) {}
}

/// Sees nothing.
impl Observer for () {
    fn on_batch(&mut self, _pass: usize, _done: usize, _n_batches: usize) {}

    fn on_pass(&mut self, _record: &Record) -> bool {
        false
    }
}
