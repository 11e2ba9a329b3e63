//! Adds new data to a fit, as one more batch of a memoized run (mathematics 4.3).

use std::sync::Arc;
use std::time::Instant;

use crate::component::EditLog;
use crate::data::{
    BatchSource, Coordinates, Dataset, Moments, Needs, Rows, SeenBatches, Sharding, Sought, TableRows, Widened,
    all_moments,
};
use crate::error::{Error, Result};
use crate::executor::{Ask, Executor, InProcess, Remote, RunSetup};
use crate::fit::check_units_of_shards;
use crate::fit::engine::Engine;
use crate::fit::position::Position;
use crate::fit::settings::{BOUNDS_MEMORY, Settings};
use crate::fitted::{Fitted, Record};
use crate::grounds::{check_form, check_numbers, check_same, off_support, seen_moments, strays_of};
use crate::identity::Identity;
use crate::likelihood::{self, Conjugate};
use crate::local_step::Keep;
use crate::memo::Memo;
use crate::model::{Named, Specification};
use crate::parallel::Cancel;
use crate::responsibilities::Sparsity;
use crate::simd::Scalar;
use crate::suffstats::Sufficient;
use crate::visits::{LocalOptions, UnitOptions, WordOptions};

/// When an update stops.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum number of visits of the new rows, at least 1.
    pub max_passes: usize,
    /// Stop when a visit gains less, in nats per unit of the new rows' mass; 0 never stops early.
    pub tol: f64,
}

impl Fitted {
    /// Returns this fit with the new rows as one more batch. Each visit replaces the summary of that batch; the
    /// contribution of earlier rows is fixed. The bound covers all rows.
    ///
    /// # Errors
    /// [`Error::NotSupported`] for a fit without a bound; [`Error::InvalidArgument`] for `X_new`; [`Error::Numerical`];
    /// [`Error::Cancelled`] if no visit was completed.
    pub fn update<F: Scalar>(
        &self,
        rows: &dyn Rows<F>,
        weights: Option<&[f64]>,
        limits: Limits,
        cancel: &Cancel,
    ) -> Result<Self> {
        // If the rows' type cannot represent the origin, it would be rounded. Such rows are widened.
        if self.origin.iter().any(|&value| F::from_f64(value).to_f64() != value) {
            return self.updated(&TableRows { rows: &Widened(rows), weights }, None, limits, cancel);
        }
        self.updated(&TableRows { rows, weights }, None, limits, cancel)
    }

    /// As [`Fitted::update`], with rows in shards, which are behind `ask` if they are in other processes.
    ///
    /// # Errors
    /// As [`Fitted::update`]; [`Error::Source`].
    pub fn update_in_shards(
        &self,
        rows: &dyn Dataset<f64>,
        ask: Option<&dyn Ask>,
        limits: Limits,
        cancel: &Cancel,
    ) -> Result<Self> {
        self.updated(rows, ask, limits, cancel)
    }

