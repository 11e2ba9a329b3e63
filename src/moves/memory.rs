//! Which components have been tried in vain, and when they may be tried again (moves recipe, section 2).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::component::ComponentId;

/// Passes until a component may be tried again after the first failure; twice as many after each further one.
const BACKOFF: usize = 5;
/// A component is another one once its count has changed by this share.
const CHANGED: f64 = 0.1;

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Failure {
    times: u32,
    pass: usize,
    count: f64,
}

/// The failures of one kind of move.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Memory(BTreeMap<ComponentId, Failure>);

impl Memory {
    /// Whether a component may be tried in `pass`.
    pub fn is_ready(&self, id: ComponentId, count: f64, pass: usize) -> bool {
        self.0.get(&id).is_none_or(|failure| {
            let wait = BACKOFF.saturating_mul(1 << (failure.times - 1).min(20));
            pass >= failure.pass + wait || (count - failure.count).abs() > CHANGED * failure.count
        })
    }

    /// Remembers a failure.
    pub fn failed(&mut self, id: ComponentId, count: f64, pass: usize) {
        let times = self.0.get(&id).map_or(0, |failure| failure.times) + 1;
        self.0.insert(id, Failure { times, pass, count });
    }

    /// Forgets a component.
    pub fn forget(&mut self, id: ComponentId) {
        self.0.remove(&id);
    }

    /// Whether there is anything to forget.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: ComponentId = ComponentId(7);

    #[test]
    fn what_failed_waits_twice_as_long_each_time() {
        let mut memory = Memory::default();
        assert!(memory.is_ready(ID, 100.0, 0) && memory.is_empty());
        for (pass, wait) in [(0, 5), (5, 10), (15, 20)] {
            memory.failed(ID, 100.0, pass);
            assert!(!memory.is_ready(ID, 100.0, pass + wait - 1));
            assert!(memory.is_ready(ID, 100.0, pass + wait));
        }
        assert!(memory.is_ready(ComponentId(8), 100.0, 16));
    }

    #[test]
    fn another_count_makes_another_component() {
        let mut memory = Memory::default();
        memory.failed(ID, 100.0, 3);
        assert!(!memory.is_ready(ID, 110.0, 4) && !memory.is_ready(ID, 90.0, 4));
        assert!(memory.is_ready(ID, 110.1, 4) && memory.is_ready(ID, 89.9, 4));
        memory.forget(ID);
        assert!(memory.is_ready(ID, 100.0, 4) && memory.is_empty());
    }

    #[test]
    fn many_failures_overflow_nothing() {
        let mut memory = Memory::default();
        (0..200).for_each(|pass| memory.failed(ID, 1.0, pass));
        assert!(!memory.is_ready(ID, 1.0, 1000));
    }
}
