//! Log weights that are sums over columns, each quadratic or linear in its value. Rows occupy vector lanes, and
//! components are processed four at a time. A missing value (NaN, if allowed) leaves out its column.

use std::any::Any;
use std::convert::identity;

use pulp::{Simd, WithSimd};

use crate::data::RowBlock;
use crate::responsibilities::TopL;
use crate::scoring::PairBounds;
use crate::scoring::column_tail::ColumnTail;
use crate::scoring::column_terms::{Column, ColumnTerms};
use crate::scoring::row::RowFunction;
use crate::scoring::scorer::{Block, Completing, Scorer, Scratch, Spreads, Tile};
use crate::scoring::sparse::{Shared, SparseTable};
use crate::simd::{Instructions, Lines, Scalar, VECTORS};

/// Number of components that a kernel processes together. With three vectors of rows they fill a good half of the
/// registers.
const TOGETHER: usize = 4;

/// Form of the function of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Curve {
    /// `constant - (slope x + offset)^2 / 2`.
    Square,
    /// `constant + slope x`.
    Line,
}

/// Packed components.
pub struct ColumnScorer<F> {
    instructions: Instructions,
    curve: Curve,
    dimension: usize,
    n_components: usize,
    missing: bool,
    /// Slopes, and offsets for squares, by groups of four components, then by column.
    packed: Vec<F>,
    /// The sum of all constants of each component.
    totals: Vec<F>,
    components: Vec<ColumnTerms>,
    /// Table for scoring sparse rows; only for linear functions.
    sparse: Option<SparseTable<F>>,
    row_terms: Option<RowFunction>,
    /// What is done with sums of squares, if rows have scales.
    tail: Option<ColumnTail>,
    completing: Option<Box<dyn Completing>>,
    /// Linear map applied to every row first: (D, D), column-major.
    map: Option<Vec<F>>,
}

impl<F: Scalar> ColumnScorer<F> {
    /// Packs components. With `missing`, NaN stands for a missing value.
    pub fn new(curve: Curve, components: Vec<ColumnTerms>, missing: bool) -> Self {
        Self::with_instructions(Instructions::widest(), curve, components, missing)
    }

    /// As [`ColumnScorer::new`], for the kernel of an instruction set.
    pub fn with_instructions(
        instructions: Instructions,
        curve: Curve,
        components: Vec<ColumnTerms>,
        missing: bool,
    ) -> Self {
        let dimension = components.first().map_or(0, |component| component.columns.len());
        let mut packed = Vec::with_capacity(components.len().next_multiple_of(TOGETHER) * dimension * 2);
        for four in components.chunks(TOGETHER) {
            for column in 0..dimension {
                let value = |of: fn(&Column) -> f64| {
                    (0..TOGETHER).map(move |k| F::from_f64(four.get(k).map_or(0.0, |k| of(&k.columns[column]))))
                };
                packed.extend(value(|column| column.slope));
                if curve == Curve::Square {
                    packed.extend(value(|column| column.offset));
                }
            }
        }
        let total = |component: &ColumnTerms| {
            F::from_f64(component.constant + component.columns.iter().map(|column| column.constant).sum::<f64>())
        };
        Self {
            instructions,
            curve,
            dimension,
            n_components: components.len(),
            missing,
            packed,
            totals: components.iter().map(total).collect(),
            components,
            sparse: None,
            row_terms: None,
            tail: None,
            completing: None,
            map: None,
        }
    }

    /// A component as it was passed in.
    pub fn component(&self, component: usize) -> &ColumnTerms {
        &self.components[component]
    }

    /// Adds support for sparse rows, with the given table, or with a table of these slopes.
    #[must_use]
    pub fn and_sparse(mut self, table: Option<SparseTable<F>>) -> Self {
        debug_assert!(self.curve == Curve::Line, "a value of zero must cost nothing");
        self.sparse = Some(table.unwrap_or_else(|| {
            let shared = |total: &F| Shared { constant: total.to_f64(), common: 0.0 };
            let shared: Vec<Shared> = self.totals.iter().map(shared).collect();
            SparseTable::new(self.dimension, &shared, |k, column| self.components[k].columns[column].slope, identity)
        }));
        self
    }

