//! Requirements of a likelihood on the data: allowed values, and the moments that its defaults need.

use std::fmt::Display;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::data::rows::BLOCK;
use crate::data::{Exposed, Exposure, Freedom, RowUnits};
use crate::error::{Error, Result};
use crate::parallel::{Cancel, blocks, try_map};
use crate::real::{Plain, Real};

/// The values that rows may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Domain {
    /// Finite numbers.
    Real,
    /// Finite numbers whose mean is near zero.
    Centred,
    /// Whole numbers from 0 to 2^53.
    Counts,
    /// 0 and 1.
    Binary,
    /// Integer codes from 0 of a column's levels.
    Codes,
    /// Finite numbers, of which each column may allow fewer.
    Mixed,
}

/// Maximum number of levels of a column. A column with more is taken for identifiers rather than codes.
pub const MOST_LEVELS: u32 = 1 << 20;

/// The largest count; beyond it float64 does not represent every integer.
const MOST: f64 = 9_007_199_254_740_992.0;

impl Domain {
    /// Whether the domain contains the value.
    pub fn has(self, value: f64) -> bool {
        match self {
            Self::Real | Self::Centred | Self::Mixed => value.is_finite(),
            Self::Counts => (0.0..=MOST).contains(&value) && value.fract() == 0.0,
            Self::Binary => value == 0.0 || value == 1.0,
            Self::Codes => (0.0..f64::from(MOST_LEVELS)).contains(&value) && value.fract() == 0.0,
        }
    }

    /// Public name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::Centred => "centred",
            Self::Counts => "counts",
            Self::Binary => "binary",
            Self::Codes => "codes",
            Self::Mixed => "mixed",
        }
    }

    /// Description of the allowed values, for error messages.
    pub fn allowed(self) -> &'static str {
        match self {
            Self::Real | Self::Centred | Self::Mixed => "finite",
            Self::Counts => "whole numbers from 0 to 2^53",
            Self::Binary => "0 or 1 everywhere",
            Self::Codes => "integer codes from 0, below 2^20",
        }
    }

    /// Checks a value at a position.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] naming the position.
    pub fn check<F: Real>(self, argument: &str, value: F, row: usize, column: usize) -> Result<()> {
        if self.has(value.to_f64()) {
            return Ok(());
        }
        let shown = Plain(value);
        Err(Error::invalid(argument, format!("{shown} in row {row}, column {column}"), self.allowed()))
    }
}

/// The exposures of rows: sums of them, and of their products with dispersions, stay finite.
const EXPOSURES: RangeInclusive<f64> = 1e-100..=1e100;

/// Allowed values of each column of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Allowed {
    /// The domain of each column, or one of all columns.
    domains: Vec<Domain>,
    /// Number of levels of each column, or one number for all columns; empty if unknown, 0 for a column without.
    levels: Vec<u32>,
    /// Columns of which a row has all or none.
    whole: Vec<Vec<usize>>,
    /// The exposures of rows; a column of them has positive numbers.
    exposed: Vec<Exposed>,
}

impl From<Domain> for Allowed {
    fn from(domain: Domain) -> Self {
        Self { domains: vec![domain], levels: Vec::new(), whole: Vec::new(), exposed: Vec::new() }
    }
}

impl Allowed {
    /// Codes below the number of levels of each column.
    pub fn codes(levels: Vec<u32>) -> Self {
        Self { levels, ..Domain::Codes.into() }
    }

    /// Counts, and positive numbers in a column of exposures.
    pub fn counts(exposure: Option<Exposure>) -> Self {
        let exposed = exposure.into_iter().map(|source| Exposed { source, columns: None }).collect();
        Self { exposed, ..Domain::Counts.into() }
    }

