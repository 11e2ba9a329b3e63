//! The predictive density under the product base measure: an integral over the precision lambda without a closed form.
//! Each row has its own range of integration, because an outlying row needs precisions far below those of its
//! component.

use std::f64::consts::{LN_2, PI};

use crate::special::ln_gamma;

/// The integrand is ignored where it is this many nats below its maximum.
const DEPTH: f64 = 45.0;
/// Maximum step of the trapezoidal rule in ln lambda. At this step the rule is exact to rounding: the integrand is
/// analytic within pi of the real axis, and its transform decays like that of a gamma function.
const LONGEST_STEP: f64 = 0.25;
/// Modes closer than this are treated as one.
const SCAN: f64 = 0.1;
/// Number of bisections of an interval of this length that contains a mode.
const HALVINGS: usize = 40;
/// From this shape on, Stirling's series for the normaliser is exact to rounding.
const LARGE_SHAPE: f64 = 100.0;

/// ln of the integral of N(x | m, (1 / lambda + 1 / kappa) I) over Gamma(lambda | shape, rate), as a function of
/// |x - m|^2.
#[derive(Debug, Clone)]
pub(super) struct ProductPredictive {
    half_d: f64,
    shape: f64,
    rate: f64,
    log_kappa: f64,
    /// ln(shape / rate), the log precision at t = 0.
    log_precision: f64,
    /// Terms independent of the row.
    constant: f64,
    /// Step of the rule: a fraction of the narrowest possible width of a mode.
    step: f64,
}

impl ProductPredictive {
    pub(super) fn new(d: f64, shape: f64, rate: f64, kappa: f64) -> Self {
        // ln of the density of t = ln(lambda rate / shape) at zero.
        let normaliser = if shape < LARGE_SHAPE {
            shape * shape.ln() - shape - ln_gamma(shape)
        } else {
            let square = (shape * shape).recip();
            0.5 * (shape / (2.0 * PI)).ln() - (1.0 / 12.0 - square * (1.0 / 360.0 - square / 1260.0)) / shape
        };
        Self {
            half_d: 0.5 * d,
            shape,
            rate,
            log_kappa: kappa.ln(),
            log_precision: shape.ln() - rate.ln(),
            constant: normaliser - 0.5 * d * (2.0 * PI).ln(),
            // At a mode the second derivative is at most 2 shape + 1.25 d.
            step: LONGEST_STEP.min(0.5 / (2.0 * shape + 1.25 * d).sqrt()),
        }
    }

    /// ln of the integrand at t = ln(lambda rate / shape), without the constant.
    fn log_integrand(&self, t: f64, square: f64) -> f64 {
        let (log_lambda, fall) = (t + self.log_precision, self.shape * (t.exp_m1() - t));
        let apart = -(log_lambda - self.log_kappa).abs();
        let log_precision = log_lambda.min(self.log_kappa) - apart.exp().ln_1p();
        -fall + self.half_d * log_precision - 0.5 * square * log_precision.exp()
    }

    /// Derivative of [`Self::log_integrand`] in t.
    fn slope(&self, t: f64, square: f64) -> f64 {
        let log_lambda = t + self.log_precision;
        let beyond = 1.0 + (log_lambda - self.log_kappa).exp();
        -self.shape * t.exp_m1() + self.half_d / beyond - 0.5 * square * (log_lambda - 2.0 * beyond.ln()).exp()
    }

    /// Modes of the integrand: one, or two if the row is far out and the mean uncertain.
    fn modes(&self, square: f64) -> Vec<f64> {
        // The slope is positive at the lower end and negative at the upper end.
        let half = 0.5 * square / self.rate;
        let low = if half.is_finite() { -half.ln_1p() } else { self.rate.ln() + LN_2 - square.ln() };
        let high = (self.half_d / self.shape).ln_1p();
        let n = ((high - low) / SCAN).ceil().max(1.0) as usize;
        let grid = |i: usize| low + (high - low) * i as f64 / n as f64;
        let rises = |i: usize| i == 0 || (i < n && self.slope(grid(i), square) > 0.0);
        let mut modes = Vec::new();
        let mut before = true;
        for i in 1..=n {
            let now = rises(i);
            if before && !now {
                let (mut left, mut right) = (grid(i - 1), grid(i));
                for _ in 0..HALVINGS {
                    let middle = 0.5 * (left + right);
                    *(if self.slope(middle, square) > 0.0 { &mut left } else { &mut right }) = middle;
                }
                modes.push(0.5 * (left + right));
            }
            before = now;
        }
        modes
    }

