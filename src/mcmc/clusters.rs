//! The partition of a chain: the cluster of each row, and a cache for each cluster.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::likelihood::{Eight, add_row};
use crate::mcmc::Target;
use crate::mcmc::learned_base::LearnedBase;
use crate::parallel::map_all;
use crate::process::{Occupancy, ProcessState};
use crate::scoring::Row;

/// The slot of a row that is not in any cluster.
const NOWHERE: u32 = u32::MAX;
/// Number of cached values that one task scores a row under: about 20 microseconds.
const SCORED: usize = 1 << 15;
/// Threads share a row if there are at least this many such tasks. Waking a thread takes as long as one task.
const SHARED: usize = 4;

/// Everything that changes while a chain runs. Caches are included, because a resumed run must start from the same bits
/// to reach the same bits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChainState {
    /// The partition.
    pub clusters: Clusters,
    /// Auxiliary values and learned parameters.
    pub process: ProcessState,
    /// Trees over the clusters, for a sampler that keeps them between sweeps; otherwise empty.
    pub trees: Vec<u32>,
    /// The value of a learned parameter of the base measure.
    pub learned: Option<f64>,
}

/// A partition. Clusters are stored in *slots*; a slot without rows is free. Removing a row, scoring it under a
/// cluster, and adding it back each take O(D^2) for the Gaussians (mathematics 8.6).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Clusters {
    /// The slot of each row.
    assignments: Vec<u32>,
    /// Number of rows of each slot.
    sizes: Vec<usize>,
    /// The caches of all slots, consecutively.
    caches: Vec<f64>,
    /// Free slots; the last one is reused first.
    free: Vec<u32>,
    /// Log weight of joining each slot; minus infinity for a free slot.
    log_join: Vec<f64>,
    /// Log weights of joining a cluster by its size, with the discount for which they were computed.
    #[serde(skip)]
    by_size: (f64, Vec<f64>),
    /// The slots in vector lanes, if the likelihood supports lanes.
    #[serde(skip)]
    lanes: Vec<Eight>,
    /// The cluster that the last removed row left, with its cache from before the removal.
    #[serde(skip)]
    left: Option<Left>,
}

/// A cluster that a row has left. If the row returns, its previous bits are restored.
#[derive(Debug, Clone, PartialEq)]
struct Left {
    row: u32,
    slot: u32,
    cache: Vec<f64>,
    log_join: f64,
}

impl ChainState {
    /// Creates the state of a chain that starts from labels, one per row.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for `init` if the partition has probability zero under the process; as
    /// [`crate::likelihood::Conjugate::log_marginal`].
    pub fn new(target: &Target, labels: &[u32]) -> Result<Self> {
        let process = target.process.start(target.process.augments())?;
        let learned = target.learned.as_ref().map(LearnedBase::start);
        let mut state = Self { clusters: Clusters::new(target, labels)?, process, trees: Vec::new(), learned };
        let sizes = state.clusters.sizes();
        if target.process.log_probability(&sizes, &state.process.integrated()) == f64::NEG_INFINITY {
            let found = format!("a partition into {} clusters", sizes.len());
            return Err(Error::invalid("init", found, "a partition that the process allows"));
        }
        state.refresh(target);
        Ok(state)
    }

    /// Returns log p(X, partition | hyper-parameters) with auxiliary values integrated out, nats, in the units of the
    /// data (mathematics 8.5).
    pub fn log_joint(&self, target: &Target) -> Result<f64> {
        let prior = target.process.log_probability(&self.clusters.sizes(), &self.process.integrated());
        let urn = target.urn();
        let mut total = prior - target.n_rows() as f64 * target.log_volume;
        for slot in self.clusters.occupied() {
            total += urn.log_marginal_likelihood(self.clusters.cache(target, slot))?;
        }
        Ok(total)
    }

    /// Recomputes the weights of joining after auxiliary values or learned parameters have changed.
    pub fn refresh(&mut self, target: &Target) {
        let clusters = &mut self.clusters;
        clusters.left = None;
        if clusters.by_size.1.is_empty() || clusters.by_size.0 != self.process.discount {
            let weight = |size| weight_of_joining(target, &self.process, size);
            clusters.by_size = (self.process.discount, (0..=target.n_rows()).map(weight).collect());
        }
        for (log_join, &size) in clusters.log_join.iter_mut().zip(&clusters.sizes) {
            *log_join = clusters.by_size.1[size];
        }
        (0..clusters.sizes.len()).for_each(|slot| clusters.write_lane(target, slot));
    }

