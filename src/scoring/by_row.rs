//! Log densities that are neither quadratic nor linear, evaluated row by row. They are predictive densities, which are
//! needed rarely and not in every pass.

use std::any::Any;
use std::ops::Range;

use pulp::{Simd, WithSimd};

use crate::data::RowBlock;
use crate::responsibilities::TopL;
use crate::scoring::PairBounds;
use crate::scoring::row::{Row, each_row};
use crate::scoring::scorer::{Block, Scorer, Scratch};
use crate::scoring::sparse::offer_all;
use crate::simd::{Instructions, Lines, Scalar};

/// Log densities given by a function of the component and the row.
pub struct RowScorer {
    dimension: usize,
    n_components: usize,
    f: OfComponents,
}

/// Writes the log densities of a row under a range of components.
type OfComponents = Box<dyn Fn(Range<usize>, Row<'_>, &mut [f64]) + Send + Sync>;

impl RowScorer {
    /// Builds a scorer from `f(k, row)` for `n_components` components.
    pub fn new(
        dimension: usize,
        n_components: usize,
        f: impl Fn(usize, Row<'_>) -> f64 + Send + Sync + 'static,
    ) -> Self {
        Self::of_rows(dimension, n_components, move |components, row, out| {
            components.zip(out).for_each(|(k, out)| *out = f(k, row));
        })
    }

    /// Builds a scorer from `f(components, row, out)`, which writes the values of a range of components and can share
    /// work on the row between them.
    pub fn of_rows(
        dimension: usize,
        n_components: usize,
        f: impl Fn(Range<usize>, Row<'_>, &mut [f64]) + Send + Sync + 'static,
    ) -> Self {
        Self { dimension, n_components, f: Box::new(f) }
    }
}

impl<F: Scalar> Scorer<F> for RowScorer {
    fn n_components(&self) -> usize {
        self.n_components
    }

    fn score_rows(&self, block: Block<'_, F>, _: Option<PairBounds<'_>>, sink: &mut TopL<F>, scratch: &mut Scratch<F>) {
        let k = self.n_components;
        let mut offer = |group: usize, scores: &Lines<F>| Instructions::widest().run(Offer { group, scores, sink });
        let scores = &mut scratch.scores;
        scores.reset(k * F::GROUP, F::ZERO);
        let (mut n, mut values) = (0, vec![0.0; k]);
        each_row(block.rows, self.dimension, |number, row| {
            (self.f)(0..k, row, &mut values);
            for (&value, score) in values.iter().zip(scores[number % F::GROUP..].iter_mut().step_by(F::GROUP)) {
                *score = F::from_f64(value);
            }
            n = number + 1;
            if n % F::GROUP == 0 {
                offer(number / F::GROUP, scores);
            }
        });
        if n % F::GROUP != 0 {
            offer(n / F::GROUP, scores);
        }
        sink.n_evaluated += k * n;
    }

    fn score_component(&self, component: usize, rows: &[F], out: &mut [F]) {
        each_row(RowBlock::Dense(rows), self.dimension, |number, row| {
            let mut one = [0.0];
            (self.f)(component..component + 1, row, &mut one);
            out[number] = F::from_f64(one[0]);
        });
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct Offer<'a, F> {
    group: usize,
    scores: &'a Lines<F>,
    sink: &'a mut TopL<F>,
}

impl<F: Scalar> WithSimd for Offer<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        offer_all(simd, self.scores, self.group, self.sink);
    }
}
