//! Scores of rows: sums over blocks.

use crate::data::RowBlock;
use crate::error::Result;
use crate::likelihood::columns::Columns;
use crate::likelihood::columns::completing::CompletingScorer;
use crate::likelihood::{AtPoint, Density, Estimate, PointEstimates, Scores};
use crate::parameters::Parameters;
use crate::scoring::{ScoredColumns, Scorer, SumScorer, gather};
use crate::simd::Scalar;
use crate::suffstats::Sufficient;

impl Columns {
    /// Writes the sum over blocks of what `of` writes for the rows that have the block.
    fn add_bases<F: Scalar>(
        &self,
        rows: RowBlock<'_, F>,
        out: &mut [f64],
        of: impl Fn(&dyn Scores<F>, RowBlock<'_, F>, &mut [f64]),
    ) {
        let (rows, d) = (rows.dense(), self.origin.len());
        let (mut own_rows, mut terms) = (Vec::new(), vec![0.0; out.len()]);
        out.fill(0.0);
        for block in &self.blocks {
            let Some(scores) = block.likelihood.of::<F>().scores() else { continue };
            gather(&block.place.columns, rows, d, &mut own_rows);
            of(scores, RowBlock::Dense(&own_rows), &mut terms);
            for ((out, term), row) in out.iter_mut().zip(&terms).zip(rows.chunks_exact(d)) {
                *out += if block.is_in(row) { *term } else { 0.0 };
            }
        }
    }
}

impl Columns {
    /// The scorer that sums over blocks.
    pub(super) fn summed<F: Scalar>(&self, log_weights: &[f64], blocks: Vec<ScoredColumns<F>>) -> Box<dyn Scorer<F>> {
        let completes = blocks.iter().any(|block| block.scorer.completing().is_some());
        let (scores, dimension) = (SumScorer::new(self.origin.len(), log_weights, blocks), self.origin.len());
        if !completes {
            return Box::new(scores);
        }
        let blocks = self.blocks.iter().map(|block| (block.place.clone(), block.likelihood.clone())).collect();
        Box::new(CompletingScorer { scores, dimension, blocks })
    }
}

impl<F: Scalar> Scores<F> for Columns {
    fn scorer(
        &self,
        components: &[Sufficient<'_>],
        log_weights: &[f64],
        density: Density,
    ) -> Result<Box<dyn Scorer<F>>> {
        if let Some(only) = self.only() {
            return only.likelihood.of::<F>().scorer(&only.of_all(components), log_weights, density);
        }
        let none = vec![0.0; log_weights.len()];
        let scored = |block: &super::ColumnBlock| {
            let scorer = block.likelihood.of::<F>().scorer(&block.of_all(components), &none, density)?;
            Ok(ScoredColumns { columns: block.place.columns.clone(), scorer, may_lack: block.place.present.is_some() })
        };
        let blocks = self.blocks.iter().map(scored).collect::<Result<_>>()?;
        Ok(self.summed(log_weights, blocks))
    }

    fn divergence_from_prior(&self, component: Sufficient<'_>) -> Result<f64> {
        let of = |block: &super::ColumnBlock| match block.conjugate().scores() {
            Some(scores) => scores.divergence_from_prior(block.of(component)),
            None => Ok(0.0),
        };
        self.blocks.iter().map(of).sum()
    }

    fn log_base_measures(&self, rows: RowBlock<'_, F>, out: &mut [f64]) {
        self.add_bases(rows, out, |scores, rows, out| scores.log_base_measures(rows, out));
    }

    fn log_fixed_bases(&self, rows: RowBlock<'_, F>, out: &mut [f64]) {
        self.add_bases(rows, out, |scores, rows, out| scores.log_fixed_bases(rows, out));
    }
}

impl PointEstimates for Columns {
    fn at_point(&self, component: Sufficient<'_>, estimate: Estimate) -> Result<AtPoint> {
        let of = |block: &super::ColumnBlock| match block.conjugate().points() {
            Some(points) => points.at_point(block.of(component), estimate),
            None => Ok(AtPoint { log_likelihood: 0.0, log_prior: 0.0 }),
        };
        self.blocks.iter().map(of).sum()
    }

    fn check_mode(&self) -> Result<()> {
        self.blocks.iter().filter_map(|block| block.conjugate().points()).try_for_each(PointEstimates::check_mode)
    }

    fn point_estimates(&self, components: &[Sufficient<'_>], estimate: Estimate) -> Result<Parameters> {
        let mut all = Parameters::default();
        for block in &self.blocks {
            let own = block.conjugate().point_estimates(&block.of_all(components), estimate)?;
            block.member.put(&mut all, own);
        }
        Ok(all)
    }
}
