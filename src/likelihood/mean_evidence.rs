//! Estimation of the precision of a normal prior mean by evidence (mathematics 10.2).

use crate::likelihood::evidence::{GUARD, maximum_at};
use crate::registry::Range;

/// Contribution of a component, or of one of its columns, to the estimate of the precision of the prior mean. With `t =
/// kappa_0 n / (kappa_0 + n)`, its log marginal likelihood falls by `slope / (1 + curve t)` per unit of t (mathematics
/// 10.2).
#[derive(Debug, Clone, Copy)]
pub struct MeanTerm {
    /// Number of rows.
    pub n: f64,
    /// Number of columns.
    pub columns: f64,
    /// Slope at t = 0, as defined above.
    pub slope: f64,
    /// Curvature in t, as defined above.
    pub curve: f64,
}

/// The precision of the prior mean that maximises the evidence. `start` is the initial precision, `columns` the number
/// of its columns.
pub fn mean_precision(now: f64, start: f64, columns: f64, terms: &[MeanTerm]) -> f64 {
    let derivative = |kappa: f64| {
        let term = |component: &MeanTerm| {
            let (sum, n) = (kappa + component.n, component.n);
            let per_t = component.slope / (1.0 + component.curve * kappa * n / sum);
            0.5 * component.columns * n / (kappa * sum) - 0.5 * per_t * (n / sum).powi(2)
        };
        terms.iter().map(term).sum::<f64>() - 0.5 * GUARD * columns * (start.recip() - kappa.recip())
    };
    let most = (terms.len() as f64 + GUARD) * start / GUARD;
    maximum_at(now, Range::closed(1e-9, most), derivative)
}

/// KL(N(m, v / kappa I) || N(m_0, v / kappa_0 I)) in `columns` columns, nats. `distance` is `|m - m_0|^2 / v`.
pub fn mean_divergence(columns: f64, kappa: f64, kappa_0: f64, distance: f64) -> f64 {
    let ratio = kappa_0 / kappa;
    0.5 * columns * (ratio - 1.0 - ratio.ln()) + 0.5 * kappa_0 * distance
}
