//! A model: a likelihood and a process.

use std::sync::Arc;

use crate::data::Moments;
use crate::error::Result;
use crate::likelihood::{self, Likelihood};
use crate::parameters::Parameters;
use crate::process::{self, Process};
use crate::simd::Scalar;

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
}

impl Specification {
    /// The specification with every parameter that follows the data filled in.
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] naming the parameter.
    pub fn resolve(&self, data: &Moments) -> Result<Self> {
        let parameters = likelihood::resolve(&self.likelihood.name, &self.likelihood.parameters, data)?;
        Ok(Self { likelihood: Named { name: self.likelihood.name.clone(), parameters }, process: self.process.clone() })
    }

    /// The model of a complete specification for rows less `origin`.
    ///
    /// # Errors
    /// As [`Specification::resolve`].
    pub fn build<F: Scalar>(&self, origin: Vec<f64>) -> Result<Model<F>> {
        Ok(Model {
            likelihood: likelihood::build(&self.likelihood.name, &self.likelihood.parameters, origin)?,
            process: process::build(&self.process.name, &self.process.parameters)?,
        })
    }
}

/// A mixture ready to compute with rows of type `F`.
#[derive(Debug, Clone)]
pub struct Model<F: Scalar> {
    /// The likelihood.
    pub likelihood: Arc<dyn Likelihood<F>>,
    /// The process.
    pub process: Arc<dyn Process>,
}
