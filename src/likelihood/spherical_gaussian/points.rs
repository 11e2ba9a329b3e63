//! Point estimates, and rows drawn.

use std::f64::consts::PI;

use rand::RngExt;
use rand_distr::StandardNormal;

use crate::error::{Error, Result};
use crate::likelihood::gamma;
use crate::likelihood::spherical_gaussian::{Base, SphericalGaussian, SphericalPoint};
use crate::likelihood::{AtPoint, Draw, Estimate, PointEstimates, RowDraws};
use crate::parameters::{Parameters, Value, table, vector};
use crate::rng::Generator;
use crate::suffstats::Sufficient;

impl PointEstimates for SphericalGaussian {
    fn at_point(&self, component: Sufficient<'_>, estimate: Estimate) -> Result<AtPoint> {
        let (own, SphericalPoint { mean, precision, blur }) =
            (self.centred(component), self.point(component, estimate));
        let (d, prior) = (self.d(), &self.prior);
        let average = |s: &f64| if own.n < 1e-12 { 0.0 } else { s / own.n };
        let distance: f64 = own.sums.iter().zip(&mean).map(|(s, m)| (average(s) - m).powi(2)).sum();
        let scatter = own.scatter + own.n * (distance + d * blur);
        let kappa = if self.base == Base::Conjugate { prior.kappa * precision } else { prior.kappa };
        let from_prior: f64 = mean.iter().zip(&prior.mean).map(|(a, b)| (a - b).powi(2)).sum();
        Ok(AtPoint {
            log_likelihood: 0.5 * (own.n * d * precision.ln() - precision * scatter),
            log_prior: gamma::log_density(precision, prior.shape, prior.rate)
                + 0.5 * (d * (kappa / (2.0 * PI)).ln() - kappa * from_prior),
        })
    }

    fn check_mode(&self) -> Result<()> {
        let least = match self.base {
            Base::Conjugate => (1.0 - 0.5 * self.d()).max(0.0),
            Base::Product => 1.0,
        };
        if self.prior.shape > least {
            return Ok(());
        }
        let allowed = format!("greater than {least} where the objective is \"map\"");
        Err(Error::invalid("shape", Value::Number(self.prior.shape), allowed))
    }

    fn point_estimates(&self, components: &[Sufficient<'_>], estimate: Estimate) -> Result<Parameters> {
        let points: Vec<SphericalPoint> = components.iter().map(|component| self.point(*component, estimate)).collect();
        let means = points.iter().flat_map(|point| point.mean.iter().zip(&self.frame.origin).map(|(m, o)| m + o));
        let variances = points.iter().map(|point| point.precision.recip()).collect();
        Ok(Parameters::from_pairs([
            ("mean", table(self.prior.mean.len(), means.collect())),
            ("variance", vector(variances)),
        ]))
    }
}

impl RowDraws for SphericalGaussian {
    fn draw(&self, component: Sufficient<'_>, from: Draw<'_>, generator: &mut Generator) -> Result<Vec<f64>> {
        let of_point = from.estimate.map(|estimate| self.point(component, estimate));
        let (mean, variance) = if let Some(SphericalPoint { mean, precision, .. }) = of_point {
            (mean, precision.recip())
        } else {
            let own = self.posterior(component);
            let precision = gamma::draw(own.shape, own.rate, generator)?;
            let variance = match self.base {
                Base::Conjugate => (1.0 + own.kappa.recip()) / precision,
                Base::Product => precision.recip() + own.kappa.recip(),
            };
            (own.mean, variance)
        };
        let means = mean.iter().zip(&self.frame.origin);
        Ok(means.map(|(m, o)| o + m + variance.sqrt() * generator.sample::<f64, _>(StandardNormal)).collect())
    }
}
