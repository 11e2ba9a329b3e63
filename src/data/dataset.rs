//! All rows of a fit: in a table that can be read in any order, or in a stream that is read from the beginning.

use crate::data::{Allowed, ArrayBatches, BatchSource, RowUnits, Rows};
use crate::error::Result;
use crate::real::Real;

/// The rows of a fit, with their weights.
pub trait Dataset<F: Real>: Send + Sync {
    /// Number of columns.
    fn n_columns(&self) -> usize;

    /// Number of rows; a stream must have been read to its end to know it.
    fn n_rows(&self) -> usize;

    /// One weight a row, where there are any.
    fn weights(&self) -> Option<&[f64]>;

    /// Shows all rows in order, a slab at a time. All slabs but the last hold a multiple of `multiple` rows.
    ///
    /// # Errors
    /// What `take` returns; [`crate::Error::Source`]; [`crate::Error::InvalidArgument`] for weights of another length.
    fn for_each_slab(&self, multiple: usize, take: &mut dyn FnMut(&RowUnits<'_, F>) -> Result<()>) -> Result<()>;

    /// The listed rows (in ascending order) as units of their own, which keep their weights.
    ///
    /// # Errors
    /// [`crate::Error::Source`].
    fn pick(&self, rows: &[u32]) -> Result<RowUnits<'_, F>>;

    /// The rows in batches, dealt at random where `shuffle` is a seed. `content` is any number that tells this data
    /// from other data.
    ///
    /// # Errors
    /// As [`ArrayBatches::new`]; [`crate::Error::NotSupported`] for a stream that is to be shuffled.
    fn batches(&self, n_batches: usize, shuffle: Option<u64>, content: u64) -> Result<Box<dyn BatchSource<F> + '_>>;

    /// What values must be, which the error says of a source whose values change. Data in memory cannot. The last call
    /// counts.
    fn watch(&self, _allowed: Allowed, _holes: bool) {}

    /// Whether rows can be read in any order.
    fn can_seek(&self) -> bool;

    /// Number of values that all rows together store, where they are sparse.
    fn n_stored(&self) -> Option<usize> {
        None
    }

    /// Whether rows are sparse.
    fn is_sparse(&self) -> bool {
        self.n_stored().is_some()
    }
}

/// A table in memory or in a memory map.
pub struct TableRows<'a, F: Real> {
    /// The rows.
    pub rows: &'a dyn Rows<F>,
    /// One weight a row.
    pub weights: Option<&'a [f64]>,
}

impl<F: Real> Dataset<F> for TableRows<'_, F> {
    fn n_columns(&self) -> usize {
        self.rows.n_columns()
    }

    fn n_rows(&self) -> usize {
        self.rows.n_rows()
    }

    fn weights(&self) -> Option<&[f64]> {
        self.weights
    }

    fn for_each_slab(&self, _: usize, take: &mut dyn FnMut(&RowUnits<'_, F>) -> Result<()>) -> Result<()> {
        take(&RowUnits::all(self.rows, self.weights))
    }

    fn pick(&self, rows: &[u32]) -> Result<RowUnits<'_, F>> {
        Ok(RowUnits::list(self.rows, self.weights, rows.to_vec()))
    }

    fn batches(&self, n_batches: usize, shuffle: Option<u64>, content: u64) -> Result<Box<dyn BatchSource<F> + '_>> {
        Ok(Box::new(ArrayBatches::new(self.rows, self.weights, n_batches, shuffle, content)?))
    }

    fn can_seek(&self) -> bool {
        true
    }

    fn n_stored(&self) -> Option<usize> {
        self.rows.csr().map(|table| table.values.len())
    }
}
