//! Moments of some columns of a table, and in coordinates.

use std::sync::Arc;

use crate::data::{Coordinates, Moments};

impl Moments {
    /// Transforms the moments to coordinates.
    #[must_use]
    pub fn seen_through(&self, coordinates: &Coordinates) -> Self {
        if coordinates.is_identity() {
            return self.clone();
        }
        let lower = |values: &[f64], power| {
            if values.is_empty() { Vec::new() } else { coordinates.lower(values, power) }
        };
        Self {
            mean: lower(&self.mean, 1),
            variance: lower(&self.variance, 2),
            overall: lower(&self.overall, 2),
            covariance: if self.covariance.is_empty() {
                Vec::new()
            } else {
                coordinates.lower_matrix(&self.covariance)
            },
            largest: lower(&self.largest, 0),
            least: lower(&self.least, 1),
            most: lower(&self.most, 1),
            resolution: lower(&self.resolution, 1),
            values: self.values.as_ref().map(|values| Arc::new(values.of_columns(coordinates.kept()))),
            prints: self.prints.clone(),
            ..*self
        }
    }

    /// Those of some columns, in this order.
    #[must_use]
    pub fn of_columns(&self, columns: &[usize]) -> Self {
        let d = self.dimension();
        let of = |values: &[f64]| -> Vec<f64> {
            if values.is_empty() { Vec::new() } else { columns.iter().map(|&column| values[column]).collect() }
        };
        let of_rows = |values: &[f64]| -> Vec<f64> {
            if values.is_empty() {
                return Vec::new();
            }
            columns.iter().flat_map(|&row| of(&values[row * d..][..d])).collect()
        };
        Self {
            mean: of(&self.mean),
            variance: of(&self.variance),
            covariance: of_rows(&self.covariance),
            overall: of(&self.overall),
            largest: of(&self.largest),
            least: of(&self.least),
            most: of(&self.most),
            resolution: of(&self.resolution),
            values: self.values.as_ref().map(|values| Arc::new(values.of_columns(columns))),
            prints: self.prints.clone(),
            ..*self
        }
    }
}
