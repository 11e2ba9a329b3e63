//! Weighted first and second moments of rows, the second as a packed lower triangle, column by column.

use pulp::{Simd, WithSimd};

use crate::simd::{Instructions, Lines, VECTORS};

/// Length of a packed lower triangle.
pub const fn packed_len(d: usize) -> usize {
    d * (d + 1) / 2
}

/// Rows that are weighted and multiplied at a time: what a core keeps in its second-level cache.
const BLOCK: usize = 256;

/// Adds `sum_i w_i x_i` to `sums` (empty: not wanted) and `sum_i w_i x_i x_i^T` to `packed`. `weighted` is space.
///
/// # Panics
/// If the lengths do not fit together.
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
        instructions.run(Moments { rows, weights, d, sums, packed, weighted });
    }
}

struct Moments<'a> {
    rows: &'a [f64],
    weights: &'a [f64],
    d: usize,
    sums: &'a mut [f64],
    packed: &'a mut [f64],
    weighted: &'a mut Lines<f64>,
}

impl WithSimd for Moments<'_> {
    type Output = ();

    #[allow(clippy::inline_always, reason = "compiled once for each instruction set")]
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { rows, weights, d, sums, packed, weighted } = self;
        let stride = d.next_multiple_of(S::F64_LANES);
        weighted.reset(weights.len() * stride, 0.0);
        for ((row, &weight), out) in rows.chunks_exact(d).zip(weights).zip(weighted.chunks_exact_mut(stride)) {
            for (out, &value) in out.iter_mut().zip(row) {
                *out = weight * value;
            }
        }
        if !sums.is_empty() {
            for row in weighted.chunks_exact(stride) {
                for (sum, &value) in sums.iter_mut().zip(row) {
                    *sum += value;
                }
            }
        }
        let products = Products { rows, d, weighted: bytemuck::cast_slice(weighted), stride: stride / S::F64_LANES };
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

/// Weighted rows in vectors, `stride` a row, times plain rows.
struct Products<'a, S: Simd> {
    rows: &'a [f64],
    d: usize,
    weighted: &'a [S::f64s],
    stride: usize,
}

#[allow(clippy::inline_always, reason = "compiled once for each instruction set")]
impl<S: Simd> Products<'_, S> {
    /// Columns `first..first + H` of the triangle, from the vector that has the diagonal on; returns `H`.
    #[inline(always)]
    fn add_columns<const H: usize>(&self, simd: S, first: usize, packed: &mut [f64]) -> usize {
        let mut vector = first / S::F64_LANES;
        while vector < self.stride {
            vector += match self.stride - vector {
                VECTORS.. => self.add_block::<H, VECTORS>(simd, first, vector, packed),
                2 => self.add_block::<H, 2>(simd, first, vector, packed),
                _ => self.add_block::<H, 1>(simd, first, vector, packed),
            };
        }
        H
    }

    /// Vectors `vector..vector + V` of these columns; returns `V`.
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
        for (h, sums) in sums.iter().enumerate() {
            let column = first + h;
            let sums: &[f64] = bytemuck::cast_slice(sums);
            // Entries (row, column) from the diagonal on; what stands above it in the vector is not wanted.
            let from = column.max(begin);
            let to = self.d.min(begin + sums.len());
            if from < to {
                let start = column * self.d - column * (column + 1) / 2;
                let target = &mut packed[start + from..start + to];
                for (to, &sum) in target.iter_mut().zip(&sums[from - begin..]) {
                    *to += sum;
                }
            }
        }
        V
    }
}

/// The full symmetric matrix of a packed lower triangle, column-major.
///
/// # Panics
/// If the triangle has another length than [`packed_len`].
pub fn unpack(d: usize, packed: &[f64]) -> Vec<f64> {
    let mut full = vec![0.0; d * d];
    let mut next = packed.iter();
    for column in 0..d {
        for row in column..d {
            let value = *next.next().expect("a packed triangle has d (d + 1) / 2 values");
            full[column * d + row] = value;
            full[row * d + column] = value;
        }
    }
    full
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::linalg::testing::{at_every_alignment, values};

    proptest! {
        /// Every instruction set; all remainders of columns by eight, and more rows than a block.
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
