//! Merge-entropy gaps of pairs of components.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::component::ComponentId;

/// Merge-entropy gaps G_ab = H_a + H_b - H_ab of the pairs that share a unit (mathematics 4.4).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub enum PairGaps {
    /// Not kept.
    #[default]
    Unknown,
    /// By pair, smaller identity first. A pair that is not listed shares no unit: its gap is exactly zero. NaN stands
    /// for a gap that became unknown in a merge.
    Known(BTreeMap<(ComponentId, ComponentId), f64>),
    /// Gaps of some pairs; those of all others are unknown.
    Listed(BTreeMap<(ComponentId, ComponentId), f64>),
}

impl PairGaps {
    /// The gap of a pair, or `None` if it is unknown.
    pub fn get(&self, a: ComponentId, b: ComponentId) -> Option<f64> {
        match self {
            Self::Unknown => None,
            Self::Known(gaps) => Some(gaps.get(&ordered(a, b)).copied().unwrap_or(0.0)).filter(|gap| !gap.is_nan()),
            Self::Listed(gaps) => gaps.get(&ordered(a, b)).copied().filter(|gap| !gap.is_nan()),
        }
    }

    /// The pairs that have an entry.
    pub(super) fn listed_mut(&mut self) -> Option<&mut BTreeMap<(ComponentId, ComponentId), f64>> {
        match self {
            Self::Unknown => None,
            Self::Known(gaps) | Self::Listed(gaps) => Some(gaps),
        }
    }

    /// Adds `gap` to a pair, if gaps are kept.
    pub fn add_pair(&mut self, a: ComponentId, b: ComponentId, gap: f64) {
        if let Some(gaps) = self.listed_mut() {
            *gaps.entry(ordered(a, b)).or_insert(0.0) += gap;
        }
    }

    pub(super) fn combine(&mut self, other: &Self, sign: f64) {
        match (&mut *self, other) {
            (Self::Known(mine), Self::Known(theirs)) => {
                for (&pair, &gap) in theirs {
                    *mine.entry(pair).or_insert(0.0) += sign * gap;
                }
            }
            // A pair that is missing on either side becomes unknown.
            (mine, theirs) => {
                let ((_, Self::Listed(listed)) | (Self::Listed(listed), Self::Known(_))) = (&*mine, theirs) else {
                    return *self = Self::Unknown;
                };
                let sum = |&(a, b): &(ComponentId, ComponentId)| Some(mine.get(a, b)? + sign * theirs.get(a, b)?);
                *mine = Self::Listed(listed.keys().filter_map(|pair| Some((*pair, sum(pair)?))).collect());
            }
        }
    }

    /// Follows merges of pairs (keep, gone), each component at most once.
    pub(super) fn merge(&mut self, merges: &[(ComponentId, ComponentId)]) {
        let owners: BTreeMap<ComponentId, ComponentId> =
            merges.iter().flat_map(|&(keep, gone)| [(keep, keep), (gone, keep)]).collect();
        let is_touched = |(a, b): &(ComponentId, ComponentId)| owners.contains_key(a) || owners.contains_key(b);
        let owner = |id| owners.get(&id).copied().unwrap_or(id);
        let is_known = matches!(self, Self::Known(_));
        let Some(gaps) = self.listed_mut() else { return };
        let (touched, rest): (BTreeMap<_, _>, _) =
            std::mem::take(gaps).into_iter().partition(|(pair, _)| is_touched(pair));
        *gaps = rest;
        let shared = touched.into_iter().filter(|(_, gap)| is_known && *gap != 0.0);
        let unknown = shared.map(|((a, b), _)| (owner(a), owner(b))).filter(|(a, b)| a != b);
        gaps.extend(unknown.map(|(a, b)| (ordered(a, b), f64::NAN)));
    }

    pub(super) fn delete(&mut self, id: ComponentId) {
        if let Some(gaps) = self.listed_mut() {
            gaps.retain(|(a, b), _| *a != id && *b != id);
        }
    }
}

fn ordered(a: ComponentId, b: ComponentId) -> (ComponentId, ComponentId) {
    if a < b { (a, b) } else { (b, a) }
}
