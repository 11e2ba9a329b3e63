//! Executors run visits of batches and return summaries, and pass questions to shards. A shard stays with the worker
//! that holds its local state: this process, another process, or another machine behind the same trait.

mod in_process;
mod remote;
mod shard_visits;
mod worker;

use serde::{Deserialize, Serialize};

use crate::component::EditLog;
use crate::error::{Error, Result};
use crate::global_step::Globals;
use crate::local_step::Work;
use crate::moves::{Findings, Move, Plan};
use crate::payload::Payload;
use crate::simd::Scalar;
use crate::suffstats::Summary;
use crate::visits::{Additive, Asked, Question};

pub use in_process::InProcess;
pub use remote::{Ask, Remote, RemoteShards, RequestPart};
pub use shard_visits::ShardVisits;
pub use worker::{Came, ReadBranch, RunSetup, VisitBranch, Worker, add_sums, add_visits, pick_rows};

/// Result of visiting a shard, or the sum over the shards of a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Visit {
    /// The summary of its units.
    pub summary: Summary,
    /// Computational cost.
    pub work: Work,
    /// Findings for moves.
    pub findings: Findings,
    /// For each component the sum of responsibilities of rows of known class; empty if rows have no classes.
    pub known_rows: Vec<f64>,
}

impl Visit {
    /// Adds the visit of other shards under the same globals and plan.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for other components; as [`Findings::add`].
    pub fn add<F: Scalar>(&mut self, other: Self, plan: &Plan, moves: &[&dyn Move<F>]) -> Result<()> {
        self.summary.add_compact(&other.summary)?;
        self.work += other.work;
        add_known(&mut self.known_rows, &other.known_rows);
        self.findings.add(other.findings, plan, moves)
    }
}

/// Adds sums of responsibilities of rows of known class.
pub(crate) fn add_known(sum: &mut Vec<f64>, others: &[f64]) {
    sum.resize(others.len(), 0.0);
    sum.iter_mut().zip(others).for_each(|(sum, other)| *sum += other);
}

/// Runs the local step of one batch wherever its shards are stored.
pub trait Executor {
    /// Number of batches.
    fn n_batches(&self) -> usize;

    /// Number of shards of all batches.
    fn n_shards(&self) -> usize {
        self.n_batches()
    }

    /// Visits all shards of a batch: replays the edits that their local states have not yet seen, runs their local
    /// steps under `globals`, and searches for what `plan` requests.
    ///
    /// # Errors
    /// [`Error::Source`] if a shard cannot be loaded; [`Error::Cancelled`]; [`Error::Numerical`].
    fn visit(&mut self, batch: usize, globals: &Globals, edits: &EditLog, plan: &Plan) -> Result<Visit>;

    /// Returns the answer of a shard to a question; [`ask`] asks all shards.
    ///
    /// # Errors
    /// As [`Executor::visit`]; [`Error::NotSupported`] for a question that cannot be answered here.
    fn answer(&mut self, _shard: usize, asked: &Asked) -> Result<Payload> {
        Err(asked.refusal())
    }

    /// Serialises the local states of all shards.
    ///
    /// # Errors
    /// [`Error::Format`]; [`Error::Source`] if a worker does not respond.
    fn save_states(&mut self) -> Result<Vec<Vec<u8>>>;

    /// Replaces the local states of all shards by saved ones.
    ///
    /// # Errors
    /// [`Error::Format`] for bytes that are not states of this number of shards; [`Error::Source`].
    fn load_states(&mut self, states: &[Vec<u8>]) -> Result<()>;
}

/// Asks every shard and returns the sum of the answers. `globals` are the components under which the question is asked,
/// if it depends on any.
///
/// # Errors
/// As [`Executor::answer`]; [`Error::Format`] for an answer to another question.
pub fn ask<Q: Question>(executor: &mut dyn Executor, question: Q, globals: Option<&Globals>) -> Result<Q::Answer> {
    let asked = Asked::new(question, globals);
    let mut sum = Q::Answer::default();
    for shard in 0..executor.n_shards() {
        sum.add(executor.answer(shard, &asked)?.into_value()?);
    }
    Ok(sum)
}

fn no_shards(batch: usize) -> Error {
    Error::Source { batch: Some(batch), message: "it has no shards".to_owned() }
}
