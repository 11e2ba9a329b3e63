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

    pub(super) fn merge(&mut self, keep: ComponentId, gone: ComponentId) {
        match self {
            Self::Unknown => {}
            Self::Known(gaps) => {
                let is_touched = |(a, b): &(_, _)| [*a, *b].iter().any(|id| *id == keep || *id == gone);
                let touched: Vec<_> = gaps.keys().copied().filter(is_touched).collect();
                for (a, b) in touched {
                    let shared = gaps.remove(&(a, b)) != Some(0.0);
                    let other = if a == keep || a == gone { b } else { a };
                    if shared && other != keep && other != gone {
                        gaps.insert(ordered(keep, other), f64::NAN);
                    }
                }
            }
            Self::Listed(_) => [keep, gone].into_iter().for_each(|id| self.delete(id)),
        }
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
