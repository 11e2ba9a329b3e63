//! The distribution of a row: independent Student t columns, or normal ones.

use crate::error::Result;
use crate::laws::{ColumnLaw, Law};
use crate::likelihood::diagonal_gaussian::{ColumnPoint, DiagonalGaussian, NormalGamma};
use crate::likelihood::{Estimate, Laws};
use crate::suffstats::Sufficient;

impl Laws for DiagonalGaussian {
    fn law(&self, component: Sufficient<'_>, estimate: Option<Estimate>) -> Result<Law> {
        let origins = &self.frame.origin;
        let at_point = |(point, origin): (ColumnPoint, &f64)| ColumnLaw::Student {
            place: origin + point.mean,
            scale: point.precision.sqrt().recip(),
            dof: f64::INFINITY,
        };
        let predictive = |(posterior, origin): (NormalGamma, &f64)| ColumnLaw::Student {
            place: origin + posterior.mean,
            scale: (posterior.rate * (posterior.kappa + 1.0) / (posterior.kappa * posterior.shape)).sqrt(),
            dof: 2.0 * posterior.shape,
        };
        Ok(Law::Columns(match estimate {
            Some(estimate) => self.points(component, estimate).into_iter().zip(origins).map(at_point).collect(),
            None => self.posterior(component).into_iter().zip(origins).map(predictive).collect(),
        }))
    }
}
