//! The distribution of a row: a Student t or a normal distribution, with uncorrelated columns.

use crate::error::{Error, Result};
use crate::laws::{Elliptical, Law};
use crate::likelihood::spherical_gaussian::{Base, SphericalGaussian, SphericalPoint};
use crate::likelihood::{Estimate, Laws};
use crate::suffstats::Sufficient;

impl Laws for SphericalGaussian {
    fn law(&self, component: Sufficient<'_>, estimate: Option<Estimate>) -> Result<Law> {
        let around = |mean: &[f64], scales: &[f64], dof: f64| {
            let place = mean.iter().zip(&self.frame.origin).map(|(m, o)| m + o).collect();
            Law::Joint(Elliptical::from_scales(place, scales, dof))
        };
        if let Some(estimate) = estimate {
            let SphericalPoint { mean, precision, .. } = self.point(component, estimate);
            return Ok(around(&mean, &vec![precision.sqrt().recip(); mean.len()], f64::INFINITY));
        }
        if self.base == Base::Product {
            let found = "the predictive density of some columns for SphericalGaussian(base=\"product\")";
            let allowed = "plug_in=True, or base=\"conjugate\"";
            return Err(Error::not_supported("plug_in", found, "it has no closed form", allowed));
        }
        let posterior = self.posterior(component);
        let variance = posterior.rate / posterior.shape;
        let scale = |j: usize| (variance * (1.0 + posterior.kappa_of(j).recip())).sqrt();
        let scales: Vec<f64> = (0..posterior.mean.len()).map(scale).collect();
        Ok(around(&posterior.mean, &scales, 2.0 * posterior.shape))
    }
}
