//! Deletes: remove a component and reassign its rows to the others (mathematics 4.7).
//!
//! A visit copies all rows that have a responsibility for one of the candidates, with all their responsibilities. At
//! the end of the pass the candidates are tried one after another.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::component::ComponentId;
use crate::error::Result;
use crate::moves::lookahead::{Ahead, Unedited};
use crate::moves::refit::{Deletion, MAX_ROWS, Refit, Trial};
use crate::moves::{Move, MoveKind, MoveState, Payload, Planning, Report, RowCopies, RunShape, Settling, Visited};
use crate::parallel::{for_each, map, n_threads, try_map};
use crate::parameters::Parameters;
use crate::registry::{DefaultValue, Entry, Parameter, ParameterKind};
use crate::simd::Scalar;
use crate::suffstats::Summary;

const KIND: MoveKind = MoveKind::new("delete");

/// Options of deletes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Delete {
    /// Number of components tried per pass, the smallest first.
    pub candidates: usize,
}

const CANDIDATES: Parameter = Parameter::new("candidates", ParameterKind::integer_from(1), DefaultValue::Number(10.0));

/// Delete candidates, the smallest first.
type Candidates = Vec<ComponentId>;

/// The rows of delete candidates.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CandidateRows {
    /// The rows, in pieces.
    pub copies: Vec<RowCopies>,
    /// Number of rows of each candidate.
    pub n_rows: BTreeMap<ComponentId, usize>,
    /// Delete candidates skipped because too many rows share them.
    pub crowded: BTreeSet<ComponentId>,
}

impl CandidateRows {
    /// Adds the rows of another batch or shard. Skips candidates that too many rows share, and drops rows that only
    /// these needed.
    fn append(&mut self, other: Self) {
        self.copies.extend(other.copies);
        for (id, n) in other.n_rows {
            *self.n_rows.entry(id).or_default() += n;
        }
        let n_crowded = self.crowded.len();
        self.crowded.extend(other.crowded);
        self.crowded.extend(self.n_rows.iter().filter(|(_, n)| **n > MAX_ROWS).map(|(id, _)| *id));
        if self.crowded.len() > n_crowded {
            let Self { copies, n_rows, crowded } = self;
            n_rows.retain(|id, _| !crowded.contains(id));
            for_each(copies.iter_mut().collect(), |piece: &mut RowCopies| {
                piece.keep_rows_of(|id| n_rows.contains_key(id));
            });
        }
    }
}

impl Delete {
    /// Entry in the registry.
    pub const ENTRY: Entry = Entry { parameters: &[CANDIDATES], ..Entry::new("Delete") };

    /// Builds the move from the parameters of [`Delete::ENTRY`].
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] naming the parameter.
    pub fn new(parameters: &Parameters) -> Result<Self> {
        Ok(Self { candidates: parameters.integer(&CANDIDATES)? })
    }

    /// The smallest components that are eligible and are not being split.
    fn candidates<F: Scalar>(self, planning: &Planning<'_, '_, F>) -> Candidates {
        let (total, targets) = (planning.total(), planning.plan.targets());
        if total.n_components() < 2 {
            return Candidates::new();
        }
        let mut smallest: Vec<usize> = (0..total.n_components())
            .filter(|&k| !targets.contains(&total.ids[k]) && total.counts[k] <= MAX_ROWS as f64)
            .filter(|&k| !planning.edits.is_last_of_class(total.ids[k], &total.ids))
            .filter(|&k| planning.state.is_ready(&KIND, total.ids[k], total.counts[k], planning.pass))
            .collect();
        smallest.sort_by(|&a, &b| total.counts[a].total_cmp(&total.counts[b]));
        smallest.truncate(self.candidates);
        smallest.into_iter().map(|k| total.ids[k]).collect()
    }
}

impl<F: Scalar> Move<F> for Delete {
    fn kind(&self) -> MoveKind {
        KIND
    }

    fn plan(&self, planning: &mut Planning<'_, '_, F>) -> Result<()> {
        let candidates = self.candidates(planning);
        if !candidates.is_empty() {
            planning.plan.wanted.put(KIND, Payload::new(candidates));
        }
        Ok(())
    }

    fn look(&self, wanted: &Payload, visited: &Visited<'_, F>) -> Result<Option<Payload>> {
        let (n_places, blocks) = (visited.look.ids.len() + 1, visited.look.seen.blocks());
        let by_block = map(blocks.len(), |index| {
            let mut n_rows = vec![0; n_places];
            blocks[index].components.iter().for_each(|&component| n_rows[component as usize] += 1);
            n_rows
        });
        let mut is_wanted = vec![false; n_places];
        let mut found = CandidateRows::default();
        for id in wanted.get::<Candidates>()?.iter() {
            let Some(&place) = visited.places.get(id) else { continue };
            let n_rows = by_block.iter().map(|n_rows| n_rows[place as usize]).sum();
            is_wanted[place as usize] = n_rows <= MAX_ROWS;
            if n_rows <= MAX_ROWS {
                found.n_rows.insert(*id, n_rows);
            } else {
                found.crowded.insert(*id);
            }
        }
        let copies = map(blocks.len(), |index| {
            let has_wanted = |components: &[u32]| components.iter().any(|&component| is_wanted[component as usize]);
            let units = blocks[index].units().filter(|(_, components, _)| has_wanted(components));
            let listed: Vec<u32> = units.map(|(unit, ..)| unit as u32).collect();
            // The first block tells the kind of rows, even if it has none.
            (index == 0 || !listed.is_empty()).then(|| RowCopies::of(visited, &listed))
        });
        found.copies = copies.into_iter().flatten().collect();
        Ok(Some(Payload::new(found)))
    }

