//! Plans state what the visits of a pass look for on behalf of moves. Findings are what they find.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::component::ComponentId;
use crate::error::{Error, Result};
use crate::global_step::Globals;
use crate::moves::{Bag, Collect, Move, MoveKind, PartsStart, Payloads};
use crate::parallel::for_each;
use crate::simd::Scalar;
use crate::suffstats::{PairGaps, Summary};

/// The plan of one pass. It is small enough to send to a worker, and the same for every shard.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Distinguishes this plan from those of other passes.
    pub version: u64,
    /// Pairs of components whose merge-entropy gaps are summed, the smaller identity first.
    pub pairs: Vec<(ComponentId, ComponentId)>,
    /// Components that might be split; visits summarise their parts.
    pub proposals: Vec<Proposal>,
    /// Which rows to copy, to make parts of components.
    pub collect: Option<Collect>,
    /// Payloads by kind of move.
    pub wanted: Payloads,
}

/// A component and the parts into which it might be split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    /// The kind of move that proposes it.
    pub kind: MoveKind,
    /// The component to split.
    pub target: ComponentId,
    /// The parts, under the identities that they take if accepted.
    pub parts: Globals,
    /// How the parts started.
    pub start: PartsStart,
    /// Whether the parts were made from all rows of the component.
    pub thorough: bool,
}

impl Plan {
    /// Whether this is a valid plan for the components `ids`.
    pub(super) fn fits(&self, ids: &[ComponentId], n_statistics: usize) -> bool {
        let pairs = self.pairs.iter().all(|(a, b)| a < b && ids.contains(a) && ids.contains(b));
        let proposals = self.proposals.iter().all(|Proposal { target, parts, .. }| {
            let k = parts.ids.len();
            let log_weights = &parts.allocation.expected_log_weights;
            let sizes = (parts.counts.len(), parts.statistics.len(), log_weights.len());
            let numbers = parts.counts.iter().chain(&parts.statistics).all(|value| value.is_finite());
            ids.contains(target) && k > 0 && sizes == (k, k * n_statistics, k) && numbers
        });
        pairs && proposals
    }

    /// Whether there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty() && self.proposals.is_empty() && self.collect.is_none() && self.wanted.is_empty()
    }

    /// Maximum number of rows that are copied of each component or part.
    pub(super) fn max_rows(&self) -> usize {
        self.collect.as_ref().map_or(0, |collect| collect.max_rows)
    }

    /// Adds rows that visits copied.
    pub(super) fn add_bags(&self, sum: &mut BTreeMap<ComponentId, Bag>, mut bags: BTreeMap<ComponentId, Bag>) {
        let max_rows = self.max_rows();
        for id in bags.keys() {
            sum.entry(*id).or_default();
        }
        let pairs = sum.iter_mut().filter_map(|(id, all)| Some((all, bags.remove(id)?)));
        for_each(pairs.collect(), |(all, bag): (&mut Bag, Bag)| all.merge(bag, max_rows));
    }

    /// Adds payloads that visits found, each by the move of its kind.
    pub(super) fn add_payloads<F: Scalar>(
        &self,
        moves: &[&dyn Move<F>],
        sum: &mut Payloads,
        payloads: Payloads,
    ) -> Result<()> {
        for (kind, payload) in payloads.0 {
            let one = moves.iter().find(|one| one.kind() == kind);
            let (Some(one), Some(wanted)) = (one, self.wanted.find(&kind)) else { continue };
            let payload = one.take(wanted, sum.remove(&kind), payload)?;
            sum.put(kind, payload);
        }
        Ok(())
    }

    /// The components that might be split.
    pub fn targets(&self) -> BTreeSet<ComponentId> {
        self.proposals.iter().map(|proposal| proposal.target).collect()
    }
}

/// The findings of the visit of one shard, or of several under the same plan. Gaps of pairs are in its summary.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// For each proposal, the summary of its parts.
    pub parts: Vec<Summary>,
    /// Copied rows by component or part.
    pub bags: BTreeMap<ComponentId, Bag>,
    /// Further findings of moves.
    pub payloads: Payloads,
}

impl Findings {
    /// Adds the findings of other shards under the same plan.
    ///
    /// # Errors
    /// [`Error::Format`] for findings under another plan, or that the moves did not write.
    pub fn add<F: Scalar>(&mut self, other: Self, plan: &Plan, moves: &[&dyn Move<F>]) -> Result<()> {
        if self.parts.len() != other.parts.len() {
            return Err(Error::Format { message: "findings under different plans".to_owned() });
        }
        self.parts.iter_mut().zip(&other.parts).try_for_each(|(sum, parts)| sum.add(parts))?;
        plan.add_bags(&mut self.bags, other.bags);
        plan.add_payloads(moves, &mut self.payloads, other.payloads)
    }

    /// Drops copied rows that can be in no sample, so that they need not travel.
    pub fn cut(&mut self, plan: &Plan) {
        for bag in self.bags.values_mut().filter(|bag| bag.keys.len() > plan.max_rows()) {
            *bag = bag.smallest(plan.max_rows()).into_owned();
        }
    }
}

/// The findings of a pass so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// For each batch and proposal, the summary of the parts.
    pub parts: Vec<Vec<Summary>>,
    /// Copied rows by component or part.
    pub bags: BTreeMap<ComponentId, Bag>,
    /// Further findings of moves.
    pub payloads: Payloads,
}

impl Found {
    /// Whether visits that follow this plan can have found this. Payloads, which only moves can check, are left out.
    pub(super) fn fits(&self, plan: &Plan, n_statistics: usize, n_batches: usize) -> bool {
        let parts = self.parts.iter().all(|batch| {
            let mut pairs = batch.iter().zip(&plan.proposals);
            let all = pairs.all(|(parts, proposal)| parts.fits(&proposal.parts.ids, n_statistics) && has_gaps(parts));
            all && (batch.is_empty() || batch.len() == plan.proposals.len())
        });
        parts && self.bags.values().all(Bag::fits) && self.parts.len() <= n_batches
    }
}

/// Whether the gaps of all pairs are known.
fn has_gaps(parts: &Summary) -> bool {
    matches!(&parts.gaps, PairGaps::Known(gaps) if gaps.values().all(|gap| gap.is_finite()))
}
