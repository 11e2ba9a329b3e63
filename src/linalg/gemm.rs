//! Products of blocks of rows.

use faer::linalg::matmul::{matmul, triangular};
use faer::{Accum, MatMut, MatRef, Par};

use crate::real::Real;

/// A number type that has a matrix product: `f32` and `f64`.
pub trait Scalar: Real + library::Product {}

impl Scalar for f32 {}
impl Scalar for f64 {}

/// What the library does for one number type. Private, so that its types stay inside this module.
mod library {
    use super::{Accum, MatMut, MatRef, Par, matmul, triangular};

    pub trait Product: Sized {
        /// The least dimension for which a product's lower triangle alone is quicker than the whole. It is one more
        /// than the rows of the AVX-512 micro-kernel: below that no block of the upper triangle can be left out.
        const TRIANGULAR_FROM: usize;

        /// `c = a b`.
        fn product(c: MatMut<'_, Self>, a: MatRef<'_, Self>, b: MatRef<'_, Self>);

        /// The lower triangle of `c = a b`.
        fn lower_product(c: MatMut<'_, Self>, a: MatRef<'_, Self>, b: MatRef<'_, Self>);
    }

    macro_rules! impl_product {
        ($t:ident, $triangular_from:literal) => {
            impl Product for $t {
                const TRIANGULAR_FROM: usize = $triangular_from;

                fn product(c: MatMut<'_, Self>, a: MatRef<'_, Self>, b: MatRef<'_, Self>) {
                    matmul(c, Accum::Replace, a, b, 1.0, Par::Seq);
                }

                fn lower_product(c: MatMut<'_, Self>, a: MatRef<'_, Self>, b: MatRef<'_, Self>) {
                    use triangular::BlockStructure::{Rectangular, TriangularLower};
                    let replace = Accum::Replace;
                    triangular::matmul(c, TriangularLower, replace, a, Rectangular, b, Rectangular, 1.0, Par::Seq);
                }
            }
        };
    }

    impl_product!(f32, 97);
    impl_product!(f64, 25);
}

/// `C = A B`: C is m x n, A is m x k and B is k x n, column-major with columns `ldc`, `lda` and `ldb` values apart. C is
/// overwritten, what lies between its columns is not.
///
/// # Panics
///
/// If a buffer is shorter than its matrix, or a leading dimension less than a column.
#[allow(clippy::too_many_arguments)] // The signature of the BLAS.
pub fn gemm<F: Scalar>(
    m: usize,
    n: usize,
    k: usize,
    a: &[F],
    lda: usize,
    b: &[F],
    ldb: usize,
    c: &mut [F],
    ldc: usize,
) {
    assert!(lda >= m && ldb >= k && ldc >= m, "columns overlap: {lda} < {m}, {ldb} < {k} or {ldc} < {m}");
    F::product(
        MatMut::from_column_major_slice_with_stride_mut(c, m, n, ldc),
        MatRef::from_column_major_slice_with_stride(a, m, k, lda),
        MatRef::from_column_major_slice_with_stride(b, k, n, ldb),
    );
}

/// The lower triangle of the symmetric `C = sum_r a_r b_r^T` over the m rows of the row-major m x d buffers `a` and
/// `b`, where `a` is usually `b` with its rows weighted. C is d x d and column-major; its strict upper triangle becomes
/// zero.
///
/// # Panics
///
/// If a buffer has not the length that `d` and `m` say.
pub fn gram<F: Scalar>(d: usize, m: usize, a: &[F], b: &[F], c: &mut [F]) {
    let target = MatMut::from_column_major_slice_mut(&mut *c, d, d);
    let left = MatRef::from_column_major_slice(a, d, m);
    let right = MatRef::from_row_major_slice(b, m, d);
    if d < F::TRIANGULAR_FROM {
        F::product(target, left, right);
    } else {
        F::lower_product(target, left, right);
    }
    super::clear_upper(d, c);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::linalg::testing::{at_every_alignment, values};

    /// The entry (i, j) of A B in `f64`, and the sum of the terms' sizes.
    fn plain_entry<F: Real>(terms: impl Iterator<Item = (F, F)>) -> (f64, f64) {
        terms.fold((0.0, 0.0), |(sum, size), (a, b)| {
            let term = a.to_f64() * b.to_f64();
            (sum + term, size + term.abs())
        })
    }

    fn check_gemm<F: Scalar>(shape: (usize, usize, usize), pads: (usize, usize, usize), epsilon: f64) {
        let (m, n, k) = shape;
        let (lda, ldb, ldc) = (m + pads.0, k + pads.1, m + pads.2);
        let a: Vec<F> = values(1, lda * k);
        let b: Vec<F> = values(2, ldb * n);
        let sentinel = F::from_f64(-7.0);
        let mut c = vec![sentinel; ldc * n];
        gemm(m, n, k, &a, lda, &b, ldb, &mut c, ldc);
        for (j, column) in c.chunks_exact(ldc.max(1)).enumerate() {
            for (i, &found) in column[..m].iter().enumerate() {
                let (expected, size) = plain_entry((0..k).map(|l| (a[i + l * lda], b[l + j * ldb])));
                let error = (found.to_f64() - expected).abs();
                assert!(error <= epsilon * (k as f64 + 1.0) * size, "{shape:?}: entry ({i}, {j})");
            }
            assert!(column[m..].iter().all(|&value| value == sentinel), "{shape:?}: written between the columns");
        }
    }

    fn check_gram<F: Scalar>(d: usize, m: usize, epsilon: f64) {
        let b: Vec<F> = values(3, m * d);
        let weights: Vec<F> = values(4, m);
        let a: Vec<F> = b.iter().enumerate().map(|(at, &value)| value * weights[at / d.max(1)]).collect();
        let mut c = vec![F::from_f64(f64::NAN); d * d];
        gram(d, m, &a, &b, &mut c);
        for (at, &found) in c.iter().enumerate() {
            let (i, j) = (at % d, at / d);
            let (expected, size) = plain_entry((0..m).map(|r| (a[r * d + i], b[r * d + j])));
            let expected = if i < j { 0.0 } else { expected };
            let error = (found.to_f64() - expected).abs();
            assert!(error <= epsilon * (m as f64 + 1.0) * size, "d = {d}, m = {m}: entry ({i}, {j})");
        }
    }

    fn check_both_types(shape: (usize, usize, usize), pads: (usize, usize, usize)) {
        check_gemm::<f32>(shape, pads, f64::from(f32::EPSILON));
        check_gemm::<f64>(shape, pads, f64::EPSILON);
    }

    /// Shapes on both sides of the library's switches: vector times matrix, tiny, blocked in k, wider than tall.
    const SHAPES: [(usize, usize, usize); 14] = [
        (0, 3, 2),
        (3, 0, 2),
        (3, 2, 0),
        (1, 1, 1),
        (1, 70, 90),
        (70, 1, 90),
        (70, 90, 1),
        (16, 16, 16),
        (17, 16, 16),
        (256, 200, 25),
        (256, 64, 64),
        (200, 7, 600),
        (5, 6, 1300),
        (3, 500, 40),
    ];

    #[test]
    fn gemm_is_the_plain_product() {
        for shape in SHAPES {
            check_both_types(shape, (0, 0, 0));
            check_both_types(shape, (3, 1, 5));
        }
    }

    #[test]
    fn gram_is_the_plain_sum() {
        for d in [0, 1, 2, 7, 24, 25, 26, 64, 96, 97, 98, 130] {
            for m in [0, 1, 2, 16, 127] {
                check_gram::<f32>(d, m, f64::from(f32::EPSILON));
                check_gram::<f64>(d, m, f64::EPSILON);
            }
        }
        check_gram::<f32>(50, 1024, f64::from(f32::EPSILON));
        check_gram::<f64>(50, 1024, f64::EPSILON);
    }

    #[test]
    fn no_bit_depends_on_where_the_buffers_lie() {
        for (m, n, k) in SHAPES {
            at_every_alignment::<f32>(m * k, m * n, |a, c| gemm(m, n, k, a, m, &values(5, k * n), k, c, m));
            at_every_alignment::<f64>(k * n, m * n, |b, c| gemm(m, n, k, &values(5, m * k), m, b, k, c, m));
        }
        for (d, m) in [(1, 100), (3, 50), (25, 64), (64, 128), (100, 40)] {
            at_every_alignment::<f32>(d * m, d * d, |a, c| gram(d, m, a, a, c));
            at_every_alignment::<f64>(d * m, d * d, |a, c| gram(d, m, a, a, c));
        }
    }

    #[test]
    fn nothing_hides_a_nan() {
        let mut a = [1.0, 0.0, 0.0, 0.0, f64::NAN, 0.0];
        let mut c = [0.0; 4];
        gemm(2, 2, 3, &a, 2, &[0.0; 6], 3, &mut c, 2);
        assert!(c[0].is_nan() && c[2].is_nan());
        a[4] = f64::INFINITY;
        gram(2, 3, &a, &[0.0; 6], &mut c);
        assert!(c[0].is_nan());
    }

    #[test]
    #[should_panic(expected = "last < len")]
    fn gemm_refuses_a_short_buffer() {
        gemm(2, 2, 2, &[0.0; 3], 2, &[0.0; 4], 2, &mut [0.0; 4], 2);
    }

    #[test]
    #[should_panic(expected = "columns overlap")]
    fn gemm_refuses_overlapping_columns() {
        gemm(2, 2, 2, &[0.0; 4], 2, &[0.0; 4], 2, &mut [0.0; 4], 1);
    }

    #[test]
    #[should_panic(expected = "assertion")]
    fn gram_refuses_a_wrong_length() {
        gram(2, 2, &[0.0f32; 4], &[0.0; 5], &mut [0.0; 4]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn gemm_of_any_shape(m in 0usize..70, n in 0usize..70, k in 0usize..70, pads in (0usize..4, 0usize..4, 0usize..4)) {
            check_both_types((m, n, k), pads);
        }

        #[test]
        fn gram_of_any_shape(d in 0usize..120, m in 0usize..70) {
            check_gram::<f32>(d, m, f64::from(f32::EPSILON));
            check_gram::<f64>(d, m, f64::EPSILON);
        }
    }
}
