//! Statistics common to the families of counts and flags: sums of the untransformed rows by column.

use std::ops::Range;

use crate::data::{Exposure, RowBlock};
use crate::error::{Error, Result};
use crate::parameters::Value;
use crate::real::Plain;
use crate::scoring::{Codes, Row};
use crate::suffstats::Sufficient;

/// Smaller probabilities or expected counts are raised to this value before taking logarithms.
pub const LEAST: f64 = 1e-300;

/// Layout of the statistics: sum x by column, and with missing values the number of rows with a value in each column.
#[derive(Debug)]
pub struct Tally {
    /// Zeros: nothing is subtracted from rows.
    pub origin: Vec<f64>,
    /// Whether rows may have missing values.
    pub missing: bool,
    /// How codes become flags, for rows of codes. Their sums already count the present values.
    pub codes: Option<Codes>,
    /// Where rows have their exposures.
    pub exposure: Option<Exposure>,
}

impl Tally {
    /// A tally of `dimension` columns.
    pub fn new(dimension: usize, missing: bool) -> Self {
        Self { origin: vec![0.0; dimension], missing, codes: None, exposure: None }
    }

    /// The number of sums.
    fn n_sums(&self) -> usize {
        self.codes.as_ref().map_or(self.origin.len(), Codes::n_levels)
    }

    /// Whether counts by column are kept besides the sums.
    fn is_counted(&self) -> bool {
        self.missing && self.codes.is_none()
    }

    /// Tabulates values by column of several components, (K, D); by level (K, D, L), zero beyond a column's levels.
    pub fn table(&self, values: Vec<f64>) -> Value {
        let shape = [vec![values.len() / self.n_sums()], self.shape()].concat();
        Value::Array { shape, data: self.padded(values) }
    }

    /// Shape of the values of one component in a [`Tally::table`].
    pub fn shape(&self) -> Vec<usize> {
        let Some(codes) = &self.codes else { return vec![self.origin.len()] };
        vec![codes.n_columns(), codes.ranges().map(|range| range.len()).max().unwrap_or(0)]
    }

    /// The values of a [`Tally::table`].
    pub fn padded(&self, values: Vec<f64>) -> Vec<f64> {
        let Some(codes) = &self.codes else { return values };
        let most = self.shape()[1];
        let mut data = Vec::new();
        for component in values.chunks_exact(codes.n_levels()) {
            for range in codes.ranges() {
                let end = data.len() + most;
                data.extend_from_slice(&component[range]);
                data.resize(end, 0.0);
            }
        }
        data
    }

    /// Calls `f` with a row in the form that the sums use.
    pub fn with_row<R>(&self, row: Row<'_>, f: impl FnOnce(Row<'_>) -> R) -> R {
        match &self.codes {
            Some(codes) => codes.with_row(row, f),
            None => f(row),
        }
    }

    /// Number of statistics of a component.
    pub fn n_statistics(&self) -> usize {
        (if self.is_counted() { 2 } else { 1 }) * self.n_sums()
    }

    /// Adds rows, each times its weight.
    pub fn accumulate(&self, rows: RowBlock<'_, f64>, weights: &[f64], statistics: &mut [f64]) {
        let (sums, counts) = statistics.split_at_mut(self.n_sums());
        match &self.codes {
            Some(codes) => codes.with_block(rows.dense(), |rows| add_rows(rows, weights, sums)),
            None => add_rows(rows, weights, sums),
        }
        if self.is_counted() {
            add_presence(rows, weights, counts);
        }
    }

    /// Refuses statistics that cannot be sums of counts or, if `flags` is set, sums of zeros and ones.
    ///
    /// # Errors
    /// [`Error::Format`] stating what is wrong.
    pub fn check(&self, components: &[Sufficient<'_>], flags: bool) -> Result<()> {
        let d = self.n_sums();
        let largest = components
            .iter()
            .flat_map(|component| &component.statistics[..d])
            .fold(0.0_f64, |most, s| most.max(s.abs()));
        let slack = ROUNDING * (1.0 + largest);
        check_presence(components.iter().map(|component| (component.count, &component.statistics[d..])))?;
        for component in components {
            let (sums, counts) = component.statistics.split_at(d);
            for (column, &sum) in sums.iter().enumerate() {
                let count = counts.get(column).copied().unwrap_or(component.count);
                if sum < -slack || (flags && sum - count > slack) {
                    return Err(Error::Format { message: format!("statistics: no rows have the sum {}", Plain(sum)) });
                }
            }
        }
        Ok(())
    }

    /// The statistics of a component by column.
    pub fn of<'a>(&self, component: Sufficient<'a>) -> Tallied<'a> {
        let (sums, counts) = component.statistics.split_at(self.n_sums());
        let size = self.exposure.map_or(component.count, |exposure| exposure.of_row(sums));
        Tallied { count: component.count, size, exposures: self.exposure.and_then(Exposure::column), sums, counts }
    }
}

/// The statistics of a component by column.
#[derive(Debug, Clone, Copy)]
pub struct Tallied<'a> {
    /// Number of rows.
    count: f64,
    /// Sum of the exposures of the rows; their number if they have none.
    size: f64,
    /// The column of exposures.
    exposures: Option<usize>,
    /// Sums by column as stored, (D,). Rounding may have left some below zero.
    pub sums: &'a [f64],
    /// Number of rows with a value, by column; empty if no values are missing.
    counts: &'a [f64],
}

