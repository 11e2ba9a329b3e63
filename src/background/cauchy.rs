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
    log_scale: Vec<f64>,
    /// The normaliser of a row of that many columns with scale 1, (D + 1,), nats.
    normalisers: Vec<f64>,
}

impl Cauchy {
    /// From centres and scales, (D,).
    pub fn new(centre: Vec<f64>, scale: Vec<f64>) -> Self {
        let normaliser = |d: usize| ln_gamma_difference(0.5, 0.5 * d as f64) - 0.5 * d as f64 * PI.ln();
        let normalisers = (0..=centre.len()).map(normaliser).collect();
        let log_scale = scale.iter().map(|scale| scale.ln()).collect();
        Self { centre, scale, log_scale, normalisers }
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
        let (mut n_columns, mut square, mut log_scales) = (0, 0.0, 0.0);
        let columns = self.centre.iter().zip(&self.scale).zip(&self.log_scale);
        for (x, ((centre, scale), log_scale)) in row.iter().zip(columns) {
            if !x.is_nan() {
                n_columns += 1;
                square += ((x.to_f64() - centre) / scale).powi(2);
                log_scales += log_scale;
            }
        }
        self.normalisers[n_columns] - log_scales - 0.5 * (n_columns as f64 + 1.0) * square.ln_1p()
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
