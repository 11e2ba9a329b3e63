//! Compares steps with the posterior: invariance and, where it holds, detailed balance, to 1e-12.

use std::sync::Arc;

use crate::error::Result;
use crate::mcmc::tests::cases::{dirichlet, others, pitman_yor, points, posterior, processes, under, words};
use crate::mcmc::tests::paths::{Step, transitions};
use crate::mcmc::{ChainState, Collapsed, CollapsedGibbs, SplitMerge, Target, Turn};
use crate::parameters::{Parameters, Value};
use crate::process::{Hyperparameters, Occupancy, Partitions, Process, ProcessState};
use crate::rng::Draws;

/// The largest violations of row sums of one, of invariance, and of detailed balance.
pub struct Found {
    pub rows: f64,
    pub invariance: f64,
    pub balance: f64,
}

pub fn check(target: &Target, step: &Step<'_>) -> Found {
    let (states, exact) = posterior(target);
    compare(&transitions(target, &states, step), &exact)
}

pub fn compare(matrix: &[Vec<f64>], exact: &[f64]) -> Found {
    let size = exact.len();
    let largest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0_f64, |most, value| most.max(value.abs()));
    let after = |j: usize| (0..size).map(|i| exact[i] * matrix[i][j]).sum::<f64>();
    let pairs = (0..size).flat_map(|i| (0..i).map(move |j| (i, j)));
    Found {
        rows: largest(&mut matrix.iter().map(|row| row.iter().sum::<f64>() - 1.0)),
        invariance: largest(&mut (0..size).map(|j| after(j) - exact[j])),
        balance: largest(&mut pairs.map(|(i, j)| exact[i] * matrix[i][j] - exact[j] * matrix[j][i])),
    }
}

fn gibbs(subset: Option<usize>) -> CollapsedGibbs {
    CollapsedGibbs { subset }
}

fn split_merge(proposal: &str, scans: f64) -> SplitMerge {
    let pairs = [("proposal", Value::Text(proposal.to_owned())), ("scans", Value::Number(scans))];
    SplitMerge::new(&Parameters::from_pairs(pairs)).expect("valid")
}

/// The split-merge moves, by name, with the number of rows whose partitions are tested.
fn moves() -> Vec<(&'static str, SplitMerge, usize)> {
    vec![
        ("sequential", split_merge("sequential", 0.0), 5),
        ("no scan", split_merge("restricted", 0.0), 5),
        ("one scan", split_merge("restricted", 1.0), 4),
        ("two scans", split_merge("restricted", 2.0), 4),
    ]
}

pub fn is_exact(name: &str, target: &Target, reversible: bool, step: &Step<'_>) {
    let found = check(target, step);
    assert!(found.rows < 1e-12 && found.invariance < 1e-12, "{name}: {} {}", found.rows, found.invariance);
    assert!(!reversible || found.balance < 1e-12, "{name}: {}", found.balance);
}

#[test]
fn gibbs_sweeps_leave_the_posterior_unchanged() {
    for process in processes() {
        for target in [points(process.clone(), 5), words(process.clone(), 5, false), words(process.clone(), 5, true)] {
            let whole = |state: &mut ChainState, turn: &mut Turn<'_>| gibbs(None).step(state, turn).map(drop);
            is_exact(&process.name, &target, false, &whole);
            let one = |state: &mut ChainState, turn: &mut Turn<'_>| gibbs(Some(1)).step(state, turn).map(drop);
            is_exact(&process.name, &target, true, &one);
        }
        let some = |state: &mut ChainState, turn: &mut Turn<'_>| gibbs(Some(2)).step(state, turn).map(drop);
        is_exact(&process.name, &points(process.clone(), 4), true, &some);
    }
}

#[test]
fn every_likelihood_is_sampled_exactly() {
    let all = others(&dirichlet(0.8), 4);
    let closed = crate::likelihood::ENTRIES.iter().filter(|entry| entry.faces.contains(&"urn")).count();
    // Counts are also sampled with exposures in two forms, each under two likelihoods.
    assert_eq!(all.len() + 1, closed + 4);
    for target in all {
        let whole = |state: &mut ChainState, turn: &mut Turn<'_>| gibbs(None).step(state, turn).map(drop);
        is_exact("gibbs", &target, false, &whole);
        let mover = split_merge("sequential", 0.0);
        is_exact("sequential", &target, true, &|state, turn| mover.propose(state, turn).map(drop));
    }
}

