//! Point estimates, and draws of rows and parameters.

use std::f64::consts::PI;

use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

use crate::error::{Error, Result};
use crate::likelihood::gamma;
use crate::likelihood::spherical_gaussian::{Base, SphericalGaussian, SphericalPoint};
use crate::likelihood::{
    AtPoint, ComponentStreams, Draw, Estimate, ParameterDraws, ParameterSource, PointEstimates, RowDraws, RowSource,
    row_by_row,
};
use crate::parallel::try_map;
use crate::parameters::{Parameters, Value, table, vector};
use crate::rng::Generator;
use crate::scoring::{Column, ColumnScorer, ColumnTerms, Curve, Scorer};
use crate::suffstats::Sufficient;

impl PointEstimates for SphericalGaussian {
    fn at_point(&self, component: Sufficient<'_>, estimate: Estimate) -> Result<AtPoint> {
        let (centred, SphericalPoint { mean, precision, blur }) =
            (self.centred(component), self.point(component, estimate));
        let (d, prior) = (self.d(), &self.prior);
        let average = |s: &f64| if centred.n < 1e-12 { 0.0 } else { s / centred.n };
        let (values, beyond) = if self.frame.missing {
            let values: f64 = centred.counts.iter().sum();
            (values, centred.squares_about(&mean) + values * blur)
        } else {
            let distance: f64 = centred.sums.iter().zip(&mean).map(|(s, m)| (average(s) - m).powi(2)).sum();
            (centred.n * d, centred.n * (distance + d * blur))
        };
        let scatter = centred.scatter + beyond;
        let kappa = if self.base == Base::Conjugate { prior.kappa * precision } else { prior.kappa };
        let from_prior: f64 = mean.iter().zip(&prior.mean).map(|(a, b)| (a - b).powi(2)).sum();
        Ok(AtPoint {
            log_likelihood: 0.5 * (values * precision.ln() - precision * scatter),
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
    fn source(&self, component: Sufficient<'_>, from: Draw<'_>) -> Result<RowSource<'_>> {
        if let Some(estimate) = from.estimate {
            let SphericalPoint { mean, precision, .. } = self.point(component, estimate);
            let deviation = precision.sqrt().recip();
            return Ok(self.rows_around(&mean, move |_| deviation));
        }
        let posterior = self.posterior(component);
        if self.frame.missing {
            return self.source_of(&posterior);
        }
        let (precision, of_mean) = (gamma::distribution(posterior.shape, posterior.rate)?, posterior.kappa.recip());
        let base = self.base;
        let deviation = move |generator: &mut Generator| {
            let precision = precision.sample(generator);
            let variance = match base {
                Base::Conjugate => (1.0 + of_mean) / precision,
                Base::Product => precision.recip() + of_mean,
            };
            variance.sqrt()
        };
        Ok(self.rows_around(&posterior.mean, deviation))
    }
}

/// The variance is inverse gamma. Means are normal, given the variance under the conjugate base measure.
impl ParameterDraws for SphericalGaussian {
    fn parameter_source(&self, component: Sufficient<'_>) -> Result<ParameterSource<'_>> {
        let posterior = self.posterior(component);
        let (precision, base) = (gamma::distribution(posterior.shape, posterior.rate)?, self.base);
        let column = |(j, origin)| (posterior.mean[j] + origin, posterior.kappa_of(j).recip());
        let columns: Vec<(f64, f64)> = self.frame.origin.iter().enumerate().map(column).collect();
        let d = columns.len();
        let rows = row_by_row(d + 1, move |row, generator| {
            let variance = precision.sample(generator).recip();
            let times = if base == Base::Conjugate { variance } else { 1.0 };
            for (mean, (centre, spread)) in row.iter_mut().zip(&columns) {
                *mean = centre + generator.sample::<f64, _>(StandardNormal) * (spread * times).sqrt();
            }
            row[d] = variance;
        });
        Ok(ParameterSource { shapes: vec![("mean".to_owned(), vec![d]), ("variance".to_owned(), Vec::new())], rows })
    }

    fn drawn_scorer(
        &self,
        components: &[Sufficient<'_>],
        log_weights: &[f64],
        draws: ComponentStreams<'_>,
    ) -> Result<Box<dyn Scorer<f64>>> {
        let packed = try_map(components.len(), |k| {
            let (posterior, mut generator) = (self.posterior(components[k]), draws.of(k)?);
            let law = gamma::distribution(posterior.shape, posterior.rate).map_err(|error| error.of_component(k))?;
            let precision = law.sample(&mut generator);
            let times = if self.base == Base::Conjugate { precision } else { 1.0 };
            let column = |(j, m): (usize, &f64)| {
                let normal: f64 = generator.sample(StandardNormal);
                let mean = m + normal / (posterior.kappa_of(j) * times).sqrt();
                Column::square(precision, mean, 0.5 * (precision / (2.0 * PI)).ln())
            };
            let columns = posterior.mean.iter().enumerate().map(column).collect();
            Ok(ColumnTerms { constant: log_weights[k], columns })
        })?;
        Ok(Box::new(ColumnScorer::new(Curve::Square, packed, self.frame.missing)))
    }
}

impl SphericalGaussian {
    /// Draws rows about a mean, each with its own standard deviation.
    fn rows_around(
        &self,
        mean: &[f64],
        deviation: impl Fn(&mut Generator) -> f64 + Send + Sync + 'static,
    ) -> RowSource<'static> {
        let centre: Vec<f64> = mean.iter().zip(&self.frame.origin).map(|(m, o)| o + m).collect();
        row_by_row(centre.len(), move |row, generator| {
            let deviation = deviation(generator);
            for (to, centre) in row.iter_mut().zip(&centre) {
                *to = centre + deviation * generator.sample::<f64, _>(StandardNormal);
            }
        })
    }
}
