//! Sticks Beta(1, concentration) with a Gamma prior on the concentration, and their joint posterior (mathematics 2f;
//! Blei & Jordan 2006, appendix).

use crate::process::sticks::break_sticks;
use crate::process::{Allocation, Gamma};
use crate::special::digamma_difference;

/// Range in which the mean concentration is searched.
const LIMITS: (f64, f64) = (1e-300, 1e300);

/// The joint optimal q of `n_free` sticks and of their concentration, with q(alpha) = Gamma(w_1, w_2), w_1 = shape +
/// n_free, w_2 = rate - sum_k E log(1 - v_k), and sticks whose prior has the concentration w_1 / w_2.
pub(super) fn allocate(counts: &[f64], n_free: usize, prior: Gamma) -> Allocation {
    let shape = prior.shape + n_free as f64;
    let mean = fixed_point(counts, n_free, prior);
    let broken = break_sticks(counts, 0.0, n_free, |_| (1.0, mean));
    let posterior = Gamma { shape, rate: prior.rate - broken.log_left };
    let mut allocation = broken.allocation;
    let gain = n_free as f64 * (posterior.expected_log() - mean.ln()) - posterior.divergence_from(prior);
    allocation.bound += gain;
    allocation.divergence -= gain;
    allocation.concentration = Some(posterior);
    allocation
}

/// The mean of the optimal q(alpha): the root of
/// f(alpha) = w_1 - alpha {rate + sum_k psi(1 + N_k + alpha + N_{>k}) - psi(alpha + N_{>k})}, which is decreasing, so
/// the root is unique. Alternating between sticks and q(alpha) converges too, but only by a factor near M / (shape + M)
/// per step.
fn fixed_point(counts: &[f64], n_free: usize, prior: Gamma) -> f64 {
    let shape = prior.shape + n_free as f64;
    let f = |log_alpha: f64| {
        let alpha = log_alpha.exp();
        let mut after: f64 = counts[n_free..].iter().sum();
        let mut drawn = prior.rate;
        for &count in counts[..n_free].iter().rev() {
            drawn += digamma_difference(alpha + after, 1.0 + count);
            after += count;
        }
        shape - alpha * drawn
    };
    let (least, most) = (LIMITS.0.ln(), LIMITS.1.ln());
    let mut high = (shape.ln() - prior.rate.ln()).clamp(least, most);
    let mut low = high;
    let mut step = 0.5;
    let (mut at_low, mut at_high) = (f(low), f(high));
    while at_low < 0.0 && low > least {
        (high, at_high) = (low, at_low);
        low = (low - step).max(least);
        step *= 2.0;
        at_low = f(low);
    }
    // Regula falsi (Illinois variant: the value of a retained end is halved) with occasional bisections.
    let mut middle = if at_low <= 0.0 { low } else { high };
    for round in 0..MOST_ROUNDS {
        if at_low <= 0.0 || at_high >= 0.0 || high - low <= 4.0 * f64::EPSILON * (1.0 + high.abs()) {
            break;
        }
        let share = if round % 4 == 3 { 0.5 } else { at_low / (at_low - at_high) };
        middle = (low + share * (high - low)).clamp(low, high);
        let value = f(middle);
        if value.abs() <= f64::EPSILON * shape {
            break;
        }
        if value > 0.0 {
            (low, at_low, at_high) = (middle, value, 0.5 * at_high);
        } else {
            (high, at_high, at_low) = (middle, value, 0.5 * at_low);
        }
    }
    middle.exp()
}

