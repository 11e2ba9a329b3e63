//! Deletes: the rows of a component are fitted again without it (spec 4.7).
//!
//! All rows that have a share of the component were copied in the visits of the pass, with all their responsibilities. What
//! they contribute is taken from the sums, they are dealt anew to the other components for a few turns, and the change of the
//! bound follows from the sums before and after. Shares of a tail stay as they are.

use std::collections::{BTreeMap, HashMap};

use crate::component::{ComponentId, Edit, EditLog};
use crate::data::RowUnits;
use crate::error::Result;
use crate::global_step::Globals;
use crate::local_step::{Assign, ByScore, Chunk, FromPairs, Keep, LocalStep, OfShares, Tap};
use crate::memo::Memo;
use crate::model::Model;
use crate::moves::judge::{Judge, is_gain};
use crate::moves::plan::SharedRows;
use crate::parallel::{Cancel, try_map};
use crate::responsibilities::Sparsity;
use crate::simd::Scalar;
use crate::suffstats::Summary;

/// Turns of local and global steps over the rows of a component that is to end.
const TURNS: usize = 2;
/// A component is tried only where at most so many rows have a share of it.
pub(super) const MOST_ROWS: usize = 10_000;

/// How rows are dealt anew.
pub(super) struct Refit<'a, F: Scalar> {
    pub model: &'a Model<F>,
    pub sparsity: Sparsity,
    pub margin: Option<f64>,
}

/// What became of a candidate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Outcome {
    /// It ended, with this gain, nats.
    Accepted(f64),
    /// The others do not make up for it.
    NoGain,
    /// Too many rows have a share of it.
    TooManyRows,
}

/// Responsibilities as pairs, `width` a row.
#[derive(Default)]
struct Pairs {
    width: usize,
    components: Vec<u32>,
    values: Vec<f64>,
}

impl Pairs {
    fn assign(&self) -> FromPairs<'_> {
        FromPairs { width: self.width, components: &self.components, values: &self.values }
    }

    /// Those of the listed rows, of which `places` knows the components.
    fn of(shared: &SharedRows, list: &[usize], places: &HashMap<ComponentId, u32>) -> Self {
        let width = list.iter().map(|&row| shared.pairs[row].len()).max().unwrap_or(0).max(1);
        let mut pairs = Self { width, components: vec![0; list.len() * width], values: vec![0.0; list.len() * width] };
        for (at, &row) in list.iter().enumerate() {
            for (slot, (id, value)) in shared.pairs[row].iter().enumerate() {
                pairs.components[at * width + slot] = places.get(id).copied().unwrap_or(0);
                pairs.values[at * width + slot] = *value;
            }
        }
        pairs
    }
}

impl Tap for Pairs {
    fn observe(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        self.width = chunk.responsibilities.width;
        self.components.extend_from_slice(&chunk.responsibilities.components);
        self.values.extend_from_slice(&chunk.responsibilities.values);
        Ok(())
    }
}

