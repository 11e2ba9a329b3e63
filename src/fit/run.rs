//! The result of a run.

use crate::component::Class;
use crate::error::Error;
use crate::fitted::{Record, StopReason};
use crate::parameters::Parameters;
use crate::suffstats::Summary;

/// Result of a run.
#[derive(Debug, Clone)]
pub struct Run {
    /// The summary that produced the components.
    pub summary: Summary,
    /// The class of each of its components.
    pub classes: Vec<Class>,
    /// Bound of the summary, nats; NaN if the summary does not cover all data.
    pub elbo: f64,
    /// Final parameters of the base measure.
    pub base: Parameters,
    /// One record per pass.
    pub history: Vec<Record>,
    /// Why the run ended.
    pub stop_reason: StopReason,
    /// The error of the source, for [`StopReason::SourceError`].
    pub error: Option<Error>,
}
