//! The order in which the units of a chunk are scored. Units are sorted by their last best component, so that
//! neighbours need the same few components and the others are abandoned early. Results are written back in the original
//! order, so that no sum depends on the sorting.

use std::ops::Range;

use crate::component::ComponentId;
use crate::local_step::{BLOCK, LocalState};
use crate::parallel::{for_each, map};
use crate::responsibilities::Responsibilities;
use crate::scoring::NO_LEAD;

/// Minimum number of units that one task sorts, and for each component: every task has a stretch for each component.
const SORTED: [usize; 2] = [2048, 4];

/// Whether sorting pays off. With few components and few columns, scoring everything is faster than sorting.
pub(super) fn pays(n_components: usize, dimension: usize) -> bool {
    n_components > 32 || dimension > 4
}

/// The units of a chunk in scoring order.
pub(super) struct Order {
    /// Indices of the units.
    pub units: Vec<u32>,
    /// The position of the last best component of each unit, or [`NO_LEAD`].
    pub leads: Vec<u32>,
    /// The position of each unit of the chunk in `units`; empty if the order is unchanged.
    pub places: Vec<u32>,
}

/// Positions of the units of a chunk; the default is the original order.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Places<'a>(&'a [u32]);

impl Places<'_> {
    /// The position of unit `unit` of the chunk.
    #[inline]
    pub fn of(self, unit: usize) -> usize {
        self.0.get(unit).map_or(unit, |&place| place as usize)
    }
}

impl Order {
    /// Counting sort by the last best component, by blocks. Units without one come last, in their original order.
    pub fn new(units: Range<usize>, state: Option<&LocalState>, ids: &[ComponentId]) -> Self {
        let n = units.len();
        let Some(last_best) = state.and_then(|state| state.last_best().get(units.clone())) else {
            let in_unit_order = units.start as u32..units.end as u32;
            return Self { units: in_unit_order.collect(), leads: vec![NO_LEAD; n], places: Vec::new() };
        };
        let n_ids = ids.iter().map(|id| id.0 as usize + 1).max().unwrap_or(0);
        let mut positions = vec![NO_LEAD; n_ids];
        ids.iter().zip(0..).for_each(|(id, position)| positions[id.0 as usize] = position);
        // The group of a unit: the position of its last best component, or one behind all.
        let group = |best: &Option<ComponentId>| {
            let position = best.and_then(|id| positions.get(id.0 as usize)).copied().unwrap_or(NO_LEAD);
            (position as usize).min(ids.len())
        };
        let block = SORTED[0].max(SORTED[1] * ids.len());
        let blocks: Vec<_> = last_best.chunks(block).collect();
        let sizes = map(blocks.len(), |index| {
            let mut sizes = vec![0; ids.len() + 1];
            blocks[index].iter().for_each(|best| sizes[group(best)] += 1);
            sizes
        });
        let mut sorted = Self { units: vec![0; n], leads: vec![NO_LEAD; n], places: vec![0; n] };
        // Each block has a stretch of every group.
        let mut stretches: Vec<Vec<(usize, &mut [u32])>> = sizes.iter().map(|_| Vec::new()).collect();
        let (mut start, mut left) = (0, &mut sorted.units[..]);
        for lead in 0..=ids.len() {
            let first = start;
            for (sizes, stretches) in sizes.iter().zip(&mut stretches) {
                let (stretch, rest) = std::mem::take(&mut left).split_at_mut(sizes[lead]);
                stretches.push((start, stretch));
                (start, left) = (start + sizes[lead], rest);
            }
            sorted.leads[first..start].fill(if lead < ids.len() { lead as u32 } else { NO_LEAD });
        }
        let items = blocks.into_iter().zip(sorted.places.chunks_mut(block)).zip(stretches);
        let firsts = units.step_by(block);
        for_each(items.zip(firsts).collect(), |(((last_best, places), mut stretches), first)| {
            let mut filled = vec![0; stretches.len()];
            for ((unit, best), place) in (first as u32..).zip(last_best).zip(places) {
                let group = group(best);
                let (start, stretch) = &mut stretches[group];
                stretch[filled[group]] = unit;
                *place = (*start + filled[group]) as u32;
                filled[group] += 1;
            }
        });
        sorted
    }

    /// The positions of the units.
    pub fn places(&self) -> Places<'_> {
        Places(&self.places)
    }

    /// Puts responsibilities back into the original order; `space` then holds the previous order.
    pub fn restore(&self, responsibilities: &mut Responsibilities, space: &mut Responsibilities) {
        if self.places.is_empty() {
            return;
        }
        let width = responsibilities.width;
        space.resize(responsibilities.len());
        std::mem::swap(responsibilities, space);
        let scored = &*space;
        let items: Vec<_> = responsibilities
            .components
            .chunks_mut(BLOCK * width)
            .zip(responsibilities.values.chunks_mut(BLOCK * width))
            .zip(responsibilities.log_normalizers.chunks_mut(BLOCK))
            .zip(self.places.chunks(BLOCK))
            .collect();
        for_each(items, |(((components, values), log_normalizers), places)| {
            let slots = components.chunks_exact_mut(width).zip(values.chunks_exact_mut(width));
            for (((components, values), log_normalizer), &place) in slots.zip(log_normalizers).zip(places) {
                let place = place as usize;
                components.copy_from_slice(&scored.components[place * width..][..width]);
                values.copy_from_slice(&scored.values[place * width..][..width]);
                *log_normalizer = scored.log_normalizers[place];
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::component::{Edit, EditLog};

    #[test]
    fn units_stand_by_their_last_best_and_those_without_one_behind() {
        let ids: Vec<ComponentId> = [7, 3, 5].map(ComponentId).to_vec();
        let mut state = LocalState::default();
        state.remember([2, 0, 1, 2, 1, 0].map(|position: usize| Some(ids[position])).to_vec());
        let order = Order::new(1..6, Some(&state), &ids);
        assert_eq!((order.units, order.leads), (vec![1, 5, 2, 4, 3], vec![0, 0, 1, 1, 2]));
        let mut log = EditLog::default();
        log.push(Edit::Delete { id: ids[0] });
        state.replay(&log);
        let order = Order::new(1..6, Some(&state), &ids[1..]);
        assert_eq!((order.units, order.leads), (vec![2, 4, 3, 1, 5], vec![0, 0, 1, NO_LEAD, NO_LEAD]));
    }

    #[test]
    fn many_units_stand_as_after_a_plain_stable_sort() {
        for (n, n_ids) in [(2048, 3), (2049, 1), (9000, 40), (9000, 900), (1, 2), (0, 2)] {
            let ids: Vec<ComponentId> = (0..n_ids).rev().map(ComponentId).collect();
            // Every seventh unit has none, or one that is gone.
            let best = |unit: u32| (!unit.is_multiple_of(7)).then_some(ComponentId(unit * 31 % 17 * n_ids / 16));
            let mut state = LocalState::default();
            state.remember((0..n + 5).map(best).collect());
            let order = Order::new(5..n as usize + 5, Some(&state), &ids);
            let lead = |unit: u32| {
                let position = best(unit).and_then(|id| ids.iter().position(|other| *other == id));
                position.map_or(NO_LEAD, |position| position as u32)
            };
            let mut expected: Vec<u32> = (5..n + 5).collect();
            expected.sort_by_key(|&unit| lead(unit));
            let leads: Vec<u32> = expected.iter().map(|&unit| lead(unit)).collect();
            assert_eq!((&order.units, &order.leads), (&expected, &leads));
            assert!((0..n as usize).all(|unit| order.units[order.places().of(unit)] == unit as u32 + 5));
        }
    }
}
