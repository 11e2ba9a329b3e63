//! The only summary type: batches remember it, workers send it, checkpoints store it, and merges add it up.

mod documents;
mod gaps;
mod merges;
mod sparse;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::component::{ComponentId, Edit, position, unknown};
use crate::error::Result;
use crate::parallel::{for_each, map_all};

pub use documents::DocumentTerms;
pub use gaps::PairGaps;
pub use sparse::{NonZeros, SparseStatistics, SparseSum, Sums};

/// Number of dense statistics from which adding them up is shared by threads.
const ADDED: usize = 1 << 16;

/// The expected count and statistics of one component, in the layout of the likelihood.
#[derive(Debug, Clone, Copy)]
pub struct Sufficient<'a> {
    /// Expected count N_k.
    pub count: f64,
    /// Expected statistics S_k without the constants that pair with the count.
    pub statistics: &'a [f64],
}

/// The column behind the components: the infinite tail of a process that gives it responsibilities (mathematics 2c), or
/// a background, whose first statistic is its only one (2h).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Tail {
    /// Expected count of the tail.
    pub count: f64,
    /// Entropy of the tail's responsibilities, nats.
    pub entropy: f64,
    /// Expected statistics of the tail, (P,).
    pub statistics: Vec<f64>,
}

impl Tail {
    /// The tail of no units.
    pub fn zeros(n_statistics: usize) -> Self {
        Self { count: 0.0, entropy: 0.0, statistics: vec![0.0; n_statistics] }
    }

    /// Count and statistics, as the likelihood needs them.
    pub fn sufficient(&self) -> Sufficient<'_> {
        Sufficient { count: self.count, statistics: &self.statistics }
    }

    /// Whether this can be the tail of a summary, since files are not trusted.
    fn fits(&self, n_statistics: usize) -> bool {
        self.statistics.len() == n_statistics
            && self.statistics.iter().chain([&self.count, &self.entropy]).all(|value| value.is_finite())
    }

    fn combine(&mut self, other: &Self, sign: f64) {
        self.count += sign * other.count;
        self.entropy += sign * other.entropy;
        self.statistics.iter_mut().zip(&other.statistics).for_each(|(sum, value)| *sum += sign * value);
    }

    fn scale(&self, factor: f64) -> Self {
        let statistics = self.statistics.iter().map(|x| factor * x).collect();
        Self { count: factor * self.count, entropy: factor * self.entropy, statistics }
    }
}

/// Counts, statistics and entropies by component, and the other terms that the bound needs. Additive over units.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The components, in the order of the arrays.
    pub ids: Vec<ComponentId>,
    /// Length of the statistics of one component.
    pub n_statistics: usize,
    /// N_k, (K,).
    pub counts: Vec<f64>,
    /// S_k, (K, `n_statistics`); empty if `sparse` holds them.
    pub statistics: Vec<f64>,
    /// S_k in sparse form, which is allowed only for summaries that are only added up, such as those of batches.
    pub sparse: Option<SparseStatistics>,
    /// H_k, (K,), nats.
    pub entropies: Vec<f64>,
    /// Merge-entropy gaps.
    pub gaps: PairGaps,
    /// The tail of the process or the background; absent as long as no row may enter a background.
    pub tail: Option<Tail>,
    /// The local part of a process with separate weights for every document.
    pub documents: Option<DocumentTerms>,
    /// Sum of the units' masses.
    pub mass: f64,
    /// Sum over units of mass x log base measure, nats.
    pub log_base_measure: f64,
}

impl Summary {
    /// The summary of no units; `gaps`: whether to keep pair gaps.
    pub fn empty(ids: Vec<ComponentId>, n_statistics: usize, gaps: bool) -> Self {
        let k = ids.len();
        Self {
            ids,
            n_statistics,
            counts: vec![0.0; k],
            statistics: vec![0.0; k * n_statistics],
            sparse: None,
            entropies: vec![0.0; k],
            gaps: if gaps { PairGaps::Known(BTreeMap::new()) } else { PairGaps::Unknown },
            tail: None,
            documents: None,
            mass: 0.0,
            log_base_measure: 0.0,
        }
    }

