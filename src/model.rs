//! A model: a likelihood and a process.

mod parameter_prior;
mod with_background;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::background::{self, Background};
use crate::data::{Allowed, Coordinates, Histogram, Moments};
use crate::error::{Error, Result};
use crate::likelihood::{self, Frame, Likelihood};
use crate::parameters::{Parameters, Value};
use crate::process::{self, Allocation, Documents, LabelLaw, Partitions, Weights};
use crate::registry::{Feature, PRIOR, RESOLUTION};
use crate::simd::Scalar;
use crate::suffstats::Summary;

pub use crate::objective::Objective;
pub use parameter_prior::ParameterPrior;

/// A name in the registry and parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Named {
    /// The name.
    pub name: String,
    /// The parameters.
    pub parameters: Parameters,
}

impl Named {
    /// Adds the parameters of a likelihood that are missing in files of earlier versions, as absent.
    pub fn add_absent(&mut self) {
        for entry in likelihood::ENTRIES.iter().filter(|entry| entry.name == self.name) {
            for parameter in [PRIOR, RESOLUTION].iter().filter(|one| entry.parameters.contains(one)) {
                self.parameters.0.entry(parameter.name.to_owned()).or_insert(Value::Absent);
            }
        }
    }
}

/// A mixture as specified by the user, or with all parameters filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Specification {
    /// The likelihood.
    pub likelihood: Named,
    /// The process.
    pub process: Named,
    /// The objective.
    pub objective: Objective,
    /// Whether rows may have missing values (NaN).
    pub missing: bool,
    /// The parameters of the base measure to estimate, once the data are known; `None` if it is fixed.
    pub estimated: Option<Estimated>,
    /// The parameter of the likelihood that samplers learn; the parameters have a number in its place.
    #[serde(skip)]
    pub learned: Option<ParameterPrior>,
    /// The counts of all rows, for a likelihood that needs them.
    pub values: Option<Arc<Histogram>>,
    /// The parameters of the background, if there is one.
    pub background: Option<Parameters>,
}

/// The estimated part of a base measure (mathematics 10).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimated {
    /// Names of the estimated parameters.
    pub free: Vec<String>,
    /// All parameters at their defaults: the start of the estimation, towards which the guard pulls.
    pub start: Parameters,
}

impl Specification {
    /// A mixture with all parameters left to their defaults and to the data, for variational inference.
    #[must_use]
    pub fn new(likelihood: &str, process: &str) -> Self {
        let named = |name: &str| Named { name: name.to_owned(), parameters: Parameters::default() };
        Self {
            likelihood: named(likelihood),
            process: named(process),
            objective: Objective::Variational,
            missing: false,
            estimated: None,
            learned: None,
            values: None,
            background: None,
        }
    }

    /// The specification with a prior of a parameter of the likelihood apart from its parameters.
    ///
    /// # Errors
    /// As [`ParameterPrior::apart`].
    pub fn with_prior_apart(self) -> Result<Self> {
        let (parameters, learned) = ParameterPrior::apart(&self.likelihood.name, &self.likelihood.parameters)?;
        Ok(Self { learned, ..self.with_base(parameters) })
    }

    /// Parameters of its likelihood with the prior of one of them, if it has one.
    #[must_use]
    pub fn with_prior(&self, parameters: &Parameters) -> Parameters {
        self.learned.map_or_else(|| parameters.clone(), |learned| learned.put_back(parameters))
    }

