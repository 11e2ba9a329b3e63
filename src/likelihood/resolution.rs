//! Rounding cells (mathematics 10.5): the resolution of columns, and the variance of a value within its cell.

use crate::data::Moments;
use crate::error::Result;
use crate::parameters::{Parameters, Value, vector};
use crate::registry::RESOLUTION;

/// The resolution once the data are known: as given, or else the grid spacing of each column of the data.
pub fn resolved_resolution(parameters: &Parameters, data: &Moments) -> Result<Value> {
    let d = data.dimension();
    Ok(vector(parameters.numbers(&RESOLUTION, Some(d))?.unwrap_or_else(|| data.resolution.clone())))
}

/// The variance of a uniform distribution in the cells of each column, (D,); 0 if rows are not rounded.
pub fn cell_variances(parameters: &Parameters, d: usize) -> Result<Vec<f64>> {
    let widths = parameters.numbers(&RESOLUTION, Some(d))?.unwrap_or_else(|| vec![0.0; d]);
    Ok(widths.into_iter().map(|width| width * width / 12.0).collect())
}

/// The covariance of a row within its rounding cell, (D, D); empty if rows are not rounded.
pub fn cell_covariance(parameters: &Parameters, d: usize) -> Result<Vec<f64>> {
    let variances = cell_variances(parameters, d)?;
    if variances.iter().all(|variance| *variance == 0.0) {
        return Ok(Vec::new());
    }
    let mut covariance = vec![0.0; d * d];
    covariance.iter_mut().step_by(d + 1).zip(variances).for_each(|(to, variance)| *to = variance);
    Ok(covariance)
}
