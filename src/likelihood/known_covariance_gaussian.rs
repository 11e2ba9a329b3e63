//! A known covariance and an unknown mean (mathematics 1d; the first experiment of Blei & Jordan 2006).
//!
//! Rows are mapped to `y = R x` with `R^T R` the precision and, at the same time, `R^T diag(p) R` the prior precision
//! of the mean. In mapped coordinates the columns are independent, with variance 1 and prior precision `p_j`. Rows with
//! missing values are not mapped, because the map would mix present and missing columns (mathematics 1.7).

mod laws;
mod missing;
mod patterns;

use std::f64::consts::PI;
use std::sync::Arc;

use rand::RngExt;
use rand_distr::StandardNormal;

use crate::data::{Domain, Moments, Needs, RowBlock};
use crate::error::{Error, Result};
use crate::likelihood::known_covariance_gaussian::missing::WithMissing;
use crate::likelihood::mean_evidence::{MeanTerm, mean_divergence, mean_precision};
use crate::likelihood::wishart::check_positive_definite;
use crate::likelihood::{
    AtPoint, Caution, ComponentStreams, Conjugate, Density, Draw, Estimate, Evidence, Frame, FromParameters, Given,
    ParameterDraws, ParameterSource, PointEstimates, RowDraws, RowSource, Scores, Urn, capabilities, row_by_row,
};
use crate::linalg::{cholesky, invert_lower, log_determinant_from_cholesky, packed_len, symmetric_eigen};
use crate::objective::Objective;
use crate::parallel::{map, try_map};
use crate::parameters::{Parameters, Value, table, vector};
use crate::registry::{DefaultValue, Entry, Feature, PRIOR, Parameter, ParameterKind, Range, Support};
use crate::scoring::{Column, ColumnScorer, ColumnTerms, Curve, Scorer};
use crate::simd::{Lines, Scalar};
use crate::suffstats::Sufficient;

/// x | mu ~ N(mu, covariance); mu ~ N(mean, covariance / `mean_precision`), or N(mean, `mean_precision`^-1) if that is
/// a matrix. Statistics: sum x; with missing values sum A x and the lower triangle of sum A, column by column, where A
/// is the known precision of the columns present in a row.
#[derive(Debug)]
pub struct KnownCovarianceGaussian {
    frame: Frame,
    /// Whether the prior precision is a multiple of the known one.
    scaled: bool,
    /// R, (D, D), column-major.
    map: Vec<f64>,
    /// R^-1.
    inverse: Vec<f64>,
    /// ln |precision|.
    log_determinant: f64,
    /// p, (D,).
    precisions: Vec<f64>,
    /// R (mean - origin), (D,).
    mean: Vec<f64>,
    /// The model of rows with missing values; `None` if no values may be missing.
    missing: Option<Arc<WithMissing>>,
}

/// Posterior of a component's mean in mapped columns: precisions and means.
struct MeanPosterior {
    precisions: Vec<f64>,
    mean: Vec<f64>,
}

/// `matrix * vector`, the matrix column-major.
fn times(matrix: &[f64], vector: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; vector.len()];
    for (column, x) in matrix.chunks_exact(vector.len()).zip(vector) {
        out.iter_mut().zip(column).for_each(|(out, value)| *out += value * x);
    }
    out
}

/// `a * b` of two column-major (D, D) matrices.
fn product(d: usize, a: &[f64], b: &[f64]) -> Vec<f64> {
    b.chunks_exact(d).flat_map(|column| times(a, column)).collect()
}

/// `R^T diag(precisions) R`.
fn general_precision(d: usize, map: &[f64], precisions: &[f64]) -> Vec<f64> {
    let mut scaled = map.to_vec();
    for column in scaled.chunks_exact_mut(d) {
        column.iter_mut().zip(precisions).for_each(|(value, p)| *value *= p);
    }
    product(d, &transposed(d, map), &scaled)
}

