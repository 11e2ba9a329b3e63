//! Lists the components of a row within the margin, once all scores are available. With few components this is faster
//! than sorting them as they arrive: most scores are read once, a vector at a time.

use pulp::Simd;

use crate::responsibilities::insert::{FREE, insert};
use crate::simd::{Lines, Scalar};

/// Lists of the rows of one block, in the layout of [`super::TopL`].
#[derive(Debug, Default)]
pub(super) struct NearList<F> {
    /// (slots, rows): the best first, then the others in component order.
    pub scores: Lines<F>,
    /// Component indices of the scores.
    pub numbers: Lines<F>,
    /// Minimum score to be kept, (rows,).
    least: Lines<F>,
    /// Number of components listed per row; one more than the number of slots if some did not fit.
    n_listed: Vec<usize>,
}

impl<F: Scalar> NearList<F> {
    /// Lists up to `width` components of each row, given the scores of all components, (K, rows), and the best of each
    /// row. Returns the number of slots in use. Call only inside [`crate::simd::Instructions::run`].
    #[inline(always)]
    pub fn list<S: Simd>(&mut self, simd: S, all: &[F], best: RowBests<'_, F>, width: usize, margin: F) -> usize {
        let Self { scores, numbers, least, n_listed } = self;
        let n = best.scores.len();
        least.reset(n, F::INFINITY);
        least.iter_mut().zip(&best.scores[..best.n_rows]).for_each(|(least, &best)| *least = best - margin);
        // An extra slot after the last one receives components that do not fit.
        scores.resize((width + 1) * n);
        numbers.resize((width + 1) * n);
        scores[..n].copy_from_slice(best.scores);
        numbers[..n].copy_from_slice(best.numbers);
        n_listed.clear();
        n_listed.resize(n, 1);
        let mut n_slots = 1;
        let lanes = size_of::<F::Vector<S>>() / size_of::<F>();
        for (component, column) in all.chunks_exact(n).enumerate() {
            let number = F::from_f64(component as f64);
            let vectors: &[F::Vector<S>] = bytemuck::cast_slice(column);
            let bounds: &[F::Vector<S>] = bytemuck::cast_slice(least);
            for (group, (&score, &bound)) in vectors.iter().zip(bounds).enumerate() {
                if !F::any(simd, F::at_least(simd, score, bound)) {
                    continue;
                }
                for row in group * lanes..(group + 1) * lanes {
                    let slot = n_listed[row].min(width);
                    if slot >= n_slots {
                        clear_slot(scores, numbers, n, slot);
                        n_slots += 1;
                    }
                    // Branches would be unpredictable here. So every score is written to the next slot, and a score
                    // outside the margin is overwritten by the next one.
                    let is_other = best.numbers[row] != number;
                    scores[slot * n + row] = if is_other { column[row] } else { F::NEG_INFINITY };
                    numbers[slot * n + row] = number;
                    let is_near = (column[row] >= least[row]) & is_other;
                    n_listed[row] = (slot + usize::from(is_near)).max(n_listed[row]);
                }
            }
        }
        for row in (0..best.n_rows).filter(|&row| n_listed[row] > width) {
            keep_best(all, n, row, least[row], width, scores, numbers);
        }
        let written = n_slots.next_power_of_two().min(width);
        (n_slots..written).for_each(|slot| clear_slot(scores, numbers, n, slot));
        written
    }
}

/// The best component of each row of a block.
#[derive(Clone, Copy)]
pub(super) struct RowBests<'a, F> {
    /// Number of rows without the padding of the last group.
    pub n_rows: usize,
    /// Best scores.
    pub scores: &'a [F],
    /// Components of the best scores.
    pub numbers: &'a [F],
}

#[inline(always)]
fn clear_slot<F: Scalar>(scores: &mut [F], numbers: &mut [F], n: usize, slot: usize) {
    scores[slot * n..][..n].fill(F::NEG_INFINITY);
    numbers[slot * n..][..n].fill(F::from_f64(FREE));
}

/// Selects the best components of a row with more than fit into the slots.
#[inline(always)]
fn keep_best<F: Scalar>(all: &[F], n: usize, row: usize, least: F, width: usize, scores: &mut [F], numbers: &mut [F]) {
    for slot in 0..width {
        scores[slot * n + row] = F::NEG_INFINITY;
        numbers[slot * n + row] = F::from_f64(FREE);
    }
    let plain = pulp::Scalar::new();
    for (component, column) in all.chunks_exact(n).enumerate() {
        if column[row] >= least && column[row] >= scores[(width - 1) * n + row] {
            let (score, number) = (F::splat(plain, column[row]), F::splat(plain, F::from_f64(component as f64)));
            let kept: &mut [F::Vector<pulp::Scalar>] = bytemuck::cast_slice_mut(&mut scores[row..width * n]);
            let kept_numbers: &mut [F::Vector<pulp::Scalar>] = bytemuck::cast_slice_mut(&mut numbers[row..width * n]);
            insert::<_, F>(plain, score, number, kept, kept_numbers, n);
        }
    }
}
