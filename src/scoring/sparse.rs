//! Linear functions of sparse rows, which read only stored values. The slopes of all components are stored
//! consecutively for each column, so that one value is multiplied for all components in a few vectors.

use std::any::Any;

use pulp::{Simd, WithSimd};

use crate::data::{Csr, RowBlock, SparseRows};
use crate::parallel::for_each;
use crate::responsibilities::TopL;
use crate::scoring::PairBounds;
use crate::scoring::row::RowFunction;
use crate::scoring::scorer::{Block, Scorer, Scratch};
use crate::simd::{Instructions, Lines, Scalar, VECTORS};
use crate::special::Last;

/// Number of vectors of components whose scores of a row stay in registers.
const TOGETHER: usize = 8;
/// Number of columns whose slopes one task computes.
const COLUMNS: usize = 512;

/// The terms of a row's score besides the slopes of a component: `constant + sum_j x_j (slope_j - common)`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Shared {
    /// The score of a row of zeros, nats.
    pub constant: f64,
    /// Subtracted from every slope. If only this changes, the table of slopes stays valid.
    pub common: f64,
}

/// Slopes of all components.
pub struct SparseTable<F> {
    n_components: usize,
    /// Length of a column: the number of components padded to whole vectors.
    stride: usize,
    /// The scores of a row of zeros, by component.
    constants: Lines<F>,
    /// Subtracted from every slope, by component.
    commons: Lines<F>,
    /// (D, stride).
    slopes: Lines<F>,
}

impl<F: Scalar> SparseTable<F> {
    /// Builds a table from the shared terms and slopes, which are a function of `argument(k, column)`.
    pub fn new(
        dimension: usize,
        shared: &[Shared],
        argument: impl Fn(usize, usize) -> f64 + Sync,
        slope: fn(f64) -> f64,
    ) -> Self {
        let k = shared.len();
        let stride = k.next_multiple_of(F::GROUP / VECTORS);
        let mut slopes = Lines::default();
        slopes.reset(dimension * stride, F::ZERO);
        let blocks = (0..).step_by(COLUMNS).zip(slopes.chunks_mut(COLUMNS * stride.max(1)));
        for_each(blocks.collect(), |(first, block): (usize, &mut [F])| {
            let mut last: Vec<Last<f64, f64>> = (0..k).map(|_| Last::default()).collect();
            for (column, slopes) in (first..).zip(block.chunks_exact_mut(stride)) {
                for ((k, to), last) in slopes.iter_mut().enumerate().zip(&mut last) {
                    *to = F::from_f64(last.of(argument(k, column), slope));
                }
            }
        });
        let mut table =
            Self { n_components: k, stride, constants: Lines::default(), commons: Lines::default(), slopes };
        table.share(shared);
        table
    }

    fn share(&mut self, shared: &[Shared]) {
        self.constants.reset(self.stride, F::ZERO);
        self.commons.reset(self.stride, F::ZERO);
        for ((constant, common), terms) in self.constants.iter_mut().zip(&mut *self.commons).zip(shared) {
            (*constant, *common) = (F::from_f64(terms.constant), F::from_f64(terms.common));
        }
    }

    /// Recomputes the slopes of `columns`, listed by component.
    fn update(&mut self, shared: &[Shared], columns: &[Vec<u32>], slope: impl Fn(usize, usize) -> f64 + Sync) {
        let stride = self.stride;
        let blocks = (0..).step_by(COLUMNS).zip(self.slopes.chunks_mut(COLUMNS * stride.max(1)));
        for_each(blocks.collect(), |(first, block): (usize, &mut [F])| {
            for (k, columns) in columns.iter().enumerate() {
                let after = &columns[columns.partition_point(|&column| (column as usize) < first)..];
                for &column in after.iter().take_while(|&&column| (column as usize) < first + COLUMNS) {
                    block[(column as usize - first) * stride + k] = F::from_f64(slope(k, column as usize));
                }
            }
        });
        self.share(shared);
    }

