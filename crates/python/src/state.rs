//! The state of a fit, behind `stickbreak.Fit`.

use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadwriteArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use stickbreak::Result;
use stickbreak::fit::Limits;
use stickbreak::fitted::{Fitted, Joins, Prediction};
use stickbreak::local_step::Keep;
use stickbreak::process::Concentration;

use crate::arrays::{AnyData, AnyRows, at_least_one, table, vector, weights, with_rows};
use crate::coordinates::{basis, lost_columns, residual_columns};
use crate::errors::to_python;
use crate::history::{record_to_dict, repeats_to_dict, searched_to_numbers};
use crate::model_file::{from_parts, to_parts};
use crate::panics::caught;
use crate::run::{run_quietly, run_soon};
use crate::specification::{GivenPair, write};
use crate::summary::summary_to_dict;
use crate::updates::updated;

/// A fitted mixture.
#[pyclass(frozen, module = "stickbreak._core")]
pub struct FitState {
    fitted: Fitted,
}

impl FitState {
    /// Wraps a fitted mixture.
    pub fn new(fitted: Fitted) -> Self {
        Self { fitted }
    }

    /// The fitted mixture.
    pub fn fitted(&self) -> &Fitted {
        &self.fitted
    }
}

fn done<T>(work: impl FnOnce() -> Result<T>) -> PyResult<T> {
    caught(|| work().map_err(|error| to_python(&error)))
}

