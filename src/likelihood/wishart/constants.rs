//! Tabulated constants of the predictives of rows that join a cluster one at a time.

use std::sync::OnceLock;

use crate::likelihood::wishart::normal_wishart::NormalWishart;

/// Constants are tabulated for clusters of fewer rows than this.
const LOOKED_UP: usize = 1 << 14;

/// The part of the predictive that depends only on the number of rows. It is tabulated because its gamma functions
/// would cost more than everything else.
#[derive(Debug, Default)]
pub struct Constants(OnceLock<Box<[f64]>>);

impl Constants {
    /// The constant of a cluster of `n` rows.
    pub fn get(&self, prior: &NormalWishart, n: f64) -> f64 {
        let of =
            |n: f64| NormalWishart::predictive_constant(prior.dimension(), prior.dof + n, inverse_kappa(prior, n), 0.0);
        let table = self.0.get_or_init(|| (0..LOOKED_UP).map(|n| of(n as f64)).collect());
        table.get(n as usize).copied().unwrap_or_else(|| of(n))
    }
}

/// 1 / kappa_n; 0 if the mean is known exactly.
pub fn inverse_kappa(prior: &NormalWishart, n: f64) -> f64 {
    if prior.inverse_kappa > 0.0 { (prior.inverse_kappa.recip() + n).recip() } else { 0.0 }
}
