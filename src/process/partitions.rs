//! Partitions of the units: what samplers and trees ask of a process.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::process::Process;
use crate::rng::Draws;

/// How many units a partition has, and how many blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occupancy {
    /// Units, N.
    pub units: usize,
    /// Blocks that are not empty, K.
    pub blocks: usize,
}

impl Occupancy {
    /// Of blocks of these sizes.
    pub fn of(sizes: &[usize]) -> Self {
        Self { units: sizes.iter().sum(), blocks: sizes.len() }
    }
}

/// The state of a process in a chain, beside the partition. Without auxiliary values, these are integrated out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ProcessState {
    /// The concentration, or the mass of a random measure, given or learned.
    pub concentration: f64,
    /// The discount, given or learned; 0 where there is none.
    pub discount: f64,
    /// Values given which the probability of a partition is a product over its blocks.
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

/// A process as a law of partitions (mathematics 8.1 to 8.4). Blocks are not empty; logarithms are in nats.
///
/// The probability of a partition is a function of N and K times a product over blocks. Given auxiliary values, the
/// function depends on N alone. A constant factor per block is part of the product.
pub trait Partitions: Process {
    /// The state where a chain starts: learned parameters at their prior mean. With `augmented` it has auxiliary
    /// values, of which one update makes a draw.
    ///
    /// # Errors
    /// [`crate::Error::NotSupported`] where the process has no auxiliary values.
    fn start(&self, augmented: bool) -> Result<ProcessState>;
    /// Whether chains need auxiliary values, because weights without them cost too much.
    fn augments(&self) -> bool {
        false
    }
    /// The values that a chain reports beside the partition: learned parameters and auxiliary values, by name.
    fn traced(&self, _state: &ProcessState) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
    /// The state with the values that [`Partitions::traced`] reported.
    ///
    /// # Errors
    /// [`crate::Error::Format`] where they are not such values.
    fn restored(&self, traced: &[f64]) -> Result<ProcessState> {
        if traced.is_empty() { self.start(false) } else { Err(foreign_values()) }
    }
    /// Log density of the learned parameters under their prior, nats; 0 where none is learned.
    fn log_prior(&self, _state: &ProcessState) -> f64 {
        0.0
    }
    /// Log weight of joining a block of `size` other units, with [`Partitions::log_open`] up to one common constant.
    fn log_join(&self, size: usize, state: &ProcessState) -> f64;
    /// Log weight of opening a block beside `others`; minus infinity where there can be no more.
    fn log_open(&self, others: Occupancy, state: &ProcessState) -> f64;
    /// Log factor of a block in the probability of a partition.
    fn log_block(&self, size: usize, state: &ProcessState) -> f64;
    /// The part of the log probability of a partition that is not a product over its blocks.
    fn log_rest(&self, all: Occupancy, state: &ProcessState) -> f64;
    /// Log probability of a partition; given auxiliary values, the log of its joint density with them (with u, not log
    /// u, and with the random mass over the discount of a Pitman-Yor process).
    fn log_probability(&self, sizes: &[usize], state: &ProcessState) -> f64 {
        let blocks: f64 = sizes.iter().map(|&size| self.log_block(size, state)).sum();
        blocks + self.log_rest(Occupancy::of(sizes), state)
    }
    /// Redraws auxiliary values and learned parameters given the partition, which leaves their joint law unchanged.
    fn update(&self, sizes: &[usize], state: &mut ProcessState, draws: &mut dyn Draws);
}

/// The error for reported values that no chain of a process reports.
pub(super) fn foreign_values() -> Error {
    Error::Format { message: "hyper-parameters that the process does not have".to_owned() }
}

#[cfg(test)]
mod tests;
