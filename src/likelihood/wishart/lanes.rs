//! Scores one row under eight clusters at a time, for the Gaussians with a (Normal-)Wishart base measure. Clusters
//! occupy vector lanes, and only plain products and sums are used, so that every instruction set gives the same bits.

use pulp::{Simd, WithSimd};

use crate::likelihood::urn::Eight;
use crate::special::ln_of_positive;

/// Maximum number of columns for which lanes are used.
pub const MOST_COLUMNS: usize = 64;

/// Number of values per cluster: its log weight, the part of the log predictive that is independent of the row, half
/// the degrees of freedom of the predictive, the factor of the squared length, the mean, the reciprocal diagonal of the
/// Cholesky factor, and the entries below the diagonal, column by column.
pub const fn lane_len(d: usize) -> usize {
    4 + d + d + d * (d - 1) / 2
}

/// Values of a cluster that [`write`] stores.
pub struct Cluster<'a> {
    pub constant: f64,
    pub half: f64,
    pub weight: f64,
    pub mean: &'a [f64],
    /// The packed Cholesky factor, column by column.
    pub factor: &'a [f64],
}

/// Writes a cluster into its lane, after the log weight.
pub fn write(cluster: &Cluster<'_>, lane: usize, out: &mut [Eight]) {
    let d = cluster.mean.len();
    let (head, below) = out[1..].split_at_mut(3 + 2 * d);
    for (to, value) in head.iter_mut().zip([cluster.constant, cluster.half, cluster.weight]) {
        to.0[lane] = value;
    }
    head[3..3 + d].iter_mut().zip(cluster.mean).for_each(|(to, value)| to.0[lane] = *value);
    let (mut column, mut place) = (cluster.factor, below);
    for (j, diagonal) in head[3 + d..].iter_mut().enumerate() {
        let (entries, others) = column.split_at(d - j);
        diagonal.0[lane] = entries[0].recip();
        let (places, rest) = place.split_at_mut(d - j - 1);
        places.iter_mut().zip(&entries[1..]).for_each(|(to, value)| to.0[lane] = *value);
        (column, place) = (others, rest);
    }
}

/// Computes log weight plus log predictive of a row under all clusters.
pub struct Score<'a> {
    pub lanes: &'a [Eight],
    pub row: &'a [f64],
    /// One number per lane.
    pub out: &'a mut [[f64; 8]],
}

impl WithSimd for Score<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        match self.row.len() {
            1 => self.score::<1, 1>(),
            2 => self.score::<2, 2>(),
            3 => self.score::<3, 3>(),
            4 => self.score::<4, 4>(),
            5 => self.score::<5, 5>(),
            6 => self.score::<6, 6>(),
            7 => self.score::<7, 7>(),
            8 => self.score::<8, 8>(),
            _ => self.score::<0, MOST_COLUMNS>(),
        }
    }
}

impl Score<'_> {
    /// Specialised for `D` columns (any number if 0), with stack space for `ROOM`.
    #[allow(clippy::needless_range_loop, reason = "loops over lanes become vectors")]
    #[inline(always)]
    fn score<const D: usize, const ROOM: usize>(self) {
        let d = if D == 0 { self.row.len() } else { D };
        let row = &self.row[..d];
        for (group, out) in self.lanes.chunks_exact(lane_len(d)).zip(&mut *self.out) {
            let (head, rest) = group.split_at(4);
            let (mean, rest) = rest.split_at(d);
            let (diagonal, mut below) = rest.split_at(d);
            // Residuals of the triangular solve L y = x - m.
            let mut y = [[0.0; 8]; ROOM];
            for j in 0..d {
                for lane in 0..8 {
                    y[j][lane] = row[j] - mean[j].0[lane];
                }
            }
            let mut square = [0.0; 8];
            for j in 0..d {
                let (column, others) = below.split_at(d - j - 1);
                for lane in 0..8 {
                    y[j][lane] *= diagonal[j].0[lane];
                    square[lane] += y[j][lane] * y[j][lane];
                }
                for (i, factor) in column.iter().enumerate() {
                    for lane in 0..8 {
                        y[j + 1 + i][lane] -= factor.0[lane] * y[j][lane];
                    }
                }
                below = others;
            }
            for lane in 0..8 {
                out[lane] = 1.0 + head[3].0[lane] * square[lane];
            }
        }
        // A separate loop lets the compiler vectorise the logarithms.
        for out in &mut *self.out {
            for value in out {
                *value = ln_of_positive(*value);
            }
        }
        for (head, out) in self.lanes.chunks_exact(lane_len(d)).zip(self.out) {
            for lane in 0..8 {
                out[lane] = head[0].0[lane] + (head[1].0[lane] - head[2].0[lane] * out[lane]);
            }
        }
    }
}
