//! Prepares a target from a specification and data.

use std::sync::Arc;

use crate::data::{Coordinates, OTHER_VALUES, Rows, TableRows};
use crate::error::{Error, Result};
use crate::grounds::{Grounds, check_form, survey};
use crate::likelihood::{self, Frame, Likelihood};
use crate::mcmc::learned_base::LearnedBase;
use crate::mcmc::{RowTable, Target};
use crate::model::{Named, Specification};
use crate::parallel::Cancel;
use crate::process::LabelLaw;
use crate::registry::{Feature, RESOLUTION};
use crate::room::check_room;
use crate::simd::Scalar;

/// Refuses a model whose labels have no closed-form posterior, before any rows are read. Otherwise returns their
/// distribution.
///
/// # Errors
/// [`Error::NotSupported`]; as [`Specification::law`].
pub fn check_model(specification: &Specification) -> Result<LabelLaw> {
    let Named { name, parameters } = &specification.likelihood;
    likelihood::check_urns(name, parameters, "")?;
    specification.law()
}

impl Grounds {
    /// Computes the moments of the rows and sets absent parameters to their defaults. Nothing is estimated by evidence.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] and [`Error::NotSupported`] for inconsistent rows or parameters;
    /// [`Error::Cancelled`].
    pub fn for_sampler<F: Scalar>(specification: &Specification, rows: &dyn Rows<F>, cancel: &Cancel) -> Result<Self> {
        let Named { name, parameters } = &specification.likelihood;
        likelihood::check_closed(name, parameters)?;
        specification.law()?;
        check_imputed(specification)?;
        let n = rows.n_rows();
        if n == 0 || u32::try_from(n).is_err() {
            return Err(Error::invalid("data", format!("{n} rows"), "from 1 to 4294967294 rows"));
        }
        check_cells(specification)?;
        let specification = specification.clone().without_cells()?;
        check_form(&specification, rows.csr().is_some())?;
        let rows = TableRows { rows, weights: None };
        let data = survey(&specification, &rows, cancel)?;
        Self::of_survey(&specification, &rows, &data, None, Specification::by_rule, cancel)
    }

    /// Builds the target of these rows.
    ///
    /// # Errors
    /// As [`Target::new`]; [`Error::InvalidArgument`] for `data` if the rows in `f64` do not fit in memory;
    /// [`Error::Source`] for sparse rows that another thread has changed.
    pub fn target<F: Scalar>(&self, rows: &dyn Rows<F>) -> Result<Target> {
        let likelihood = self.sampled_likelihood()?;
        let table = copy(rows, &self.coordinates, likelihood.origin(), "data")?;
        let target = Target::new(likelihood, self.specification.partitions()?, table, self.coordinates.log_volume())?;
        Ok(Target { learned: LearnedBase::of(self), ..target })
    }

    /// The frame of the likelihood of a sampler.
    pub(super) fn frame(&self) -> Frame {
        let Specification { missing, values, .. } = &self.specification;
        Frame { origin: self.origin.clone(), missing: *missing, words: false, values: values.clone() }
    }

    /// The likelihood of the rows in `f64`; a learned parameter is at the start of chains.
    ///
    /// # Errors
    /// As [`likelihood::build`].
    pub fn sampled_likelihood(&self) -> Result<Arc<dyn Likelihood<f64>>> {
        let Named { name, parameters } = &self.specification.likelihood;
        likelihood::build::<f64>(name, parameters, self.frame())
    }

    /// New rows in the form that a target needs.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for `X` if the rows in `f64` do not fit in memory; [`Error::Source`] for sparse rows
    /// that another thread has changed.
    pub fn table<F: Scalar>(&self, target: &Target, rows: &dyn Rows<F>) -> Result<RowTable> {
        copy(rows, &self.coordinates, target.likelihood.origin(), "X")
    }
}

/// Refuses missing values that a likelihood imputes.
///
/// # Errors
/// [`Error::NotSupported`] for `missing`.
fn check_imputed(specification: &Specification) -> Result<()> {
    let Named { name, parameters } = &specification.likelihood;
    let imputes = |member: &likelihood::Member| member.entry.support(Feature::Imputed).is_some();
    match likelihood::members(name, parameters)?.iter().find(|member| specification.missing && imputes(member)) {
        Some(member) => {
            let found = format!("missing=\"marginalize\" for a sampler of {}", member.entry.name);
            let reason = "only fits impute its missing values";
            Err(Error::not_supported("missing", found, reason, "DiagonalGaussian, or data without missing values"))
        }
        None => Ok(()),
    }
}

/// Refuses rows whose copy in `f64`, with this number of columns, does not fit in memory.
///
/// # Errors
/// [`Error::InvalidArgument`] for `argument`.
pub fn check_room_for_copy<F: Scalar>(rows: &dyn Rows<F>, n_columns: usize, argument: &str) -> Result<()> {
    let n = rows.n_rows();
    // A stored value takes a number and half a number for its column.
    let size = match rows.csr() {
        Some(table) => n.saturating_add(table.values.len()).saturating_add(table.values.len().div_ceil(2)),
        None => n.saturating_mul(n_columns),
    };
    check_room(size, |size| {
        Error::invalid(argument, format!("{n} rows, which take {size} as float64"), "few enough rows to fit in memory")
    })
}

/// Copies rows, unless the copy does not fit in memory.
fn copy<F: Scalar>(
    rows: &dyn Rows<F>,
    coordinates: &Arc<Coordinates>,
    origin: &[f64],
    argument: &str,
) -> Result<RowTable> {
    check_room_for_copy(rows, origin.len(), argument)?;
    let table = RowTable::new(rows, coordinates, origin);
    if table.has_its_columns() { Ok(table) } else { Err(Error::Source { batch: None, message: OTHER_VALUES.into() }) }
}

/// Refuses given rounding cells, which have no closed marginal likelihood.
pub(super) fn check_cells(specification: &Specification) -> Result<()> {
    let widths = specification.likelihood.parameters.numbers(&RESOLUTION, None)?.unwrap_or_default();
    if widths.iter().any(|width| *width != 0.0) {
        let reason = "a cell has no closed marginal likelihood";
        return Err(Error::not_supported("resolution", "a resolution for a sampler", reason, "resolution=0"));
    }
    Ok(())
}
