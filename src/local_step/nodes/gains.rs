//! Gains from opening nodes (mathematics 12.3).

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::component::ComponentId;
use crate::data::{Nodes, RowUnits};
use crate::error::Result;
use crate::likelihood::Likelihood;
use crate::local_step::nodes::frontier::BatchTree;
use crate::local_step::{Chunk, Keep, LocalStep, NodeUnits, RawScores, Tap, Units};
use crate::parallel::{Cancel, alone, map_all, try_map};
use crate::responsibilities::largest;
use crate::scoring::Scorer;
use crate::simd::Scalar;

/// Number of nodes judged together, whose scores are in memory at once.
const TOGETHER: usize = 64;
/// Rounding error of a gain of zero, relative to the scores.
const ROUNDING: f64 = 1e-12;
/// Rounding error of a gain of zero if scores are float32.
const ROUNDING_OF_FLOAT32: f64 = 1e-6;

/// Criterion for opening nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OpeningRule {
    /// Gain of a few of its rows from responsibilities of their own, nats per row.
    Gain,
    /// Largest change of responsibilities from the node to a child (Kurihara et al. 2006).
    Responsibility,
}

impl OpeningRule {
    /// Name used by the interface.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gain => "gain",
            Self::Responsibility => "responsibility",
        }
    }

    /// Returns the criterion with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Gain, Self::Responsibility].into_iter().find(|rule| rule.name() == name)
    }
}

/// A candidate for opening.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OpeningCandidate {
    /// Index in the frontier.
    pub node: u32,
    /// Value of the criterion.
    pub value: f64,
    /// Mass of its rows.
    pub mass: f64,
    /// Number of units that opening it adds.
    pub n_more: u32,
}

/// How nodes are judged.
pub struct Judging<'a, F: Scalar> {
    /// The likelihood.
    pub likelihood: &'a dyn Likelihood<F>,
    /// The packed components, including the tail.
    pub scorer: &'a dyn Scorer<F>,
    /// Number of components kept per unit.
    pub width: usize,
    /// Criterion.
    pub rule: OpeningRule,
    /// Nodes with a smaller value are not candidates.
    pub tolerance: f64,
    /// Seed of the choice of rows.
    pub seed: u64,
    /// Number of rows of a node that the gain is computed from; smaller nodes use all rows.
    pub n_rows: usize,
    /// Checked between blocks of nodes.
    pub cancel: &'a Cancel,
}

/// Log weights of units, (n, K), in the order in which they are observed.
#[derive(Default)]
struct SeenLogWeights(Vec<f64>);

impl Tap for SeenLogWeights {
    fn observe(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        self.0.extend_from_slice(&chunk.responsibilities.values);
        Ok(())
    }
}

