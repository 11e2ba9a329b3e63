//! Rows with missing values (mathematics 1.7): with `A_n = E_o^T covariance_oo^-1 E_o` a row adds `A_n x_n` and `A_n`,
//! and the posterior of the mean is N(m, P^-1) with a general `P = P_0 + sum r A_n`, `P m = P_0 m_0 + sum r A_n x_n`.

use std::sync::Arc;

use rand::RngExt;
use rand_distr::StandardNormal;

use crate::error::{Error, Result};
use crate::likelihood::known_covariance_gaussian::patterns::{Pattern, Patterns, part};
use crate::likelihood::known_covariance_gaussian::{KnownCovarianceGaussian, product, times, transposed};
use crate::likelihood::mean_evidence::MeanTerm;
use crate::likelihood::{ComponentStreams, Density, Draw, Estimate, Imputation, RowSource, row_by_row};
use crate::linalg::{cholesky, invert_lower, log_determinant_from_cholesky, symmetric_eigen, unpack};
use crate::objective::Objective;
use crate::parameters::{Parameters, Value, table};
use crate::scoring::{Row, RowScorer};
use crate::suffstats::Sufficient;

/// The model of rows with missing values; the mean is relative to the origin.
#[derive(Debug)]
pub struct WithMissing {
    /// Quantities derived from the known covariance for each missing-value pattern.
    pub patterns: Patterns,
    /// P_0, (D, D).
    precision: Vec<f64>,
    /// m_0, (D,).
    mean: Vec<f64>,
    /// ln |P_0|.
    log_determinant: f64,
}

/// Posterior N(m, P^-1) of the mean of a component.
pub struct GeneralPosterior {
    /// m, relative to the origin.
    pub mean: Vec<f64>,
    /// P, (D, D).
    pub precision: Vec<f64>,
    /// P^-1, (D, D).
    covariance: Vec<f64>,
    /// ln |P|.
    log_determinant: f64,
}

/// `a . b`.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Inverts a positive definite matrix and returns the log of its determinant too.
fn inverted(d: usize, matrix: &[f64]) -> Result<(Vec<f64>, f64)> {
    let mut factor = matrix.to_vec();
    let failed = |error| Error::numerical(None, format!("the precision of a component's mean: {error}"));
    cholesky(d, &mut factor).map_err(failed)?;
    let mut inverse = vec![0.0; d * d];
    invert_lower(d, &factor, &mut inverse);
    Ok((product(d, &transposed(d, &inverse), &inverse), log_determinant_from_cholesky(d, &factor)))
}

/// The present values of a row minus the same columns of a vector.
fn differences(pattern: &Pattern, row: &[f64], mean: &[f64]) -> Vec<f64> {
    pattern.columns.iter().map(|&j| row[j] - mean[j]).collect()
}

/// The values of a row, which is never sparse here.
fn values(row: Row<'_>) -> &[f64] {
    match row {
        Row::Dense(values) | Row::Sparse(_, values) => values,
    }
}

impl WithMissing {
    pub fn new(covariance: Vec<f64>, precision: Vec<f64>, mean: Vec<f64>, log_determinant: f64) -> Self {
        Self { patterns: Patterns::new(mean.len(), covariance), precision, mean, log_determinant }
    }

    fn d(&self) -> usize {
        self.mean.len()
    }

    /// Adds rows, each times its weight. If the covariance of a pattern cannot be factored, the sums become NaN, which
    /// is reported as an error later.
    pub fn accumulate(&self, rows: &[f64], weights: &[f64], statistics: &mut [f64]) {
        let d = self.d();
        let (sums, matrix) = statistics.split_at_mut(d);
        // Consecutive rows often have the same pattern.
        let mut last: Option<(Arc<Pattern>, f64)> = None;
        for (row, &weight) in rows.chunks_exact(d).zip(weights) {
            let Ok(pattern) = self.patterns.of(row) else { return sums.fill(f64::NAN) };
            let present: Vec<f64> = pattern.columns.iter().map(|&j| row[j]).collect();
            let solved = pattern.solved(&present);
            pattern.columns.iter().zip(solved).for_each(|(&j, value)| sums[j] += weight * value);
            last = match last {
                Some((before, sum)) if before.columns == pattern.columns => Some((before, sum + weight)),
                before => {
                    if let Some((pattern, weight)) = before {
                        add_precision(d, &pattern, weight, matrix);
                    }
                    Some((pattern, weight))
                }
            };
        }
        if let Some((pattern, weight)) = last {
            add_precision(d, &pattern, weight, matrix);
        }
    }

