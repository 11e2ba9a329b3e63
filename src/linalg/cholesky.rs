//! Cholesky factors and quantities computed from them. Matrices are d x d, column-major, with leading dimension d.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{LltError, cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::triangular_inverse::invert_lower_triangular;
use faer::prelude::default;
use faer::{MatMut, MatRef, Par};

use crate::real::Real;

/// The matrix has no Cholesky factor, or contains a NaN or an infinity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the matrix is not positive definite, or not finite: pivot {pivot}")]
pub struct NotPositiveDefinite {
    /// Position of the first pivot that is not a positive finite number.
    pub pivot: usize,
}

/// Replaces the symmetric matrix A by its factor L with `A = L L^T`. Only the lower triangle of A is read; the strict
/// upper triangle becomes zero. After an error the lower triangle is invalid.
///
/// # Panics
///
/// If `a` does not have d x d values.
pub fn cholesky(d: usize, a: &mut [f64]) -> std::result::Result<(), NotPositiveDefinite> {
    let mut memory = MemBuffer::new(cholesky_in_place_scratch::<f64>(d, Par::Seq, default()));
    let matrix = MatMut::from_column_major_slice_mut(&mut *a, d, d);
    let stack = MemStack::new(&mut memory);
    cholesky_in_place(matrix, default(), Par::Seq, stack, default())
        .map_err(|LltError::NonPositivePivot { index }| NotPositiveDefinite { pivot: index })?;
    clear_upper(d, a);
    Ok(())
}

/// Writes the inverse of the lower-triangular matrix L to `out`. The strict upper triangle of L is not read; that of
/// the inverse is zero.
///
/// # Panics
///
/// If `l` or `out` does not have d x d values.
pub fn invert_lower(d: usize, l: &[f64], out: &mut [f64]) {
    invert_lower_triangular(
        MatMut::from_column_major_slice_mut(&mut *out, d, d),
        MatRef::from_column_major_slice(l, d, d),
        Par::Seq,
    );
    clear_upper(d, out);
}

/// Zeroes the strict upper triangle.
fn clear_upper<F: Real>(d: usize, a: &mut [F]) {
    for column in 1..d {
        a[column * d..column * d + column].fill(F::ZERO);
    }
}

/// `ln |A| = 2 sum_i ln L_ii` from the Cholesky factor L of A.
///
/// # Panics
///
/// If `l` does not have d x d values.
pub fn log_determinant_from_cholesky(d: usize, l: &[f64]) -> f64 {
    assert_eq!(l.len(), d * d, "the factor must be {d} x {d}");
    2.0 * l.iter().step_by(d + 1).map(|pivot| pivot.ln()).sum::<f64>()
}

