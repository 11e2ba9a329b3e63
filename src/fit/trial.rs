//! Decides whether trees pay off, by the number of units that a fit of a few rows needs. Times play no role, so the
//! decision is reproducible.

use crate::data::{DenseRows, TableRows};
use crate::error::{Error, Result};
use crate::fit::settings::Cut;
use crate::fit::{Job, Settings, fit};
use crate::init::Init;
use crate::parallel::Cancel;
use crate::simd::Scalar;
use crate::visits::{FEW_ROWS, TreeSettings, UnitKind, UnitOptions, WordOptions};

/// Number of rows of the trial.
const ROWS: usize = FEW_ROWS;
/// Average number of rows that a unit must represent for trees to pay off.
const ROWS_A_UNIT: usize = 8;
/// Maximum number of passes of the trial.
const PASSES: usize = 60;

/// Returns the settings of a run, with the decision whether to use trees.
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
    let n_initial = job.init.n_components(n)?;
    let by_row = matches!(job.init, Init::Labels(_) | Init::Table(_));
    let init = if by_row { &Init::KmeansPlusPlus } else { job.init };
    // Only the nodes that the rule opens count, so nodes are opened neither for rows at the end nor for moves.
    let tree = TreeSettings { refine: false, budget: Some(ROWS / ROWS_A_UNIT), for_moves: false, ..tree };
    let units = UnitOptions::Nodes(tree);
    let settings = Settings {
        n_components: job.settings.n_components.or(n_initial.filter(|_| by_row)),
        batches: Cut::Number(1),
        shuffle: false,
        max_passes: PASSES,
        units,
        ..job.settings.clone()
    };
    let trial = Job { specification: job.specification, rows: &rows, init, settings: &settings };
    match fit(&trial, None, &(), cancel) {
        // A trial that needs more nodes stops just below its budget.
        Ok(fitted) => Ok(fitted.history.last().is_some_and(|last| last.n_units < ROWS / ROWS_A_UNIT * 9 / 10)),
        Err(error @ (Error::Cancelled | Error::Source { .. })) => Err(error),
        // The fit of all rows will report an error that concerns them.
        Err(_) => Ok(false),
    }
}
