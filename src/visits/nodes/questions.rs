//! Which nodes to open, and their opening (mathematics 12.3).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::global_step::Globals;
use crate::local_step::{Frontier, Judging, OpeningCandidate, OpeningRule};
use crate::rng::key;
use crate::simd::Scalar;
use crate::visits::nodes::{NodeVisits, unfit_frontier};
use crate::visits::{Additive, Question, Shard};

/// Which nodes are worth opening under the globals of the question?
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct JudgeNodes {
    /// By what nodes are judged.
    pub rule: OpeningRule,
    /// The value above which a node is worth opening.
    pub tolerance: f64,
    /// Seed of the choice of rows.
    pub seed: u64,
    /// Number of rows of a node to look at; smaller nodes are looked at whole.
    pub n_rows: usize,
    /// Judge only nodes that are new since the last call.
    pub fresh: bool,
}

impl Question for JudgeNodes {
    const NAME: &'static str = "judge nodes";
    type Answer = JudgedNodes;
}

/// The nodes that are worth opening.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct JudgedNodes {
    /// Batches and their nodes.
    pub candidates: Vec<(usize, OpeningCandidate)>,
    /// Number of units.
    pub n_units: usize,
    /// Number of rows that they represent.
    pub n_rows: usize,
}

impl Additive for JudgedNodes {
    fn add(&mut self, other: Self) {
        self.candidates.extend(other.candidates);
        self.n_units += other.n_units;
        self.n_rows += other.n_rows;
    }
}

/// A request to open nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum OpenNodes {
    /// The listed nodes by shard, ascending.
    Listed(BTreeMap<usize, Vec<u32>>),
    /// All nodes: units are rows from now on.
    All,
}

impl Question for OpenNodes {
    const NAME: &'static str = "open nodes";
    type Answer = ();
}

impl<F: Scalar> NodeVisits<F> {
    pub(super) fn judge(
        &mut self,
        shard: &Shard<'_, F>,
        question: &JudgeNodes,
        globals: Option<&Globals>,
    ) -> Result<JudgedNodes> {
        if self.has_rows(shard.index) {
            return Ok(JudgedNodes::default());
        }
        let globals = globals.ok_or_else(|| Error::Format { message: "a question without its globals".into() })?;
        let scorer = globals.scorer(shard.model)?;
        let JudgeNodes { rule, tolerance, seed, n_rows, fresh } = *question;
        let judging = Judging {
            likelihood: shard.model.likelihood.as_ref(),
            scorer: scorer.as_ref(),
            width: shard.width(scorer.as_ref()),
            rule,
            tolerance,
            seed: key(seed, [shard.index as u64]),
            n_rows,
            cancel: shard.cancel,
        };
        let tree = self.tree(shard)?;
        let found = judging.candidates(tree, shard.rows()?, fresh)?;
        let candidates = found.into_iter().map(|candidate| (shard.index, candidate)).collect();
        Ok(JudgedNodes { candidates, n_units: tree.starts().len(), n_rows: shard.rows()?.len() })
    }

    pub(super) fn open_nodes(&mut self, shard: &Shard<'_, F>, question: &OpenNodes) -> Result<()> {
        let OpenNodes::Listed(lists) = question else {
            self.open(shard.index, Frontier::Rows, None);
            return Ok(());
        };
        let Some(list) = lists.get(&shard.index).filter(|_| !self.has_rows(shard.index)) else { return Ok(()) };
        let list: Vec<usize> = list.iter().map(|&node| node as usize).collect();
        self.tree(shard)?.open(shard.model.likelihood.as_ref(), shard.rows()?, &list);
        let tree = self.trees[shard.index].tree.take().ok_or_else(unfit_frontier)?;
        self.open(shard.index, Frontier::Nodes(tree.starts().to_vec()), Some(tree));
        Ok(())
    }
}
