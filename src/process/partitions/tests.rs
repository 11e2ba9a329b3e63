//! Compares partition probabilities with enumeration and quadrature, and draws with exact distributions.
//!
//! Each check of a mean of draws allows five standard errors, so it fails for one stream in 1.7 million.

use std::sync::Arc;

use proptest::prelude::*;
use rand::RngExt;

use super::*;
use crate::parameters::{Parameters, Value, vector};
use crate::process::build;
use crate::rng::{Choices, Generator, Purpose, stream};
use crate::special::{digamma, ln_beta, log_sum_exp};

const N: usize = 7;

/// A function of the state.
type OfState = fn(&ProcessState) -> f64;

/// A name and a function of log u and the log mass, or of the concentration and the discount.
type Statistic<'a> = (&'a str, &'a dyn Fn(f64, f64) -> f64);

#[allow(clippy::needless_pass_by_value, reason = "callers make them in place")]
fn law(name: &str, parameters: Parameters) -> Arc<dyn Partitions> {
    build(name, &parameters).expect("valid").partitions().expect("a law of partitions")
}

fn dirichlet(concentration: f64) -> Arc<dyn Partitions> {
    law("DirichletProcess", Parameters::from_pairs([("concentration", Value::Number(concentration))]))
}

fn learned(shape: f64, rate: f64) -> Arc<dyn Partitions> {
    law("DirichletProcess", Parameters::from_pairs([("concentration", vector(vec![shape, rate]))]))
}

fn pitman_yor(discount: f64, concentration: f64) -> Arc<dyn Partitions> {
    let pairs = [("discount", Value::Number(discount)), ("concentration", Value::Number(concentration))];
    law("PitmanYor", Parameters::from_pairs(pairs))
}

fn finite(n_components: u32, concentration: f64) -> Arc<dyn Partitions> {
    let pairs = [("n_components", Value::Number(n_components.into())), ("concentration", Value::Number(concentration))];
    law("FiniteDirichlet", Parameters::from_pairs(pairs))
}

fn finite_mixtures(concentration: f64, rate: f64) -> Arc<dyn Partitions> {
    let pairs = [("concentration", Value::Number(concentration)), ("rate", Value::Number(rate))];
    law("MixtureOfFiniteMixtures", Parameters::from_pairs(pairs))
}

/// Gamma(2, 1.5) on the concentration and Beta(1.5, 2.5) on the discount.
fn learned_pitman_yor() -> Parameters {
    Parameters::from_pairs([("discount", vector(vec![1.5, 2.5])), ("concentration", vector(vec![2.0, 1.5]))])
}

fn generalized_gamma(mass: Value, discount: Value) -> Arc<dyn Partitions> {
    law("NormalizedGeneralizedGamma", Parameters::from_pairs([("mass", mass), ("discount", discount)]))
}

fn all() -> Vec<(&'static str, Arc<dyn Partitions>)> {
    vec![
        ("DP 0.3", dirichlet(0.3)),
        ("DP 4", dirichlet(4.0)),
        ("PY 0, 1.5", pitman_yor(0.0, 1.5)),
        ("PY 0.3, 1", pitman_yor(0.3, 1.0)),
        ("PY 0.7, -0.4", pitman_yor(0.7, -0.4)),
        ("PY 0.5, 0", pitman_yor(0.5, 0.0)),
        ("NGG 0.7, 0.5", generalized_gamma(Value::Number(0.7), Value::Number(0.5))),
        ("NGG 5, 0.1", generalized_gamma(Value::Number(5.0), Value::Number(0.1))),
        ("NGG 0.01, 0.9", generalized_gamma(Value::Number(0.01), Value::Number(0.9))),
        ("NGG 2, 0", generalized_gamma(Value::Number(2.0), Value::Number(0.0))),
        ("one component", finite(1, 2.0)),
        ("three components", finite(3, 1.5)),
        ("twelve components", finite(12, 0.4)),
        ("MFM 1, 1", finite_mixtures(1.0, 1.0)),
        ("MFM 0.3, 5", finite_mixtures(0.3, 5.0)),
        ("MFM 4, 0.02", finite_mixtures(4.0, 0.02)),
    ]
}

/// The block sizes of every partition of `n` units.
fn partitions(n: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for _ in 0..n {
        all = all.iter().flat_map(|sizes| successors(sizes)).collect();
    }
    all
}

