//! `exp` and `ln` without branches or calls, so that loops over many numbers are vectorised. They use only plain
//! products and sums, so that every instruction set gives the same bits.

/// `ln 2` in two parts; products of the first part with integers up to 2^11 are exact.
const LN_TWO_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
const LN_TWO_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// `exp(x)` for `x <= 0`, relative error below 1e-15; zero below -708, where it would lose digits, and for NaN.
#[inline(always)]
pub fn exp_of_nonpositive(x: f64) -> f64 {
    /// Adding this to a number leaves the nearest integer in the lowest bits.
    const TO_WHOLE: f64 = 6_755_399_441_055_744.0;
    let shifted = x * std::f64::consts::LOG2_E + TO_WHOLE;
    let whole = shifted - TO_WHOLE;
    let rest = (x - whole * LN_TWO_HIGH) - whole * LN_TWO_LOW;
    // Taylor series for |rest| <= ln(2) / 2, where the first omitted term is below 5e-18.
    let mut series = 1.0 / 6_227_020_800.0;
    for inverse in [
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ] {
        series = series * rest + inverse;
    }
    let scaled = f64::from_bits(series.to_bits().wrapping_add(shifted.to_bits() << 52));
    if x >= -708.0 { scaled } else { 0.0 }
}

/// `ln(x)` for finite `x > 0`, error below 1e-15 of the larger of 1 and the result.
#[inline(always)]
pub fn ln_of_positive(x: f64) -> f64 {
    const SQRT_HALF: u64 = std::f64::consts::FRAC_1_SQRT_2.to_bits();
    let subnormal = x < f64::MIN_POSITIVE;
    let normal = if subnormal { x * 18_014_398_509_481_984.0 } else { x };
    // x = 2^exponent m with m from sqrt(1/2) to sqrt(2).
    let exponent = normal.to_bits().wrapping_sub(SQRT_HALF).cast_signed() >> 52;
    let m = f64::from_bits(normal.to_bits().wrapping_sub((exponent << 52).cast_unsigned()));
    let exponent = exponent as f64 - if subnormal { 54.0 } else { 0.0 };
    // ln m = 2 artanh((m - 1) / (m + 1)); the first omitted term is below 2e-17.
    let s = (m - 1.0) / (m + 1.0);
    let square = s * s;
    let mut series = 2.0 / 19.0;
    for term in [2.0 / 17.0, 2.0 / 15.0, 2.0 / 13.0, 2.0 / 11.0, 2.0 / 9.0, 2.0 / 7.0, 2.0 / 5.0, 2.0 / 3.0] {
        series = series * square + term;
    }
    exponent * LN_TWO_HIGH + (2.0 * s + (s * square * series + exponent * LN_TWO_LOW))
}

/// `ln(1 + x)` for finite `x >= 0`, relative error below 2e-15.
#[inline(always)]
pub fn ln_1p_of_positive(x: f64) -> f64 {
    let sum = 1.0 + x;
    // With what rounding took from the sum.
    ln_of_positive(sum) + (x - (sum - 1.0)) / sum
}

/// `tanh(x)`, error below 1e-15.
#[inline(always)]
pub fn tanh(x: f64) -> f64 {
    let small = exp_of_nonpositive(-2.0 * x.abs());
    ((1.0 - small) / (1.0 + small)).copysign(x)
}

/// `exp(digamma(x))` for `x > 0`, relative error below 1e-9; zero where it underflows, and at zero.
#[inline(always)]
pub fn exp_digamma(x: f64) -> f64 {
    let (above, below) = digamma_parts(x);
    above * exp_of_nonpositive(-below)
}

/// `digamma(x)` for `x > 0`, error below 1e-9 of the larger of 1 and the result.
#[inline(always)]
pub fn digamma_of_positive(x: f64) -> f64 {
    let (above, below) = digamma_parts(x);
    ln_of_positive(above) - below
}

/// `exp(digamma(x + 6))`, by its series in x + 11/2, and `digamma(x + 6) - digamma(x)`.
#[inline(always)]
fn digamma_parts(x: f64) -> (f64, f64) {
    let mut below = 0.0;
    for i in 0..6 {
        below += 1.0 / (x + f64::from(i));
    }
    let y = x + 5.5;
    let inverse = 1.0 / y;
    let square = inverse * inverse;
    let series = 1.0 / 24.0 + square * (-37.0 / 5760.0 + square * (10_313.0 / 2_903_040.0 - square * 0.003_953_6));
    (y + inverse * series, below)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn exp_is_that_of_the_standard_library(x in prop_oneof![-708.0..0.0, -1.0..0.0, -1e-9..0.0]) {
            let x: f64 = x;
            prop_assert!((exp_of_nonpositive(x) / x.exp() - 1.0).abs() < 1e-15);
        }

        #[test]
        fn ln_1p_is_that_of_the_standard_library(x in prop_oneof![0.0..1.0, 0.0..1e-9, 0.0..1e300, 0.0..1e-307]) {
            let x: f64 = x;
            prop_assert!((ln_1p_of_positive(x) - x.ln_1p()).abs() <= 2e-15 * x.ln_1p(), "{x:e}");
        }

        #[test]
        fn tanh_is_that_of_the_standard_library(x in prop_oneof![-1e3..1e3, -1.0..1.0, -1e-9..1e-9]) {
            let x: f64 = x;
            prop_assert!((tanh(x) - x.tanh()).abs() < 1e-15, "{x:e}");
        }

        #[test]
        fn exp_digamma_is_that_of_both_functions(x in prop_oneof![2e-3..1.0, 1.0..20.0, 20.0..1e9]) {
            let x: f64 = x;
            let expected = crate::special::digamma(x).exp();
            prop_assert!((exp_digamma(x) / expected - 1.0).abs() < 1e-9, "{} {}", exp_digamma(x), expected);
            let expected = crate::special::digamma(x);
            prop_assert!((digamma_of_positive(x) - expected).abs() < 1e-9 * expected.abs().max(1.0));
        }

        #[test]
        fn ln_is_that_of_the_standard_library(bits in 1..f64::MAX.to_bits(), near_one in 0.5..2.0) {
            for x in [f64::from_bits(bits), near_one] {
                prop_assert!((ln_of_positive(x) - x.ln()).abs() < 1e-15 * x.ln().abs().max(1.0), "{x:e}");
            }
        }
    }

    #[test]
    fn ends_of_the_range() {
        assert_eq!(exp_of_nonpositive(0.0), 1.0);
        assert_eq!(exp_of_nonpositive(-0.0), 1.0);
        assert!(exp_of_nonpositive(-708.0) > f64::MIN_POSITIVE);
        for x in [-708.001, -1e300, f64::NEG_INFINITY, f64::NAN] {
            assert_eq!(exp_of_nonpositive(x), 0.0, "{x}");
        }
        assert_eq!(ln_of_positive(1.0), 0.0);
        for x in [f64::from_bits(1), f64::MIN_POSITIVE, f64::MAX, 0.5, 2.0] {
            assert!((ln_of_positive(x) - x.ln()).abs() <= 1e-15 * x.ln().abs(), "{x:e}");
        }
    }
}
