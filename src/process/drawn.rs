//! Weights of components drawn given their counts, for samplers that draw the labels of all rows at once (mathematics
//! 8.11).

use crate::process::random_measure::RandomMeasure;
use crate::process::{Hyperparameters, Partitions, ProcessState};
use crate::rng::Draws;
use crate::special::{ln_beta, ln_gamma};

/// A process whose weights are pieces of a stick: w_k = v_k prod_{l<k} (1 - v_l), with independent v_k ~ Beta.
pub trait Sticks: Hyperparameters {
    /// The prior Beta(a, b) of stick `k`, which counts from 0.
    fn stick(&self, k: usize, state: &ProcessState) -> (f64, f64);

    /// Redraws learned parameters given the counts of the components whose sticks are free, in their order, and the
    /// count `behind` them, with all sticks integrated out. This leaves their joint distribution invariant.
    fn update_given_counts(&self, _counts: &[f64], _behind: f64, _state: &mut ProcessState, _draws: &mut dyn Draws) {}

    /// The state whose weights reach furthest of those that are likely, for a default truncation.
    fn furthest(&self, state: ProcessState) -> ProcessState {
        state
    }
}

/// A process with a fixed number of exchangeable components, whose weights have a symmetric Dirichlet prior.
pub trait Exchangeable: Partitions {
    /// The pseudo-count of one component.
    fn share(&self) -> f64;
}

/// A process whose weights are the normalised jumps of a random measure.
pub trait Jumps: Partitions {
    /// The measure.
    fn measure(&self, state: &ProcessState) -> RandomMeasure;
}

/// One stick: log v and log (1 - v), nats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stick {
    /// log v.
    pub log_on: f64,
    /// log (1 - v).
    pub log_off: f64,
}

impl Stick {
    /// The stick that takes all that is left.
    pub const LAST: Self = Self { log_on: 0.0, log_off: f64::NEG_INFINITY };

    /// Draws v from Beta(a, b). Both logarithms are exact where v or 1 - v is too small for a float.
    pub fn draw((a, b): (f64, f64), draws: &mut dyn Draws) -> Self {
        let log_odds = draws.log_gamma(a) - draws.log_gamma(b);
        let log_one_plus_exp = |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p();
        Self { log_on: -log_one_plus_exp(-log_odds), log_off: -log_one_plus_exp(log_odds) }
    }

    /// Log density of v under Beta(a, b), nats.
    pub fn log_density(self, (a, b): (f64, f64)) -> f64 {
        (a - 1.0) * self.log_on + (b - 1.0) * self.log_off - ln_beta(a, b)
    }
}

/// Draws the first sticks given the counts of their components, and the count `behind` them:
/// v_k ~ Beta(a_k + N_k, b_k + N_{>k}).
pub fn draw_sticks(
    process: &dyn Sticks,
    counts: &[f64],
    behind: f64,
    state: &ProcessState,
    draws: &mut dyn Draws,
) -> Vec<Stick> {
    let mut behind = behind + counts.iter().sum::<f64>();
    let draw = |(k, count): (usize, &f64)| {
        behind -= count;
        let (a, b) = process.stick(k, state);
        Stick::draw((a + count, b + behind), draws)
    };
    counts.iter().enumerate().map(draw).collect()
}

/// Log probability of labels with these counts, in the order of the sticks, with the sticks integrated out, nats:
/// sum_k ln B(a_k + N_k, b_k + N_{>k}) - ln B(a_k, b_k). It depends on the order, unlike that of a partition.
pub fn log_probability_of_labels(process: &dyn Sticks, counts: &[f64], state: &ProcessState) -> f64 {
    let mut behind: f64 = counts.iter().sum();
    let of_stick = |(k, count): (usize, &f64)| {
        behind -= count;
        let (a, b) = process.stick(k, state);
        ln_beta(a + count, b + behind) - ln_beta(a, b)
    };
    counts.iter().enumerate().map(of_stick).sum()
}

/// log w_k of consecutive sticks, nats.
pub fn log_weights(sticks: &[Stick]) -> Vec<f64> {
    let mut left = 0.0;
    let weight = |stick: &Stick| {
        let log_weight = left + stick.log_on;
        left += stick.log_off;
        log_weight
    };
    sticks.iter().map(weight).collect()
}

