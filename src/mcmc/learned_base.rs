//! A parameter of the base measure that chains learn, given the partition (mathematics 8.15).

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::grounds::Grounds;
use crate::likelihood::{self, Frame, Likelihood};
use crate::model::{Named, ParameterPrior};
use crate::process::{Hyperparameters, ProcessState, slice_between};
use crate::rng::Draws;
use crate::suffstats::Sufficient;

/// The parameter, and what the likelihood at each of its values needs.
#[derive(Debug, Clone)]
pub struct LearnedBase {
    learned: ParameterPrior,
    likelihood: Named,
    frame: Frame,
}

impl LearnedBase {
    /// The learned parameter of the likelihood of `grounds`, if it has one.
    pub fn of(grounds: &Grounds) -> Option<Self> {
        let specification = &grounds.specification;
        let (likelihood, frame) = (specification.likelihood.clone(), grounds.frame());
        specification.learned.map(|learned| Self { learned, likelihood, frame })
    }

    /// The name of the parameter.
    pub fn name(&self) -> &'static str {
        self.learned.name
    }

    /// The value with which chains start.
    pub fn start(&self) -> f64 {
        self.learned.start()
    }

    /// Whether chains can have this value.
    pub fn has(&self, value: f64) -> bool {
        let (least, greatest) = self.learned.limits();
        (least..=greatest).contains(&value)
    }

    /// The likelihood at a value.
    ///
    /// # Errors
    /// As [`likelihood::build`].
    pub fn likelihood(&self, value: f64) -> Result<Arc<dyn Likelihood<f64>>> {
        let Named { name, parameters } = &self.likelihood;
        likelihood::build(name, &self.learned.at(parameters, value), self.frame.clone())
    }

    /// Draws a new value given the rows of each cluster, whose parameters are integrated out: a slice-sampling step of
    /// its logarithm. Values for which the marginal likelihood cannot be computed have no density.
    pub fn update(&self, value: f64, clusters: &[Sufficient<'_>], draws: &mut dyn Draws) -> f64 {
        let log_density = |log_value: f64| {
            let value = log_value.exp();
            let marginals = self.likelihood(value).and_then(|likelihood| {
                clusters.iter().map(|cluster| likelihood.log_marginal(*cluster)).sum::<Result<f64>>()
            });
            // The density of the logarithm has the value as a factor.
            marginals.map_or(f64::NEG_INFINITY, |sum| sum + self.learned.prior.log_density(value) + log_value)
        };
        let (least, greatest) = self.learned.limits();
        let drawn = slice_between(log_density, value.ln(), (least.ln(), greatest.ln()), draws);
        drawn.exp().clamp(least, greatest)
    }
}

/// The values that a chain reports: those of its process, and the learned value.
pub(super) fn traced(process: &dyn Hyperparameters, state: &ProcessState, learned: Option<f64>) -> Vec<f64> {
    process.traced(state).into_iter().map(|(_, value)| value).chain(learned).collect()
}

/// Separates the values that a draw reports into those of the process and the learned value.
///
/// # Errors
/// [`Error::Format`] for values that no chain reports.
pub(super) fn split<'a>(learned: Option<&LearnedBase>, traced: &'a [f64]) -> Result<(&'a [f64], Option<f64>)> {
    let Some(learned) = learned else { return Ok((traced, None)) };
    let found = traced.split_last().filter(|(value, _)| learned.has(**value));
    let (value, of_process) = found.ok_or_else(|| Error::Format {
        message: format!("learned values that the {} does not have", learned.name()),
    })?;
    Ok((of_process, Some(*value)))
}