    /// The summary of no units with the components of a dense summary. Gaps are kept.
    #[must_use]
    pub fn emptied(mut self) -> Self {
        self.statistics.fill(0.0);
        let statistics = std::mem::take(&mut self.statistics);
        Self { n_statistics: self.n_statistics, statistics, ..Self::empty(self.ids, 0, true) }
    }

    /// As [`Summary::empty`], with sparse statistics.
    pub fn empty_sparse(ids: Vec<ComponentId>, n_statistics: usize, gaps: bool) -> Self {
        let sparse = Some(SparseStatistics::zeros(ids.len()));
        Self { n_statistics, sparse, ..Self::empty(ids, 0, gaps) }
    }

    /// Converts the statistics to dense form.
    #[must_use]
    pub fn into_dense(mut self) -> Self {
        if let Some(sparse) = self.sparse.take() {
            self.statistics = sparse.to_dense(self.n_statistics);
        }
        self
    }

    /// Converts sparse statistics to the smaller of the two forms.
    #[must_use]
    pub fn compact(self) -> Self {
        let n = self.ids.len() * self.n_statistics;
        if self.sparse.as_ref().is_some_and(|sparse| sparse.is_smaller_than(n)) { self } else { self.into_dense() }
    }

    /// Number of components.
    pub fn n_components(&self) -> usize {
        self.ids.len()
    }

    /// Amount of data: the weight of its documents, or else the mass of its units.
    pub fn amount(&self) -> f64 {
        self.documents.as_ref().map_or(self.mass, |documents| documents.n_documents)
    }

    /// Whether this can be a summary of the components `ids`, in any order, since files are not trusted.
    pub fn fits(&self, ids: &[ComponentId], n_statistics: usize) -> bool {
        let (mut mine, mut theirs) = (self.ids.clone(), ids.to_vec());
        mine.sort_unstable();
        theirs.sort_unstable();
        let k = ids.len();
        let values = [&self.counts, &self.entropies, &self.statistics];
        mine == theirs
            && self.n_statistics == n_statistics
            && (self.counts.len(), self.entropies.len()) == (k, k)
            && self.documents.as_ref().is_none_or(|documents| documents.fits(k))
            && self.tail.as_ref().is_none_or(|tail| tail.fits(n_statistics))
            && match &self.sparse {
                None => self.statistics.len() == k * n_statistics,
                Some(sparse) => self.statistics.is_empty() && sparse.fits(k, n_statistics),
            }
            && values.into_iter().flatten().chain([&self.mass, &self.log_base_measure]).all(|value| value.is_finite())
    }

    /// Expected count of the tail, without the rounding that may leave it below zero; 0 without a tail.
    pub fn tail_count(&self) -> f64 {
        self.tail.as_ref().map_or(0.0, |tail| tail.count.max(0.0))
    }

    /// Count and statistics of the component at `k`; requires dense statistics.
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
    /// [`crate::Error::InvalidArgument`] if a component of `other` is unknown here.
    pub fn add(&mut self, other: &Self) -> Result<()> {
        self.combine(other, 1.0)
    }

    /// As [`Summary::add`]. Where both have sparse statistics, the sum takes the smaller of the two forms.
    ///
    /// # Errors
    /// As [`Summary::add`].
    pub fn add_compact(&mut self, other: &Self) -> Result<()> {
        self.add(other)?;
        *self = std::mem::take(self).compact();
        Ok(())
    }

    /// Subtracts another summary.
    pub fn sub(&mut self, other: &Self) -> Result<()> {
        self.combine(other, -1.0)
    }

