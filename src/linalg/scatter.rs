//! Weighted first and second moments of rows; the second moments as a packed lower triangle, column by column.

use pulp::{Simd, WithSimd};

use crate::linalg::few_columns::{FEW_COLUMNS, FewColumns};
use crate::linalg::mirror;
use crate::simd::{Instructions, Lines, VECTORS};

/// Length of a packed lower triangle.
pub const fn packed_len(d: usize) -> usize {
    d * (d + 1) / 2
}

/// Number of rows that are weighted and multiplied at a time, so that they stay in a core's second-level cache.
const BLOCK: usize = 256;

/// Adds `sum_i w_i x_i` to `sums` (skipped if empty) and `sum_i w_i x_i x_i^T` to `packed`. `weighted` is scratch
/// space.
///
/// # Panics
/// If the lengths are inconsistent.
pub fn add_moments(
    rows: &[f64],
    weights: &[f64],
    d: usize,
    sums: &mut [f64],
    packed: &mut [f64],
    weighted: &mut Lines<f64>,
) {
    add_moments_with(Instructions::widest(), rows, weights, d, sums, packed, weighted);
}

fn add_moments_with(
    instructions: Instructions,
    rows: &[f64],
    weights: &[f64],
    d: usize,
    sums: &mut [f64],
    packed: &mut [f64],
    weighted: &mut Lines<f64>,
) {
    assert!(rows.len() == weights.len() * d && packed.len() == packed_len(d), "rows, weights and moments do not fit");
    for (rows, weights) in rows.chunks(BLOCK * d).zip(weights.chunks(BLOCK)) {
        if d <= FEW_COLUMNS {
            instructions.run(FewColumns { rows, weights, d, sums, packed, space: weighted });
        } else {
            instructions.run(AddMoments { rows, weights, d, sums, packed, weighted });
        }
    }
}

struct AddMoments<'a> {
    rows: &'a [f64],
    weights: &'a [f64],
    d: usize,
    sums: &'a mut [f64],
    packed: &'a mut [f64],
    weighted: &'a mut Lines<f64>,
}

impl WithSimd for AddMoments<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { rows, weights, d, sums, packed, weighted } = self;
        let stride = d.next_multiple_of(S::F64_LANES);
        weighted.resize(weights.len() * stride);
        let vectors: &mut [S::f64s] = bytemuck::cast_slice_mut(weighted);
        for ((row, &weight), out) in
            rows.chunks_exact(d).zip(weights).zip(vectors.chunks_exact_mut(stride / S::F64_LANES))
        {
            let weight = simd.splat_f64s(weight);
            let (whole, rest) = S::as_simd_f64s(row);
            for (out, &values) in out.iter_mut().zip(whole) {
                *out = simd.mul_f64s(weight, values);
            }
            if !rest.is_empty() {
                out[whole.len()] = simd.mul_f64s(weight, simd.partial_load_f64s(rest));
            }
        }
        if !sums.is_empty() {
            add_sums(simd, vectors, stride / S::F64_LANES, sums);
        }
        let products = Products { rows, d, weighted: vectors, stride: stride / S::F64_LANES };
        let mut first = 0;
        while first < d {
            first += match d - first {
                8.. => products.add_columns::<8>(simd, first, packed),
                4.. => products.add_columns::<4>(simd, first, packed),
                2.. => products.add_columns::<2>(simd, first, packed),
                _ => products.add_columns::<1>(simd, first, packed),
            };
        }
    }
}

/// Adds the sum of rows that are `stride` vectors long.
#[inline(always)]
fn add_sums<S: Simd>(simd: S, rows: &[S::f64s], stride: usize, sums: &mut [f64]) {
    for (vector, sums) in sums.chunks_mut(S::F64_LANES).enumerate() {
        // Separate sums of even and odd rows are independent of each other and can be computed in parallel.
        let (mut even, mut odd) = (simd.splat_f64s(0.0), simd.splat_f64s(0.0));
        let mut pairs = rows.chunks_exact(2 * stride);
        for pair in &mut pairs {
            even = simd.add_f64s(even, pair[vector]);
            odd = simd.add_f64s(odd, pair[stride + vector]);
        }
        if let Some(&last) = pairs.remainder().get(vector) {
            even = simd.add_f64s(even, last);
        }
        let total = simd.add_f64s(even, odd);
        let total: &[f64] = bytemuck::cast_slice(std::slice::from_ref(&total));
        for (sum, value) in sums.iter_mut().zip(total) {
            *sum += value;
        }
    }
}

/// Products of weighted rows, `stride` vectors per row, with plain rows.
struct Products<'a, S: Simd> {
    rows: &'a [f64],
    d: usize,
    weighted: &'a [S::f64s],
    stride: usize,
}

