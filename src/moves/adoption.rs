//! Births as in the paper (Hughes & Sudderth 2013, section 3.2; mathematics 4.6.3): fresh components compete for all
//! rows of a pass.
//!
//! They are appended empty. The subsample that made them is counted twice until the end of the pass, so that the first
//! batches do not lose them. Then it is taken away again, and sums over batches are exact. If the bound has fallen, the
//! state before is restored.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::component::{ComponentId, Edit, EditLog};
use crate::elbo;
use crate::error::Result;
use crate::memo::Memo;
use crate::model::Model;
use crate::moves::{Judge, Proposal};
use crate::simd::Scalar;
use crate::suffstats::Summary;

/// Maximum number of components that are tried in a pass.
pub(super) const MAX_TARGETS: usize = 10;

/// Fresh components that are being adopted, and what there was before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Adoption {
    /// By target, its fresh components.
    pub fresh: Vec<(ComponentId, Vec<ComponentId>)>,
    /// The memo before.
    memo: Memo,
    /// Its bound, nats; `None` where it did not cover all data.
    elbo: Option<f64>,
}

impl Adoption {
    /// Appends the parts of the proposals as components and counts what made them twice.
    pub fn begin<F: Scalar>(
        model: &Model<F>,
        memo: &mut Memo,
        edits: &mut EditLog,
        proposals: Vec<Proposal>,
        masses: &[f64],
    ) -> Result<Self> {
        let elbo = if memo.is_complete() { Some(elbo::collapsed(model, memo.total())?.total()) } else { None };
        let before = memo.clone();
        let ids: Vec<ComponentId> = proposals.iter().flat_map(|proposal| proposal.parts.ids.iter().copied()).collect();
        let mut twice = Summary::empty(ids.clone(), memo.total().n_statistics, false);
        let globals = proposals.iter().map(|proposal| &proposal.parts);
        twice.counts = globals.clone().flat_map(|parts| parts.counts.iter().copied()).collect();
        twice.statistics = globals.flat_map(|parts| parts.statistics.iter().copied()).collect();
        // The parts were made of a subsample that was weighted up to the mass of their target.
        let p = twice.n_statistics;
        let mut at = 0;
        for (proposal, mass) in proposals.iter().zip(masses) {
            let factor = mass / proposal.parts.counts.iter().sum::<f64>();
            for _ in &proposal.parts.ids {
                twice.counts[at] *= factor;
                twice.statistics[at * p..][..p].iter_mut().for_each(|value| *value *= factor);
                at += 1;
            }
        }
        let edit = Edit::Append { ids };
        memo.apply(&edit)?;
        edits.push(edit);
        memo.inflate(twice)?;
        let fresh = proposals.into_iter().map(|proposal| (proposal.target, proposal.parts.ids)).collect();
        Ok(Self { fresh, memo: before, elbo })
    }

    /// Whether this can be an adoption in a run that now has the components `ids`.
    pub fn fits(&self, ids: &[ComponentId], n_statistics: usize, n_batches: usize) -> bool {
        let fresh: Vec<_> = self.fresh.iter().flat_map(|(_, fresh)| fresh).collect();
        let old = &self.memo.total().ids;
        let known = fresh.iter().all(|id| ids.contains(id)) && old.iter().all(|id| ids.contains(id));
        known && ids.len() == old.len() + fresh.len() && self.memo.fits(old, n_statistics, n_batches)
    }

    /// All fresh components.
    pub fn ids(&self) -> BTreeSet<ComponentId> {
        self.fresh.iter().flat_map(|(_, fresh)| fresh.iter().copied()).collect()
    }

    /// The bound before, nats, if it was known.
    pub fn bound(&self) -> Option<f64> {
        self.elbo
    }

    /// Restores the state before if the bound is lower now; returns whether it did.
    pub fn restore<F: Scalar>(&self, judge: &Judge<'_, F>, memo: &mut Memo, edits: &mut EditLog) -> Result<bool> {
        let Some(before) = self.elbo else { return Ok(false) };
        if judge.bound(memo.total())? >= before {
            return Ok(false);
        }
        for &id in self.fresh.iter().flat_map(|(_, fresh)| fresh).filter(|id| memo.total().ids.contains(id)) {
            edits.push(Edit::Delete { id });
        }
        *memo = self.memo.clone();
        edits.push(Edit::Reorder { order: memo.total().ids.clone() });
        Ok(true)
    }
}
