//! Copies of rows in memory.

use crate::data::{Dataset, DenseRows, TableRows};
use crate::error::Result;
use crate::real::Real;

/// Copies of rows, with their weights.
pub(super) struct Copies<F: Real> {
    rows: DenseRows<'static, F>,
    weights: Option<Vec<f64>>,
}

impl<F: Real> Copies<F> {
    /// Copies the listed rows (in ascending order).
    ///
    /// # Errors
    /// [`crate::Error::Source`].
    pub(super) fn of(rows: &dyn Dataset<F>, list: &[u64]) -> Result<Self> {
        let (units, d) = (rows.pick(list)?, rows.n_columns());
        let mut values = vec![F::ZERO; list.len() * d];
        units.read(0..list.len(), &vec![F::ZERO; d], &mut values);
        let weights = rows.weights().map(|_| (0..list.len()).map(|row| units.mass(row)).collect());
        Ok(Self { rows: DenseRows::new(values, d), weights })
    }

    /// Copies all rows, unless they can be read in any order as they are.
    ///
    /// # Errors
    /// [`crate::Error::Source`].
    pub(super) fn of_all(rows: &dyn Dataset<F>) -> Result<Option<Self>> {
        let all = || (0..rows.n_rows() as u64).collect::<Vec<_>>();
        if rows.can_seek() { Ok(None) } else { Self::of(rows, &all()).map(Some) }
    }

    /// The copies as a table.
    pub(super) fn table(&self) -> TableRows<'_, F> {
        TableRows { rows: &self.rows, weights: self.weights.as_deref() }
    }
}