/// The transpose of a (D, D) matrix.
fn transposed(d: usize, a: &[f64]) -> Vec<f64> {
    (0..d * d).map(|index| a[index % d * d + index / d]).collect()
}

impl KnownCovarianceGaussian {
    fn posterior(&self, component: Sufficient<'_>) -> MeanPosterior {
        let n = component.count.max(0.0);
        let precisions: Vec<f64> = self.precisions.iter().map(|p| p + n).collect();
        let sums = times(&self.map, component.statistics);
        let columns = self.precisions.iter().zip(&self.mean).zip(&sums).zip(&precisions);
        let mean = columns.map(|(((p, m), s), of_n)| (p * m + s) / of_n).collect();
        MeanPosterior { precisions, mean }
    }

    /// Point estimate of the mean, in mapped columns.
    fn point(&self, component: Sufficient<'_>, estimate: Estimate) -> Vec<f64> {
        if estimate == Estimate::MaximumLikelihood && component.count >= 1e-12 {
            return times(&self.map, component.statistics).into_iter().map(|s| s / component.count).collect();
        }
        self.posterior(component).mean
    }

    /// `1/2 {ln |precision| - D ln 2 pi}`.
    fn log_constant(&self) -> f64 {
        0.5 * (self.log_determinant - self.mean.len() as f64 * (2.0 * PI).ln())
    }

    /// Transforms a mapped mean to the data's own units.
    fn unmapped(&self, mean: &[f64]) -> Vec<f64> {
        times(&self.inverse, mean).into_iter().zip(&self.frame.origin).map(|(m, o)| m + o).collect()
    }

    fn columns(&self, component: Sufficient<'_>, density: Density) -> Vec<Column> {
        let squares = |means: Vec<f64>| means.into_iter().map(|m| Column::square(1.0, m, 0.0)).collect();
        let posterior = |column: fn(f64, f64) -> Column| {
            let MeanPosterior { precisions, mean } = self.posterior(component);
            precisions.into_iter().zip(mean).map(|(p, m)| column(p, m)).collect()
        };
        match density {
            Density::Expected(Objective::Variational) => posterior(|p, m| Column::square(1.0, m, -0.5 / p)),
            Density::Expected(Objective::Map) => squares(self.point(component, Estimate::Mode)),
            Density::Expected(Objective::Ml) => squares(self.point(component, Estimate::MaximumLikelihood)),
            Density::PlugIn(estimate) => squares(self.point(component, estimate)),
            Density::Predictive => {
                posterior(|p, m| Column::square((1.0 + p.recip()).recip(), m, -0.5 * p.recip().ln_1p()))
            }
            Density::Divergence => {
                // Divergence between means: the row's mean shrinks to the prior mean by 1 / (p + 1).
                let posterior = self.posterior(component);
                let columns = posterior.mean.iter().zip(&self.mean).zip(&self.precisions);
                let column = |((m, m_0), p): ((&f64, &f64), &f64)| {
                    Column::square((p + 1.0).powi(-2), m_0 + (p + 1.0) * (m - m_0), 0.0)
                };
                columns.map(column).collect()
            }
        }
    }
}

impl FromParameters for KnownCovarianceGaussian {
    const ENTRY: Entry = Entry {
        domain: Some(Domain::Real),
        faces: &["scores", "points", "imputation", "draws", "parameters", "urn", "evidence", "laws"],
        supports: &[Support::always(Feature::Missing), Support::always(Feature::Moves)],
        parameters: &[
            Parameter::new("covariance", ParameterKind::Matrix, DefaultValue::Required),
            Parameter::new("mean", ParameterKind::Vector, DefaultValue::Data),
            Parameter::new("mean_precision", ParameterKind::NumberOrMatrix(Range::POSITIVE), DefaultValue::Evidence),
            PRIOR,
        ],
        ..Entry::new("KnownCovarianceGaussian")
    };
    const NEEDS: Needs = Needs::Variances;

