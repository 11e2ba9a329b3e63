//! The multivariate Student t distribution, and the normal distribution as its limit with infinite degrees of freedom.

use std::f64::consts::PI;

use rand::RngExt;
use rand_distr::{ChiSquared, Distribution, StandardNormal};

use crate::error::{Error, Result};
use crate::linalg::{cholesky, log_determinant_from_cholesky, solve_lower};
use crate::rng::Generator;
use crate::special::ln_gamma_difference;

/// The part of the log density of a Student t distribution in `d` columns that is independent of the row.
/// `log_determinant` is that of its scale matrix.
pub(super) fn log_constant(d: usize, dof: f64, log_determinant: f64) -> f64 {
    let half_d = 0.5 * d as f64;
    if dof.is_infinite() {
        return -half_d * (2.0 * PI).ln() - 0.5 * log_determinant;
    }
    ln_gamma_difference(0.5 * dof, half_d) - half_d * (dof * PI).ln() - 0.5 * log_determinant
}

/// The part of the log density that depends on the squared distance from the location.
pub(super) fn log_kernel(d: usize, dof: f64, square: f64) -> f64 {
    if dof.is_infinite() { -0.5 * square } else { -0.5 * (dof + d as f64) * (square / dof).ln_1p() }
}

/// Draws the factor by which the square root of the scale is multiplied.
pub(super) fn drawn_scale(dof: f64, generator: &mut Generator) -> Result<f64> {
    if dof.is_infinite() {
        return Ok(1.0);
    }
    let chi_squared = ChiSquared::new(dof)
        .map_err(|_| Error::numerical(None, format!("a Student t distribution of {dof} degrees of freedom")))?;
    Ok((dof / chi_squared.sample(generator)).sqrt())
}

/// Ratio of covariance to scale; infinite if the covariance does not exist.
pub(super) fn spread(dof: f64) -> f64 {
    if dof.is_infinite() {
        1.0
    } else if dof > 2.0 {
        dof / (dof - 2.0)
    } else {
        f64::INFINITY
    }
}

/// The Cholesky factor of `R R^T`, column-major, for n rows R of the same length, row-major: by rotations of columns,
/// which lose no digits to squares.
///
/// # Errors
/// [`Error::Numerical`] if rows depend on each other.
fn triangular(n: usize, mut rows: Vec<f64>) -> Result<Vec<f64>> {
    let d = rows.len() / n.max(1);
    let mut factor = vec![0.0; n * n];
    for i in 0..n {
        for k in i + 1..d {
            let (a, b) = (rows[i * d + i], rows[i * d + k]);
            if b == 0.0 {
                continue;
            }
            let length = a.hypot(b);
            let (cos, sin) = (a / length, b / length);
            for row in rows[i * d..].chunks_exact_mut(d) {
                (row[i], row[k]) = (cos * row[i] + sin * row[k], cos * row[k] - sin * row[i]);
            }
        }
        let pivot = rows[i * d + i];
        if pivot == 0.0 || !pivot.is_finite() {
            return Err(Error::numerical(None, "the scale of these columns is not positive definite".to_owned()));
        }
        let sign = pivot.signum();
        for j in i..n {
            factor[i * n + j] = sign * rows[j * d + i];
        }
    }
    Ok(factor)
}

/// An elliptical distribution with location m, scale matrix S = L L^T and degrees of freedom.
#[derive(Debug, Clone)]
pub struct Elliptical {
    place: Vec<f64>,
    /// L, lower, column-major.
    factor: Vec<f64>,
    dof: f64,
    constant: f64,
}

impl Elliptical {
    /// Builds the distribution from the scale matrix, (D, D).
    ///
    /// # Errors
    /// [`Error::Numerical`] if the matrix has no Cholesky factor.
    pub fn new(place: Vec<f64>, mut scale: Vec<f64>, dof: f64) -> Result<Self> {
        cholesky(place.len(), &mut scale).map_err(|failure| {
            Error::numerical(None, format!("the scale of these columns is not positive definite: {failure}"))
        })?;
        Ok(Self::from_factor(place, scale, dof))
    }

    /// From the Cholesky factor of the scale matrix, column-major.
    pub fn from_factor(place: Vec<f64>, factor: Vec<f64>, dof: f64) -> Self {
        let d = place.len();
        let constant = log_constant(d, dof, log_determinant_from_cholesky(d, &factor));
        Self { place, factor, dof, constant }
    }

    /// Independent columns of a normal distribution, or uncorrelated columns of a Student t, from their scales, (D,).
    pub fn from_scales(place: Vec<f64>, scales: &[f64], dof: f64) -> Self {
        let d = place.len();
        let mut factor = vec![0.0; d * d];
        factor.iter_mut().step_by(d + 1).zip(scales).for_each(|(to, scale)| *to = *scale);
        Self::from_factor(place, factor, dof)
    }

    /// m, (D,).
    pub fn place(&self) -> &[f64] {
        &self.place
    }

    fn d(&self) -> usize {
        self.place.len()
    }

