//! Subtree moves: a cluster is split along its tree, or merged with any number of others (mathematics 8.10, item 4).

use crate::error::Result;
use crate::mcmc::tree_guided::forest::{Exchange, Forest};
use crate::mcmc::trees::{Arena, Evenness, Walk, softplus};
use crate::mcmc::{Attempts, ChainState, Info, Turn};
use crate::special::log_sum_exp;

/// A drawn cluster, the clusters that would merge with it, and all other clusters, by position.
pub struct Picked {
    pub cluster: usize,
    pub merged: Vec<usize>,
    pub rest: Vec<usize>,
    /// Log probability of this choice, nats.
    pub log_probability: f64,
}

/// Draws a cluster. Each other cluster joins the proposal with the probability that both are one cluster.
pub fn pick(forest: &Forest<'_>, turn: &mut Turn<'_>) -> Result<Picked> {
    let k = forest.n_clusters();
    let cluster = turn.draws.pick(k);
    let mut picked = Picked { cluster, merged: Vec::new(), rest: Vec::new(), log_probability: -(k as f64).ln() };
    for other in (0..k).filter(|&other| other != cluster) {
        let log_d = forest.arena.log_dissimilarity(forest.root(cluster), forest.root(other))?;
        let log_merges = -softplus(log_d);
        if turn.draws.choose(&[log_merges.exp(), -log_merges.exp_m1()]) == 0 {
            picked.merged.push(other);
            picked.log_probability += log_merges;
        } else {
            picked.rest.push(other);
            picked.log_probability += log_d + log_merges;
        }
    }
    Ok(picked)
}

/// Log probability of proposing to merge exactly `merged`, where `rest` are the other clusters: a sum over the cluster
/// that is drawn first, nats.
pub fn log_merge(arena: &Arena<'_>, merged: &[u32], rest: &[u32]) -> Result<f64> {
    let mut terms = Vec::with_capacity(merged.len());
    for &first in merged {
        let mut term = log_stays(arena, first, rest)?;
        for &other in merged.iter().filter(|&&other| other != first) {
            term -= softplus(arena.log_dissimilarity(first, other)?);
        }
        terms.push(term);
    }
    Ok(log_sum_exp(&terms) - ((merged.len() + rest.len()) as f64).ln())
}

/// Log probability that a drawn cluster merges with none of `rest`, nats.
pub fn log_stays(arena: &Arena<'_>, cluster: u32, rest: &[u32]) -> Result<f64> {
    let mut sum = 0.0;
    for &other in rest {
        let log_d = arena.log_dissimilarity(cluster, other)?;
        sum += log_d - softplus(log_d);
    }
    Ok(sum)
}

/// Log probabilities of inserting a subtree into each of the parts, followed by that of making it a new part, nats.
fn log_insertions(arena: &Arena<'_>, subtree: u32, parts: &[u32]) -> Result<Vec<f64>> {
    let mut logs = Vec::with_capacity(parts.len() + 1);
    for &part in parts {
        logs.push(-arena.log_dissimilarity(subtree, part)?);
    }
    logs.push(0.0);
    let total = log_sum_exp(&logs);
    for log in &mut logs {
        *log -= total;
    }
    Ok(logs)
}

/// Log probability that a subtree becomes a new part, given the current parts, nats.
pub fn log_apart(arena: &Arena<'_>, subtree: u32, parts: &[u32]) -> Result<f64> {
    Ok(log_insertions(arena, subtree, parts)?[parts.len()])
}

/// Inserts a subtree into the part with this index, or makes it a new part.
fn give(arena: &mut Arena<'_>, subtree: u32, parts: &mut Vec<u32>, number: usize) -> Result<()> {
    if number == parts.len() {
        parts.push(subtree);
    } else {
        parts[number] = arena.insert(parts[number], subtree)?;
    }
    Ok(())
}

/// Cuts a tree of at least two rows at a random node, and assigns each subtree beside the path to the root to a part.
/// Returns the trees of the parts and the log probabilities of the node and of all insertions, nats.
pub fn draw_split(
    arena: &mut Arena<'_>,
    root: u32,
    evenness: Evenness,
    turn: &mut Turn<'_>,
) -> Result<(Vec<u32>, [f64; 2])> {
    let walk = Walk::new(arena, root);
    let probabilities = walk.probabilities(arena, 0, false, evenness);
    let position = turn.draws.choose(&probabilities);
    let mut log_inserted = 0.0;
    let mut parts = walk.children(position).map(|child| walk.node(child)).to_vec();
    for subtree in walk.siblings(position) {
        let logs = log_insertions(arena, subtree, &parts)?;
        let weights: Vec<f64> = logs.iter().map(|log| log.exp()).collect();
        let number = turn.draws.choose(&weights);
        log_inserted += logs[number];
        give(arena, subtree, &mut parts, number)?;
    }
    Ok((parts, [probabilities[position].ln(), log_inserted]))
}

