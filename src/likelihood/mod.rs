//! Observation models with their conjugate base measures. They turn units into statistics, a summary into a posterior,
//! and a posterior into log weights of rows.
//!
//! Each likelihood is one file and one line of the registry.

mod bernoulli;
mod capabilities;
mod categorical;
mod columns;
mod counts;
mod diagonal_gaussian;
mod diagonal_student_t;
mod evidence;
mod gamma;
mod gamma_evidence;
mod gaussian;
mod imputation;
mod known_covariance_gaussian;
mod layout;
mod mean_evidence;
mod multinomial;
mod negative_binomial;
mod poisson;
mod resolution;
mod ridge;
mod row_scale;
mod scores;
mod spherical_gaussian;
mod student_t;
mod units;
mod urn;
mod wishart;
mod zero_mean_gaussian;

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use crate::data::{Allowed, Demands, Domain, Histogram, Moments, Needs, RowBlock, Sought};
use crate::error::{Error, Result};
use crate::parameters::{Parameters, Value};
use crate::registry::{DefaultValue, EXPOSURE, Entry, Feature, PRIOR, RESOLUTION};
use crate::simd::{Lines, Scalar};
use crate::suffstats::Sufficient;

pub use bernoulli::Bernoulli;
pub use capabilities::{
    AtPoint, ComponentStreams, Draw, Emissions, Imputation, Laws, Likelihood, Metric, ParameterDraws, ParameterSource,
    PointEstimates, RowDraws, RowSource, Seeding, parameters_of_draws, row_by_row,
};
pub use categorical::Categorical;
pub use columns::{Columns, OfAnyScalar};
pub(crate) use counts::dirichlet_divergence;
pub use diagonal_gaussian::DiagonalGaussian;
pub use diagonal_student_t::DiagonalStudentT;
pub(crate) use evidence::maximum_at;
pub use evidence::{Caution, Evidence, GUARD, Given, Loosening};
pub use gaussian::Gaussian;
pub use known_covariance_gaussian::KnownCovarianceGaussian;
pub use layout::{Member, members, n_columns, seen};
pub use multinomial::Multinomial;
pub use negative_binomial::NegativeBinomial;
pub use poisson::Poisson;
pub use ridge::ridge;
pub use scores::{Density, Estimate, Scores};
pub use spherical_gaussian::SphericalGaussian;
pub use student_t::StudentT;
pub use units::{components_of_data, fills_directions, in_coordinates, log_jacobian, lowered, of_data, raised};
pub use urn::{Eight, Urn, add_row};
pub use zero_mean_gaussian::ZeroMeanGaussian;

use capabilities::{capabilities, normal_columns};

/// Builds a likelihood from parameters. They are checked when the specification is made and completed when the data are
/// known.
pub trait FromParameters: Sized {
    /// Checks the given parameters, as far as that is possible without data.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] naming the parameter.
    fn check(parameters: &Parameters) -> Result<()>;

    /// Fills in the parameters whose defaults depend on the data, and checks all of them against the data's columns.
    fn resolve(parameters: &Parameters, data: &Moments) -> Result<Parameters>;

    /// Entry in the registry.
    const ENTRY: Entry;

    /// Moments of the data that the defaults need.
    const NEEDS: Needs;
    /// Whether it needs a histogram of every column, because a parameter changes its base measure.
    const VALUES: bool = false;

    /// What it requires of the data.
    fn demands(_parameters: &Parameters) -> Result<Demands> {
        Ok(Demands {
            domain: Self::ENTRY.domain.unwrap_or(Domain::Real),
            sought: Sought {
                resolution: Self::ENTRY.parameters.contains(&RESOLUTION),
                values: Self::VALUES,
                ..Sought::of(Self::NEEDS)
            },
            sparse: Self::ENTRY.support(Feature::Sparse).is_some(),
            missing: Self::ENTRY.support(Feature::Missing).is_some(),
            freedom: Self::ENTRY.freedom,
        })
    }

    /// Whether it is meant by these parameters, if several likelihoods share a name in the registry.
    fn is_meant(_parameters: &Parameters) -> bool {
        true
    }

    /// Returns the values that rows may have, given complete parameters.
    fn allowed(_parameters: &Parameters) -> Result<Allowed> {
        Ok(Self::ENTRY.domain.unwrap_or(Domain::Real).into())
    }

