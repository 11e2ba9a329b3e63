//! Lower bounds on residuals, one for each pair of a row and a component, kept from visit to visit. A pair is skipped
//! if its bound proves that its log weight is too small to be kept.

use crate::scoring::Drift;
use crate::simd::Scalar;

/// Resolution of a bound: steps per unit of `|y|`, which is one standard deviation.
const STEPS: f32 = 128.0;
/// The largest number of steps.
const MOST: f32 = 65535.0;
/// Relative rounding error of a few operations in `f32`.
const ROUNDING: f32 = 1e-6;
/// Adding this to a number from 0 to 2^16 leaves the number, rounded to an integer, in the last bits.
const ROUND: f32 = 8_388_608.0;

/// Distance bounds of the rows of one block.
#[derive(Debug)]
pub struct PairBounds<'a> {
    /// Bounds in steps of 1/128, (rows, K), rounded down; 0 means no bound.
    pub values: &'a mut [u16],
    /// How far each component has moved since the values were written, (K,).
    pub drifts: &'a [Drift],
}

impl PairBounds<'_> {
    /// Sets a bound that holds now.
    pub fn set(&mut self, row: usize, component: usize, value: u16) {
        self.values[row * self.drifts.len() + component] = value;
    }

    /// Raises an existing bound to one that also holds now, if that is larger.
    pub fn raise(&mut self, row: usize, component: usize, value: u16) {
        let stored = &mut self.values[row * self.drifts.len() + component];
        *stored = value.max(*stored);
    }
}

/// Error bounds of the residuals of one component. A computed residual differs from the exact one by at most `slope |x|
/// + intercept`, and a computed sum of squares by at most a relative error of `share`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reach {
    slope: f32,
    intercept: f32,
    share: f32,
}

impl Reach {
    /// Error bounds of the kernel's `A x + b` with `b = -A c`. A chain of D + 1 fused products with rounded factors has
    /// an error of at most `(D + 3) eps / 2` times the sum of the magnitudes of its terms (Higham, Accuracy and
    /// Stability, 2002, section 3.1).
    pub fn of<F: Scalar>(d: usize, factor_length: f64, centre_length: f64) -> Self {
        let share = (d + 4) as f64 * F::EPSILON.to_f64();
        let slope = share * factor_length;
        Self { slope: slope as f32, intercept: (slope * centre_length) as f32, share: share as f32 + 8.0 * ROUNDING }
    }
}

/// Lower bounds on the exact residuals, in steps, from the computed squared lengths and the lengths of the rows.
#[inline(always)]
pub fn bounds_of<F: Scalar>(squares: &[F], reach: Reach, lengths: &[f32], out: &mut [u16]) {
    let scale = STEPS * (1.0 - reach.share);
    let up = STEPS * (1.0 + 8.0 * ROUNDING);
    let (slope, intercept) = (reach.slope * up, reach.intercept * up);
    for ((out, square), length) in out.iter_mut().zip(squares).zip(lengths) {
        let near = (square.to_f64() as f32).sqrt() * scale - (slope * length + intercept);
        *out = whole_steps(if near > MOST { MOST } else { near });
    }
}

/// Rounds down to a whole number of steps, at least 0. NaN, the result of values beyond the range of `f32`, gives 0.
#[inline(always)]
fn whole_steps(steps: f32) -> u16 {
    let down = steps - 0.5;
    ((if down > 0.0 { down } else { 0.0 }) + ROUND).to_bits() as u16
}

/// Decides from the bounds of a block which of its pairs to compute.
#[derive(Debug, Default)]
pub struct Scan {
    contractions: Vec<f32>,
    displacements: Vec<f32>,
    slopes: Vec<f32>,
    intercepts: Vec<f32>,
    constants: Vec<f32>,
    /// The largest constant and half the exponent, if log weights are those of Student t distributions.
    tail: Option<(f64, f64)>,
    /// For Student t distributions: `exp((constant - largest) / half)`; and half the squared residuals that may reach
    /// the threshold of the last row.
    factors: Vec<f32>,
    limits: Vec<f32>,
    /// Factor from a squared number of steps to half a squared residual, nats.
    half: f32,
    /// Whether each component must be computed for the last row.
    alive: Vec<u8>,
}

impl Scan {
    /// Prepares a scan for components whose log weights have these constants. `exponent`: half the exponent of Student
    /// t distributions.
    pub fn reset<F: Scalar>(&mut self, drifts: &[Drift], constants: &[F], reaches: &[Reach], exponent: Option<f64>) {
        let n = drifts.len().next_multiple_of(8);
        let fill = |to: &mut Vec<f32>, from: &mut dyn Iterator<Item = f32>, rest: f32| {
            to.clear();
            to.extend(from);
            to.resize(n, rest);
        };
        let up = 1.0 + 4.0 * ROUNDING;
        fill(&mut self.contractions, &mut drifts.iter().map(|d| d.contraction as f32 * (1.0 - 8.0 * ROUNDING)), 1.0);
        fill(&mut self.displacements, &mut drifts.iter().map(|d| d.displacement as f32 * (STEPS * up)), 0.0);
        fill(&mut self.slopes, &mut reaches.iter().map(|r| r.slope * (STEPS * up)), 0.0);
        fill(&mut self.intercepts, &mut reaches.iter().map(|r| r.intercept * (STEPS * up)), 0.0);
        let share = reaches.iter().fold(0.0_f32, |share, reach| share.max(reach.share));
        self.half = 0.5 / (STEPS * STEPS) * (1.0 - share);
        let constant = |c: &F| {
            let c = c.to_f64() as f32;
            if c.is_finite() { c + 4.0 * ROUNDING * c.abs() } else { f32::INFINITY }
        };
        fill(&mut self.constants, &mut constants.iter().map(constant), f32::NEG_INFINITY);
        let largest = constants.iter().fold(f64::NEG_INFINITY, |largest, c| largest.max(c.to_f64()));
        self.tail = exponent.map(|half| (largest, half));
        if let Some(half) = exponent {
            let factor = |c: &F| ((c.to_f64() - largest) / half).exp() as f32 * up;
            fill(&mut self.factors, &mut constants.iter().map(factor), 0.0);
            self.limits.resize(n, 0.0);
        }
    }

