//! The exact evidence lower bound of all data, from summaries alone (mathematics 0, collapsed form).

use crate::error::{Error, Result};
use crate::model::Model;
use crate::parallel::{over_components, try_map};
use crate::simd::Scalar;
use crate::suffstats::Summary;

/// The named terms of the bound, nats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Elbo {
    /// sum_k c(lambda_0 + S_k) - c(lambda_0), plus E_p log p of the part of the units in a tail, plus sum_n log h(x_n).
    /// In the data's units.
    pub data: f64,
    /// L*(N) of the process.
    pub allocation: f64,
    /// sum_k H_k, including the tail's.
    pub entropy: f64,
}

impl Elbo {
    /// The bound.
    pub fn total(&self) -> f64 {
        self.data + self.allocation + self.entropy
    }
}

/// E log p of the part of the units behind all components, under the base measure or in the background, without their
/// own base measure, nats; 0 without a tail.
///
/// # Errors
/// As [`crate::likelihood::Conjugate::expected_at_prior`].
pub fn of_tail<F: Scalar>(model: &Model<F>, summary: &Summary) -> Result<f64> {
    let Some(tail) = &summary.tail else { return Ok(0.0) };
    if model.background.is_some() {
        return Ok(tail.statistics[0]);
    }
    model.likelihood.expected_at_prior(tail.sufficient())
}

/// The part of the units' base measures that depends on parameters, nats.
pub fn variable_base<F: Scalar>(model: &Model<F>, summary: &Summary) -> f64 {
    model.likelihood.log_variable_base(summary.counts.iter().sum::<f64>() + summary.tail_count())
}

/// Computes the bound with all global factors at their optimum given the summary.
///
/// # Errors
/// [`Error::Numerical`] naming the component without a Cholesky factor, or if the bound is not finite.
pub fn collapsed<F: Scalar>(model: &Model<F>, summary: &Summary) -> Result<Elbo> {
    let k = summary.n_components();
    let gain = |k| model.likelihood.gain(summary.component(k), model.objective).map_err(|error| error.of_component(k));
    let gains = over_components(k, summary.n_statistics, || try_map(k, gain))?;
    let elbo = Elbo {
        data: gains.iter().sum::<f64>()
            + of_tail(model, summary)?
            + summary.log_base_measure
            + variable_base(model, summary)
            - summary.mass * model.log_volume
            + model.log_jacobian * summary.n_components() as f64,
        allocation: model.allocate(summary).bound,
        entropy: summary.entropies.iter().sum::<f64>() + summary.tail.as_ref().map_or(0.0, |tail| tail.entropy),
    };
    if elbo.total().is_finite() {
        return Ok(elbo);
    }
    let worst = gains.iter().position(|gain| !gain.is_finite());
    Err(Error::numerical(worst, format!("the evidence lower bound is {}; rescale the data", elbo.total())))
}
