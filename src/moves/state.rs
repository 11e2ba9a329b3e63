//! Where the moves of a run stand between passes and in the middle of one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::component::ComponentId;
use crate::moves::{Bag, Failures, Found, MoveKind, Payloads, Plan, Report};
use crate::suffstats::Summary;

/// Where the moves of a run stand.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MoveState {
    /// The plan of the visits of this pass.
    pub plan: Plan,
    /// Their findings so far; between passes the rows for the next parts.
    pub found: Found,
    /// By kind, what has been tried without success.
    pub(super) memories: BTreeMap<MoveKind, Failures>,
    /// By kind and reason, components that were given up before the visits, since the last report.
    pub(super) early: BTreeMap<MoveKind, BTreeMap<String, usize>>,
    /// The first of the passes in which everything is tried once more, before the run ends.
    pub(super) last_round: Option<usize>,
    /// Further memory of moves.
    pub own: Payloads,
}

/// What the state of a run must match.
#[derive(Debug, Clone, Copy)]
pub struct RunShape<'a> {
    /// The components.
    pub ids: &'a [ComponentId],
    /// Statistics of a component.
    pub n_statistics: usize,
    /// Batches of a pass.
    pub n_batches: usize,
}

impl MoveState {
    /// Rows of the only component, before the first pass.
    pub fn start_from(&mut self, id: ComponentId, bag: Bag) {
        self.found.bags.insert(id, bag);
    }

    /// Whether this can be the state of a run with the components `ids`, for a state that was read from a file. What
    /// only moves can tell is left out.
    pub fn fits(&self, ids: &[ComponentId], n_statistics: usize, n_batches: usize) -> bool {
        self.plan.fits(ids, n_statistics) && self.found.fits(&self.plan, n_statistics, n_batches)
    }

    /// Failed attempts of moves of a kind.
    pub fn memory(&mut self, kind: &MoveKind) -> &mut Failures {
        self.memories.entry(kind.clone()).or_default()
    }

    /// Components that were tried without success may be tried again.
    pub fn end_waits(&mut self) {
        self.memories.values_mut().for_each(Failures::clear);
    }

    /// Whether everything is tried once more in `pass`. Rows for parts are collected in the first of such passes.
    pub(super) fn is_in_last_round(&self, pass: usize) -> bool {
        self.last_round.is_some_and(|first| pass >= first)
    }

    /// Components that were tried without success may be tried again before the run ends, where that may come to
    /// something else: not all rows were looked at, or the component has changed.
    pub(super) fn end_waits_of_changed(&mut self, total: &Summary) {
        let counts: BTreeMap<ComponentId, f64> = total.ids.iter().copied().zip(total.counts.iter().copied()).collect();
        let count = |id| counts.get(&id).copied().unwrap_or(0.0);
        self.memories.values_mut().for_each(|memory| memory.forget_changed(count));
    }

    /// A component has become another one.
    pub fn forget(&mut self, id: ComponentId) {
        self.memories.values_mut().for_each(|memory| memory.forget(id));
    }

    /// Whether moves of a kind may try a component in `pass`.
    pub fn is_ready(&self, kind: &MoveKind, id: ComponentId, count: f64, pass: usize) -> bool {
        self.memories.get(kind).is_none_or(|memory| memory.is_ready(id, count, pass))
    }

    /// Whether a component may be split in `pass`, by any of these kinds.
    pub(super) fn may_grow(&self, kinds: &[MoveKind], id: ComponentId, count: f64, pass: usize) -> bool {
        count > 0.0 && kinds.iter().any(|kind| self.is_ready(kind, id, count, pass))
    }

    /// Remembers for the report why `n` components were given up before the visits.
    pub fn refuse_early(&mut self, kind: &MoveKind, reason: &str, n: usize) {
        if n > 0 {
            *self.early.entry(kind.clone()).or_default().entry(reason.to_owned()).or_default() += n;
        }
    }

    /// The report with the components that were given up before the visits.
    #[must_use]
    pub fn with_early_refusals(&mut self, mut report: Report) -> Report {
        let early = self.early.remove(&report.kind).unwrap_or_default();
        report.proposed += early.values().sum::<usize>();
        report.refused.extend(early);
        report
    }
}
