//! Draws of rows and of parameters, the distributions of rows, and moments of missing values.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::hash::fingerprint;
use crate::laws::Law;
use crate::likelihood::capabilities::no_laws;
use crate::likelihood::columns::{ColumnBlock, Columns};
use crate::likelihood::{
    ComponentStreams, Draw, Estimate, Imputation, Laws, ParameterDraws, ParameterSource, RowDraws, RowSource,
    row_by_row,
};
use crate::scoring::{ScoredColumns, Scorer};
use crate::suffstats::Sufficient;

impl Columns {
    /// A source that draws the columns of each block from its own.
    fn scattered<'a>(&'a self, of: impl Fn(&'a ColumnBlock) -> Result<RowSource<'a>>) -> Result<RowSource<'a>> {
        let sources = self.blocks.iter().map(of).collect::<Result<Vec<_>>>()?;
        Ok(row_by_row(self.origin.len(), move |row, generator| {
            for (block, source) in self.blocks.iter().zip(&sources) {
                let mut own = vec![0.0; block.place.columns.len()];
                source(&mut own, generator);
                block.place.columns.iter().zip(own).for_each(|(&column, value)| row[column] = value);
            }
        }))
    }
}

impl RowDraws for Columns {
    fn source(&self, component: Sufficient<'_>, from: Draw<'_>) -> Result<RowSource<'_>> {
        self.scattered(|block| {
            let own = Draw { estimate: from.estimate, all: block.of(from.all) };
            block.conjugate().row_source(block.of(component), own)
        })
    }
}

impl ParameterDraws for Columns {
    fn parameter_source(&self, component: Sufficient<'_>) -> Result<ParameterSource<'_>> {
        let (mut shapes, mut sources) = (Vec::new(), Vec::new());
        for block in &self.blocks {
            let own = block.conjugate().parameter_source(block.of(component))?;
            let width: usize = own.shapes.iter().map(|(_, shape)| shape.iter().product::<usize>()).sum();
            shapes.extend(own.shapes.into_iter().map(|(name, shape)| (block.member.name(&name), shape)));
            sources.push((width, own.rows));
        }
        let width = sources.iter().map(|(width, _)| width).sum();
        let rows = row_by_row(width, move |row, generator| {
            let mut rest = row;
            for (width, source) in &sources {
                let (own, others) = rest.split_at_mut(*width);
                source(own, generator);
                rest = others;
            }
        });
        Ok(ParameterSource { shapes, rows })
    }

    fn drawn_scorer(
        &self,
        components: &[Sufficient<'_>],
        log_weights: &[f64],
        draws: ComponentStreams<'_>,
    ) -> Result<Box<dyn Scorer<f64>>> {
        let none = vec![0.0; log_weights.len()];
        let scored = |(index, block): (usize, &ColumnBlock)| {
            // Draws of one block do not depend on those of another.
            let key = if index == 0 { draws.key } else { fingerprint(draws.key, [index as u64]) };
            let own = ComponentStreams { key, ..draws };
            let scorer = block.conjugate().drawn_scorer(&block.of_all(components), &none, own)?;
            Ok(ScoredColumns { columns: block.place.columns.clone(), scorer, may_lack: block.place.present.is_some() })
        };
        let blocks = self.blocks.iter().enumerate().map(scored).collect::<Result<_>>()?;
        Ok(self.summed(log_weights, blocks))
    }
}

impl Laws for Columns {
    fn law(&self, component: Sufficient<'_>, estimate: Option<Estimate>) -> Result<Law> {
        let of = |block: &ColumnBlock| {
            let laws = block.conjugate().laws().ok_or_else(no_laws)?;
            Ok((block.place.columns.clone(), laws.law(block.of(component), estimate)?))
        };
        Ok(Law::Blocks(self.blocks.iter().map(of).collect::<Result<_>>()?))
    }
}

impl ColumnBlock {
    fn has_levels(&self) -> bool {
        self.conjugate().imputation().is_some_and(|imputation| !imputation.levels().is_empty())
    }

    /// Mean and variance of its columns, or of the indicators of their levels.
    fn moments(&self, component: Sufficient<'_>) -> Result<(Vec<f64>, Vec<f64>)> {
        if let Some(imputation) = self.conjugate().imputation() {
            return imputation.predictive_moments(component);
        }
        let law = self.conjugate().law(component, None)?;
        let d = self.place.columns.len();
        Ok((law.mean(), law.covariance().into_iter().step_by(d + 1).collect()))
    }

    /// Mean and variance of its columns given the present values of a row, or those without a row.
    fn moments_given(&self, component: Sufficient<'_>, row: &[f64]) -> Result<(Vec<f64>, Vec<f64>)> {
        let given = self.conjugate().imputation().map(|own| own.moments_given(component, &self.values(row)));
        given.transpose()?.flatten().map_or_else(|| self.moments(component), Ok)
    }
}

impl Imputation for Columns {
    fn predictive_moments(&self, component: Sufficient<'_>) -> Result<(Vec<f64>, Vec<f64>)> {
        let nothing = vec![f64::NAN; self.origin.len()];
        let found = self.moments_given(component, &nothing)?;
        found.ok_or_else(|| Error::numerical(None, "no block has moments"))
    }

    /// The moments of a column of codes are those of its indicators, at the end of the row.
    fn moments_given(&self, component: Sufficient<'_>, row: &[f64]) -> Result<Option<(Vec<f64>, Vec<f64>)>> {
        let d = self.origin.len();
        let (mut means, mut variances) = (vec![0.0; d], vec![0.0; d]);
        for block in &self.blocks {
            let (own_means, own_variances) = block.moments_given(block.of(component), row)?;
            if block.has_levels() {
                means.extend(own_means);
                variances.extend(own_variances);
                continue;
            }
            for ((&column, mean), variance) in block.place.columns.iter().zip(own_means).zip(own_variances) {
                (means[column], variances[column]) = (mean, variance);
            }
        }
        Ok(Some((means, variances)))
    }

    fn source_given(&self, component: Sufficient<'_>, row: &[f64]) -> Result<Option<RowSource<'_>>> {
        let source = self.scattered(|block| {
            let own = block.of(component);
            let imputation = block.conjugate().imputation();
            let given = imputation.map(|given| given.source_given(own, &block.values(row))).transpose()?.flatten();
            let from = Draw { estimate: None, all: own };
            given.map_or_else(|| block.conjugate().row_source(own, from), Ok)
        })?;
        Ok(Some(source))
    }

    fn levels(&self) -> Vec<(usize, Range<usize>)> {
        let (mut all, mut first) = (Vec::new(), self.origin.len());
        for block in &self.blocks {
            let own = block.conjugate().imputation().map_or_else(Vec::new, Imputation::levels);
            let last = own.iter().map(|(_, range)| range.end).max().unwrap_or(0);
            all.extend(
                own.into_iter()
                    .map(|(column, range)| (block.place.columns[column], first + range.start..first + range.end)),
            );
            first += last;
        }
        all
    }
}
