//! The end of a pass: what becomes of all that its visits found for moves.

use std::collections::{BTreeMap, BTreeSet};

use crate::component::{ComponentId, EditLog, position};
use crate::error::Result;
use crate::memo::Memo;
use crate::moves::adoption::Adoption;
use crate::moves::delete::{Outcome, Refit};
use crate::moves::judge::Judge;
use crate::moves::plan::{Plan, Proposal, SharedRows};
use crate::moves::{Kind, Report, Round, State, merge, split};
use crate::simd::Scalar;
use crate::suffstats::Summary;

impl<F: Scalar> Round<'_, F> {
    /// Judges all that was found in `pass` and carries out what raises the bound: parts first, then merges, then deletes.
    /// It is not to be interrupted: half of it would be no valid state.
    ///
    /// # Errors
    /// [`crate::Error::Numerical`].
    pub fn settle(&self, state: &mut State, memo: &mut Memo, edits: &mut EditLog, pass: usize) -> Result<Vec<Report>> {
        let judge = Judge::new(self.model);
        let mut reports = Vec::new();
        let mut touched = BTreeSet::new();
        let mut owner = BTreeMap::new();
        if let Some(adoption) = state.adoption.take() {
            memo.deflate()?;
            let (report, restored) = settle_adoption(&judge, &adoption, state, memo, edits, &mut owner, pass)?;
            if restored {
                // What the visits found belongs to responsibilities that are gone.
                state.restored = true;
                self.keep_bags(state, memo, &owner);
                return Ok(vec![report]);
            }
            reports.push(report);
            touched.extend(owner.values().copied());
        } else if self.adopts() {
            // Nobody was ready, or nobody's rows are better off in several pieces.
            let none = Report { kind: Kind::Birth, proposed: 0, accepted: 0, gain: 0.0, refused: Vec::new() };
            reports.push(with_unborn(state, none));
        }
        for (kind, most) in [(Kind::Birth, usize::MAX), (Kind::Split, 1)] {
            let asked = match kind {
                Kind::Birth => self.moves.birth.is_some() && !self.adopts(),
                _ => self.moves.split.is_some(),
            };
            if asked {
                reports.push(settle_parts(&judge, state, memo, edits, (kind, most), &mut owner, pass)?);
            }
        }
        let targets = state.plan.proposals.iter().map(|proposal| proposal.target);
        touched.extend(
            targets.filter(|target| owner.values().any(|id| id == target) && is_split(&owner, &state.plan, *target)),
        );
        if self.moves.merge {
            let merged = merge::settle(&judge, memo, edits, &state.plan.pairs, &touched)?;
            for &(keep, gone, _) in &merged.accepted {
                owner.values_mut().filter(|id| **id == gone).for_each(|id| *id = keep);
                owner.insert(gone, keep);
                state.forget(keep);
                state.forget(gone);
            }
            reports.push(Report {
                kind: Kind::Merge,
                proposed: merged.proposed,
                accepted: merged.accepted.len(),
                gain: merged.accepted.iter().fold(0.0, |sum, (_, _, gain)| sum + gain),
                refused: refusals([("they overlap too much", merged.overlap), ("another move took one", merged.taken)]),
            });
        }
        if self.moves.delete.is_some() {
            reports.push(self.settle_deletes(&judge, state, memo, edits, &owner, pass)?);
        }
        self.keep_bags(state, memo, &owner);
        Ok(reports)
    }

    /// Leaves of what was found the rows for the next parts, under the components that there are now.
    fn keep_bags(&self, state: &mut State, memo: &mut Memo, owner: &BTreeMap<ComponentId, ComponentId>) {
        let bags = std::mem::take(&mut state.found.bags);
        for (id, bag) in bags {
            let id = owner.get(&id).copied().unwrap_or(id);
            if position(&memo.total().ids, id).is_ok() {
                state.found.bags.entry(id).or_default().merge(bag, self.most_rows());
            }
        }
        state.found.parts.clear();
        state.found.shared = SharedRows::default();
        state.found.crowded.clear();
        state.plan.proposals.clear();
        state.plan.shared.clear();
        let ids = &memo.total().ids;
        state.plan.pairs.retain(|(a, b)| ids.contains(a) && ids.contains(b));
        memo.drop_gaps();
    }

    fn settle_deletes(
        &self,
        judge: &Judge<'_, F>,
        state: &mut State,
        memo: &mut Memo,
        edits: &mut EditLog,
        owner: &BTreeMap<ComponentId, ComponentId>,
        pass: usize,
    ) -> Result<Report> {
        let mut shared = std::mem::take(&mut state.found.shared);
        for pairs in &mut shared.pairs {
            *pairs = resolved(pairs, owner);
        }
        let candidates: Vec<ComponentId> = state
            .plan
            .shared
            .iter()
            .copied()
            .filter(|id| !owner.contains_key(id) && !owner.values().any(|o| o == id))
            .collect();
        let (crowded, candidates): (Vec<_>, Vec<_>) =
            candidates.into_iter().partition(|id| state.found.crowded.contains(id));
        let counts: BTreeMap<_, _> = memo.total().ids.iter().copied().zip(memo.total().counts.clone()).collect();
        let refit = Refit { model: self.model, sparsity: self.sparsity, margin: self.margin };
        let outcomes = refit.settle(judge, memo, edits, &candidates, &mut shared)?;
        for &id in &crowded {
            state.failed(Kind::Delete).failed(id, counts[&id], pass);
        }
        let mut gain = 0.0;
        for (&id, outcome) in candidates.iter().zip(&outcomes) {
            match outcome {
                Outcome::Accepted(one) => {
                    gain += one;
                    state.forget(id);
                }
                _ => state.failed(Kind::Delete).failed(id, counts[&id], pass),
            }
        }
        let number = |wanted: fn(&Outcome) -> bool| outcomes.iter().filter(|outcome| wanted(outcome)).count();
        Ok(Report {
            kind: Kind::Delete,
            proposed: state.plan.shared.len(),
            accepted: number(|outcome| matches!(outcome, Outcome::Accepted(_))),
            gain,
            refused: refusals([
                ("no gain", number(|outcome| *outcome == Outcome::NoGain)),
                ("too many rows", number(|outcome| *outcome == Outcome::TooManyRows) + crowded.len()),
                ("another move took it", state.plan.shared.len() - candidates.len() - crowded.len()),
            ]),
        })
    }
}

