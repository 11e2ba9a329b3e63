//! Products of square matrices. Small ones are multiplied by plain loops, which start faster than a library.

use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::linalg::triangular_solve::solve_lower_triangular_in_place;
use faer::{Accum, MatMut, MatRef, Par};

use crate::linalg::solve_lower;

/// Number of columns from which the library is faster.
const LARGE: usize = 24;

/// `A B`.
///
/// # Panics
/// If one of them does not have d x d values.
pub fn multiply(d: usize, a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; d * d];
    if d >= LARGE {
        let [a, b] = [a, b].map(|matrix| MatRef::from_column_major_slice(matrix, d, d));
        matmul(MatMut::from_column_major_slice_mut(&mut out, d, d), Accum::Replace, a, b, 1.0, Par::Seq);
        return out;
    }
    for (out, column) in out.chunks_exact_mut(d).zip(b.chunks_exact(d)) {
        for (a, value) in a.chunks_exact(d).zip(column) {
            out.iter_mut().zip(a).for_each(|(sum, x)| *sum += x * value);
        }
    }
    out
}

/// Adds a multiple of `T^T T`, with a lower-triangular T, to the lower triangle of a matrix. T must be zero above its
/// diagonal.
///
/// # Panics
/// If one of them does not have d x d values.
pub fn add_gram_of_lower(d: usize, lower: &[f64], times: f64, to: &mut [f64]) {
    if d >= LARGE {
        let lower = MatRef::from_column_major_slice(lower, d, d);
        let to = MatMut::from_column_major_slice_mut(to, d, d);
        let (below, above) = (BlockStructure::TriangularLower, BlockStructure::TriangularUpper);
        triangular::matmul(to, below, Accum::Add, lower.transpose(), above, lower, below, times, Par::Seq);
        return;
    }
    for j in 0..d {
        let left = &lower[j * d..][..d];
        for i in j..d {
            let right = &lower[i * d..][..d];
            let value: f64 = left[i..].iter().zip(&right[i..]).map(|(a, b)| a * b).sum();
            to[j * d + i] += times * value;
        }
    }
}

/// `L L^T` of a lower-triangular L, which must be zero above its diagonal.
///
/// # Panics
/// If it does not have d x d values.
pub fn square_of_lower(d: usize, lower: &[f64]) -> Vec<f64> {
    let mut full = vec![0.0; d * d];
    if d >= LARGE {
        let lower = MatRef::from_column_major_slice(lower, d, d);
        let to = MatMut::from_column_major_slice_mut(&mut full, d, d);
        let (below, above) = (BlockStructure::TriangularLower, BlockStructure::TriangularUpper);
        triangular::matmul(to, below, Accum::Replace, lower, below, lower.transpose(), above, 1.0, Par::Seq);
    } else {
        for j in 0..d {
            for i in j..d {
                full[j * d + i] = (0..=j).map(|k| lower[k * d + i] * lower[k * d + j]).sum();
            }
        }
    }
    mirror(d, &mut full);
    full
}

/// Replaces X by `L^-1 X`; the strict upper triangle of L is not read.
///
/// # Panics
/// If one of them does not have d x d values.
pub fn solve_lower_matrix(d: usize, l: &[f64], x: &mut [f64]) {
    if d >= LARGE {
        let (l, x) = (MatRef::from_column_major_slice(l, d, d), MatMut::from_column_major_slice_mut(x, d, d));
        solve_lower_triangular_in_place(l, x, Par::Seq);
    } else {
        x.chunks_exact_mut(d).for_each(|column| solve_lower(d, l, column));
    }
}

/// The transpose.
pub fn transposed(d: usize, a: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; d * d];
    let places = out.chunks_exact_mut(d).enumerate();
    places.for_each(|(i, column)| column.iter_mut().zip(a[i..].iter().step_by(d)).for_each(|(to, value)| *to = *value));
    out
}

/// Copies the lower triangle over the upper one.
pub fn mirror(d: usize, a: &mut [f64]) {
    for j in 0..d {
        for i in j + 1..d {
            a[i * d + j] = a[j * d + i];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::testing::{at_every_alignment, values};

    fn lower(d: usize, seed: u64) -> Vec<f64> {
        let mut lower: Vec<f64> = values(seed, d * d);
        for j in 0..d {
            lower[j * d..j * d + j].fill(0.0);
            lower[j * (d + 1)] += 3.0;
        }
        lower
    }

    fn plain(d: usize, of: impl Fn(usize, usize, usize) -> f64) -> Vec<f64> {
        (0..d * d).map(|index| (0..d).map(|k| of(index % d, index / d, k)).sum()).collect()
    }

    fn assert_close(found: &[f64], expected: &[f64], d: usize) {
        let worst = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(worst < 1e-12 * d as f64, "{d}: {worst}");
    }

    #[test]
    fn products_are_those_of_plain_loops() {
        for d in [1, 2, 7, LARGE - 1, LARGE, 40, 77] {
            let (a, b, l) = (values::<f64>(1, d * d), values::<f64>(2, d * d), lower(d, 3));
            assert_close(&multiply(d, &a, &b), &plain(d, |i, j, k| a[k * d + i] * b[j * d + k]), d);
            assert_close(&square_of_lower(d, &l), &plain(d, |i, j, k| l[k * d + i] * l[k * d + j]), d);
            let mut sum = a.clone();
            add_gram_of_lower(d, &l, 0.5, &mut sum);
            let gram = plain(d, |i, j, k| l[i * d + k] * l[j * d + k]);
            let expected = |index: usize| a[index] + if index % d < index / d { 0.0 } else { 0.5 * gram[index] };
            assert_close(&sum, &(0..d * d).map(expected).collect::<Vec<_>>(), d);
            let mut solved = b.clone();
            solve_lower_matrix(d, &l, &mut solved);
            assert_close(&multiply(d, &l, &solved), &b, d);
            assert_eq!(transposed(d, &a), (0..d * d).map(|index| a[index % d * d + index / d]).collect::<Vec<_>>());
        }
    }

    #[test]
    fn no_bit_depends_on_where_the_buffers_lie() {
        for d in [5, 33] {
            let l = lower(d, 4);
            at_every_alignment::<f64>(d * d, d * d, |a, out| out.copy_from_slice(&multiply(d, a, &l)));
            at_every_alignment::<f64>(d * d, d * d, |a, out| add_gram_of_lower(d, &l, a[0], out));
            at_every_alignment::<f64>(d * d, d * d, |a, out| {
                out.copy_from_slice(a);
                solve_lower_matrix(d, &l, out);
            });
        }
    }
}
