//! What chains say of themselves.

use numpy::{PyArray2, PyReadonlyArray2};
use pyo3::prelude::*;
use stickbreak::mcmc::{Accuracy, RunLength, effective_sample_size, split_r_hat};

use crate::arrays::table;
use crate::panics::caught;

/// Draws of all chains one after another, and the number of chains, from (chains, draws).
fn in_order(draws: &PyReadonlyArray2<'_, f64>) -> (Vec<f64>, usize) {
    (draws.as_array().iter().copied().collect(), draws.as_array().nrows())
}

/// The bulk effective sample size of draws, (chains, draws).
#[pyfunction]
pub fn ess(draws: PyReadonlyArray2<'_, f64>) -> PyResult<f64> {
    let (values, chains) = in_order(&draws);
    caught(|| Ok(effective_sample_size(&values, chains)))
}

/// R-hat of draws, (chains, draws).
#[pyfunction]
pub fn rhat(draws: PyReadonlyArray2<'_, f64>) -> PyResult<f64> {
    let (values, chains) = in_order(&draws);
    caught(|| Ok(split_r_hat(&values, chains)))
}

/// The autocorrelations of draws, (chains, draws), at the lags from 0 to `max_lag`: (chains, lags).
#[pyfunction]
pub fn autocorrelation<'py>(
    py: Python<'py>,
    draws: PyReadonlyArray2<'_, f64>,
    max_lag: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let (values, chains) = in_order(&draws);
    let found = caught(|| Ok(stickbreak::mcmc::autocorrelation(&values, chains, max_lag)))?;
    table(py, found, max_lag + 1)
}

/// Draws of burn-in, their distance, draws, and independent draws that a quantile needs.
#[pyfunction]
pub fn run_length(
    draws: PyReadonlyArray2<'_, f64>,
    quantile: f64,
    precision: f64,
    probability: f64,
) -> PyResult<[f64; 4]> {
    let (values, chains) = in_order(&draws);
    let wanted = Accuracy { quantile, precision, probability };
    caught(|| {
        let RunLength { burn_in, lag, draws } = RunLength::new(&values, chains, wanted);
        Ok([burn_in, lag, draws, wanted.minimum()])
    })
}