    fn updated<F: Scalar>(
        &self,
        rows: &dyn Dataset<F>,
        ask: Option<&dyn Ask>,
        limits: Limits,
        cancel: &Cancel,
    ) -> Result<Self> {
        let started = Instant::now();
        let units = self.units_of(rows)?;
        let n_rows = self.n_rows + rows.n_rows();
        if !rows.has_shards() {
            check_numbers("X_new", rows.n_rows())?;
        }
        let Named { name, parameters } = &self.specification.likelihood;
        let demands = likelihood::demands(name, parameters)?;
        check_form(&self.specification, rows.is_sparse())?;
        // Variances show how far the rows lie from the origin. No parameter depends on the covariance any more.
        let needs = demands.sought.needs.min(Needs::Variances);
        let sought = Sought { needs, resolution: false, ..demands.sought };
        let allowed = self.specification.allowed()?;
        let missing = self.specification.missing;
        let data = all_moments(rows, sought, &allowed, missing, cancel).map_err(of_new_rows)?;
        let seen = seen_moments(rows, &data, &self.coordinates, sought, cancel).map_err(of_new_rows)?;
        let values = match (&self.specification.values, &seen.values) {
            (Some(earlier), Some(new)) => Some(Arc::new(earlier.with(new))),
            (earlier, _) => earlier.clone(),
        };
        let fitted = Self { specification: Specification { values, ..self.specification.clone() }, ..self.clone() };
        let model = fitted.model::<F>()?;
        check_near(model.likelihood.as_ref(), &seen)?;
        let off = strays_of(rows, &self.coordinates, cancel)?;
        if !off.is_empty() {
            return Err(off_support("X_new", &off));
        }
        let (source, coordinates) = (rows.batches(Sharding::of(1, None))?, Arc::clone(&self.coordinates));
        let source = SeenBatches { source, coordinates, allowed: Some(allowed.clone()) };
        let local = LocalOptions {
            sparsity: Sparsity::Limited(self.sparsity),
            margin: self.margin,
            // Bounds pay off from the second visit on.
            bounds_memory: if limits.max_passes > 1 { BOUNDS_MEMORY } else { 1 },
            keep: Keep::Summary,
        };
        let mut executor: Box<dyn Executor + '_> = match ask {
            None => Box::new(InProcess::new(units.kind(), &model, &source, local, cancel.clone())?),
            Some(ask) => {
                let setup = RunSetup {
                    specification: fitted.specification.clone(),
                    coordinates: Coordinates::clone(&self.coordinates),
                    origin: self.origin.clone(),
                    options: local,
                    prints: data.prints.clone(),
                };
                Box::new(Remote::new(ask, vec![source.shards(0)], &setup)?)
            }
        };
        let mut edits = EditLog::with_components(self.summary.n_components());
        let mut earlier = self.summary.clone();
        earlier.ids = edits.components()?;
        // Each component is a class of its own here, which shows its place after the update.
        earlier.ids.iter().zip(0..).for_each(|(&id, place)| edits.set_class(id, Some(place)));
        let settings = Settings { local, units, max_passes: limits.max_passes, tol: limits.tol, ..Settings::default() };
        let identity = Identity::default();
        let fingerprint = data.fingerprint;
        let data = &|| check_same(all_moments(rows, sought, &allowed, missing, cancel), fingerprint);
        let position = Position::first(Memo::beside(earlier, 1), edits, model.base.parameters.clone());
        let (model, identity) = (model.clone(), &identity);
        let engine = Engine { model, identity, settings: &settings, round: None, data, started };
        let run = engine.run(executor.as_mut(), position, &(), cancel)?;
        if run.history.is_empty() {
            return Err(Error::Cancelled);
        }
        let history = self.continued(run.history);
        let (summary, elbo, stop_reason) = (run.summary, run.elbo, run.stop_reason);
        let specification = fitted.specification.with_base(run.base);
        let places = run.classes.into_iter().flatten();
        let classes = places.filter_map(|place| self.classes.get(place as usize).copied()).collect();
        let changed = Self { specification, n_rows, classes, summary, elbo, history, stop_reason, ..self.clone() };
        Ok(Self { error: run.error, runner_up: None, searched: None, ..changed })
    }

    /// The history with further passes.
    fn continued(&self, further: Vec<Record>) -> Vec<Record> {
        let (passes, seconds) = (self.history.len(), self.history.last().map_or(0.0, |last| last.seconds));
        let mut history = self.history.clone();
        history.extend(further.into_iter().map(|mut record| {
            record.index += passes;
            record.seconds += seconds;
            record
        }));
        history
    }

    /// What the new rows are to a local step.
    fn units_of<F: Scalar>(&self, rows: &dyn Dataset<F>) -> Result<UnitOptions> {
        if self.elbo.is_nan() {
            return Err(Error::not_supported(
                "fit",
                "an update of a fit whose elbo is nan",
                "some of its rows have no responsibilities yet",
                "a fit that has completed a pass",
            ));
        }
        let words = WordOptions { visits: self.documents, ..WordOptions::default() };
        let units = UnitOptions::usual(&self.specification, words)?;
        if rows.has_shards() {
            check_units_of_shards(&units)?;
        }
        Ok(units)
    }
}

/// Refuses rows so far from the origin of the fit that float64 cannot represent their squares next to the fit's prior.
fn check_near(likelihood: &dyn Conjugate, data: &Moments) -> Result<()> {
    let origin = likelihood.origin();
    let spread = |j: usize| data.variance.get(j).map_or(0.0, |variance| variance.sqrt());
    let distant: Vec<f64> =
        (0..data.dimension()).map(|j| origin[j] + (data.mean[j] - origin[j]).hypot(spread(j))).collect();
    let nothing = vec![0.0; likelihood.n_statistics()];
    // If statistics can be moved to this distant origin, rows there can be measured from the origin of the fit.
    match likelihood.rebase(Sufficient { count: 0.0, statistics: &nothing }, &distant) {
        Ok(_) => Ok(()),
        Err(Error::InvalidArgument { .. }) => {
            let found = "so far from the rows of the fit, relative to its prior, that float64 loses precision";
            Err(Error::invalid("X_new", found, "close to the rows of the fit, or fitted together with them"))
        }
        Err(other) => Err(other),
    }
}

/// Renames the argument in the errors of [`all_moments`].
fn of_new_rows(error: Error) -> Error {
    match error {
        Error::InvalidArgument { argument, found, allowed } if argument == "data" => {
            Error::InvalidArgument { argument: "X_new".into(), found, allowed }
        }
        other => other,
    }
}
