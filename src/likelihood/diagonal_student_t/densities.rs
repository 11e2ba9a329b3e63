//! Distributions of new rows, and draws of rows and of parameters (mathematics 1k).

use std::f64::consts::PI;

use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

use crate::error::Result;
use crate::laws::{ColumnLaw, Elliptical, Law, ScaledLaw};
use crate::likelihood::diagonal_gaussian::{ColumnPoint, NormalGamma};
use crate::likelihood::diagonal_student_t::DiagonalStudentT;
use crate::likelihood::diagonal_student_t::scales::ScaledColumns;
use crate::likelihood::imputation::{moments_given, source_given};
use crate::likelihood::{
    ComponentStreams, Conjugate, Draw, Estimate, Imputation, Laws, ParameterDraws, ParameterSource, RowDraws,
    RowSource, gamma, row_by_row,
};
use crate::parallel::{map, try_map};
use crate::scoring::{Column, Row, RowScorer, Scorer};
use crate::simd::Scalar;
use crate::special::{ln_1p_of_positive, ln_gamma_difference, log_sum_exp};
use crate::suffstats::Sufficient;

/// The predictive density of a component: a sum over scales of products of Student t densities.
struct ScaledPredictive {
    /// Log weights of the scales, nats.
    weights: Vec<f64>,
    columns: Vec<PredictiveColumn>,
}

/// One column: for each scale a constant and the factor of its squares.
struct PredictiveColumn {
    mean: f64,
    /// Half the exponent of the density.
    half: f64,
    terms: Vec<(f64, f64)>,
}

impl ScaledPredictive {
    fn log_density(&self, row: Row<'_>, space: &mut Vec<f64>) -> f64 {
        let Row::Dense(values) = row else { return f64::NAN };
        space.clone_from(&self.weights);
        for (x, column) in values.iter().zip(&self.columns).filter(|(x, _)| !x.is_nan()) {
            let square = (x - column.mean).powi(2);
            for (sum, (constant, factor)) in space.iter_mut().zip(&column.terms) {
                *sum += constant - column.half * ln_1p_of_positive(factor * square);
            }
        }
        log_sum_exp(space)
    }
}

impl DiagonalStudentT {
    fn predictive(&self, component: Sufficient<'_>) -> ScaledPredictive {
        let nodes = self.tail.nodes();
        let column = |posterior: NormalGamma| {
            let NormalGamma { kappa, mean, shape, rate, .. } = posterior;
            let constant = ln_gamma_difference(shape, 0.5);
            let term = |&(u, _): &(f64, f64)| {
                let factor = (2.0 * rate * (u.recip() + kappa.recip())).recip();
                (constant + 0.5 * (factor / PI).ln(), factor)
            };
            PredictiveColumn { mean, half: shape + 0.5, terms: nodes.iter().map(term).collect() }
        };
        let columns = self.normal.posterior(component).into_iter().map(column).collect();
        ScaledPredictive { weights: nodes.iter().map(|(_, weight)| *weight).collect(), columns }
    }

    /// Packs predictive densities.
    pub(super) fn predictive_scorer<F: Scalar>(
        &self,
        components: &[Sufficient<'_>],
        log_weights: &[f64],
    ) -> Box<dyn Scorer<F>> {
        let (k, log_weights) = (components.len(), log_weights.to_vec());
        let all = map(k, |k| self.predictive(components[k]));
        Box::new(RowScorer::of_rows(self.d(), k, move |range, row, out| {
            let mut space = Vec::new();
            range.zip(out).for_each(|(k, out)| *out = log_weights[k] + all[k].log_density(row, &mut space));
        }))
    }
}

impl Laws for DiagonalStudentT {
    fn law(&self, component: Sufficient<'_>, estimate: Option<Estimate>) -> Result<Law> {
        let origin = self.origin();
        if let Some(estimate) = estimate {
            let points = self.normal.points(component, estimate);
            let place = points.iter().zip(origin).map(|(point, origin)| point.mean + origin).collect();
            let scales: Vec<f64> = points.iter().map(|point| point.precision.sqrt().recip()).collect();
            return Ok(Law::Joint(Elliptical::from_scales(place, &scales, self.tail.dof)));
        }
        let posterior = self.normal.posterior(component);
        let part = |(u, weight): (f64, f64)| {
            let column = |(posterior, origin): (&NormalGamma, &f64)| ColumnLaw::Student {
                place: posterior.mean + origin,
                scale: ((u.recip() + posterior.kappa.recip()) / posterior.precision()).sqrt(),
                dof: 2.0 * posterior.shape,
            };
            (weight.exp(), Law::Columns(posterior.iter().zip(origin).map(column).collect()))
        };
        Ok(Law::Scaled(ScaledLaw::new(self.tail.nodes().into_iter().map(part).collect(), self.tail.dof)))
    }
}

/// The values that a row has inform about its scale, and so about the values that it lacks.
impl Imputation for DiagonalStudentT {
    fn predictive_moments(&self, component: Sufficient<'_>) -> Result<(Vec<f64>, Vec<f64>)> {
        let law = self.law(component, None)?;
        Ok((law.mean(), law.covariance().into_iter().step_by(self.d() + 1).collect()))
    }

