//! Accumulates responsibilities into a summary, component by component.

use std::collections::BTreeMap;
use std::ops::Range;

use pulp::{Simd, WithSimd};

use crate::data::RowBlock;
use crate::error::Result;
use crate::local_step::gather::Gather;
use crate::local_step::order::{Order, Places};
use crate::local_step::pairs::Pairs;
use crate::local_step::{BLOCK, Keep, LocalStep, Read, Statistics, Units};
use crate::parallel::{blocks, for_each, map, try_map_with};
use crate::responsibilities::Responsibilities;
use crate::simd::{Instructions, Scalar, sum};
use crate::special::{ln_1p_of_positive, ln_of_positive};
use crate::suffstats::{SparseSum, Summary, Sums, Tail};

/// Number of pairs per task. A large component is cut into pieces of this size, so that threads can share it.
const PIECE: usize = 8192;
/// Number of rows whose base measures one task computes.
const READ: usize = 4096;
/// Number of rows gathered and multiplied at a time, so that they stay in a core's cache.
const GATHERED: usize = 256;

/// The units of a chunk in the order in which they were scored.
#[derive(Clone, Copy)]
pub(super) struct ChunkUnits<'a, F: Scalar> {
    /// The units.
    pub units: &'a dyn Units<F>,
    /// Rows of the units.
    pub rows: RowBlock<'a, F>,
    /// Position of each unit of the chunk among the rows.
    pub order: &'a Order,
    /// Position of each unit among the responsibilities.
    pub places: Places<'a>,
    /// The sum of masses times log base measures over all units, if already known.
    pub base: Option<f64>,
}

/// Adds a chunk to a summary.
// only-one: summary accumulation
pub(super) fn accumulate<F: Scalar>(
    step: &LocalStep<'_, F>,
    chunk: ChunkUnits<'_, F>,
    masses: &[f64],
    responsibilities: &Responsibilities,
    pairs: &Pairs,
    summary: &mut Summary,
) -> Result<()> {
    let (n, has_tail) = (summary.n_components(), step.assign.has_tail());
    let pieces: Vec<(usize, Range<usize>)> = (0..n + usize::from(has_tail))
        .flat_map(|k| blocks(pairs.count(k), PIECE).map(move |range| (k, range)))
        .collect();
    let mut sums = try_map_with(pieces.len(), PieceSpace::default, |work, index| {
        step.cancel.check()?;
        let (component, range) = &pieces[index];
        Ok(sum_piece(step, chunk, pairs, *component, range.clone(), work))
    })?;
    let of_tail = sums.split_off(pieces.partition_point(|(k, _)| *k < n));
    for ((k, _), piece) in pieces.iter().zip(&sums) {
        summary.counts[*k] += piece.count;
        summary.entropies[*k] += piece.entropy;
    }
    let statistics = sums.into_iter().map(|piece| piece.statistics);
    summary.add_pieces(&pieces.into_iter().map(|(k, _)| k).zip(statistics).collect::<Vec<_>>());
    if has_tail {
        let tail = summary.tail.get_or_insert_with(|| Tail::zeros(summary.n_statistics));
        for piece in of_tail {
            tail.count += piece.count;
            tail.entropy += piece.entropy;
            piece.statistics.add_to(&mut tail.statistics);
        }
    }
    summary.mass += sum(masses);
    if chunk.base.is_none() {
        summary.log_base_measure += base_measure(step, chunk, masses);
    }
    if step.keep == Keep::SummaryAndGaps {
        add_gaps(responsibilities, chunk.places, masses, summary);
    }
    Ok(())
}

/// Sum of masses times log base measures over the units of a chunk, in unit order, nats.
fn base_measure<F: Scalar>(step: &LocalStep<'_, F>, chunk: ChunkUnits<'_, F>, masses: &[f64]) -> f64 {
    let mut values = vec![0.0; masses.len()];
    let d = step.likelihood.dimension();
    let items = values.chunks_mut(READ).zip(blocks(masses.len(), READ)).collect();
    for_each(items, |(out, range): (&mut [f64], Range<usize>)| {
        let read = Read { units: &chunk.order.units[range.clone()], block: chunk.rows.slice(range, d), places: &[] };
        chunk.units.log_fixed_bases(step.likelihood, read, out);
    });
    let places = chunk.order.places();
    let of_units = masses.iter().enumerate().filter(|(_, mass)| **mass > 0.0);
    of_units.map(|(unit, mass)| mass * values[places.of(unit)]).sum()
}

struct PieceSum {
    count: f64,
    entropy: f64,
    statistics: Sums,
}

/// Scratch space of one task.
#[derive(Default)]
struct PieceSpace {
    rows: Vec<u32>,
    values: Vec<f64>,
    weights: Vec<f64>,
    entropies: Vec<f64>,
    gather: Gather,
    sums: SparseSum,
}

