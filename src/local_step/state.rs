//! What a local step keeps of a batch between visits: a cache and a memory.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::component::{ComponentId, Edit, EditLog};
use crate::error::{Error, Result};
use crate::local_step::{BatchTree, Bounds, DocumentCounts, Frontier};

/// The local state of one batch. It is stored with the batch and replays the edits of the list of components.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LocalState {
    /// Number of edits that have been replayed.
    version: usize,
    #[serde(skip)]
    cache: Cache,
    memory: Memory,
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
    /// The tree with the statistics of the frontier, which can be recomputed from the rows.
    tree: Option<Box<BatchTree>>,
}

/// State on which the results of a visit depend. It is saved, and follows the edits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub enum Memory {
    /// Rows need no memory.
    #[default]
    Nothing,
    /// The counts of the topics of documents.
    Documents(DocumentCounts),
    /// The tree nodes that are units.
    Tree(Frontier),
}

impl LocalState {
    /// The component with the largest responsibility at the last visit, by unit. `None` before the first visit, for the
    /// tail, and for a component that was deleted.
    pub fn last_best(&self) -> &[Option<ComponentId>] {
        &self.cache.last_best
    }

    /// The state on which results depend.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Stores the counts of documents at the end of a complete visit.
    pub fn remember_documents(&mut self, counts: DocumentCounts) {
        self.memory = Memory::Documents(counts);
    }

    /// Stores the frontier with which later visits begin. Clears the cache, which belonged to other units.
    pub fn open(&mut self, frontier: Frontier, tree: Option<Box<BatchTree>>) {
        self.memory = Memory::Tree(frontier);
        self.cache = Cache { tree, ..Cache::default() };
    }

    /// Lends the tree until [`LocalState::put_tree`].
    pub(crate) fn take_tree(&mut self) -> Option<Box<BatchTree>> {
        self.cache.tree.take()
    }

    pub(crate) fn put_tree(&mut self, tree: Box<BatchTree>) {
        self.cache.tree = Some(tree);
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
        // Identities are never reused, so one look-up after another finds where the units of a component are now.
        let mut moved: HashMap<ComponentId, Option<ComponentId>> = HashMap::new();
        for edit in log.since(self.version) {
            let (from, to) = match edit {
                Edit::Merge { keep, gone } => (*gone, Some(*keep)),
                Edit::Delete { id } => (*id, None),
                Edit::Append { .. } | Edit::Reorder { .. } => continue,
            };
            moved.insert(from, to);
            if let Memory::Documents(counts) = &mut self.memory {
                counts.replace(from, to);
            }
        }
        if !moved.is_empty() {
            for best in &mut self.cache.last_best {
                while let Some(to) = best.and_then(|id| moved.get(&id)) {
                    *best = *to;
                }
            }
        }
        self.version = log.version();
    }

    /// Memory held, in bytes.
    pub fn bytes(&self) -> usize {
        let bounds = self.bounds().map_or(0, Bounds::bytes);
        let counts = if let Memory::Documents(counts) = &self.memory { counts.bytes() } else { 0 };
        let tree = self.cache.tree.as_ref().map_or(0, |tree| tree.bytes())
            + if let Memory::Tree(Frontier::Nodes(starts)) = &self.memory { 4 * starts.capacity() } else { 0 };
        size_of::<Self>() + tree + self.cache.last_best.capacity() * size_of::<Option<ComponentId>>() + bounds + counts
    }

    /// Serialises the memory.
    ///
    /// # Errors
    /// [`Error::Format`] if serialisation fails.
    pub fn save(&self) -> Result<Vec<u8>> {
        postcard::to_stdvec(self).map_err(|error| Error::Format { message: error.to_string() })
    }

    /// Reads a state from [`LocalState::save`], with an empty cache.
    ///
    /// # Errors
    /// [`Error::Format`] for anything else.
    pub fn load(bytes: &[u8]) -> Result<Self> {
        let (state, rest) =
            postcard::take_from_bytes(bytes).map_err(|error| Error::Format { message: error.to_string() })?;
        if rest.is_empty() {
            Ok(state)
        } else {
            Err(Error::Format { message: "it is longer than a local state".into() })
        }
    }
}
