//! Judges edits of the list of components: exact changes of the bound, from summaries alone.

use crate::elbo;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::simd::Scalar;
use crate::special::ln_gamma;
use crate::suffstats::{Sufficient, Summary};

/// Relative to the largest term of its formula, a gain below this is rounding.
const ROUNDING: f64 = 1e-12;

/// Count and statistics of a component or of a part of one.
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

    /// The sum of both.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        let statistics = self.statistics.iter().zip(&other.statistics).map(|(a, b)| a + b).collect();
        Self { count: self.count + other.count, statistics }
    }

    /// As the likelihood takes it.
    pub fn sufficient(&self) -> Sufficient<'_> {
        Sufficient { count: self.count, statistics: &self.statistics }
    }
}

/// Judges edits under a model.
pub struct Judge<'a, F: Scalar> {
    model: &'a Model<F>,
}

impl<'a, F: Scalar> Judge<'a, F> {
    /// For this model.
    pub fn new(model: &'a Model<F>) -> Self {
        Self { model }
    }

    /// Contribution of a component to the bound, without weights and entropies, nats; 0 if it has no units.
    pub fn gain(&self, component: Sufficient<'_>) -> Result<f64> {
        self.model.likelihood.gain(component, self.model.objective)
    }

    /// The bound of all data, with the components in the order that they are put into.
    pub fn bound(&self, total: &Summary) -> Result<f64> {
        let elbo = elbo::collapsed(self.model, total)?;
        let tail = total.tail.map_or(0.0, |tail| tail.count);
        Ok(elbo.data + elbo.entropy + self.allocation(total.counts.clone(), tail))
    }

    /// The part of the bound that belongs to the weights, L*(N), with the components in the order that they are put
    /// into after the edit: that of falling counts (mathematics 2a.1).
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

/// What a trial came to; `None` where float64 loses the scatter of one of its components beside the squares that it is
/// the difference of, as under large weights. That is no gain. The numbers of the fit itself do not come this way.
pub fn tried<T>(outcome: Result<T>) -> Result<Option<T>> {
    match outcome {
        Err(Error::Numerical { .. }) => Ok(None),
        other => other.map(Some),
    }
}

/// How many more ways there are to choose the units of one component than of two, as a logarithm: nearly what the
/// weights gain when components with these counts become one.
pub fn choices(a: f64, b: f64) -> f64 {
    ln_gamma(1.0 + a + b) - ln_gamma(1.0 + a) - ln_gamma(1.0 + b)
}

/// Whether a gain is more than the rounding of the terms that it is made of.
pub fn is_gain(gain: f64, terms: impl IntoIterator<Item = f64>) -> bool {
    gain > ROUNDING * terms.into_iter().fold(1.0, |largest, term| term.abs().max(largest))
}
