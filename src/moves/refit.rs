//! Reassigns the rows of a component to the others (mathematics 4.7).
//!
//! All rows with a responsibility for the component were copied during the visits of the pass, with all their
//! responsibilities. Their contribution is subtracted from the sums, they are reassigned to the other components in a
//! few iterations, and the change of the bound follows from the sums before and after. Responsibilities of a tail stay
//! unchanged.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::component::{Class, ComponentId, Edit, EditLog};
use crate::data::Sample;
use crate::error::Result;
use crate::global_step::Globals;
use crate::local_step::{Assign, ByScore, Keep, LocalStep, Mask, OfShares, Units, units_of};
use crate::memo::Memo;
use crate::model::Model;
use crate::moves::row_pairs::{RowPairs, RowShares};
use crate::moves::{Judge, Visited, is_gain, tried};
use crate::parallel::{Cancel, try_map};
use crate::responsibilities::Sparsity;
use crate::simd::Scalar;
use crate::suffstats::Summary;

/// Number of iterations of local and global steps over the rows of the component.
pub(super) const TURNS: usize = 2;
/// Maximum rounding error of the sum of a row's responsibilities.
const ROUNDING: f64 = 1e-12;
/// Maximum number of rows that may have a responsibility for the component.
pub(super) const MAX_ROWS: usize = 10_000;

/// Copies of rows of one batch with all their responsibilities.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RowCopies {
    /// The batch.
    pub batch: u32,
    /// The rows.
    pub rows: Sample,
    /// For each row, its components or parts and their responsibilities, without the tail.
    pub shares: RowShares,
    /// The class of each row; empty if rows have no classes.
    pub classes: Vec<Class>,
}

impl RowCopies {
    /// Copies of the listed units of a visit.
    pub(super) fn of<F: Scalar>(visited: &Visited<'_, F>, units: &[u32]) -> Self {
        let (mut rows, mut shares) = (Sample::default(), RowShares::default());
        visited.look.units.copy_into(units, &mut rows);
        for &unit in units {
            shares.push(visited.responsibilities(unit as usize));
        }
        let class = |classes: &[Class], unit: u32| classes[visited.look.units.row_number(unit as usize)];
        let classes = visited.look.classes.iter().flat_map(|all| units.iter().map(|&unit| class(all, unit)));
        let classes = classes.collect();
        Self { batch: visited.look.batch as u32, rows, shares, classes }
    }

    /// Drops rows without a responsibility for any component that `is_needed`.
    pub(super) fn keep_rows_of(&mut self, is_needed: impl Fn(&ComponentId) -> bool) {
        let n = self.rows.len();
        let left: Vec<usize> = (0..n).filter(|&row| self.shares.of(row).any(|(id, _)| is_needed(&id))).collect();
        if left.len() == n {
            return;
        }
        let mut shares = RowShares::default();
        for &row in &left {
            shares.push(self.shares.of(row));
        }
        (self.rows, self.shares) = (self.rows.pick(&left), shares);
        self.classes = self.classes_of(&left).collect();
    }

    /// Replaces components and parts by their owners.
    pub(super) fn resolve(&mut self, owner: &BTreeMap<ComponentId, ComponentId>) {
        let all = std::mem::take(&mut self.shares);
        for row in 0..all.len() {
            let mut pairs: Vec<(ComponentId, f64)> =
                all.of(row).map(|(id, value)| (owner.get(&id).copied().unwrap_or(id), value)).collect();
            pairs.sort_by_key(|(id, _)| *id);
            self.shares.push(
                pairs.chunk_by(|a, b| a.0 == b.0).map(|same| (same[0].0, same.iter().map(|(_, value)| value).sum())),
            );
        }
    }

    /// Whether these can be copies of rows of one of `n_batches` batches, since files may hold anything.
    pub(super) fn fits(&self, n_batches: usize) -> bool {
        let n = self.rows.len();
        let has_classes = self.classes.is_empty() || self.classes.len() == n;
        self.rows.fits() && self.shares.fits(n) && has_classes && (self.batch as usize) < n_batches
    }

    /// The classes of listed rows; none if rows have no classes.
    pub(super) fn classes_of(&self, list: &[usize]) -> impl Iterator<Item = Class> {
        list.iter().filter_map(|&row| self.classes.get(row).copied())
    }

    /// The rows with a responsibility for a component.
    fn rows_of(&self, id: ComponentId) -> Vec<usize> {
        let has = |row: &usize| self.shares.of(*row).any(|(other, value)| other == id && value > 0.0);
        (0..self.rows.len()).filter(has).collect()
    }
}

