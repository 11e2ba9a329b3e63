//! Nodes of binary trees over rows, with the statistics of the clusters below them and their potentials.

use std::collections::HashMap;

use crate::error::{Error, Result};
use crate::mcmc::Target;
use crate::process::{Occupancy, ProcessState};
use crate::room::check_room;

/// Marks the absence of a node.
const NONE: u32 = u32::MAX;

/// A node. All values but the shape are in nats.
#[derive(Debug, Clone, Copy)]
pub struct Node {
    children: [u32; 2],
    /// Number of rows below.
    pub size: u32,
    /// The lowest row below.
    pub least: u32,
    /// Log marginal likelihood of the rows, ln m.
    pub log_marginal: f64,
    /// Log weight of the rows as one cluster, ln h.
    pub log_cluster: f64,
    /// Log potential, ln phi: the log sum, over all tree-consistent partitions, of the products of their h.
    pub log_potential: f64,
    /// Log dissimilarity of the children, ln d; minus infinity for a leaf.
    pub log_dissimilarity: f64,
}

/// Nodes of trees over the rows of one target, under one state of its process. Nodes never change, so trees can share
/// them: changing a tree makes new nodes along a path. Node `i < n` is the leaf of row `i`.
///
/// h(c) is m(c) times the process's factor of a block. It also contains the change that a second block makes to the
/// remaining factor of the partition's probability. For Dirichlet processes, and for random measures given u, that
/// change is zero, and potentials are exactly those of mathematics 8.9. For other processes h only guides proposals:
/// samplers use the exact probabilities of partitions.
#[derive(Debug, Clone)]
pub struct Arena<'a> {
    target: &'a Target,
    /// Log factor of a block, by size.
    blocks: Vec<f64>,
    nodes: Vec<Node>,
    /// Caches of the inner nodes.
    caches: Vec<f64>,
    /// Unused inner nodes.
    free: Vec<u32>,
    /// Space for a cache.
    spare: Vec<f64>,
}

impl<'a> Arena<'a> {
    /// Creates the leaves of all rows.
    pub fn new(target: &'a Target, process: &ProcessState) -> Self {
        let blocks = block_factors(target, process);
        let leaf = |(row, &single): (usize, &f64)| Node {
            children: [NONE; 2],
            size: 1,
            least: row as u32,
            log_marginal: single,
            log_cluster: blocks[1] + single,
            log_potential: blocks[1] + single,
            log_dissimilarity: f64::NEG_INFINITY,
        };
        let nodes = target.singles.iter().enumerate().map(leaf).collect();
        Self { target, blocks, nodes, caches: Vec::new(), free: Vec::new(), spare: Vec::new() }
    }

    /// Creates the leaves of all rows and reserves memory for trees over them.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for `argument` if memory does not suffice; `allowed` completes the message.
    pub fn with_room(
        target: &'a Target,
        process: &ProcessState,
        argument: &'static str,
        allowed: &'static str,
    ) -> Result<Self> {
        let mut arena = Self::new(target, process);
        let n = target.n_rows();
        let size = n.saturating_mul(target.empty.len());
        check_room(size, |size| {
            Error::invalid(argument, format!("trees over {n} rows, whose statistics take {size}"), allowed)
        })?;
        arena.caches.reserve_exact(size);
        Ok(arena)
    }

