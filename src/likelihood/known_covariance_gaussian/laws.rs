//! The distribution of a row: normal, with the known covariance plus the covariance of the mean.

use crate::error::Result;
use crate::laws::{Elliptical, Law};
use crate::likelihood::known_covariance_gaussian::{KnownCovarianceGaussian, product, transposed};
use crate::likelihood::{Estimate, Laws};
use crate::suffstats::Sufficient;

impl Laws for KnownCovarianceGaussian {
    fn law(&self, component: Sufficient<'_>, estimate: Option<Estimate>) -> Result<Law> {
        let (place, scale) = match (&self.missing, estimate) {
            (Some(model), Some(estimate)) => {
                (self.with_origin(&model.point(component, estimate)?), model.patterns.covariance().to_vec())
            }
            (Some(model), None) => {
                let posterior = model.posterior(component)?;
                let scale = model.predictive_covariance(&posterior);
                (self.with_origin(&posterior.mean), scale)
            }
            (None, Some(estimate)) => {
                (self.unmapped(&self.point(component, estimate)), self.unmapped_variances(|_| 1.0))
            }
            (None, None) => {
                let posterior = self.posterior(component);
                (self.unmapped(&posterior.mean), self.unmapped_variances(|j| 1.0 + posterior.precisions[j].recip()))
            }
        };
        Ok(Law::Joint(Elliptical::new(place, scale, f64::INFINITY)?))
    }
}

impl KnownCovarianceGaussian {
    /// `R^-1 diag(v) R^-T`.
    fn unmapped_variances(&self, variance: impl Fn(usize) -> f64) -> Vec<f64> {
        let d = self.mean.len();
        let columns = self.inverse.chunks_exact(d).enumerate();
        let scaled: Vec<f64> = columns
            .flat_map(|(j, column)| {
                let variance = variance(j);
                column.iter().map(move |value| value * variance)
            })
            .collect();
        product(d, &scaled, &transposed(d, &self.inverse))
    }
}
