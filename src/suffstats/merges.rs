//! Merges of components. Merges in a row are carried out together, so that the other components move only once.

use std::collections::{BTreeSet, HashMap};

use crate::component::{ComponentId, Edit, unknown};
use crate::error::{Error, Result};
use crate::suffstats::Summary;

impl Summary {
    /// Replays edits, with the same bits as [`Summary::apply`] one by one.
    ///
    /// # Errors
    /// As [`Summary::apply`].
    pub fn apply_all<'e>(&mut self, edits: impl IntoIterator<Item = &'e Edit>) -> Result<()> {
        let (mut merges, mut touched) = (Vec::new(), BTreeSet::new());
        for edit in edits {
            let pair = if let Edit::Merge { keep, gone } = edit { Some((*keep, *gone)) } else { None };
            // A component that takes part twice must have been merged before.
            if pair.is_none_or(|(keep, gone)| touched.contains(&keep) || touched.contains(&gone)) {
                self.merge(&std::mem::take(&mut merges))?;
                touched.clear();
            }
            match pair {
                Some((keep, gone)) => {
                    touched.extend([keep, gone]);
                    merges.push((keep, gone));
                }
                None => self.apply(edit)?,
            }
        }
        self.merge(&merges)
    }

    /// Merges pairs (keep, gone), each component at most once.
    pub(super) fn merge(&mut self, merges: &[(ComponentId, ComponentId)]) -> Result<()> {
        if merges.is_empty() {
            return Ok(());
        }
        let found = self.places_and_gaps(merges)?;
        let mut is_kept = vec![true; self.n_components()];
        for (keep, gone, gap) in found {
            is_kept[gone] = false;
            self.absorb(keep, gone, gap);
        }
        retain(&mut self.ids, &is_kept);
        self.retain(&is_kept);
        self.gaps.merge(merges);
        Ok(())
    }

    /// For each pair the positions of its components and its gap.
    fn places_and_gaps(&self, merges: &[(ComponentId, ComponentId)]) -> Result<Vec<(usize, usize, f64)>> {
        let places: HashMap<ComponentId, usize> = self.ids.iter().copied().zip(0..).collect();
        let place = |id| places.get(&id).copied().ok_or_else(|| unknown(id));
        let refused = |found: String, allowed| Error::invalid("edit", found, allowed);
        let of_pair = |&(keep, gone): &(ComponentId, ComponentId)| {
            let (a, b) = (place(keep)?, place(gone)?);
            if a == b {
                return Err(refused(format!("{keep:?}"), "two different components"));
            }
            let edit = Edit::Merge { keep, gone };
            let gap = self.gaps.get(keep, gone);
            let gap = gap.ok_or_else(|| refused(format!("{edit:?}"), "a merge of a pair whose gap is known"))?;
            Ok((a, b, gap))
        };
        merges.iter().map(of_pair).collect()
    }

    /// Removes the entries of all components that are not kept; their identities stay.
    pub(super) fn retain(&mut self, is_kept: &[bool]) {
        retain(&mut self.counts, is_kept);
        retain(&mut self.entropies, is_kept);
        self.documents.iter_mut().for_each(|documents| documents.retain(is_kept));
        if let Some(sparse) = &mut self.sparse {
            retain(&mut sparse.components, is_kept);
            return;
        }
        let p = self.n_statistics;
        let mut n = 0;
        for k in (0..is_kept.len()).filter(|&k| is_kept[k]) {
            self.statistics.copy_within(k * p..(k + 1) * p, n * p);
            n += 1;
        }
        self.statistics.truncate(n * p);
    }
}

/// Removes the entries that are not kept.
pub(super) fn retain<T>(values: &mut Vec<T>, is_kept: &[bool]) {
    let mut kept = is_kept.iter();
    values.retain(|_| kept.next().is_none_or(|&kept| kept));
}
