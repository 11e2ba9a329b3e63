//! Judges edits of the list of components by exact changes of the bound, computed from summaries alone.

use crate::elbo;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::process::FreeSticks;
use crate::simd::Scalar;
use crate::special::ln_gamma;
use crate::suffstats::{Sufficient, Summary};

/// A gain below this fraction of the largest term of its formula counts as rounding.
const ROUNDING: f64 = 1e-12;

/// Count and statistics of a component or of a part.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// N.
    pub count: f64,
    /// S.
    pub statistics: Vec<f64>,
}

impl Part {
    /// The entry of a summary at position `k`.
    pub fn of(summary: &Summary, k: usize) -> Self {
        let Sufficient { count, statistics } = summary.component(k);
        Self { count: count.max(0.0), statistics: statistics.to_vec() }
    }

    /// The sum of two parts.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        let statistics = self.statistics.iter().zip(&other.statistics).map(|(a, b)| a + b).collect();
        Self { count: self.count + other.count, statistics }
    }

    /// The sufficient statistics, as the likelihood needs them.
    pub fn sufficient(&self) -> Sufficient<'_> {
        Sufficient { count: self.count, statistics: &self.statistics }
    }
}

/// Judges edits under a model.
pub struct Judge<'a, F: Scalar> {
    model: &'a Model<F>,
}

impl<'a, F: Scalar> Judge<'a, F> {
    /// Judges edits under this model.
    pub fn new(model: &'a Model<F>) -> Self {
        Self { model }
    }

    /// Contribution of a component to the bound, without weights and entropies, nats; 0 if it has no units.
    pub fn gain(&self, component: Sufficient<'_>) -> Result<f64> {
        self.model.likelihood.gain(component, self.model.objective)
    }

    /// The bound of all data, with the components in their sorted order.
    pub fn bound(&self, total: &Summary) -> Result<f64> {
        let elbo = elbo::collapsed(self.model, total)?;
        let of_share = self.model.background.as_ref().map_or(0.0, |background| background.gain_of_share(total));
        Ok(elbo.data + elbo.entropy + self.allocation(total.counts.clone(), self.count_beyond(total)) + of_share)
    }

    /// As [`Model::count_beyond`].
    pub fn count_beyond(&self, total: &Summary) -> f64 {
        self.model.count_beyond(total)
    }

    /// The part of the bound that belongs to the background, nats; 0 without one.
    pub fn of_background(&self, total: &Summary) -> f64 {
        self.model.background.as_ref().map_or(0.0, |background| background.bound(total))
    }

    /// As [`crate::process::Weights::free_sticks`].
    pub(super) fn free_sticks(&self) -> Option<FreeSticks> {
        self.model.process.free_sticks()
    }

    /// The part of the bound that belongs to the weights, L*(N), with the components sorted by decreasing counts as
    /// after the edit (mathematics 2a.1).
    pub fn allocation(&self, mut counts: Vec<f64>, tail: f64) -> f64 {
        for count in &mut counts {
            *count = count.max(0.0);
        }
        if self.model.process.is_ordered() {
            counts.sort_unstable_by(|a, b| b.total_cmp(a));
        }
        self.model.process.allocate(&counts, tail.max(0.0), self.model.objective).bound
    }
}

/// Converts a numerical failure of a trial into `None`, which counts as no gain. It occurs if float64 loses the scatter
/// of a component to cancellation, as under large weights. The numbers of the fit itself do not pass through here.
pub fn tried<T>(outcome: Result<T>) -> Result<Option<T>> {
    match outcome {
        Err(Error::Numerical { .. }) => Ok(None),
        other => other.map(Some),
    }
}

/// Log binomial coefficient of a + b over a. Approximates the gain of the weights when components with these counts are
/// merged.
pub fn choices(a: f64, b: f64) -> f64 {
    ln_gamma(1.0 + a + b) - ln_gamma(1.0 + a) - ln_gamma(1.0 + b)
}

/// Whether a gain exceeds the rounding of its terms.
pub fn is_gain(gain: f64, terms: impl IntoIterator<Item = f64>) -> bool {
    gain > ROUNDING * terms.into_iter().fold(1.0, |largest, term| term.abs().max(largest))
}