    /// Passes the scores of all rows and components to the sink.
    pub fn score_rows(&self, rows: SparseRows<'_, F>, sink: &mut TopL<F>, scratch: &mut Scratch<F>) {
        Instructions::widest().run(ScoreSparse { table: self, rows, sink, scratch });
    }

    fn score(&self, component: usize, row: &[F]) -> F {
        let slopes = self.slopes.chunks_exact(self.stride).map(|slopes| slopes[component]);
        let common = self.commons[component].to_f64();
        let terms = row.iter().zip(slopes).map(|(x, slope)| x.to_f64() * (slope.to_f64() - common));
        F::from_f64(self.constants[component].to_f64() + terms.sum::<f64>())
    }
}

/// Components packed for sparse rows only. It can be updated when statistics change.
pub struct SparseScorer<F> {
    dimension: usize,
    table: SparseTable<F>,
    row_terms: Option<RowFunction>,
}

impl<F: Scalar> SparseScorer<F> {
    /// Builds a scorer from a table and terms that depend on the row alone.
    pub fn new(dimension: usize, table: SparseTable<F>, row_terms: Option<RowFunction>) -> Self {
        Self { dimension, table, row_terms }
    }

    /// Whether it has this number of components.
    pub fn has(&self, n_components: usize) -> bool {
        self.table.n_components == n_components
    }

    /// Updates the scorer for components that differ only in `columns`, listed by component, and in the shared terms.
    /// The result is bitwise equal to a new one.
    #[must_use]
    pub fn updated(
        mut self,
        shared: &[Shared],
        columns: &[Vec<u32>],
        slope: impl Fn(usize, usize) -> f64 + Sync,
    ) -> Self {
        self.table.update(shared, columns, slope);
        self
    }
}

impl<F: Scalar> Scorer<F> for SparseScorer<F> {
    fn n_components(&self) -> usize {
        self.table.n_components
    }

    fn score_rows(&self, block: Block<'_, F>, _: Option<PairBounds<'_>>, sink: &mut TopL<F>, scratch: &mut Scratch<F>) {
        match block.rows {
            RowBlock::Sparse(rows) => self.table.score_rows(rows, sink, scratch),
            RowBlock::Dense(values) => {
                let n = values.len() / self.dimension;
                let columns: Vec<u32> = (0..n).flat_map(|_| 0..self.dimension as u32).collect();
                let starts: Vec<u64> = (0..=n).map(|row| (row * self.dimension) as u64).collect();
                let numbers: Vec<u32> = (0..n as u32).collect();
                let table = Csr { starts: &starts, columns: &columns, values };
                self.table.score_rows(SparseRows { table, numbers: &numbers }, sink, scratch);
            }
        }
    }

    fn add_row_terms(&self, rows: RowBlock<'_, F>, out: &mut [f64]) {
        if let Some(terms) = &self.row_terms {
            terms.add(rows, self.dimension, out);
        }
    }

    fn score_component(&self, component: usize, rows: &[F], out: &mut [F]) {
        for (out, row) in out.iter_mut().zip(rows.chunks_exact(self.dimension)) {
            *out = self.table.score(component, row);
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct ScoreSparse<'a, F> {
    table: &'a SparseTable<F>,
    rows: SparseRows<'a, F>,
    sink: &'a mut TopL<F>,
    scratch: &'a mut Scratch<F>,
}

impl<F: Scalar> WithSimd for ScoreSparse<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { table, rows, sink, scratch } = self;
        let k = table.n_components;
        let lanes = size_of::<F::Vector<S>>() / size_of::<F>();
        let (all, row_scores) = (&mut scratch.scores, &mut scratch.common);
        all.reset(k * F::GROUP, F::ZERO);
        row_scores.resize(table.stride);
        for (group, numbers) in rows.numbers.chunks(F::GROUP).enumerate() {
            for (lane, (columns, values)) in (SparseRows { numbers, ..rows }).iter().enumerate() {
                for first in (0..table.stride).step_by(TOGETHER * lanes) {
                    let row = StoredRow { columns, values, first };
                    let row_scores = &mut row_scores[first..];
                    match (table.stride - first) / lanes {
                        1 => score_row::<S, F, 1>(simd, table, row, row_scores),
                        2 => score_row::<S, F, 2>(simd, table, row, row_scores),
                        3 => score_row::<S, F, 3>(simd, table, row, row_scores),
                        4 => score_row::<S, F, 4>(simd, table, row, row_scores),
                        5 => score_row::<S, F, 5>(simd, table, row, row_scores),
                        6 => score_row::<S, F, 6>(simd, table, row, row_scores),
                        7 => score_row::<S, F, 7>(simd, table, row, row_scores),
                        _ => score_row::<S, F, TOGETHER>(simd, table, row, row_scores),
                    }
                }
                for (score, &value) in all[lane..].iter_mut().step_by(F::GROUP).zip(&**row_scores) {
                    *score = value;
                }
            }
            offer_all(simd, all, group, sink);
        }
        sink.n_evaluated += k * rows.numbers.len();
    }
}

