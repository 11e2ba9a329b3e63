//! The clusters of a chain, each with a tree that is drawn from a law of trees (mathematics 8.10, item 3).

use crate::data::Restrictions;
use crate::error::Result;
use crate::mcmc::trees::{Arena, Walk, grow};
use crate::mcmc::{Attempts, ChainState, Target, Turn};
use crate::process::{Occupancy, ProcessState};
use crate::rng::Draws;

/// The distribution from which the tree of a cluster is drawn. It depends only on the rows of the cluster, and does not
/// change while chains run.
#[derive(Debug)]
pub enum TreeLaw {
    /// The restriction of one tree over all rows.
    Guide(Restrictions),
    /// Rows are inserted in random order, under this state of the process.
    Fresh(ProcessState),
}

/// A cluster.
#[derive(Debug, Clone, Copy)]
pub struct Rooted {
    /// Its slot in the partition.
    pub slot: u32,
    /// The root of its tree.
    pub root: u32,
}

/// The clusters of a partition, each with a tree, in the order of their lowest rows.
pub struct Forest<'a> {
    /// The nodes of all trees, under the current state of the process.
    pub arena: Arena<'a>,
    /// The clusters.
    pub clusters: Vec<Rooted>,
    law: &'a TreeLaw,
    /// The arena in which fresh trees are built.
    nursery: Option<Arena<'a>>,
    process: ProcessState,
}

/// Proposed clusters that replace current ones.
pub struct Exchange {
    /// Positions of the clusters to replace.
    pub old: Vec<usize>,
    /// Roots of the new clusters.
    pub new: Vec<u32>,
}

/// Number of inner nodes above which unused ones are removed. A forest uses fewer than one for each row, so removals
/// take less time than making the nodes. The spare nodes of a few rows must not take much memory.
pub fn most_inner(target: &Target) -> usize {
    3 * target.n_rows() + 1024.min(SPARE / target.empty.len().max(1))
}

/// Maximum size of spare nodes, in 64-bit numbers.
const SPARE: usize = 1 << 20;

impl<'a> Forest<'a> {
    /// Draws a tree for each cluster of a chain.
    pub fn new(target: &'a Target, law: &'a TreeLaw, state: &ChainState, draws: &mut dyn Draws) -> Result<Self> {
        let mut forest = Self::empty(target, law, state);
        // Rows in the order of the guide.
        let in_order: Vec<u32> = match law {
            TreeLaw::Guide(guide) => guide.tree().order().to_vec(),
            TreeLaw::Fresh(_) => (0..target.n_rows() as u32).collect(),
        };
        let mut members: Vec<Vec<u32>> = Vec::new();
        for row in in_order {
            let slot = state.clusters.slot(row) as usize;
            if members.len() <= slot {
                members.resize(slot + 1, Vec::new());
            }
            members[slot].push(row);
        }
        for (slot, rows) in (0..).zip(members).filter(|(_, rows)| !rows.is_empty()) {
            let root = forest.draw_sorted(rows, draws)?;
            forest.clusters.push(Rooted { slot, root });
        }
        forest.sort();
        Ok(forest)
    }

    /// Creates a forest without clusters.
    pub fn empty(target: &'a Target, law: &'a TreeLaw, state: &ChainState) -> Self {
        let nursery = match law {
            TreeLaw::Guide(_) => None,
            TreeLaw::Fresh(process) => Some(Arena::new(target, process)),
        };
        let arena = Arena::new(target, &state.process);
        Self { arena, clusters: Vec::new(), law, nursery, process: state.process }
    }

    /// Sorts the clusters by their lowest rows.
    pub fn sort(&mut self) {
        let arena = &self.arena;
        self.clusters.sort_unstable_by_key(|cluster| arena.node(cluster.root).least);
    }

    /// Draws a tree over these rows.
    pub fn draw(&mut self, mut rows: Vec<u32>, draws: &mut dyn Draws) -> Result<u32> {
        match self.law {
            TreeLaw::Guide(guide) => guide.sort(&mut rows),
            TreeLaw::Fresh(_) => rows.sort_unstable(),
        }
        self.draw_sorted(rows, draws)
    }

    fn draw_sorted(&mut self, mut rows: Vec<u32>, draws: &mut dyn Draws) -> Result<u32> {
        if let TreeLaw::Guide(guide) = self.law {
            return grow(&mut self.arena, &rows, &guide.joins(&rows));
        }
        draws.shuffle(&mut rows);
        let nursery = self.nursery.as_mut().expect("fresh trees have one");
        let mut root = rows[0];
        for &row in &rows[1..] {
            root = nursery.replace(root, row)?;
        }
        let copied = self.arena.copy(nursery, root);
        nursery.cut(nursery.target().n_rows());
        Ok(copied)
    }

    /// Number of clusters.
    pub fn n_clusters(&self) -> usize {
        self.clusters.len()
    }

    /// Root of the cluster at a position.
    pub fn root(&self, index: usize) -> u32 {
        self.clusters[index].root
    }

