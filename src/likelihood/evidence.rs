//! Estimation of base measures by the evidence of the components that share them (mathematics 10): code common to the
//! families.

use crate::error::Result;
use crate::parameters::Parameters;
use crate::registry::Range;
use crate::special::{digamma, ln_gamma};
use crate::suffstats::Sufficient;

/// Weight of the initial base measure in the estimate, in components (mathematics 10.1).
pub const GUARD: f64 = 0.001;
/// Components with fewer rows are ignored: they carry no information about the base measure.
const LEAST_COUNT: f64 = 1e-6;
/// Lower limit of estimated scales, as a fraction of the initial scale times its degrees of freedom (mathematics 10.6).
pub const FLOOR: f64 = 1e-6;
/// Range of estimated shapes of rates.
pub const SHAPES: Range = Range::closed(1e-6, 1e9);
/// Range of estimated shapes of precisions. A shape is half of the degrees of freedom, of which there must be at least
/// one.
const PRECISION_SHAPES: Range = Range::closed(0.5, 5e8);

/// Estimation of a likelihood's base measure from its components. Parameters are complete, in the data's units.
pub trait Evidence {
    /// KL(p_start || p) from the initial base measure, given by its parameters, to this one, nats.
    ///
    /// # Errors
    /// As [`crate::likelihood::Conjugate::log_marginal`].
    fn divergence_of(&self, start: &Parameters) -> Result<f64>;

    /// Returns parameters that do not lower the sum of the components' log marginal likelihoods minus [`GUARD`] times
    /// [`Evidence::divergence_of`], up to rounding.
    ///
    /// # Errors
    /// As [`crate::likelihood::Conjugate::log_marginal`].
    fn estimate(&self, given: &Given<'_>) -> Result<Parameters>;
}

/// Input of an estimate.
#[derive(Debug, Clone, Copy)]
pub struct Given<'a> {
    /// The components.
    pub components: &'a [Sufficient<'a>],
    /// Current parameters.
    pub parameters: &'a Parameters,
    /// Initial parameters.
    pub start: &'a Parameters,
    /// Names of the parameters to estimate.
    pub free: &'a [String],
}

impl<'a> Given<'a> {
    /// Whether a parameter is estimated.
    pub fn is_free(&self, name: &str) -> bool {
        self.free.iter().any(|free| free == name)
    }

    /// The components with enough rows to inform the base measure.
    pub fn occupied(&self) -> Vec<Sufficient<'a>> {
        self.components.iter().copied().filter(|own| own.count > LEAST_COUNT).collect()
    }
}

/// Maximises a function of x within a range, searching outwards from `from` by the sign of its derivative (with respect
/// to x or ln x). The derivative is assumed to change sign once.
pub fn maximum_at(from: f64, range: Range, mut derivative: impl FnMut(f64) -> f64) -> f64 {
    let (least, greatest) = (range.least.ln(), range.greatest.ln());
    let mut near = from.ln().clamp(least, greatest);
    let mut at_near = derivative(near.exp());
    let direction = if at_near > 0.0 { 1.0 } else { -1.0 };
    let mut step = 0.25;
    let (mut far, mut at_far) = loop {
        let far = (near + direction * step).clamp(least, greatest);
        if far == near {
            return near.exp();
        }
        let at_far = derivative(far.exp());
        if at_far.is_nan() || direction * at_far <= 0.0 {
            break (far, at_far);
        }
        (near, at_near, step) = (far, at_far, 2.0 * step);
    };
    if at_far.is_nan() {
        return near.exp();
    }
    // Regula falsi on the logarithm (Illinois variant).
    for _ in 0..100 {
        if (far - near).abs() <= 1e-10 * (1.0 + near.abs()) {
            break;
        }
        let share = (at_near / (at_near - at_far)).clamp(1e-3, 1.0 - 1e-3);
        let middle = near + share * (far - near);
        let at_middle = derivative(middle.exp());
        if direction * at_middle > 0.0 {
            (near, at_near, at_far) = (middle, at_middle, 0.5 * at_far);
        } else {
            (far, at_far, at_near) = (middle, at_middle, 0.5 * at_near);
        }
    }
    near.exp()
}

