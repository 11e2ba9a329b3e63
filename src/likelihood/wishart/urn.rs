//! The urn of the Gaussians with a (Normal-)Wishart base measure: rank-one updates of a cached Cholesky factor, O(D^2)
//! per row and cluster (mathematics 8.6).

use std::f64::consts::PI;

use crate::error::Result;
use crate::likelihood::urn::{COUNT, Eight, Urn};
use crate::likelihood::wishart::constants::inverse_kappa;
use crate::likelihood::wishart::lanes::{Cluster, MOST_COLUMNS, Score, lane_len, write};
use crate::likelihood::wishart::model::NormalWishartModel;
use crate::likelihood::wishart::normal_wishart::NormalWishart;
use crate::linalg::{
    downdate_packed, log_determinant_packed, pack_lower, packed_len, squared_length_packed, update_packed,
};
use crate::scoring::Row;
use crate::simd::Instructions;
use crate::suffstats::Sufficient;

/// Index of ln |Psi_n|.
const LOG_DETERMINANT: usize = 1;
/// Index of the part of the log predictive that is independent of the row.
const CONSTANT: usize = 2;
/// Index of the number of downdates since the factor was computed.
const DOWNDATES: usize = 3;
/// Index of m_n, (D,), which is followed by the packed factor and the statistics.
const MEAN: usize = 4;
/// Number of downdates after which a factor is recomputed.
const MOST_DOWNDATES: f64 = 1e4;

/// Smallest ratio of the determinants without and with a row at which the predictive without the row is computed from
/// it. Below it the row is removed from the cluster instead.
const LEAST_LEFT: f64 = 1e-3;
/// Offsets of the factor and the statistics in a cache.
fn places(d: usize) -> (usize, usize) {
    (MEAN + d, MEAN + d + packed_len(d))
}

/// The values of a row, which is never sparse in this family.
fn dense(row: Row<'_>) -> &[f64] {
    match row {
        Row::Dense(values) => values,
        Row::Sparse(..) => &[],
    }
}

/// Adds `sign` times a row to count and statistics.
fn add_row<M: NormalWishartModel>(model: &M, cache: &mut [f64], row: &[f64], sign: f64) {
    cache[COUNT] += sign;
    let (sums, packed) = cache[places(row.len()).1..].split_at_mut(model.n_sums());
    sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += sign * x);
    let mut rest = packed;
    for (j, x) in row.iter().enumerate() {
        let (column, others) = rest.split_at_mut(row.len() - j);
        column.iter_mut().zip(&row[j..]).for_each(|(sum, y)| *sum += sign * x * y);
        rest = others;
    }
}

/// Recomputes mean and factor from the statistics.
fn refresh<M: NormalWishartModel>(model: &M, cache: &mut [f64]) -> Result<()> {
    let d = model.prior().dimension();
    let (factor, statistics) = places(d);
    let posterior = model.posterior(Sufficient { count: cache[COUNT], statistics: &cache[statistics..] })?;
    cache[MEAN..factor].copy_from_slice(&posterior.mean);
    pack_lower(d, &posterior.factor, &mut cache[factor..statistics]);
    cache[DOWNDATES] = 0.0;
    settle(model, cache);
    Ok(())
}

/// Updates determinant and constant from count and factor.
fn settle<M: NormalWishartModel>(model: &M, cache: &mut [f64]) {
    let prior = model.prior();
    let d = prior.dimension();
    let (factor, statistics) = places(d);
    cache[LOG_DETERMINANT] = log_determinant_packed(d, &cache[factor..statistics]);
    cache[CONSTANT] = model.constants().get(prior, cache[COUNT]) - 0.5 * cache[LOG_DETERMINANT];
}

/// Writes the vector w whose outer product, times `sign`, updates the scale, and updates the mean.
fn away(cache: &mut [f64], row: &[f64], inverse_kappa: f64, sign: f64, w: &mut [f64]) {
    // kappa / (kappa +- 1) and 1 / (kappa +- 1).
    let weight = (1.0 + sign * inverse_kappa).recip();
    let (step, root) = (sign * inverse_kappa * weight, weight.sqrt());
    let mean = &mut cache[MEAN..MEAN + row.len()];
    for ((w, m), x) in w.iter_mut().zip(mean).zip(row) {
        let delta = x - *m;
        *m += step * delta;
        *w = root * delta;
    }
}

/// Calls `f` with scratch space for a row.
fn with_room<R>(d: usize, f: impl FnOnce(&mut [f64]) -> R) -> R {
    if d <= MOST_COLUMNS { f(&mut [0.0; MOST_COLUMNS][..d]) } else { f(&mut vec![0.0; d]) }
}

/// ln m from the determinant of the posterior scale.
fn log_marginal_likelihood(prior: &NormalWishart, n: f64, log_determinant: f64) -> f64 {
    let d = prior.dimension();
    let posterior = NormalWishart {
        dof: prior.dof + n,
        inverse_kappa: inverse_kappa(prior, n),
        mean: vec![0.0; d],
        factor: Vec::new(),
        log_determinant,
    };
    posterior.cumulant_above(prior) - 0.5 * n * d as f64 * (2.0 * PI).ln()
}

