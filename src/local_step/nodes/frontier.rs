//! The tree of a batch and its frontier: the nodes that are its units.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::data::{Halves, KdTree, NodeCut, Nodes, RowUnits, TreeNode};
use crate::likelihood::Likelihood;
use crate::local_step::nodes::build::{self, NodeForm};
use crate::parallel::map;
use crate::rng::{Purpose, key};
use crate::simd::Scalar;

/// Number of rows that represent a node when it is judged or copied.
pub const STANDING: usize = 32;
/// Number of values of a node besides its statistics.
const OTHERS: usize = 4;

/// How trees are built.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TreeOptions {
    /// Number of levels opened at the start.
    pub depth: usize,
    /// How nodes are cut.
    pub cut: NodeCut,
}

/// The nodes that are units: the memory of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Frontier {
    /// The nodes that begin at these positions, ascending from 0.
    Nodes(Vec<u32>),
    /// Every row.
    Rows,
}

/// The tree of a batch with the statistics of its frontier.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchTree {
    tree: KdTree,
    /// Position at which each node begins.
    starts: Vec<u32>,
    nodes: Nodes,
    /// Nodes that are new since they were last judged.
    fresh: Vec<bool>,
    /// Children of nodes that are not open yet, by the position at which the node begins.
    ahead: BTreeMap<u32, Children>,
    cut: NodeCut,
    /// Nodes with fewer rows are opened to single rows.
    least: usize,
}

/// The children of a node.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Children {
    halves: Halves,
    /// Position at which each child begins, relative to the parent.
    starts: Vec<u32>,
    pub nodes: Vec<TreeNode>,
}

impl BatchTree {
    /// Builds the tree of a batch with the first frontier.
    pub fn new<F: Scalar>(likelihood: &dyn Likelihood<F>, rows: &RowUnits<'_, F>, options: TreeOptions) -> Self {
        let mut tree = Self::root(likelihood, rows.len(), options);
        for _ in 0..options.depth {
            let level: Vec<usize> = (0..tree.starts.len()).filter(|&node| tree.range(node).len() > 1).collect();
            if level.is_empty() {
                break;
            }
            tree.cut_nodes(rows, &level);
        }
        tree.fill(likelihood, rows);
        tree
    }

    /// Builds the tree whose nodes begin at these positions; `None` if no sequence of openings leads to them.
    pub fn of_frontier<F: Scalar>(
        likelihood: &dyn Likelihood<F>,
        rows: &RowUnits<'_, F>,
        options: TreeOptions,
        starts: &[u32],
    ) -> Option<Self> {
        let mut tree = Self::root(likelihood, rows.len(), options);
        let is_sound = starts.first() == Some(&0) && starts.is_sorted_by(|a, b| a < b);
        if !is_sound || starts.last().is_some_and(|&last| last as usize >= rows.len()) {
            return None;
        }
        loop {
            let inside = |node: &usize| {
                let Range { start, end } = tree.range(*node);
                let next = starts.partition_point(|&other| other as usize <= start);
                starts.get(next).is_some_and(|&other| (other as usize) < end)
            };
            let open: Vec<usize> = (0..tree.starts.len()).filter(inside).collect();
            if open.is_empty() {
                break;
            }
            tree.cut_nodes(rows, &open);
        }
        // Every node that was cut has a position of the list inside.
        (tree.starts == starts).then(|| {
            tree.fill(likelihood, rows);
            tree
        })
    }

    fn root<F: Scalar>(likelihood: &dyn Likelihood<F>, n: usize, options: TreeOptions) -> Self {
        let form = NodeForm::of(likelihood);
        let row = form.width + OTHERS;
        Self {
            tree: KdTree::new(n),
            starts: vec![0],
            nodes: Nodes::new(form.width, form.squares.len()),
            fresh: vec![true],
            ahead: BTreeMap::new(),
            cut: options.cut,
            least: 2 * (row + form.squares.len()).div_ceil(row),
        }
    }

    /// Positions of a node's rows in the order of the tree.
    fn range(&self, node: usize) -> Range<usize> {
        let end = self.starts.get(node + 1).map_or(self.tree.n_rows(), |&end| end as usize);
        self.starts[node] as usize..end
    }

