//! The algorithm as Lee & Choi (2015) publish it. Trees persist between moves, the ratio of a merge counts only the way
//! in which it was proposed, and the state chooses the rows of the local move. It does not leave the posterior
//! invariant (mathematics 8.10, item 7), and serves as a stochastic search.

use crate::error::Result;
use crate::mcmc::gibbs::choose;
use crate::mcmc::tree_guided::forest::{Exchange, Forest, Rooted};
use crate::mcmc::tree_guided::local::descend;
use crate::mcmc::tree_guided::subtree::{draw_split, log_apart, log_merge, log_stays, pick};
use crate::mcmc::trees::{Evenness, Walk};
use crate::mcmc::{Attempts, ChainState, Info, Turn};

/// Proposes one global move.
pub fn propose(
    forest: &mut Forest<'_>,
    evenness: Evenness,
    state: &mut ChainState,
    turn: &mut Turn<'_>,
) -> Result<Info> {
    let picked = pick(forest, turn)?;
    let rest: Vec<u32> = picked.rest.iter().map(|&index| forest.root(index)).collect();
    let root = forest.root(picked.cluster);
    let len = forest.arena.n_nodes();
    let name = if picked.merged.is_empty() { "published_split" } else { "published_merge" };
    let (exchange, log_proposals) = if picked.merged.is_empty() {
        if forest.arena.is_leaf(root) {
            return Ok(Info { name, attempts: Attempts::REFUSED });
        }
        let (new, log_cut) = draw_split(&mut forest.arena, root, evenness, turn)?;
        let back = log_merge(&forest.arena, &new, &rest)?;
        (Exchange { old: vec![picked.cluster], new }, back - picked.log_probability - log_cut.iter().sum::<f64>())
    } else {
        let merged: Vec<u32> = picked.merged.iter().map(|&index| forest.root(index)).collect();
        let (top, log_cut) = cascade(forest, root, &merged, evenness)?;
        let back = log_cut - ((rest.len() + 1) as f64).ln() + log_stays(&forest.arena, top, &rest)?;
        let old = [&[picked.cluster][..], &picked.merged].concat();
        (Exchange { old, new: vec![top] }, back - picked.log_probability)
    };
    let log_ratio = forest.log_gain(&exchange) + log_proposals;
    Ok(Info { name, attempts: forest.settle(exchange, log_ratio, len, state, turn)? })
}

/// Joins trees on top of one, one after another. Returns the root and the log probability of the reverse split, nats.
fn cascade(forest: &mut Forest<'_>, root: u32, merged: &[u32], evenness: Evenness) -> Result<(u32, f64)> {
    let arena = &mut forest.arena;
    let lowest = arena.join(root, merged[0])?;
    let (mut top, mut log_probability) = (lowest, 0.0);
    let mut parts = vec![root, merged[0]];
    for &tree in &merged[1..] {
        log_probability += log_apart(arena, tree, &parts)?;
        parts.push(tree);
        top = arena.join(top, tree)?;
    }
    let walk = Walk::new(arena, top);
    let probabilities = walk.probabilities(arena, 0, false, evenness);
    let position = (0..walk.n_nodes()).find(|&position| walk.node(position) == lowest).unwrap_or(0);
    Ok((top, log_probability + probabilities[position].ln()))
}

/// Makes Gibbs steps of the rows below one node of each tree, which a descent draws. Returns the numbers of visits and
/// of moved rows.
pub fn visit(
    forest: &mut Forest<'_>,
    depth: usize,
    evenness: Evenness,
    state: &mut ChainState,
    turn: &mut Turn<'_>,
) -> Result<Info> {
    let mut rows = Vec::new();
    for cluster in &forest.clusters {
        let walk = Walk::new(&forest.arena, cluster.root);
        let position = descend(&forest.arena, &walk, depth, evenness, turn);
        rows.extend_from_slice(walk.rows(position));
    }
    rows.sort_unstable();
    let (n_visits, mut n_moved) = (rows.len(), 0);
    for row in rows {
        turn.cancel.check()?;
        n_moved += u64::from(visit_row(forest, row, state, turn)?);
    }
    Ok(Info::of_draws("published_local", n_visits, n_moved))
}

/// Makes one Gibbs step. A row that moves leaves its tree and is inserted in the other one.
fn visit_row(forest: &mut Forest<'_>, row: u32, state: &mut ChainState, turn: &mut Turn<'_>) -> Result<bool> {
    let from = state.clusters.slot(row);
    let is_alone = state.clusters.size(from) == 1;
    let mut space = Vec::new();
    state.take_out(turn.target, row)?;
    let n_options = state.weigh(turn.target, row, &mut space)?;
    let choice = choose(&mut space, n_options, turn, row)?;
    let is_new = choice == n_options - 1;
    let changed = state.put_in(turn.target, row, choice)?;
    let to = state.clusters.slot(row);
    if to == from || (is_new && is_alone) {
        return Ok(changed);
    }
    let place = |forest: &Forest<'_>, slot| forest.clusters.iter().position(|cluster| cluster.slot == slot);
    let source = place(forest, from).expect("every slot with rows has a tree");
    match forest.without(source, row)? {
        Some(root) => forest.clusters[source].root = root,
        None => {
            forest.clusters.remove(source);
        }
    }
    match place(forest, to) {
        Some(index) => forest.clusters[index].root = forest.arena.insert(forest.root(index), row)?,
        None => forest.clusters.push(Rooted { slot: to, root: row }),
    }
    forest.sort();
    forest.tidy();
    Ok(true)
}