/// The block sizes after adding one unit to each block in turn, and finally to a new block.
fn successors(sizes: &[usize]) -> Vec<Vec<usize>> {
    let joined = (0..sizes.len()).map(|block| {
        let mut sizes = sizes.to_vec();
        sizes[block] += 1;
        sizes
    });
    joined.chain([[sizes, &[1]].concat()]).collect()
}

fn probability(law: &dyn Partitions, sizes: &[usize]) -> f64 {
    law.log_probability(sizes, &law.start(false).expect("always")).exp()
}

/// The normalised log weights of one more unit, in the order of [`successors`].
fn predictive(law: &dyn Partitions, sizes: &[usize], state: &ProcessState) -> Vec<f64> {
    let joined = sizes.iter().map(|&size| law.log_join(size, state));
    let weights: Vec<f64> = joined.chain([law.log_open(Occupancy::of(sizes), state)]).collect();
    let total = log_sum_exp(&weights);
    weights.iter().map(|weight| weight - total).collect()
}

#[test]
fn probabilities_of_all_partitions_sum_to_one() {
    for (name, law) in all() {
        for n in 0..=N {
            let total: f64 = partitions(n).iter().map(|sizes| probability(law.as_ref(), sizes)).sum();
            assert!((total - 1.0).abs() < 1e-12, "{name}, {n} units: {total}");
        }
    }
    assert_eq!(partitions(N).len(), 877);
}

/// p(sizes) = sum_j p(.., n_j + 1, ..) + p(.., 1), and the ratio of each term to the sum is the predictive weight.
#[test]
fn one_more_unit_divides_the_probability_by_the_predictive_weights() {
    for (name, law) in all() {
        let state = law.start(false).expect("always");
        for sizes in (0..N).flat_map(partitions) {
            let of_partition = probability(law.as_ref(), &sizes);
            let terms: Vec<f64> = successors(&sizes).iter().map(|after| probability(law.as_ref(), after)).collect();
            assert!((terms.iter().sum::<f64>() - of_partition).abs() <= 1e-13 * of_partition, "{name} {sizes:?}");
            if of_partition > 0.0 {
                for (term, weight) in terms.iter().zip(predictive(law.as_ref(), &sizes, &state)) {
                    assert!((term / of_partition - weight.exp()).abs() < 1e-12, "{name} {sizes:?}");
                }
            }
        }
    }
}

/// The rising factorial (x)_n as a product.
fn rising(x: f64, n: usize) -> f64 {
    (0..n).map(|i| x + i as f64).product()
}

/// Generalised Stirling numbers of 8 units (mathematics 8.1): at discount 0 the unsigned numbers of the first kind.
fn stirling(discount: f64) -> Vec<f64> {
    let mut row = vec![1.0];
    for n in 1..=8 {
        let step = |k: usize| {
            let kept = row.get(k).map_or(0.0, |s| ((n - 1) as f64 - k as f64 * discount) * s);
            kept + if k > 0 { row[k - 1] } else { 0.0 }
        };
        row = (0..=n).map(step).collect();
    }
    row
}

#[test]
fn the_number_of_blocks_follows_stirling_numbers() {
    assert_eq!(stirling(0.0)[..5], [0.0, 5040.0, 13068.0, 13132.0, 6769.0]);
    for (name, law, discount, concentration) in [
        ("DP", dirichlet(1.7), 0.0, 1.7),
        ("PY", pitman_yor(0.4, 0.8), 0.4, 0.8),
        ("PY below 0", pitman_yor(0.6, -0.5), 0.6, -0.5),
    ] {
        let mut found = [0.0; 9];
        for sizes in partitions(8) {
            found[sizes.len()] += probability(law.as_ref(), &sizes);
        }
        for (k, number) in stirling(discount).iter().enumerate().skip(1) {
            let opened: f64 = (1..k).map(|i| concentration + i as f64 * discount).product();
            let expected = number * opened / rising(concentration + 1.0, 7);
            assert!((found[k] - expected).abs() < 1e-13, "{name} {k}: {} {expected}", found[k]);
        }
    }
}

