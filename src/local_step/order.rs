//! The order in which the units of a chunk are taken: by their last best component, so that neighbours need the same few
//! components and the work on all others can be abandoned early.

use std::ops::Range;

use crate::component::ComponentId;
use crate::likelihood::NO_LEAD;
use crate::local_step::LocalState;

/// Units of a chunk, in order.
pub(super) struct Order {
    /// Their numbers.
    pub units: Vec<u32>,
    /// The position of the last best component of each, or [`NO_LEAD`].
    pub leads: Vec<u32>,
}

impl Order {
    /// A counting sort by the last best component; units without one stay behind all others, in their own order.
    pub fn new(units: Range<usize>, state: Option<&LocalState>, ids: &[ComponentId]) -> Self {
        let n = units.len();
        let own = || units.start as u32..units.end as u32;
        let Some(last_best) = state.and_then(|state| state.last_best().get(units.clone())) else {
            return Self { units: own().collect(), leads: vec![NO_LEAD; n] };
        };
        let n_ids = ids.iter().map(|id| id.0 as usize + 1).max().unwrap_or(0);
        let mut positions = vec![NO_LEAD; n_ids];
        ids.iter().zip(0..).for_each(|(id, position)| positions[id.0 as usize] = position);
        let lead =
            |best: &Option<ComponentId>| best.and_then(|id| positions.get(id.0 as usize)).copied().unwrap_or(NO_LEAD);
        let place = |lead: u32| (lead as usize).min(ids.len());
        let mut next = vec![0; ids.len() + 2];
        for best in last_best {
            next[place(lead(best)) + 1] += 1;
        }
        for position in 1..next.len() {
            next[position] += next[position - 1];
        }
        let mut sorted = Self { units: vec![0; n], leads: vec![NO_LEAD; n] };
        for (unit, best) in own().zip(last_best) {
            let lead = lead(best);
            let at = &mut next[place(lead)];
            (sorted.units[*at], sorted.leads[*at]) = (unit, lead);
            *at += 1;
        }
        sorted
    }
}
