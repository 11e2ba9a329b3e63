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
    /// Copies the listed rows into `out`, one after another.
    fn read_rows(&self, rows: &[usize], out: &mut [F]) {
        for (&row, out) in rows.iter().zip(out.chunks_exact_mut(self.n_columns())) {
            self.read_row(row, out);
        }
    }
}

/// Copies the listed rows of a table that lies row by row in one slice.
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

/// The same for so few columns that a call to copy them would cost more than they do.
fn copy_narrow<F: Copy, const D: usize>(table: &[F], rows: &[usize], out: &mut [F]) {
    let (table, _) = table.as_chunks::<D>();
    let (out, _) = out.as_chunks_mut::<D>();
    for (&row, out) in rows.iter().zip(out) {
        *out = table[row];
    }
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

    fn read_rows(&self, rows: &[usize], out: &mut [F]) {
        copy_rows(&self.values, self.n_columns, rows, out);
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
        let rows: Vec<usize> = units.into_iter().map(|unit| self.row_number(unit)).collect();
        let out = &mut out[..rows.len() * origin.len()];
        self.table().read_rows(&rows, out);
        // Short origins are repeated: a loop over two columns would cost more than they do.
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
            Units::all(&table, None).read(list.iter().copied(), origin, &mut out);
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
        assert_eq!(Units::range(&rows, Some(&weights), 2..6).masses(&[3, 0]), [5.0, 2.0]);
        assert_eq!(Units::list(&rows, Some(&weights), vec![5, 1]).masses(&[0, 1, 0]), [5.0, 1.0, 5.0]);
        assert_eq!(Units::all(&rows, None).masses(&[4, 4]), [1.0, 1.0]);
    }
}
