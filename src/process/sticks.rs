//! Sticks, w_k = v_k prod_{l<k} (1 - v_l) with v_k ~ Beta: mathematics common to all stick-breaking priors (mathematics
//! 2).

use crate::process::{Allocation, WeightSource, point};
use crate::rng::Draws;
use crate::special::{digamma, ln_beta};

/// The optimal q of all sticks.
pub(super) struct Broken {
    /// q of the weights.
    pub allocation: Allocation,
    /// sum_k E log(1 - v_k) over the free sticks, nats.
    pub log_left: f64,
}

/// N_{>k} for every k, including the tail.
fn behind(counts: &[f64], tail: f64) -> Vec<f64> {
    let mut behind = vec![tail; counts.len()];
    for j in (1..counts.len()).rev() {
        behind[j - 1] = behind[j] + counts[j];
    }
    behind
}

/// The optimal q of `n_free` sticks with the prior Beta(a_k, b_k) = `prior(k)`: eta_k = (a_k + N_k, b_k + N_{>k}), and
/// L* = sum_k ln B(eta_k) - ln B(a_k, b_k). Any stick after them is one and takes the remaining weight.
pub(super) fn break_sticks(counts: &[f64], tail: f64, n_free: usize, prior: impl Fn(usize) -> (f64, f64)) -> Broken {
    let mut allocation = Allocation {
        expected_log_weights: Vec::with_capacity(counts.len()),
        expected_weights: Vec::with_capacity(counts.len()),
        leftover: 1.0,
        divergence: 0.0,
        bound: 0.0,
        concentration: None,
        tail_log_weight: None,
        background_weight: 0.0,
        of_documents: None,
        guard: 0.0,
    };
    let mut log_left = 0.0;
    for (k, (&count, after)) in counts.iter().zip(behind(counts, tail)).enumerate() {
        if k >= n_free {
            allocation.expected_log_weights.push(log_left);
            allocation.expected_weights.push(allocation.leftover);
            allocation.leftover = 0.0;
            continue;
        }
        let (a, b) = prior(k);
        let (on, off) = (a + count, b + after);
        let total = digamma(on + off);
        let (log_on, log_off) = (digamma(on) - total, digamma(off) - total);
        allocation.expected_log_weights.push(log_left + log_on);
        log_left += log_off;
        allocation.expected_weights.push(allocation.leftover * (on / (on + off)));
        allocation.leftover *= off / (on + off);
        let gain = ln_beta(on, off) - ln_beta(a, b);
        allocation.bound += gain;
        allocation.divergence += count * log_on + after * log_off - gain;
    }
    Broken { allocation, log_left }
}

/// Draws weights from the q of [`break_sticks`].
pub(super) fn stick_source(
    counts: &[f64],
    tail: f64,
    n_free: usize,
    prior: impl Fn(usize) -> (f64, f64),
) -> WeightSource {
    let stick = |(k, (&count, after)): (usize, (&f64, f64))| {
        let (a, b) = prior(k);
        (a + count, b + after)
    };
    let sticks: Vec<(f64, f64)> = counts.iter().zip(behind(counts, tail)).enumerate().take(n_free).map(stick).collect();
    Box::new(move |weights, generator| {
        let mut left = 1.0;
        for (k, weight) in weights.iter_mut().enumerate() {
            let (fraction, rest) = sticks.get(k).map_or((1.0, 0.0), |&(on, off)| generator.beta(on, off));
            *weight = left * fraction;
            left *= rest;
        }
    })
}

