//! Observation models with their conjugate base measures: unit -> statistics, summary -> posterior,
//! posterior -> log weights of rows.
//!
//! A likelihood is one file and one line of the registry.

mod bernoulli;
mod counts;
mod diagonal_gaussian;
mod gamma;
mod gaussian;
mod known_covariance_gaussian;
mod multinomial;
mod normal_wishart;
mod poisson;
mod spherical_gaussian;
mod wishart;
mod zero_mean_gaussian;

use std::fmt::Debug;
use std::sync::Arc;

use crate::data::{Demands, Moments, RowBlock};
use crate::error::{Error, Result};
use crate::objective::Objective;
use crate::parameters::Parameters;
use crate::rng::Generator;
use crate::scoring::Scorer;
use crate::simd::{Lines, Scalar};
use crate::suffstats::Sufficient;

pub use bernoulli::Bernoulli;
pub use diagonal_gaussian::DiagonalGaussian;
pub use gaussian::Gaussian;
pub use known_covariance_gaussian::KnownCovarianceGaussian;
pub use multinomial::Multinomial;
pub use poisson::Poisson;
pub use spherical_gaussian::SphericalGaussian;
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

    /// What it asks of the data.
    const DEMANDS: Demands;

    /// The likelihood of complete parameters for rows from which `origin` has been taken.
    ///
    /// # Errors
    /// As [`Specification::check`].
    fn build(parameters: &Parameters, frame: Frame) -> Result<Self>;
}

/// What a likelihood is told beside its parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// What is taken from every row before anything else, (D,).
    pub origin: Vec<f64>,
    /// Whether rows may have holes: NaN, which then says nothing.
    pub holes: bool,
}

/// Point estimates of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Estimate {
    /// From posterior means, of a precision where there is one.
    Mean,
    /// The joint mode of the posterior in the mean and the precision (spec 2g).
    Mode,
    /// Of the largest likelihood.
    MaximumLikelihood,
}

/// What rows are drawn from.
#[derive(Debug, Clone, Copy)]
pub struct Draw<'a> {
    /// Point estimates, where it is not the posterior predictive.
    pub estimate: Option<Estimate>,
    /// The sum over all components: what one does not say of rows (how many words they have) is taken from there.
    pub all: Sufficient<'a>,
}

/// How rows are compared where the parts of a component start.
#[derive(Debug, Clone, PartialEq)]
pub enum Metric {
    /// By [`Density::Divergence`].
    Divergence,
    /// By Euclidean distance, each column times its entry, (D,).
    Columns(Vec<f64>),
    /// By 1 - cos^2 of the angle between them as seen through a lower-triangular matrix, (D, D) column by column: for rows
    /// of which only the directions in which they spread tell them apart.
    Angle(Vec<f64>),
}

/// What a point estimate contributes to its objective.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AtPoint {
    /// sum r log p(x | phi) without the base measure, nats.
    pub log_likelihood: f64,
    /// log p(phi), nats.
    pub log_prior: f64,
}