/// The probability of a partition is the sum over all labellings of its units by components, each a draw from Polya's
/// urn.
#[test]
fn finite_partitions_are_sums_over_labellings() {
    let (m, alpha) = (4_usize, 1.3);
    let law = finite(4, alpha);
    let mut found = std::collections::BTreeMap::<Vec<usize>, f64>::new();
    for code in 0..m.pow(5) {
        let labels: Vec<usize> = (0..5_u32).map(|unit| code / m.pow(unit) % m).collect();
        let count = |label: usize, before: usize| labels[..before].iter().filter(|&&other| other == label).count();
        let urn = |i: usize| (count(labels[i], i) as f64 + alpha / m as f64) / (i as f64 + alpha);
        let first: Vec<usize> = (0..5).filter(|&i| count(labels[i], i) == 0).collect();
        let blocks = labels.iter().map(|&label| first.iter().position(|&i| labels[i] == label).expect("it appears"));
        *found.entry(blocks.collect()).or_default() += (0..5).map(urn).product::<f64>();
    }
    assert_eq!(found.len(), 51); // the partitions of 5 units in at most 4 blocks
    for (blocks, expected) in found {
        let k = blocks.iter().max().map_or(0, |last| last + 1);
        let sizes: Vec<usize> = (0..k).map(|block| blocks.iter().filter(|&&label| label == block).count()).collect();
        let of_sizes = probability(law.as_ref(), &sizes);
        assert!((of_sizes - expected).abs() < 1e-14, "{sizes:?}: {of_sizes} {expected}");
    }
    assert_eq!(probability(law.as_ref(), &[1; 5]), 0.0);
}

/// A partition has the mean of its probabilities under k components, each of the same concentration.
#[test]
fn mixtures_of_finite_mixtures_are_means_over_the_number_of_components() {
    for (concentration, rate) in [(1.0, 1.0), (0.3, 5.0), (4.0, 0.02)] {
        let law = finite_mixtures(concentration, rate);
        // The number of components exceeds 60 with a probability below 1e-40.
        let weights: Vec<f64> = (0..60)
            .scan(f64::exp(-rate), |weight, k| {
                let of_more = *weight;
                *weight *= rate / f64::from(k + 1);
                Some(of_more)
            })
            .collect();
        let laws: Vec<_> = (1..=60_u32).map(|k| finite(k, concentration * f64::from(k))).collect();
        for sizes in (1..=N).flat_map(partitions) {
            let expected: f64 =
                weights.iter().zip(&laws).map(|(weight, law)| weight * probability(law.as_ref(), &sizes)).sum();
            let found = probability(law.as_ref(), &sizes);
            assert!(
                (found - expected).abs() < 1e-12 * expected,
                "{concentration} {rate} {sizes:?}: {found} {expected}"
            );
        }
    }
}

/// The integral of exp(`log_density`) over a range of nodes by the trapezoidal rule.
fn integral(range: (f64, f64), nodes: u32, log_density: impl Fn(f64) -> f64) -> f64 {
    let step = (range.1 - range.0) / f64::from(nodes);
    (0..=nodes).map(|i| log_density(range.0 + f64::from(i) * step).exp() * step).sum()
}

fn augmented(concentration: f64, discount: f64, log_u: f64, log_mass: f64) -> ProcessState {
    ProcessState { concentration, discount, auxiliary: Some(Auxiliary { log_u, log_mass }) }
}

#[test]
fn auxiliary_values_integrate_out() {
    for sizes in [vec![1], vec![5], vec![3, 1, 4], vec![1; 6]] {
        let law = dirichlet(1.7);
        let expected = probability(law.as_ref(), &sizes);
        // du = u d(log u)
        let over_u = |log_u: f64| law.log_probability(&sizes, &augmented(1.7, 0.0, log_u, 1.7_f64.ln())) + log_u;
        let found = integral((-40.0, 40.0), 1600, over_u);
        assert!((found - expected).abs() < 1e-12 * expected, "{sizes:?}: {found} {expected}");

        let (discount, concentration) = (0.4_f64, 0.9_f64);
        let law = pitman_yor(discount, concentration);
        let expected = probability(law.as_ref(), &sizes);
        let over_mass = |log_ratio: f64| {
            let state = |log_u| augmented(concentration, discount, log_u, log_ratio + discount.ln());
            let over_u = |log_u: f64| law.log_probability(&sizes, &state(log_u)) + log_u;
            integral((-60.0, 60.0), 600, over_u).ln() + log_ratio
        };
        let found = integral((-16.0, 6.0), 220, over_mass);
        assert!((found - expected).abs() < 1e-9 * expected, "{sizes:?}: {found} {expected}");
    }
}