/// Options for reassigning rows and judging the result.
pub(super) struct Refit<'a, F: Scalar> {
    pub model: &'a Model<F>,
    pub sparsity: Sparsity,
    pub margin: Option<f64>,
    pub judge: &'a Judge<'a, F>,
    /// The classes of components, if rows have classes.
    pub classes: Option<&'a EditLog>,
}

/// What deleting a component would do.
pub(super) enum Trial {
    /// It is a gain.
    Gain(Box<Deletion>),
    /// The gain of the others does not compensate for it.
    NoGain,
    /// Too many rows have a responsibility for it.
    TooManyRows,
}

impl Trial {
    /// The trial with the larger gain.
    fn or_better(self, other: Self) -> Self {
        match (self, other) {
            (Self::Gain(one), Self::Gain(other)) => Self::Gain(if other.gain > one.gain { other } else { one }),
            (Self::Gain(one), _) => Self::Gain(one),
            (_, other) => other,
        }
    }
}

/// A deletion that is a gain, as long as no other is carried out.
pub(super) struct Deletion {
    /// The component.
    pub gone: ComponentId,
    /// Its rows, by copies.
    lists: Vec<Vec<usize>>,
    /// Their new responsibilities, one list after the other.
    dealt: RowShares,
    /// Gain, nats.
    pub gain: f64,
    /// The components under which rows are given away, if nothing can be taken back.
    under: Option<Globals>,
}

impl Deletion {
    /// Gives the copied rows their new responsibilities.
    pub fn update(&self, copies: &mut [RowCopies]) {
        let mut first = 0;
        for (piece, list) in copies.iter_mut().zip(&self.lists) {
            piece.shares.replace(list, &self.dealt, first);
            first += list.len();
        }
    }
}

/// Summaries without the component, and the rows' new responsibilities.
struct Without {
    total: Summary,
    pairs: RowPairs,
}

