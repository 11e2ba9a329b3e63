//! Conversion of Python specifications to those of the core, and back.

use numpy::{PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};
use stickbreak::model::{Named, Objective, ParameterPrior, Specification};
use stickbreak::moves::Moves;
use stickbreak::parameters::{Parameters, Value};
use stickbreak::{Error, background, likelihood, process};

use crate::errors::to_python;
use crate::fields::item;
use crate::panics::caught;

/// Name and parameters: the form of a likelihood or a process in Python.
pub type GivenPair<'py> = (String, Bound<'py, PyDict>);

/// Views of arrays of more dimensions panic. No parameter has more than two.
const MOST_DIMENSIONS: usize = 32;

/// A parameter in one of the forms that Python allows.
#[derive(FromPyObject)]
enum GivenParameter<'py> {
    /// First, because before version 2.4 NumPy accepts an array of one value as a number.
    Array(PyReadonlyArrayDyn<'py, f64>),
    Number(f64),
    Text(String),
}

/// Checks the parameters of a likelihood as far as possible without data.
#[pyfunction]
pub fn check_likelihood(name: &str, parameters: Bound<'_, PyDict>) -> PyResult<()> {
    let parameters = read(&parameters)?;
    let check = || likelihood::check(name, &ParameterPrior::apart(name, &parameters)?.0);
    caught(|| check().map_err(|error| to_python(&error)))
}

/// Checks the parameters of a process.
#[pyfunction]
pub fn check_process(name: &str, parameters: Bound<'_, PyDict>) -> PyResult<()> {
    let parameters = read(&parameters)?;
    caught(|| process::build(name, &parameters).map(|_| ()).map_err(|error| to_python(&error)))
}

/// Checks a move.
#[pyfunction]
pub fn check_move(name: &str, parameters: Bound<'_, PyDict>) -> PyResult<()> {
    let parameters = read(&parameters)?;
    caught(|| Moves::default().add(name, &parameters).map_err(|error| to_python(&error)))
}

/// Reads parameters from a dict of None, numbers, words and float64 arrays.
pub fn read(parameters: &Bound<'_, PyDict>) -> PyResult<Parameters> {
    let mut all = Parameters::default();
    for (name, value) in parameters {
        let value = if value.is_none() {
            Value::Absent
        } else {
            // Python counts True as a number, and a file may contain `true`.
            if value.is_instance_of::<PyBool>() {
                return Err(PyTypeError::new_err(format!("{name} is true or false")));
            }
            if let Ok(array) = value.cast::<PyUntypedArray>()
                && array.ndim() > MOST_DIMENSIONS
            {
                let found = format!("an array of {} dimensions", array.ndim());
                let argument = name.extract::<String>()?;
                return Err(to_python(&Error::invalid(&argument, found, "an array of at most 2 dimensions")));
            }
            match value.extract::<GivenParameter<'_>>()? {
                GivenParameter::Number(number) => Value::Number(number),
                GivenParameter::Text(word) => Value::Text(word),
                GivenParameter::Array(array) => {
                    Value::Array { shape: array.shape().to_vec(), data: array.as_array().iter().copied().collect() }
                }
            }
        };
        all.0.insert(name.extract()?, value);
    }
    Ok(all)
}

/// Writes parameters to a dict of None, numbers, words and arrays.
pub fn write<'py>(py: Python<'py>, parameters: &Parameters) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    for (name, value) in &parameters.0 {
        match value {
            Value::Absent => all.set_item(name, py.None())?,
            Value::Number(number) => all.set_item(name, number)?,
            Value::Text(word) => all.set_item(name, word)?,
            Value::Array { shape, data } => all.set_item(name, array(py, shape, data)?)?,
        }
    }
    Ok(all)
}

fn array<'py>(py: Python<'py>, shape: &[usize], data: &[f64]) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
    numpy::PyArray1::from_slice(py, data).reshape(shape)
}

/// Checks the parameters of a background.
#[pyfunction]
pub fn check_background(parameters: Bound<'_, PyDict>) -> PyResult<()> {
    let parameters = read(&parameters)?;
    caught(|| background::check(&parameters).map_err(|error| to_python(&error)))
}

/// Builds the specification of a mixture from likelihood and process, objective, and whether values may be missing.
pub fn specification(
    likelihood: &GivenPair<'_>,
    process: &GivenPair<'_>,
    objective: &str,
    missing: bool,
) -> PyResult<Specification> {
    let objective = Objective::from_name(objective).ok_or_else(|| {
        let allowed = "one of \"variational\", \"map\", \"ml\"";
        to_python(&Error::invalid("objective", format!("{objective:?}"), allowed))
    })?;
    let given = Specification {
        objective,
        missing,
        estimated: None,
        learned: None,
        values: None,
        background: None,
        likelihood: Named { name: likelihood.0.clone(), parameters: read(&likelihood.1)? },
        process: Named { name: process.0.clone(), parameters: read(&process.1)? },
    };
    given.with_prior_apart().map_err(|error| to_python(&error))
}

/// The specification of a fit in the form that Python passes.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct GivenSpecification<'py> {
    likelihood: GivenPair<'py>,
    process: GivenPair<'py>,
    background: Option<Bound<'py, PyDict>>,
    objective: String,
    missing: bool,
}

impl GivenSpecification<'_> {
    /// Converts it to a specification of the core.
    pub fn read(&self) -> PyResult<Specification> {
        let given = specification(&self.likelihood, &self.process, &self.objective, self.missing)?;
        Ok(Specification { background: self.background.as_ref().map(read).transpose()?, ..given })
    }
}

/// Writes all parameters to the header of a file, and those that are arrays to its arrays, as "likelihood.scale".
pub fn write_parameters(
    py: Python<'_>,
    specification: &Specification,
    header: &Bound<'_, PyDict>,
    arrays: &Bound<'_, PyDict>,
) -> PyResult<()> {
    let roles = [
        ("likelihood", Some(&specification.likelihood.parameters)),
        ("process", Some(&specification.process.parameters)),
        ("background", specification.background.as_ref()),
    ];
    for (role, parameters) in roles.into_iter().filter_map(|(role, parameters)| Some((role, parameters?))) {
        let plain = PyDict::new(py);
        for (name, value) in write(py, parameters)? {
            if value.hasattr("dtype")? {
                arrays.set_item(format!("{role}.{name}"), value)?;
            } else {
                plain.set_item(name, value)?;
            }
        }
        header.set_item(format!("{role}_parameters"), plain)?;
    }
    Ok(())
}

/// Reads what [`write_parameters`] has written for a role.
pub fn read_parameters<'py>(
    role: &str,
    header: &Bound<'py, PyDict>,
    arrays: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let parameters = item(header, &format!("{role}_parameters"))?.cast_into::<PyDict>()?.copy()?;
    for (name, array) in arrays {
        if let Some(parameter) = name.extract::<String>()?.strip_prefix(&format!("{role}.")) {
            parameters.set_item(parameter, array)?;
        }
    }
    Ok(parameters)
}
