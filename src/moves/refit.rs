//! Reassigns the rows of a component to the others (mathematics 4.7).
//!
//! All rows with a responsibility for the component were copied during the visits of the pass, with all their
//! responsibilities. Their contribution is subtracted from the sums, they are reassigned to the other components in a
//! few iterations, and the change of the bound follows from the sums before and after. Responsibilities of a tail stay
//! unchanged.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::component::{ComponentId, Edit, EditLog};
use crate::data::Sample;
use crate::error::Result;
use crate::global_step::Globals;
use crate::local_step::{Assign, ByScore, Keep, LocalStep, OfShares, Units, units_of};
use crate::memo::Memo;
use crate::model::Model;
use crate::moves::row_pairs::RowPairs;
use crate::moves::{Judge, Visited, is_gain, tried};
use crate::parallel::{Cancel, map, try_map};
use crate::responsibilities::Sparsity;
use crate::simd::Scalar;
use crate::suffstats::Summary;

/// Number of iterations of local and global steps over the rows of the component.
const TURNS: usize = 2;
/// Maximum rounding error of the sum of a row's responsibilities.
const ROUNDING: f64 = 1e-12;
/// Maximum number of rows that may have a responsibility for the component.
pub(super) const MAX_ROWS: usize = 10_000;

/// Copies of rows with all their responsibilities.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RowCopies {
    /// The rows.
    pub rows: Sample,
    /// The batch of each row.
    pub batches: Vec<u32>,
    /// For each row, its components or parts and their responsibilities, without the tail.
    pub responsibilities: Vec<Vec<(ComponentId, f64)>>,
}

impl RowCopies {
    /// Copies of the listed units of a visit.
    pub(super) fn of<F: Scalar>(visited: &Visited<'_, F>, units: &[u32]) -> Self {
        let look = visited.look;
        let mut rows = Sample::default();
        look.units.copy_into(units, &mut rows);
        let responsibilities = map(units.len(), |index| visited.responsibilities(units[index] as usize));
        Self { rows, batches: vec![look.batch as u32; units.len()], responsibilities }
    }

    /// Adds copies of other rows.
    pub fn append(&mut self, other: Self) {
        self.rows.append(other.rows);
        self.batches.extend(other.batches);
        self.responsibilities.extend(other.responsibilities);
    }

    /// Drops rows without a responsibility for any component that `is_needed`.
    pub(super) fn keep_rows_of(&mut self, is_needed: impl Fn(&ComponentId) -> bool) {
        let all = 0..self.responsibilities.len();
        let left: Vec<usize> =
            all.filter(|&row| self.responsibilities[row].iter().any(|(id, _)| is_needed(id))).collect();
        *self = Self {
            rows: self.rows.pick(&left),
            batches: left.iter().map(|&row| self.batches[row]).collect(),
            responsibilities: left.iter().map(|&row| self.responsibilities[row].clone()).collect(),
        };
    }

    /// Replaces components and parts by their owners.
    pub(super) fn resolve(&mut self, owner: &BTreeMap<ComponentId, ComponentId>) {
        for pairs in &mut self.responsibilities {
            let mut sums: BTreeMap<ComponentId, f64> = BTreeMap::new();
            for &(id, value) in pairs.iter() {
                *sums.entry(owner.get(&id).copied().unwrap_or(id)).or_insert(0.0) += value;
            }
            *pairs = sums.into_iter().collect();
        }
    }

    /// Whether these can be copies of rows of `n_batches` batches, since files may hold anything.
    pub(super) fn fits(&self, n_batches: usize) -> bool {
        let n = self.rows.len();
        let lengths = (self.batches.len(), self.responsibilities.len());
        self.rows.fits() && lengths == (n, n) && self.batches.iter().all(|&batch| (batch as usize) < n_batches)
    }

    /// The rows with a responsibility for a component.
    fn rows_of(&self, id: ComponentId) -> Vec<usize> {
        let has = |row: &usize| self.responsibilities[*row].iter().any(|(other, value)| *other == id && *value > 0.0);
        (0..self.responsibilities.len()).filter(has).collect()
    }
}

/// Options for reassigning rows and judging the result.
pub(super) struct Refit<'a, F: Scalar> {
    pub model: &'a Model<F>,
    pub sparsity: Sparsity,
    pub margin: Option<f64>,
    pub judge: &'a Judge<'a, F>,
}

/// Result for a component.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum RefitOutcome {
    /// It was deleted, with this gain, nats.
    Accepted(f64),
    /// The gain of the others does not compensate for it.
    NoGain,
    /// Too many rows have a responsibility for it.
    TooManyRows,
}

/// Summaries without the component, and the rows' new responsibilities.
struct Without {
    total: Summary,
    pairs: RowPairs,
}

