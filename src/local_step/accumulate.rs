//! From responsibilities to a summary, component by component.

use std::collections::BTreeMap;
use std::ops::Range;

use pulp::{Simd, WithSimd};

use crate::data::{Csr, RowBlock, SparseRows};
use crate::error::Result;
use crate::local_step::order::Order;
use crate::local_step::{BLOCK, Keep, LocalStep};
use crate::parallel::{blocks, for_each, map, try_map_with};
use crate::responsibilities::Responsibilities;
use crate::simd::{Instructions, Lines, Scalar, sum};
use crate::special::ln_of_positive;
use crate::suffstats::Summary;

/// Pairs of one task: a large component is cut into this many, so that threads can share it.
const PIECE: usize = 8192;
/// Rows gathered and multiplied at a time: what a core keeps in its cache.
const GATHERED: usize = 256;

/// The (unit, responsibility) pairs of a chunk, sorted by component and then by unit; those of the tail are the last.
#[derive(Default)]
pub(super) struct Pairs {
    units: Vec<u32>,
    values: Vec<f64>,
    /// Where each component begins; one more at the end.
    starts: Vec<usize>,
    /// Whether some mass is not one.
    weighted: bool,
}

impl Pairs {
    /// A counting sort of a chunk, `k` counting the tail; pairs and units that carry nothing are left out.
    pub(super) fn sort(&mut self, responsibilities: &Responsibilities, masses: &[f64], k: usize) {
        let Self { units, values, starts, weighted } = self;
        *weighted = masses.iter().any(|&mass| mass != 1.0);
        starts.clear();
        starts.resize(k + 1, 0);
        for_each_carried(responsibilities, masses, |_, component, _| starts[component + 1] += 1);
        for component in 0..k {
            starts[component + 1] += starts[component];
        }
        let mut next = starts.clone();
        units.resize(starts[k], 0);
        values.resize(starts[k], 0.0);
        for_each_carried(responsibilities, masses, |unit, component, value| {
            let at = &mut next[component];
            (units[*at], values[*at]) = (unit, value);
            *at += 1;
        });
    }
}

/// The rows of a chunk as they were scored.
#[derive(Clone, Copy)]
pub(super) struct ChunkRows<'a, F> {
    /// The rows.
    pub rows: RowBlock<'a, F>,
    /// Where each unit of the chunk stands among them.
    pub order: &'a Order,
}

/// Adds a chunk to a summary.
// only-one: summary accumulation
pub(super) fn accumulate<F: Scalar>(
    step: &LocalStep<'_, F>,
    rows: ChunkRows<'_, F>,
    masses: &[f64],
    responsibilities: &Responsibilities,
    pairs: &Pairs,
    summary: &mut Summary,
) -> Result<()> {
    let pieces: Vec<(usize, Range<usize>)> = (0..summary.n_components())
        .flat_map(|k| {
            let start = pairs.starts[k];
            blocks(pairs.starts[k + 1] - start, PIECE).map(move |r| (k, start + r.start..start + r.end))
        })
        .collect();
    let sums = try_map_with(pieces.len(), Gather::default, |work, index| {
        step.cancel.check()?;
        Ok(sum_piece(step, rows, masses, pairs, pieces[index].1.clone(), work))
    })?;
    let p = summary.n_statistics;
    for ((k, _), piece) in pieces.iter().zip(sums) {
        summary.counts[*k] += piece.count;
        summary.entropies[*k] += piece.entropy;
        let statistics = &mut summary.statistics[k * p..][..p];
        statistics.iter_mut().zip(piece.statistics).for_each(|(sum, value)| *sum += value);
    }
    summary.mass += sum(masses);
    if let Some(log_weight) = step.assign.tail_log_weight() {
        let tail = pairs.starts[summary.n_components()]..;
        let tail = pairs.units[tail.clone()].iter().copied().zip(pairs.values[tail].iter().copied());
        let rest = add_tail(tail, masses, log_weight, &responsibilities.log_normalizers, summary);
        summary.log_base_measure += base_measure(step, rows, &rest);
    } else {
        summary.log_base_measure += base_measure(step, rows, masses);
    }
    if step.keep == Keep::SummaryAndGaps {
        add_gaps(responsibilities, masses, summary);
    }
    Ok(())
}

