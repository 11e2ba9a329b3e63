//! All rows of a chain in memory, in `f64`, relative to the origin.

use std::sync::Arc;

use crate::data::{Coordinates, RowUnits, Rows, Widened};
use crate::scoring::Row;
use crate::simd::Scalar;

/// A table of rows with random access to single rows.
#[derive(Debug, Clone)]
pub struct RowTable {
    n_rows: usize,
    dimension: usize,
    /// Values of all rows; for sparse rows only the stored values.
    values: Vec<f64>,
    /// Offset of each sparse row, with one extra entry at the end, and the columns of the values.
    sparse: Option<(Vec<usize>, Vec<u32>)>,
}

impl RowTable {
    /// The rows of a table after applying coordinates and subtracting `origin`. All arithmetic is in `f64`, whatever
    /// their type.
    pub fn new<F: Scalar>(rows: &dyn Rows<F>, coordinates: &Arc<Coordinates>, origin: &[f64]) -> Self {
        let (n_rows, dimension) = (rows.n_rows(), origin.len());
        if let Some(table) = rows.csr() {
            let starts: Vec<usize> = table.starts.iter().map(|&start| start as usize).collect();
            let range = starts.first().copied().unwrap_or(0)..starts.last().copied().unwrap_or(0);
            let values = table.values[range.clone()].iter().map(|value| value.to_f64()).collect();
            let columns = table.columns[range.clone()].to_vec();
            let starts = starts.into_iter().map(|start| start - range.start).collect();
            return Self { n_rows, dimension, values, sparse: Some((starts, columns)) };
        }
        let widened = Widened(rows);
        let mut values = vec![0.0; n_rows * dimension];
        RowUnits::all(&widened, None).seen_through(coordinates).read(0..n_rows, origin, &mut values);
        Self { n_rows, dimension, values, sparse: None }
    }

    /// A table of these values, `dimension` for each row, relative to the origin.
    pub fn dense(values: Vec<f64>, dimension: usize) -> Self {
        Self { n_rows: values.len() / dimension.max(1), dimension, values, sparse: None }
    }

    /// Whether all columns of sparse rows are ascending columns of the table. Another thread may change an array
    /// between its check and its copy.
    pub fn has_its_columns(&self) -> bool {
        let Some((starts, columns)) = &self.sparse else { return true };
        let ascend = |pair: &[usize]| columns[pair[0]..pair[1]].is_sorted_by(|a, b| a < b);
        starts.windows(2).all(ascend) && columns.iter().all(|&column| (column as usize) < self.dimension)
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of columns.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// One row.
    pub fn row(&self, row: usize) -> Row<'_> {
        match &self.sparse {
            None => Row::Dense(&self.values[row * self.dimension..][..self.dimension]),
            Some((starts, columns)) => {
                let range = starts[row]..starts[row + 1];
                Row::Sparse(&columns[range.clone()], &self.values[range])
            }
        }
    }
}
