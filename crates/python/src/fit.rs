//! The entry point that fits.

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use stickbreak::fit::{Job, Starts};
use stickbreak::parallel::at_most;

use crate::arrays::{AnyData, weights, with_data};
use crate::reports::GivenObserver;
use crate::run::run;
use crate::settings::{GivenCheckpoint, GivenSettings, GivenStart};
use crate::shards::PythonShards;
use crate::specification::GivenSpecification;
use crate::state::FitState;

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
    let (run_settings, labels) = (settings.read(&specification)?, init.labels()?);
    let init = init.read(&labels)?;
    let weights = self::weights(weights.as_ref())?;
    let resumed = observer.checkpoint.as_ref().map(GivenCheckpoint::read).unwrap_or_default();
    let starts = Starts { seeds: &settings.seeds, in_turn: observer.in_turn };
    let reports = observer.reports();
    let (fitted, is_interrupted) = with_data!(rows, weights, |data, shards| {
        let job = Job {
            specification: &specification,
            rows: &data,
            init: &init,
            settings: &run_settings,
            ask: shards.and_then(PythonShards::ask),
        };
        let threads = at_most(job.most_threads(settings.seeds.len()), settings.threads);
        run(py, threads, observer.show(), |cancel, events| {
            shards.inspect(|shards| shards.follow(cancel));
            let fitted = job.best_of(starts, resumed, &reports(events), cancel)?;
            // A callback may have stopped it, too.
            Ok(if cancel.check().is_err() { fitted.interrupted() } else { fitted })
        })
    })?;
    Ok(FitState::new(if is_interrupted { fitted.interrupted() } else { fitted }))
}