    fn combine(&mut self, other: &Self, sign: f64) -> Result<()> {
        let from = self.combine_all_but_statistics(other, sign)?;
        if let (None, Some(sparse)) = (&self.sparse, &other.sparse) {
            let dense = self.statistics.chunks_exact_mut(self.n_statistics.max(1)).zip(from);
            let items = dense.filter_map(|(dense, from)| Some((dense, &sparse.components[from?])));
            for_each(items.collect(), |(dense, theirs): (&mut [f64], &NonZeros)| theirs.add_to(dense, sign));
            return Ok(());
        }
        for (to, from) in from.into_iter().enumerate() {
            if let Some(from) = from {
                self.add_statistics(to, other, from, sign);
            }
        }
        Ok(())
    }

    /// Adds everything except for the statistics. Returns the position in `other` of each component.
    fn combine_all_but_statistics(&mut self, other: &Self, sign: f64) -> Result<Vec<Option<usize>>> {
        // A batch keeps the component order of its last visit, which differs from the total's only after a reorder.
        let places: Option<HashMap<_, _>> = (!self.ids.starts_with(&other.ids))
            .then(|| self.ids.iter().enumerate().map(|(index, &id)| (id, index)).collect());
        let mut from = vec![None; self.n_components()];
        for (k, &id) in other.ids.iter().enumerate() {
            let index = match &places {
                None => k,
                Some(places) => *places.get(&id).ok_or_else(|| unknown(id))?,
            };
            self.counts[index] += sign * other.counts[k];
            self.entropies[index] += sign * other.entropies[k];
            from[index] = Some(k);
        }
        self.gaps.combine(&other.gaps, sign);
        if let Some(theirs) = &other.tail {
            self.tail.get_or_insert_with(|| Tail::zeros(theirs.statistics.len())).combine(theirs, sign);
        }
        if let Some(theirs) = &other.documents {
            let k = self.n_components();
            self.documents.get_or_insert_with(|| DocumentTerms::zeros(k)).combine(theirs, &from, sign);
        }
        self.mass += sign * other.mass;
        self.log_base_measure += sign * other.log_base_measure;
        Ok(from)
    }

    /// Subtracts `old` and adds `new`, with the same bits as [`Summary::sub`] and [`Summary::add`]. If both are sparse,
    /// returns for each component the statistics that have changed, ascending.
    pub fn exchange(&mut self, old: &Self, new: &Self) -> Result<Option<Vec<Vec<u32>>>> {
        let (Some(old_sparse), Some(new_sparse), None) = (&old.sparse, &new.sparse, &self.sparse) else {
            self.sub(old)?;
            return self.add(new).map(|()| None);
        };
        let from_old = self.combine_all_but_statistics(old, -1.0)?;
        let from_new = self.combine_all_but_statistics(new, 1.0)?;
        let nothing = NonZeros::default();
        let dense = self.statistics.chunks_exact_mut(self.n_statistics.max(1)).zip(from_old.into_iter().zip(from_new));
        Ok(Some(map_all(dense.collect(), |(dense, (from_old, from_new))| {
            let old = from_old.map_or(&nothing, |k| &old_sparse.components[k]);
            let new = from_new.map_or(&nothing, |k| &new_sparse.components[k]);
            NonZeros::exchange(dense, old, new)
        })))
    }

    /// Adds the component of `other` at `from` to the one at `to`.
    pub fn add_component(&mut self, to: usize, other: &Self, from: usize) {
        self.counts[to] += other.counts[from];
        self.entropies[to] += other.entropies[from];
        self.add_statistics(to, other, from, 1.0);
    }

