//! A component whose log weight is a function of `|A (x - c)|^2`.

use std::sync::Arc;

use crate::special::{exp_of_nonpositive, ln_1p_of_positive};

/// How the log weight depends on the squared length q.
#[derive(Debug, Clone, PartialEq)]
pub enum Link {
    /// `constant - q / 2`.
    Gaussian,
    /// `constant - half * ln(1 + q)`.
    StudentT {
        /// Half the exponent of the density.
        half: f64,
    },
    /// A Student t distribution whose scale is not known, by a sum over scales.
    Mixed(Arc<Scales>),
}

/// A function of the squared length q: `constant + ln sum_i exp(c_i - half ln(1 + g_i q))`.
#[derive(Debug, Clone, PartialEq)]
pub struct Scales {
    /// Half the exponent of each density.
    pub half: f64,
    /// The log weight `c_i` of each scale, nats, and its factor `g_i` of q.
    pub terms: Vec<(f64, f64)>,
}

impl Scales {
    /// The log of the sum at q, nats.
    pub fn log_sum(&self, q: f64) -> f64 {
        let value = |&(weight, factor): &(f64, f64)| weight - self.half * ln_1p_of_positive(factor * q);
        let best = self.terms.iter().map(value).fold(f64::NEG_INFINITY, f64::max);
        if !best.is_finite() {
            return best;
        }
        let sum: f64 = self.terms.iter().map(|term| exp_of_nonpositive(value(term) - best)).sum();
        best + sum.ln()
    }
}

/// The log weight `constant - half ln(1 + q)`; minus infinity for an infinite q.
#[inline(always)]
pub fn student_t(constant: f64, half: f64, q: f64) -> f64 {
    // The logarithm without branches is for finite numbers.
    if q <= f64::MAX { constant - half * ln_1p_of_positive(q) } else { constant - q }
}

/// An upper limit of the squared lengths q for which [`student_t`] is at least `least`, if `epsilon` is the relative
/// rounding error of the numbers; negative if there are none.
#[inline(always)]
pub fn student_t_limit(constant: f64, half: f64, least: f64, epsilon: f64) -> f64 {
    let reach = (constant - least) / half;
    let rounding = 8.0 * epsilon * (1.0 + (constant.abs() + least.abs()) / half);
    let reach = reach + rounding;
    // An infinite limit excludes nothing.
    if reach >= 0.0 { (exp_of_nonpositive(-reach).recip() - 1.0) * (1.0 + 8.0 * epsilon) + epsilon } else { -1.0 }
}

/// One component: `q = scale^2 |factor (x - centre)|^2` and the function of q.
#[derive(Debug, Clone)]
pub struct Quadratic {
    /// Lower-triangular, column-major, (D, D).
    pub factor: Vec<f64>,
    /// Factor of `factor`.
    pub scale: f64,
    /// Centre, (D,), relative to the origin of the rows.
    pub centre: Vec<f64>,
    /// Constant, nats.
    pub constant: f64,
    /// Function from q to the log weight.
    pub link: Link,
}
