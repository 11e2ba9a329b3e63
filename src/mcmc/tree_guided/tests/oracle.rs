//! Transition probabilities of an independent implementation in NumPy, entry by entry, and its values to 12 digits.

use std::collections::BTreeMap;

use super::super::forest::TreeLaw;
use super::super::subtree::log_split;
use super::super::{Global, TreeGuided};
use super::kernels::{global, guided, sampler};
use crate::data::Restrictions;
use crate::mcmc::tests::golden::{example, near};
use crate::mcmc::tests::paths::{partitions, paths, transitions};
use crate::mcmc::trees::{Arena, Evenness, Walk, shape};
use crate::mcmc::{ChainState, Target, Turn};
use crate::parallel::Cancel;
use crate::process::{Auxiliary, ProcessState};
use crate::special::log_sum_exp;

use crate::mcmc::tests::cases::generalized_gamma;

/// The process of the example: a = sigma = 1/2 at u = 2.
fn process(target: &Target) -> ProcessState {
    let state = target.process.start(true).expect("a random measure");
    ProcessState { auxiliary: state.auxiliary.map(|auxiliary| Auxiliary { log_u: 2.0_f64.ln(), ..auxiliary }), ..state }
}

/// The first rows of the example, with the tree of rows inserted in order.
fn rows(n: usize) -> Target {
    let values = [-1.8, -1.0, 0.2, 0.9, 2.0];
    let all = example(generalized_gamma(0.5, 0.5));
    if n == 5 {
        return all;
    }
    let table = crate::mcmc::RowTable::new(
        &crate::data::DenseRows::new(&values[..n], 1),
        &std::sync::Arc::new(crate::data::Coordinates::identity(1)),
        all.likelihood.origin(),
    );
    Target::new(all.likelihood.clone(), all.process.clone(), table, all.log_volume).expect("closed")
}

/// The tree of rows inserted in order.
fn in_order(target: &Target) -> (Arena<'_>, u32) {
    let mut arena = Arena::new(target, &process(target));
    let mut root = 0;
    for row in 1..target.n_rows() as u32 {
        root = arena.insert(root, row).expect("definite");
    }
    (arena, root)
}

fn with_guide(target: &Target, given: &[(&str, &str)]) -> TreeGuided {
    let mut guided_sampler = sampler(target, given);
    let (arena, root) = in_order(target);
    guided_sampler.law = Some(TreeLaw::Guide(Restrictions::new(shape(&arena, root).0)));
    guided_sampler
}

fn states(target: &Target) -> BTreeMap<String, ChainState> {
    let state = |labels: &Vec<u32>| {
        let mut state = ChainState::new(target, labels).expect("allowed");
        state.process = process(target);
        state.refresh(target);
        (labels.iter().map(u32::to_string).collect(), state)
    };
    partitions(target.n_rows()).iter().map(state).collect()
}

/// Two partitions, and the probability of moving from the first to the second.
type Entry<'a> = (&'a str, &'a str, f64);

#[test]
fn transitions_are_those_of_the_oracle() {
    let text = include_str!("../../../../tests/data/tree_guided_transitions.txt");
    let mut expected: BTreeMap<(&str, usize), Vec<Entry<'_>>> = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let entry = (fields[1], fields[2], fields[3].parse().expect("a number"));
        expected.entry((fields[0], fields[1].len())).or_default().push(entry);
    }
    assert_eq!(expected.len(), 7);
    for ((kernel, n), entries) in expected {
        let target = rows(n);
        let all = states(&target);
        let scans = if kernel == "launched1" { "1" } else { "0" };
        let guided_sampler = with_guide(&target, &[("scans", scans)]);
        let starts: Vec<ChainState> = all.values().cloned().collect();
        let matrix = transitions(&target, &starts, &|state, turn| match kernel {
            "subtree" => global(&guided_sampler, Global::Subtree, state, turn),
            "guided2" => guided(&guided_sampler, state, turn),
            _ => global(&guided_sampler, Global::Launched, state, turn),
        });
        let numbers: BTreeMap<&str, usize> =
            all.keys().enumerate().map(|(number, name)| (name.as_str(), number)).collect();
        let mut whole = vec![vec![0.0; all.len()]; all.len()];
        for (from, to, probability) in entries {
            whole[numbers[from]][numbers[to]] = probability;
        }
        for (found, expected) in matrix.iter().flatten().zip(whole.iter().flatten()) {
            assert!((found - expected).abs() < 1e-12, "{kernel}, {n} rows: {found} {expected}");
        }
    }
}

