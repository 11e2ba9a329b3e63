//! Nodes of trees as units (mathematics 12.1), and the questions that open them.

mod questions;

use std::borrow::Cow;

use crate::component::EditLog;
use crate::error::{Error, Result};
use crate::global_step::Globals;
use crate::likelihood;
use crate::local_step::{
    BatchTree, Behind, Frontier, LocalState, NodeUnits, OpeningRule, Outcome, Tap, TreeOptions, Units,
};
use crate::model::Named;
use crate::payload::Payload;
use crate::registry::Feature;
use crate::simd::Scalar;
use crate::visits::{Asked, RowVisits, Shard, Task, UnitKind, Visitor, load_state, save_state};

pub use questions::{JudgeNodes, JudgedNodes, OpenNodes};

/// A fit that is to end on rows uses no tree if it has at most this many rows.
pub const FEW_ROWS: usize = 16_384;

/// Nodes of trees are units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TreeSettings {
    /// How they are made.
    pub options: TreeOptions,
    /// Passes from one opening of nodes to the next.
    pub expand_every: usize,
    /// By what nodes are opened.
    pub rule: OpeningRule,
    /// Nodes of at most this value stay as they are.
    pub tolerance: f64,
    /// Maximum number of units of all batches together before all become rows.
    pub budget: Option<usize>,
    /// Whether units become rows once nodes have converged.
    pub refine: bool,
    /// Whether a trial decides if there are trees.
    pub on_trial: bool,
    /// Whether nodes are opened for moves before a fit ends on them.
    pub for_moves: bool,
}

impl TreeSettings {
    /// Whether a fit to this many rows is to end on rows and has so few that it starts with them.
    pub fn ends_on_few(&self, n_rows: usize) -> bool {
        self.refine && n_rows <= FEW_ROWS
    }
}

impl<F: Scalar> UnitKind<F> for TreeSettings {
    /// Refuses data without dense rows, and an algorithm that never makes a pass over all rows.
    fn check(&self, task: &Task<'_>) -> Result<()> {
        let refuse = |found: &str, reason: &str, allowed: &str| {
            Err(Error::not_supported("units", format!("a tree {found}"), reason, allowed))
        };
        if task.specification.documents()?.is_some() {
            return refuse("for a TopicModel", "its units are the words of documents", "no tree");
        }
        if task.estimates {
            let reason = "nodes are opened between complete passes, which it does not make";
            return refuse("with Stochastic", reason, "Full or Memoized, or no tree");
        }
        if task.is_sparse {
            return refuse("over a sparse array", "nodes of sparse rows are dense", "a dense array, or no tree");
        }
        let Named { name, parameters } = &task.specification.likelihood;
        let parts = likelihood::members(name, parameters)?;
        if parts.iter().any(|part| part.entry.support(Feature::Hidden).is_some()) {
            let reason = "the rows of a node are unlike in what is not seen of them";
            return refuse(&format!("over {name}"), reason, "Gaussian, or no tree");
        }
        if task.specification.background.is_some() {
            let reason = "its density is not a function of the moments of a node";
            return refuse("with a background", reason, "background=None, or no tree");
        }
        if parts.iter().any(|part| part.columns.is_some()) {
            let reason = "a node has no levels or counts in common with its rows";
            return refuse("over Columns", reason, "a single likelihood, or no tree");
        }
        if task.specification.missing {
            let reason = "rows without the same columns have no common mean";
            return refuse("with missing=\"marginalize\"", reason, "data without missing values, or no tree");
        }
        Ok(())
    }

    fn identity(&self) -> Vec<(&'static str, String)> {
        vec![("units", format!("{self:?}"))]
    }

    fn visitor(&self, n_shards: usize) -> Box<dyn Visitor<F>> {
        let trees = (0..n_shards).map(|_| TreeState::default()).collect();
        Box::new(NodeVisits { options: self.options, rows: RowVisits::new(n_shards), trees })
    }
}

/// The tree of a shard.
#[derive(Default)]
struct TreeState {
    /// The nodes that are units; `None` before the first visit.
    frontier: Option<Frontier>,
    /// The statistics of the nodes, which can be computed again from the rows and the frontier.
    tree: Option<Box<BatchTree>>,
}

/// Visits nodes, and rows where all nodes have been opened.
pub struct NodeVisits<F: Scalar> {
    options: TreeOptions,
    /// Visits rows. Its local states are also those of nodes.
    rows: RowVisits<F>,
    trees: Vec<TreeState>,
}

