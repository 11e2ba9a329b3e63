//! Weights and parameters of the clusters of draws, and densities at them.

use std::collections::BTreeMap;

use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use stickbreak::Result;
use stickbreak::data::{Rows, in_f64};
use stickbreak::mcmc::{Band, Mixtures, Predictive, PriorDraw, band, draw_prior};
use stickbreak::model::Objective;
use stickbreak::parallel::Cancel;

use crate::arrays::{AnyRows, table, vector, with_rows};
use crate::fields::format_error;
use crate::panics::caught;
use crate::run::run_quietly;
use crate::sampling::{SampledModel, draws_of};
use crate::specification::{GivenPair, specification, write};

/// Some draws of a model: contiguous labels, (T, n), the values that the process reports, (T, values), and the seed of
/// the components.
#[derive(FromPyObject)]
pub struct GivenDraws<'py>(PyReadonlyArray2<'py, i32>, PyReadonlyArray1<'py, f64>, u64);

/// The labels and the values of the draws, and the seed, without Python.
#[derive(Clone, Copy)]
struct BareDraws<'a>(&'a [i32], &'a [f64], u64);

impl BareDraws<'_> {
    /// Runs `work` with the mixtures of all draws of these rows.
    fn with<T>(
        self,
        model: &SampledModel,
        rows: &dyn Rows<f64>,
        work: impl FnOnce(&Mixtures<'_>) -> Result<T>,
    ) -> Result<T> {
        let draws: Vec<Predictive<'_>> = draws_of(self.0, self.1, rows.n_rows())?;
        work(&Mixtures::new(&model.grounds, rows, &draws, self.2)?)
    }
}

impl GivenDraws<'_> {
    fn read(&self) -> PyResult<BareDraws<'_>> {
        Ok(BareDraws(self.0.as_slice()?, self.1.as_slice()?, self.2))
    }
}

/// The log density of each new row at the components of each draw, (T, m), and the rows off the support.
#[pyfunction]
pub fn log_densities<'py>(
    py: Python<'py>,
    model: PyRef<'py, SampledModel>,
    rows: AnyRows<'_>,
    draws: GivenDraws<'_>,
    new: AnyRows<'_>,
    threads: Option<usize>,
) -> PyResult<(Bound<'py, PyArray2<f64>>, Vec<usize>)> {
    let (model, draws) = (&*model, draws.read()?);
    let (values, n_new, off) = with_rows!(&rows, |own| with_rows!(&new, |new| {
        run_quietly(py, threads, |cancel: &Cancel| {
            let off = model.grounds.check_new(&new, "X", cancel)?;
            let (own, new) = (in_f64(&own), in_f64(&new));
            let values = draws.with(model, own.as_ref(), |all| all.log_densities(new.as_ref(), cancel))?;
            Ok((values, new.n_rows(), off))
        })?
    }));
    Ok((table(py, values, n_new)?, off))
}

/// Weights and parameters of the clusters of all draws, one draw after another, each (1, clusters, ...).
#[pyfunction]
pub fn parameters_of_draws<'py>(
    py: Python<'py>,
    model: PyRef<'py, SampledModel>,
    rows: AnyRows<'_>,
    draws: GivenDraws<'_>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyDict>> {
    let (model, draws) = (&*model, draws.read()?);
    let found = with_rows!(&rows, |own| {
        run_quietly(py, threads, |cancel: &Cancel| {
            draws.with(model, in_f64(&own).as_ref(), |all| all.parameters(cancel))
        })?
    });
    write(py, &found)
}

/// Means and two quantiles of the densities of rows, each (m,), from their logs, (T, m).
#[pyfunction]
pub fn density_band<'py>(
    py: Python<'py>,
    log_densities: PyReadonlyArray2<'_, f64>,
    ends: [f64; 2],
) -> PyResult<[Bound<'py, PyArray1<f64>>; 3]> {
    let (n_rows, values) = (log_densities.as_array().ncols(), log_densities.as_slice()?);
    if values.is_empty() {
        return Err(format_error("densities of no draws or rows".into()));
    }
    let Band { mean, ends: [lower, upper] } = caught(|| Ok(band(values, n_rows, ends)))?;
    Ok([mean, lower, upper].map(|values| vector(py, values)))
}

/// Rows, labels, and learned parameters by name.
type DrawnTable<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray1<i64>>, BTreeMap<&'static str, f64>);

/// Rows and labels from the prior predictive, and the learned parameters of the process by name.
#[pyfunction]
pub fn sample_prior<'py>(
    py: Python<'py>,
    likelihood: GivenPair<'_>,
    process: GivenPair<'_>,
    n: usize,
    n_columns: Option<usize>,
    seed: u64,
) -> PyResult<DrawnTable<'py>> {
    let specification = specification(&likelihood, &process, Objective::Variational.name(), false)?;
    let drawn = run_quietly(py, Some(1), |cancel| draw_prior(&specification, n, n_columns, seed, cancel))?;
    let PriorDraw { rows, n_columns, labels, learned } = drawn;
    let labels = vector(py, labels.into_iter().map(i64::from).collect());
    Ok((table(py, rows, n_columns)?, labels, learned.into_iter().collect()))
}
