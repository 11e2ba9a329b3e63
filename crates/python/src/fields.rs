//! Reads values of a file's header, and its arrays, by name.

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};
use stickbreak::Error;

use crate::errors::to_python;

/// Reads a value of the header that files of other versions may lack.
pub(crate) fn optional<'py, T: FromPyObjectOwned<'py>>(header: &Bound<'py, PyDict>, name: &str) -> PyResult<Option<T>> {
    if header.contains(name)? { field(header, name) } else { Ok(None) }
}

/// Reads a value of the header or an array of a file. Refuses booleans, which Python accepts as numbers.
pub(crate) fn field<'py, T: FromPyObjectOwned<'py>>(dict: &Bound<'py, PyDict>, name: &str) -> PyResult<T> {
    let value = item(dict, name)?;
    if value.is_instance_of::<PyBool>() {
        return Err(format_error(format!("{name} is true or false")));
    }
    let outcome: PyResult<T> = value.extract().map_err(Into::into);
    outcome.map_err(|error| format_error(format!("{name}: {error}")))
}

/// Reads the number of rows, which float64 must represent.
pub(crate) fn n_rows(header: &Bound<'_, PyDict>) -> PyResult<usize> {
    match field::<usize>(header, "n_rows")? {
        0 => Err(format_error("a fit of no rows".into())),
        n if n <= 1 << f64::MANTISSA_DIGITS => Ok(n),
        n => Err(format_error(format!("a fit of {n} rows"))),
    }
}

/// Reads whether rows may have missing values. Files of earlier versions never have any.
pub(crate) fn may_miss(header: &Bound<'_, PyDict>) -> PyResult<bool> {
    match optional::<String>(header, "missing")?.as_deref() {
        None | Some("error") => Ok(false),
        Some("marginalize") => Ok(true),
        Some(other) => Err(format_error(format!("missing is {other:?}"))),
    }
}

pub(crate) fn format_error(message: String) -> PyErr {
    to_python(&Error::Format { message })
}

pub(crate) fn item<'py>(dict: &Bound<'py, PyDict>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    dict.get_item(name)?.ok_or_else(|| PyKeyError::new_err(name.to_owned()))
}
