//! Distributions whose scale is not known: the predictive of rows with heavy tails (mathematics 1k).

use crate::error::Result;
use crate::laws::Law;
use crate::rng::{Chances, Generator};
use crate::special::log_sum_exp;

/// A mixture over scales of distributions with one location.
#[derive(Debug, Clone)]
pub struct ScaledLaw {
    /// Log weights, nats, and the distributions.
    parts: Vec<(f64, Law)>,
    /// Degrees of freedom of the tail that the mixture has besides those of its parts.
    dof: f64,
}

impl ScaledLaw {
    /// From weights, which are normalised, and at least one distribution.
    pub fn new(parts: Vec<(f64, Law)>, dof: f64) -> Self {
        let total: f64 = parts.iter().map(|(weight, _)| weight).sum();
        Self { parts: parts.into_iter().map(|(weight, part)| ((weight / total).ln(), part)).collect(), dof }
    }

    fn each(&self, of: impl Fn(&Law) -> Result<Law>) -> Result<Self> {
        let part = |(weight, part): &(f64, Law)| Ok((*weight, of(part)?));
        Ok(Self { parts: self.parts.iter().map(part).collect::<Result<_>>()?, dof: self.dof })
    }

    /// The location, (D,).
    pub fn place(&self) -> Vec<f64> {
        self.parts[0].1.mean()
    }

    /// Number of columns.
    pub fn n_columns(&self) -> usize {
        self.parts[0].1.n_columns()
    }

    /// See [`Law::covariance`].
    pub fn covariance(&self) -> Vec<f64> {
        let d = self.n_columns();
        let mut sum = vec![0.0; d * d];
        for (weight, part) in &self.parts {
            sum.iter_mut().zip(part.covariance()).for_each(|(sum, value)| *sum += weight.exp() * value);
        }
        if self.dof <= 2.0 {
            // The sum over some scales is finite although that over all scales is not.
            sum.fill(f64::NAN);
            sum.iter_mut().step_by(d + 1).for_each(|variance| *variance = f64::INFINITY);
        }
        sum
    }

    /// See [`Law::log_density`].
    pub fn log_density(&self, row: &[f64], space: &mut Vec<f64>) -> f64 {
        let terms: Vec<f64> = self.parts.iter().map(|(weight, part)| weight + part.log_density(row, space)).collect();
        log_sum_exp(&terms)
    }

    /// See [`Law::marginal`].
    pub fn marginal(&self, columns: &[usize]) -> Result<Self> {
        self.each(|part| part.marginal(columns))
    }

    /// See [`Law::conditional`]. Weights are multiplied by the densities of the given values.
    pub fn conditional(&self, others: &[usize], given: &[usize], values: &[f64]) -> Result<(f64, Self)> {
        let of = |(weight, part): &(f64, Law)| {
            let (log_density, rest) = part.conditional(others, given, values)?;
            Ok((weight + log_density, rest))
        };
        let mut parts = self.parts.iter().map(of).collect::<Result<Vec<_>>>()?;
        let log_density = log_sum_exp(&parts.iter().map(|(weight, _)| *weight).collect::<Vec<_>>());
        for (weight, _) in &mut parts {
            *weight -= log_density;
        }
        Ok((log_density, Self { parts, dof: self.dof + given.len() as f64 }))
    }

    /// See [`Law::in_units`].
    #[must_use]
    pub fn in_units(self, units: &[f64]) -> Self {
        let parts = self.parts.into_iter().map(|(weight, part)| (weight, part.in_units(units))).collect();
        Self { parts, dof: self.dof }
    }

    /// See [`Law::sheared`].
    pub fn sheared(self, column: usize, shift: f64, slopes: &[f64]) -> Result<Self> {
        self.each(|part| part.clone().sheared(column, shift, slopes))
    }

    /// See [`Law::draw`].
    pub fn draw(&self, row: &mut [f64], generator: &mut Generator) -> Result<()> {
        let weights: Vec<f64> = self.parts.iter().map(|(weight, _)| weight.exp()).collect();
        self.parts[Chances::new(&weights).choose(generator)].1.draw(row, generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::Elliptical;

    /// Normal distributions of two columns with these weights and variances, under a tail of `dof`.
    fn law(weights: [f64; 2], variances: [f64; 2], dof: f64) -> ScaledLaw {
        let part = |(weight, variance): (f64, f64)| {
            let scale = vec![variance, 0.5 * variance, 0.5 * variance, variance];
            let part = Elliptical::new(vec![1.0, -2.0], scale, f64::INFINITY).expect("definite");
            (weight, Law::Joint(part))
        };
        ScaledLaw::new(weights.into_iter().zip(variances).map(part).collect(), dof)
    }

    /// A row with n given values has n more degrees of freedom, so that a variance that did not exist may exist. It is
    /// the mean of those of the parts, which are normal, with their weights given the value.
    #[test]
    fn given_values_make_a_variance_finite() {
        let (weights, variances, value) = ([0.3, 0.7], [1.0, 9.0], 2.5);
        let density = |variance: f64| (-0.5 * (value - 1.0_f64).powi(2) / variance).exp() / variance.sqrt();
        let shares: Vec<f64> = (0..2).map(|part| weights[part] * density(variances[part])).collect();
        let expected = (shares[0] * 0.75 * variances[0] + shares[1] * 0.75 * variances[1]) / (shares[0] + shares[1]);
        for dof in [1.0, 1.5, 2.0] {
            let law = law(weights, variances, dof);
            let [first, between, _, second] = law.covariance()[..] else { panic!("two columns") };
            assert!(first.is_infinite() && second.is_infinite() && between.is_nan());
            assert!(law.marginal(&[1]).expect("definite").covariance()[0].is_infinite());
            let found = law.conditional(&[1], &[0], &[value]).expect("definite").1.covariance();
            if dof > 1.0 {
                assert!((found[0] - expected).abs() < 1e-12 * expected, "{dof}: {found:?} {expected}");
            } else {
                assert!(found[0].is_infinite(), "{dof}: {found:?}");
            }
        }
    }
}