impl<M: NormalWishartModel> Urn for M {
    fn cache_len(&self) -> usize {
        let d = self.prior().dimension();
        places(d).1 + self.n_sums() + packed_len(d)
    }

    fn clear(&self, cache: &mut [f64]) -> Result<()> {
        cache.fill(0.0);
        refresh(self, cache)
    }

    fn add(&self, cache: &mut [f64], row: Row<'_>) -> Result<()> {
        let row = dense(row);
        let (factor, statistics) = places(row.len());
        with_room(row.len(), |w| {
            away(cache, row, inverse_kappa(self.prior(), cache[COUNT]), 1.0, w);
            update_packed(&mut cache[factor..statistics], w);
        });
        add_row(self, cache, row, 1.0);
        settle(self, cache);
        Ok(())
    }

    fn remove(&self, cache: &mut [f64], row: Row<'_>) -> Result<()> {
        if cache[COUNT] <= 1.0 {
            return self.clear(cache);
        }
        let row = dense(row);
        let (factor, statistics) = places(row.len());
        let kept = with_room(row.len(), |w| {
            away(cache, row, inverse_kappa(self.prior(), cache[COUNT]), -1.0, w);
            downdate_packed(&mut cache[factor..statistics], w)
        });
        add_row(self, cache, row, -1.0);
        cache[DOWNDATES] += 1.0;
        if !kept || cache[DOWNDATES] >= MOST_DOWNDATES {
            return refresh(self, cache);
        }
        settle(self, cache);
        Ok(())
    }

    fn merge(&self, cache: &mut [f64], other: &[f64]) -> Result<()> {
        let first = places(self.prior().dimension()).1;
        cache[COUNT] += other[COUNT];
        cache[first..].iter_mut().zip(&other[first..]).for_each(|(sum, value)| *sum += value);
        refresh(self, cache)
    }

    fn log_predictives(&self, caches: &[f64], row: Row<'_>, out: &mut [f64]) -> Result<()> {
        let (row, prior) = (dense(row), self.prior());
        let d = row.len();
        let (factor, statistics) = places(d);
        with_room(d, |space| {
            for (cache, out) in caches.chunks_exact(self.cache_len()).zip(out) {
                let n = cache[COUNT];
                for ((delta, x), m) in space.iter_mut().zip(row).zip(&cache[MEAN..factor]) {
                    *delta = x - m;
                }
                let square = squared_length_packed(&cache[factor..statistics], space);
                let q = square / (1.0 + inverse_kappa(prior, n));
                *out = cache[CONSTANT] - 0.5 * (prior.dof + n + 1.0) * q.ln_1p();
            }
        });
        Ok(())
    }

    /// With Psi = Psi' + w w^T the ratio of determinants is 1 - |L^-1 w|^2, which gives the determinant without the row
    /// and the squared length under it (mathematics 8.6).
    fn log_leave_one_out(&self, cache: &[f64], row: Row<'_>) -> Option<f64> {
        let (row, prior, n) = (dense(row), self.prior(), cache[COUNT]);
        let (factor, statistics) = places(row.len());
        let weight = (1.0 - inverse_kappa(prior, n)).recip();
        let square = with_room(row.len(), |delta| {
            delta.iter_mut().zip(row).zip(&cache[MEAN..factor]).for_each(|((delta, x), m)| *delta = x - m);
            squared_length_packed(&cache[factor..statistics], delta)
        });
        let left = 1.0 - weight * square;
        let half = 0.5 * (prior.dof + n);
        let constant = self.constants().get(prior, n - 1.0) - 0.5 * cache[LOG_DETERMINANT];
        (left >= LEAST_LEFT).then(|| constant + (half - 0.5) * left.ln())
    }

    fn lane_len(&self) -> usize {
        let d = self.prior().dimension();
        if (1..=MOST_COLUMNS).contains(&d) { lane_len(d) } else { 0 }
    }

    fn write_lane(&self, cache: &[f64], lane: usize, group: &mut [Eight]) {
        let (prior, n) = (self.prior(), cache[COUNT]);
        let (factor, statistics) = places(prior.dimension());
        let cluster = Cluster {
            constant: cache[CONSTANT],
            half: 0.5 * (prior.dof + n + 1.0),
            weight: (1.0 + inverse_kappa(prior, n)).recip(),
            mean: &cache[MEAN..factor],
            factor: &cache[factor..statistics],
        };
        write(&cluster, lane, group);
    }

    fn score_lanes(&self, groups: &[Eight], row: Row<'_>, out: &mut [[f64; 8]]) {
        Instructions::widest().run(Score { lanes: groups, row: dense(row), out });
    }

    fn log_marginal_likelihood(&self, cache: &[f64]) -> Result<f64> {
        Ok(log_marginal_likelihood(self.prior(), cache[COUNT], cache[LOG_DETERMINANT]))
    }

    fn log_marginal_likelihood_of_both(&self, a: &[f64], b: &[f64]) -> Result<f64> {
        let first = places(self.prior().dimension()).1;
        let count = a[COUNT] + b[COUNT];
        let statistics: Vec<f64> = a[first..].iter().zip(&b[first..]).map(|(a, b)| a + b).collect();
        let posterior = self.posterior(Sufficient { count, statistics: &statistics })?;
        Ok(log_marginal_likelihood(self.prior(), count, posterior.log_determinant))
    }
}