    /// Adds terms that depend on the row alone.
    #[must_use]
    pub fn with_row_terms(mut self, terms: RowFunction) -> Self {
        self.row_terms = Some(terms);
        self
    }

    /// Gives rows scales: log weights are those of Student t distributions with `dof` degrees of freedom. `spreads`:
    /// the part of the expected square of each column of a component that does not depend on the row.
    #[must_use]
    pub fn with_scales(mut self, dof: f64, spreads: Vec<Vec<f64>>, completing: Option<Box<dyn Completing>>) -> Self {
        debug_assert!(self.curve == Curve::Square, "squares are what scales divide");
        self.tail = Some(ColumnTail::new(dof, &self.components, spreads));
        self.totals.fill(F::ZERO);
        self.completing = completing;
        self
    }

    /// Adds a matrix (D, D), column-major, by which every row is multiplied first.
    #[must_use]
    pub fn with_map(mut self, map: &[f64]) -> Self {
        self.map = Some(map.iter().map(|&value| F::from_f64(value)).collect());
        self
    }

    /// Twice the amount by which squares about a mean lower a score. `spread` has one number per column, or a single
    /// number if all columns have equal slopes.
    fn squares_of(&self, component: usize, spread: &[f64]) -> f64 {
        let columns = self.components[component].columns.iter();
        columns.zip(spread).map(|(column, square)| column.slope * column.slope * square).sum()
    }

    /// The log weight of one mapped row, computed by the plain loop.
    fn score_row(&self, component: usize, row: &[F]) -> F {
        if let Some(tail) = &self.tail {
            return F::from_f64(tail.score_row(component, &self.components[component], row));
        }
        let component = &self.components[component];
        let mut total = component.constant;
        for (x, column) in row.iter().zip(&component.columns).filter(|(x, _)| !(self.missing && x.is_nan())) {
            let x = x.to_f64();
            total += match self.curve {
                Curve::Square => column.constant - 0.5 * (column.slope * x + column.offset).powi(2),
                Curve::Line => column.constant + column.slope * x,
            };
        }
        F::from_f64(total)
    }
}

impl<F: Scalar> Scorer<F> for ColumnScorer<F> {
    fn n_components(&self) -> usize {
        self.n_components
    }

    fn score_rows(&self, block: Block<'_, F>, _: Option<PairBounds<'_>>, sink: &mut TopL<F>, scratch: &mut Scratch<F>) {
        match (block.rows, &self.sparse) {
            (RowBlock::Dense(rows), _) => {
                self.instructions.run(ScoreColumns { scorer: self, rows, spreads: None, sink, scratch });
            }
            (RowBlock::Sparse(rows), Some(table)) => table.score_rows(rows, sink, scratch),
            // Such rows are refused before any work starts.
            (RowBlock::Sparse(_), None) => {}
        }
    }

    fn score_nodes(&self, block: Block<'_, F>, spreads: Spreads<'_>, sink: &mut TopL<F>, scratch: &mut Scratch<F>) {
        match block.rows {
            RowBlock::Dense(rows) if self.curve == Curve::Square => {
                let spreads = Some(spreads);
                self.instructions.run(ScoreColumns { scorer: self, rows, spreads, sink, scratch });
            }
            _ => self.score_rows(block, None, sink, scratch),
        }
    }

    fn add_row_terms(&self, rows: RowBlock<'_, F>, out: &mut [f64]) {
        if let Some(terms) = &self.row_terms {
            terms.add(rows, self.dimension, out);
        }
    }

    fn score_component(&self, component: usize, rows: &[F], out: &mut [F]) {
        let mut mapped = Lines::default();
        let rows = map_rows(self.map.as_deref(), self.dimension, rows, &mut mapped);
        for (value, row) in out.iter_mut().zip(rows.chunks_exact(self.dimension)) {
            *value = self.score_row(component, row);
        }
    }

