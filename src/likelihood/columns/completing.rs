//! Rows of which a part is not seen in some blocks: each block completes its own columns.

use std::any::Any;

use crate::data::RowBlock;
use crate::likelihood::columns::{OfAnyScalar, Place};
use crate::responsibilities::TopL;
use crate::scoring::{Block, Completing, Incomplete, PairBounds, Scorer, Scratch, SumScorer, gather};
use crate::simd::{Lines, Scalar};

/// Adds up the statistics of blocks of the columns of rows of `dimension` values. `add` gets the number of a block, its
/// rows and weights, the position of each row among all, and the statistics of the block.
pub(super) fn add_blocks<'p>(
    places: impl Iterator<Item = &'p Place>,
    dimension: usize,
    rows: &[f64],
    weights: &[f64],
    statistics: &mut [f64],
    mut add: impl FnMut(usize, &[f64], &[f64], Option<&[usize]>, &mut [f64]),
) {
    let (mut own_rows, mut own_weights, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for (index, place) in places.enumerate() {
        gather(&place.columns, rows, dimension, &mut own_rows);
        let Some(present) = place.present else {
            add(index, &own_rows, weights, None, &mut statistics[place.statistics.clone()]);
            continue;
        };
        own_weights.clear();
        kept.clear();
        let size = place.columns.len();
        for (row, weight) in weights.iter().enumerate() {
            if !own_rows[row * size..][..size].iter().all(|value| value.is_nan()) {
                own_rows.copy_within(row * size..(row + 1) * size, kept.len() * size);
                own_weights.push(*weight);
                kept.push(row);
            }
        }
        statistics[present] += own_weights.iter().sum::<f64>();
        let own_rows = &own_rows[..kept.len() * size];
        add(index, own_rows, &own_weights, Some(&kept), &mut statistics[place.statistics.clone()]);
    }
}

/// Scores rows by blocks, some of which complete them.
pub(super) struct CompletingScorer<F: Scalar> {
    pub scores: SumScorer<F>,
    pub dimension: usize,
    pub blocks: Vec<(Place, OfAnyScalar)>,
}

impl<F: Scalar> Completing for CompletingScorer<F> {
    fn accumulate(&self, component: usize, rows: Incomplete<'_>, statistics: &mut [f64], space: &mut Lines<f64>) {
        let places = self.blocks.iter().map(|(place, _)| place);
        let Incomplete { values, weights, number } = rows;
        add_blocks(places, self.dimension, values.dense(), weights, statistics, |index, values, weights, kept, own| {
            let values = RowBlock::Dense(values);
            let Some(completing) = self.scores.block(index).completing() else {
                return self.blocks[index].1.of::<f64>().accumulate(values, weights, own, space);
            };
            let of_kept = |row: usize| number(kept.map_or(row, |kept| kept[row]));
            completing.accumulate(component, Incomplete { values, weights, number: &of_kept }, own, space);
        });
    }
}

impl<F: Scalar> Scorer<F> for CompletingScorer<F> {
    fn n_components(&self) -> usize {
        self.scores.n_components()
    }

    fn score_rows(
        &self,
        block: Block<'_, F>,
        bounds: Option<PairBounds<'_>>,
        sink: &mut TopL<F>,
        scratch: &mut Scratch<F>,
    ) {
        self.scores.score_rows(block, bounds, sink, scratch);
    }

    fn add_row_terms(&self, rows: RowBlock<'_, F>, out: &mut [f64]) {
        self.scores.add_row_terms(rows, out);
    }

    fn score_component(&self, component: usize, rows: &[F], out: &mut [F]) {
        self.scores.score_component(component, rows, out);
    }

    fn completing(&self) -> Option<&dyn Completing> {
        Some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
