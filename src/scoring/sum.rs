//! Log weights that are sums over blocks of columns, each with a scorer of its own.

use std::any::Any;

use pulp::{Simd, WithSimd};

use crate::data::RowBlock;
use crate::responsibilities::TopL;
use crate::scoring::PairBounds;
use crate::scoring::scorer::{Block, Scorer, Scratch, SumScratch};
use crate::simd::{Instructions, Scalar};

/// Number of scores of a piece of rows that stay in the cache until all blocks have been added.
const PIECE: usize = 1 << 15;

/// Columns and their scorer.
pub struct ScoredColumns<F> {
    /// Which columns of a row, in the order of the scorer.
    pub columns: Vec<usize>,
    /// Scores these columns.
    pub scorer: Box<dyn Scorer<F>>,
    /// Whether a row may lack all of them (NaN); such a row has the score zero.
    pub may_lack: bool,
}

/// The sum of log weights and of the scores of blocks of columns.
pub struct SumScorer<F> {
    dimension: usize,
    log_weights: Vec<F>,
    blocks: Vec<ScoredColumns<F>>,
}

impl<F: Scalar> ScoredColumns<F> {
    /// Copies its columns of rows of `dimension` values; zeros for a row that lacks them.
    fn gather(&self, rows: &[F], dimension: usize, out: &mut Vec<F>) {
        gather(&self.columns, rows, dimension, out);
        if self.may_lack {
            let own = out.chunks_exact_mut(self.columns.len());
            let lacking = own.filter(|row| row.iter().all(|value| value.is_nan()));
            lacking.for_each(|row| row.fill(F::ZERO));
        }
    }

    /// Sets the scores of rows that lack its columns to zero.
    fn clear_lacking(&self, rows: &[F], dimension: usize, scores: &mut [F]) {
        if self.may_lack {
            for (score, row) in scores.iter_mut().zip(rows.chunks_exact(dimension)) {
                if lacks(row, &self.columns) {
                    *score = F::ZERO;
                }
            }
        }
    }
}

/// Offers all scores of a piece of rows, (K, `n_padded`), that begins with group `first`, to the sink.
pub(super) fn offer_sums<F: Scalar>(sums: &[F], n_padded: usize, first: usize, sink: &mut TopL<F>) {
    Instructions::widest().run(OfferSums { sums, n_padded, first, component: 0, sink });
}

/// Offers the scores of all rows under one component, with the padding of the last group, to the sink.
pub fn offer_column<F: Scalar>(component: usize, scores: &[F], sink: &mut TopL<F>) {
    Instructions::widest().run(OfferSums { sums: scores, n_padded: scores.len(), first: 0, component, sink });
}

/// Whether a row lacks all of these columns.
pub fn lacks<F: Scalar>(row: &[F], columns: &[usize]) -> bool {
    columns.iter().all(|&column| row[column].is_nan())
}

/// Copies columns of rows of `dimension` values, one row after another.
pub fn gather<T: Copy>(columns: &[usize], rows: &[T], dimension: usize, out: &mut Vec<T>) {
    out.clear();
    if let [first, .., last] = *columns
        && columns.is_sorted()
        && last + 1 - first == columns.len()
    {
        rows.chunks_exact(dimension).for_each(|row| out.extend_from_slice(&row[first..=last]));
        return;
    }
    for row in rows.chunks_exact(dimension) {
        out.extend(columns.iter().map(|&column| row[column]));
    }
}

impl<F: Scalar> SumScorer<F> {
    /// Adds up the scores of blocks of the columns of rows of `dimension` values.
    pub fn new(dimension: usize, log_weights: &[f64], blocks: Vec<ScoredColumns<F>>) -> Self {
        let log_weights = log_weights.iter().map(|&weight| F::from_f64(weight)).collect();
        Self { dimension, log_weights, blocks }
    }

    /// The scorer of a block.
    pub fn block(&self, index: usize) -> &dyn Scorer<F> {
        self.blocks[index].scorer.as_ref()
    }