    fn completing(&self) -> Option<&dyn Completing> {
        self.completing.as_deref()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Multiplies the rows by the map, if there is one.
#[inline(always)]
fn map_rows<'a, F: Scalar>(map: Option<&[F]>, d: usize, rows: &'a [F], space: &'a mut Lines<F>) -> &'a [F] {
    let Some(map) = map else { return rows };
    space.reset(rows.len(), F::ZERO);
    for (out, row) in space.chunks_exact_mut(d).zip(rows.chunks_exact(d)) {
        for (column, &x) in map.chunks_exact(d).zip(row) {
            out.iter_mut().zip(column).for_each(|(out, &value)| *out += value * x);
        }
    }
    space
}

/// [`Scorer::score_rows`] for dense rows, compiled for each instruction set.
struct ScoreColumns<'a, F> {
    scorer: &'a ColumnScorer<F>,
    rows: &'a [F],
    /// Spreads of nodes, whose means are the rows.
    spreads: Option<Spreads<'a>>,
    sink: &'a mut TopL<F>,
    scratch: &'a mut Scratch<F>,
}

impl<F: Scalar> WithSimd for ScoreColumns<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { scorer, rows, spreads, sink, scratch } = self;
        let d = scorer.dimension;
        let Scratch { tile, scores, common, complete, .. } = scratch;
        let rows = map_rows(scorer.map.as_deref(), d, rows, common);
        tile.fill(rows, d);
        scores.resize(TOGETHER * F::GROUP);
        complete.resize(if scorer.missing { TOGETHER * F::GROUP } else { 0 });
        let mut offers = sink.offers(simd);
        for group in 0..tile.n_padded() / F::GROUP {
            let group_rows = &rows[group * F::GROUP * d..rows.len().min((group + 1) * F::GROUP * d)];
            let missing = scorer.missing && group_rows.iter().any(|x| x.is_nan());
            for first in (0..scorer.n_components).step_by(TOGETHER) {
                let number = TOGETHER.min(scorer.n_components - first);
                let out = if missing { &mut *complete } else { &mut *scores };
                match scorer.curve {
                    Curve::Square => scorer.score_four::<S, true>(simd, first, tile, group, out),
                    Curve::Line => scorer.score_four::<S, false>(simd, first, tile, group, out),
                }
                if let Some(tail) = &scorer.tail {
                    (first..first + number).zip(out.chunks_exact_mut(F::GROUP)).for_each(|(k, out)| tail.link(k, out));
                }
                if missing {
                    scorer.score_missing(first, group_rows, tile, group, scores);
                    keep_complete(group_rows, d, complete, scores);
                }
                for (component, scores) in (first..first + number).zip(scores.chunks_exact_mut(F::GROUP)) {
                    if let Some(spreads) = spreads {
                        let rows = group * F::GROUP..tile.n_rows().min((group + 1) * F::GROUP);
                        spreads.take(rows, scores, |spread| scorer.squares_of(component, spread));
                    }
                    offers.offer_group(component, group, scores);
                }
            }
        }
        sink.n_evaluated += scorer.n_components * (rows.len() / d);
    }
}

/// Replaces the scores of complete rows in a group by those they would have in a group without missing values, so that
/// no score depends on other rows.
#[inline(always)]
fn keep_complete<F: Scalar>(rows: &[F], d: usize, complete: &[F], scores: &mut [F]) {
    for (lane, _) in rows.chunks_exact(d).enumerate().filter(|(_, row)| !row.iter().any(|x| x.is_nan())) {
        for component in 0..TOGETHER {
            scores[component * F::GROUP + lane] = complete[component * F::GROUP + lane];
        }
    }
}

