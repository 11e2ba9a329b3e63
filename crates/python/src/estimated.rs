//! The part of a file that describes an estimated base measure.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use stickbreak::model::{Estimated, Specification};
use stickbreak::parameters::Parameters;

use crate::fields::{format_error, item, optional};
use crate::specification::{read, write};

/// Writes the names of the estimated parameters, and the numbers and arrays at which the estimate started.
pub fn write_estimated(
    py: Python<'_>,
    specification: &Specification,
    header: &Bound<'_, PyDict>,
    arrays: &Bound<'_, PyDict>,
) -> PyResult<()> {
    let Some(Estimated { free, start }) = &specification.estimated else { return Ok(()) };
    let free_start = start.0.iter().filter(|(name, _)| free.contains(name));
    let free_start = Parameters(free_start.map(|(name, value)| (name.clone(), value.clone())).collect());
    let numbers = PyDict::new(py);
    for (name, value) in write(py, &free_start)? {
        if value.hasattr("dtype")? {
            arrays.set_item(format!("start.{name}"), value)?;
        } else {
            numbers.set_item(name, value)?;
        }
    }
    header.set_item("estimated", free)?;
    header.set_item("start_parameters", numbers)
}

/// Reads the estimated parameters into a specification.
pub fn read_estimated(
    specification: &mut Specification,
    header: &Bound<'_, PyDict>,
    arrays: &Bound<'_, PyDict>,
) -> PyResult<()> {
    // Files of earlier versions do not name the prior.
    if !specification.likelihood.parameters.0.contains_key("prior") {
        specification.likelihood.add_absent();
    }
    let Some(free) = optional::<Vec<String>>(header, "estimated")? else { return Ok(()) };
    let start = item(header, "start_parameters")?.cast_into::<PyDict>()?.copy()?;
    for (name, array) in arrays {
        if let Some(parameter) = name.extract::<String>()?.strip_prefix("start.") {
            start.set_item(parameter, array)?;
        }
    }
    specification.set_estimated(free, read(&start)?).map_err(|error| format_error(error.to_string()))
}
