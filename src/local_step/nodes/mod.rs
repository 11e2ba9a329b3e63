//! Nodes of trees as units (mathematics 12), with a mass, statistics and a mean log base measure.

mod build;
mod frontier;
mod gains;

use std::borrow::Cow;

use crate::data::{Csr, Nodes, RowBlock, RowUnits, Sample, SparseRows};
use crate::likelihood::Likelihood;
use crate::local_step::{Gather, Read, Statistics, Units};
use crate::responsibilities::TopL;
use crate::scoring::{Block, PairBounds, Scorer, Scratch, Spreads};
use crate::simd::Scalar;

pub use frontier::{BatchTree, Frontier, STANDING, TreeOptions};
pub use gains::{Judging, OpeningCandidate, OpeningRule};

/// Nodes as units. They are scored by their means; scorers with squared columns subtract the cost of the spread.
pub struct NodeUnits<'a, F: Scalar> {
    nodes: Cow<'a, Nodes>,
    dimension: usize,
    /// For rows of codes: means as fractions per level, in compressed sparse rows.
    shares: Option<Shares<F>>,
    /// The rows of the nodes, from which moves may copy some.
    behind: Option<Behind<'a, F>>,
}

/// Nonzero values of the means.
struct Shares<F> {
    starts: Vec<u64>,
    columns: Vec<u32>,
    values: Vec<F>,
}

/// Source of a few rows of every node.
#[derive(Clone, Copy)]
pub struct Behind<'a, F: Scalar> {
    /// The tree of the batch.
    pub tree: &'a BatchTree,
    /// The rows of the batch.
    pub rows: &'a RowUnits<'a, F>,
    /// Seed of the choice of rows.
    pub seed: u64,
}

impl<'a, F: Scalar> NodeUnits<'a, F> {
    /// Creates units from the nodes of rows that a likelihood reads.
    pub fn new(likelihood: &dyn Likelihood<F>, nodes: Cow<'a, Nodes>) -> Self {
        let dimension = likelihood.dimension();
        let shares = (nodes.width() != dimension).then(|| Shares::of(&nodes));
        Self { nodes, dimension, shares, behind: None }
    }

    /// Adds the source of the nodes' rows.
    #[must_use]
    pub fn with_rows(self, behind: Behind<'a, F>) -> Self {
        Self { behind: Some(behind), ..self }
    }
}

impl<F: Scalar> Shares<F> {
    fn of(nodes: &Nodes) -> Self {
        let mut shares = Self { starts: vec![0], columns: Vec::new(), values: Vec::new() };
        for node in 0..nodes.len() {
            for (column, &value) in (0..).zip(nodes.mean(node)).filter(|(_, value)| **value != 0.0) {
                shares.columns.push(column);
                shares.values.push(F::from_f64(value));
            }
            shares.starts.push(shares.values.len() as u64);
        }
        shares
    }
}

