//! The scale of a row with heavy tails, `q(u) = Gamma(a, b)` (mathematics 1k).

use crate::special::{digamma, ln_gamma};

/// The scale of a row, its logarithm, and its contribution to the third statistic of scales, each expected or drawn.
#[derive(Debug, Clone, Copy)]
pub struct ScaleOfRow {
    /// u.
    pub value: f64,
    /// ln u.
    pub log: f64,
    /// `H[q(u)] + (n / 2 - 1) ln u` for n columns; a drawn scale has no entropy.
    pub rest: f64,
}

/// Expected functions of scales with this shape, for rows of n columns.
#[derive(Debug, Clone, Copy)]
pub struct ExpectedScales {
    /// a.
    pub shape: f64,
    digamma: f64,
    ln_gamma: f64,
    half: f64,
}

impl ExpectedScales {
    /// Of rows that have `n` columns.
    pub fn new(shape: f64, n: usize) -> Self {
        Self { shape, digamma: digamma(shape), ln_gamma: ln_gamma(shape), half: 0.5 * n as f64 }
    }

    /// E u = a / b, E ln u = psi(a) - ln b, and H[q(u)] = a - ln b + ln Gamma(a) + (1 - a) psi(a).
    pub fn at(self, rate: f64) -> ScaleOfRow {
        let (Self { shape, digamma, ln_gamma, half }, log_rate) = (self, rate.ln());
        let log = digamma - log_rate;
        let entropy = shape - log_rate + ln_gamma + (1.0 - shape) * digamma;
        ScaleOfRow { value: shape / rate, log, rest: entropy + (half - 1.0) * log }
    }

    /// A drawn scale.
    pub fn drawn(self, value: f64) -> ScaleOfRow {
        let log = value.ln();
        ScaleOfRow { value, log, rest: (self.half - 1.0) * log }
    }
}