    /// Adds the statistics of `pieces`, each of the component that it names; those of a component follow each other and
    /// are added in order.
    pub fn add_pieces(&mut self, pieces: &[(usize, Sums)]) {
        let of_components: Vec<&[(usize, Sums)]> = pieces.chunk_by(|a, b| a.0 == b.0).collect();
        let mut next = of_components.into_iter().peekable();
        let mut of = |k: usize| next.next_if(|pieces| pieces[0].0 == k);
        if let Some(mine) = &mut self.sparse {
            let items = mine.components.iter_mut().enumerate().filter_map(|(k, mine)| Some((mine, of(k)?)));
            for_each(items.collect(), |(mine, pieces): (&mut NonZeros, &[(usize, Sums)])| {
                for (_, sums) in pieces {
                    mine.add(&sums.non_zeros(), 1.0);
                }
            });
            return;
        }
        let dense = self.statistics.chunks_exact_mut(self.n_statistics.max(1));
        let items: Vec<_> = dense.enumerate().filter_map(|(k, mine)| Some((mine, of(k)?))).collect();
        let add = |(mine, pieces): (&mut [f64], &[(usize, Sums)])| {
            for (_, sums) in pieces {
                sums.add_to(mine);
            }
        };
        if pieces.len() * self.n_statistics > ADDED { for_each(items, add) } else { items.into_iter().for_each(add) }
    }

    fn add_statistics(&mut self, to: usize, other: &Self, from: usize, sign: f64) {
        let p = self.n_statistics;
        match (&mut self.sparse, &other.sparse) {
            (None, Some(theirs)) => theirs.components[from].add_to(&mut self.statistics[to * p..][..p], sign),
            (None, None) => {
                let theirs = &other.statistics[from * p..][..p];
                self.statistics[to * p..][..p].iter_mut().zip(theirs).for_each(|(sum, value)| *sum += sign * value);
            }
            (Some(mine), _) => mine.components[to].add(&other.non_zeros(from), sign),
        }
    }

