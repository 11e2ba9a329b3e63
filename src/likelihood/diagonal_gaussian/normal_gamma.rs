//! The base measure of one column and its posterior (mathematics 1c).

use std::f64::consts::PI;

use crate::likelihood::gamma;
use crate::scoring::Column;
use crate::special::{digamma, ln_gamma_difference};

/// The distribution of mean and precision of one column; the mean is relative to the origin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NormalGamma {
    /// Weight of the mean, in rows.
    pub kappa: f64,
    /// m.
    pub mean: f64,
    /// a.
    pub shape: f64,
    /// b.
    pub rate: f64,
    /// Variance of a value within its rounding cell.
    pub rounding: f64,
}

impl NormalGamma {
    /// The posterior of mathematics 1c, and with scales of rows of 1k.
    pub fn posterior(self, sums: ColumnSums) -> Self {
        let ColumnSums { rows, mass: n, sum, squares } = sums;
        let shape = if rows < 1e-12 { self.shape } else { self.shape + 0.5 * rows };
        if n < 1e-12 {
            return Self { shape, ..self };
        }
        let (kappa, average) = (self.kappa + n, sum / n);
        let away = average - self.mean;
        let scatter = (squares - n * average * average).max(0.0);
        Self {
            kappa,
            mean: self.mean + n / kappa * away,
            shape,
            rate: self.rate + 0.5 * (scatter + self.kappa * n / kappa * away * away + n * self.rounding),
            rounding: self.rounding,
        }
    }

    /// Increments of shape and rate due to the data.
    fn added_to(self, prior: Self) -> (f64, f64) {
        (self.shape - prior.shape, self.rate - prior.rate)
    }

    /// c(lambda) - c(lambda_0), nats.
    pub fn cumulant_above(self, prior: Self) -> f64 {
        gamma::cumulant_above((prior.shape, prior.rate), self.added_to(prior)) + 0.5 * (prior.kappa / self.kappa).ln()
    }

    /// KL(q || p), nats.
    pub fn divergence_from(self, prior: Self) -> f64 {
        let ratio = prior.kappa / self.kappa;
        0.5 * (ratio - 1.0 - ratio.ln())
            + 0.5 * prior.kappa * self.shape / self.rate * (self.mean - prior.mean).powi(2)
            + gamma::divergence((prior.shape, prior.rate), self.added_to(prior))
    }

    /// E lambda.
    pub fn precision(self) -> f64 {
        self.shape / self.rate
    }

    /// E ln lambda.
    pub fn log_precision(self) -> f64 {
        digamma(self.shape) - self.rate.ln()
    }

    /// The part of E lambda (x - mu)^2 that does not depend on the value.
    pub fn spread(self) -> f64 {
        self.kappa.recip() + self.precision() * self.rounding
    }

    /// E log p(x).
    pub fn expected(self) -> Column {
        let constant = 0.5 * (self.log_precision() - (2.0 * PI).ln() - self.spread());
        Column::square(self.precision(), self.mean, constant)
    }

    /// Sum of E log p over the values with these sums, without their base measure.
    pub fn expected_of(self, sums: ColumnSums) -> f64 {
        let ColumnSums { rows, mass, sum, squares } = sums;
        let scatter = squares - 2.0 * self.mean * sum + mass * self.mean * self.mean;
        0.5 * (rows * self.log_precision() - mass * self.spread() - self.precision() * scatter)
    }

    /// Negative divergence of a row's smoothed moments, without half the logarithm of its variance (mathematics 5.2):
    /// `KL(N(m_n, v_n) || N(m, v))` with `v_n = (b_0 + kappa_0 / (kappa_0 + 1) u^2 / 2) / (a_0 + 1/2)`,
    /// `m_n = m_0 + u / (kappa_0 + 1)`, `u = x - m_0`, where the two squares in u are completed to one.
    pub fn divergence(self, prior: Self) -> Column {
        let row_shape = prior.shape + 0.5;
        let shrinkage = (prior.kappa + 1.0).recip();
        let curvature = 0.5 * prior.kappa * shrinkage / row_shape + shrinkage * shrinkage;
        let (variance, away) = (self.rate / self.shape, self.mean - prior.mean);
        let rest = away * away * (1.0 - shrinkage * shrinkage / curvature) + prior.rate / row_shape;
        let constant = -0.5 * (rest / variance + variance.ln() - 1.0);
        Column::square(curvature / variance, prior.mean + shrinkage / curvature * away, constant)
    }

    /// ln v_n, the log of a row's smoothed variance; `self` is the prior.
    pub fn smoothed_log_variance(self, x: f64) -> f64 {
        let square = self.kappa / (self.kappa + 1.0) * (x - self.mean).powi(2);
        ((self.rate + 0.5 * square) / (self.shape + 0.5)).ln()
    }

    /// ln p(x | lambda): a Student t.
    pub fn predictive(self) -> impl Fn(f64) -> f64 + Send + Sync {
        let scale = self.kappa / (2.0 * self.rate * (self.kappa + 1.0));
        let constant = ln_gamma_difference(self.shape, 0.5) + 0.5 * (scale / PI).ln();
        move |x| constant - (self.shape + 0.5) * (scale * (x - self.mean).powi(2)).ln_1p()
    }

    /// ln p(mu, lambda).
    pub fn log_density(self, mean: f64, precision: f64) -> f64 {
        gamma::log_density(precision, self.shape, self.rate)
            + 0.5 * ((self.kappa * precision / (2.0 * PI)).ln() - self.kappa * precision * (mean - self.mean).powi(2))
    }
}

/// Statistics of one column of a component.
#[derive(Debug, Clone, Copy)]
pub struct ColumnSums {
    /// Number of rows that have the column.
    pub rows: f64,
    /// The same, each row as often as its scale.
    pub mass: f64,
    /// Sum of the values, each as often as the scale of its row.
    pub sum: f64,
    /// Sum of their squares.
    pub squares: f64,
}