impl<F: Scalar> Judging<'_, F> {
    /// Returns the nodes of a tree that are worth opening. With `fresh`, only nodes that are new since the last call.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    pub fn candidates(
        &self,
        tree: &mut BatchTree,
        rows: &RowUnits<'_, F>,
        fresh: bool,
    ) -> Result<Vec<OpeningCandidate>> {
        let list = tree.next_to_judge(fresh);
        let parts: Vec<&[usize]> = list.chunks(TOGETHER).collect();
        let values = match self.rule {
            OpeningRule::Gain => {
                let tree = &*tree;
                try_map(parts.len(), |part| alone(|| self.gains(tree, rows, parts[part])))?
            }
            OpeningRule::Responsibility => {
                parts.iter().map(|part| self.changes(tree, rows, part)).collect::<Result<_>>()?
            }
        };
        let mut found = Vec::new();
        for (&node, &value) in list.iter().zip(values.iter().flatten()).filter(|(_, value)| **value > self.tolerance) {
            let (mass, n_more) = (tree.nodes().masses()[node], tree.n_more(node) as u32);
            if mass > 0.0 {
                found.push(OpeningCandidate { node: node as u32, value, mass, n_more });
            }
        }
        Ok(found)
    }

    fn scores(&self, units: &dyn Units<F>) -> Result<Vec<f64>> {
        let assign = RawScores { scorer: self.scorer };
        // The ids are arbitrary, because no component's statistics are summed.
        let ids: Vec<ComponentId> = (0..self.scorer.n_components() as u32).map(ComponentId).collect();
        let (keep, cancel) = (Keep::Nothing, self.cancel);
        let step = LocalStep { likelihood: self.likelihood, ids: &ids, assign: &assign, keep, cancel };
        let mut scores = SeenLogWeights::default();
        step.run(units, None, &mut [&mut scores])?;
        Ok(scores.0)
    }

    /// The mean log-sum-exp of the scores of a few rows minus the log-sum-exp of their mean scores. It is never
    /// negative, and zero if one component has all responsibility.
    fn gains(&self, tree: &BatchTree, rows: &RowUnits<'_, F>, list: &[usize]) -> Result<Vec<f64>> {
        let standing: Vec<Vec<u32>> = list.iter().map(|&node| tree.rows_of(node, self.seed, self.n_rows)).collect();
        let k = self.scorer.n_components();
        let all: Vec<u32> = standing.concat();
        let scores = self.scores(&rows.select(&all))?;
        let rounding = if F::NAME == "float64" { ROUNDING } else { ROUNDING_OF_FLOAT32 };
        let mut rest = scores.as_slice();
        let nodes = standing.iter().map(|of_node| (of_node, rest.split_off(..of_node.len() * k).unwrap_or_default()));
        let gains = nodes.map(|(rows_of_node, scores)| {
            let masses: Vec<f64> = rows_of_node.iter().map(|&row| rows.mass(row as usize)).collect();
            let total: f64 = masses.iter().sum();
            let (mut mean, mut of_rows) = (vec![0.0; k], 0.0);
            for (mass, scores) in masses.iter().zip(scores.chunks_exact(k)).filter(|(mass, _)| **mass > 0.0) {
                mean.iter_mut().zip(scores).for_each(|(sum, score)| *sum += mass / total * score);
                of_rows += mass / total * largest(scores, self.width).1;
            }
            let of_mean = if total > 0.0 { largest(&mean, self.width).1 } else { of_rows };
            let gain = of_rows - of_mean;
            if gain > rounding * (1.0 + of_rows.abs()) { gain } else { 0.0 }
        });
        Ok(gains.collect())
    }

    /// The largest L1 distance between the responsibilities of a node and those of one of its children.
    fn changes(&self, tree: &mut BatchTree, rows: &RowUnits<'_, F>, list: &[usize]) -> Result<Vec<f64>> {
        tree.look_ahead(self.likelihood, rows, list);
        let mut nodes = Nodes::new(tree.nodes().width(), tree.nodes().spread_width());
        let mut numbers = Vec::new();
        for &node in list {
            nodes.push_from(tree.nodes(), node);
            // Without mass a child has no mean.
            let children = tree.children(node).map_or(&[][..], |children| &children.nodes);
            let n_before = nodes.len();
            for child in children.iter().filter(|child| child.mass > 0.0) {
                nodes.push(child);
            }
            numbers.push(nodes.len() - n_before);
        }
        let k = self.scorer.n_components();
        let scores = self.scores(&NodeUnits::new(self.likelihood, Cow::Owned(nodes)))?;
        let shares = |scores: &[f64]| {
            let (pairs, normalizer) = largest(scores, self.width);
            let mut shares = vec![0.0; k];
            for (component, score) in pairs {
                shares[component] = (score - normalizer).exp();
            }
            shares
        };
        let mut rest = scores.as_slice();
        let families = numbers.iter().map(|n| rest.split_off(..(n + 1) * k).unwrap_or_default());
        Ok(map_all(families.collect(), |scores: &[f64]| {
            let (of_node, of_children) = scores.split_at(k.min(scores.len()));
            let of_node = shares(of_node);
            let change = |child: &[f64]| of_node.iter().zip(shares(child)).map(|(r, s)| (r - s).abs()).sum::<f64>();
            of_children.chunks_exact(k).map(change).fold(0.0, f64::max)
        }))
    }
}
