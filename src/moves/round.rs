//! The moves of a run, pass by pass: what is planned before a pass, and what becomes of it afterwards.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::component::{ComponentId, EditLog, position};
use crate::error::Result;
use crate::memo::Memo;
use crate::model::Model;
use crate::moves::adoption::{self, Adoption};
use crate::moves::create::{Creation, Start};
use crate::moves::delete::{MOST_ROWS, Outcome, Refit};
use crate::moves::judge::Judge;
use crate::moves::memory::Memory;
use crate::moves::plan::{Bag, Collect, Findings, Found, Plan, Proposal};
use crate::moves::{Kind, Moves, Report, merge, split};
use crate::parallel::{Cancel, try_map};
use crate::responsibilities::Sparsity;
use crate::rng::{Choices, Purpose, name, stream};
use crate::simd::Scalar;
use crate::suffstats::Summary;

/// A component with less mass is not split.
const LEAST_COUNT: f64 = 4.0;
/// Nor is one of which there are fewer rows.
const LEAST_ROWS: usize = 4;
/// Components that are tried in a pass at most, the largest first.
const MOST_TARGETS: usize = 100;
/// Rows that are copied for parts in a pass, of all components together.
const MOST_COLLECTED: usize = 200_000;
/// Bytes for what the parts of all proposals have of every batch.
const PARTS_MEMORY: usize = 256 << 20;
/// Passes after which pairs are ranked again where the list of components has not changed.
const RANKED_AGAIN: usize = 5;

/// Where the moves of a run stand.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// What the visits of this pass look for.
    pub plan: Plan,
    /// What they have found so far; of the last pass until the next one is planned.
    pub found: Found,
    grown: Memory,
    deleted: Memory,
    /// The pass before which pairs were last ranked, and the components then.
    ranked: Option<(usize, Vec<ComponentId>)>,
    /// Components whose parts turned out to be one, or which had too few rows, since the last report.
    unborn: BTreeMap<String, usize>,
    /// Whether everything is tried once more before the run ends.
    last_round: bool,
    /// Fresh components that compete for the rows of this pass.
    adoption: Option<Adoption>,
    /// Whether the last pass was undone; the next one is made without births, so that it gains what a pass gains.
    restored: bool,
}

impl State {
    /// Rows of the only component, before the first pass.
    pub fn start_from(&mut self, id: ComponentId, bag: Bag) {
        self.found.bags.insert(id, bag);
    }

    /// Whether this can be the state of a run with the components `ids`: what is read from a file may be anything.
    pub fn fits(&self, ids: &[ComponentId], n_statistics: usize, n_batches: usize) -> bool {
        let adoption = self.adoption.as_ref().is_none_or(|adoption| adoption.fits(ids, n_statistics, n_batches));
        adoption && self.plan.fits(ids, n_statistics) && self.found.fits(&self.plan, n_statistics, n_batches)
    }

    /// After a pass that gained next to nothing: whether no move is left to try. If something is, all is tried once more.
    pub fn is_exhausted(&mut self, total: &Summary, reports: &[Report], pass: usize) -> bool {
        if reports.iter().any(|report| report.accepted > 0) {
            self.last_round = false;
            return false;
        }
        let untried = |(id, count): (&ComponentId, &f64)| {
            self.found.bags.get(id).is_some_and(|bag| bag.names.len() >= LEAST_ROWS)
                && *count >= LEAST_COUNT
                && self.grown.is_ready(*id, *count, pass)
        };
        if total.ids.iter().zip(&total.counts).any(untried) {
            return false;
        }
        if self.last_round || (self.grown.is_empty() && self.deleted.is_empty()) {
            return true;
        }
        self.last_round = true;
        self.grown.clear();
        self.deleted.clear();
        self.ranked = None;
        false
    }
}

/// What the moves of a pass need.
pub struct Round<'a, F: Scalar> {
    /// The model.
    pub model: &'a Model<F>,
    /// Which moves are made.
    pub moves: &'a Moves,
    /// Components kept a unit.
    pub sparsity: Sparsity,
    /// Nats below the best from which on a component is not kept.
    pub margin: Option<f64>,
    /// The seed of the run.
    pub seed: u64,
    /// Batches of a pass.
    pub n_batches: usize,
    /// Stops between blocks.
    pub cancel: &'a Cancel,
}