    /// Removes a row from its cluster.
    pub fn take_out(&mut self, target: &Target, row: u32) -> Result<()> {
        let clusters = &mut self.clusters;
        let slot = std::mem::replace(&mut clusters.assignments[row as usize], NOWHERE);
        let (index, len) = (slot as usize, target.empty.len());
        let cache = &mut clusters.caches[index * len..][..len];
        let log_join = clusters.log_join[index];
        match &mut clusters.left {
            Some(left) => {
                left.cache.copy_from_slice(cache);
                (left.row, left.slot, left.log_join) = (row, slot, log_join);
            }
            None => clusters.left = Some(Left { row, slot, cache: cache.to_vec(), log_join }),
        }
        clusters.sizes[index] -= 1;
        if clusters.sizes[index] == 0 {
            cache.copy_from_slice(&target.empty);
            clusters.free.push(slot);
        } else {
            target.urn().remove(cache, target.table.row(row as usize))?;
        }
        clusters.log_join[index] = clusters.by_size.1[clusters.sizes[index]];
        clusters.update_lane(target, index, row);
        Ok(())
    }

    /// Computes the log weights of a removed row: of joining each slot, followed by that of a new cluster. Returns
    /// their number.
    pub fn weigh(&self, target: &Target, row: u32, space: &mut Vec<[f64; 8]>) -> Result<usize> {
        let clusters = &self.clusters;
        let n_slots = clusters.sizes.len();
        space.resize((n_slots + 1).div_ceil(8), [0.0; 8]);
        let values = target.table.row(row as usize);
        if clusters.lanes.is_empty() {
            let out = &mut space.as_flattened_mut()[..n_slots];
            in_pieces(&clusters.caches, target.empty.len(), values, out, |caches, out| {
                target.urn().log_predictives(caches, values, out)
            })?;
            out.iter_mut().zip(&clusters.log_join).for_each(|(weight, log_join)| *weight += log_join);
        } else {
            clusters.score_lanes(target, values, &mut space[..n_slots.div_ceil(8)]);
        }
        let out = &mut space.as_flattened_mut()[..=n_slots];
        let others = Occupancy { units: target.n_rows() - 1, blocks: clusters.n_clusters() };
        out[n_slots] = target.process.log_open(others, &self.process) + target.singles[row as usize];
        Ok(n_slots + 1)
    }

    /// Computes the same for a row that is still in its cluster; the weight of its slot is that of staying. If the row
    /// is alone in its cluster, its slot has the weight of a new cluster, and the last weight is minus infinity.
    /// Returns `None` if the likelihood does not support this.
    pub fn weigh_within(&self, target: &Target, row: u32, space: &mut Vec<[f64; 8]>) -> Option<usize> {
        let clusters = &self.clusters;
        if clusters.lanes.is_empty() {
            return None;
        }
        let (slot, values) = (clusters.assignments[row as usize] as usize, target.table.row(row as usize));
        let is_alone = clusters.sizes[slot] == 1;
        let stays = if is_alone {
            0.0
        } else {
            let cache = clusters.cache(target, slot);
            target.urn().log_leave_one_out(cache, values)? + clusters.by_size.1[clusters.sizes[slot] - 1]
        };
        let n_slots = clusters.sizes.len();
        space.resize((n_slots + 1).div_ceil(8), [0.0; 8]);
        clusters.score_lanes(target, values, &mut space[..n_slots.div_ceil(8)]);
        let others = Occupancy { units: target.n_rows() - 1, blocks: clusters.n_clusters() - usize::from(is_alone) };
        let opens = target.process.log_open(others, &self.process) + target.singles[row as usize];
        let out = &mut space.as_flattened_mut()[..=n_slots];
        (out[slot], out[n_slots]) = if is_alone { (opens, f64::NEG_INFINITY) } else { (stays, opens) };
        Some(n_slots + 1)
    }

    /// Adds a removed row to a slot, or to a new cluster if `choice` is the number of slots. Returns whether the
    /// partition differs from that before the removal.
    pub fn put_in(&mut self, target: &Target, row: u32, choice: usize) -> Result<bool> {
        let clusters = &mut self.clusters;
        let slot = if choice == clusters.sizes.len() { clusters.open(target) } else { choice };
        clusters.assignments[row as usize] = slot as u32;
        clusters.sizes[slot] += 1;
        let len = target.empty.len();
        let cache = &mut clusters.caches[slot * len..][..len];
        if let Some(left) = clusters.left.as_ref().filter(|left| left.row == row && left.slot as usize == slot) {
            cache.copy_from_slice(&left.cache);
            clusters.log_join[slot] = left.log_join;
            clusters.update_lane(target, slot, row);
            return Ok(false);
        }
        target.urn().add(cache, target.table.row(row as usize))?;
        clusters.log_join[slot] = clusters.by_size.1[clusters.sizes[slot]];
        clusters.update_lane(target, slot, row);
        Ok(true)
    }

