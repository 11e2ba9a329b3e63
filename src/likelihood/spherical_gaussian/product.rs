//! The product base measure, which is conditionally conjugate: the two factors are found by alternating updates.

use crate::likelihood::spherical_gaussian::{Centred, SphericalGaussian, SphericalPoint, SphericalPosterior};

/// Maximum number of alternating updates. A few suffice in practice.
const ROUNDS: usize = 1000;

impl SphericalGaussian {
    /// Alternates until convergence; each update raises the bound.
    pub(super) fn product(&self, centred: &Centred<'_>) -> SphericalPosterior {
        let SphericalPosterior { mean: m_0, kappa: p_0, shape, rate, rounding, .. } = &self.prior;
        let shape_n = shape + 0.5 * centred.n * self.d();
        let mut precision = shape_n / (rate + 0.5 * centred.scatter);
        let mut found = self.prior.clone();
        for _ in 0..ROUNDS {
            let kappa = p_0 + precision * centred.n;
            let mean: Vec<f64> = centred.sums.iter().zip(m_0).map(|(s, m)| (p_0 * m + precision * s) / kappa).collect();
            let distance: f64 = centred.sums.iter().zip(&mean).map(|(s, m)| (s / centred.n - m).powi(2)).sum();
            let rate_n = rate + 0.5 * (centred.scatter + centred.n * distance + centred.n * self.d() / kappa);
            let kappas = Vec::new();
            found = SphericalPosterior { mean, kappa, kappas, shape: shape_n, rate: rate_n, rounding: *rounding };
            let next = shape_n / rate_n;
            let settled = (next - precision).abs() <= 1e-14 * next;
            precision = next;
            if settled {
                break;
            }
        }
        found
    }

    /// The joint mode under the product base measure, by alternating updates.
    pub(super) fn product_mode(&self, centred: &Centred<'_>, start: SphericalPosterior) -> SphericalPoint {
        let SphericalPosterior { mean: m_0, kappa: p_0, shape, rate, .. } = &self.prior;
        let mut point = SphericalPoint { precision: start.shape / start.rate, mean: start.mean, blur: 0.0 };
        for _ in 0..ROUNDS {
            let kappa = p_0 + point.precision * centred.n;
            point.mean = centred.sums.iter().zip(m_0).map(|(s, m)| (p_0 * m + point.precision * s) / kappa).collect();
            let average = |s: &f64| if centred.n < 1e-12 { 0.0 } else { s / centred.n };
            let distance: f64 = centred.sums.iter().zip(&point.mean).map(|(s, m)| (average(s) - m).powi(2)).sum();
            let rate_n = rate + 0.5 * (centred.scatter + centred.n * distance);
            let next = (shape - 1.0 + 0.5 * centred.n * self.d()) / rate_n;
            let settled = (next - point.precision).abs() <= 1e-14 * next;
            point.precision = next;
            if settled {
                break;
            }
        }
        point
    }
}
