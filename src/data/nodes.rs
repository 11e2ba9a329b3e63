//! Nodes of a tree as units: groups of rows that share responsibilities and have joint statistics.

use serde::{Deserialize, Serialize};

/// Marks a node without squares about its mean.
const NONE: u32 = u32::MAX;

/// One node.
#[derive(Debug, Clone, PartialEq)]
pub struct TreeNode {
    /// One of its rows.
    pub row: u32,
    /// Sum of the masses of its rows.
    pub mass: f64,
    /// Mean of the linear statistics, relative to the origin, (W,).
    pub mean: Vec<f64>,
    /// Mean squares about the mean, (S,); empty if all rows are equal.
    pub spread: Vec<f64>,
    /// Mean log base measure, nats.
    pub log_base: f64,
    /// Mean log base measure minus that of the mean, nats.
    pub excess: f64,
}

/// Nodes, stored by field.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Nodes {
    width: usize,
    spread_width: usize,
    rows: Vec<u32>,
    masses: Vec<f64>,
    means: Vec<f64>,
    /// Position in `spreads` of each node's squares, or [`NONE`].
    spread_at: Vec<u32>,
    spreads: Vec<f64>,
    log_bases: Vec<f64>,
    excesses: Vec<f64>,
}

impl Nodes {
    /// Creates an empty list of nodes with `width` linear statistics and `spread_width` squares.
    pub fn new(width: usize, spread_width: usize) -> Self {
        Self { width, spread_width, ..Self::default() }
    }

    /// Adds a node.
    ///
    /// # Panics
    /// If it has another number of statistics or squares than the list.
    pub fn push(&mut self, node: &TreeNode) {
        self.push_parts(&node.mean, &node.spread);
        self.rows.push(node.row);
        self.masses.push(node.mass);
        self.log_bases.push(node.log_base);
        self.excesses.push(node.excess);
    }

    fn push_parts(&mut self, mean: &[f64], spread: &[f64]) {
        assert!(mean.len() == self.width && (spread.is_empty() || spread.len() == self.spread_width));
        self.means.extend_from_slice(mean);
        let position = (self.spreads.len() / self.spread_width.max(1)) as u32;
        self.spread_at.push(if spread.is_empty() { NONE } else { position });
        self.spreads.extend_from_slice(spread);
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.masses.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.masses.is_empty()
    }

    /// Number of linear statistics.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Number of squares.
    pub fn spread_width(&self) -> usize {
        self.spread_width
    }

    /// Row that represents a node.
    pub fn row(&self, node: usize) -> usize {
        self.rows[node] as usize
    }

    /// The masses of all nodes.
    pub fn masses(&self) -> &[f64] {
        &self.masses
    }

    /// The means of all nodes, (n, W).
    pub fn means(&self) -> &[f64] {
        &self.means
    }

    /// Mean linear statistics of a node, (W,).
    pub fn mean(&self, node: usize) -> &[f64] {
        &self.means[node * self.width..][..self.width]
    }

    /// Mean squares of a node about its mean, (S,), unless all of its rows are equal.
    pub fn spread(&self, node: usize) -> Option<&[f64]> {
        let position = Some(self.spread_at[node] as usize).filter(|_| self.spread_at[node] != NONE)?;
        Some(&self.spreads[position * self.spread_width..][..self.spread_width])
    }

    /// Mean log base measure of a node, nats.
    pub fn log_base(&self, node: usize) -> f64 {
        self.log_bases[node]
    }

    /// Mean log base measure of a node minus that of its mean, nats.
    pub fn excess(&self, node: usize) -> f64 {
        self.excesses[node]
    }

    /// Returns a copy of one node.
    pub fn node(&self, node: usize) -> TreeNode {
        TreeNode {
            row: self.rows[node],
            mass: self.masses[node],
            mean: self.mean(node).to_vec(),
            spread: self.spread(node).map(<[f64]>::to_vec).unwrap_or_default(),
            log_base: self.log_bases[node],
            excess: self.excesses[node],
        }
    }

    /// Returns the listed nodes, in that order.
    #[must_use]
    pub fn pick(&self, list: impl IntoIterator<Item = usize>) -> Self {
        let mut picked = Self::new(self.width, self.spread_width);
        list.into_iter().for_each(|node| picked.push_from(self, node));
        picked
    }

    /// Appends a node of another list.
    pub fn push_from(&mut self, other: &Self, node: usize) {
        self.push_parts(other.mean(node), other.spread(node).unwrap_or_default());
        self.rows.push(other.rows[node]);
        self.masses.push(other.masses[node]);
        self.log_bases.push(other.log_bases[node]);
        self.excesses.push(other.excesses[node]);
    }

    /// Appends the nodes of another list.
    pub fn append(&mut self, other: &Self) {
        (0..other.len()).for_each(|node| self.push_from(other, node));
    }

    /// Whether the parts are consistent. Files are not trusted.
    pub fn fits(&self) -> bool {
        let n = self.len();
        let n_spreads = self.spreads.len() / self.spread_width.max(1);
        let lengths = [self.rows.len(), self.spread_at.len(), self.log_bases.len(), self.excesses.len()];
        lengths == [n; 4]
            && self.means.len() == n * self.width
            && self.spreads.len() == n_spreads * self.spread_width
            && self.spread_at.iter().all(|&position| position == NONE || (position as usize) < n_spreads)
    }

    /// Memory held, in bytes.
    pub fn bytes(&self) -> usize {
        let numbers = [&self.masses, &self.means, &self.spreads, &self.log_bases, &self.excesses];
        numbers.iter().map(|values| 8 * values.capacity()).sum::<usize>()
            + 4 * (self.rows.capacity() + self.spread_at.capacity())
    }
}