/// mcmc golden values: the tree of five rows, its potential, its splits.
#[test]
fn golden_values() {
    let target = rows(5);
    let log_h = |state: &ChainState| -> f64 {
        let (mut arena, _) = in_order(&target);
        let mut rows: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        (0..5).for_each(|row| rows.entry(state.clusters.slot(row)).or_default().push(row));
        rows.values()
            .map(|rows| {
                let mut root = rows[0];
                for &row in &rows[1..] {
                    root = arena.join(root, row).expect("definite");
                }
                arena.node(root).log_cluster
            })
            .sum()
    };
    let all = states(&target);
    let logs: Vec<f64> = all.values().map(log_h).collect();
    let total = log_sum_exp(&logs);
    near(total, -12.172_003_411_402);
    let mean: f64 =
        all.values().zip(&logs).map(|(state, log)| state.clusters.n_clusters() as f64 * (log - total).exp()).sum();
    near(mean, 2.639_562_472_685);
    let (mut arena, root) = in_order(&target);
    near(arena.node(root).log_potential, -13.293_401_102_015);
    near(arena.node(root).log_dissimilarity, 0.718_391_146_612);
    assert_eq!(arena.rows_below(root), [0, 1, 2, 3, 4]);
    let walk = Walk::new(&arena, root);
    let probabilities = walk.probabilities(&arena, 0, false, Evenness::Max);
    for (position, expected) in [(0, 0.307_894_116), (1, 0.228_422_983), (4, 0.227_317_399), (6, 0.236_365_502)] {
        assert!((probabilities[position] - expected).abs() < 1e-9, "{position}: {probabilities:?}");
    }
    let splits = [
        ("00111", 0.307_894_116_049),
        ("00011", 0.093_816_615_932),
        ("00122", 0.118_947_868_304),
        ("01111", 0.085_844_092_362),
        ("01011", 0.0),
    ];
    for (labels, expected) in splits {
        let owner = |row: u32| u32::from(labels.as_bytes()[row as usize]);
        let log: f64 = log_split(&mut arena, root, Evenness::Max, owner).expect("definite").iter().sum();
        assert!((log.exp() - expected).abs() < 1e-12, "{labels}: {}", log.exp());
    }
}

/// Each outcome of a split has one path, whose probability [`log_split`] finds.
#[test]
fn splits_have_one_path() {
    let target = crate::mcmc::tests::cases::points(generalized_gamma(0.7, 0.5), 6);
    let state = ChainState::new(&target, &[0; 6]).expect("allowed");
    for seed in 0..20 {
        let mut arena = Arena::new(&target, &state.process);
        let order = crate::rng::permutation(6, &mut crate::rng::stream(seed, crate::rng::Purpose::Trees, 0));
        let mut root = order[0];
        for &row in &order[1..] {
            root = arena.insert(root, row).expect("definite");
        }
        let mut found: BTreeMap<Vec<Vec<u32>>, Vec<f64>> = BTreeMap::new();
        for (probability, mut parts) in paths(|draws| {
            let mut turn = Turn { target: &target, draws, cancel: &Cancel::default() };
            let mut copy = arena.clone();
            let (parts, _) =
                super::super::subtree::draw_split(&mut copy, root, Evenness::Max, &mut turn).expect("definite");
            parts.iter().map(|&part| copy.rows_below(part)).collect::<Vec<_>>()
        }) {
            for part in &mut parts {
                part.sort_unstable();
            }
            parts.sort();
            found.entry(parts).or_default().push(probability);
        }
        for (parts, probabilities) in found {
            assert_eq!(probabilities.len(), 1);
            let owner = |row| parts.iter().position(|part| part.contains(&row)).expect("each row is in one") as u32;
            let log: f64 = log_split(&mut arena.clone(), root, Evenness::Max, owner).expect("definite").iter().sum();
            assert!((log.exp() - probabilities[0]).abs() < 1e-12);
        }
    }
}
