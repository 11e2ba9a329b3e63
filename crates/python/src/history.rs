//! Conversion of the records of a fit to dicts, and back.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use stickbreak::data::{RepeatedRows, Repetition};
use stickbreak::fitted::{Record, RunnerUp, Searched};
use stickbreak::moves::{MoveKind, Report};

use crate::fields::{field, format_error, optional};

/// Converts a record to a dict.
pub fn record_to_dict<'py>(py: Python<'py>, record: &Record) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("index", record.index)?;
    dict.set_item("seconds", record.seconds)?;
    dict.set_item("elbo", record.elbo)?;
    dict.set_item("objective", record.objective)?;
    dict.set_item("base_measure_gain", record.base_measure_gain)?;
    dict.set_item("n_components", record.n_components)?;
    dict.set_item("n_units", record.n_units)?;
    dict.set_item("mass", record.mass)?;
    dict.set_item("n_batches", record.n_batches)?;
    dict.set_item("proposed", record.proposed)?;
    dict.set_item("accepted", record.accepted)?;
    dict.set_item("evaluated_share", record.evaluated_share)?;
    dict.set_item(
        "moves",
        record.moves.iter().map(|report| report_to_dict(py, report)).collect::<PyResult<Vec<_>>>()?,
    )?;
    Ok(dict)
}

/// Reads the second best start from the header of a file; files of earlier versions have none.
pub fn runner_up_from(header: &Bound<'_, PyDict>) -> PyResult<Option<RunnerUp>> {
    let found: Option<Option<[f64; 2]>> = optional(header, "runner_up")?;
    Ok(found.flatten().map(|[objective, ari]| RunnerUp { objective, ari }))
}

/// Reads the rows of a search from the header of a file; files of earlier versions have none.
pub fn searched_from(header: &Bound<'_, PyDict>) -> PyResult<Option<Searched>> {
    let found: Option<Option<[f64; 3]>> = optional(header, "searched")?;
    let Some([n_rows, mass, objective]) = found.flatten() else { return Ok(None) };
    if n_rows < 1.0 || n_rows % 1.0 != 0.0 || !(mass.is_finite() && mass > 0.0) {
        return Err(format_error(format!("a search in {n_rows} rows of weight {mass}")));
    }
    Ok(Some(Searched { n_rows: n_rows as usize, mass, objective }))
}

/// Number, sum of weights and objective of the rows of a search.
pub fn searched_to_numbers(Searched { n_rows, mass, objective }: Searched) -> [f64; 3] {
    [n_rows as f64, mass, objective]
}

/// Converts what is known of repeated rows to a dict.
pub fn repeats_to_dict<'py>(py: Python<'py>, repeats: &RepeatedRows) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("n_rows", repeats.n_rows)?;
    dict.set_item("n_distinct", repeats.n_distinct)?;
    let rows = match repeats.rows {
        Repetition::Rare => "rare",
        Repetition::Chance => "chance",
        Repetition::Copies => "copies",
    };
    dict.set_item("rows", rows)?;
    dict.set_item("has_large_weights", repeats.has_large_weights)?;
    dict.set_item("weights_are_counts", repeats.weights_are_counts)?;
    Ok(dict)
}

fn report_to_dict<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("kind", report.kind.name())?;
    dict.set_item("proposed", report.proposed)?;
    dict.set_item("accepted", report.accepted)?;
    dict.set_item("gain", report.gain)?;
    let refused = PyDict::new(py);
    report.refused.iter().try_for_each(|(reason, n)| refused.set_item(reason, n))?;
    dict.set_item("refused", refused)?;
    Ok(dict)
}

/// Reads the reports of moves. Files of earlier versions have none.
fn reports_from_dict(record: &Bound<'_, PyDict>) -> PyResult<Vec<Report>> {
    let reports: Option<Vec<Bound<'_, PyDict>>> = optional(record, "moves")?;
    reports.unwrap_or_default().iter().map(report_from_dict).collect()
}

fn report_from_dict(dict: &Bound<'_, PyDict>) -> PyResult<Report> {
    let kind: String = field(dict, "kind")?;
    let refused: Bound<'_, PyDict> = field(dict, "refused")?;
    Ok(Report {
        kind: MoveKind::from_name(&kind).ok_or_else(|| format_error(format!("unknown kind of move {kind:?}")))?,
        proposed: field(dict, "proposed")?,
        accepted: field(dict, "accepted")?,
        gain: field(dict, "gain")?,
        refused: refused.iter().map(|(reason, n)| Ok((reason.extract()?, n.extract()?))).collect::<PyResult<_>>()?,
    })
}

/// Reads a record of a file.
pub fn record_from_dict(dict: &Bound<'_, PyDict>) -> PyResult<Record> {
    let elbo = field(dict, "elbo")?;
    Ok(Record {
        index: field(dict, "index")?,
        seconds: field(dict, "seconds")?,
        elbo,
        // Files of earlier versions have neither, because no base measure was estimated.
        objective: optional(dict, "objective")?.unwrap_or(elbo),
        base_measure_gain: optional(dict, "base_measure_gain")?.unwrap_or(0.0),
        n_components: field(dict, "n_components")?,
        // Files of earlier versions have none.
        n_units: optional(dict, "n_units")?.unwrap_or(0),
        mass: optional(dict, "mass")?.unwrap_or(0.0),
        n_batches: optional(dict, "n_batches")?.unwrap_or(0),
        proposed: field(dict, "proposed")?,
        accepted: field(dict, "accepted")?,
        evaluated_share: field(dict, "evaluated_share")?,
        moves: reports_from_dict(dict)?,
    })
}
