//! What a local step remembers of a batch between visits.

use serde::{Deserialize, Serialize};

use crate::component::{ComponentId, Edit, EditLog};
use crate::error::{Error, Result};
use crate::local_step::Bounds;

/// The last best component of every unit of one batch, by identity, and how many edits have been replayed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LocalState {
    version: usize,
    last_best: Vec<Option<ComponentId>>,
    /// Where they are kept. They are made anew after a checkpoint, because no number depends on them.
    #[serde(skip)]
    pub(crate) bounds: Option<Bounds>,
}

impl LocalState {
    /// The component that had the largest responsibility at the last visit, by unit; `None` before the first visit
    /// where it was the tail, and where that component was deleted.
    pub fn last_best(&self) -> &[Option<ComponentId>] {
        &self.last_best
    }

    /// Takes the best component of every unit at a visit that is complete: the order of the next one follows from it.
    pub(super) fn remember(&mut self, best: Vec<Option<ComponentId>>) {
        self.last_best = best;
    }

    /// Replays the edits that this state has not seen.
    pub fn replay(&mut self, log: &EditLog) {
        for edit in log.since(self.version) {
            match edit {
                Edit::Merge { keep, gone } => self.replace(*gone, Some(*keep)),
                Edit::Delete { id } => self.replace(*id, None),
                Edit::Append { .. } | Edit::Reorder { .. } => {}
            }
        }
        self.version = log.version();
    }

    fn replace(&mut self, from: ComponentId, to: Option<ComponentId>) {
        self.last_best.iter_mut().filter(|best| **best == Some(from)).for_each(|best| *best = to);
    }

    /// Memory held, in bytes.
    pub fn bytes(&self) -> usize {
        let bounds = self.bounds.as_ref().map_or(0, Bounds::bytes);
        size_of::<Self>() + self.last_best.capacity() * size_of::<Option<ComponentId>>() + bounds
    }

    /// The state as bytes.
    ///
    /// # Errors
    /// [`Error::Format`] where that fails.
    pub fn save(&self) -> Result<Vec<u8>> {
        postcard::to_stdvec(self).map_err(|error| Error::Format { message: error.to_string() })
    }

    /// The state from [`LocalState::save`].
    ///
    /// # Errors
    /// [`Error::Format`] for anything else.
    pub fn load(bytes: &[u8]) -> Result<Self> {
        postcard::from_bytes(bytes).map_err(|error| Error::Format { message: error.to_string() })
    }
}
