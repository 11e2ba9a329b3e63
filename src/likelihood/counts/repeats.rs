//! How many columns of counts each column stands for. Columns of wide sparse rows in which no row has a value are
//! equal, so one column stands for all of them. A column of exposures stands for none.

use crate::data::{Exposure, Moments};
use crate::error::Result;
use crate::parameters::Parameters;
use crate::registry::REPEATS;

/// How many columns of counts each column stands for: one, the last one perhaps many without a value, and that of
/// exposures none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Repeats {
    n_columns: usize,
    of_last: f64,
    /// The column of exposures.
    exposures: Option<usize>,
}

impl Repeats {
    /// Each of the columns stands for itself.
    pub fn none(n_columns: usize) -> Self {
        Self { n_columns, of_last: 1.0, exposures: None }
    }

    /// One column each, but none for the column of exposures.
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] for an exposure that is not allowed.
    pub fn of_counts(parameters: &Parameters, n_columns: usize) -> Result<Self> {
        Ok(Self { exposures: parameters.exposure()?.and_then(Exposure::column), ..Self::none(n_columns) })
    }

    /// The number in parameters, for rows with `n_columns` columns.
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] for a number that is not allowed.
    pub fn read(parameters: &Parameters, n_columns: usize) -> Result<Self> {
        let of_last = Parameters::required(REPEATS.name, parameters.given(&REPEATS)?)?;
        Ok(Self { n_columns, of_last, exposures: parameters.exposure()?.and_then(Exposure::column) })
    }

    /// Adds the number among `given` to parameters that follow from it and from the data.
    pub fn keep(given: &Parameters, found: Parameters) -> Parameters {
        match given.0.get(REPEATS.name) {
            Some(value) => found.with([(REPEATS.name, value.clone())]),
            None => found,
        }
    }

    /// The mean of the columns of counts.
    ///
    /// # Errors
    /// As [`Repeats::read`].
    pub fn overall_mean(parameters: &Parameters, data: &Moments) -> Result<f64> {
        let all = Self::read(parameters, data.dimension())?;
        Ok(all.sum(data.mean.iter().copied()) / all.n_data_columns())
    }

    /// Number of columns of counts that a column stands for.
    pub fn of(self, column: usize) -> f64 {
        if self.exposures == Some(column) {
            return 0.0;
        }
        if column + 1 == self.n_columns { self.of_last } else { 1.0 }
    }

    /// Number of columns of counts.
    pub fn n_data_columns(self) -> f64 {
        (self.n_columns - 1) as f64 + self.of_last - f64::from(u8::from(self.exposures.is_some()))
    }

    /// The sum over the columns of counts of terms by column.
    pub fn sum(self, terms: impl Iterator<Item = f64>) -> f64 {
        if self.of_last == 1.0 && self.exposures.is_none() {
            return terms.sum();
        }
        terms.enumerate().map(|(column, term)| self.of(column) * term).sum()
    }
}
