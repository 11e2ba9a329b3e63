//! Shards in other processes.

use std::sync::Arc;

use crate::component::EditLog;
use crate::data::{ReadSums, Reading, RowUnits, Sample, Shards};
use crate::error::{Error, Result};
use crate::executor::worker::{Head, decoded, encoded};
use crate::executor::{Executor, RunSetup, Visit, no_shards};
use crate::global_step::Globals;
use crate::hash::of_bytes;
use crate::local_step::LocalState;
use crate::moves::{Plan, SmallestKeys};
use crate::parallel::Cancel;
use crate::simd::Scalar;
use crate::visits::save_state;

/// A part of a request. Parts with the same key have the same bytes, so a part need travel to a worker only once.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestPart {
    /// Name of the part: "setup", "plan", "globals", "head" or "reading".
    pub name: &'static str,
    /// A number that identifies its bytes.
    pub key: u64,
    /// The bytes.
    pub bytes: Arc<[u8]>,
}

impl RequestPart {
    fn new(name: &'static str, bytes: Vec<u8>) -> Self {
        Self { name, key: of_bytes(&bytes), bytes: bytes.into() }
    }
}

/// Passes requests to the workers that hold shards. What a worker has lost it asks for again: the answers are functions
/// of rows and requests.
pub trait Ask: Send + Sync {
    /// Has shards visited by [`Worker::visit`](crate::executor::Worker::visit), some neighbours at a time, and returns
    /// the sum of their visits in the fixed tree by [`add_visits`](crate::executor::add_visits). The parts are setup,
    /// plan, globals and head.
    ///
    /// # Errors
    /// Those of a worker; [`Error::Source`] if no worker answers; [`Error::Cancelled`].
    fn visit(&self, shards: &[usize], parts: &[RequestPart; 4]) -> Result<Vec<u8>>;

    /// The sum over all shards of a reading by [`ReadBranch`](crate::executor::ReadBranch), in the fixed tree by
    /// [`add_sums`](crate::executor::add_sums).
    ///
    /// # Errors
    /// As [`Ask::visit`].
    fn read(&self, reading: &RequestPart) -> Result<Vec<u8>>;

    /// What [`pick_rows`](crate::executor::pick_rows) returns for each shard and its list.
    ///
    /// # Errors
    /// As [`Ask::visit`].
    fn pick(&self, rows: &[(usize, Vec<u32>)]) -> Result<Vec<Vec<u8>>>;
}

/// Shards behind [`Ask`].
pub struct RemoteShards<'a> {
    /// Passes requests to the workers that hold them.
    pub ask: &'a dyn Ask,
    /// Number of columns of every shard.
    pub n_columns: usize,
    /// Number of rows of each shard.
    pub sizes: &'a [usize],
    /// One weight per row of all shards, if any; workers have those of their rows.
    pub weights: Option<&'a [f64]>,
}

impl<F: Scalar> Shards<F> for RemoteShards<'_> {
    fn n_columns(&self) -> usize {
        self.n_columns
    }

    fn sizes(&self) -> &[usize] {
        self.sizes
    }

    fn weights(&self) -> Option<&[f64]> {
        self.weights
    }

    fn load(&self, _shard: usize) -> Result<RowUnits<'_, F>> {
        Err(Error::Source { batch: None, message: "its rows are in other processes".to_owned() })
    }

    fn sum(&self, reading: &Reading, _cancel: &Cancel) -> Result<ReadSums> {
        decoded(&self.ask.read(&RequestPart::new("reading", encoded(reading)?))?)
    }

    fn pick(&self, rows: &[(usize, Vec<u32>)]) -> Result<Vec<Sample>> {
        self.ask.pick(rows)?.iter().map(|bytes| decoded(bytes)).collect()
    }
}

/// An executor of shards behind [`Ask`].
pub struct Remote<'a> {
    ask: &'a dyn Ask,
    /// The shards of each batch.
    batches: Vec<Vec<usize>>,
    setup: RequestPart,
    /// Of the last visit.
    plan: Option<(u64, RequestPart)>,
    /// Number of edits that the shards of each batch have seen.
    versions: Vec<usize>,
    smallest: SmallestKeys,
}

impl<'a> Remote<'a> {
    /// Has not visited any of the batches, which have these shards.
    ///
    /// # Errors
    /// [`Error::Format`] if the setup cannot be serialised.
    pub fn new(ask: &'a dyn Ask, batches: Vec<Vec<usize>>, setup: &RunSetup) -> Result<Self> {
        let (setup, versions) = (RequestPart::new("setup", encoded(setup)?), vec![0; batches.len()]);
        Ok(Self { ask, batches, setup, plan: None, versions, smallest: SmallestKeys::default() })
    }

    /// The plan as a part, which stays the same during a pass.
    fn plan(&mut self, plan: &Plan) -> Result<RequestPart> {
        let (version, part) = match self.plan.take() {
            Some((version, part)) if version == plan.version && version > 0 => (version, part),
            _ => (plan.version, RequestPart::new("plan", encoded(plan)?)),
        };
        self.plan = Some((version, part.clone()));
        Ok(part)
    }
}

impl Executor for Remote<'_> {
    fn n_batches(&self) -> usize {
        self.batches.len()
    }

    fn n_shards(&self) -> usize {
        self.batches.iter().map(Vec::len).sum()
    }

    fn visit(&mut self, batch: usize, globals: &Globals, edits: &EditLog, plan: &Plan) -> Result<Visit> {
        let shards = self.batches.get(batch).filter(|shards| !shards.is_empty()).ok_or_else(|| no_shards(batch))?;
        let (shards, limits) = (shards.clone(), self.smallest.limits(plan));
        let head = Head { batch, edits: edits.after(self.versions[batch]), limits };
        let globals = RequestPart::new("globals", encoded(globals)?);
        let parts = [self.setup.clone(), self.plan(plan)?, globals, RequestPart::new("head", encoded(&head)?)];
        let visit: Visit = decoded(&self.ask.visit(&shards, &parts).map_err(|error| error.at_batch(batch))?)?;
        self.smallest.see(plan, &visit.findings.bags);
        self.versions[batch] = edits.version();
        Ok(visit)
    }

    /// Results depend on nothing that workers keep, so the states are those of shards that have not been visited.
    fn save_states(&mut self) -> Result<Vec<Vec<u8>>> {
        let state = save_state(&LocalState::default())?;
        Ok(vec![state; self.n_shards()])
    }

    fn load_states(&mut self, states: &[Vec<u8>]) -> Result<()> {
        if states.len() == self.n_shards() {
            return Ok(());
        }
        let message = format!("{} local states for {} shards", states.len(), self.n_shards());
        Err(Error::Format { message })
    }
}
