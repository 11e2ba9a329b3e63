//! The identity of components and the log of edits to their list.
//!
//! A component has a [`ComponentId`] that is never reused; its position is only the stick order. Everything with state
//! per component (memo, local state, distance bounds) replays the [`EditLog`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Maximum number of components. Scoring stores component indices in float32, which represents integers exactly up to
/// this.
pub const MOST_COMPONENTS: u32 = 1 << 24;

/// The identity of a component during a fit; never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ComponentId(pub u32);

/// The class of a row or of a component; `None` for a row of unknown class, and for a free component. A row of a class
/// belongs to components of that class only, and a row of unknown class to any (mathematics 3.2).
pub type Class = Option<u32>;

/// One change of the list of components.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Edit {
    /// Appends new, empty components.
    Append {
        /// Their identities, in order.
        ids: Vec<ComponentId>,
    },
    /// Moves everything that belongs to `gone` to `keep`, which keeps its position.
    Merge {
        /// The component that remains.
        keep: ComponentId,
        /// The component that is removed.
        gone: ComponentId,
    },
    /// Removes a component, whose units must have been assigned to others.
    Delete {
        /// The component to remove.
        id: ComponentId,
    },
    /// Changes the stick order.
    Reorder {
        /// All identities, in the new order.
        order: Vec<ComponentId>,
    },
}

impl Edit {
    /// Applies the edit to a plain list of identities.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the edit names a missing component, or a component twice.
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
                let index = position(ids, *gone)?;
                if keep == gone {
                    return Err(Error::invalid("edit", format!("{keep:?}"), "two different components"));
                }
                ids.remove(index);
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

/// Returns the position of `id` in the stick order.
///
/// # Errors
/// [`Error::InvalidArgument`] if it is missing.
pub fn position(ids: &[ComponentId], id: ComponentId) -> Result<usize> {
    ids.iter().position(|&other| other == id).ok_or_else(|| unknown(id))
}

/// The error for a missing component.
pub(crate) fn unknown(id: ComponentId) -> Error {
    Error::invalid("edit", format!("{id:?}"), "a component that exists")
}

/// The versioned list of all edits of a fit. A version is the number of edits that have been applied.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditLog {
    next_id: u32,
    /// Number of edits before the first of `edits`; above zero only in a part of a log that travels.
    first: usize,
    edits: Vec<Edit>,
    /// The classes of all components that have one, also of those that are gone.
    classes: BTreeMap<ComponentId, u32>,
}

impl EditLog {
    /// A log whose first edit appends `n` components.
    pub fn with_components(n: usize) -> Self {
        let mut log = Self::default();
        let ids = log.issue(n);
        log.push(Edit::Append { ids });
        log
    }

    /// Issues `n` new identities.
    pub fn issue(&mut self, n: usize) -> Vec<ComponentId> {
        let first = self.next_id;
        self.next_id += n as u32;
        (first..self.next_id).map(ComponentId).collect()
    }

    /// Sets the class of a component.
    pub fn set_class(&mut self, id: ComponentId, class: Class) {
        if let Some(class) = class {
            self.classes.insert(id, class);
        }
    }

    /// Makes a component free.
    pub fn set_free(&mut self, id: ComponentId) {
        self.classes.remove(&id);
    }

    /// Gives components the class of another one, from whose units they were made.
    pub fn inherit(&mut self, from: ComponentId, ids: &[ComponentId]) {
        let class = self.class(from);
        for &id in ids {
            self.set_class(id, class);
        }
    }

    /// Whether any component has a class.
    pub fn has_classes(&self) -> bool {
        !self.classes.is_empty()
    }

    /// The class of a component.
    pub fn class(&self, id: ComponentId) -> Class {
        self.classes.get(&id).copied()
    }

    /// The classes of components.
    pub fn classes(&self, ids: &[ComponentId]) -> Vec<Class> {
        ids.iter().map(|&id| self.class(id)).collect()
    }

    /// Whether a component is the only one of its class among `ids`, so that rows of the class would have none without
    /// it.
    pub fn is_last_of_class(&self, id: ComponentId, ids: &[ComponentId]) -> bool {
        let class = self.class(id);
        class.is_some() && !ids.iter().any(|&other| other != id && self.class(other) == class)
    }

    /// Records an edit.
    pub fn push(&mut self, edit: Edit) {
        self.edits.push(edit);
    }

    /// Number of edits.
    pub fn version(&self) -> usize {
        self.first + self.edits.len()
    }

    /// Whether it has all edits after `version`.
    pub fn reaches(&self, version: usize) -> bool {
        version >= self.first
    }

    /// The edits after `version`, which it must reach.
    pub fn since(&self, version: usize) -> &[Edit] {
        &self.edits[version.saturating_sub(self.first).min(self.edits.len())..]
    }

    /// The part of the log that one who knows the edits up to `version` needs. Classes are left out.
    #[must_use]
    pub fn after(&self, version: usize) -> Self {
        let first = version.clamp(self.first, self.version());
        Self { next_id: self.next_id, first, edits: self.since(first).to_vec(), classes: BTreeMap::new() }
    }

    /// The components that edits after `version` ended, in order, each with the one that took over its units, if any.
    pub fn ended_since(&self, version: usize) -> impl Iterator<Item = (ComponentId, Option<ComponentId>)> {
        self.since(version).iter().filter_map(|edit| match edit {
            Edit::Merge { keep, gone } => Some((*gone, Some(*keep))),
            Edit::Delete { id } => Some((*id, None)),
            Edit::Append { .. } | Edit::Reorder { .. } => None,
        })
    }

    /// The components after all edits, in stick order.
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
    fn a_part_of_a_log_has_its_last_edits() {
        let mut log = EditLog::with_components(4);
        (0..3).for_each(|gone| log.push(Edit::Merge { keep: ComponentId(3), gone: ComponentId(gone) }));
        let part = log.after(2);
        assert_eq!((part.version(), part.since(2), part.since(3)), (4, log.since(2), log.since(3)));
        assert!(part.reaches(2) && part.reaches(4) && !part.reaches(1) && log.reaches(0));
        assert_eq!(part.after(1), part);
        assert_eq!((log.after(9).version(), log.after(9).since(4)), (4, &[][..]));
    }

    #[test]
    fn identities_are_never_given_twice() {
        let mut log = EditLog::with_components(2);
        log.push(Edit::Delete { id: ComponentId(1) });
        assert_eq!(log.issue(2), ids(&[2, 3]));
    }

    #[test]
    fn classes_are_inherited_and_the_last_of_a_class_is_known() {
        let mut log = EditLog::with_components(3);
        log.set_class(ComponentId(0), Some(7));
        log.set_class(ComponentId(1), None);
        let fresh = log.issue(2);
        log.inherit(ComponentId(0), &fresh);
        log.inherit(ComponentId(1), &[ComponentId(2)]);
        let all = ids(&[0, 1, 2, 3, 4]);
        assert_eq!(log.classes(&all), [Some(7), None, None, Some(7), Some(7)]);
        assert!(!log.is_last_of_class(ComponentId(0), &all));
        assert!(log.is_last_of_class(ComponentId(3), &ids(&[1, 3])));
        assert!(!log.is_last_of_class(ComponentId(1), &ids(&[1, 3])), "a free component");
        log.set_free(ComponentId(3));
        assert_eq!(log.classes(&all), [Some(7), None, None, None, Some(7)]);
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
