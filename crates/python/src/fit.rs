//! The entry point that fits.

use std::time::Duration;

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use stickbreak::fit::{Job, Starts};

use crate::arrays::{AnyData, weights, with_data};
use crate::run::run;
use crate::settings::{GivenCheckpoint, GivenSettings, GivenStart};
use crate::specification::GivenSpecification;
use crate::state::FitState;
use crate::watcher::{Progress, Reports};

/// Who watches a fit: a function of events, which answers whether to stop.
#[derive(FromPyObject)]
pub struct GivenObserver<'py> {
    /// Whether it wants any events.
    listens: bool,
    /// Whether it must see one run at a time.
    in_turn: bool,
    /// Seconds between two checkpoints, where there are any.
    checkpoint_every: Option<f64>,
    /// The checkpoint to go on from.
    checkpoint: Option<GivenCheckpoint<'py>>,
    observe: Py<PyAny>,
}

/// Fits a mixture from each of the seeds, and returns the one with the highest bound; see `stickbreak.fit`.
#[pyfunction]
#[pyo3(signature = (rows, weights, *, specification, settings, init, observer))]
pub fn fit(
    py: Python<'_>,
    rows: AnyData<'_>,
    weights: Option<PyReadonlyArray1<'_, f64>>,
    specification: GivenSpecification<'_>,
    settings: GivenSettings<'_>,
    init: GivenStart<'_>,
    observer: GivenObserver<'_>,
) -> PyResult<FitState> {
    let specification = specification.read()?;
    let (own, labels) = (settings.read(&specification)?, init.labels()?);
    let init = init.read(&labels)?;
    let weights = self::weights(weights.as_ref())?;
    let resumed = observer.checkpoint.as_ref().map(GivenCheckpoint::read).unwrap_or_default();
    // A time too long for the clock is never.
    let every = observer.checkpoint_every.map(|every| Duration::try_from_secs_f64(every).unwrap_or(Duration::MAX));
    let (listens, observe) = (observer.listens, &observer.observe);
    let starts = Starts { seeds: &settings.seeds, in_turn: observer.in_turn };
    let show =
        |py: Python<'_>, event: Progress| Ok(listens && observe.call1(py, (event.into_dict(py)?,))?.is_truthy(py)?);
    let fitted = with_data!(rows, weights, |data| run(py, settings.threads, show, |cancel, events| {
        let job = Job { specification: &specification, rows: &data, init: &init, settings: &own };
        job.best_of(starts, resumed, &Reports { events, every }, cancel)
    }))?;
    Ok(FitState::new(fitted))
}