/// `sum_i masses[i] log h(x_i)` over the rows of a chunk, in the order of the units, nats.
fn base_measure<F: Scalar>(step: &LocalStep<'_, F>, rows: ChunkRows<'_, F>, masses: &[f64]) -> f64 {
    let mut values = vec![0.0; masses.len()];
    let d = step.likelihood.dimension();
    let items = values.chunks_mut(BLOCK).zip(blocks(masses.len(), BLOCK)).collect();
    for_each(items, |(out, range): (&mut [f64], Range<usize>)| {
        step.likelihood.log_base_measures(rows.rows.slice(range, d), out);
    });
    let of_units = masses.iter().enumerate().filter(|(_, mass)| **mass > 0.0);
    of_units.map(|(unit, mass)| mass * values[rows.order.place(unit)]).sum()
}

/// Adds the pairs of the tail, and returns the masses without the tail's part, which are those that base measures
/// belong to. The expected log-likelihood of a pair follows from its log weight and its unit's normaliser
/// (mathematics 2c).
fn add_tail(
    pairs: impl Iterator<Item = (u32, f64)>,
    masses: &[f64],
    log_weight: f64,
    log_normalizers: &[f64],
    summary: &mut Summary,
) -> Vec<f64> {
    let mut rest = masses.to_vec();
    let tail = summary.tail.get_or_insert_default();
    for (unit, value) in pairs {
        let unit = unit as usize;
        let (share, log) = (masses[unit] * value, value.ln());
        rest[unit] -= share;
        tail.count += share;
        tail.entropy -= share * log;
        tail.expected_log_likelihood += share * (log + log_normalizers[unit] - log_weight);
    }
    rest
}

/// Calls `take` with the unit, the component and the value of every pair that carries something, in order.
fn for_each_carried(responsibilities: &Responsibilities, masses: &[f64], mut take: impl FnMut(u32, usize, f64)) {
    let Responsibilities { width, components, values, .. } = responsibilities;
    let pairs = components.chunks_exact(*width).zip(values.chunks_exact(*width));
    for (unit, ((components, values), &mass)) in (0..).zip(pairs.zip(masses)) {
        for (&component, &value) in components.iter().zip(values) {
            if value > 0.0 && mass > 0.0 {
                take(unit, component as usize, value);
            }
        }
    }
}

/// The rows of one component, side by side, and their weights.
#[derive(Default)]
struct Gather {
    rows: Vec<f64>,
    weights: Vec<f64>,
    /// `-weight ln r`, nats.
    entropies: Vec<f64>,
    /// Where they stand among the rows of the chunk.
    places: Vec<u32>,
    space: Lines<f64>,
    sparse: GatherSparse,
}

/// Sparse rows of one component, side by side.
#[derive(Default)]
struct GatherSparse {
    starts: Vec<u64>,
    columns: Vec<u32>,
    values: Vec<f64>,
    numbers: Vec<u32>,
}

impl GatherSparse {
    fn gather<F: Scalar>(&mut self, rows: SparseRows<'_, F>, units: &[u32]) -> RowBlock<'_, f64> {
        let Self { starts, columns, values, numbers } = self;
        starts.clear();
        starts.push(0);
        columns.clear();
        values.clear();
        numbers.clear();
        for (number, &unit) in (0..).zip(units) {
            let (own, of_them) = rows.table.row(rows.numbers[unit as usize] as usize);
            columns.extend_from_slice(own);
            values.extend(of_them.iter().map(|value| value.to_f64()));
            starts.push(values.len() as u64);
            numbers.push(number);
        }
        RowBlock::Sparse(SparseRows { table: Csr { starts, columns, values }, numbers })
    }
}

struct PieceSum {
    count: f64,
    entropy: f64,
    statistics: Vec<f64>,
}

fn sum_piece<F: Scalar>(
    step: &LocalStep<'_, F>,
    ChunkRows { rows, order }: ChunkRows<'_, F>,
    masses: &[f64],
    pairs: &Pairs,
    piece: Range<usize>,
    work: &mut Gather,
) -> PieceSum {
    let d = step.likelihood.dimension();
    let mut total = PieceSum { count: 0.0, entropy: 0.0, statistics: vec![0.0; step.likelihood.n_statistics()] };
    for range in blocks(piece.len(), GATHERED) {
        let range = piece.start + range.start..piece.start + range.end;
        let (units, values) = (&pairs.units[range.clone()], &pairs.values[range]);
        let masses = pairs.weighted.then_some(masses);
        let dense = rows.dense();
        work.places.clear();
        work.places.extend(units.iter().map(|&unit| order.place(unit as usize) as u32));
        let (count, entropy) =
            Instructions::widest().run(GatherPairs { rows: dense, d, masses, units, values, into: work });
        total.count += count;
        total.entropy += entropy;
        let Gather { rows: gathered, weights, sparse, space, places, .. } = work;
        let block = match rows {
            RowBlock::Dense(_) => RowBlock::Dense(gathered),
            RowBlock::Sparse(rows) => sparse.gather(rows, places),
        };
        step.likelihood.accumulate(block, weights, &mut total.statistics, space);
    }
    total
}

/// Fills a [`Gather`] and returns the sums of its weights and entropies; compiled for each instruction set.
struct GatherPairs<'a, F> {
    rows: &'a [F],
    d: usize,
    /// Where all are one, none are given.
    masses: Option<&'a [f64]>,
    units: &'a [u32],
    values: &'a [f64],
    into: &'a mut Gather,
}

