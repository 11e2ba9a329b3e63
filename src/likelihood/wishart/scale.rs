//! Checks and defaults of degrees of freedom and scale matrices.

use crate::data::Moments;
use crate::error::{Error, Result};
use crate::likelihood::ridge::{LEAST_SHARE, ridge};
use crate::linalg::cholesky;
use crate::parameters::Value;

/// Checks a degrees-of-freedom parameter against the number of columns.
pub fn check_dof(dof: f64, d: usize) -> Result<()> {
    let least = d as f64 - 1.0;
    if dof > least {
        Ok(())
    } else {
        Err(Error::invalid("dof", Value::Number(dof), format!("greater than D - 1 = {least}")))
    }
}

/// Checks that a row-major matrix is symmetric and positive definite.
pub fn check_scale(d: usize, scale: &[f64]) -> Result<()> {
    check_positive_definite("scale", d, scale)
}

/// Checks that the row-major matrix of a parameter is symmetric and positive definite.
pub fn check_positive_definite(name: &str, d: usize, matrix: &[f64]) -> Result<()> {
    let largest = matrix.iter().fold(0.0_f64, |a, b| a.max(b.abs()));
    for i in 0..d {
        for j in 0..i {
            if (matrix[i * d + j] - matrix[j * d + i]).abs() > 1e-10 * largest {
                return Err(Error::invalid(name, format!("different at ({i}, {j}) and ({j}, {i})"), "symmetric"));
            }
        }
    }
    cholesky(d, &mut matrix.to_vec()).map_err(|failure| {
        Error::invalid(name, format!("without a Cholesky factor at row {}", failure.pivot), "positive definite")
    })
}

/// Whether a positive definite scale keeps its digits when squares, one per column, are added.
pub fn survives_beside(d: usize, scale: &[f64], square: impl Fn(usize) -> f64) -> bool {
    let mut factor = scale.to_vec();
    cholesky(d, &mut factor).is_ok() && (0..d).all(|j| factor[j * (d + 1)].powi(2) >= LEAST_SHARE * square(j))
}

/// Checks that a scale keeps its digits next to the scatter of the data.
pub fn check_scale_beside(data: &Moments, scale: &[f64]) -> Result<()> {
    let d = data.dimension();
    if survives_beside(d, scale, |j| data.overall[j]) {
        return Ok(());
    }
    let found = "so small that float64 rounding of the scatter of the data hides it";
    Err(Error::invalid("scale", found, format!("at least {LEAST_SHARE:.0e} of the variance of every column")))
}

/// The default scale: second moments of the data plus a ridge of 1e-3 of each column's own, so that it follows the
/// units of every column. A constant column takes the ridge of the mean square, or 1e-3 if all columns are constant.
pub fn default_scale(d: usize, moments: &[f64], dof: f64) -> Vec<f64> {
    let squares: Vec<f64> = moments.iter().step_by(d + 1).copied().collect();
    let mut scale = moments.to_vec();
    let ridges = squares.iter().map(|&square| ridge(square, &squares));
    scale.iter_mut().step_by(d + 1).zip(ridges).for_each(|(value, ridge)| *value += ridge);
    // Makes the expected prior precision independent of the degrees of freedom.
    let times = dof / (d as f64 + 2.0);
    scale.into_iter().map(|value| value * times).collect()
}
