//! Lists the components of a row within the margin, once all scores are available. With few components this is faster
//! than sorting them as they arrive: most scores are read once, a vector at a time.

use pulp::Simd;

use crate::responsibilities::insert::{FREE, insert};
use crate::simd::{Lines, Scalar};

/// Lanes of the widest vector.
const MOST_LANES: usize = 16;

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
    /// The best scores of a vector of rows, (slots, lanes), in descending order.
    sorted: Lines<F>,
}

impl<F: Scalar> NearList<F> {
    /// Lists up to `width` components of each row, given the scores of all components, (K, rows), and the best of each
    /// row. Returns the number of slots in use. Call only inside [`crate::simd::Instructions::run`].
    #[inline(always)]
    pub fn list<S: Simd>(&mut self, simd: S, all: &[F], best: RowBests<'_, F>, width: usize, margin: F) -> usize {
        let n = best.scores.len();
        self.least.reset(n, F::INFINITY);
        let rows = self.least.iter_mut().zip(&best.scores[..best.n_rows]);
        rows.for_each(|(least, &best)| *least = best - margin);
        self.scores.resize(width * n);
        self.numbers.resize(width * n);
        self.scores[..n].copy_from_slice(best.scores);
        self.numbers[..n].copy_from_slice(best.numbers);
        let lanes = size_of::<F::Vector<S>>() / size_of::<F>();
        (self.width, self.n_slots) = (width, 1);
        // Neighbours are alike: where one does not fit, the next is not tried.
        let mut is_crowded = false;
        for group in 0..n / lanes {
            if !is_crowded && self.list_group(simd, all, best, group, true) == 0 {
                continue;
            }
            is_crowded = raise(simd, all, n, group, width, &mut self.least, &mut self.sorted);
            let crowded = self.list_group(simd, all, best, group, false);
            for lane in (0..lanes).filter(|lane| crowded >> lane & 1 == 1) {
                // Several scores equal the last one that fits.
                let row = group * lanes + lane;
                keep_best(all, n, row, self.least[row], width, &mut self.scores, &mut self.numbers);
            }
        }
        let Self { scores, numbers, n_slots, .. } = self;
        let written = n_slots.next_power_of_two().min(width);
        (*n_slots..written).for_each(|slot| clear_slot(scores, numbers, n, slot));
        written
    }

    /// Lists the components of a vector of rows, and counts the slots in use. Returns one bit for each row whose
    /// components do not fit; with `stops`, it ends at the first one.
    #[inline(always)]
    fn list_group<S: Simd>(&mut self, simd: S, all: &[F], best: RowBests<'_, F>, group: usize, stops: bool) -> u32 {
        let Self { scores, numbers, least, n_slots, .. } = self;
        let (scores, numbers) = (&mut **scores, &mut **numbers);
        let n = best.scores.len();
        let lanes = size_of::<F::Vector<S>>() / size_of::<F>();
        let vectors: &[F::Vector<S>] = bytemuck::cast_slice(all);
        let bounds: &[F::Vector<S>] = bytemuck::cast_slice(least);
        let leads: &[F::Vector<S>] = bytemuck::cast_slice(best.numbers);
        let (bound, lead) = (bounds[group], leads[group]);
        // Where the next component of each row goes.
        let mut places = [0; MOST_LANES];
        places.iter_mut().enumerate().for_each(|(lane, place)| *place = n + group * lanes + lane);
        let (mut used, end) = (*n_slots * n, self.width * n);
        let mut crowded = 0;
        for (component, &score) in vectors[group..].iter().step_by(n / lanes).enumerate() {
            let near = F::at_least(simd, score, bound);
            if !F::any(simd, near) {
                continue;
            }
            let number = F::from_f64(component as f64);
            let is_lead = F::equal(simd, lead, F::splat(simd, number));
            let mut left = F::bits(simd, near) & !F::bits(simd, is_lead);
            let values: &[F] = bytemuck::cast_slice(std::slice::from_ref(&score));
            while left != 0 {
                let lane = left.trailing_zeros() as usize % MOST_LANES;
                left &= left - 1;
                let place = places[lane];
                if place >= used {
                    if place >= end {
                        crowded |= 1 << lane;
                        if stops {
                            return crowded;
                        }
                        continue;
                    }
                    clear_slot(scores, numbers, n, place / n);
                    used += n;
                    *n_slots += 1;
                }
                scores[place] = values[lane];
                numbers[place] = number;
                places[lane] = place + n;
            }
        }
        crowded
    }
}

/// Raises the least score to be kept of a vector of rows to the last one that fits into the slots. Returns whether it
/// rose in any row.
#[inline(always)]
fn raise<S: Simd, F: Scalar>(
    simd: S,
    all: &[F],
    n: usize,
    group: usize,
    width: usize,
    least: &mut [F],
    sorted: &mut Lines<F>,
) -> bool {
    let lanes = size_of::<F::Vector<S>>() / size_of::<F>();
    sorted.reset(width * lanes, F::NEG_INFINITY);
    let sorted: &mut [F::Vector<S>] = bytemuck::cast_slice_mut(sorted);
    let vectors: &[F::Vector<S>] = bytemuck::cast_slice(all);
    for &score in vectors[group..].iter().step_by(n / lanes) {
        if F::any(simd, F::greater(simd, score, sorted[width - 1])) {
            let mut score = score;
            for kept in &mut *sorted {
                let old = *kept;
                *kept = F::larger(simd, score, old);
                score = F::smaller(simd, score, old);
            }
        }
    }
    let least: &mut [F::Vector<S>] = bytemuck::cast_slice_mut(least);
    let rose = F::any(simd, F::greater(simd, sorted[width - 1], least[group]));
    least[group] = F::larger(simd, least[group], sorted[width - 1]);
    rose
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
            let (score, number) = ([F::splat(plain, column[row])], [F::splat(plain, F::from_f64(component as f64))]);
            let kept: &mut [[F::Vector<pulp::Scalar>; 1]] = bytemuck::cast_slice_mut(&mut scores[..width * n]);
            let kept_numbers: &mut [[F::Vector<pulp::Scalar>; 1]] = bytemuck::cast_slice_mut(&mut numbers[..width * n]);
            insert::<_, F, 1>(plain, score, number, kept, kept_numbers, (row, n));
        }
    }
}
