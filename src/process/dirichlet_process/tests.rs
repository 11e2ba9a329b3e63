use proptest::prelude::*;

use super::*;
use crate::parameters::{Value, vector};
use crate::process::sticks::tests::check;
use crate::special::{digamma, ln_beta, log_sum_exp};

fn allocate_sticks(truncation: Truncation, (a, b): (f64, f64), counts: &[f64], tail: f64) -> Allocation {
    DirichletProcess { prior: SticksPrior::Beta(a, b), truncation }.allocate(counts, tail, Objective::Variational)
}

fn allocate(truncation: Truncation, alpha: f64, counts: &[f64], tail: f64) -> Allocation {
    allocate_sticks(truncation, (1.0, alpha), counts, tail)
}

/// The first number of a prior of sticks, often that of a Dirichlet process.
fn first() -> impl Strategy<Value = f64> {
    prop_oneof![Just(1.0), 0.05_f64..20.0]
}

fn bound(truncation: Truncation, alpha: f64, counts: &[f64]) -> f64 {
    allocate(truncation, alpha, counts, 0.0).bound
}

fn some_counts() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(0.01_f64..50.0, 1..12)
}

const ALL: [Truncation; 3] = [Truncation::Nested, Truncation::Stick, Truncation::Tail];

/// Property 3 of mathematics 7 in the form of 2a.3: for hard counts, the sum over orders of exp L* with the gap
/// factors is Ewens' formula.
#[test]
fn the_orders_sum_to_the_ewens_formula() {
    let alpha = 1.7;
    let sizes = [3.0, 1.0, 4.0];
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let total: f64 = orders
        .iter()
        .map(|order| {
            let counts = order.map(|i| sizes[i]);
            let gaps: f64 = (0..3).map(|i| counts[i..].iter().sum::<f64>()).map(|from| (alpha + from) / from).product();
            bound(Truncation::Nested, alpha, &counts).exp() * gaps
        })
        .sum();
    // alpha^3 Gamma(alpha) / Gamma(alpha + 8) * 2! 0! 3!
    let rising: f64 = (0..8).map(|i| alpha + f64::from(i)).product();
    assert!((total - alpha.powi(3) / rising * 12.0).abs() < 1e-12 * total);
}

/// Mathematics 2b: the process itself is truncated, so the probabilities of all hard assignments to K components
/// sum to one.
#[test]
fn truncated_sticks_give_every_assignment_its_probability() {
    let (n, k) = (5_u32, 3_u32);
    for sticks in [(1.0, 0.8), (0.4, 2.5), (3.0, 0.2)] {
        let total: f64 = (0..k.pow(n))
            .map(|code| {
                let mut counts = [0.0; 3];
                (0..n).for_each(|row| counts[(code / k.pow(row) % k) as usize] += 1.0);
                allocate_sticks(Truncation::Stick, sticks, &counts, 0.0).bound.exp()
            })
            .sum();
        assert!((total - 1.0).abs() < 1e-12, "{total}");
    }
}

/// Property 22: the closed form equals the sum over 4000 components beyond K.
#[test]
fn the_tail_is_a_sum_over_components() {
    let counts = [4.0, 1.5];
    for (a, b, tail) in [(1.0, 0.3, 0.0), (1.0, 1.0, 2.0), (1.0, 20.0, 0.7), (0.4, 3.0, 1.3), (2.5, 0.8, 0.2)] {
        let found = allocate_sticks(Truncation::Tail, (a, b), &counts, tail);
        let (e_v, e_0) = (digamma(a) - digamma(a + b), digamma(b) - digamma(a + b));
        let log_left: f64 = [(a + 4.0, b + 1.5 + tail), (a + 1.5, b + tail)]
            .iter()
            .map(|(on, off)| digamma(*off) - digamma(on + off))
            .sum();
        let each: Vec<f64> = (0..4000).map(|j| log_left + e_v + f64::from(j) * e_0).collect();
        let weight = found.tail_log_weight.expect("it has a tail");
        assert!((log_sum_exp(&each) - weight).abs() < 1e-11, "{a} {b}");
        // Their stick terms and the entropy of the geometric law add up to the bound's term.
        let shares: Vec<f64> = each.iter().map(|w| (w - weight).exp()).collect();
        let inside: f64 = shares.iter().zip(&each).map(|(r, w)| if *r > 0.0 { r * (w - r.ln()) } else { 0.0 }).sum();
        assert!((inside - weight).abs() < 1e-11);
    }
}

