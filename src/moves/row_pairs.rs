//! Responsibilities of few rows.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::component::ComponentId;
use crate::error::Result;
use crate::local_step::{Chunk, FromPairs, Tap};

/// The components of rows and their responsibilities, row by row.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RowShares {
    /// The end of each row's pairs.
    ends: Vec<usize>,
    ids: Vec<ComponentId>,
    values: Vec<f64>,
}

impl RowShares {
    /// Appends a row.
    pub fn push(&mut self, pairs: impl IntoIterator<Item = (ComponentId, f64)>) {
        for (id, value) in pairs {
            self.ids.push(id);
            self.values.push(value);
        }
        self.ends.push(self.ids.len());
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The pairs of a row.
    pub fn of(&self, row: usize) -> impl ExactSizeIterator<Item = (ComponentId, f64)> {
        let range = if row == 0 { 0 } else { self.ends[row - 1] }..self.ends[row];
        self.ids[range.clone()].iter().copied().zip(self.values[range].iter().copied())
    }

    /// Gives the listed rows, ascending, the pairs of the rows of `others` from `first` on.
    pub fn replace(&mut self, list: &[usize], others: &Self, first: usize) {
        let (mut replaced, mut next) = (Self::default(), list.iter().zip(first..).peekable());
        for row in 0..self.len() {
            match next.next_if(|(listed, _)| **listed == row) {
                Some((_, other)) => replaced.push(others.of(other)),
                None => replaced.push(self.of(row)),
            }
        }
        *self = replaced;
    }

    /// Whether they can be those of `n` rows, since files may hold anything.
    pub fn fits(&self, n: usize) -> bool {
        let n_pairs = self.ends.last().copied().unwrap_or(0);
        self.len() == n && self.ends.is_sorted() && (self.ids.len(), self.values.len()) == (n_pairs, n_pairs)
    }
}

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

    /// Pairs of the listed rows of some pieces, restricted to the components in `places`.
    pub fn of<'a, L: IntoIterator<Item = usize>>(
        pieces: &(impl Iterator<Item = (&'a RowShares, L)> + Clone),
        places: &HashMap<ComponentId, u32>,
    ) -> Self {
        let rows = || pieces.clone().flat_map(|(shares, list)| list.into_iter().map(|row| shares.of(row)));
        let (n, width) = rows().fold((0, 1), |(n, width), pairs| (n + 1, width.max(pairs.len())));
        let mut all = Self { width, components: vec![0; n * width], values: vec![0.0; n * width] };
        for (index, pairs) in rows().enumerate() {
            for (slot, (id, value)) in pairs.enumerate() {
                all.components[index * width + slot] = places.get(&id).copied().unwrap_or(0);
                all.values[index * width + slot] = value;
            }
        }
        all
    }

    /// For each row, its components, as entries of `ids`, with their responsibilities.
    pub fn by_row(&self, ids: &[ComponentId]) -> RowShares {
        let rows = self.components.chunks(self.width.max(1)).zip(self.values.chunks(self.width.max(1)));
        let mut shares = RowShares::default();
        for (components, values) in rows {
            let pairs = components.iter().zip(values).filter(|(_, value)| **value > 0.0);
            shares.push(pairs.map(|(&k, &value)| (ids[k as usize], value)));
        }
        shares
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
