//! The one summary: what a batch remembers, a worker sends, a checkpoint stores and a merge adds up.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::component::{ComponentId, Edit, position, unknown};
use crate::error::{Error, Result};

/// What belongs to one component: its expected count and statistics, in the layout of the likelihood.
#[derive(Debug, Clone, Copy)]
pub struct Sufficient<'a> {
    /// Expected count N_k.
    pub count: f64,
    /// Expected statistics S_k without the constants that pair with the count.
    pub statistics: &'a [f64],
}

/// Merge-entropy gaps G_ab = H_a + H_b - H_ab of the pairs that share a unit (mathematics 4.4).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub enum PairGaps {
    /// Not kept.
    #[default]
    Unknown,
    /// By pair, smaller identity first. A pair that is not listed shares no unit: its gap is exactly zero.
    /// NaN stands for a pair whose gap a merge made unknown.
    Known(BTreeMap<(ComponentId, ComponentId), f64>),
    /// Of listed pairs only; the others are unknown.
    Listed(BTreeMap<(ComponentId, ComponentId), f64>),
}

impl PairGaps {
    /// The gap of a pair, `None` where it is not known.
    pub fn get(&self, a: ComponentId, b: ComponentId) -> Option<f64> {
        match self {
            Self::Unknown => None,
            Self::Known(gaps) => Some(gaps.get(&ordered(a, b)).copied().unwrap_or(0.0)).filter(|gap| !gap.is_nan()),
            Self::Listed(gaps) => gaps.get(&ordered(a, b)).copied().filter(|gap| !gap.is_nan()),
        }
    }

    /// The pairs that have an entry.
    fn listed_mut(&mut self) -> Option<&mut BTreeMap<(ComponentId, ComponentId), f64>> {
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

    fn combine(&mut self, other: &Self, sign: f64) {
        match (&mut *self, other) {
            (Self::Known(mine), Self::Known(theirs)) => {
                for (&pair, &gap) in theirs {
                    *mine.entry(pair).or_insert(0.0) += sign * gap;
                }
            }
            // A pair that is missing on either side is unknown.
            (mine, theirs) => {
                let ((_, Self::Listed(listed)) | (Self::Listed(listed), Self::Known(_))) = (&*mine, theirs) else {
                    return *self = Self::Unknown;
                };
                let sum = |&(a, b): &(ComponentId, ComponentId)| Some(mine.get(a, b)? + sign * theirs.get(a, b)?);
                *mine = Self::Listed(listed.keys().filter_map(|pair| Some((*pair, sum(pair)?))).collect());
            }
        }
    }

    fn merge(&mut self, keep: ComponentId, gone: ComponentId) {
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

    fn delete(&mut self, id: ComponentId) {
        if let Some(gaps) = self.listed_mut() {
            gaps.retain(|(a, b), _| *a != id && *b != id);
        }
    }
}

fn ordered(a: ComponentId, b: ComponentId) -> (ComponentId, ComponentId) {
    if a < b { (a, b) } else { (b, a) }
}

/// The infinite tail of a process that gives it responsibilities (mathematics 2c).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Tail {
    /// Expected count of the tail.
    pub count: f64,
    /// Entropy of the tail's responsibilities, nats.
    pub entropy: f64,
    /// Sum over units of mass x responsibility x expected log-likelihood under the prior, nats.
    pub expected_log_likelihood: f64,
}

/// Counts, statistics and entropies by component, and what else the bound needs. Additive over units.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The components, in the order of the arrays.
    pub ids: Vec<ComponentId>,
    /// Length of the statistics of one component.
    pub n_statistics: usize,
    /// N_k, (K,).
    pub counts: Vec<f64>,
    /// S_k, (K, `n_statistics`).
    pub statistics: Vec<f64>,
    /// H_k, (K,), nats.
    pub entropies: Vec<f64>,
    /// Merge-entropy gaps.
    pub gaps: PairGaps,
    /// The tail, for a process that has one.
    pub tail: Option<Tail>,
    /// Sum of the units' masses.
    pub mass: f64,
    /// Sum over units of mass x log base measure, nats, without the part of each mass that belongs to the tail.
    pub log_base_measure: f64,
}

