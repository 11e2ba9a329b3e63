//! Births as in the paper (Hughes & Sudderth 2013, section 3.2; mathematics 4.6.3): fresh components compete for all
//! rows during a pass.
//!
//! Fresh components are appended empty. The subsample from which they were made is counted twice until the end of the
//! pass, so that they survive the first batches. It is then subtracted again, and sums over batches are exact. If the
//! bound has fallen, the previous state is restored.

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

/// Maximum number of components that are tried per pass.
pub(super) const MAX_TARGETS: usize = 10;

/// Fresh components that compete in this pass, and the state before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Adoption {
    /// The fresh components of each target.
    pub fresh: Vec<(ComponentId, Vec<ComponentId>)>,
    /// The previous memo.
    memo: Memo,
    /// Its bound, nats; `None` if it did not cover all data.
    elbo: Option<f64>,
}

impl Adoption {
    /// Appends the parts of the proposals as components and counts their subsamples twice.
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
        // The subsample was weighted up to the mass of its target; this undoes the weighting.
        let p = twice.n_statistics;
        let mut part = 0;
        for (proposal, mass) in proposals.iter().zip(masses) {
            let factor = mass / proposal.parts.counts.iter().sum::<f64>();
            for _ in &proposal.parts.ids {
                twice.counts[part] *= factor;
                twice.statistics[part * p..][..p].iter_mut().for_each(|value| *value *= factor);
                part += 1;
            }
        }
        let edit = Edit::Append { ids };
        memo.apply(&edit)?;
        edits.push(edit);
        for proposal in &proposals {
            edits.inherit(proposal.target, &proposal.parts.ids);
        }
        memo.inflate(twice)?;
        let fresh = proposals.into_iter().map(|proposal| (proposal.target, proposal.parts.ids)).collect();
        Ok(Self { fresh, memo: before, elbo })
    }

    /// Whether this adoption is consistent with a run that now has the components `ids`.
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

    /// The previous bound, nats, if it was known.
    pub fn bound(&self) -> Option<f64> {
        self.elbo
    }

    /// Restores the previous state if the bound is lower now; returns whether it did.
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