/// The conjugate mathematics of one component, in `f64`, from its summary alone.
pub trait Conjugate: Debug + Send + Sync {
    /// Number of columns of a row.
    fn dimension(&self) -> usize;
    /// Length of the statistics of one component (without the count).
    fn n_statistics(&self) -> usize;
    /// What is taken from every row before anything else, (D,); statistics are relative to it.
    fn origin(&self) -> &[f64];
    /// Adds `sum_i weights[i] T(rows_i)` to `statistics`. In `f64` whatever the data
    /// are: where their covariance is nearly singular (patches whose own mean was removed), sums in `f32` are indefinite.
    fn accumulate(&self, rows: RowBlock<'_, f64>, weights: &[f64], statistics: &mut [f64], space: &mut Lines<f64>);
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
    /// Refuses statistics that no rows can have, beyond what rounding leaves, as a file may hold them.
    ///
    /// # Errors
    /// [`Error::Format`] saying what is wrong.
    fn check_statistics(&self, _: &[Sufficient<'_>]) -> Result<()> {
        Ok(())
    }
    /// What the point estimate of an objective contributes to it.
    ///
    /// # Errors
    /// As [`Conjugate::log_marginal`].
    fn at_point(&self, component: Sufficient<'_>, estimate: Estimate) -> Result<AtPoint>;
    /// Refuses a prior whose density has no largest value, before `Objective::Map` looks for it.
    ///
    /// # Errors
    /// [`Error::NotSupported`] naming the parameter.
    fn check_mode(&self) -> Result<()>;
    /// Refuses a base measure without a closed marginal likelihood, by which moves are judged.
    ///
    /// # Errors
    /// [`Error::NotSupported`] naming the parameter.
    fn check_marginal(&self) -> Result<()> {
        Ok(())
    }
    /// How the rows of a component are compared where its parts start.
    ///
    /// # Errors
    /// As [`Conjugate::log_marginal`].
    fn metric(&self, _component: Sufficient<'_>) -> Result<Metric> {
        Ok(Metric::Divergence)
    }
    /// Point estimates of all components in the data's own units, by names of their own.
    ///
    /// # Errors
    /// As [`Conjugate::log_marginal`].
    fn point_estimates(&self, components: &[Sufficient<'_>], estimate: Estimate) -> Result<Parameters>;
    /// What a component adds to the objective, without the base measure, nats.
    ///
    /// # Errors
    /// As [`Conjugate::log_marginal`].
    fn gain(&self, component: Sufficient<'_>, objective: Objective) -> Result<f64> {
        match objective {
            Objective::Variational => self.log_marginal(component),
            Objective::Map => {
                self.at_point(component, Estimate::Mode).map(|point| point.log_likelihood + point.log_prior)
            }
            Objective::Ml => self.at_point(component, Estimate::MaximumLikelihood).map(|point| point.log_likelihood),
        }
    }
    /// What of it does not depend on the responsibilities, with the opposite sign: the divergence from the prior, minus the
    /// log prior of a point estimate, or nothing.
    ///
    /// # Errors
    /// As [`Conjugate::log_marginal`].
    fn cost(&self, component: Sufficient<'_>, objective: Objective) -> Result<f64> {
        match objective {
            Objective::Variational => self.divergence_from_prior(component),
            Objective::Map => self.at_point(component, Estimate::Mode).map(|point| -point.log_prior),
            Objective::Ml => Ok(0.0),
        }
    }
    /// Posterior parameters of all components in the data's own units, by the names of the specification.
    ///
    /// # Errors
    /// As [`Conjugate::log_marginal`].
    fn posterior_parameters(&self, components: &[Sufficient<'_>]) -> Result<Parameters>;
    /// Mean and variance of every column of the posterior predictive, in the data's own units, for a likelihood whose rows may
    /// have holes: there they do not depend on the other columns of the row.
    ///
    /// # Errors
    /// [`Error::NotSupported`] for the others.
    fn predictive_moments(&self, _: Sufficient<'_>) -> Result<(Vec<f64>, Vec<f64>)> {
        Err(Error::not_supported(
            "likelihood",
            "imputation for this likelihood",
            "its predictive distribution of a value depends on the other columns of the row",
            "DiagonalGaussian, Bernoulli or Poisson",
        ))
    }
    /// One row drawn from the posterior predictive or at point estimates, in the data's own units.
    ///
    /// # Errors
    /// As [`Conjugate::log_marginal`].
    fn draw(&self, component: Sufficient<'_>, from: Draw<'_>, generator: &mut Generator) -> Result<Vec<f64>>;
    /// The same statistics measured from this likelihood's origin instead of `origin`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for `init` where the move costs the digits of the scatter.
    fn rebase(&self, component: Sufficient<'_>, origin: &[f64]) -> Result<Vec<f64>>;
}

/// What turns a posterior into the log weights of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Density {
    /// What the local step of an objective uses: E_q log p(x | phi_k), or the log density at a point estimate.
    Expected(Objective),
    /// log p(x | phi) at point estimates.
    PlugIn(Estimate),
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
    fn log_base_measure(&self, rows: RowBlock<'_, F>, masses: &[f64]) -> f64;
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
            frame: Frame,
        ) -> Result<Arc<dyn Likelihood<F>>> {
            match name {
                $($name => Ok(Arc::new(<$likelihood>::build(parameters, frame)?)),)*
                _ => Err(unknown(name)),
            }
        }

        /// [`Specification::DEMANDS`] of the likelihood called `name`.
        ///
        /// # Errors
        /// Where there is none of that name.
        pub fn demands(name: &str) -> Result<Demands> {
            match name {
                $($name => Ok(<$likelihood>::DEMANDS),)*
                _ => Err(unknown(name)),
            }
        }
    };
}

registry! {
    "Bernoulli" => Bernoulli,
    "DiagonalGaussian" => DiagonalGaussian,
    "Gaussian" => Gaussian,
    "KnownCovarianceGaussian" => KnownCovarianceGaussian,
    "Multinomial" => Multinomial,
    "Poisson" => Poisson,
    "SphericalGaussian" => SphericalGaussian,
    "ZeroMeanGaussian" => ZeroMeanGaussian,
}

/// The error for moves with a base measure by which they cannot be judged.
fn no_marginal(with: &str, allowed: &str) -> Error {
    let reason = "it has no closed marginal likelihood to judge moves by";
    Error::not_supported("moves", format!("a move with {with}"), reason, format!("moves=() or {allowed}"))
}

fn unknown(name: &str) -> Error {
    Error::invalid("likelihood", format!("{name:?}"), format!("one of {}", NAMES.join(", ")))
}
