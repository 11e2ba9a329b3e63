//! The order in which the units of a chunk are taken: by their last best component, so that neighbours need the same few
//! components and the work on all others can be abandoned early.

use std::ops::Range;

use crate::component::ComponentId;
use crate::local_step::LocalState;
use crate::scoring::NO_LEAD;

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
        for (lead, bounds) in (0..).zip(next[..=ids.len()].windows(2)) {
            sorted.leads[bounds[0]..bounds[1]].fill(lead);
        }
        for (unit, best) in own().zip(last_best) {
            let at = &mut next[place(lead(best))];
            sorted.units[*at] = unit;
            *at += 1;
        }
        sorted
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
}