    fn check(parameters: &Parameters) -> Result<()> {
        parameters.check(&Self::ENTRY)?;
        let (d, covariance) = Parameters::required("covariance", parameters.square("covariance")?)?;
        check_positive_definite("covariance", d, covariance)?;
        if let Some(mean) = parameters.vector("mean")?
            && mean.len() != d
        {
            let found = format!("of length {}", mean.len());
            return Err(Error::invalid("mean", found, format!("of length {d}, as covariance")));
        }
        if let Some(Value::Array { .. }) = parameters.0.get("mean_precision") {
            let (size, precision) = Parameters::required("mean_precision", parameters.square("mean_precision")?)?;
            if size != d {
                let found = format!("of size {size}");
                return Err(Error::invalid("mean_precision", found, format!("of size {d}, as covariance")));
            }
            check_positive_definite("mean_precision", d, precision)?;
        }
        Ok(())
    }

    fn resolve(parameters: &Parameters, data: &Moments) -> Result<Parameters> {
        Self::check(parameters)?;
        let d = data.dimension();
        let (size, covariance) = Parameters::required("covariance", parameters.square("covariance")?)?;
        if size != d {
            let allowed = format!("of size {d}, the number of columns of the data");
            return Err(Error::invalid("covariance", format!("of size {size}"), allowed));
        }
        let mean = parameters.vector("mean")?.map_or_else(|| data.mean.clone(), <[f64]>::to_vec);
        let precision = match parameters.0.get("mean_precision") {
            None | Some(Value::Absent) => Value::Number(0.1),
            Some(given) => given.clone(),
        };
        Ok(Parameters::from_pairs([
            ("covariance", table(d, covariance.to_vec())),
            ("mean", vector(mean)),
            ("mean_precision", precision),
        ]))
    }

    fn build(parameters: &Parameters, frame: Frame) -> Result<Self> {
        Self::check(parameters)?;
        let d = frame.origin.len();
        let (size, covariance) = Parameters::required("covariance", parameters.square("covariance")?)?;
        let mean = Parameters::required("mean", parameters.vector_of("mean", d)?)?;
        if size != d {
            return Err(Error::invalid("covariance", format!("of size {size}"), format!("of size {d}")));
        }
        let mut factor = covariance.to_vec();
        let failed = |_| Error::invalid("covariance", "without a Cholesky factor", "positive definite");
        cholesky(d, &mut factor).map_err(failed)?;
        for column in 0..d {
            factor[column * d..column * d + column].fill(0.0);
        }
        let mut whitening = vec![0.0; d * d];
        invert_lower(d, &factor, &mut whitening);
        let log_determinant = -log_determinant_from_cholesky(d, &factor);
        let (precisions, map, inverse) =
            if let Some(Value::Array { data: prior, .. }) = parameters.0.get("mean_precision") {
                // With the covariance L L^T, the prior precision of L^-1 mu is L^T P_0 L = Q diag(p) Q^T.
                let whitened = product(d, &transposed(d, &factor), &product(d, prior, &factor));
                let (values, vectors) = symmetric_eigen(d, &whitened)?;
                if let Some(value) = values.iter().find(|value| **value <= 0.0) {
                    let found = format!("of eigenvalue {value:e} beside the covariance");
                    return Err(Error::invalid("mean_precision", found, "positive definite"));
                }
                let map = product(d, &transposed(d, &vectors), &whitening);
                (values, map, product(d, &factor, &vectors))
            } else {
                let kappa = Parameters::required("mean_precision", parameters.number("mean_precision")?)?;
                (vec![kappa; d], whitening, factor)
            };
        let relative: Vec<f64> = mean.iter().zip(&frame.origin).map(|(m, o)| m - o).collect();
        let scaled = !matches!(parameters.0.get("mean_precision"), Some(Value::Array { .. }));
        let mean = times(&map, &relative);
        let missing = frame.missing.then(|| {
            let prior = general_precision(d, &map, &precisions);
            let of_prior = log_determinant + precisions.iter().map(|p| p.ln()).sum::<f64>();
            Arc::new(WithMissing::new(covariance.to_vec(), prior, relative, of_prior))
        });
        Ok(Self { frame, scaled, map, inverse, log_determinant, precisions, mean, missing })
    }
}

