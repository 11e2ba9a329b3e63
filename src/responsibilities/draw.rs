//! Draws of one component for each row of a block from its log weights.

use pulp::{Simd, WithSimd};

use crate::simd::Instructions;
use crate::special::exp_of_nonpositive;

/// Number of rows that are drawn side by side.
const LANES: usize = 8;
/// How far below the best a log weight of `n_components` is never drawn, in nats: all such weights together are less
/// than half the distance between the numbers by which components are drawn.
pub fn far(n_components: usize) -> f64 {
    38.0 + (n_components as f64).ln()
}

/// Space for the draws of one block: the components near the best of some row of a group, and their weights.
#[derive(Debug, Default)]
pub struct DrawSpace {
    near: Vec<(u32, [f64; LANES])>,
}

/// Log weights of a block, component by component, and what determines the draws.
pub struct DrawBlock<'a> {
    /// (K, `stride`), one row of the block beside the next.
    pub scores: &'a [f64],
    /// Number of log weights of one component, a multiple of eight.
    pub stride: usize,
    /// For each row, the number of components that it may belong to, which are the first ones; empty if all.
    pub reach: &'a [u32],
    /// A number between 0 and 1 for each row.
    pub chances: &'a [f64],
    /// The drawn component of each row.
    pub drawn: &'a mut [u32],
}

impl DrawBlock<'_> {
    /// Draws components with probabilities proportional to the weights. The drawn one is the first whose cumulative
    /// weight reaches the chance times the total, so that components without weight are never drawn.
    ///
    /// # Errors
    /// The index of the first row without a finite log weight.
    pub fn draw(self, space: &mut DrawSpace) -> Result<(), usize> {
        Instructions::widest().run(DrawRows { block: self, space })
    }
}

/// [`DrawBlock::draw`], compiled for each instruction set.
struct DrawRows<'a> {
    block: DrawBlock<'a>,
    space: &'a mut DrawSpace,
}

impl WithSimd for DrawRows<'_> {
    type Output = Result<(), usize>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Self::Output {
        let DrawBlock { scores, stride, reach, chances, drawn } = self.block;
        let far = far(scores.len() / stride);
        for (group, (drawn, chances)) in drawn.chunks_mut(LANES).zip(chances.chunks(LANES)).enumerate() {
            let of_group = scores.get(group * LANES..).unwrap_or(&[]);
            let reach = reach.get(group * LANES..).unwrap_or(&[]);
            let row = draw_group(of_group, stride, far, reach, chances, drawn, &mut self.space.near);
            row.map_err(|row| group * LANES + row)?;
        }
        Ok(())
    }
}