#[pymethods]
impl FitState {
    #[getter]
    fn likelihood<'py>(&self, py: Python<'py>) -> PyResult<GivenPair<'py>> {
        let name = &self.fitted.specification.likelihood.name;
        Ok((name.clone(), write(py, &done(|| self.fitted.parameters())?)?))
    }

    #[getter]
    fn process<'py>(&self, py: Python<'py>) -> PyResult<GivenPair<'py>> {
        let named = &self.fitted.specification.process;
        Ok((named.name.clone(), write(py, &named.parameters)?))
    }

    /// The parameters of the background in the data's units; `None` without one.
    #[getter]
    fn background<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.fitted.background().map(|parameters| write(py, &parameters)).transpose()
    }

    #[getter]
    fn background_weight(&self) -> PyResult<f64> {
        Ok(done(|| self.fitted.allocation())?.background_weight)
    }

    #[getter]
    fn objective(&self) -> &'static str {
        self.fitted.specification.objective.name()
    }

    #[getter]
    fn missing(&self) -> &'static str {
        if self.fitted.specification.missing { "marginalize" } else { "error" }
    }

    #[getter]
    fn n_rows(&self) -> usize {
        self.fitted.n_rows
    }

    #[getter]
    fn dimension(&self) -> usize {
        self.fitted.n_data_columns()
    }

    /// Constant columns, and columns that depend on others.
    #[getter]
    fn lost_columns(&self) -> (Vec<usize>, Vec<usize>) {
        lost_columns(&self.fitted.coordinates)
    }

    /// Columns that nearly follow from others.
    #[getter]
    fn residual_columns(&self) -> Vec<usize> {
        residual_columns(&self.fitted.coordinates)
    }

    /// An orthonormal basis of the directions in which the data vary, (D, r).
    #[getter]
    fn basis<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        basis(py, &self.fitted.coordinates)
    }

    #[getter]
    fn lacks_rows(&self) -> bool {
        self.fitted.lacks_rows
    }

    /// Number of rows of positive weight that lie off the subspace of the fit, and the columns in which they do.
    fn strays(
        &self,
        py: Python<'_>,
        rows: AnyRows<'_>,
        weights: Option<PyReadonlyArray1<'_, f64>>,
        threads: Option<usize>,
    ) -> PyResult<(usize, Vec<usize>)> {
        let weights = self::weights(weights.as_ref())?;
        let off = with_rows!(&rows, |view| run_quietly(py, threads, |cancel| {
            self.fitted.strays(&view, weights, cancel)
        }))?;
        Ok((off.units.len(), off.columns.into_iter().collect()))
    }

    #[getter]
    fn n_components(&self) -> usize {
        self.fitted.summary.n_components()
    }

    #[getter]
    fn sparsity(&self) -> usize {
        self.fitted.sparsity
    }

    #[getter]
    fn margin(&self) -> Option<f64> {
        self.fitted.margin
    }

    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        // Rounding of sums and differences may leave an emptied component below zero.
        vector(py, self.fitted.summary.counts.iter().map(|count| count.max(0.0)).collect())
    }

    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(vector(py, done(|| self.fitted.allocation())?.expected_weights))
    }

    #[getter]
    fn leftover_weight(&self) -> PyResult<f64> {
        Ok(done(|| self.fitted.allocation())?.leftover)
    }

    #[getter]
    fn components<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        write(py, &done(|| self.fitted.components())?)
    }

    /// A number, or the shape and the rate of its posterior; `None` for sticks without one.
    #[getter]
    fn concentration<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (posterior, prior) = done(|| {
            Ok((self.fitted.allocation()?.concentration, self.fitted.specification.weights()?.concentration()))
        })?;
        match posterior.map(Concentration::Unknown).or(prior) {
            Some(Concentration::Unknown(gamma)) => (gamma.shape, gamma.rate).into_pyobject(py).map(Bound::into_any),
            Some(Concentration::Fixed(value)) => Ok(value.into_pyobject(py)?.into_any()),
            None => Ok(py.None().into_bound(py)),
        }
    }

    /// The class of each component, (K,), -1 for free ones.
    #[getter]
    fn classes<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let Fitted { classes, summary, .. } = &self.fitted;
        vector(py, if classes.is_empty() { vec![-1; summary.n_components()] } else { classes.clone() })
    }

    /// Expected count of the tail or the background; 0 without one.
    #[getter]
    fn tail_count(&self) -> f64 {
        self.fitted.summary.tail_count()
    }

    #[getter]
    fn elbo(&self) -> f64 {
        self.fitted.elbo
    }

    /// The bound plus the guard of the base measure.
    #[getter]
    fn objective_value(&self) -> PyResult<f64> {
        done(|| self.fitted.objective())
    }

    #[getter]
    fn bound(&self) -> PyResult<&'static str> {
        done(|| self.fitted.specification.bound())
    }

    #[getter]
    fn history<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        self.fitted.history.iter().map(|record| record_to_dict(py, record)).collect()
    }

    #[getter]
    fn stop_reason(&self) -> &'static str {
        self.fitted.stop_reason.name()
    }

    /// The objective of the second best start, and its agreement with the best.
    #[getter]
    fn runner_up(&self) -> Option<[f64; 2]> {
        self.fitted.runner_up.map(|second| [second.objective, second.ari])
    }

    /// Of the rows in which structure was sought, if not all: number, sum of weights, and the objective of their fit.
    #[getter]
    fn searched(&self) -> Option<[f64; 3]> {
        self.fitted.searched.map(searched_to_numbers)
    }

    /// What is known of repeated rows, after a fit.
    #[getter]
    fn repeats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        repeats_to_dict(py, &self.fitted.repeats)
    }

    #[getter]
    fn error(&self) -> Option<String> {
        self.fitted.error.as_ref().map(ToString::to_string)
    }

    fn evaluate(
        &self,
        py: Python<'_>,
        rows: AnyRows<'_>,
        weights: Option<PyReadonlyArray1<'_, f64>>,
        threads: Option<usize>,
    ) -> PyResult<f64> {
        let weights = self::weights(weights.as_ref())?;
        with_rows!(&rows, |view| {
            let is_quick = self.fitted.is_quick(&view, Prediction::WithTail);
            run_soon(py, threads, is_quick, |cancel| self.fitted.evaluate(&view, weights, cancel))
        })
    }

    fn update(
        &self,
        py: Python<'_>,
        rows: AnyData<'_>,
        weights: Option<PyReadonlyArray1<'_, f64>>,
        max_passes: usize,
        tol: f64,
        threads: Option<usize>,
    ) -> PyResult<Self> {
        let limits = Limits { max_passes, tol };
        Ok(Self { fitted: updated(py, &self.fitted, rows, self::weights(weights.as_ref())?, limits, threads)? })
    }

    fn predict<'py>(
        &self,
        py: Python<'py>,
        rows: AnyRows<'_>,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let tail = self.fitted.specification.background.is_some();
        let prediction = if tail { Prediction::WithTail } else { Prediction::Components };
        let assigned = with_rows!(&rows, |view| {
            let is_quick = self.fitted.is_quick(&view, prediction);
            run_soon(py, threads, is_quick, |cancel| self.fitted.assign(&view, 1, tail, cancel))
        })?;
        let is_component = |&component: &i64| usize::try_from(component).is_ok_and(|k| k < self.n_components());
        let labels = assigned.components.into_iter().map(|k| Some(k).filter(is_component).unwrap_or(-1));
        Ok(vector(py, labels.collect()))
    }

    #[allow(clippy::type_complexity, reason = "a tuple for Python")]
    fn responsibilities<'py>(
        &self,
        py: Python<'py>,
        rows: AnyRows<'_>,
        sparsity: Option<usize>,
        tail: bool,
        threads: Option<usize>,
    ) -> PyResult<(Bound<'py, PyArray2<i64>>, Bound<'py, PyArray2<f64>>)> {
        let width = self.width(sparsity, tail)?;
        let prediction = if tail { Prediction::WithTail } else { Prediction::Components };
        let assigned = with_rows!(&rows, |view| {
            let is_quick = self.fitted.is_quick(&view, prediction);
            run_soon(py, threads, is_quick, |cancel| self.fitted.assign(&view, width, tail, cancel))
        })?;
        Ok((table(py, assigned.components, width)?, table(py, assigned.values, width)?))
    }

    /// Write all responsibilities of the rows into a table, (n, K), or (n, K + 1) with the tail.
    fn fill_responsibilities(
        &self,
        py: Python<'_>,
        rows: AnyRows<'_>,
        tail: bool,
        threads: Option<usize>,
        mut table: PyReadwriteArray2<'_, f64>,
    ) -> PyResult<()> {
        let prediction = if tail { Prediction::WithTail } else { Prediction::Components };
        let table = table.as_slice_mut()?;
        with_rows!(&rows, |view| {
            let is_quick = self.fitted.is_quick(&view, prediction);
            run_soon(py, threads, is_quick, |cancel| self.fitted.fill_table(&view, tail, table, cancel))
        })
    }

    /// The joins of components into clusters: the entropy before them, (one, other, gap, overlap) of each join, and the
    /// cluster of each component.
    #[allow(clippy::type_complexity, reason = "a tuple for Python")]
    fn joins<'py>(
        &self,
        py: Python<'py>,
        rows: AnyRows<'_>,
        weights: Option<PyReadonlyArray1<'_, f64>>,
        n_clusters: Option<usize>,
        threads: Option<usize>,
    ) -> PyResult<(f64, Vec<(usize, usize, f64, f64)>, Bound<'py, PyArray1<i64>>)> {
        let width = self.width(Some(self.fitted.sparsity), false)?;
        let weights = self::weights(weights.as_ref())?;
        let (joins, groups) = with_rows!(&rows, |view| run_quietly(py, threads, |cancel| {
            let assigned = self.fitted.assign(&view, width, false, cancel)?;
            let n = assigned.log_normalizers.len();
            let masses = weights.map_or_else(|| vec![1.0; n], <[f64]>::to_vec);
            let joins = Joins::new(&assigned, &masses, self.fitted.summary.n_components(), cancel)?;
            let groups = joins.groups(n_clusters)?;
            Ok((joins, groups))
        }))?;
        let list = joins.joins.iter().map(|join| (join.clusters.0, join.clusters.1, join.gap, join.overlap)).collect();
        Ok((joins.entropy, list, vector(py, groups)))
    }

    fn log_predictive<'py>(
        &self,
        py: Python<'py>,
        rows: AnyRows<'_>,
        plug_in: bool,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let prediction = if plug_in { Prediction::PlugIn } else { Prediction::Predictive };
        let values = with_rows!(&rows, |view| {
            let is_quick = self.fitted.is_quick(&view, prediction);
            run_soon(py, threads, is_quick, |cancel| self.fitted.log_densities(&view, prediction, cancel))
        })?;
        Ok(vector(py, values))
    }

    #[getter]
    fn point_estimates<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        write(py, &done(|| self.fitted.point_estimates())?)
    }

    /// Means and variances of missing values; present values have their own value and variance 0.
    #[allow(clippy::type_complexity, reason = "a tuple for Python")]
    fn impute<'py>(
        &self,
        py: Python<'py>,
        rows: AnyRows<'_>,
        threads: Option<usize>,
    ) -> PyResult<(Bound<'py, PyArray2<f64>>, Bound<'py, PyArray2<f64>>)> {
        let (means, variances) =
            with_rows!(&rows, |view| run_quietly(py, threads, |cancel| self.fitted.impute(&view, cancel)))?;
        let d = self.fitted.n_data_columns();
        Ok((table(py, means, d)?, table(py, variances, d)?))
    }

    fn sample_missing<'py>(
        &self,
        py: Python<'py>,
        rows: AnyRows<'_>,
        seed: u64,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let values = with_rows!(&rows, |view| run_quietly(py, threads, |cancel| {
            self.fitted.sample_missing(&view, seed, cancel)
        }))?;
        table(py, values, self.fitted.n_data_columns())
    }

    fn sample<'py>(
        &self,
        py: Python<'py>,
        n: usize,
        seed: u64,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let rows = run_quietly(py, threads, |cancel| self.fitted.sample(n, seed, cancel))?;
        table(py, rows, self.fitted.n_data_columns())
    }

    fn summary<'py>(
        &self,
        py: Python<'py>,
        rows: AnyRows<'_>,
        weights: Option<PyReadonlyArray1<'_, f64>>,
        sparsity: Option<usize>,
        pair_gaps: bool,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let width = self.width(sparsity, true)?;
        let weights = self::weights(weights.as_ref())?;
        let keep = if pair_gaps { Keep::SummaryAndGaps } else { Keep::Summary };
        let outcome = with_rows!(&rows, |view| run_quietly(py, threads, |cancel| {
            self.fitted.summarize(&view, weights, width, keep, cancel)
        }))?;
        summary_to_dict(py, outcome.summary, outcome.log_normalizer)
    }

    /// Returns the content of a file: a header of plain values, and the arrays.
    fn to_parts<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyDict>)> {
        to_parts(py, &self.fitted)
    }

    /// Restores the state from [`FitState::to_parts`]. Checks everything, because files are not trusted.
    #[staticmethod]
    fn from_parts(header: &Bound<'_, PyDict>, arrays: &Bound<'_, PyDict>) -> PyResult<Self> {
        let fitted = from_parts(header, arrays)?;
        done(|| fitted.check())?;
        Ok(Self { fitted })
    }
}

impl FitState {
    fn width(&self, sparsity: Option<usize>, tail: bool) -> PyResult<usize> {
        let k = if tail { done(|| self.fitted.n_columns())? } else { self.fitted.summary.n_components() };
        Ok(at_least_one("sparsity", sparsity.unwrap_or(k))?.min(k))
    }
}