    /// Lowers the bounds of one row of length `length` by the drifts, and returns for each component, padded to a
    /// multiple of eight, whether its log weight may reach `least`.
    #[inline(always)]
    pub fn row(&mut self, values: &mut [u16], length: f32, least: f32) -> &[u8] {
        let n = values.len();
        self.alive.resize(self.constants.len(), 0);
        let least = least - 4.0 * ROUNDING * least.abs();
        let (limits, least) = match self.tail {
            None => (&self.constants, least),
            Some((largest, half)) => {
                // A squared residual q may reach the threshold if 1 + q <= exp((constant - threshold) / half).
                let most = ((largest - f64::from(least)) / half).exp() as f32 * (1.0 + 4.0 * ROUNDING);
                for (limit, factor) in self.limits.iter_mut().zip(&self.factors) {
                    *limit = 0.5 * ((factor * most) * (1.0 + 4.0 * ROUNDING) - 1.0);
                }
                (&self.limits, 0.0)
            }
        };
        let half = self.half;
        let moves = self.contractions[..n].iter().zip(&self.displacements[..n]);
        let terms = self.slopes[..n].iter().zip(&self.intercepts[..n]).zip(&limits[..n]);
        for (((alive, value), (contraction, displacement)), ((slope, intercept), limit)) in
            self.alive[..n].iter_mut().zip(values).zip(moves).zip(terms)
        {
            let moved = contraction * f32::from(*value) - displacement;
            let near = moved - (slope * length + intercept);
            let near = if near > 0.0 { near } else { 0.0 };
            let most = limit - half * near * near;
            // An unknown limit excludes nothing.
            *alive = u8::from(most >= least || most.is_nan());
            *value = whole_steps(moved);
        }
        &self.alive
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EXACT: Reach = Reach { slope: 0.0, intercept: 0.0, share: 0.0 };

    fn bound(square: f64, reach: Reach, length: f32) -> u16 {
        let mut out = [1];
        bounds_of(&[square], reach, &[length], &mut out);
        out[0]
    }

    proptest! {
        #[test]
        fn a_bound_is_rounded_down_and_by_little(length in 0.0_f64..511.0) {
            let found = f64::from(bound(length * length, EXACT, 1.0));
            prop_assert!(found <= 128.0 * length * (1.0 + 1e-6));
            prop_assert!(found >= 128.0 * length - 1.6);
        }

        /// A component that moved as far as its drift allows is still found, and the bound is lowered.
        #[test]
        fn a_row_is_alive_where_its_bound_leaves_it_open(
            (value, contraction, displacement) in (0_u16..=65535, 0.0_f64..1.0, 0.0_f64..600.0),
            (constant, least) in (-50.0_f64..50.0, -1e4_f32..50.0),
            (slope, intercept, length) in (0.0_f32..0.1, 0.0_f32..0.1, 0.0_f32..9.0),
        ) {
            let mut scan = Scan::default();
            let (drift, reach) = (Drift { contraction, displacement }, Reach { slope, intercept, share: 1e-5 });
            scan.reset(&[drift], &[constant], &[reach], None);
            let mut values = [value];
            let alive = scan.row(&mut values, length, least)[0] == 1;
            let moved = (contraction * f64::from(value) / 128.0 - displacement).max(0.0);
            prop_assert!(f64::from(values[0]) / 128.0 <= moved);
            prop_assert!(f64::from(values[0]) / 128.0 >= moved - 0.02 - 1e-5 * f64::from(value) / 128.0);
            let near = (moved - f64::from(slope * length + intercept)).max(0.0);
            let most = constant - 0.5 * near * near;
            prop_assert!(alive || most < f64::from(least));
            prop_assert!(!alive || most >= f64::from(least) - 1e-4 * (most.abs() + 1.0) - 0.01 * near);
        }
    }

    #[test]
    fn what_float32_does_not_hold_gives_no_bound() {
        let beyond = Reach { slope: f32::INFINITY, ..EXACT };
        // Infinity times a length that is 0 in float32, a bound minus infinity, infinity minus infinity, and NaN.
        for found in
            [bound(9.0, beyond, 0.0), bound(9.0, beyond, 1.0), bound(1e300, beyond, 1.0), bound(f64::NAN, EXACT, 1.0)]
        {
            assert_eq!(found, 0);
        }
        assert_eq!(bound(1e300, EXACT, 1.0), 65534);
        let mut scan = Scan::default();
        let drift = Drift { contraction: 1.0, displacement: 0.0 };
        for (constant, reach) in [(0.0, beyond), (-1e300, EXACT), (f64::NAN, EXACT)] {
            scan.reset(&[drift], &[constant], &[reach], None);
            assert_eq!(scan.row(&mut [65535], 0.0, 0.0)[0], 1, "{constant} {reach:?}");
        }
    }
}
