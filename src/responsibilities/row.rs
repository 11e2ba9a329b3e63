//! Selects the best components of one row whose scores are contiguous: the second interface to the selection of
//! [`super::TopL`], for rows that arrive one at a time.

use pulp::Simd;

use crate::simd::{Lines, Scalar};

/// With more candidates than this, sorting needs fewer comparisons than ranking.
const MANY: usize = 64;
/// Likely components from the caller are used if at most this many times their number reach the lowest of their scores.
const FEW: usize = 3;

/// The best components of a row.
#[derive(Debug, Default)]
pub struct RowBest<F> {
    /// Their scores, best first.
    pub scores: Vec<F>,
    /// Their positions.
    pub components: Vec<u32>,
    /// Components that may be among the best, in order, at the front.
    candidates: Vec<u32>,
    /// Scores of the candidates, or the largest of many, padded to whole vectors with zeros.
    left: Lines<F>,
    /// For each of these, the number of better ones.
    ranks: Lines<F>,
    /// The indices 0, 1, ...
    numbers: Lines<F>,
}

impl<F: Scalar> RowBest<F> {
    /// Finds the `width` best of the positive scores, best first; ties go to the lower component. Scores are padded to
    /// whole vectors with zeros. `likely` may hold `width` different components that are probably among the best: the
    /// least of their scores then bounds the search. Call only inside [`crate::simd::Instructions::run`].
    #[inline(always)]
    pub fn list<S: Simd>(&mut self, simd: S, all: &[F], width: usize, likely: &[u32]) {
        let mut n = usize::MAX;
        if likely.len() == width {
            let least = likely.iter().map(|&component| all[component as usize]);
            let least = least.fold(F::INFINITY, |least, score| if score < least { score } else { least });
            n = self.find(simd, all, least);
        }
        if n > FEW * width {
            let least = self.bound(simd, all, width);
            n = self.find(simd, all, least);
        }
        let candidates = &mut self.candidates[..n];
        self.scores.clear();
        self.components.clear();
        if n > MANY {
            let score = |component: &u32| all[*component as usize];
            candidates.sort_unstable_by(|a, b| {
                let falling = score(b).partial_cmp(&score(a)).unwrap_or(std::cmp::Ordering::Equal);
                falling.then(a.cmp(b))
            });
            let candidates = &candidates[..n.min(width)];
            self.scores.extend(candidates.iter().map(score));
            self.components.extend_from_slice(candidates);
            return;
        }
        self.left.resize(n.next_multiple_of(F::GROUP));
        for (left, &component) in self.left.iter_mut().zip(&*candidates) {
            *left = all[component as usize];
        }
        self.left[n..].fill(F::ZERO);
        self.rank(simd, n);
        self.scores.resize(n, F::ZERO);
        self.components.resize(n, 0);
        let ranked = self.left.iter().zip(&self.candidates[..n]).zip(&*self.ranks);
        for ((&score, &component), rank) in ranked {
            let rank = rank.to_f64() as usize;
            (self.scores[rank], self.components[rank]) = (score, component);
        }
        self.scores.truncate(width);
        self.components.truncate(width);
    }

    /// Writes the components whose scores are positive and at least `least` to the candidates, in order, and returns
    /// their number.
    #[inline(always)]
    fn find<S: Simd>(&mut self, simd: S, all: &[F], least: F) -> usize {
        let vectors: &[F::Vector<S>] = bytemuck::cast_slice(all);
        let lanes = size_of::<F::Vector<S>>() / size_of::<F>();
        let (least, zero) = (F::splat(simd, least), F::splat(simd, F::ZERO));
        if self.candidates.len() < all.len() {
            self.candidates.resize(all.len(), 0);
        }
        let (mut n, together) = (0, u64::BITS as usize / lanes);
        // The bits of several vectors are collected first: loops over few bits end at unpredictable lengths.
        for (first, vectors) in (0_u32..).step_by(together * lanes).zip(vectors.chunks(together)) {
            let mut bits = 0;
            for (index, &vector) in vectors.iter().enumerate() {
                let near = F::both(simd, F::at_least(simd, vector, least), F::greater(simd, vector, zero));
                bits |= u64::from(F::bits(simd, near)) << (index * lanes);
            }
            while bits != 0 {
                self.candidates[n] = first + bits.trailing_zeros();
                n += 1;
                bits &= bits - 1;
            }
        }
        n
    }

