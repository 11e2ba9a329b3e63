//! The density of the background: a multivariate Cauchy distribution whose columns are not correlated.

use std::f64::consts::PI;

use rand::RngExt;
use rand_distr::StandardNormal;

use crate::laws::{Elliptical, Law};
use crate::rng::Generator;
use crate::simd::Scalar;
use crate::special::ln_gamma_difference;

/// Centre and scale of each column.
#[derive(Debug, Clone)]
pub struct Cauchy {
    centre: Vec<f64>,
    scale: Vec<f64>,
    /// `1 / s^2`, (D,), and `sum ln s`.
    precision: Vec<f64>,
    log_volume: f64,
    /// The normaliser of a row of that many columns with scale 1, (D + 1,), nats.
    normalisers: Vec<f64>,
}

impl Cauchy {
    /// From centres and scales, (D,).
    pub fn new(centre: Vec<f64>, scale: Vec<f64>) -> Self {
        let normaliser = |d: usize| ln_gamma_difference(0.5, 0.5 * d as f64) - 0.5 * d as f64 * PI.ln();
        let normalisers = (0..=centre.len()).map(normaliser).collect();
        let precision = scale.iter().map(|scale| scale.powi(-2)).collect();
        let log_volume = scale.iter().map(|scale| scale.ln()).sum();
        Self { centre, scale, precision, log_volume, normalisers }
    }

    /// The same density of rows from which `origin` is subtracted.
    #[must_use]
    pub fn relative_to(&self, origin: &[f64]) -> Self {
        let centre = self.centre.iter().zip(origin).map(|(c, o)| c - o).collect();
        Self { centre, ..self.clone() }
    }

    /// Number of columns, D.
    pub fn dimension(&self) -> usize {
        self.centre.len()
    }

    /// ln p0 of the d columns that a row has, nats: `ln G((d + 1) / 2) - ln G(1 / 2) - d / 2 ln pi - sum ln s -
    /// (d + 1) / 2 ln(1 + sum ((x - c) / s)^2)`.
    pub fn log_density<F: Scalar>(&self, row: &[F]) -> f64 {
        let d = self.dimension();
        let square = self.square(row);
        // A missing value makes the sum NaN.
        if !square.is_nan() {
            return self.value(d, self.log_volume, square);
        }
        let (mut n_columns, mut square, mut log_volume) = (0, 0.0, 0.0);
        for (column, x) in row.iter().enumerate().filter(|(_, x)| !x.is_nan()) {
            n_columns += 1;
            square += ((x.to_f64() - self.centre[column]) / self.scale[column]).powi(2);
            log_volume += self.scale[column].ln();
        }
        self.value(n_columns, log_volume, square)
    }

    /// ln p0 of `d` columns whose scales have this log product.
    fn value(&self, d: usize, log_volume: f64, square: f64) -> f64 {
        self.normalisers[d] - log_volume - 0.5 * (d as f64 + 1.0) * square.ln_1p()
    }

    /// `sum ((x - c) / s)^2` of a row, in lanes.
    fn square<F: Scalar>(&self, row: &[F]) -> f64 {
        let mut lanes = [0.0; 8];
        let columns = row.chunks(8).zip(self.centre.chunks(8)).zip(self.precision.chunks(8));
        for ((row, centres), precisions) in columns {
            for (((lane, x), centre), precision) in lanes.iter_mut().zip(row).zip(centres).zip(precisions) {
                let away = x.to_f64() - centre;
                *lane += away * away * precision;
            }
        }
        lanes.iter().sum()
    }

    /// Its distribution, with marginals and conditionals.
    pub fn law(&self) -> Law {
        Law::Joint(Elliptical::from_scales(self.centre.clone(), &self.scale, 1.0))
    }

    /// Draws a row: normal numbers over the size of another one.
    pub fn draw(&self, row: &mut [f64], generator: &mut Generator) {
        let size: f64 = generator.sample::<f64, _>(StandardNormal);
        for ((x, centre), scale) in row.iter_mut().zip(&self.centre).zip(&self.scale) {
            *x = centre + scale * generator.sample::<f64, _>(StandardNormal) / size.abs();
        }
    }
}