impl<'a> Tallied<'a> {
    /// A subset of the sums, without counts by column.
    pub fn part(self, range: Range<usize>) -> Self {
        Tallied { sums: &self.sums[range], counts: &[], ..self }
    }

    /// Number of rows.
    pub fn n_rows(self) -> f64 {
        self.count.max(0.0)
    }

    /// Sum of the exposures of the rows; their number if they have none.
    pub fn size(self) -> f64 {
        self.size.max(0.0)
    }

    /// The exposure of an average row; `None` without rows.
    pub fn mean_exposure(self) -> Option<f64> {
        (self.count > 0.0 && self.size > 0.0).then(|| self.size / self.count)
    }

    /// Whether no value is missing.
    pub fn has_all(self) -> bool {
        self.counts.is_empty()
    }

    /// Size and sum of a column, clamped at zero against rounding. A column of exposures has no counts.
    pub fn column(self, column: usize) -> (f64, f64) {
        if self.exposures == Some(column) {
            return (0.0, 0.0);
        }
        (self.counts.get(column).copied().unwrap_or(self.size).max(0.0), self.sums[column].max(0.0))
    }

    /// Size and sum of every column.
    pub fn columns(self) -> impl Iterator<Item = (f64, f64)> + use<'a> {
        (0..self.sums.len()).map(move |column| self.column(column))
    }
}

/// Rounding error of sums that should be zero, as a fraction of the terms added and subtracted.
const ROUNDING: f64 = 1e-6;

/// Refuses counts by column that are negative or larger than the count of the component.
///
/// # Errors
/// [`Error::Format`] stating what is wrong.
pub fn check_presence<'a>(components: impl Iterator<Item = (f64, &'a [f64])> + Clone) -> Result<()> {
    let slack = ROUNDING * (1.0 + components.clone().map(|(count, _)| count.abs()).sum::<f64>());
    for (count, columns) in components {
        if let Some(&rows) = columns.iter().find(|&&rows| rows < -slack || rows - count > slack) {
            let message = format!("statistics: a column counts {} rows of {}", Plain(rows), Plain(count));
            return Err(Error::Format { message });
        }
    }
    Ok(())
}

/// Adds rows, each times its weight, to their sums by column; missing values add nothing.
fn add_rows(rows: RowBlock<'_, f64>, weights: &[f64], sums: &mut [f64]) {
    match rows {
        RowBlock::Dense(rows) => {
            for (row, &weight) in rows.chunks_exact(sums.len()).zip(weights) {
                sums.iter_mut().zip(row).for_each(|(sum, &x)| *sum += if x.is_nan() { 0.0 } else { weight * x });
            }
        }
        RowBlock::Sparse(rows) => {
            for ((columns, values), &weight) in rows.iter().zip(weights) {
                columns.iter().zip(values).for_each(|(&column, x)| sums[column as usize] += weight * x);
            }
        }
    }
}

/// Adds the weights of the rows to the counts of the columns in which they have a value.
fn add_presence(rows: RowBlock<'_, f64>, weights: &[f64], counts: &mut [f64]) {
    match rows {
        RowBlock::Dense(rows) => {
            for (row, &weight) in rows.chunks_exact(counts.len()).zip(weights) {
                counts.iter_mut().zip(row).for_each(|(count, x)| *count += if x.is_nan() { 0.0 } else { weight });
            }
        }
        // A value that a sparse row does not store is zero, not missing.
        RowBlock::Sparse(_) => {
            let total: f64 = weights.iter().sum();
            for count in counts {
                *count += total;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Csr, SparseRows};

    #[test]
    fn missing_values_add_nothing() {
        let rows = [1.0, f64::NAN, 3.0, 2.0, 5.0, 0.0];
        let mut statistics = vec![0.0; 6];
        Tally::new(3, true).accumulate(RowBlock::Dense(&rows), &[2.0, 0.5], &mut statistics);
        assert_eq!(statistics, [3.0, 2.5, 6.0, 2.5, 0.5, 2.5]);
        let component = Sufficient { count: 2.5, statistics: &statistics };
        assert_eq!(
            Tally::new(3, true).of(component).columns().collect::<Vec<_>>(),
            [(2.5, 3.0), (0.5, 2.5), (2.5, 6.0)]
        );
    }

    #[test]
    fn values_that_a_sparse_row_does_not_store_are_zero() {
        let table = Csr { starts: &[0, 2, 3], columns: &[0, 2, 1], values: &[1.0, 3.0, 5.0] };
        for missing in [false, true] {
            let tally = Tally::new(3, missing);
            let mut found = [vec![0.0; tally.n_statistics()], vec![0.0; tally.n_statistics()]];
            let sparse = RowBlock::Sparse(SparseRows { table, numbers: &[1, 0] });
            tally.accumulate(sparse, &[0.5, 2.0], &mut found[0]);
            tally.accumulate(RowBlock::Dense(&[0.0, 5.0, 0.0, 1.0, 0.0, 3.0]), &[0.5, 2.0], &mut found[1]);
            assert_eq!(found[0], found[1]);
            let component = Sufficient { count: 2.5, statistics: &found[0] };
            assert_eq!(tally.of(component).columns().collect::<Vec<_>>(), [(2.5, 2.0), (2.5, 2.5), (2.5, 6.0)]);
        }
    }
}
