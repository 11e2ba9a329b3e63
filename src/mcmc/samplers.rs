//! Samplers and their registry.

use std::fmt::Debug;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::mcmc::{ChainState, CollapsedGibbs, SplitMerge, Target, TreeGuided};
use crate::parallel::Cancel;
use crate::parameters::{Parameters, Value};
use crate::registry::{DefaultValue, Entry, Parameter, ParameterKind};
use crate::rng::Draws;

/// The inputs of a step of a chain.
pub struct Turn<'a> {
    /// The target.
    pub target: &'a Target,
    /// Every random choice.
    pub draws: &'a mut dyn Draws,
    /// Looked at within long steps.
    pub cancel: &'a Cancel,
}

/// Outcomes of proposals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Attempts {
    /// Proposals; for Gibbs steps the rows that were visited.
    pub proposed: u64,
    /// Those that were accepted; for Gibbs steps the rows that went to another cluster.
    pub accepted: u64,
    /// Proposals that a finite ratio decided about.
    pub judged: u64,
    /// Sum of the logs of these ratios, nats; a proposal is accepted with probability min(1, ratio).
    pub log_ratio: f64,
}

impl Attempts {
    /// One proposal that no ratio decided about, because nothing would change.
    pub const REFUSED: Self = Self { proposed: 1, accepted: 0, judged: 0, log_ratio: 0.0 };

    /// One proposal that its ratio decided about.
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

/// Outcomes of the proposals of one kind in a sweep.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Info {
    /// The kind.
    pub name: &'static str,
    /// Its numbers.
    pub attempts: Attempts,
}

impl Info {
    /// Of steps that draw from what they should leave unchanged, so that no ratio decides.
    pub fn of_draws(name: &'static str, proposed: usize, accepted: u64) -> Self {
        Self { name, attempts: Attempts { proposed: proposed as u64, accepted, ..Attempts::default() } }
    }
}

/// A sampler: its steps leave the posterior of partitions, given auxiliary values and learned parameters, unchanged.
pub trait Sampler: Debug + Send + Sync {
    /// Builds what all chains share, once, before they run.
    ///
    /// # Errors
    /// [`Error::Numerical`], [`Error::Cancelled`].
    fn prepare(&mut self, _target: &Target, _seed: u64, _cancel: &Cancel) -> Result<()> {
        Ok(())
    }

    /// One sweep. After an error the state may be in the middle of a change.
    ///
    /// # Errors
    /// [`Error::Numerical`], [`Error::Cancelled`].
    fn step(&self, state: &mut ChainState, turn: &mut Turn<'_>) -> Result<Vec<Info>>;

    /// Refuses a number of rows that it cannot serve.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] naming the parameter.
    fn check(&self, n_rows: usize) -> Result<()>;
}

macro_rules! registry {
    ($($sampler:ty),* $(,)?) => {
        /// The descriptions of all samplers.
        pub const ENTRIES: &[Entry] = &[$(<$sampler>::ENTRY),*];

        /// The sampler called `name` with these parameters.
        ///
        /// # Errors
        /// [`Error::InvalidArgument`] naming the parameter, or where there is no sampler of that name.
        pub fn build(name: &str, parameters: &Parameters) -> Result<Box<dyn Sampler>> {
            $(if name == <$sampler>::ENTRY.name {
                return Ok(Box::new(<$sampler>::new(parameters)?));
            })*
            Err(Error::unknown("sampler", name, ENTRIES.iter().map(|entry| entry.name)))
        }
    };
}

registry!(CollapsedGibbs, SplitMerge, TreeGuided);

/// How many rows a Gibbs sweep visits; absent for all.
pub(super) const SUBSET: Parameter = Parameter::new("subset", ParameterKind::integer_from(1), DefaultValue::Data);

/// The parameter of that name.
///
/// # Errors
/// [`Error::InvalidArgument`] where it is no positive integer.
pub(super) fn subset(parameters: &Parameters) -> Result<Option<usize>> {
    let Some(value) = parameters.given(&SUBSET)? else { return Ok(None) };
    if value.fract() == 0.0 && value >= 1.0 {
        return Ok(Some(value as usize));
    }
    Err(Error::invalid(SUBSET.name, Value::Number(value), "an integer of at least 1, or None"))
}

/// Refuses a subset of more rows than there are.
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