impl<F: Scalar> Refit<'_, F> {
    /// Tries to delete a component.
    ///
    /// # Errors
    /// [`crate::Error::Numerical`].
    pub fn try_without(&self, total: &Summary, gone: ComponentId, copies: &[RowCopies]) -> Result<Trial> {
        // All other components may already have been deleted. Rows of a class need a component of it.
        let is_last = self.classes.is_some_and(|classes| classes.is_last_of_class(gone, &total.ids));
        if total.n_components() < 2 || is_last {
            return Ok(Trial::NoGain);
        }
        let lists: Vec<Vec<usize>> = copies.iter().map(|piece| piece.rows_of(gone)).collect();
        let n_rows = lists.iter().map(Vec::len).sum::<usize>();
        if n_rows > MAX_ROWS {
            return Ok(Trial::TooManyRows);
        }
        let completes = self.model.likelihood.completes();
        let dealt = if completes { Trial::NoGain } else { self.try_deal(total, gone, copies, &lists)? };
        // Only a transfer gives rows to the background.
        let transfers = completes || self.model.background.is_some();
        let given = if transfers { self.try_transfer(total, gone, copies, lists)? } else { Trial::NoGain };
        Ok(dealt.or_better(given))
    }

    /// As [`Refit::try_without`], if rows can be taken back from all components.
    fn try_deal(
        &self,
        total: &Summary,
        gone: ComponentId,
        copies: &[RowCopies],
        lists: &[Vec<usize>],
    ) -> Result<Trial> {
        let listed = || copies.iter().zip(lists);
        let mut rows = Sample::default();
        listed().for_each(|(piece, list)| rows.extend_from(&piece.rows, list));
        let units = units_of(self.model.likelihood.as_ref(), &rows);
        let classes: Vec<Class> = listed().flat_map(|(piece, list)| piece.classes_of(list)).collect();
        let pairs = listed().map(|(piece, list)| (&piece.shares, list.iter().copied()));
        let before = RowPairs::of(&pairs, &places(total));
        let taken = self.sum(units.as_ref(), &total.ids, &before.assign(), None)?;
        let trial = || {
            let after = self.deal(total, gone, (units.as_ref(), &classes), &before, &taken)?;
            let gain = change(self.judge, total, &after.total, &taken, gone)?;
            Ok((after, gain))
        };
        let Some((after, gain)) = tried(trial())? else { return Ok(Trial::NoGain) };
        let gain = match gain {
            Some(gain) => gain,
            // A component without rows contributes nothing, so deleting it loses nothing.
            None if lists.iter().all(Vec::is_empty) => 0.0,
            None => return Ok(Trial::NoGain),
        };
        let dealt = after.pairs.by_row(&after.total.ids);
        let lists = lists.to_vec();
        Ok(Trial::Gain(Box::new(Deletion { gone, lists, dealt, gain, under: None })))
    }

    /// The sums after a deletion, as a transfer, whether that is a gain or not; `None` if they cannot be computed.
    ///
    /// # Errors
    /// As [`Refit::try_without`].
    pub fn without(
        &self,
        total: &Summary,
        gone: ComponentId,
        copies: &[RowCopies],
    ) -> Result<Option<(Summary, Deletion)>> {
        if total.n_components() < 2 || self.classes.is_some_and(|classes| classes.is_last_of_class(gone, &total.ids)) {
            return Ok(None);
        }
        let lists: Vec<Vec<usize>> = copies.iter().map(|piece| piece.rows_of(gone)).collect();
        let Some((after, transfer)) = tried(self.transferred(total, gone, copies, &lists))? else { return Ok(None) };
        let (dealt, under) = (transfer.dealt, Some(transfer.globals));
        Ok(Some((after, Deletion { gone, lists, dealt, gain: f64::NAN, under })))
    }

    /// As [`Refit::try_without`], if nothing is taken back.
    fn try_transfer(
        &self,
        total: &Summary,
        gone: ComponentId,
        copies: &[RowCopies],
        lists: Vec<Vec<usize>>,
    ) -> Result<Trial> {
        let trial = || {
            let (after, transfer) = self.transferred(total, gone, copies, &lists)?;
            let nothing = Summary::empty(total.ids.clone(), total.n_statistics, false);
            Ok((change(self.judge, total, &after, &nothing, gone)?, transfer))
        };
        let Some((gain, transfer)) = tried(trial())? else { return Ok(Trial::NoGain) };
        let is_empty = lists.iter().all(Vec::is_empty);
        let Some(gain) = gain.or(is_empty.then_some(0.0)) else { return Ok(Trial::NoGain) };
        let (dealt, under) = (transfer.dealt, Some(transfer.globals));
        Ok(Trial::Gain(Box::new(Deletion { gone, lists, dealt, gain, under })))
    }

    /// Reassigns rows with their classes, whose current contribution is `taken`, to the other components.
    fn deal(
        &self,
        total: &Summary,
        gone: ComponentId,
        (units, rows): (&dyn Units<F>, &[Class]),
        before: &RowPairs,
        taken: &Summary,
    ) -> Result<Without> {
        let mut rest = total.clone();
        rest.sub(taken)?;
        rest.apply(&Edit::Delete { id: gone })?;
        rest.counts.iter_mut().for_each(|count| *count = count.max(0.0));
        let shares: Vec<f64> = before.values.chunks_exact(before.width).map(|values| values.iter().sum()).collect();
        // The tail keeps its slot in the row: with one more component the next visit could lower the bound.
        let taken_by_tail = usize::from(total.tail.is_some() && shares.iter().any(|&share| share < 1.0 - ROUNDING));
        let places = self.sparsity.clamp(total.n_components() + taken_by_tail);
        let width = places.saturating_sub(taken_by_tail).clamp(1, rest.n_components());
        let mut pairs = RowPairs::default();
        // The other components begin with their existing responsibilities for these rows.
        let mut given = taken.clone();
        given.apply(&Edit::Delete { id: gone })?;
        let components = self.classes.map(|classes| classes.classes(&rest.ids));
        for turn in 0..TURNS {
            let mut current = rest.clone();
            current.add(&given)?;
            let globals = Globals::new(self.model, &current, turn as u64);
            let scorer = globals.scorer_without_tail(self.model)?;
            let deal = ByScore {
                scorer: scorer.as_ref(),
                has_tail: false,
                width,
                margin: self.margin,
                abandon: true,
                row_terms: false,
                mask: components.as_ref().map(|components| Mask { rows, components }),
            };
            pairs = RowPairs::default();
            given = self.sum(units, &rest.ids, &OfShares { deal, shares: &shares }, Some(&mut pairs))?;
        }
        let mut total = rest;
        total.add(&given)?;
        Ok(Without { total, pairs })
    }

    /// Deletes a component: gives its rows their new responsibilities, and updates the summaries of their batches.
    ///
    /// # Errors
    /// [`crate::Error::Numerical`].
    pub fn carry_out(
        &self,
        memo: &mut Memo,
        edits: &mut EditLog,
        deletion: &Deletion,
        copies: &mut [RowCopies],
    ) -> Result<()> {
        let Deletion { gone, lists, dealt, under, .. } = deletion;
        let (ids, places) = (memo.total().ids.clone(), places(memo.total()));
        let pieces = copies.iter().zip(lists.iter().map(Vec::as_slice)).filter(|(_, list)| !list.is_empty());
        let pieces: Vec<(&RowCopies, &[usize])> = pieces.collect();
        let mut first = 0;
        for of_batch in pieces.chunk_by(|a, b| a.0.batch == b.0.batch) {
            let batch = of_batch[0].0.batch as usize;
            if let Some(globals) = under {
                memo.amend(batch, &self.given(globals, *gone, of_batch)?.given)?;
            } else {
                let mut rows = Sample::default();
                for (piece, list) in of_batch {
                    rows.extend_from(&piece.rows, list);
                }
                let units = units_of(self.model.likelihood.as_ref(), &rows);
                let sum = |pairs: &RowPairs| self.sum(units.as_ref(), &ids, &pairs.assign(), None);
                let before = of_batch.iter().map(|(piece, list)| (&piece.shares, list.iter().copied()));
                let minus = sum(&RowPairs::of(&before, &places))?;
                let plus = sum(&RowPairs::of(&std::iter::once((dealt, first..first + rows.len())), &places))?;
                memo.amend(batch, &minus.scale(-1.0))?;
                memo.amend(batch, &plus)?;
            }
            first += of_batch.iter().map(|(_, list)| list.len()).sum::<usize>();
        }
        deletion.update(copies);
        let edit = Edit::Delete { id: *gone };
        memo.apply(&edit)?;
        edits.push(edit);
        Ok(())
    }

    /// The contribution of rows to components. Masses and base measures are left out, because they do not change.
    pub(super) fn sum(
        &self,
        units: &dyn Units<F>,
        ids: &[ComponentId],
        assign: &dyn Assign<F>,
        tap: Option<&mut RowPairs>,
    ) -> Result<Summary> {
        // Stopping between the subtraction and the addition would leave an invalid state.
        let never = Cancel::default();
        let likelihood = self.model.likelihood.as_ref();
        let step = LocalStep { likelihood, ids, assign, keep: Keep::Summary, cancel: &never };
        let mut summary = match tap {
            Some(tap) => step.run_compact(units, None, &mut [tap])?.summary,
            None => step.run_compact(units, None, &mut [])?.summary,
        };
        (summary.mass, summary.log_base_measure) = (0.0, 0.0);
        Ok(summary)
    }
}

