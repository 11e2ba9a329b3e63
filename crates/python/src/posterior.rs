//! Draws and intervals of the parameters of a fit.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::to_python;
use crate::run::run_quietly;
use crate::specification::write;
use crate::state::FitState;

/// Draws of weights and parameters, each (n, K, ...).
#[pyfunction]
#[allow(clippy::needless_pass_by_value)]
pub fn sample_parameters<'py>(
    py: Python<'py>,
    state: PyRef<'py, FitState>,
    n: usize,
    seed: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let fitted = state.fitted();
    write(py, &run_quietly(py, None, |cancel| fitted.sample_parameters(n, seed, cancel))?)
}

/// Two quantiles of draws of weights and parameters, each (2, K, ...).
#[pyfunction]
#[allow(clippy::needless_pass_by_value)]
pub fn intervals<'py>(
    py: Python<'py>,
    state: PyRef<'py, FitState>,
    ends: [f64; 2],
    n: usize,
    seed: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let fitted = state.fitted();
    write(py, &run_quietly(py, None, |cancel| fitted.intervals(ends, n, seed, cancel))?)
}

/// Return what components and weights cost in every bound, whatever the rows are, nats.
#[pyfunction]
pub fn cost_of_components(state: PyRef<'_, FitState>) -> PyResult<f64> {
    state.fitted().cost_of_components::<f64>().map_err(|error| to_python(&error))
}
