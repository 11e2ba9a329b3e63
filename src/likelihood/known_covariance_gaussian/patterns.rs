//! Patterns of missing values: quantities that depend on the known covariance and on the columns present in a row.

use std::collections::HashMap;
use std::f64::consts::PI;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::linalg::{cholesky, invert_lower, log_determinant_from_cholesky};

/// Cache limit, in numbers stored. Beyond it, further patterns are recomputed on each use.
const MOST_NUMBERS: usize = 1 << 22;

/// The columns o present in a row, and the corresponding part of the covariance.
#[derive(Debug)]
pub struct Pattern {
    /// o, ascending.
    pub columns: Vec<usize>,
    /// L^-1 of `covariance_oo = L L^T`, column-major.
    whitening: Vec<f64>,
    /// `covariance_oo^-1`, symmetric.
    pub precision: Vec<f64>,
    /// `-1/2 {|o| ln 2 pi + ln |covariance_oo|}`, nats.
    pub log_constant: f64,
}

impl Pattern {
    fn new(d: usize, covariance: &[f64], columns: Vec<usize>) -> Result<Self> {
        let n = columns.len();
        if n == 0 {
            return Ok(Self { columns, whitening: Vec::new(), precision: Vec::new(), log_constant: 0.0 });
        }
        let mut factor = part(d, covariance, &columns);
        // A principal submatrix of a positive definite matrix has a Cholesky factor, except for rounding.
        let failed =
            |error| Error::numerical(None, format!("the covariance of the observed columns of a row: {error}"));
        cholesky(n, &mut factor).map_err(failed)?;
        let mut whitening = vec![0.0; n * n];
        invert_lower(n, &factor, &mut whitening);
        let mut precision = vec![0.0; n * n];
        for (i, j) in (0..n).flat_map(|j| (j..n).map(move |i| (i, j))) {
            let columns = whitening[i * n + i..(i + 1) * n].iter().zip(&whitening[j * n + i..(j + 1) * n]);
            let product = columns.map(|(a, b)| a * b).sum();
            (precision[j * n + i], precision[i * n + j]) = (product, product);
        }
        let log_determinant = log_determinant_from_cholesky(n, &factor);
        let log_constant = -0.5 * (n as f64 * (2.0 * PI).ln() + log_determinant);
        Ok(Self { columns, whitening, precision, log_constant })
    }

    /// `|L^-1 y|^2` of a vector of these columns.
    pub fn square(&self, y: &[f64]) -> f64 {
        let n = self.columns.len();
        let mut out = vec![0.0; n];
        for (j, y) in y.iter().enumerate() {
            let column = &self.whitening[j * n + j..(j + 1) * n];
            out[j..].iter_mut().zip(column).for_each(|(out, value)| *out += value * y);
        }
        out.iter().map(|value| value * value).sum()
    }

    /// `covariance_oo^-1 y`.
    pub fn solved(&self, y: &[f64]) -> Vec<f64> {
        let n = self.columns.len();
        let mut out = vec![0.0; n];
        for (column, y) in self.precision.chunks_exact(n.max(1)).zip(y) {
            out.iter_mut().zip(column).for_each(|(out, value)| *out += value * y);
        }
        out
    }
}

/// The submatrix of a (d, d) matrix with these rows and columns.
pub fn part(d: usize, matrix: &[f64], columns: &[usize]) -> Vec<f64> {
    columns.iter().flat_map(|&j| columns.iter().map(move |&i| matrix[j * d + i])).collect()
}

/// Cache of the patterns seen so far, each factored once.
#[derive(Debug)]
pub struct Patterns {
    d: usize,
    covariance: Vec<f64>,
    known: Mutex<HashMap<Vec<u64>, Arc<Pattern>>>,
}

impl Patterns {
    /// An empty cache for a covariance.
    pub fn new(d: usize, covariance: Vec<f64>) -> Self {
        Self { d, covariance, known: Mutex::default() }
    }

    /// The known covariance, (D, D).
    pub fn covariance(&self) -> &[f64] {
        &self.covariance
    }

    /// Returns the pattern of a row.
    ///
    /// # Errors
    /// [`Error::Numerical`] where the covariance of its columns has no Cholesky factor.
    pub fn of(&self, row: &[f64]) -> Result<Arc<Pattern>> {
        let mut key = vec![0_u64; self.d.div_ceil(64)];
        row.iter().enumerate().filter(|(_, x)| !x.is_nan()).for_each(|(j, _)| key[j / 64] |= 1 << (j % 64));
        if let Some(pattern) = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(Arc::clone(pattern));
        }
        let columns = (0..self.d).filter(|&j| !row[j].is_nan()).collect();
        let pattern = Arc::new(Pattern::new(self.d, &self.covariance, columns)?);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() * 2 * self.d * self.d < MOST_NUMBERS {
            known.insert(key, Arc::clone(&pattern));
        }
        Ok(pattern)
    }
}