    /// A score that at least `width` components reach, if one is quick to find: the `width`-th largest of the maxima
    /// of parts of the row. Otherwise zero.
    #[inline(always)]
    fn bound<S: Simd>(&mut self, simd: S, all: &[F], width: usize) -> F {
        let vectors: &[F::Vector<S>] = bytemuck::cast_slice(all);
        let lanes = size_of::<F::Vector<S>>() / size_of::<F>();
        let n_parts = (2 * width).div_ceil(lanes);
        let n = n_parts * lanes;
        if n > MANY || vectors.len() < 2 * n_parts {
            return F::ZERO;
        }
        self.left.resize(n.next_multiple_of(F::GROUP));
        let parts: &mut [F::Vector<S>] = bytemuck::cast_slice_mut(&mut self.left);
        for (part, largest) in parts.iter_mut().enumerate() {
            *largest = F::splat(simd, F::ZERO);
            if part < n_parts {
                for &vector in vectors[part..].iter().step_by(n_parts) {
                    *largest = F::larger(simd, *largest, vector);
                }
            }
        }
        self.rank(simd, n);
        let last = F::from_f64((width - 1) as f64);
        let mut bound = F::ZERO;
        for (&score, &rank) in self.left[..n].iter().zip(&*self.ranks) {
            bound = if rank == last { score } else { bound };
        }
        bound
    }

    /// For each of the first `n` remaining scores, counts those that are larger, or equal and earlier.
    #[inline(always)]
    fn rank<S: Simd>(&mut self, simd: S, n: usize) {
        let lanes = size_of::<F::Vector<S>>() / size_of::<F>();
        if self.numbers.is_empty() {
            self.numbers.reset(F::GROUP, F::ZERO);
            self.numbers.iter_mut().zip(0..).for_each(|(number, index)| *number = F::from_f64(f64::from(index)));
        }
        self.ranks.resize(self.left.len());
        let left: &[F::Vector<S>] = bytemuck::cast_slice(&self.left);
        let ranks: &mut [F::Vector<S>] = bytemuck::cast_slice_mut(&mut self.ranks);
        let numbers: &[F::Vector<S>] = bytemuck::cast_slice(&self.numbers);
        let (zero, minus_one) = (F::splat(simd, F::ZERO), F::splat(simd, F::from_f64(-1.0)));
        for (index, (&scores, rank)) in left.iter().zip(ranks).enumerate().take(n.div_ceil(lanes)) {
            let (first, end) = (index * lanes, ((index + 1) * lanes).min(n));
            let mut count = zero;
            for &other in &self.left[..first] {
                let is_better = F::at_least(simd, F::splat(simd, other), scores);
                count = F::select(simd, is_better, F::minus(simd, count, minus_one), count);
            }
            for (&other, &number) in self.left[first..end].iter().zip(&*self.numbers) {
                let other = F::splat(simd, other);
                let is_before = F::greater(simd, numbers[0], F::splat(simd, number));
                let is_tie = F::both(simd, F::equal(simd, other, scores), is_before);
                let is_better = F::either(simd, F::greater(simd, other, scores), is_tie);
                count = F::select(simd, is_better, F::minus(simd, count, minus_one), count);
            }
            for &other in &self.left[end..n] {
                let is_better = F::greater(simd, F::splat(simd, other), scores);
                count = F::select(simd, is_better, F::minus(simd, count, minus_one), count);
            }
            *rank = count;
        }
    }
}
