//! A model: a likelihood and a process.

use std::sync::Arc;

use crate::data::{Allowed, Coordinates, Moments};
use crate::error::{Error, Result};
use crate::likelihood::{self, Frame, Likelihood};
use crate::parameters::Parameters;
use crate::process::{self, Allocation, Weights};
use crate::simd::Scalar;
use crate::suffstats::Summary;

pub use crate::objective::Objective;

/// A name of the registry and parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Named {
    /// The name.
    pub name: String,
    /// The parameters.
    pub parameters: Parameters,
}

/// A mixture as the user specified it, or with all parameters filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Specification {
    /// The likelihood.
    pub likelihood: Named,
    /// The process.
    pub process: Named,
    /// What is maximised.
    pub objective: Objective,
    /// Whether rows may have missing values (NaN).
    pub missing: bool,
}

impl Specification {
    /// The specification with every parameter that follows the data filled in.
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] naming the parameter.
    pub fn resolve(&self, data: &Moments) -> Result<Self> {
        let parameters = likelihood::resolve(&self.likelihood.name, &self.likelihood.parameters, data)?;
        Ok(Self { likelihood: Named { name: self.likelihood.name.clone(), parameters }, ..self.clone() })
    }

    /// The specification for rows in coordinates.
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] naming a parameter of another size than the data.
    pub fn in_coordinates(&self, coordinates: &Coordinates) -> Result<Self> {
        let Named { name, parameters } = &self.likelihood;
        let parameters = likelihood::in_coordinates(name, parameters, coordinates)?;
        Ok(Self { likelihood: Named { name: name.clone(), parameters }, ..self.clone() })
    }

    /// The values that rows may have.
    ///
    /// # Errors
    /// As [`Specification::resolve`].
    pub fn allowed(&self) -> Result<Allowed> {
        likelihood::allowed(&self.likelihood.name, &self.likelihood.parameters)
    }

    /// The model of a complete specification for rows less `origin`.
    ///
    /// # Errors
    /// As [`Specification::resolve`].
    pub fn build<F: Scalar>(&self, origin: Vec<f64>) -> Result<Model<F>> {
        let frame = Frame { origin, missing: self.missing };
        let likelihood: Arc<dyn Likelihood<F>> =
            likelihood::build(&self.likelihood.name, &self.likelihood.parameters, frame)?;
        if self.objective == Objective::Map {
            likelihood.check_mode()?;
        }
        Ok(Model {
            likelihood,
            process: self.weights()?,
            objective: self.objective,
            log_volume: 0.0,
            log_jacobian: 0.0,
        })
    }

    /// The model for rows less `origin` in coordinates, whose bound is in the data's units.
    ///
    /// # Errors
    /// As [`Specification::resolve`].
    pub fn build_in<F: Scalar>(&self, origin: Vec<f64>, coordinates: &Coordinates) -> Result<Model<F>> {
        let Named { name, parameters } = &self.likelihood;
        let log_jacobian = match self.objective {
            Objective::Map => likelihood::log_jacobian(name, parameters, coordinates)?,
            Objective::Variational | Objective::Ml => 0.0,
        };
        Ok(Model { log_volume: coordinates.log_volume(), log_jacobian, ..self.build(origin)? })
    }

    /// The process as a prior on weights that serves the objective.
    ///
    /// # Errors
    /// As [`process::build`], and [`Error::NotSupported`] where it does not, or where it has no weights with a bound.
    pub fn weights(&self) -> Result<Arc<dyn Weights>> {
        let process = process::build(&self.process.name, &self.process.parameters)?;
        let Some(weights) = process.weights() else {
            let (found, reason) = (format!("a fit with {}", self.process.name), "it has no weights with a bound");
            return Err(Error::not_supported("process", found, reason, "a DirichletProcess, or a sampler"));
        };
        weights.check_objective(self.objective)?;
        Ok(weights)
    }

    /// Which bound the value of the objective is: only equal kinds may be compared.
    ///
    /// # Errors
    /// As [`Specification::weights`].
    pub fn bound(&self) -> Result<&'static str> {
        let weights = self.weights()?;
        Ok(if self.objective == Objective::Variational { weights.bound() } else { self.objective.name() })
    }
}

/// A mixture ready to compute with rows of type `F`.
#[derive(Debug, Clone)]
pub struct Model<F: Scalar> {
    /// The likelihood.
    pub likelihood: Arc<dyn Likelihood<F>>,
    /// The process, as a prior on weights.
    pub process: Arc<dyn Weights>,
    /// What is maximised.
    pub objective: Objective,
    /// Log of the volume of the data that the unit of volume of the rows fills: what a log density of the rows has too
    /// much, a row. The bound counts it; scores do not.
    pub log_volume: f64,
    /// What the log density of a component's point estimate gains in the data's units.
    pub log_jacobian: f64,
}

impl<F: Scalar> Model<F> {
    /// The optimal q of the weights given a summary.
    pub fn allocate(&self, summary: &Summary) -> Allocation {
        // Counts of emptied components may be left below zero by the rounding of sums and differences.
        let counts: Vec<f64> = summary.counts.iter().map(|count| count.max(0.0)).collect();
        let tail = summary.tail.filter(|_| self.process.has_tail()).map_or(0.0, |tail| tail.count.max(0.0));
        self.process.allocate(&counts, tail, self.objective)
    }
}
