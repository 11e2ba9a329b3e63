//! What fits and samplers both ask of data before work starts: rows that the likelihood takes, their moments, the
//! coordinates in which the model sees them, and the parameters that follow from them.

mod functions;
mod near;
mod rounded;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::data::{
    Coordinates, Dataset, Domain, Freedom, Informative, Moments, OTHER_VALUES, Reading, Repetition, RowUnits, Rows,
    SeenRows, Sought, all_moments, check_rows, informative, strays, typical,
};
use crate::error::{Error, Result};
use crate::likelihood;
use crate::model::{Named, Specification};
use crate::parallel::Cancel;
use crate::parameters::Parameters;
use crate::registry::{EXPOSURE, Feature};
use crate::simd::Scalar;

use functions::{functions, together};
use near::NearColumns;
pub(crate) use near::seen_moments;
use rounded::RoundedColumns;

/// Number of rows used to estimate the typical spread of a column.
const FIRST_ROWS: usize = 4096;

/// A specification with all parameters filled in, and the transformation of its rows.
#[derive(Debug, Clone)]
pub struct Grounds {
    /// The coordinates of the rows.
    pub coordinates: Arc<Coordinates>,
    /// Whether there were too few rows to span all columns.
    pub lacks_rows: bool,
    /// The specification in these coordinates.
    pub specification: Specification,
    /// The origin, subtracted from every row, (r,).
    pub origin: Vec<f64>,
    /// A fingerprint of the rows.
    pub fingerprint: u64,
}

/// Sets the parameters of a specification that the user left open, from the moments of the data.
pub(crate) type Complete = fn(&Specification, &Moments) -> Result<Specification>;

/// Reads the data: their moments and, if the specification asks for it, the resolution of their columns.
///
/// # Errors
/// As [`all_moments`].
pub(crate) fn survey<F: Scalar>(
    specification: &Specification,
    rows: &dyn Dataset<F>,
    cancel: &Cancel,
) -> Result<Moments> {
    let Named { name, parameters } = &specification.likelihood;
    let (allowed, missing) = (specification.allowed()?, specification.missing);
    rows.watch(specification.allowed()?, missing);
    for member in likelihood::members(name, parameters)? {
        let n_columns = member.columns.as_ref().map_or(rows.n_columns(), Vec::len);
        member.parameters(parameters).exposure_among(n_columns)?;
    }
    all_moments(rows, sought(specification)?, &allowed, missing, cancel)
}

/// What is sought in the rows of a specification.
fn sought(specification: &Specification) -> Result<Sought> {
    let Named { name, parameters } = &specification.likelihood;
    let of_likelihood = likelihood::demands(name, parameters)?.sought;
    let resolution = of_likelihood.resolution && specification.seeks_resolution()?;
    let needs = of_likelihood.needs.max(specification.needs_of_background());
    Ok(Sought { needs, resolution, repeats: true, ..of_likelihood })
}

/// Refuses data whose moments, computed `again`, do not have the fingerprint of their first reading.
///
/// # Errors
/// [`Error::Source`] for changed data; errors of the second reading.
pub(crate) fn check_same(again: Result<Moments>, fingerprint: u64) -> Result<()> {
    match again {
        Ok(again) if again.fingerprint == fingerprint => Ok(()),
        // Values that are not allowed were refused before, so these are new.
        Ok(_) | Err(Error::InvalidArgument { .. }) => Err(Error::Source { batch: None, message: OTHER_VALUES.into() }),
        Err(failure) => Err(failure),
    }
}