    /// Moves some rows of a slot to a new cluster, and returns its slot. `stay` and `leave` are the caches of the two
    /// sets of rows.
    pub fn split(&mut self, target: &Target, slot: u32, leaving: &[u32], stay: &[f64], leave: &[f64]) -> u32 {
        let other = self.clusters.open(target);
        for &row in leaving {
            self.clusters.assignments[row as usize] = other as u32;
        }
        let size = self.clusters.sizes[slot as usize] - leaving.len();
        self.set(target, slot as usize, size, stay);
        self.set(target, other, leaving.len(), leave);
        other as u32
    }

    /// Joins two slots into the first one, whose cache becomes `both`.
    pub fn join(&mut self, target: &Target, slot: u32, other: u32, both: &[f64]) {
        let clusters = &mut self.clusters;
        clusters
            .assignments
            .iter_mut()
            .filter(|assignment| **assignment == other)
            .for_each(|assignment| *assignment = slot);
        clusters.free.push(other);
        let size = clusters.sizes[slot as usize] + clusters.sizes[other as usize];
        self.set(target, slot as usize, size, both);
        self.set(target, other as usize, 0, &target.empty);
    }

    fn set(&mut self, target: &Target, slot: usize, size: usize, cache: &[f64]) {
        let (clusters, len) = (&mut self.clusters, target.empty.len());
        clusters.left = None;
        clusters.sizes[slot] = size;
        clusters.caches[slot * len..][..len].copy_from_slice(cache);
        clusters.log_join[slot] = clusters.by_size.1[size];
        clusters.write_lane(target, slot);
    }
}

/// Scores a row under clusters, of which each piece of `caches` of length `len` gives one entry of `out`. Threads share
/// them if there are many.
fn in_pieces<C: Sync, T: Send>(
    caches: &[C],
    len: usize,
    row: Row<'_>,
    out: &mut [T],
    score: impl Fn(&[C], &mut [T]) -> Result<()> + Sync,
) -> Result<()> {
    // Of a sparse row only the columns that it has are looked at.
    let looked_at = if let Row::Sparse(columns, _) = row { columns.len().min(len) } else { len };
    let of_one = (looked_at * size_of::<C>() / size_of::<f64>()).max(1);
    if out.len() * of_one < SHARED * SCORED {
        return score(caches, out);
    }
    let each = (SCORED / of_one).max(1);
    let pieces = caches.chunks(each * len).zip(out.chunks_mut(each)).collect();
    map_all(pieces, |(caches, out)| score(caches, out)).into_iter().collect()
}

fn weight_of_joining(target: &Target, process: &ProcessState, size: usize) -> f64 {
    if size == 0 { f64::NEG_INFINITY } else { target.process.log_join(size, process) }
}

/// Number of distinct labels.
pub(super) fn n_distinct(labels: &[u32]) -> usize {
    labels.iter().collect::<BTreeSet<_>>().len()
}

impl Clusters {
    fn new(target: &Target, labels: &[u32]) -> Result<Self> {
        let mut numbers = BTreeMap::new();
        let n_clusters = n_distinct(labels);
        let mut clusters = Self {
            assignments: vec![NOWHERE; labels.len()],
            sizes: Vec::new(),
            // The exact capacity; growing would request more.
            caches: Vec::with_capacity(n_clusters * target.empty.len()),
            free: Vec::new(),
            log_join: Vec::new(),
            by_size: (0.0, Vec::new()),
            lanes: Vec::with_capacity(n_clusters.div_ceil(8) * target.lane_len),
            left: None,
        };
        for (row, label) in labels.iter().enumerate() {
            let slot = *numbers.entry(*label).or_insert_with(|| clusters.open(target));
            clusters.assignments[row] = slot as u32;
            clusters.sizes[slot] += 1;
            let len = target.empty.len();
            target.urn().add(&mut clusters.caches[slot * len..][..len], target.table.row(row))?;
        }
        Ok(clusters)
    }

    /// Computes the caches of all slots anew, for another likelihood.
    pub fn recache(&mut self, target: &Target) -> Result<()> {
        let len = target.empty.len();
        self.left = None;
        self.caches = target.empty.repeat(self.sizes.len());
        for (row, &slot) in self.assignments.iter().enumerate() {
            target.urn().add(&mut self.caches[slot as usize * len..][..len], target.table.row(row))?;
        }
        Ok(())
    }

    /// Count and statistics of each cluster.
    pub fn summaries(&self, target: &Target) -> Vec<(f64, Vec<f64>)> {
        let mut found = vec![(0.0, vec![0.0; target.likelihood.n_statistics()]); self.sizes.len()];
        for (row, &slot) in self.assignments.iter().enumerate() {
            add_row(target.urn(), target.table.row(row), &mut found[slot as usize]);
        }
        found.retain(|(count, _)| *count > 0.0);
        found
    }

