//! Prepares a target from a specification and data.

use std::sync::Arc;

use crate::data::{Coordinates, RowUnits, Rows, TableRows, check_rows, moments, strays};
use crate::error::{Error, Result};
use crate::fit::{Job, Settings, seen};
use crate::grounds::check_form;
use crate::init::Init;
use crate::likelihood::{self, Frame};
use crate::mcmc::{RowTable, Target};
use crate::model::{Named, Specification};
use crate::parallel::Cancel;
use crate::parameters::{Parameters, Value};
use crate::process::Partitions;
use crate::registry::RESOLUTION;
use crate::simd::Scalar;

/// A model with all parameters filled in, and the transformation of its rows.
#[derive(Debug, Clone)]
pub struct Grounds {
    /// The coordinates of the rows.
    pub coordinates: Arc<Coordinates>,
    /// The specification in these coordinates.
    pub specification: Specification,
    /// The origin, subtracted from every row, (r,).
    pub origin: Vec<f64>,
    /// A fingerprint of the rows.
    pub fingerprint: u64,
}

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
    pub fn new<F: Scalar>(specification: &Specification, rows: &dyn Rows<F>, cancel: &Cancel) -> Result<Self> {
        check_model(specification)?;
        let n = rows.n_rows();
        if n == 0 || u32::try_from(n).is_err() {
            return Err(Error::invalid("data", format!("{n} rows"), "from 1 to 4294967294 rows"));
        }
        let specification = without_cells(specification)?;
        let Named { name, .. } = &specification.likelihood;
        let demands = likelihood::demands(name)?;
        check_form(&specification, rows.csr().is_some(), demands)?;
        let dataset = TableRows { rows, weights: None };
        let data = moments(&dataset, demands.needs, &specification.allowed()?, specification.missing, cancel)?;
        let settings = Settings::default();
        let job = Job { specification: &specification, rows: &dataset, init: &Init::Random, settings: &settings };
        let coordinates = Arc::new(seen(&job, &data, cancel)?.coordinates);
        let own = data.seen_through(&coordinates);
        let specification = specification.in_coordinates(&coordinates)?.by_rule(&own)?;
        let origin = own.mean.iter().map(|&value| F::from_f64(value).to_f64()).collect();
        Ok(Self { coordinates, specification, origin, fingerprint: data.fingerprint })
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

    /// Checks new rows, which the caller calls `argument`. Returns the rows off the subspace on which the model has a
    /// density.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] and [`Error::NotSupported`] for rows that the likelihood does not accept;
    /// [`Error::Cancelled`].
    pub fn check_new<F: Scalar>(&self, rows: &dyn Rows<F>, argument: &str, cancel: &Cancel) -> Result<Vec<usize>> {
        let d = self.coordinates.n_columns();
        if rows.n_columns() != d {
            let found = format!("an array with {} columns", rows.n_columns());
            return Err(Error::invalid(argument, found, format!("an array with {d} columns, as the data had")));
        }
        check_values(&self.specification, rows, argument, cancel)?;
        Ok(strays(&RowUnits::all(rows, None), &self.coordinates, cancel)?.units)
    }

    /// Returns the parameters of the likelihood in the data's columns and units.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for invalid parameters, as in a damaged file.
    pub fn parameters(&self) -> Result<Parameters> {
        let Named { name, parameters } = &self.specification.likelihood;
        likelihood::of_data(name, parameters, &self.coordinates)
    }
}

/// Refuses rows that the likelihood does not accept.
///
/// # Errors
/// [`Error::InvalidArgument`] and [`Error::NotSupported`] for `argument`; [`Error::Cancelled`].
pub fn check_values<F: Scalar>(
    specification: &Specification,
    rows: &dyn Rows<F>,
    argument: &str,
    cancel: &Cancel,
) -> Result<()> {
    check_form(specification, rows.csr().is_some(), likelihood::demands(&specification.likelihood.name)?)?;
    let units = RowUnits::all(rows, None);
    check_rows(&units, &specification.allowed()?, specification.missing, argument, cancel)
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
