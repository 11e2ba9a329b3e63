//! The weights of the components: what variational inference asks of a process.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::objective::Objective;
use crate::process::{Concentration, Gamma, Process};

/// The optimal q of the weights given counts, and what it contributes. Where weights have one value, not a
/// distribution, expectations are that value.
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
    /// The collapsed bound L*(N), `sum N_k E log w_k - divergence` at this optimum, nats; with a tail, its count times
    /// its log weight is in the sum.
    pub bound: f64,
    /// q of the concentration, where it has a prior.
    pub concentration: Option<Gamma>,
    /// Log weight of the infinite tail as one more column of scores, nats, for a process that gives it
    /// responsibilities.
    pub tail_log_weight: Option<f64>,
    /// The prior pseudo-counts a of the weights of every document, (K,), where documents have weights of their own.
    pub of_documents: Option<Vec<f64>>,
    /// The term of the objective that keeps an estimated concentration from the infinities, nats (mathematics 11.6).
    pub guard: f64,
}

/// A process as a prior on the weights of the components, with a bound (mathematics 2).
pub trait Weights: Process {
    /// Which bound the ELBO under this process is: only equal kinds may be compared.
    fn bound(&self) -> &'static str;
    /// The concentration.
    fn concentration(&self) -> Concentration;
    /// Whether units may belong to the components beyond K.
    fn has_tail(&self) -> bool {
        false
    }
    /// Whether more components are a larger family of the same bound, so that bounds of different numbers of them
    /// compare.
    fn is_nested(&self) -> bool;
    /// Whether the bound depends on the order of the components; it then mostly wants falling counts.
    fn is_ordered(&self) -> bool;
    /// Refuses an objective that this prior does not serve.
    ///
    /// # Errors
    /// [`crate::Error::NotSupported`] saying why.
    fn check_objective(&self, objective: Objective) -> Result<()>;
    /// The optimal q given expected counts in stick order, and the tail's, which is 0 where there is no tail; none is
    /// below zero. The objective is one that [`Weights::check_objective`] lets pass.
    fn allocate(&self, counts: &[f64], tail: f64, objective: Objective) -> Allocation;
}
