//! Rows of integer codes. They are scored and summed as rows of indicators, with one indicator for each level of each
//! column.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use crate::data::{Csr, RowBlock, SparseRows};
use crate::responsibilities::TopL;
use crate::scoring::PairBounds;
use crate::scoring::columns::ColumnScorer;
use crate::scoring::row::Row;
use crate::scoring::scorer::{Block, Scorer, Scratch};
use crate::simd::Scalar;

/// Positions of the levels of each column among the levels of all columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Codes {
    /// The first level of each column; one extra entry at the end.
    starts: Arc<[u32]>,
}

impl Codes {
    /// Codes for columns with these numbers of levels.
    pub fn new(levels: &[u32]) -> Self {
        let ends = levels.iter().scan(0, |end, &n_levels| {
            *end += n_levels;
            Some(*end)
        });
        Self { starts: std::iter::once(0).chain(ends).collect() }
    }

    /// Number of columns.
    pub fn n_columns(&self) -> usize {
        self.starts.len() - 1
    }

    /// Total number of levels over all columns.
    pub fn n_levels(&self) -> usize {
        self.starts[self.n_columns()] as usize
    }

    /// The levels of each column.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.starts.windows(2).map(|pair| pair[0] as usize..pair[1] as usize)
    }

    /// The levels present in a row. Missing values are skipped. So are values that are not levels of their column: rows
    /// are checked before a fit, but an array may change during it.
    pub fn levels<'a, F: Scalar>(&'a self, row: &'a [F]) -> impl Iterator<Item = u32> + 'a {
        row.iter().zip(self.starts.windows(2)).filter_map(|(x, pair)| {
            let code = x.to_f64();
            (code >= 0.0 && code < f64::from(pair[1] - pair[0])).then(|| pair[0] + code as u32)
        })
    }

    /// Calls `f` with a row of codes converted to indicators.
    pub fn with_row<R>(&self, row: Row<'_>, f: impl FnOnce(Row<'_>) -> R) -> R {
        let Row::Dense(values) = row else { return f(row) };
        let levels: Vec<u32> = self.levels(values).collect();
        f(Row::Sparse(&levels, &vec![1.0; levels.len()]))
    }

    /// Calls `f` with rows of codes, (n, D), converted to indicators.
    pub fn with_block<F: Scalar, R>(&self, rows: &[F], f: impl FnOnce(RowBlock<'_, F>) -> R) -> R {
        let n = rows.len() / self.n_columns();
        let (mut starts, mut columns) = (Vec::with_capacity(n + 1), Vec::with_capacity(rows.len()));
        starts.push(0);
        for row in rows.chunks_exact(self.n_columns()) {
            columns.extend(self.levels(row));
            starts.push(columns.len() as u64);
        }
        let values = vec![F::from_f64(1.0); columns.len()];
        let numbers: Vec<u32> = (0..n as u32).collect();
        let table = Csr { starts: &starts, columns: &columns, values: &values };
        f(RowBlock::Sparse(SparseRows { table, numbers: &numbers }))
    }
}

/// Packed components for rows of codes.
pub struct CodeScorer<F> {
    codes: Codes,
    /// Linear functions of the indicators, prepared for sparse rows.
    lines: ColumnScorer<F>,
}

impl<F: Scalar> CodeScorer<F> {
    /// Builds a scorer from linear functions of the indicators that are prepared for sparse rows.
    pub fn new(codes: Codes, lines: ColumnScorer<F>) -> Self {
        Self { codes, lines }
    }
}

impl<F: Scalar> Scorer<F> for CodeScorer<F> {
    fn n_components(&self) -> usize {
        self.lines.n_components()
    }

    fn score_rows(&self, block: Block<'_, F>, _: Option<PairBounds<'_>>, sink: &mut TopL<F>, scratch: &mut Scratch<F>) {
        // Nodes have fractions of levels instead of codes.
        if let RowBlock::Sparse(_) = block.rows {
            return self.lines.score_rows(block, None, sink, scratch);
        }
        self.codes.with_block(block.rows.dense(), |rows| {
            self.lines.score_rows(Block { rows, leads: block.leads }, None, sink, scratch);
        });
    }

    fn add_row_terms(&self, rows: RowBlock<'_, F>, out: &mut [f64]) {
        if let RowBlock::Sparse(_) = rows {
            return self.lines.add_row_terms(rows, out);
        }
        self.codes.with_block(rows.dense(), |rows| self.lines.add_row_terms(rows, out));
    }

    fn score_component(&self, component: usize, rows: &[F], out: &mut [F]) {
        let lines = self.lines.component(component);
        for (out, row) in out.iter_mut().zip(rows.chunks_exact(self.codes.n_columns())) {
            let sum: f64 = self.codes.levels(row).map(|level| lines.columns[level as usize].slope).sum();
            *out = F::from_f64(lines.constant + sum);
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::responsibilities::Responsibilities;
    use crate::scoring::{Column, ColumnTerms, Curve, RowFunction};

    #[test]
    fn scores_are_sums_of_looked_up_values() {
        let codes = Codes::new(&[2, 3]);
        let component = |k: f64| ColumnTerms {
            constant: 10.0 * k,
            columns: (0..5).map(|level| Column::line(k + 0.25 * f64::from(level), 0.0)).collect(),
        };
        let rows = [1.0, 2.0, f64::NAN, 0.0, 0.0, 1.0, f64::NAN, f64::NAN];
        let lines = ColumnScorer::new(Curve::Line, vec![component(0.0), component(1.0)], true).and_sparse(None);
        let lines = lines.with_row_terms(RowFunction::new(|row| row.total()));
        let scorer = CodeScorer::new(codes, lines);
        let (mut sink, mut terms) = (TopL::default(), [0.0; 4]);
        sink.reset(4, 2, 2, None, false, false);
        let block = Block { rows: RowBlock::Dense(&rows), leads: &[] };
        scorer.score_rows(block, None, &mut sink, &mut Scratch::default());
        let mut out = Responsibilities::zeros(4, 2);
        sink.normalize(&mut out.components, &mut out.values, &mut out.log_normalizers).expect("finite");
        scorer.add_row_terms(block.rows, &mut terms);
        assert_eq!(terms, [2.0, 1.0, 2.0, 0.0]);
        for k in [0, 1] {
            let mut single = [0.0; 4];
            scorer.score_component(k, &rows, &mut single);
            for (row, codes) in rows.chunks_exact(2).enumerate() {
                let present = codes.iter().zip([0.0, 2.0]).filter(|(x, _)| !x.is_nan());
                let expected: f64 = present.map(|(x, start)| k as f64 + 0.25 * (start + x)).sum();
                assert!((single[row] - 10.0 * k as f64 - expected).abs() < 1e-12, "{row} {k}");
                assert!((sink.score(row, k) - single[row]).abs() < 1e-12, "{row} {k}");
            }
        }
    }
}