    /// sum r A x and sum r A of a component.
    fn sums<'a>(&self, component: Sufficient<'a>) -> (&'a [f64], Vec<f64>) {
        let (sums, packed) = component.statistics.split_at(self.d());
        (sums, unpack(self.d(), packed))
    }

    /// u = sum r A (x - m_0), computed without avoidable cancellation.
    fn pull(&self, sums: &[f64], matrix: &[f64]) -> Vec<f64> {
        sums.iter().zip(times(matrix, &self.mean)).map(|(s, product)| s - product).collect()
    }

    /// Computes the posterior of a component.
    ///
    /// # Errors
    /// [`Error::Numerical`] where its precision has no Cholesky factor.
    pub fn posterior(&self, component: Sufficient<'_>) -> Result<GeneralPosterior> {
        let (sums, matrix) = self.sums(component);
        let precision: Vec<f64> = self.precision.iter().zip(&matrix).map(|(a, b)| a + b).collect();
        let (covariance, log_determinant) = inverted(self.d(), &precision)?;
        let away = times(&covariance, &self.pull(sums, &matrix));
        let mean = self.mean.iter().zip(away).map(|(m, away)| m + away).collect();
        Ok(GeneralPosterior { mean, precision, covariance, log_determinant })
    }

    /// As `Conjugate::log_marginal`: `1/2 {m_0 S m_0 + 2 m_0 u + (m - m_0) u - ln |P| / |P_0|}`, S = sum r A.
    pub fn log_marginal(&self, component: Sufficient<'_>) -> Result<f64> {
        let (sums, matrix) = self.sums(component);
        let (posterior, pull) = (self.posterior(component)?, self.pull(sums, &matrix));
        let away: Vec<f64> = posterior.mean.iter().zip(&self.mean).map(|(m, m_0)| m - m_0).collect();
        let of_prior = dot(&self.mean, &times(&matrix, &self.mean)) + 2.0 * dot(&self.mean, &pull);
        Ok(0.5 * (of_prior + dot(&away, &pull) - (posterior.log_determinant - self.log_determinant)))
    }

    /// As `Conjugate::expected_at_prior`: `m_0 u + 1/2 {m_0 S m_0 - tr(S P_0^-1)}`.
    pub fn expected_at_prior(&self, units: Sufficient<'_>) -> Result<f64> {
        let (sums, matrix) = self.sums(units);
        let (covariance, _) = inverted(self.d(), &self.precision)?;
        let of_mean = dot(&self.mean, &times(&matrix, &self.mean));
        Ok(dot(&self.mean, &self.pull(sums, &matrix)) + 0.5 * (of_mean - dot(&covariance, &matrix)))
    }

    /// KL(N(m, P^-1) || N(m_0, P_0^-1)).
    pub fn divergence_from_prior(&self, component: Sufficient<'_>) -> Result<f64> {
        let (posterior, (_, matrix)) = (self.posterior(component)?, self.sums(component));
        let away: Vec<f64> = posterior.mean.iter().zip(&self.mean).map(|(m, m_0)| m - m_0).collect();
        let distance = dot(&away, &times(&self.precision, &away));
        Ok(0.5 * (distance - dot(&posterior.covariance, &matrix) + posterior.log_determinant - self.log_determinant))
    }

    /// Point estimate of the mean. Under maximum likelihood a column without values takes the posterior mean.
    pub fn point(&self, component: Sufficient<'_>, estimate: Estimate) -> Result<Vec<f64>> {
        let mut mean = self.posterior(component)?.mean;
        if estimate == Estimate::MaximumLikelihood {
            let (d, (sums, matrix)) = (self.d(), self.sums(component));
            let has_values = |j: &usize| matrix[j * (d + 1)] > 1e-12 * self.precision[j * (d + 1)];
            let seen: Vec<usize> = (0..d).filter(has_values).collect();
            if seen.is_empty() {
                return Ok(mean);
            }
            let (inverse, _) = inverted(seen.len(), &part(d, &matrix, &seen))?;
            let of_seen: Vec<f64> = seen.iter().map(|&j| sums[j]).collect();
            seen.iter().zip(times(&inverse, &of_seen)).for_each(|(&j, value)| mean[j] = value);
        }
        Ok(mean)
    }

    /// sum r log p(x | mean) without the base measure, and log p(mean).
    pub fn at_point(&self, component: Sufficient<'_>, mean: &[f64]) -> (f64, f64) {
        let (sums, matrix) = self.sums(component);
        let away: Vec<f64> = mean.iter().zip(&self.mean).map(|(m, m_0)| m - m_0).collect();
        let log_likelihood = dot(mean, sums) - 0.5 * dot(mean, &times(&matrix, mean));
        let normaliser = self.log_determinant - self.d() as f64 * (2.0 * std::f64::consts::PI).ln();
        (log_likelihood, 0.5 * (normaliser - dot(&away, &times(&self.precision, &away))))
    }

    /// log h(x) = log N(x_o | 0, covariance_oo).
    pub fn log_base_measure(&self, row: &[f64]) -> f64 {
        let of = |pattern: &Pattern| {
            let present: Vec<f64> = pattern.columns.iter().map(|&j| row[j]).collect();
            pattern.log_constant - 0.5 * pattern.square(&present)
        };
        self.patterns.of(row).map_or(f64::NAN, |pattern| of(&pattern))
    }

    /// Statistics of the rows after `shift` is added to each.
    pub fn moved(&self, component: Sufficient<'_>, shift: &[f64]) -> Vec<f64> {
        let mut moved = component.statistics.to_vec();
        let by = times(&self.sums(component).1, shift);
        moved.iter_mut().zip(by).for_each(|(sum, by)| *sum += by);
        moved
    }

    /// Contribution of a component to the estimate of a prior precision that is a multiple of the known one, one term
    /// per eigenvector of its precision relative to the known one. In these directions the terms are independent.
    pub fn mean_terms(&self, component: Sufficient<'_>) -> Result<Vec<MeanTerm>> {
        let (d, (sums, matrix)) = (self.d(), self.sums(component));
        let mut factor = self.patterns.covariance().to_vec();
        let failed = |error| Error::numerical(None, format!("the covariance: {error}"));
        cholesky(d, &mut factor).map_err(failed)?;
        let across = transposed(d, &factor);
        let (values, vectors) = symmetric_eigen(d, &product(d, &across, &product(d, &matrix, &factor)))?;
        let pull = times(&transposed(d, &vectors), &times(&across, &self.pull(sums, &matrix)));
        let seen = values.into_iter().zip(pull).filter(|(n, _)| *n > 1e-12);
        Ok(seen.map(|(n, v)| MeanTerm { n, columns: 1.0, slope: (v / n).powi(2), curve: 0.0 }).collect())
    }

    /// Builds a scorer of rows.
    pub fn scorer(
        self: &Arc<Self>,
        components: &[Sufficient<'_>],
        log_weights: &[f64],
        density: Density,
    ) -> Result<RowScorer> {
        let ready = components.iter().map(|component| self.scored(*component, density)).collect::<Result<_>>()?;
        Ok(self.packed(ready, log_weights))
    }

    /// Packs the densities at drawn means.
    pub fn drawn_scorer(
        self: &Arc<Self>,
        components: &[Sufficient<'_>],
        log_weights: &[f64],
        draws: ComponentStreams<'_>,
    ) -> Result<RowScorer> {
        let drawn = |(k, component): (usize, &Sufficient<'_>)| {
            let mut mean = vec![0.0; self.d()];
            let source = self.mean_source(*component, &vec![0.0; self.d()]).map_err(|error| error.of_component(k))?;
            source(&mut mean, &mut draws.of(k)?);
            Ok(ReadyComponent::Point(mean))
        };
        let ready = components.iter().enumerate().map(drawn).collect::<Result<_>>()?;
        Ok(self.packed(ready, log_weights))
    }

    fn packed(self: &Arc<Self>, ready: Vec<ReadyComponent>, log_weights: &[f64]) -> RowScorer {
        let (d, k, log_weights) = (self.d(), ready.len(), log_weights.to_vec());
        let model = Arc::clone(self);
        RowScorer::of_rows(d, k, move |range, row, out| {
            let row = values(row);
            // A row whose columns have no Cholesky factor has no finite score; NaN is reported as an error later.
            let Ok(pattern) = model.patterns.of(row) else { return out.fill(f64::NAN) };
            for ((component, weight), out) in ready[range.clone()].iter().zip(&log_weights[range]).zip(out) {
                *out = weight + model.score(component, &pattern, row);
            }
        })
    }

    fn scored(&self, component: Sufficient<'_>, density: Density) -> Result<ReadyComponent> {
        let of_point = |estimate| self.point(component, estimate).map(ReadyComponent::Point);
        match density {
            Density::Expected(Objective::Map) => of_point(Estimate::Mode),
            Density::Expected(Objective::Ml) => of_point(Estimate::MaximumLikelihood),
            Density::PlugIn(estimate) => of_point(estimate),
            Density::Predictive => self.posterior(component).map(ReadyComponent::Predictive),
            Density::Divergence => {
                self.posterior(component).map(|posterior| ReadyComponent::Divergence(posterior.mean))
            }
            Density::Expected(Objective::Variational) => self.posterior(component).map(ReadyComponent::Expected),
        }
    }

    fn score(&self, component: &ReadyComponent, pattern: &Pattern, row: &[f64]) -> f64 {
        let log_density = |mean: &[f64]| pattern.log_constant - 0.5 * pattern.square(&differences(pattern, row, mean));
        match component {
            ReadyComponent::Point(mean) => log_density(mean),
            ReadyComponent::Expected(posterior) => {
                let of_mean = part(self.d(), &posterior.covariance, &pattern.columns);
                log_density(&posterior.mean) - 0.5 * dot(&pattern.precision, &of_mean)
            }
            ReadyComponent::Predictive(posterior) => {
                let spread = self.predictive_covariance(posterior);
                let predictive_pattern = Patterns::new(self.d(), spread).of(row);
                predictive_pattern.map_or(f64::NAN, |pattern| {
                    pattern.log_constant - 0.5 * pattern.square(&differences(&pattern, row, &posterior.mean))
                })
            }
            ReadyComponent::Divergence(mean) => {
                let smoothed = self.smoothed(pattern, row);
                let away: Vec<f64> = pattern.columns.iter().zip(smoothed).map(|(&j, m)| m - mean[j]).collect();
                -0.5 * pattern.square(&away)
            }
        }
    }

    /// Posterior mean given this row alone, in the columns present (mathematics 5.2).
    fn smoothed(&self, pattern: &Pattern, row: &[f64]) -> Vec<f64> {
        let d = self.d();
        let mut precision = self.precision.clone();
        let n = pattern.columns.len();
        for (b, &j) in pattern.columns.iter().enumerate() {
            for (a, &i) in pattern.columns.iter().enumerate() {
                precision[j * d + i] += pattern.precision[b * n + a];
            }
        }
        let mut pull = vec![0.0; d];
        let solved = pattern.solved(&differences(pattern, row, &self.mean));
        pattern.columns.iter().zip(solved).for_each(|(&j, value)| pull[j] = value);
        let away = inverted(d, &precision).map_or_else(|_| vec![f64::NAN; d], |(inverse, _)| times(&inverse, &pull));
        pattern.columns.iter().map(|&j| self.mean[j] + away[j]).collect()
    }

    pub(super) fn predictive_covariance(&self, posterior: &GeneralPosterior) -> Vec<f64> {
        self.patterns.covariance().iter().zip(&posterior.covariance).map(|(a, b)| a + b).collect()
    }

    /// Mean, less the origin, and covariance of a row of the posterior predictive given some of its values: `N(m_m +
    /// C_mo C_oo^-1 (x_o - m_o), C_mm - C_mo C_oo^-1 C_om)` with `C = covariance + P^-1`. The present columns have zero
    /// variance.
    pub fn given(&self, component: Sufficient<'_>, row: &[f64]) -> Result<(Vec<f64>, Vec<f64>)> {
        let (d, posterior) = (self.d(), self.posterior(component)?);
        let mut spread = self.predictive_covariance(&posterior);
        let pattern = Patterns::new(d, spread.clone()).of(row)?;
        let (n, columns) = (pattern.columns.len(), &pattern.columns);
        let mut mean = posterior.mean.clone();
        let solved = pattern.solved(&differences(&pattern, row, &posterior.mean));
        let across = |i: usize| columns.iter().map(|&j| spread[j * d + i]).collect::<Vec<f64>>();
        let by_row: Vec<Vec<f64>> = (0..d).map(across).collect();
        for (m, covariances) in mean.iter_mut().zip(&by_row) {
            *m += dot(covariances, &solved);
        }
        let weighted: Vec<Vec<f64>> = by_row.iter().map(|covariances| pattern.solved(covariances)).collect();
        for (i, j) in (0..d).flat_map(|j| (0..d).map(move |i| (i, j))) {
            spread[j * d + i] -= if n == 0 { 0.0 } else { dot(&by_row[i], &weighted[j]) };
        }
        for &j in columns {
            mean[j] = row[j];
            (0..d).for_each(|i| (spread[j * d + i], spread[i * d + j]) = (0.0, 0.0));
        }
        Ok((mean, spread))
    }

    /// Draws the mean of a component from its posterior.
    pub fn mean_source(&self, component: Sufficient<'_>, origin: &[f64]) -> Result<RowSource<'static>> {
        let posterior = self.posterior(component)?;
        self.source(&posterior.mean, &posterior.covariance, origin)
    }

    /// Draws from N(mean + origin, spread). Columns with zero variance keep their value.
    pub fn source(&self, mean: &[f64], spread: &[f64], origin: &[f64]) -> Result<RowSource<'static>> {
        let d = self.d();
        let free: Vec<usize> = (0..d).filter(|&j| spread[j * (d + 1)] > 0.0).collect();
        let mut factor = part(d, spread, &free);
        let failed = |error| Error::numerical(None, format!("the covariance of missing values: {error}"));
        if !free.is_empty() {
            cholesky(free.len(), &mut factor).map_err(failed)?;
        }
        let centre: Vec<f64> = mean.iter().zip(origin).map(|(m, o)| m + o).collect();
        Ok(row_by_row(d, move |row, generator| {
            row.copy_from_slice(&centre);
            for column in factor.chunks_exact(free.len().max(1)) {
                let normal: f64 = generator.sample(StandardNormal);
                free.iter().zip(column).for_each(|(&i, value)| row[i] += value * normal);
            }
        }))
    }
}

impl KnownCovarianceGaussian {
    pub(super) fn with_origin(&self, mean: &[f64]) -> Vec<f64> {
        mean.iter().zip(&self.frame.origin).map(|(m, o)| m + o).collect()
    }

    /// Posterior means, (K, D), and precisions, (K, D, D).
    pub(super) fn general_parameters(&self, model: &WithMissing, components: &[Sufficient<'_>]) -> Result<Parameters> {
        let d = model.d();
        let (mut means, mut data) = (Vec::new(), Vec::new());
        for component in components {
            let posterior = model.posterior(*component)?;
            means.extend(self.with_origin(&posterior.mean));
            data.extend(posterior.precision);
        }
        let precisions = Value::Array { shape: vec![components.len(), d, d], data };
        Ok(Parameters::from_pairs([("mean", table(d, means)), ("mean_precision", precisions)]))
    }

    pub(super) fn general_source(
        &self,
        model: &WithMissing,
        component: Sufficient<'_>,
        from: Draw<'_>,
    ) -> Result<RowSource<'static>> {
        if let Some(estimate) = from.estimate {
            return model.source(&model.point(component, estimate)?, model.patterns.covariance(), &self.frame.origin);
        }
        let posterior = model.posterior(component)?;
        model.source(&posterior.mean, &model.predictive_covariance(&posterior), &self.frame.origin)
    }
}

impl Imputation for KnownCovarianceGaussian {
    fn predictive_moments(&self, component: Sufficient<'_>) -> Result<(Vec<f64>, Vec<f64>)> {
        let nothing = vec![f64::NAN; self.frame.origin.len()];
        let Some(moments) = self.moments_given(component, &nothing)? else {
            let what = "imputation for a fit without missing values";
            return Err(Error::not_supported("likelihood", what, "it has no pattern", "missing=\"marginalize\""));
        };
        Ok(moments)
    }

    fn moments_given(&self, component: Sufficient<'_>, row: &[f64]) -> Result<Option<(Vec<f64>, Vec<f64>)>> {
        let Some(model) = &self.missing else { return Ok(None) };
        let (mean, spread) = model.given(component, row)?;
        let d = model.d();
        Ok(Some((self.with_origin(&mean), (0..d).map(|j| spread[j * (d + 1)]).collect())))
    }

    fn source_given(&self, component: Sufficient<'_>, row: &[f64]) -> Result<Option<RowSource<'_>>> {
        let Some(model) = &self.missing else { return Ok(None) };
        let (mean, spread) = model.given(component, row)?;
        model.source(&mean, &spread, &self.frame.origin).map(|source| Some(source as RowSource<'_>))
    }
}

/// A component prepared for scoring.
enum ReadyComponent {
    Point(Vec<f64>),
    Expected(GeneralPosterior),
    Predictive(GeneralPosterior),
    Divergence(Vec<f64>),
}

/// Adds `weight` times A of a pattern to a lower triangle, column by column.
fn add_precision(d: usize, pattern: &Pattern, weight: f64, packed: &mut [f64]) {
    let n = pattern.columns.len();
    for (b, &j) in pattern.columns.iter().enumerate() {
        let first = j * d - j * (j + 1) / 2;
        for (a, &i) in pattern.columns.iter().enumerate().skip(b) {
            packed[first + i] += weight * pattern.precision[b * n + a];
        }
    }
}
