//! The weights of the components: the part of a process that variational inference uses.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::objective::Objective;
use crate::process::{Concentration, FreeSticks, Gamma, Process};
use crate::rng::Generator;

/// The optimal q of the weights given counts, and its contribution to the bound. For a point estimate, expectations are
/// the estimated value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Allocation {
    /// E log w_k, (K,), nats; minus infinity for a component whose point estimate is zero.
    pub expected_log_weights: Vec<f64>,
    /// E w_k, (K,).
    pub expected_weights: Vec<f64>,
    /// The expected mass of all components beyond K. With `expected_weights` and `background_weight` it sums to one.
    pub leftover: f64,
    /// KL(q || p), nats; for a point estimate, the negative log prior density.
    pub divergence: f64,
    /// The collapsed bound L*(N), `sum N_k E log w_k - divergence` at this optimum, nats. With a tail, the sum includes
    /// the tail's count times its log weight.
    pub bound: f64,
    /// q of the concentration, if it has a prior.
    pub concentration: Option<Gamma>,
    /// Log weight of the last column of scores, nats: the infinite tail, for a process that gives it responsibilities,
    /// or the background.
    pub tail_log_weight: Option<f64>,
    /// E eps, the expected weight of the background; 0 without one.
    pub background_weight: f64,
    /// The prior pseudo-counts a of the weights of every document, (K,), if documents have their own weights.
    pub of_documents: Option<Vec<f64>>,
    /// The term of the objective that keeps an estimated concentration finite and positive, nats (mathematics 11.6).
    pub guard: f64,
}

/// Fills weights, (K,), with a draw from their q.
pub type WeightSource = Box<dyn Fn(&mut [f64], &mut Generator) + Send + Sync>;

/// A process as a prior on the weights of the components, with a bound (mathematics 2).
pub trait Weights: Process {
    /// Kind of bound that the ELBO is under this process. Only bounds of equal kind may be compared.
    fn bound(&self) -> &'static str;
    /// The concentration, if the process has one.
    fn concentration(&self) -> Option<Concentration>;
    /// Whether units may belong to the components beyond K.
    fn has_tail(&self) -> bool {
        false
    }
    /// Whether a larger number of components gives a larger family of the same bound, so that bounds with different
    /// numbers of components can be compared.
    fn is_nested(&self) -> bool;
    /// Whether the bound depends on the order of the components. Decreasing counts are then usually optimal.
    fn is_ordered(&self) -> bool;
    /// The sticks, if their parameters are known and none is fixed. The change of the variational bound by a merge then
    /// has a closed form.
    fn free_sticks(&self) -> Option<FreeSticks> {
        None
    }
    /// Refuses an objective that this prior does not support.
    ///
    /// # Errors
    /// [`crate::Error::NotSupported`] giving the reason.
    fn check_objective(&self, objective: Objective) -> Result<()>;
    /// Returns the optimal q given nonnegative expected counts in stick order, and the count of the tail, which is 0
    /// without a tail. The objective must pass [`Weights::check_objective`].
    fn allocate(&self, counts: &[f64], tail: f64, objective: Objective) -> Allocation;
    /// Returns a source of draws from the optimal q of the variational objective, for counts as in
    /// [`Weights::allocate`].
    ///
    /// # Errors
    /// [`crate::Error::NotSupported`] for weights without a posterior.
    fn weight_source(&self, counts: &[f64], tail: f64) -> Result<WeightSource>;
}
