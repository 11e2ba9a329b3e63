//! Parameters of the base measure that the user left open, estimated by a fit before a sampler starts.

use crate::data::{Rows, TableRows};
use crate::error::{Error, Result};
use crate::events::Observer;
use crate::fit::{Job, Settings, Starts};
use crate::fitted::{Fitted, Resumed, StopReason};
use crate::grounds::check_values;
use crate::init::Init;
use crate::likelihood;
use crate::model::{Named, Objective, Specification};
use crate::parallel::Cancel;
use crate::parameters::{Parameters, Value};
use crate::process;
use crate::simd::Scalar;

/// Returns the specification with which to sample, and the fit that estimated its parameters, if any were open. It is a
/// fit with [`Settings::usual`], whose search copies do not lead astray, under `DirichletProcess(1.0)` if the process,
/// or a prior of it, has no bound. A given resolution is used by the fit alone, because rounding cells have no closed
/// marginal likelihood.
///
/// `always`: for a sampler whose chains start from the fit. There is one even if no parameter is open, unless all rows
/// are equal.
///
/// # Errors
/// [`Error::InvalidArgument`] for rows that are all equal;
/// [`Error::Cancelled`], also if the fit was interrupted; as [`Job::best_of`].
pub fn estimate<F: Scalar>(
    specification: &Specification,
    rows: &dyn Rows<F>,
    seed: u64,
    always: bool,
    observer: &dyn Observer,
    cancel: &Cancel,
) -> Result<(Specification, Option<Fitted>)> {
    let Named { name, parameters } = &specification.likelihood;
    let is_complete = likelihood::estimated(name, parameters)?.is_empty();
    let is_varied = differ(rows);
    if is_complete && !(always && is_varied) {
        return Ok((specification.clone().without_cells()?, None));
    }
    if !is_varied {
        // An error in a single row applies to all rows.
        check_values(specification, rows, "data", cancel)?;
        let allowed =
            "at least two distinct rows, from which parameters that are None are estimated, or given parameters";
        return Err(Error::invalid("data", "rows that are all equal", allowed));
    }
    let model =
        Specification { process: process_of_fit(&specification.process)?, learned: None, ..specification.clone() };
    let settings = Settings { seed, ..Settings::usual(&model)? };
    let data = TableRows { rows, weights: None };
    let job = Job { specification: &model, rows: &data, init: &Init::KmeansPlusPlus, settings: &settings, ask: None };
    let starts = Starts { seeds: &[seed], in_turn: true };
    let fitted = job.best_of(starts, Resumed::default(), observer, cancel)?;
    if fitted.stop_reason == StopReason::Interrupted {
        return Err(Error::Cancelled);
    }
    let complete = if is_complete { specification.clone() } else { specification.with_base(fitted.parameters()?) };
    Ok((complete.without_cells()?, Some(fitted)))
}

/// The process of the fit: the same if it has weights with a bound under which base measures are estimated.
fn process_of_fit(process: &Named) -> Result<Named> {
    let Named { name, parameters } = process;
    let is_dirichlet = name == "DirichletProcess";
    let weights = process::build(name, parameters)?.weights();
    let has_bound = weights.is_some_and(|weights| weights.check_objective(Objective::Variational).is_ok());
    if has_bound && !is_dirichlet {
        return Ok(process.clone());
    }
    let given =
        if is_dirichlet { parameters.clone() } else { Parameters::from_pairs([("concentration", Value::Number(1.0))]) };
    // A truncation concerns fits alone: samplers of one process have one base measure.
    let parameters = given.with([("truncation", Value::Text("nested".to_owned()))]);
    Ok(Named { name: "DirichletProcess".to_owned(), parameters })
}

/// Whether any row differs from the first.
fn differ<F: Scalar>(rows: &dyn Rows<F>) -> bool {
    let (n, d) = (rows.n_rows(), rows.n_columns());
    if let Some(table) = rows.csr() {
        return (1..n).any(|row| table.row(row) != table.row(0));
    }
    let (mut first, mut values) = (vec![F::ZERO; d], vec![F::ZERO; d]);
    if n > 0 {
        rows.read_row(0, &mut first);
    }
    (1..n).any(|row| {
        rows.read_row(row, &mut values);
        values != first
    })
}

#[cfg(test)]
mod tests;
