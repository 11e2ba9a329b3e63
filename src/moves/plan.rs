//! What the visits of a pass look for on behalf of moves, and what they find.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::component::ComponentId;
use crate::data::Sample;
use crate::global_step::Globals;
use crate::moves::Kind;
use crate::moves::delete::MOST_ROWS;
use crate::suffstats::{PairGaps, Summary};

/// What the visits of one pass look for: small enough to send to a worker, and the same for every batch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Tells this plan from those of other passes.
    pub version: u64,
    /// Pairs that might be merged, the smaller identity first: what their merge-entropy gaps are.
    pub pairs: Vec<(ComponentId, ComponentId)>,
    /// Components that might be split: what their parts would have of each batch.
    pub proposals: Vec<Proposal>,
    /// Rows that the parts of a component can be made of.
    pub collect: Option<Collect>,
    /// Components that might be deleted: all rows that they share.
    pub shared: Vec<ComponentId>,
}

/// A component and the parts into which it might be split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    /// Which move proposes it.
    pub kind: Kind,
    /// The component.
    pub target: ComponentId,
    /// The parts, under identities that will be theirs if they are accepted.
    pub parts: Globals,
}

/// Which rows are copied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Collect {
    /// Of these components, and of all parts of proposals.
    pub ids: Vec<ComponentId>,
    /// Rows with a responsibility above this.
    pub threshold: f64,
    /// So many rows of each at most, at random.
    pub most: usize,
    /// Names the random choice.
    pub name: u64,
}

impl Plan {
    /// Whether this can be a plan for the components `ids`.
    pub(super) fn fits(&self, ids: &[ComponentId], n_statistics: usize) -> bool {
        let pairs = self.pairs.iter().all(|(a, b)| a < b && ids.contains(a) && ids.contains(b));
        let proposals = self.proposals.iter().all(|Proposal { target, parts, .. }| {
            let k = parts.ids.len();
            let log_weights = &parts.allocation.expected_log_weights;
            let sizes = (parts.counts.len(), parts.statistics.len(), log_weights.len());
            let numbers = parts.counts.iter().chain(&parts.statistics).all(|value| value.is_finite());
            ids.contains(target) && k > 0 && sizes == (k, k * n_statistics, k) && numbers
        });
        pairs && proposals && self.shared.iter().all(|id| ids.contains(id))
    }

    /// Whether there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty() && self.proposals.is_empty() && self.collect.is_none() && self.shared.is_empty()
    }
}

/// What the visit of one batch finds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// By proposal, what its parts have of the batch.
    pub parts: Vec<Summary>,
    /// By component or part, rows of it.
    pub bags: BTreeMap<ComponentId, Bag>,
    /// The rows of components that might be deleted.
    pub shared: SharedRows,
    /// Of these components, those of which there are more rows than are looked at.
    pub crowded: BTreeSet<ComponentId>,
}

/// Rows of one component: those with the smallest names.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Bag {
    /// The rows.
    pub rows: Sample,
    /// Their names.
    pub names: Vec<u64>,
}

impl Bag {
    /// Puts the rows of both into one bag and leaves the `most` with the smallest names.
    pub fn merge(&mut self, other: Self, most: usize) {
        self.rows.append(other.rows);
        self.names.extend(other.names);
        // A bag that is full is sorted out only now and then.
        if self.names.len() > 2 * most {
            *self = self.smallest(most).into_owned();
        }
    }

    /// The `most` rows with the smallest names.
    pub fn smallest(&self, most: usize) -> Cow<'_, Self> {
        if self.names.len() <= most {
            return Cow::Borrowed(self);
        }
        let mut order: Vec<usize> = (0..self.names.len()).collect();
        order.sort_unstable_by_key(|&row| self.names[row]);
        order.truncate(most);
        let names = order.iter().map(|&row| self.names[row]).collect();
        Cow::Owned(Self { rows: self.rows.pick(&order), names })
    }
}