    /// Returns a free slot.
    fn open(&mut self, target: &Target) -> usize {
        if let Some(slot) = self.free.pop() {
            return slot as usize;
        }
        self.sizes.push(0);
        self.caches.extend_from_slice(&target.empty);
        self.log_join.push(f64::NEG_INFINITY);
        let slot = self.sizes.len() - 1;
        self.write_lane(target, slot);
        slot
    }

    /// Writes the lane of a slot from its cache and its weight.
    fn write_lane(&mut self, target: &Target, slot: usize) {
        let len = target.lane_len;
        // Lanes without a slot have weight zero.
        while self.lanes.len() < (slot / 8 + 1) * len {
            self.lanes.push(Eight([if self.lanes.len().is_multiple_of(len) { f64::NEG_INFINITY } else { 0.0 }; 8]));
        }
        self.with_lane(target, slot, |cache, lane, group| target.urn().write_lane(cache, lane, group));
    }

    /// Updates the lane of a slot that a row has joined or left.
    fn update_lane(&mut self, target: &Target, slot: usize, row: u32) {
        let row = target.table.row(row as usize);
        self.with_lane(target, slot, |cache, lane, group| target.urn().update_lane(cache, row, lane, group));
    }

    fn with_lane(&mut self, target: &Target, slot: usize, write: impl Fn(&[f64], usize, &mut [Eight])) {
        let len = target.lane_len;
        if len > 0 {
            let (group, lane) = (&mut self.lanes[slot / 8 * len..][..len], slot % 8);
            group[0].0[lane] = self.log_join[slot];
            write(&self.caches[slot * target.empty.len()..][..target.empty.len()], lane, group);
        }
    }

    /// Scores a row under all lanes.
    fn score_lanes(&self, target: &Target, row: Row<'_>, out: &mut [[f64; 8]]) {
        let scored = in_pieces(&self.lanes, target.lane_len, row, out, |lanes, out| {
            target.urn().score_lanes(lanes, row, out);
            Ok(())
        });
        debug_assert!(scored.is_ok(), "scoring lanes does not fail");
    }

    /// Slots with rows.
    fn occupied(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.sizes.len()).filter(|&slot| self.sizes[slot] > 0)
    }

    /// The cache of a slot.
    pub fn cache(&self, target: &Target, slot: usize) -> &[f64] {
        &self.caches[slot * target.empty.len()..][..target.empty.len()]
    }

    /// The slot of a row.
    pub fn slot(&self, row: u32) -> u32 {
        self.assignments[row as usize]
    }

    /// The slot of each row.
    pub fn slots(&self) -> &[u32] {
        &self.assignments
    }

    /// The rows of two slots, which may be equal, in ascending order.
    pub fn rows_of(&self, slot: u32, other: u32) -> Vec<u32> {
        let numbered = self.assignments.iter().zip(0_u32..);
        numbered.filter(|(assigned, _)| **assigned == slot || **assigned == other).map(|(_, row)| row).collect()
    }

    /// Number of rows of a slot.
    pub fn size(&self, slot: u32) -> usize {
        self.sizes[slot as usize]
    }

    /// Number of clusters.
    pub fn n_clusters(&self) -> usize {
        self.sizes.len() - self.free.len()
    }

    /// Sizes of the clusters.
    pub fn sizes(&self) -> Vec<usize> {
        self.occupied().map(|slot| self.sizes[slot]).collect()
    }

    /// Writes labels from 0, numbered by first appearance.
    pub fn write_labels(&self, out: &mut [i32]) {
        let mut labels = vec![-1; self.sizes.len()];
        let mut next = 0;
        for (&slot, out) in self.assignments.iter().zip(out) {
            let label = &mut labels[slot as usize];
            if *label < 0 {
                (*label, next) = (next, next + 1);
            }
            *out = *label;
        }
    }

    /// Whether the parts are consistent, since a file may hold anything.
    pub fn fits(&self, target: &Target) -> bool {
        let n_slots = self.sizes.len();
        let mut sizes = vec![0; n_slots];
        for &slot in &self.assignments {
            match sizes.get_mut(slot as usize) {
                Some(size) => *size += 1,
                None => return false,
            }
        }
        let mut free: Vec<usize> = self.free.iter().map(|&slot| slot as usize).collect();
        free.sort_unstable();
        let empty: Vec<usize> = (0..n_slots).filter(|&slot| self.sizes[slot] == 0).collect();
        self.assignments.len() == target.n_rows()
            && sizes == self.sizes
            && free == empty
            && self.caches.len() == n_slots * target.empty.len()
            && self.log_join.len() == n_slots
    }
}
