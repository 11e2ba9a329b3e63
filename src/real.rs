//! The number types of the data: `f32` and `f64`.

use std::fmt::{Debug, Display, LowerExp};
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

/// A floating-point type that rows may have. Statistics, bounds and marginals are always `f64`.
pub trait Real:
    Copy
    + Default
    + Debug
    + Display
    + LowerExp
    + PartialOrd
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + Sum
    + 'static
{
    /// Zero.
    const ZERO: Self;
    /// The distance from 1 to the next number.
    const EPSILON: Self;
    /// Infinity.
    const INFINITY: Self;
    /// Minus infinity.
    const NEG_INFINITY: Self;
    /// The name of the type in NumPy.
    const NAME: &'static str;

    /// Converts to the nearest value of this type.
    fn from_f64(value: f64) -> Self;
    /// Converts to `f64`, exactly.
    fn to_f64(self) -> f64;
    /// Whether it is neither infinite nor NaN.
    fn is_finite(self) -> bool;
    /// Whether it is NaN, which marks a missing value.
    fn is_nan(self) -> bool;
    /// `ln(1 + self)`.
    #[must_use]
    fn ln_1p(self) -> Self;
}

/// Displays a number without long runs of zeros.
pub struct Plain<T>(pub T);

impl<T: Real> Display for Plain<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(value) = *self;
        let size = value.to_f64().abs();
        if size == 0.0 || !size.is_finite() || (1e-4..1e16).contains(&size) {
            write!(f, "{value}")
        } else {
            write!(f, "{value:e}")
        }
    }
}

macro_rules! impl_real {
    ($t:ident, $name:literal) => {
        impl Real for $t {
            const ZERO: Self = 0.0;
            const EPSILON: Self = $t::EPSILON;
            const INFINITY: Self = $t::INFINITY;
            const NEG_INFINITY: Self = $t::NEG_INFINITY;
            const NAME: &'static str = $name;

            #[inline]
            fn from_f64(value: f64) -> Self {
                value as $t
            }
            #[inline]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            #[inline]
            fn is_finite(self) -> bool {
                $t::is_finite(self)
            }
            #[inline]
            fn is_nan(self) -> bool {
                $t::is_nan(self)
            }
            #[inline]
            fn ln_1p(self) -> Self {
                $t::ln_1p(self)
            }
        }
    };
}

impl_real!(f32, "float32");
impl_real!(f64, "float64");
