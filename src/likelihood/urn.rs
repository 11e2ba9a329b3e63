//! Clusters that rows join and leave one at a time, as samplers need them (mathematics 8.5).
//!
//! Unlike the scores of the local step, values here include all constants. They are log densities of rows with the base
//! measure and all normalisers, so the log predictives of rows that join one after another add up to the log marginal
//! likelihood of their cluster.

use crate::data::{Csr, RowBlock, SparseRows};
use crate::error::Result;
use crate::likelihood::Conjugate;
use crate::likelihood::scores::Scores;
use crate::scoring::Row;
use crate::simd::Lines;
use crate::suffstats::Sufficient;

/// Index of the number of rows in a cache.
pub const COUNT: usize = 0;
/// Index of the sum of the rows' log base measures, nats.
pub const BASE: usize = 1;
/// Index of [`Urn::memo`].
pub const MEMO: usize = 2;
/// Index of the first statistic.
pub const STATISTICS: usize = 3;

/// One number for each of eight clusters, side by side in the lanes of a vector.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[repr(C, align(64))]
pub struct Eight(pub [f64; 8]);

/// Clusters of rows with a closed marginal likelihood. The state of a cluster is its *cache* of [`Urn::cache_len`]
/// numbers. Only the first, the number of rows, has a meaning outside. The caches of many clusters are stored
/// consecutively in one slice. Rows are relative to the origin.
///
/// The default methods use differences of [`Conjugate::log_marginal`].
pub trait Urn: Conjugate + Scores<f64> {
    /// Length of the cache of one cluster.
    fn cache_len(&self) -> usize {
        STATISTICS + self.n_statistics()
    }

    /// Resets a cache to that of a cluster without rows.
    fn clear(&self, cache: &mut [f64]) -> Result<()> {
        cache.fill(0.0);
        remember(self, cache)
    }

    /// Adds a row to a cluster.
    fn add(&self, cache: &mut [f64], row: Row<'_>) -> Result<()> {
        change(self, cache, row, 1.0)
    }

    /// Removes a row of the cluster. Removing the last row resets the cluster, so no rounding error remains.
    fn remove(&self, cache: &mut [f64], row: Row<'_>) -> Result<()> {
        if cache[COUNT] <= 1.0 {
            return self.clear(cache);
        }
        change(self, cache, row, -1.0)
    }

    /// Adds all rows of another cluster.
    fn merge(&self, cache: &mut [f64], other: &[f64]) -> Result<()> {
        cache.iter_mut().zip(other).for_each(|(sum, value)| *sum += value);
        remember(self, cache)
    }

    /// ln p(row | rows of the cluster) = ln m(cluster and row) - ln m(cluster) for each cluster in `caches`, nats.
    fn log_predictives(&self, caches: &[f64], row: Row<'_>, out: &mut [f64]) -> Result<()> {
        let base = log_base(self, row);
        let mut with = vec![0.0; self.n_statistics()];
        for (cache, out) in caches.chunks_exact(self.cache_len()).zip(out) {
            with.copy_from_slice(&cache[STATISTICS..]);
            accumulate(self, row, 1.0, &mut with);
            let component = Sufficient { count: cache[COUNT] + 1.0, statistics: &with };
            *out = self.log_marginal(component)? - cache[MEMO] + base;
        }
        Ok(())
    }

    /// ln m(cluster), the log marginal likelihood of its rows, nats.
    fn log_marginal_likelihood(&self, cache: &[f64]) -> Result<f64> {
        Ok(self.log_marginal(component(cache))? + cache[BASE])
    }

    /// ln m of the union of two clusters, nats.
    fn log_marginal_likelihood_of_both(&self, a: &[f64], b: &[f64]) -> Result<f64> {
        let both: Vec<f64> = a.iter().zip(b).map(|(a, b)| a + b).collect();
        Ok(self.log_marginal(component(&both))? + both[BASE])
    }

    /// ln p(row | the other rows of its cluster), nats, leaving the cluster unchanged. The cluster must have another
    /// row. `None` if this is not implemented or would lose digits.
    fn log_leave_one_out(&self, _cache: &[f64], _row: Row<'_>) -> Option<f64> {
        None
    }

    /// Length of the lane of one cluster. The first number is a log weight set by the caller. 0 if the family does not
    /// support lanes.
    fn lane_len(&self) -> usize {
        0
    }

    /// Writes a cluster, except for the log weight, into its lane of a group of eight.
    fn write_lane(&self, _cache: &[f64], _lane: usize, _group: &mut [Eight]) {}

    /// Does the same after a row has joined or left the cluster, for a lane that has been written before.
    fn update_lane(&self, cache: &[f64], _row: Row<'_>, lane: usize, group: &mut [Eight]) {
        self.write_lane(cache, lane, group);
    }

    /// Writes the log weight plus ln p(row | rows of the cluster) for each lane of all groups, nats.
    fn score_lanes(&self, _groups: &[Eight], _row: Row<'_>, _out: &mut [[f64; 8]]) {}

    /// Value that [`Urn::log_predictives`] expects in the cache of a cluster; by default the log marginal.
    fn memo(&self, component: Sufficient<'_>) -> Result<f64> {
        self.log_marginal(component)
    }
}

/// Count and statistics in a cache of the default layout.
fn component(cache: &[f64]) -> Sufficient<'_> {
    Sufficient { count: cache[COUNT], statistics: &cache[STATISTICS..] }
}

/// Statistics and memo in a cache of the default layout.
pub fn parts(cache: &[f64]) -> (Sufficient<'_>, f64) {
    (component(cache), cache[MEMO])
}

fn remember<U: Urn + ?Sized>(urn: &U, cache: &mut [f64]) -> Result<()> {
    cache[MEMO] = urn.memo(component(cache))?;
    Ok(())
}

fn change<U: Urn + ?Sized>(urn: &U, cache: &mut [f64], row: Row<'_>, sign: f64) -> Result<()> {
    cache[COUNT] += sign;
    cache[BASE] += sign * log_base(urn, row);
    accumulate(urn, row, sign, &mut cache[STATISTICS..]);
    remember(urn, cache)
}

/// Adds `sign` times the statistics of a row.
fn accumulate<U: Conjugate + ?Sized>(urn: &U, row: Row<'_>, sign: f64, statistics: &mut [f64]) {
    with_block(row, |block| urn.accumulate(block, &[sign], statistics, &mut Lines::default()));
}

/// Adds a row to a count and statistics.
pub fn add_row<U: Conjugate + ?Sized>(urn: &U, row: Row<'_>, (count, statistics): &mut (f64, Vec<f64>)) {
    *count += 1.0;
    accumulate(urn, row, 1.0, statistics);
}

/// ln h(row), nats.
pub fn log_base<U: Scores<f64> + ?Sized>(urn: &U, row: Row<'_>) -> f64 {
    let mut out = [0.0];
    with_block(row, |block| urn.log_base_measures(block, &mut out));
    out[0]
}

/// Calls `f` with a block of one row.
fn with_block<R>(row: Row<'_>, f: impl FnOnce(RowBlock<'_, f64>) -> R) -> R {
    match row {
        Row::Dense(values) => f(RowBlock::Dense(values)),
        Row::Sparse(columns, values) => {
            let table = Csr { starts: &[0, values.len() as u64], columns, values };
            f(RowBlock::Sparse(SparseRows { table, numbers: &[0] }))
        }
    }
}
