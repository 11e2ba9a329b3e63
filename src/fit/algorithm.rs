//! How the summary of a visit updates the total. This is the only difference between memoized and stochastic inference.

use crate::error::Result;
use crate::memo::Memo;
use crate::suffstats::Summary;

/// How a visit updates the total.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Algorithm {
    /// The new summary replaces the batch's previous one (Hughes & Sudderth 2013, section 3; mathematics 4.3).
    Memoized,
    /// The total moves towards the batch's summary, scaled to all data, with step size `(t + delay)^-decay` at visit t
    /// = 1, 2, ... (Hoffman et al. 2013; mathematics 4.2). Batch summaries are not stored.
    Stochastic {
        /// tau, at least 0; larger values give early visits less weight.
        delay: f64,
        /// kappa; the estimate converges if it is above 0.5 and at most 1.
        decay: f64,
    },
}

impl Algorithm {
    /// Whether the total is a noisy estimate, which has no bound.
    pub fn estimates(self) -> bool {
        matches!(self, Self::Stochastic { .. })
    }

    /// Incorporates the summary of `batch`, from visit `visit` (0, 1, ...) of the run.
    pub(super) fn take(self, memo: &mut Memo, batch: usize, summary: Summary, visit: usize) -> Result<()> {
        match self {
            Self::Memoized => memo.replace(batch, summary),
            Self::Stochastic { delay, decay } => memo.blend(&summary, (visit as f64 + 1.0 + delay).powf(-decay)),
        }
    }

    /// The algorithm and its settings as text.
    pub fn name(self) -> String {
        match self {
            Self::Memoized => "memoized".into(),
            Self::Stochastic { delay, decay } => format!("stochastic with delay {delay} and decay {decay}"),
        }
    }
}
