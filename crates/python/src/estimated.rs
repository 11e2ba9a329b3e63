//! What a file keeps of a base measure that is estimated.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use stickbreak::model::{Estimated, Specification};
use stickbreak::parameters::Parameters;

use crate::fields::{format_error, item, optional};
use crate::specification::{read, write};

/// Adds the names of what is estimated, and the numbers and arrays that it started from.
pub fn write_estimated(
    py: Python<'_>,
    specification: &Specification,
    header: &Bound<'_, PyDict>,
    arrays: &Bound<'_, PyDict>,
) -> PyResult<()> {
    let Some(Estimated { free, start }) = &specification.estimated else { return Ok(()) };
    let own = start.0.iter().filter(|(name, _)| free.contains(name));
    let own = Parameters(own.map(|(name, value)| (name.clone(), value.clone())).collect());
    let numbers = PyDict::new(py);
    for (name, value) in write(py, &own)? {
        if value.hasattr("dtype")? {
            arrays.set_item(format!("start.{name}"), value)?;
        } else {
            numbers.set_item(name, value)?;
        }
    }
    header.set_item("estimated", free)?;
    header.set_item("start_parameters", numbers)
}

/// Reads them back into a specification.
pub fn read_estimated(
    specification: &mut Specification,
    header: &Bound<'_, PyDict>,
    arrays: &Bound<'_, PyDict>,
) -> PyResult<()> {
    // Files of earlier versions have no word of the prior.
    if !specification.likelihood.parameters.0.contains_key("prior") {
        specification.likelihood.add_absent();
    }
    let Some(free) = optional::<Vec<String>>(header, "estimated")? else { return Ok(()) };
    let start = item(header, "start_parameters")?.cast_into::<PyDict>()?.copy()?;
    for (name, array) in arrays {
        if let Some(own) = name.extract::<String>()?.strip_prefix("start.") {
            start.set_item(own, array)?;
        }
    }
    specification.set_estimated(free, read(&start)?).map_err(|error| format_error(error.to_string()))
}
