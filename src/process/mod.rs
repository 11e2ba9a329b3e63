//! Priors on the weights: counts -> expected log weights and the allocation part of the bound.
//!
//! A process is one file and one line of the registry.

mod concentration;
mod dirichlet_process;
mod finite_dirichlet;
mod gamma;
mod pitman_yor;
mod point;
mod sticks;
mod tail;

use std::fmt::Debug;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::objective::Objective;
use crate::parameters::Parameters;
use crate::registry::Entry;

pub use concentration::Concentration;
pub use dirichlet_process::DirichletProcess;
pub use finite_dirichlet::FiniteDirichlet;
pub use gamma::Gamma;
pub use pitman_yor::PitmanYor;

/// The optimal q of the weights given counts, and what it contributes. Where weights have one value, not a distribution,
/// expectations are that value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Allocation {
    /// E log w_k, (K,), nats; minus infinity for a component that a point estimate leaves without weight.
    pub expected_log_weights: Vec<f64>,
    /// E w_k, (K,).
    pub expected_weights: Vec<f64>,
    /// 1 - sum E w_k: the expected mass of all components beyond K.
    pub leftover: f64,
    /// KL(q || p), nats; minus the log prior density of a point estimate.
    pub divergence: f64,
    /// The collapsed bound L*(N), `sum N_k E log w_k - divergence` at this optimum, nats; with a tail, its count times its
    /// log weight is in the sum.
    pub bound: f64,
    /// q of the concentration, where it has a prior.
    pub concentration: Option<Gamma>,
    /// Log weight of the infinite tail as one more column of scores, nats, for a process that gives it responsibilities.
    pub tail_log_weight: Option<f64>,
}

/// A prior on the weights of the components.
pub trait Process: Debug + Send + Sync {
    /// Which bound the ELBO under this process is: only equal kinds may be compared.
    fn bound(&self) -> &'static str;
    /// The number of components where the prior fixes it.
    fn n_components(&self) -> Option<usize> {
        None
    }
    /// The concentration.
    fn concentration(&self) -> Concentration;
    /// Whether units may belong to the components beyond K.
    fn has_tail(&self) -> bool {
        false
    }
    /// Whether more components are a larger family of the same bound, so that bounds of different numbers of them compare.
    fn is_nested(&self) -> bool;
    /// Whether the bound depends on the order of the components; it then mostly wants falling counts.
    fn is_ordered(&self) -> bool;
    /// Refuses an objective that this prior does not serve.
    ///
    /// # Errors
    /// [`Error::NotSupported`] saying why.
    fn check_objective(&self, objective: Objective) -> Result<()>;
    /// The optimal q given expected counts in stick order, and the tail's, which is 0 where there is no tail; none is below
    /// zero. The objective is one that [`Process::check_objective`] lets pass.
    fn allocate(&self, counts: &[f64], tail: f64, objective: Objective) -> Allocation;
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

registry!(DirichletProcess, FiniteDirichlet, PitmanYor);

/// The error for an objective that a prior does not serve.
fn refused(objective: Objective, with: &str, reason: &str, allowed: &str) -> Error {
    Error::not_supported("objective", format!("objective={:?} with {with}", objective.name()), reason, allowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::Value;
    use crate::registry::{Feature, Kind};

    /// All processes, with each of their words in turn.
    fn all() -> Vec<(Entry, Option<(&'static str, &'static str)>, Arc<dyn Process>)> {
        let required = Parameters::from_pairs([("n_components", Value::Number(3.0)), ("discount", Value::Number(0.3))]);
        let mut built = Vec::new();
        for entry in ENTRIES {
            let words = entry.parameters.iter().flat_map(|parameter| match parameter.kind {
                Kind::Word(words) => words.iter().map(|&word| Some((parameter.name, word))).collect(),
                _ => Vec::new(),
            });
            for chosen in [None].into_iter().chain(words) {
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
            let moves = entry.support(Feature::Moves).is_some_and(|support| !support.fails(chosen));
            assert_eq!(moves, process.is_nested(), "{} {chosen:?}", entry.name);
            let fixed = entry.parameters.iter().any(|parameter| parameter.name == "n_components");
            assert_eq!(fixed, process.n_components().is_some(), "{}", entry.name);
        }
    }
}
