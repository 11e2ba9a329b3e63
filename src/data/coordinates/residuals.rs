//! Columns that are replaced by what an affine function of others leaves of them: a map of volume one.

use super::{Coordinates, Dependent};

impl Coordinates {
    /// The same columns, of which these kept ones are replaced by their residuals.
    #[must_use]
    pub(in crate::data) fn with_residuals(self, residuals: Vec<Dependent>) -> Self {
        Self { residuals, ..self }
    }

    /// The same columns, none of them replaced by its residual.
    #[must_use]
    pub fn without_residuals(&self) -> Self {
        self.clone().with_residuals(Vec::new())
    }

    /// Coordinates in which `near` of the dependent columns are kept as residuals, with their standard deviations as
    /// spreads, and the others depend on kept columns by new slopes. Slopes are those in kept columns that are no
    /// residuals, and of dependent ones also in residuals, all by column of the data, (D,).
    #[must_use]
    pub fn with_near(&self, centre: Vec<f64>, near: &[Dependent], exact: &[Dependent]) -> Self {
        let mut kept: Vec<usize> = self.kept.iter().copied().chain(near.iter().map(|one| one.column)).collect();
        kept.retain(|column| exact.iter().all(|one| one.column != *column));
        kept.sort_unstable();
        kept.dedup();
        let units = vec![1.0; kept.len()];
        let of_kept =
            |one: &Dependent| Dependent { slopes: kept.iter().map(|&column| one.slopes[column]).collect(), ..*one };
        let (residuals, dependents) = (near.iter().map(of_kept).collect(), exact.iter().map(of_kept).collect());
        Self::of(kept, units, centre, dependents).with_residuals(residuals)
    }

    /// The kept columns that are replaced by their residuals, ascending.
    pub fn residuals(&self) -> &[Dependent] {
        &self.residuals
    }

    /// What the affine function of other columns leaves of a column of a row.
    pub(super) fn left_of(&self, residual: &Dependent, row: impl Fn(usize) -> f64) -> f64 {
        let away = |column: usize| row(column) - self.centre[column];
        // Most slopes are zero, of columns that may have any value.
        let slopes = residual.slopes.iter().zip(&self.kept).filter(|(slope, _)| **slope != 0.0);
        away(residual.column) - slopes.map(|(slope, &p)| slope * away(p)).sum::<f64>()
    }

    /// The place of a residual column among the kept ones, and the constant of its affine function of the others.
    pub fn place_and_shift(&self, residual: &Dependent) -> (usize, f64) {
        let slopes = residual.slopes.iter().zip(&self.kept).map(|(slope, &p)| slope * self.centre[p]);
        let place = self.kept.partition_point(|&column| column < residual.column);
        (place, self.centre[residual.column] - slopes.sum::<f64>())
    }

    /// Adds the affine function of a residual column, times a factor, to its row and its column of a (D, D) matrix.
    pub(super) fn shear(&self, residual: &Dependent, factor: f64, matrix: &mut [f64]) {
        let (d, to) = (self.n_columns(), residual.column);
        let slopes = || residual.slopes.iter().map(|slope| factor * slope).zip(self.kept.iter().copied());
        for j in 0..d {
            matrix[to * d + j] += slopes().map(|(slope, p)| slope * matrix[p * d + j]).sum::<f64>();
        }
        for i in 0..d {
            matrix[i * d + to] += slopes().map(|(slope, p)| slope * matrix[i * d + p]).sum::<f64>();
        }
    }
}
