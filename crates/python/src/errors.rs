//! Converts errors of the core to exceptions of `stickbreak.errors`.

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use stickbreak::Error;

/// Returns the exception for an error of the core.
pub fn to_python(error: &Error) -> PyErr {
    Python::attach(|py| match build(py, error) {
        Ok(exception) => exception,
        Err(failure) => failure,
    })
}

/// Returns the exception for a mistake in this package.
pub fn internal(message: &str) -> PyErr {
    Python::attach(|py| raise(py, "InternalError", message, &PyDict::new(py)).unwrap_or_else(|failure| failure))
}

/// Returns the error of the core for an exception that it became in another process, if it is about an argument or
/// about numbers.
pub fn from_python(py: Python<'_>, error: &PyErr) -> Option<Error> {
    let class = |name: &str| py.import("stickbreak.errors").and_then(|module| module.getattr(name));
    let is_a = |name: &str| class(name).is_ok_and(|class| error.matches(py, class).unwrap_or(false));
    let text = |name: &str| error.value(py).getattr(name).and_then(|value| value.extract::<String>()).ok();
    if is_a("InvalidArgument") {
        let (argument, found, allowed) = (text("argument")?, text("found")?, text("allowed")?);
        return Some(Error::InvalidArgument { argument, found, allowed });
    }
    if is_a("SourceError") {
        // The core will say again that the source failed.
        let text = error.value(py).to_string();
        let message = text
            .strip_prefix("the data source failed")
            .map_or(&text[..], |rest| rest.split_once(": ").map_or(rest, |(_, message)| message));
        return Some(Error::Source { batch: None, message: message.to_owned() });
    }
    let component = || error.value(py).getattr("component").and_then(|value| value.extract()).ok();
    is_a("NumericalError").then(|| Error::numerical(component(), error.value(py).to_string()))
}

fn build(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let details = PyDict::new(py);
    let message = error.to_string();
    let class = match error {
        Error::InvalidArgument { argument, found, allowed } => {
            set_argument(&details, argument, found, allowed)?;
            "InvalidArgument"
        }
        Error::NotSupported { argument, found, allowed, .. } => {
            set_argument(&details, argument, found, allowed)?;
            "NotSupported"
        }
        Error::Numerical { component, .. } => {
            details.set_item("component", *component)?;
            "NumericalError"
        }
        Error::Source { .. } => "SourceError",
        Error::Format { .. } => "ModelFileError",
        Error::Checkpoint { .. } => "CheckpointError",
        Error::Cancelled => return Ok(PyKeyboardInterrupt::new_err("interrupted before there was a state to return")),
        other => return Ok(internal(&format!("an error without a name: {other}"))),
    };
    raise(py, class, &message, &details)
}

/// Sets the attributes that errors of one argument have besides the message.
fn set_argument(details: &Bound<'_, PyDict>, argument: &str, found: &str, allowed: &str) -> PyResult<()> {
    details.set_item("argument", argument)?;
    details.set_item("found", found)?;
    details.set_item("allowed", allowed)
}

fn raise(py: Python<'_>, class: &str, message: &str, details: &Bound<'_, PyDict>) -> PyResult<PyErr> {
    let class = py.import("stickbreak.errors")?.getattr(class)?;
    Ok(PyErr::from_value(class.call((message,), Some(details))?))
}
