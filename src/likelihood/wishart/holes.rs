//! Missing values under a full covariance: `q(x_m | z = k) = N(x, V)` for the missing columns m of a row, given its
//! present columns o and the component (mathematics 1.7.1).

use std::borrow::Cow;
use std::f64::consts::PI;

use crate::data::RowBlock;
use crate::likelihood::wishart::normal_wishart::NormalWishart;
use crate::linalg::{add_gram_of_lower, add_moments, cholesky, invert_lower, mirror};
use crate::scoring::{Completing, Incomplete, by_pattern, columns_of};
use crate::simd::Lines;
use crate::suffstats::Sufficient;

/// Number of statistics besides the moments: `sum r {|m| (ln 2 pi + 1) + ln |V|} / 2`, and the number of rows with a
/// value. Rows without any, which may have one in a column that the model does not see, have no part in a component.
pub const N_FILLS: usize = 2;

/// The number of rows of a component that have a value, zero if only rounding is left of it. `first`: the index of the
/// first statistic of fills.
pub fn rows_with_values(component: Sufficient<'_>, first: usize) -> f64 {
    let n = component.statistics[first + 1];
    if n > ROUNDING * component.count { n } else { 0.0 }
}

/// Largest share of the rows of a component that may be what rounding leaves of sums and differences.
const ROUNDING: f64 = 1e-12;

/// A symmetric matrix restricted to some rows and columns.
pub fn part(d: usize, matrix: &[f64], rows: &[usize], columns: &[usize]) -> Vec<f64> {
    columns.iter().flat_map(|&j| rows.iter().map(move |&i| matrix[j * d + i])).collect()
}

impl NormalWishart {
    /// B^-1, (D, D).
    pub fn inverse(&self) -> Vec<f64> {
        let d = self.dimension();
        let mut inverse = vec![0.0; d * d];
        add_gram_of_lower(d, &self.inverse_factor(), 1.0, &mut inverse);
        mirror(d, &mut inverse);
        inverse
    }
}

/// What fills missing values under a component.
#[derive(Debug)]
pub struct Fill {
    dof: f64,
    mean: Vec<f64>,
    /// P = B^-1, (D, D).
    precision: Vec<f64>,
    /// The variance of rounding of each column; empty if rows are not rounded.
    variances: Vec<f64>,
}

/// The missing values of the rows of a pattern.
pub struct Filling {
    /// The rows.
    pub list: Vec<usize>,
    missing: Vec<usize>,
    /// V, (n, n).
    covariance: Vec<f64>,
    /// The statistic of the fill of one row.
    pub statistic: f64,
}

impl Filling {
    /// Number of missing values of a row.
    pub fn n(&self) -> usize {
        self.missing.len()
    }
}

/// Fills missing values under components.
pub struct Fills(pub Vec<Fill>);

impl Fill {
    /// That of a posterior, or of the base measure.
    pub fn new(component: &NormalWishart, rounding: &[f64]) -> Self {
        let variances = rounding.iter().step_by(component.dimension() + 1).copied().collect();
        Self { dof: component.dof, mean: component.mean.clone(), precision: component.inverse(), variances }
    }

    /// Adds weights times the expected statistics of rows.
    pub fn accumulate(&self, rows: &[f64], weights: &[f64], statistics: &mut [f64], space: &mut Lines<f64>) {
        let d = self.mean.len();
        let (moments, fills) = statistics.split_at_mut(statistics.len() - N_FILLS);
        let (sums, packed) = moments.split_at_mut(d);
        let (filled, fillings, without_values) = self.fill_all(rows);
        let weights = weights_of_others(weights, &without_values);
        fills[1] += weights.iter().sum::<f64>();
        for filling in fillings {
            let weight: f64 = filling.list.iter().map(|&row| weights[row]).sum();
            self.add_covariance(&filling, weight, weight, packed);
            fills[0] += weight * filling.statistic;
        }
        add_moments(&filled, &weights, d, sums, packed, space);
    }

