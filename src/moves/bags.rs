//! Rows that parts of components can be made of: a random choice of the rows of each, copied in the visits of a pass.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::component::ComponentId;
use crate::data::Sample;
use crate::moves::{Move, Visited};
use crate::rng::key;
use crate::simd::Scalar;

/// Which rows parts of a component are made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Subsample {
    /// Maximum number of rows of a component.
    pub max_rows: usize,
    /// Least responsibility for a row, exclusive.
    pub threshold: f64,
}

impl Subsample {
    /// Where the user says nothing.
    pub const DEFAULT: Self = Self { max_rows: 5000, threshold: 0.1 };

    /// That of the first move that makes parts.
    pub(super) fn of<F: Scalar>(moves: &[&dyn Move<F>]) -> Self {
        moves.iter().find_map(|one| one.subsample()).unwrap_or(Self::DEFAULT)
    }
}

/// Which rows are copied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Collect {
    /// Of these components, and of all parts of proposals.
    pub ids: Vec<ComponentId>,
    /// Rows with a responsibility above this.
    pub threshold: f64,
    /// Maximum number of rows of each, chosen at random.
    pub max_rows: usize,
    /// Seed of the random choice.
    pub seed: u64,
}

/// Rows of one component: those with the smallest keys. A key is a hash of the seed, the batch and the row, so this is
/// a uniform sample that does not depend on the visiting order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Bag {
    /// The rows.
    pub rows: Sample,
    /// Their keys.
    pub keys: Vec<u64>,
}

impl Bag {
    /// Puts the rows of both into one bag and leaves the `max_rows` with the smallest keys.
    pub fn merge(&mut self, other: Self, max_rows: usize) {
        self.rows.append(other.rows);
        self.keys.extend(other.keys);
        // Sorting at every merge would be slow.
        if self.keys.len() > 2 * max_rows {
            *self = self.smallest(max_rows).into_owned();
        }
    }

    /// The `max_rows` rows with the smallest keys.
    pub fn smallest(&self, max_rows: usize) -> Cow<'_, Self> {
        if self.keys.len() <= max_rows {
            return Cow::Borrowed(self);
        }
        let mut order: Vec<usize> = (0..self.keys.len()).collect();
        order.sort_unstable_by_key(|&row| self.keys[row]);
        order.truncate(max_rows);
        let keys = order.iter().map(|&row| self.keys[row]).collect();
        Cow::Owned(Self { rows: self.rows.pick(&order), keys })
    }

    /// Whether this can be a bag: what is read from a file may be anything.
    pub(super) fn fits(&self) -> bool {
        self.rows.fits() && self.rows.len() == self.keys.len()
    }
}

/// Copies rows of every component that the plan names, and of every part.
pub(super) fn collect<F: Scalar>(visited: &Visited<'_, F>) -> BTreeMap<ComponentId, Bag> {
    let (look, seen) = (visited.look, visited.look.seen);
    let Some(wanted) = &look.plan.collect else { return BTreeMap::new() };
    let parts = look.plan.proposals.iter().flat_map(|proposal| &proposal.parts.ids);
    let mut rows: HashMap<ComponentId, Vec<(u64, u32)>> =
        wanted.ids.iter().chain(parts).map(|&id| (id, Vec::new())).collect();
    for (at, (label, &value)) in visited.dealt.labels.iter().zip(&seen.values).enumerate() {
        if value > wanted.threshold
            && let Some(list) = rows.get_mut(label)
        {
            let unit = seen.units[at / seen.width];
            list.push((key(wanted.seed, [look.batch as u64, u64::from(unit)]), unit));
        }
    }
    let filled = rows.into_iter().filter(|(_, list)| !list.is_empty());
    filled
        .map(|(id, mut list)| {
            list.sort_unstable();
            list.truncate(wanted.max_rows);
            let (keys, own): (Vec<_>, Vec<_>) = list.into_iter().unzip();
            let mut rows = Sample::default();
            look.units.copy_into(&own, &mut rows);
            (id, Bag { rows, keys })
        })
        .collect()
}
