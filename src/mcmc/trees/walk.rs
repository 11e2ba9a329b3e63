//! One tree laid out in a row, and the choice of one of its nodes (mathematics 8.10, item 1).

use crate::mcmc::trees::arena::Arena;
use crate::registry::{DefaultValue, Parameter, ParameterKind};

/// The constant added to every dissimilarity when a node is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evenness {
    /// The largest dissimilarity: no node is more than twice as probable as another.
    Max,
    /// The largest dissimilarity over the number of nodes: nodes in doubt are preferred.
    MaxOverNodes,
}

impl Evenness {
    /// How users choose it.
    pub const PARAMETER: Parameter =
        Parameter::new("evenness", ParameterKind::Word(&["max", "max/n"]), DefaultValue::Word("max"));

    /// By its word.
    pub fn from_word(word: &str) -> Self {
        if word == "max/n" { Self::MaxOverNodes } else { Self::Max }
    }
}

/// The nodes of one tree, parents before children, from left to right. The nodes of a subtree are side by side.
#[derive(Debug)]
pub struct Walk {
    nodes: Vec<u32>,
    /// Place of the parent of each; of the root its own.
    parents: Vec<u32>,
    /// Rows below each.
    sizes: Vec<u32>,
    /// Rows to the left of each.
    before: Vec<u32>,
    /// Rows from left to right.
    rows: Vec<u32>,
}

impl Walk {
    /// Of the tree below a node.
    pub fn new(arena: &Arena<'_>, root: u32) -> Self {
        let size = arena.node(root).size as usize;
        let room = || Vec::with_capacity(2 * size - 1);
        let (mut nodes, mut parents, mut sizes, mut before) = (room(), room(), room(), room());
        let mut rows = Vec::with_capacity(size);
        let mut open = vec![(root, 0)];
        while let Some((node, parent)) = open.pop() {
            let at = nodes.len() as u32;
            nodes.push(node);
            parents.push(parent);
            sizes.push(arena.node(node).size);
            before.push(rows.len() as u32);
            match arena.children(node) {
                Some([left, right]) => open.extend([(right, at), (left, at)]),
                None => rows.push(node),
            }
        }
        Self { nodes, parents, sizes, before, rows }
    }

    /// The node at a place; the root is at place 0.
    pub fn node(&self, at: usize) -> u32 {
        self.nodes[at]
    }

    /// Number of nodes.
    pub fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Places of the children of an inner node.
    pub fn children(&self, at: usize) -> [usize; 2] {
        [at + 1, at + 2 * self.sizes[at + 1] as usize]
    }

    /// Place of the parent.
    pub fn parent(&self, at: usize) -> usize {
        self.parents[at] as usize
    }

    /// Number of rows below a node.
    pub fn size(&self, at: usize) -> usize {
        self.sizes[at] as usize
    }

    /// The rows below a node, from left to right.
    pub fn rows(&self, at: usize) -> &[u32] {
        &self.rows[self.before[at] as usize..][..self.size(at)]
    }

    /// Nodes beside the way from a place up to the root, the lowest first.
    pub fn siblings(&self, mut at: usize) -> Vec<u32> {
        let mut found = Vec::new();
        while at != 0 {
            let parent = self.parent(at);
            let [left, right] = self.children(parent);
            found.push(self.nodes[if at == left { right } else { left }]);
            at = parent;
        }
        found
    }

    /// Sums over the rows below each node of the value of `of_row`.
    pub fn sums(&self, of_row: impl Fn(u32) -> u32) -> Vec<u32> {
        let mut sums = vec![0; self.n_nodes()];
        for at in (0..self.n_nodes()).rev() {
            if self.sizes[at] == 1 {
                sums[at] = of_row(self.nodes[at]);
            } else {
                let [left, right] = self.children(at);
                sums[at] = sums[left] + sums[right];
            }
        }
        sums
    }

    /// The probability of each node of the subtree at `top` to be chosen, by its dissimilarity d plus epsilon; those of
    /// leaves are zero unless `leaves` may be chosen. A subtree that is a leaf is chosen itself.
    pub fn probabilities(&self, arena: &Arena<'_>, top: usize, leaves: bool, evenness: Evenness) -> Vec<f64> {
        if self.sizes[top] == 1 {
            return vec![1.0];
        }
        let range = top..top + 2 * self.size(top) - 1;
        let log_d = |at: usize| arena.node(self.nodes[at]).log_dissimilarity;
        let most = range.clone().map(log_d).fold(f64::NEG_INFINITY, f64::max);
        let n_nodes = if leaves { range.len() } else { self.size(top) - 1 };
        let epsilon = if evenness == Evenness::Max { 1.0 } else { (n_nodes as f64).recip() };
        let weight = |at: usize| {
            if self.sizes[at] > 1 {
                (log_d(at) - most).exp() + epsilon
            } else if leaves {
                epsilon
            } else {
                0.0
            }
        };
        let mut weights: Vec<f64> = range.map(weight).collect();
        let total: f64 = weights.iter().sum();
        for weight in &mut weights {
            *weight /= total;
        }
        weights
    }
}
