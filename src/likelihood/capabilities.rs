//! Optional capabilities of a likelihood, and the errors for a capability that is missing.

use std::iter::Sum;
use std::ops::Range;

use rand::RngExt;
use rand_distr::StandardNormal;

use crate::data::RowBlock;
use crate::error::{Error, Result};
use crate::laws::Law;
use crate::likelihood::scores::{Density, Estimate, Scores};
use crate::likelihood::{Conjugate, Evidence, Urn, supporting};
use crate::objective::Objective;
use crate::parallel::Cancel;
use crate::parameters::{Parameters, Value};
use crate::registry::Feature;
use crate::rng::{Generator, Purpose, stream};
use crate::scoring::{Scorer, SparseScorer};
use crate::simd::Scalar;
use crate::suffstats::Sufficient;

/// A likelihood for rows of type `F`: its conjugate mathematics, and each capability, or `None` if it lacks it.
pub trait Likelihood<F: Scalar>: Conjugate {
    /// Scores for the local step.
    fn scores(&self) -> Option<&dyn Scores<F>> {
        None
    }

    /// Point estimates.
    fn points(&self) -> Option<&dyn PointEstimates> {
        None
    }

    /// A distance of its own for choosing where components start.
    fn seeding(&self) -> Option<&dyn Seeding> {
        None
    }

    /// Moments of missing values.
    fn imputation(&self) -> Option<&dyn Imputation> {
        None
    }

    /// Draws of rows.
    fn draws(&self) -> Option<&dyn RowDraws> {
        None
    }

    /// Draws of the parameters of components.
    fn parameter_draws(&self) -> Option<&dyn ParameterDraws> {
        None
    }

    /// Emission weights of single words, for topic models.
    fn emissions(&self) -> Option<&dyn Emissions> {
        None
    }

    /// Estimation of the base measure from the components.
    fn evidence(&self) -> Option<&dyn Evidence> {
        None
    }

    /// Clusters that rows join and leave one at a time. Requires a closed marginal likelihood.
    fn urn(&self) -> Option<&dyn Urn> {
        None
    }

    /// Distributions of rows in closed form.
    fn laws(&self) -> Option<&dyn Laws> {
        None
    }

    /// The likelihoods of blocks of columns, if they are independent given the component, each with what it sees of
    /// this component.
    fn blocks<'a>(&'a self, _component: Sufficient<'a>) -> Vec<(&'a dyn Likelihood<F>, Sufficient<'a>)> {
        Vec::new()
    }
}

/// The weight exp E log phi_kv of word v in topic k (at a point estimate phi_kv), as a product of two factors
/// (mathematics 11.3).
pub trait Emissions: Sync {
    /// Writes the factor of each word of a consecutive range that starts at `first`, given the topic's sums of these
    /// words.
    fn fill(&self, first: usize, sums: &[f64], objective: Objective, out: &mut [f64]);

    /// The factor shared by all words, given the topic's sum over all words.
    fn of_topic(&self, sum: f64, objective: Objective) -> f64;
}

/// Contribution of a point estimate to its objective.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AtPoint {
    /// sum r log p(x | phi) without the base measure, nats.
    pub log_likelihood: f64,
    /// log p(phi), nats.
    pub log_prior: f64,
}

impl Sum for AtPoint {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self { log_likelihood: 0.0, log_prior: 0.0 }, |sum, component| Self {
            log_likelihood: sum.log_likelihood + component.log_likelihood,
            log_prior: sum.log_prior + component.log_prior,
        })
    }
}