    fn moments_given(&self, component: Sufficient<'_>, row: &[f64]) -> Result<Option<(Vec<f64>, Vec<f64>)>> {
        moments_given(self, self.origin(), component, row)
    }

    fn source_given(&self, component: Sufficient<'_>, row: &[f64]) -> Result<Option<RowSource<'_>>> {
        source_given(self, self.origin(), component, row)
    }
}

impl RowDraws for DiagonalStudentT {
    fn source(&self, component: Sufficient<'_>, from: Draw<'_>) -> Result<RowSource<'_>> {
        let (origin, half) = (self.origin(), 0.5 * self.tail.dof);
        let scales = gamma::distribution(half, half)?;
        if let Some(estimate) = from.estimate {
            let points = self.normal.points(component, estimate).into_iter().zip(origin);
            let column = |(point, origin): (ColumnPoint, &f64)| (point.mean + origin, point.precision);
            let columns: Vec<(f64, f64)> = points.map(column).collect();
            return Ok(row_by_row(columns.len(), move |row, generator| {
                let u = scales.sample(generator);
                for (to, (mean, precision)) in row.iter_mut().zip(&columns) {
                    *to = mean + generator.sample::<f64, _>(StandardNormal) / (u * precision).sqrt();
                }
            }));
        }
        let column = |(posterior, origin): (NormalGamma, &f64)| {
            let precisions = gamma::distribution(posterior.shape, posterior.rate)?;
            Ok((posterior.mean + origin, posterior.kappa.recip(), precisions))
        };
        let posterior = self.normal.posterior(component).into_iter().zip(origin);
        let columns = posterior.map(column).collect::<Result<Vec<_>>>()?;
        Ok(row_by_row(columns.len(), move |row, generator| {
            let spread = scales.sample(generator).recip();
            for (to, (mean, of_mean, precisions)) in row.iter_mut().zip(&columns) {
                let normal: f64 = generator.sample(StandardNormal);
                *to = mean + normal * ((spread + of_mean) / precisions.sample(generator)).sqrt();
            }
        }))
    }
}

impl ParameterDraws for DiagonalStudentT {
    fn parameter_source(&self, component: Sufficient<'_>) -> Result<ParameterSource<'_>> {
        self.normal.parameter_source(component)
    }

    fn drawn_scorer(
        &self,
        components: &[Sufficient<'_>],
        log_weights: &[f64],
        draws: ComponentStreams<'_>,
    ) -> Result<Box<dyn Scorer<f64>>> {
        let packed = try_map(components.len(), |k| {
            let drawn = self.normal.drawn(components[k], &mut draws.of(k)?);
            let drawn = drawn.map_err(|error| error.of_component(k))?.into_iter();
            let columns =
                drawn.map(|(mean, precision)| Column::square(precision, mean, 0.5 * precision.ln())).collect();
            Ok(ScaledColumns { columns, spreads: vec![0.0; self.d()] })
        })?;
        Ok(Box::new(self.packed(packed, log_weights, |scales| Some(scales.drawn(draws.key)))))
    }
}
