//! Scores of rows, which a likelihood needs for a fit.

use crate::data::RowBlock;
use crate::error::Result;
use crate::objective::Objective;
use crate::scoring::{Scorer, SparseScorer};
use crate::simd::Scalar;
use crate::suffstats::Sufficient;

/// Kind of point estimate of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Estimate {
    /// Posterior means; for a variance, from the posterior mean of the precision.
    Mean,
    /// The joint mode of the posterior in the mean and the precision (mathematics 1.8).
    Mode,
    /// Maximum likelihood.
    MaximumLikelihood,
}

/// How a posterior is turned into the log weights of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Density {
    /// The density that the local step of an objective uses: E_q log p(x | phi_k), or the log density at a point
    /// estimate.
    Expected(Objective),
    /// log p(x | phi) at point estimates.
    PlugIn(Estimate),
    /// log p(x | lambda_k): the posterior predictive.
    Predictive,
    /// Negative divergence of the row's smoothed statistics from the component's (mathematics 5.2): a Bregman
    /// divergence where the family allows it.
    Divergence,
}

/// Scores of rows for the local step, and the terms that the bound needs besides them.
pub trait Scores<F: Scalar> {
    /// Packs components, each with a log weight to add, into the form that the scoring kernels read.
    ///
    /// # Errors
    /// [`crate::Error::Numerical`] naming the component that has no Cholesky factor.
    fn scorer(
        &self,
        components: &[Sufficient<'_>],
        log_weights: &[f64],
        density: Density,
    ) -> Result<Box<dyn Scorer<F>>>;

    /// Packs components for sparse rows only, if that is cheaper than [`Scores::scorer`]. `earlier` holds the previous
    /// pack and, by component, the columns whose statistics have changed since. The result is bitwise equal to a new
    /// pack.
    fn sparse_scorer(
        &self,
        _components: &[Sufficient<'_>],
        _log_weights: &[f64],
        _objective: Objective,
        _earlier: Option<(SparseScorer<F>, &[Vec<u32>])>,
    ) -> Option<SparseScorer<F>> {
        None
    }

    /// KL(q(phi_k) || p(phi_k)), nats.
    fn divergence_from_prior(&self, component: Sufficient<'_>) -> Result<f64>;

    /// Writes `log h(x)` of every row x to `out`, (n,), nats.
    fn log_base_measures(&self, rows: RowBlock<'_, F>, out: &mut [f64]);

    /// Writes the part of the same that depends on no parameter. The other part of all rows is
    /// [`Conjugate::log_variable_base`](crate::likelihood::Conjugate::log_variable_base).
    fn log_fixed_bases(&self, rows: RowBlock<'_, F>, out: &mut [f64]) {
        self.log_base_measures(rows, out);
    }
}