    fn take(&self, _: &Payload, found: Option<Payload>, findings: Payload) -> Result<Payload> {
        let mut all = found.map_or_else(|| Ok(CandidateRows::default()), Payload::into_value)?;
        all.append(findings.into_value()?);
        Ok(Payload::new(all))
    }

    /// Tries the candidates in order, and deletes a component at once if that raises the bound.
    fn settle(&self, settling: &mut Settling<'_, '_, F>) -> Result<Report> {
        let wanted: Candidates = settling.state.plan.wanted.take(&KIND)?;
        let CandidateRows { mut copies, crowded, .. } = settling.state.found.payloads.take(&KIND)?;
        let owner = &settling.owner;
        for_each(copies.iter_mut().collect(), |piece: &mut RowCopies| piece.resolve(owner));
        // Targets of proposals may be tried again at once.
        for target in settling.state.plan.targets() {
            settling.state.memory(&KIND).forget(target);
        }
        let alone = wanted.iter().copied().filter(|&id| settling.is_alone(id));
        let (crowded, candidates): (Candidates, Candidates) = alone.partition(|id| crowded.contains(id));
        let counts = settling.counts();
        let Settling { round, judge, memo, edits, state, pass, looks_ahead, unedited, ahead, .. } = settling;
        // Edits of this loop change no class.
        let classes = edits.has_classes().then(|| edits.clone());
        let (sparsity, margin, classes) = (round.sparsity, round.margin, classes.as_ref());
        let refit = Refit { model: &round.model, sparsity, margin, judge, classes };
        let (mut gain, mut accepted, mut no_gain, mut too_many) = (0.0, 0, 0, crowded.len());
        let mut left = candidates.as_slice();
        while !left.is_empty() {
            // Each thread tries one candidate. After a deletion the later candidates are tried again, because they were
            // judged with the component that is gone; so the result does not depend on the number of threads.
            let now = &left[..left.len().min(n_threads())];
            for (&id, trial) in
                now.iter().zip(try_map(now.len(), |index| refit.try_without(memo.total(), now[index], &copies))?)
            {
                left = &left[1..];
                match trial {
                    Trial::Gain(deletion) => {
                        (gain, accepted) = (gain + deletion.gain, accepted + 1);
                        refit.carry_out(memo, edits, &deletion, &mut copies)?;
                        state.forget(id);
                        break;
                    }
                    Trial::NoGain => no_gain += 1,
                    Trial::TooManyRows => too_many += 1,
                }
                state.memory(&KIND).failed(id, counts[&id], *pass, true);
            }
        }
        // Rows that together are a background can be a component that fits the base measure better.
        if accepted == 0 && *looks_ahead && round.model.background.is_some() {
            let unedited = Unedited::of(unedited, &round.model, memo.total())?;
            if let Some((deletions, found)) = best_ahead(&refit, unedited, memo.total(), &candidates, &copies)? {
                for deletion in &deletions {
                    refit.carry_out(memo, edits, deletion, &mut copies)?;
                    state.forget(deletion.gone);
                }
                (gain, accepted, no_gain) = (found.gain, deletions.len(), no_gain - deletions.len());
                *ahead = Some(found.model);
            }
        }
        for id in &crowded {
            state.memory(&KIND).failed(*id, counts[id], *pass, true);
        }
        let taken = wanted.len() - candidates.len() - crowded.len();
        let refused = [("no gain", no_gain), ("too many rows", too_many), ("another move took it", taken)];
        Ok(Report::new(KIND, wanted.len(), accepted, gain, refused))
    }

    fn fits(&self, state: &MoveState, shape: &RunShape<'_>) -> bool {
        let wanted = state.plan.wanted.get::<Candidates>(&KIND);
        let found = state.found.payloads.get::<CandidateRows>(&KIND);
        let fits = |found: &CandidateRows| {
            found.copies.iter().all(|piece| piece.fits(shape.n_batches))
                && found.copies.windows(2).all(|two| two[0].rows.goes_with(&two[1].rows))
        };
        wanted.is_ok_and(|wanted| wanted.is_none_or(|wanted| wanted.iter().all(|id| shape.ids.contains(id))))
            && found.is_ok_and(|found| found.is_none_or(|found| fits(&found)))
    }
}

/// Deletions that together are the largest gain under the base measure that is estimated after them: the best by
/// themselves come first.
fn best_ahead<F: Scalar>(
    refit: &Refit<'_, F>,
    unedited: Unedited,
    total: &Summary,
    candidates: &[ComponentId],
    copies: &[RowCopies],
) -> Result<Option<(Vec<Deletion>, Ahead<F>)>> {
    let mut ranked = Vec::new();
    for &id in candidates {
        if let Some((after, _)) = refit.without(total, id, copies)? {
            ranked.push((refit.judge.bound(&after)?, id));
        }
    }
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (mut copies, mut deletions, mut sums) = (copies.to_vec(), Vec::new(), Vec::new());
    for (_, id) in ranked {
        let Some((after, deletion)) = refit.without(sums.last().unwrap_or(total), id, &copies)? else { break };
        deletion.update(&mut copies);
        deletions.push(deletion);
        sums.push(after);
    }
    let found = unedited.look_ahead(refit.model, sums.len(), |n| Ok(sums[n - 1].clone()))?;
    Ok(found.map(|found| {
        deletions.truncate(found.n_edits);
        (deletions, found)
    }))
}