    /// Finds a point in this direction from a mode where the integrand has fallen below `least`.
    fn edge(&self, mode: f64, direction: f64, least: f64, square: f64) -> f64 {
        let (mut near, mut far) = (0.0, 8.0 * self.step);
        while self.log_integrand(mode + direction * far, square) >= least {
            (near, far) = (far, 2.0 * far);
        }
        // An approximate edge is enough: a wider range costs only time.
        for _ in 0..4 {
            let middle = 0.5 * (near + far);
            let inside = self.log_integrand(mode + direction * middle, square) >= least;
            *(if inside { &mut near } else { &mut far }) = middle;
        }
        mode + direction * far
    }

    /// The log density of a row at this squared distance from the expected mean.
    pub(super) fn log_density(&self, square: f64) -> f64 {
        if !square.is_finite() {
            return -square;
        }
        let modes: Vec<(f64, f64)> =
            self.modes(square).into_iter().map(|mode| (mode, self.log_integrand(mode, square))).collect();
        let highest = modes.iter().map(|(_, height)| *height).fold(f64::NEG_INFINITY, f64::max);
        let least = highest - DEPTH;
        let mut counted = modes.iter().filter(|(_, height)| *height >= least).map(|(mode, _)| *mode);
        let Some(first) = counted.next() else { return f64::NEG_INFINITY };
        let last = counted.next_back().unwrap_or(first);
        let (left, right) = (self.edge(first, -1.0, least, square), self.edge(last, 1.0, least, square));
        let n = ((right - left) / self.step).ceil();
        let step = (right - left) / n;
        let sum: f64 =
            (0..=n as usize).map(|i| (self.log_integrand(left + step * i as f64, square) - highest).exp()).sum();
        self.constant + highest + (step * sum).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::likelihood::gamma;
    use crate::special::log_sum_exp;

    /// The same integral as a sum over a wide, fine grid of ln lambda.
    fn by_sum(d: f64, (shape, rate, kappa): (f64, f64, f64), square: f64) -> f64 {
        let step = 2e-3;
        let terms: Vec<f64> = (-120_000..40_000)
            .map(|i| {
                let t = f64::from(i) * step;
                let precision = (kappa.recip() + (-t).exp()).recip();
                let normal = 0.5 * d * (precision / (2.0 * PI)).ln() - 0.5 * precision * square;
                gamma::log_density(t.exp(), shape, rate) + t + normal
            })
            .collect();
        log_sum_exp(&terms) + step.ln()
    }

    #[test]
    fn the_predictive_is_the_integral() {
        for (d, shape, rate, kappa) in [
            (1.0, 0.01, 1.0, 1.0),
            (2.0, 0.01, 0.3, 1e-4),
            (2.0, 1.5, 0.5, 0.1),
            (3.0, 40.0, 7.0, 1e3),
            (50.0, 0.6, 2.0, 1.0),
            (2.0, 3e4, 2e4, 1e-6),
        ] {
            let predictive = ProductPredictive::new(d, shape, rate, kappa);
            for square in [0.0, 1e-3, 1.0, 50.0, 1e4, 1e8, 1e16] {
                let (found, wanted) = (predictive.log_density(square), by_sum(d, (shape, rate, kappa), square));
                let tolerance = 1e-9 * (1.0 + wanted.abs());
                assert!((found - wanted).abs() < tolerance, "{d} {shape} {kappa} {square}: {found} {wanted}");
            }
        }
    }

    #[test]
    fn extremes_give_numbers() {
        for (shape, rate, kappa) in [(1e-300, 1e-300, 1e-300), (1e9, 1e300, 1e300), (1e-300, 1e300, 1.0)] {
            let predictive = ProductPredictive::new(2.0, shape, rate, kappa);
            for square in [0.0, 1e-300, 1.0, 1e300] {
                assert!(!predictive.log_density(square).is_nan(), "{shape} {rate} {kappa} {square}");
            }
        }
        assert_eq!(ProductPredictive::new(2.0, 1.0, 1.0, 1.0).log_density(f64::INFINITY), f64::NEG_INFINITY);
    }
}
