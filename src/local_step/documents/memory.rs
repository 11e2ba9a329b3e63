//! The state kept for documents between visits: the expected counts of their topics (mathematics 11.3).

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::component::ComponentId;
use crate::parallel::{blocks, map};

/// Number of documents whose counts one task looks up.
const MAPPED: usize = 16;

/// Expected counts of topics by document, stored sparsely.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DocumentCounts {
    /// The topics, in the order to which `topics` refers.
    ids: Vec<ComponentId>,
    /// Offset of each document; one extra entry at the end.
    starts: Vec<u32>,
    /// Positions in `ids`.
    topics: Vec<u32>,
    /// Expected counts, in words.
    counts: Vec<f32>,
}

impl DocumentCounts {
    /// Builds the counts from documents in order, each with its topics and their counts.
    pub fn of<'a>(ids: &[ComponentId], documents: impl Iterator<Item = (&'a [u32], &'a [f64])>) -> Self {
        let mut memory = Self { ids: ids.to_vec(), starts: vec![0], ..Self::default() };
        for (topics, counts) in documents {
            memory.topics.extend_from_slice(topics);
            memory.counts.extend(counts.iter().map(|&count| count as f32));
            memory.starts.push(memory.topics.len() as u32);
        }
        memory
    }

    /// Returns the counts of every document, by positions in `ids`. Topics missing from `ids` are left out. Returns
    /// `None` if these are not the counts of `n` documents, because files are not trusted.
    pub fn positions(&self, ids: &[ComponentId], n: usize) -> Option<Vec<(Vec<u32>, Vec<f32>)>> {
        let is_whole = self.starts.len() == n + 1
            && self.starts.is_sorted()
            && self.starts.last().is_some_and(|&end| end as usize == self.topics.len())
            && self.topics.len() == self.counts.len()
            && self.topics.iter().all(|&topic| (topic as usize) < self.ids.len())
            && self.counts.iter().all(|count| count.is_finite() && *count >= 0.0);
        if !is_whole {
            return None;
        }
        let place = |id: &ComponentId| ids.iter().position(|other| other == id);
        let places: Vec<Option<usize>> =
            if ids == self.ids { (0..ids.len()).map(Some).collect() } else { self.ids.iter().map(place).collect() };
        let document = |range: &[u32]| {
            let range = range[0] as usize..range[1] as usize;
            let mut sums: Vec<(u32, f32)> = Vec::with_capacity(range.len());
            for (&topic, &count) in self.topics[range.clone()].iter().zip(&self.counts[range]) {
                if let Some(place) = places[topic as usize] {
                    sums.push((place as u32, count));
                }
            }
            sums.sort_unstable_by_key(|(topic, _)| *topic);
            // Adds up topics that were merged.
            sums.dedup_by(|next, kept| {
                let is_same = next.0 == kept.0;
                kept.1 += if is_same { next.1 } else { 0.0 };
                is_same
            });
            sums.into_iter().unzip()
        };
        let ranges: Vec<_> = blocks(n, MAPPED).collect();
        let of_range = |range: &Range<usize>| self.starts[range.start..=range.end].windows(2).map(document).collect();
        let found: Vec<Vec<_>> = map(ranges.len(), |index| of_range(&ranges[index]));
        Some(found.into_iter().flatten().collect())
    }

    /// Replaces a topic by another, or removes it if `to` is `None`.
    pub(crate) fn replace(&mut self, from: ComponentId, to: Option<ComponentId>) {
        for id in self.ids.iter_mut().filter(|id| **id == from) {
            *id = to.unwrap_or(GONE);
        }
    }

    /// Memory held, in bytes.
    pub fn bytes(&self) -> usize {
        self.ids.capacity() * size_of::<ComponentId>()
            + (self.starts.capacity() + self.topics.capacity()) * size_of::<u32>()
            + self.counts.capacity() * size_of::<f32>()
    }
}

/// Marks topics that were removed; no topic has this identity.
const GONE: ComponentId = ComponentId(u32::MAX);
