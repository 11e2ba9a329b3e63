//! Rows off the subspace of coordinates.

use std::collections::BTreeSet;

use crate::data::{Coordinates, RowUnits};
use crate::error::Result;
use crate::parallel::Cancel;
use crate::real::Real;

/// Rows off the subspace of coordinates.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Strays {
    /// Indices of the rows among the units, ascending.
    pub units: Vec<usize>,
    /// The columns in which at least one row lies off the subspace.
    pub columns: BTreeSet<usize>,
}

/// Finds the rows of positive mass that lie off the subspace of coordinates.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn strays<F: Real>(units: &RowUnits<'_, F>, coordinates: &Coordinates, cancel: &Cancel) -> Result<Strays> {
    let mut all = Strays::default();
    if coordinates.is_full() {
        return Ok(all);
    }
    let d = coordinates.n_columns();
    let parts = units.map_blocks(&vec![F::ZERO; d], cancel, |range, rows| {
        let mut found = Strays::default();
        let mut wide = vec![0.0; d];
        for (unit, row) in range.zip(rows.chunks_exact(d)).filter(|(unit, _)| units.mass(*unit) > 0.0) {
            wide.iter_mut().zip(row).for_each(|(to, value)| *to = value.to_f64());
            let off = coordinates.strays(&wide);
            if !off.is_empty() {
                found.units.push(unit);
                found.columns.extend(off);
            }
        }
        Ok(found)
    })?;
    for part in parts {
        all.units.extend(part.units);
        all.columns.extend(part.columns);
    }
    Ok(all)
}
