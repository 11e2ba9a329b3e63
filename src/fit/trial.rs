//! Decides whether trees pay off, by the numbers of units that fits of a few rows need. Times play no role, so the
//! decision is reproducible.

use crate::error::{Error, Result};
use crate::fit::copies::Copies;
use crate::fit::opening::ROWS_A_UNIT;
use crate::fit::settings::Cut;
use crate::fit::{Job, Settings, fit};
use crate::init::Init;
use crate::parallel::Cancel;
use crate::simd::Scalar;
use crate::visits::{FEW_ROWS, TreeSettings, UnitKind, UnitOptions, WordOptions};

/// Number of rows of the trial.
const ROWS: usize = FEW_ROWS;
/// The larger trial has this many times the rows of the smaller one.
const FEWER: usize = 4;
/// Maximum number of passes of the trial.
const PASSES: usize = 60;

/// Returns the settings of a run, with the decision whether to use trees.
///
/// # Errors
/// [`Error::Cancelled`]; [`Error::Source`].
pub(super) fn decided<F: Scalar>(job: &Job<'_, F>, cancel: &Cancel) -> Result<Settings> {
    let settings = job.settings.clone();
    let Some(tree) = settings.units.tree().filter(|tree| tree.on_trial) else { return Ok(settings) };
    let can_have_tree = job.rows.can_seek() && settings.labels.is_none();
    let is_allowed = can_have_tree && UnitKind::<F>::check(&tree, &job.task()).is_ok();
    let tree = TreeSettings { on_trial: false, ..tree };
    let units = if is_allowed && job.rows.n_rows() > ROWS && pays(job, tree, cancel)? {
        UnitOptions::Nodes(tree)
    } else {
        UnitOptions::usual(job.specification, WordOptions::default())?
    };
    Ok(Settings { units, ..settings })
}

/// Whether a fit to all rows will need few nodes. They grow with a power of the number of rows, which two trials show:
/// with clusters that touch, nodes lie along borders, and grow more slowly than rows.
fn pays<F: Scalar>(job: &Job<'_, F>, tree: TreeSettings, cancel: &Cancel) -> Result<bool> {
    let Some(many) = n_nodes(job, ROWS, tree, cancel)? else { return Ok(false) };
    let Some(few) = n_nodes(job, ROWS / FEWER, tree, cancel)? else { return Ok(false) };
    let power = ((many as f64 / few as f64).ln() / (FEWER as f64).ln()).clamp(0.0, 1.0);
    let n = job.rows.n_rows() as f64;
    Ok(many as f64 * (n / ROWS as f64).powf(power) <= n / ROWS_A_UNIT as f64)
}

/// The number of nodes that a fit to `n_rows` of the rows ends with; `None` if it needs more than half as many, or
/// fails.
fn n_nodes<F: Scalar>(job: &Job<'_, F>, n_rows: usize, tree: TreeSettings, cancel: &Cancel) -> Result<Option<usize>> {
    let n = job.rows.n_rows();
    let list: Vec<u64> = (0..n_rows as u64).map(|row| row * n as u64 / n_rows as u64).collect();
    let copies = Copies::of(job.rows, &list)?;
    let rows = copies.table();
    let n_initial = job.init.n_components(n)?;
    let by_row = matches!(job.init, Init::Labels(_) | Init::Table(_));
    let init = if by_row { &Init::KmeansPlusPlus } else { job.init };
    // Only the nodes that the rule opens count, so nodes are opened neither for rows at the end nor for moves.
    let budget = n_rows / 2;
    let tree = TreeSettings { refine: false, budget: Some(budget), for_moves: false, ..tree };
    let units = UnitOptions::Nodes(tree);
    let settings = Settings {
        n_components: job.settings.n_components.or(n_initial.filter(|_| by_row)),
        batches: Cut::Number(1),
        shuffle: false,
        max_passes: PASSES,
        units,
        ..job.settings.clone()
    };
    let trial = Job { specification: job.specification, rows: &rows, init, settings: &settings, ask: None };
    match fit(&trial, None, &(), cancel) {
        // A trial that needs more nodes stops just below its budget.
        Ok(fitted) => Ok(fitted.history.last().map(|last| last.n_units).filter(|nodes| *nodes < budget * 9 / 10)),
        Err(error @ (Error::Cancelled | Error::Source { .. })) => Err(error),
        // The fit of all rows will report an error that concerns them.
        Err(_) => Ok(None),
    }
}
