//! The content of a model file: a header of plain values, and arrays.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use stickbreak::data::RepeatedRows;
use stickbreak::fitted::{Fitted, Packs, StopReason};
use stickbreak::model::Objective;

use crate::arrays::{table, vector};
use crate::coordinates::{read_coordinates, write_coordinates};
use crate::estimated::{read_estimated, write_estimated};
use crate::fields::{field, format_error, may_miss, n_rows, optional};
use crate::history::{record_from_dict, record_to_dict, runner_up_from, searched_from, searched_to_numbers};
use crate::specification::{GivenPair, read, read_parameters, specification, write_parameters};
use crate::summary::{numbers, read_classes, read_summary, write_classes, write_tail};
use crate::topics::{read_documents, write_documents};
use crate::values::{read_values, write_values};

/// The header and the arrays of a fit.
pub fn to_parts<'py>(py: Python<'py>, fitted: &Fitted) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyDict>)> {
    let missing = if fitted.specification.missing { "marginalize" } else { "error" };
    let history = fitted.history.iter().map(|record| record_to_dict(py, record)).collect::<PyResult<Vec<_>>>()?;
    let header = PyDict::new(py);
    header.set_item("likelihood", &fitted.specification.likelihood.name)?;
    header.set_item("process", &fitted.specification.process.name)?;
    header.set_item("missing", missing)?;
    header.set_item("objective", fitted.specification.objective.name())?;
    header.set_item("n_rows", fitted.n_rows)?;
    header.set_item("sparsity", fitted.sparsity)?;
    header.set_item("margin", fitted.margin)?;
    header.set_item("elbo", fitted.elbo)?;
    header.set_item("mass", fitted.summary.mass)?;
    header.set_item("log_base_measure", fitted.summary.log_base_measure)?;
    header.set_item("stop_reason", fitted.stop_reason.name())?;
    header.set_item("history", history)?;
    header.set_item("runner_up", fitted.runner_up.map(|second| [second.objective, second.ari]))?;
    header.set_item("searched", fitted.searched.map(searched_to_numbers))?;
    let arrays = PyDict::new(py);
    arrays.set_item("origin", vector(py, fitted.origin.clone()))?;
    write_coordinates(&fitted.coordinates, &arrays)?;
    arrays.set_item("counts", vector(py, fitted.summary.counts.clone()))?;
    arrays.set_item("entropies", vector(py, fitted.summary.entropies.clone()))?;
    arrays.set_item("statistics", table(py, fitted.summary.statistics.clone(), fitted.summary.n_statistics)?)?;
    write_classes(py, &fitted.classes, &arrays)?;
    write_tail(py, fitted.summary.tail.as_ref(), &header, &arrays)?;
    write_parameters(py, &fitted.specification, &header, &arrays)?;
    write_estimated(py, &fitted.specification, &header, &arrays)?;
    write_values(py, fitted.specification.values.as_ref(), &header, &arrays)?;
    write_documents(py, fitted, &header, &arrays)?;
    Ok((header, arrays))
}

/// Reads a fit. What it says is not checked yet.
pub fn from_parts(header: &Bound<'_, PyDict>, arrays: &Bound<'_, PyDict>) -> PyResult<Fitted> {
    let pair =
        |role: &str| -> PyResult<GivenPair<'_>> { Ok((field(header, role)?, read_parameters(role, header, arrays)?)) };
    // Files of the first version have no objective.
    let objective: Option<String> = optional(header, "objective")?;
    let objective = objective.as_deref().unwrap_or(Objective::Variational.name());
    let missing = may_miss(header)?;
    let mut specification = specification(&pair("likelihood")?, &pair("process")?, objective, missing)?;
    if header.contains("background_parameters")? {
        specification.background = Some(read(&read_parameters("background", header, arrays)?)?);
    }
    read_estimated(&mut specification, header, arrays)?;
    let origin = numbers(arrays, "origin")?;
    let coordinates = read_coordinates(arrays, origin.len())?;
    specification.values = read_values(origin.len(), header, arrays)?;
    let mut summary = read_summary(header, arrays)?;
    let documents = read_documents(&mut summary, header, arrays)?;
    let stop: String = field(header, "stop_reason")?;
    let history: Vec<Bound<'_, PyDict>> = field(header, "history")?;
    Ok(Fitted {
        coordinates: Arc::new(coordinates),
        lacks_rows: false,
        specification,
        origin,
        n_rows: n_rows(header)?,
        sparsity: field(header, "sparsity")?,
        // Files of the first version have no margin: they dropped no components.
        margin: optional(header, "margin")?,
        documents,
        classes: read_classes(arrays)?,
        summary,
        elbo: field(header, "elbo")?,
        history: history.iter().map(record_from_dict).collect::<PyResult<_>>()?,
        stop_reason: StopReason::from_name(&stop)
            .ok_or_else(|| format_error(format!("unknown stop reason {stop:?}")))?,
        error: None,
        runner_up: runner_up_from(header)?,
        repeats: RepeatedRows::default(),
        searched: searched_from(header)?,
        packs: Packs::default(),
    })
}