/// The positive root of `p b^2 + m b = q`, for p > 0 and q >= 0.
pub fn dual_root(m: f64, p: f64, q: f64) -> f64 {
    let root = (m * m + 4.0 * p * q).sqrt();
    if m > 0.0 { 2.0 * q / (m + root) } else { (root - m) / (2.0 * p) }
}

/// One update of the rate of a Gamma base measure by the dual bound, which converges fast where components have fewer
/// values than twice the shape; elsewhere returns the rate unchanged. `n`: total values of `number` components, `sum`:
/// sum of their `2 a (b_0 - b_0^2 / b)`.
pub fn dual_rate((a, b): (f64, f64), start: (f64, f64), (n, number, sum): (f64, f64, f64)) -> f64 {
    if n <= 0.0 || n >= 2.0 * a * number {
        return b;
    }
    // Same equation as for scale matrices, with nu = 2 a and B = 2 b.
    let scale = dual_root(n - 2.0 * GUARD * a, GUARD * start.0 / start.1, 2.0 * sum);
    (0.5 * scale).max(least_rate(a, start.1))
}

/// Lower limit of the rate for a shape, from the initial rate (mathematics 10.6).
pub fn least_rate(shape: f64, start: f64) -> f64 {
    2.0 * FLOOR * shape * start
}

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
        let term = |own: &MeanTerm| {
            let (sum, n) = (kappa + own.n, own.n);
            let per_t = own.slope / (1.0 + own.curve * kappa * n / sum);
            0.5 * own.columns * n / (kappa * sum) - 0.5 * per_t * (n / sum).powi(2)
        };
        terms.iter().map(term).sum::<f64>() - 0.5 * GUARD * columns * (start.recip() - kappa.recip())
    };
    let most = (terms.len() as f64 + GUARD) * start / GUARD;
    maximum_at(now, Range::closed(1e-9, most), derivative)
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
    let number: f64 = moments.iter().map(|own| own.number).sum();
    let excess = |own: &GammaMoments| own.number * (own.mean / own.number).ln() - own.log;
    match rates {
        None => {
            let mean_excess = moments.iter().map(excess).sum::<f64>() / number;
            maximum_at(now, PRECISION_SHAPES, |shape| log_less_digamma(shape) - mean_excess)
        }
        Some(rates) => {
            let target = moments.iter().zip(rates).map(|(own, rate)| own.number * rate.ln() + own.log).sum::<f64>();
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

/// KL(N(m, v / kappa I) || N(m_0, v / kappa_0 I)) in `columns` columns, nats. `distance` is `|m - m_0|^2 / v`.
pub fn mean_divergence(columns: f64, kappa: f64, kappa_0: f64, distance: f64) -> f64 {
    let ratio = kappa_0 / kappa;
    0.5 * columns * (ratio - 1.0 - ratio.ln()) + 0.5 * kappa_0 * distance
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_is_found_from_anywhere_and_at_the_ends() {
        for from in [1e-8, 1.0, 37.0, 1e8] {
            let found = maximum_at(from, SHAPES, |x| 40.0_f64.ln() - x.ln());
            assert!((found / 40.0 - 1.0).abs() < 1e-8, "{from} {found}");
            let shape = maximum_at(from, SHAPES, |x| log_less_digamma(x) - log_less_digamma(3.7));
            assert!((shape / 3.7 - 1.0).abs() < 1e-8, "{from} {shape}");
        }
        assert!((maximum_at(1.0, SHAPES, |_| 1.0) / 1e9 - 1.0).abs() < 1e-9);
        assert!((maximum_at(1.0, SHAPES, |_| -1.0) / 1e-6 - 1.0).abs() < 1e-9);
        assert_eq!(maximum_at(2.0, SHAPES, |x| if x > 2.0 { f64::NAN } else { 1.0 }), 2.0);
    }

    #[test]
    fn the_difference_of_logarithm_and_digamma_is_smooth() {
        let (below, above) = (log_less_digamma(1e6), log_less_digamma(1e6 + 1.0));
        assert!((below / above - 1.0).abs() < 2e-6);
    }
}
