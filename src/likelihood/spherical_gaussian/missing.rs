//! Rows with missing values under the conjugate base measure (mathematics 1.7). Column d has the count N_d of the rows
//! with a value in it, and `kappa_d = kappa_0 + N_d`. All values inform the common precision.

use std::f64::consts::PI;

use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

use crate::error::Result;
use crate::likelihood::gamma;
use crate::likelihood::ridge::RIDGE;
use crate::likelihood::spherical_gaussian::{Centred, SphericalGaussian, SphericalPoint, SphericalPosterior};
use crate::likelihood::{Density, Estimate, Imputation, RowSource, row_by_row};
use crate::objective::Objective;
use crate::parallel::map;
use crate::parameters::{Value, table};
use crate::scoring::{Column, ColumnScorer, ColumnTerms, Curve, Row, RowScorer, Scorer};
use crate::simd::Scalar;
use crate::special::{digamma, ln_gamma_difference};
use crate::suffstats::Sufficient;

/// Adds rows, each times its weight, to the sums, the total sum of squares and the counts by column.
pub(super) fn accumulate(d: usize, rows: &[f64], weights: &[f64], statistics: &mut [f64]) {
    let (sums, rest) = statistics.split_at_mut(d);
    let (square, counts) = rest.split_at_mut(1);
    for (row, &weight) in rows.chunks_exact(d).zip(weights) {
        let mut squares = 0.0;
        for ((sum, count), &x) in sums.iter_mut().zip(&mut *counts).zip(row).filter(|(_, x)| !x.is_nan()) {
            *sum += weight * x;
            *count += weight;
            squares += x * x;
        }
        square[0] += weight * squares;
    }
}

impl SphericalPosterior {
    /// kappa of a column.
    pub(super) fn kappa_of(&self, column: usize) -> f64 {
        self.kappas.get(column).copied().unwrap_or(self.kappa)
    }

    /// Shape and rate of the precision given the present values of the row, and their number.
    fn given(&self, row: Row<'_>) -> (f64, f64, f64) {
        let square = row.sum(0.0, |j, x| {
            let kappa = self.kappa_of(j);
            kappa / (kappa + 1.0) * (x - self.mean[j]).powi(2)
        });
        let values = row.sum(0.0, |_, _| 1.0);
        (self.shape + 0.5 * values, self.rate + 0.5 * square, values)
    }

    /// ln p(x_o | lambda): a Student t in the columns present.
    fn log_predictive(&self, row: Row<'_>) -> f64 {
        let (shape, rate, values) = self.given(row);
        let shrinkage = row.sum(0.0, |j, _| -self.kappa_of(j).recip().ln_1p());
        ln_gamma_difference(self.shape, 0.5 * values) + 0.5 * (shrinkage - values * (2.0 * PI * self.rate).ln())
            - shape * ((rate - self.rate) / self.rate).ln_1p()
    }
}

impl Centred<'_> {
    /// sum over columns of N_d (mean of the rows - m_d)^2.
    pub(super) fn squares_about(&self, mean: &[f64]) -> f64 {
        let columns = self.sums.iter().zip(self.counts).zip(mean).filter(|((_, n), _)| **n >= 1e-12);
        columns.map(|((s, n), m)| n * (s / n - m).powi(2)).sum()
    }
}

