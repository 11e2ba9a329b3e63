//! Priors on weights and partitions. Each implements one or more interfaces, called faces: expected log weights and the
//! allocation part of the bound from counts, and partition probabilities from block sizes.
//!
//! Each process is one file and one line of the registry.

mod beta;
mod concentration;
mod dirichlet_process;
mod documents;
mod drawn;
mod finite_dirichlet;
mod free_sticks;
mod gamma;
mod gamma_sticks;
mod generalized_gamma;
mod label_law;
mod latent_dirichlet;
mod learned;
mod leftover;
mod mixture_of_finite_mixtures;
mod partitions;
mod pitman_yor;
mod point;
mod random_measure;
mod slice;
mod sticks;
mod tail;
mod weights;

use std::fmt::Debug;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::objective::Objective;
use crate::parameters::Parameters;
use crate::registry::Entry;

pub use beta::{BetaPrior, Discount};
pub use concentration::Concentration;
pub use dirichlet_process::DirichletProcess;
pub use documents::Documents;
pub use drawn::{Exchangeable, Jumps, MOST_ATOMS, Stick, Sticks, draw_sticks, least_truncation, log_weights};
pub use finite_dirichlet::FiniteDirichlet;
pub use free_sticks::FreeSticks;
pub use gamma::Gamma;
pub use generalized_gamma::NormalizedGeneralizedGamma;
pub use label_law::LabelLaw;
pub use latent_dirichlet::LatentDirichlet;
pub use mixture_of_finite_mixtures::MixtureOfFiniteMixtures;
pub use partitions::{Auxiliary, Hyperparameters, Occupancy, Partitions, ProcessState};
pub use pitman_yor::PitmanYor;
pub use random_measure::RandomMeasure;
pub(crate) use slice::slice_between;
pub use weights::{Allocation, WeightSource, Weights};

/// A prior on weights and partitions. Its faces say what it supports, and an algorithm refuses a process without the
/// face that it needs.
pub trait Process: Debug + Send + Sync {
    /// The number of components, if the prior fixes it.
    fn n_components(&self) -> Option<usize> {
        None
    }
    /// Weights with a bound, for variational inference.
    fn weights(self: Arc<Self>) -> Option<Arc<dyn Weights>> {
        None
    }
    /// Partition probabilities, for samplers and trees.
    fn partitions(self: Arc<Self>) -> Option<Arc<dyn Partitions>> {
        None
    }
    /// Weights that are pieces of a stick, for samplers that draw them.
    fn sticks(self: Arc<Self>) -> Option<Arc<dyn Sticks>> {
        None
    }
    /// Weights of a fixed number of components, for samplers that draw them.
    fn shares(self: Arc<Self>) -> Option<Arc<dyn Exchangeable>> {
        None
    }
    /// Weights that are jumps of a random measure, for samplers that draw them.
    fn jumps(self: Arc<Self>) -> Option<Arc<dyn Jumps>> {
        None
    }
    /// Weights per document, for topic models.
    fn documents(self: Arc<Self>) -> Option<Arc<dyn Documents>> {
        None
    }
}

macro_rules! registry {
    ($($process:ty),* $(,)?) => {
        /// The entries of all processes.
        pub const ENTRIES: &[Entry] = &[$(<$process>::ENTRY),*];

        /// Builds the process called `name` with these parameters.
        ///
        /// # Errors
        /// [`Error::InvalidArgument`] naming the parameter, or if no process has that name.
        pub fn build(name: &str, parameters: &Parameters) -> Result<Arc<dyn Process>> {
            $(if name == <$process>::ENTRY.name {
                return Ok(Arc::new(<$process>::new(parameters)?));
            })*
            Err(Error::unknown("process", name, ENTRIES.iter().map(|entry| entry.name)))
        }
    };
}

registry!(
    DirichletProcess,
    FiniteDirichlet,
    LatentDirichlet,
    MixtureOfFiniteMixtures,
    NormalizedGeneralizedGamma,
    PitmanYor,
);

/// The error for an objective that a prior does not support.
fn refused(objective: Objective, with: &str, reason: &str, allowed: &str) -> Error {
    Error::not_supported("objective", format!("objective={:?} with {with}", objective.name()), reason, allowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::Value;
    use crate::registry::Feature;

    /// The name of a parameter and a word given for it.
    type Chosen = Option<(&'static str, &'static str)>;

    /// All processes, with each allowed word in turn.
    fn all() -> Vec<(Entry, Chosen, Arc<dyn Process>)> {
        let required = Parameters::from_pairs([
            ("n_components", Value::Number(3.0)),
            ("n_topics", Value::Number(3.0)),
            ("discount", Value::Number(0.3)),
            ("mass", Value::Number(1.0)),
        ]);
        let mut built = Vec::new();
        for entry in ENTRIES {
            for chosen in [None].into_iter().chain(entry.words().into_iter().map(Some)) {
                let mut parameters = required.clone();
                parameters.0.retain(|name, _| entry.parameters.iter().any(|parameter| parameter.name == name));
                parameters.0.extend(chosen.map(|(name, word)| (name.to_owned(), Value::Text(word.to_owned()))));
                // A word may be valid and still be refused in combination.
                if let Ok(process) = build(entry.name, &parameters) {
                    built.push((*entry, chosen, process));
                }
            }
        }
        built
    }

    #[test]
    fn entries_say_what_processes_are() {
        let built = all();
        assert!(built.len() >= 7, "{}", built.len());
        for (entry, chosen, process) in built {
            let faces = [
                ("weights", process.clone().weights().is_some()),
                ("partitions", process.clone().partitions().is_some()),
                ("sticks", process.clone().sticks().is_some()),
                ("shares", process.clone().shares().is_some()),
                ("jumps", process.clone().jumps().is_some()),
                ("documents", process.clone().documents().is_some()),
            ];
            assert!(faces.iter().all(|(face, has)| *has == entry.faces.contains(face)), "{}", entry.name);
            let moves = entry.support(Feature::Moves).is_some_and(|support| !support.fails(chosen));
            assert_eq!(
                moves,
                process.clone().weights().is_some_and(|weights| weights.is_nested()),
                "{} {chosen:?}",
                entry.name
            );
            let fixed = entry.parameters.iter().any(|one| ["n_components", "n_topics"].contains(&one.name));
            assert_eq!(fixed, process.n_components().is_some(), "{}", entry.name);
        }
    }
}
