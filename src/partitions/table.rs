//! A partition beside draws: how many rows each of its clusters shares with each cluster of each draw.

use crate::error::{Error, Result};
use crate::partitions::{LabelDraws, Loss};
use crate::room::check_room;

/// Marks a group without a cluster.
const NONE: u32 = u32::MAX;

/// A loss, evaluated for all counts of rows, and the draws over which its expectation is taken.
#[derive(Debug)]
pub struct ExpectedLoss<'a> {
    pub draws: &'a LabelDraws,
    pub loss: Loss,
    /// f(x) of the loss for x from 0 to n, and on by the rows of the largest group.
    weights: Vec<f64>,
    /// f(x + 1) - f(x) for the same x without the last one.
    steps: Vec<f64>,
    /// The part that no partition changes: the mean over draws of the sum of f over their clusters.
    of_draws: f64,
    /// Number of draws.
    n_draws: f64,
    unit: f64,
}

impl<'a> ExpectedLoss<'a> {
    pub fn new(draws: &'a LabelDraws, loss: Loss) -> Self {
        let n = draws.n_rows();
        let most = n + draws.sizes.iter().max().map_or(0, |&rows| rows as usize);
        let weights: Vec<f64> = (0..=most).map(|count| loss.weight(count as f64)).collect();
        let steps = weights.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mut of_cells = vec![0_u32; draws.starts[draws.n_distinct()]];
        for group in 0..draws.n_groups() {
            draws.cells_of(group).iter().for_each(|&cell| of_cells[cell as usize] += draws.sizes[group]);
        }
        let n_draws = draws.times.iter().sum();
        let of_draw = |(bounds, times): (&[usize], &f64)| {
            times * of_cells[bounds[0]..bounds[1]].iter().map(|&count| weights[count as usize]).sum::<f64>()
        };
        let of_draws = draws.starts.windows(2).zip(&draws.times).map(of_draw).sum::<f64>() / n_draws;
        Self { draws, loss, of_draws, n_draws, unit: loss.unit(n as f64), steps, weights }
    }

    /// f(count + rows) - f(count).
    fn step(&self, count: u32, rows: u32) -> f64 {
        // Most groups are one row.
        if rows == 1 { self.steps[count as usize] } else { self.weight(count + rows) - self.weight(count) }
    }

    /// A change in its unit.
    pub fn loss_of(&self, change: f64) -> f64 {
        change / self.unit
    }

    /// f(n), the largest one.
    pub fn of_all_rows(&self) -> f64 {
        self.weights[self.draws.n_rows()]
    }

    /// f(count).
    fn weight(&self, count: u32) -> f64 {
        self.weights[count as usize]
    }
}

/// A partition of the groups of rows, or of some of them. Clusters are numbered without gaps.
#[derive(Debug, Clone)]
pub struct CellCounts<'a> {
    objective: &'a ExpectedLoss<'a>,
    /// The cluster of each group, (G,).
    labels: Vec<u32>,
    /// Number of rows of each cluster.
    sizes: Vec<u32>,
    /// Number of rows of each cell and cluster, (cells, stride).
    shared: Vec<u32>,
    /// Room for clusters.
    stride: usize,
}

impl<'a> CellCounts<'a> {
    /// No group has a cluster, and there is room for this many clusters.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for `max_clusters` if the table does not fit in memory.
    pub fn empty(objective: &'a ExpectedLoss<'a>, room: usize) -> Result<Self> {
        let draws = objective.draws;
        let labels = vec![NONE; draws.n_groups()];
        let mut table = Self { objective, labels, sizes: Vec::new(), shared: Vec::new(), stride: 0 };
        table.make_room(room.max(1))?;
        Ok(table)
    }

    /// A partition of all groups, given their labels from 0 without gaps.
    ///
    /// # Errors
    /// As [`CellCounts::empty`].
    pub fn of(objective: &'a ExpectedLoss<'a>, labels: &[u32]) -> Result<Self> {
        let n_clusters = labels.iter().max().map_or(0, |&most| most as usize + 1);
        let mut table = Self::empty(objective, n_clusters)?;
        table.sizes = vec![0; n_clusters];
        labels.iter().enumerate().for_each(|(group, &label)| table.put(group, label as usize));
        Ok(table)
    }

    fn make_room(&mut self, stride: usize) -> Result<()> {
        let draws = self.objective.draws;
        let n_cells = draws.starts[draws.n_distinct()];
        // 32 bits each.
        check_room(n_cells.saturating_mul(stride) / 2, |size| {
            let found =
                format!("{stride} clusters beside the {n_cells} of all draws together, for which counts take {size}");
            Error::invalid("max_clusters", found, "fewer")
        })?;
        let mut counts = vec![0; n_cells * stride];
        let rows = self.shared.chunks_exact(self.stride.max(1));
        counts.chunks_exact_mut(stride).zip(rows).for_each(|(new, old)| new[..old.len()].copy_from_slice(old));
        (self.shared, self.stride) = (counts, stride);
        Ok(())
    }

    pub fn n_clusters(&self) -> usize {
        self.sizes.len()
    }

    /// The cluster of each group.
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// The cluster of a group.
    pub fn label(&self, group: usize) -> usize {
        self.labels[group] as usize
    }

    /// Number of rows of a cluster.
    pub fn size(&self, cluster: usize) -> u32 {
        self.sizes[cluster]
    }

    fn put(&mut self, group: usize, cluster: usize) {
        let (draws, rows) = (self.objective.draws, self.objective.draws.sizes[group]);
        self.labels[group] = cluster as u32;
        self.sizes[cluster] += rows;
        draws.cells_of(group).iter().for_each(|&cell| self.shared[cell as usize * self.stride + cluster] += rows);
    }

