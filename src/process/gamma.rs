//! A Gamma prior on a concentration.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::parameters::{Parameters, Value};
use crate::registry::{DefaultValue, Entry, Parameter, ParameterKind, Range};
use crate::special::{digamma, ln_gamma, ln_gamma_difference};

/// Gamma(shape, rate), with the mean shape / rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Gamma {
    /// The shape.
    pub shape: f64,
    /// The rate.
    pub rate: f64,
}

/// Range of shapes and rates of a prior. Outside it the posterior rate overflows or underflows in float64.
const PRIORS: Range = Range::closed(1e-200, 1e200);

impl Gamma {
    /// Entry in the registry.
    pub const ENTRY: Entry = Entry {
        parameters: &[
            Parameter::new("shape", ParameterKind::Number(PRIORS), DefaultValue::Required),
            Parameter::new("rate", ParameterKind::Number(PRIORS), DefaultValue::Required),
        ],
        ..Entry::new("Gamma")
    };

    /// Builds the prior from a shape and a rate.
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] naming the parameter that is out of its range.
    pub fn new(shape: f64, rate: f64) -> Result<Self> {
        let both = Parameters::from_pairs([("shape", Value::Number(shape)), ("rate", Value::Number(rate))]);
        Self::ENTRY.parameters.iter().try_for_each(|parameter| both.given(parameter).map(|_| ()))?;
        Ok(Self { shape, rate })
    }

    /// E alpha.
    pub fn mean(self) -> f64 {
        self.shape / self.rate
    }

    /// E log alpha.
    pub fn expected_log(self) -> f64 {
        digamma(self.shape) - self.rate.ln()
    }

    /// The log density, nats.
    pub fn log_density(self, x: f64) -> f64 {
        self.shape * self.rate.ln() + (self.shape - 1.0) * x.ln() - self.rate * x - ln_gamma(self.shape)
    }

    /// KL(self || prior), nats.
    pub fn divergence_from(self, prior: Self) -> f64 {
        let grown = self.shape - prior.shape;
        grown * digamma(self.shape) - ln_gamma_difference(prior.shape, grown)
            + prior.shape * (self.rate / prior.rate).ln()
            + self.shape * (prior.rate - self.rate) / self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares KL(Gamma || Gamma) with a sum over a fine grid.
    #[test]
    fn the_divergence_is_the_integral() {
        let (q, p) = (Gamma { shape: 3.5, rate: 2.0 }, Gamma { shape: 1.2, rate: 0.7 });
        let log_density = |g: Gamma, x: f64| {
            g.shape * g.rate.ln() - crate::special::ln_gamma(g.shape) + (g.shape - 1.0) * x.ln() - g.rate * x
        };
        let step = 1e-4;
        let sum: f64 = (1..300_000)
            .map(|i| f64::from(i) * step)
            .map(|x| log_density(q, x).exp() * (log_density(q, x) - log_density(p, x)))
            .sum();
        assert!((q.divergence_from(p) - sum * step).abs() < 1e-7);
    }
}
