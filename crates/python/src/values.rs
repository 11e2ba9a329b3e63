//! The part of a file that counts the values of every column.

use std::sync::Arc;

use numpy::{PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use stickbreak::data::Histogram;

use crate::arrays::table;
use crate::fields::{field, format_error, optional};

/// Writes the values of every column, if there are any, as rows of a column, a count and a mass.
pub fn write_values(
    py: Python<'_>,
    values: Option<&Arc<Histogram>>,
    header: &Bound<'_, PyDict>,
    arrays: &Bound<'_, PyDict>,
) -> PyResult<()> {
    let Some(values) = values else { return Ok(()) };
    let of_column = |column: usize| {
        let pairs = values.column(column).iter();
        pairs.map(move |&(count, mass)| [column as f64, count, mass])
    };
    header.set_item("values_mass", values.mass)?;
    arrays.set_item("values", table(py, (0..values.n_columns()).flat_map(of_column).flatten().collect(), 3)?)
}

/// Reads what [`write_values`] wrote, for rows of this many columns.
pub fn read_values(
    n_columns: usize,
    header: &Bound<'_, PyDict>,
    arrays: &Bound<'_, PyDict>,
) -> PyResult<Option<Arc<Histogram>>> {
    let Some(mass) = optional(header, "values_mass")? else { return Ok(None) };
    let triples: PyReadonlyArray2<'_, f64> = field(arrays, "values")?;
    if triples.shape()[1] != 3 {
        return Err(format_error(format!("values have {} numbers each, not 3", triples.shape()[1])));
    }
    let mut columns = vec![Vec::new(); n_columns];
    for triple in triples.as_array().rows() {
        let place = (triple[0] >= 0.0 && triple[0].fract() == 0.0).then_some(triple[0] as usize);
        let column = place.and_then(|place| columns.get_mut(place));
        column.ok_or_else(|| format_error(format!("values of a column {}", triple[0])))?.push((triple[1], triple[2]));
    }
    Histogram::new(mass, &columns).map(|values| Some(Arc::new(values))).map_err(format_error)
}