/// The mode of `n_free` sticks with the prior Beta(a, b), which exists if both are at least 1 (mathematics 2g):
/// v_k = (a - 1 + N_k) / (a - 1 + N_k + b - 1 + N_{>k}). If the denominator is zero, all values are equally good, and 0
/// is chosen.
pub(super) fn modes(counts: &[f64], n_free: usize, (a, b): (f64, f64)) -> Allocation {
    let (mut log_weights, mut log_left, mut log_prior) = (Vec::with_capacity(counts.len()), 0.0, 0.0);
    let log_norm = if a == 1.0 { -b.ln() } else { ln_beta(a, b) };
    for (k, (&count, after)) in counts.iter().zip(behind(counts, 0.0)).enumerate() {
        if k >= n_free {
            log_weights.push(log_left);
            log_left = f64::NEG_INFINITY;
            continue;
        }
        let (on, off) = (count + (a - 1.0), after + (b - 1.0));
        let total = on + off;
        let (log_on, log_off) =
            if total > 0.0 { ((on / total).ln(), (off / total).ln()) } else { (f64::NEG_INFINITY, 0.0) };
        log_weights.push(log_left + log_on);
        log_left += log_off;
        let term = |exponent: f64, log: f64| if exponent > 0.0 { exponent * log } else { 0.0 };
        log_prior += term(a - 1.0, log_on) + term(b - 1.0, log_off) - log_norm;
    }
    point::point_allocation(counts, log_weights, log_left.exp(), log_prior)
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::process::FreeSticks;

    /// Checks identities that hold at every optimum: the collapsed bound equals the general one, and weights and
    /// left-over sum to one.
    pub(in crate::process) fn check(allocation: &Allocation, counts: &[f64], tail: f64) -> Result<(), TestCaseError> {
        let tail = allocation.tail_log_weight.map_or(0.0, |weight| tail * weight);
        let pairs = counts.iter().zip(&allocation.expected_log_weights);
        let weighted = tail + pairs.map(|(n, w)| if *n > 0.0 { n * w } else { 0.0 }).sum::<f64>();
        let general = weighted - allocation.divergence;
        prop_assert!((general - allocation.bound).abs() < 1e-9 * (1.0 + weighted.abs()));
        let total: f64 = allocation.expected_weights.iter().sum::<f64>() + allocation.leftover;
        prop_assert!((total - 1.0).abs() < 1e-12);
        Ok(())
    }

    proptest! {
        /// Mathematics 2g: no other sticks have a larger `sum N_k log pi_k + log p(v)`.
        #[test]
        fn modes_are_the_best_sticks(
            pairs in prop::collection::vec((0.0_f64..50.0, 0.01_f64..0.99), 1..9),
            a in prop_oneof![Just(1.0), 1.0_f64..5.0], b in 1.0_f64..20.0, free in any::<bool>(),
        ) {
            let (counts, sticks): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let n_free = counts.len() - usize::from(!free);
            let best = modes(&counts, n_free, (a, b));
            check(&best, &counts, 0.0)?;
            let (mut left, mut value) = (0.0, 0.0);
            for (k, (count, v)) in counts.iter().zip(&sticks).enumerate() {
                if k < n_free {
                    value += count * (left + v.ln()) + (a - 1.0) * v.ln() + (b - 1.0) * (-v).ln_1p() - ln_beta(a, b);
                    left += (-v).ln_1p();
                } else {
                    value += count * left;
                }
            }
            prop_assert!(best.bound >= value - 1e-10 * (1.0 + value.abs()));
        }
    }

    proptest! {
        /// The closed form of the change by a merge is the difference of two bounds.
        #[test]
        fn a_merge_changes_the_bound_as_allocations_say(
            mut counts in prop::collection::vec(prop_oneof![Just(0.0), 0.0_f64..2.0, 0.0_f64..1e5], 2..30),
            concentration in prop_oneof![0.001_f64..50.0, Just(1e-200), Just(1e-299)],
            discount in prop_oneof![Just(0.0), 0.0_f64..0.99, Just(1e-299)],
            tail in prop_oneof![Just(0.0), 0.0_f64..20.0],
            (a, b) in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
        ) {
            let tail = if discount > 0.0 { 0.0 } else { tail };
            let bound = |counts: &mut Vec<f64>| {
                counts.sort_by(|x, y| y.total_cmp(x));
                let prior = |k: usize| (1.0 - discount, concentration + (k + 1) as f64 * discount);
                break_sticks(counts, tail, counts.len(), prior).allocation.bound
            };
            let before = bound(&mut counts);
            let (a, b) = (a.index(counts.len()), b.index(counts.len()));
            prop_assume!(a != b);
            let (a, b) = (a.min(b), a.max(b));
            let mut from = behind(&counts, tail);
            from.iter_mut().zip(&counts).for_each(|(from, count)| *from += count);
            let change = FreeSticks { discount, concentration }.change_by_merge(&counts, &from, a, b);
            let gone = counts.remove(b);
            counts[a] += gone;
            let after = bound(&mut counts);
            let scale = 1.0 + before.abs() + after.abs();
            prop_assert!((after - before - change).abs() < 1e-12 * scale, "{} {}", after - before, change);
        }
    }

    #[test]
    fn sticks_without_rows_are_pruned_and_lose_nothing() {
        let (with, without) = (modes(&[3.0, 0.0, 2.0, 0.0], 4, (1.0, 1.0)), modes(&[3.0, 2.0], 2, (1.0, 1.0)));
        assert_eq!(with.expected_log_weights[1], f64::NEG_INFINITY);
        assert_eq!(with.expected_log_weights[3], f64::NEG_INFINITY);
        assert!((with.bound - without.bound).abs() < 1e-14);
        assert_eq!(with.leftover, 0.0);
        assert_eq!(modes(&[0.0, 0.0], 2, (1.0, 1.0)).leftover, 1.0);
    }
}
