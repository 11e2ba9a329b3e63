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

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;
    use crate::likelihood::{Conjugate, Frame, FromParameters};
    use crate::parameters::{Parameters, Value, table};
    use crate::special::ln_gamma;

    const NONE: f64 = f64::NAN;
    /// Rows of a count and two real numbers, of which some lack a block.
    const ROWS: [[f64; 3]; 6] =
        [[2.0, 0.5, 1.0], [NONE, -1.2, 0.3], [0.0, NONE, -0.4], [5.0, 0.1, NONE], [1.0, 2.0, 0.2], [NONE, 0.7, NONE]];

    fn columns() -> Columns {
        let number = Value::Number;
        let parameters = Parameters::from_pairs([
            ("blocks", Value::Text("ZeroMeanGaussian 2; Poisson 0; ZeroMeanGaussian 1".into())),
            ("0.dof", number(3.0)),
            ("0.scale", table(1, vec![2.0])),
            ("1.shape", number(1.3)),
            ("1.rate", number(0.6)),
            ("2.dof", number(4.5)),
            ("2.scale", table(1, vec![0.8])),
        ]);
        let frame = Frame { origin: vec![0.0; 3], missing: true, ..Frame::default() };
        Columns::build(&parameters, frame).expect("complete")
    }

    /// The log density of all present values of a column that is normal about zero, with its variance integrated out.
    fn of_normal(dof: f64, scale: f64, values: &[f64]) -> f64 {
        let (n, square) = (values.len() as f64, values.iter().map(|x| x * x).sum::<f64>());
        let gammas = ln_gamma(0.5 * (dof + n)) - ln_gamma(0.5 * dof);
        gammas + 0.5 * (dof * scale.ln() - (dof + n) * (scale + square).ln() - n * PI.ln())
    }

    /// The same for counts with their rate integrated out.
    fn of_counts(shape: f64, rate: f64, values: &[f64]) -> f64 {
        let (n, sum) = (values.len() as f64, values.iter().sum::<f64>());
        let factorials: f64 = values.iter().map(|x| ln_gamma(x + 1.0)).sum();
        ln_gamma(shape + sum) - ln_gamma(shape) + shape * rate.ln() - (shape + sum) * (rate + n).ln() - factorials
    }

    fn expected(rows: &[[f64; 3]]) -> f64 {
        let of = |column: usize| -> Vec<f64> { rows.iter().map(|row| row[column]).filter(|x| !x.is_nan()).collect() };
        of_normal(3.0, 2.0, &of(2)) + of_counts(1.3, 0.6, &of(0)) + of_normal(4.5, 0.8, &of(1))
    }

    fn cluster(columns: &Columns, rows: &[[f64; 3]]) -> Vec<f64> {
        let mut cache = vec![NONE; columns.cache_len()];
        columns.clear(&mut cache).expect("a prior");
        for row in rows {
            let moved: Vec<f64> = row.iter().zip(Conjugate::origin(columns)).map(|(x, o)| x - o).collect();
            columns.add(&mut cache, Row::Dense(&moved)).expect("definite");
        }
        cache
    }

    /// Also of clusters whose rows all lack a block, and of none.
    #[test]
    fn the_marginal_of_two_clusters_is_that_of_their_rows() {
        let columns = columns();
        for cut in 0..=ROWS.len() {
            let (some, others) = ROWS.split_at(cut);
            let (a, b) = (cluster(&columns, some), cluster(&columns, others));
            for (rows, cache) in [(some, &a), (others, &b)] {
                let found = columns.log_marginal_likelihood(cache).expect("definite");
                assert!((found - expected(rows)).abs() < 1e-11, "{cut}: {found} {}", expected(rows));
            }
            let found = columns.log_marginal_likelihood_of_both(&a, &b).expect("definite");
            assert!((found - expected(&ROWS)).abs() < 1e-11, "{cut}: {found} {}", expected(&ROWS));
        }
    }
}