/// The least number of components whose truncation changes the probability of `n` rows by at most `error`: 4 n times
/// the expected length of what is left before the last stick (Ishwaran & James 2001). `None` above `most`.
pub fn least_truncation(process: &dyn Sticks, state: ProcessState, n: usize, error: f64, most: usize) -> Option<usize> {
    let (state, mut log_left) = (process.furthest(state), (4.0 * n as f64).ln());
    for k in 0..most {
        if log_left <= error.ln() {
            return Some(k + 1);
        }
        let (a, b) = process.stick(k, &state);
        log_left += (b / (a + b)).ln();
    }
    None
}

/// The largest number of components that a sweep may have.
pub const MOST_ATOMS: usize = 1_000_000;

impl RandomMeasure {
    /// Draws the logs of the jumps, in units of 1 / (1 + u), of blocks of these sizes given u: Gamma(n - sigma, 1).
    pub fn draw_jumps(self, sizes: &[f64], draws: &mut dyn Draws) -> Vec<f64> {
        sizes.iter().map(|size| draws.log_gamma(size - self.discount)).collect()
    }

    /// Draws the logs of all jumps above `log_least` that have no units, in the same units: a Poisson process of
    /// intensity a (1 + u)^sigma / Gamma(1 - sigma) s^(-1 - sigma) e^-s, by thinning (Favaro & Teh 2013). `None` if
    /// there are more than [`MOST_ATOMS`].
    pub fn draw_empty_jumps(self, log_u: f64, log_least: f64, draws: &mut dyn Draws) -> Option<Vec<f64>> {
        let log_rate = self.log_open(log_u) - ln_gamma(1.0 - self.discount);
        let power = 1.0 + self.discount;
        let (mut jumps, mut at, mut n_proposed) = (Vec::new(), log_least.exp(), 0_usize);
        loop {
            // The intensity beyond `at` under the proposal, whose power is that at `at`.
            let beyond = (log_rate - power * at.ln() - at).exp();
            let step = -draws.uniform().ln();
            if step >= beyond {
                return Some(jumps);
            }
            let next = at - (-step / beyond).ln_1p();
            if draws.uniform() < (power * (at / next).ln()).exp() {
                jumps.push(next.ln());
            }
            n_proposed += 1;
            if n_proposed > 4 * MOST_ATOMS || jumps.len() > MOST_ATOMS || next.is_nan() {
                return None;
            }
            at = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, stream};

    /// 200 draws of the number of jumps in a part of the line: each mean is within 5 standard errors of the integral of
    /// the intensity, which a check of 3 parts exceeds once in 600 000 streams.
    #[test]
    fn jumps_have_their_intensity() {
        let measure = RandomMeasure { log_mass: 2.0_f64.ln(), discount: 0.4 };
        let mut generator = stream(3, Purpose::Draws, 0);
        let (log_u, least, n) = (0.5_f64, 1e-3_f64, 4000);
        let parts = [(1e-3, 1e-2), (1e-2, 0.2), (0.2, 20.0)];
        let mut counts = [0.0; 3];
        for _ in 0..n {
            for jump in measure.draw_empty_jumps(log_u, least.ln(), &mut generator).expect("few") {
                let place = parts.iter().position(|part| (part.0..part.1).contains(&jump.exp()));
                counts[place.expect("above the least")] += 1.0;
            }
        }
        for ((low, high), count) in parts.into_iter().zip(counts) {
            let rate = (measure.log_open(log_u) - ln_gamma(0.6)).exp();
            // Substituting ln s makes the integrand smooth.
            let steps = 20_000;
            let width = (f64::ln(high) - f64::ln(low)) / f64::from(steps);
            let mid = |step: i32| (f64::ln(low) + (f64::from(step) + 0.5) * width).exp();
            let expected: f64 = (0..steps).map(mid).map(|s: f64| rate * s.powf(-0.4) * (-s).exp() * width).sum();
            let found = count / f64::from(n);
            assert!((found - expected).abs() < 5.0 * (expected / f64::from(n)).sqrt(), "{found} {expected}");
        }
    }

    #[test]
    fn the_logs_of_a_stick_survive_underflow() {
        let mut generator = stream(3, Purpose::Draws, 1);
        let stick = Stick::draw((1e-4, 5.0), &mut generator);
        assert!(stick.log_on < -100.0 && stick.log_off <= 0.0 && stick.log_on.is_finite());
        let other = Stick::draw((2.0, 3.0), &mut generator);
        assert!((other.log_on.exp() + other.log_off.exp() - 1.0).abs() < 1e-14);
    }
}