/// Property 22: the tail loses all weight as the concentration goes to zero.
/// The mean of ln a given the sizes of two components, by the rectangle rule: 60 000 draws, of which every tenth is
/// as good as independent, are within 5 standard errors of it, and none is far below all others.
#[test]
fn a_concentration_given_counts_has_its_posterior() {
    let prior = Gamma { shape: 2.0, rate: 2.0 };
    let process = DirichletProcess { prior: SticksPrior::Learned(prior), truncation: Truncation::Nested };
    let counts = [20.0, 20.0];
    let weight = |alpha: f64| {
        let sticks = alpha.powi(2) / ((20.0 + alpha) * (0..20).map(|i| 21.0 + alpha + f64::from(i)).product::<f64>());
        alpha.powi(2) * (-2.0 * alpha).exp() * sticks
            / (alpha * (0..20).map(|i| 1.0 + alpha + f64::from(i)).product::<f64>())
    };
    let points: Vec<f64> = (-1000..400).map(|i| f64::from(i) / 100.0).collect();
    let total: f64 = points.iter().map(|log| weight(log.exp())).sum();
    let moment = |power: i32| points.iter().map(|log| log.powi(power) * weight(log.exp())).sum::<f64>() / total;
    let (expected, deviation) = (moment(1), (moment(2) - moment(1).powi(2)).sqrt());
    let mut state = process.start(false).expect("learned");
    let mut generator = crate::rng::stream(9, crate::rng::Purpose::Draws, 0);
    let draws: Vec<f64> = (0..60_000)
        .map(|_| {
            process.update_given_counts(&counts, 0.0, &mut state, &mut generator);
            state.concentration.ln()
        })
        .collect();
    let mean = draws.iter().sum::<f64>() / 6e4;
    assert!((mean - expected).abs() < 5.0 * deviation / 6000.0_f64.sqrt(), "{mean} {expected} {deviation}");
    assert!(draws.iter().all(|&log| log > -14.0), "a draw that far has a probability below 1e-10");
}

#[test]
fn no_concentration_leaves_no_tail() {
    let found = allocate(Truncation::Tail, 1e-9, &[4.0, 1.5], 0.0);
    assert!(found.tail_log_weight.expect("it has a tail") < -1e8);
    assert_eq!(found.bound, bound(Truncation::Nested, 1e-9, &[4.0, 1.5]));
}

#[test]
fn objectives_are_refused_with_the_reason() {
    let unknown = SticksPrior::Learned(Gamma { shape: 1.0, rate: 1.0 });
    let fixed = |alpha| SticksPrior::Beta(1.0, alpha);
    let of = |prior, truncation, objective| {
        let refused = DirichletProcess { prior, truncation }.check_objective(objective);
        refused.err().map(|error| error.to_string())
    };
    assert_eq!(of(unknown, Truncation::Nested, Objective::Variational), None);
    assert_eq!(of(fixed(1.0), Truncation::Stick, Objective::Map), None);
    assert_eq!(of(fixed(0.1), Truncation::Nested, Objective::Ml), None);
    assert_eq!(of(SticksPrior::Beta(2.0, 1.0), Truncation::Nested, Objective::Map), None);
    for (prior, truncation, objective, reason) in [
        (fixed(0.9), Truncation::Nested, Objective::Map, "a concentration of at least 1"),
        (SticksPrior::Beta(2.0, 0.9), Truncation::Nested, Objective::Map, "both numbers are at least 1"),
        (SticksPrior::Beta(0.9, 2.0), Truncation::Stick, Objective::Map, "both numbers are at least 1"),
        (unknown, Truncation::Stick, Objective::Map, "use a number"),
        (unknown, Truncation::Nested, Objective::Ml, "use a number"),
        (fixed(2.0), Truncation::Tail, Objective::Map, "averages over its prior"),
    ] {
        assert!(of(prior, truncation, objective).is_some_and(|said| said.contains(reason)), "{reason}");
    }
}

