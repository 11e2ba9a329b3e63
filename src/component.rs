//! The identity of components and the log of edits to their list.
//!
//! A component has a [`ComponentId`] that is never used again; its position is only the stick order. Everything with
//! state for each component (memo, local state, distance bounds) replays the [`EditLog`].

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Components that can be told apart while they are scored: whole numbers that float32 holds.
pub const MOST_COMPONENTS: u32 = 1 << 24;

/// The identity of a component during a fit; never given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ComponentId(pub u32);

/// One change of the list of components.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Edit {
    /// New, empty components behind the last one.
    Append {
        /// Their identities, in order.
        ids: Vec<ComponentId>,
    },
    /// All that belongs to `gone` goes to `keep`; `keep` stays where it is.
    Merge {
        /// The component that stays.
        keep: ComponentId,
        /// The component that ends.
        gone: ComponentId,
    },
    /// The component ends; its units must have been given to others.
    Delete {
        /// The component that ends.
        id: ComponentId,
    },
    /// The same components in another stick order.
    Reorder {
        /// All identities, in the new order.
        order: Vec<ComponentId>,
    },
}

impl Edit {
    /// Applies the edit to a plain list of identities.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where the edit names a component that is not there, or one twice.
    pub fn apply_to(&self, ids: &mut Vec<ComponentId>) -> Result<()> {
        match self {
            Self::Append { ids: new } => {
                if let Some(id) = new.iter().find(|id| ids.contains(id)) {
                    return Err(Error::invalid("edit", format!("{id:?}"), "an identity that was never used"));
                }
                ids.extend_from_slice(new);
            }
            Self::Merge { keep, gone } => {
                position(ids, *keep)?;
                let at = position(ids, *gone)?;
                if keep == gone {
                    return Err(Error::invalid("edit", format!("{keep:?}"), "two different components"));
                }
                ids.remove(at);
            }
            Self::Delete { id } => {
                ids.remove(position(ids, *id)?);
            }
            Self::Reorder { order } => {
                let (mut old, mut new) = (ids.clone(), order.clone());
                old.sort_unstable();
                new.sort_unstable();
                if old != new {
                    return Err(Error::invalid("edit", format!("{order:?}"), "the same components in another order"));
                }
                ids.clone_from(order);
            }
        }
        Ok(())
    }
}

/// Where `id` stands in the stick order.
///
/// # Errors
/// [`Error::InvalidArgument`] where it is not there.
pub fn position(ids: &[ComponentId], id: ComponentId) -> Result<usize> {
    ids.iter().position(|&other| other == id).ok_or_else(|| unknown(id))
}

/// The error for a component that is not there.
pub(crate) fn unknown(id: ComponentId) -> Error {
    Error::invalid("edit", format!("{id:?}"), "a component that exists")
}

/// The versioned list of all edits of a fit. A version is the number of edits that have been applied.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditLog {
    next_id: u32,
    edits: Vec<Edit>,
}

impl EditLog {
    /// A log whose first edit appends `n` components.
    pub fn with_components(n: usize) -> Self {
        let mut log = Self::default();
        let ids = log.issue(n);
        log.push(Edit::Append { ids });
        log
    }

    /// `n` identities that were never given before.
    pub fn issue(&mut self, n: usize) -> Vec<ComponentId> {
        let first = self.next_id;
        self.next_id += n as u32;
        (first..self.next_id).map(ComponentId).collect()
    }

    /// Records an edit.
    pub fn push(&mut self, edit: Edit) {
        self.edits.push(edit);
    }

    /// How many edits there are.
    pub fn version(&self) -> usize {
        self.edits.len()
    }

    /// The edits that a holder of state at `version` has not seen.
    pub fn since(&self, version: usize) -> &[Edit] {
        &self.edits[version.min(self.edits.len())..]
    }

    /// The components after all edits, in stick order.
    ///
    /// # Errors
    /// As [`Edit::apply_to`].
    pub fn components(&self) -> Result<Vec<ComponentId>> {
        let mut ids = Vec::new();
        self.edits.iter().try_for_each(|edit| edit.apply_to(&mut ids))?;
        Ok(ids)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(names: &[u32]) -> Vec<ComponentId> {
        names.iter().map(|&name| ComponentId(name)).collect()
    }

    #[test]
    fn a_log_replays_to_the_same_list() {
        let mut log = EditLog::with_components(4);
        log.push(Edit::Merge { keep: ComponentId(2), gone: ComponentId(0) });
        log.push(Edit::Reorder { order: ids(&[3, 1, 2]) });
        let fresh = log.issue(1);
        log.push(Edit::Append { ids: fresh });
        log.push(Edit::Delete { id: ComponentId(1) });
        assert_eq!(log.components(), Ok(ids(&[3, 2, 4])));
        assert_eq!(log.version(), 5);
        assert_eq!(log.since(4), &[Edit::Delete { id: ComponentId(1) }]);
    }

    #[test]
    fn identities_are_never_given_twice() {
        let mut log = EditLog::with_components(2);
        log.push(Edit::Delete { id: ComponentId(1) });
        assert_eq!(log.issue(2), ids(&[2, 3]));
    }

    #[test]
    fn impossible_edits_are_refused() {
        let start = ids(&[0, 1]);
        for edit in [
            Edit::Append { ids: ids(&[1]) },
            Edit::Merge { keep: ComponentId(0), gone: ComponentId(0) },
            Edit::Merge { keep: ComponentId(0), gone: ComponentId(9) },
            Edit::Delete { id: ComponentId(9) },
            Edit::Reorder { order: ids(&[0]) },
        ] {
            assert!(edit.apply_to(&mut start.clone()).is_err(), "{edit:?}");
        }
    }
}
