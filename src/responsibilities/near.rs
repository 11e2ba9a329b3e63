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
    /// Maximum number of components of a row.
    width: usize,
    /// Number of slots in use.
    n_slots: usize,
    /// Number of components of each row, also of those that do not fit.
    n_listed: Vec<usize>,
    /// The best scores of a vector of rows, (slots, lanes), in descending order.
    sorted: Lines<F>,
}

impl<F: Scalar> NearList<F> {
    /// Lists up to `width` components of each row, given the scores of all components, (K, rows), and the best of each
    /// row. Returns the number of slots in use. Call only inside [`crate::simd::Instructions::run`].
    #[inline(always)]
    pub fn list<S: Simd>(&mut self, simd: S, all: &[F], best: RowBests<'_, F>, width: usize, margin: F) -> usize {
        let Self { scores, numbers, least, n_listed, .. } = self;
        let n = best.scores.len();
        least.reset(n, F::INFINITY);
        least.iter_mut().zip(&best.scores[..best.n_rows]).for_each(|(least, &best)| *least = best - margin);
        scores.resize(width * n);
        numbers.resize(width * n);
        scores[..n].copy_from_slice(best.scores);
        numbers[..n].copy_from_slice(best.numbers);
        n_listed.clear();
        n_listed.resize(n, 1);
        let lanes = size_of::<F::Vector<S>>() / size_of::<F>();
        (self.width, self.n_slots) = (width, 1);
        for group in 0..n / lanes {
            if self.list_group(simd, all, best, group, true) {
                continue;
            }
            let rows = group * lanes..(group + 1) * lanes;
            raise(simd, all, n, group, width, &mut self.least, &mut self.sorted);
            self.n_listed[rows.clone()].fill(1);
            self.list_group(simd, all, best, group, false);
            for row in rows.filter(|&row| self.n_listed[row] > width) {
                // Several scores equal the last one that fits.
                keep_best(all, n, row, self.least[row], width, &mut self.scores, &mut self.numbers);
            }
        }
        let Self { scores, numbers, n_slots, .. } = self;
        let written = n_slots.next_power_of_two().min(width);
        (*n_slots..written).for_each(|slot| clear_slot(scores, numbers, n, slot));
        written
    }

    /// Lists the components of a vector of rows, and counts the slots in use. Returns whether all fit; with `stops`, it
    /// ends at the first one that does not.
    #[inline(always)]
    fn list_group<S: Simd>(&mut self, simd: S, all: &[F], best: RowBests<'_, F>, group: usize, stops: bool) -> bool {
        let Self { scores, numbers, least, n_listed, n_slots, .. } = self;
        let (n, width) = (best.scores.len(), self.width);
        let lanes = size_of::<F::Vector<S>>() / size_of::<F>();
        let vectors: &[F::Vector<S>] = bytemuck::cast_slice(all);
        let bounds: &[F::Vector<S>] = bytemuck::cast_slice(least);
        let leads: &[F::Vector<S>] = bytemuck::cast_slice(best.numbers);
        let (bound, lead) = (bounds[group], leads[group]);
        let mut fits = true;
        for (component, &score) in vectors[group..].iter().step_by(n / lanes).enumerate() {
            let near = F::at_least(simd, score, bound);
            if !F::any(simd, near) {
                continue;
            }
            let number = F::from_f64(component as f64);
            let is_lead = F::equal(simd, lead, F::splat(simd, number));
            let mut left = F::bits(simd, near) & !F::bits(simd, is_lead);
            while left != 0 {
                let row = group * lanes + left.trailing_zeros() as usize;
                left &= left - 1;
                let slot = n_listed[row];
                n_listed[row] += 1;
                if slot >= width {
                    fits = false;
                    if stops {
                        return fits;
                    }
                    continue;
                }
                if slot >= *n_slots {
                    clear_slot(scores, numbers, n, slot);
                    *n_slots += 1;
                }
                scores[slot * n + row] = all[component * n + row];
                numbers[slot * n + row] = number;
            }
        }
        fits
    }
}

/// Raises the least score to be kept of a vector of rows to the last one that fits into the slots.
#[inline(always)]
fn raise<S: Simd, F: Scalar>(
    simd: S,
    all: &[F],
    n: usize,
    group: usize,
    width: usize,
    least: &mut [F],
    sorted: &mut Lines<F>,
) {
    let lanes = size_of::<F::Vector<S>>() / size_of::<F>();
    sorted.reset(width * lanes, F::NEG_INFINITY);
    let sorted: &mut [F::Vector<S>] = bytemuck::cast_slice_mut(sorted);
    let vectors: &[F::Vector<S>] = bytemuck::cast_slice(all);
    for &score in vectors[group..].iter().step_by(n / lanes) {
        if F::any(simd, F::greater(simd, score, sorted[width - 1])) {
            let mut score = score;
            for kept in &mut *sorted {
                let is_better = F::greater(simd, score, *kept);
                let old = *kept;
                *kept = F::select(simd, is_better, score, old);
                score = F::select(simd, is_better, old, score);
            }
        }
    }
    let least: &mut [F::Vector<S>] = bytemuck::cast_slice_mut(least);
    least[group] = F::larger(simd, least[group], sorted[width - 1]);
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