impl Grounds {
    /// Chooses the coordinates of surveyed data, or takes those of an `earlier` fit, and completes the specification in
    /// them.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for rows outside the coordinates of the earlier fit, and for inconsistent parameters;
    /// [`Error::Source`]; [`Error::Cancelled`].
    pub(crate) fn of_survey<F: Scalar>(
        specification: &Specification,
        rows: &dyn Dataset<F>,
        data: &Moments,
        earlier: Option<&Coordinates>,
        complete: Complete,
        cancel: &Cancel,
    ) -> Result<Self> {
        let Informative { coordinates, lacks_rows, .. } = match earlier {
            Some(earlier) => of_earlier(earlier, rows, data, cancel)?,
            None => of_moments(specification, rows, data, cancel)?,
        };
        // What follows from the data should follow from most of them, not from a few rows far away.
        let coordinates = Arc::new(coordinates);
        let moments = if coordinates.residuals().is_empty() {
            typical(rows, data)?.seen_through(&coordinates)
        } else {
            let seen = seen_moments(rows, data, &coordinates, sought(specification)?, cancel)?;
            typical(&SeenRows { rows, coordinates: &coordinates }, &seen)?
        };
        let specification = complete(&specification.in_coordinates(&coordinates)?, &moments)?;
        rows.watch(specification.allowed()?, specification.missing);
        // The origin is rounded to the data's type, so that subtracting it from a row is exact to the last bit of the
        // row.
        let origin = moments.mean.iter().map(|&value| F::from_f64(value).to_f64()).collect();
        let fingerprint = data.fingerprint;
        Ok(Self { coordinates, lacks_rows, specification, origin, fingerprint })
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
        Ok(self.specification.with_prior(&likelihood::of_data(name, parameters, &self.coordinates)?))
    }
}

/// The coordinates of an earlier fit, if the rows lie on its subspace.
fn of_earlier<F: Scalar>(
    earlier: &Coordinates,
    rows: &dyn Dataset<F>,
    data: &Moments,
    cancel: &Cancel,
) -> Result<Informative> {
    if earlier.n_columns() != data.dimension() {
        return Err(Error::invalid(
            "init",
            "a fit of another likelihood or dimension",
            "a fit of the same likelihood and dimension",
        ));
    }
    let off = strays_of(rows, earlier, cancel)?;
    if off.is_empty() { Ok(with_rows(earlier.clone())) } else { Err(off_support("data", &off)) }
}

/// Coordinates chosen from the moments.
fn of_moments<F: Scalar>(
    specification: &Specification,
    rows: &dyn Dataset<F>,
    data: &Moments,
    cancel: &Cancel,
) -> Result<Informative> {
    // What columns that depend on others add to the volume of a row depends on which values it has.
    let most = if specification.missing { Freedom::Columns } else { Freedom::Subspace };
    let mut found = informative_of_parts::<F>(specification, data, most)?;
    if !found.coordinates.dependents().is_empty() {
        let sample = first_rows(rows)?;
        let sought = sought(specification)?;
        let near = NearColumns { specification, rows, data, sought, sample: &sample, cancel };
        if let Some(coordinates) = near.coordinates(&found.coordinates)? {
            found.coordinates = in_units_of_rows(coordinates, rows, data, sought, cancel)?;
        }
        // An extreme outlier makes any two columns look linearly dependent.
        found.coordinates = found.coordinates.narrowed(|column| typical_spread(&sample, column));
        // A few rows off the subspace add little to the moments but would have no density.
        if !strays_of(rows, &found.coordinates, cancel)?.is_empty() {
            found = informative_of_parts::<F>(specification, data, Freedom::Columns)?;
        }
    }
    if !specification.missing {
        let groups = rounded::groups(specification, data, &found.coordinates)?;
        // Data in blocks are read again only for columns that are rounded.
        let (is_table, is_told) = (rows.table().is_some(), sought(specification)?.resolution);
        let together = together(specification, data, &found.coordinates, is_told || !is_table)?;
        if !groups.is_empty() || !together.is_empty() {
            let sample = &first_rows(rows)?;
            found.coordinates = RoundedColumns { rows, data, sample, cancel }.left_out(found.coordinates, groups)?;
            let mut spread = if is_table { spread_rows(rows)? } else { sample.clone() };
            // Values of copied rows repeat in all columns, which tells of no function.
            if data.repeats.rows == Repetition::Copies && !data.repeats.are_codes {
                spread.sort_unstable_by(|a, b| a.iter().map(|x| x.to_bits()).cmp(b.iter().map(|x| x.to_bits())));
                spread.dedup();
            }
            let follow = functions(&together, data, &found.coordinates, &spread);
            if !follow.is_empty() {
                found.coordinates = found.coordinates.without_rounded(&follow);
            }
        }
    }
    if specification.missing {
        // With missing values, the volume factor of a row would depend on which values are present.
        found.coordinates = found.coordinates.without_units();
    }
    Ok(found)
}

