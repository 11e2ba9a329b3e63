//! One tree as an array, and the choice of one of its nodes (mathematics 8.10, item 1).

use crate::mcmc::trees::arena::Arena;
use crate::registry::{DefaultValue, Parameter, ParameterKind};

/// The constant added to every dissimilarity when a node is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evenness {
    /// The largest dissimilarity: no node is more than twice as probable as any other.
    Max,
    /// The largest dissimilarity over the number of nodes: nodes with large dissimilarities are preferred.
    MaxOverNodes,
}

impl Evenness {
    /// The parameter of the samplers that have this choice.
    pub const PARAMETER: Parameter =
        Parameter::new("evenness", ParameterKind::Word(&["max", "max/n"]), DefaultValue::Word("max"));

    /// Returns the variant that a word names.
    pub fn from_word(word: &str) -> Self {
        if word == "max/n" { Self::MaxOverNodes } else { Self::Max }
    }
}

/// The nodes of one tree, parents before children, from left to right. The nodes of a subtree are consecutive.
#[derive(Debug)]
pub struct Walk {
    nodes: Vec<u32>,
    /// Position of the parent of each node; the root is its own parent.
    parents: Vec<u32>,
    /// Number of rows below each node.
    sizes: Vec<u32>,
    /// Number of rows to the left of each node.
    before: Vec<u32>,
    /// The rows from left to right.
    rows: Vec<u32>,
}

impl Walk {
    /// Lays out the tree below a node.
    pub fn new(arena: &Arena<'_>, root: u32) -> Self {
        let size = arena.node(root).size as usize;
        let room = || Vec::with_capacity(2 * size - 1);
        let (mut nodes, mut parents, mut sizes, mut before) = (room(), room(), room(), room());
        let mut rows = Vec::with_capacity(size);
        let mut open = vec![(root, 0)];
        while let Some((node, parent)) = open.pop() {
            let position = nodes.len() as u32;
            nodes.push(node);
            parents.push(parent);
            sizes.push(arena.node(node).size);
            before.push(rows.len() as u32);
            match arena.children(node) {
                Some([left, right]) => open.extend([(right, position), (left, position)]),
                None => rows.push(node),
            }
        }
        Self { nodes, parents, sizes, before, rows }
    }

    /// The node at a position; the root is at position 0.
    pub fn node(&self, position: usize) -> u32 {
        self.nodes[position]
    }

    /// Number of nodes.
    pub fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Positions of the children of an inner node.
    pub fn children(&self, position: usize) -> [usize; 2] {
        [position + 1, position + 2 * self.sizes[position + 1] as usize]
    }

    /// Position of the parent.
    pub fn parent(&self, position: usize) -> usize {
        self.parents[position] as usize
    }

    /// Number of rows below a node.
    pub fn size(&self, position: usize) -> usize {
        self.sizes[position] as usize
    }

    /// The rows below a node, from left to right.
    pub fn rows(&self, position: usize) -> &[u32] {
        &self.rows[self.before[position] as usize..][..self.size(position)]
    }

    /// Siblings of the nodes on the path from a position up to the root, the lowest first.
    pub fn siblings(&self, mut position: usize) -> Vec<u32> {
        let mut found = Vec::new();
        while position != 0 {
            let parent = self.parent(position);
            let [left, right] = self.children(parent);
            found.push(self.nodes[if position == left { right } else { left }]);
            position = parent;
        }
        found
    }

    /// Sums of `of_row` over the rows below each node.
    pub fn sums(&self, of_row: impl Fn(u32) -> u32) -> Vec<u32> {
        let mut sums = vec![0; self.n_nodes()];
        for position in (0..self.n_nodes()).rev() {
            if self.sizes[position] == 1 {
                sums[position] = of_row(self.nodes[position]);
            } else {
                let [left, right] = self.children(position);
                sums[position] = sums[left] + sums[right];
            }
        }
        sums
    }

    /// Probability of choosing each node of the subtree at `top`, proportional to its dissimilarity d plus epsilon.
    /// Leaves have probability zero unless `leaves` may be chosen. A subtree that is a leaf is chosen itself.
    pub fn probabilities(&self, arena: &Arena<'_>, top: usize, leaves: bool, evenness: Evenness) -> Vec<f64> {
        if self.sizes[top] == 1 {
            return vec![1.0];
        }
        let range = top..top + 2 * self.size(top) - 1;
        let log_d = |position: usize| arena.node(self.nodes[position]).log_dissimilarity;
        let most = range.clone().map(log_d).fold(f64::NEG_INFINITY, f64::max);
        let n_nodes = if leaves { range.len() } else { self.size(top) - 1 };
        let epsilon = if evenness == Evenness::Max { 1.0 } else { (n_nodes as f64).recip() };
        let weight = |position: usize| {
            if self.sizes[position] > 1 {
                (log_d(position) - most).exp() + epsilon
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
