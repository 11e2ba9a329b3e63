//! Classes as numbers that are compared a vector of rows at a time.

use crate::component::Class;
use crate::simd::Scalar;

/// A class as a number that a float represents exactly, because there are no more classes than components.
#[inline(always)]
pub(super) fn number_of<F: Scalar>(class: Class) -> F {
    F::from_f64(class.map_or(-1.0, f64::from))
}