    /// The scale matrix of selected columns, in this order.
    fn scale_of(&self, columns: &[usize]) -> Vec<f64> {
        let (d, l) = (self.d(), &self.factor);
        let product = |i: usize, j: usize| (0..=i.min(j)).map(|k| l[k * d + i] * l[k * d + j]).sum::<f64>();
        columns.iter().flat_map(|&j| columns.iter().map(move |&i| product(i, j))).collect()
    }

    /// See [`super::Law::covariance`].
    pub fn covariance(&self) -> Vec<f64> {
        let d = self.d();
        let mut scale = self.scale_of(&(0..d).collect::<Vec<_>>());
        let times = spread(self.dof);
        for (entry, value) in scale.iter_mut().enumerate() {
            *value = if times.is_finite() || entry % (d + 1) == 0 { *value * times } else { f64::NAN };
        }
        scale
    }

    /// See [`super::Law::log_density`].
    pub fn log_density(&self, row: &[f64], space: &mut Vec<f64>) -> f64 {
        space.clear();
        space.extend(row.iter().zip(&self.place).map(|(x, m)| x - m));
        solve_lower(self.d(), &self.factor, space);
        let square = space.iter().map(|x| x * x).sum();
        self.constant + log_kernel(self.d(), self.dof, square)
    }

    /// See [`super::Law::marginal`]. The degrees of freedom are unchanged.
    pub fn marginal(&self, columns: &[usize]) -> Result<Self> {
        let d = self.d();
        let rows = columns.iter().flat_map(|&j| self.factor.iter().skip(j).step_by(d).copied()).collect();
        let factor = triangular(columns.len(), rows)?;
        Ok(Self::from_factor(columns.iter().map(|&j| self.place[j]).collect(), factor, self.dof))
    }

    /// See [`super::Law::sheared`].
    ///
    /// # Errors
    /// As [`Elliptical::new`].
    pub fn sheared(mut self, column: usize, shift: f64, slopes: &[f64]) -> Result<Self> {
        let d = self.d();
        self.place[column] += shift + slopes.iter().zip(&self.place).map(|(slope, m)| slope * m).sum::<f64>();
        let mut rows: Vec<f64> =
            (0..d).flat_map(|i| self.factor.iter().skip(i).step_by(d).copied().collect::<Vec<_>>()).collect();
        for k in 0..d {
            let added: f64 = slopes.iter().enumerate().map(|(p, slope)| slope * rows[p * d + k]).sum();
            rows[column * d + k] += added;
        }
        Ok(Self::from_factor(self.place, triangular(d, rows)?, self.dof))
    }

    /// See [`super::Law::conditional`]. With the given columns first, `L = [A 0; B C]`. The others have location `m + B
    /// z` for `z = A^-1 (x - m)` of the given ones, scale `C C^T (nu + |z|^2) / (nu + |given|)`, and `|given|` more
    /// degrees of freedom.
    pub fn conditional(&self, others: &[usize], given: &[usize], values: &[f64]) -> Result<(f64, Self)> {
        let all = self.marginal(&[given, others].concat())?;
        let (d, n) = (all.d(), given.len());
        let mut solved: Vec<f64> = values.iter().zip(&all.place).map(|(x, m)| x - m).collect();
        let of_given: Vec<f64> = (0..n).flat_map(|k| all.factor[k * d..][..n].to_vec()).collect();
        solve_lower(n, &of_given, &mut solved);
        let square: f64 = solved.iter().map(|z| z * z).sum();
        let log_density =
            log_constant(n, self.dof, log_determinant_from_cholesky(n, &of_given)) + log_kernel(n, self.dof, square);
        let mut place = all.place[n..].to_vec();
        for (k, z) in solved.iter().enumerate() {
            place.iter_mut().zip(&all.factor[k * d + n..(k + 1) * d]).for_each(|(m, value)| *m += value * z);
        }
        let of_given = n as f64;
        let times = if self.dof.is_infinite() { 1.0 } else { (self.dof + square) / (self.dof + of_given) };
        let columns = (n..d).flat_map(|k| all.factor[k * d + n..(k + 1) * d].iter());
        let factor = columns.map(|value| value * times.sqrt()).collect();
        Ok((log_density, Self::from_factor(place, factor, self.dof + of_given)))
    }

    /// See [`super::Law::in_units`].
    #[must_use]
    pub fn in_units(mut self, units: &[f64]) -> Self {
        let d = self.d();
        self.place.iter_mut().zip(units).for_each(|(m, unit)| *m *= unit);
        for column in self.factor.chunks_exact_mut(d) {
            column.iter_mut().zip(units).for_each(|(value, unit)| *value *= unit);
        }
        Self::from_factor(self.place, self.factor, self.dof)
    }

    /// See [`super::Law::draw`].
    pub fn draw(&self, row: &mut [f64], generator: &mut Generator) -> Result<()> {
        let scale = drawn_scale(self.dof, generator)?;
        row.copy_from_slice(&self.place);
        for (k, column) in self.factor.chunks_exact(self.d()).enumerate() {
            let normal = scale * generator.sample::<f64, _>(StandardNormal);
            row[k..].iter_mut().zip(&column[k..]).for_each(|(to, value)| *to += value * normal);
        }
        Ok(())
    }
}
