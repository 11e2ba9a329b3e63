//! Student t distributions of independent columns that share the scale of their row: functions of a sum of squares over
//! columns (mathematics 1k).

use std::f64::consts::PI;

use crate::scoring::column_terms::ColumnTerms;
use crate::scoring::quadratic_form::student_t;
use crate::simd::Scalar;
use crate::special::{ln_1p_of_positive, ln_gamma_difference};

/// Turns sums of squares into log weights: `constant - (f + n) / 2 ln(1 + e / f)` for the sum e over n columns of
/// squares and spreads.
pub struct ColumnTail {
    dof: f64,
    /// The part of the expected square of each column that does not depend on the row, by component.
    spreads: Vec<Vec<f64>>,
    /// `ln Gamma((f + n) / 2) - ln Gamma(f / 2) - n / 2 ln(pi f)` for n columns, (D + 1,).
    by_number: Vec<f64>,
    /// The constant of complete rows, and the factor of their squares, by component.
    complete: Vec<(f64, f64)>,
}

impl ColumnTail {
    /// Of components with `dof` degrees of freedom. The constants of columns do not include those of a density.
    pub fn new(dof: f64, components: &[ColumnTerms], spreads: Vec<Vec<f64>>) -> Self {
        let d = spreads.first().map_or(0, Vec::len);
        let of_number = |n: usize| {
            let half = 0.5 * n as f64;
            ln_gamma_difference(0.5 * dof, half) - half * (PI * dof).ln()
        };
        let by_number: Vec<f64> = (0..=d).map(of_number).collect();
        let of_complete = |(component, spreads): (&ColumnTerms, &Vec<f64>)| {
            let spread: f64 = spreads.iter().sum();
            let constant = component.constant + component.columns.iter().map(|column| column.constant).sum::<f64>();
            let of_spread = 0.5 * (dof + d as f64) * (spread / dof).ln_1p();
            (constant + by_number[d] - of_spread, (dof + spread).recip())
        };
        let complete = components.iter().zip(&spreads).map(of_complete).collect();
        Self { dof, spreads, by_number, complete }
    }

    /// Replaces `-q / 2` of complete rows, where q is the sum of squares, by log weights.
    #[inline(always)]
    pub fn link<F: Scalar>(&self, component: usize, scores: &mut [F]) {
        let (constant, factor) = self.complete[component];
        let half = 0.5 * (self.dof + (self.by_number.len() - 1) as f64);
        for score in scores {
            *score = F::from_f64(student_t(constant, half, -2.0 * factor * score.to_f64()));
        }
    }

    /// The log weight of a row, by the plain loop. Missing values (NaN) leave out their columns.
    pub fn score_row<F: Scalar>(&self, component: usize, terms: &ColumnTerms, row: &[F]) -> f64 {
        let (mut n, mut constant, mut square) = (0, terms.constant, 0.0);
        for ((x, column), spread) in row.iter().zip(&terms.columns).zip(&self.spreads[component]) {
            let x = x.to_f64();
            if !x.is_nan() {
                n += 1;
                constant += column.constant;
                square += (column.slope * x + column.offset).powi(2) + spread;
            }
        }
        constant + self.by_number[n] - 0.5 * (self.dof + n as f64) * ln_1p_of_positive(square / self.dof)
    }
}
