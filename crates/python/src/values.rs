//! The part of a file that counts the values of every column.

use std::sync::Arc;

use numpy::{PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use stickbreak::data::{Counted, Histogram};

use crate::arrays::table;
use crate::fields::{field, format_error, optional};

/// Writes the values of every column, if there are any, as rows of a column, a count and a mass, and an exposure if
/// rows have them.
pub fn write_values(
    py: Python<'_>,
    values: Option<&Arc<Histogram>>,
    header: &Bound<'_, PyDict>,
    arrays: &Bound<'_, PyDict>,
) -> PyResult<()> {
    let Some(values) = values else { return Ok(()) };
    let width = if values.is_exposed() { 4 } else { 3 };
    let of_column = |column: usize| {
        let entries = values.column(column).iter();
        entries.flat_map(move |entry| [column as f64, entry.count, entry.mass, entry.exposure].into_iter().take(width))
    };
    header.set_item("values_mass", values.mass)?;
    arrays.set_item("values", table(py, (0..values.n_columns()).flat_map(of_column).collect(), width)?)
}

/// Reads what [`write_values`] wrote, for rows of this many columns.
pub fn read_values(
    n_columns: usize,
    header: &Bound<'_, PyDict>,
    arrays: &Bound<'_, PyDict>,
) -> PyResult<Option<Arc<Histogram>>> {
    let Some(mass) = optional(header, "values_mass")? else { return Ok(None) };
    let entries: PyReadonlyArray2<'_, f64> = field(arrays, "values")?;
    if !(3..=4).contains(&entries.shape()[1]) {
        return Err(format_error(format!("values have {} numbers each, not 3 or 4", entries.shape()[1])));
    }
    let mut columns = vec![Vec::new(); n_columns];
    for entry in entries.as_array().rows() {
        let place = (entry[0] >= 0.0 && entry[0].fract() == 0.0).then_some(entry[0] as usize);
        let column = place.and_then(|place| columns.get_mut(place));
        let counted = Counted { count: entry[1], mass: entry[2], exposure: entry.get(3).copied().unwrap_or(1.0) };
        column.ok_or_else(|| format_error(format!("values of a column {}", entry[0])))?.push(counted);
    }
    Histogram::new(mass, &columns).map(|values| Some(Arc::new(values))).map_err(format_error)
}