impl<F: Scalar> Units<F> for NodeUnits<'_, F> {
    fn len(&self) -> usize {
        self.nodes.len()
    }

    fn dimension(&self) -> usize {
        self.dimension
    }

    fn row_number(&self, unit: usize) -> usize {
        self.nodes.row(unit)
    }

    fn mass(&self, unit: usize) -> f64 {
        self.nodes.masses()[unit]
    }

    fn is_sparse(&self) -> bool {
        self.shares.is_some()
    }

    fn n_values(&self) -> usize {
        if self.is_sparse() { 0 } else { self.dimension }
    }

    /// Means are already relative to the origin.
    fn read(&self, list: &[u32], _origin: &[F], out: &mut [F]) {
        if !self.is_sparse() {
            for (&node, out) in list.iter().zip(out.chunks_exact_mut(self.dimension)) {
                out.iter_mut().zip(self.nodes.mean(node as usize)).for_each(|(out, &x)| *out = F::from_f64(x));
            }
        }
    }

    fn rows<'a>(&'a self, list: &[u32], values: &'a [F], numbers: &'a mut Vec<u32>) -> RowBlock<'a, F> {
        let Some(Shares { starts, columns, values }) = &self.shares else { return RowBlock::Dense(values) };
        numbers.clear();
        numbers.extend_from_slice(list);
        RowBlock::Sparse(SparseRows { table: Csr { starts, columns, values }, numbers })
    }

    fn score(
        &self,
        scorer: &dyn Scorer<F>,
        list: &[u32],
        block: Block<'_, F>,
        _: Option<PairBounds<'_>>,
        sink: &mut TopL<F>,
        scratch: &mut Scratch<F>,
    ) {
        scorer.score_nodes(block, Spreads { nodes: &self.nodes, list }, sink, scratch);
    }

    fn add_row_terms(&self, scorer: &dyn Scorer<F>, list: &[u32], rows: RowBlock<'_, F>, out: &mut [f64]) {
        scorer.add_row_terms(rows, out);
        out.iter_mut().zip(list).for_each(|(out, &node)| *out += self.nodes.excess(node as usize));
    }

    /// Adds the statistics of the means, in float64, and the spreads to the squares.
    fn add_statistics(
        &self,
        of: Statistics<'_, F>,
        read: Read<'_, F>,
        weights: &[f64],
        statistics: &mut [f64],
        gather: &mut Gather,
    ) {
        let list: Vec<u32> = read.places.iter().map(|&place| read.units[place as usize]).collect();
        let likelihood = of.likelihood;
        let squares = likelihood.squares();
        if squares.is_empty() {
            for (&node, weight) in list.iter().zip(weights) {
                let mean = self.nodes.mean(node as usize);
                statistics.iter_mut().zip(mean).for_each(|(sum, value)| *sum += weight * value);
            }
            return;
        }
        let (means, space) = gather.gather(RowBlock::Dense(self.nodes.means()), self.dimension, &list);
        likelihood.accumulate(means, weights, statistics, space);
        let squares = &mut statistics[squares];
        for (&node, weight) in list.iter().zip(weights) {
            let spread = self.nodes.spread(node as usize).unwrap_or_default();
            squares.iter_mut().zip(spread).for_each(|(sum, value)| *sum += weight * value);
        }
    }

    fn log_fixed_bases(&self, _: &dyn Likelihood<F>, read: Read<'_, F>, out: &mut [f64]) {
        out.iter_mut().zip(read.units).for_each(|(out, &node)| *out = self.nodes.log_base(node as usize));
    }

    fn select(&self, list: &[u32]) -> Box<dyn Units<F> + '_> {
        let nodes = self.nodes.pick(list.iter().map(|&node| node as usize));
        let shares = self.shares.is_some().then(|| Shares::of(&nodes));
        Box::new(Self { nodes: Cow::Owned(nodes), dimension: self.dimension, shares, behind: None })
    }

    fn copy_into(&self, list: &[u32], sample: &mut Sample) {
        sample.extend_nodes(&self.nodes.pick(list.iter().map(|&node| node as usize)));
    }

    /// Copies a few rows of every node, which share its mass. They only propose parts; all nodes judge them.
    fn copy_rows_into(&self, list: &[u32], sample: &mut Sample) -> Vec<u32> {
        let Some(Behind { tree, rows, seed }) = self.behind else {
            self.copy_into(list, sample);
            return vec![1; list.len()];
        };
        let mut numbers = Vec::with_capacity(list.len());
        for &node in list {
            let chosen = tree.rows_of(node as usize, seed, STANDING);
            let all: f64 = chosen.iter().map(|&row| rows.mass(row as usize)).sum();
            sample.extend_weighted(rows, &chosen, if all > 0.0 { self.mass(node as usize) / all } else { 0.0 });
            numbers.push(chosen.len() as u32);
        }
        numbers
    }
}

/// Returns units for copies of units.
pub fn units_of<'a, F: Scalar>(likelihood: &dyn Likelihood<F>, sample: &'a Sample) -> Box<dyn Units<F> + 'a> {
    match sample.nodes() {
        Some(nodes) => Box::new(NodeUnits::new(likelihood, Cow::Borrowed(nodes))),
        None => Box::new(sample.units::<F>(1.0)),
    }
}