impl<F: Scalar> WithSimd for GatherPairs<'_, F> {
    type Output = (f64, f64);

    #[allow(clippy::inline_always, reason = "compiled once for each instruction set")]
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> (f64, f64) {
        let Self { rows, d, masses, units, values, into } = self;
        let places = &into.places;
        into.rows.resize(if rows.is_empty() { 0 } else { units.len() * d }, 0.0);
        match d {
            _ if rows.is_empty() => {}
            1 => gather_narrow::<F, 1>(rows, places, &mut into.rows),
            2 => gather_narrow::<F, 2>(rows, places, &mut into.rows),
            3 => gather_narrow::<F, 3>(rows, places, &mut into.rows),
            4 => gather_narrow::<F, 4>(rows, places, &mut into.rows),
            _ => {
                for (&place, to) in places.iter().zip(into.rows.chunks_exact_mut(d)) {
                    convert(&rows[place as usize * d..][..d], to);
                }
            }
        }
        into.weights.resize(units.len(), 0.0);
        if let Some(masses) = masses {
            for ((weight, &unit), value) in into.weights.iter_mut().zip(units).zip(values) {
                *weight = masses[unit as usize] * value;
            }
        } else {
            into.weights.copy_from_slice(values);
        }
        into.entropies.resize(units.len(), 0.0);
        for ((entropy, weight), &value) in into.entropies.iter_mut().zip(&into.weights).zip(values) {
            *entropy = -weight * ln_of_positive(value);
        }
        (sum(&into.weights), sum(&into.entropies))
    }
}

/// The listed rows of `D` columns, too few for a loop over them.
#[allow(clippy::inline_always, reason = "compiled once for each instruction set")]
#[inline(always)]
fn gather_narrow<F: Scalar, const D: usize>(rows: &[F], places: &[u32], out: &mut [f64]) {
    let (rows, _) = rows.as_chunks::<D>();
    let (out, _) = out.as_chunks_mut::<D>();
    for (&place, to) in places.iter().zip(out) {
        convert(&rows[place as usize], to);
    }
}

#[allow(clippy::inline_always, reason = "compiled once for each instruction set")]
#[inline(always)]
fn convert<F: Scalar>(row: &[F], to: &mut [f64]) {
    for (to, value) in to.iter_mut().zip(row) {
        *to = value.to_f64();
    }
}

/// `p ln(1 + q/p) + q ln(1 + p/q)`: what one unit adds to G_ab (mathematics 4.4); without cancellation, 0 if either is
/// 0.
pub fn pair_gap(p: f64, q: f64) -> f64 {
    // The ratio overflows beside a subnormal responsibility, where the 1 in ln(1 + ratio) no longer counts.
    let lost = |own: f64, other: f64| {
        let ratio = other / own;
        own * if ratio.is_finite() { ratio.ln_1p() } else { other.ln() - own.ln() }
    };
    if p > 0.0 && q > 0.0 { lost(p, q) + lost(q, p) } else { 0.0 }
}

fn add_gaps(responsibilities: &Responsibilities, masses: &[f64], summary: &mut Summary) {
    let width = responsibilities.width;
    let ranges: Vec<_> = blocks(masses.len(), BLOCK).collect();
    let parts = map(ranges.len(), |index| {
        let mut gaps = BTreeMap::new();
        for unit in ranges[index].clone() {
            for a in unit * width..(unit + 1) * width {
                for b in a + 1..(unit + 1) * width {
                    let gap = masses[unit] * pair_gap(responsibilities.values[a], responsibilities.values[b]);
                    let pair = (responsibilities.components[a], responsibilities.components[b]);
                    // Nothing is ever merged with the tail.
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
        /// G_ab = H_a + H_b - H_ab, by its definition.
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