impl Conjugate for KnownCovarianceGaussian {
    fn n_statistics(&self) -> usize {
        let d = self.mean.len();
        if self.missing.is_some() { d + packed_len(d) } else { d }
    }

    fn origin(&self) -> &[f64] {
        &self.frame.origin
    }

    fn accumulate(&self, rows: RowBlock<'_, f64>, weights: &[f64], statistics: &mut [f64], _: &mut Lines<f64>) {
        if let Some(model) = &self.missing {
            return model.accumulate(rows.dense(), weights, statistics);
        }
        for (row, &weight) in rows.dense().chunks_exact(statistics.len()).zip(weights) {
            statistics.iter_mut().zip(row).for_each(|(sum, x)| *sum += weight * x);
        }
    }

    fn log_marginal(&self, component: Sufficient<'_>) -> Result<f64> {
        if let Some(model) = &self.missing {
            return model.log_marginal(component);
        }
        // c = 1/2 sum {P m^2 - ln P}, computed as differences that do not cancel for a component near the prior mean.
        let posterior = self.posterior(component);
        let columns = posterior.precisions.iter().zip(&posterior.mean).zip(&self.precisions).zip(&self.mean);
        Ok(columns
            .map(|(((p, m), p_0), m_0)| 0.5 * (p * (m - m_0) * (m + m_0) + (p - p_0) * m_0 * m_0 - (p / p_0).ln()))
            .sum())
    }

    fn expected_at_prior(&self, units: Sufficient<'_>) -> Result<f64> {
        if let Some(model) = &self.missing {
            return model.expected_at_prior(units);
        }
        let sums = times(&self.map, units.statistics);
        let columns = self.precisions.iter().zip(&self.mean).zip(sums);
        Ok(columns.map(|((p, m), s)| m * s - 0.5 * units.count * (m * m + p.recip())).sum())
    }

    fn posterior_parameters(&self, components: &[Sufficient<'_>]) -> Result<Parameters> {
        let d = self.mean.len();
        if let Some(model) = &self.missing {
            return self.general_parameters(model, components);
        }
        let all: Vec<MeanPosterior> = components.iter().map(|component| self.posterior(*component)).collect();
        let means = all.iter().flat_map(|posterior| self.unmapped(&posterior.mean)).collect();
        let precisions = if self.scaled {
            vector(all.iter().map(|posterior| posterior.precisions[0]).collect())
        } else {
            let of = |posterior: &MeanPosterior| general_precision(d, &self.map, &posterior.precisions);
            Value::Array { shape: vec![all.len(), d, d], data: all.iter().flat_map(of).collect() }
        };
        Ok(Parameters::from_pairs([("mean", table(d, means)), ("mean_precision", precisions)]))
    }

    fn rebase(&self, component: Sufficient<'_>, origin: &[f64]) -> Result<Vec<f64>> {
        let shifts = origin.iter().zip(&self.frame.origin).map(|(old, new)| old - new);
        if let Some(model) = &self.missing {
            return Ok(model.moved(component, &shifts.collect::<Vec<f64>>()));
        }
        Ok(component.statistics.iter().zip(shifts).map(|(sum, shift)| sum + component.count * shift).collect())
    }
}

capabilities!(KnownCovarianceGaussian: scores, points, imputation, draws, parameters, urn, evidence, laws);

impl Evidence for KnownCovarianceGaussian {
    fn cautions(&self) -> Vec<(String, Caution)> {
        vec![("mean_precision".to_owned(), Caution::Capped)]
    }

