//! Exposures of rows under the families of counts (mathematics 1g).

use crate::data::{Exposure, Moments};
use crate::error::{Error, Result};
use crate::parameters::{Parameters, Value};
use crate::registry::{EXPOSURE, MEAN_EXPOSURE};
use crate::scoring::{Column, Row};

/// The exposures of rows: 1 for every row, unless a column or the total of the row has them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exposures {
    source: Option<Exposure>,
    /// That of an average row of the data.
    mean: f64,
}

impl Exposures {
    /// Those in complete parameters, for rows with `n_columns` columns.
    ///
    /// # Errors
    /// As [`Parameters::exposure_among`].
    pub fn read(parameters: &Parameters, n_columns: usize) -> Result<Self> {
        let mean = Parameters::required(MEAN_EXPOSURE.name, parameters.given(&MEAN_EXPOSURE)?)?;
        let source = parameters.exposure_among(n_columns)?;
        Ok(Self { source, mean: if source.is_some() { mean } else { 1.0 } })
    }

    /// Those of data.
    ///
    /// # Errors
    /// As [`Parameters::exposure_among`].
    pub fn of_data(parameters: &Parameters, data: &Moments) -> Result<Self> {
        let source = parameters.exposure_among(data.dimension())?;
        let mean = source.map_or(1.0, |source| source.of_row(&data.mean));
        // The total of every row may be zero.
        Ok(Self { source, mean: if mean > 0.0 { mean } else { 1.0 } })
    }

    /// Adds them to parameters that follow from them.
    pub fn keep(self, given: &Parameters, found: Parameters) -> Parameters {
        if self.source.is_none() {
            return found;
        }
        let exposure = given.0.get(EXPOSURE.name).cloned().unwrap_or(Value::Absent);
        found.with([(EXPOSURE.name, exposure), (MEAN_EXPOSURE.name, Value::Number(self.mean))])
    }

    /// Where they are.
    pub fn source(self) -> Option<Exposure> {
        self.source
    }

    /// The exposure of an average row.
    pub fn mean(self) -> f64 {
        self.mean
    }

    /// The column of exposures, if there is one.
    pub fn column(self) -> Option<usize> {
        self.source.and_then(Exposure::column)
    }

    /// The exposure of a row.
    pub fn of(self, row: Row<'_>) -> f64 {
        match (self.source, row) {
            (None, _) => 1.0,
            (Some(source), Row::Dense(values)) => source.of_row(values),
            (Some(source), Row::Sparse(columns, values)) => {
                source.of_entries(columns.iter().copied().zip(values.iter().copied()))
            }
        }
    }

    /// [`Row::sum`] over the columns of counts.
    pub fn sum(self, row: Row<'_>, at_zero: f64, f: impl Fn(usize, f64) -> f64) -> f64 {
        let Some(own) = self.column() else { return row.sum(at_zero, f) };
        row.sum(at_zero, |column, x| if column == own { 0.0 } else { f(column, x) })
    }

    /// [`Row::sum_of`] over the columns of counts.
    pub fn sum_of(self, row: Row<'_>, dimension: usize, f: impl Fn(usize, f64) -> f64) -> f64 {
        let Some(own) = self.column() else { return row.sum_of(dimension, f) };
        row.sum_of(dimension, |column, x| if column == own { 0.0 } else { f(column, x) })
    }

    /// Sets the entry of the column of exposures in values by column, if there is one.
    pub fn set(self, values: &mut [f64], exposure: f64) {
        if let Some(column) = self.column() {
            values[column] = exposure;
        }
    }
}

/// The error for what has no exposure.
pub fn refused(what: &str) -> Error {
    let (found, reason) = (format!("{what} for a likelihood with an exposure"), "it depends on the exposure of a row");
    Error::not_supported("exposure", found, reason, "exposure=None")
}

/// Turns terms of counts and of exposures, which are the constants, into terms of the columns of a row.
pub fn fold(source: Option<Exposure>, columns: &mut [Column]) {
    let Some(source) = source else { return };
    let own = source.column();
    let others = columns.iter().enumerate().filter(|(column, _)| own != Some(*column));
    let of_exposure: f64 = others.map(|(_, term)| term.constant).sum();
    for (column, term) in columns.iter_mut().enumerate() {
        let slope = match own {
            Some(own) if own == column => of_exposure,
            Some(_) => term.slope,
            None => term.slope + of_exposure,
        };
        *term = Column::line(slope, 0.0);
    }
}
