//! The run: from data and a specification to a fitted mixture.

mod absent;
mod algorithm;
mod all_rows;
mod classes;
mod copies;
mod engine;
mod opening;
mod order;
mod position;
mod prepare;
mod pulse;
mod rearrange;
mod run;
mod search;
mod search_rows;
mod settings;
mod sizes;
mod stages;
mod starts;
mod tree_start;
mod trial;
mod update;

use std::time::Instant;

use crate::data::{Dataset, Moments};
use crate::error::{Error, Result};
use crate::events::Observer;
use crate::executor::Ask;
use crate::fitted::Fitted;
use crate::init::Init;
use crate::model::Specification;
use crate::parallel::Cancel;
use crate::simd::Scalar;
use crate::visits::{Task, UnitOptions};

pub use algorithm::Algorithm;
pub use engine::{DataAccess, Engine};
pub use position::{Position, TreePosition};
pub use run::Run;
pub use settings::{Cut, Settings};
pub use starts::Starts;
pub use update::Limits;

/// Threads that every run may use, for its births and trees.
const LEAST_THREADS: usize = 4;
/// Number of values of the data that occupy one more thread.
const VALUES_A_THREAD: usize = 10_000;

/// What to fit to which data, and how.
#[derive(Clone, Copy)]
pub struct Job<'a, F: Scalar> {
    /// The model, with parameters as the user gave them.
    pub specification: &'a Specification,
    /// The data.
    pub rows: &'a dyn Dataset<F>,
    /// Initialisation.
    pub init: &'a Init<'a>,
    /// Settings of the run.
    pub settings: &'a Settings,
    /// Where the shards of the data are, if they are in other processes.
    pub ask: Option<&'a dyn Ask>,
}

impl<F: Scalar> Job<'_, F> {
    /// The most threads that `n_runs` runs can use. With more, waking threads would take longer than their work: a pass
    /// over a few thousand numbers is done in a millisecond.
    pub fn most_threads(&self, n_runs: usize) -> usize {
        // A stream does not know its number of rows yet.
        let rows = Some(self.rows.n_rows()).filter(|rows| *rows > 0).unwrap_or(usize::MAX);
        let values = rows.saturating_mul(self.rows.n_columns());
        (LEAST_THREADS + values / VALUES_A_THREAD).saturating_mul(n_runs.max(1))
    }

    /// Refuses what data in shards do not support.
    ///
    /// # Errors
    /// [`Error::NotSupported`] naming the argument.
    fn check_shards(&self) -> Result<()> {
        let by_row = "rows that are elsewhere have no numbers here";
        if self.settings.algorithm.estimates() {
            return refuse("algorithm", "Stochastic", "its batches are not shards", "Memoized or Full");
        }
        if self.settings.labels.is_some() {
            return refuse("labels", "labels", by_row, "labels=None");
        }
        let starts = "\"kmeans++\", \"random\" or a fit";
        match self.init {
            Init::Labels(_) => return refuse("init", "an init of labels", by_row, starts),
            Init::Table(_) => return refuse("init", "an init of responsibilities", by_row, starts),
            Init::Sequential => return refuse("init", "init=\"sequential\"", "it visits rows in random order", starts),
            Init::KmeansPlusPlus | Init::Random | Init::Summary { .. } => {}
        }
        check_units_of_shards(&self.settings.units)
    }

    /// What the kind of units must support.
    fn task(&self) -> Task<'_> {
        let (is_sparse, estimates) = (self.rows.is_sparse(), self.settings.algorithm.estimates());
        Task { specification: self.specification, is_sparse, estimates }
    }
}

fn refuse(argument: &str, found: &str, reason: &str, allowed: &str) -> Result<()> {
    Err(Error::not_supported(argument, format!("{found} with a collection"), reason, allowed))
}

/// Refuses units of which workers keep something on which results depend.
fn check_units_of_shards(units: &UnitOptions) -> Result<()> {
    match units {
        UnitOptions::Rows => Ok(()),
        UnitOptions::Nodes(_) => refuse("units", "a tree", "it is lost with the worker that holds it", "units=None"),
        UnitOptions::Words(_) => {
            let reason = "what is kept of documents is lost with the worker that holds them";
            refuse("model", "a TopicModel", reason, "a Mixture")
        }
    }
}

/// Fits a mixture in one run, from its start or from the checkpoint of an earlier run.
///
/// # Errors
/// [`crate::Error::InvalidArgument`] and [`crate::Error::Checkpoint`] before any work starts;
/// [`crate::Error::Numerical`]; [`crate::Error::Cancelled`] if there is no state to return yet.
pub fn fit<F: Scalar>(
    job: &Job<'_, F>,
    checkpoint: Option<&[u8]>,
    observer: &dyn Observer,
    cancel: &Cancel,
) -> Result<Fitted> {
    fit_surveyed(job, None, checkpoint, observer, cancel)
}

/// As [`fit`], with the moments of the rows if they are known.
fn fit_surveyed<F: Scalar>(
    job: &Job<'_, F>,
    surveyed: Option<&Moments>,
    checkpoint: Option<&[u8]>,
    observer: &dyn Observer,
    cancel: &Cancel,
) -> Result<Fitted> {
    let started = Instant::now();
    let settings = trial::decided(job, cancel)?;
    let job = &Job { settings: &settings, ..*job };
    let prepared = prepare::Prepared::new(job, surveyed, cancel)?;
    let executor = &mut *prepared.executor()?;
    let position = match checkpoint {
        Some(bytes) => prepared.resume(bytes, executor)?,
        None => prepared.start()?,
    };
    let (model, identity) = (prepared.model.clone(), &prepared.identity);
    let (round, data) = (prepared.round(), &prepared);
    let engine = Engine { model, identity, settings: &prepared.settings, round, data, started };
    let run = engine.run(executor, position, observer, cancel)?;
    Ok(prepared.finish(run))
}
