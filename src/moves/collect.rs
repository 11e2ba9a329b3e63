//! Copies the rows of a visit from which parts of components can be made.

use std::collections::{BTreeMap, HashMap};

use crate::component::ComponentId;
use crate::data::Sample;
use crate::moves::seen::Grouped;
use crate::moves::{Bag, Plan, Visited};
use crate::parallel::{map, map_all};
use crate::rng::key;
use crate::simd::Scalar;

/// The largest keys that rows of components or parts may have; no limit for those left out.
pub type KeyLimits = BTreeMap<ComponentId, u64>;

/// The smallest keys seen so far in a pass. Rows with larger keys are in no bag at its end and need not be copied.
#[derive(Debug, Default)]
pub struct SmallestKeys {
    /// The version of the plan to which they belong.
    version: u64,
    /// By component or part, capped by the number of rows to copy.
    keys: HashMap<ComponentId, Vec<u64>>,
    /// Limits that keys seen elsewhere set.
    limits: KeyLimits,
}

impl SmallestKeys {
    /// No keys seen here, and limits from elsewhere.
    pub(super) fn within(version: u64, limits: KeyLimits) -> Self {
        Self { version, keys: HashMap::new(), limits }
    }

    fn restart(&mut self, version: u64) {
        if self.version != version {
            *self = Self::within(version, KeyLimits::new());
        }
    }

    /// The largest key that may still enter the sample of a component.
    fn limit(&self, id: ComponentId, max_rows: usize) -> u64 {
        let all = self.keys.get(&id).filter(|keys| keys.len() == max_rows);
        let own = all.and_then(|keys| keys.iter().max().copied()).unwrap_or(u64::MAX);
        self.limits.get(&id).map_or(own, |limit| own.min(*limit))
    }

    /// The largest keys that may still enter the samples under a plan.
    pub fn limits(&mut self, plan: &Plan) -> KeyLimits {
        self.restart(plan.version);
        let max_rows = plan.max_rows();
        let limits = self.keys.keys().map(|&id| (id, self.limit(id, max_rows)));
        limits.filter(|(_, limit)| *limit < u64::MAX).collect()
    }

    /// Adds the keys of rows that a visit under a plan copied.
    pub fn see(&mut self, plan: &Plan, bags: &BTreeMap<ComponentId, Bag>) {
        self.restart(plan.version);
        for (id, bag) in bags {
            let keys = self.keys.entry(*id).or_default();
            keys.extend(&bag.keys);
            leave_smallest(keys, plan.max_rows());
        }
    }
}

/// A row with its key.
type Keyed = (u64, u32);

/// Copies rows of every component named in the plan, and of every part.
pub(super) fn collect<F: Scalar>(visited: &Visited<'_, F>, smallest: &mut SmallestKeys) -> BTreeMap<ComponentId, Bag> {
    let (look, dealt) = (visited.look, &visited.dealt);
    let Some(wanted) = &look.plan.collect else { return BTreeMap::new() };
    smallest.restart(look.plan.version);
    let key_of = |unit: u32| key(wanted.seed, [look.shard as u64, u64::from(unit)]);
    // For targets, rows are copied by part instead.
    let mut limits = vec![None; look.ids.len() + 1];
    for id in &wanted.ids {
        if let Some(&place) = visited.places.get(id).filter(|place| dealt.target(**place).is_none()) {
            limits[place as usize] = Some(smallest.limit(*id, wanted.max_rows));
        }
    }
    let blocks = look.seen.blocks();
    let by_block = map(blocks.len(), |index| {
        let mut entries: Vec<(usize, Keyed)> = Vec::new();
        for (unit, components, values) in blocks[index].units() {
            for (&component, _) in components.iter().zip(values).filter(|(_, value)| **value > wanted.threshold) {
                if let Some(limit) = limits[component as usize] {
                    let key = key_of(unit as u32);
                    if key <= limit {
                        entries.push((component as usize, (key, unit as u32)));
                    }
                }
            }
        }
        Grouped::new(&entries, limits.len())
    });
    let whole = (0..look.ids.len()).filter(|&place| limits[place].is_some());
    let whole = map_all(whole.collect(), |place| {
        let rows = by_block.iter().flat_map(|block| block.of(place)).copied();
        vec![(look.ids[place], rows.collect::<Vec<Keyed>>())]
    });
    let parts = map_all(look.plan.proposals.iter().zip(&dealt.lists).collect(), |(proposal, lists)| {
        let ids = &proposal.parts.ids;
        let mut rows: BTreeMap<ComponentId, Vec<Keyed>> = BTreeMap::new();
        for list in lists {
            for (index, &unit) in
                list.units.iter().enumerate().filter(|(index, _)| list.shares[*index] > wanted.threshold)
            {
                rows.entry(list.best(index, ids)).or_default().push((key_of(unit), unit));
            }
        }
        rows.into_iter().collect()
    });
    let lists: Vec<_> = whole.into_iter().chain(parts).flatten().filter(|(_, rows)| !rows.is_empty()).collect();
    let bags = map_all(lists, |(id, mut rows)| {
        let mut keys: Vec<u64> = smallest.keys.get(&id).cloned().unwrap_or_default();
        keys.extend(rows.iter().map(|(key, _)| *key));
        leave_smallest(&mut keys, wanted.max_rows);
        let limit = keys.iter().max().copied().unwrap_or(0);
        rows.retain(|(key, _)| *key <= limit);
        rows.sort_unstable();
        let (unit_keys, units): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        let mut rows = Sample::default();
        let numbers = look.units.copy_rows_into(&units, &mut rows);
        // If a unit stands for several rows, each row has its own key.
        let key_of = |(&unit_key, &n): (&u64, &u32)| {
            let several = (0..u64::from(n)).map(move |row| if n == 1 { unit_key } else { key(unit_key, [row]) });
            several.collect::<Vec<_>>()
        };
        (id, keys, Bag { rows, keys: unit_keys.iter().zip(&numbers).flat_map(key_of).collect() })
    });
    let mut collected = BTreeMap::new();
    for (id, keys, bag) in bags {
        smallest.keys.insert(id, keys);
        collected.insert(id, bag);
    }
    collected
}

fn leave_smallest(keys: &mut Vec<u64>, number: usize) {
    if keys.len() > number {
        keys.select_nth_unstable(number);
        keys.truncate(number);
    }
}
