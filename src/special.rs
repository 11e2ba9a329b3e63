//! Special functions of positive arguments: `ln Gamma`, digamma, their multivariate forms, and log-sum-exp.
//!
//! Relative error below 1e-13 for arguments in [1e-8, 1e12]; where a function changes sign (`ln_gamma` keeps its
//! relative accuracy at 1 and 2; `digamma` near 1.46; `ln_beta` and the differences where they cross zero) the error is
//! that small in absolute terms. Arguments below zero give NaN.

mod elementary;
mod last;
mod normal;
mod product;
mod quantile;
mod sums;

use std::sync::LazyLock;

pub use elementary::{digamma_of_positive, exp_digamma, exp_of_nonpositive, ln_1p_of_positive, ln_of_positive, tanh};
pub use last::Last;
pub use normal::normal_quantile;
pub use product::{LogProducts, are_normal};
pub use quantile::quantile;
pub use sums::{
    sum_of_digamma_differences, sum_of_ln_gamma_differences, weighted_digamma_differences,
    weighted_ln_gamma_differences,
};

/// `ln(2 pi) / 2`.
const HALF_LN_TWO_PI: f64 = 0.918_938_533_204_672_8;
/// `ln pi`.
const LN_PI: f64 = 1.144_729_885_849_400_2;
/// From this argument on, the asymptotic series with [`STIRLING`] or [`DIGAMMA_SERIES`] are exact to rounding.
const ASYMPTOTIC: f64 = 10.0;

/// Stirling's series, `B_2k / (2k (2k - 1))` for k = 1, 2, ... (NIST DLMF 5.11.1).
const STIRLING: [f64; 8] = [
    1.0 / 12.0,
    -1.0 / 360.0,
    1.0 / 1260.0,
    -1.0 / 1680.0,
    1.0 / 1188.0,
    -691.0 / 360_360.0,
    1.0 / 156.0,
    -3617.0 / 122_400.0,
];

/// `B_2k / (2k)` for k = 1, 2, ... (NIST DLMF 5.11.2).
const DIGAMMA_SERIES: [f64; 8] =
    [1.0 / 12.0, -1.0 / 120.0, 1.0 / 252.0, -1.0 / 240.0, 1.0 / 132.0, -691.0 / 32_760.0, 1.0 / 12.0, -3617.0 / 8160.0];

/// `ln Gamma(2 + x) = sum_k LN_GAMMA_AT_TWO[k - 1] x^k`: `1 - euler_gamma`, then `(-1)^k (zeta(k) - 1) / k` (NIST DLMF
/// 5.7.3). The ratio of the terms is at most 1/4 for |x| <= 1/2.
const LN_GAMMA_AT_TWO: [f64; 27] = [
    0.422_784_335_098_467_1,
    0.322_467_033_424_113_2,
    -0.067_352_301_053_198_1,
    0.020_580_808_427_784_546,
    -0.007_385_551_028_673_986,
    0.002_890_510_330_741_523_4,
    -0.001_192_753_911_703_261,
    5.096_695_247_430_425e-4,
    -2.231_547_584_535_793_9e-4,
    9.945_751_278_180_853e-5,
    -4.492_623_673_813_314e-5,
    2.050_721_277_567_069e-5,
    -9.439_488_275_268_397e-6,
    4.374_866_789_907_488e-6,
    -2.039_215_753_801_366e-6,
    9.551_412_130_407_42e-7,
    -4.492_469_198_764_566e-7,
    2.120_718_480_555_466_5e-7,
    -1.004_322_482_396_81e-7,
    4.769_810_169_363_98e-8,
    -2.271_109_460_894_316_4e-8,
    1.083_865_921_489_695_5e-8,
    -5.183_475_041_970_047e-9,
    2.483_674_543_802_478_5e-9,
    -1.192_140_140_586_091_2e-9,
    5.731_367_241_678_862e-10,
    -2.759_522_885_124_233_4e-10,
];

/// Horner's rule, lowest power first.
#[inline]
fn polynomial(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, &c| sum * x + c)
}

/// `ln Gamma(y) - (y - 1/2) ln y + y - ln(2 pi) / 2` for y >= [`ASYMPTOTIC`].
#[inline]
fn stirling_correction(y: f64) -> f64 {
    let inverse = 1.0 / y;
    inverse * polynomial(&STIRLING, inverse * inverse)
}

/// `ln Gamma(2 + x)` for |x| <= 1/2.
#[inline]
fn ln_gamma_at_two(x: f64) -> f64 {
    x * polynomial(&LN_GAMMA_AT_TWO, x)
}

/// `ln Gamma(y)` for positive `y`; infinity at zero and NaN below.
pub fn ln_gamma(y: f64) -> f64 {
    if y >= ASYMPTOTIC {
        return (y - 0.5) * (y.ln() - 1.0) + (HALF_LN_TWO_PI - 0.5) + stirling_correction(y);
    }
    if y >= 2.5 {
        // All factors y - 1, y - 2, ... are exact and all logarithms positive, so there is no cancellation.
        let mut rest = y;
        let mut product = 1.0;
        while rest >= 2.5 {
            rest -= 1.0;
            product *= rest;
        }
        return product.ln() + ln_gamma_at_two(rest - 2.0);
    }
    if y >= 1.5 {
        return ln_gamma_at_two(y - 2.0);
    }
    if y >= 0.5 {
        let x = y - 1.0;
        return ln_gamma_at_two(x) - x.ln_1p();
    }
    // Gamma(y) = Gamma(2 + y) / (y (1 + y)); NaN falls through to here and stays NaN.
    ln_gamma_at_two(y) - y.ln_1p() - y.ln()
}

