//! Responsibilities of few rows.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::component::ComponentId;
use crate::error::Result;
use crate::local_step::{Chunk, FromPairs, Tap};
use crate::parallel::{blocks, map};

/// Number of rows whose responsibilities one task makes.
const BLOCK: usize = 512;

/// The components of rows and their responsibilities, row by row.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RowShares {
    /// The end of each row's pairs.
    ends: Vec<usize>,
    ids: Vec<ComponentId>,
    values: Vec<f64>,
}

impl RowShares {
    /// Those of rows `0..n`, which `add` appends one by one.
    pub fn by_block(n: usize, add: impl Fn(usize, &mut Self) + Sync) -> Self {
        let ranges: Vec<_> = blocks(n, BLOCK).collect();
        let made = map(ranges.len(), |index| {
            let mut shares = Self::default();
            ranges[index].clone().for_each(|row| add(row, &mut shares));
            shares
        });
        let mut all = Self::default();
        for shares in made {
            all.append(shares);
        }
        all
    }

    /// Appends a row.
    pub fn push(&mut self, pairs: impl IntoIterator<Item = (ComponentId, f64)>) {
        for (id, value) in pairs {
            self.ids.push(id);
            self.values.push(value);
        }
        self.ends.push(self.ids.len());
    }

    /// Appends other rows.
    pub fn append(&mut self, other: Self) {
        let before = self.ids.len();
        self.ends.extend(other.ends.into_iter().map(|end| before + end));
        self.ids.extend(other.ids);
        self.values.extend(other.values);
    }

    /// The pairs of a row.
    pub fn of(&self, row: usize) -> impl ExactSizeIterator<Item = (ComponentId, f64)> {
        let range = if row == 0 { 0 } else { self.ends[row - 1] }..self.ends[row];
        self.ids[range.clone()].iter().copied().zip(self.values[range].iter().copied())
    }

    /// Gives the listed rows, ascending, the pairs of all rows of `others`.
    pub fn replace(&mut self, list: &[usize], others: &Self) {
        let (mut replaced, mut next) = (Self::default(), list.iter().enumerate().peekable());
        for row in 0..self.ends.len() {
            match next.next_if(|(_, listed)| **listed == row) {
                Some((index, _)) => replaced.push(others.of(index)),
                None => replaced.push(self.of(row)),
            }
        }
        *self = replaced;
    }

    /// Whether they can be those of `n` rows, since files may hold anything.
    pub fn fits(&self, n: usize) -> bool {
        let n_pairs = self.ends.last().copied().unwrap_or(0);
        self.ends.len() == n && self.ends.is_sorted() && (self.ids.len(), self.values.len()) == (n_pairs, n_pairs)
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

    /// Pairs of the listed rows of `all`, restricted to the components in `places`.
    pub fn of(all: &RowShares, list: &[usize], places: &HashMap<ComponentId, u32>) -> Self {
        let width = list.iter().map(|&row| all.of(row).len()).max().unwrap_or(0).max(1);
        let mut pairs = Self { width, components: vec![0; list.len() * width], values: vec![0.0; list.len() * width] };
        for (index, &row) in list.iter().enumerate() {
            for (slot, (id, value)) in all.of(row).enumerate() {
                pairs.components[index * width + slot] = places.get(&id).copied().unwrap_or(0);
                pairs.values[index * width + slot] = value;
            }
        }
        pairs
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
