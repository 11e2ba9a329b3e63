//! What a local step remembers of a batch between visits.

use serde::{Deserialize, Serialize};

use crate::component::{ComponentId, Edit, EditLog};
use crate::error::{Error, Result};
use crate::responsibilities::Responsibilities;

/// The last best component of every unit of one batch, by identity, and how many edits have been replayed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalState {
    version: usize,
    last_best: Vec<Option<ComponentId>>,
}

impl LocalState {
    /// The component that had the largest responsibility at the last visit, by unit; `None` before the first visit
    /// and where that component was deleted.
    pub fn last_best(&self) -> &[Option<ComponentId>] {
        &self.last_best
    }

    /// Takes the responsibilities of the listed units.
    pub(super) fn remember(&mut self, listed: &[u32], responsibilities: &Responsibilities, ids: &[ComponentId]) {
        let end = listed.iter().max().map_or(0, |&unit| unit as usize + 1);
        if self.last_best.len() < end {
            self.last_best.resize(end, None);
        }
        for (at, &unit) in listed.iter().enumerate() {
            self.last_best[unit as usize] = Some(ids[responsibilities.best(at) as usize]);
        }
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
        size_of::<Self>() + self.last_best.capacity() * size_of::<Option<ComponentId>>()
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
