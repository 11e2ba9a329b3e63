//! What a local step keeps of a batch between visits.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::component::{ComponentId, EditLog};
use crate::local_step::Bounds;

/// The local state of one batch. It is stored with the batch and replays the edits of the list of components.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LocalState {
    /// Number of edits that have been replayed.
    version: usize,
    #[serde(skip)]
    cache: Cache,
}

/// State that makes visits fast. Results do not depend on it, so it may be dropped at any time and is not saved.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Cache {
    /// The last best component of every unit, by identity.
    last_best: Vec<Option<ComponentId>>,
    /// Distance bounds, if they are kept.
    pub bounds: Option<Bounds>,
    /// Sum over units of mass x log base measure, nats. It depends on the units alone while the base measure is
    /// unchanged.
    pub log_base_measure: Option<f64>,
}

impl LocalState {
    /// The component with the largest responsibility at the last visit, by unit. `None` before the first visit, for the
    /// tail, and for a component that was deleted.
    pub fn last_best(&self) -> &[Option<ComponentId>] {
        &self.cache.last_best
    }

    /// Drops the cache.
    pub fn forget(&mut self) {
        self.cache = Cache::default();
    }

    pub(crate) fn log_base_measure_mut(&mut self) -> &mut Option<f64> {
        &mut self.cache.log_base_measure
    }

    pub(crate) fn bounds(&self) -> Option<&Bounds> {
        self.cache.bounds.as_ref()
    }

    pub(crate) fn bounds_mut(&mut self) -> &mut Option<Bounds> {
        &mut self.cache.bounds
    }

    /// Stores the best component of every unit after a complete visit. The next visit scores units in this order.
    pub(super) fn remember(&mut self, best: Vec<Option<ComponentId>>) {
        self.cache.last_best = best;
    }

    /// Replays the edits that this state has not yet seen.
    pub fn replay(&mut self, log: &EditLog) {
        // A part of a log may lack edits; then nothing is known about the units any more.
        if !log.reaches(self.version) {
            self.forget();
            self.version = log.version();
        }
        // Identities are never reused, so one look-up after another finds where the units of a component are now.
        let heirs: HashMap<ComponentId, Option<ComponentId>> = log.ended_since(self.version).collect();
        for best in self.cache.last_best.iter_mut().filter(|_| !heirs.is_empty()) {
            while let Some(heir) = best.and_then(|id| heirs.get(&id)) {
                *best = *heir;
            }
        }
        self.version = log.version();
    }

    /// Memory held, in bytes.
    pub fn bytes(&self) -> usize {
        let bounds = self.bounds().map_or(0, Bounds::bytes);
        size_of::<Self>() + self.cache.last_best.capacity() * size_of::<Option<ComponentId>>() + bounds
    }
}