    /// Builds the likelihood from complete parameters, for rows from which `origin` has been subtracted.
    fn build(parameters: &Parameters, frame: Frame) -> Result<Self>;
}

/// What a likelihood needs besides its parameters.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Frame {
    /// Subtracted from every row before anything else, (D,).
    pub origin: Vec<f64>,
    /// Whether rows may have missing values (NaN).
    pub missing: bool,
    /// Whether units are the words of rows, not the rows themselves (mathematics 11).
    pub words: bool,
    /// The counts of all rows, for a likelihood that needs them.
    pub values: Option<Arc<Histogram>>,
}

/// The conjugate mathematics of one component, in `f64`, computed from its summary alone. Everything else that a
/// likelihood can do is a capability of [`Likelihood`].
pub trait Conjugate: Debug + Send + Sync {
    /// Subtracted from every row before anything else, (D,); statistics are relative to it.
    fn origin(&self) -> &[f64];
    /// Length of the statistics of one component (without the count).
    fn n_statistics(&self) -> usize;
    /// Adds `sum_i weights[i] T(rows_i)` to `statistics`. Always in `f64`, whatever the type of the data: sums in `f32`
    /// are indefinite where the covariance is nearly singular (patches whose own mean was removed).
    fn accumulate(&self, rows: RowBlock<'_, f64>, weights: &[f64], statistics: &mut [f64], space: &mut Lines<f64>);
    /// Whether a sparse row contributes only to the statistics of the columns that it stores.
    fn is_by_column(&self) -> bool {
        false
    }
    /// Range of the statistics that are squares. The squares of a row are its squares about any other point plus terms
    /// that are linear in the row. All other statistics are linear.
    fn squares(&self) -> Range<usize> {
        0..0
    }
    /// c(lambda_0 + S) - c(lambda_0): log marginal likelihood of the component's units without their base measure
    /// (mathematics 1.0), nats.
    ///
    /// # Errors
    /// [`Error::Numerical`] where the posterior has no Cholesky factor.
    fn log_marginal(&self, component: Sufficient<'_>) -> Result<f64>;
    /// E log p(units | phi) under the base measure, which is linear in the statistics, without the units' own base
    /// measure (mathematics 2c), nats.
    ///
    /// # Errors
    /// [`Error::Numerical`] where the base measure has no Cholesky factor.
    fn expected_at_prior(&self, units: Sufficient<'_>) -> Result<f64>;
    /// The part of the base measures of all rows, of this mass, that depends on parameters, nats (mathematics 10.4).
    fn log_variable_base(&self, _mass: f64) -> f64 {
        0.0
    }
    /// Bound on the rounding error of [`Conjugate::log_marginal`], nats.
    fn rounding_of_marginal(&self, _: Sufficient<'_>) -> f64 {
        0.0
    }
    /// [`Conjugate::log_marginal`], or `None` if the posterior scale keeps too few digits in float64 relative to the
    /// squares that are subtracted to form the scatter of the component.
    ///
    /// # Errors
    /// [`Error::Numerical`] where the posterior has no Cholesky factor.
    fn surviving_marginal(&self, component: Sufficient<'_>) -> Result<Option<f64>> {
        self.log_marginal(component).map(Some)
    }
    /// Returns the posterior parameters of all components in the data's own units, under their names in the
    /// specification.
    fn posterior_parameters(&self, components: &[Sufficient<'_>]) -> Result<Parameters>;
    /// Returns the same statistics measured from this likelihood's origin instead of `origin`. The default is for
    /// families whose origin is zero in every fit.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for `init` if the shift would cost the digits of the scatter.
    fn rebase(&self, component: Sufficient<'_>, _origin: &[f64]) -> Result<Vec<f64>> {
        Ok(component.statistics.to_vec())
    }
    /// Whether the statistics of a row depend on the component that it is under, because a part of the row is not seen.
    fn completes(&self) -> bool {
        false
    }
    /// The mean of the rows of an average component, relative to the origin, if it is not the first of its statistics.
    fn centre(&self, _average: Sufficient<'_>) -> Option<Vec<f64>> {
        None
    }
    /// Refuses statistics that no rows can have, beyond what rounding explains. Files may hold such statistics.
    ///
    /// # Errors
    /// [`Error::Format`] stating what is wrong.
    fn check_statistics(&self, _: &[Sufficient<'_>]) -> Result<()> {
        Ok(())
    }
    /// Refuses a base measure without a closed marginal likelihood, which moves need.
    ///
    /// # Errors
    /// [`Error::NotSupported`] naming the parameter.
    fn check_marginal(&self) -> Result<()> {
        Ok(())
    }
}

/// Lists the likelihoods by their names, and before them the others that a word among the parameters of one of them
/// stands for.
macro_rules! registry {
    ($($variant:ty),*; $($likelihood:ty),* $(,)?) => {
        /// The entries of all likelihoods.
        pub const ENTRIES: &[Entry] = &[$(<$likelihood>::ENTRY),*];

        registry!(@by_name $($variant,)* $($likelihood,)*);
    };
    (@by_name $($likelihood:ty,)*) => {
        /// [`FromParameters::check`] of the likelihood called `name`.
        ///
        /// # Errors
        /// As [`FromParameters`]; [`Error::InvalidArgument`] if no likelihood has that name.
        pub fn check(name: &str, parameters: &Parameters) -> Result<()> {
            $(if name == <$likelihood>::ENTRY.name && <$likelihood>::is_meant(parameters) {
                return <$likelihood>::check(parameters);
            })*
            Err(unknown(name))
        }

        /// [`FromParameters::resolve`] of the likelihood called `name`; keeps what is said of the prior.
        ///
        /// # Errors
        /// As [`FromParameters`]; [`Error::InvalidArgument`] if no likelihood has that name.
        pub fn resolve(name: &str, parameters: &Parameters, data: &Moments) -> Result<Parameters> {
            $(if name == <$likelihood>::ENTRY.name && <$likelihood>::is_meant(parameters) {
                return Ok(with_prior_of(&<$likelihood>::ENTRY, parameters, <$likelihood>::resolve(parameters, data)?));
            })*
            Err(unknown(name))
        }

        /// The likelihood called `name` for rows of both scalar types.
        ///
        /// # Errors
        /// As [`FromParameters`]; [`Error::InvalidArgument`] if no likelihood has that name.
        pub fn of_any_scalar(name: &str, parameters: &Parameters, frame: Frame) -> Result<OfAnyScalar> {
            $(if name == <$likelihood>::ENTRY.name && <$likelihood>::is_meant(parameters) {
                return Ok(OfAnyScalar::new(<$likelihood>::build(parameters, frame)?));
            })*
            Err(unknown(name))
        }

        /// [`FromParameters::build`] of the likelihood called `name`.
        ///
        /// # Errors
        /// As [`FromParameters`]; [`Error::InvalidArgument`] if no likelihood has that name.
        pub fn build<F: Scalar>(
            name: &str,
            parameters: &Parameters,
            frame: Frame,
        ) -> Result<Arc<dyn Likelihood<F>>> {
            $(if name == <$likelihood>::ENTRY.name && <$likelihood>::is_meant(parameters) {
                return Ok(Arc::new(<$likelihood>::build(parameters, frame)?));
            })*
            Err(unknown(name))
        }

        /// [`FromParameters::allowed`] of the likelihood called `name`.
        ///
        /// # Errors
        /// As [`FromParameters`]; [`Error::InvalidArgument`] if no likelihood has that name.
        pub fn allowed(name: &str, parameters: &Parameters) -> Result<Allowed> {
            $(if name == <$likelihood>::ENTRY.name && <$likelihood>::is_meant(parameters) {
                return <$likelihood>::allowed(parameters);
            })*
            Err(unknown(name))
        }

        /// [`FromParameters::demands`] of the likelihood called `name`.
        ///
        /// # Errors
        /// As [`FromParameters`]; [`Error::InvalidArgument`] if no likelihood has that name.
        pub fn demands(name: &str, parameters: &Parameters) -> Result<Demands> {
            $(if name == <$likelihood>::ENTRY.name && <$likelihood>::is_meant(parameters) {
                return <$likelihood>::demands(parameters);
            })*
            Err(unknown(name))
        }
    };
}

registry!(
    DiagonalStudentT;
    Bernoulli,
    Categorical,
    Columns,
    DiagonalGaussian,
    Gaussian,
    KnownCovarianceGaussian,
    Multinomial,
    NegativeBinomial,
    Poisson,
    SphericalGaussian,
    StudentT,
    ZeroMeanGaussian,
);

/// Complete parameters, of the same prior as the given ones if the likelihood can have others.
fn with_prior_of(entry: &Entry, given: &Parameters, mut complete: Parameters) -> Parameters {
    if entry.parameters.contains(&PRIOR) {
        let prior = given.0.get(PRIOR.name).cloned().unwrap_or(Value::Absent);
        complete.0.insert(PRIOR.name.to_owned(), prior);
    }
    complete
}

/// The first parameter of a likelihood without an entry in `given`; an absent value is an entry.
///
/// # Errors
/// As [`members`].
pub fn missing(name: &str, given: &Parameters) -> Result<Option<String>> {
    let of = |member: &Member| {
        // Earlier versions knew no exposures.
        let all = member.entry.parameters.iter().filter(|one| **one != EXPOSURE);
        all.map(|one| member.name(one.name)).find(|one| !given.0.contains_key(one))
    };
    Ok(members(name, given)?.iter().find_map(of))
}

/// Names of the parameters of a likelihood that are estimated by evidence (mathematics 10).
///
/// # Errors
/// As [`members`].
pub fn estimated(name: &str, given: &Parameters) -> Result<Vec<String>> {
    let of = |member: &Member| {
        let own = member.parameters(given);
        let all = if own.is_absent(PRIOR.name) { member.entry.parameters } else { &[] };
        let free = all.iter().filter(|one| one.default == DefaultValue::Evidence && own.is_absent(one.name));
        free.map(|one| member.name(one.name)).collect::<Vec<_>>()
    };
    Ok(layout::seen_members(name, given)?.iter().flat_map(of).collect())
}

/// Names of the parameters that could be estimated if none were given.
///
/// # Errors
/// As [`members`].
pub fn estimable(name: &str, given: &Parameters) -> Result<Vec<String>> {
    let of = |member: &Member| {
        let all = member.entry.parameters.iter().filter(|one| one.default == DefaultValue::Evidence);
        all.map(|one| member.name(one.name)).collect::<Vec<_>>()
    };
    Ok(members(name, given)?.iter().flat_map(of).collect())
}

/// Names of the parameters that are resolutions of columns.
///
/// # Errors
/// As [`members`].
pub fn resolutions(name: &str, given: &Parameters) -> Result<Vec<String>> {
    let has = |member: &&Member| member.entry.parameters.contains(&RESOLUTION);
    Ok(members(name, given)?.iter().filter(has).map(|member| member.name(RESOLUTION.name)).collect())
}

/// The names of the likelihoods that support a feature, formatted as alternatives for an error message.
pub fn supporting(feature: Feature) -> String {
    alternatives(|entry| entry.support(feature).is_some())
}

/// The names of the likelihoods that have a capability, formatted in the same way.
pub fn capable_of(face: &str) -> String {
    alternatives(|entry| entry.faces.contains(&face))
}

/// Blocks are made of the others, so they are none.
fn alternatives(is_one: impl Fn(&Entry) -> bool) -> String {
    let known = ENTRIES.iter().filter(|entry| entry.name != layout::NAME && is_one(entry));
    let names: Vec<&str> = known.map(|entry| entry.name).collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => names.concat(),
    }
}

/// Refuses a base measure that is known, without data, to have no closed marginal likelihood.
///
/// # Errors
/// [`Error::NotSupported`] for `likelihood`; also if no likelihood has that name.
pub fn check_closed(name: &str, given: &Parameters) -> Result<()> {
    members(name, given)?.iter().try_for_each(|member| check_one_closed(member.entry, &member.parameters(given)))
}

/// As [`check_closed`], of partitions: with a part of each row unseen, rows cannot join and leave clusters one by one.
/// `allowed`: what can be used instead, besides another likelihood.
///
/// # Errors
/// As [`check_closed`].
pub fn check_urns(name: &str, given: &Parameters, allowed: &str) -> Result<()> {
    check_closed(name, given)?;
    let hidden = members(name, given)?.into_iter().find(|member| member.entry.support(Feature::Hidden).is_some());
    match hidden {
        Some(member) => {
            let reason = "its clusters have no closed marginal likelihood";
            let allowed = format!("{allowed}a likelihood such as Gaussian");
            Err(Error::not_supported("likelihood", member.entry.name, reason, allowed))
        }
        None => Ok(()),
    }
}

fn check_one_closed(entry: &Entry, given: &Parameters) -> Result<()> {
    let (name, reason) = (entry.name, "it has no closed marginal likelihood");
    match entry.support(Feature::Moves).map(|support| support.unless) {
        Some(Some((parameter, word))) if given.0.get(parameter) == Some(&Value::Text(word.to_owned())) => {
            let found = format!("{name}({parameter}={word:?}) for partitions of the rows");
            Err(Error::not_supported("likelihood", found, reason, format!("another {parameter:?}, or fit")))
        }
        Some(_) => Ok(()),
        None => Err(Error::not_supported("likelihood", name, reason, supporting(Feature::Moves))),
    }
}

/// Returns the registry entry of the likelihood called `name`.
///
/// # Errors
/// If no likelihood has that name.
pub fn entry(name: &str) -> Result<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.name == name).ok_or_else(|| unknown(name))
}

/// The error for moves under a base measure without a closed marginal likelihood.
fn no_marginal(with: &str, allowed: &str) -> Error {
    let reason = "it has no closed marginal likelihood to judge moves by";
    Error::not_supported("moves", format!("a move with {with}"), reason, format!("moves=() or {allowed}"))
}

fn unknown(name: &str) -> Error {
    Error::unknown("likelihood", name, ENTRIES.iter().map(|entry| entry.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{DenseRows, TableRows, moments};
    use crate::parallel::Cancel;
    use crate::parameters::table;

    /// The likelihood of an entry for three rows of zeros and ones, with defaults and optionally one parameter set to a
    /// word.
    fn built(entry: &Entry, chosen: Option<(&str, &str)>) -> Arc<dyn Likelihood<f64>> {
        let mut parameters = Parameters::default();
        if entry.name == "KnownCovarianceGaussian" {
            parameters.0.insert("covariance".to_owned(), table(2, vec![1.0, 0.0, 0.0, 1.0]));
        }
        parameters.0.extend(chosen.map(|(name, word)| (name.to_owned(), Value::Text(word.to_owned()))));
        let rows = DenseRows::new(vec![0.0, 1.0, 1.0, 0.0, 1.0, 1.0], 2);
        if entry.name == "Columns" {
            parameters.0.insert("blocks".to_owned(), Value::Text("Bernoulli 0; Poisson 1".to_owned()));
        }
        let asked = demands(entry.name, &parameters).expect("a name of the registry");
        let data = moments(
            &TableRows { rows: &rows, weights: None },
            asked.sought.needs,
            &asked.domain.into(),
            false,
            &Cancel::default(),
        );
        let data = data.expect("rows of every domain");
        let complete = resolve(entry.name, &parameters, &data).expect("defaults");
        build(entry.name, &complete, Frame { origin: vec![0.0; 2], ..Frame::default() }).expect("complete")
    }

    #[test]
    fn the_entries_of_the_registry_match_the_likelihoods() {
        for entry in ENTRIES {
            let usual = built(entry, None);
            let faces = [
                ("scores", usual.scores().is_some()),
                ("points", usual.points().is_some()),
                ("seeding", usual.seeding().is_some()),
                ("imputation", usual.imputation().is_some()),
                ("draws", usual.draws().is_some()),
                ("parameters", usual.parameter_draws().is_some()),
                ("urn", usual.urn().is_some()),
                ("evidence", usual.evidence().is_some()),
                ("emissions", usual.emissions().is_some()),
                ("laws", usual.laws().is_some()),
            ];
            let found: Vec<&str> = faces.iter().filter(|(_, has)| *has).map(|(face, _)| *face).collect();
            assert_eq!(found, entry.faces, "{}", entry.name);
            let missing = entry
                .support(Feature::Missing)
                .is_some_and(|support| !support.unless.is_some_and(|word| Parameters::default().has_word(entry, word)));
            assert_eq!(usual.imputation().is_some(), missing, "{}", entry.name);
            assert!(entry.domain.is_some());
            for chosen in [None].into_iter().chain(entry.words().into_iter().map(Some)) {
                let likelihood = built(entry, chosen);
                let moves = entry.support(Feature::Moves).is_some_and(|support| !support.fails(chosen));
                assert_eq!(moves, likelihood.check_marginal().is_ok(), "{} {chosen:?}", entry.name);
                let hidden = entry.support(Feature::Hidden).is_some();
                assert_eq!(hidden, likelihood.completes(), "{}", entry.name);
                assert_eq!(moves && !hidden, likelihood.urn().is_some(), "{} {chosen:?}", entry.name);
            }
        }
    }
}