    /// The rows of a node, ascending.
    pub fn rows_below(&self, node: usize) -> &[u32] {
        self.tree.rows(self.range(node))
    }

    /// Cuts listed nodes, ascending, without computing their statistics.
    fn cut_nodes<F: Scalar>(&mut self, rows: &RowUnits<'_, F>, list: &[usize]) {
        let tree = &*self;
        let cut = map(list.len(), |index| tree.halved(rows, list[index]));
        let mut next = cut.iter().zip(list).peekable();
        let mut starts = Vec::with_capacity(self.starts.len() + list.len());
        for (node, &start) in self.starts.iter().enumerate() {
            match next.next_if(|(_, cut_node)| **cut_node == node) {
                None => starts.push(start),
                Some(((halves, child_starts), _)) => {
                    self.tree.open(start as usize, halves);
                    starts.extend(child_starts.iter().map(|place| start + place));
                }
            }
        }
        self.starts = starts;
    }

    /// Returns the rows of the children of a node, and the position at which each child begins.
    fn halved<F: Scalar>(&self, rows: &RowUnits<'_, F>, node: usize) -> (Halves, Vec<u32>) {
        let range = self.range(node);
        if range.len() < self.least {
            let list = self.tree.rows(range);
            let (rows, n) = (list.to_vec(), list.len());
            return (Halves { rows, n_left: 1 }, (0..n as u32).collect());
        }
        let halves = self.tree.halves(range, rows, self.cut);
        let starts = vec![0, halves.n_left as u32];
        (halves, starts)
    }

    /// Computes the statistics of all nodes.
    fn fill<F: Scalar>(&mut self, likelihood: &dyn Likelihood<F>, rows: &RowUnits<'_, F>) {
        let lists: Vec<&[u32]> = (0..self.starts.len()).map(|node| self.tree.rows(self.range(node))).collect();
        let mut nodes = Nodes::new(self.nodes.width(), self.nodes.spread_width());
        for node in &build::nodes(likelihood, rows, &lists) {
            nodes.push(node);
        }
        self.nodes = nodes;
        self.fresh = vec![true; self.starts.len()];
    }

    /// Opens listed nodes, ascending.
    pub fn open<F: Scalar>(&mut self, likelihood: &dyn Likelihood<F>, rows: &RowUnits<'_, F>, list: &[usize]) {
        self.look_ahead(likelihood, rows, list);
        let (mut starts, mut fresh) = (Vec::new(), Vec::new());
        let mut nodes = Nodes::new(self.nodes.width(), self.nodes.spread_width());
        let mut next = list.iter().peekable();
        for (node, &start) in self.starts.iter().enumerate() {
            let opened = next.next_if(|opened_node| **opened_node == node).and_then(|_| self.ahead.remove(&start));
            match opened {
                None => {
                    starts.push(start);
                    fresh.push(self.fresh[node]);
                    nodes.push_from(&self.nodes, node);
                }
                Some(children) => {
                    self.tree.open(start as usize, &children.halves);
                    starts.extend(children.starts.iter().map(|place| start + place));
                    children.nodes.iter().for_each(|node| nodes.push(node));
                    fresh.resize(starts.len(), true);
                }
            }
        }
        (self.starts, self.fresh, self.nodes) = (starts, fresh, nodes);
    }

    /// Computes the children of listed nodes before they are opened.
    pub(super) fn look_ahead<F: Scalar>(
        &mut self,
        likelihood: &dyn Likelihood<F>,
        rows: &RowUnits<'_, F>,
        list: &[usize],
    ) {
        let new: Vec<usize> =
            list.iter().copied().filter(|&node| !self.ahead.contains_key(&self.starts[node])).collect();
        let tree = &*self;
        let cut = map(new.len(), |index| tree.halved(rows, new[index]));
        let ends = |(halves, starts): &(Halves, Vec<u32>)| {
            let ends = starts.iter().skip(1).copied().chain([halves.rows.len() as u32]);
            starts.iter().copied().zip(ends).collect::<Vec<_>>()
        };
        let ranges: Vec<Vec<(u32, u32)>> = cut.iter().map(ends).collect();
        let lists: Vec<&[u32]> = cut
            .iter()
            .zip(&ranges)
            .flat_map(|((halves, _), ranges)| ranges.iter().map(|&(from, to)| &halves.rows[from as usize..to as usize]))
            .collect();
        let mut nodes = build::nodes(likelihood, rows, &lists).into_iter();
        for (&node, (halves, starts)) in new.iter().zip(cut) {
            let nodes = nodes.by_ref().take(starts.len()).collect();
            self.ahead.insert(self.starts[node], Children { halves, starts, nodes });
        }
    }

