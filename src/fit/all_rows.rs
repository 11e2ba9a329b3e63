//! The fit of all rows with their weights, from that of the search rows (mathematics 10.12): plain passes under the
//! base measure that was found.

use std::sync::Arc;
use std::time::Instant;

use crate::component::EditLog;
use crate::data::{Moments, PartialLabels, SeenBatches, Sharding};
use crate::error::Result;
use crate::events::{Event, Observer};
use crate::executor::InProcess;
use crate::fit::Job;
use crate::fit::engine::Engine;
use crate::fit::position::Position;
use crate::fit::settings::{BOUNDS_MEMORY, Settings};
use crate::fitted::{Fitted, Packs, Record, Searched, StopReason};
use crate::grounds::{check_same, survey};
use crate::identity::Identity;
use crate::local_step::Keep;
use crate::memo::Memo;
use crate::model::Specification;
use crate::parallel::Cancel;
use crate::responsibilities::Sparsity;
use crate::simd::Scalar;
use crate::visits::{LocalOptions, UnitOptions, WordOptions};

impl<F: Scalar> Job<'_, F> {
    /// Makes passes over all rows from a fit of the search rows. A fit that was interrupted stays as it is.
    ///
    /// # Errors
    /// [`crate::Error::Numerical`]; [`crate::Error::Source`].
    pub(super) fn of_all_rows(
        &self,
        found: Fitted,
        data: &Moments,
        observer: &dyn Observer,
        cancel: &Cancel,
    ) -> Result<Fitted> {
        let Job { rows, settings, .. } = *self;
        if found.stop_reason == StopReason::Interrupted {
            return Ok(found);
        }
        let started = Instant::now();
        // How often columns have each count is that of all rows.
        let values = data.seen_through(&found.coordinates).values;
        let search = found.objective()?;
        let specification = Specification { values, ..found.specification.clone() };
        let found = Fitted { specification, packs: Packs::default(), ..found };
        let model = found.model::<F>()?.holding(true);
        let sharding = Sharding { n_batches: 1, shuffle: None, shard_rows: settings.shard_rows };
        let coordinates = Arc::clone(&found.coordinates);
        let source = SeenBatches { source: rows.batches(sharding)?, coordinates, allowed: None };
        let local = LocalOptions {
            sparsity: Sparsity::Limited(found.sparsity),
            margin: found.margin,
            bounds_memory: BOUNDS_MEMORY,
            keep: Keep::Summary,
        };
        let labels = self.labels()?;
        let units = UnitOptions::usual(self.specification, WordOptions::default())?;
        let executor = InProcess::new(units.kind(), &model, &source, local, cancel.clone())?;
        let mut executor = executor.with_classes(labels.as_ref().map(PartialLabels::rows));
        let mut edits = EditLog::with_components(found.summary.n_components());
        let mut start = found.summary.clone();
        start.ids = edits.components()?;
        if let Some(labels) = &labels {
            let classes = labels.numbered(&found.classes, start.n_components())?;
            start.ids.iter().zip(classes).for_each(|(&id, class)| edits.set_class(id, class));
        }
        let base = model.base.parameters.clone();
        let position = Position::first(Memo::starting_from(start, 1, data.mass), edits, base);
        let is_stopped = found.stop_reason == StopReason::Callback;
        let max_passes = if is_stopped { 1 } else { settings.max_passes };
        let settings = Settings { local, units, max_passes, tol: settings.tol, ..Settings::default() };
        let changed = || check_same(survey(self.specification, rows, cancel), data.fingerprint);
        // An observer that has stopped the search is not asked again.
        let observer: &dyn Observer = if is_stopped { &() } else { observer };
        let (identity, observer) = (Identity::default(), After { history: &found.history, observer });
        let engine = Engine { model, identity: &identity, settings: &settings, round: None, data: &changed, started };
        let run = engine.run(&mut executor, position, &observer, cancel)?;
        if run.history.is_empty() {
            return Ok(found.interrupted());
        }
        let searched = Searched { n_rows: found.n_rows, mass: found.summary.mass, objective: search };
        let ended = run.stop_reason == StopReason::Converged || is_stopped;
        Ok(Fitted {
            n_rows: data.n_rows,
            classes: labels.as_ref().map_or_else(Vec::new, |labels| labels.values(&run.classes)),
            summary: run.summary,
            elbo: run.elbo,
            history: after(&found.history, run.history),
            stop_reason: if ended { found.stop_reason } else { run.stop_reason },
            error: run.error,
            searched: Some(searched),
            packs: Packs::default(),
            ..found
        })
    }
}

/// The records of a search with those of passes after it.
fn after(search: &[Record], further: Vec<Record>) -> Vec<Record> {
    search.iter().cloned().chain(further.into_iter().map(|record| moved(search, record))).collect()
}

/// The record of a pass after those of a search.
fn moved(search: &[Record], record: Record) -> Record {
    let seconds = search.last().map_or(0.0, |last| last.seconds);
    Record { index: record.index + search.len(), seconds: record.seconds + seconds, ..record }
}

/// Shows passes to an observer as those after a search.
struct After<'a> {
    history: &'a [Record],
    observer: &'a dyn Observer,
}

impl Observer for After<'_> {
    fn wants_progress(&self, run: usize) -> bool {
        self.observer.wants_progress(run)
    }

    fn on_event(&self, run: usize, event: Event) -> bool {
        let n_before = self.history.len();
        self.observer.on_event(
            run,
            match event {
                Event::Pass(record) => Event::Pass(moved(self.history, record)),
                Event::Batch { pass, done, n_batches } => Event::Batch { pass: pass + n_before, done, n_batches },
                other => other,
            },
        )
    }
}
