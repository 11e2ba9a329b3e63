//! Moves of single rows (mathematics 8.10, item 6).

use crate::error::Result;
use crate::mcmc::gibbs::choose;
use crate::mcmc::tree_guided::forest::{Forest, Rooted};
use crate::mcmc::trees::{Arena, Evenness, Walk};
use crate::mcmc::{Attempts, ChainState, Turn};

/// Draws a node of a tree, then repeatedly a node below the last one, `depth` times. Returns its position.
pub fn descend(arena: &Arena<'_>, walk: &Walk, depth: usize, evenness: Evenness, turn: &mut Turn<'_>) -> usize {
    let mut position = 0;
    for _ in 0..depth {
        if walk.size(position) == 1 {
            break;
        }
        position += turn.draws.choose(&walk.probabilities(arena, position, true, evenness));
    }
    position
}

/// Returns the probability that [`descend`] in the tree of a cluster, followed by a uniform choice of a row below the
/// node, selects `row`.
pub fn selection(arena: &Arena<'_>, root: u32, row: u32, depth: usize, evenness: Evenness) -> f64 {
    let walk = Walk::new(arena, root);
    let mut position =
        (0..walk.n_nodes()).find(|&position| walk.size(position) == 1 && walk.node(position) == row).unwrap_or(0);
    let mut way = vec![position];
    while position != 0 {
        position = walk.parent(position);
        way.push(position);
    }
    way.reverse();
    // Only nodes on the path from the root to the row lead to it.
    let mut masses = vec![0.0; way.len()];
    masses[0] = 1.0;
    let laws: Vec<Vec<f64>> = way.iter().map(|&position| walk.probabilities(arena, position, true, evenness)).collect();
    for _ in 0..depth {
        let mut next = vec![0.0; way.len()];
        for (from, mass) in masses.iter().enumerate() {
            for to in from..way.len() {
                next[to] += mass * laws[from][way[to] - way[from]];
            }
        }
        masses = next;
    }
    way.iter().zip(masses).map(|(&position, mass)| mass / walk.size(position) as f64).sum()
}

/// Redraws the cluster of one row, which a descent in the tree of a random cluster selects. The probability of
/// selecting it again enters the acceptance ratio. As in a Gibbs step, a row that stays does not count as accepted.
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
    let position = descend(&forest.arena, &walk, depth, evenness, turn);
    let below = walk.rows(position);
    let row = below[turn.draws.pick(below.len())];
    let mut space = Vec::new();
    state.take_out(turn.target, row)?;
    let n_options = state.weigh(turn.target, row, &mut space)?;
    let choice = choose(&mut space, n_options, turn, row)?;
    let is_alone = walk.size(0) == 1;
    let is_new = choice == n_options - 1;
    // The slot of a row that was alone is free now. It is the next one to be opened.
    let back = if is_alone { n_options - 1 } else { source.slot as usize };
    if choice == back {
        state.put_in(turn.target, row, back)?;
        return Ok(Attempts::REFUSED);
    }
    let len = forest.arena.n_nodes();
    let into = forest.clusters.iter().position(|cluster| cluster.slot as usize == choice && !is_new);
    let mut rows = into.map_or_else(Vec::new, |index| forest.arena.rows_below(forest.root(index)));
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
    let mut kept: Vec<Rooted> =
        (0..k).filter(|index| !gone.contains(&Some(*index))).map(|index| forest.clusters[index]).collect();
    kept.extend(left.map(|root| Rooted { slot: source.slot, root }));
    kept.push(Rooted { slot: state.clusters.slot(row), root: joined });
    forest.clusters = kept;
    forest.sort();
    forest.tidy();
    Ok(Attempts::judged(log_ratio, true))
}