impl Summary {
    /// The summary of no unit at all; `gaps`: whether pair gaps are kept.
    pub fn empty(ids: Vec<ComponentId>, n_statistics: usize, gaps: bool) -> Self {
        let k = ids.len();
        Self {
            ids,
            n_statistics,
            counts: vec![0.0; k],
            statistics: vec![0.0; k * n_statistics],
            entropies: vec![0.0; k],
            gaps: if gaps { PairGaps::Known(BTreeMap::new()) } else { PairGaps::Unknown },
            tail: None,
            mass: 0.0,
            log_base_measure: 0.0,
        }
    }

    /// Number of components.
    pub fn n_components(&self) -> usize {
        self.ids.len()
    }

    /// Whether this can be a summary of the components `ids`, in any order. Files are not trusted.
    pub fn fits(&self, ids: &[ComponentId], n_statistics: usize) -> bool {
        let (mut mine, mut theirs) = (self.ids.clone(), ids.to_vec());
        mine.sort_unstable();
        theirs.sort_unstable();
        let k = ids.len();
        let values = [&self.counts, &self.entropies, &self.statistics];
        let tail = self.tail.unwrap_or_default();
        let tail = [&tail.count, &tail.entropy, &tail.expected_log_likelihood];
        mine == theirs
            && self.n_statistics == n_statistics
            && (self.counts.len(), self.entropies.len(), self.statistics.len()) == (k, k, k * n_statistics)
            && values
                .into_iter()
                .flatten()
                .chain([&self.mass, &self.log_base_measure])
                .chain(tail)
                .all(|value| value.is_finite())
    }