    /// Returns the specification with all data-dependent parameters filled in.
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] naming the parameter.
    pub fn resolve(&self, data: &Moments) -> Result<Self> {
        let Named { name, parameters: given } = &self.likelihood;
        self.check_resolution()?;
        let ruled = self.by_rule(data)?;
        let free = if self.can_estimate()? { likelihood::estimated(name, given)? } else { Vec::new() };
        let start = || ruled.likelihood.parameters.clone();
        let estimated = (!free.is_empty()).then(|| Estimated { free, start: start() });
        Ok(Self { estimated, ..ruled })
    }

    /// Returns the specification with all data-dependent parameters set to their defaults, without estimation by
    /// evidence.
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] naming the parameter.
    pub fn by_rule(&self, data: &Moments) -> Result<Self> {
        let Named { name, parameters: given } = &self.likelihood;
        let alike = self.columns_alike(data.dimension())?;
        let background = self.background.as_ref().map(|given| background::resolve(given, data, &alike)).transpose()?;
        let values = data.values.clone();
        Ok(Self { values, background, ..self.with_base(likelihood::resolve(name, given, data)?) })
    }

    /// Whether the resolution of columns is to be found in the data: the objective is variational, and no resolution is
    /// given.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an unknown likelihood.
    pub fn seeks_resolution(&self) -> Result<bool> {
        let Named { name, parameters } = &self.likelihood;
        let sought = likelihood::resolutions(name, parameters)?.iter().any(|name| parameters.is_absent(name));
        Ok(self.objective == Objective::Variational && sought)
    }

    /// Refuses a resolution with point estimates, whose density is defined for rows and not for cells.
    fn check_resolution(&self) -> Result<()> {
        let Named { name, parameters } = &self.likelihood;
        let mut given = Vec::new();
        for part in likelihood::members(name, parameters)? {
            given.extend(part.parameters(parameters).numbers(&RESOLUTION, None)?.unwrap_or_default());
        }
        if self.objective == Objective::Variational || given.iter().all(|width| *width == 0.0) {
            return Ok(());
        }
        let found = format!("a resolution with objective={:?}", self.objective.name());
        Err(Error::not_supported(
            "resolution",
            found,
            "point estimates use the density of rows, not of cells",
            "resolution=0",
        ))
    }

    /// The specification with other parameters of its likelihood.
    #[must_use]
    pub fn with_base(&self, parameters: Parameters) -> Self {
        Self { likelihood: Named { name: self.likelihood.name.clone(), parameters }, ..self.clone() }
    }

    /// The specification with exact values, as closed marginal likelihoods need: no rounding cells (mathematics 10.5).
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an unknown likelihood.
    pub fn without_cells(self) -> Result<Self> {
        let mut parameters = self.likelihood.parameters.clone();
        for name in likelihood::resolutions(&self.likelihood.name, &parameters)? {
            parameters.0.insert(name, Value::Number(0.0));
        }
        Ok(self.with_base(parameters))
    }

    /// Sets the estimated parameters as stored in a file: names, and their initial values.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for names that cannot be estimated, or invalid values.
    pub fn set_estimated(&mut self, free: Vec<String>, values: Parameters) -> Result<()> {
        let Named { name, parameters } = &self.likelihood;
        let known = likelihood::estimable(name, parameters)?;
        if let Some(other) = free.iter().find(|other| !known.contains(other) || values.is_absent(other)) {
            return Err(Error::invalid("estimated", format!("{other:?}"), format!("among {}", known.join(", "))));
        }
        let mut start = parameters.clone();
        start.0.extend(values.0);
        likelihood::check(name, &start)?;
        self.estimated = Some(Estimated { free, start });
        Ok(())
    }

    /// Whether the base measure can be estimated. In topic models, that of words is estimated by marginal likelihood
    /// even if topics are point estimates.
    fn can_estimate(&self) -> Result<bool> {
        Ok(self.objective == Objective::Variational || self.documents()?.is_some())
    }

    /// Converts the specification to coordinates.
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] naming a parameter whose size does not match the data.
    pub fn in_coordinates(&self, coordinates: &Coordinates) -> Result<Self> {
        let Named { name, parameters } = &self.likelihood;
        let lowered = |given| likelihood::lowered(&background::ENTRY, given, coordinates);
        let background = self.background.as_ref().map(lowered).transpose()?;
        Ok(Self { background, ..self.with_base(likelihood::in_coordinates(name, parameters, coordinates)?) })
    }

    /// Returns the allowed values of rows.
    pub fn allowed(&self) -> Result<Allowed> {
        likelihood::allowed(&self.likelihood.name, &self.likelihood.parameters)
    }

    /// Builds the model of a complete specification for rows from which `origin` is subtracted.
    pub fn build<F: Scalar>(&self, origin: Vec<f64>) -> Result<Model<F>> {
        let documents = self.documents()?;
        let (missing, words, values) = (self.missing, documents.is_some(), self.values.clone());
        let frame = Frame { origin, missing, words, values };
        let Named { name, parameters } = &self.likelihood;
        let likelihood: Arc<dyn Likelihood<F>> = likelihood::build(name, parameters, frame.clone())?;
        let background = self.background.as_ref().map(|given| Background::build(given, frame.origin.len()));
        if self.objective == Objective::Map {
            likelihood.check_mode()?;
        }
        let base = BaseMeasure {
            frame,
            likelihood: name.clone(),
            parameters: parameters.clone(),
            background: self.background.clone(),
            estimated: self.estimated.clone(),
            is_held: false,
        };
        Ok(Model {
            likelihood,
            background: background.transpose()?.map(Arc::new),
            process: self.weights()?,
            documents,
            objective: self.objective,
            log_volume: 0.0,
            log_jacobian: 0.0,
            base: Arc::new(base),
        })
    }

    /// Builds the model for rows in coordinates, from which `origin` is subtracted; its bound is in the data's units.
    pub fn build_in<F: Scalar>(&self, origin: Vec<f64>, coordinates: &Coordinates) -> Result<Model<F>> {
        let Named { name, parameters } = &self.likelihood;
        let log_jacobian = match self.objective {
            Objective::Map => likelihood::log_jacobian(name, parameters, coordinates)?,
            Objective::Variational | Objective::Ml => 0.0,
        };
        Ok(Model { log_volume: coordinates.log_volume(), log_jacobian, ..self.build(origin)? })
    }

    /// Refuses a prior of a parameter of the likelihood `with` what does not learn it.
    ///
    /// # Errors
    /// [`Error::NotSupported`] naming the parameter.
    pub fn check_learns_nothing(&self, with: &str, allowed: &str) -> Result<()> {
        let Some(ParameterPrior { name, .. }) = self.learned else { return Ok(()) };
        let found = format!("a Gamma prior on the {name} of {} for {with}", self.likelihood.name);
        Err(Error::not_supported(name, found, "only samplers learn it", allowed))
    }

    /// Whether there is a column behind the components: a background, or the tail of the process.
    ///
    /// # Errors
    /// As [`Specification::weights`].
    pub fn has_tail(&self) -> Result<bool> {
        Ok(self.background.is_some() || self.weights()?.has_tail())
    }

    /// Builds the process as a prior on weights.
    ///
    /// # Errors
    /// As [`process::build`], and [`Error::NotSupported`] if it does not support the objective, or has no weights with
    /// a bound.
    pub fn weights(&self) -> Result<Arc<dyn Weights>> {
        self.check_learns_nothing("a fit", "sb.sample, or a number")?;
        let process = process::build(&self.process.name, &self.process.parameters)?;
        let of_documents = process.clone().documents().map(|documents| documents as Arc<dyn Weights>);
        let Some(weights) = process.weights().or(of_documents) else {
            let (found, reason) = (format!("a fit with {}", self.process.name), "it has no weights with a bound");
            return Err(Error::not_supported(
                "process",
                found,
                reason,
                "sb.sample, which draws from its exact posterior, or a DirichletProcess or FiniteDirichlet",
            ));
        };
        weights.check_objective(self.objective)?;
        self.check_seen()?;
        self.check_background(weights.as_ref())?;
        Ok(weights)
    }

    /// Whether a part of rows is not seen: by the likelihood, or missing values that it imputes.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an unknown likelihood.
    pub fn hides(&self) -> Result<bool> {
        let Named { name, parameters } = &self.likelihood;
        let hides = |member: &likelihood::Member| {
            member.entry.support(Feature::Hidden).is_some()
                || self.missing && member.entry.support(Feature::Imputed).is_some()
        };
        Ok(likelihood::members(name, parameters)?.iter().any(hides))
    }

    /// Refuses point estimates of components if a part of each row is not seen.
    fn check_seen(&self) -> Result<()> {
        let Named { name, .. } = &self.likelihood;
        let is_seen = self.objective == Objective::Variational || !self.hides()?;
        if is_seen {
            return Ok(());
        }
        let reason = "a part of each row is not seen, and has a distribution";
        let values = if self.missing { " and missing values" } else { "" };
        let found = format!("objective={:?} with {name}{values}", self.objective.name());
        Err(Error::not_supported("objective", found, reason, "\"variational\""))
    }

    /// Builds the process as a prior on the weights of every document, for a topic model.
    ///
    /// # Errors
    /// As [`process::build`], and [`Error::NotSupported`] for a likelihood without words.
    pub fn documents(&self) -> Result<Option<Arc<dyn Documents>>> {
        let documents = process::build(&self.process.name, &self.process.parameters)?.documents();
        let has_words = likelihood::entry(&self.likelihood.name)?.faces.contains(&"emissions");
        if documents.is_some() && !has_words {
            let found = format!("{} with {}", self.likelihood.name, self.process.name);
            let reason = "its rows have no words that topics could share";
            return Err(Error::not_supported("likelihood", found, reason, likelihood::capable_of("emissions")));
        }
        Ok(documents)
    }

    /// Builds the process as a distribution over labels, which a background does not have.
    ///
    /// # Errors
    /// As [`process::build`] and [`LabelLaw::of`]; [`Error::NotSupported`] for a background.
    pub fn law(&self) -> Result<LabelLaw> {
        if self.background.is_some() {
            let reason = "they give every row to a cluster";
            let found = "a background with samplers and hierarchies";
            return Err(Error::not_supported("background", found, reason, "background=None, or sb.fit"));
        }
        LabelLaw::of(process::build(&self.process.name, &self.process.parameters)?, &self.process.name)
    }

    /// Builds the process as a distribution over partitions.
    ///
    /// # Errors
    /// As [`Specification::law`], and [`Error::NotSupported`] if it has no partition probabilities.
    pub fn partitions(&self) -> Result<Arc<dyn Partitions>> {
        self.law()?.partitions().cloned()
    }

    /// Returns the kind of bound that the objective is. Only bounds of equal kind may be compared.
    pub fn bound(&self) -> Result<&'static str> {
        let weights = self.weights()?;
        Ok(if self.objective == Objective::Variational { weights.bound() } else { self.objective.name() })
    }
}