impl<F: Scalar> ColumnScorer<F> {
    /// Scores four components, starting at `first`, for a group of rows without missing values.
    #[inline(always)]
    fn score_four<S: Simd, const SQUARE: bool>(
        &self,
        simd: S,
        first: usize,
        tile: &Tile<F>,
        group: usize,
        out: &mut [F],
    ) {
        let width = if SQUARE { 2 * TOGETHER } else { TOGETHER };
        let packed = &self.packed[first / TOGETHER * width * self.dimension..][..width * self.dimension];
        let columns: &[F::Vector<S>] = bytemuck::cast_slice(tile.group(group));
        let out: &mut [F::Vector<S>] = bytemuck::cast_slice_mut(out);
        let n_vectors = out.len() / TOGETHER;
        let zero = F::splat(simd, F::ZERO);
        for part in (0..n_vectors).step_by(VECTORS) {
            let mut sums = [[zero; VECTORS]; TOGETHER];
            for (values, numbers) in columns.chunks_exact(n_vectors).zip(packed.chunks_exact(width)) {
                let x: [F::Vector<S>; VECTORS] = std::array::from_fn(|vector| values[part + vector]);
                for k in 0..TOGETHER {
                    let slope = F::splat(simd, numbers[k]);
                    for vector in 0..VECTORS {
                        sums[k][vector] = if SQUARE {
                            let y = F::mul_add(simd, slope, x[vector], F::splat(simd, numbers[TOGETHER + k]));
                            F::mul_add(simd, y, y, sums[k][vector])
                        } else {
                            F::mul_add(simd, slope, x[vector], sums[k][vector])
                        };
                    }
                }
            }
            let sign = F::splat(simd, F::from_f64(if SQUARE { -0.5 } else { 1.0 }));
            for k in 0..TOGETHER {
                let total = F::splat(simd, self.totals.get(first + k).copied().unwrap_or(F::ZERO));
                for vector in 0..VECTORS {
                    out[k * n_vectors + part + vector] = F::mul_add(simd, sign, sums[k][vector], total);
                }
            }
        }
    }