impl<S: Simd> Products<'_, S> {
    /// Adds columns `first..first + H`; returns `H`. Columns within the whole vectors use the vectors from the one with
    /// the diagonal to the last whole one. Columns after the whole vectors use all vectors, so that the partial vector
    /// is multiplied by few columns. No group has columns of both kinds: the sizes of groups and vectors are powers of
    /// two, and large groups come first.
    #[inline(always)]
    fn add_columns<const H: usize>(&self, simd: S, first: usize, packed: &mut [f64]) -> usize {
        let whole = self.d / S::F64_LANES;
        let behind = first >= whole * S::F64_LANES;
        let (mut vector, end) = if behind { (0, self.stride) } else { (first / S::F64_LANES, whole) };
        while vector < end {
            vector += match end - vector {
                // At least four independent sums, so that they hide latency.
                4.. if H == 1 => self.add_block::<H, 4>(simd, first, vector, packed),
                VECTORS.. => self.add_block::<H, VECTORS>(simd, first, vector, packed),
                2 => self.add_block::<H, 2>(simd, first, vector, packed),
                _ => self.add_block::<H, 1>(simd, first, vector, packed),
            };
        }
        H
    }

    /// Adds vectors `vector..vector + V` of these columns; returns `V`.
    #[inline(always)]
    fn add_block<const H: usize, const V: usize>(
        &self,
        simd: S,
        first: usize,
        vector: usize,
        packed: &mut [f64],
    ) -> usize {
        let mut sums = [[simd.splat_f64s(0.0); V]; H];
        for (row, weighted) in self.rows.chunks_exact(self.d).zip(self.weighted.chunks_exact(self.stride)) {
            let (row, weighted) = (&row[first..][..H], &weighted[vector..][..V]);
            for h in 0..H {
                let value = simd.splat_f64s(row[h]);
                for v in 0..V {
                    sums[h][v] = simd.mul_add_e_f64s(weighted[v], value, sums[h][v]);
                }
            }
        }
        let begin = vector * S::F64_LANES;
        let whole = self.d / S::F64_LANES * S::F64_LANES;
        for (h, sums) in sums.iter().enumerate() {
            let column = first + h;
            let sums: &[f64] = bytemuck::cast_slice(sums);
            let end = self.d.min(begin + sums.len());
            // Keeps entries (row, column) on and below the diagonal; those above it are not needed.
            let from = column.max(begin);
            if from < end {
                let start = column_start(self.d, column);
                let target = &mut packed[start + from..start + end];
                for (to, &sum) in target.iter_mut().zip(&sums[from - begin..]) {
                    *to += sum;
                }
            }
            // For a column after the whole vectors, the entries above the diagonal are its row, left of the diagonal.
            if column >= whole {
                for (row, &sum) in (begin..whole.min(end)).zip(sums) {
                    packed[column_start(self.d, row) + column] += sum;
                }
            }
        }
        V
    }
}

/// Offset of (virtual) row 0 of a column in a packed lower triangle.
const fn column_start(d: usize, column: usize) -> usize {
    column * d - column * (column + 1) / 2
}

/// The diagonal of a packed lower triangle.
pub fn packed_diagonal(d: usize, packed: &[f64]) -> impl Iterator<Item = f64> + '_ {
    (0..d).map(move |column| packed[column_start(d, column) + column])
}

/// Expands a packed lower triangle to the full symmetric matrix, column-major.
///
/// # Panics
/// If the length of the triangle is not [`packed_len`].
pub fn unpack(d: usize, packed: &[f64]) -> Vec<f64> {
    let mut full = unpack_lower(d, packed);
    mirror(d, &mut full);
    full
}

/// As [`unpack`], with zeros above the diagonal.
///
/// # Panics
/// If the length of the triangle is not [`packed_len`].
pub fn unpack_lower(d: usize, packed: &[f64]) -> Vec<f64> {
    let mut lower = Vec::with_capacity(d * d);
    let mut rest = packed;
    for column in 0..d {
        let (below, others) = rest.split_at(d - column);
        lower.resize(column * (d + 1), 0.0);
        lower.extend_from_slice(below);
        rest = others;
    }
    lower
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::linalg::testing::{at_every_alignment, values};

    proptest! {
        /// Covers every instruction set, all remainders of columns modulo eight, and more rows than a block.
        #[test]
        fn moments_equal_the_plain_loop(
            (d, n) in (1_usize..37, 0_usize..300),
            values in prop::collection::vec(-3.0_f64..3.0, 37 * 300),
            weights in prop::collection::vec(0.0_f64..2.0, 300),
        ) {
            let (rows, weights) = (&values[..n * d], &weights[..n]);
            for set in Instructions::available() {
                let (mut sums, mut packed) = (vec![1.0; d], vec![1.0; packed_len(d)]);
                add_moments_with(set, rows, weights, d, &mut sums, &mut packed, &mut Lines::default());
                let full = unpack(d, &packed);
                for i in 0..d {
                    let first: f64 = (0..n).map(|r| weights[r] * rows[r * d + i]).sum();
                    prop_assert!((sums[i] - 1.0 - first).abs() < 1e-11, "{set:?}");
                    for j in 0..d {
                        let second: f64 = (0..n).map(|r| weights[r] * rows[r * d + i] * rows[r * d + j]).sum();
                        prop_assert!((full[i * d + j] - 1.0 - second).abs() < 1e-11, "{set:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn no_bit_depends_on_where_the_buffers_lie() {
        for (d, n) in [(1, 100), (3, 50), (25, 64), (64, 128), (100, 40)] {
            at_every_alignment::<f64>(d * n, packed_len(d), |rows, packed| {
                add_moments(rows, &values(5, n), d, &mut [], packed, &mut Lines::default());
            });
        }
    }
}
