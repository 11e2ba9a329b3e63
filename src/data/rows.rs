//! Rows as they lie in memory and the weighted units that a local step receives.

use std::borrow::Cow;
use std::ops::Range;

use crate::real::Real;

/// A table that can be read row by row, wherever and however it is stored.
pub trait Rows<F: Real>: Send + Sync {
    /// Number of rows.
    fn n_rows(&self) -> usize;
    /// Number of columns.
    fn n_columns(&self) -> usize;
    /// Copies row `row` into `out` (one value a column).
    fn read_row(&self, row: usize, out: &mut [F]);
}

/// Rows one after another in one slice.
#[derive(Debug, Clone)]
pub struct DenseRows<'a, F: Clone> {
    values: Cow<'a, [F]>,
    n_columns: usize,
}

impl<'a, F: Real> DenseRows<'a, F> {
    /// Rows of `n_columns` values each.
    ///
    /// # Panics
    /// Where `values` is no whole number of rows.
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
}

enum Table<'a, F: Real> {
    Borrowed(&'a dyn Rows<F>),
    Owned(Box<dyn Rows<F> + 'a>),
}

enum Selection<'a> {
    Range(usize, usize),
    List(Cow<'a, [u32]>),
}

/// Units of one batch: rows, each with a mass. A unit of mass 2 is two identical rows that share their
/// responsibilities.
pub struct Units<'a, F: Real> {
    table: Table<'a, F>,
    selection: Selection<'a>,
    weights: Option<Cow<'a, [f64]>>,
}

impl<'a, F: Real> Units<'a, F> {
    /// All rows of a table; `weights` has one entry a row.
    pub fn all(rows: &'a dyn Rows<F>, weights: Option<&'a [f64]>) -> Self {
        Self::range(rows, weights, 0..rows.n_rows())
    }

    /// Consecutive rows; `weights` has one entry a row of the whole table.
    pub fn range(rows: &'a dyn Rows<F>, weights: Option<&'a [f64]>, range: Range<usize>) -> Self {
        Self {
            table: Table::Borrowed(rows),
            selection: Selection::Range(range.start, range.len()),
            weights: weights.map(Cow::Borrowed),
        }
    }

    /// The rows named by `list`; `weights` has one entry a row of the whole table.
    pub fn list(rows: &'a dyn Rows<F>, weights: Option<&'a [f64]>, list: impl Into<Cow<'a, [u32]>>) -> Self {
        Self {
            table: Table::Borrowed(rows),
            selection: Selection::List(list.into()),
            weights: weights.map(Cow::Borrowed),
        }
    }

    /// Rows that the units own, as a source that makes its blocks hands them over.
    pub fn owned(rows: Box<dyn Rows<F> + 'a>, weights: Option<Vec<f64>>) -> Self {
        let n = rows.n_rows();
        Self { table: Table::Owned(rows), selection: Selection::Range(0, n), weights: weights.map(Cow::Owned) }
    }

    fn table(&self) -> &dyn Rows<F> {
        match &self.table {
            Table::Borrowed(rows) => *rows,
            Table::Owned(rows) => rows.as_ref(),
        }
    }

    /// Number of units.
    pub fn len(&self) -> usize {
        match &self.selection {
            Selection::Range(_, n) => *n,
            Selection::List(list) => list.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of columns.
    pub fn dimension(&self) -> usize {
        self.table().n_columns()
    }

    /// The number of unit `unit` in the table it comes from.
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

    /// The mass of all units.
    pub fn total_mass(&self) -> f64 {
        match &self.weights {
            None => self.len() as f64,
            Some(_) => (0..self.len()).map(|unit| self.mass(unit)).sum(),
        }
    }

    /// The units named by `list`.
    pub fn select(&self, list: &[u32]) -> Units<'_, F> {
        let rows: Vec<u32> = list.iter().map(|&unit| self.row_number(unit as usize) as u32).collect();
        Units {
            table: Table::Borrowed(self.table()),
            selection: Selection::List(rows.into()),
            weights: self.weights.as_deref().map(Cow::Borrowed),
        }
    }

    /// Copies the rows of `units` into `out`, each less `origin`.
    pub fn read(&self, units: impl IntoIterator<Item = usize>, origin: &[F], out: &mut [F]) {
        for (unit, row) in units.into_iter().zip(out.chunks_exact_mut(origin.len())) {
            self.table().read_row(self.row_number(unit), row);
            for (value, &zero) in row.iter_mut().zip(origin) {
                *value -= zero;
            }
        }
    }
}