/// The base measure of a model: the name and parameters of its likelihood.
#[derive(Debug, Clone, PartialEq)]
pub struct BaseMeasure {
    likelihood: String,
    frame: Frame,
    /// All parameters.
    pub parameters: Parameters,
    /// The parameters of the background, if there is one.
    pub background: Option<Parameters>,
    /// The estimated part of the parameters.
    pub estimated: Option<Estimated>,
    /// Whether that part is held at its current values.
    pub is_held: bool,
}

/// A mixture ready to compute with rows of type `F`.
#[derive(Debug, Clone)]
pub struct Model<F: Scalar> {
    /// The likelihood.
    pub likelihood: Arc<dyn Likelihood<F>>,
    /// The background, if there is one.
    pub background: Option<Arc<Background>>,
    /// The process, as a prior on weights.
    pub process: Arc<dyn Weights>,
    /// The process as a prior on the weights of every document, for a topic model.
    pub documents: Option<Arc<dyn Documents>>,
    /// The objective.
    pub objective: Objective,
    /// Correction of log densities per row, to be subtracted: log of the volume, in the data's units, of one unit of
    /// volume in coordinates. The bound includes it; scores do not.
    pub log_volume: f64,
    /// Log Jacobian, added to the log prior density of a component's point estimate in the data's units.
    pub log_jacobian: f64,
    /// The base measure.
    pub base: Arc<BaseMeasure>,
}

