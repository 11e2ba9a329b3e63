//! Rank-one updates of a Cholesky factor, and quantities computed from it, in O(D^2) (mathematics 8.6).
//!
//! The factor is a packed lower triangle, column by column.

use crate::linalg::packed_len;

/// Smallest fraction of a squared pivot that may remain after a downdate; below it the factor has lost its digits.
const LEAST_PIVOT: f64 = 1e-12;

/// Packs the lower triangle of a (D, D) column-major matrix.
pub fn pack_lower(d: usize, full: &[f64], packed: &mut [f64]) {
    let mut rest = packed;
    for (j, column) in full.chunks_exact(d).enumerate() {
        let (packed_column, others) = rest.split_at_mut(d - j);
        packed_column.copy_from_slice(&column[j..]);
        rest = others;
    }
}

/// Replaces the factor of A by that of `A + w w^T`; overwrites `w`.
pub fn update_packed(packed: &mut [f64], w: &mut [f64]) {
    change::<false>(packed, w);
}

/// Replaces the factor of A by that of `A - w w^T`; overwrites `w`. Returns false, with an invalid factor, if too
/// little of a pivot remains.
#[must_use]
pub fn downdate_packed(packed: &mut [f64], w: &mut [f64]) -> bool {
    change::<true>(packed, w)
}

fn change<const DOWN: bool>(packed: &mut [f64], w: &mut [f64]) -> bool {
    let sign = if DOWN { -1.0 } else { 1.0 };
    debug_assert_eq!(packed.len(), packed_len(w.len()), "a factor of another dimension");
    let (mut columns, mut w) = (packed, w);
    while let Some((head, tail)) = w.split_first_mut() {
        let (column, others) = columns.split_at_mut(tail.len() + 1);
        let (pivot, below) = column.split_at_mut(1);
        let square = pivot[0] * pivot[0];
        let left = square + sign * *head * *head;
        if DOWN && (left <= LEAST_PIVOT * square || left.is_nan()) {
            return false;
        }
        let root = left.sqrt();
        let (gamma, s) = (root / pivot[0], *head / pivot[0]);
        let inverse = gamma.recip();
        pivot[0] = root;
        for (l, w) in below.iter_mut().zip(tail.iter_mut()) {
            *l = (*l + sign * s * *w) * inverse;
            *w = gamma * *w - s * *l;
        }
        (columns, w) = (others, tail);
    }
    true
}

/// `ln |A|` from the packed factor of a (D, D) matrix.
pub fn log_determinant_packed(d: usize, packed: &[f64]) -> f64 {
    let (mut diagonal, mut total, mut product) = (0, 0.0, 1.0_f64);
    for j in 0..d {
        product *= packed[diagonal];
        // Takes one logarithm for many factors, before their product overflows or underflows.
        if !(1e-100..1e100).contains(&product) {
            total += product.ln();
            product = 1.0;
        }
        diagonal += d - j;
    }
    2.0 * (total + product.ln())
}

/// `|L^-1 x|^2`; overwrites `x` with `L^-1 x`.
pub fn squared_length_packed(packed: &[f64], x: &mut [f64]) -> f64 {
    let (mut columns, mut x) = (packed, x);
    let mut total = 0.0;
    while let Some((head, tail)) = x.split_first_mut() {
        let (column, others) = columns.split_at(tail.len() + 1);
        let value = *head / column[0];
        *head = value;
        total += value * value;
        for (target, &factor) in tail.iter_mut().zip(&column[1..]) {
            *target -= factor * value;
        }
        (columns, x) = (others, tail);
    }
    total
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::linalg::testing::values;
    use crate::linalg::{cholesky, solve_lower, unpack};

    /// G G^T plus a ridge, as a full matrix.
    fn matrix(d: usize, seed: u64) -> Vec<f64> {
        let g: Vec<f64> = values(seed, d * d);
        let entry = |i: usize, j: usize| (0..d).map(|l| g[i * d + l] * g[j * d + l]).sum::<f64>();
        (0..d * d).map(|index| entry(index % d, index / d) + if index % d == index / d { 0.1 } else { 0.0 }).collect()
    }

    fn factor(d: usize, mut a: Vec<f64>) -> Vec<f64> {
        cholesky(d, &mut a).expect("positive definite");
        let mut packed = vec![0.0; packed_len(d)];
        pack_lower(d, &a, &mut packed);
        packed
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn changed_factors_are_those_of_the_changed_matrix(d in 1_usize..40, seed in any::<u64>()) {
            let (a, w): (_, Vec<f64>) = (matrix(d, seed), values(seed ^ 1, d));
            let more: Vec<f64> = a.iter().enumerate().map(|(index, a)| a + w[index % d] * w[index / d]).collect();
            let (small, large) = (factor(d, a), factor(d, more));
            let mut found = small.clone();
            update_packed(&mut found, &mut w.clone());
            let near = |found: &[f64], expected: &[f64]| {
                found.iter().zip(expected).all(|(x, y)| (x - y).abs() <= 1e-9 * (1.0 + y.abs()))
            };
            prop_assert!(near(&found, &large));
            prop_assert!(downdate_packed(&mut found, &mut w.clone()) && near(&found, &small));
        }

        #[test]
        fn readings_equal_those_of_the_full_factor(d in 1_usize..40, seed in any::<u64>()) {
            let (packed, x): (_, Vec<f64>) = (factor(d, matrix(d, seed)), values(seed ^ 1, d));
            // `unpack` fills both triangles; only the lower one is read.
            let full = unpack(d, &packed);
            let mut solved = x.clone();
            solve_lower(d, &full, &mut solved);
            let square: f64 = solved.iter().map(|x| x * x).sum();
            let found = squared_length_packed(&packed, &mut x.clone());
            prop_assert!((found - square).abs() <= 1e-12 * (1.0 + square));
            let logs: f64 = (0..d).map(|j| 2.0 * full[j * (d + 1)].ln()).sum();
            prop_assert!((log_determinant_packed(d, &packed) - logs).abs() <= 1e-12 * (1.0 + logs.abs()));
        }
    }

    #[test]
    fn a_lost_pivot_is_noticed() {
        assert!(!downdate_packed(&mut [2.0], &mut [2.0]) && !downdate_packed(&mut [1.0, 0.5, 3.0], &mut [1.1, 0.0]));
        assert!(!downdate_packed(&mut [1.0], &mut [f64::NAN]));
    }
}