/// Log probabilities of an impossible split.
const IMPOSSIBLE: [f64; 2] = [f64::NEG_INFINITY; 2];

/// The part of each node of a walk; `None` if its rows are in several parts.
fn owners(walk: &Walk, owner: impl Fn(u32) -> u32) -> Vec<Option<u32>> {
    let mut owners = vec![None; walk.n_nodes()];
    for position in (0..walk.n_nodes()).rev() {
        owners[position] = if walk.size(position) == 1 {
            Some(owner(walk.node(position)))
        } else {
            let [left, right] = walk.children(position);
            owners[left].filter(|_| owners[left] == owners[right])
        };
    }
    owners
}

/// Log probabilities that [`draw_split`] makes the parts given by `owner`, in the same form; minus infinity if it
/// cannot. Only one cut can make them, and it determines all insertions. Adds nodes to the arena.
pub fn log_split(arena: &mut Arena<'_>, root: u32, evenness: Evenness, owner: impl Fn(u32) -> u32) -> Result<[f64; 2]> {
    let walk = Walk::new(arena, root);
    let owners = owners(&walk, owner);
    let (mut position, mut above) = (0, Vec::new());
    let ends = loop {
        if walk.size(position) == 1 {
            return Ok(IMPOSSIBLE);
        }
        let [left, right] = walk.children(position);
        let (next, pure) = match (owners[left], owners[right]) {
            (Some(a), Some(b)) if a != b => break [left, right],
            (Some(_), None) => (right, left),
            (None, Some(_)) => (left, right),
            _ => return Ok(IMPOSSIBLE),
        };
        position = next;
        above.push(pure);
    };
    let log_node = walk.probabilities(arena, 0, false, evenness)[position].ln();
    let mut log_inserted = 0.0;
    let mut parts = ends.map(|end| walk.node(end)).to_vec();
    let mut names = ends.map(|end| owners[end]).to_vec();
    for &piece in above.iter().rev() {
        let number = names.iter().position(|name| *name == owners[piece]).unwrap_or(parts.len());
        log_inserted += log_insertions(arena, walk.node(piece), &parts)?[number];
        if number == parts.len() {
            names.push(owners[piece]);
        }
        give(arena, walk.node(piece), &mut parts, number)?;
    }
    Ok([log_node, log_inserted])
}

/// Proposes one subtree move.
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
    let (name, exchange, log_proposals) = if picked.merged.is_empty() {
        if forest.arena.is_leaf(root) {
            return Ok(Info { name: "subtree_split", attempts: Attempts::REFUSED });
        }
        let (parts, log_cut) = draw_split(&mut forest.arena, root, evenness, turn)?;
        let rows: Vec<Vec<u32>> = parts.iter().map(|&part| forest.arena.rows_below(part)).collect();
        forest.arena.cut(len);
        let new = rows.into_iter().map(|rows| forest.draw(rows, turn.draws)).collect::<Result<Vec<u32>>>()?;
        let back = log_merge(&forest.arena, &new, &rest)?;
        (
            "subtree_split",
            Exchange { old: vec![picked.cluster], new },
            back - picked.log_probability - log_cut.iter().sum::<f64>(),
        )
    } else {
        let mut old = [&[picked.cluster][..], &picked.merged].concat();
        old.sort_unstable();
        let roots: Vec<u32> = old.iter().map(|&index| forest.root(index)).collect();
        let rows = roots.iter().flat_map(|&root| forest.arena.rows_below(root)).collect();
        let merged = forest.draw(rows, turn.draws)?;
        let forth = log_merge(&forest.arena, &roots, &rest)?;
        let kept = forest.arena.n_nodes();
        let cut = log_split(&mut forest.arena, merged, evenness, |row| state.clusters.slot(row))?;
        forest.arena.cut(kept);
        let drawn = -((rest.len() + 1) as f64).ln() + log_stays(&forest.arena, merged, &rest)?;
        ("subtree_merge", Exchange { old, new: vec![merged] }, drawn + cut.iter().sum::<f64>() - forth)
    };
    let log_ratio = forest.log_gain(&exchange) + log_proposals;
    Ok(Info { name, attempts: forest.settle(exchange, log_ratio, len, state, turn)? })
}
