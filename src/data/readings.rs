//! Readings of all rows of a dataset, whose results are sums over rows and add up over shards.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::data::first_reading::{First, FirstSums};
use crate::data::second_reading::{Second, Squares};
use crate::data::{Coordinates, RowUnits, strays};
use crate::error::{Error, Result};
use crate::parallel::Cancel;
use crate::real::Real;

/// What a reading sums up. It can travel to a worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Reading {
    /// Means, extremes, distinct values and fingerprints.
    First(First),
    /// Squares about the means.
    Second(Second),
    /// The columns in which rows lie off the subspace of coordinates.
    Strays(Coordinates),
    /// Another reading, of the rows in coordinates.
    Seen(Arc<Coordinates>, Box<Reading>),
}

impl Reading {
    /// What is read of the rows, in whatever coordinates.
    fn of_rows(&self) -> &Self {
        if let Self::Seen(_, reading) = self { reading.of_rows() } else { self }
    }
}

/// The sums of a reading.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum ReadSums {
    /// Those of [`Reading::First`].
    First(Box<FirstSums>),
    /// Those of [`Reading::Second`].
    Second(Squares),
    /// Those of [`Reading::Strays`].
    Strays(BTreeSet<usize>),
}

impl ReadSums {
    /// Of no rows of `d` columns. `layout` differs between tables of other columns.
    pub fn new(reading: &Reading, d: usize, is_sparse: bool, layout: u64) -> Self {
        match reading {
            Reading::Seen(coordinates, reading) => Self::new(reading, coordinates.rank(), is_sparse, layout),
            Reading::First(first) => Self::First(Box::new(FirstSums::new(first, d, is_sparse, layout))),
            Reading::Second(second) => Self::Second(Squares::new(second)),
            Reading::Strays(_) => Self::Strays(BTreeSet::new()),
        }
    }

    /// Adds rows that follow those so far.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for the first value that is not allowed; [`Error::Cancelled`].
    pub fn read<F: Real>(&mut self, reading: &Reading, units: &RowUnits<'_, F>, cancel: &Cancel) -> Result<()> {
        match (self, reading) {
            (sums, Reading::Seen(coordinates, reading)) => {
                sums.read(reading, &units.borrowed().seen_through(coordinates), cancel)
            }
            (Self::First(sums), Reading::First(first)) => sums.read(units, first, cancel),
            (Self::Second(sums), Reading::Second(second)) => sums.read(units, second, cancel),
            (Self::Strays(columns), Reading::Strays(coordinates)) => {
                columns.extend(strays(units, coordinates, cancel)?.columns);
                Ok(())
            }
            _ => Err(other_reading()),
        }
    }

    /// Adds the sums of the shards that follow.
    ///
    /// # Errors
    /// [`Error::Format`] for sums of another reading.
    pub fn add(&mut self, other: Self, reading: &Reading) -> Result<()> {
        match (self, other, reading.of_rows()) {
            (Self::First(sums), Self::First(other), Reading::First(_)) => sums.add(*other),
            (Self::Second(sums), Self::Second(other), Reading::Second(_)) => sums.add(&other),
            (Self::Strays(columns), Self::Strays(other), Reading::Strays(_)) => columns.extend(other),
            _ => return Err(other_reading()),
        }
        Ok(())
    }

    pub(super) fn into_first(self) -> Result<FirstSums> {
        if let Self::First(sums) = self { Ok(*sums) } else { Err(other_reading()) }
    }

    pub(super) fn into_second(self) -> Result<Squares> {
        if let Self::Second(sums) = self { Ok(sums) } else { Err(other_reading()) }
    }

    /// The columns of [`Reading::Strays`].
    ///
    /// # Errors
    /// [`Error::Format`] for sums of another reading.
    pub fn into_columns(self) -> Result<BTreeSet<usize>> {
        if let Self::Strays(columns) = self { Ok(columns) } else { Err(other_reading()) }
    }
}

fn other_reading() -> Error {
    Error::Format { message: "sums of another reading of the data".to_owned() }
}
