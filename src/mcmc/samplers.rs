//! What every sampler has: its step, the inputs of a step, and counts of proposals.

use std::fmt::Debug;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::mcmc::{ChainState, Target};
use crate::parallel::Cancel;
use crate::parameters::{Parameters, Value};
use crate::registry::{DefaultValue, Parameter, ParameterKind};
use crate::rng::Draws;

/// The inputs of one step of a chain.
pub struct Turn<'a> {
    /// The target.
    pub target: &'a Target,
    /// Source of all random choices.
    pub draws: &'a mut dyn Draws,
    /// Checked during long steps.
    pub cancel: &'a Cancel,
}

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

/// A sampler. Its steps leave the posterior of partitions, given auxiliary values and learned parameters, invariant.
pub trait Sampler: Debug + Send + Sync {
    /// Builds data shared by all chains, once, before they run.
    ///
    /// # Errors
    /// [`Error::Numerical`], [`Error::Cancelled`].
    fn prepare(&mut self, _target: &Target, _seed: u64, _cancel: &Cancel) -> Result<()> {
        Ok(())
    }

    /// Runs one sweep. After an error the state may be incomplete.
    ///
    /// # Errors
    /// [`Error::Numerical`], [`Error::Cancelled`].
    fn step(&self, state: &mut ChainState, turn: &mut Turn<'_>) -> Result<Vec<Info>>;

    /// Refuses a target for which the steps of this many chains at once do not fit in memory.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for `sampler`.
    fn check_room(&self, _target: &Target, _at_once: usize) -> Result<()> {
        Ok(())
    }

    /// Refuses a number of rows that it does not support.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] naming the parameter.
    fn check(&self, n_rows: usize) -> Result<()>;
}

/// Number of rows that a Gibbs sweep visits; absent for all.
pub(super) const SUBSET: Parameter = Parameter::new("subset", ParameterKind::integer_from(1), DefaultValue::Data);

/// Reads the parameter `subset`.
///
/// # Errors
/// [`Error::InvalidArgument`] if it is not a positive integer.
pub(super) fn subset(parameters: &Parameters) -> Result<Option<usize>> {
    let Some(value) = parameters.given(&SUBSET)? else { return Ok(None) };
    if value.fract() == 0.0 && value >= 1.0 {
        return Ok(Some(value as usize));
    }
    Err(Error::invalid(SUBSET.name, Value::Number(value), "an integer of at least 1, or None"))
}

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
