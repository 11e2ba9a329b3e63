//! Whether trees pay: a trial on a few rows, judged by the units that it needs, never by seconds.

use crate::data::{DenseRows, TableRows};
use crate::error::{Error, Result};
use crate::fit::settings::Cut;
use crate::fit::{Job, Settings, fit};
use crate::init::Init;
use crate::parallel::Cancel;
use crate::simd::Scalar;
use crate::visits::{FEW_ROWS, TreeSettings, UnitKind, UnitOptions, WordOptions};

/// Rows of the trial.
const ROWS: usize = FEW_ROWS;
/// Rows that a unit must stand for.
const ROWS_A_UNIT: usize = 8;
/// Passes of the trial.
const PASSES: usize = 60;

/// The settings of a run, in which it is decided whether there are trees.
///
/// # Errors
/// [`Error::Cancelled`]; [`Error::Source`].
pub(super) fn decided<F: Scalar>(job: &Job<'_, F>, cancel: &Cancel) -> Result<Settings> {
    let settings = job.settings.clone();
    let Some(tree) = settings.units.tree().filter(|tree| tree.on_trial) else { return Ok(settings) };
    let is_allowed = UnitKind::<F>::check(&tree, &job.task()).is_ok() && job.rows.can_seek();
    let tree = TreeSettings { on_trial: false, ..tree };
    let units = if is_allowed && job.rows.n_rows() > ROWS && pays(job, tree, cancel)? {
        UnitOptions::Nodes(tree)
    } else {
        UnitOptions::usual(job.specification, WordOptions::default())?
    };
    Ok(Settings { units, ..settings })
}

/// Whether a fit to some of the rows needs few nodes.
fn pays<F: Scalar>(job: &Job<'_, F>, tree: TreeSettings, cancel: &Cancel) -> Result<bool> {
    let n = job.rows.n_rows();
    let list: Vec<u32> = (0..ROWS).map(|row| (row as u64 * n as u64 / ROWS as u64) as u32).collect();
    let (units, d) = (job.rows.pick(&list)?, job.rows.n_columns());
    let mut values = vec![F::ZERO; ROWS * d];
    units.read(0..ROWS, &vec![F::ZERO; d], &mut values);
    let weights: Vec<f64> = (0..ROWS).map(|row| units.mass(row)).collect();
    let table = DenseRows::new(values, d);
    let rows = TableRows { rows: &table, weights: job.rows.weights().map(|_| &weights[..]) };
    let own = job.init.n_components(n)?;
    let by_row = matches!(job.init, Init::Labels(_) | Init::Table(_));
    let init = if by_row { &Init::KmeansPlusPlus } else { job.init };
    // What counts is the number of nodes that the rule needs.
    let tree = TreeSettings { refine: false, budget: Some(ROWS / ROWS_A_UNIT), for_moves: false, ..tree };
    let units = UnitOptions::Nodes(tree);
    let settings = Settings {
        n_components: job.settings.n_components.or(own.filter(|_| by_row)),
        batches: Cut::Number(1),
        shuffle: false,
        max_passes: PASSES,
        units,
        ..job.settings.clone()
    };
    let trial = Job { specification: job.specification, rows: &rows, init, settings: &settings };
    match fit(&trial, None, &(), cancel) {
        // One that would open more stops just below its budget.
        Ok(fitted) => Ok(fitted.history.last().is_some_and(|last| last.n_units < ROWS / ROWS_A_UNIT * 9 / 10)),
        Err(error @ (Error::Cancelled | Error::Source { .. })) => Err(error),
        // What is wrong with all rows is said of all rows.
        Err(_) => Ok(false),
    }
}
