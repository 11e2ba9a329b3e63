//! Code shared by moves that add components: which components are eligible, and how parts are fitted and judged.

use crate::component::ComponentId;
use crate::error::Result;
use crate::evidence;
use crate::moves::create::Creation;
use crate::moves::parts::Verdict;
use crate::moves::starts::{Effort, MANY_ROWS};
use crate::moves::{Collect, MoveKind, MoveState, PartsStart, Planning, Proposal, Report, Round, Settling, parts};
use crate::parallel::try_map;
use crate::rng::{Purpose, key, stream};
use crate::simd::Scalar;
use crate::suffstats::Summary;

/// A sum of responsibilities above this fraction of a component counts as all of it: rows with small responsibilities
/// are not copied.
const ALL: f64 = 0.9;
/// Minimum number of rows for splitting a component.
const MIN_ROWS: usize = 2;
/// Maximum number of components with which births of the last round are judged under a re-estimated base measure. With
/// more components, one birth hardly changes the base measure.
pub(super) const FEW: usize = 16;
/// Maximum number of components that a move tries per pass, the largest first.
const MAX_TARGETS: usize = 100;
/// Maximum number of rows to copy for parts per pass, over all components.
const MAX_COLLECTED: usize = 200_000;
/// Minimum number of rows to copy per component, capped by the subsample's maximum.
const MIN_COLLECTED: usize = 100;
/// Memory limit in bytes for the summaries of the parts of all proposals in every batch.
const PARTS_MEMORY: usize = 256 << 20;

/// A component that a move has chosen, its position, and how its parts start.
pub(super) type Chosen = (ComponentId, usize, PartsStart);

impl<F: Scalar> Planning<'_, '_, F> {
    /// Finds the components that may be split and have enough copied rows.
    pub(super) fn find_candidates(&mut self) {
        let kinds = self.round.growing();
        let Some(first) = kinds.first() else { return };
        let total = self.memo.total();
        let mut few = 0;
        for (k, (&id, &count)) in total.ids.iter().zip(&total.counts).enumerate() {
            if !self.state.may_grow(&kinds, id, count, self.pass) {
                continue;
            }
            match self.bags.get(&id) {
                Some(bag) if bag.keys.len() >= MIN_ROWS => self.candidates.push((id, k)),
                Some(_) => few += 1,
                None => {}
            }
        }
        self.candidates.sort_by(|a, b| total.counts[b.1].total_cmp(&total.counts[a.1]));
        self.state.refuse_early(first, "too few rows", few);
    }

    /// The candidates that moves of this kind may try in this pass and that no other move has taken, largest first.
    pub(super) fn ready(&self, kind: &MoveKind) -> Vec<(ComponentId, usize)> {
        let counts = &self.total().counts;
        let is_ready = |&&(id, k): &&(ComponentId, usize)| self.state.is_ready(kind, id, counts[k], self.pass);
        self.candidates.iter().filter(is_ready).copied().collect()
    }

    /// How many components can be split into `fresh` parts within the memory limit.
    pub(super) fn room(&self, fresh: usize) -> usize {
        // Sums of each part, and a gap for each pair of parts.
        let numbers = fresh.saturating_mul(self.total().n_statistics + 2 + fresh);
        let bytes = numbers.saturating_mul(self.round.n_batches * size_of::<f64>());
        (PARTS_MEMORY / bytes.max(1)).clamp(1, MAX_TARGETS)
    }

    /// Makes parts of the chosen components and proposes them. Records where no split improves the bound. With `join`,
    /// parts that do not gain are joined at once.
    pub(super) fn create(&mut self, kind: &MoveKind, chosen: &[Chosen], join: bool) -> Result<()> {
        self.candidates.retain(|(id, _)| chosen.iter().all(|(other, ..)| other != id));
        let (round, total) = (self.round, self.memo.total());
        let ahead = self.looks_ahead() && !join && total.n_components() <= FEW;
        let model = if ahead { &evidence::unsure(&round.model, total)? } else { &round.model };
        let screens = !self.is_last_round();
        let (sparsity, cancel) = (round.sparsity, round.cancel);
        let effort = round.effort(self.state, total, self.pass);
        let creation = Creation { model, total, sparsity, screens, effort, join, ahead, cancel };
        let max_rows = round.subsample().max_rows;
        let created = try_map(chosen.len(), |index| {
            let (id, k, start) = chosen[index];
            let seed = key(self.pass as u64, [u64::from(id.0)]);
            let mut generator = stream(round.seed, Purpose::Creation, seed);
            let rows = self.bags[&id].smallest(max_rows);
            let mass: f64 = rows.rows.masses().iter().sum();
            Ok((creation.parts(k, &rows, start, &mut generator)?, mass))
        })?;
        for (&(target, k, _), (parts, mass)) in chosen.iter().zip(created) {
            let thorough = mass >= ALL * total.counts[k];
            if let Some((parts, start)) = parts {
                self.plan.proposals.push(Proposal { kind: kind.clone(), target, parts, start, thorough });
            } else {
                self.state.memory(kind).failed(target, total.counts[k], self.pass, thorough);
                self.state.refuse_early(kind, "no split improved the bound", 1);
            }
        }
        Ok(())
    }

