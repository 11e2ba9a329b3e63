//! Tree-launched moves: a split or merge of two clusters, whose rows are assigned by restricted Gibbs scans that start
//! from a cut of the tree (mathematics 8.10, item 5). Unlike subtree moves, they can merge clusters that interleave.

use crate::error::Result;
use crate::mcmc::pair::TwoClusters;
use crate::mcmc::tree_guided::forest::{Exchange, Forest};
use crate::mcmc::trees::{Arena, Evenness, Walk};
use crate::mcmc::{Attempts, ChainState, Info, Turn};
use crate::special::log_sum_exp;

/// How rows are assigned.
#[derive(Debug, Clone, Copy)]
pub struct Launch {
    /// Number of restricted scans before the last one, whose probability enters the ratio.
    pub scans: usize,
    /// How a node is chosen.
    pub evenness: Evenness,
}

/// Log probabilities that a cluster merges with each of `others`, followed by that of a split, nats.
fn log_partners(arena: &Arena<'_>, cluster: u32, others: &[u32]) -> Result<Vec<f64>> {
    let mut logs = Vec::with_capacity(others.len() + 1);
    for &other in others {
        logs.push(-arena.log_dissimilarity(cluster, other)?);
    }
    logs.push(0.0);
    let total = log_sum_exp(&logs);
    for log in &mut logs {
        *log -= total;
    }
    Ok(logs)
}

/// Log probability of proposing to merge two clusters, whichever is drawn first, where `rest` are the other clusters,
/// nats.
fn log_pair(arena: &Arena<'_>, [a, b]: [u32; 2], rest: &[u32]) -> Result<f64> {
    let with = |first: u32| [&[first][..], rest].concat();
    let ways = [log_partners(arena, a, &with(b))?[0], log_partners(arena, b, &with(a))?[0]];
    Ok(log_sum_exp(&ways) - ((rest.len() + 2) as f64).ln())
}

/// Weights of the nodes by the probability that random anchors below their two children are on different sides. `sides`
/// holds the number of rows of the first side below each node.
fn separating(walk: &Walk, probabilities: &[f64], sides: &[u32]) -> Vec<f64> {
    let weight = |position: usize| {
        if walk.size(position) == 1 {
            return 0.0;
        }
        let [left, right] = walk.children(position);
        let [a, b] = [left, right].map(|child| f64::from(sides[child]));
        let [l, r] = [left, right].map(|child| walk.size(child) as f64);
        probabilities[position] * (a * (r - b) + (l - a) * b) / (l * r)
    };
    (0..walk.n_nodes()).map(weight).collect()
}

/// Returns the rows of a tree without the anchors, ascending, and whether each starts on the second anchor's side. The
/// children of the node are the two sides. Each subtree beside the path to the root joins the side to which it is less
/// dissimilar.
fn launch(arena: &mut Arena<'_>, walk: &Walk, position: usize, anchors: [u32; 2]) -> Result<(Vec<u32>, Vec<u8>)> {
    let len = arena.n_nodes();
    let [mut first, mut second] = walk.children(position).map(|child| walk.node(child));
    for piece in walk.siblings(position) {
        if arena.log_dissimilarity(piece, first)? <= arena.log_dissimilarity(piece, second)? {
            first = arena.insert(first, piece)?;
        } else {
            second = arena.insert(second, piece)?;
        }
    }
    let all = [(first, 0_u8), (second, 1)].map(|(root, side)| (arena.rows_below(root), side));
    arena.cut(len);
    let mut sided: Vec<(u32, u8)> =
        all.into_iter().flat_map(|(rows, side)| rows.into_iter().map(move |row| (row, side))).collect();
    sided.retain(|(row, _)| !anchors.contains(row));
    sided.sort_unstable();
    Ok(sided.into_iter().unzip())
}

/// Returns two clusters after the launch and all scans but the last.
fn scanned(
    forest: &mut Forest<'_>,
    walk: &Walk,
    position: usize,
    anchors: [u32; 2],
    scans: usize,
    turn: &mut Turn<'_>,
) -> Result<(TwoClusters, Vec<u32>)> {
    let (rows, sides) = launch(&mut forest.arena, walk, position, anchors)?;
    let mut pair = TwoClusters::new(turn, anchors, rows.clone())?;
    pair.deal_to(turn, &sides)?;
    for _ in 0..scans {
        pair.scan(turn, forest.process(), None)?;
    }
    Ok((pair, rows))
}

/// Proposes one tree-launched move.
pub fn propose(forest: &mut Forest<'_>, dealing: Launch, state: &mut ChainState, turn: &mut Turn<'_>) -> Result<Info> {
    let k = forest.n_clusters();
    let cluster = turn.draws.pick(k);
    let others: Vec<usize> = (0..k).filter(|&other| other != cluster).collect();
    let roots: Vec<u32> = others.iter().map(|&other| forest.root(other)).collect();
    let partners = log_partners(&forest.arena, forest.root(cluster), &roots)?;
    let weights: Vec<f64> = partners.iter().map(|log| log.exp()).collect();
    let choice = turn.draws.choose(&weights);
    let len = forest.arena.n_nodes();
    if choice < others.len() {
        let (exchange, log_proposals) = merge(forest, [cluster, others[choice]], dealing, state, turn)?;
        return settled("launched_merge", forest, exchange, log_proposals, len, state, turn);
    }
    if forest.arena.is_leaf(forest.root(cluster)) {
        return Ok(Info { name: "launched_split", attempts: Attempts::REFUSED });
    }
    let (new, log_dealt) = split(forest, cluster, dealing, turn)?;
    let forth = partners[others.len()] + log_dealt - (k as f64).ln();
    let back = log_pair(&forest.arena, new, &roots)?;
    let exchange = Exchange { old: vec![cluster], new: new.to_vec() };
    settled("launched_split", forest, exchange, back - forth, len, state, turn)
}

