//! Missing values under a full covariance: `q(x_m | z = k) = N(x, V)` for the missing columns m of a row, given its
//! present columns o and the component (mathematics 1.7.1).

use std::f64::consts::{LN_2, PI};

use crate::data::RowBlock;
use crate::error::Result;
use crate::likelihood::Density;
use crate::likelihood::wishart::normal_wishart::NormalWishart;
use crate::linalg::{add_gram_of_lower, add_moments, cholesky, invert_lower, mirror};
use crate::parallel::{map, map_all};
use crate::scoring::{Completing, Incomplete, Link, PatternScorer, Quadratic, Scorer, by_pattern, columns_of};
use crate::simd::{Lines, Scalar};
use crate::special::multivariate_digamma;
use crate::suffstats::Sufficient;

/// Number of statistics besides the moments: `sum r {|m| (ln 2 pi + 1) + ln |V|} / 2`, and the number of rows with a
/// value. Rows without any, which may have one in a column that the model does not see, have no part in a component.
pub const N_FILLS: usize = 2;

/// The statistic of the fills of a component.
pub fn statistic_of_fills(component: Sufficient<'_>) -> f64 {
    component.statistics[component.statistics.len() - N_FILLS]
}

/// The number of rows of a component that have a value, zero if only rounding is left of it.
pub fn rows_with_values(component: Sufficient<'_>) -> f64 {
    let n = component.statistics[component.statistics.len() - 1];
    if n > ROUNDING * component.count { n } else { 0.0 }
}

/// Largest share of the rows of a component that may be what rounding leaves of sums and differences.
const ROUNDING: f64 = 1e-12;

