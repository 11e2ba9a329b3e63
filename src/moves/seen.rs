//! The positive responsibilities of a visit.

use crate::error::Result;
use crate::local_step::{Chunk, Tap};
use crate::parallel::{blocks, map};

/// Number of units per block.
const BLOCK: usize = 256;

/// All positive responsibilities of a local step, in the order of its units.
#[derive(Debug, Default)]
pub struct Seen {
    blocks: Vec<SeenBlock>,
}

/// Responsibilities of consecutive units.
#[derive(Debug)]
pub(super) struct SeenBlock {
    /// Index of the first unit.
    first: usize,
    /// Offset of each unit's pairs; one extra entry at the end.
    starts: Vec<u32>,
    /// Component position of each pair; the tail comes after all components.
    pub components: Vec<u32>,
    /// Responsibility of each pair, above zero.
    pub values: Vec<f64>,
}

impl Seen {
    /// Number of units.
    pub fn n_units(&self) -> usize {
        self.blocks.last().map_or(0, |block| block.first + block.n_units())
    }

    /// The positions of the components of a unit, and their responsibilities.
    pub fn pairs(&self, unit: usize) -> impl Iterator<Item = (u32, f64)> {
        let block =
            self.blocks.partition_point(|block| block.first <= unit).checked_sub(1).map(|index| &self.blocks[index]);
        block.into_iter().flat_map(move |block| {
            let (components, values) = block.pairs(unit - block.first);
            components.iter().copied().zip(values.iter().copied())
        })
    }

    /// The responsibilities by block, for parallel tasks.
    pub(super) fn blocks(&self) -> &[SeenBlock] {
        &self.blocks
    }
}

impl Tap for Seen {
    fn observe(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        let (first, n, ordered) = (self.n_units(), chunk.units.len(), chunk.own_order());
        let ranges = blocks(n, BLOCK);
        let made = map(ranges.len(), |index| {
            let units = index * BLOCK..n.min((index + 1) * BLOCK);
            let mut block = SeenBlock {
                first: first + units.start,
                starts: Vec::with_capacity(units.len() + 1),
                components: Vec::with_capacity(2 * units.len()),
                values: Vec::with_capacity(2 * units.len()),
            };
            block.starts.push(0);
            for unit in units {
                let (components, values) = ordered.pairs(unit);
                for (&component, &value) in components.iter().zip(values).filter(|(_, value)| **value > 0.0) {
                    block.components.push(component);
                    block.values.push(value);
                }
                block.starts.push(block.values.len() as u32);
            }
            block
        });
        self.blocks.extend(made);
        Ok(())
    }

    fn needs_order(&self) -> bool {
        false
    }
}

impl SeenBlock {
    fn n_units(&self) -> usize {
        self.starts.len() - 1
    }

    /// The pairs of a unit of the block.
    fn pairs(&self, index: usize) -> (&[u32], &[f64]) {
        let range = self.starts[index] as usize..self.starts[index + 1] as usize;
        (&self.components[range.clone()], &self.values[range])
    }

    /// The index of each unit, the positions of its components and their responsibilities.
    pub fn units(&self) -> impl Iterator<Item = (usize, &[u32], &[f64])> {
        (0..self.n_units()).map(|index| {
            let (components, values) = self.pairs(index);
            (self.first + index, components, values)
        })
    }
}

/// Entries by group, each group in insertion order.
pub(super) struct Grouped<T> {
    starts: Vec<usize>,
    entries: Vec<T>,
}

impl<T: Copy + Default> Grouped<T> {
    /// Counting sort of entries by their groups `0..n`.
    pub fn new(entries: &[(usize, T)], n: usize) -> Self {
        let mut starts = vec![0; n + 1];
        for (group, _) in entries {
            starts[group + 1] += 1;
        }
        (0..n).for_each(|group| starts[group + 1] += starts[group]);
        let mut next = starts.clone();
        let mut sorted = vec![T::default(); entries.len()];
        for &(group, entry) in entries {
            sorted[next[group]] = entry;
            next[group] += 1;
        }
        Self { starts, entries: sorted }
    }

    /// The entries of a group.
    pub fn of(&self, group: usize) -> &[T] {
        &self.entries[self.starts[group]..self.starts[group + 1]]
    }
}