/// Compares V_(N, K) with a fine rule over a fixed range; at discount 0 the process is the Dirichlet process.
#[test]
fn u_integrates_out_of_generalized_gamma_processes() {
    for (mass, discount) in [(0.7, 0.5), (5.0, 0.1), (0.01, 0.9), (30.0, 1e-3), (1e-3, 0.02)] {
        let law = generalized_gamma(Value::Number(mass), Value::Number(discount));
        for sizes in [vec![1], vec![5], vec![3, 1, 4], vec![1; 6], vec![400, 300, 2]] {
            let log_expected = law.log_probability(&sizes, &law.start(false).expect("always"));
            let over_u = |log_u: f64| {
                let auxiliary = Some(Auxiliary { log_u, log_mass: f64::ln(mass) });
                let state = ProcessState { concentration: mass, discount, auxiliary };
                law.log_probability(&sizes, &state) + log_u - log_expected
            };
            let found = integral((-120.0, 1200.0), 40_000, over_u);
            assert!((found - 1.0).abs() < 1e-10, "{mass} {discount} {sizes:?}: {found}");
        }
    }
    let (limit, exact) = (generalized_gamma(Value::Number(1.7), Value::Number(1e-9)), dirichlet(1.7));
    for sizes in [vec![5], vec![3, 1, 4]] {
        let log = |law: &dyn Partitions| law.log_probability(&sizes, &law.start(false).expect("always"));
        assert!((log(limit.as_ref()) - log(exact.as_ref())).abs() < 1e-7);
    }
}

/// An update of exact draws of (u, mass, discount) given a partition, on a grid, gives exact draws.
#[test]
fn an_update_leaves_the_law_of_all_learned_parameters_unchanged() {
    for (index, sizes) in [vec![1, 1, 1], vec![6, 2, 1]].into_iter().enumerate() {
        let law = generalized_gamma(vector(vec![2.0, 1.5]), vector(vec![1.5, 2.5]));
        let grid = |cells: u32, low: f64, high: f64| {
            (0..cells).map(move |i| low + (high - low) * (f64::from(i) + 0.5) / f64::from(cells)).collect::<Vec<_>>()
        };
        let mut states = Vec::new();
        for log_u in grid(60, -6.0, 9.0) {
            for log_mass in grid(40, -5.0, 3.0) {
                for discount in grid(40, 0.0, 1.0) {
                    let auxiliary = Some(Auxiliary { log_u, log_mass });
                    states.push(ProcessState { concentration: log_mass.exp(), discount, auxiliary });
                }
            }
        }
        // Gamma(2, 1.5) in the log of the mass, Beta(1.5, 2.5), and du = u d(log u).
        let log_weight = |state: &ProcessState| {
            let (mass, x) = (state.concentration, state.discount);
            let log_u = state.auxiliary.expect("on the grid").log_u;
            2.0 * mass.ln() - 1.5 * mass
                + 0.5 * x.ln()
                + 1.5 * (1.0 - x).ln()
                + log_u
                + law.log_probability(&sizes, state)
        };
        let logs: Vec<f64> = states.iter().map(log_weight).collect();
        let total = log_sum_exp(&logs);
        let weights: Vec<f64> = logs.iter().map(|log| (log - total).exp()).collect();
        let sums = cumulative(weights.iter().copied());
        let mut generator = stream(31, Purpose::Draws, index as u64);
        let drawn: Vec<ProcessState> = (0..20_000)
            .map(|_| {
                let mut state = states[pick(&sums, &mut generator)];
                law.update(&sizes, &mut state, &mut generator);
                state
            })
            .collect();
        let statistics: [(&str, OfState); 4] = [
            ("log u", |state| state.auxiliary.map_or(0.0, |auxiliary| auxiliary.log_u)),
            ("log mass", |state| state.concentration.ln()),
            ("discount", |state| state.discount),
            ("discount and mass", |state| state.discount * state.concentration.ln()),
        ];
        for (what, statistic) in statistics {
            let expected: f64 = states.iter().zip(&weights).map(|(state, weight)| weight * statistic(state)).sum();
            let values: Vec<f64> = drawn.iter().map(statistic).collect();
            check_mean(&format!("{what} {sizes:?}"), &values, expected);
        }
    }
}

