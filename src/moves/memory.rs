//! Which components have been tried without success, and when they may be tried again (mathematics 4.10).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::component::ComponentId;

/// Passes until a component may be tried again after the first failure; twice as many after each further one.
const BACKOFF: usize = 5;
/// Relative change of its count after which a component may be tried again at once.
const CHANGED: f64 = 0.1;

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Failure {
    times: u32,
    pass: usize,
    count: f64,
}

/// The failures of one kind of move.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Failures {
    failures: BTreeMap<ComponentId, Failure>,
    /// Components for which the first way failed, so that the second is next.
    second: BTreeSet<ComponentId>,
}

impl Failures {
    /// Whether a component may be tried in `pass`.
    pub fn is_ready(&self, id: ComponentId, count: f64, pass: usize) -> bool {
        self.failures.get(&id).is_none_or(|failure| {
            let wait = BACKOFF.saturating_mul(1 << failure.times.saturating_sub(1).min(20));
            pass >= failure.pass + wait || (count - failure.count).abs() > CHANGED * failure.count
        })
    }

    /// Remembers a failure.
    pub fn failed(&mut self, id: ComponentId, count: f64, pass: usize) {
        let times = self.failures.get(&id).map_or(0, |failure| failure.times) + 1;
        self.failures.insert(id, Failure { times, pass, count });
    }

    /// Remembers to try a component in the second way next.
    pub fn try_second(&mut self, id: ComponentId) {
        self.second.insert(id);
    }

    /// Whether it is the turn of the second way; then it is no longer.
    pub fn take_second(&mut self, id: ComponentId) -> bool {
        self.second.remove(&id)
    }

    /// Forgets a component, which has become another one.
    pub fn forget(&mut self, id: ComponentId) {
        self.forget_failures(id);
        self.second.remove(&id);
    }

    /// Forgets the failures of a component.
    pub fn forget_failures(&mut self, id: ComponentId) {
        self.failures.remove(&id);
    }

    /// Forgets the failures of all components.
    pub fn clear(&mut self) {
        self.failures.clear();
    }

    /// Whether there are no failures.
    pub fn is_empty(&self) -> bool {
        self.failures.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: ComponentId = ComponentId(7);

    #[test]
    fn what_failed_waits_twice_as_long_each_time() {
        let mut memory = Failures::default();
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
        let mut memory = Failures::default();
        memory.failed(ID, 100.0, 3);
        assert!(!memory.is_ready(ID, 110.0, 4) && !memory.is_ready(ID, 90.0, 4));
        assert!(memory.is_ready(ID, 110.1, 4) && memory.is_ready(ID, 89.9, 4));
        memory.forget(ID);
        assert!(memory.is_ready(ID, 100.0, 4) && memory.is_empty());
    }

    #[test]
    fn many_failures_overflow_nothing() {
        let mut memory = Failures::default();
        (0..200).for_each(|pass| memory.failed(ID, 1.0, pass));
        assert!(!memory.is_ready(ID, 1.0, 1000));
    }
}
