//! How far a component of the Gaussian family moves between two states. Generalises Elkan's bounds for k-means ("Using
//! the triangle inequality to accelerate k-means", 2003) to components with different metrics.

use crate::linalg::{divide_lower, least_singular_value};
use crate::scoring::quadratic_form::Quadratic;

/// For every row, with residuals y before and y' after: `|y'| >= contraction * |y| - displacement`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// Between 0 and 1.
    pub contraction: f64,
    /// Nonnegative.
    pub displacement: f64,
}

impl Drift {
    /// Drift of a component that has not moved.
    pub const NONE: Self = Self { contraction: 1.0, displacement: 0.0 };
    /// Drift of an unknown component: any residual is possible.
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

    /// Composes this movement with a later one.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        Self {
            contraction: next.contraction * self.contraction,
            displacement: next.contraction * self.displacement + next.displacement,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scoring::quadratic_form::Link;

    const D: usize = 3;

    fn component(factor: &[f64], centre: &[f64], scale: f64) -> Quadratic {
        let mut factor = factor.to_vec();
        for (index, x) in factor.iter_mut().enumerate() {
            *x = match (index % D).cmp(&(index / D)) {
                std::cmp::Ordering::Less => 0.0,
                std::cmp::Ordering::Equal => 0.2 + x.abs(),
                std::cmp::Ordering::Greater => *x,
            };
        }
        Quadratic { factor, scale, centre: centre.to_vec(), constant: 0.0, link: Link::Gaussian }
    }

    /// |y| of a row.
    fn residual(component: &Quadratic, x: &[f64]) -> f64 {
        let y = |i: usize| -> f64 { (0..=i).map(|j| component.factor[j * D + i] * (x[j] - component.centre[j])).sum() };
        component.scale * (0..D).map(|i| y(i).powi(2)).sum::<f64>().sqrt()
    }

    proptest! {
        /// If only the centre moves, the row at the new centre loses its whole residual; if only the scale changes,
        /// every row loses the same fraction. A drift must allow for these cases and not much more.
        #[test]
        fn what_a_drift_allows_is_reached(
            factor in prop::collection::vec(-1.0_f64..1.0, D * D),
            centre in prop::collection::vec(-2.0_f64..2.0, D),
            shift in prop::collection::vec(0.01_f64..2.0, D),
            ratio in 0.1_f64..0.9,
        ) {
            let earlier = component(&factor, &centre, 1.5);
            let moved: Vec<f64> = centre.iter().zip(&shift).map(|(x, change)| x + change).collect();
            let later = component(&factor, &moved, 1.5);
            let drift = Drift::between(&earlier, &later);
            let all = residual(&earlier, &moved);
            prop_assert!(drift.contraction <= 1.0 && drift.contraction >= 1.0 - 1e-3);
            prop_assert!(drift.displacement >= all * (1.0 - 1e-14));
            prop_assert!(drift.displacement <= all * (1.0 + 1e-8));
            let later = component(&factor, &centre, 1.5 * ratio);
            let drift = Drift::between(&earlier, &later);
            prop_assert!(drift.contraction <= ratio * (1.0 + 1e-14) && drift.contraction >= ratio - 0.1);
            prop_assert!(drift.displacement < 1e-12);
        }
    }
}
