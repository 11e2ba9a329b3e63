//! Visits of batches whose units are nodes of a tree.

use std::borrow::Cow;

use crate::component::EditLog;
use crate::error::{Error, Result};
use crate::executor::InProcess;
use crate::global_step::Globals;
use crate::local_step::{
    BatchTree, Frontier, Judging, LocalStep, Memory, NodeUnits, OpeningCandidate, OpeningRule, Outcome, Tap,
};
use crate::rng::key;
use crate::simd::Scalar;

impl<F: Scalar> InProcess<'_, F> {
    /// Whether the units of a batch are nodes.
    pub(super) fn has_nodes(&self, batch: usize) -> bool {
        self.options.tree.is_some() && *self.states[batch].memory() != Memory::Tree(Frontier::Rows)
    }

    /// The tree of a batch, made anew where there is none.
    pub(super) fn tree(&mut self, batch: usize) -> Result<Box<BatchTree>> {
        let Some(options) = self.options.tree else { return Err(unfit_frontier()) };
        if let Some(tree) = self.states[batch].take_tree() {
            return Ok(tree);
        }
        let (likelihood, rows) = (self.model.likelihood.as_ref(), self.source.load(batch)?);
        if let Memory::Tree(Frontier::Nodes(starts)) = self.states[batch].memory() {
            let tree = BatchTree::of_frontier(likelihood, &rows, options, starts);
            return tree.map(Box::new).ok_or_else(unfit_frontier);
        }
        let tree = BatchTree::new(likelihood, &rows, options);
        self.states[batch].open(Frontier::Nodes(tree.starts().to_vec()), None);
        Ok(Box::new(tree))
    }

    /// The local step of the nodes of a tree (mathematics 12.1).
    pub(super) fn visit_nodes(
        &mut self,
        batch: usize,
        tree: &BatchTree,
        globals: &Globals,
        edits: &EditLog,
        taps: &mut [&mut dyn Tap],
    ) -> Result<Outcome> {
        self.adopt(globals)?;
        let scorer = globals.scorer(&self.model)?;
        self.states[batch].replay(edits);
        self.last = None;
        let likelihood = self.model.likelihood.as_ref();
        let width = self.options.sparsity.clamp(scorer.n_components());
        let assign = self.assign(scorer.as_ref(), globals, width);
        let step =
            LocalStep { likelihood, ids: &globals.ids, assign: &assign, keep: self.options.keep, cancel: &self.cancel };
        let units = NodeUnits::new(likelihood, Cow::Borrowed(tree.nodes()));
        step.run_compact(&units, Some(&mut self.states[batch]), taps)
    }

    /// Nodes that are worth opening (mathematics 12.3).
    pub(super) fn judge_nodes(
        &mut self,
        batch: usize,
        tree: &mut BatchTree,
        globals: &Globals,
        (rule, tolerance): (OpeningRule, f64),
        (seed, n_rows): (u64, usize),
        fresh: bool,
    ) -> Result<Vec<OpeningCandidate>> {
        self.adopt(globals)?;
        let scorer = globals.scorer(&self.model)?;
        let judging = Judging {
            likelihood: self.model.likelihood.as_ref(),
            scorer: scorer.as_ref(),
            width: self.options.sparsity.clamp(scorer.n_components()),
            rule,
            tolerance,
            seed: key(seed, [batch as u64]),
            n_rows,
            cancel: &self.cancel,
        };
        judging.candidates(tree, &self.source.load(batch)?, fresh)
    }
}

fn unfit_frontier() -> Error {
    Error::Format { message: "the frontier of its tree".into() }
}