    /// Rows with their missing values replaced by their means, what is known of these, and the rows without any value,
    /// in whose place are zeros.
    pub fn fill_all<'a>(&self, rows: &'a [f64]) -> (Cow<'a, [f64]>, Vec<Filling>, Vec<usize>) {
        let d = self.mean.len();
        if !rows.iter().any(|value| value.is_nan()) {
            return (Cow::Borrowed(rows), Vec::new(), Vec::new());
        }
        let (mut filled, mut all, mut without_values) = (rows.to_vec(), Vec::new(), Vec::new());
        for (pattern, list) in by_pattern(rows, d) {
            let present = columns_of(&pattern, d);
            if present.is_empty() {
                for &row in &list {
                    filled[row * d..][..d].fill(0.0);
                }
                without_values = list;
            } else if present.len() < d {
                all.push(self.fill(&present, list, &mut filled));
            }
        }
        (Cow::Owned(filled), all, without_values)
    }

    /// Fills the missing columns of listed rows with their means, `m_m - P_mm^-1 P_mo (x_o - m_o)`; their covariance is
    /// `V = P_mm^-1 / nu`.
    fn fill(&self, present: &[usize], list: Vec<usize>, filled: &mut [f64]) -> Filling {
        let d = self.mean.len();
        let missing: Vec<usize> = (0..d).filter(|column| !present.contains(column)).collect();
        let n = missing.len();
        let mut covariance = vec![0.0; n * n];
        let mut factor = part(d, &self.precision, &missing, &missing);
        if cholesky(n, &mut factor).is_err() {
            // Reported as an error of the component later.
            return Filling { list, missing, covariance, statistic: f64::NAN };
        }
        let mut inverse = vec![0.0; n * n];
        invert_lower(n, &factor, &mut inverse);
        add_gram_of_lower(n, &inverse, 1.0, &mut covariance);
        mirror(n, &mut covariance);
        // G = -P_mm^-1 P_mo, one column for each present one.
        let across = part(d, &self.precision, &missing, present);
        let product = |column: &[f64], i: usize| -> f64 { (0..n).map(|j| covariance[j * n + i] * column[j]).sum() };
        let slopes: Vec<f64> =
            across.chunks_exact(n).flat_map(|column| (0..n).map(move |i| -product(column, i))).collect();
        for &row in &list {
            let row = &mut filled[row * d..][..d];
            for (i, &column) in missing.iter().enumerate() {
                let shift = |(j, &from): (usize, &usize)| slopes[j * n + i] * (row[from] - self.mean[from]);
                row[column] = self.mean[column] + present.iter().enumerate().map(shift).sum::<f64>();
            }
        }
        for value in &mut covariance {
            *value /= self.dof;
        }
        let log_determinant = -2.0 * factor.iter().step_by(n + 1).map(|pivot| pivot.ln()).sum::<f64>();
        let log_volume = log_determinant - n as f64 * self.dof.ln();
        let statistic = 0.5 * (n as f64 * ((2.0 * PI).ln() + 1.0) + log_volume);
        Filling { list, missing, covariance, statistic }
    }

    /// Adds the covariance of missing values to packed squares, for rows of this weight. `mass`: the same, each row as
    /// often as its scale. The squares of a missing value are scaled, and its covariance is divided by the scale.
    pub fn add_covariance(&self, filling: &Filling, weight: f64, mass: f64, packed: &mut [f64]) {
        let (d, n) = (self.mean.len(), filling.n());
        for (j, &to) in filling.missing.iter().enumerate() {
            let first = to * d - to * (to + 1) / 2;
            for (i, &from) in filling.missing.iter().enumerate().skip(j) {
                packed[first + from] += weight * filling.covariance[j * n + i];
            }
            // A posterior counts the rounding of every row, but missing values are not rounded.
            packed[first + to] -= mass * self.variances.get(to).unwrap_or(&0.0);
        }
    }

    /// The expected square of the rounding of missing values, in the metric of the expected precision.
    pub fn rounding(&self, filling: &Filling) -> f64 {
        let d = self.mean.len();
        let of = |&column: &usize| self.precision[column * (d + 1)] * self.variances.get(column).unwrap_or(&0.0);
        self.dof * filling.missing.iter().map(of).sum::<f64>()
    }
}

/// Weights of rows, zero for the listed ones.
pub fn weights_of_others<'a>(weights: &'a [f64], list: &[usize]) -> Cow<'a, [f64]> {
    if list.is_empty() {
        return Cow::Borrowed(weights);
    }
    let mut weights = weights.to_vec();
    for &row in list {
        weights[row] = 0.0;
    }
    Cow::Owned(weights)
}

impl Completing for Fills {
    fn accumulate(&self, component: usize, rows: Incomplete<'_>, statistics: &mut [f64], space: &mut Lines<f64>) {
        let Incomplete { values, weights, .. } = rows;
        let RowBlock::Dense(values) = values else { return };
        self.0[component].accumulate(values, weights, statistics, space);
    }
}