/// Splits a cluster. Returns the trees of both parts, and the log probability of the parts given the cluster, nats.
fn split(forest: &mut Forest<'_>, cluster: usize, dealing: Launch, turn: &mut Turn<'_>) -> Result<([u32; 2], f64)> {
    let walk = Walk::new(&forest.arena, forest.root(cluster));
    let probabilities = walk.probabilities(&forest.arena, 0, false, dealing.evenness);
    let position = turn.draws.choose(&probabilities);
    let anchors = walk.children(position).map(|child| {
        let rows = walk.rows(child);
        rows[turn.draws.pick(rows.len())]
    });
    let (mut pair, _) = scanned(forest, &walk, position, anchors, dealing.scans, turn)?;
    let log_scan = pair.scan(turn, forest.process(), None)?;
    let parts = [0, 1].map(|side| pair.dealt(side).chain([anchors[side]]).collect::<Vec<u32>>());
    let mut is_first = parts[0].clone();
    is_first.sort_unstable();
    let sides = walk.sums(|row| u32::from(is_first.binary_search(&row).is_ok()));
    let log_separating = separating(&walk, &probabilities, &sides).iter().sum::<f64>().ln();
    let [first, second] = parts;
    let new = [forest.draw(first, turn.draws)?, forest.draw(second, turn.draws)?];
    Ok((new, log_separating + log_scan))
}

/// Merges two clusters. Returns the exchange, and the log ratio of the probabilities of the reverse and the forward
/// proposal, nats.
fn merge(
    forest: &mut Forest<'_>,
    places: [usize; 2],
    dealing: Launch,
    state: &ChainState,
    turn: &mut Turn<'_>,
) -> Result<(Exchange, f64)> {
    let rest: Vec<u32> =
        (0..forest.n_clusters()).filter(|index| !places.contains(index)).map(|index| forest.root(index)).collect();
    let roots = places.map(|index| forest.root(index));
    let forth = log_pair(&forest.arena, roots, &rest)?;
    let rows = roots.iter().flat_map(|&root| forest.arena.rows_below(root)).collect();
    let merged = forest.draw(rows, turn.draws)?;
    let walk = Walk::new(&forest.arena, merged);
    let probabilities = walk.probabilities(&forest.arena, 0, false, dealing.evenness);
    let slot = forest.clusters[places[0]].slot;
    let is_first = |row: u32| state.clusters.slot(row) == slot;
    let sides = walk.sums(|row| u32::from(is_first(row)));
    let weights = separating(&walk, &probabilities, &sides);
    let position = turn.draws.choose(&weights);
    let anchors = draw_anchors(&walk, position, &sides, is_first, turn);
    let (mut pair, rows) = scanned(forest, &walk, position, anchors, dealing.scans, turn)?;
    let first_side = is_first(anchors[0]);
    let forced: Vec<u8> = rows.iter().map(|&row| u8::from(is_first(row) != first_side)).collect();
    let log_scan = pair.scan(turn, forest.process(), Some(&forced))?;
    let splits = log_partners(&forest.arena, merged, &rest)?[rest.len()];
    let log_separating = weights.iter().sum::<f64>().ln();
    let back = splits + log_separating + log_scan - ((rest.len() + 1) as f64).ln();
    let mut old = places.to_vec();
    old.sort_unstable();
    Ok((Exchange { old, new: vec![merged] }, back - forth))
}

/// Draws anchors below the children of a node, uniformly among the pairs of rows on different sides.
fn draw_anchors(
    walk: &Walk,
    position: usize,
    sides: &[u32],
    is_first: impl Fn(u32) -> bool,
    turn: &mut Turn<'_>,
) -> [u32; 2] {
    let [left, right] = walk.children(position);
    let [a, b] = [left, right].map(|child| f64::from(sides[child]));
    let [l, r] = [left, right].map(|child| walk.size(child) as f64);
    let left_is_first = turn.draws.choose(&[a * (r - b), (l - a) * b]) == 0;
    [(left, left_is_first), (right, !left_is_first)].map(|(child, first)| {
        let rows: Vec<u32> = walk.rows(child).iter().copied().filter(|&row| is_first(row) == first).collect();
        rows[turn.draws.pick(rows.len())]
    })
}

fn settled(
    name: &'static str,
    forest: &mut Forest<'_>,
    exchange: Exchange,
    log_proposals: f64,
    len: usize,
    state: &mut ChainState,
    turn: &mut Turn<'_>,
) -> Result<Info> {
    let log_ratio = forest.log_gain(&exchange) + log_proposals;
    Ok(Info { name, attempts: forest.settle(exchange, log_ratio, len, state, turn)? })
}