    /// Puts a group that has no cluster into one; the number of clusters opens a new one.
    ///
    /// # Errors
    /// As [`CellCounts::empty`].
    pub fn add(&mut self, group: usize, cluster: usize) -> Result<()> {
        if cluster == self.n_clusters() {
            if cluster == self.stride {
                self.make_room(self.stride + self.stride.div_ceil(2))?;
            }
            self.sizes.push(0);
        }
        self.put(group, cluster);
        Ok(())
    }

    /// Takes a group out of its cluster, which may become empty.
    pub fn take(&mut self, group: usize) {
        let (draws, cluster) = (self.objective.draws, self.label(group));
        let rows = draws.sizes[group];
        self.labels[group] = NONE;
        self.sizes[cluster] -= rows;
        draws.cells_of(group).iter().for_each(|&cell| self.shared[cell as usize * self.stride + cluster] -= rows);
    }

    /// Moves the rows of one cluster to another; the last cluster takes its number.
    pub fn merge(&mut self, from: usize, into: usize) {
        for row in self.shared.chunks_exact_mut(self.stride) {
            row[into] += row[from];
            row[from] = 0;
        }
        self.sizes[into] += self.sizes[from];
        self.sizes[from] = 0;
        self.labels.iter_mut().filter(|label| **label as usize == from).for_each(|label| *label = into as u32);
        self.drop_empty(from);
    }

    /// Removes an empty cluster; the last cluster takes its number.
    pub fn drop_empty(&mut self, cluster: usize) {
        let last = self.n_clusters() - 1;
        if cluster < last {
            for row in self.shared.chunks_exact_mut(self.stride) {
                row[cluster] = row[last];
                row[last] = 0;
            }
            self.labels.iter_mut().filter(|label| **label as usize == last).for_each(|label| *label = cluster as u32);
        }
        self.sizes.swap_remove(cluster);
    }

    /// The change of the loss, times its unit, if a group joins each cluster, followed by a new one, compared with
    /// having no cluster.
    pub fn changes(&self, group: usize, out: &mut Vec<f64>) {
        let ExpectedLoss { draws, loss, n_draws, .. } = self.objective;
        let (rows, own) = (draws.sizes[group], self.labels[group] as usize);
        match (loss, rows) {
            // Without a look at a table.
            (Loss::Binder, 1) => self.sum_steps(group, f64::from, out),
            (_, 1) => self.sum_steps(group, |count| self.objective.steps[count as usize], out),
            _ => self.sum_steps(group, |count| self.objective.step(count, rows), out),
        }
        for (cluster, (shared, &size)) in out.iter_mut().zip(&self.sizes).enumerate() {
            // Its own rows do not count.
            let others = if cluster == own { size - rows } else { size };
            *shared = self.objective.step(others, rows) - 2.0 * *shared / n_draws;
        }
        out.push(-self.objective.weight(rows));
    }

    /// For each cluster, the sum over draws of `step` of the other rows that are in the cell of a group.
    fn sum_steps(&self, group: usize, step: impl Fn(u32) -> f64, out: &mut Vec<f64>) {
        let draws = self.objective.draws;
        let counts = |cell: u32| &self.shared[cell as usize * self.stride..][..self.sizes.len()];
        out.clear();
        out.resize(self.sizes.len(), 0.0);
        for (&cell, times) in draws.cells_of(group).iter().zip(&draws.times) {
            out.iter_mut().zip(counts(cell)).for_each(|(sum, &count)| *sum += times * step(count));
        }
        // Its own cluster again, without its own rows.
        let own = self.labels[group] as usize;
        if let Some(sum) = out.get_mut(own) {
            let of_draw = |(&cell, times)| times * step(counts(cell)[own] - draws.sizes[group]);
            *sum = draws.cells_of(group).iter().zip(&draws.times).map(of_draw).sum();
        }
    }

    /// The change of the loss, times its unit, if a cluster is joined with each of those before it.
    pub fn changes_by_merges(&self, cluster: usize) -> Vec<f64> {
        let (draws, weight) = (self.objective.draws, |count| self.objective.weight(count));
        let mut shared = vec![0.0; cluster];
        for (bounds, times) in draws.starts.windows(2).zip(&draws.times) {
            let counts = self.shared[bounds[0] * self.stride..bounds[1] * self.stride].chunks_exact(self.stride);
            for counts in counts.filter(|counts| counts[cluster] > 0) {
                let own = counts[cluster];
                for (sum, &other) in shared.iter_mut().zip(counts) {
                    *sum += times * (weight(own + other) - weight(own) - weight(other));
                }
            }
        }
        let own = self.sizes[cluster];
        let change = |(shared, &size): (f64, &u32)| {
            weight(own + size) - weight(own) - weight(size) - 2.0 * shared / self.objective.n_draws
        };
        shared.into_iter().zip(&self.sizes).map(change).collect()
    }

    /// The expected loss.
    pub fn loss(&self) -> f64 {
        let ExpectedLoss { draws, of_draws, n_draws, unit, .. } = self.objective;
        let sum = |counts: &[u32]| counts.iter().map(|&count| self.objective.weight(count)).sum::<f64>();
        let of_draw = |(bounds, times): (&[usize], &f64)| {
            times * sum(&self.shared[bounds[0] * self.stride..bounds[1] * self.stride])
        };
        let shared = draws.starts.windows(2).zip(&draws.times).map(of_draw).sum::<f64>() / n_draws;
        ((sum(&self.sizes) + of_draws - 2.0 * shared) / unit).max(0.0)
    }
}
