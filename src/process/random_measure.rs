//! Normalized generalized gamma random measures with tau = 1, given the auxiliary variable u (mathematics 8.2; James,
//! Lijoi & Pruenster 2009). At discount 0 they are the Dirichlet process.

use crate::process::partitions::Occupancy;
use crate::process::slice::slice;
use crate::rng::Draws;
use crate::special::{ln_gamma, ln_gamma_difference};

/// Below this discount the formulas use their limit at 0.
pub(super) const LEAST_DISCOUNT: f64 = 1e-10;

/// A normalized generalized gamma measure.
#[derive(Debug, Clone, Copy)]
pub struct RandomMeasure {
    /// log a.
    pub log_mass: f64,
    /// sigma.
    pub discount: f64,
}

impl RandomMeasure {
    /// ln (n - sigma): log weight of joining a block, multiplied by 1 + u like the weight of opening one.
    pub fn log_join(self, size: usize) -> f64 {
        (size as f64 - self.discount).ln()
    }

    /// ln a + sigma ln(1 + u).
    pub fn log_open(self, log_u: f64) -> f64 {
        self.log_mass + self.discount * softplus(log_u)
    }

    /// ln kappa(n, u).
    pub fn log_block(self, size: usize, log_u: f64) -> f64 {
        let size = size as f64;
        self.log_mass + ln_gamma_difference(1.0 - self.discount, size - 1.0) - (size - self.discount) * softplus(log_u)
    }

    /// ln { u^(N - 1) / Gamma(N) exp(-psi(u)) }.
    pub fn log_rest(self, units: usize, log_u: f64) -> f64 {
        let units = units as f64;
        (units - 1.0) * log_u - ln_gamma(units) - self.log_mass.exp() * self.exponent(log_u)
    }

    /// psi(u) / a.
    pub fn exponent(self, log_u: f64) -> f64 {
        let log = softplus(log_u);
        if self.discount < LEAST_DISCOUNT { log } else { (self.discount * log).exp_m1() / self.discount }
    }

    /// ln V_(N, K): u integrated out by the trapezoidal rule in v = ln u. The integrand is analytic and decays
    /// exponentially, so the rule converges faster than any power of its step.
    pub fn log_integrated(self, all: Occupancy) -> f64 {
        let (units, blocks) = (all.units as f64, all.blocks as f64);
        if self.discount < LEAST_DISCOUNT {
            return blocks * self.log_mass - ln_gamma_difference(self.log_mass.exp(), units);
        }
        let (mass, power) = (self.log_mass.exp(), units - blocks * self.discount);
        let log_density = |v: f64| units * v - mass * self.exponent(v) - power * softplus(v);
        let (mode, width) = self.mode(units, power);
        let most = log_density(mode);
        // The point on one side where the integrand is 60 nats below its maximum.
        let end = |side: f64| {
            let mut reach = width;
            while log_density(mode + side * reach) > most - 60.0 {
                reach *= 1.5;
            }
            reach
        };
        // The integrand has singularities at a distance of pi, where u = -1.
        let step = (width / 3.0).min(0.25);
        let (below, above) = ((end(-1.0) / step).ceil() as i64, (end(1.0) / step).ceil() as i64);
        let sum: f64 = (-below..=above).map(|node| (log_density(mode + node as f64 * step) - most).exp()).sum();
        most + (sum * step).ln() + blocks * self.log_mass - ln_gamma(units)
    }

    /// The maximum of the concave log density of v = ln u, and the width of its peak.
    fn mode(self, units: f64, power: f64) -> (f64, f64) {
        let (mass, sigma) = (self.log_mass.exp(), self.discount);
        // e^v / (1 + e^v), and a e^v (1 + e^v)^(sigma - 1).
        let logistic = |v: f64| (v - softplus(v)).exp();
        let tilt = |v: f64| mass * (v + (sigma - 1.0) * softplus(v)).exp();
        let slope = |v: f64| units - tilt(v) - power * logistic(v);
        let (mut low, mut high) = (-1.0, 1.0);
        while slope(low) < 0.0 {
            low *= 2.0;
        }
        while slope(high) > 0.0 {
            high *= 2.0;
        }
        while high - low > 1e-6 * (1.0 + low.abs()) {
            let middle = 0.5 * (low + high);
            if slope(middle) > 0.0 { low = middle } else { high = middle }
        }
        let mode = 0.5 * (low + high);
        let logistic_of_mode = logistic(mode);
        let curvature =
            tilt(mode) * (1.0 + (sigma - 1.0) * logistic_of_mode) + power * logistic_of_mode * (1.0 - logistic_of_mode);
        (mode, curvature.max(1e-12).sqrt().recip())
    }

    /// Log density of v = ln u given a partition, nats; without the normalising constant at discount 0.
    pub fn log_density_of(self, all: Occupancy, v: f64) -> f64 {
        let (units, blocks) = (all.units as f64, all.blocks as f64);
        let (mass, power) = (self.log_mass.exp(), units - blocks * self.discount);
        let log_density = units * v - mass * self.exponent(v) - power * softplus(v);
        if self.discount < LEAST_DISCOUNT {
            return log_density;
        }
        log_density - (self.log_integrated(all) - blocks * self.log_mass + ln_gamma(units))
    }

    /// The mode of that density, and its log density there.
    pub fn log_mode(self, all: Occupancy) -> (f64, f64) {
        let (units, power) = (all.units as f64, all.units as f64 - all.blocks as f64 * self.discount);
        let (mode, _) = self.mode(units, power);
        (mode, self.log_density_of(all, mode))
    }

    /// Redraws log u given a partition: an exact draw at discount 0, otherwise a slice-sampling step from `current`.
    /// Without units u is 0.
    pub fn draw(self, all: Occupancy, current: f64, draws: &mut dyn Draws) -> f64 {
        let units = all.units as f64;
        if all.units == 0 {
            return f64::NEG_INFINITY;
        }
        if self.discount < LEAST_DISCOUNT {
            return draws.log_gamma(units) - draws.log_gamma(self.log_mass.exp());
        }
        let (mass, power) = (self.log_mass.exp(), units - all.blocks as f64 * self.discount);
        let log_density = |log_u: f64| units * log_u - mass * self.exponent(log_u) - power * softplus(log_u);
        slice(log_density, if current.is_finite() { current } else { 0.0 }, 1.0, draws)
    }
}

/// ln(1 + exp x).
pub(super) fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}
