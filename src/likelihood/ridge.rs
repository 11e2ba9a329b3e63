//! Ridges and lower limits that keep variances positive.

/// The ridge of variances under maximum likelihood, as a fraction of the prior expected variance.
pub const RIDGE: f64 = 1e-6;

/// Lower limit of estimated scales of few rows, as a fraction of the initial scale times its degrees of freedom
/// (mathematics 10.6).
pub const FLOOR: f64 = 1e-6;
/// Smallest fraction of the sums of squares at which a prior scale is kept accurately when added to them. The scatter
/// of a component with few rows has rounding errors of `f64::EPSILON` times the squares that are subtracted, and only
/// the prior scale keeps it positive definite. At this fraction the scale loses at most a thousandth.
pub const LEAST_SHARE: f64 = 1e3 * f64::EPSILON;

/// The ridge of a column with mean square `square`, given the mean squares of all columns.
pub fn ridge(square: f64, squares: &[f64]) -> f64 {
    let mean = squares.iter().sum::<f64>() / squares.len() as f64;
    1e-3 * [square, mean].into_iter().find(|&value| value > 0.0).unwrap_or(1.0)
}
