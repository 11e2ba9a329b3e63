//! Records which components have been tried without success, and when they may be tried again (mathematics 4.10).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::component::ComponentId;
use crate::moves::PartsStart;

/// Number of passes before a component may be tried again after its first failure. The number doubles with each further
/// failure.
const BACKOFF: usize = 5;
/// A component may be tried again at once if its count has changed by this fraction.
const CHANGED: f64 = 0.1;
/// A component counts as unchanged if its count has changed by at most this fraction.
const SAME: f64 = 1e-3;

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Failure {
    times: u32,
    pass: usize,
    count: f64,
    /// Whether all rows of the component were considered.
    thorough: bool,
}

/// The failures of one kind of move.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Failures {
    failures: BTreeMap<ComponentId, Failure>,
    /// How the next parts start of components for which other starts failed.
    next: BTreeMap<ComponentId, PartsStart>,
}

impl Failures {
    /// Whether a component may be tried in `pass`.
    pub fn is_ready(&self, id: ComponentId, count: f64, pass: usize) -> bool {
        self.failures.get(&id).is_none_or(|failure| {
            let wait = BACKOFF.saturating_mul(1 << failure.times.saturating_sub(1).min(20));
            pass >= failure.pass + wait || (count - failure.count).abs() > CHANGED * failure.count
        })
    }

    /// Records a failure, and whether all rows of the component were considered.
    pub fn failed(&mut self, id: ComponentId, count: f64, pass: usize, thorough: bool) {
        let times = self.failures.get(&id).map_or(0, |failure| failure.times) + 1;
        self.failures.insert(id, Failure { times, pass, count, thorough });
    }

    /// Forgets all failures except thorough ones of components that have not changed. `count` returns the current count
    /// of each component.
    pub fn forget_changed(&mut self, count: impl Fn(ComponentId) -> f64) {
        self.failures
            .retain(|&id, failure| failure.thorough && (count(id) - failure.count).abs() <= SAME * failure.count);
    }

    /// Records how the next parts of a component start.
    pub fn try_next(&mut self, id: ComponentId, start: PartsStart) {
        self.next.insert(id, start);
    }

    /// Returns how the next parts of a component start if other starts failed, and clears the record.
    pub fn take_next(&mut self, id: ComponentId) -> Option<PartsStart> {
        self.next.remove(&id)
    }

    /// Forgets a component whose identity now stands for another one.
    pub fn forget(&mut self, id: ComponentId) {
        self.forget_failures(id);
        self.next.remove(&id);
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
    fn each_failure_doubles_the_wait() {
        let mut memory = Failures::default();
        assert!(memory.is_ready(ID, 100.0, 0) && memory.is_empty());
        for (pass, wait) in [(0, 5), (5, 10), (15, 20)] {
            memory.failed(ID, 100.0, pass, true);
            assert!(!memory.is_ready(ID, 100.0, pass + wait - 1));
            assert!(memory.is_ready(ID, 100.0, pass + wait));
        }
        assert!(memory.is_ready(ComponentId(8), 100.0, 16));
    }

    #[test]
    fn a_changed_count_ends_the_wait() {
        let mut memory = Failures::default();
        memory.failed(ID, 100.0, 3, true);
        assert!(!memory.is_ready(ID, 110.0, 4) && !memory.is_ready(ID, 90.0, 4));
        assert!(memory.is_ready(ID, 110.1, 4) && memory.is_ready(ID, 89.9, 4));
        memory.forget(ID);
        assert!(memory.is_ready(ID, 100.0, 4) && memory.is_empty());
    }

    #[test]
    fn the_last_round_retries_changed_components_and_those_not_tried_with_all_rows() {
        let all = [1, 2, 3].map(ComponentId);
        let mut memory = Failures::default();
        for (id, thorough) in all.into_iter().zip([true, false, true]) {
            memory.failed(id, 100.0, 4, thorough);
        }
        memory.forget_changed(|id| if id == all[2] { 100.2 } else { 100.05 });
        assert_eq!(all.map(|id| memory.is_ready(id, 100.05, 5)), [false, true, true]);
    }

    #[test]
    fn many_failures_do_not_overflow() {
        let mut memory = Failures::default();
        (0..200).for_each(|pass| memory.failed(ID, 1.0, pass, true));
        assert!(!memory.is_ready(ID, 1.0, 1000));
    }
}