    fn divergence_of(&self, start: &Parameters) -> Result<f64> {
        // Means are equal, and precisions are estimated only if they are multiples of the known one.
        let start = Self::build(start, self.frame.clone())?;
        let columns = start.precisions.iter().zip(&self.precisions);
        Ok(columns.map(|(start, now)| mean_divergence(1.0, *start, *now, 0.0)).sum())
    }

    /// Mathematics 10.3.
    fn estimate(&self, given: &Given<'_>) -> Result<Parameters> {
        let (columns, start) = (self.mean.len() as f64, Self::build(given.start, self.frame.clone())?);
        let occupied = given.occupied();
        if occupied.is_empty() || !given.is_free("mean_precision") {
            return Ok(given.parameters.clone());
        }
        let term = |component: &Sufficient<'_>| {
            let sums = times(&self.map, component.statistics);
            let slope = sums.iter().zip(&self.mean).map(|(s, m)| (s / component.count - m).powi(2)).sum();
            MeanTerm { n: component.count, columns, slope, curve: 0.0 }
        };
        let terms: Vec<MeanTerm> = match &self.missing {
            None => occupied.iter().map(term).collect(),
            Some(model) => {
                let of = occupied.iter().map(|component| model.mean_terms(*component));
                of.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect()
            }
        };
        let precision = mean_precision(self.precisions[0], start.precisions[0], columns, &terms);
        Ok(given.parameters.with([("mean_precision", Value::Number(precision))]))
    }
}

impl Urn for KnownCovarianceGaussian {}

impl<F: Scalar> Scores<F> for KnownCovarianceGaussian {
    fn scorer(
        &self,
        components: &[Sufficient<'_>],
        log_weights: &[f64],
        density: Density,
    ) -> Result<Box<dyn Scorer<F>>> {
        if let Some(model) = &self.missing {
            return Ok(Box::new(model.scorer(components, log_weights, density)?));
        }
        let constant = if density == Density::Divergence { 0.0 } else { self.log_constant() };
        let packed = map(components.len(), |k| ColumnTerms {
            constant: log_weights[k] + constant,
            columns: self.columns(components[k], density),
        });
        Ok(Box::new(ColumnScorer::new(Curve::Square, packed, false).with_map(&self.map)))
    }

    fn divergence_from_prior(&self, component: Sufficient<'_>) -> Result<f64> {
        if let Some(model) = &self.missing {
            return model.divergence_from_prior(component);
        }
        let posterior = self.posterior(component);
        let columns = posterior.precisions.iter().zip(&posterior.mean).zip(&self.precisions).zip(&self.mean);
        let column = |(((p, m), p_0), m_0): (((&f64, &f64), &f64), &f64)| {
            let ratio = p_0 / p;
            0.5 * (ratio - 1.0 - ratio.ln() + p_0 * (m - m_0) * (m - m_0))
        };
        Ok(columns.map(column).sum())
    }

    fn log_base_measures(&self, rows: RowBlock<'_, F>, out: &mut [f64]) {
        let d = self.mean.len();
        for (row, out) in rows.dense().chunks_exact(d).zip(out) {
            let row: Vec<f64> = row.iter().map(|x| x.to_f64()).collect();
            if let Some(model) = &self.missing {
                *out = model.log_base_measure(&row);
                continue;
            }
            let square: f64 = times(&self.map, &row).iter().map(|y| y * y).sum();
            *out = self.log_constant() - 0.5 * square;
        }
    }
}

impl PointEstimates for KnownCovarianceGaussian {
    fn at_point(&self, component: Sufficient<'_>, estimate: Estimate) -> Result<AtPoint> {
        if let Some(model) = &self.missing {
            let (log_likelihood, log_prior) = model.at_point(component, &model.point(component, estimate)?);
            return Ok(AtPoint { log_likelihood, log_prior });
        }
        let means = self.point(component, estimate);
        let sums = times(&self.map, component.statistics);
        // Terms in the mapped mean.
        let mut contribution = AtPoint { log_likelihood: 0.0, log_prior: self.log_constant() };
        for (((m, s), p), m_0) in means.iter().zip(&sums).zip(&self.precisions).zip(&self.mean) {
            contribution.log_likelihood += m * (s - 0.5 * component.count * m);
            contribution.log_prior += 0.5 * (p.ln() - p * (m - m_0) * (m - m_0));
        }
        Ok(contribution)
    }

