//! Estimation of gamma base measures, of precisions and of rates, by evidence (mathematics 10.3).

use crate::likelihood::evidence::{GUARD, dual_root, maximum_at};
use crate::likelihood::ridge::FLOOR;
use crate::registry::Range;
use crate::special::{digamma, ln_gamma};

/// Range of estimated shapes of rates.
pub const SHAPES: Range = Range::closed(1e-6, 1e9);
/// Range of estimated shapes of precisions. A shape is half of the degrees of freedom, of which there must be at least
/// one.
const PRECISION_SHAPES: Range = Range::closed(0.5, 5e8);

/// One update of the rate of a Gamma base measure by the dual bound, which converges fast where components have fewer
/// values than twice the shape; elsewhere returns the rate unchanged. `n`: total values of `number` components, `sum`:
/// sum of their `2 a (b_0 - b_0^2 / b)`.
pub fn dual_rate((a, b): (f64, f64), start: (f64, f64), (n, number, sum): (f64, f64, f64)) -> f64 {
    if n <= 0.0 || n >= 2.0 * a * number {
        return b;
    }
    // Same equation as for scale matrices, with nu = 2 a and B = 2 b.
    let scale = dual_root(n - 2.0 * GUARD * a, GUARD * start.0 / start.1, 2.0 * sum);
    (0.5 * scale).max(least_rate(a, start.1, FLOOR))
}

/// The expected variance is the rate of precisions over this.
pub fn expected_excess(shape: f64) -> f64 {
    (shape - 1.0).max(shape / 3.0)
}

/// Lower limit of the rate for a shape, from the initial rate and the limit of scales (mathematics 10.6).
pub fn least_rate(shape: f64, start: f64, floor: f64) -> f64 {
    2.0 * floor * shape * start
}

/// Sums over posteriors Gamma(a, b) that share a base measure; the initial base measure counts [`GUARD`] times.
#[derive(Debug, Clone, Copy)]
pub struct GammaMoments {
    /// Number of posteriors.
    pub number: f64,
    /// sum a / b.
    pub mean: f64,
    /// sum E ln.
    pub log: f64,
}

impl GammaMoments {
    /// Sums of the initial base measure alone.
    pub fn of_start(shape: f64, rate: f64) -> Self {
        Self { number: GUARD, mean: GUARD * shape / rate, log: GUARD * (digamma(shape) - rate.ln()) }
    }

    /// Adds one posterior.
    pub fn add(&mut self, shape: f64, rate: f64) {
        self.number += 1.0;
        self.mean += shape / rate;
        self.log += digamma(shape) - rate.ln();
    }

    /// The rate that maximises the evidence for a given shape.
    pub fn rate(&self, shape: f64) -> f64 {
        shape * self.number / self.mean
    }
}

/// Estimates the shape shared by the base measures of all columns. Each column uses its given rate, or the optimal rate
/// for the shape if `rates` is `None`.
pub fn shape(now: f64, moments: &[GammaMoments], rates: Option<&[f64]>) -> f64 {
    let number: f64 = moments.iter().map(|column| column.number).sum();
    let excess = |column: &GammaMoments| column.number * (column.mean / column.number).ln() - column.log;
    match rates {
        None => {
            let mean_excess = moments.iter().map(excess).sum::<f64>() / number;
            maximum_at(now, PRECISION_SHAPES, |shape| log_less_digamma(shape) - mean_excess)
        }
        Some(rates) => {
            let target =
                moments.iter().zip(rates).map(|(column, rate)| column.number * rate.ln() + column.log).sum::<f64>();
            maximum_at(now, PRECISION_SHAPES, |shape| target / number - digamma(shape))
        }
    }
}

/// `ln a - digamma(a)`, which decreases from infinity to zero.
fn log_less_digamma(a: f64) -> f64 {
    if a > 1e6 { 0.5 / a + 1.0 / (12.0 * a * a) } else { a.ln() - digamma(a) }
}

/// KL(Gamma(a, b) || Gamma(a0, b0)), nats.
pub fn gamma_divergence((a, b): (f64, f64), (a0, b0): (f64, f64)) -> f64 {
    (a - a0) * digamma(a) - ln_gamma(a) + ln_gamma(a0) + a0 * (b / b0).ln() + a * (b0 - b) / b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_is_found_from_any_start() {
        for from in [1e-8, 1.0, 37.0, 1e8] {
            let shape = maximum_at(from, SHAPES, |x| log_less_digamma(x) - log_less_digamma(3.7));
            assert!((shape / 3.7 - 1.0).abs() < 1e-8, "{from} {shape}");
        }
    }

    #[test]
    fn the_difference_of_logarithm_and_digamma_is_smooth() {
        let (below, above) = (log_less_digamma(1e6), log_less_digamma(1e6 + 1.0));
        assert!((below / above - 1.0).abs() < 2e-6);
    }
}
