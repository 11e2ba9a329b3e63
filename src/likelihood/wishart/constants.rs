//! Tabulated constants of the predictives of rows that join a cluster one at a time.

use std::sync::OnceLock;

use crate::likelihood::wishart::normal_wishart::NormalWishart;

/// Constants are tabulated for clusters of fewer than about two to the power of this many rows.
const TABLES: usize = 14;

/// The part of the predictive that depends only on the number of rows. It is tabulated because its gamma functions
/// would cost more than everything else. Each table is twice as long as the one before: most models see small clusters
/// only.
#[derive(Debug, Default)]
pub struct Constants([OnceLock<Box<[f64]>>; TABLES]);

impl Constants {
    /// The constant of a cluster of `n` rows.
    pub fn get(&self, prior: &NormalWishart, n: f64) -> f64 {
        let of =
            |n: f64| NormalWishart::predictive_constant(prior.dimension(), prior.dof + n, inverse_kappa(prior, n), 0.0);
        let place = n as usize + 1;
        let (number, first) = (place.ilog2() as usize, 1 << place.ilog2());
        let Some(table) = self.0.get(number) else { return of(n) };
        table.get_or_init(|| (first - 1..2 * first - 1).map(|n| of(n as f64)).collect())[place - first]
    }
}

/// 1 / kappa_n; 0 if the mean is known exactly.
pub fn inverse_kappa(prior: &NormalWishart, n: f64) -> f64 {
    if prior.inverse_kappa > 0.0 { (prior.inverse_kappa.recip() + n).recip() } else { 0.0 }
}