/// All rows that some components have a share of, with all their responsibilities.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SharedRows {
    /// The rows.
    pub rows: Sample,
    /// The batch that each is in.
    pub batches: Vec<u32>,
    /// Of each the components or parts that have a share of it, and how much; the tail is not among them.
    pub pairs: Vec<Vec<(ComponentId, f64)>>,
}

impl SharedRows {
    fn append(&mut self, other: Self) {
        self.rows.append(other.rows);
        self.batches.extend(other.batches);
        self.pairs.extend(other.pairs);
    }
}

/// What the visits of a pass have found so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// By batch and by proposal, what the parts have.
    pub parts: Vec<Vec<Summary>>,
    /// By component or part, rows of it.
    pub bags: BTreeMap<ComponentId, Bag>,
    /// The rows of components that might be deleted.
    pub shared: SharedRows,
    /// Of these components, those of which there are more rows than are looked at.
    pub crowded: BTreeSet<ComponentId>,
}

impl Found {
    /// Whether visits that follow this plan can have found this.
    pub(super) fn fits(&self, plan: &Plan, n_statistics: usize, n_batches: usize) -> bool {
        let parts = self.parts.iter().all(|batch| {
            let mut pairs = batch.iter().zip(&plan.proposals);
            let all = pairs.all(|(parts, proposal)| parts.fits(&proposal.parts.ids, n_statistics) && has_gaps(parts));
            all && (batch.is_empty() || batch.len() == plan.proposals.len())
        });
        let shared = &self.shared;
        let n = shared.rows.len();
        let bags = self.bags.values().all(|bag| bag.rows.fits() && bag.rows.len() == bag.names.len());
        parts
            && bags
            && shared.rows.fits()
            && self.parts.len() <= n_batches
            && (shared.batches.len(), shared.pairs.len()) == (n, n)
            && shared.batches.iter().all(|&batch| (batch as usize) < n_batches)
    }

    /// Takes in what the visit of `batch` of `n_batches` found.
    pub fn take(&mut self, batch: usize, n_batches: usize, findings: Findings, plan: &Plan) {
        self.parts.resize(n_batches, Vec::new());
        self.parts[batch] = findings.parts;
        for (id, bag) in findings.bags {
            let most = plan.collect.as_ref().map_or(0, |collect| collect.most);
            self.bags.entry(id).or_default().merge(bag, most);
        }
        self.shared.append(findings.shared);
        for id in findings.crowded {
            self.crowded.insert(id);
        }
        self.drop_crowded(plan);
    }

    /// Lets go of the rows of candidates that too many share.
    fn drop_crowded(&mut self, plan: &Plan) {
        let n_crowded = self.crowded.len();
        let mut rows: BTreeMap<ComponentId, usize> = plan.shared.iter().map(|&id| (id, 0)).collect();
        for (id, _) in self.shared.pairs.iter().flatten() {
            rows.entry(*id).and_modify(|n| *n += 1);
        }
        self.crowded.extend(rows.iter().filter(|(_, n)| **n > MOST_ROWS).map(|(id, _)| *id));
        if self.crowded.len() > n_crowded {
            let is_left = |id: &ComponentId| rows.contains_key(id) && !self.crowded.contains(id);
            let shared = &self.shared;
            let left: Vec<usize> =
                (0..shared.pairs.len()).filter(|&row| shared.pairs[row].iter().any(|(id, _)| is_left(id))).collect();
            self.shared = SharedRows {
                rows: shared.rows.pick(&left),
                batches: left.iter().map(|&row| shared.batches[row]).collect(),
                pairs: left.iter().map(|&row| shared.pairs[row].clone()).collect(),
            };
        }
    }
}

/// Whether the gaps of all pairs are known.
fn has_gaps(parts: &Summary) -> bool {
    matches!(&parts.gaps, PairGaps::Known(gaps) if gaps.values().all(|gap| gap.is_finite()))
}