/// `digamma(y) = d/dy ln Gamma(y)` for positive `y`; minus infinity at zero and NaN below.
pub fn digamma(y: f64) -> f64 {
    if y < 0.0 {
        return f64::NAN;
    }
    let mut shifted = y;
    let mut below = 0.0;
    while shifted < ASYMPTOTIC {
        below += 1.0 / shifted;
        shifted += 1.0;
    }
    let inverse = 1.0 / shifted;
    let square = inverse * inverse;
    shifted.ln() - 0.5 * inverse - square * polynomial(&DIGAMMA_SERIES, square) - below
}

/// `ln x!` for an integer.
pub fn ln_factorial(x: f64) -> f64 {
    static SMALL: LazyLock<Vec<f64>> = LazyLock::new(|| (0..256).map(|x| ln_gamma(f64::from(x) + 1.0)).collect());
    // Numbers other than small integers use the general formula.
    match SMALL.get(x as usize) {
        Some(&value) if x >= 0.0 && x.fract() == 0.0 => value,
        _ => ln_gamma(x + 1.0),
    }
}

/// `digamma(a + delta) - digamma(a)` for `a > 0` and `delta >= 0`, to full accuracy even if `delta` is far smaller than
/// `a`.
pub fn digamma_difference(a: f64, delta: f64) -> f64 {
    let mut base = a;
    let mut below = 0.0;
    while base < ASYMPTOTIC {
        below += delta / (base + delta) / base;
        base += 1.0;
    }
    let (start, end) = (1.0 / base, 1.0 / (base + delta));
    let series = |inverse: f64| inverse * inverse * polynomial(&DIGAMMA_SERIES, inverse * inverse);
    ln_ratio(base, delta) + 0.5 * delta * start * end + (series(start) - series(end)) + below
}

/// `ln Beta(a, b) = ln Gamma(a) + ln Gamma(b) - ln Gamma(a + b)`.
pub fn ln_beta(a: f64, b: f64) -> f64 {
    let (small, large) = if a < b { (a, b) } else { (b, a) };
    if small < ASYMPTOTIC {
        return ln_gamma(small) - ln_gamma_difference(large, small);
    }
    let sum = small + large;
    let corrections = stirling_correction(small) + stirling_correction(large) - stirling_correction(sum);
    -(large - 0.5) * (small / large).ln_1p() + small * (small / sum).ln() - 0.5 * small.ln()
        + HALF_LN_TWO_PI
        + corrections
}

/// `ln Gamma(a + delta) - ln Gamma(a)` for `a > 0` and `a + delta > 0`, to full accuracy even if both are large or
/// `delta` is tiny.
pub fn ln_gamma_difference(a: f64, delta: f64) -> f64 {
    let mut base = a;
    let mut below = 0.0;
    if a.min(a + delta) <= 0.0 {
        return f64::NAN;
    }
    while base.min(base + delta) < ASYMPTOTIC {
        below += ln_ratio(base, delta);
        base += 1.0;
    }
    let end = base + delta;
    (base - 0.5) * ln_ratio(base, delta) + delta * (end.ln() - 1.0) + stirling_correction_difference(base, delta)
        - below
}

/// `ln((a + delta) / a)`.
#[inline]
fn ln_ratio(a: f64, delta: f64) -> f64 {
    let ratio = delta / a;
    // For delta in [-a, -a / 2] the sum a + delta is exact, but 1 + delta / a has the rounding error of the division.
    if ratio < -0.5 { ((a + delta) / a).ln() } else { ratio.ln_1p() }
}

/// `stirling_correction(a + delta) - stirling_correction(a)`, with the factor `delta` extracted.
fn stirling_correction_difference(a: f64, delta: f64) -> f64 {
    let start = 1.0 / a;
    let end = 1.0 / (a + delta);
    // (end^n - start^n) / (end - start) for n = 1, 3, 5, ..., from quotient_(n+1) = end * quotient_n + start^n.
    let mut quotient = 1.0;
    let mut power = start;
    let mut sum = 0.0;
    for coefficient in STIRLING {
        sum += coefficient * quotient;
        for _ in 0..2 {
            quotient = end * quotient + power;
            power *= start;
        }
    }
    -delta * start * end * sum
}

/// `ln Gamma_D(y) = D (D - 1) / 4 ln pi + sum_i ln Gamma(y + (1 - i) / 2)`, i = 1..D, for `y > (D - 1) / 2`
/// (Muirhead 1982, theorem 2.1.12).
pub fn ln_multivariate_gamma(dimension: usize, y: f64) -> f64 {
    let d = dimension as f64;
    let terms: f64 = (0..dimension).map(|i| ln_gamma(y - 0.5 * i as f64)).sum();
    0.25 * d * (d - 1.0) * LN_PI + terms
}

/// `digamma_D(y) = sum_i digamma(y + (1 - i) / 2)`, i = 1..D: the derivative of [`ln_multivariate_gamma`].
pub fn multivariate_digamma(dimension: usize, y: f64) -> f64 {
    (0..dimension).map(|i| digamma(y - 0.5 * i as f64)).sum()
}

/// `ln sum_i exp(values[i])`; minus infinity for no values, NaN if one is NaN.
pub fn log_sum_exp(values: &[f64]) -> f64 {
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest.is_infinite() {
        // There is no finite value to subtract, and `max` has skipped any NaN.
        return if values.iter().any(|value| value.is_nan()) { f64::NAN } else { largest };
    }
    largest + values.iter().map(|&value| (value - largest).exp()).sum::<f64>().ln()
}

/// `x ln x`, zero at zero.
#[inline]
pub fn x_ln_x(x: f64) -> f64 {
    if x == 0.0 { 0.0 } else { x * x.ln() }
}

#[cfg(test)]
mod tests;