/// Given auxiliary values the weights are ratios of block factors, all with the same constant ln(1 + u).
#[test]
fn weights_given_auxiliary_values_are_ratios_of_block_factors() {
    for (law, concentration, discount) in
        [(dirichlet(1.7), 1.7_f64, 0.0), (pitman_yor(0.4, 0.9), 0.9, 0.4), (pitman_yor(0.0, 0.9), 0.9, 0.0)]
    {
        for (log_u, log_mass) in [(-3.0, 0.2), (0.5, -1.0), (40.0, 3.0)] {
            let log_mass = if discount == 0.0 { concentration.ln() } else { log_mass };
            let state = augmented(concentration, discount, log_u, log_mass);
            let constant = f64::exp(log_u).ln_1p();
            let open = law.log_open(Occupancy { units: 9, blocks: 4 }, &state) - constant;
            assert!((open - law.log_block(1, &state)).abs() < 1e-12 * (1.0 + constant));
            for size in [1_usize, 2, 60] {
                let ratio = law.log_block(size + 1, &state) - law.log_block(size, &state);
                assert!((law.log_join(size, &state) - constant - ratio).abs() < 1e-11 * (1.0 + constant), "{size}");
            }
        }
    }
}

/// Checks that the mean of draws is `expected`, within five standard errors estimated from the draws.
fn check_mean(what: &str, drawn: &[f64], expected: f64) {
    let n = drawn.len() as f64;
    let mean = drawn.iter().sum::<f64>() / n;
    let variance = drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    assert!((mean - expected).abs() < 5.0 * (variance / n).sqrt(), "{what}: {mean} instead of {expected}");
}

/// Draws an index from cumulative weights.
fn pick(cumulative: &[f64], generator: &mut Generator) -> usize {
    let threshold = generator.random::<f64>() * cumulative[cumulative.len() - 1];
    cumulative.partition_point(|&sum| sum <= threshold).min(cumulative.len() - 1)
}

fn cumulative(weights: impl Iterator<Item = f64>) -> Vec<f64> {
    weights
        .scan(0.0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        })
        .collect()
}

/// An update of an exact draw of p(concentration | partition), by quadrature, gives another exact draw.
#[test]
fn an_update_leaves_the_law_of_the_concentration_unchanged() {
    for (index, (sizes, shape, rate)) in
        [(vec![1, 1, 1, 1, 1], 2.0, 0.5), (vec![90, 10], 1.0, 1.0), (vec![1], 0.5, 3.0)].into_iter().enumerate()
    {
        let law = learned(shape, rate);
        let log_density = |log: f64| {
            let state = ProcessState { concentration: log.exp(), discount: 0.0, auxiliary: None };
            shape * log - rate * log.exp() + law.log_probability(&sizes, &state)
        };
        let nodes: Vec<f64> = (0..=3000).map(|i| -25.0 + 0.01 * f64::from(i)).collect();
        let weights: Vec<f64> = nodes.iter().map(|&log| log_density(log).exp()).collect();
        let mean = |f: &dyn Fn(f64) -> f64| {
            let total: f64 = weights.iter().sum();
            nodes.iter().zip(&weights).map(|(&log, weight)| f(log) * weight).sum::<f64>() / total
        };
        let sums = cumulative(weights.iter().copied());
        let mut generator = stream(11, Purpose::Draws, index as u64);
        let drawn: Vec<f64> = (0..20_000)
            .map(|_| {
                let start = nodes[pick(&sums, &mut generator)].exp();
                let mut state = ProcessState { concentration: start, discount: 0.0, auxiliary: None };
                law.update(&sizes, &mut state, &mut generator);
                assert_eq!(state.auxiliary, None);
                state.concentration.ln()
            })
            .collect();
        check_mean("ln a", &drawn, mean(&|log| log));
        check_mean("(ln a)^2", &drawn.iter().map(|log| log * log).collect::<Vec<_>>(), mean(&|log| log * log));
    }
}

/// A flat likelihood returns the prior: concentrations from their prior, partitions from the urn, one update.
#[test]
fn without_data_the_concentration_keeps_its_prior() {
    let law = learned(2.0, 0.8);
    let mut generator = stream(12, Purpose::Draws, 0);
    let drawn: Vec<f64> = (0..20_000)
        .map(|_| {
            let concentration = generator.log_gamma(2.0).exp() / 0.8;
            let mut state = augmented(concentration, 0.0, 0.0, concentration.ln());
            let mut sizes = Vec::new();
            for _ in 0..6 {
                let weights: Vec<f64> = predictive(law.as_ref(), &sizes, &state).iter().map(|w| w.exp()).collect();
                sizes = successors(&sizes).swap_remove(generator.choose(&weights));
            }
            law.update(&sizes, &mut state, &mut generator);
            assert_eq!(state.auxiliary.map(|auxiliary| auxiliary.log_mass), Some(state.concentration.ln()));
            state.concentration.ln()
        })
        .collect();
    check_mean("ln a", &drawn, digamma(2.0) - 0.8_f64.ln());
}

