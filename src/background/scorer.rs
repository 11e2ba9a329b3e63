//! Log weights of components and, behind them, of the background.

use std::any::Any;
use std::sync::Arc;

use crate::background::density::WideDensity;
use crate::data::RowBlock;
use crate::likelihood::Likelihood;
use crate::responsibilities::TopL;
use crate::scoring::{Block, Completing, Incomplete, PairBounds, Scorer, Scratch, offer_column};
use crate::simd::{Lines, Scalar};

/// Components, and the background as one more column.
pub struct BackgroundScorer<F: Scalar> {
    components: Box<dyn Scorer<F>>,
    likelihood: Arc<dyn Likelihood<F>>,
    /// The density relative to the origin.
    density: WideDensity,
    log_weight: f64,
}

impl<F: Scalar> BackgroundScorer<F> {
    /// Puts a background of this density and log weight behind components.
    pub fn new(
        components: Box<dyn Scorer<F>>,
        likelihood: Arc<dyn Likelihood<F>>,
        density: &WideDensity,
        log_weight: f64,
    ) -> Self {
        let density = density.relative_to(likelihood.origin());
        Self { components, likelihood, density, log_weight }
    }

    /// Writes its log weights, less the terms of rows that scores omit.
    fn score(&self, rows: &[F], out: &mut [F]) {
        let mut terms = vec![0.0; out.len()];
        self.components.add_row_terms(RowBlock::Dense(rows), &mut terms);
        for ((score, row), term) in out.iter_mut().zip(rows.chunks_exact(self.density.dimension())).zip(terms) {
            *score = F::from_f64(self.log_weight + self.density.log_density(row) - term);
        }
    }
}

impl<F: Scalar> Scorer<F> for BackgroundScorer<F> {
    fn n_components(&self) -> usize {
        self.components.n_components() + 1
    }

    /// The background first: components far below it need not be scored to the end.
    fn score_rows(&self, block: Block<'_, F>, _: Option<PairBounds<'_>>, sink: &mut TopL<F>, scratch: &mut Scratch<F>) {
        let rows = block.rows.dense();
        let n = rows.len() / self.density.dimension();
        let mut scores = vec![F::ZERO; n.next_multiple_of(F::GROUP)];
        self.score(rows, &mut scores[..n]);
        offer_column(self.components.n_components(), &scores, sink);
        sink.n_evaluated += n;
        self.components.score_rows(block, None, sink, scratch);
    }

    fn add_row_terms(&self, rows: RowBlock<'_, F>, out: &mut [f64]) {
        self.components.add_row_terms(rows, out);
    }

    fn score_component(&self, component: usize, rows: &[F], out: &mut [F]) {
        if component < self.components.n_components() {
            self.components.score_component(component, rows, out);
        } else {
            self.score(rows, out);
        }
    }

    fn completing(&self) -> Option<&dyn Completing> {
        Some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl<F: Scalar> Completing for BackgroundScorer<F> {
    /// Of the background, the first statistic is `sum r {log p0(x) - log h(x)}`; there are no others.
    fn accumulate(&self, component: usize, rows: Incomplete<'_>, statistics: &mut [f64], space: &mut Lines<f64>) {
        let Incomplete { values, weights, .. } = rows;
        if component < self.components.n_components() {
            match self.components.completing() {
                Some(completing) => completing.accumulate(component, rows, statistics, space),
                None => self.likelihood.accumulate(values, weights, statistics, space),
            }
            return;
        }
        let values = values.dense();
        let rounded: Vec<F> = values.iter().map(|&value| F::from_f64(value)).collect();
        let mut bases = vec![0.0; weights.len()];
        if let Some(scores) = self.likelihood.scores() {
            scores.log_base_measures(RowBlock::Dense(&rounded), &mut bases);
        }
        let rows = values.chunks_exact(self.density.dimension());
        let ratios = rows.zip(bases).map(|(row, base)| self.density.log_density(row) - base);
        statistics[0] += ratios.zip(weights).map(|(ratio, weight)| weight * ratio).sum::<f64>();
    }
}
