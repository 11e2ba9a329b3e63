//! The moves of a run, pass by pass: what is planned before a pass, and what becomes of it afterwards.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::component::{ComponentId, EditLog};
use crate::error::Result;
use crate::memo::Memo;
use crate::model::Model;
use crate::moves::adoption::{self, Adoption};
use crate::moves::create::{Creation, Start};
use crate::moves::delete::MOST_ROWS;
use crate::moves::judge::Judge;
use crate::moves::memory::Memory;
use crate::moves::plan::{Bag, Collect, Findings, Found, Plan, Proposal};
use crate::moves::{Kind, Moves, Report, merge};
use crate::parallel::{Cancel, try_map};
use crate::responsibilities::Sparsity;
use crate::rng::{Choices, Purpose, name, stream};
use crate::simd::Scalar;
use crate::suffstats::Summary;

/// A component of which there are fewer rows is not split.
const LEAST_ROWS: usize = 2;
/// Components that are tried in a pass at most, the largest first.
const MOST_TARGETS: usize = 100;
/// Rows that are copied for parts in a pass, of all components together.
const MOST_COLLECTED: usize = 200_000;
/// But of each component at least so many, if a birth may take as many.
const LEAST_COLLECTED: usize = 100;
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
    /// What births, splits and deletes have tried in vain.
    failed: BTreeMap<Kind, Memory>,
    /// Components whose fresh parts were no gain once all rows had been dealt to them: two halves are tried next.
    halves: BTreeSet<ComponentId>,
    /// The pass before which pairs were last ranked, and the components then.
    ranked: Option<(usize, Vec<ComponentId>)>,
    /// By kind, components whose parts turned out to be one, or which had too few rows, since the last report.
    pub(super) unborn: BTreeMap<Kind, BTreeMap<String, usize>>,
    /// The pass in which everything is tried once more, before the run ends.
    last_round: Option<usize>,
    /// Fresh components that compete for the rows of this pass.
    pub(super) adoption: Option<Adoption>,
    /// Whether the last pass was undone; the next one is made without births, so that it gains what a pass gains.
    pub(super) restored: bool,
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

    /// What moves of a kind have tried in vain.
    pub(super) fn failed(&mut self, kind: Kind) -> &mut Memory {
        self.failed.entry(kind).or_default()
    }

    /// Remembers that a proposal was no gain.
    pub(super) fn refused(&mut self, proposal: &Proposal, count: f64, pass: usize) {
        if proposal.kind == Kind::Birth && proposal.parts.ids.len() > 2 {
            self.halves.insert(proposal.target);
        } else {
            self.failed(proposal.kind).failed(proposal.target, count, pass);
        }
    }

    /// Remembers for the report why so many components were not split.
    fn in_vain(&mut self, kind: Kind, reason: &str, n: usize) {
        if n > 0 {
            *self.unborn.entry(kind).or_default().entry(reason.to_owned()).or_default() += n;
        }
    }

    /// A component has become another one.
    pub(super) fn forget(&mut self, id: ComponentId) {
        self.failed.values_mut().for_each(|memory| memory.forget(id));
        self.halves.remove(&id);
    }

    /// Whether moves of a kind may try a component in `pass`.
    fn is_ready(&self, kind: Kind, id: ComponentId, count: f64, pass: usize) -> bool {
        self.failed.get(&kind).is_none_or(|memory| memory.is_ready(id, count, pass))
    }

    /// Whether a component may be split in `pass`, by any of these kinds.
    fn may_grow(&self, kinds: &[Kind], id: ComponentId, count: f64, pass: usize) -> bool {
        count > 0.0 && kinds.iter().any(|&kind| self.is_ready(kind, id, count, pass))
    }

    /// After a pass that gained next to nothing: whether no move is left to try. If something is, all is tried once more.
    pub fn is_exhausted(&mut self, moves: &Moves, total: &Summary, reports: &[Report], pass: usize) -> bool {
        if reports.iter().any(|report| report.accepted > 0) {
            self.last_round = None;
            return false;
        }
        // A run that goes on from a checkpoint asks again before it makes that pass.
        if self.last_round == Some(pass) {
            return false;
        }
        let untried = |(id, count): (&ComponentId, &f64)| {
            self.found.bags.get(id).is_some_and(|bag| bag.names.len() >= LEAST_ROWS)
                && self.may_grow(&moves.growing(), *id, *count, pass)
        };
        if total.ids.iter().zip(&total.counts).any(untried) {
            return false;
        }
        if self.last_round.is_some() || self.failed.values().all(Memory::is_empty) {
            return true;
        }
        self.last_round = Some(pass);
        self.failed.clear();
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

    pub(super) fn adopts(&self) -> bool {
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
            if !state.may_grow(&self.moves.growing(), id, count, pass) {
                continue;
            }
            match bags.get(&id) {
                Some(bag) if bag.names.len() >= LEAST_ROWS => targets.push((id, k)),
                Some(_) => few += 1,
                None => {}
            }
        }
        targets.sort_by(|a, b| total.counts[b.1].total_cmp(&total.counts[a.1]));
        let ready = |kind| -> Vec<_> {
            let is_ready = |&&(id, k): &&_| state.is_ready(kind, id, total.counts[k], pass);
            targets.iter().filter(is_ready).copied().collect()
        };
        let (for_births, mut for_splits) = (ready(Kind::Birth), ready(Kind::Split));
        let mut chosen: Vec<(Kind, Start, ComponentId, usize)> = Vec::new();
        let undone = std::mem::take(&mut state.restored);
        if let Some(birth) = self.moves.birth.filter(|_| !undone) {
            let most = if birth.adopt { adoption::MOST_TARGETS } else { MOST_TARGETS };
            let room = self.room(total, birth.fresh).min(most);
            for &(id, k) in for_births.iter().take(room) {
                let start = if state.halves.remove(&id) { Start::Bisector } else { Start::Fresh(birth.fresh) };
                chosen.push((Kind::Birth, start, id, k));
            }
            for_splits.retain(|&(id, _)| chosen.iter().all(|&(_, _, other, _)| other != id));
        }
        if let Some(split) = self.moves.split {
            let mut generator = stream(self.seed, Purpose::Targets, pass as u64);
            let room = split.candidates.min(self.room(total, 2));
            for _ in 0..room.min(for_splits.len()) {
                let masses: Vec<f64> = for_splits.iter().map(|&(_, k)| total.counts[k]).collect();
                let (id, k) = for_splits.remove(generator.choose(&masses));
                chosen.push((Kind::Split, Start::Bisector, id, k));
            }
        }
        let created = try_map(chosen.len(), |at| {
            let (kind, start, id, k) = chosen[at];
            let mut generator = stream(self.seed, Purpose::Creation, name(pass as u64, [u64::from(id.0)]));
            let join = kind == Kind::Birth && self.adopts();
            let creation = Creation { model: self.model, total, sparsity: self.sparsity, join, cancel: self.cancel };
            creation.parts(k, &bags[&id].smallest(self.most_rows()), start, &mut generator)
        })?;
        let mut proposals = Vec::new();
        for ((kind, _, target, k), parts) in chosen.into_iter().zip(created) {
            if let Some(mut parts) = parts {
                parts.ids = edits.issue(parts.ids.len());
                proposals.push(Proposal { kind, target, parts });
            } else {
                state.failed(kind).failed(target, total.counts[k], pass);
                state.in_vain(kind, "its rows are better off in one piece", 1);
            }
        }
        if let Some(&kind) = self.moves.growing().first() {
            state.in_vain(kind, "too few rows", few);
        }
        Ok(proposals)
    }

    /// How many components can be cut into `fresh` parts at a time.
    fn room(&self, total: &Summary, fresh: usize) -> usize {
        // Sums of each part, and a gap for each pair of parts.
        let numbers = fresh.saturating_mul(total.n_statistics + 2 + fresh);
        let bytes = numbers.saturating_mul(self.n_batches * size_of::<f64>());
        (PARTS_MEMORY / bytes.max(1)).clamp(1, MOST_TARGETS)
    }

    pub(super) fn most_rows(&self) -> usize {
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
        // Where fresh components have begun to compete there is no way back.
        let never = Cancel::default();
        let cancel = if state.adoption.is_some() { &never } else { self.cancel };
        merge::rank(&Judge::new(self.model), total, &fresh, cancel)
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
            !targets.contains(id) && state.may_grow(&self.moves.growing(), **id, **count, pass + 1)
        });
        let ids: Vec<_> = ready.map(|(id, _)| *id).collect();
        let most = (MOST_COLLECTED / (ids.len() + n_parts).max(1)).max(LEAST_COLLECTED).min(self.most_rows());
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
            .filter(|&k| state.is_ready(Kind::Delete, total.ids[k], total.counts[k], pass))
            .collect();
        smallest.sort_by(|&a, &b| total.counts[a].total_cmp(&total.counts[b]));
        smallest.truncate(delete.candidates);
        if total.n_components() > 1 { smallest.into_iter().map(|k| total.ids[k]).collect() } else { Vec::new() }
    }
}
