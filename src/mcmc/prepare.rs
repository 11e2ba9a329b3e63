//! Prepares a target from a specification and data.

use std::sync::Arc;

use crate::data::{Rows, TableRows};
use crate::error::{Error, Result};
use crate::grounds::{Grounds, check_form, survey};
use crate::likelihood::{self, Frame};
use crate::mcmc::{RowTable, Target};
use crate::model::{Named, Specification};
use crate::parallel::Cancel;
use crate::parameters::Value;
use crate::process::Partitions;
use crate::registry::RESOLUTION;
use crate::simd::Scalar;

/// Refuses a model whose partitions have no closed-form posterior, before any rows are read. Otherwise returns its
/// distribution over partitions.
///
/// # Errors
/// [`Error::NotSupported`]; as [`Specification::partitions`].
pub fn check_model(specification: &Specification) -> Result<Arc<dyn Partitions>> {
    let Named { name, parameters } = &specification.likelihood;
    likelihood::check_closed(name, parameters)?;
    specification.partitions()
}

impl Grounds {
    /// Computes the moments of the rows and sets absent parameters to their defaults. Nothing is estimated by evidence.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] and [`Error::NotSupported`] for inconsistent rows or parameters;
    /// [`Error::Cancelled`].
    pub fn for_sampler<F: Scalar>(specification: &Specification, rows: &dyn Rows<F>, cancel: &Cancel) -> Result<Self> {
        check_model(specification)?;
        let n = rows.n_rows();
        if n == 0 || u32::try_from(n).is_err() {
            return Err(Error::invalid("data", format!("{n} rows"), "from 1 to 4294967294 rows"));
        }
        let specification = without_cells(specification)?;
        check_form(&specification, rows.csr().is_some())?;
        let rows = TableRows { rows, weights: None };
        let data = survey(&specification, &rows, cancel)?;
        Self::of_survey(&specification, &rows, &data, None, Specification::by_rule, cancel)
    }

    /// Builds the target of these rows.
    ///
    /// # Errors
    /// As [`Target::new`].
    pub fn target<F: Scalar>(&self, rows: &dyn Rows<F>) -> Result<Target> {
        let Named { name, parameters } = &self.specification.likelihood;
        let frame = Frame { origin: self.origin.clone(), missing: self.specification.missing, words: false };
        let likelihood = likelihood::build::<f64>(name, parameters, frame)?;
        let table = RowTable::new(rows, &self.coordinates, likelihood.origin());
        Target::new(likelihood, self.specification.partitions()?, table, self.coordinates.log_volume())
    }

    /// New rows in the form that a target needs.
    pub fn table<F: Scalar>(&self, target: &Target, rows: &dyn Rows<F>) -> RowTable {
        RowTable::new(rows, &self.coordinates, target.likelihood.origin())
    }
}

/// The specification without rounding cells (mathematics 10.5), which have no closed marginal likelihood.
fn without_cells(specification: &Specification) -> Result<Specification> {
    let Named { name, parameters } = &specification.likelihood;
    if !likelihood::demands(name)?.resolution {
        return Ok(specification.clone());
    }
    let widths = parameters.numbers(&RESOLUTION, None)?.unwrap_or_default();
    if widths.iter().any(|width| *width != 0.0) {
        let reason = "a cell has no closed marginal likelihood";
        return Err(Error::not_supported("resolution", "a resolution for a sampler", reason, "resolution=0"));
    }
    Ok(specification.with_base(parameters.with([(RESOLUTION.name, Value::Number(0.0))])))
}
