//! A process as a distribution over labels, as samplers of labels see it.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::process::drawn::log_probability_of_labels;
use crate::process::{Hyperparameters, Partitions, Process, ProcessState, Sticks};

/// A distribution over labels of units.
#[derive(Debug, Clone)]
pub enum LabelLaw {
    /// Labels are names of blocks: partitions have closed probabilities.
    Partitions(Arc<dyn Partitions>),
    /// Only labels in the order of the sticks have them.
    Sticks(Arc<dyn Sticks>),
}

impl LabelLaw {
    /// The law of a process, if it has one. `name` is the name of the process.
    ///
    /// # Errors
    /// [`Error::NotSupported`].
    pub fn of(process: Arc<dyn Process>, name: &str) -> Result<Self> {
        let law = process.clone().partitions().map(Self::Partitions).or_else(|| process.sticks().map(Self::Sticks));
        law.ok_or_else(|| {
            let found = format!("a sampler with {name}");
            Error::not_supported("process", found, "it has no partition probabilities", "a DirichletProcess, or fit")
        })
    }

    /// The partitions.
    ///
    /// # Errors
    /// [`Error::NotSupported`] if they have no closed probabilities.
    pub fn partitions(&self) -> Result<&Arc<dyn Partitions>> {
        match self {
            Self::Partitions(partitions) => Ok(partitions),
            Self::Sticks(_) => Err(Error::not_supported(
                "process",
                "DirichletProcess with sticks",
                "collapsed samplers, trees and weights of drawn clusters need probabilities of partitions, which it \
                 does not have",
                "a concentration, or labels alone: BlockedGibbs() or Slice() that start without trees, similarity and \
                 point_estimate",
            )),
        }
    }

    /// What chains hold besides labels.
    pub fn hyperparameters(&self) -> &dyn Hyperparameters {
        match self {
            Self::Partitions(partitions) => partitions.as_ref(),
            Self::Sticks(sticks) => sticks.as_ref(),
        }
    }

    /// Log probability of a partition, or of labels in the order of the sticks, with these numbers of units, nats.
    /// Auxiliary values are integrated out.
    pub fn log_probability(&self, counts: &[f64], state: &ProcessState) -> f64 {
        let state = state.integrated();
        match self {
            Self::Partitions(partitions) => {
                let sizes = counts.iter().filter(|count| **count > 0.0).map(|&count| count as usize);
                partitions.log_probability(&sizes.collect::<Vec<_>>(), &state)
            }
            Self::Sticks(sticks) => log_probability_of_labels(sticks.as_ref(), counts, &state),
        }
    }
}