/// A row, and the first component under which it is scored.
#[derive(Clone, Copy)]
struct StoredRow<'a, F> {
    columns: &'a [u32],
    values: &'a [F],
    first: usize,
}

/// The scores of a row in `N` vectors of components.
#[inline(always)]
fn score_row<S: Simd, F: Scalar, const N: usize>(
    simd: S,
    table: &SparseTable<F>,
    row: StoredRow<'_, F>,
    out: &mut [F],
) {
    let StoredRow { columns, values, first } = row;
    let width = N * (size_of::<F::Vector<S>>() / size_of::<F>());
    let constants: &[F::Vector<S>] = bytemuck::cast_slice(&table.constants[first..][..width]);
    let commons: &[F::Vector<S>] = bytemuck::cast_slice(&table.commons[first..][..width]);
    let mut sums: [F::Vector<S>; N] = std::array::from_fn(|vector| constants[vector]);
    let mut total = F::ZERO;
    for (&column, &value) in columns.iter().zip(values) {
        let start = column as usize * table.stride + first;
        // Only a table that has changed meanwhile has other columns.
        let Some(slopes) = table.slopes.get(start..start + width) else { continue };
        let slopes: &[F::Vector<S>] = bytemuck::cast_slice(slopes);
        let x = F::splat(simd, value);
        for vector in 0..N {
            sums[vector] = F::mul_add(simd, x, slopes[vector], sums[vector]);
        }
        total += value;
    }
    let minus = F::splat(simd, F::ZERO - total);
    let out: &mut [F::Vector<S>] = bytemuck::cast_slice_mut(&mut out[..width]);
    for vector in 0..N {
        out[vector] = F::mul_add(simd, minus, commons[vector], sums[vector]);
    }
}

/// Passes the scores of a group of rows, (K, `F::GROUP`), to the sink.
#[inline(always)]
pub fn offer_all<S: Simd, F: Scalar>(simd: S, scores: &Lines<F>, group: usize, sink: &mut TopL<F>) {
    let mut offers = sink.offers(simd);
    for (component, scores) in scores.chunks_exact(F::GROUP).enumerate() {
        offers.offer_group(component, group, scores);
    }
}

#[cfg(test)]
mod tests {
    use std::convert::identity;

    use proptest::prelude::*;

    use super::*;
    use crate::responsibilities::Responsibilities;

    #[derive(Debug, Clone)]
    struct Case {
        d: usize,
        shared: Vec<Shared>,
        /// (K, D), before and after a change.
        slopes: [Vec<f64>; 2],
        rows: Vec<f64>,
    }

    fn case() -> impl Strategy<Value = Case> {
        // Exceeds the vectors that stay in registers, and the columns of a task.
        let sizes = prop_oneof![(1_usize..12, 1_usize..200), (500_usize..700, 1_usize..4)];
        sizes.prop_flat_map(|(d, k)| {
            let shared = (-9.0_f64..9.0, -9.0_f64..9.0).prop_map(|(constant, common)| Shared { constant, common });
            let slopes = || prop::collection::vec(-9.0_f64..9.0, k * d);
            let value = prop_oneof![3 => Just(0.0), 1 => (1_u8..9).prop_map(f64::from)];
            (prop::collection::vec(shared, k), slopes(), slopes(), prop::collection::vec(value, 30 * d))
                .prop_map(move |(shared, a, b, rows)| Case { d, shared, slopes: [a, b], rows })
        })
    }

