//! Observation models with their conjugate base measures: unit -> statistics, summary -> posterior,
//! posterior -> log weights of rows.
//!
//! A likelihood is one file and one line of the registry.

mod bounds;
mod drift;
mod gaussian;
mod kernel;
mod quadratic;
mod score_rows;
mod scoring;
mod wishart;
mod zero_mean_gaussian;

use std::fmt::Debug;
use std::sync::Arc;

use crate::data::Moments;
use crate::error::{Error, Result};
use crate::parameters::Parameters;
use crate::rng::Generator;
use crate::simd::{Lines, Scalar};
use crate::suffstats::Sufficient;

pub use bounds::PairBounds;
pub use drift::Drift;
pub use gaussian::Gaussian;
pub use scoring::{Block, NO_LEAD, Scorer, Scratch};
pub use zero_mean_gaussian::ZeroMeanGaussian;

/// How a likelihood is described by parameters: checked when the specification is made, completed when the data
/// are known.
pub trait Specification: Sized {
    /// Checks the parameters that are given, as far as that is possible without data.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] naming the parameter.
    fn check(parameters: &Parameters) -> Result<()>;

    /// Fills in the parameters that follow the data, and checks all of them against the data's columns.
    ///
    /// # Errors
    /// As [`Specification::check`].
    fn resolve(parameters: &Parameters, data: &Moments) -> Result<Parameters>;

    /// The likelihood of complete parameters for rows from which `origin` has been taken.
    ///
    /// # Errors
    /// As [`Specification::check`].
    fn build(parameters: &Parameters, origin: Vec<f64>) -> Result<Self>;
}

/// The conjugate mathematics of one component, in `f64`, from its summary alone.
pub trait Conjugate: Debug + Send + Sync {
    /// Number of columns of a row.
    fn dimension(&self) -> usize;
    /// Length of the statistics of one component (without the count).
    fn n_statistics(&self) -> usize;
    /// What is taken from every row before anything else, (D,); statistics are relative to it.
    fn origin(&self) -> &[f64];
    /// Adds `sum_i weights[i] T(rows_i)` to `statistics`; `rows` is (n, D), less the origin. In `f64` whatever the data
    /// are: where their covariance is nearly singular (patches whose own mean was removed), sums in `f32` are indefinite.
    fn accumulate(&self, rows: &[f64], weights: &[f64], statistics: &mut [f64], space: &mut Lines<f64>);
    /// c(lambda_0 + S) - c(lambda_0): log marginal likelihood of the component's units without their base
    /// measure (spec 1.0), nats.
    ///
    /// # Errors
    /// [`Error::Numerical`] where the posterior has no Cholesky factor.
    fn log_marginal(&self, component: Sufficient<'_>) -> Result<f64>;
    /// KL(q(phi_k) || p(phi_k)), nats.
    ///
    /// # Errors
    /// As [`Conjugate::log_marginal`].
    fn divergence_from_prior(&self, component: Sufficient<'_>) -> Result<f64>;
    /// Posterior parameters of all components in the data's own units, by the names of the specification.
    ///
    /// # Errors
    /// As [`Conjugate::log_marginal`].
    fn posterior_parameters(&self, components: &[Sufficient<'_>]) -> Result<Parameters>;
    /// One row drawn from the posterior predictive, in the data's own units.
    ///
    /// # Errors
    /// As [`Conjugate::log_marginal`].
    fn draw(&self, component: Sufficient<'_>, generator: &mut Generator) -> Result<Vec<f64>>;
    /// The same statistics measured from this likelihood's origin instead of `origin`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for `init` where the move costs the digits of the scatter.
    fn rebase(&self, component: Sufficient<'_>, origin: &[f64]) -> Result<Vec<f64>>;
}

/// What turns a posterior into the log weights of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Density {
    /// E_q log p(x | phi_k): variational inference.
    Expected,
    /// log p(x | lambda_k): the posterior predictive.
    Predictive,
    /// Minus the divergence of the row's smoothed statistics from the component's (spec 5.2): a Bregman
    /// divergence where the family allows it.
    Divergence,
}

/// A likelihood for rows of type `F`.
pub trait Likelihood<F: Scalar>: Conjugate {
    /// Packs components, each with a log weight to add, into the form that scores rows.
    ///
    /// # Errors
    /// [`Error::Numerical`] naming the component that has no Cholesky factor.
    fn scorer(
        &self,
        components: &[Sufficient<'_>],
        log_weights: &[f64],
        density: Density,
    ) -> Result<Box<dyn Scorer<F>>>;

    /// `sum_i masses[i] log h(rows_i)`, nats.
    fn log_base_measure(&self, rows: &[F], masses: &[f64]) -> f64;
}

macro_rules! registry {
    ($($name:literal => $likelihood:ty,)*) => {
        /// The names of all likelihoods.
        pub const NAMES: &[&str] = &[$($name),*];

        /// [`Specification::check`] of the likelihood called `name`.
        ///
        /// # Errors
        /// Also where there is none of that name.
        pub fn check(name: &str, parameters: &Parameters) -> Result<()> {
            match name {
                $($name => <$likelihood>::check(parameters),)*
                _ => Err(unknown(name)),
            }
        }

        /// [`Specification::resolve`] of the likelihood called `name`.
        ///
        /// # Errors
        /// Also where there is none of that name.
        pub fn resolve(name: &str, parameters: &Parameters, data: &Moments) -> Result<Parameters> {
            match name {
                $($name => <$likelihood>::resolve(parameters, data),)*
                _ => Err(unknown(name)),
            }
        }

        /// [`Specification::build`] of the likelihood called `name`.
        ///
        /// # Errors
        /// Also where there is none of that name.
        pub fn build<F: Scalar>(
            name: &str,
            parameters: &Parameters,
            origin: Vec<f64>,
        ) -> Result<Arc<dyn Likelihood<F>>> {
            match name {
                $($name => Ok(Arc::new(<$likelihood>::build(parameters, origin)?)),)*
                _ => Err(unknown(name)),
            }
        }
    };
}

registry! {
    "Gaussian" => Gaussian,
    "ZeroMeanGaussian" => ZeroMeanGaussian,
}

fn unknown(name: &str) -> Error {
    Error::invalid("likelihood", format!("{name:?}"), format!("one of {}", NAMES.join(", ")))
}