    /// What blocks of columns allow; a row may lack single values of a block, or only all of them.
    pub fn of_blocks(blocks: &[(Vec<usize>, Self, bool)]) -> Self {
        let d = blocks.iter().map(|(columns, ..)| columns.len()).sum();
        let mut all = Self { domains: vec![Domain::Real; d], ..Domain::Real.into() };
        if blocks.iter().any(|(_, allowed, _)| !allowed.levels.is_empty()) {
            all.levels = vec![0; d];
        }
        for (columns, allowed, is_whole) in blocks {
            for (index, &column) in columns.iter().enumerate() {
                all.domains[column] = allowed.domain(index);
                if let Some(levels) = allowed.levels(index) {
                    all.levels[column] = levels;
                }
            }
            all.exposed.extend(allowed.exposed.iter().map(|exposed| exposed.of_block(columns)));
            if *is_whole {
                all.whole.push(columns.clone());
            }
        }
        all
    }

    /// Refuses a row that lacks some columns of which it has to have all or none. Without `missing`, every missing
    /// value is refused elsewhere.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] naming the position.
    pub fn check_holes<F: Real>(&self, argument: &str, row: &[F], number: usize, missing: bool) -> Result<()> {
        let is_hole = |column: &&usize| row[**column].is_nan();
        for columns in self.whole.iter().filter(|_| missing) {
            if let Some(hole) = columns.iter().find(is_hole)
                && !columns.iter().all(|column| is_hole(&column))
            {
                let found = format!("NaN in row {number}, column {hole}");
                let allowed = "finite, because the likelihood of its block needs all columns of the block or none";
                return Err(Error::invalid(argument, found, allowed));
            }
        }
        Ok(())
    }

    /// Checks a value at a position.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] naming the position.
    pub fn check<F: Real>(&self, argument: &str, value: F, row: usize, column: usize) -> Result<()> {
        if self.has(value.to_f64(), column) {
            return Ok(());
        }
        if self.columns_of_exposures().any(|own| own == column) {
            return Err(Self::not_positive(argument, &Plain(value), row, column));
        }
        self.domain(column).check(argument, value, row, column)?;
        let levels = self.levels(column).unwrap_or_default();
        let allowed = format!("a code from 0 to {}: that column has {levels} levels", levels.saturating_sub(1));
        Err(Error::invalid(argument, format!("{} in row {row}, column {column}", Plain(value)), allowed))
    }

    /// Checks that a sparse row, with values in these columns, has an exposure.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] naming the position.
    pub fn check_exposure(&self, argument: &str, columns: &[u32], row: usize) -> Result<()> {
        match self.columns_of_exposures().find(|&own| !columns.iter().any(|&column| column as usize == own)) {
            Some(own) => Err(Self::not_positive(argument, &Plain(0.0), row, own)),
            None => Ok(()),
        }
    }

    fn not_positive(argument: &str, value: &dyn Display, row: usize, column: usize) -> Error {
        let found = format!("{value} in row {row}, column {column}");
        Error::invalid(argument, found, "an exposure above 0, from 1e-100 to 1e100")
    }

    /// Whether a value is allowed in a column.
    pub fn has(&self, value: f64, column: usize) -> bool {
        if self.columns_of_exposures().any(|own| own == column) {
            return EXPOSURES.contains(&value);
        }
        self.domain(column).has(value) && self.levels(column).is_none_or(|levels| value < f64::from(levels))
    }

    /// The exposures of rows.
    pub fn exposed(&self) -> &[Exposed] {
        &self.exposed
    }

    fn columns_of_exposures(&self) -> impl Iterator<Item = usize> + '_ {
        self.exposed.iter().filter_map(|exposed| exposed.source.column())
    }

    /// Whether all columns have real numbers.
    pub fn are_real(&self) -> bool {
        self.domains.iter().all(|domain| matches!(domain, Domain::Real | Domain::Centred))
    }

    /// Whether any column has codes.
    pub fn has_codes(&self) -> bool {
        self.domains.contains(&Domain::Codes)
    }

    /// Whether a column has counts.
    pub fn is_counts(&self, column: usize) -> bool {
        self.domain(column) == Domain::Counts && !self.columns_of_exposures().any(|own| own == column)
    }

    fn domain(&self, column: usize) -> Domain {
        *self.domains.get(column).unwrap_or(&self.domains[0])
    }

    fn levels(&self, column: usize) -> Option<u32> {
        let found = self.levels.get(column).or_else(|| self.levels.first().filter(|_| self.levels.len() == 1));
        found.copied().filter(|_| self.domain(column) == Domain::Codes)
    }
}

