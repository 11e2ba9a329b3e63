//! The moves of one pass: planned before it, fed by its visits, and settled after it.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use crate::component::{ComponentId, EditLog, position};
use crate::error::Result;
use crate::memo::Memo;
use crate::model::Model;
use crate::moves::growth::FEW;
use crate::moves::{Bag, Failures, Findings, Judge, MoveState, Plan, Planning, Proposal, Report, Round, Settling};
use crate::simd::Scalar;
use crate::suffstats::Summary;

impl<F: Scalar> Round<'_, F> {
    /// Plans `pass` from the findings of the last one.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`]; [`crate::Error::Numerical`].
    pub fn plan(&self, state: &mut MoveState, memo: &mut Memo, edits: &mut EditLog, pass: usize) -> Result<()> {
        let found = std::mem::take(&mut state.found);
        let mut next = state.clone();
        match self.next_plan(&mut next, memo, &found.bags, edits, pass) {
            Ok(plan) => {
                *state = MoveState { plan, ..next };
                Ok(())
            }
            Err(error) => {
                // A later run starts this plan again.
                state.found = found;
                Err(error)
            }
        }
    }

    fn next_plan(
        &self,
        state: &mut MoveState,
        memo: &mut Memo,
        bags: &BTreeMap<ComponentId, Bag>,
        edits: &mut EditLog,
        pass: usize,
    ) -> Result<Plan> {
        let (plan, fresh) = (Plan { version: pass as u64 + 1, ..Plan::default() }, BTreeSet::new());
        let mut planning =
            Planning { round: self, pass, memo, edits, bags, state, plan, fresh, candidates: Vec::new() };
        planning.find_candidates();
        self.moves.iter().try_for_each(|one| one.propose(&mut planning))?;
        for Proposal { parts, .. } in &mut planning.plan.proposals {
            parts.ids = planning.edits.issue(parts.ids.len());
        }
        self.moves.iter().try_for_each(|one| one.plan(&mut planning))?;
        planning.plan.pairs.sort_unstable();
        planning.plan.pairs.dedup();
        planning.plan.collect = planning.collect();
        Ok(planning.plan)
    }

    /// Adds the findings of the visit of a batch.
    ///
    /// # Errors
    /// [`crate::Error::Format`] for findings that the moves did not write.
    pub fn take(&self, state: &mut MoveState, batch: usize, findings: Findings) -> Result<()> {
        let MoveState { plan, found, .. } = state;
        found.parts.resize(self.n_batches, Vec::new());
        found.parts[batch] = findings.parts;
        plan.add_bags(&mut found.bags, findings.bags);
        plan.add_payloads(self.moves, &mut found.payloads, findings.payloads)
    }

    /// Judges all findings of `pass` and carries out the edits that raise the bound, move by move. It must not be
    /// interrupted, because an intermediate state would be invalid. Returns the model if moves have changed its base
    /// measure.
    ///
    /// # Errors
    /// [`crate::Error::Numerical`].
    pub fn settle(
        &self,
        state: &mut MoveState,
        memo: &mut Memo,
        edits: &mut EditLog,
        pass: usize,
    ) -> Result<(Vec<Report>, Option<Model<F>>)> {
        let looks_ahead = self.estimates() && state.is_in_last_round(pass);
        let mut settling = Settling {
            round: self,
            judge: Judge::new(&self.model),
            pass,
            memo,
            edits,
            state,
            owner: BTreeMap::new(),
            touched: BTreeSet::new(),
            fresh: BTreeSet::new(),
            looks_ahead,
            unedited: Cell::new(None),
            ahead: None,
            undone: false,
        };
        let mut reports = Vec::new();
        for one in self.moves {
            let report = one.settle(&mut settling)?;
            settling.looks_ahead &= report.accepted == 0;
            reports.push(report);
            if settling.undone || settling.ahead.is_some() {
                break;
            }
        }
        let Settling { owner, ahead, .. } = settling;
        self.keep_bags(state, memo.total(), &owner);
        memo.drop_gaps();
        Ok((reports, ahead))
    }

    /// Keeps only the rows from which the next parts can be made, assigned to the current components.
    fn keep_bags(&self, state: &mut MoveState, total: &Summary, owner: &BTreeMap<ComponentId, ComponentId>) {
        let (found, plan) = (std::mem::take(&mut state.found), std::mem::take(&mut state.plan));
        let max_rows = self.subsample().max_rows;
        for (id, bag) in found.bags {
            let id = owner.get(&id).copied().unwrap_or(id);
            if position(&total.ids, id).is_ok() {
                // Which further rows visits copied depends on what they knew of other visits.
                let bag = bag.smallest(plan.max_rows()).into_owned();
                state.found.bags.entry(id).or_default().merge(bag, max_rows);
            }
        }
    }

    /// After a pass with a negligible gain: returns whether no move is left to try. Otherwise prepares a last round, in
    /// which everything is tried once more.
    pub fn is_exhausted(&self, state: &mut MoveState, total: &Summary, reports: &[Report], pass: usize) -> bool {
        if reports.iter().any(|report| report.accepted > 0) {
            state.last_round = None;
            return false;
        }
        // A run that resumes from a checkpoint asks again before that pass.
        if state.last_round == Some(pass) || self.has_untried(state, total, pass) {
            return false;
        }
        let nothing_failed = state.memories.values().all(Failures::is_empty) && !self.estimates();
        if state.last_round.is_some() || nothing_failed {
            return true;
        }
        state.last_round = Some(pass);
        // Under another base measure failed moves may succeed.
        if self.estimates() && total.n_components() <= FEW {
            state.end_waits();
        } else {
            state.end_waits_of_changed(total);
        }
        false
    }
}
