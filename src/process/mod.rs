//! Priors on weights and partitions, each with the faces that it can serve: counts -> expected log weights and the
//! allocation part of the bound; sizes of blocks -> probabilities of partitions.
//!
//! A process is one file and one line of the registry.

mod beta;
mod concentration;
mod dirichlet_process;
mod documents;
mod finite_dirichlet;
mod gamma;
mod generalized_gamma;
mod latent_dirichlet;
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
pub use finite_dirichlet::FiniteDirichlet;
pub use gamma::Gamma;
pub use generalized_gamma::NormalizedGeneralizedGamma;
pub use latent_dirichlet::LatentDirichlet;
pub use partitions::{Auxiliary, Occupancy, Partitions, ProcessState};
pub use pitman_yor::PitmanYor;
pub use weights::{Allocation, Weights};

/// A prior on weights and partitions. What can be asked of it stands in its faces; a process has those that it can
/// serve, and an algorithm refuses a process without the face that it needs.
pub trait Process: Debug + Send + Sync {
    /// The number of components where the prior fixes it.
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
    /// Weights per document, for topic models.
    fn documents(self: Arc<Self>) -> Option<Arc<dyn Documents>> {
        None
    }
}

macro_rules! registry {
    ($($process:ty),* $(,)?) => {
        /// The descriptions of all processes.
        pub const ENTRIES: &[Entry] = &[$(<$process>::ENTRY),*];

        /// The process called `name` with these parameters.
        ///
        /// # Errors
        /// [`Error::InvalidArgument`] naming the parameter, or where there is no process of that name.
        pub fn build(name: &str, parameters: &Parameters) -> Result<Arc<dyn Process>> {
            $(if name == <$process>::ENTRY.name {
                return Ok(Arc::new(<$process>::new(parameters)?));
            })*
            Err(Error::unknown("process", name, ENTRIES.iter().map(|entry| entry.name)))
        }
    };
}

registry!(DirichletProcess, FiniteDirichlet, LatentDirichlet, NormalizedGeneralizedGamma, PitmanYor);

/// The error for an objective that a prior does not serve.
fn refused(objective: Objective, with: &str, reason: &str, allowed: &str) -> Error {
    Error::not_supported("objective", format!("objective={:?} with {with}", objective.name()), reason, allowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::Value;
    use crate::registry::Feature;

    /// A parameter and a word of it.
    type Chosen = Option<(&'static str, &'static str)>;

    /// All processes, with each of their words in turn.
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
                // A word may be known and yet be refused with its reason.
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
