//! Labels of two parts by the direction in which rows look least like a normal distribution. It finds clusters in
//! whitened data, where every direction has the same variance (mathematics 4.8).

use pulp::{Simd, WithSimd};

use crate::error::Result;
use crate::linalg::symmetric_eigen;
use crate::parallel::map;
use crate::rng::Choices;
use crate::simd::Instructions;
use crate::special::tanh;

/// Number of directions from which the search starts: this many for each column, up to a limit.
const STARTS_A_COLUMN: usize = 4;
const MOST_STARTS: usize = 20;
/// Maximum number of steps from each.
const STEPS: usize = 30;
/// Cosine of successive directions at which the steps end.
const SETTLED: f64 = 1.0 - 1e-4;
/// Maximum number of rows on which directions are searched.
const SEARCHED: usize = 4096;
/// Minimum number of rows for each column. With fewer, some direction always divides the rows by chance.
pub(super) const ROWS_PER_COLUMN: usize = 20;
/// Eigenvalues below this fraction of the largest have no direction.
const FLAT: f64 = 1e-10;

/// Rows of mean zero and unit covariance.
struct Whitened {
    d: usize,
    values: Vec<f64>,
    masses: Vec<f64>,
}

/// Labels 0 and 1 on either side of a plane; `values` holds rows of `d` columns. `None` if the rows do not vary.
pub(super) fn labels(d: usize, values: &[f64], masses: &[f64], choices: &mut dyn Choices) -> Result<Option<Vec<u32>>> {
    let Some(rows) = Whitened::new(d, values, masses)? else { return Ok(None) };
    let searched = rows.first(SEARCHED);
    let n_starts = (STARTS_A_COLUMN * rows.d).min(MOST_STARTS);
    let starts: Vec<usize> = (0..n_starts).map(|_| choices.choose(&searched.masses)).collect();
    let found = map(n_starts, |start| searched.direction(starts[start]).map(|axis| (searched.cut(&axis), axis)));
    let best = found.into_iter().flatten().reduce(|best, next| if next.0.share > best.0.share { next } else { best });
    let Some((cut, axis)) = best else { return Ok(None) };
    Ok(Some(rows.rows().map(|(row, _)| u32::from(dot(row, &axis) > cut.at)).collect()))
}

/// Where rows are divided.
struct Division {
    /// The threshold.
    at: f64,
    /// The fraction of the variance that lies between the two sides; 2 / pi for a normal distribution.
    share: f64,
}

impl Whitened {
    fn new(d: usize, values: &[f64], masses: &[f64]) -> Result<Option<Self>> {
        let all: f64 = masses.iter().sum();
        let rows = || values.chunks_exact(d).zip(masses);
        let mut mean = vec![0.0; d];
        for (row, mass) in rows() {
            mean.iter_mut().zip(row).for_each(|(sum, x)| *sum += mass / all * x);
        }
        let mut covariance = vec![0.0; d * d];
        for (row, mass) in rows() {
            for j in 0..d {
                let y = mass / all * (row[j] - mean[j]);
                (j..d).for_each(|i| covariance[j * d + i] += y * (row[i] - mean[i]));
            }
        }
        // Eigenvalues ascend.
        let (eigenvalues, vectors) = symmetric_eigen(d, &covariance)?;
        let most = eigenvalues[d - 1];
        let axes: Vec<Vec<f64>> = (0..d)
            .filter(|&k| eigenvalues[k] > FLAT * most)
            .map(|k| vectors[k * d..][..d].iter().map(|v| v / eigenvalues[k].sqrt()).collect())
            .collect();
        if axes.is_empty() {
            return Ok(None);
        }
        let mut centred = vec![0.0; d];
        let mut seen = Vec::with_capacity(masses.len() * axes.len());
        for (row, _) in rows() {
            centred.iter_mut().zip(row).zip(&mean).for_each(|((to, x), m)| *to = x - m);
            seen.extend(axes.iter().map(|axis| dot(&centred, axis)));
        }
        Ok(Some(Self { d: axes.len(), values: seen, masses: masses.to_vec() }))
    }

    /// The first rows, which are a random sample.
    fn first(&self, most: usize) -> Self {
        let n = self.masses.len().min(most);
        Self { d: self.d, values: self.values[..n * self.d].to_vec(), masses: self.masses[..n].to_vec() }
    }

    fn rows(&self) -> impl Iterator<Item = (&[f64], f64)> {
        self.values.chunks_exact(self.d).zip(self.masses.iter().copied())
    }

    /// A direction of extreme contrast, reached from that of a row by fixed-point steps (Hyvärinen 1999).
    fn direction(&self, start: usize) -> Option<Vec<f64>> {
        let all: f64 = self.masses.iter().sum();
        let mut axis = unit(self.values[start * self.d..][..self.d].to_vec())?;
        let mut contrasts = Vec::with_capacity(self.masses.len());
        for _ in 0..STEPS {
            contrasts.clear();
            contrasts.extend(self.rows().map(|(row, _)| dot(row, &axis)));
            Instructions::widest().run(Tanh(&mut contrasts));
            let (mut next, mut slope) = (vec![0.0; self.d], 0.0);
            for ((row, mass), contrast) in self.rows().zip(&contrasts) {
                slope += mass * (1.0 - contrast * contrast);
                next.iter_mut().zip(row).for_each(|(sum, x)| *sum += mass * contrast * x);
            }
            next.iter_mut().zip(&axis).for_each(|(sum, w)| *sum = (*sum - slope * w) / all);
            let Some(next) = unit(next) else { break };
            let cosine = dot(&next, &axis).abs();
            axis = next;
            if cosine > SETTLED {
                break;
            }
        }
        Some(axis)
    }

    /// The threshold along an axis with the largest variance between its two sides.
    fn cut(&self, axis: &[f64]) -> Division {
        let mut points: Vec<(f64, f64)> = self.rows().map(|(row, mass)| (dot(row, axis), mass)).collect();
        points.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let (all, sum) = points.iter().fold((0.0, 0.0), |(all, sum), (x, mass)| (all + mass, sum + mass * x));
        let spread: f64 = points.iter().map(|(x, mass)| mass * (x - sum / all).powi(2)).sum();
        let (mut below, mut sum_below) = (0.0, 0.0);
        let mut best = Division { at: sum / all, share: 0.0 };
        for pair in points.windows(2) {
            let ((x, mass), (next, _)) = (pair[0], pair[1]);
            below += mass;
            sum_below += mass * x;
            let above = all - below;
            let apart = sum_below / below - (sum - sum_below) / above;
            let share = below * above / all * apart * apart / spread;
            if share > best.share && next > x {
                best = Division { at: 0.5 * (x + next), share };
            }
        }
        best
    }
}

/// Replaces numbers by their hyperbolic tangents; compiled for each instruction set.
struct Tanh<'a>(&'a mut [f64]);

impl WithSimd for Tanh<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        self.0.iter_mut().for_each(|x| *x = tanh(*x));
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// The vector at length 1; `None` if it has none.
fn unit(mut vector: Vec<f64>) -> Option<Vec<f64>> {
    let length = dot(&vector, &vector).sqrt();
    for x in &mut vector {
        *x /= length;
    }
    (length > 0.0 && length.is_finite()).then_some(vector)
}
