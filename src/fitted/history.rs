//! Records of a run, the reasons why it ended, and the second best of several.

use serde::{Deserialize, Serialize};

use crate::moves::Report;

/// Record of one pass over the data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Index of the pass: 0, 1, ...
    pub index: usize,
    /// Seconds since the fit began.
    pub seconds: f64,
    /// The bound after the pass, nats; NaN until every batch has been visited.
    pub elbo: f64,
    /// The bound plus the guard of the base measure, which every pass raises (mathematics 10.1), nats.
    pub objective: f64,
    /// Gain of the update of the base measure after the pass, nats.
    pub base_measure_gain: f64,
    /// Number of components after the pass.
    pub n_components: usize,
    /// Number of units of the pass: rows, nodes that stand for many rows, or, in topic models, distinct words of
    /// documents.
    pub n_units: usize,
    /// The mass that the bound is of: that of the search rows, as long as there are any (mathematics 10.12).
    pub mass: f64,
    /// Number of batches.
    pub n_batches: usize,
    /// Number of moves proposed.
    pub proposed: usize,
    /// Number of moves accepted.
    pub accepted: usize,
    /// Fraction of the (row, component) pairs whose log weight was computed.
    pub evaluated_share: f64,
    /// Reports of the moves, one per kind.
    pub moves: Vec<Report>,
}

/// The second best of several starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunnerUp {
    /// Its objective, nats.
    pub objective: f64,
    /// The adjusted Rand index of its labels and those of the best start.
    pub ari: f64,
}

/// The rows in which structure was sought, if these were not all rows with their weights (mathematics 10.12).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Searched {
    /// Their number.
    pub n_rows: usize,
    /// Sum of their weights.
    pub mass: f64,
    /// The objective of the fit to them, which compares starts, nats.
    pub objective: f64,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// A pass gained less than the tolerance.
    Converged,
    /// The maximum number of passes was reached.
    MaxPasses,
    /// The user interrupted.
    Interrupted,
    /// An observer requested it.
    Callback,
    /// The batch source failed.
    SourceError,
}

impl StopReason {
    /// Public name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Converged => "converged",
            Self::MaxPasses => "max_passes",
            Self::Interrupted => "interrupted",
            Self::Callback => "callback",
            Self::SourceError => "source_error",
        }
    }

    /// Returns the reason with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Converged, Self::MaxPasses, Self::Interrupted, Self::Callback, Self::SourceError]
            .into_iter()
            .find(|reason| reason.name() == name)
    }
}