    /// Count and statistics of the component at `k`.
    pub fn component(&self, k: usize) -> Sufficient<'_> {
        Sufficient { count: self.counts[k], statistics: &self.statistics[k * self.n_statistics..][..self.n_statistics] }
    }

    /// Count and statistics of every component, in order.
    pub fn components(&self) -> Vec<Sufficient<'_>> {
        (0..self.n_components()).map(|k| self.component(k)).collect()
    }

    /// Adds another summary of the same components, in any order.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where a component of `other` is not known here.
    pub fn add(&mut self, other: &Self) -> Result<()> {
        self.combine(other, 1.0)
    }

    /// Subtracts another summary.
    ///
    /// # Errors
    /// As [`Summary::add`].
    pub fn sub(&mut self, other: &Self) -> Result<()> {
        self.combine(other, -1.0)
    }

    fn combine(&mut self, other: &Self, sign: f64) -> Result<()> {
        let p = self.n_statistics;
        // A batch keeps the order of its last visit, which is that of the total until components are reordered.
        let places: Option<HashMap<_, _>> = (!self.ids.starts_with(&other.ids))
            .then(|| self.ids.iter().enumerate().map(|(at, &id)| (id, at)).collect());
        for (k, &id) in other.ids.iter().enumerate() {
            let at = match &places {
                None => k,
                Some(places) => *places.get(&id).ok_or_else(|| unknown(id))?,
            };
            self.counts[at] += sign * other.counts[k];
            self.entropies[at] += sign * other.entropies[k];
            let theirs = &other.statistics[k * p..][..p];
            self.statistics[at * p..][..p].iter_mut().zip(theirs).for_each(|(sum, value)| *sum += sign * value);
        }
        self.gaps.combine(&other.gaps, sign);
        if let Some(theirs) = other.tail {
            let mine = self.tail.get_or_insert_default();
            mine.count += sign * theirs.count;
            mine.entropy += sign * theirs.entropy;
            mine.expected_log_likelihood += sign * theirs.expected_log_likelihood;
        }
        self.mass += sign * other.mass;
        self.log_base_measure += sign * other.log_base_measure;
        Ok(())
    }

    /// Adds what `other` has of its component at `from` to the one at `to`.
    pub fn add_component(&mut self, to: usize, other: &Self, from: usize) {
        let p = self.n_statistics;
        self.counts[to] += other.counts[from];
        self.entropies[to] += other.entropies[from];
        let theirs = &other.statistics[from * p..][..p];
        self.statistics[to * p..][..p].iter_mut().zip(theirs).for_each(|(sum, value)| *sum += value);
    }

    /// Replaces the components of `other`, all of which are known here. Their gaps become unknown.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where a component of `other` is not known here.
    pub fn put(&mut self, other: &Self) -> Result<()> {
        let p = self.n_statistics;
        for (k, &id) in other.ids.iter().enumerate() {
            let at = position(&self.ids, id)?;
            self.counts[at] = other.counts[k];
            self.entropies[at] = other.entropies[k];
            self.statistics[at * p..][..p].copy_from_slice(&other.statistics[k * p..][..p]);
            self.gaps.delete(id);
        }
        Ok(())
    }

    /// The summary of the same units with all masses multiplied by `factor`.
    #[must_use]
    pub fn scale(&self, factor: f64) -> Self {
        let mut scaled = Self::empty(self.ids.clone(), self.n_statistics, false);
        scaled.tail = self.tail;
        scaled.counts = self.counts.iter().map(|x| factor * x).collect();
        scaled.statistics = self.statistics.iter().map(|x| factor * x).collect();
        scaled.entropies = self.entropies.iter().map(|x| factor * x).collect();
        scaled.gaps = self.gaps.clone();
        scaled.gaps.listed_mut().into_iter().flatten().for_each(|(_, gap)| *gap *= factor);
        if let Some(tail) = &mut scaled.tail {
            tail.count *= factor;
            tail.entropy *= factor;
            tail.expected_log_likelihood *= factor;
        }
        scaled.mass = factor * self.mass;
        scaled.log_base_measure = factor * self.log_base_measure;
        scaled
    }

    /// Scales each component to one unit; an empty component stays empty.
    #[must_use]
    pub fn averages(mut self) -> Self {
        let statistics = self.statistics.chunks_exact_mut(self.n_statistics);
        for (count, statistics) in self.counts.iter_mut().zip(statistics).filter(|(count, _)| **count > 0.0) {
            for value in statistics {
                *value /= *count;
            }
            *count = 1.0;
        }
        self.mass = self.counts.iter().sum();
        self
    }

    /// Replays an edit of the list of components (mathematics 4.5).
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where the edit does not fit, or a merge needs a gap that is not known.
    pub fn apply(&mut self, edit: &Edit) -> Result<()> {
        let before = self.ids.clone();
        edit.apply_to(&mut self.ids)?;
        match edit {
            Edit::Append { ids } => {
                self.counts.resize(self.counts.len() + ids.len(), 0.0);
                self.entropies.resize(self.entropies.len() + ids.len(), 0.0);
                self.statistics.resize(self.statistics.len() + ids.len() * self.n_statistics, 0.0);
            }
            Edit::Merge { keep, gone } => {
                let Some(gap) = self.gaps.get(*keep, *gone) else {
                    self.ids = before;
                    return Err(Error::invalid("edit", format!("{edit:?}"), "a merge of a pair whose gap is known"));
                };
                let (a, b) = (position(&before, *keep)?, position(&before, *gone)?);
                self.counts[a] += self.counts[b];
                self.entropies[a] += self.entropies[b] - gap;
                for i in 0..self.n_statistics {
                    self.statistics[a * self.n_statistics + i] += self.statistics[b * self.n_statistics + i];
                }
                self.remove(b);
                self.gaps.merge(*keep, *gone);
            }
            Edit::Delete { id } => {
                self.remove(position(&before, *id)?);
                self.gaps.delete(*id);
            }
            Edit::Reorder { order } => {
                let from: Vec<usize> = order.iter().map(|&id| position(&before, id)).collect::<Result<_>>()?;
                let p = self.n_statistics;
                self.counts = from.iter().map(|&k| self.counts[k]).collect();
                self.entropies = from.iter().map(|&k| self.entropies[k]).collect();
                self.statistics = from.iter().flat_map(|&k| self.statistics[k * p..][..p].to_vec()).collect();
            }
        }
        Ok(())
    }

    fn remove(&mut self, k: usize) {
        self.counts.remove(k);
        self.entropies.remove(k);
        self.statistics.drain(k * self.n_statistics..(k + 1) * self.n_statistics);
    }
}
