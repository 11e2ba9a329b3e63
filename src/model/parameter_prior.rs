//! A Gamma prior on a parameter of a base measure, which samplers learn. Likelihoods never see it: the parameter is a
//! number for them.

use crate::error::Result;
use crate::likelihood::entry;
use crate::parameters::{Parameters, Value, vector};
use crate::process::{Concentration, Gamma};
use crate::registry::{ParameterKind, Range};
use crate::rng::Draws;

/// A parameter of a base measure, without a unit, with a Gamma prior.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ParameterPrior {
    /// The parameter.
    pub name: &'static str,
    /// Its prior.
    pub prior: Gamma,
}

/// Chains learn values between the prior mean over this and times this.
const SPAN: f64 = 1e100;

impl ParameterPrior {
    /// Separates the prior from the parameters of a likelihood, which then have its mean.
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] for a prior that is not a shape and a rate, or an unknown likelihood.
    pub fn apart(likelihood: &str, parameters: &Parameters) -> Result<(Parameters, Option<Self>)> {
        let is_array = |name: &str| matches!(parameters.0.get(name), Some(Value::Array { .. }));
        for parameter in entry(likelihood)?.parameters {
            if let (ParameterKind::NumberOrGamma(_), true) = (parameter.kind, is_array(parameter.name))
                && let Concentration::Unknown(prior) = Concentration::of(parameters, parameter)?
            {
                let apart = Self { name: parameter.name, prior };
                return Ok((apart.at(parameters, apart.start()), Some(apart)));
            }
        }
        Ok((parameters.clone(), None))
    }

    /// Parameters with a number in place of the prior.
    pub fn at(self, parameters: &Parameters, value: f64) -> Parameters {
        parameters.with([(self.name, Value::Number(value))])
    }

    /// Parameters with the prior in its place.
    pub fn put_back(self, parameters: &Parameters) -> Parameters {
        parameters.with([(self.name, vector(vec![self.prior.shape, self.prior.rate]))])
    }

    /// The value with which chains start: the prior mean.
    pub fn start(self) -> f64 {
        self.prior.mean().clamp(Range::POSITIVE.least, Range::POSITIVE.greatest)
    }

    /// A draw from the prior, within the limits of chains.
    pub fn draw(self, draws: &mut dyn Draws) -> f64 {
        let (least, greatest) = self.limits();
        (draws.log_gamma(self.prior.shape) - self.prior.rate.ln()).exp().clamp(least, greatest)
    }

    /// The least and the greatest value that chains learn.
    pub fn limits(self) -> (f64, f64) {
        let Range { least, greatest, .. } = Range::POSITIVE;
        let mean = self.start();
        ((mean / SPAN).max(least), (mean * SPAN).min(greatest))
    }
}