/// More than four times the number of bisections that shrink a bracket to one float.
const MOST_ROUNDS: usize = 400;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::process::sticks::tests::check;
    use crate::special::digamma;

    /// The bound for given sticks and a given q(alpha), by the general form of mathematics 2f.
    fn general(counts: &[f64], sticks: &[(f64, f64)], posterior: Gamma, prior: Gamma) -> f64 {
        let mut value = -posterior.divergence_from(prior);
        for (k, &(on, off)) in sticks.iter().enumerate() {
            let after: f64 = counts[k + 1..].iter().sum();
            let total = digamma(on + off);
            let (log_on, log_off) = (digamma(on) - total, digamma(off) - total);
            let entropy = crate::special::ln_beta(on, off) - (on - 1.0) * log_on - (off - 1.0) * log_off;
            value += counts[k] * log_on + after * log_off + entropy;
            value += posterior.expected_log() + (posterior.mean() - 1.0) * log_off;
        }
        value
    }

    fn counts() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(prop_oneof![Just(0.0), 0.0_f64..50.0, 0.0_f64..1e6], 1..12)
    }

    proptest! {
        /// The result is the optimum: the alternating updates of mathematics 2f leave it unchanged, and other sticks
        /// with another q(alpha) are worse.
        #[test]
        fn turns_over_sticks_and_concentration_end_here(
            counts in counts(), shape in 0.1_f64..20.0, rate in 0.01_f64..20.0, free in any::<bool>(),
            (other, wide) in (0.1_f64..10.0, 0.5_f64..2.0),
        ) {
            let prior = Gamma { shape, rate };
            let n_free = counts.len() - usize::from(!free);
            let found = allocate(&counts, n_free, prior);
            check(&found, &counts, 0.0)?;
            let posterior = found.concentration.expect("it has a prior");
            prop_assert_eq!(posterior.shape, shape + n_free as f64);
            let again = break_sticks(&counts, 0.0, n_free, |_| (1.0, posterior.mean()));
            // The slope of one update is below one by at least shape / (shape + M).
            prop_assert!((rate - again.log_left - posterior.rate).abs() < 1e-9 * posterior.rate);
            let after = |k: usize| counts[k + 1..].iter().sum::<f64>();
            let sticks = |mean: f64, wide: f64| -> Vec<(f64, f64)> {
                (0..n_free).map(|k| (wide * (1.0 + counts[k]), mean + after(k))).collect()
            };
            let bound = general(&counts, &sticks(posterior.mean(), 1.0), posterior, prior);
            let scale = 1.0 + counts.iter().sum::<f64>();
            prop_assert!((bound - found.bound).abs() < 1e-9 * scale, "{} {}", bound, found.bound);
            let moved = Gamma { shape: posterior.shape * wide, rate: posterior.rate * other };
            prop_assert!(general(&counts, &sticks(other, wide), moved, prior) <= bound + 1e-9 * scale);
        }

        /// Mathematics 2f and property 11: an empty component at the end costs E KL(q(v) || p(v | alpha)), which
        /// vanishes for a Gamma prior close to a point mass.
        #[test]
        fn an_empty_component_at_the_end_costs_something(
            counts in counts(), mean in 0.1_f64..10.0, shape in 0.5_f64..5.0,
        ) {
            let longer = [&counts[..], &[0.0]].concat();
            let cost = |shape: f64| {
                let prior = Gamma { shape, rate: shape / mean };
                allocate(&longer, longer.len(), prior).bound - allocate(&counts, counts.len(), prior).bound
            };
            prop_assert!(cost(shape) < 0.0);
            prop_assert!(cost(1e7).abs() < 1e-5, "{}", cost(1e7));
        }
    }

    /// The example of mathematics 2f: Gamma(1, 1), counts 5 and 3.
    #[test]
    fn extremes_stay_finite() {
        for (shape, rate) in [(1e-300, 1e300), (1e300, 1e-300), (1e-300, 1e-300), (1e300, 1e300), (1e-3, 1e-9)] {
            for counts in [vec![0.0; 3], vec![1e9, 5.0, 0.0]] {
                let found = allocate(&counts, 3, Gamma { shape, rate });
                let values = [found.bound, found.divergence, found.leftover];
                assert!(values.iter().all(|value| value.is_finite()), "{shape} {rate}: {found:?}");
            }
        }
    }
}
