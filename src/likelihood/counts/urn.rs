//! Clusters of counts that rows join and leave.

use crate::error::Result;
use crate::likelihood::counts::family::{CountFamily, Counts};
use crate::likelihood::counts::rising::{Rising, Risings};
use crate::likelihood::urn::{BASE, COUNT, MEMO, STATISTICS, log_base, parts};
use crate::likelihood::{Conjugate, Eight, Urn};
use crate::scoring::Row;
use crate::suffstats::Sufficient;

impl<M: CountFamily> Counts<M> {
    /// The family, if rows without missing values join clusters by rising factorials.
    fn risings(&self) -> Option<&dyn Risings> {
        self.family.risings().filter(|_| !self.tally.missing && self.tally.exposure.is_none())
    }
}

/// With rising factorials, the memo of a cluster is the sum of all its values. The lane of a cluster has the layout of
/// its cache, with a log weight in the place of the base measure and the number of rows behind it.
impl<M: CountFamily> Urn for Counts<M> {
    fn log_predictives(&self, caches: &[f64], row: Row<'_>, out: &mut [f64]) -> Result<()> {
        let base = log_base(self, row);
        let clusters = caches.chunks_exact(self.cache_len()).map(parts).zip(out);
        match self.risings() {
            Some(family) => {
                let rising = Rising::of(family, row);
                clusters.for_each(|((component, all), out)| {
                    let of_totals = family.of_totals(component.count, all, rising.total);
                    *out = base + of_totals + rising.log(component.statistics);
                });
            }
            None => self.tally.with_row(row, |row| {
                clusters.for_each(|((component, _), out)| {
                    *out = base + self.family.log_predictive(self.tally.of(component), row);
                });
            }),
        }
        Ok(())
    }

    fn log_marginal_likelihood(&self, cache: &[f64]) -> Result<f64> {
        let (component, all) = parts(cache);
        let of_totals = self.risings().and_then(|family| family.marginals(component.count, all));
        let gain = match of_totals {
            Some((rest, logs)) => rest + logs.sum(component.statistics.iter().copied()),
            None => self.log_marginal(component)?,
        };
        Ok(cache[BASE] + gain)
    }

    fn log_marginal_likelihood_of_both(&self, a: &[f64], b: &[f64]) -> Result<f64> {
        let total = |index: usize| a[index] + b[index];
        let sums = a[STATISTICS..].iter().zip(&b[STATISTICS..]).map(|(a, b)| a + b);
        let of_totals = self.risings().and_then(|family| family.marginals(total(COUNT), total(MEMO)));
        if let Some((rest, logs)) = of_totals {
            return Ok(total(BASE) + rest + logs.sum(sums));
        }
        let statistics: Vec<f64> = sums.collect();
        Ok(total(BASE) + self.log_marginal(Sufficient { count: total(COUNT), statistics: &statistics })?)
    }

    fn memo(&self, component: Sufficient<'_>) -> Result<f64> {
        Ok(self.risings().map_or(0.0, |_| component.statistics.iter().sum::<f64>().max(0.0)))
    }

    fn log_leave_one_out(&self, cache: &[f64], row: Row<'_>) -> Option<f64> {
        let family = self.risings()?;
        let (rising, (component, all)) = (Rising::of(family, row), parts(cache));
        let others = (all - rising.total).max(0.0);
        let of_totals = family.of_totals(component.count - 1.0, others, rising.total);
        Some(log_base(self, row) + of_totals + rising.log_of_member(component.statistics))
    }

    fn lane_len(&self) -> usize {
        self.risings().map_or(0, |_| STATISTICS + self.n_statistics())
    }

    fn write_lane(&self, cache: &[f64], lane: usize, group: &mut [Eight]) {
        write_totals(cache, lane, group);
        let sums = cache[STATISTICS..].iter().zip(&mut group[STATISTICS..]);
        sums.for_each(|(sum, eight)| eight.0[lane] = *sum);
    }

    fn update_lane(&self, cache: &[f64], row: Row<'_>, lane: usize, group: &mut [Eight]) {
        write_totals(cache, lane, group);
        row.each_nonzero(|column, _| group[STATISTICS + column].0[lane] = cache[STATISTICS + column]);
    }

    fn score_lanes(&self, groups: &[Eight], row: Row<'_>, out: &mut [[f64; 8]]) {
        let Some(family) = self.risings() else { return };
        let (base, rising) = (log_base(self, row), Rising::of(family, row));
        for (group, out) in groups.chunks_exact(self.lane_len()).zip(out) {
            *out = std::array::from_fn(|lane| {
                let [log_weight, count, all] = [0, ROWS, MEMO].map(|index| group[index].0[lane]);
                log_weight + base + family.of_totals(count, all, rising.total)
            });
            rising.add_lanes(&group[STATISTICS..], out);
        }
    }
}

/// Index of the number of rows in a lane.
const ROWS: usize = 1;

fn write_totals(cache: &[f64], lane: usize, group: &mut [Eight]) {
    group[ROWS].0[lane] = cache[COUNT];
    group[MEMO].0[lane] = cache[MEMO];
}