/// A log density of a row under a component, over the columns present.
type OfRow = Box<dyn Fn(&SphericalPosterior, Row<'_>) -> f64 + Send + Sync>;

impl SphericalGaussian {
    /// The sum over columns of a function of kappa.
    pub(super) fn sum_over_columns(&self, posterior: &SphericalPosterior, f: impl Fn(f64) -> f64) -> f64 {
        if posterior.kappas.is_empty() {
            self.d() * f(posterior.kappa)
        } else {
            posterior.kappas.iter().map(|kappa| f(*kappa)).sum()
        }
    }

    pub(super) fn centred_columns<'a>(&self, n: f64, sums: &'a [f64], square: f64, counts: &'a [f64]) -> Centred<'a> {
        let squares = sums.iter().zip(counts).map(|(s, n)| if *n < 1e-12 { 0.0 } else { s * s / n }).sum::<f64>();
        let rounding: f64 = counts.iter().zip(&self.rounding).map(|(n, variance)| n.max(0.0) * variance).sum();
        let scatter = if n < 1e-12 { 0.0 } else { (square - squares).max(0.0) + rounding };
        Centred { n, sums, scatter, counts }
    }

    /// The distance of each column mean from the prior mean, with its count; zero for a column without values.
    pub(super) fn away<'a>(&'a self, centred: &'a Centred<'_>) -> impl Iterator<Item = (f64, f64)> + 'a {
        let columns = centred.sums.iter().zip(centred.counts).zip(&self.prior.mean);
        columns.map(|((s, &n), m)| if n < 1e-12 { (0.0, 0.0) } else { (n, s / n - m) })
    }

    pub(super) fn conjugate_columns(&self, centred: &Centred<'_>) -> SphericalPosterior {
        let prior = &self.prior;
        let mut found = SphericalPosterior { mean: Vec::new(), kappas: Vec::new(), ..prior.clone() };
        found.rate += 0.5 * centred.scatter;
        for ((n, away), m) in self.away(centred).zip(&prior.mean) {
            let kappa = prior.kappa + n;
            found.kappas.push(kappa);
            found.mean.push(m + n / kappa * away);
            found.shape += 0.5 * n;
            found.rate += 0.5 * prior.kappa * n / kappa * away * away;
        }
        found
    }

    /// The maximum-likelihood point; a column without values takes the posterior mean.
    pub(super) fn likeliest(&self, centred: &Centred<'_>, posterior: SphericalPosterior) -> SphericalPoint {
        let blur = RIDGE * self.prior.rate / self.prior.shape;
        let values: f64 = centred.counts.iter().sum();
        if values < 1e-12 {
            return SphericalPoint { precision: posterior.shape / posterior.rate, mean: posterior.mean, blur: 0.0 };
        }
        let columns = centred.sums.iter().zip(centred.counts).zip(posterior.mean);
        let mean = columns.map(|((s, n), m)| if *n < 1e-12 { m } else { s / n }).collect();
        SphericalPoint { mean, precision: (centred.scatter / values + blur).recip(), blur }
    }

    /// kappa of every component and column, (K, D).
    pub(super) fn kappas_of(&self, all: &[SphericalPosterior]) -> Value {
        let d = self.prior.mean.len();
        table(d, all.iter().flat_map(|posterior| (0..d).map(|j| posterior.kappa_of(j))).collect())
    }

    pub(super) fn scorer_with_missing<F: Scalar>(
        &self,
        components: &[Sufficient<'_>],
        log_weights: &[f64],
        density: Density,
    ) -> Box<dyn Scorer<F>> {
        let (d, k) = (self.prior.mean.len(), components.len());
        let by_row = |f: OfRow| {
            let parts: Vec<_> = components.iter().map(|component| self.posterior(*component)).collect();
            let log_weights = log_weights.to_vec();
            Box::new(RowScorer::new(d, k, move |k, row| log_weights[k] + f(&parts[k], row)))
        };
        match density {
            Density::Predictive => by_row(Box::new(SphericalPosterior::log_predictive)),
            Density::Divergence => {
                let prior = self.prior.clone();
                by_row(Box::new(move |posterior, row| -divergence_of_row(posterior, &prior, row)))
            }
            _ => {
                let columns = |k: usize| self.columns_with_missing(components[k], density);
                let packed = map(k, |k| ColumnTerms { constant: log_weights[k], columns: columns(k) });
                Box::new(ColumnScorer::new(Curve::Square, packed, true))
            }
        }
    }

    /// The log density of each present column: expected, or at a point estimate.
    fn columns_with_missing(&self, component: Sufficient<'_>, density: Density) -> Vec<Column> {
        let of_point = |estimate, blurred| {
            let SphericalPoint { mean, precision, blur } = self.point(component, estimate);
            let constant = 0.5 * (precision.ln() - (2.0 * PI).ln() - if blurred { precision * blur } else { 0.0 });
            mean.into_iter().map(|m| Column::square(precision, m, constant)).collect()
        };
        match density {
            Density::Expected(Objective::Map) => of_point(Estimate::Mode, true),
            Density::Expected(Objective::Ml) => of_point(Estimate::MaximumLikelihood, true),
            Density::PlugIn(estimate) => of_point(estimate, false),
            _ => {
                let posterior = self.posterior(component);
                let precision = posterior.shape / posterior.rate;
                let log_precision = digamma(posterior.shape) - posterior.rate.ln() - (2.0 * PI).ln();
                let column = |j: usize| {
                    let spread = posterior.kappa_of(j).recip() + precision * self.rounding[j];
                    Column::square(precision, posterior.mean[j], 0.5 * (log_precision - spread))
                };
                (0..posterior.mean.len()).map(column).collect()
            }
        }
    }

    /// Returns a source of rows of the posterior predictive.
    pub(super) fn source_of(&self, posterior: &SphericalPosterior) -> Result<RowSource<'static>> {
        self.source_with(posterior, (posterior.shape, posterior.rate))
    }

    fn source_with(&self, posterior: &SphericalPosterior, (shape, rate): (f64, f64)) -> Result<RowSource<'static>> {
        let precision = gamma::distribution(shape, rate)?;
        let column = |(j, o): (usize, &f64)| (o + posterior.mean[j], (1.0 + posterior.kappa_of(j).recip()).sqrt());
        let columns: Vec<(f64, f64)> = self.frame.origin.iter().enumerate().map(column).collect();
        Ok(row_by_row(columns.len(), move |row, generator| {
            let deviation = precision.sample(generator).sqrt().recip();
            for (to, (centre, spread)) in row.iter_mut().zip(&columns) {
                *to = centre + deviation * spread * generator.sample::<f64, _>(StandardNormal);
            }
        }))
    }

    /// Mean and variance of every column given a precision with this shape and rate.
    fn moments_with(&self, posterior: &SphericalPosterior, (shape, rate): (f64, f64)) -> (Vec<f64>, Vec<f64>) {
        let variance = if shape > 1.0 { rate / (shape - 1.0) } else { f64::INFINITY };
        let column = |(j, o): (usize, &f64)| (o + posterior.mean[j], variance * (1.0 + posterior.kappa_of(j).recip()));
        self.frame.origin.iter().enumerate().map(column).unzip()
    }
}

