//! Sums over many counts of differences of gamma or digamma functions, eight counts at a time and without branches or
//! calls, so that they are vectorised. For the terms of a bound, not for tiny differences: the error of a term is below
//! 1e-14 times the larger of 1 and the term.

use pulp::{Simd, WithSimd};

use crate::simd::{Instructions, sum};
use crate::special::elementary::ln_of_positive;
use crate::special::{ASYMPTOTIC, DIGAMMA_SERIES, STIRLING, digamma_difference, ln_gamma_difference};

/// Number of counts processed together.
const TOGETHER: usize = 8;
/// Arguments for which a few shifts reach the asymptotic range, and no product overflows.
const ARGUMENTS: std::ops::Range<f64> = 1e-30..16.0;
/// Largest count whose products do not overflow.
const MOST: f64 = 1e12;

/// `sum_i {digamma(a + n_i) - digamma(a)}` over counts `n_i >= 0`.
pub fn sum_of_digamma_differences(a: f64, counts: &[f64]) -> f64 {
    if !(ARGUMENTS.start..ASYMPTOTIC).contains(&a) {
        return counts.iter().map(|n| digamma_difference(a, *n)).sum();
    }
    Instructions::widest().run(Digammas { a, counts })
}

/// `sum_i w_i {digamma(a_i + n_i) - digamma(a_i)}` over positive counts.
pub fn weighted_digamma_differences(a: &[f64], counts: &[f64], weights: &[f64]) -> f64 {
    Instructions::widest().run(WeightedDigammas { a, counts, weights })
}

/// `sum_i {ln Gamma(a_i + n_i) - ln Gamma(a_i)}` over counts; negative counts are treated as zero.
pub fn sum_of_ln_gamma_differences(a: &[f64], counts: &[f64]) -> f64 {
    Instructions::widest().run(LnGammas { a, counts, weights: None })
}

/// The same with a weight for each term.
pub fn weighted_ln_gamma_differences(a: &[f64], counts: &[f64], weights: &[f64]) -> f64 {
    Instructions::widest().run(LnGammas { a, counts, weights: Some(weights) })
}

/// `x` times a polynomial of its square.
#[inline(always)]
fn odd<const N: usize>(coefficients: &[f64; N], x: f64) -> f64 {
    let square = x * x;
    let mut value = 0.0;
    for power in 0..N {
        value = value * square + coefficients[N - 1 - power];
    }
    value * x
}

struct Digammas<'a> {
    a: f64,
    counts: &'a [f64],
}

impl WithSimd for Digammas<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        let (eights, rest) = self.counts.as_chunks::<TOGETHER>();
        let mut parts = [0.0; TOGETHER];
        for counts in eights {
            let mut base = self.a;
            let mut terms = [0.0; TOGETHER];
            while base < ASYMPTOTIC {
                for (term, n) in terms.iter_mut().zip(counts) {
                    *term += n / ((base + n) * base);
                }
                base += 1.0;
            }
            let start = 1.0 / base;
            let series = start * odd(&DIGAMMA_SERIES, start);
            for ((part, term), n) in parts.iter_mut().zip(&terms).zip(counts) {
                let end = 1.0 / (base + n);
                let asymptotic = ln_of_positive((base + n) * start) + 0.5 * n * start * end;
                *part += asymptotic + (series - end * odd(&DIGAMMA_SERIES, end)) + term;
            }
        }
        sum(&parts) + rest.iter().map(|n| digamma_difference(self.a, *n)).sum::<f64>()
    }
}

struct WeightedDigammas<'a> {
    a: &'a [f64],
    counts: &'a [f64],
    weights: &'a [f64],
}

impl WithSimd for WeightedDigammas<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        let one_by_one = |a: &[f64], counts: &[f64], weights: &[f64]| -> f64 {
            a.iter().zip(counts).zip(weights).map(|((a, n), weight)| weight * digamma_difference(*a, *n)).sum()
        };
        let ((firsts, rest_a), (eights, rest)) = (self.a.as_chunks::<TOGETHER>(), self.counts.as_chunks::<TOGETHER>());
        let (weights, rest_weights) = self.weights.as_chunks::<TOGETHER>();
        let (mut parts, mut others) = ([0.0; TOGETHER], one_by_one(rest_a, rest, rest_weights));
        for ((a, counts), weights) in firsts.iter().zip(eights).zip(weights) {
            if a.iter().zip(counts).all(|(a, n)| ARGUMENTS.contains(a) && *n < MOST) {
                add_digammas(a, counts, weights, &mut parts);
            } else {
                others += one_by_one(a, counts, weights);
            }
        }
        sum(&parts) + others
    }
}

/// As [`Digammas`], with an argument for each count, and one division for the terms `n / ((a + i + n) (a + i))` of all
/// shifts.
#[inline(always)]
fn add_digammas(a: &[f64; TOGETHER], counts: &[f64; TOGETHER], weights: &[f64; TOGETHER], parts: &mut [f64; TOGETHER]) {
    let (mut bases, mut above, mut below) = (*a, [0.0; TOGETHER], [1.0; TOGETHER]);
    for _ in 0..ASYMPTOTIC as usize {
        for index in 0..TOGETHER {
            let (base, n) = (bases[index], counts[index]);
            let is_below = base < ASYMPTOTIC;
            let product = (base + n) * base;
            above[index] = if is_below { above[index] * product + n * below[index] } else { above[index] };
            below[index] *= if is_below { product } else { 1.0 };
            bases[index] += if is_below { 1.0 } else { 0.0 };
        }
    }
    for index in 0..TOGETHER {
        let (base, n) = (bases[index], counts[index]);
        let (start, end) = (1.0 / base, 1.0 / (base + n));
        let asymptotic = ln_of_positive((base + n) * start) + 0.5 * n * start * end;
        let series = start * odd(&DIGAMMA_SERIES, start) - end * odd(&DIGAMMA_SERIES, end);
        parts[index] += weights[index] * (asymptotic + series + above[index] / below[index]);
    }
}

