//! The registry of the core for Python.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use stickbreak::data::Domain;
use stickbreak::registry::{DefaultValue, Entry, Parameter, ParameterKind};
use stickbreak::{background, likelihood, mcmc, moves, process};

/// Returns the entries of all likelihoods, processes, moves, samplers, backgrounds and priors, by name.
#[pyfunction]
pub fn registry(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    all.set_item("likelihoods", entries(py, likelihood::ENTRIES)?)?;
    all.set_item("processes", entries(py, process::ENTRIES)?)?;
    all.set_item("moves", entries(py, moves::ENTRIES)?)?;
    all.set_item("samplers", entries(py, mcmc::ENTRIES)?)?;
    all.set_item("backgrounds", entries(py, &[background::ENTRY])?)?;
    all.set_item("priors", entries(py, &[process::BetaPrior::ENTRY, process::Gamma::ENTRY])?)?;
    Ok(all)
}

fn entries<'py>(py: Python<'py>, entries: &[Entry]) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    for each in entries {
        all.set_item(each.name, entry(py, each)?)?;
    }
    Ok(all)
}

fn entry<'py>(py: Python<'py>, entry: &Entry) -> PyResult<Bound<'py, PyDict>> {
    let supports = PyDict::new(py);
    for support in entry.supports {
        supports.set_item(support.feature.name(), support.unless)?;
    }
    let parameters = PyDict::new(py);
    for each in entry.parameters {
        parameters.set_item(each.name, parameter(py, each)?)?;
    }
    let dict = PyDict::new(py);
    dict.set_item("domain", entry.domain.map(Domain::name))?;
    dict.set_item("faces", entry.faces)?;
    dict.set_item("supports", supports)?;
    dict.set_item("parameters", parameters)?;
    Ok(dict)
}

fn parameter<'py>(py: Python<'py>, parameter: &Parameter) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("kind", parameter.kind.name())?;
    dict.set_item("required", parameter.default == DefaultValue::Required)?;
    let estimated = matches!(parameter.default, DefaultValue::Evidence | DefaultValue::NumberOrEvidence(_));
    dict.set_item("estimated", estimated)?;
    match parameter.default {
        DefaultValue::Required | DefaultValue::Data | DefaultValue::Evidence => dict.set_item("default", py.None())?,
        DefaultValue::Number(number) | DefaultValue::NumberOrEvidence(number) => match parameter.kind {
            ParameterKind::Integer { .. } => dict.set_item("default", number as u64)?,
            ParameterKind::Flag => dict.set_item("default", number == 1.0)?,
            _ => dict.set_item("default", number)?,
        },
        DefaultValue::Word(word) => dict.set_item("default", word)?,
    }
    match parameter.kind {
        ParameterKind::Integer { least, greatest } => dict.set_item("range", (least, greatest))?,
        ParameterKind::Word(words) => dict.set_item("words", PyList::new(py, words)?)?,
        _ => {}
    }
    if let Some(range) = parameter.kind.range() {
        dict.set_item("range", (range.least, range.greatest))?;
        dict.set_item("below", range.below)?;
        dict.set_item("allowed", range.allowed())?;
    }
    Ok(dict)
}
