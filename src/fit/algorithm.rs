//! How what a visit brings back enters the total: the one thing in which memoized and stochastic inference differ.

use crate::error::Result;
use crate::memo::Memo;
use crate::suffstats::Summary;

/// How a visit enters the total.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Algorithm {
    /// The new summary takes the place of the batch's last one (Hughes & Sudderth 2013, section 3; mathematics 4.3).
    Memoized,
    /// The total moves towards the batch's summary, scaled to all data, by `(t + delay)^-decay` of the way at visit t =
    /// 1, 2, ... (Hoffman et al. 2013; mathematics 4.2). No batch is remembered.
    Stochastic {
        /// tau, at least 0: early visits count less.
        delay: f64,
        /// kappa; the estimate settles where it is above 0.5 and at most 1.
        decay: f64,
    },
}

impl Algorithm {
    /// Whether the total is an estimate, which has no bound.
    pub fn estimates(self) -> bool {
        matches!(self, Self::Stochastic { .. })
    }

    /// Takes the summary of `batch` in, which is visit `visit` (0, 1, ...) of the run.
    pub(super) fn take(self, memo: &mut Memo, batch: usize, summary: Summary, visit: usize) -> Result<()> {
        match self {
            Self::Memoized => memo.replace(batch, summary),
            Self::Stochastic { delay, decay } => memo.blend(&summary, (visit as f64 + 1.0 + delay).powf(-decay)),
        }
    }

    /// The algorithm and its settings in words.
    pub fn name(self) -> String {
        match self {
            Self::Memoized => "memoized".into(),
            Self::Stochastic { delay, decay } => format!("stochastic with delay {delay} and decay {decay}"),
        }
    }
}
