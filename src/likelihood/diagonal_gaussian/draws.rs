//! Draws of rows, and of means and variances.

use std::f64::consts::PI;

use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

use crate::error::Result;
use crate::likelihood::diagonal_gaussian::{ColumnPoint, DiagonalGaussian, NormalGamma};
use crate::likelihood::{
    ComponentStreams, Draw, ParameterDraws, ParameterSource, RowDraws, RowSource, gamma, normal_columns, row_by_row,
};
use crate::parallel::try_map;
use crate::rng::Generator;
use crate::scoring::{Column, ColumnScorer, ColumnTerms, Curve, Scorer};
use crate::suffstats::Sufficient;

impl RowDraws for DiagonalGaussian {
    fn source(&self, component: Sufficient<'_>, from: Draw<'_>) -> Result<RowSource<'_>> {
        if let Some(estimate) = from.estimate {
            let points = self.points(component, estimate).into_iter().zip(&self.frame.origin);
            let column = |(point, origin): (ColumnPoint, &f64)| (origin + point.mean, point.precision.sqrt().recip());
            return Ok(normal_columns(points.map(column).collect()));
        }
        let posterior = self.posterior(component).into_iter().zip(&self.frame.origin);
        let column = |(posterior, origin): (NormalGamma, &f64)| {
            Ok((
                origin + posterior.mean,
                1.0 + posterior.kappa.recip(),
                gamma::distribution(posterior.shape, posterior.rate)?,
            ))
        };
        let columns: Vec<_> = posterior.map(column).collect::<Result<_>>()?;
        Ok(row_by_row(columns.len(), move |row, generator| {
            for (to, (centre, spread, precision)) in row.iter_mut().zip(&columns) {
                let precision = precision.sample(generator);
                *to = centre + generator.sample::<f64, _>(StandardNormal) * (spread / precision).sqrt();
            }
        }))
    }
}

impl DiagonalGaussian {
    /// A drawn mean, relative to the origin, and precision of each column.
    pub(in crate::likelihood) fn drawn(
        &self,
        component: Sufficient<'_>,
        generator: &mut Generator,
    ) -> Result<Vec<(f64, f64)>> {
        let column = |posterior: NormalGamma| {
            let precision = gamma::distribution(posterior.shape, posterior.rate)?.sample(generator);
            let normal: f64 = generator.sample(StandardNormal);
            Ok((posterior.mean + normal / (posterior.kappa * precision).sqrt(), precision))
        };
        self.posterior(component).into_iter().map(column).collect()
    }
}

/// Variances are inverse gamma, and means normal given them.
impl ParameterDraws for DiagonalGaussian {
    fn parameter_source(&self, component: Sufficient<'_>) -> Result<ParameterSource<'_>> {
        let posterior = self.posterior(component).into_iter().zip(&self.frame.origin);
        let column = |(posterior, origin): (NormalGamma, &f64)| {
            Ok((
                origin + posterior.mean,
                posterior.kappa.recip(),
                gamma::distribution(posterior.shape, posterior.rate)?,
            ))
        };
        let columns: Vec<_> = posterior.map(column).collect::<Result<_>>()?;
        let d = columns.len();
        let rows = row_by_row(2 * d, move |row, generator| {
            let (means, variances) = row.split_at_mut(d);
            for ((mean, variance), (centre, spread, precision)) in means.iter_mut().zip(variances).zip(&columns) {
                *variance = precision.sample(generator).recip();
                *mean = centre + generator.sample::<f64, _>(StandardNormal) * (spread * *variance).sqrt();
            }
        });
        Ok(ParameterSource { shapes: vec![("mean".to_owned(), vec![d]), ("variance".to_owned(), vec![d])], rows })
    }

    fn drawn_scorer(
        &self,
        components: &[Sufficient<'_>],
        log_weights: &[f64],
        draws: ComponentStreams<'_>,
    ) -> Result<Box<dyn Scorer<f64>>> {
        let packed = try_map(components.len(), |k| {
            let drawn = self.drawn(components[k], &mut draws.of(k)?).map_err(|error| error.of_component(k))?;
            let column =
                |(mean, precision): (f64, f64)| Column::square(precision, mean, 0.5 * (precision / (2.0 * PI)).ln());
            Ok(ColumnTerms { constant: log_weights[k], columns: drawn.into_iter().map(column).collect() })
        })?;
        Ok(Box::new(ColumnScorer::new(Curve::Square, packed, self.frame.missing)))
    }
}
