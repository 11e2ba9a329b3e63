//! Negative controls: wrong moves fail the checks that the exact moves pass.

use super::super::forest::Exchange;
use super::super::subtree::{draw_split, log_merge, log_split, log_stays, pick};
use super::super::{Global, TreeGuided};
use super::kernels::{global, guided, sampler};
use crate::error::Result;
use crate::mcmc::tests::cases::{dirichlet, generalized_gamma, points};
use crate::mcmc::tests::exactness::check;
use crate::mcmc::{ChainState, Collapsed, Turn};
use crate::rng::{Choices, Draws};

/// The term left out of the ratio of a subtree move.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Without {
    Nothing,
    /// A merge counts only the way in which it was proposed.
    OtherWays,
    /// The probabilities of the insertions.
    Insertions,
}

/// A second implementation of the subtree move.
fn subtree(sampler: &TreeGuided, without: Without, state: &mut ChainState, turn: &mut Turn<'_>) -> Result<()> {
    let mut turn = Turn { target: turn.target, draws: &mut *turn.draws, cancel: turn.cancel };
    let forest = &mut sampler.forest(state, &mut turn)?;
    let evenness = sampler.settings.evenness;
    let cut = |parts: [f64; 2]| if without == Without::Insertions { parts[0] } else { parts[0] + parts[1] };
    let picked = pick(forest, &mut turn)?;
    let rest: Vec<u32> = picked.rest.iter().map(|&index| forest.root(index)).collect();
    let (root, len) = (forest.root(picked.cluster), forest.arena.n_nodes());
    let (exchange, log_proposals) = if picked.merged.is_empty() {
        if forest.arena.is_leaf(root) {
            return Ok(());
        }
        let (parts, log_cut) = draw_split(&mut forest.arena, root, evenness, &mut turn)?;
        let mut new = Vec::new();
        for part in parts {
            let rows = forest.arena.rows_below(part);
            new.push(forest.draw(rows, turn.draws)?);
        }
        let back = log_merge(&forest.arena, &new, &rest)?;
        (Exchange { old: vec![picked.cluster], new }, back - picked.log_probability - cut(log_cut))
    } else {
        let old = [&[picked.cluster][..], &picked.merged].concat();
        let roots: Vec<u32> = old.iter().map(|&index| forest.root(index)).collect();
        let rows = roots.iter().flat_map(|&root| forest.arena.rows_below(root)).collect();
        let merged = forest.draw(rows, turn.draws)?;
        let all_ways = log_merge(&forest.arena, &roots, &rest)?;
        let forth = if without == Without::OtherWays { picked.log_probability } else { all_ways };
        let back = cut(log_split(&mut forest.arena, merged, evenness, |row| state.clusters.slot(row))?);
        let drawn = -((rest.len() + 1) as f64).ln() + log_stays(&forest.arena, merged, &rest)?;
        (Exchange { old, new: vec![merged] }, drawn + back - forth)
    };
    let log_ratio = forest.log_gain(&exchange) + log_proposals;
    forest.settle(exchange, log_ratio, len, state, &mut turn).map(drop)
}

#[test]
fn incomplete_ratios_are_rejected() {
    for process in [dirichlet(0.8), generalized_gamma(0.7, 0.5)] {
        let target = points(process, 5);
        let guided_sampler = sampler(&target, &[]);
        let deviation =
            |without| check(&target, &|state, turn| subtree(&guided_sampler, without, state, turn)).invariance;
        assert!(deviation(Without::Nothing) < 1e-12);
        assert!(deviation(Without::OtherWays) > 1e-3);
        assert!(deviation(Without::Insertions) > 1e-3);
    }
}

/// Accepts everything.
struct Eager<'a>(&'a mut dyn Draws);

impl Choices for Eager<'_> {
    fn choose(&mut self, weights: &[f64]) -> usize {
        self.0.choose(weights)
    }
    fn accept(&mut self, _: f64) -> bool {
        true
    }
}

impl Draws for Eager<'_> {
    fn uniform(&mut self) -> f64 {
        self.0.uniform()
    }
    fn log_gamma(&mut self, shape: f64) -> f64 {
        self.0.log_gamma(shape)
    }
}

#[test]
fn guided_moves_without_their_factor_are_rejected() {
    let target = points(dirichlet(0.8), 5);
    let guided_sampler = sampler(&target, &[]);
    let eager = |state: &mut ChainState, turn: &mut Turn<'_>| {
        let mut draws = Eager(&mut *turn.draws);
        guided(&guided_sampler, state, &mut Turn { target: turn.target, draws: &mut draws, cancel: turn.cancel })
    };
    assert!(check(&target, &eager).invariance > 1e-3);
    assert!(check(&target, &|state, turn| guided(&guided_sampler, state, turn)).invariance < 1e-12);
}

#[test]
fn the_published_algorithm_is_rejected() {
    let target = points(generalized_gamma(0.7, 0.5), 4);
    let guided_sampler = sampler(&target, &[("exact", "0"), ("global_moves", "1"), ("depth", "1")]);
    assert!(check(&target, &|state, turn| global(&guided_sampler, Global::Published, state, turn)).invariance > 1e-3);
    assert!(check(&target, &|state, turn| guided_sampler.step(state, turn).map(drop)).invariance > 1e-3);
}