/// An update of an exact draw of u and the mass of a Pitman-Yor process given a partition gives another exact draw.
#[test]
fn an_update_leaves_the_law_of_auxiliary_values_unchanged() {
    let (discount, concentration) = (0.5_f64, 1.2_f64);
    let law = pitman_yor(discount, concentration);
    let sizes = [4, 2, 1];
    let us: Vec<f64> = (0..=200).map(|i| -20.0 + 0.25 * f64::from(i)).collect();
    let masses: Vec<f64> = (0..=120).map(|i| -10.0 + 0.125 * f64::from(i) + discount.ln()).collect();
    let grid: Vec<(f64, f64)> = masses.iter().flat_map(|&mass| us.iter().map(move |&log_u| (log_u, mass))).collect();
    let density = |&(log_u, mass): &(f64, f64)| {
        (law.log_probability(&sizes, &augmented(concentration, discount, log_u, mass)) + log_u + mass).exp()
    };
    let weights: Vec<f64> = grid.iter().map(density).collect();
    let total: f64 = weights.iter().sum();
    let mean = |f: &dyn Fn(f64, f64) -> f64| {
        grid.iter().zip(&weights).map(|(&(log_u, mass), weight)| f(log_u, mass) * weight).sum::<f64>() / total
    };
    let sums = cumulative(weights.iter().copied());
    let mut generator = stream(13, Purpose::Draws, 0);
    let drawn: Vec<(f64, f64)> = (0..100_000)
        .map(|_| {
            let (log_u, mass) = grid[pick(&sums, &mut generator)];
            let mut state = augmented(concentration, discount, log_u, mass);
            law.update(&sizes, &mut state, &mut generator);
            state.auxiliary.map(|auxiliary| (auxiliary.log_u, auxiliary.log_mass)).expect("it stays")
        })
        .collect();
    let statistics: [Statistic<'_>; 4] = [
        ("log u", &|log_u, _| log_u),
        ("log mass", &|_, mass| mass),
        ("their product", &|log_u, mass| log_u * mass),
        ("(log u)^2", &|log_u, _| log_u * log_u),
    ];
    for (what, f) in statistics {
        let values: Vec<f64> = drawn.iter().map(|&(log_u, mass)| f(log_u, mass)).collect();
        check_mean(what, &values, mean(f));
    }
}

/// The cells of a grid over ln concentration and discount, each with its prior probability.
fn grid_of_learned() -> Vec<(f64, f64, f64)> {
    let (rows, columns) = (240, 150);
    let mut cells = Vec::new();
    for i in 0..rows {
        for j in 0..columns {
            let log = -11.0 + 14.0 * (f64::from(i) + 0.5) / f64::from(rows);
            let discount = (f64::from(j) + 0.5) / f64::from(columns);
            let weight = (2.0 * log - 1.5 * log.exp()).exp() * discount.sqrt() * (1.0 - discount).powf(1.5);
            cells.push((log.exp(), discount, weight));
        }
    }
    let total: f64 = cells.iter().map(|cell| cell.2).sum();
    cells.into_iter().map(|(concentration, discount, weight)| (concentration, discount, weight / total)).collect()
}

/// Applies an update to 20 000 exact draws of both parameters, and compares means with those of the exact density, the
/// prior times `likelihood`. `log_u` is the expected logarithm of u given the concentration, if there is one.
fn check_learned(
    what: &str,
    likelihood: impl Fn(f64, f64) -> f64,
    log_u: Option<&dyn Fn(f64) -> f64>,
    update: impl Fn(&mut ProcessState, &mut Generator),
) {
    let cells = grid_of_learned();
    let weights: Vec<f64> = cells.iter().map(|&(a, d, weight)| weight * likelihood(a, d)).collect();
    let total: f64 = weights.iter().sum();
    let sums = cumulative(weights.iter().copied());
    let mut generator = stream(41, Purpose::Draws, 0);
    let drawn: Vec<ProcessState> = (0..20_000)
        .map(|_| {
            let (concentration, discount, _) = cells[pick(&sums, &mut generator)];
            let auxiliary = log_u.map(|_| Auxiliary { log_u: 0.0, log_mass: 0.0 });
            let mut state = ProcessState { concentration, discount, auxiliary };
            update(&mut state, &mut generator);
            state
        })
        .collect();
    let statistics: [Statistic<'_>; 4] = [
        ("ln a", &|a, _| a.ln()),
        ("d", &|_, d| d),
        ("d ln a", &|a, d| d * a.ln()),
        ("(ln a)^2", &|a, _| a.ln().powi(2)),
    ];
    let expected = |f: &dyn Fn(f64, f64) -> f64| {
        cells.iter().zip(&weights).map(|(&(a, d, _), weight)| f(a, d) * weight).sum::<f64>() / total
    };
    for (name, f) in statistics {
        let values: Vec<f64> = drawn.iter().map(|state| f(state.concentration, state.discount)).collect();
        check_mean(&format!("{name}, {what}"), &values, expected(f));
    }
    if let Some(log_u) = log_u {
        let values: Vec<f64> = drawn.iter().filter_map(|state| state.auxiliary).map(|one| one.log_u).collect();
        check_mean(&format!("log u, {what}"), &values, expected(&|a, _| log_u(a)));
    }
}

