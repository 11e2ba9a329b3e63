//! Moves of the labels of stick-breaking samplers, whose order has a meaning but which Gibbs steps hardly change
//! (Papaspiliopoulos & Roberts 2008; mathematics 8.11).

use crate::mcmc::conditional::LabelState;
use crate::mcmc::samplers::{Attempts, Info};
use crate::process::{MOST_ATOMS, Stick, Sticks, log_weights};
use crate::rng::Draws;

/// Proposes to swap the labels of two components, and of neighbours together with their sticks. Returns the component
/// at each position; positions beyond the components stand for components without rows. `is_truncated`: whether the
/// last stick takes all that is left, so that it never moves.
pub fn reorder(
    process: &dyn Sticks,
    state: &LabelState,
    mut sticks: Vec<Stick>,
    is_truncated: bool,
    draws: &mut dyn Draws,
) -> (Vec<usize>, [Info; 2]) {
    let mut order: Vec<usize> = (0..sticks.len()).collect();
    let count = |k: usize| state.counts.get(k).copied().unwrap_or(0.0);
    let labels = swap_labels(&mut order, &log_weights(&sticks), &count, draws);
    let mut swaps = Attempts::default();
    let mut j = 0;
    // Beyond the last component with rows, swaps change nothing. Under a large concentration labels belong at positions
    // as large; where those are more than a sweep may have, the next one says so.
    let mut last = order.iter().rposition(|&k| count(k) > 0.0).unwrap_or(0);
    while j <= last.min(MOST_ATOMS) {
        if is_truncated && j + 2 >= sticks.len() {
            break;
        }
        if j + 1 == sticks.len() {
            sticks.push(Stick::draw(process.stick(j + 1, &state.process), draws));
            order.push(order.len());
        }
        let (here, next) = (sticks[j], sticks[j + 1]);
        let [prior, next_prior] = [j, j + 1].map(|k| process.stick(k, &state.process));
        let of_counts = count(order[j]) * next.log_off - count(order[j + 1]) * here.log_off;
        let of_priors = next.log_density(prior) + here.log_density(next_prior)
            - here.log_density(prior)
            - next.log_density(next_prior);
        let log_ratio = of_counts + if prior == next_prior { 0.0 } else { of_priors };
        let accepted = draws.accept(log_ratio);
        swaps += Attempts::judged(log_ratio, accepted);
        if accepted {
            order.swap(j, j + 1);
            sticks.swap(j, j + 1);
            if last <= j + 1 {
                last = if count(order[j + 1]) > 0.0 { j + 1 } else { j };
            }
        }
        j += 1;
    }
    let infos = [("label_swaps", labels), ("stick_swaps", swaps)].map(|(name, attempts)| Info { name, attempts });
    (order, infos)
}

/// Proposes to swap two labels with rows, as often as there are such labels; their set never changes.
fn swap_labels(
    order: &mut [usize],
    log_weights: &[f64],
    count: &impl Fn(usize) -> f64,
    draws: &mut dyn Draws,
) -> Attempts {
    let places: Vec<usize> = (0..order.len()).filter(|&place| count(order[place]) > 0.0).collect();
    let mut attempts = Attempts::default();
    if places.len() < 2 {
        return attempts;
    }
    for _ in 0..places.len() {
        let first = draws.pick(places.len());
        let mut second = draws.pick(places.len() - 1);
        second += usize::from(second >= first);
        let (a, b) = (places[first], places[second]);
        let log_ratio = (count(order[b]) - count(order[a])) * (log_weights[a] - log_weights[b]);
        let accepted = draws.accept(log_ratio);
        attempts += Attempts::judged(log_ratio, accepted);
        if accepted {
            order.swap(a, b);
        }
    }
    attempts
}
