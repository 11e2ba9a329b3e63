//! Functions of a fitted topic model.

use numpy::{PyArray1, PyArray2, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use stickbreak::Error;
use stickbreak::fitted::{Coherence, Completion, Fitted};
use stickbreak::local_step::DocumentOptions;
use stickbreak::suffstats::{DocumentTerms, Summary};

use crate::arrays::{AnyRows, at_least_one, table, vector, with_rows};
use crate::errors::to_python;
use crate::fields::{field, format_error, optional};
use crate::panics::caught;
use crate::run::run_quietly;
use crate::state::FitState;

fn done<T>(work: impl FnOnce() -> stickbreak::Result<T>) -> PyResult<T> {
    caught(|| work().map_err(|error| to_python(&error)))
}

/// Expected probabilities of words in topics, (K, V).
#[pyfunction]
pub fn topics<'py>(py: Python<'py>, state: PyRef<'py, FitState>) -> PyResult<Bound<'py, PyArray2<f64>>> {
    table(py, done(|| state.fitted().topics())?, state.fitted().n_data_columns())
}

/// Pseudo-counts of the topics in every document, (K,).
#[pyfunction]
pub fn document_prior<'py>(py: Python<'py>, state: PyRef<'py, FitState>) -> PyResult<Bound<'py, PyArray1<f64>>> {
    Ok(vector(py, done(|| state.fitted().document_prior())?))
}

/// Number of occurrences of each word in the documents of the fit, (V,).
#[pyfunction]
pub fn word_counts<'py>(py: Python<'py>, state: PyRef<'py, FitState>) -> Bound<'py, PyArray1<f64>> {
    let summary = &state.fitted().summary;
    let mut sums = vec![0.0; summary.n_statistics];
    for component in summary.components() {
        sums.iter_mut().zip(component.statistics).for_each(|(sum, value)| *sum += value.max(0.0));
    }
    vector(py, sums)
}

/// The most probable words of each topic, (K, n).
#[pyfunction]
pub fn top_words<'py>(py: Python<'py>, state: PyRef<'py, FitState>, n: usize) -> PyResult<Bound<'py, PyArray2<i64>>> {
    let n = at_least_one("n", n)?.min(state.fitted().n_data_columns());
    let words = done(|| state.fitted().top_words(n))?;
    table(py, words.into_iter().map(i64::from).collect(), n)
}

/// Expected proportions of topics in documents, (n, K).
#[pyfunction]
pub fn proportions<'py>(
    py: Python<'py>,
    state: PyRef<'py, FitState>,
    rows: AnyRows<'_>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let fitted: &Fitted = state.fitted();
    let found = with_rows!(&rows, |view| run_quietly(py, threads, |cancel| fitted.proportions(&view, cancel)))?;
    table(py, found, fitted.summary.n_components())
}

/// Refuses rows that are not word counts of documents.
#[pyfunction]
pub fn check_documents(py: Python<'_>, state: PyRef<'_, FitState>, rows: AnyRows<'_>, argument: &str) -> PyResult<()> {
    let fitted: &Fitted = state.fitted();
    with_rows!(&rows, |view| run_quietly(py, None, |cancel| fitted.check_documents(&view, argument, cancel)))
}

/// Log probabilities of the held-out words of documents, (n,), nats.
#[pyfunction]
pub fn complete<'py>(
    py: Python<'py>,
    state: PyRef<'py, FitState>,
    parts: (AnyRows<'_>, AnyRows<'_>),
    method: &str,
    concentration: f64,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let fitted: &Fitted = state.fitted();
    let refuse = || to_python(&Error::invalid("method", format!("{method:?}"), "\"map\", \"vb\" or \"ml\""));
    let method = Completion::from_name(method).ok_or_else(refuse)?;
    let (given, held) = parts;
    let found = match (&given, &held) {
        (AnyRows::SparseDouble(given), AnyRows::SparseDouble(held)) => {
            let (given, held) = (crate::arrays::csr(given)?, crate::arrays::csr(held)?);
            run_quietly(py, threads, |cancel| fitted.complete(&given, &held, method, concentration, cancel))?
        }
        _ => return Err(to_python(&Error::invalid("test", "other arrays", "sparse rows of float64"))),
    };
    Ok(vector(py, found))
}

/// The coherence of lists of words, (K,); `words` is (K, n).
#[pyfunction]
pub fn coherence<'py>(
    py: Python<'py>,
    rows: AnyRows<'_>,
    words: PyReadonlyArray2<'_, i64>,
    measure: &str,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let refuse = || to_python(&Error::invalid("measure", format!("{measure:?}"), "\"npmi\" or \"umass\""));
    let measure = Coherence::from_name(measure).ok_or_else(refuse)?;
    let n = words.shape()[1];
    let words: Vec<u32> = words.as_array().iter().map(|&word| word as u32).collect();
    let found = with_rows!(&rows, |view| run_quietly(py, threads, |cancel| {
        stickbreak::fitted::coherence(&view, &words, n, measure, cancel)
    }))?;
    Ok(vector(py, found))
}

/// Writes the document part of a file.
pub fn write_documents(
    py: Python<'_>,
    fitted: &Fitted,
    header: &Bound<'_, PyDict>,
    arrays: &Bound<'_, PyDict>,
) -> PyResult<()> {
    let Some(terms) = &fitted.summary.documents else { return Ok(()) };
    let DocumentOptions { max_steps, tolerance, warm, restarts } = fitted.documents;
    let options = PyDict::new(py);
    options.set_item("max_steps", max_steps)?;
    options.set_item("step_tol", tolerance)?;
    options.set_item("warm_start", u8::from(warm))?;
    options.set_item("restarts", restarts)?;
    header.set_item("documents", options)?;
    let totals = vec![terms.n_documents, terms.log_gamma_of_totals];
    arrays.set_item("documents.totals", vector(py, totals))?;
    arrays.set_item("documents.log_gammas", vector(py, terms.log_gammas.clone()))?;
    arrays.set_item("documents.log_weights", vector(py, terms.log_weights.clone()))?;
    arrays.set_item("documents.slacks", vector(py, terms.slacks.clone()))
}

/// Reads the document part of a file.
pub fn read_documents(
    summary: &mut Summary,
    header: &Bound<'_, PyDict>,
    arrays: &Bound<'_, PyDict>,
) -> PyResult<DocumentOptions> {
    let options: Option<Bound<'_, PyDict>> = optional(header, "documents")?;
    let Some(options) = options else { return Ok(DocumentOptions::USUAL) };
    let options = DocumentOptions {
        max_steps: field(&options, "max_steps")?,
        tolerance: field(&options, "step_tol")?,
        warm: field::<u8>(&options, "warm_start")? == 1,
        restarts: field(&options, "restarts")?,
    };
    if !(0.0..=f64::MAX).contains(&options.tolerance) {
        return Err(format_error("documents.step_tol is a number of at least 0".into()));
    }
    let numbers = |name: &str| -> PyResult<Vec<f64>> {
        let array: numpy::PyReadonlyArray1<'_, f64> = field(arrays, name)?;
        Ok(array.as_array().iter().copied().collect())
    };
    let &[n_documents, log_gamma_of_totals] = &numbers("documents.totals")?[..] else {
        return Err(format_error("documents.totals are two numbers".into()));
    };
    summary.documents = Some(DocumentTerms {
        n_documents,
        log_gammas: numbers("documents.log_gammas")?,
        log_weights: numbers("documents.log_weights")?,
        slacks: numbers("documents.slacks")?,
        log_gamma_of_totals,
    });
    Ok(options)
}