    /// Requests rows of all components that may be split after this pass.
    pub(super) fn collect(&self) -> Option<Collect> {
        let kinds = self.round.growing();
        let targets = self.plan.targets();
        let n_parts: usize = self.plan.proposals.iter().map(|proposal| proposal.parts.ids.len()).sum();
        let all = self.total().ids.iter().zip(&self.total().counts);
        let may_grow = |id, count| self.state.may_grow(&kinds, id, count, self.pass + 1);
        let ready = all.filter(|&(id, &count)| !targets.contains(id) && may_grow(*id, count));
        let ids: Vec<_> = ready.map(|(id, _)| *id).collect();
        let subsample = self.round.subsample();
        let max_rows = (MAX_COLLECTED / (ids.len() + n_parts).max(1)).max(MIN_COLLECTED).min(subsample.max_rows);
        let seed = key(self.round.seed, [Purpose::Collection as u64, self.pass as u64]);
        let is_any = !kinds.is_empty() && (!ids.is_empty() || n_parts > 0);
        is_any.then_some(Collect { ids, threshold: subsample.threshold, max_rows, seed })
    }
}

impl<F: Scalar> Settling<'_, '_, F> {
    /// Judges the proposals of one kind and accepts at most `most` of those that raise the bound, the best first.
    pub(super) fn settle_parts(&mut self, kind: &MoveKind, most: usize) -> Result<Report> {
        let counts = self.counts();
        let (indices, proposals): (Vec<usize>, Vec<Proposal>) =
            self.state.plan.proposals.iter().cloned().enumerate().filter(|(_, one)| one.kind == *kind).unzip();
        let take = |batch: &mut Vec<Summary>| indices.iter().map(|&index| std::mem::take(&mut batch[index])).collect();
        let parts: Vec<Vec<Summary>> = self.state.found.parts.iter_mut().map(take).collect();
        let looks_ahead = self.looks_ahead && counts.len() <= FEW;
        let settle = parts::Settle { model: &self.round.model, proposals: &proposals, parts: &parts, most };
        let (settled, ahead) = settle.run(self.memo, self.edits, looks_ahead.then_some(&self.unedited))?;
        self.ahead = ahead;
        self.owner.extend(settled.owner);
        for (proposal, verdict) in proposals.iter().zip(&settled.verdicts) {
            let target = proposal.target;
            match verdict {
                Verdict::Accepted => self.state.forget(target),
                // A better proposal was accepted first; this one may be tried again.
                Verdict::Later => {}
                Verdict::NoGain => {
                    let effort = self.round.effort(self.state, self.memo.total(), self.pass);
                    refuse(self.state, proposal, counts[&target], self.pass, effort);
                }
            }
            if proposal.parts.ids.iter().any(|part| self.owner.get(part).is_some_and(|id| *id != target)) {
                self.touched.insert(target);
            }
        }
        let number = |wanted| settled.verdicts.iter().filter(|verdict| **verdict == wanted).count();
        let refused = [("no gain", number(Verdict::NoGain)), ("another one gained more", number(Verdict::Later))];
        let report = Report::new(kind.clone(), proposals.len(), number(Verdict::Accepted), settled.gain, refused);
        Ok(self.state.with_early_refusals(report))
    }
}

/// Records that a proposal did not gain, and with which start the next parts are made, if any is left.
fn refuse(state: &mut MoveState, proposal: &Proposal, count: f64, pass: usize, effort: Effort) {
    let memory = state.memory(&proposal.kind);
    // Two of many parts are as good as halves.
    let is_halved = proposal.parts.ids.len() <= 2 && proposal.start != PartsStart::Contrast;
    let start = if is_halved { PartsStart::Bisector } else { proposal.start };
    match start.next(effort, count) {
        Some(next) => memory.try_next(proposal.target, next),
        None => memory.failed(proposal.target, count, pass, proposal.thorough),
    }
}

impl<F: Scalar> Round<'_, F> {
    /// How much is tried to split a component in `pass`.
    pub(super) fn effort(&self, state: &MoveState, total: &Summary, pass: usize) -> Effort {
        match (self.model.base.is_held, state.is_in_last_round(pass)) {
            (true, _) if total.mass > MANY_ROWS => Effort::Usual,
            (true, _) => Effort::Loose,
            (false, true) => Effort::Last,
            (false, false) => Effort::Usual,
        }
    }

    /// Whether rows are available of a component that may be split in `pass`.
    pub(super) fn has_untried(&self, state: &MoveState, total: &Summary, pass: usize) -> bool {
        let kinds = self.growing();
        total.ids.iter().zip(&total.counts).any(|(id, &count)| {
            state.found.bags.get(id).is_some_and(|bag| bag.keys.len() >= MIN_ROWS)
                && state.may_grow(&kinds, *id, count, pass)
        })
    }
}
