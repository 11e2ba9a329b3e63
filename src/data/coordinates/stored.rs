//! The form in which coordinates are stored.

use super::{Coordinates, Dependent};
use crate::error::{Error, Result};

impl Coordinates {
    /// Builds coordinates from the parts stored in a file.
    ///
    /// # Errors
    /// [`Error::Format`] for parts that do not form a map, since files are not trusted.
    pub fn from_parts(units: &[f64], centre: &[f64], spreads: &[f64], slopes: &[f64]) -> Result<Self> {
        let format = |message: &str| Err(Error::Format { message: format!("coordinates: {message}") });
        let d = units.len();
        if d == 0 || centre.len() != d || spreads.len() != d {
            return format("they are not of one size");
        }
        let is_unseen = |j: usize| centre[j].is_nan() && units[j] == 0.0 && spreads[j] == 0.0;
        let centres = (0..d).filter(|&j| !is_unseen(j)).map(|j| &centre[j]);
        let numbers = || units.iter().chain(centres.clone()).chain(spreads).chain(slopes);
        if numbers().any(|value| !value.is_finite()) || units.iter().chain(spreads).any(|&value| value < 0.0) {
            return format("a number is not finite, or negative");
        }
        if units.iter().any(|&value| value > 0.0 && (!value.is_normal() || value.to_bits() << 12 != 0)) {
            return format("a unit is no power of two");
        }
        let kept: Vec<usize> = (0..d).filter(|&j| units[j] > 0.0).collect();
        let columns: Vec<usize> = (0..d).filter(|&j| spreads[j] > 0.0).collect();
        if kept.is_empty() || slopes.len() != kept.len() * columns.len() {
            return format("the slopes do not fit the columns");
        }
        let dependent = |(index, &column): (usize, &usize)| Dependent {
            column,
            spread: spreads[column],
            slopes: slopes[index * kept.len()..][..kept.len()].to_vec(),
        };
        let (residuals, dependents): (Vec<_>, Vec<_>) =
            columns.iter().enumerate().map(dependent).partition(|one| units[one.column] > 0.0);
        let is_residual = |column: &usize| residuals.iter().any(|one| one.column == *column);
        let is_plain =
            |one: &Dependent| one.slopes.iter().zip(&kept).all(|(slope, column)| *slope == 0.0 || !is_residual(column));
        if !residuals.iter().all(is_plain) {
            return format("a residual depends on another one");
        }
        let units = kept.iter().map(|&j| units[j]).collect();
        Ok(Self::of(kept, units, centre.to_vec(), dependents).with_residuals(residuals))
    }

    /// The parts that [`Coordinates::from_parts`] takes: units, zero for columns that are left out, (D,); a point on
    /// the subspace, (D,); spreads of dependent and residual columns, zero elsewhere, (D,); and the slopes of these
    /// columns, one row per column.
    pub fn to_parts(&self) -> [Vec<f64>; 4] {
        let d = self.n_columns();
        let (mut units, mut spreads) = (vec![0.0; d], vec![0.0; d]);
        self.kept.iter().zip(&self.units).for_each(|(&j, &unit)| units[j] = unit);
        let mut all: Vec<&Dependent> = self.dependents.iter().chain(&self.residuals).collect();
        all.sort_unstable_by_key(|one| one.column);
        for one in &all {
            spreads[one.column] = one.spread;
        }
        let slopes = all.iter().flat_map(|one| one.slopes.iter().copied()).collect();
        [units, self.marked_centre(), spreads, slopes]
    }
}
