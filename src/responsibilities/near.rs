//! The components of a row that are within the margin, listed once all scores are there. Where components are few, this
//! is faster than to sort them as they come: most scores are looked at once, a vector at a time.

use pulp::Simd;

use crate::responsibilities::top_l::{FREE, insert};
use crate::simd::{Lines, Scalar};

/// Lists of the rows of one block, side by side as in [`super::TopL`].
#[derive(Debug, Default)]
pub(super) struct NearList<F> {
    /// (slots, rows): the best first, then the others in the order of the components.
    pub scores: Lines<F>,
    /// The numbers of their components.
    pub numbers: Lines<F>,
    /// Minimum score to be kept, (rows,).
    least: Lines<F>,
    /// How many each row has; one more than there are slots where some had no room.
    n_listed: Vec<usize>,
}

impl<F: Scalar> NearList<F> {
    /// Lists up to `width` components of each row, from the scores of all components, (K, rows), and the best of each
    /// row. Returns the number of slots in use. To be called inside [`crate::simd::Instructions::run`].
    #[allow(clippy::inline_always, reason = "compiled once for each instruction set")]
    #[inline(always)]
    pub fn list<S: Simd>(&mut self, simd: S, all: &[F], best: RowBests<'_, F>, width: usize, margin: F) -> usize {
        let Self { scores, numbers, least, n_listed } = self;
        let n = best.scores.len();
        least.reset(n, F::INFINITY);
        least.iter_mut().zip(&best.scores[..best.n_rows]).for_each(|(least, &best)| *least = best - margin);
        // Behind the last slot is one for what has no room.
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
            for (at, (&score, &bound)) in vectors.iter().zip(bounds).enumerate() {
                if !F::any(simd, F::at_least(simd, score, bound)) {
                    continue;
                }
                for row in at * lanes..(at + 1) * lanes {
                    let slot = n_listed[row].min(width);
                    if slot >= n_slots {
                        clear_slot(scores, numbers, n, slot);
                        n_slots += 1;
                    }
                    // Which rows have it near cannot be foreseen: what is not near stands where the next one will.
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
    /// Rows without those that fill up the last group.
    pub n_rows: usize,
    /// Their scores.
    pub scores: &'a [F],
    /// Their numbers.
    pub numbers: &'a [F],
}

#[allow(clippy::inline_always, reason = "compiled once for each instruction set")]
#[inline(always)]
fn clear_slot<F: Scalar>(scores: &mut [F], numbers: &mut [F], n: usize, slot: usize) {
    scores[slot * n..][..n].fill(F::NEG_INFINITY);
    numbers[slot * n..][..n].fill(F::from_f64(FREE));
}

/// The best of a row that has more than there are slots.
#[allow(clippy::inline_always, reason = "compiled once for each instruction set")]
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
