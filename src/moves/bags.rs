//! Rows from which parts of components can be made: a random sample of the rows of each component.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::component::ComponentId;
use crate::data::Sample;
use crate::moves::Move;
use crate::simd::Scalar;

/// Options for the rows from which parts of a component are made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Subsample {
    /// Maximum number of rows per component.
    pub max_rows: usize,
    /// A row is used if its responsibility exceeds this.
    pub threshold: f64,
}

impl Subsample {
    /// Default options.
    pub const DEFAULT: Self = Self { max_rows: 5000, threshold: 0.1 };

    /// The options of the first move that makes parts.
    pub(super) fn of<F: Scalar>(moves: &[&dyn Move<F>]) -> Self {
        moves.iter().find_map(|one| one.subsample()).unwrap_or(Self::DEFAULT)
    }
}

/// Which rows to copy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Collect {
    /// Components whose rows are copied, besides all parts of proposals.
    pub ids: Vec<ComponentId>,
    /// A row is copied if its responsibility exceeds this.
    pub threshold: f64,
    /// Maximum number of rows per component, chosen at random.
    pub max_rows: usize,
    /// Seed of the random sample.
    pub seed: u64,
}

/// Rows of one component: those with the smallest keys. A key is a hash of the seed, the shard and the row, so this is
/// a uniform sample that does not depend on the visiting order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Bag {
    /// The rows.
    pub rows: Sample,
    /// Their keys.
    pub keys: Vec<u64>,
}

impl Bag {
    /// Merges two bags and keeps at least the `max_rows` rows with the smallest keys.
    pub fn merge(&mut self, other: Self, max_rows: usize) {
        self.rows.append(other.rows);
        self.keys.extend(other.keys);
        // Sorting at every merge would be slow.
        if self.keys.len() > 2 * max_rows {
            *self = self.smallest(max_rows).into_owned();
        }
    }

    /// The `max_rows` rows with the smallest keys, sorted by key if there are that many.
    pub fn smallest(&self, max_rows: usize) -> Cow<'_, Self> {
        if self.keys.len() < max_rows {
            return Cow::Borrowed(self);
        }
        let mut order: Vec<usize> = (0..self.keys.len()).collect();
        order.sort_unstable_by_key(|&row| self.keys[row]);
        order.truncate(max_rows);
        let keys = order.iter().map(|&row| self.keys[row]).collect();
        Cow::Owned(Self { rows: self.rows.pick(&order), keys })
    }

    /// Whether this can be a valid bag, since files may hold anything.
    pub(super) fn fits(&self) -> bool {
        self.rows.fits() && self.rows.len() == self.keys.len()
    }
}
