//! The state of a fit from several starts.

use crate::error::{Error, Result};
use crate::fitted::{Fitted, StopReason};

/// (a, b): a wide start has `a K + b` components, where K is the number of components that the first start found.
const WIDE: (usize, usize) = (2, 10);

/// The state at the beginning of a start, which a checkpoint stores besides the run.
#[derive(Debug, Clone, Default)]
pub struct Standing {
    /// Index of the round.
    pub index: usize,
    /// Number of components of a wide start, once a run has ended.
    pub n_wide: Option<usize>,
    /// The best fit so far.
    pub best: Option<Fitted>,
}

/// The starts of an earlier fit, to be continued.
#[derive(Debug, Clone, Default)]
pub struct Resumed<'a> {
    /// The state to continue from.
    pub standing: Standing,
    /// The checkpoint of the run in progress.
    pub run: Option<&'a [u8]>,
}

/// The fits of a round, and what stopped them early.
pub(crate) struct Ended {
    pub(crate) fits: Vec<Fitted>,
    pub(crate) stop: Option<StopReason>,
    pub(crate) error: Option<Error>,
}

impl Standing {
    /// Keeps the best fit of a round. Returns it if the round ended all starts.
    ///
    /// # Errors
    /// The error of the round, unless it is a stop and there is a fit to return.
    pub(crate) fn take(&mut self, ended: Result<Ended>) -> Result<Option<Fitted>> {
        let (stop, error) = match ended {
            Ok(Ended { fits, stop, error }) => {
                if let (None, Some(first)) = (self.n_wide, fits.first()) {
                    self.n_wide = Some(n_wide(first));
                }
                for fit in fits {
                    self.keep(fit)?;
                }
                (stop, error)
            }
            Err(failure @ Error::Source { .. }) if self.best.is_some() => {
                (Some(StopReason::SourceError), Some(failure))
            }
            Err(failure) => return Err(failure),
        };
        let Some(stop_reason) = stop else { return Ok(None) };
        self.best.take().map(|best| Some(Fitted { stop_reason, error, ..best })).ok_or(Error::Cancelled)
    }

    /// Keeps a fit if its objective is higher than all before. A fit without an objective is kept only if there is no
    /// other.
    fn keep(&mut self, fit: Fitted) -> Result<()> {
        let or_least = |value: f64| if value.is_nan() { f64::NEG_INFINITY } else { value };
        let value = |fit: &Fitted| fit.objective().map(or_least);
        let is_best = match &self.best {
            Some(best) => value(&fit)? > value(best)?,
            None => true,
        };
        if is_best {
            self.best = Some(fit);
        }
        Ok(())
    }
}

/// The number of components of wide starts, given the first fit `found`.
fn n_wide(found: &Fitted) -> usize {
    let n_occupied = found.summary.counts.iter().filter(|&&count| count >= 0.5).count();
    (WIDE.0 * n_occupied + WIDE.1).min(found.n_rows)
}
