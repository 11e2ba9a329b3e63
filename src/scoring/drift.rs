//! How far a component of the Gaussian family moves between two states: what Elkan's bounds for k-means
//! ("Using the triangle inequality to accelerate k-means", 2003) become where distances have a metric of their own.

use crate::linalg::{divide_lower, least_singular_value};
use crate::scoring::quadratic::Quadratic;

/// For every row, with y its residual before and y' after: `|y'| >= contraction * |y| - displacement`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// Between 0 and 1.
    pub contraction: f64,
    /// Not negative.
    pub displacement: f64,
}

impl Drift {
    /// Of a component that stays.
    pub const NONE: Self = Self { contraction: 1.0, displacement: 0.0 };
    /// Of a component of which nothing is known: any residual may follow.
    pub const ANY: Self = Self { contraction: 0.0, displacement: 0.0 };

    /// With `y = A (x - m)` the map from y to y' is `M y + A' (m - m')` with `M = A' A^-1`.
    pub fn between(earlier: &Quadratic, later: &Quadratic) -> Self {
        let d = later.centre.len();
        let mut map = divide_lower(d, &later.factor, &earlier.factor);
        for value in &mut map {
            *value *= later.scale / earlier.scale;
        }
        let shift: Vec<f64> = earlier.centre.iter().zip(&later.centre).map(|(m, moved)| m - moved).collect();
        let mut moved = vec![0.0; d];
        for (column, shift) in later.factor.chunks_exact(d).zip(&shift) {
            for (moved, value) in moved.iter_mut().zip(column) {
                *moved += value * shift;
            }
        }
        let length = |values: &[f64]| values.iter().map(|x| x * x).sum::<f64>().sqrt();
        let rounding = (d + 2) as f64 * f64::EPSILON * length(&later.factor) * length(&shift);
        let displacement = later.scale * (length(&moved) + rounding) * (1.0 + 1e-9);
        if displacement.is_finite() {
            Self { contraction: least_singular_value(d, &map), displacement }
        } else {
            Self::ANY
        }
    }

    /// This movement and then another one.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        Self {
            contraction: next.contraction * self.contraction,
            displacement: next.contraction * self.displacement + next.displacement,
        }
    }
}
