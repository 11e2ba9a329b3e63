//! Coordinates of a model for Python, and as arrays of a file.

use numpy::{PyArray2, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use stickbreak::data::Coordinates;

use crate::arrays::{table, vector};
use crate::errors::to_python;
use crate::fields::{field, format_error};

const VECTORS: [&str; 3] = ["coordinates.units", "coordinates.centre", "coordinates.spreads"];
const SLOPES: &str = "coordinates.slopes";

/// Constant columns, and columns that depend on others.
pub fn lost_columns(coordinates: &Coordinates) -> (Vec<usize>, Vec<usize>) {
    (coordinates.constants().to_vec(), coordinates.dependents().iter().map(|dependent| dependent.column).collect())
}

/// Columns of which the model sees what others leave of them.
pub fn residual_columns(coordinates: &Coordinates) -> Vec<usize> {
    coordinates.residuals().iter().map(|residual| residual.column).collect()
}

/// An orthonormal basis of the directions in which the data vary, (D, r).
pub fn basis<'py>(py: Python<'py>, coordinates: &Coordinates) -> PyResult<Bound<'py, PyArray2<f64>>> {
    table(py, coordinates.basis(), coordinates.rank())
}

/// Adds the arrays of coordinates to those of a file.
pub fn write_coordinates(coordinates: &Coordinates, arrays: &Bound<'_, PyDict>) -> PyResult<()> {
    let py = arrays.py();
    let [units, centre, spreads, slopes] = coordinates.to_parts();
    for (name, values) in VECTORS.into_iter().zip([units, centre, spreads]) {
        arrays.set_item(name, vector(py, values))?;
    }
    arrays.set_item(SLOPES, table(py, slopes, coordinates.rank())?)
}

/// Reads the coordinates of `rank` columns from arrays. Files of the first version have none; their coordinates are the
/// columns themselves.
pub fn read_coordinates(arrays: &Bound<'_, PyDict>, rank: usize) -> PyResult<Coordinates> {
    let mut any = arrays.contains(SLOPES)?;
    for name in VECTORS {
        any |= arrays.contains(name)?;
    }
    if !any {
        return Ok(Coordinates::identity(rank));
    }
    let slopes: PyReadonlyArray2<'_, f64> = field(arrays, SLOPES)?;
    // A table without rows takes no space in a file, whatever its stated width.
    if slopes.shape()[1] != rank {
        return Err(format_error(format!("slopes in {} columns", slopes.shape()[1])));
    }
    let slopes: Vec<f64> = slopes.as_array().iter().copied().collect();
    let numbers = |name: &str| -> PyResult<Vec<f64>> {
        let array: PyReadonlyArray1<'_, f64> = field(arrays, name)?;
        Ok(array.as_array().iter().copied().collect())
    };
    let [units, centre, spreads] = VECTORS.map(numbers);
    Coordinates::from_parts(&units?, &centre?, &spreads?, &slopes).map_err(|error| to_python(&error))
}