/// Given a partition the parameters of a Pitman-Yor process have the density of Pitman's formula, here as a product.
#[test]
fn an_update_leaves_the_law_of_both_parameters_of_a_pitman_yor_process_unchanged() {
    let law = law("PitmanYor", learned_pitman_yor());
    for sizes in [vec![1, 1, 1, 1, 1], vec![40, 8, 2, 1, 1], vec![7]] {
        let n: usize = sizes.iter().sum();
        let likelihood = |concentration: f64, discount: f64| {
            let opened: f64 = (1..sizes.len()).map(|i| concentration + i as f64 * discount).product();
            let blocks: f64 = sizes.iter().map(|&size| rising(1.0 - discount, size - 1)).product();
            opened * blocks / rising(concentration + 1.0, n - 1)
        };
        let log_u = |concentration: f64| digamma(n as f64) - digamma(concentration);
        for augmented in [None, Some(&log_u as &dyn Fn(f64) -> f64)] {
            let what = format!("{sizes:?}, u {}", augmented.is_some());
            check_learned(&what, likelihood, augmented, |state, draws| law.update(&sizes, state, draws));
        }
    }
}

/// With all sticks integrated out, labels have a product of ratios of Beta functions, one for each free stick.
#[test]
fn an_update_given_counts_leaves_the_law_of_both_parameters_unchanged() {
    let sticks = build("PitmanYor", &learned_pitman_yor()).expect("valid").sticks().expect("sticks");
    for (counts, behind) in [(vec![3.0, 0.0, 2.0], 0.0), (vec![2.0, 1.0, 1.0], 5.0), (vec![6.0], 0.0), (vec![], 4.0)] {
        let likelihood = |concentration: f64, discount: f64| {
            let mut left = behind + counts.iter().sum::<f64>();
            let mut log = 0.0;
            for (k, count) in (1..).zip(&counts) {
                left -= count;
                let (a, b) = (1.0 - discount, concentration + f64::from(k) * discount);
                log += ln_beta(a + count, b + left) - ln_beta(a, b);
            }
            log.exp()
        };
        let what = format!("{counts:?} and {behind}");
        check_learned(&what, likelihood, None, |state, draws| {
            sticks.update_given_counts(&counts, behind, state, draws);
        });
    }
}

/// A flat likelihood returns the priors: parameters from them, partitions from the urn, one update.
#[test]
fn without_data_both_parameters_of_a_pitman_yor_process_keep_their_priors() {
    let law = law("PitmanYor", learned_pitman_yor());
    let mut generator = stream(42, Purpose::Draws, 0);
    let drawn: Vec<ProcessState> = (0..20_000)
        .map(|_| {
            let concentration = generator.log_gamma(2.0).exp() / 1.5;
            let (discount, _) = generator.beta(1.5, 2.5);
            let mut state = ProcessState { concentration, discount, auxiliary: None };
            let mut sizes = Vec::new();
            for _ in 0..6 {
                let weights: Vec<f64> = predictive(law.as_ref(), &sizes, &state).iter().map(|w| w.exp()).collect();
                sizes = successors(&sizes).swap_remove(generator.choose(&weights));
            }
            law.update(&sizes, &mut state, &mut generator);
            state
        })
        .collect();
    let of = |f: OfState| drawn.iter().map(f).collect::<Vec<_>>();
    check_mean("ln a", &of(|state| state.concentration.ln()), digamma(2.0) - 1.5_f64.ln());
    check_mean("d", &of(|state| state.discount), 0.375);
    // The variance 0.375 * 0.625 / 5.
    check_mean("d^2", &of(|state| state.discount.powi(2)), 0.375 * 0.375 + 0.046_875);
}