#[test]
fn split_merge_moves_are_reversible() {
    for process in processes() {
        for (name, mover, n) in moves() {
            let name = format!("{name}, {}", process.name);
            let step = |state: &mut ChainState, turn: &mut Turn<'_>| mover.propose(state, turn).map(drop);
            is_exact(&name, &points(process.clone(), n), true, &step);
            is_exact(&name, &words(process.clone(), 4, true), true, &step);
        }
    }
}

#[test]
fn a_sweep_of_split_merge_leaves_the_posterior_unchanged() {
    for proposal in ["sequential", "restricted"] {
        let mover = split_merge(proposal, 0.0);
        is_exact(proposal, &points(pitman_yor(0.4, 0.5), 4), false, &|state, turn| mover.step(state, turn).map(drop));
    }
}

/// A distribution whose values are slightly wrong, to simulate a mistake in one of them.
#[derive(Debug)]
struct Off {
    law: Arc<dyn Partitions>,
    join: f64,
    open: f64,
    block: f64,
    rest: f64,
}

impl Process for Off {}

impl Hyperparameters for Off {
    fn start(&self, augmented: bool) -> Result<ProcessState> {
        self.law.start(augmented)
    }
}

impl Partitions for Off {
    fn log_join(&self, size: usize, state: &ProcessState) -> f64 {
        self.law.log_join(size, state) + if size == 1 { self.join } else { 0.0 }
    }
    fn log_open(&self, others: Occupancy, state: &ProcessState) -> f64 {
        self.law.log_open(others, state) + self.open
    }
    fn log_block(&self, size: usize, state: &ProcessState) -> f64 {
        self.law.log_block(size, state) + if size == 2 { self.block } else { 0.0 }
    }
    fn log_rest(&self, all: Occupancy, state: &ProcessState) -> f64 {
        self.law.log_rest(all, state) + self.rest * all.blocks as f64
    }
    fn draw_weights(&self, sizes: &[usize], state: &ProcessState, draws: &mut dyn Draws) -> Vec<f64> {
        self.law.draw_weights(sizes, state, draws)
    }
    fn update(&self, sizes: &[usize], state: &mut ProcessState, draws: &mut dyn Draws) {
        self.law.update(sizes, state, draws);
    }
}

/// The deviation from the correct posterior if the sampler runs under a distribution with an error of 1 %.
fn deviation(sampler: &Step<'_>, change: impl Fn(&mut Off)) -> f64 {
    let right = points(pitman_yor(0.4, 0.5), 4);
    let mut off = Off { law: right.process.clone(), join: 0.0, open: 0.0, block: 0.0, rest: 0.0 };
    change(&mut off);
    let wrong = under(&right, Arc::new(off));
    let (_, exact) = posterior(&right);
    let (states, _) = posterior(&wrong);
    compare(&transitions(&wrong, &states, sampler), &exact).invariance
}

/// Negative controls: an error of 1 % in an allocation weight or in a factor of the ratio is detected.
#[test]
fn small_mistakes_are_seen() {
    let whole = |state: &mut ChainState, turn: &mut Turn<'_>| gibbs(None).step(state, turn).map(drop);
    assert!(deviation(&whole, |_| {}) < 1e-12);
    assert!(deviation(&whole, |off| off.join = 0.01) > 1e-4);
    assert!(deviation(&whole, |off| off.open = 0.01) > 1e-4);
    for (_, mover, _) in moves() {
        let step = |state: &mut ChainState, turn: &mut Turn<'_>| mover.propose(state, turn).map(drop);
        assert!(deviation(&step, |_| {}) < 1e-12);
        assert!(deviation(&step, |off| off.block = 0.01) > 1e-5);
        assert!(deviation(&step, |off| off.rest = 0.01) > 1e-5);
        // Errors in the weights of proposals are corrected by the ratio.
        assert!(deviation(&step, |off| off.join = 0.5) < 1e-12);
    }
}
