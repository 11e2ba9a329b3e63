//! The best components of one row whose scores stand side by side: the second entry to the selection of [`super::TopL`],
//! for rows that come one at a time.

use pulp::Simd;

use crate::responsibilities::top_l::{FREE, insert};
use crate::simd::Scalar;

/// The list of the best components of a row, descending; ties go to the lower component.
#[derive(Debug, Default)]
pub struct RowBest<F> {
    /// Their scores.
    pub scores: Vec<F>,
    /// The numbers of their components, which a float holds exactly; below zero where no component has taken a slot.
    pub numbers: Vec<F>,
}

impl<F: Scalar> RowBest<F> {
    /// Lists the `width` best of the positive scores that are at least `least`. Scores fill whole vectors and are zero
    /// behind the last component. To be called inside [`crate::simd::Instructions::run`].
    #[allow(clippy::inline_always, reason = "compiled once for each instruction set")]
    #[inline(always)]
    pub fn list<S: Simd>(&mut self, simd: S, all: &[F], width: usize, least: F) {
        self.scores.clear();
        self.scores.resize(width, F::ZERO);
        self.numbers.clear();
        self.numbers.resize(width, F::from_f64(FREE));
        let lanes = size_of::<F::Vector<S>>() / size_of::<F>();
        let mut last = least;
        let vectors: &[F::Vector<S>] = bytemuck::cast_slice(all);
        for (at, &vector) in vectors.iter().enumerate() {
            if F::any(simd, F::at_least(simd, vector, F::splat(simd, last))) {
                for component in at * lanes..(at + 1) * lanes {
                    let score = all[component];
                    if score >= last && score > F::ZERO {
                        self.take(component, score);
                        let worst = self.scores[width - 1];
                        last = if worst > last { worst } else { last };
                    }
                }
            }
        }
    }

    #[allow(clippy::inline_always, reason = "compiled once for each instruction set")]
    #[inline(always)]
    fn take(&mut self, component: usize, score: F) {
        let plain = pulp::Scalar::new();
        let (score, number) = (F::splat(plain, score), F::splat(plain, F::from_f64(component as f64)));
        let scores: &mut [F::Vector<pulp::Scalar>] = bytemuck::cast_slice_mut(&mut self.scores);
        let numbers: &mut [F::Vector<pulp::Scalar>] = bytemuck::cast_slice_mut(&mut self.numbers);
        insert::<_, F>(plain, score, number, scores, numbers, 1);
    }
}
