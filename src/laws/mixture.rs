//! Mixtures of distributions of rows.

use crate::error::{Error, Result};
use crate::laws::Law;
use crate::parallel::{Cancel, blocks, for_each_with, try_map, try_map_with};
use crate::rng::{Chances, Purpose, stream};
use crate::special::log_sum_exp;

/// Number of rows per block.
const BLOCK: usize = 1024;

/// Weights that sum to one, and the same number of distributions of the same columns.
#[derive(Debug, Clone)]
pub struct MixtureLaw {
    weights: Vec<f64>,
    laws: Vec<Law>,
}

impl MixtureLaw {
    /// From weights, which are normalised, and at least one distribution.
    pub fn new(weights: &[f64], laws: Vec<Law>) -> Self {
        let total: f64 = weights.iter().sum();
        Self { weights: weights.iter().map(|weight| weight / total).collect(), laws }
    }

    /// The weights, (J,).
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Number of columns, D.
    pub fn n_columns(&self) -> usize {
        self.laws[0].n_columns()
    }

    fn log_density(&self, row: &[f64], terms: &mut Vec<f64>, space: &mut Vec<f64>) -> f64 {
        terms.clear();
        let parts = self.weights.iter().zip(&self.laws).filter(|(weight, _)| **weight > 0.0);
        terms.extend(parts.map(|(weight, law)| weight.ln() + law.log_density(row, space)));
        log_sum_exp(terms)
    }

    /// Returns ln p(x) of `n` rows, (n,), nats; `read` writes a row given its index.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn log_densities(
        &self,
        n: usize,
        read: impl Fn(usize, &mut [f64]) + Sync,
        cancel: &Cancel,
    ) -> Result<Vec<f64>> {
        let ranges: Vec<_> = blocks(n, BLOCK).collect();
        let space = || (vec![0.0; self.n_columns()], Vec::new(), Vec::new());
        let found = try_map_with(ranges.len(), space, |(row, terms, space), index| {
            cancel.check()?;
            let mut of_block = Vec::with_capacity(ranges[index].len());
            for number in ranges[index].clone() {
                read(number, row);
                of_block.push(self.log_density(row, terms, space));
            }
            Ok(of_block)
        })?;
        Ok(found.concat())
    }

    /// Returns the mixture restricted to some columns, in this order.
    pub fn marginal(&self, columns: &[usize]) -> Result<Self> {
        let of = |k: usize| self.laws[k].marginal(columns).map_err(|error| error.of_component(k));
        Ok(Self { weights: self.weights.clone(), laws: try_map(self.laws.len(), of)? })
    }

    /// Returns the mixture of the `others` given the values of some columns. Weights are multiplied by the densities of
    /// these values.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for values outside the support; as [`Law::conditional`].
    pub fn conditional(&self, others: &[usize], given: &[usize], values: &[f64]) -> Result<Self> {
        let of = |k: usize| self.laws[k].conditional(others, given, values).map_err(|error| error.of_component(k));
        let (log_densities, laws): (Vec<f64>, Vec<Law>) = try_map(self.laws.len(), of)?.into_iter().unzip();
        let log_weight =
            |(weight, density): (&f64, f64)| if *weight > 0.0 { weight.ln() + density } else { f64::NEG_INFINITY };
        let terms: Vec<f64> = self.weights.iter().zip(log_densities).map(log_weight).collect();
        let best = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if !best.is_finite() {
            return Err(Error::invalid(
                "given",
                "values of density zero under the fit",
                "values that a row of the fit can have",
            ));
        }
        let weights: Vec<f64> = terms.iter().map(|term| (term - best).exp()).collect();
        Ok(Self::new(&weights, laws))
    }

    /// The means of the distributions, (J, D).
    pub fn means(&self) -> Vec<f64> {
        self.laws.iter().flat_map(Law::mean).collect()
    }

    /// The covariances of the distributions, (J, D, D).
    pub fn covariances(&self) -> Vec<f64> {
        self.laws.iter().flat_map(Law::covariance).collect()
    }

    /// Mean, (D,), and covariance, (D, D), of a row.
    pub fn moments(&self) -> (Vec<f64>, Vec<f64>) {
        let d = self.n_columns();
        let (mut mean, mut covariance) = (vec![0.0; d], vec![0.0; d * d]);
        let parts: Vec<_> = self.weights.iter().zip(&self.laws).filter(|(weight, _)| **weight > 0.0).collect();
        for (weight, law) in &parts {
            mean.iter_mut().zip(law.mean()).for_each(|(sum, value)| *sum += *weight * value);
        }
        for (weight, law) in &parts {
            let away: Vec<f64> = law.mean().iter().zip(&mean).map(|(value, mean)| value - mean).collect();
            for (entry, value) in law.covariance().into_iter().enumerate() {
                covariance[entry] += *weight * (value + away[entry / d] * away[entry % d]);
            }
        }
        (mean, covariance)
    }

    /// Draws `n` rows, (n, D).
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if they do not fit in memory; [`Error::Cancelled`]; as [`Law::draw`].
    pub fn sample(&self, n: usize, seed: u64, cancel: &Cancel) -> Result<Vec<f64>> {
        let d = self.n_columns();
        let mut rows = Vec::new();
        let size = n.saturating_mul(d);
        rows.try_reserve_exact(size)
            .map_err(|_| Error::invalid("n", n, "small enough for the rows to fit in memory"))?;
        rows.resize(size, 0.0);
        let chances = Chances::new(&self.weights);
        for_each_with(
            rows.chunks_mut(BLOCK * d).enumerate().collect(),
            || (),
            |(), (index, block)| {
                cancel.check()?;
                let mut generator = stream(seed, Purpose::Draws, index as u64);
                block.chunks_exact_mut(d).try_for_each(|row| {
                    let k = chances.choose(&mut generator);
                    self.laws[k].draw(row, &mut generator).map_err(|error| error.of_component(k))
                })
            },
        )?;
        Ok(rows)
    }
}
