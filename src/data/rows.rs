//! Rows as stored in memory, and the weighted units that a local step receives.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use crate::data::Coordinates;
use crate::error::{Error, Result};
use crate::parallel::{Cancel, blocks, try_map_with};
use crate::real::Real;

/// Number of rows processed at a time.
pub(super) const BLOCK: usize = 1024;

/// A table that can be read row by row, in any storage format.
pub trait Rows<F: Real>: Send + Sync {
    /// Number of rows.
    fn n_rows(&self) -> usize;
    /// Number of columns.
    fn n_columns(&self) -> usize;
    /// Copies row `row` into `out` (one value per column).
    fn read_row(&self, row: usize, out: &mut [F]);
    /// The table in compressed sparse rows, if it is stored in that form.
    fn csr(&self) -> Option<Csr<'_, F>> {
        None
    }
    /// Copies the listed rows into `out`, consecutively.
    fn read_rows(&self, rows: &[usize], out: &mut [F]) {
        for (&row, out) in rows.iter().zip(out.chunks_exact_mut(self.n_columns())) {
            self.read_row(row, out);
        }
    }
    /// A number in which tables with other columns differ, whatever their values.
    fn layout(&self) -> u64 {
        self.n_columns() as u64
    }
}

/// A table in compressed sparse rows: for each row, the columns of its nonzero values, ascending, and these values.
#[derive(Debug, Clone, Copy)]
pub struct Csr<'a, F> {
    /// Offset of each row in `columns` and `values`; one extra entry at the end.
    pub starts: &'a [u64],
    /// Column of each value.
    pub columns: &'a [u32],
    /// Values.
    pub values: &'a [F],
}

impl<'a, F> Csr<'a, F> {
    /// Columns and values of one row.
    ///
    /// Another thread may change an array in memory while it is read. So readers of columns skip those that the table
    /// does not have ([`Csr::entries`]), and the next reading of the batch refuses it (`data/seen.rs`).
    pub fn row(&self, row: usize) -> (&'a [u32], &'a [F]) {
        let range = self.starts[row] as usize..self.starts[row + 1] as usize;
        (&self.columns[range.clone()], &self.values[range])
    }
}

impl<F: Copy> Csr<'_, F> {
    /// The entries of one row in columns below `n_columns`.
    pub fn entries(&self, row: usize, n_columns: usize) -> impl Iterator<Item = (u32, F)> + Clone {
        let (columns, values) = self.row(row);
        columns.iter().copied().zip(values.iter().copied()).filter(move |(column, _)| (*column as usize) < n_columns)
    }
}

/// Selected rows of a sparse table.
#[derive(Debug, Clone, Copy)]
pub struct SparseRows<'a, F> {
    /// The table.
    pub table: Csr<'a, F>,
    /// Indices of the selected rows.
    pub numbers: &'a [u32],
}

impl<'a, F> SparseRows<'a, F> {
    /// Columns and values of each row, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u32], &'a [F])> + use<'a, F> {
        let table = Csr { starts: self.table.starts, columns: self.table.columns, values: self.table.values };
        self.numbers.iter().map(move |&row| table.row(row as usize))
    }
}

/// Rows that are scored or summed together.
#[derive(Debug, Clone, Copy)]
pub enum RowBlock<'a, F> {
    /// Consecutive rows relative to the origin, (n, D).
    Dense(&'a [F]),
    /// Rows of a sparse table, whose origin is zero.
    Sparse(SparseRows<'a, F>),
}

impl<'a, F> RowBlock<'a, F> {
    /// The consecutive rows; empty if they are sparse.
    pub fn dense(self) -> &'a [F] {
        match self {
            Self::Dense(rows) => rows,
            Self::Sparse(_) => &[],
        }
    }

    /// The rows in a range; `dimension` is the number of columns.
    #[must_use]
    pub fn slice(self, range: Range<usize>, dimension: usize) -> Self {
        match self {
            Self::Dense(rows) => Self::Dense(&rows[range.start * dimension..range.end * dimension]),
            Self::Sparse(SparseRows { table, numbers }) => Self::Sparse(SparseRows { table, numbers: &numbers[range] }),
        }
    }
}

/// A sparse table.
#[derive(Debug)]
pub struct CsrRows<'a, F> {
    table: Csr<'a, F>,
    n_columns: usize,
    layout: u64,
}

impl<'a, F: Real> CsrRows<'a, F> {
    /// A table with `n_columns` columns.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for `data` if the parts are inconsistent.
    pub fn new(table: Csr<'a, F>, n_columns: usize) -> Result<Self> {
        let whole = |offset: u64| usize::try_from(offset).ok().filter(|&offset| offset <= table.values.len());
        let ascending = table.starts.is_sorted() && table.starts.iter().all(|&offset| whole(offset).is_some());
        let inside = table.columns.iter().all(|&column| (column as usize) < n_columns);
        if !table.starts.is_empty() && n_columns > 0 && ascending && inside && table.columns.len() == table.values.len()
        {
            return Ok(Self { table, n_columns, layout: n_columns as u64 });
        }
        Err(Error::invalid("data", "a sparse table whose parts do not fit together", "in compressed sparse rows"))
    }