    /// The nonzero statistics of the component at `k`.
    fn non_zeros(&self, k: usize) -> Cow<'_, NonZeros> {
        match &self.sparse {
            Some(sparse) => Cow::Borrowed(&sparse.components[k]),
            None => Cow::Owned(NonZeros::of(self.component(k).statistics)),
        }
    }

    /// Replaces the components of `other`, all of which must be known here. Their gaps become unknown.
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] if a component of `other` is unknown here.
    pub fn put(&mut self, other: &Self) -> Result<()> {
        let p = self.n_statistics;
        for (k, &id) in other.ids.iter().enumerate() {
            let index = position(&self.ids, id)?;
            self.counts[index] = other.counts[k];
            self.entropies[index] = other.entropies[k];
            match (&mut self.sparse, &other.sparse) {
                (Some(mine), _) => mine.components[index] = other.non_zeros(k).into_owned(),
                (None, None) => self.statistics[index * p..][..p].copy_from_slice(&other.statistics[k * p..][..p]),
                (None, Some(theirs)) => {
                    self.statistics[index * p..][..p].fill(0.0);
                    theirs.components[k].add_to(&mut self.statistics[index * p..][..p], 1.0);
                }
            }
            self.gaps.delete(id);
        }
        Ok(())
    }

    /// Replaces the statistics of a component; requires dense statistics.
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] if the component is unknown.
    pub fn restate(&mut self, id: ComponentId, statistics: &[f64]) -> Result<()> {
        let first = position(&self.ids, id)? * self.n_statistics;
        self.statistics[first..first + self.n_statistics].copy_from_slice(statistics);
        Ok(())
    }

    /// Returns the summary of the same units with all masses multiplied by `factor`.
    #[must_use]
    pub fn scale(&self, factor: f64) -> Self {
        let mut scaled = Self::empty(self.ids.clone(), 0, false);
        scaled.n_statistics = self.n_statistics;
        scaled.tail = self.tail.as_ref().map(|tail| tail.scale(factor));
        scaled.counts = self.counts.iter().map(|x| factor * x).collect();
        scaled.statistics = self.statistics.iter().map(|x| factor * x).collect();
        let scale = |non_zeros: &NonZeros| non_zeros.scaled(factor);
        scaled.sparse = self
            .sparse
            .as_ref()
            .map(|sparse| SparseStatistics { components: sparse.components.iter().map(scale).collect() });
        scaled.entropies = self.entropies.iter().map(|x| factor * x).collect();
        scaled.gaps = self.gaps.clone();
        scaled.gaps.listed_mut().into_iter().flatten().for_each(|(_, gap)| *gap *= factor);
        scaled.documents = self.documents.as_ref().map(|documents| documents.scale(factor));
        scaled.mass = factor * self.mass;
        scaled.log_base_measure = factor * self.log_base_measure;
        scaled
    }

    /// Scales each component of a dense summary to one unit; an empty component stays empty.
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
    /// [`crate::Error::InvalidArgument`] if the edit does not fit, or a merge needs an unknown gap.
    pub fn apply(&mut self, edit: &Edit) -> Result<()> {
        let before = self.ids.clone();
        match edit {
            Edit::Append { ids } => {
                edit.apply_to(&mut self.ids)?;
                self.counts.resize(self.counts.len() + ids.len(), 0.0);
                self.entropies.resize(self.entropies.len() + ids.len(), 0.0);
                self.documents.iter_mut().for_each(|documents| documents.resize(self.ids.len()));
                match &mut self.sparse {
                    Some(sparse) => sparse.components.resize(self.ids.len(), NonZeros::default()),
                    None => self.statistics.resize(self.ids.len() * self.n_statistics, 0.0),
                }
            }
            Edit::Merge { keep, gone } => self.merge(&[(*keep, *gone)])?,
            Edit::Delete { id } => {
                edit.apply_to(&mut self.ids)?;
                let is_kept: Vec<bool> = before.iter().map(|other| other != id).collect();
                self.retain(&is_kept);
                self.gaps.delete(*id);
            }
            Edit::Reorder { order } => {
                edit.apply_to(&mut self.ids)?;
                let from: Vec<usize> = order.iter().map(|&id| position(&before, id)).collect::<Result<_>>()?;
                let p = self.n_statistics;
                self.counts = from.iter().map(|&k| self.counts[k]).collect();
                self.entropies = from.iter().map(|&k| self.entropies[k]).collect();
                self.documents.iter_mut().for_each(|documents| documents.permute(&from));
                match &mut self.sparse {
                    Some(sparse) => {
                        let take = |&k: &usize| std::mem::take(&mut sparse.components[k]);
                        sparse.components = from.iter().map(take).collect();
                    }
                    None => permute(&mut self.statistics, p, &from),
                }
            }
        }
        Ok(())
    }

    /// Adds the component at `gone`, which is about to be removed, to the one at `keep`; `gap` is their merge-entropy
    /// gap.
    fn absorb(&mut self, keep: usize, gone: usize, gap: f64) {
        self.counts[keep] += self.counts[gone];
        self.entropies[keep] += self.entropies[gone] - gap;
        self.documents.iter_mut().for_each(|documents| documents.merge(keep, gone));
        let p = self.n_statistics;
        match &mut self.sparse {
            Some(sparse) => {
                let gone = std::mem::take(&mut sparse.components[gone]);
                sparse.components[keep].add(&gone, 1.0);
            }
            None => {
                for i in 0..p {
                    self.statistics[keep * p + i] += self.statistics[gone * p + i];
                }
            }
        }
    }
}

/// Permutes pieces of `p` numbers into the order of `from`, in place, because a total may take most of the memory of a
/// run.
fn permute(values: &mut [f64], p: usize, from: &[usize]) {
    let mut is_done = vec![false; from.len()];
    for first in 0..from.len() {
        let mut position = first;
        while !std::mem::replace(&mut is_done[position], true) && from[position] != first {
            let next = from[position];
            let (low, high) = (position.min(next), position.max(next));
            let (head, tail) = values.split_at_mut(high * p);
            head[low * p..][..p].swap_with_slice(&mut tail[..p]);
            position = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_come_into_the_asked_order(order in Just((0_usize..9).collect::<Vec<_>>()).prop_shuffle()) {
            let mut values: Vec<f64> = (0..27).map(f64::from).collect();
            let expected: Vec<f64> = order.iter().flat_map(|&k| values[3 * k..][..3].to_vec()).collect();
            permute(&mut values, 3, &order);
            prop_assert_eq!(values, expected);
        }
    }
}
