//! Partitions of the units: the part of a process that samplers and trees use.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::process::Process;
use crate::rng::Draws;

/// Number of units and number of blocks of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occupancy {
    /// Number of units, N.
    pub units: usize,
    /// Number of nonempty blocks, K.
    pub blocks: usize,
}

impl Occupancy {
    /// The occupancy of blocks of these sizes.
    pub fn of(sizes: &[usize]) -> Self {
        Self { units: sizes.iter().sum(), blocks: sizes.len() }
    }
}

/// The state of a process in a chain, apart from the partition.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ProcessState {
    /// The concentration, or the mass of a random measure, fixed or learned.
    pub concentration: f64,
    /// The discount, fixed or learned; 0 if the process has none.
    pub discount: f64,
    /// Auxiliary values, given which the probability of a partition factorises over its blocks. `None` if they are
    /// integrated out.
    pub auxiliary: Option<Auxiliary>,
}

impl ProcessState {
    /// The same state with the auxiliary values integrated out.
    #[must_use]
    pub fn integrated(self) -> Self {
        Self { auxiliary: None, ..self }
    }
}

/// The auxiliary values of a normalized random measure (mathematics 8.2).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Auxiliary {
    /// log u. The logarithm, because u overflows where the mass is small.
    pub log_u: f64,
    /// Logarithm of the mass a of the measure: of the concentration for a Dirichlet process, random for Pitman-Yor.
    pub log_mass: f64,
}

/// What a chain of a process holds besides the labels: auxiliary values, and parameters that it learns.
pub trait Hyperparameters: Process {
    /// Returns the state in which a chain starts, with learned parameters at their prior mean. With `augmented` it has
    /// auxiliary values, which become a draw after one update.
    ///
    /// # Errors
    /// [`crate::Error::NotSupported`] if the process has no auxiliary values.
    fn start(&self, augmented: bool) -> Result<ProcessState>;
    /// Whether chains use auxiliary values because weights without them are too expensive.
    fn augments(&self) -> bool {
        false
    }
    /// The values that a chain reports besides the partition: learned parameters and auxiliary values, by name.
    fn traced(&self, _state: &ProcessState) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
    /// Rebuilds a state from the values that [`Hyperparameters::traced`] reported.
    ///
    /// # Errors
    /// [`crate::Error::Format`] if the values do not fit the process.
    fn restored(&self, traced: &[f64]) -> Result<ProcessState> {
        if traced.is_empty() { self.start(false) } else { Err(foreign_values()) }
    }
    /// Log density of the learned parameters under their prior, nats; 0 if no parameter is learned.
    fn log_prior(&self, _state: &ProcessState) -> f64 {
        0.0
    }
}

/// A process as a distribution over partitions (mathematics 8.1 to 8.4). Blocks are nonempty; logarithms are in nats.
///
/// The probability of a partition is a function of N and K times a product over blocks. Given auxiliary values, the
/// function depends on N alone. A constant factor per block is part of the product.
pub trait Partitions: Hyperparameters {
    /// Log weight of joining a block of `size` other units, up to a constant shared with [`Partitions::log_open`].
    fn log_join(&self, size: usize, state: &ProcessState) -> f64;
    /// Log weight of opening a block in addition to `others`; minus infinity if no further block is possible.
    fn log_open(&self, others: Occupancy, state: &ProcessState) -> f64;
    /// Log factor of a block in the probability of a partition.
    fn log_block(&self, size: usize, state: &ProcessState) -> f64;
    /// The part of the log probability of a partition that does not factorise over its blocks.
    fn log_rest(&self, all: Occupancy, state: &ProcessState) -> f64;
    /// Log probability of a partition. Given auxiliary values: the log joint density with them (in u rather than log u,
    /// and for a Pitman-Yor process in the random mass divided by the discount).
    fn log_probability(&self, sizes: &[usize], state: &ProcessState) -> f64 {
        let blocks: f64 = sizes.iter().map(|&size| self.log_block(size, state)).sum();
        blocks + self.log_rest(Occupancy::of(sizes), state)
    }
    /// Draws the log weights of blocks of these sizes, at least one, followed by that of everything outside them, up to
    /// a common constant; nats. Auxiliary values are integrated out.
    fn draw_weights(&self, sizes: &[usize], state: &ProcessState, draws: &mut dyn Draws) -> Vec<f64>;
    /// Redraws auxiliary values and learned parameters given the partition. Leaves their joint distribution invariant.
    fn update(&self, sizes: &[usize], state: &mut ProcessState, draws: &mut dyn Draws);
}

/// Logs of independent Gamma variables of the shapes size + `more`, followed by one of the shape `outside`, which may
/// be 0. Divided by their sum, the variables are a draw from a Dirichlet distribution.
pub(super) fn gamma_weights(sizes: &[usize], more: f64, outside: f64, draws: &mut dyn Draws) -> Vec<f64> {
    let mut log_weights: Vec<f64> = sizes.iter().map(|&size| draws.log_gamma(size as f64 + more)).collect();
    log_weights.push(if outside > 0.0 { draws.log_gamma(outside) } else { f64::NEG_INFINITY });
    log_weights
}

/// The error for values that no chain of the process reports.
pub(super) fn foreign_values() -> Error {
    Error::Format { message: "its hyper-parameters are not those of the process".to_owned() }
}

#[cfg(test)]
mod tests;