    /// The same table with another [`Rows::layout`], where its columns stand for those of another one.
    #[must_use]
    pub fn with_layout(self, layout: u64) -> Self {
        Self { layout, ..self }
    }
}

impl<F: Real> Rows<F> for CsrRows<'_, F> {
    fn n_rows(&self) -> usize {
        self.table.starts.len() - 1
    }

    fn n_columns(&self) -> usize {
        self.n_columns
    }

    fn csr(&self) -> Option<Csr<'_, F>> {
        Some(self.table)
    }

    fn layout(&self) -> u64 {
        self.layout
    }

    fn read_row(&self, row: usize, out: &mut [F]) {
        out.fill(F::ZERO);
        self.table.entries(row, out.len()).for_each(|(column, value)| out[column as usize] += value);
    }
}

/// Copies the listed rows of a row-major table.
pub fn copy_rows<F: Copy>(table: &[F], n_columns: usize, rows: &[usize], out: &mut [F]) {
    match n_columns {
        1 => copy_narrow::<F, 1>(table, rows, out),
        2 => copy_narrow::<F, 2>(table, rows, out),
        3 => copy_narrow::<F, 3>(table, rows, out),
        4 => copy_narrow::<F, 4>(table, rows, out),
        _ => {
            for (&row, out) in rows.iter().zip(out.chunks_exact_mut(n_columns)) {
                out.copy_from_slice(&table[row * n_columns..][..n_columns]);
            }
        }
    }
}

/// Copies rows with few columns, for which a function call would cost more than the copy.
fn copy_narrow<F: Copy, const D: usize>(table: &[F], rows: &[usize], out: &mut [F]) {
    let (table, _) = table.as_chunks::<D>();
    let (out, _) = out.as_chunks_mut::<D>();
    for (&row, out) in rows.iter().zip(out) {
        *out = table[row];
    }
}

/// Row-major rows in one slice.
#[derive(Debug, Clone)]
pub struct DenseRows<'a, F: Clone> {
    values: Cow<'a, [F]>,
    n_columns: usize,
}

impl<'a, F: Real> DenseRows<'a, F> {
    /// Rows of `n_columns` values each.
    ///
    /// # Panics
    /// If `values` is not a whole number of rows.
    pub fn new(values: impl Into<Cow<'a, [F]>>, n_columns: usize) -> Self {
        let values = values.into();
        assert!(n_columns > 0 && values.len().is_multiple_of(n_columns), "values must be whole rows");
        Self { values, n_columns }
    }
}

impl<F: Real> Rows<F> for DenseRows<'_, F> {
    fn n_rows(&self) -> usize {
        self.values.len() / self.n_columns
    }

    fn n_columns(&self) -> usize {
        self.n_columns
    }

    fn read_row(&self, row: usize, out: &mut [F]) {
        out.copy_from_slice(&self.values[row * self.n_columns..][..self.n_columns]);
    }

    fn read_rows(&self, rows: &[usize], out: &mut [F]) {
        copy_rows(&self.values, self.n_columns, rows, out);
    }
}

/// Rows of any type, converted to float64.
pub struct Widened<'a, F>(pub &'a dyn Rows<F>);

impl<F: Real> Rows<f64> for Widened<'_, F> {
    fn n_rows(&self) -> usize {
        self.0.n_rows()
    }

    fn n_columns(&self) -> usize {
        self.0.n_columns()
    }

    fn read_row(&self, row: usize, out: &mut [f64]) {
        let mut row_read = vec![F::ZERO; out.len()];
        self.0.read_row(row, &mut row_read);
        out.iter_mut().zip(row_read).for_each(|(to, value)| *to = value.to_f64());
    }

    fn read_rows(&self, rows: &[usize], out: &mut [f64]) {
        let mut rows_read = vec![F::ZERO; out.len()];
        self.0.read_rows(rows, &mut rows_read);
        out.iter_mut().zip(rows_read).for_each(|(to, value)| *to = value.to_f64());
    }
}

/// Sparse rows of any type, with a copy of their values in float64.
struct WidenedCsr<'a> {
    starts: &'a [u64],
    columns: &'a [u32],
    values: Vec<f64>,
    n_columns: usize,
    layout: u64,
}

