//! The density of the background: uniform around most rows, and with the tails of a multivariate Cauchy distribution
//! (mathematics 2h).

use std::f64::consts::{LN_2, PI};

use rand::RngExt;
use rand_distr::StandardNormal;

use crate::laws::{ColumnLaw, Elliptical, Law};
use crate::rng::Generator;
use crate::simd::Scalar;
use crate::special::{ln_gamma_difference, log_sum_exp};

/// The square of a reach in squared scales of the Cauchy part, which are standard deviations of the uniform part.
const SQUARE: f64 = 3.0;

/// Centre, and reach of the uniform part to both sides of it, of each column; and the weight of a Cauchy part, whose
/// columns are not correlated.
#[derive(Debug, Clone)]
pub struct WideDensity {
    centre: Vec<f64>,
    reach: Vec<f64>,
    tails: f64,
    /// The scale of the Cauchy part, in reaches.
    scale: f64,
    /// `1 / reach`, (D,), and the sum of `ln reach`.
    factors: Vec<f64>,
    log_volume: f64,
    /// The normaliser of the Cauchy part of a row of that many columns of reach 1, (D + 1,), nats.
    normalisers: Vec<f64>,
}

impl WideDensity {
    /// From centres and reaches, (D,), and the weight of the Cauchy part.
    pub fn new(centre: Vec<f64>, reach: Vec<f64>, tails: f64, spread: f64) -> Self {
        let scale = spread / SQUARE.sqrt();
        let normaliser =
            |d: usize| ln_gamma_difference(0.5, 0.5 * d as f64) - 0.5 * d as f64 * (PI * scale * scale).ln();
        let normalisers = (0..=centre.len()).map(normaliser).collect();
        let factors = reach.iter().map(|reach| reach.recip()).collect();
        let log_volume = reach.iter().map(|reach| reach.ln()).sum();
        Self { centre, reach, tails, scale, factors, log_volume, normalisers }
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

    /// ln p0 of the columns that a row has, nats.
    pub fn log_density<F: Scalar>(&self, row: &[F]) -> f64 {
        let d = self.dimension();
        let (square, farthest) = self.squares(row);
        // A missing value makes the sum NaN.
        if !square.is_nan() {
            return self.value(d, self.log_volume, square, farthest);
        }
        let (mut n_columns, mut square, mut farthest, mut log_volume) = (0, 0.0, 0.0_f64, 0.0);
        for (column, x) in row.iter().enumerate().filter(|(_, x)| !x.is_nan()) {
            let own = ((x.to_f64() - self.centre[column]) * self.factors[column]).powi(2);
            n_columns += 1;
            square += own;
            farthest = farthest.max(own);
            log_volume += self.reach[column].ln();
        }
        self.value(n_columns, log_volume, square, farthest)
    }

    /// ln p0 of `d` columns with reaches of this log product. `square` is the sum of the squared distances from the
    /// centre, in reaches, and `farthest` the largest of them.
    fn value(&self, d: usize, log_volume: f64, square: f64, farthest: f64) -> f64 {
        let size = d as f64;
        let tails =
            self.tails.ln() + self.normalisers[d] - 0.5 * (size + 1.0) * (square / (self.scale * self.scale)).ln_1p();
        let all = if farthest > 1.0 { tails } else { log_sum_exp(&[(-self.tails).ln_1p() - size * LN_2, tails]) };
        all - log_volume
    }

    /// The sum of the squared distances from the centre, in reaches, and the largest of them, in lanes.
    fn squares<F: Scalar>(&self, row: &[F]) -> (f64, f64) {
        let (mut sums, mut farthest) = ([0.0; 8], [0.0_f64; 8]);
        let mut add = |lane: usize, x: &F, centre: f64, factor: f64| {
            let away = (x.to_f64() - centre) * factor;
            let square = away * away;
            sums[lane] += square;
            farthest[lane] = if square > farthest[lane] { square } else { farthest[lane] };
        };
        let ((rows, row), (centres, centre)) = (row.as_chunks::<8>(), self.centre.as_chunks::<8>());
        let (factors, factor) = self.factors.as_chunks::<8>();
        for ((row, centre), factor) in rows.iter().zip(centres).zip(factors) {
            for lane in 0..8 {
                add(lane, &row[lane], centre[lane], factor[lane]);
            }
        }
        for (lane, ((x, centre), factor)) in row.iter().zip(centre).zip(factor).enumerate() {
            add(lane, x, *centre, *factor);
        }
        (sums.iter().sum(), farthest.iter().fold(0.0, |most, &square| most.max(square)))
    }

    /// Its parts and their weights, with marginals and conditionals.
    pub fn laws(&self) -> [(f64, Law); 2] {
        let uniform =
            |(centre, reach): (&f64, &f64)| ColumnLaw::Uniform { least: centre - reach, most: centre + reach };
        let flat = Law::Columns(self.centre.iter().zip(&self.reach).map(uniform).collect());
        let scales: Vec<f64> = self.reach.iter().map(|reach| reach * self.scale).collect();
        let tails = Law::Joint(Elliptical::from_scales(self.centre.clone(), &scales, 1.0));
        [(1.0 - self.tails, flat), (self.tails, tails)]
    }

    /// Draws a row. A draw from the Cauchy part is normal numbers over the size of another one.
    pub fn draw(&self, row: &mut [f64], generator: &mut Generator) {
        let is_far = generator.random::<f64>() < self.tails;
        let size: f64 = generator.sample::<f64, _>(StandardNormal);
        for ((x, centre), reach) in row.iter_mut().zip(&self.centre).zip(&self.reach) {
            let away = if is_far {
                generator.sample::<f64, _>(StandardNormal) / size.abs() * self.scale
            } else {
                2.0 * generator.random::<f64>() - 1.0
            };
            *x = centre + reach * away;
        }
    }
}