    fn table<F: Scalar>(case: &Case, version: usize) -> SparseTable<F> {
        SparseTable::new(case.d, &case.shared, |k, column| case.slopes[version][k * case.d + column], identity)
    }

    /// Collects the log weights of all rows and components.
    fn scores<F: Scalar>(scorer: &SparseScorer<F>, rows: RowBlock<'_, F>, n: usize) -> Vec<f64> {
        let k = scorer.n_components();
        let mut sink = TopL::default();
        sink.reset(n, k, k, None, false, false);
        scorer.score_rows(Block { rows, leads: &[] }, None, &mut sink, &mut Scratch::default());
        let mut out = Responsibilities::zeros(n, k);
        sink.normalize(&mut out.components, &mut out.values, &mut out.log_normalizers).expect("finite");
        (0..n * k).map(|index| sink.score(index / k, index % k).to_f64()).collect()
    }

    fn check<F: Scalar>(case: &Case, tolerance: f64) -> std::result::Result<(), TestCaseError> {
        let (d, k) = (case.d, case.shared.len());
        let values: Vec<F> = case.rows.iter().map(|&x| F::from_f64(x)).collect();
        let (mut starts, mut columns, mut stored) = (vec![0], Vec::new(), Vec::new());
        for row in values.chunks_exact(d) {
            for (column, &value) in (0..).zip(row).filter(|(_, value)| value.to_f64() != 0.0) {
                columns.push(column);
                stored.push(value);
            }
            starts.push(stored.len() as u64);
        }
        let csr = Csr { starts: &starts, columns: &columns, values: &stored };
        let numbers: Vec<u32> = (0..30).collect();
        let sparse = RowBlock::Sparse(SparseRows { table: csr, numbers: &numbers });
        let scorer = SparseScorer::<F>::new(d, table(case, 0), None);
        let found = scores(&scorer, sparse, 30);
        let dense = scores(&scorer, RowBlock::Dense(&values), 30);
        for (row, x) in values.chunks_exact(d).enumerate() {
            let total: f64 = x.iter().map(|x| x.to_f64()).sum();
            for (k_at, terms) in case.shared.iter().enumerate() {
                let slopes = &case.slopes[0][k_at * d..][..d];
                let products = x.iter().zip(slopes).map(|(x, slope)| x.to_f64() * slope).sum::<f64>();
                let expected = terms.constant + products - total * terms.common;
                let near = |found: f64| (found - expected).abs() <= tolerance * (1.0 + 9.0 * total);
                prop_assert!(
                    near(found[row * k + k_at]) && near(dense[row * k + k_at]),
                    "{} {}",
                    found[row * k + k_at],
                    expected
                );
                let mut one = [F::ZERO];
                scorer.score_component(k_at, x, &mut one);
                prop_assert!(near(one[0].to_f64()));
            }
        }
        // Only changed slopes are recomputed, with the same bits as a new table.
        let differs = |k: usize, column: usize| (k + column).is_multiple_of(3);
        let changed: Vec<Vec<u32>> =
            (0..k).map(|k| (0..d as u32).filter(|&column| differs(k, column as usize)).collect()).collect();
        let mixed = |k: usize, column: usize| case.slopes[usize::from(differs(k, column))][k * d + column];
        let updated = scorer.updated(&case.shared, &changed, mixed);
        let fresh = SparseScorer::new(d, SparseTable::new(d, &case.shared, mixed, identity), None);
        prop_assert_eq!(scores(&updated, sparse, 30), scores(&fresh, sparse, 30));
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn scores_equal_the_plain_loop_and_updates_a_new_table(case in case()) {
            check::<f64>(&case, 1e-12)?;
            check::<f32>(&case, 1e-5)?;
        }
    }
}