impl Rows<f64> for WidenedCsr<'_> {
    fn n_rows(&self) -> usize {
        self.starts.len() - 1
    }

    fn n_columns(&self) -> usize {
        self.n_columns
    }

    fn csr(&self) -> Option<Csr<'_, f64>> {
        Some(Csr { starts: self.starts, columns: self.columns, values: &self.values })
    }

    fn layout(&self) -> u64 {
        self.layout
    }

    fn read_row(&self, row: usize, out: &mut [f64]) {
        out.fill(0.0);
        let table = Csr { starts: self.starts, columns: self.columns, values: &self.values };
        table.entries(row, out.len()).for_each(|(column, value)| out[column as usize] += value);
    }
}

/// Rows of any type in float64. Dense rows are converted as they are read; of sparse rows the values are copied.
pub fn in_f64<F: Real>(rows: &dyn Rows<F>) -> Box<dyn Rows<f64> + '_> {
    let Some(Csr { starts, columns, values }) = rows.csr() else { return Box::new(Widened(rows)) };
    let values = values.iter().map(|value| value.to_f64()).collect();
    Box::new(WidenedCsr { starts, columns, values, n_columns: rows.n_columns(), layout: rows.layout() })
}

enum Table<'a, F: Real> {
    Borrowed(&'a dyn Rows<F>),
    Owned(Box<dyn Rows<F> + 'a>),
}

enum Selection<'a> {
    Range(usize, usize),
    List(Cow<'a, [u32]>),
}

/// The units of one batch: rows, each with a mass. A unit of mass 2 is equivalent to two identical rows with the same
/// responsibilities.
pub struct RowUnits<'a, F: Real> {
    table: Table<'a, F>,
    selection: Selection<'a>,
    weights: Option<Cow<'a, [f64]>>,
    /// Coordinates of the rows, if they are not the identity.
    coordinates: Option<Arc<Coordinates>>,
}

impl<'a, F: Real> RowUnits<'a, F> {
    /// All rows of a table; `weights` has one entry per row.
    pub fn all(rows: &'a dyn Rows<F>, weights: Option<&'a [f64]>) -> Self {
        Self::range(rows, weights, 0..rows.n_rows())
    }

    /// Consecutive rows; `weights` has one entry per row of the whole table.
    pub fn range(rows: &'a dyn Rows<F>, weights: Option<&'a [f64]>, range: Range<usize>) -> Self {
        Self {
            table: Table::Borrowed(rows),
            selection: Selection::Range(range.start, range.len()),
            weights: weights.map(Cow::Borrowed),
            coordinates: None,
        }
    }

    /// The rows in `list`; `weights` has one entry per row of the whole table.
    pub fn list(rows: &'a dyn Rows<F>, weights: Option<&'a [f64]>, list: impl Into<Cow<'a, [u32]>>) -> Self {
        Self {
            table: Table::Borrowed(rows),
            selection: Selection::List(list.into()),
            weights: weights.map(Cow::Borrowed),
            coordinates: None,
        }
    }

    /// Rows owned by the units, for sources that create their blocks.
    pub fn owned(rows: Box<dyn Rows<F> + 'a>, weights: Option<Vec<f64>>) -> Self {
        let n = rows.n_rows();
        let (selection, weights) = (Selection::Range(0, n), weights.map(Cow::Owned));
        Self { table: Table::Owned(rows), selection, weights, coordinates: None }
    }

    /// Consecutive rows of a table owned by the units; `weights` has one entry per row of the whole table.
    pub fn window(rows: Box<dyn Rows<F> + 'a>, weights: Option<&'a [f64]>, range: Range<usize>) -> Self {
        Self {
            table: Table::Owned(rows),
            selection: Selection::Range(range.start, range.len()),
            weights: weights.map(Cow::Borrowed),
            coordinates: None,
        }
    }

    /// Returns the same units in coordinates.
    #[must_use]
    pub fn seen_through(self, coordinates: &Arc<Coordinates>) -> Self {
        Self { coordinates: (!coordinates.is_identity()).then(|| Arc::clone(coordinates)), ..self }
    }

