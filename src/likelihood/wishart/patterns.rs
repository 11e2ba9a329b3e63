//! Densities of rows with missing values under a full covariance, by the columns that rows have (mathematics 1.7.1).

use std::f64::consts::{LN_2, PI};

use crate::error::Result;
use crate::likelihood::Density;
use crate::likelihood::wishart::holes::{Fill, Fills, part};
use crate::likelihood::wishart::normal_wishart::NormalWishart;
use crate::likelihood::wishart::tail::{HeavyTail, RowScales};
use crate::parallel::{map, map_all};
use crate::scoring::{Completing, Link, PatternScorer, Quadratic, Scorer};
use crate::simd::Scalar;
use crate::special::multivariate_digamma;

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
        let rounding = self.rounding(columns, variances);
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

impl Whole {
    /// The part of `E |x - mu|^2` in the metric of B that is due to the rounding of these columns.
    fn rounding(&self, columns: &[usize], variances: &[f64]) -> f64 {
        columns.iter().map(|&column| self.precisions[column] * variances.get(column).unwrap_or(&0.0)).sum()
    }

    /// As [`Whole::expected`], of rows with tails.
    fn expected_with_tail(
        &self,
        tail: &HeavyTail,
        columns: &[usize],
        variances: &[f64],
        log_weight: f64,
    ) -> Result<Quadratic> {
        let NormalWishart { dof, inverse_kappa, .. } = self.distribution;
        let all = self.distribution.dimension() as f64;
        let spread = all * inverse_kappa + dof * self.rounding(columns, variances);
        Ok(tail.of_normal(self.expected(columns, variances, log_weight)?, spread))
    }
}

/// Packs densities of the present columns of rows: those of posteriors, or of point estimates, whose factors of B^-1 in
/// the precision come with them. `tail`: that of rows, if they have tails.
pub fn scorer_of_patterns<F: Scalar>(
    components: Vec<(NormalWishart, f64)>,
    tail: Option<&HeavyTail>,
    rounding: &[f64],
    log_weights: &[f64],
    density: Density,
) -> Box<dyn Scorer<F>> {
    let (d, k, weights) =
        (components.first().map_or(0, |one| one.0.dimension()), components.len(), log_weights.to_vec());
    let variances: Vec<f64> = rounding.iter().step_by(d + 1).copied().collect();
    let completing = matches!(density, Density::Expected(_)).then(|| {
        let fills = map(k, |k| Fill::new(&components[k].0, rounding));
        let Some(tail) = tail else { return Box::new(Fills(fills)) as Box<dyn Completing> };
        let packed = map(k, |k| tail.of_posterior(&components[k].0, rounding, 0.0));
        Box::new(RowScales::new(tail.clone(), packed, Some(fills)))
    });
    let dof = tail.map(|tail| tail.dof);
    let components: Vec<Whole> = map_all(components, Whole::new);
    let of_pattern = move |columns: &[usize]| {
        let tail = dof.map(|dof| HeavyTail::new(dof, columns.len()));
        let of = |(whole, weight): (&Whole, &f64)| match (density, &tail) {
            (Density::Predictive, None) => Ok(whole.of_columns(columns)?.predictive(*weight)),
            (Density::Predictive, Some(tail)) => Ok(tail.predictive(&whole.of_columns(columns)?, *weight)),
            (Density::PlugIn(_), tail) => {
                let normal = whole.of_columns(columns)?.at_precision(whole.times, &[], *weight);
                Ok(match tail {
                    Some(tail) => tail.of_normal(normal, 0.0),
                    None => normal,
                })
            }
            (_, None) => whole.expected(columns, &variances, *weight),
            (_, Some(tail)) => whole.expected_with_tail(tail, columns, &variances, *weight),
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
