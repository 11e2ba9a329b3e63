//! Products of a lower-triangular matrix with many vectors.

use pulp::{Simd, WithSimd};

use crate::simd::Instructions;

/// Number of vectors that are multiplied together, one per lane.
pub const LANES: usize = 8;
/// Number of rows of the matrix that are multiplied together: with the lanes they fill the registers.
const BAND: usize = 4;

/// A lower-triangular matrix, stored by rows, padded to whole bands.
#[derive(Debug, Clone)]
pub struct LowerMatrix {
    dimension: usize,
    rows: Vec<f64>,
}

impl LowerMatrix {
    /// From a lower-triangular d x d matrix, column-major.
    pub fn new(d: usize, lower: &[f64]) -> Self {
        let mut rows = vec![0.0; d.next_multiple_of(BAND) * d];
        for (i, row) in rows.chunks_exact_mut(d).take(d).enumerate() {
            row[..=i].iter_mut().enumerate().for_each(|(j, to)| *to = lower[j * d + i]);
        }
        Self { dimension: d, rows }
    }

    /// Replaces vectors, one per lane, by their products. Sums run in the order of the columns, so the instruction set
    /// changes no bit.
    ///
    /// # Panics
    ///
    /// If the vectors do not have `d` entries.
    pub fn multiply(&self, vectors: &mut [[f64; LANES]]) {
        assert_eq!(vectors.len(), self.dimension);
        Instructions::widest().run(Multiply { matrix: self, vectors });
    }
}

struct Multiply<'a> {
    matrix: &'a LowerMatrix,
    vectors: &'a mut [[f64; LANES]],
}

impl WithSimd for Multiply<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let d = self.matrix.dimension;
        // Starts with the last band: a product needs only entries that have not been replaced.
        for (band, rows) in self.matrix.rows.chunks_exact(BAND * d).enumerate().rev() {
            let n_columns = d.min((band + 1) * BAND);
            let mut sums = [[0.0; LANES]; BAND];
            for (j, vector) in self.vectors[..n_columns].iter().enumerate() {
                for (row, sum) in sums.iter_mut().enumerate() {
                    let factor = rows[row * d + j];
                    for (sum, value) in sum.iter_mut().zip(vector) {
                        *sum += factor * value;
                    }
                }
            }
            self.vectors[band * BAND..n_columns].iter_mut().zip(sums).for_each(|(to, sum)| *to = sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::testing::values;

    #[test]
    fn products_are_those_of_the_definition() {
        for d in [1, 2, 3, 4, 5, 8, 13, 64] {
            let mut lower: Vec<f64> = values(1, d * d);
            for column in 1..d {
                lower[column * d..column * d + column].fill(0.0);
            }
            let vectors: Vec<f64> = values(2, d * LANES);
            let before: Vec<[f64; LANES]> = vectors.as_chunks().0.to_vec();
            let mut after = before.clone();
            LowerMatrix::new(d, &lower).multiply(&mut after);
            for (i, lane) in (0..d).flat_map(|i| (0..LANES).map(move |lane| (i, lane))) {
                let expected = (0..=i).fold(0.0, |sum, j| sum + lower[j * d + i] * before[j][lane]);
                assert_eq!(after[i][lane], expected, "{d} {i} {lane}");
            }
        }
    }
}
