//! Responsibilities of few rows.

use std::collections::HashMap;

use crate::component::ComponentId;
use crate::error::Result;
use crate::local_step::{Chunk, FromPairs, Tap};

/// Responsibilities as pairs, `width` per row.
#[derive(Default)]
pub(super) struct RowPairs {
    /// Number of pairs per row.
    pub width: usize,
    /// Positions of the components, (n, width).
    pub components: Vec<u32>,
    /// Responsibilities, (n, width).
    pub values: Vec<f64>,
}

impl RowPairs {
    /// The positions of the components of a row, and their responsibilities.
    pub fn row(&self, row: usize) -> (&[u32], &[f64]) {
        let range = row * self.width..(row + 1) * self.width;
        (&self.components[range.clone()], &self.values[range])
    }

    /// The pairs as an assignment of the rows.
    pub fn assign(&self) -> FromPairs<'_> {
        FromPairs { width: self.width, components: &self.components, values: &self.values }
    }

    /// Pairs of the listed rows of `all`, restricted to the components in `places`.
    pub fn of(all: &[Vec<(ComponentId, f64)>], list: &[usize], places: &HashMap<ComponentId, u32>) -> Self {
        let width = list.iter().map(|&row| all[row].len()).max().unwrap_or(0).max(1);
        let mut pairs = Self { width, components: vec![0; list.len() * width], values: vec![0.0; list.len() * width] };
        for (index, &row) in list.iter().enumerate() {
            for (slot, (id, value)) in all[row].iter().enumerate() {
                pairs.components[index * width + slot] = places.get(id).copied().unwrap_or(0);
                pairs.values[index * width + slot] = *value;
            }
        }
        pairs
    }

    /// For each row, its components, as entries of `ids`, with their responsibilities.
    pub fn by_row(&self, ids: &[ComponentId]) -> Vec<Vec<(ComponentId, f64)>> {
        let rows = self.components.chunks(self.width.max(1)).zip(self.values.chunks(self.width.max(1)));
        let pairs = |(components, values): (&[u32], &[f64])| {
            let pairs = components.iter().zip(values).filter(|(_, value)| **value > 0.0);
            pairs.map(|(&k, &value)| (ids[k as usize], value)).collect()
        };
        rows.map(pairs).collect()
    }
}

impl Tap for RowPairs {
    fn observe(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        self.width = chunk.responsibilities.width;
        self.components.extend_from_slice(&chunk.responsibilities.components);
        self.values.extend_from_slice(&chunk.responsibilities.values);
        Ok(())
    }
}