struct LnGammas<'a> {
    a: &'a [f64],
    counts: &'a [f64],
    /// Ones without it.
    weights: Option<&'a [f64]>,
}

impl WithSimd for LnGammas<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        let one_by_one = |a: &[f64], counts: &[f64], weights: &[f64]| -> f64 {
            let seen = a.iter().zip(counts).zip(weights).filter(|((_, n), _)| **n > 0.0);
            seen.map(|((a, n), weight)| weight * ln_gamma_difference(*a, *n)).sum()
        };
        let ((firsts, rest_a), (eights, rest)) = (self.a.as_chunks::<TOGETHER>(), self.counts.as_chunks::<TOGETHER>());
        let (weights, rest_weights) = self.weights.unwrap_or_default().as_chunks::<TOGETHER>();
        let ones = [1.0; TOGETHER];
        let rest_weights = if self.weights.is_some() { rest_weights } else { &ones };
        let (mut parts, mut others) = ([0.0; TOGETHER], one_by_one(rest_a, rest, rest_weights));
        for (index, (a, counts)) in firsts.iter().zip(eights).enumerate() {
            if counts.iter().all(|n| *n <= 0.0) {
                continue;
            }
            let weights = weights.get(index).unwrap_or(&ones);
            if a.iter().zip(counts).all(|(a, n)| ARGUMENTS.contains(a) && *n < MOST) {
                add_ln_gammas(a, counts, weights, &mut parts);
            } else {
                others += one_by_one(a, counts, weights);
            }
        }
        sum(&parts) + others
    }
}

/// Uses Stirling's series above the shifts, with one logarithm for the factors `(a + i + n) / (a + i)` of all shifts.
#[inline(always)]
fn add_ln_gammas(
    a: &[f64; TOGETHER],
    counts: &[f64; TOGETHER],
    weights: &[f64; TOGETHER],
    parts: &mut [f64; TOGETHER],
) {
    let (mut bases, mut above, mut below) = (*a, [1.0; TOGETHER], [1.0; TOGETHER]);
    for _ in 0..ASYMPTOTIC as usize {
        for index in 0..TOGETHER {
            let is_below = bases[index] < ASYMPTOTIC;
            above[index] *= if is_below { bases[index] + counts[index].max(0.0) } else { 1.0 };
            below[index] *= if is_below { bases[index] } else { 1.0 };
            bases[index] += if is_below { 1.0 } else { 0.0 };
        }
    }
    for index in 0..TOGETHER {
        let (base, n) = (bases[index], counts[index].max(0.0));
        let end = base + n;
        let stirling = odd(&STIRLING, 1.0 / end) - odd(&STIRLING, 1.0 / base);
        let term = (base - 0.5) * ln_of_positive(end / base) + n * (ln_of_positive(end) - 1.0) + stirling
            - ln_of_positive(above[index] / below[index]);
        parts[index] += weights[index] * term;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn arguments() -> impl Strategy<Value = f64> {
        prop_oneof![(-60.0_f64..0.0).prop_map(f64::exp), 0.01..15.0, 15.0..1e6]
    }

    fn counts() -> impl Strategy<Value = Vec<f64>> {
        let count = prop_oneof![Just(0.0), (-40.0_f64..0.0).prop_map(f64::exp), 0.0..100.0, 1e3..1e8, 1e11..1e15];
        prop::collection::vec(count, 1..60)
    }

    proptest! {
        #[test]
        fn sums_are_sums_of_single_differences(a in arguments(), others in arguments(), counts in counts()) {
            let mut all: Vec<f64> = vec![a; counts.len()];
            all.iter_mut().step_by(3).for_each(|a| *a = others);
            let digammas: Vec<f64> = counts.iter().map(|n| digamma_difference(a, *n)).collect();
            let gammas: Vec<f64> = all
                .iter()
                .zip(&counts)
                .map(|(a, n)| if *n > 0.0 { ln_gamma_difference(*a, *n) } else { 0.0 })
                .collect();
            let size = |terms: &[f64]| terms.iter().map(|term| 1.0 + term.abs()).sum::<f64>();
            for set in Instructions::available() {
                let found = set.run(LnGammas { a: &all, counts: &counts, weights: None });
                prop_assert!((found - gammas.iter().sum::<f64>()).abs() <= 1e-14 * size(&gammas), "{set:?} {found}");
            }
            let weights: Vec<f64> = (0..counts.len()).map(|index| f64::from(index as u8 % 4) + 0.25).collect();
            let weighted = |terms: &[f64]| terms.iter().zip(&weights).map(|(term, w)| term * w).collect::<Vec<f64>>();
            let each: Vec<f64> = all.iter().zip(&counts).map(|(a, n)| digamma_difference(*a, *n)).collect();
            for (found, terms) in [
                (weighted_ln_gamma_differences(&all, &counts, &weights), weighted(&gammas)),
                (weighted_digamma_differences(&all, &counts, &weights), weighted(&each)),
            ] {
                prop_assert!((found - terms.iter().sum::<f64>()).abs() <= 4e-14 * size(&terms), "{found}");
            }
            let found = sum_of_digamma_differences(a, &counts);
            prop_assert!((found - digammas.iter().sum::<f64>()).abs() <= 1e-14 * size(&digammas), "{found}");
        }
    }

    #[test]
    fn what_rounding_has_left_below_zero_is_zero() {
        assert_eq!(sum_of_ln_gamma_differences(&[0.5; 9], &[-1e-12; 9]), 0.0);
    }
}