    /// Writes the sums of a piece of rows.
    fn add_up(&self, rows: &[F], space: &mut SumScratch<F>, scratch: &mut Scratch<F>) {
        let (n, k) = (rows.len() / self.dimension, self.log_weights.len());
        let n_padded = n.next_multiple_of(F::GROUP);
        let SumScratch { rows: own, sink, sums } = space;
        sums.resize(k * n_padded);
        for (sums, &weight) in sums.chunks_exact_mut(n_padded).zip(&self.log_weights) {
            sums.fill(weight);
        }
        for block in &self.blocks {
            block.gather(rows, self.dimension, own);
            sink.reset(n, k, k, None, false, false);
            block.scorer.score_rows(Block { rows: RowBlock::Dense(own), leads: &[] }, None, sink, scratch);
            let (scores, _) = sink.all_scores();
            if !block.may_lack {
                sums.iter_mut().zip(scores).for_each(|(sum, &score)| *sum += score);
                continue;
            }
            let has = |row: &[F]| !lacks(row, &block.columns);
            for (sums, scores) in sums.chunks_exact_mut(n_padded).zip(scores.chunks_exact(n_padded)) {
                let rows = rows.chunks_exact(self.dimension);
                for ((sum, &score), _) in sums.iter_mut().zip(scores).zip(rows).filter(|(_, row)| has(row)) {
                    *sum += score;
                }
            }
        }
    }
}

impl<F: Scalar> Scorer<F> for SumScorer<F> {
    fn n_components(&self) -> usize {
        self.log_weights.len()
    }

    fn score_rows(&self, block: Block<'_, F>, _: Option<PairBounds<'_>>, sink: &mut TopL<F>, scratch: &mut Scratch<F>) {
        let (rows, k) = (block.rows.dense(), self.log_weights.len());
        let mut space = scratch.sums.take().unwrap_or_default();
        let n_groups = (PIECE / k.max(1) / F::GROUP).max(1);
        for (index, rows) in rows.chunks(n_groups * F::GROUP * self.dimension).enumerate() {
            self.add_up(rows, &mut space, scratch);
            let n_padded = (rows.len() / self.dimension).next_multiple_of(F::GROUP);
            let first = index * n_groups;
            offer_sums(&space.sums, n_padded, first, sink);
        }
        scratch.sums = Some(space);
        sink.n_evaluated += k * (rows.len() / self.dimension);
    }

    fn add_row_terms(&self, rows: RowBlock<'_, F>, out: &mut [f64]) {
        let (rows, mut own) = (rows.dense(), Vec::new());
        let mut terms = vec![0.0; out.len()];
        for block in &self.blocks {
            block.gather(rows, self.dimension, &mut own);
            terms.fill(0.0);
            block.scorer.add_row_terms(RowBlock::Dense(&own), &mut terms);
            for ((out, term), row) in out.iter_mut().zip(&terms).zip(rows.chunks_exact(self.dimension)) {
                if !(block.may_lack && lacks(row, &block.columns)) {
                    *out += term;
                }
            }
        }
    }

    fn score_component(&self, component: usize, rows: &[F], out: &mut [F]) {
        let (mut own, mut scores) = (Vec::new(), vec![F::ZERO; out.len()]);
        out.fill(self.log_weights[component]);
        for block in &self.blocks {
            block.gather(rows, self.dimension, &mut own);
            block.scorer.score_component(component, &own, &mut scores);
            block.clear_lacking(rows, self.dimension, &mut scores);
            out.iter_mut().zip(&scores).for_each(|(sum, &score)| *sum += score);
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Offers the sums of a piece of rows to the sink.
struct OfferSums<'a, F> {
    sums: &'a [F],
    n_padded: usize,
    /// Its first group.
    first: usize,
    /// The component of the first sums.
    component: usize,
    sink: &'a mut TopL<F>,
}

impl<F: Scalar> WithSimd for OfferSums<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { sums, n_padded, first, component, sink } = self;
        let mut offers = sink.offers(simd);
        for (component, sums) in (component..).zip(sums.chunks_exact(n_padded)) {
            for (group, sums) in sums.chunks_exact(F::GROUP).enumerate() {
                offers.offer_group(component, first + group, sums);
            }
        }
    }
}
