//! The state of the moves of a run, between passes and within a pass.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::component::ComponentId;
use crate::moves::{Bag, Failures, Found, MoveKind, Payloads, Plan, Report};
use crate::suffstats::Summary;

/// The state of the moves of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MoveState {
    /// The plan of the current pass.
    pub plan: Plan,
    /// The findings so far; between passes only the rows for the next parts.
    pub found: Found,
    /// For each kind, the components that were tried without success.
    pub(super) memories: BTreeMap<MoveKind, Failures>,
    /// For each kind and reason, the number of components abandoned before the visits, since the last report.
    pub(super) early: BTreeMap<MoveKind, BTreeMap<String, usize>>,
    /// The first pass of the last round, in which everything is tried once more before the run ends.
    pub(super) last_round: Option<usize>,
    /// Further state of moves.
    pub payloads: Payloads,
}

/// Properties of a run that a state must match.
#[derive(Debug, Clone, Copy)]
pub struct RunShape<'a> {
    /// The components.
    pub ids: &'a [ComponentId],
    /// Number of statistics per component.
    pub n_statistics: usize,
    /// Number of batches per pass.
    pub n_batches: usize,
}

impl MoveState {
    /// Stores rows of the only component before the first pass.
    pub fn start_from(&mut self, id: ComponentId, bag: Bag) {
        self.found.bags.insert(id, bag);
    }

    /// Whether a state that was read from a file is valid for a run with the components `ids`. Payloads, which only
    /// moves can check, are left out.
    pub fn fits(&self, ids: &[ComponentId], n_statistics: usize, n_batches: usize) -> bool {
        self.plan.fits(ids, n_statistics) && self.found.fits(&self.plan, n_statistics, n_batches)
    }

    /// The failures of moves of a kind.
    pub fn memory(&mut self, kind: &MoveKind) -> &mut Failures {
        self.memories.entry(kind.clone()).or_default()
    }

    /// Allows components that were tried without success to be tried again.
    pub fn end_waits(&mut self) {
        self.memories.values_mut().for_each(Failures::clear);
    }

    /// Forgets all failures, for a run that goes on under another base measure.
    pub fn start_over(&mut self) {
        self.end_waits();
        self.last_round = None;
    }

    /// Whether `pass` belongs to the last round, in which everything is tried once more. Rows for parts are collected
    /// in its first pass.
    pub(super) fn is_in_last_round(&self, pass: usize) -> bool {
        self.last_round.is_some_and(|first| pass >= first)
    }

    /// Allows failed components to be tried again before the run ends if the result may differ: not all rows were
    /// considered, or the component has changed.
    pub(super) fn end_waits_of_changed(&mut self, total: &Summary) {
        let counts: BTreeMap<ComponentId, f64> = total.ids.iter().copied().zip(total.counts.iter().copied()).collect();
        let count = |id| counts.get(&id).copied().unwrap_or(0.0);
        self.memories.values_mut().for_each(|memory| memory.forget_changed(count));
    }

    /// Forgets a component whose identity now stands for another one.
    pub fn forget(&mut self, id: ComponentId) {
        self.memories.values_mut().for_each(|memory| memory.forget(id));
    }

    /// Whether moves of a kind may try a component in `pass`.
    pub fn is_ready(&self, kind: &MoveKind, id: ComponentId, count: f64, pass: usize) -> bool {
        self.memories.get(kind).is_none_or(|memory| memory.is_ready(id, count, pass))
    }

    /// Whether a move of any of these kinds may split a component in `pass`.
    pub(super) fn may_grow(&self, kinds: &[MoveKind], id: ComponentId, count: f64, pass: usize) -> bool {
        count > 0.0 && kinds.iter().any(|kind| self.is_ready(kind, id, count, pass))
    }

    /// Records for the report why `n` components were abandoned before the visits.
    pub fn refuse_early(&mut self, kind: &MoveKind, reason: &str, n: usize) {
        if n > 0 {
            *self.early.entry(kind.clone()).or_default().entry(reason.to_owned()).or_default() += n;
        }
    }

    /// Adds to a report the components that were abandoned before the visits.
    #[must_use]
    pub fn with_early_refusals(&mut self, mut report: Report) -> Report {
        let early = self.early.remove(&report.kind).unwrap_or_default();
        report.proposed += early.values().sum::<usize>();
        report.refused.extend(early);
        report
    }
}
