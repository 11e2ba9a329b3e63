//! Priors on the weights: counts -> expected log weights and the allocation part of the bound.
//!
//! A process is one file and one line of the registry.

mod dirichlet_process;
mod finite_dirichlet;

use std::fmt::Debug;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::parameters::Parameters;

pub use dirichlet_process::DirichletProcess;
pub use finite_dirichlet::FiniteDirichlet;

/// The optimal q of the weights given counts, and what it contributes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Allocation {
    /// E log w_k, (K,), nats.
    pub expected_log_weights: Vec<f64>,
    /// E w_k, (K,).
    pub expected_weights: Vec<f64>,
    /// 1 - sum E w_k: the expected mass of all components beyond K.
    pub leftover: f64,
    /// KL(q || p), nats.
    pub divergence: f64,
    /// The collapsed bound L*(N), `sum N_k E log w_k - KL` at this optimum, nats.
    pub bound: f64,
}

/// A prior on the weights of the components.
pub trait Process: Debug + Send + Sync {
    /// Which bound the ELBO under this process is: only equal kinds may be compared.
    fn bound(&self) -> &'static str;
    /// The number of components where the prior fixes it.
    fn n_components(&self) -> Option<usize>;
    /// The concentration.
    fn concentration(&self) -> f64;
    /// The optimal q given expected counts in stick order.
    fn allocate(&self, counts: &[f64]) -> Allocation;
}

macro_rules! registry {
    ($($name:literal => $process:ty,)*) => {
        /// The names of all processes.
        pub const NAMES: &[&str] = &[$($name),*];

        /// The process called `name` with these parameters.
        ///
        /// # Errors
        /// [`Error::InvalidArgument`] naming the parameter, or where there is no process of that name.
        pub fn build(name: &str, parameters: &Parameters) -> Result<Arc<dyn Process>> {
            match name {
                $($name => Ok(Arc::new(<$process>::new(parameters)?)),)*
                _ => Err(Error::invalid("process", format!("{name:?}"), format!("one of {}", NAMES.join(", ")))),
            }
        }
    };
}

registry! {
    "DirichletProcess" => DirichletProcess,
    "FiniteDirichlet" => FiniteDirichlet,
}

/// The concentration parameter: a positive number, 1 by default.
fn concentration(parameters: &Parameters) -> Result<f64> {
    Ok(parameters.positive("concentration")?.unwrap_or(1.0))
}
