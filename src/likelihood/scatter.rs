//! Weighted first and second moments of rows, the second as a packed lower triangle.

use crate::likelihood::scoring::Scratch;
use crate::linalg::gram;

/// Length of a packed lower triangle.
pub const fn packed_len(d: usize) -> usize {
    d * (d + 1) / 2
}

/// Adds `sum_i w_i x_i` to `sums` (empty: not wanted) and `sum_i w_i x_i x_i^T` to `packed`.
pub fn add_moments(
    rows: &[f64],
    weights: &[f64],
    d: usize,
    sums: &mut [f64],
    packed: &mut [f64],
    scratch: &mut Scratch<f64>,
) {
    let weighted = &mut scratch.sums;
    weighted.clear();
    for (row, &weight) in rows.chunks_exact(d).zip(weights) {
        weighted.extend(row.iter().map(|&value| weight * value));
    }
    if !sums.is_empty() {
        for row in weighted.chunks_exact(d) {
            sums.iter_mut().zip(row).for_each(|(sum, &value)| *sum += value);
        }
    }
    scratch.products.resize(scratch.products.len().max(d * d), 0.0);
    let product = &mut scratch.products[..d * d];
    gram(d, weights.len(), weighted, rows, product);
    let mut next = packed.iter_mut();
    for column in 0..d {
        for (&value, to) in product[column * d + column..(column + 1) * d].iter().zip(&mut next) {
            *to += value;
        }
    }
}

/// The full symmetric matrix of a packed lower triangle, column-major.
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

    proptest! {
        #[test]
        fn moments_equal_the_plain_loop(
            (d, n) in (1_usize..20, 0_usize..30),
            values in prop::collection::vec(-3.0_f64..3.0, 20 * 30),
            weights in prop::collection::vec(0.0_f64..2.0, 30),
        ) {
            let (rows, weights) = (&values[..n * d], &weights[..n]);
            let (mut sums, mut packed) = (vec![1.0; d], vec![1.0; packed_len(d)]);
            add_moments(rows, weights, d, &mut sums, &mut packed, &mut Scratch::default());
            let full = unpack(d, &packed);
            for i in 0..d {
                let first: f64 = (0..n).map(|r| weights[r] * rows[r * d + i]).sum();
                prop_assert!((sums[i] - 1.0 - first).abs() < 1e-12);
                for j in 0..d {
                    let second: f64 = (0..n).map(|r| weights[r] * rows[r * d + i] * rows[r * d + j]).sum();
                    prop_assert!((full[i * d + j] - 1.0 - second).abs() < 1e-12);
                }
            }
        }
    }
}
