//! The published algorithm on all forests of four rows: the size of its bias.

use std::collections::BTreeMap;

use super::super::forest::{Forest, is_forest};
use super::super::published;
use super::kernels::sampler;
use crate::data::DenseRows;
use crate::mcmc::tests::cases::{generalized_gamma, named, target};
use crate::mcmc::tests::paths::{partitions, paths};
use crate::mcmc::trees::{Arena, Evenness};
use crate::mcmc::{ChainState, Target, Turn};
use crate::parallel::Cancel;
use crate::parameters::{Value, table, vector};
use crate::process::Auxiliary;
use crate::special::log_sum_exp;

/// Four numbers, x | theta ~ N(theta, 1), theta ~ N(0, 4).
fn four() -> Target {
    let likelihood = named(
        "KnownCovarianceGaussian",
        [("covariance", table(1, vec![1.0])), ("mean", vector(vec![0.0])), ("mean_precision", Value::Number(0.25))],
    );
    target(likelihood, generalized_gamma(0.5, 0.5), &DenseRows::new(&[-1.5, -0.5, 0.7, 1.8][..], 1))
}

fn at_two(target: &Target, labels: &[u32]) -> ChainState {
    let mut state = ChainState::new(target, labels).expect("allowed");
    state.process.auxiliary = state.process.auxiliary.map(|auxiliary| Auxiliary { log_u: 2.0_f64.ln(), ..auxiliary });
    state.refresh(target);
    state
}

/// All binary trees over rows.
fn trees(arena: &mut Arena<'_>, rows: &[u32]) -> Vec<u32> {
    let (first, others) = (rows[0], &rows[1..]);
    if others.is_empty() {
        return vec![first];
    }
    let mut found = Vec::new();
    for beside in 0..(1_u32 << others.len()) - 1 {
        let with = |taken: u32| {
            let chosen = others.iter().enumerate().filter(move |(bit, _)| beside >> bit & 1 == taken);
            chosen.map(|(_, &row)| row).collect::<Vec<u32>>()
        };
        let (left, right) = ([&[first][..], &with(1)].concat(), with(0));
        for a in trees(arena, &left) {
            for b in trees(arena, &right) {
                found.push(arena.join(a, b).expect("definite"));
            }
        }
    }
    found
}

/// The states of all partitions with all their trees.
fn states(target: &Target) -> Vec<ChainState> {
    let guided_sampler = sampler(target, &[]);
    let mut found = Vec::new();
    for labels in partitions(4) {
        let state = at_two(target, &labels);
        let mut forests = vec![Vec::new()];
        let mut arena = Arena::new(target, &state.process);
        for label in 0..=labels.iter().max().copied().unwrap_or(0) {
            let rows: Vec<u32> = (0..4).filter(|&row| labels[row as usize] == label).collect();
            let trees_of_label = trees(&mut arena, &rows);
            forests = forests
                .iter()
                .flat_map(|forest| trees_of_label.iter().map(move |&tree| [&forest[..], &[tree]].concat()))
                .collect();
        }
        for roots in forests {
            let mut forest = Forest::empty(target, guided_sampler.law(), &state);
            forest.arena = arena.clone();
            let cluster = |root| crate::mcmc::tree_guided::forest::Rooted {
                slot: state.clusters.slot(arena.node(root).least),
                root,
            };
            forest.clusters = roots.into_iter().map(cluster).collect();
            forest.sort();
            let trees = forest.written();
            assert!(is_forest(&trees, state.clusters.slots()) && !is_forest(&trees[1..], state.clusters.slots()));
            found.push(ChainState { trees, ..state.clone() });
        }
    }
    found
}

type Key = (Vec<i32>, Vec<u32>);

fn key(state: &ChainState) -> Key {
    let mut labels = vec![0; 4];
    state.clusters.write_labels(&mut labels);
    (labels, state.trees.clone())
}

type Move<'a> = dyn Fn(&mut Forest<'_>, &mut ChainState, &mut Turn<'_>) + 'a;

/// The transition matrix of a move on partitions with trees.
fn matrix(target: &Target, states: &[ChainState], mover: &Move<'_>) -> Vec<Vec<f64>> {
    let guided_sampler = sampler(target, &[]);
    let numbers: BTreeMap<Key, usize> = states.iter().enumerate().map(|(number, state)| (key(state), number)).collect();
    let row = |start: &ChainState| {
        let mut row = vec![0.0; states.len()];
        for (probability, after) in paths(|draws| {
            let mut state = start.clone();
            let mut turn = Turn { target, draws, cancel: &Cancel::default() };
            let mut forest = Forest::empty(target, guided_sampler.law(), &state);
            forest.read(&state.trees, &state).expect("definite");
            mover(&mut forest, &mut state, &mut turn);
            state.trees = forest.written();
            state
        }) {
            row[numbers[&key(&after)]] += probability;
        }
        row
    };
    states.iter().map(row).collect()
}

fn product(a: &[Vec<f64>], b: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let entry = |row: &Vec<f64>, j: usize| row.iter().zip(b).map(|(x, row)| x * row[j]).sum();
    a.iter().map(|row| (0..b.len()).map(|j| entry(row, j)).collect()).collect()
}

/// Total variation between the stationary law of partitions and the posterior.
fn bias(target: &Target, states: &[ChainState], matrix: &[Vec<f64>]) -> f64 {
    let mut power = matrix.to_vec();
    for _ in 0..12 {
        power = product(&power, &power);
    }
    let mut law: BTreeMap<Vec<i32>, f64> = BTreeMap::new();
    for (state, probability) in states.iter().zip(&power[0]) {
        *law.entry(key(state).0).or_default() += probability;
    }
    let all: Vec<ChainState> = partitions(4).iter().map(|labels| at_two(target, labels)).collect();
    let log = |state: &ChainState| {
        let process = &state.process;
        state.log_joint(target).expect("definite")
            - target.process.log_probability(&state.clusters.sizes(), &process.integrated())
            + target.process.log_probability(&state.clusters.sizes(), process)
    };
    let logs: Vec<f64> = all.iter().map(log).collect();
    let total = log_sum_exp(&logs);
    let away = all.iter().zip(&logs).map(|(state, log)| ((log - total).exp() - law[&key(state).0]).abs());
    0.5 * away.sum::<f64>()
}

/// The values of an independent implementation: 0.162 for the cycle of 20 global moves and a local move of depth 2,
/// 0.245 for the local move alone.
#[test]
fn its_bias_is_known() {
    let target = four();
    let states = states(&target);
    let global = matrix(&target, &states, &|forest, state, turn| {
        published::propose(forest, Evenness::Max, state, turn).expect("definite");
    });
    let local = matrix(&target, &states, &|forest, state, turn| {
        published::visit(forest, 2, Evenness::Max, state, turn).expect("definite");
    });
    let mut moves = global.clone();
    for _ in 1..20 {
        moves = product(&moves, &global);
    }
    let cycle = bias(&target, &states, &product(&moves, &local));
    assert!((cycle - 0.162).abs() < 0.0005, "{cycle}");
    let alone = bias(&target, &states, &local);
    assert!((alone - 0.245).abs() < 0.0005, "{alone}");
}