    /// The target.
    pub fn target(&self) -> &'a Target {
        self.target
    }

    /// A node.
    pub fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    /// Children of a node, the one with the least row first; `None` for a leaf.
    pub fn children(&self, node: u32) -> Option<[u32; 2]> {
        Some(self.nodes[node as usize].children).filter(|children| children[0] != NONE)
    }

    /// Whether a node is a leaf.
    pub fn is_leaf(&self, node: u32) -> bool {
        (node as usize) < self.target.n_rows()
    }

    /// The cache of an inner node.
    fn inner_cache(&self, node: u32) -> &[f64] {
        let len = self.target.empty.len();
        &self.caches[(node as usize - self.target.n_rows()) * len..][..len]
    }

    /// The cache of the rows below a node.
    pub fn cache(&self, node: u32) -> Result<Vec<f64>> {
        if !self.is_leaf(node) {
            return Ok(self.inner_cache(node).to_vec());
        }
        let mut cache = self.target.empty.clone();
        self.target.urn().add(&mut cache, self.target.table.row(node as usize))?;
        Ok(cache)
    }

    /// ln m of the rows below two nodes without common rows, nats.
    pub fn log_marginal_of_both(&self, a: u32, b: u32) -> Result<f64> {
        let (a, b) = if self.is_leaf(a) { (b, a) } else { (a, b) };
        let urn = self.target.urn();
        if !self.is_leaf(b) {
            return urn.log_marginal_likelihood_of_both(self.inner_cache(a), self.inner_cache(b));
        }
        let cache_of_leaf;
        let cache = if self.is_leaf(a) {
            cache_of_leaf = self.cache(a)?;
            &cache_of_leaf[..]
        } else {
            self.inner_cache(a)
        };
        let mut added = [0.0];
        urn.log_predictives(cache, self.target.table.row(b as usize), &mut added)?;
        Ok(self.node(a).log_marginal + added[0])
    }

    /// Log dissimilarity of two nodes without common rows, given ln m of both: ln phi(a) + ln phi(b) - ln h(a and b).
    pub fn log_dissimilarity_given(&self, a: u32, b: u32, log_marginal: f64) -> f64 {
        let (a, b) = (self.node(a), self.node(b));
        a.log_potential + b.log_potential - self.blocks[(a.size + b.size) as usize] - log_marginal
    }

    /// Log dissimilarity, ln d, of two nodes without common rows.
    pub fn log_dissimilarity(&self, a: u32, b: u32) -> Result<f64> {
        Ok(self.log_dissimilarity_given(a, b, self.log_marginal_of_both(a, b)?))
    }

    /// Joins two nodes without common rows.
    pub fn join(&mut self, a: u32, b: u32) -> Result<u32> {
        let cache = self.merged(a, b)?;
        let log_marginal = self.target.urn().log_marginal_likelihood(&cache)?;
        Ok(self.push([a, b], log_marginal, cache))
    }

    /// Joins two nodes whose joint ln m is known. `same` are nodes with the same rows whose caches are quicker to add.
    pub fn join_known(&mut self, children: [u32; 2], log_marginal: f64, same: [u32; 2]) -> Result<u32> {
        let cache = self.merged(same[0], same[1])?;
        Ok(self.push(children, log_marginal, cache))
    }

    /// The cache of the rows below two nodes.
    fn merged(&mut self, a: u32, b: u32) -> Result<Vec<f64>> {
        let (a, b) = if self.is_leaf(a) { (b, a) } else { (a, b) };
        let urn = self.target.urn();
        let mut cache = std::mem::take(&mut self.spare);
        cache.clear();
        if self.is_leaf(a) {
            cache.extend_from_slice(&self.target.empty);
            urn.add(&mut cache, self.target.table.row(a as usize))?;
        } else {
            cache.extend_from_slice(self.inner_cache(a));
        }
        if self.is_leaf(b) {
            urn.add(&mut cache, self.target.table.row(b as usize))?;
        } else {
            urn.merge(&mut cache, self.inner_cache(b))?;
        }
        Ok(cache)
    }

    /// Adds a node, whose cache becomes spare.
    fn push(&mut self, mut children: [u32; 2], log_marginal: f64, cache: Vec<f64>) -> u32 {
        children.sort_unstable_by_key(|&child| self.node(child).least);
        let [a, b] = children.map(|child| *self.node(child));
        let size = a.size + b.size;
        let node = Node { children, size, least: a.least, log_marginal, ..a };
        let node = self.with_potential(node, a.log_potential + b.log_potential);
        let (n, len) = (self.target.n_rows(), self.target.empty.len());
        if let Some(reused) = self.free.pop() {
            self.nodes[reused as usize] = node;
            self.caches[(reused as usize - n) * len..][..len].copy_from_slice(&cache);
            self.spare = cache;
            return reused;
        }
        self.nodes.push(node);
        self.caches.extend_from_slice(&cache);
        self.spare = cache;
        (self.nodes.len() - 1) as u32
    }

    /// Fills in the values that follow from a node's size, its marginal and the potentials of its children, ln phi_l +
    /// ln phi_r.
    fn with_potential(&self, node: Node, log_apart: f64) -> Node {
        let log_cluster = self.blocks[node.size as usize] + node.log_marginal;
        let log_dissimilarity = log_apart - log_cluster;
        Node { log_cluster, log_dissimilarity, log_potential: log_cluster + softplus(log_dissimilarity), ..node }
    }

    /// Log factor of the rows below a node in the posterior of partitions, nats.
    pub fn log_weight(&self, node: u32, process: &ProcessState) -> f64 {
        let node = self.node(node);
        self.target.process.log_block(node.size as usize, process) + node.log_marginal
    }

    /// Copies a tree of another arena over the same target.
    pub fn copy(&mut self, other: &Arena<'_>, root: u32) -> u32 {
        let mut numbers = HashMap::new();
        let mut last = root;
        for &old in other.inner_below(root).iter().rev() {
            let node = other.node(old);
            let children = node.children.map(|child| numbers.get(&child).copied().unwrap_or(child));
            last = self.push(children, node.log_marginal, other.inner_cache(old).to_vec());
            numbers.insert(old, last);
        }
        last
    }

    /// Frees an inner node, which no tree may use.
    pub fn release(&mut self, node: u32) {
        self.free.push(node);
    }

    /// Number of nodes, the argument of [`Arena::cut`].
    pub fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Removes all nodes from number `len` on, released ones included.
    pub fn cut(&mut self, len: usize) {
        self.free.retain(|&node| (node as usize) < len);
        self.nodes.truncate(len);
        self.caches.truncate((len - self.target.n_rows()) * self.target.empty.len());
    }

    /// Keeps only the trees below some nodes, and renumbers them.
    pub fn keep(&mut self, roots: &mut [u32]) {
        let (n, len) = (self.target.n_rows(), self.target.empty.len());
        let (mut nodes, mut caches) = (self.nodes[..n].to_vec(), Vec::new());
        for root in roots {
            // Parents come first, so the reverse order has children first.
            let inner = self.inner_below(*root);
            let mut numbers = HashMap::with_capacity(inner.len());
            for &old in inner.iter().rev() {
                let mut node = *self.node(old);
                node.children = node.children.map(|child| numbers.get(&child).copied().unwrap_or(child));
                numbers.insert(old, nodes.len() as u32);
                nodes.push(node);
                caches.extend_from_slice(&self.caches[(old as usize - n) * len..][..len]);
            }
            *root = numbers.get(root).copied().unwrap_or(*root);
        }
        (self.nodes, self.caches, self.free) = (nodes, caches, Vec::new());
    }

    /// The inner nodes of a tree, parents before children.
    pub fn inner_below(&self, root: u32) -> Vec<u32> {
        let mut found = Vec::new();
        let mut open = vec![root];
        while let Some(node) = open.pop() {
            if let Some([left, right]) = self.children(node) {
                found.push(node);
                open.extend([right, left]);
            }
        }
        found
    }

    /// The rows below a node, from left to right.
    pub fn rows_below(&self, root: u32) -> Vec<u32> {
        let mut rows = Vec::with_capacity(self.node(root).size as usize);
        let mut open = vec![root];
        while let Some(node) = open.pop() {
            match self.children(node) {
                Some([left, right]) => open.extend([right, left]),
                None => rows.push(node),
            }
        }
        rows
    }
}

/// Log factor of a block of each size up to all rows.
fn block_factors(target: &Target, process: &ProcessState) -> Vec<f64> {
    let more = log_gain_of_blocks(target, process);
    let of = |size: usize| if size == 0 { 0.0 } else { target.process.log_block(size, process) + more };
    (0..=target.n_rows()).map(of).collect()
}

/// Change per block of the part of the log probability that is not a sum over blocks, nats.
pub fn log_gain_of_blocks(target: &Target, process: &ProcessState) -> f64 {
    let rest = |blocks| target.process.log_rest(Occupancy { units: target.n_rows(), blocks }, process);
    let gain = rest(2) - rest(1);
    if gain.is_finite() { gain } else { 0.0 }
}

/// ln(1 + exp x).
pub fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}