/// The same columns in units of their standard deviations, which are those of residuals where these replace columns.
fn in_units_of_rows<F: Scalar>(
    coordinates: Coordinates,
    rows: &dyn Dataset<F>,
    data: &Moments,
    sought: Sought,
    cancel: &Cancel,
) -> Result<Coordinates> {
    let coordinates = Arc::new(coordinates);
    let seen = seen_moments(rows, data, &coordinates, sought, cancel)?;
    Ok(Coordinates::clone(&coordinates).in_units_of(&seen))
}

/// Coordinates with at most some freedom, each part of the likelihood having its own.
fn informative_of_parts<F: Scalar>(
    specification: &Specification,
    data: &Moments,
    most: Freedom,
) -> Result<Informative> {
    let Named { name, parameters } = &specification.likelihood;
    let mut all = Vec::new();
    for part in likelihood::members(name, parameters)? {
        let own = part.columns.as_ref().map_or(Cow::Borrowed(data), |columns| Cow::Owned(data.of_columns(columns)));
        let given = part.parameters(parameters);
        let freedom = likelihood::demands(part.entry.name, &given)?.freedom;
        let about_zero = part.entry.domain == Some(Domain::Centred);
        let mut found = informative::<F>(&own, freedom.min(most), about_zero)?;
        if likelihood::fills_directions(part.entry, &given, &found.coordinates) {
            found = with_rows(Coordinates::in_units(&own, freedom, about_zero));
        }
        let Some(columns) = part.columns else { return Ok(found) };
        all.push((columns, found));
    }
    // A block of constant columns says nothing beside others.
    if all.iter().any(|(_, found)| found.varies) {
        for (columns, found) in all.iter_mut().filter(|(_, found)| !found.varies) {
            let value = |&j: &usize| data.constant(j).unwrap_or(data.mean[j]);
            found.coordinates = Coordinates::nothing(columns.iter().map(value).collect());
        }
    }
    let lacks_rows = all.iter().any(|(_, found)| found.lacks_rows);
    let blocks: Vec<_> = all.into_iter().map(|(columns, found)| (columns, found.coordinates)).collect();
    Ok(Informative { coordinates: Coordinates::of_blocks(&blocks), lacks_rows, varies: true })
}

/// Coordinates for which there are enough rows.
fn with_rows(coordinates: Coordinates) -> Informative {
    Informative { coordinates, lacks_rows: false, varies: true }
}

/// The first rows in float64.
fn first_rows<F: Scalar>(rows: &dyn Dataset<F>) -> Result<Vec<Vec<f64>>> {
    picked(rows, &(0..rows.n_rows().min(FIRST_ROWS) as u64).collect::<Vec<_>>())
}

/// As many rows, equally far apart.
fn spread_rows<F: Scalar>(rows: &dyn Dataset<F>) -> Result<Vec<Vec<f64>>> {
    let (n, most) = (rows.n_rows(), rows.n_rows().min(FIRST_ROWS));
    picked(rows, &(0..most).map(|place| (place * n / most) as u64).collect::<Vec<_>>())
}

fn picked<F: Scalar>(rows: &dyn Dataset<F>, numbers: &[u64]) -> Result<Vec<Vec<f64>>> {
    let first = rows.pick(numbers)?;
    let (n, d) = (first.len(), first.dimension());
    let mut values = vec![F::ZERO; n * d];
    first.read(0..n, &vec![F::ZERO; d], &mut values);
    Ok(values.chunks_exact(d).map(|row| row.iter().map(|value| value.to_f64()).collect()).collect())
}

/// The median absolute deviation of a column, scaled to a standard deviation; 0 if most values are equal.
fn typical_spread(rows: &[Vec<f64>], column: usize) -> f64 {
    let median = |mut values: Vec<f64>| {
        values.sort_unstable_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(0.0)
    };
    let values: Vec<f64> = rows.iter().map(|row| row[column]).filter(|x| !x.is_nan()).collect();
    let centre = median(values.clone());
    // Consistent for a normal distribution.
    1.4826 * median(values.into_iter().map(|x| (x - centre).abs()).collect())
}