/// Moments of the data needed to fill in absent parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Needs {
    /// Column means.
    Means,
    /// Column means and variances.
    Variances,
    /// Column means and the covariance.
    Covariance,
}

/// What is sought in data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sought {
    /// The moments.
    pub needs: Needs,
    /// Whether the resolution of columns is sought.
    pub resolution: bool,
    /// Whether the counts of every column are sought.
    pub values: bool,
    /// Whether it is to be judged why rows repeat.
    pub repeats: bool,
}

impl Sought {
    /// Moments alone.
    pub fn of(needs: Needs) -> Self {
        Self { needs, resolution: false, values: false, repeats: false }
    }
}

/// Requirements of a likelihood on the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demands {
    /// Allowed values of rows.
    pub domain: Domain,
    /// What is sought in the first readings.
    pub sought: Sought,
    /// Whether rows may be sparse.
    pub sparse: bool,
    /// Whether rows may have missing values, which are left out.
    pub missing: bool,
    /// Which columns the model may leave out.
    pub freedom: Freedom,
}

/// Checks rows whose moments are not computed. With `missing`, NaN stands for a missing value.
///
/// # Errors
/// [`Error::InvalidArgument`] naming the first value outside the domain; [`Error::Cancelled`].
pub fn check_rows<F: Real>(
    units: &RowUnits<'_, F>,
    allowed: &Allowed,
    missing: bool,
    argument: &str,
    cancel: &Cancel,
) -> Result<()> {
    if let Some(table) = units.csr() {
        let ranges: Vec<_> = blocks(units.len(), BLOCK).collect();
        try_map(ranges.len(), |index| {
            cancel.check()?;
            for number in ranges[index].clone().map(|unit| units.row_number(unit)) {
                let (columns, values) = table.row(number);
                for (&column, &value) in columns.iter().zip(values) {
                    allowed.check(argument, value, number, column as usize)?;
                }
                allowed.check_exposure(argument, columns, number)?;
            }
            Ok(())
        })?;
        return Ok(());
    }
    let d = units.dimension();
    units.map_blocks(&vec![F::ZERO; d], cancel, |range, rows| {
        for (unit, row) in range.zip(rows.chunks_exact(d)) {
            allowed.check_holes(argument, row, units.row_number(unit), missing)?;
            for (column, &value) in row.iter().enumerate().filter(|(_, value)| !(missing && value.is_nan())) {
                allowed.check(argument, value, units.row_number(unit), column)?;
            }
        }
        Ok(())
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::DenseRows;

    #[test]
    fn domains_have_their_values_only() {
        assert!(Domain::Counts.has(0.0) && Domain::Counts.has(MOST) && !Domain::Counts.has(0.5));
        assert!(!Domain::Counts.has(-1.0) && !Domain::Counts.has(f64::NAN) && !Domain::Counts.has(2.0 * MOST));
        assert!(Domain::Binary.has(1.0) && !Domain::Binary.has(2.0) && !Domain::Real.has(f64::INFINITY));
    }

    #[test]
    fn the_place_of_a_wrong_value_is_named() {
        let rows = DenseRows::new(vec![0.0, 1.0, 1.0, f64::NAN, 0.0, 3.0], 2);
        let check =
            |missing| check_rows(&RowUnits::all(&rows, None), &Domain::Binary.into(), missing, "X", &Cancel::default());
        let message = |missing| check(missing).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(message(false).contains("NaN in row 1, column 1"), "{}", message(false));
        assert!(message(true).contains("3 in row 2, column 1"), "{}", message(true));
    }
}