    /// The children of a node, if they have been computed.
    pub(super) fn children(&self, node: usize) -> Option<&Children> {
        self.ahead.get(&self.starts[node])
    }

    /// Number of units that opening a node adds.
    pub(super) fn n_more(&self, node: usize) -> usize {
        let n = self.range(node).len();
        if n < self.least { n - 1 } else { 1 }
    }

    /// The nodes of the frontier.
    pub fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// Position at which each node of the frontier begins.
    pub fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// Returns the nodes of more than one row. With `fresh`, only nodes that are new since the last call.
    pub(super) fn next_to_judge(&mut self, fresh: bool) -> Vec<usize> {
        let is_asked = |node: &usize| self.range(*node).len() > 1 && (self.fresh[*node] || !fresh);
        let list = (0..self.starts.len()).filter(is_asked).collect();
        self.fresh.fill(false);
        list
    }

    /// Returns at most `n_rows` rows of a node: one from each of `n_rows` equal parts, chosen by the seed, or all.
    pub fn rows_of(&self, node: usize, seed: u64, n_rows: usize) -> Vec<u32> {
        let rows = self.tree.rows(self.range(node));
        if rows.len() <= n_rows {
            return rows.to_vec();
        }
        let (n, n_parts) = (rows.len() as u64, n_rows as u64);
        let start = u64::from(self.starts[node]);
        (0..n_parts)
            .map(|part| {
                let (from, to) = (part * n / n_parts, (part + 1) * n / n_parts);
                rows[(from + key(seed, [Purpose::Nodes as u64, start, n, part]) % (to - from)) as usize]
            })
            .collect()
    }

    /// Memory held, in bytes.
    pub fn bytes(&self) -> usize {
        let ahead = |children: &Children| {
            4 * (children.halves.rows.len() + children.starts.len())
                + children.nodes.iter().map(|node| 8 * (node.mean.len() + node.spread.len() + OTHERS)).sum::<usize>()
        };
        4 * (self.tree.n_rows() + self.starts.capacity())
            + self.fresh.capacity()
            + self.nodes.bytes()
            + self.ahead.values().map(ahead).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::DenseRows;
    use crate::likelihood::{Frame, build};
    use crate::parameters::{Parameters, Value, table, vector};

    /// A budget is spent on what openings say that they add. Nodes of few rows are opened to single rows at once.
    #[test]
    fn a_node_adds_as_many_units_as_it_says() {
        const D: usize = 5;
        let values: Vec<f64> = (0..D * 60).map(|index| (index as f64 * 0.37).sin() * (1 + index % 7) as f64).collect();
        let table_rows = DenseRows::new(&values[..], D);
        let rows = RowUnits::all(&table_rows, None);
        let scale = (0..D * D).map(|index| if index % (D + 1) == 0 { 1.0 } else { 0.0 }).collect();
        let parameters = Parameters::from_pairs([
            ("mean", vector(vec![0.0; D])),
            ("mean_precision", Value::Number(0.5)),
            ("dof", Value::Number(D as f64 + 2.0)),
            ("scale", table(D, scale)),
        ]);
        let frame = Frame { origin: vec![0.0; D], ..Frame::default() };
        let likelihood = build::<f64>("Gaussian", &parameters, frame).expect("complete");
        let options = TreeOptions { depth: 2, cut: NodeCut::Axis };
        let mut tree = BatchTree::new(likelihood.as_ref(), &rows, options);
        let mut largest = 0;
        while let Some(node) = (0..tree.starts.len()).find(|&node| tree.range(node).len() > 1) {
            let (before, n_more) = (tree.starts.len(), tree.n_more(node));
            tree.open(likelihood.as_ref(), &rows, &[node]);
            assert_eq!(tree.starts.len(), before + n_more);
            assert_eq!(tree.nodes().len(), before + n_more);
            largest = largest.max(n_more);
        }
        assert_eq!((tree.starts.len(), largest > 1), (60, true));
    }
}
