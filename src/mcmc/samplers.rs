//! What every sampler has: its chains, their sweeps, and counts of proposals.

use std::fmt::Debug;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::data::Rows;
use crate::error::{Error, Result};
use crate::grounds::Grounds;
use crate::likelihood;
use crate::mcmc::learned_base::{LearnedBase, traced};
use crate::mcmc::{Start, StartLabels};
use crate::model::{Named, Specification};
use crate::parallel::Cancel;
use crate::process::{Hyperparameters, ProcessState};
use crate::registry::{DefaultValue, Parameter, ParameterKind};
use crate::rng::Generator;

/// Counts of proposals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Attempts {
    /// Number of proposals; for Gibbs steps, number of rows visited.
    pub proposed: u64,
    /// Number accepted; for Gibbs steps, number of rows that changed cluster.
    pub accepted: u64,
    /// Number of proposals decided by a finite ratio.
    pub judged: u64,
    /// Sum of the logs of these ratios, nats. A proposal is accepted with probability min(1, ratio).
    pub log_ratio: f64,
}

impl Attempts {
    /// One proposal that was refused without a ratio, because it would change nothing.
    pub const REFUSED: Self = Self { proposed: 1, accepted: 0, judged: 0, log_ratio: 0.0 };

    /// One proposal that was decided by its ratio.
    pub fn judged(log_ratio: f64, accepted: bool) -> Self {
        let judged = log_ratio.is_finite();
        let log_ratio = if judged { log_ratio } else { 0.0 };
        Self { proposed: 1, accepted: u64::from(accepted), judged: u64::from(judged), log_ratio }
    }
}

impl AddAssign for Attempts {
    fn add_assign(&mut self, other: Self) {
        self.proposed += other.proposed;
        self.accepted += other.accepted;
        self.judged += other.judged;
        self.log_ratio += other.log_ratio;
    }
}

/// Counts of the proposals of one kind in a sweep.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Info {
    /// Kind of proposal.
    pub name: &'static str,
    /// Counts.
    pub attempts: Attempts,
}

impl Info {
    /// Counts of steps that draw from their invariant distribution and need no ratio.
    pub fn of_draws(name: &'static str, proposed: usize, accepted: u64) -> Self {
        Self { name, attempts: Attempts { proposed: proposed as u64, accepted, ..Attempts::default() } }
    }
}

/// A sampler of partitions of the rows.
pub trait Sampler: Debug + Send + Sync {
    /// Refuses a number of rows that it does not support.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] naming the parameter.
    fn check(&self, n_rows: usize) -> Result<()>;

    /// Refuses a model that it does not sample, before any rows are read.
    ///
    /// # Errors
    /// [`Error::NotSupported`] naming the part.
    fn check_model(&self, specification: &Specification) -> Result<()> {
        let Named { name, parameters } = &specification.likelihood;
        likelihood::check_closed(name, parameters)?;
        specification.law().map(|_| ())
    }

    /// Builds what all its chains share.
    ///
    /// # Errors
    /// [`Error::NotSupported`] for a process or a likelihood that it does not sample; [`Error::InvalidArgument`];
    /// [`Error::Numerical`]; [`Error::Cancelled`].
    fn chains<'a>(&'a mut self, setup: Setup<'a>) -> Result<Box<dyn Chains + 'a>>;
}

/// What chains are to sample, and where they start.
pub struct Setup<'a> {
    /// The model.
    pub grounds: &'a Grounds,
    /// The rows.
    pub rows: &'a dyn Rows<f64>,
    /// The starts, which chains take in turn; at least one.
    pub starts: &'a [Start<'a>],
    /// The seed of all chains.
    pub seed: u64,
    /// Checked during long preparations.
    pub cancel: &'a Cancel,
}

/// What all chains of a run share: the rows, the model and the sampler.
pub trait Chains: Sync {
    /// Number of rows.
    fn n_rows(&self) -> usize;

    /// Number of columns that the model sees.
    fn dimension(&self) -> usize;

    /// What chains hold besides labels.
    fn process(&self) -> &dyn Hyperparameters;

    /// The labels with which chains start.
    fn starts(&self) -> &StartLabels;

    /// Refuses chains that together do not fit in memory, of which `at_once` run at the same time.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for `init`, `truncation` or `sampler`.
    fn check_room(&self, n_chains: usize, at_once: usize) -> Result<()>;

    /// The chain of this number at its start.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for `init` if the process does not allow the partition; [`Error::Numerical`].
    fn start(&self, chain: usize) -> Result<Box<dyn Chain + '_>>;

    /// The chain that [`Chain::save`] wrote; `None` if the bytes are not those of a chain of this run, since a file may
    /// hold anything.
    fn restore(&self, bytes: &[u8]) -> Option<Box<dyn Chain + '_>>;
}

/// One chain: a partition, hyper-parameters, and whatever else its sampler keeps between sweeps.
pub trait Chain: Send {
    /// Runs one sweep, which leaves the joint posterior of the state invariant. `draws` and `key`, for random numbers
    /// by row, depend only on the seed, the chain and the sweep. After an error the state may be incomplete.
    ///
    /// # Errors
    /// [`Error::Numerical`], [`Error::Cancelled`].
    fn sweep(&mut self, draws: &mut Generator, key: u64, cancel: &Cancel) -> Result<Vec<Info>>;

    /// Writes the cluster of each row, numbered in order of first appearance.
    fn write_labels(&self, out: &mut [i32]);

    /// Number of clusters.
    fn n_clusters(&self) -> usize;

    /// Auxiliary values and learned parameters of the process, followed by a learned parameter of the base measure.
    fn traced(&self) -> Vec<f64>;

    /// log p(X, partition | hyper-parameters) with parameters and auxiliary values integrated out, nats, in the units
    /// of the data (mathematics 8.5).
    ///
    /// # Errors
    /// [`Error::Numerical`].
    fn log_joint(&self) -> Result<f64>;

    /// The state, from which [`Chains::restore`] continues with the same bits.
    ///
    /// # Errors
    /// [`Error::Format`].
    fn save(&self) -> Result<Vec<u8>>;
}

/// Whether the state of a process and a learned value are possible for a chain, since files are not trusted.
pub(super) fn is_sound(
    state: &ProcessState,
    process: &dyn Hyperparameters,
    value: Option<f64>,
    learned: Option<&LearnedBase>,
) -> bool {
    let traced = traced(process, state, None);
    let has_value = match (value, learned) {
        (Some(value), Some(learned)) => learned.has(value),
        (value, learned) => value.is_none() && learned.is_none(),
    };
    let numbers = state.auxiliary.map_or([0.0; 2], |auxiliary| [auxiliary.log_u, auxiliary.log_mass]);
    has_value
        && process.restored(&traced).is_ok_and(|known| known == state.integrated())
        && state.auxiliary.is_some() == process.augments()
        && numbers.iter().all(|number| number.is_finite())
}

/// Number of rows that a Gibbs sweep visits; absent for all.
pub(super) const SUBSET: Parameter = Parameter::new("subset", ParameterKind::integer_from(1), DefaultValue::Data);

/// Refuses a subset that is larger than the number of rows.
///
/// # Errors
/// [`Error::InvalidArgument`] for `subset`.
pub(super) fn check_subset(subset: Option<usize>, n_rows: usize) -> Result<()> {
    match subset {
        Some(size) if size > n_rows => {
            Err(Error::invalid(SUBSET.name, size, format!("at most {n_rows}, the number of rows")))
        }
        _ => Ok(()),
    }
}
