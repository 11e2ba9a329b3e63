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

    /// Forgets all.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Whether there is anything to forget.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