fn sum_piece<F: Scalar>(
    step: &LocalStep<'_, F>,
    chunk: ChunkUnits<'_, F>,
    pairs: &Pairs,
    component: usize,
    piece: Range<usize>,
    work: &mut PieceSpace,
) -> PieceSum {
    let mut total = PieceSum { count: 0.0, entropy: 0.0, statistics: Sums::default() };
    let by_non_zeros = step.sums_by_non_zeros(chunk.units);
    work.sums.reserve(step.likelihood.n_statistics());
    let masses = pairs.masses.as_deref();
    let of = Statistics { likelihood: step.likelihood, completing: step.assign.completing(), component };
    for range in blocks(piece.len(), GATHERED) {
        let range = piece.start + range.start..piece.start + range.end;
        let PieceSpace { rows, values, weights, entropies, gather, sums } = work;
        pairs.copy(component, range, rows, values);
        let (count, entropy) = Instructions::widest().run(Weigh { masses, rows, values, weights, entropies });
        total.count += count;
        total.entropy += entropy;
        let read = Read { units: &chunk.order.units, block: chunk.rows, places: rows };
        chunk.units.add_statistics(of, read, weights, sums.all(), gather);
        if by_non_zeros {
            sums.mark(gather.columns());
        }
    }
    total.statistics = work.sums.take(by_non_zeros);
    total
}

/// Fills in weights and entropies and returns their sums; compiled for each instruction set.
struct Weigh<'a> {
    /// Masses by row; `None` if all are one.
    masses: Option<&'a [f64]>,
    rows: &'a [u32],
    values: &'a [f64],
    weights: &'a mut Vec<f64>,
    /// `-weight ln r`, nats.
    entropies: &'a mut Vec<f64>,
}

impl WithSimd for Weigh<'_> {
    type Output = (f64, f64);

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> (f64, f64) {
        let Self { masses, rows, values, weights, entropies } = self;
        weights.resize(rows.len(), 0.0);
        if let Some(masses) = masses {
            for ((weight, &row), value) in weights.iter_mut().zip(rows).zip(values) {
                *weight = masses[row as usize] * value;
            }
        } else {
            weights.copy_from_slice(values);
        }
        entropies.resize(rows.len(), 0.0);
        for ((entropy, weight), &value) in entropies.iter_mut().zip(&*weights).zip(values) {
            *entropy = -weight * ln_of_positive(value);
        }
        (sum(weights), sum(entropies))
    }
}

/// `p ln(1 + q/p) + q ln(1 + p/q)`: contribution of one unit to G_ab (mathematics 4.4). Free of cancellation, and 0 if
/// either is 0. Neither is above 1.
pub fn pair_gap(p: f64, q: f64) -> f64 {
    let (less, more) = (p.min(q), p.max(q));
    if less <= 0.0 {
        return 0.0;
    }
    let ratio = less / more;
    (less + more) * ln_1p_of_positive(ratio) - less * ln_of_positive(ratio)
}

fn add_gaps(responsibilities: &Responsibilities, places: Places<'_>, masses: &[f64], summary: &mut Summary) {
    let width = responsibilities.width;
    let ranges: Vec<_> = blocks(masses.len(), BLOCK).collect();
    let parts = map(ranges.len(), |index| {
        let mut gaps = BTreeMap::new();
        for unit in ranges[index].clone() {
            let first = places.of(unit) * width;
            for a in first..first + width {
                for b in a + 1..first + width {
                    let gap = masses[unit] * pair_gap(responsibilities.values[a], responsibilities.values[b]);
                    let pair = (responsibilities.components[a], responsibilities.components[b]);
                    // The tail is never merged.
                    if gap > 0.0 && (pair.0.max(pair.1) as usize) < summary.n_components() {
                        *gaps.entry(pair).or_insert(0.0) += gap;
                    }
                }
            }
        }
        gaps
    });
    for ((a, b), gap) in parts.into_iter().flatten() {
        summary.gaps.add_pair(summary.ids[a as usize], summary.ids[b as usize], gap);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::pair_gap;

    proptest! {
        /// G_ab = H_a + H_b - H_ab by definition.
        #[test]
        fn the_gap_is_the_difference_of_entropies(p in 0.0_f64..1.0, q in 0.0_f64..1.0) {
            let h = |x: f64| if x > 0.0 { -x * x.ln() } else { 0.0 };
            prop_assert!((pair_gap(p, q) - (h(p) + h(q) - h(p + q))).abs() < 1e-13);
        }

        #[test]
        fn equal_shares_lose_two_ln_two(p in 1e-300_f64..1.0) {
            prop_assert!((pair_gap(p, p) / p - 2.0 * std::f64::consts::LN_2).abs() < 1e-14);
        }
    }

    #[test]
    fn the_gap_beside_a_subnormal_share_is_finite() {
        let smallest = f64::from_bits(1);
        for gap in [pair_gap(0.9, smallest), pair_gap(smallest, 0.9), pair_gap(0.9, f64::MIN_POSITIVE)] {
            assert!(gap > 0.0 && gap < 1e-300, "{gap}");
        }
    }

    #[test]
    fn a_pair_that_does_not_share_has_no_gap() {
        assert_eq!((pair_gap(0.0, 0.3), pair_gap(0.3, 0.0), pair_gap(0.0, 0.0)), (0.0, 0.0, 0.0));
    }
}
