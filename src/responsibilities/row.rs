//! The best components of one row whose scores stand side by side: the second entry to the selection of
//! [`super::TopL`], for rows that come one at a time.

use pulp::Simd;

use crate::simd::{Lines, Scalar};

/// The best components of a row.
#[derive(Debug, Default)]
pub struct RowBest<F> {
    /// Their scores.
    pub scores: Vec<F>,
    /// Their positions.
    pub components: Vec<u32>,
    /// Those that may be among them, and their scores, filled up to whole vectors with zeros.
    candidates: Vec<u32>,
    left: Lines<F>,
}

impl<F: Scalar> RowBest<F> {
    /// Finds the `width` best of the positive scores that are at least `least`; ties go to the lower component. Where
    /// there are more of them they come best first, otherwise in the order of components. Scores fill whole vectors and
    /// are zero behind the last component. To be called inside [`crate::simd::Instructions::run`].
    #[allow(clippy::inline_always, reason = "compiled once for each instruction set")]
    #[inline(always)]
    pub fn list<S: Simd>(&mut self, simd: S, all: &[F], width: usize, least: F) {
        let Self { scores, components, candidates, left } = self;
        candidates.clear();
        let vectors: &[F::Vector<S>] = bytemuck::cast_slice(all);
        let lanes = size_of::<F::Vector<S>>() / size_of::<F>();
        let (least, zero) = (F::splat(simd, least), F::splat(simd, F::ZERO));
        for (at, &vector) in vectors.iter().enumerate() {
            let near = F::both(simd, F::at_least(simd, vector, least), F::greater(simd, vector, zero));
            let mut bits = F::bits(simd, near);
            while bits != 0 {
                candidates.push((at * lanes) as u32 + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
        scores.clear();
        components.clear();
        if candidates.len() <= width {
            scores.extend(candidates.iter().map(|&component| all[component as usize]));
            components.extend_from_slice(candidates);
            return;
        }
        let n = candidates.len().next_multiple_of(F::GROUP);
        left.resize(n);
        for (left, &component) in left.iter_mut().zip(&*candidates) {
            *left = all[component as usize];
        }
        left[candidates.len()..].fill(F::ZERO);
        for _ in 0..width {
            let vectors: &[F::Vector<S>] = bytemuck::cast_slice(left);
            let mut best = zero;
            for &vector in vectors {
                best = F::larger(simd, best, vector);
            }
            let score = F::maximum(simd, best);
            let best = F::splat(simd, score);
            let first = |&vector: &F::Vector<S>| F::any(simd, F::equal(simd, vector, best));
            let Some(at) = vectors.iter().position(first) else { break };
            let place = at * lanes + F::bits(simd, F::equal(simd, vectors[at], best)).trailing_zeros() as usize;
            scores.push(score);
            components.push(candidates[place]);
            left[place] = F::ZERO;
        }
    }
}
