//! All rows of a fit: a table with random access, or a stream that is read from the beginning.

use crate::data::rows::BLOCK;
use crate::data::{Allowed, ArrayBatches, BatchSource, Csr, ReadSums, Reading, RowUnits, Rows, Sharding, row_count};
use crate::error::Result;
use crate::parallel::Cancel;
use crate::real::Real;

/// The rows of a fit, with their weights.
pub trait Dataset<F: Real>: Send + Sync {
    /// Number of columns.
    fn n_columns(&self) -> usize;

    /// Number of rows; a stream knows it only after it has been read to its end.
    fn n_rows(&self) -> usize;

    /// One weight per row, if any.
    fn weights(&self) -> Option<&[f64]>;

    /// Passes all rows to `take` in order, one slab at a time. All slabs but the last hold a multiple of `multiple`
    /// rows.
    ///
    /// # Errors
    /// Errors of `take`; [`crate::Error::Source`]; [`crate::Error::InvalidArgument`] for weights of another length.
    fn for_each_slab(&self, multiple: usize, take: &mut dyn FnMut(&RowUnits<'_, F>) -> Result<()>) -> Result<()>;

    /// The sums of a reading over all rows.
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] for the first value that is not allowed; [`crate::Error::Cancelled`];
    /// [`crate::Error::Source`].
    fn sum(&self, reading: &Reading, cancel: &Cancel) -> Result<ReadSums> {
        let mut sums = ReadSums::new(reading, self.n_columns(), self.is_sparse(), self.layout());
        self.for_each_slab(BLOCK, &mut |units| sums.read(reading, units, cancel))?;
        Ok(sums)
    }

    /// Returns the listed rows (in ascending order) as units of their own, with their weights. There may be more than
    /// 2^32 rows where they come in shards.
    ///
    /// # Errors
    /// [`crate::Error::Source`].
    fn pick(&self, rows: &[u64]) -> Result<RowUnits<'_, F>>;

    /// Returns the rows in batches.
    ///
    /// # Errors
    /// As [`ArrayBatches::new`]; [`crate::Error::NotSupported`] for shuffling a stream.
    fn batches(&self, sharding: Sharding) -> Result<Box<dyn BatchSource<F> + '_>>;

    /// Sets the allowed values, so that an error can name a disallowed value in a source whose values change between
    /// readings. Data in memory cannot change. The last call applies.
    fn watch(&self, _allowed: Allowed, _holes: bool) {}

    /// Whether rows can be read in any order.
    fn can_seek(&self) -> bool;

    /// Whether the rows come in shards of their own, which may be in other processes.
    fn has_shards(&self) -> bool {
        false
    }

    /// All rows as a dense table, if they are stored in that form.
    fn table(&self) -> Option<&dyn Rows<F>> {
        None
    }

    /// All rows as a sparse table, if they are stored in that form.
    fn csr(&self) -> Option<Csr<'_, F>> {
        None
    }

    /// As [`Rows::layout`].
    fn layout(&self) -> u64 {
        self.n_columns() as u64
    }

    /// Whether rows are sparse.
    fn is_sparse(&self) -> bool {
        self.csr().is_some()
    }
}

/// A table in memory or in a memory map.
pub struct TableRows<'a, F: Real> {
    /// The rows.
    pub rows: &'a dyn Rows<F>,
    /// One weight per row.
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

    fn pick(&self, rows: &[u64]) -> Result<RowUnits<'_, F>> {
        row_count(self.n_rows())?;
        Ok(RowUnits::list(self.rows, self.weights, rows.iter().map(|&row| row as u32).collect::<Vec<_>>()))
    }

    fn batches(&self, sharding: Sharding) -> Result<Box<dyn BatchSource<F> + '_>> {
        Ok(Box::new(ArrayBatches::new(self.rows, self.weights, sharding)?))
    }

    fn can_seek(&self) -> bool {
        true
    }

    fn table(&self) -> Option<&dyn Rows<F>> {
        Some(self.rows).filter(|rows| rows.csr().is_none())
    }

    fn csr(&self) -> Option<Csr<'_, F>> {
        self.rows.csr()
    }

    fn layout(&self) -> u64 {
        self.rows.layout()
    }
}