impl<F: Scalar> Round<'_, F> {
    /// Plans `pass` from what the last one found.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`]; [`crate::Error::Numerical`].
    pub fn plan(&self, state: &mut State, memo: &mut Memo, edits: &mut EditLog, pass: usize) -> Result<()> {
        let found = std::mem::take(&mut state.found);
        let mut next = state.clone();
        match self.next_plan(&mut next, memo, &found.bags, edits, pass) {
            Ok(plan) => {
                *state = State { plan, ..next };
                Ok(())
            }
            Err(error) => {
                // A later run begins with this plan again.
                state.found = found;
                Err(error)
            }
        }
    }

    fn next_plan(
        &self,
        state: &mut State,
        memo: &mut Memo,
        bags: &BTreeMap<ComponentId, Bag>,
        edits: &mut EditLog,
        pass: usize,
    ) -> Result<Plan> {
        let mut proposals = self.propose(state, memo.total(), bags, edits, pass)?;
        if self.adopts() {
            let (fresh, others): (Vec<_>, Vec<_>) = proposals.into_iter().partition(|p| p.kind == Kind::Birth);
            proposals = others;
            if !fresh.is_empty() {
                let mass =
                    |proposal: &Proposal| bags[&proposal.target].smallest(self.most_rows()).rows.masses().iter().sum();
                let masses: Vec<f64> = fresh.iter().map(mass).collect();
                state.adoption = Some(Adoption::begin(self.model, memo, edits, fresh, &masses)?);
                // Targets of splits might be merged with fresh components before it is their turn.
                proposals.clear();
            }
        }
        let total = memo.total();
        let pairs = self.pairs(state, total, pass)?;
        let targets: BTreeSet<ComponentId> = proposals.iter().map(|proposal| proposal.target).collect();
        let n_parts = proposals.iter().map(|proposal| proposal.parts.ids.len()).sum();
        let collect = self.collect(state, total, &targets, pass, n_parts);
        let shared = self.to_delete(state, total, &targets, pass);
        Ok(Plan { version: pass as u64 + 1, pairs, proposals, collect, shared })
    }

    fn adopts(&self) -> bool {
        self.moves.birth.is_some_and(|birth| birth.adopt)
    }

    /// Takes in what the visit of a batch found.
    pub fn take(&self, state: &mut State, batch: usize, findings: Findings) {
        let State { plan, found, .. } = state;
        found.take(batch, self.n_batches, findings, plan);
    }

    /// Whether `pass` has been planned.
    pub fn is_planned(&self, state: &State, pass: usize) -> bool {
        state.plan.version == pass as u64 + 1
    }

    /// Parts for all components that are ready and of which there are rows.
    fn propose(
        &self,
        state: &mut State,
        total: &Summary,
        bags: &BTreeMap<ComponentId, Bag>,
        edits: &mut EditLog,
        pass: usize,
    ) -> Result<Vec<Proposal>> {
        let mut few = 0;
        let mut targets = Vec::new();
        for k in 0..total.n_components() {
            let (id, count) = (total.ids[k], total.counts[k]);
            if count < LEAST_COUNT || !state.grown.is_ready(id, count, pass) {
                continue;
            }
            match bags.get(&id) {
                Some(bag) if bag.names.len() >= LEAST_ROWS => targets.push((id, k)),
                Some(_) => few += 1,
                None => {}
            }
        }
        targets.sort_by(|a, b| total.counts[b.1].total_cmp(&total.counts[a.1]));
        let mut chosen: Vec<(Kind, Start, ComponentId, usize)> = Vec::new();
        let undone = std::mem::take(&mut state.restored);
        if let Some(birth) = self.moves.birth.filter(|_| !undone) {
            let most = if birth.adopt { adoption::MOST_TARGETS } else { MOST_TARGETS };
            let room = self.room(total, birth.fresh).min(most);
            chosen.extend(targets.iter().take(room).map(|&(id, k)| (Kind::Birth, Start::Fresh(birth.fresh), id, k)));
            targets.drain(..room.min(targets.len()));
        }
        if let Some(split) = self.moves.split {
            let mut generator = stream(self.seed, Purpose::Targets, pass as u64);
            let room = split.candidates.min(self.room(total, 2));
            while !targets.is_empty() && chosen.len() < room {
                let masses: Vec<f64> = targets.iter().map(|&(_, k)| total.counts[k]).collect();
                let (id, k) = targets.remove(generator.choose(&masses));
                chosen.push((Kind::Split, Start::Bisector, id, k));
            }
        }
        let created = try_map(chosen.len(), |at| {
            let (kind, start, id, k) = chosen[at];
            let mut generator = stream(self.seed, Purpose::Creation, name(pass as u64, [u64::from(id.0)]));
            let join = kind == Kind::Birth && self.adopts();
            let creation = Creation { model: self.model, total, join, cancel: self.cancel };
            creation.parts(k, &bags[&id].smallest(self.most_rows()), start, &mut generator)
        })?;
        let mut proposals = Vec::new();
        for ((kind, _, target, k), parts) in chosen.into_iter().zip(created) {
            match parts {
                Some(mut parts) => {
                    parts.ids = edits.issue(parts.ids.len());
                    proposals.push(Proposal { kind, target, parts });
                }
                None => {
                    state.grown.failed(target, total.counts[k], pass);
                    *state.unborn.entry("its rows are better off in one piece".into()).or_default() += 1;
                }
            }
        }
        if few > 0 {
            *state.unborn.entry("too few rows".into()).or_default() += few;
        }
        Ok(proposals)
    }

    /// How many components can be cut into `fresh` parts at a time.
    fn room(&self, total: &Summary, fresh: usize) -> usize {
        let bytes = self.n_batches * fresh * (total.n_statistics + 2) * size_of::<f64>();
        (PARTS_MEMORY / bytes.max(1)).clamp(1, MOST_TARGETS)
    }

    fn most_rows(&self) -> usize {
        self.moves.birth.map_or(5000, |birth| birth.max_subsample)
    }

    /// Pairs that might be merged. They are ranked anew where the components are others, and now and then.
    fn pairs(&self, state: &mut State, total: &Summary, pass: usize) -> Result<Vec<(ComponentId, ComponentId)>> {
        if !self.moves.merge {
            return Ok(Vec::new());
        }
        let mut ids = total.ids.clone();
        ids.sort_unstable();
        if state.ranked.as_ref().is_some_and(|(at, before)| *before == ids && pass < at + RANKED_AGAIN) {
            return Ok(state.plan.pairs.clone());
        }
        state.ranked = Some((pass, ids));
        let fresh = state.adoption.as_ref().map_or_else(BTreeSet::new, Adoption::ids);
        merge::rank(&Judge::new(self.model), total, &fresh)
    }

    /// Rows of all components that may be split after this pass.
    fn collect(
        &self,
        state: &State,
        total: &Summary,
        targets: &BTreeSet<ComponentId>,
        pass: usize,
        n_parts: usize,
    ) -> Option<Collect> {
        if !self.moves.grow() {
            return None;
        }
        let all = total.ids.iter().zip(&total.counts);
        let ready = all.filter(|(id, count)| {
            **count >= LEAST_COUNT && !targets.contains(id) && state.grown.is_ready(**id, **count, pass + 1)
        });
        let ids: Vec<_> = ready.map(|(id, _)| *id).collect();
        let most = (MOST_COLLECTED / (ids.len() + n_parts).max(1)).clamp(100, self.most_rows());
        let threshold = self.moves.birth.map_or(0.1, |birth| birth.threshold);
        let name = name(self.seed, [Purpose::Collection as u64, pass as u64]);
        (!ids.is_empty() || n_parts > 0).then_some(Collect { ids, threshold, most, name })
    }

    /// The smallest components that are ready, and that are not being split.
    fn to_delete(
        &self,
        state: &State,
        total: &Summary,
        targets: &BTreeSet<ComponentId>,
        pass: usize,
    ) -> Vec<ComponentId> {
        let Some(delete) = self.moves.delete else { return Vec::new() };
        let mut smallest: Vec<usize> = (0..total.n_components())
            .filter(|&k| !targets.contains(&total.ids[k]) && total.counts[k] <= MOST_ROWS as f64)
            .filter(|&k| state.deleted.is_ready(total.ids[k], total.counts[k], pass))
            .collect();
        smallest.sort_by(|&a, &b| total.counts[a].total_cmp(&total.counts[b]));
        smallest.truncate(delete.candidates);
        if total.n_components() > 1 { smallest.into_iter().map(|k| total.ids[k]).collect() } else { Vec::new() }
    }

    /// Judges all that was found in `pass` and carries out what raises the bound: parts first, then merges, then deletes.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`]; [`crate::Error::Numerical`].
    pub fn settle(&self, state: &mut State, memo: &mut Memo, edits: &mut EditLog, pass: usize) -> Result<Vec<Report>> {
        let judge = Judge::new(self.model);
        let mut reports = Vec::new();
        let mut touched = BTreeSet::new();
        let mut owner = BTreeMap::new();
        if let Some(adoption) = state.adoption.take() {
            memo.deflate()?;
            let (report, restored) = self.settle_adoption(&judge, &adoption, state, memo, edits, &mut owner, pass)?;
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
            let unborn = std::mem::take(&mut state.unborn);
            let proposed = unborn.values().sum();
            reports.push(Report {
                kind: Kind::Birth,
                proposed,
                accepted: 0,
                gain: 0.0,
                refused: unborn.into_iter().collect(),
            });
        }
        for (kind, most) in [(Kind::Birth, usize::MAX), (Kind::Split, 1)] {
            let asked = match kind {
                Kind::Birth => self.moves.birth.is_some() && !self.adopts(),
                _ => self.moves.split.is_some(),
            };
            if asked {
                reports.push(self.settle_parts(&judge, state, memo, edits, (kind, most), &mut owner, pass)?);
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
                [keep, gone].into_iter().for_each(|id| {
                    state.grown.forget(id);
                    state.deleted.forget(id);
                });
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
        state.found.shared = super::plan::SharedRows::default();
        state.found.crowded.clear();
        state.plan.proposals.clear();
        state.plan.shared.clear();
        let ids = &memo.total().ids;
        state.plan.pairs.retain(|(a, b)| ids.contains(a) && ids.contains(b));
        memo.drop_gaps();
    }

    /// Merges fresh components that are not needed, and keeps the others if the bound is not lower than before they came.
    #[allow(clippy::too_many_arguments)]
    fn settle_adoption(
        &self,
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
                state.grown.forget(*target);
            } else if let Ok(at) = position(&memo.total().ids, *target) {
                state.grown.failed(*target, memo.total().counts[at], pass);
            }
        }
        let gain = match before {
            Some(before) if !restored => judge.bound(memo.total())? - before,
            _ => 0.0,
        };
        let n = adoption.fresh.len();
        let mut refused = refusals([if restored { ("the bound fell", n) } else { ("no part was left", n - accepted) }]);
        let unborn = std::mem::take(&mut state.unborn);
        let proposed = n + unborn.values().sum::<usize>();
        refused.extend(unborn);
        Ok((Report { kind: Kind::Birth, proposed, accepted, gain, refused }, restored))
    }

    #[allow(clippy::too_many_arguments)]
    fn settle_parts(
        &self,
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
        for (proposal, gain) in proposals.iter().zip(&settled.gains) {
            match gain {
                Some(_) => state.grown.forget(proposal.target),
                None => state.grown.failed(proposal.target, counts[&proposal.target], pass),
            }
            state.deleted.forget(proposal.target);
        }
        owner.extend(settled.owner);
        let accepted = settled.gains.iter().flatten().count();
        let mut refused = refusals([("no gain", proposals.len() - accepted)]);
        let unborn = std::mem::take(&mut state.unborn);
        let n_unborn: usize = unborn.values().sum();
        refused.extend(unborn);
        Ok(Report {
            kind,
            proposed: proposals.len() + n_unborn,
            accepted,
            gain: settled.gains.iter().flatten().fold(0.0, |sum, gain| sum + gain),
            refused,
        })
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
        let refit = Refit { model: self.model, sparsity: self.sparsity, margin: self.margin, cancel: self.cancel };
        let outcomes = refit.settle(judge, memo, edits, &candidates, &mut shared)?;
        crowded.iter().for_each(|&id| state.deleted.failed(id, counts[&id], pass));
        let mut gain = 0.0;
        for (&id, outcome) in candidates.iter().zip(&outcomes) {
            match outcome {
                Outcome::Accepted(one) => {
                    gain += one;
                    state.deleted.forget(id);
                    state.grown.forget(id);
                }
                _ => state.deleted.failed(id, counts[&id], pass),
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