/// Point estimates of components.
pub trait PointEstimates {
    /// Contribution of a component's point estimate to its objective.
    fn at_point(&self, component: Sufficient<'_>, estimate: Estimate) -> Result<AtPoint>;

    /// Refuses a prior whose density has no maximum, before `Objective::Map` searches for it.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] naming the parameter.
    fn check_mode(&self) -> Result<()>;

    /// Returns the point estimates of all components in the data's own units, under names of their own.
    fn point_estimates(&self, components: &[Sufficient<'_>], estimate: Estimate) -> Result<Parameters>;
}

/// Distance between rows, used to seed the parts of a component.
#[derive(Debug, Clone, PartialEq)]
pub enum Metric {
    /// By [`Density::Divergence`].
    Divergence,
    /// Euclidean distance with each column multiplied by its entry, (D,).
    Columns(Vec<f64>),
    /// 1 - cos^2 of the angle between rows after multiplication by a lower-triangular matrix, (D, D) column by column.
    /// For rows that differ only in the directions in which they spread.
    Angle(Vec<f64>),
}

/// A distance for the rows of a component, for likelihoods where [`Metric::Divergence`] is unsuitable.
pub trait Seeding {
    /// Returns the distance for a component.
    fn metric(&self, component: Sufficient<'_>) -> Result<Metric>;
}

/// Moments of missing values, for a likelihood that accepts missing values.
pub trait Imputation {
    /// Mean and variance of every column of the posterior predictive, in the data's own units.
    fn predictive_moments(&self, component: Sufficient<'_>) -> Result<(Vec<f64>, Vec<f64>)>;

    /// The same, conditional on the present values of a row. `row` is relative to the origin and NaN where missing.
    /// Returns `None` if the present values are independent of the missing ones.
    fn moments_given(&self, _component: Sufficient<'_>, _row: &[f64]) -> Result<Option<(Vec<f64>, Vec<f64>)>> {
        Ok(None)
    }

    /// Draws rows from the posterior predictive conditional on the values of a row, as [`Imputation::moments_given`].
    fn source_given(&self, _component: Sufficient<'_>, _row: &[f64]) -> Result<Option<RowSource<'_>>> {
        Ok(None)
    }

    /// Each column of codes, and where the moments of the indicators of its levels are among all. Such a column has no
    /// moments of its own.
    fn levels(&self) -> Vec<(usize, Range<usize>)> {
        Vec::new()
    }
}

/// Distribution to draw rows from.
#[derive(Debug, Clone, Copy)]
pub struct Draw<'a> {
    /// Draw at this point estimate; `None` draws from the posterior predictive.
    pub estimate: Option<Estimate>,
    /// The sum over all components, for properties that a single component does not determine, such as the number of
    /// words in a row.
    pub all: Sufficient<'a>,
}

/// Fills rows, (n, D), with draws from one component, in the data's own units.
pub type RowSource<'a> = Box<dyn Fn(&mut [f64], &mut Generator) + Send + Sync + 'a>;

/// Returns a source that draws rows of `d` values one by one.
pub fn row_by_row<'a>(d: usize, draw: impl Fn(&mut [f64], &mut Generator) + Send + Sync + 'a) -> RowSource<'a> {
    Box::new(move |rows, generator| rows.chunks_exact_mut(d).for_each(|row| draw(row, generator)))
}

/// Returns a source of independent normal columns, given as (mean, standard deviation).
pub fn normal_columns<'a>(columns: Vec<(f64, f64)>) -> RowSource<'a> {
    row_by_row(columns.len(), move |row, generator| {
        for (to, (centre, deviation)) in row.iter_mut().zip(&columns) {
            *to = centre + deviation * generator.sample::<f64, _>(StandardNormal);
        }
    })
}

/// Draws of rows from components.
pub trait RowDraws {
    /// Returns a source of independent rows, from the posterior predictive or at point estimates. Quantities that
    /// depend only on the component are computed here, once.
    fn source(&self, component: Sufficient<'_>, from: Draw<'_>) -> Result<RowSource<'_>>;
}

/// A source of independent draws of the parameters of one component.
pub struct ParameterSource<'a> {
    /// Names and shapes of the parameters, as in [`PointEstimates::point_estimates`].
    pub shapes: Vec<(String, Vec<usize>)>,
    /// Fills rows with draws, each the values of all parameters one after another.
    pub rows: RowSource<'a>,
}

/// Collects the values of each parameter from rows of a [`ParameterSource`], (n, K, values): each (n, K, ...).
pub fn parameters_of_draws(rows: &[f64], [n, k]: [usize; 2], shapes: &[(String, Vec<usize>)]) -> Parameters {
    let width = rows.len() / (n * k);
    let mut first = 0;
    let parameter = |(name, shape): &(String, Vec<usize>)| {
        let range = first..first + shape.iter().product::<usize>();
        first = range.end;
        let data = rows.chunks_exact(width).flat_map(|row| &row[range.clone()]).copied().collect();
        (name.clone(), Value::Array { shape: [&[n, k], &shape[..]].concat(), data })
    };
    Parameters(shapes.iter().map(parameter).collect())
}

/// The random streams of components for [`ParameterDraws::drawn_scorer`].
#[derive(Clone, Copy)]
pub struct ComponentStreams<'a> {
    /// Determines the draws.
    pub key: u64,
    /// Checked before each component is drawn.
    pub cancel: &'a Cancel,
}

impl ComponentStreams<'_> {
    /// The stream of one component.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn of(self, component: usize) -> Result<Generator> {
        self.cancel.check()?;
        Ok(stream(self.key, Purpose::Parameters, component as u64))
    }
}