/// A symmetric matrix restricted to some rows and columns.
fn part(d: usize, matrix: &[f64], rows: &[usize], columns: &[usize]) -> Vec<f64> {
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

/// A posterior, or a point estimate, of which some columns are wanted.
struct Whole {
    distribution: NormalWishart,
    /// The factor of B^-1 in the precision of a point estimate.
    times: f64,
    /// B, (D, D).
    scale: Vec<f64>,
    /// The diagonal of B^-1.
    precisions: Vec<f64>,
    /// `psi_D(nu / 2) + D ln 2 - D / kappa`, nats.
    constant: f64,
}

impl Whole {
    fn new((distribution, times): (NormalWishart, f64)) -> Self {
        let d = distribution.dimension();
        let precisions = distribution.inverse().into_iter().step_by(d + 1).collect();
        let constant = multivariate_digamma(d, 0.5 * distribution.dof) + d as f64 * (LN_2 - distribution.inverse_kappa);
        Self { times, scale: distribution.scale(), precisions, constant, distribution }
    }

    /// The distribution of the covariance of some columns and of their mean: nu less the other columns, and a block of
    /// B.
    ///
    /// # Errors
    /// [`crate::Error::Numerical`] where the block has no Cholesky factor.
    fn of_columns(&self, columns: &[usize]) -> Result<NormalWishart> {
        let NormalWishart { dof, inverse_kappa, mean, .. } = &self.distribution;
        let block = part(mean.len(), &self.scale, columns, columns);
        let lost = (mean.len() - columns.len()) as f64;
        NormalWishart::new(dof - lost, *inverse_kappa, columns.iter().map(|&column| mean[column]).collect(), block)
    }

    /// `log int exp E log p(x) dx_m + log_weight` as a function of the present columns. `variances`: those of rounding,
    /// by column (empty if none).
    ///
    /// # Errors
    /// As [`Whole::of_columns`].
    fn expected(&self, columns: &[usize], variances: &[f64], log_weight: f64) -> Result<Quadratic> {
        let (dof, own) = (self.distribution.dof, self.of_columns(columns)?);
        let of_column = |&column: &usize| self.precisions[column] * variances.get(column).unwrap_or(&0.0);
        let rounding: f64 = columns.iter().map(of_column).sum();
        let (all, n) = (self.distribution.dimension() as f64, columns.len() as f64);
        let of_columns = (all - n) * dof.ln() + own.log_determinant + n * (2.0 * PI).ln();
        let sums = self.constant - of_columns - dof * rounding;
        Ok(Quadratic {
            factor: own.inverse_factor(),
            scale: dof.sqrt(),
            centre: own.mean,
            constant: 0.5 * sums + log_weight,
            link: Link::Gaussian,
        })
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
        fills[1] += weights.iter().sum::<f64>();
        if !rows.iter().any(|value| value.is_nan()) {
            return add_moments(rows, weights, d, sums, packed, space);
        }
        let (mut filled, mut weights) = (rows.to_vec(), weights.to_vec());
        for (pattern, list) in by_pattern(rows, d) {
            let present = columns_of(&pattern, d);
            let weight: f64 = list.iter().map(|&row| weights[row]).sum();
            if present.is_empty() {
                fills[1] -= weight;
                for &row in &list {
                    filled[row * d..][..d].fill(0.0);
                    weights[row] = 0.0;
                }
            } else if present.len() < d {
                fills[0] += self.fill(&present, &list, &mut filled, weight, packed);
            }
        }
        add_moments(&filled, &weights, d, sums, packed, space);
    }

    /// Fills the missing columns of listed rows with their means, `m_m - P_mm^-1 P_mo (x_o - m_o)`, and adds `weight`
    /// times their covariance `V = P_mm^-1 / nu` to the squares. Returns `weight` times the statistic of the fill.
    fn fill(&self, present: &[usize], list: &[usize], filled: &mut [f64], weight: f64, packed: &mut [f64]) -> f64 {
        let d = self.mean.len();
        let missing: Vec<usize> = (0..d).filter(|column| !present.contains(column)).collect();
        let n = missing.len();
        let mut factor = part(d, &self.precision, &missing, &missing);
        if cholesky(n, &mut factor).is_err() {
            // Reported as an error of the component later.
            return f64::NAN;
        }
        let mut inverse = vec![0.0; n * n];
        invert_lower(n, &factor, &mut inverse);
        let mut covariance = vec![0.0; n * n];
        add_gram_of_lower(n, &inverse, 1.0, &mut covariance);
        mirror(n, &mut covariance);
        // G = -P_mm^-1 P_mo, one column for each present one.
        let across = part(d, &self.precision, &missing, present);
        let product = |column: &[f64], i: usize| -> f64 { (0..n).map(|j| covariance[j * n + i] * column[j]).sum() };
        let slopes: Vec<f64> =
            across.chunks_exact(n).flat_map(|column| (0..n).map(move |i| -product(column, i))).collect();
        for &row in list {
            let row = &mut filled[row * d..][..d];
            for (i, &column) in missing.iter().enumerate() {
                let shift = |(j, &from): (usize, &usize)| slopes[j * n + i] * (row[from] - self.mean[from]);
                row[column] = self.mean[column] + present.iter().enumerate().map(shift).sum::<f64>();
            }
        }
        for (j, &to) in missing.iter().enumerate() {
            let first = to * d - to * (to + 1) / 2;
            for (i, &from) in missing.iter().enumerate().skip(j) {
                packed[first + from] += weight * covariance[j * n + i] / self.dof;
            }
            // A posterior counts the rounding of every row, but missing values are not rounded.
            packed[first + to] -= weight * self.variances.get(to).unwrap_or(&0.0);
        }
        let log_determinant = -2.0 * factor.iter().step_by(n + 1).map(|pivot| pivot.ln()).sum::<f64>();
        let log_volume = log_determinant - n as f64 * self.dof.ln();
        0.5 * weight * (n as f64 * ((2.0 * PI).ln() + 1.0) + log_volume)
    }
}

impl Completing for Fills {
    fn accumulate(&self, component: usize, rows: Incomplete<'_>, statistics: &mut [f64], space: &mut Lines<f64>) {
        let Incomplete { values, weights, .. } = rows;
        let RowBlock::Dense(values) = values else { return };
        self.0[component].accumulate(values, weights, statistics, space);
    }
}

/// Packs densities of the present columns of rows: those of posteriors, or of point estimates, whose factors of B^-1 in
/// the precision come with them.
pub fn scorer_of_patterns<F: Scalar>(
    components: Vec<(NormalWishart, f64)>,
    rounding: &[f64],
    log_weights: &[f64],
    density: Density,
) -> Box<dyn Scorer<F>> {
    let (d, k, weights) =
        (components.first().map_or(0, |one| one.0.dimension()), components.len(), log_weights.to_vec());
    let variances: Vec<f64> = rounding.iter().step_by(d + 1).copied().collect();
    let completing = matches!(density, Density::Expected(_)).then(|| {
        let fills = map(k, |k| Fill::new(&components[k].0, rounding));
        Box::new(Fills(fills)) as Box<dyn Completing>
    });
    let components: Vec<Whole> = map_all(components, Whole::new);
    let of_pattern = move |columns: &[usize]| {
        let of = |(whole, weight): (&Whole, &f64)| match density {
            Density::Predictive => Ok(whole.of_columns(columns)?.predictive(*weight)),
            Density::PlugIn(_) => Ok(whole.of_columns(columns)?.at_precision(whole.times, &[], *weight)),
            _ => whole.expected(columns, &variances, *weight),
        };
        // A block of a matrix with a Cholesky factor has one; NaN is reported as an error later.
        let failed = || Quadratic {
            factor: vec![0.0; columns.len().pow(2)],
            scale: 1.0,
            centre: vec![0.0; columns.len()],
            constant: f64::NAN,
            link: Link::Gaussian,
        };
        components.iter().zip(&weights).map(|pair| of(pair).unwrap_or_else(|_| failed())).collect()
    };
    Box::new(PatternScorer::new(d, log_weights, of_pattern, completing))
}