    /// Log ratio of the posterior probabilities with and without an exchange of clusters, nats.
    pub fn log_gain(&self, exchange: &Exchange) -> f64 {
        let cluster = |root: u32| self.arena.log_weight(root, &self.process);
        let new: f64 = exchange.new.iter().map(|&root| cluster(root)).sum();
        let old: f64 = exchange.old.iter().map(|&index| cluster(self.root(index))).sum();
        let target = self.arena.target();
        let rest = |blocks| target.process.log_rest(Occupancy { units: target.n_rows(), blocks }, &self.process);
        let k = self.n_clusters();
        new - old + rest(k + exchange.new.len() - exchange.old.len()) - rest(k)
    }

    /// Accepts or rejects an exchange of one cluster for several or of several for one. `len` is the size of the arena
    /// before any of the new nodes.
    pub fn settle(
        &mut self,
        exchange: Exchange,
        log_ratio: f64,
        len: usize,
        state: &mut ChainState,
        turn: &mut Turn<'_>,
    ) -> Result<Attempts> {
        if !turn.draws.accept(log_ratio) {
            self.arena.cut(len);
            return Ok(Attempts::judged(log_ratio, false));
        }
        let first = self.clusters[exchange.old[0]].slot;
        let mut slots = vec![first];
        let stay = self.arena.cache(exchange.new[0])?;
        for &index in &exchange.old[1..] {
            state.join(turn.target, first, self.clusters[index].slot, &stay);
        }
        for &root in &exchange.new[1..] {
            let (rows, leave) = (self.arena.rows_below(root), self.arena.cache(root)?);
            slots.push(state.split(turn.target, first, &rows, &stay, &leave));
        }
        let mut gone = exchange.old;
        gone.sort_unstable();
        for &index in gone.iter().rev() {
            self.clusters.remove(index);
        }
        let new = slots.into_iter().zip(exchange.new).map(|(slot, root)| Rooted { slot, root });
        self.clusters.extend(new);
        self.sort();
        self.tidy();
        Ok(Attempts::judged(log_ratio, true))
    }

    /// Returns the tree of a cluster without one of its rows; `None` if the cluster has no other row.
    pub fn without(&mut self, index: usize, row: u32) -> Result<Option<u32>> {
        let walk = Walk::new(&self.arena, self.root(index));
        let Some(leaf) = (0..walk.n_nodes()).find(|&leaf| walk.node(leaf) == row).filter(|&leaf| leaf != 0) else {
            return Ok(None);
        };
        let siblings = walk.siblings(leaf);
        let mut root = siblings[0];
        for &sibling in &siblings[1..] {
            root = self.arena.join(root, sibling)?;
        }
        Ok(Some(root))
    }

    /// The state of the process.
    pub fn process(&self) -> &ProcessState {
        &self.process
    }

    /// Removes unused nodes once there are many.
    pub fn tidy(&mut self) {
        let target = self.arena.target();
        if self.arena.n_nodes() > target.n_rows() + most_inner(target) {
            let mut roots: Vec<u32> = self.clusters.iter().map(|cluster| cluster.root).collect();
            self.arena.keep(&mut roots);
            self.clusters.iter_mut().zip(roots).for_each(|(cluster, root)| cluster.root = root);
        }
    }
}

/// Marks a join in a serialised forest.
const JOIN: u32 = u32::MAX;

impl Forest<'_> {
    /// Serialises the trees as chains store them: each subtree is its left subtree, its right subtree, [`JOIN`]; a leaf
    /// is its row.
    pub fn written(&self) -> Vec<u32> {
        let mut text = Vec::new();
        for cluster in &self.clusters {
            let mut open = vec![(cluster.root, false)];
            while let Some((node, is_done)) = open.pop() {
                match self.arena.children(node).filter(|_| !is_done) {
                    Some([left, right]) => open.extend([(node, true), (right, false), (left, false)]),
                    None => text.push(if is_done { JOIN } else { node }),
                }
            }
        }
        text
    }

    /// Replaces the trees by those that [`Forest::written`] serialised.
    pub fn read(&mut self, text: &[u32], state: &ChainState) -> Result<()> {
        let mut open = Vec::new();
        for &item in text {
            match item {
                JOIN => {
                    if let (Some(b), Some(a)) = (open.pop(), open.pop()) {
                        open.push(self.arena.join(a, b)?);
                    }
                }
                row => open.push(row),
            }
        }
        let slot = |root: u32| state.clusters.slot(self.arena.node(root).least);
        self.clusters = open.into_iter().map(|root| Rooted { slot: slot(root), root }).collect();
        self.sort();
        Ok(())
    }
}

/// Whether a text is a forest over the clusters given by `slots`, one slot per row. Files are not trusted.
pub fn is_forest(text: &[u32], slots: &[u32]) -> bool {
    let mut open: Vec<u32> = Vec::new();
    let mut seen = vec![false; slots.len()];
    for &item in text {
        if item == JOIN {
            match (open.pop(), open.pop()) {
                (Some(b), Some(a)) if a == b => open.push(a),
                _ => return false,
            }
        } else {
            match seen.get_mut(item as usize) {
                Some(seen) if !*seen => *seen = true,
                _ => return false,
            }
            open.push(slots[item as usize]);
        }
    }
    open.sort_unstable();
    let n_trees = open.len();
    open.dedup();
    n_trees == open.len() && seen.iter().all(|seen| *seen)
}
