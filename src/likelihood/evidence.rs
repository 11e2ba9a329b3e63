//! Base measures estimated by the evidence of the components that share them (mathematics 10): what the families have
//! in common.

use crate::error::Result;
use crate::parameters::Parameters;
use crate::registry::Range;
use crate::special::{digamma, ln_gamma};
use crate::suffstats::Sufficient;

/// How many components the base measure of the start counts for (mathematics 10.1).
pub const GUARD: f64 = 0.001;
/// A component of fewer rows says nothing of the base measure.
const LEAST_COUNT: f64 = 1e-6;
/// Estimated scales stay above this fraction of that of the start times their degrees of freedom (mathematics 10.6).
pub const FLOOR: f64 = 1e-6;
/// Range of estimated shapes of rates.
pub const SHAPES: Range = Range::closed(1e-6, 1e9);
/// Range of estimated shapes of precisions, which are half of the degrees of freedom: at least one of these.
const PRECISION_SHAPES: Range = Range::closed(0.5, 5e8);

/// The base measure of a likelihood as a function of its components. Parameters are complete, in the data's units.
pub trait Evidence {
    /// KL(p_start || p) of the base measure of the start, by its parameters, from this one, nats.
    ///
    /// # Errors
    /// As [`crate::likelihood::Conjugate::log_marginal`].
    fn divergence_of(&self, start: &Parameters) -> Result<f64>;

    /// Parameters under which the components' log marginal likelihoods less [`GUARD`] times
    /// [`Evidence::divergence_of`] are together no lower, up to rounding.
    ///
    /// # Errors
    /// As [`crate::likelihood::Conjugate::log_marginal`].
    fn estimate(&self, given: &Given<'_>) -> Result<Parameters>;
}

/// What an estimate is made from.
#[derive(Debug, Clone, Copy)]
pub struct Given<'a> {
    /// The components.
    pub components: &'a [Sufficient<'a>],
    /// The parameters as they are.
    pub parameters: &'a Parameters,
    /// The parameters of the start.
    pub start: &'a Parameters,
    /// Names of those that are estimated.
    pub free: &'a [String],
}

impl<'a> Given<'a> {
    /// Whether a parameter is estimated.
    pub fn is_free(&self, name: &str) -> bool {
        self.free.iter().any(|free| free == name)
    }

    /// The components that say something of the base measure.
    pub fn occupied(&self) -> Vec<Sufficient<'a>> {
        self.components.iter().copied().filter(|own| own.count > LEAST_COUNT).collect()
    }
}

/// Where a function of x is largest within a range, found outwards from `from`, by the sign of its derivative (with
/// respect to x or ln x), which is taken to change once.
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
    // Regula falsi in the logarithm (Illinois).
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

/// The rate of a Gamma base measure by the other bound, which is quick where components have few values beside twice
/// the shape; elsewhere as it is. `n`: values of `number` components, `sum`: of their `2 a (b_0 - b_0^2 / b)`.
pub fn dual_rate((a, b): (f64, f64), start: (f64, f64), (n, number, sum): (f64, f64, f64)) -> f64 {
    if n <= 0.0 || n >= 2.0 * a * number {
        return b;
    }
    // As the scales of matrices, with nu = 2 a and B = 2 b.
    let scale = dual_root(n - 2.0 * GUARD * a, GUARD * start.0 / start.1, 2.0 * sum);
    (0.5 * scale).max(least_rate(a, start.1))
}

/// The least rate under a shape, from that of the start (mathematics 10.6).
pub fn least_rate(shape: f64, start: f64) -> f64 {
    2.0 * FLOOR * shape * start
}

/// What a component, or one of its columns, says of the precision of the prior mean: with `t = kappa_0 n / (kappa_0 +
/// n)` its log marginal likelihood falls by `slope / (1 + curve t)` for each unit of t (mathematics 10.2).
#[derive(Debug, Clone, Copy)]
pub struct MeanTerm {
    /// Rows.
    pub n: f64,
    /// Columns.
    pub columns: f64,
    /// As above.
    pub slope: f64,
    /// As above.
    pub curve: f64,
}

/// The precision of the prior mean of the largest evidence; `start` is that of the start, and `columns` its columns.
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

/// Sums over posteriors Gamma(a, b) that share a base measure, and over the start as [`GUARD`] of one.
#[derive(Debug, Clone, Copy)]
pub struct GammaMoments {
    /// How many.
    pub number: f64,
    /// sum a / b.
    pub mean: f64,
    /// sum E ln.
    pub log: f64,
}

impl GammaMoments {
    /// Of the start alone.
    pub fn of_start(shape: f64, rate: f64) -> Self {
        Self { number: GUARD, mean: GUARD * shape / rate, log: GUARD * (digamma(shape) - rate.ln()) }
    }

    /// Adds one more.
    pub fn add(&mut self, shape: f64, rate: f64) {
        self.number += 1.0;
        self.mean += shape / rate;
        self.log += digamma(shape) - rate.ln();
    }

    /// The rate of the largest evidence under a shape.
    pub fn rate(&self, shape: f64) -> f64 {
        shape * self.number / self.mean
    }
}

/// The shape that base measures share, one a column, each with the rate that goes with it, or, where they are given,
/// with these rates.
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

/// `ln a - digamma(a)`, which falls from infinity to zero.
fn log_less_digamma(a: f64) -> f64 {
    if a > 1e6 { 0.5 / a + 1.0 / (12.0 * a * a) } else { a.ln() - digamma(a) }
}

/// KL(Gamma(a, b) || Gamma(a0, b0)) of any two, nats.
pub fn gamma_divergence((a, b): (f64, f64), (a0, b0): (f64, f64)) -> f64 {
    (a - a0) * digamma(a) - ln_gamma(a) + ln_gamma(a0) + a0 * (b / b0).ln() + a * (b0 - b) / b
}

/// KL(N(m, v / kappa I) || N(m_0, v / kappa_0 I)), nats, in this many columns. `distance` is `|m - m_0|^2 / v`.
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