impl<F: Scalar> NodeVisits<F> {
    /// Whether all nodes of a shard have been opened.
    fn has_rows(&self, shard: usize) -> bool {
        self.trees[shard].frontier == Some(Frontier::Rows)
    }

    /// Sets the units of a shard. Clears its caches, which belonged to other units.
    fn open(&mut self, shard: usize, frontier: Frontier, tree: Option<Box<BatchTree>>) {
        self.trees[shard] = TreeState { frontier: Some(frontier), tree };
        self.rows.states[shard].forget();
    }

    /// Returns the tree of a shard, which is made if there is none.
    fn tree(&mut self, shard: &Shard<'_, F>) -> Result<&mut BatchTree> {
        let (index, likelihood) = (shard.index, shard.model.likelihood.as_ref());
        if self.trees[index].tree.is_none() {
            if let Some(Frontier::Nodes(starts)) = &self.trees[index].frontier {
                let tree = BatchTree::of_frontier(likelihood, shard.rows()?, self.options, starts);
                self.trees[index].tree = Some(Box::new(tree.ok_or_else(unfit_frontier)?));
            } else {
                let tree = BatchTree::new(likelihood, shard.rows()?, self.options);
                self.open(index, Frontier::Nodes(tree.starts().to_vec()), Some(Box::new(tree)));
            }
        }
        self.trees[index].tree.as_deref_mut().ok_or_else(unfit_frontier)
    }
}

impl<F: Scalar> Visitor<F> for NodeVisits<F> {
    fn visit(
        &mut self,
        shard: &Shard<'_, F>,
        globals: &Globals,
        edits: &EditLog,
        taps: &mut [&mut dyn Tap],
    ) -> Result<Outcome> {
        if self.has_rows(shard.index) {
            return self.rows.visit(shard, globals, edits, taps);
        }
        self.tree(shard)?;
        let tree = self.trees[shard.index].tree.as_ref().ok_or_else(unfit_frontier)?;
        let scorer = globals.scorer(shard.model)?;
        let state = &mut self.rows.states[shard.index];
        state.replay(edits);
        self.rows.last = None;
        let units = NodeUnits::new(shard.model.likelihood.as_ref(), Cow::Borrowed(tree.nodes()));
        shard.score(&units, scorer.as_ref(), globals, state, taps)
    }

    fn show(
        &mut self,
        shard: &Shard<'_, F>,
        seed: Option<u64>,
        take: &mut dyn FnMut(&dyn Units<F>) -> Result<()>,
    ) -> Result<()> {
        if self.has_rows(shard.index) {
            return self.rows.show(shard, seed, take);
        }
        let tree = &*self.tree(shard)?;
        let mut units = NodeUnits::new(shard.model.likelihood.as_ref(), Cow::Borrowed(tree.nodes()));
        if let Some(seed) = seed {
            units = units.with_rows(Behind { tree, rows: shard.rows()?, seed });
        }
        take(&units)
    }

    fn answer(&mut self, shard: &Shard<'_, F>, asked: &Asked) -> Result<Option<Payload>> {
        if let Some(question) = asked.get::<JudgeNodes>()? {
            return self.judge(shard, &question, asked.globals()).map(|found| Some(Payload::new(found)));
        }
        let Some(question) = asked.get::<OpenNodes>()? else { return Ok(None) };
        self.open_nodes(shard, &question).map(|found| Some(Payload::new(found)))
    }

    fn rebase(&mut self) {
        self.rows.rebase();
    }

    fn forget(&mut self, shard: usize) {
        self.trees[shard].tree = None;
        self.rows.forget(shard);
    }

    fn bytes(&self, shard: usize) -> usize {
        let TreeState { frontier, tree } = &self.trees[shard];
        let starts = if let Some(Frontier::Nodes(starts)) = frontier { 4 * starts.capacity() } else { 0 };
        self.rows.bytes(shard) + starts + tree.as_ref().map_or(0, |tree| tree.bytes())
    }

    fn save(&self, shard: usize) -> Result<Vec<u8>> {
        save_state(&(&self.rows.states[shard], &self.trees[shard].frontier))
    }

    fn load(&mut self, shard: usize, bytes: &[u8]) -> Result<()> {
        let (state, frontier): (LocalState, _) = load_state(bytes)?;
        self.rows.states[shard] = state;
        self.trees[shard] = TreeState { frontier, tree: None };
        Ok(())
    }
}

fn unfit_frontier() -> Error {
    Error::Format { message: "the frontier of its tree".into() }
}
