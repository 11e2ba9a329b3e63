//! Exactness of the moves: detailed balance and invariance to 1e-12.

use super::super::{Global, TreeGuided};
use crate::error::Result;
use crate::mcmc::tests::cases::{
    dirichlet, finite_mixtures, generalized_gamma, others, pitman_yor, points, processes, words,
};
use crate::mcmc::tests::exactness::is_exact;
use crate::mcmc::tree_guided::local;
use crate::mcmc::{ChainState, Collapsed, Target, Turn};
use crate::model::Named;
use crate::parallel::Cancel;
use crate::parameters::{Parameters, Value};

/// A sampler that is ready to run, with parameters written as users write them.
pub fn sampler(target: &Target, given: &[(&str, &str)]) -> TreeGuided {
    let mut parameters = Parameters::default();
    for &(name, text) in given {
        let value = text.parse().map_or_else(|_| Value::Text(text.to_owned()), Value::Number);
        parameters.0.insert(name.to_owned(), value);
    }
    let mut sampler = TreeGuided::new(&parameters).expect("valid");
    sampler.prepare(target, 5, &Cancel::default()).expect("definite");
    sampler
}

/// Makes one global move from newly drawn trees.
pub fn global(sampler: &TreeGuided, kind: Global, state: &mut ChainState, turn: &mut Turn<'_>) -> Result<()> {
    let mut turn = Turn { target: turn.target, draws: &mut *turn.draws, cancel: turn.cancel };
    let mut forest = sampler.forest(state, &mut turn)?;
    sampler.global(kind, &mut forest, state, &mut turn).map(drop)
}

/// Makes one tree-guided local move.
pub fn guided(sampler: &TreeGuided, state: &mut ChainState, turn: &mut Turn<'_>) -> Result<()> {
    let mut turn = Turn { target: turn.target, draws: &mut *turn.draws, cancel: turn.cancel };
    let mut forest = sampler.forest(state, &mut turn)?;
    let settings = sampler.settings;
    local::guided(&mut forest, settings.depth, settings.evenness, state, &mut turn).map(drop)
}

fn check_moves(name: &str, target: &Target, given: &[(&str, &str)]) {
    let guided_sampler = sampler(target, given);
    for kind in [Global::Subtree, Global::Launched] {
        let name = format!("{name}, {kind:?}, {given:?}");
        is_exact(&name, target, true, &|state, turn| global(&guided_sampler, kind, state, turn));
    }
    let name = format!("{name}, guided, {given:?}");
    is_exact(&name, target, true, &|state, turn| guided(&guided_sampler, state, turn));
}

#[test]
fn moves_are_reversible_under_every_process() {
    for process in processes() {
        for target in [points(process.clone(), 5), words(process.clone(), 5, true)] {
            check_moves(&process.name, &target, &[("scans", "0")]);
        }
        check_moves(&process.name, &words(process.clone(), 4, false), &[("scans", "1"), ("evenness", "max/n")]);
    }
}

#[test]
fn moves_from_fresh_trees_are_reversible() {
    for process in [dirichlet(0.8), pitman_yor(0.4, 0.5), generalized_gamma(0.7, 0.5)] {
        check_moves(&process.name, &points(process.clone(), 4), &[("scans", "0"), ("trees", "fresh")]);
    }
}

#[test]
fn every_likelihood_has_trees() {
    for target in others(&dirichlet(0.8), 4) {
        check_moves("likelihood", &target, &[("scans", "0")]);
    }
}

#[test]
fn sweeps_leave_the_posterior_unchanged() {
    check_sweeps("uniform", pitman_yor(0.6, -0.3));
    check_sweeps("guided", generalized_gamma(0.7, 0.5));
}

#[test]
#[ignore = "slow"]
fn sweeps_under_every_process_leave_the_posterior_unchanged() {
    let others = [generalized_gamma(0.7, 0.5), finite_mixtures(0.7, 1.5)];
    for process in [dirichlet(0.8), pitman_yor(0.6, -0.3)].into_iter().chain(others) {
        check_sweeps("uniform", process.clone());
        check_sweeps("guided", process);
    }
}

fn check_sweeps(local: &str, process: Named) {
    let target = points(process, 4);
    let given = [("global_moves", "2"), ("scans", "0"), ("subset", "1"), ("depth", "1"), ("local", local)];
    let guided_sampler = sampler(&target, &given);
    is_exact(local, &target, false, &|state, turn| guided_sampler.step(state, turn).map(drop));
}

/// The largest cases: seven rows, 877 partitions, each move alone.
#[test]
#[ignore = "slow"]
fn moves_are_reversible_on_seven_points() {
    for process in [pitman_yor(0.4, 0.5), generalized_gamma(0.7, 0.5)] {
        check_global_moves(&seven_points(process));
    }
}

#[test]
#[ignore = "slow"]
fn moves_are_reversible_on_seven_documents() {
    check_global_moves(&seven_words(dirichlet(0.8)));
}

fn check_global_moves(target: &Target) {
    let guided_sampler = sampler(target, &[("scans", "0")]);
    for kind in [Global::Subtree, Global::Launched] {
        is_exact("seven rows", target, true, &|state, turn| global(&guided_sampler, kind, state, turn));
    }
}

fn seven_points(process: Named) -> Target {
    use crate::data::DenseRows;
    use crate::mcmc::tests::cases::{POINTS, gaussian, target};
    let values = [&POINTS[..], &[0.5, -1.0]].concat();
    target(gaussian(2), process, &DenseRows::new(&values[..], 2))
}

fn seven_words(process: Named) -> Target {
    use crate::data::DenseRows;
    use crate::mcmc::tests::cases::{WORDS, named, target};
    let values = [&WORDS[..], &[1.0, 0.0, 0.0, 1.0]].concat();
    let likelihood = named("Multinomial", [("pseudo_counts", crate::parameters::vector(vec![0.4, 0.7, 1.0, 0.5]))]);
    target(likelihood, process, &DenseRows::new(&values[..], 4))
}