    /// Returns the same units, borrowing the table.
    pub fn borrowed(&self) -> RowUnits<'_, F> {
        let selection = match &self.selection {
            Selection::Range(first, n) => Selection::Range(*first, *n),
            Selection::List(list) => Selection::List(Cow::Borrowed(list)),
        };
        self.chosen(selection)
    }

    fn chosen<'b>(&'b self, selection: Selection<'b>) -> RowUnits<'b, F> {
        RowUnits {
            table: Table::Borrowed(self.table()),
            selection,
            weights: self.weights.as_deref().map(Cow::Borrowed),
            coordinates: self.coordinates.clone(),
        }
    }

    fn table(&self) -> &dyn Rows<F> {
        match &self.table {
            Table::Borrowed(rows) => *rows,
            Table::Owned(rows) => rows.as_ref(),
        }
    }

    /// The table in compressed sparse rows, if it is stored in that form.
    pub fn csr(&self) -> Option<Csr<'_, F>> {
        self.table().csr()
    }

    /// Number of units.
    pub fn len(&self) -> usize {
        match &self.selection {
            Selection::Range(_, n) => *n,
            Selection::List(list) => list.len(),
        }
    }

    /// Whether there are no units.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of columns.
    pub fn dimension(&self) -> usize {
        self.coordinates.as_ref().map_or_else(|| self.table().n_columns(), |coordinates| coordinates.rank())
    }

    /// The row number of unit `unit` in its original table.
    pub fn row_number(&self, unit: usize) -> usize {
        match &self.selection {
            Selection::Range(first, _) => first + unit,
            Selection::List(list) => list[unit] as usize,
        }
    }

    /// The mass of unit `unit`.
    pub fn mass(&self, unit: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |weights| weights[self.row_number(unit)])
    }

    /// Calls `of` in parallel with each block of units and their rows minus `origin`. Results are in order.
    ///
    /// # Errors
    /// Those of `of`; [`crate::Error::Cancelled`].
    pub fn map_blocks<T: Send>(
        &self,
        origin: &[F],
        cancel: &Cancel,
        of: impl Fn(Range<usize>, &[F]) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let ranges: Vec<_> = blocks(self.len(), BLOCK).collect();
        let space = || vec![F::ZERO; BLOCK * origin.len()];
        try_map_with(ranges.len(), space, |rows, index| {
            cancel.check()?;
            let range = ranges[index].clone();
            let rows = &mut rows[..range.len() * origin.len()];
            self.read(range.clone(), origin, rows);
            of(range, rows)
        })
    }

    /// The masses of `units`.
    pub fn masses(&self, units: &[u32]) -> Vec<f64> {
        match &self.weights {
            None => vec![1.0; units.len()],
            Some(weights) => units.iter().map(|&unit| weights[self.row_number(unit as usize)]).collect(),
        }
    }

    /// The mass of all units.
    pub fn total_mass(&self) -> f64 {
        match &self.weights {
            None => self.len() as f64,
            Some(_) => (0..self.len()).map(|unit| self.mass(unit)).sum(),
        }
    }

    /// The units in `list`.
    pub fn select(&self, list: &[u32]) -> RowUnits<'_, F> {
        let rows: Vec<u32> = list.iter().map(|&unit| self.row_number(unit as usize) as u32).collect();
        self.chosen(Selection::List(rows.into()))
    }

    /// Copies the rows of `units` into `out`, each minus `origin`.
    pub fn read(&self, units: impl IntoIterator<Item = usize>, origin: &[F], out: &mut [F]) {
        let rows: Vec<usize> = units.into_iter().map(|unit| self.row_number(unit)).collect();
        let out = &mut out[..rows.len() * origin.len()];
        if let Some(coordinates) = &self.coordinates {
            coordinates.read(rows.len(), |out| self.table().read_rows(&rows, out), origin, out);
            return;
        }
        self.table().read_rows(&rows, out);
        // Short origins are repeated, because an inner loop over two columns would cost more than the copy.
        let origins = origin.repeat(64_usize.div_ceil(origin.len()));
        for values in out.chunks_mut(origins.len()) {
            for (value, &zero) in values.iter_mut().zip(&origins) {
                *value -= zero;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn listed_rows_are_those_rows_less_the_origin(
            n_columns in 1_usize..9,
            list in prop::collection::vec(0_usize..20, 0..40),
            values in prop::collection::vec(-3.0_f64..3.0, 8 * 20),
            origin in prop::collection::vec(-3.0_f64..3.0, 8),
        ) {
            let table = DenseRows::new(&values[..20 * n_columns], n_columns);
            let origin = &origin[..n_columns];
            let mut out = vec![0.0; list.len() * n_columns];
            RowUnits::all(&table, None).read(list.iter().copied(), origin, &mut out);
            for (&row, out) in list.iter().zip(out.chunks_exact(n_columns)) {
                let expected: Vec<f64> =
                    values[row * n_columns..].iter().zip(origin).map(|(value, zero)| value - zero).collect();
                prop_assert_eq!(out, expected);
            }
        }
    }

    #[test]
    fn masses_are_the_weights_of_the_rows() {
        let rows = DenseRows::new(vec![0.0_f64; 6], 1);
        let weights = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
        assert_eq!(RowUnits::range(&rows, Some(&weights), 2..6).masses(&[3, 0]), [5.0, 2.0]);
        assert_eq!(RowUnits::list(&rows, Some(&weights), vec![5, 1]).masses(&[0, 1, 0]), [5.0, 1.0, 5.0]);
        assert_eq!(RowUnits::all(&rows, None).masses(&[4, 4]), [1.0, 1.0]);
    }
}