impl<F: Scalar> Model<F> {
    /// Returns the same model with other parameters of its base measure.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if they are invalid.
    pub fn with_base(&self, parameters: Parameters) -> Result<Self> {
        let likelihood = likelihood::build(&self.base.likelihood, &parameters, self.base.frame.clone())?;
        Ok(Self { likelihood, base: Arc::new(BaseMeasure { parameters, ..(*self.base).clone() }), ..self.clone() })
    }

    /// The same model with only the parameters `free` of its base measure estimated.
    #[must_use]
    pub fn estimating(&self, free: Vec<String>) -> Self {
        let estimated = self.base.estimated.clone().map(|estimated| Estimated { free, ..estimated });
        Self { base: Arc::new(BaseMeasure { estimated, ..(*self.base).clone() }), ..self.clone() }
    }

    /// The same model whose base measure is held, or estimated again.
    #[must_use]
    pub fn holding(&self, is_held: bool) -> Self {
        Self { base: Arc::new(BaseMeasure { is_held, ..(*self.base).clone() }), ..self.clone() }
    }

    /// The frame of its likelihood.
    pub fn frame(&self) -> Frame {
        self.base.frame.clone()
    }

    /// The optimal q of the weights given a summary.
    pub fn allocate(&self, summary: &Summary) -> Allocation {
        // Rounding of sums and differences may leave counts of emptied components below zero.
        let counts: Vec<f64> = summary.counts.iter().map(|count| count.max(0.0)).collect();
        if let Some(documents) = &self.documents {
            return documents.allocate_documents(&counts, summary.documents.as_ref());
        }
        let allocation = self.process.allocate(&counts, self.count_beyond(summary), self.objective);
        let Some(background) = &self.background else { return allocation };
        background.attach(allocation, summary)
    }
}