proptest! {
    #[test]
    fn the_collapsed_bound_is_the_general_one(
        counts in prop::collection::vec(0.0_f64..50.0, 1..12), a in first(), b in 0.05_f64..20.0, tail in 0.0_f64..9.0,
    ) {
        for truncation in ALL {
            let tail = if truncation == Truncation::Tail { tail } else { 0.0 };
            let allocation = allocate_sticks(truncation, (a, b), &counts, tail);
            check(&allocation, &counts, tail)?;
            prop_assert!(allocation.divergence > -1e-9);
        }
    }

    /// Property 11: an empty component at the end changes nothing. At position j it costs ln(b / (b + N_{>=j})) where a
    /// is 1, and ln B(a, b + N_{>=j}) / B(a, b) in general.
    #[test]
    fn an_empty_component_at_the_end_is_free(
        counts in some_counts(), a in first(), b in 0.05_f64..20.0, position in 0_usize..12,
    ) {
        let bound = |counts: &[f64]| allocate_sticks(Truncation::Nested, (a, b), counts, 0.0).bound;
        let before = bound(&counts);
        let position = position % (counts.len() + 1);
        let behind: f64 = counts[position..].iter().sum();
        let mut longer = counts.clone();
        longer.insert(position, 0.0);
        let after = bound(&longer);
        let cost = if a == 1.0 { (b / (b + behind)).ln() } else { ln_beta(a, b + behind) - ln_beta(a, b) };
        prop_assert!((after - before - cost).abs() < 1e-9 * (1.0 + before.abs()));
    }

    /// Property 11: if the last stick is one, an empty component at the end turns it into a free stick (mathematics
    /// 2b; erratum 6).
    #[test]
    fn an_empty_truncated_stick_costs_its_gain(counts in some_counts(), alpha in 0.05_f64..20.0) {
        let longer = [&counts[..], &[0.0]].concat();
        let (before, after) = (bound(Truncation::Stick, alpha, &counts), bound(Truncation::Stick, alpha, &longer));
        let cost = ln_beta(1.0 + counts[counts.len() - 1], alpha) - ln_beta(1.0, alpha);
        prop_assert!((after - before - cost).abs() < 1e-9 * (1.0 + before.abs()));
        prop_assert!(cost < 0.0);
        // Erratum 6: this bound exceeds the bound of the untruncated process, so the two must not be compared.
        let nested = bound(Truncation::Nested, alpha, &counts);
        prop_assert!((before - nested + cost).abs() < 1e-9 * (1.0 + before.abs()));
    }

    /// Property 12: decreasing counts are optimal, with any mass in the tail.
    #[test]
    fn decreasing_order_is_best(
        mut counts in prop::collection::vec(0.0_f64..50.0, 1..12).prop_shuffle(), a in first(), b in 0.05_f64..20.0,
        tail in 0.0_f64..50.0,
    ) {
        let shuffled = counts.clone();
        counts.sort_by(|a, b| b.total_cmp(a));
        for (truncation, sticks, tail) in
            [
                (Truncation::Nested, (a, b), 0.0),
                (Truncation::Tail, (a, b), tail),
                (Truncation::Stick, (1.0, b.min(1.0)), 0.0),
            ]
        {
            let any = allocate_sticks(truncation, sticks, &shuffled, tail).bound;
            let sorted = allocate_sticks(truncation, sticks, &counts, tail).bound;
            prop_assert!(sorted >= any - 1e-10 * (1.0 + any.abs()), "{:?}", truncation);
        }
    }
}

/// With truncated sticks and a concentration above 1 the last component, which has no stick, should not be the
/// smallest. A run must therefore compare bounds before it reorders.
#[test]
fn truncated_sticks_may_want_another_order() {
    let (falling, rising) = ([10.0, 1.0], [1.0, 10.0]);
    assert!(bound(Truncation::Stick, 3.0, &falling) < bound(Truncation::Stick, 3.0, &rising));
    assert!(bound(Truncation::Stick, 0.5, &falling) > bound(Truncation::Stick, 0.5, &rising));
}

#[test]
fn sticks_are_two_numbers_beside_no_concentration() {
    let made = |pairs: Vec<(&str, Value)>| {
        let pairs = pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        DirichletProcess::new(&Parameters(pairs)).map(|process| process.prior)
    };
    let two = |a: f64, b: f64| ("sticks", vector(vec![a, b]));
    assert_eq!(made(vec![two(2.0, 3.0)]), Ok(SticksPrior::Beta(2.0, 3.0)));
    assert_eq!(made(vec![("sticks", Value::Absent)]), Ok(SticksPrior::Beta(1.0, 1.0)));
    // The first number of a Dirichlet process is 1, so it has partitions and a concentration.
    let process = |a: f64| Arc::new(DirichletProcess::new(&Parameters::from_pairs([two(a, 3.0)])).expect("valid"));
    assert_eq!(process(1.0).concentration(), Some(Concentration::Fixed(3.0)));
    assert!(process(1.0).partitions().is_some());
    assert_eq!(process(2.0).concentration(), None);
    assert!(process(2.0).partitions().is_none());
    let (half, gamma) = (("concentration", Value::Number(0.5)), ("concentration", vector(vec![1.0, 1.0])));
    let wrong = [vec![1.0], vec![1.0, 2.0, 3.0], vec![0.0, 1.0], vec![1.0, f64::NAN], vec![1e7, 1.0]];
    let wrong = wrong.map(|numbers| vec![("sticks", vector(numbers))]);
    let others = [vec![("sticks", Value::Number(1.0))], vec![two(2.0, 3.0), half], vec![two(2.0, 3.0), gamma]];
    for refused in wrong.into_iter().chain(others) {
        let found = made(refused.clone());
        assert!(matches!(found, Err(Error::InvalidArgument { argument, .. }) if argument == "sticks"), "{refused:?}");
    }
}
