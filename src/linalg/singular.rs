//! A guaranteed lower bound on the smallest singular value of a matrix.

use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::solve_upper_triangular_in_place;
use faer::{Accum, MatMut, MatRef, Par};

use crate::linalg::cholesky;

/// Maximum number of bisections between the trivial bound and one.
const HALVINGS: usize = 4;
/// Bisection stops at this distance, which moves a residual of 30 by as much as the rounding of a pair's bound.
const WORTHWHILE: f64 = 3e-4;
/// Fraction of the norm of the matrix that is reserved for rounding: twenty times the error observed for quotients of
/// triangular matrices with condition numbers up to 10^8.
const ROUNDING: f64 = 1e-7;

/// The transpose of `A B^-1` for lower-triangular A and B, both d x d and column-major with zeros above the diagonal.
///
/// # Panics
/// If one of them does not have d x d values.
pub fn divide_lower(d: usize, a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; d * d];
    for column in 0..d {
        for row in column..d {
            out[row * d + column] = a[column * d + row];
        }
    }
    solve_upper_triangular_in_place(
        MatRef::from_column_major_slice(b, d, d).transpose(),
        MatMut::from_column_major_slice_mut(&mut out, d, d),
        Par::Seq,
    );
    out
}

/// A lower bound, between 0 and 1, on the singular values of the d x d matrix M: `1 - |M - I|_F`, increased by
/// bisection while `M M^T - s^2 I` is positive definite.
///
/// # Panics
/// If `m` does not have d x d values.
pub fn least_singular_value(d: usize, m: &[f64]) -> f64 {
    let square = sum_of_squares(m);
    let on_diagonal: f64 = m.iter().step_by(d + 1).map(|x| (x - 1.0).powi(2) - x * x).sum();
    let (length, from_identity) = (square.sqrt(), (square + on_diagonal).max(0.0).sqrt());
    if !length.is_finite() {
        return 0.0;
    }
    let mut products = vec![0.0; d * d];
    let matrix = MatRef::from_column_major_slice(m, d, d);
    let into = MatMut::from_column_major_slice_mut(&mut products, d, d);
    matmul(into, Accum::Replace, matrix, matrix.transpose(), 1.0, Par::Seq);
    let is_bound = |s: f64| {
        let mut shifted = products.clone();
        shifted.iter_mut().step_by(d + 1).for_each(|x| *x -= s * s);
        cholesky(d, &mut shifted).is_ok()
    };
    let (mut certain, mut open) = ((1.0 - from_identity).max(0.0), 1.0);
    for _ in 0..HALVINGS {
        if open - certain < WORTHWHILE {
            break;
        }
        let middle = 0.5 * (certain + open);
        if is_bound(middle) {
            certain = middle;
        } else {
            open = middle;
        }
    }
    (certain - ROUNDING * (1.0 + length)).max(0.0)
}

/// The sum in eight independent parts, which hide latency.
fn sum_of_squares(values: &[f64]) -> f64 {
    let mut parts = [0.0; 8];
    let (eights, rest) = values.as_chunks::<8>();
    for eight in eights {
        for (part, x) in parts.iter_mut().zip(eight) {
            *part += x * x;
        }
    }
    parts.iter().sum::<f64>() + rest.iter().map(|x| x * x).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// With `M = (I - 2 u u^T) diag(s) (I - 2 v v^T)` the singular values are known.
        #[test]
        fn the_bound_is_below_the_least_singular_value_and_near_it(
            (d, values) in (1_usize..20).prop_flat_map(|d| (Just(d), prop::collection::vec(0.0_f64..1.0, 3 * d))),
            spread in -6_i32..3,
        ) {
            let spread = 10_f64.powi(spread);
            let singular: Vec<f64> = values[..d].iter().map(|x| 1.0 + spread * (x - 0.7)).map(f64::abs).collect();
            let reflection = |from: usize| {
                let u = &values[from..from + d];
                let square = u.iter().map(|x| x * x).sum::<f64>().max(1e-300);
                move |i: usize, j: usize| f64::from(i == j) - 2.0 * u[i] * u[j] / square
            };
            let (left, right) = (reflection(d), reflection(2 * d));
            let mut m = vec![0.0; d * d];
            for i in 0..d {
                for j in 0..d {
                    m[j * d + i] = (0..d).map(|k| left(i, k) * singular[k] * right(k, j)).sum();
                }
            }
            let least = singular.iter().copied().fold(1.0, f64::min);
            let found = least_singular_value(d, &m);
            prop_assert!(found <= least, "{found} {least}");
            let from_identity: f64 =
                (0..d * d).map(|entry| (m[entry] - f64::from(entry % (d + 1) == 0)).powi(2)).sum::<f64>().sqrt();
            let width = (from_identity.min(1.0) / 16.0).max(WORTHWHILE) + 1e-6 * (1.0 + spread) * d as f64;
            prop_assert!(found >= least - width, "{found} {least} {width}");
        }

        #[test]
        fn a_quotient_times_its_divisor_is_the_dividend(
            (d, values) in (1_usize..12).prop_flat_map(|d| (Just(d), prop::collection::vec(0.5_f64..2.0, 2 * d * d))),
        ) {
            let lower = |values: &[f64]| -> Vec<f64> {
                (0..d * d).map(|entry| if entry % d >= entry / d { values[entry] } else { 0.0 }).collect()
            };
            let (a, b) = (lower(&values[..d * d]), lower(&values[d * d..]));
            let quotient = divide_lower(d, &a, &b);
            for i in 0..d {
                for j in 0..d {
                    let product: f64 = (0..d).map(|k| quotient[i * d + k] * b[j * d + k]).sum();
                    let size: f64 = (0..d).map(|k| (quotient[i * d + k] * b[j * d + k]).abs()).sum();
                    prop_assert!((product - a[j * d + i]).abs() <= 1e-12 * (1.0 + size));
                }
            }
        }
    }

    #[test]
    fn a_matrix_that_is_not_finite_has_no_bound() {
        assert_eq!(least_singular_value(2, &[1.0, f64::NAN, 0.0, 1.0]), 0.0);
        assert_eq!(least_singular_value(1, &[f64::INFINITY]), 0.0);
    }
}