/// The columns in which rows lie off the subspace of coordinates.
pub(crate) fn strays_of<F: Scalar>(
    rows: &dyn Dataset<F>,
    coordinates: &Coordinates,
    cancel: &Cancel,
) -> Result<BTreeSet<usize>> {
    if coordinates.is_full() {
        return Ok(BTreeSet::new());
    }
    rows.sum(&Reading::Strays(coordinates.clone()), cancel)?.into_columns()
}

/// The error for rows that vary in directions in which those of an earlier fit did not.
pub(crate) fn off_support(argument: &str, columns: &BTreeSet<usize>) -> Error {
    let names: Vec<String> = columns.iter().map(ToString::to_string).collect();
    let are = if names.len() == 1 { "column" } else { "columns" };
    let found =
        format!("off the subspace in {are} {}, which were constant or depended on other columns", names.join(", "));
    Error::invalid(argument, found, "on the subspace of the earlier fit, or fitted together with its rows")
}

/// Checks that the likelihood takes rows of this form.
pub(crate) fn check_form(specification: &Specification, sparse: bool) -> Result<()> {
    let demands = likelihood::demands(&specification.likelihood.name, &specification.likelihood.parameters)?;
    let refuse = |argument: &str, what: &str, reason: &str, allowed: &str| {
        let found = format!("{what} for {}", specification.likelihood.name);
        Err(Error::not_supported(argument, found, reason, allowed))
    };
    if sparse && !demands.sparse {
        return refuse("data", "a sparse array", "it treats zeros like any other value", "a dense array");
    }
    let Named { name, parameters } = &specification.likelihood;
    let mut exposed = false;
    for member in likelihood::members(name, parameters)? {
        exposed |= member.parameters(parameters).exposure()?.is_some();
    }
    if specification.missing && exposed {
        let reason = "rows with exposures must be complete";
        return refuse(
            EXPOSURE.name,
            "an exposure and missing=\"marginalize\"",
            reason,
            "complete rows, or exposure=None",
        );
    }
    if specification.missing && !demands.missing {
        let allowed = format!("{}, or data without missing values", likelihood::supporting(Feature::Missing));
        return refuse(
            "missing",
            "missing=\"marginalize\"",
            "missing values cannot be integrated out exactly",
            &allowed,
        );
    }
    let entry = likelihood::entry(name)?;
    let unless = entry.support(Feature::Missing).and_then(|support| support.unless);
    if let Some((name, word)) = unless.filter(|&word| parameters.has_word(entry, word))
        && specification.missing
    {
        let found = format!("missing=\"marginalize\" for {}({name}={word:?})", specification.likelihood.name);
        let allowed = format!("another {name}, or data without missing values");
        return Err(Error::not_supported("missing", found, "missing values cannot be integrated out exactly", allowed));
    }
    if specification.missing && sparse {
        let reason = "values that are not stored are zero, not missing";
        return refuse("missing", "missing=\"marginalize\" on a sparse array", reason, "a dense array");
    }
    Ok(())
}

/// Refuses rows that the likelihood does not accept.
///
/// # Errors
/// [`Error::InvalidArgument`] and [`Error::NotSupported`] for `argument`; [`Error::Cancelled`].
pub(crate) fn check_values<F: Scalar>(
    specification: &Specification,
    rows: &dyn Rows<F>,
    argument: &str,
    cancel: &Cancel,
) -> Result<()> {
    check_form(specification, rows.csr().is_some())?;
    let units = RowUnits::all(rows, None);
    check_rows(&units, &specification.allowed()?, specification.missing, argument, cancel)
}

/// Checks that row indices fit in 32 bits.
pub(crate) fn check_numbers(argument: &str, n_rows: usize) -> Result<()> {
    if u32::try_from(n_rows).is_ok() {
        return Ok(());
    }
    Err(Error::invalid(argument, format!("{n_rows} rows"), format!("at most {} rows", u32::MAX)))
}