/// Merges fresh components that are not needed, and keeps the others if the bound is not lower than before they came.
fn settle_adoption<F: Scalar>(
    judge: &Judge<'_, F>,
    adoption: &Adoption,
    state: &mut State,
    memo: &mut Memo,
    edits: &mut EditLog,
    owner: &mut BTreeMap<ComponentId, ComponentId>,
    pass: usize,
) -> Result<(Report, bool)> {
    let fresh = adoption.ids();
    let (own, others): (Vec<_>, Vec<_>) =
        state.plan.pairs.iter().copied().partition(|(a, b)| fresh.contains(a) || fresh.contains(b));
    state.plan.pairs = others;
    let merged = merge::settle(judge, memo, edits, &own, &BTreeSet::new())?;
    owner.extend(merged.accepted.iter().map(|&(keep, gone, _)| (gone, keep)));
    let before = adoption.bound();
    let restored = adoption.restore(judge, memo, edits)?;
    let mut accepted = 0;
    for (target, fresh) in &adoption.fresh {
        if !restored && fresh.iter().any(|id| memo.total().ids.contains(id)) {
            accepted += 1;
            state.forget(*target);
        } else if let Ok(at) = position(&memo.total().ids, *target) {
            state.failed(Kind::Birth).failed(*target, memo.total().counts[at], pass);
        }
    }
    let gain = match before {
        Some(before) if accepted > 0 => judge.bound(memo.total())? - before,
        _ => 0.0,
    };
    let proposed = adoption.fresh.len();
    let refused =
        refusals([if restored { ("the bound fell", proposed) } else { ("no part was left", proposed - accepted) }]);
    Ok((with_unborn(state, Report { kind: Kind::Birth, proposed, accepted, gain, refused }), restored))
}

fn settle_parts<F: Scalar>(
    judge: &Judge<'_, F>,
    state: &mut State,
    memo: &mut Memo,
    edits: &mut EditLog,
    (kind, most): (Kind, usize),
    owner: &mut BTreeMap<ComponentId, ComponentId>,
    pass: usize,
) -> Result<Report> {
    let counts: BTreeMap<_, _> = memo.total().ids.iter().copied().zip(memo.total().counts.clone()).collect();
    let of_kind: Vec<usize> =
        (0..state.plan.proposals.len()).filter(|&at| state.plan.proposals[at].kind == kind).collect();
    let proposals: Vec<Proposal> = of_kind.iter().map(|&at| state.plan.proposals[at].clone()).collect();
    let take = |batch: &mut Vec<Summary>| of_kind.iter().map(|&at| std::mem::take(&mut batch[at])).collect();
    let parts: Vec<Vec<Summary>> = state.found.parts.iter_mut().map(take).collect();
    let settled = split::settle(judge, memo, edits, &proposals, &parts, most)?;
    for ((proposal, gain), &is_worth) in proposals.iter().zip(&settled.gains).zip(&settled.is_worth) {
        match gain {
            Some(_) => state.forget(proposal.target),
            // A better one went first; this one's turn may come.
            None if is_worth => {}
            None => state.refused(proposal, counts[&proposal.target], pass),
        }
        state.failed(Kind::Delete).forget(proposal.target);
    }
    owner.extend(settled.owner);
    let accepted = settled.gains.iter().flatten().count();
    let later = settled.is_worth.iter().filter(|is_worth| **is_worth).count() - accepted;
    let report = Report {
        kind,
        proposed: proposals.len(),
        accepted,
        gain: settled.gains.iter().flatten().fold(0.0, |sum, gain| sum + gain),
        refused: refusals([("no gain", proposals.len() - accepted - later), ("another one gained more", later)]),
    };
    Ok(with_unborn(state, report))
}

/// With the components for which parts were looked for in vain.
fn with_unborn(state: &mut State, mut report: Report) -> Report {
    let unborn = state.unborn.remove(&report.kind).unwrap_or_default();
    report.proposed += unborn.values().sum::<usize>();
    report.refused.extend(unborn);
    report
}

/// Whether parts of a target have become components.
fn is_split(owner: &BTreeMap<ComponentId, ComponentId>, plan: &Plan, target: ComponentId) -> bool {
    let of_target = plan.proposals.iter().filter(|proposal| proposal.target == target);
    of_target.flat_map(|proposal| &proposal.parts.ids).any(|part| owner.get(part).is_some_and(|id| *id != target))
}

/// The pairs of a row under the components that there are now.
fn resolved(pairs: &[(ComponentId, f64)], owner: &BTreeMap<ComponentId, ComponentId>) -> Vec<(ComponentId, f64)> {
    let mut sums: BTreeMap<ComponentId, f64> = BTreeMap::new();
    for &(id, value) in pairs {
        *sums.entry(owner.get(&id).copied().unwrap_or(id)).or_insert(0.0) += value;
    }
    sums.into_iter().collect()
}

fn refusals<const N: usize>(reasons: [(&str, usize); N]) -> Vec<(String, usize)> {
    reasons.into_iter().filter(|(_, n)| *n > 0).map(|(reason, n)| (reason.to_owned(), n)).collect()
}