/// Replaces `x` by `L^-1 x` (forward substitution); the strict upper triangle of L is not read.
///
/// # Panics
///
/// If `l` does not have d x d values or `x` does not have d.
pub fn solve_lower(d: usize, l: &[f64], x: &mut [f64]) {
    assert_eq!(l.len(), d * d, "the factor must be {d} x {d}");
    assert_eq!(x.len(), d, "the right-hand side must have {d} values");
    for j in 0..d {
        let (done, rest) = x.split_at_mut(j + 1);
        let column = &l[j * d + j..(j + 1) * d];
        done[j] /= column[0];
        let value = done[j];
        for (target, &factor) in rest.iter_mut().zip(&column[1..]) {
            *target -= factor * value;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::linalg::testing::{at_every_alignment, values};

    /// A well-conditioned positive definite matrix. Its strict upper triangle is NaN because it must not be read.
    fn positive_definite(d: usize, seed: u64) -> Vec<f64> {
        let g: Vec<f64> = values(seed, d * d);
        let mut a = vec![f64::NAN; d * d];
        for j in 0..d {
            for i in j..d {
                let dot: f64 = (0..d).map(|l| g[i * d + l] * g[j * d + l]).sum();
                a[j * d + i] = dot + if i == j { 0.1 } else { 0.0 };
            }
        }
        a
    }

    fn factor(d: usize, a: &[f64]) -> Vec<f64> {
        let mut l = a.to_vec();
        cholesky(d, &mut l).expect("positive definite");
        l
    }

    fn check(d: usize, seed: u64) {
        let a = positive_definite(d, seed);
        let l = factor(d, &a);
        let mut nan_above = l.clone();
        (1..d).for_each(|j| nan_above[j * d..j * d + j].fill(f64::NAN));
        let mut inverse = vec![f64::NAN; d * d];
        invert_lower(d, &nan_above, &mut inverse);
        let tolerance = 1e-13 * (d as f64 + 1.0);
        for j in 0..d {
            for i in 0..j {
                assert_eq!((l[j * d + i], inverse[j * d + i]), (0.0, 0.0), "d = {d}: not zero above the diagonal");
            }
            for i in j..d {
                let squared: f64 = (0..=j).map(|c| l[c * d + i] * l[c * d + j]).sum();
                assert!((squared - a[j * d + i]).abs() <= tolerance, "d = {d}: L L^T differs at ({i}, {j})");
                let product: f64 = (j..=i).map(|c| l[c * d + i] * inverse[j * d + c]).sum();
                let identity = if i == j { 1.0 } else { 0.0 };
                assert!((product - identity).abs() <= 10.0 * tolerance, "d = {d}: L L^-1 differs at ({i}, {j})");
            }
        }
        check_solve(d, &nan_above, &inverse);
        let plain: f64 = 2.0 * (0..d).map(|i| l[i * d + i].ln()).sum::<f64>();
        assert!((log_determinant_from_cholesky(d, &l) - plain).abs() <= tolerance);
    }

    fn check_solve(d: usize, l: &[f64], inverse: &[f64]) {
        let right: Vec<f64> = values(21, d);
        let mut solution = right.clone();
        solve_lower(d, l, &mut solution);
        for i in 0..d {
            let expected: f64 = (0..=i).map(|c| inverse[c * d + i] * right[c]).sum();
            assert!((solution[i] - expected).abs() <= 1e-11 * (1.0 + expected.abs()), "d = {d}: entry {i}");
        }
    }

    #[test]
    fn factors_inverses_and_solutions() {
        for d in [0, 1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 33, 64, 65, 100, 128, 130, 256] {
            check(d, d as u64);
        }
    }

    #[test]
    fn a_known_factor() {
        let mut a = [4.0, 2.0, 6.0, f64::NAN, 10.0, 9.0, f64::NAN, f64::NAN, 14.0];
        cholesky(3, &mut a).unwrap();
        let expected = [2.0, 1.0, 3.0, 0.0, 3.0, 2.0, 0.0, 0.0, 1.0];
        assert!(a.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-14), "{a:?}");
        assert!((log_determinant_from_cholesky(3, &a) - 36.0f64.ln()).abs() < 1e-14);
        let mut x = [2.0, 7.0, 14.0];
        solve_lower(3, &a, &mut x);
        assert!(x.iter().zip([1.0, 2.0, 7.0]).all(|(found, expected)| (found - expected).abs() < 1e-13), "{x:?}");
    }

    #[test]
    fn the_bad_pivot_is_named() {
        for d in [1, 2, 5, 16, 40, 64, 70, 130] {
            for pivot in [0, d / 3, d / 2, d - 1] {
                for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                    let mut a = vec![0.0; d * d];
                    a.iter_mut().step_by(d + 1).for_each(|value| *value = 1.0);
                    a[pivot * (d + 1)] = bad;
                    assert_eq!(cholesky(d, &mut a), Err(NotPositiveDefinite { pivot }), "d = {d}, {bad}");
                }
            }
        }
    }

    #[test]
    fn a_nan_or_an_infinity_anywhere_is_an_error() {
        for d in [2, 3, 9, 20, 40] {
            for column in 0..d {
                for row in column..d {
                    for bad in [f64::NAN, f64::INFINITY] {
                        let mut a = positive_definite(d, 5);
                        a[column * d + row] = bad;
                        assert!(cholesky(d, &mut a).is_err(), "d = {d}: {bad} at ({row}, {column})");
                    }
                }
            }
        }
    }

    #[test]
    fn a_matrix_of_lower_rank_is_an_error() {
        // A matrix of ones: the second pivot is exactly zero.
        assert_eq!(cholesky(3, &mut [1.0; 9]), Err(NotPositiveDefinite { pivot: 1 }));
    }

    #[test]
    fn no_bit_depends_on_where_the_buffers_lie() {
        for d in [1, 3, 9, 24, 65, 130] {
            let a = positive_definite(d, 6);
            let l = factor(d, &a);
            at_every_alignment::<f64>(0, d * d, |_, out| {
                out.copy_from_slice(&a);
                cholesky(d, out).unwrap();
            });
            at_every_alignment::<f64>(0, d * d, |_, out| invert_lower(d, &l, out));
        }
    }

    #[test]
    #[should_panic(expected = "assertion")]
    fn cholesky_refuses_a_wrong_length() {
        let _ = cholesky(2, &mut [1.0; 3]);
    }

    #[test]
    #[should_panic(expected = "assertion")]
    fn invert_lower_refuses_a_wrong_length() {
        invert_lower(2, &[1.0; 5], &mut [1.0; 4]);
    }

    #[test]
    #[should_panic(expected = "must have 2 values")]
    fn solve_lower_refuses_a_wrong_length() {
        solve_lower(2, &[1.0; 4], &mut [1.0; 3]);
    }

    #[test]
    #[should_panic(expected = "must be 2 x 2")]
    fn log_determinant_refuses_a_wrong_length() {
        log_determinant_from_cholesky(2, &[1.0; 5]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_dimension(d in 0usize..90, seed in any::<u64>()) {
            check(d, seed);
        }
    }
}
