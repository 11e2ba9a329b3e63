//! The state of a fit from several starts.

use crate::error::{Error, Result};
use crate::fitted::{Fitted, RunnerUp, StopReason};

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

/// The adjusted Rand index of the labels of two fits; `None` if it cannot be told.
pub(crate) type Agree<'a> = dyn Fn(&Fitted, &Fitted) -> Option<f64> + 'a;

impl Standing {
    /// Keeps the best fit of a round and the numbers of the second best. Returns it if the round ended all starts.
    ///
    /// # Errors
    /// The error of the round, unless it is a stop and there is a fit to return.
    pub(crate) fn take(&mut self, ended: Result<Ended>, agree: &Agree<'_>) -> Result<Option<Fitted>> {
        let (stop, error) = match ended {
            Ok(Ended { fits, stop, error }) => {
                if let (None, Some(first)) = (self.n_wide, fits.first()) {
                    self.n_wide = Some(n_wide(first));
                }
                for fit in fits {
                    self.keep(fit, agree)?;
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
    fn keep(&mut self, mut fit: Fitted, agree: &Agree<'_>) -> Result<()> {
        let or_least = |value: f64| if value.is_nan() { f64::NEG_INFINITY } else { value };
        let value = |fit: &Fitted| fit.objective().map(or_least);
        let objective = value(&fit)?;
        let Some(best) = &mut self.best else {
            self.best = Some(fit);
            return Ok(());
        };
        let highest = value(best)?;
        let runner_up =
            |one: &Fitted, objective: f64, other: &Fitted| agree(one, other).map(|ari| RunnerUp { objective, ari });
        if objective > highest {
            fit.runner_up = runner_up(&fit, highest, best);
            *best = fit;
        } else if best.runner_up.is_none_or(|second| objective > second.objective) {
            best.runner_up = runner_up(best, objective, &fit);
        }
        Ok(())
    }
}

/// The number of components of wide starts, given the first fit `found`.
fn n_wide(found: &Fitted) -> usize {
    let n_occupied = found.summary.counts.iter().filter(|&&count| count >= 0.5).count();
    (WIDE.0 * n_occupied + WIDE.1).min(found.n_rows)
}