/// Draws the components of a group of rows, whose log weights are the first ones of each component.
#[inline(always)]
fn draw_group(
    scores: &[f64],
    stride: usize,
    far: f64,
    reach: &[u32],
    chances: &[f64],
    drawn: &mut [u32],
    near: &mut Vec<(u32, [f64; LANES])>,
) -> Result<(), usize> {
    let mut limits = [u32::MAX; LANES];
    limits.iter_mut().zip(reach).for_each(|(limit, &reach)| *limit = reach);
    let log_weights = |component: u32, scores: &[f64]| {
        let scores: [f64; LANES] = std::array::from_fn(|lane| scores[lane]);
        if reach.is_empty() {
            return scores;
        }
        std::array::from_fn(|lane| if component < limits[lane] { scores[lane] } else { f64::NEG_INFINITY })
    };
    let mut best = [f64::NEG_INFINITY; LANES];
    for (component, scores) in (0..).zip(scores.chunks(stride)) {
        let log_weights = log_weights(component, &scores[..LANES]);
        for (best, score) in best.iter_mut().zip(log_weights) {
            *best = if score > *best { score } else { *best };
        }
    }
    if let Some(row) = best[..drawn.len()].iter().position(|best| !best.is_finite()) {
        return Err(row);
    }
    let least = best.map(|best| best - far);
    let mut totals = [0.0; LANES];
    near.clear();
    for (component, scores) in (0..).zip(scores.chunks(stride)) {
        let log_weights = log_weights(component, &scores[..LANES]);
        // NaN is not near.
        let is_near: [bool; LANES] = std::array::from_fn(|lane| log_weights[lane] >= least[lane]);
        if is_near.iter().fold(false, |any, near| any | near) {
            let mut weights = [0.0; LANES];
            for lane in 0..LANES {
                let weight = exp_of_nonpositive(log_weights[lane] - best[lane]);
                weights[lane] = if is_near[lane] { weight } else { 0.0 };
                totals[lane] += weights[lane];
            }
            near.push((component, weights));
        }
    }
    let mut targets = [0.0; LANES];
    for (lane, chance) in chances.iter().enumerate() {
        targets[lane] = totals[lane] * chance;
    }
    let (mut sums, mut before) = ([0.0; LANES], [0_u64; LANES]);
    for (_, weights) in &*near {
        for lane in 0..LANES {
            sums[lane] += weights[lane];
            before[lane] += u64::from(sums[lane] < targets[lane]);
        }
    }
    for (drawn, before) in drawn.iter_mut().zip(before) {
        *drawn = near[before as usize].0;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Draws by the definition, row by row.
    fn plain(scores: &[f64], reach: usize, chance: f64) -> Option<u32> {
        let scores = &scores[..reach];
        let best = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let far = best - far(7);
        let weight = |score: &f64| if *score >= far { exp_of_nonpositive(score - best) } else { 0.0 };
        let weights: Vec<f64> = scores.iter().map(weight).collect();
        let target = chance * weights.iter().sum::<f64>();
        let mut sum = 0.0;
        let reached = weights.iter().position(|weight| {
            sum += weight;
            sum >= target
        });
        reached.filter(|_| best.is_finite()).map(|component| component as u32)
    }

    proptest! {
        #[test]
        fn a_block_draws_what_each_row_draws(
            rows in prop::collection::vec(
                (prop::collection::vec(prop_oneof![
                    -50.0_f64..50.0, Just(f64::NEG_INFINITY), Just(0.0), -2000.0_f64..0.0
                ], 7), 1_u32..8, 1e-9_f64..1.0), 1..40),
            is_limited in any::<bool>(),
        ) {
            let stride = (rows.len() + 3).next_multiple_of(LANES);
            let mut scores = vec![0.0; 7 * stride];
            for (row, (values, ..)) in rows.iter().enumerate() {
                values.iter().enumerate().for_each(|(component, value)| scores[component * stride + row] = *value);
            }
            let reach: Vec<u32> = rows.iter().map(|row| row.1).filter(|_| is_limited).collect();
            let chances: Vec<f64> = rows.iter().map(|row| row.2).collect();
            let mut drawn = vec![9; rows.len()];
            let block = DrawBlock {
                scores: &scores, stride, reach: &reach, chances: &chances, drawn: &mut drawn,
            };
            let outcome = block.draw(&mut DrawSpace::default());
            let reach = |row: usize| if is_limited { reach[row] as usize } else { 7 };
            let expected: Vec<Option<u32>> =
                rows.iter().enumerate().map(|(row, (scores, _, chance))| plain(scores, reach(row), *chance)).collect();
            prop_assert_eq!(expected.iter().position(Option::is_none), outcome.err());
            if outcome.is_ok() {
                prop_assert_eq!(expected, drawn.into_iter().map(Some).collect::<Vec<_>>());
            }
        }
    }

    /// 200 000 draws: a frequency deviates from its probability by more than 5 standard errors once in 1.7 million.
    #[test]
    fn frequencies_are_the_weights() {
        let (n, weights) = (200_000, [0.5, 0.0, 0.3, 0.2]);
        let scores: Vec<f64> = weights.iter().flat_map(|weight: &f64| vec![weight.ln(); n]).collect();
        let chances: Vec<f64> = (0..n as u64).map(|row| crate::rng::chance(7, row)).collect();
        let mut drawn = vec![0; n];
        let block = DrawBlock { scores: &scores, stride: n, reach: &[], chances: &chances, drawn: &mut drawn };
        block.draw(&mut DrawSpace::default()).expect("finite");
        for (component, weight) in weights.iter().enumerate() {
            let share = drawn.iter().filter(|&&drawn| drawn as usize == component).count() as f64 / n as f64;
            assert!((share - weight).abs() <= 5.0 * (weight * (1.0 - weight) / n as f64).sqrt(), "{share} {weight}");
        }
    }
}
