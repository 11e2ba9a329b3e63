//! A component whose log weight is a function of `|A (x - c)|^2`.

use std::sync::Arc;

use crate::simd::Scalar;
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

/// Which squared lengths may reach a score, where all components are Student t with the same exponent: those with
/// `1 + q <= factor reach`. The factor of a component and the reach of a threshold are rounded up.
#[derive(Debug, Clone)]
pub struct TailReach<F> {
    half: f64,
    largest: f64,
    /// `exp((constant - largest) / half)`, (K,).
    factors: Vec<F>,
}

impl<F: Scalar> TailReach<F> {
    /// That of components; `None` if they have other links.
    pub fn of(components: &[Quadratic]) -> Option<Self> {
        let Link::StudentT { half } = components.first()?.link else { return None };
        if components.iter().any(|component| component.link != Link::StudentT { half }) {
            return None;
        }
        let largest = components.iter().map(|component| component.constant).fold(f64::NEG_INFINITY, f64::max);
        let rounding = |sizes: f64| 1.0 + 8.0 * F::EPSILON.to_f64() * (1.0 + sizes / half);
        let factor = |Quadratic { constant, .. }: &Quadratic| {
            ((constant - largest) / half).exp() * rounding(constant.abs() + largest.abs())
        };
        let factors = components.iter().map(|component| F::from_f64(factor(component))).collect();
        Some(Self { half, largest, factors })
    }

    /// Half the exponent.
    pub fn half(&self) -> f64 {
        self.half
    }

    /// The factor of a component.
    #[inline(always)]
    pub fn factor(&self, component: usize) -> F {
        self.factors[component]
    }

    /// The reach of a threshold; infinite for minus infinity.
    #[inline(always)]
    pub fn reach(&self, least: f64) -> f64 {
        let fall = (self.largest - least) / self.half;
        let near = exp_of_nonpositive(-fall.abs());
        let reach = if fall >= 0.0 { near.recip() } else { near };
        reach * (1.0 + 8.0 * F::EPSILON.to_f64() * (1.0 + least.abs() / self.half))
    }
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
