//! Log weights of rows with missing values under quadratic components: the columns that a row has are scored by a
//! scorer of its pattern.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use crate::data::RowBlock;
use crate::responsibilities::TopL;
use crate::scoring::PairBounds;
use crate::scoring::quadratic::QuadraticScorer;
use crate::scoring::quadratic_form::Quadratic;
use crate::scoring::scorer::{Block, Completing, Scorer, Scratch};
use crate::scoring::sum::offer_sums;
use crate::simd::Scalar;

/// Number of numbers of the scorers that are kept. Those of further patterns are made again for each block of rows.
const MOST_NUMBERS: usize = 1 << 24;

/// The columns that a row has, one bit each.
pub type HolePattern = Vec<u64>;

/// The pattern of a row.
pub fn pattern_of<F: Scalar>(row: &[F]) -> HolePattern {
    let mut bits = vec![0; row.len().div_ceil(64)];
    for (column, _) in row.iter().enumerate().filter(|(_, value)| !value.is_nan()) {
        bits[column / 64] |= 1 << (column % 64);
    }
    bits
}

/// The columns of a pattern, ascending.
pub fn columns_of(pattern: &[u64], dimension: usize) -> Vec<usize> {
    (0..dimension).filter(|column| pattern[column / 64] >> (column % 64) & 1 == 1).collect()
}

/// The rows of each pattern.
pub fn by_pattern<F: Scalar>(rows: &[F], dimension: usize) -> BTreeMap<HolePattern, Vec<usize>> {
    let mut found: BTreeMap<HolePattern, Vec<usize>> = BTreeMap::new();
    for (number, row) in rows.chunks_exact(dimension).enumerate() {
        found.entry(pattern_of(row)).or_default().push(number);
    }
    found
}

/// The components of a pattern, given its columns.
type OfPattern = Box<dyn Fn(&[usize]) -> Vec<Quadratic> + Send + Sync>;

/// Packed components for every pattern of missing values. A row without any value has the log weights as scores.
pub struct PatternScorer<F: Scalar> {
    dimension: usize,
    log_weights: Vec<F>,
    of_pattern: OfPattern,
    known: Mutex<HashMap<HolePattern, Arc<QuadraticScorer<F>>>>,
    completing: Option<Box<dyn Completing>>,
}

impl<F: Scalar> PatternScorer<F> {
    /// Scores rows of `dimension` columns by what `of_pattern` makes of components with these log weights.
    pub fn new(
        dimension: usize,
        log_weights: &[f64],
        of_pattern: impl Fn(&[usize]) -> Vec<Quadratic> + Send + Sync + 'static,
        completing: Option<Box<dyn Completing>>,
    ) -> Self {
        let log_weights = log_weights.iter().map(|&weight| F::from_f64(weight)).collect();
        Self { dimension, log_weights, of_pattern: Box::new(of_pattern), known: Mutex::default(), completing }
    }

    /// The columns of a pattern and their scorer; `None` if it has no columns.
    fn of(&self, pattern: &HolePattern) -> Option<(Vec<usize>, Arc<QuadraticScorer<F>>)> {
        let columns = columns_of(pattern, self.dimension);
        if columns.is_empty() {
            return None;
        }
        if let Some(known) = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(pattern) {
            return Some((columns, Arc::clone(known)));
        }
        let scorer = Arc::new(QuadraticScorer::new(columns.len(), (self.of_pattern)(&columns), None));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if (known.len() + 1) * self.log_weights.len() * self.dimension * self.dimension <= MOST_NUMBERS {
            known.insert(pattern.clone(), Arc::clone(&scorer));
        }
        Some((columns, scorer))
    }
}

/// Copies columns of listed rows.
fn pick<F: Scalar>(rows: &[F], dimension: usize, list: &[usize], columns: &[usize], out: &mut Vec<F>) {
    out.clear();
    for &row in list {
        let row = &rows[row * dimension..][..dimension];
        out.extend(columns.iter().map(|&column| row[column]));
    }
}

impl<F: Scalar> Scorer<F> for PatternScorer<F> {
    fn n_components(&self) -> usize {
        self.log_weights.len()
    }

    fn score_rows(&self, block: Block<'_, F>, _: Option<PairBounds<'_>>, sink: &mut TopL<F>, scratch: &mut Scratch<F>) {
        let (rows, k) = (block.rows.dense(), self.log_weights.len());
        let n = rows.len() / self.dimension;
        let n_padded = n.next_multiple_of(F::GROUP);
        let mut space = scratch.sums.take().unwrap_or_default();
        space.sums.resize(k * n_padded);
        for (pattern, list) in by_pattern(rows, self.dimension) {
            let Some((columns, scorer)) = self.of(&pattern) else {
                for (to, &weight) in space.sums.chunks_exact_mut(n_padded).zip(&self.log_weights) {
                    for &row in &list {
                        to[row] = weight;
                    }
                }
                continue;
            };
            pick(rows, self.dimension, &list, &columns, &mut space.rows);
            space.sink.reset(list.len(), k, k, None, false, false);
            let own = Block { rows: RowBlock::Dense(&space.rows), leads: &[] };
            scorer.score_rows(own, None, &mut space.sink, scratch);
            let (scores, stride) = space.sink.all_scores();
            for (to, from) in space.sums.chunks_exact_mut(n_padded).zip(scores.chunks_exact(stride)) {
                list.iter().zip(from).for_each(|(&row, &score)| to[row] = score);
            }
        }
        offer_sums(&space.sums, n_padded, 0, sink);
        scratch.sums = Some(space);
        sink.n_evaluated += k * n;
    }

    fn score_component(&self, component: usize, rows: &[F], out: &mut [F]) {
        let (mut own, mut scores) = (Vec::new(), Vec::new());
        for (pattern, list) in by_pattern(rows, self.dimension) {
            let Some((columns, scorer)) = self.of(&pattern) else {
                for &row in &list {
                    out[row] = self.log_weights[component];
                }
                continue;
            };
            pick(rows, self.dimension, &list, &columns, &mut own);
            scores.resize(list.len(), F::ZERO);
            scorer.score_component(component, &own, &mut scores);
            list.iter().zip(&scores).for_each(|(&row, &score)| out[row] = score);
        }
    }

    fn completing(&self) -> Option<&dyn Completing> {
        self.completing.as_deref()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
