//! Densities of some columns, the state of `stickbreak.Density`.

use numpy::{PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::prelude::*;
use stickbreak::fitted::log_densities;
use stickbreak::laws::MixtureLaw;

use crate::arrays::{AnyRows, table, vector, with_rows};
use crate::run::run_quietly;
use crate::state::FitState;

/// A mixture of distributions of the same columns.
#[pyclass(frozen, module = "stickbreak._core")]
pub struct DensityState {
    law: MixtureLaw,
}

/// Builds the density of the columns of a fit, in their order.
#[pyfunction]
pub fn density(
    py: Python<'_>,
    state: PyRef<'_, FitState>,
    plug_in: bool,
    threads: Option<usize>,
) -> PyResult<DensityState> {
    let fitted = state.fitted();
    Ok(DensityState { law: run_quietly(py, threads, |cancel| fitted.law(plug_in, cancel))? })
}

#[pymethods]
impl DensityState {
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        vector(py, self.law.weights().to_vec())
    }

    /// Means of the components, (J, D).
    #[getter]
    fn means<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        table(py, self.law.means(), self.law.n_columns())
    }

    /// Covariances of the components, (J D, D).
    #[getter]
    fn covariances<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        table(py, self.law.covariances(), self.law.n_columns())
    }

    /// Mean, (D,).
    #[getter]
    fn mean<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        vector(py, self.law.moments().0)
    }

    /// Covariance, (D, D).
    #[getter]
    fn covariance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        table(py, self.law.moments().1, self.law.n_columns())
    }

    fn log_density<'py>(
        &self,
        py: Python<'py>,
        rows: AnyRows<'_>,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let law = &self.law;
        let values = with_rows!(&rows, |view| run_quietly(py, threads, |cancel| log_densities(law, &view, cancel)))?;
        Ok(vector(py, values))
    }

    fn sample<'py>(
        &self,
        py: Python<'py>,
        n: usize,
        seed: u64,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let rows = run_quietly(py, threads, |cancel| self.law.sample(n, seed, cancel))?;
        table(py, rows, self.law.n_columns())
    }

    /// Returns the density of some columns, in this order.
    fn marginal(&self, py: Python<'_>, columns: Vec<usize>, threads: Option<usize>) -> PyResult<Self> {
        Ok(Self { law: run_quietly(py, threads, |_| self.law.marginal(&columns))? })
    }

    /// Returns the density of the `others` given the values of some columns.
    fn conditional(
        &self,
        py: Python<'_>,
        others: Vec<usize>,
        given: Vec<usize>,
        values: PyReadonlyArray1<'_, f64>,
        threads: Option<usize>,
    ) -> PyResult<Self> {
        let values = values.as_array().to_vec();
        Ok(Self { law: run_quietly(py, threads, |_| self.law.conditional(&others, &given, &values))? })
    }
}
