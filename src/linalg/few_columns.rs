//! Weighted moments of rows with so few columns that one row does not fill a vector. Rows are placed in vector lanes,
//! and every moment is a separate sum.

use pulp::{Simd, WithSimd};

use crate::simd::{Lines, copy_column};

/// Maximum number of columns for which all sums stay in registers.
pub const FEW_COLUMNS: usize = 4;

/// Adds moments as [`crate::linalg::add_moments`] does; compiled for each instruction set.
pub struct FewColumns<'a> {
    pub rows: &'a [f64],
    pub weights: &'a [f64],
    /// Number of columns, at most [`FEW_COLUMNS`].
    pub d: usize,
    pub sums: &'a mut [f64],
    pub packed: &'a mut [f64],
    pub space: &'a mut Lines<f64>,
}

impl WithSimd for FewColumns<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match self.d {
            1 => self.add::<S, 1>(simd),
            2 => self.add::<S, 2>(simd),
            3 => self.add::<S, 3>(simd),
            _ => self.add::<S, FEW_COLUMNS>(simd),
        }
    }
}

impl FewColumns<'_> {
    #[inline(always)]
    fn add<S: Simd, const D: usize>(self, simd: S) {
        let Self { rows, weights, sums, packed, space, .. } = self;
        // The weights and then each column, padded to whole vectors with rows of weight zero.
        let n = weights.len().next_multiple_of(S::F64_LANES);
        space.resize((1 + D) * n);
        let (first, columns) = space.split_at_mut(n);
        first[..weights.len()].copy_from_slice(weights);
        first[weights.len()..].fill(0.0);
        for j in 0..D {
            let (column, rest) = columns[j * n..][..n].split_at_mut(weights.len());
            copy_column::<f64, D>(rows, j, column);
            rest.fill(0.0);
        }
        let vectors: &[S::f64s] = bytemuck::cast_slice(space);
        let stride = n / S::F64_LANES;
        let zero = simd.splat_f64s(0.0);
        let mut first_moments = [zero; D];
        let mut second_moments = [[zero; D]; D];
        for vector in 0..stride {
            let weight = vectors[vector];
            let mut row = [zero; D];
            for j in 0..D {
                row[j] = vectors[(1 + j) * stride + vector];
            }
            for j in 0..D {
                let weighted = simd.mul_f64s(weight, row[j]);
                first_moments[j] = simd.add_f64s(first_moments[j], weighted);
                for i in j..D {
                    second_moments[j][i] = simd.mul_add_e_f64s(weighted, row[i], second_moments[j][i]);
                }
            }
        }
        for (sum, vector) in sums.iter_mut().zip(first_moments) {
            *sum += simd.reduce_sum_f64s(vector);
        }
        let mut packed = packed.iter_mut();
        for (j, column) in second_moments.iter().enumerate() {
            for (&vector, sum) in column[j..].iter().zip(&mut packed) {
                *sum += simd.reduce_sum_f64s(vector);
            }
        }
    }
}