    fn check_mode(&self) -> Result<()> {
        Ok(())
    }

    fn point_estimates(&self, components: &[Sufficient<'_>], estimate: Estimate) -> Result<Parameters> {
        let of = |component: &Sufficient<'_>| match &self.missing {
            None => Ok(self.unmapped(&self.point(*component, estimate))),
            Some(model) => model.point(*component, estimate).map(|mean| self.with_origin(&mean)),
        };
        let means: Vec<Vec<f64>> = components.iter().map(of).collect::<Result<_>>()?;
        Ok(Parameters::from_pairs([("mean", table(self.mean.len(), means.concat()))]))
    }
}

impl RowDraws for KnownCovarianceGaussian {
    fn source(&self, component: Sufficient<'_>, from: Draw<'_>) -> Result<RowSource<'_>> {
        if let Some(model) = &self.missing {
            return self.general_source(model, component, from);
        }
        let posterior = match from.estimate {
            None => self.posterior(component),
            Some(estimate) => MeanPosterior {
                precisions: vec![f64::INFINITY; self.mean.len()],
                mean: self.point(component, estimate),
            },
        };
        let deviations = posterior.precisions.iter().map(|p| (1.0 + p.recip()).sqrt()).collect();
        Ok(self.normal_rows(posterior.mean, deviations))
    }
}

/// The mean is normal.
impl ParameterDraws for KnownCovarianceGaussian {
    fn parameter_source(&self, component: Sufficient<'_>) -> Result<ParameterSource<'_>> {
        let rows = if let Some(model) = &self.missing {
            model.mean_source(component, &self.frame.origin)?
        } else {
            let MeanPosterior { precisions, mean } = self.posterior(component);
            self.normal_rows(mean, precisions.iter().map(|p| p.sqrt().recip()).collect())
        };
        Ok(ParameterSource { shapes: vec![("mean".to_owned(), vec![self.mean.len()])], rows })
    }

    fn drawn_scorer(
        &self,
        components: &[Sufficient<'_>],
        log_weights: &[f64],
        draws: ComponentStreams<'_>,
    ) -> Result<Box<dyn Scorer<f64>>> {
        if let Some(model) = &self.missing {
            return Ok(Box::new(model.drawn_scorer(components, log_weights, draws)?));
        }
        let packed = try_map(components.len(), |k| {
            let MeanPosterior { precisions, mean } = self.posterior(components[k]);
            let mut generator = draws.of(k)?;
            let column = |(p, m): (&f64, &f64)| {
                let normal: f64 = generator.sample(StandardNormal);
                Column::square(1.0, m + normal / p.sqrt(), 0.0)
            };
            let columns = precisions.iter().zip(&mean).map(column).collect();
            Ok(ColumnTerms { constant: log_weights[k] + self.log_constant(), columns })
        })?;
        Ok(Box::new(ColumnScorer::new(Curve::Square, packed, false).with_map(&self.map)))
    }
}

impl KnownCovarianceGaussian {
    /// Draws rows whose mapped columns are independent.
    fn normal_rows(&self, mean: Vec<f64>, deviations: Vec<f64>) -> RowSource<'_> {
        row_by_row(mean.len(), move |row, generator| {
            let columns = mean.iter().zip(&deviations);
            let mapped: Vec<f64> =
                columns.map(|(m, deviation)| m + deviation * generator.sample::<f64, _>(StandardNormal)).collect();
            row.copy_from_slice(&self.unmapped(&mapped));
        })
    }
}
