//! Estimation of base measures by the evidence of the components that share them (mathematics 10): code common to the
//! families.

use crate::error::Result;
use crate::likelihood::ridge::{FLOOR, LEAST_SHARE};
use crate::parameters::Parameters;
use crate::registry::Range;
use crate::suffstats::Sufficient;

/// Weight of the initial base measure in the estimate, in components (mathematics 10.1).
pub const GUARD: f64 = 0.001;
/// Components with fewer rows are ignored: they carry no information about the base measure.
const LEAST_COUNT: f64 = 1e-6;
/// How to limit a parameter if the base measure must not become more certain about the components than the initial one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caution {
    /// It keeps its initial value.
    Kept,
    /// It may not exceed its initial value, a number.
    Capped,
}

/// Estimation of a likelihood's base measure from its components. Parameters are complete, in the data's units.
pub trait Evidence {
    /// The parameters that make a base measure certain about the widths and positions of components. The estimates of
    /// all other parameters have no limit.
    fn cautions(&self) -> Vec<(String, Caution)> {
        Vec::new()
    }

    /// Bound on the rounding error of the terms of the bound that depend on estimated parameters, nats, for
    /// `n_components` components with `mass` rows. `start`: the initial parameters.
    fn rounding(&self, _start: &Parameters, _mass: f64, _n_components: usize) -> f64 {
        0.0
    }

    /// KL(p_start || p) from the initial base measure, given by its parameters, to this one, nats.
    fn divergence_of(&self, start: &Parameters) -> Result<f64>;

    /// Returns parameters that do not lower the sum of the components' log marginal likelihoods minus [`GUARD`] times
    /// [`Evidence::divergence_of`], up to rounding.
    fn estimate(&self, given: &Given<'_>) -> Result<Parameters>;

    /// Parameters of a base measure that is less certain of the components than `given.parameters` are (mathematics
    /// 10.8). Only estimated parameters differ. `None` if there is no such base measure. The components are not needed.
    fn loose(&self, _given: &Given<'_>, _by: Loosening<'_>) -> Result<Option<Parameters>> {
        Ok(None)
    }
}

/// How much less certain a base measure becomes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Loosening<'a> {
    /// Expected variances, or pseudo-counts, are divided by these: one for all columns, or one for each.
    pub divisors: &'a [f64],
    /// The certainty about variances (degrees of freedom, shape) as a multiple of that of the initial base measure.
    /// Pseudo-counts have no other certainty than their sum.
    pub certainty: f64,
    /// Maximum precision of the prior mean, in rows.
    pub precision: f64,
}

impl Loosening<'_> {
    /// The divisor of a column.
    pub fn divisor(&self, column: usize) -> f64 {
        self.divisors[if self.divisors.len() == 1 { 0 } else { column }]
    }

    /// The divisor of all columns, if there is only one.
    pub fn common_divisor(&self) -> Option<f64> {
        if let [divisor] = *self.divisors { Some(divisor) } else { None }
    }
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

    /// A precision of the prior mean that lets components be far apart.
    pub fn loose_precision(&self, now: f64, by: Loosening<'_>) -> f64 {
        if self.is_free("mean_precision") { now.min(by.precision) } else { now }
    }

    /// Lower limit of estimated scales, as a fraction of the initial scale times its degrees of freedom. A smaller one
    /// would be below the rounding error of the rows' squares (mathematics 10.6).
    pub fn floor(&self) -> f64 {
        let mass: f64 = self.components.iter().map(|component| component.count).sum();
        FLOOR.max(LEAST_SHARE * mass)
    }

    /// The components with enough rows to inform the base measure.
    pub fn occupied(&self) -> Vec<Sufficient<'a>> {
        self.components.iter().copied().filter(|component| component.count > LEAST_COUNT).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maximum_is_found_from_any_start_and_at_the_ends() {
        let range = Range::closed(1e-6, 1e9);
        for from in [1e-8, 1.0, 37.0, 1e8] {
            let found = maximum_at(from, range, |x| 40.0_f64.ln() - x.ln());
            assert!((found / 40.0 - 1.0).abs() < 1e-8, "{from} {found}");
        }
        assert!((maximum_at(1.0, range, |_| 1.0) / 1e9 - 1.0).abs() < 1e-9);
        assert!((maximum_at(1.0, range, |_| -1.0) / 1e-6 - 1.0).abs() < 1e-9);
        assert_eq!(maximum_at(2.0, range, |x| if x > 2.0 { f64::NAN } else { 1.0 }), 2.0);
    }
}