    /// As [`Self::score_four`], for rows with missing values.
    #[inline(always)]
    fn score_missing(&self, first: usize, rows: &[F], tile: &Tile<F>, group: usize, out: &mut [F]) {
        if self.tail.is_some() {
            for (component, out) in (first..self.n_components).zip(out.chunks_exact_mut(F::GROUP)) {
                // Complete rows keep the scores that they have.
                let rows = out.iter_mut().zip(rows.chunks_exact(self.dimension));
                let incomplete = rows.filter(|(_, row)| row.iter().any(|x| x.is_nan()));
                incomplete.for_each(|(out, row)| *out = self.score_row(component, row));
            }
            return;
        }
        for (component, out) in self.components[first..].iter().take(TOGETHER).zip(out.chunks_exact_mut(F::GROUP)) {
            out.fill(F::from_f64(component.constant));
            for (values, column) in tile.group(group).chunks_exact(F::GROUP).zip(&component.columns) {
                let (slope, offset) = (F::from_f64(column.slope), F::from_f64(column.offset));
                let (constant, half) = (F::from_f64(column.constant), F::from_f64(0.5));
                for (out, &x) in out.iter_mut().zip(values) {
                    let y = slope * x + offset;
                    let term = if self.curve == Curve::Square { constant - half * y * y } else { constant + y };
                    *out += if x.is_nan() { F::ZERO } else { term };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use std::f64::consts::PI;

    use super::*;
    use crate::responsibilities::Responsibilities;
    use crate::special::ln_gamma;

    fn column() -> impl Strategy<Value = Column> {
        (-2.0_f64..2.0, -2.0_f64..2.0, -2.0_f64..2.0).prop_map(|(slope, offset, constant)| Column {
            slope,
            offset,
            constant,
        })
    }

    fn case() -> impl Strategy<Value = (usize, Vec<ColumnTerms>, Vec<f64>)> {
        (1_usize..20, 1_usize..11, 1_usize..60).prop_flat_map(|(d, k, n)| {
            let component = (-5.0_f64..5.0, prop::collection::vec(column(), d))
                .prop_map(|(constant, columns)| ColumnTerms { constant, columns });
            let value = prop_oneof![4 => -3.0_f64..3.0, 1 => Just(f64::NAN)];
            (Just(d), prop::collection::vec(component, k), prop::collection::vec(value, n * d))
        })
    }

    /// Collects the log weights of all rows and components through the sink.
    fn scores<F: Scalar>(scorer: &ColumnScorer<F>, rows: RowBlock<'_, F>, n: usize) -> Vec<f64> {
        let k = scorer.n_components();
        let mut sink = TopL::default();
        sink.reset(n, k, k, None, false, false);
        scorer.score_rows(Block { rows, leads: &[] }, None, &mut sink, &mut Scratch::default());
        let mut out = Responsibilities::zeros(n, k);
        sink.normalize(&mut out.components, &mut out.values, &mut out.log_normalizers).expect("finite");
        (0..n * k).map(|index| sink.score(index / k, index % k).to_f64()).collect()
    }

    proptest! {
        #[test]
        fn packed_scores_equal_the_plain_loop(
            (d, components, rows) in case(), missing in any::<bool>(), square in any::<bool>(),
        ) {
            let curve = if square { Curve::Square } else { Curve::Line };
            let mut components = components;
            if !square {
                components.iter_mut().flat_map(|k| &mut k.columns).for_each(|column| column.offset = 0.0);
            }
            let rows: Vec<f64> = rows.iter().map(|&x| if missing || !x.is_nan() { x } else { 1.5 }).collect();
            let narrow: Vec<f32> = rows.iter().map(|&x| x as f32).collect();
            let n = rows.len() / d;
            for set in Instructions::available() {
                let scorer = ColumnScorer::with_instructions(set, curve, components.clone(), missing);
                let found = scores(&scorer, RowBlock::Dense(&rows), n);
                let single = ColumnScorer::<f32>::with_instructions(set, curve, components.clone(), missing);
                let near = scores(&single, RowBlock::Dense(&narrow), n);
                for (row, x) in rows.chunks_exact(d).enumerate() {
                    for (k, component) in components.iter().enumerate() {
                        let mut expected = component.constant;
                        for (&x, column) in x.iter().zip(&component.columns).filter(|(x, _)| !x.is_nan()) {
                            let y = column.slope * x + column.offset;
                            expected += column.constant + if square { -0.5 * y * y } else { y };
                        }
                        let index = row * components.len() + k;
                        prop_assert!((found[index] - expected).abs() < 1e-11 * (1.0 + expected.abs()), "{set:?}");
                        prop_assert!((near[index] - expected).abs() < 3e-4 * (1.0 + expected.abs()), "{set:?}");
                        let mut one = [0.0];
                        scorer.score_component(k, x, &mut one);
                        prop_assert!((one[0] - expected).abs() < 1e-11 * (1.0 + expected.abs()));
                    }
                }
            }
        }

        #[test]
        fn rows_with_scales_have_student_t_distributions((d, components, rows) in case(), dof in 1.0_f64..50.0) {
            let n = rows.len() / d;
            let spreads: Vec<Vec<f64>> =
                (0..components.len()).map(|k| (0..d).map(|j| 0.1 + (k + 2 * j) as f64 / 9.0).collect()).collect();
            for set in Instructions::available() {
                let scorer = ColumnScorer::<f64>::with_instructions(set, Curve::Square, components.clone(), true);
                let scorer = scorer.with_scales(dof, spreads.clone(), None);
                let found = scores(&scorer, RowBlock::Dense(&rows), n);
                for (row, x) in rows.chunks_exact(d).enumerate() {
                    for (k, (component, spreads)) in components.iter().zip(&spreads).enumerate() {
                        let (mut number, mut square, mut expected) = (0.0, 0.0, component.constant);
                        let present = x.iter().zip(&component.columns).zip(spreads).filter(|((x, _), _)| !x.is_nan());
                        for ((x, column), spread) in present {
                            number += 1.0;
                            square += spread + (column.slope * x + column.offset).powi(2);
                            expected += column.constant;
                        }
                        let half = 0.5 * (dof + number);
                        expected += ln_gamma(half) - ln_gamma(0.5 * dof) - 0.5 * number * (PI * dof).ln();
                        expected -= half * (square / dof).ln_1p();
                        let found = found[row * components.len() + k];
                        prop_assert!((found - expected).abs() < 1e-11 * (1.0 + expected.abs()), "{set:?}");
                    }
                }
            }
        }
    }
}
