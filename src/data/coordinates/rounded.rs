//! Columns that are left out because they follow from others by rounding.

use super::{Coordinates, Dependent, OFF_SUBSPACE};

/// A column whose values are those of an affine function of kept columns, rounded.
#[derive(Debug, Clone, PartialEq)]
pub struct Rounded {
    /// Index of the column.
    pub column: usize,
    /// The smallest distance of its values.
    pub step: f64,
    /// The constant of the affine function.
    pub intercept: f64,
    /// The slopes of the affine function, by column of the data, (D,).
    pub slopes: Vec<f64>,
}

impl Coordinates {
    /// The same columns without kept ones that follow from others by rounding, and that no residual needs. Rows count
    /// as lying on the subspace if they are off it by at most the step of the column.
    #[must_use]
    pub fn without_rounded(&self, rounded: &[Rounded]) -> Self {
        let find = |column: usize| rounded.iter().find(|one| one.column == column);
        let (places, kept): (Vec<usize>, Vec<usize>) =
            self.kept.iter().copied().enumerate().filter(|(_, column)| find(*column).is_none()).unzip();
        let mut centre = self.marked_centre();
        let mut dependents = Vec::new();
        for one in rounded {
            let moved = kept.iter().map(|&p| one.slopes[p] * self.centre[p]).sum::<f64>();
            centre[one.column] = one.intercept + moved;
            let slopes = kept.iter().map(|&p| one.slopes[p]).collect();
            dependents.push(Dependent { column: one.column, spread: one.step / OFF_SUBSPACE, slopes });
        }
        // What depends on a column that goes depends on the columns from which that one follows.
        for dependent in &self.dependents {
            let mut slopes: Vec<f64> = places.iter().map(|&place| dependent.slopes[place]).collect();
            let mut spread = dependent.spread;
            for (&column, &slope) in self.kept.iter().zip(&dependent.slopes) {
                let Some(one) = find(column).filter(|_| slope != 0.0) else { continue };
                slopes.iter_mut().zip(&kept).for_each(|(to, &p)| *to += slope * one.slopes[p]);
                centre[dependent.column] += slope * (centre[column] - self.centre[column]);
                spread = spread.max(slope.abs() * one.step / OFF_SUBSPACE);
            }
            dependents.push(Dependent { column: dependent.column, spread, slopes });
        }
        dependents.sort_unstable_by_key(|dependent| dependent.column);
        let units = places.iter().map(|&place| self.units[place]).collect();
        let of_kept =
            |one: &Dependent| Dependent { slopes: places.iter().map(|&place| one.slopes[place]).collect(), ..*one };
        let residuals = self.residuals.iter().map(of_kept).collect();
        Self::of(kept, units, centre, dependents).with_residuals(residuals)
    }
}
