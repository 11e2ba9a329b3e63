//! Clusters that rows join and leave: the caches of the blocks, one after another, behind the number of rows.

use std::ops::Range;

use crate::error::Result;
use crate::likelihood::Urn;
use crate::likelihood::columns::{ColumnBlock, Columns};
use crate::likelihood::urn::COUNT;
use crate::scoring::Row;

impl Columns {
    /// The urns of the blocks, each with the range of its cache in that of a cluster.
    fn urns(&self) -> impl Iterator<Item = (&ColumnBlock, &dyn Urn, Range<usize>)> {
        let urns = self.blocks.iter().filter_map(|block| Some((block, block.conjugate().urn()?)));
        urns.scan(COUNT + 1, |next, (block, urn)| {
            let first = *next;
            *next += urn.cache_len();
            Some((block, urn, first..*next))
        })
    }

    /// Calls `of` for every block that the row has.
    fn each_present(
        &self,
        row: Row<'_>,
        mut of: impl FnMut(&dyn Urn, Range<usize>, Row<'_>) -> Result<()>,
    ) -> Result<()> {
        // Sparse rows are refused before any work starts.
        let Row::Dense(values) = row else { return Ok(()) };
        for (block, urn, range) in self.urns() {
            if block.is_in(values) {
                of(urn, range, Row::Dense(&block.values(values)))?;
            }
        }
        Ok(())
    }
}

impl Urn for Columns {
    fn cache_len(&self) -> usize {
        COUNT + 1 + self.urns().map(|(_, urn, _)| urn.cache_len()).sum::<usize>()
    }

    fn clear(&self, cache: &mut [f64]) -> Result<()> {
        cache[COUNT] = 0.0;
        for (_, urn, range) in self.urns() {
            urn.clear(&mut cache[range])?;
        }
        Ok(())
    }

    fn add(&self, cache: &mut [f64], row: Row<'_>) -> Result<()> {
        cache[COUNT] += 1.0;
        self.each_present(row, |urn, range, row| urn.add(&mut cache[range], row))
    }

    fn remove(&self, cache: &mut [f64], row: Row<'_>) -> Result<()> {
        if cache[COUNT] <= 1.0 {
            return self.clear(cache);
        }
        cache[COUNT] -= 1.0;
        self.each_present(row, |urn, range, row| urn.remove(&mut cache[range], row))
    }

    fn merge(&self, cache: &mut [f64], other: &[f64]) -> Result<()> {
        cache[COUNT] += other[COUNT];
        for (_, urn, range) in self.urns() {
            urn.merge(&mut cache[range.clone()], &other[range])?;
        }
        Ok(())
    }

    fn log_predictives(&self, caches: &[f64], row: Row<'_>, out: &mut [f64]) -> Result<()> {
        out.fill(0.0);
        let (mut own, mut terms) = (Vec::new(), vec![0.0; out.len()]);
        self.each_present(row, |urn, range, row| {
            own.clear();
            caches.chunks_exact(self.cache_len()).for_each(|cache| own.extend_from_slice(&cache[range.clone()]));
            urn.log_predictives(&own, row, &mut terms)?;
            out.iter_mut().zip(&terms).for_each(|(sum, term)| *sum += term);
            Ok(())
        })
    }

    fn log_marginal_likelihood(&self, cache: &[f64]) -> Result<f64> {
        self.urns().map(|(_, urn, range)| urn.log_marginal_likelihood(&cache[range])).sum()
    }

    fn log_marginal_likelihood_of_both(&self, a: &[f64], b: &[f64]) -> Result<f64> {
        let of = |(_, urn, range): (&ColumnBlock, &dyn Urn, Range<usize>)| {
            urn.log_marginal_likelihood_of_both(&a[range.clone()], &b[range])
        };
        self.urns().map(of).sum()
    }

    fn log_leave_one_out(&self, cache: &[f64], row: Row<'_>) -> Option<f64> {
        let Row::Dense(values) = row else { return None };
        let of = |(block, urn, range): (&ColumnBlock, &dyn Urn, Range<usize>)| {
            if !block.is_in(values) {
                return Some(0.0);
            }
            let own = &cache[range];
            // Other rows of the cluster may lack the block.
            if own[COUNT] <= 1.0 { None } else { urn.log_leave_one_out(own, Row::Dense(&block.values(values))) }
        };
        self.urns().map(of).sum()
    }
}
