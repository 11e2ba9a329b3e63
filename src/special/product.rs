//! Logarithms of products of many numbers.

use std::f64::consts::LN_2;

/// Bits of the exponent, and those of an exponent of zero.
const EXPONENT: u64 = 0x7ff << 52;
const ONE: u64 = 1023 << 52;

/// Products of positive numbers, side by side, whose logarithms are taken once. They neither overflow nor underflow.
#[derive(Debug, Clone, Copy)]
pub struct LogProducts<const N: usize> {
    /// From 1 to 2.
    mantissas: [f64; N],
    exponents: [i64; N],
    /// Sums of the logarithms of factors without such a mantissa.
    rests: [f64; N],
}

impl<const N: usize> Default for LogProducts<N> {
    fn default() -> Self {
        Self { mantissas: [1.0; N], exponents: [0; N], rests: [0.0; N] }
    }
}

impl<const N: usize> LogProducts<N> {
    /// Multiplies each by a factor. A factor of zero makes its logarithm minus infinity, a negative one NaN.
    #[inline(always)]
    pub fn multiply(&mut self, mut factors: [f64; N]) {
        if !are_normal(&factors) {
            for (factor, rest) in factors.iter_mut().zip(&mut self.rests).filter(|(factor, _)| !are_normal(&[**factor]))
            {
                *rest += factor.ln();
                *factor = 1.0;
            }
        }
        for (index, factor) in factors.into_iter().enumerate() {
            let (mantissa, exponent) = split(factor);
            let (product, carry) = split(self.mantissas[index] * mantissa);
            self.mantissas[index] = product;
            self.exponents[index] += exponent + carry;
        }
    }

    /// Their logarithms.
    #[inline(always)]
    pub fn ln(&self) -> [f64; N] {
        std::array::from_fn(|index| {
            self.mantissas[index].ln() + self.exponents[index] as f64 * LN_2 + self.rests[index]
        })
    }
}

/// Whether all factors are positive, and neither subnormal nor infinite.
#[inline(always)]
#[allow(clippy::needless_bitwise_bool, reason = "without branches, so that it is vectorised")]
pub fn are_normal<const N: usize>(factors: &[f64; N]) -> bool {
    factors.iter().fold(true, |all, factor| all & (*factor >= f64::MIN_POSITIVE) & (*factor <= f64::MAX))
}

/// Mantissa and exponent of a positive normal number.
#[inline(always)]
fn split(value: f64) -> (f64, i64) {
    let bits = value.to_bits();
    (f64::from_bits(bits & !EXPONENT | ONE), (bits >> 52).cast_signed() - 1023)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_sums_of_logarithms() {
        let factors = [1e-320, f64::MIN_POSITIVE, 1e-300, 0.1, 1.0, 1.5, 2.0, 3.0, 1e300, f64::MAX];
        let (mut products, mut expected) = (LogProducts::<3>::default(), [0.0; 3]);
        for round in 0..1000 {
            let of: [f64; 3] = std::array::from_fn(|index| factors[(round * (index + 3) + round / 10) % factors.len()]);
            products.multiply(of);
            expected.iter_mut().zip(of).for_each(|(sum, factor)| *sum += factor.ln());
            for (found, sum) in products.ln().into_iter().zip(expected) {
                assert!((found - sum).abs() <= 1e-12 * (1.0 + sum.abs()), "{round}");
            }
        }
        products.multiply([0.0, -1.0, 1.0]);
        let [zero, negative, one] = products.ln();
        assert!(zero == f64::NEG_INFINITY && negative.is_nan() && one.is_finite());
    }
}