impl<F: Scalar> Refit<'_, F> {
    /// Deletes a component if that raises the bound.
    ///
    /// # Errors
    /// [`crate::Error::Numerical`].
    pub fn try_without(
        &self,
        memo: &mut Memo,
        edits: &mut EditLog,
        gone: ComponentId,
        copies: &mut RowCopies,
    ) -> Result<RefitOutcome> {
        // All other components may already have been deleted.
        if memo.total().n_components() < 2 {
            return Ok(RefitOutcome::NoGain);
        }
        let list = copies.rows_of(gone);
        if list.len() > MAX_ROWS {
            return Ok(RefitOutcome::TooManyRows);
        }
        let total = memo.total();
        let places: HashMap<ComponentId, u32> = total.ids.iter().copied().zip(0..).collect();
        let rows = copies.rows.pick(&list);
        let units = units_of(self.model.likelihood.as_ref(), &rows);
        let before = RowPairs::of(&copies.responsibilities, &list, &places);
        let taken = self.sum(units.as_ref(), &total.ids, &before.assign(), None)?;
        let trial = || {
            let after = self.deal(total, gone, units.as_ref(), &before, &taken)?;
            let gain = change(self.judge, total, &after.total, &taken, gone)?;
            Ok((after, gain))
        };
        let Some((after, gain)) = tried(trial())? else { return Ok(RefitOutcome::NoGain) };
        let gain = match gain {
            Some(gain) => gain,
            // A component without rows contributes nothing, so deleting it loses nothing.
            None if list.is_empty() => 0.0,
            None => return Ok(RefitOutcome::NoGain),
        };
        let dealt = after.pairs.by_row(&after.total.ids);
        self.carry_out(memo, &places, copies, &list, dealt)?;
        let edit = Edit::Delete { id: gone };
        memo.apply(&edit)?;
        edits.push(edit);
        Ok(RefitOutcome::Accepted(gain))
    }

    /// Reassigns rows, whose current contribution is `taken`, to the other components.
    fn deal(
        &self,
        total: &Summary,
        gone: ComponentId,
        units: &dyn Units<F>,
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
        for turn in 0..TURNS {
            let mut current = rest.clone();
            current.add(&given)?;
            let globals = Globals::new(self.model, &current, turn as u64);
            let scorer = globals.scorer_without_tail(self.model)?;
            let deal = ByScore {
                scorer: scorer.as_ref(),
                tail: None,
                width,
                margin: self.margin,
                abandon: true,
                row_terms: false,
            };
            pairs = RowPairs::default();
            given = self.sum(units, &rest.ids, &OfShares { deal, shares: &shares }, Some(&mut pairs))?;
        }
        let mut total = rest;
        total.add(&given)?;
        Ok(Without { total, pairs })
    }

    /// Gives the listed rows the responsibilities `dealt`, and updates the summaries of their batches.
    fn carry_out(
        &self,
        memo: &mut Memo,
        places: &HashMap<ComponentId, u32>,
        copies: &mut RowCopies,
        list: &[usize],
        mut dealt: Vec<Vec<(ComponentId, f64)>>,
    ) -> Result<()> {
        let ids = memo.total().ids.clone();
        let mut of_batch: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (index, &row) in list.iter().enumerate() {
            of_batch.entry(copies.batches[row]).or_default().push(index);
        }
        for (batch, indices) in of_batch {
            let rows: Vec<usize> = indices.iter().map(|&index| list[index]).collect();
            let picked = copies.rows.pick(&rows);
            let units = units_of(self.model.likelihood.as_ref(), &picked);
            let minus =
                self.sum(units.as_ref(), &ids, &RowPairs::of(&copies.responsibilities, &rows, places).assign(), None)?;
            for &index in &indices {
                copies.responsibilities[list[index]] = std::mem::take(&mut dealt[index]);
            }
            let plus =
                self.sum(units.as_ref(), &ids, &RowPairs::of(&copies.responsibilities, &rows, places).assign(), None)?;
            memo.amend(batch as usize, &minus.scale(-1.0))?;
            memo.amend(batch as usize, &plus)?;
        }
        Ok(())
    }

    /// The contribution of rows to components. Masses and base measures are left out, because they do not change.
    fn sum(
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
    let tail = total.tail.map_or(0.0, |tail| tail.count);
    let weights = [judge.allocation(total.counts.clone(), tail), judge.allocation(current.counts.clone(), tail)];
    let entropies = [total.entropies.iter().sum::<f64>(), current.entropies.iter().sum::<f64>()];
    let [before, after] = terms.iter().fold([0.0; 2], |[a, b], [x, y]| [a + x, b + y]);
    let gain = after - before + weights[1] - weights[0] + entropies[1] - entropies[0];
    Ok(is_gain(gain, [before, after, weights[0], entropies[0]]).then_some(gain))
}