#[test]
fn what_has_no_auxiliary_values_refuses_them() {
    for law in [finite(3, 1.0), finite_mixtures(1.0, 1.0), pitman_yor(0.5, 0.0), pitman_yor(0.5, -0.2)] {
        let refused = law.start(true).expect_err("no product form").to_string();
        assert!(refused.contains("product form"), "{refused}");
        assert!(law.start(false).is_ok());
    }
    assert!(pitman_yor(0.5, 0.1).start(true).is_ok());
    assert_eq!(learned(3.0, 2.0).start(false).map(|state| state.concentration), Ok(1.5));
    let state = dirichlet(2.0).start(true).expect("it has them");
    assert_eq!((state.concentration, state.integrated().auxiliary), (2.0, None));
}

/// Fixed parameters stay fixed and consume no random numbers.
#[test]
fn fixed_processes_take_no_draws() {
    for (_, law) in all() {
        let before = law.start(false).expect("always");
        let (mut state, mut generator) = (before, stream(14, Purpose::Draws, 0));
        law.update(&[2, 1], &mut state, &mut generator);
        assert_eq!(state, before);
        assert_eq!(generator, stream(14, Purpose::Draws, 0));
    }
}

proptest! {
    /// Extreme parameters give finite values, and updates stay within the allowed range.
    #[test]
    fn extremes_stay_finite(
        log_concentration in -690.0_f64..690.0, discount in prop_oneof![Just(0.0), Just(1e-12), 1e-9_f64..0.999],
        sizes in prop::collection::vec(1_usize..10_000, 0..20), seed in 0_u64..1000,
    ) {
        let concentration = log_concentration.exp();
        let shape = concentration.clamp(1e-199, 1e199);
        let both = [("discount", vector(vec![1e-3, 1e-3])), ("concentration", vector(vec![shape, 1.0]))];
        let both = law("PitmanYor", Parameters::from_pairs(both));
        let laws = [dirichlet(concentration), learned(shape, 1.0), pitman_yor(discount, concentration), both];
        for law in laws {
            let mut state = law.start(true).expect("positive");
            let mut generator = stream(seed, Purpose::Draws, 1);
            for _ in 0..3 {
                law.update(&sizes, &mut state, &mut generator);
                prop_assert!(state.concentration > 0.0 && state.concentration.is_finite());
                prop_assert!((0.0..1.0).contains(&state.discount));
                let auxiliary = state.auxiliary.expect("it stays");
                prop_assert!(auxiliary.log_mass.is_finite() && !auxiliary.log_u.is_nan(), "{:?}", state);
                prop_assert!(law.log_open(Occupancy::of(&sizes), &state).is_finite());
                prop_assert!(!law.log_probability(&sizes, &state).is_nan());
                prop_assert!(law.log_probability(&sizes, &state.integrated()).is_finite());
            }
        }
    }
}

/// The means of weights and of their products are the probabilities that the next unit, or the next two, join these
/// blocks.
#[test]
fn drawn_weights_are_those_of_the_next_units() {
    let (sizes, n) = ([3, 1, 4], 20_000_u32);
    for (index, (name, law)) in all().into_iter().enumerate() {
        let state = law.start(false).expect("without auxiliary values");
        if law.log_probability(&sizes, &state) == f64::NEG_INFINITY {
            continue;
        }
        let log_probability = |added: &[usize]| {
            let mut sizes = sizes.to_vec();
            for &block in added {
                if block == sizes.len() {
                    sizes.push(0);
                }
                sizes[block] += 1;
            }
            law.log_probability(&sizes, &state)
        };
        let mut generator = stream(12, Purpose::Weights, index as u64);
        let mut drawn = Vec::new();
        for _ in 0..n {
            let log_weights = law.draw_weights(&sizes, &state, &mut generator);
            let total = log_sum_exp(&log_weights);
            drawn.push(log_weights.iter().map(|weight| (weight - total).exp()).collect::<Vec<_>>());
        }
        for added in [&[0][..], &[1], &[2], &[3], &[0, 1], &[2, 2], &[1, 3]] {
            let expected = (log_probability(added) - log_probability(&[])).exp();
            let values: Vec<f64> =
                drawn.iter().map(|weights| added.iter().map(|&block| weights[block]).product()).collect();
            let mean = values.iter().sum::<f64>() / f64::from(n);
            let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / f64::from(n);
            let error = (variance / f64::from(n)).sqrt();
            assert!((mean - expected).abs() <= 5.0 * error + 1e-14, "{name}, {added:?}: {mean} {expected} {error}");
        }
    }
}