/// Draws of parameters from the posterior of a component.
pub trait ParameterDraws {
    /// Returns a source of draws in the data's own units.
    fn parameter_source(&self, component: Sufficient<'_>) -> Result<ParameterSource<'_>>;

    /// Packs the densities of components at parameters drawn from their posteriors, each with a log weight. Terms that
    /// depend on the row alone may be omitted.
    ///
    /// # Errors
    /// [`Error::Numerical`] naming the component; [`Error::Cancelled`].
    fn drawn_scorer(
        &self,
        components: &[Sufficient<'_>],
        log_weights: &[f64],
        draws: ComponentStreams<'_>,
    ) -> Result<Box<dyn Scorer<f64>>>;
}

/// Distributions of rows given a component, with marginals and conditionals in closed form.
pub trait Laws {
    /// The posterior predictive of a component, or its density at a point estimate, in the data's own units.
    ///
    /// # Errors
    /// As [`Conjugate::log_marginal`]; [`Error::NotSupported`] for a predictive without a closed form.
    fn law(&self, component: Sufficient<'_>, estimate: Option<Estimate>) -> Result<Law>;
}

/// The interface that callers use. A missing capability gives [`Error::NotSupported`].
impl<F: Scalar> dyn Likelihood<F> + '_ {
    /// Number of columns of a row.
    pub fn dimension(&self) -> usize {
        self.origin().len()
    }

    /// As [`Scores::scorer`].
    pub fn scorer(
        &self,
        components: &[Sufficient<'_>],
        log_weights: &[f64],
        density: Density,
    ) -> Result<Box<dyn Scorer<F>>> {
        self.required_scores()?.scorer(components, log_weights, density)
    }

    /// As [`Scores::sparse_scorer`].
    ///
    /// # Errors
    /// [`Error::NotSupported`] without scores.
    pub fn sparse_scorer(
        &self,
        components: &[Sufficient<'_>],
        log_weights: &[f64],
        objective: Objective,
        earlier: Option<(SparseScorer<F>, &[Vec<u32>])>,
    ) -> Result<Option<SparseScorer<F>>> {
        Ok(self.required_scores()?.sparse_scorer(components, log_weights, objective, earlier))
    }

    /// As [`ParameterDraws::drawn_scorer`].
    ///
    /// # Errors
    /// [`Error::NotSupported`] without draws of parameters.
    pub fn drawn_scorer(
        &self,
        components: &[Sufficient<'_>],
        log_weights: &[f64],
        draws: ComponentStreams<'_>,
    ) -> Result<Box<dyn Scorer<f64>>> {
        let of_draws = self.parameter_draws().ok_or_else(|| absent("draws of parameters", "it has none"))?;
        of_draws.drawn_scorer(components, log_weights, draws)
    }

    /// As [`Scores::log_fixed_bases`]; zero without that capability, since such rows are never scored.
    pub fn log_fixed_bases(&self, rows: RowBlock<'_, F>, out: &mut [f64]) {
        match self.scores() {
            Some(scores) => scores.log_fixed_bases(rows, out),
            None => out.fill(0.0),
        }
    }

    /// Returns the contribution of a component to the objective, without the base measure, nats.
    pub fn gain(&self, component: Sufficient<'_>, objective: Objective) -> Result<f64> {
        let at_point = |estimate| self.required_points()?.at_point(component, estimate);
        match objective {
            Objective::Variational => self.log_marginal(component),
            Objective::Map => at_point(Estimate::Mode).map(|point| point.log_likelihood + point.log_prior),
            Objective::Ml => at_point(Estimate::MaximumLikelihood).map(|point| point.log_likelihood),
        }
    }

    /// Returns the negative of the part of `gain` that is independent of the responsibilities: the divergence from the
    /// prior, the negative log prior of a point estimate, or zero.
    pub fn cost(&self, component: Sufficient<'_>, objective: Objective) -> Result<f64> {
        match objective {
            Objective::Variational => self.required_scores()?.divergence_from_prior(component),
            Objective::Map => self.required_points()?.at_point(component, Estimate::Mode).map(|point| -point.log_prior),
            Objective::Ml => Ok(0.0),
        }
    }

    /// As [`PointEstimates::check_mode`].
    pub fn check_mode(&self) -> Result<()> {
        self.required_points()?.check_mode()
    }

    /// As [`PointEstimates::point_estimates`].
    pub fn point_estimates(&self, components: &[Sufficient<'_>], estimate: Estimate) -> Result<Parameters> {
        self.required_points()?.point_estimates(components, estimate)
    }

    /// As [`Seeding::metric`]; [`Metric::Divergence`] without that capability.
    pub fn metric(&self, component: Sufficient<'_>) -> Result<Metric> {
        self.seeding().map_or(Ok(Metric::Divergence), |seeding| seeding.metric(component))
    }

    /// As [`Imputation::predictive_moments`].
    pub fn predictive_moments(&self, component: Sufficient<'_>) -> Result<(Vec<f64>, Vec<f64>)> {
        let Some(imputation) = self.imputation() else {
            let reason = "its predictive distribution of a value depends on the other columns of the row";
            let allowed = supporting(Feature::Missing);
            return Err(Error::not_supported("likelihood", "imputation for this likelihood", reason, allowed));
        };
        imputation.predictive_moments(component)
    }

    /// As [`RowDraws::source`].
    pub fn row_source(&self, component: Sufficient<'_>, from: Draw<'_>) -> Result<RowSource<'_>> {
        let missing = || absent("sampling of rows", "it cannot draw them");
        self.draws().ok_or_else(missing)?.source(component, from)
    }

    /// As [`ParameterDraws::parameter_source`].
    pub fn parameter_source(&self, component: Sufficient<'_>) -> Result<ParameterSource<'_>> {
        let missing = || absent("draws of parameters", "it cannot draw them");
        self.parameter_draws().ok_or_else(missing)?.parameter_source(component)
    }

    /// As [`Laws::law`].
    pub fn law(&self, component: Sufficient<'_>, estimate: Option<Estimate>) -> Result<Law> {
        self.laws().ok_or_else(no_laws)?.law(component, estimate)
    }

    fn required_scores(&self) -> Result<&dyn Scores<F>> {
        self.scores().ok_or_else(|| absent("a fit", "it has no scores for the local step"))
    }

    fn required_points(&self) -> Result<&dyn PointEstimates> {
        self.points().ok_or_else(|| absent("a point estimate", "it has none"))
    }
}

/// The error for a capability that the likelihood lacks.
fn absent(what: &str, reason: &str) -> Error {
    Error::not_supported("likelihood", format!("{what} for this likelihood"), reason, "another likelihood")
}

/// The error for a likelihood whose columns are dependent given the component.
pub(super) fn no_laws() -> Error {
    let reason = "the columns of a row share its number of words";
    let allowed = "a likelihood of independent columns, such as Poisson";
    Error::not_supported("likelihood", "the density of some columns for this likelihood", reason, allowed)
}

/// Declares the capabilities of a likelihood.
macro_rules! capabilities {
    ($likelihood:ty: $($capability:ident),*) => {
        impl<F: crate::simd::Scalar> crate::likelihood::Likelihood<F> for $likelihood {
            $(crate::likelihood::capabilities::capabilities!(@ $capability);)*
        }
    };
    (@ scores) => {
        fn scores(&self) -> Option<&dyn crate::likelihood::Scores<F>> {
            Some(self)
        }
    };
    (@ points) => {
        fn points(&self) -> Option<&dyn crate::likelihood::PointEstimates> {
            Some(self)
        }
    };
    (@ imputation) => {
        fn imputation(&self) -> Option<&dyn crate::likelihood::Imputation> {
            Some(self)
        }
    };
    (@ urn) => {
        fn urn(&self) -> Option<&dyn crate::likelihood::Urn> {
            Some(self)
        }
    };
    (@ evidence) => {
        fn evidence(&self) -> Option<&dyn crate::likelihood::Evidence> {
            Some(self)
        }
    };
    (@ laws) => {
        fn laws(&self) -> Option<&dyn crate::likelihood::Laws> {
            Some(self)
        }
    };
    (@ parameters) => {
        fn parameter_draws(&self) -> Option<&dyn crate::likelihood::ParameterDraws> {
            Some(self)
        }
    };
    (@ draws) => {
        fn draws(&self) -> Option<&dyn crate::likelihood::RowDraws> {
            Some(self)
        }
    };
}

pub(super) use capabilities;