impl<F: Scalar> Refit<'_, F> {
    /// Tries the candidates one after another; whatever raises the bound is carried out at once.
    ///
    /// # Errors
    /// [`crate::Error::Numerical`].
    pub fn settle(
        &self,
        judge: &Judge<'_, F>,
        memo: &mut Memo,
        edits: &mut EditLog,
        candidates: &[ComponentId],
        shared: &mut SharedRows,
    ) -> Result<Vec<Outcome>> {
        candidates.iter().map(|&id| self.try_one(judge, memo, edits, id, shared)).collect()
    }

    fn try_one(
        &self,
        judge: &Judge<'_, F>,
        memo: &mut Memo,
        edits: &mut EditLog,
        gone: ComponentId,
        shared: &mut SharedRows,
    ) -> Result<Outcome> {
        // The others may have ended before it.
        if memo.total().n_components() < 2 {
            return Ok(Outcome::NoGain);
        }
        let has_share = |row: &usize| shared.pairs[*row].iter().any(|(id, value)| *id == gone && *value > 0.0);
        let list: Vec<usize> = (0..shared.pairs.len()).filter(has_share).collect();
        if list.len() > MOST_ROWS {
            return Ok(Outcome::TooManyRows);
        }
        let total = memo.total();
        let places: HashMap<ComponentId, u32> = total.ids.iter().copied().zip(0..).collect();
        let units = shared.rows.pick(&list).units::<F>(1.0);
        let before = Pairs::of(shared, &list, &places);
        let taken = self.sum(&units, &total.ids, &before.assign(), None)?;
        let mut rest = total.clone();
        rest.sub(&taken)?;
        rest.apply(&Edit::Delete { id: gone })?;
        rest.counts.iter_mut().for_each(|count| *count = count.max(0.0));
        let shares: Vec<f64> = before.values.chunks_exact(before.width).map(|values| values.iter().sum()).collect();
        let mut after = Pairs::default();
        // They begin with what they have of these rows already.
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
                width: self.sparsity.clamp(rest.n_components()),
                margin: self.margin,
                abandon: true,
                row_terms: false,
            };
            after = Pairs::default();
            given = self.sum(&units, &rest.ids, &OfShares { deal, shares: &shares }, Some(&mut after))?;
        }
        let mut current = rest;
        current.add(&given)?;
        let gain = match change(judge, total, &current, &taken, gone)? {
            Some(gain) => gain,
            // What nobody has a share of is worth nothing, and nothing is lost with it.
            None if list.is_empty() => 0.0,
            None => return Ok(Outcome::NoGain),
        };

        let mut of_batch: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (at, &row) in list.iter().enumerate() {
            of_batch.entry(shared.batches[row]).or_default().push(at);
        }
        let ids = total.ids.clone();
        let labels: Vec<Vec<(ComponentId, f64)>> = (0..list.len())
            .map(|at| {
                let own = at * after.width..(at + 1) * after.width;
                let pairs = after.components[own.clone()].iter().zip(&after.values[own]);
                pairs.filter(|(_, value)| **value > 0.0).map(|(&k, &value)| (current.ids[k as usize], value)).collect()
            })
            .collect();
        let was = list.iter().map(|&row| std::mem::take(&mut shared.pairs[row])).collect::<Vec<_>>();
        for (batch, own) in of_batch {
            let rows: Vec<usize> = own.iter().map(|&at| list[at]).collect();
            let units = shared.rows.pick(&rows).units::<F>(1.0);
            for &at in &own {
                shared.pairs[list[at]].clone_from(&was[at]);
            }
            let minus = self.sum(&units, &ids, &Pairs::of(shared, &rows, &places).assign(), None)?;
            for &at in &own {
                shared.pairs[list[at]].clone_from(&labels[at]);
            }
            let plus = self.sum(&units, &ids, &Pairs::of(shared, &rows, &places).assign(), None)?;
            memo.amend(batch as usize, &minus.scale(-1.0))?;
            memo.amend(batch as usize, &plus)?;
        }
        let edit = Edit::Delete { id: gone };
        memo.apply(&edit)?;
        edits.push(edit);
        Ok(Outcome::Accepted(gain))
    }

    /// What rows contribute to components; their masses and base measures are those of the data before and after.
    fn sum(
        &self,
        units: &RowUnits<'_, F>,
        ids: &[ComponentId],
        assign: &dyn Assign<F>,
        tap: Option<&mut Pairs>,
    ) -> Result<Summary> {
        // Between what is taken away and what is added there is no valid state to stop in.
        let never = Cancel::default();
        let likelihood = self.model.likelihood.as_ref();
        let step = LocalStep { likelihood, ids, assign, keep: Keep::Summary, cancel: &never };
        let mut summary = match tap {
            Some(tap) => step.run(units, None, &mut [tap])?.summary,
            None => step.run(units, None, &mut [])?.summary,
        };
        (summary.mass, summary.log_base_measure) = (0.0, 0.0);
        Ok(summary)
    }
}

/// The change of the bound, if it is a gain: only components that the rows had or have a share of have changed.
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
        let Some(&at) = places.get(&total.ids[k]) else { return Ok([judge.gain(before)?, 0.0]) };
        let after = current.component(at);
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