/// The divergence of a row's smoothed moments in the columns present (mathematics 5.2).
fn divergence_of_row(posterior: &SphericalPosterior, prior: &SphericalPosterior, row: Row<'_>) -> f64 {
    let (shrinkage, variance) = ((prior.kappa + 1.0).recip(), posterior.rate / posterior.shape);
    let values = row.sum(0.0, |_, _| 1.0);
    let square = row.sum(0.0, |j, x| (x - prior.mean[j]).powi(2));
    let of_row = (prior.rate + 0.5 * prior.kappa * shrinkage * square) / (prior.shape + 0.5 * values);
    let apart = row.sum(0.0, |j, x| (prior.mean[j] + shrinkage * (x - prior.mean[j]) - posterior.mean[j]).powi(2));
    0.5 * (values * (of_row / variance - 1.0 - (of_row / variance).ln()) + apart / variance)
}

impl Imputation for SphericalGaussian {
    fn predictive_moments(&self, component: Sufficient<'_>) -> Result<(Vec<f64>, Vec<f64>)> {
        let posterior = self.posterior(component);
        Ok(self.moments_with(&posterior, (posterior.shape, posterior.rate)))
    }

    /// The present values of a row inform the precision of the others.
    fn moments_given(&self, component: Sufficient<'_>, row: &[f64]) -> Result<Option<(Vec<f64>, Vec<f64>)>> {
        let posterior = self.posterior(component);
        let (shape, rate, _) = posterior.given(Row::Dense(row));
        Ok(Some(self.moments_with(&posterior, (shape, rate))))
    }

    fn source_given(&self, component: Sufficient<'_>, row: &[f64]) -> Result<Option<RowSource<'_>>> {
        let posterior = self.posterior(component);
        let (shape, rate, _) = posterior.given(Row::Dense(row));
        self.source_with(&posterior, (shape, rate)).map(|source| Some(source as RowSource<'_>))
    }
}
