//! Moves of single rows (mathematics 8.10, item 6).

use crate::error::Result;
use crate::mcmc::gibbs::choose;
use crate::mcmc::tree_guided::forest::{Forest, Rooted};
use crate::mcmc::trees::{Arena, Evenness, Walk};
use crate::mcmc::{Attempts, ChainState, Turn};

/// Draws a node of a tree again and again within the last one; its place.
pub fn descend(arena: &Arena<'_>, walk: &Walk, depth: usize, evenness: Evenness, turn: &mut Turn<'_>) -> usize {
    let mut at = 0;
    for _ in 0..depth {
        if walk.size(at) == 1 {
            break;
        }
        at += turn.draws.choose(&walk.probabilities(arena, at, true, evenness));
    }
    at
}

/// The probability that [`descend`] in the tree of a cluster, and then a uniform choice of a row below, end at `row`.
pub fn selection(arena: &Arena<'_>, root: u32, row: u32, depth: usize, evenness: Evenness) -> f64 {
    let walk = Walk::new(arena, root);
    let mut at = (0..walk.n_nodes()).find(|&at| walk.size(at) == 1 && walk.node(at) == row).unwrap_or(0);
    let mut way = vec![at];
    while at != 0 {
        at = walk.parent(at);
        way.push(at);
    }
    way.reverse();
    // Only nodes on the way lead to the row.
    let mut masses = vec![0.0; way.len()];
    masses[0] = 1.0;
    let laws: Vec<Vec<f64>> = way.iter().map(|&at| walk.probabilities(arena, at, true, evenness)).collect();
    for _ in 0..depth {
        let mut next = vec![0.0; way.len()];
        for (from, mass) in masses.iter().enumerate() {
            for to in from..way.len() {
                next[to] += mass * laws[from][way[to] - way[from]];
            }
        }
        masses = next;
    }
    way.iter().zip(masses).map(|(&at, mass)| mass / walk.size(at) as f64).sum()
}

/// Draws the cluster of one row, found by a descent in the tree of a random cluster; the probability of finding it
/// again decides on the acceptance. A row that stays was not accepted, as in a Gibbs step.
///
/// # Errors
/// As [`crate::mcmc::Sampler::step`].
pub fn guided(
    forest: &mut Forest<'_>,
    depth: usize,
    evenness: Evenness,
    state: &mut ChainState,
    turn: &mut Turn<'_>,
) -> Result<Attempts> {
    let k = forest.n_clusters();
    let from = turn.draws.pick(k);
    let source = forest.clusters[from];
    let walk = Walk::new(&forest.arena, source.root);
    let at = descend(&forest.arena, &walk, depth, evenness, turn);
    let below = walk.rows(at);
    let row = below[turn.draws.pick(below.len())];
    let mut space = Vec::new();
    state.take_out(turn.target, row)?;
    let n_options = state.weigh(turn.target, row, &mut space)?;
    let choice = choose(&mut space, n_options, turn, row)?;
    let is_alone = walk.size(0) == 1;
    let is_new = choice == n_options - 1;
    // A slot of its own is free now, and the next one to be opened.
    let back = if is_alone { n_options - 1 } else { source.slot as usize };
    if choice == back {
        state.put_in(turn.target, row, back)?;
        return Ok(Attempts::REFUSED);
    }
    let len = forest.arena.n_nodes();
    let into = forest.clusters.iter().position(|cluster| cluster.slot as usize == choice && !is_new);
    let mut rows = into.map_or_else(Vec::new, |at| forest.arena.rows_below(forest.root(at)));
    rows.push(row);
    let joined = forest.draw(rows, turn.draws)?;
    let left: Vec<u32> = walk.rows(0).iter().copied().filter(|&other| other != row).collect();
    let left = if left.is_empty() { None } else { Some(forest.draw(left, turn.draws)?) };
    let after = forest.clusters.len() + usize::from(is_new) - usize::from(is_alone);
    let log_selection = |root: u32, k: usize| (selection(&forest.arena, root, row, depth, evenness) / k as f64).ln();
    let log_ratio = log_selection(joined, after) - log_selection(source.root, k);
    if !turn.draws.accept(log_ratio) {
        forest.arena.cut(len);
        state.put_in(turn.target, row, back)?;
        return Ok(Attempts::judged(log_ratio, false));
    }
    state.put_in(turn.target, row, choice)?;
    let gone = [Some(from), into];
    let mut kept: Vec<Rooted> = (0..k).filter(|at| !gone.contains(&Some(*at))).map(|at| forest.clusters[at]).collect();
    kept.extend(left.map(|root| Rooted { slot: source.slot, root }));
    kept.push(Rooted { slot: state.clusters.slot(row), root: joined });
    forest.clusters = kept;
    forest.sort();
    forest.tidy();
    Ok(Attempts::judged(log_ratio, true))
}