/// The position of each component.
fn places(total: &Summary) -> HashMap<ComponentId, u32> {
    total.ids.iter().copied().zip(0..).collect()
}

/// The change of the bound, if it is a gain. Only components with a previous or new responsibility for the rows have
/// changed.
fn change<F: Scalar>(
    judge: &Judge<'_, F>,
    total: &Summary,
    current: &Summary,
    taken: &Summary,
    gone: ComponentId,
) -> Result<Option<f64>> {
    let places: HashMap<ComponentId, usize> = current.ids.iter().copied().zip(0..).collect();
    let terms = try_map(total.n_components(), |k| {
        let before = total.component(k);
        let Some(&place) = places.get(&total.ids[k]) else { return Ok([judge.gain(before)?, 0.0]) };
        let after = current.component(place);
        if taken.counts[k] == 0.0 && after.count == before.count {
            return Ok([0.0; 2]);
        }
        Ok([judge.gain(before)?, judge.gain(after)?])
    })?;
    debug_assert!(!places.contains_key(&gone));
    let tail = judge.count_beyond(total);
    let weights = [judge.allocation(total.counts.clone(), tail), judge.allocation(current.counts.clone(), tail)];
    let entropies = [total.entropies.iter().sum::<f64>(), current.entropies.iter().sum::<f64>()];
    let beyond = judge.of_background(current) - judge.of_background(total);
    let [before, after] = terms.iter().fold([0.0; 2], |[a, b], [x, y]| [a + x, b + y]);
    let gain = after - before + weights[1] - weights[0] + entropies[1] - entropies[0] + beyond;
    Ok(is_gain(gain, [before, after, weights[0], entropies[0]]).then_some(gain))
}
