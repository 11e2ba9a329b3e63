//! Rows drawn from a fit.

use crate::error::{Error, Result};
use crate::fitted::Fitted;
use crate::fitted::packs::PackedFit;
use crate::likelihood::{Draw, RowSource};
use crate::model::Objective;
use crate::parallel::{Cancel, blocks, for_each_with, map, try_map};
use crate::rng::{Chances, Generator, Purpose, stream};
use crate::suffstats::Sufficient;

/// Number of rows of a block. Each block has its own random stream, and draws the rows of a component together.
const BLOCK: usize = 4096;
/// Number of rows of a component that are drawn together.
const AT_ONCE: usize = 256;

/// A block: the component of each row, and the random stream after the choice of components.
struct ChosenBlock {
    components: Vec<u32>,
    generator: Generator,
}

impl Fitted {
    /// Draws `n` rows from the posterior predictive, or at the point estimates of the objective, (n, D), in the data's
    /// units.
    ///
    /// # Errors
    /// As [`Fitted::model`]; [`Error::Numerical`]; [`Error::Cancelled`].
    pub fn sample(&self, n: usize, seed: u64, cancel: &Cancel) -> Result<Vec<f64>> {
        let d = self.n_data_columns();
        let size = n.saturating_mul(d);
        let too_many = |_| Error::invalid("n", n, "small enough for the rows to fit in memory");
        Vec::<f64>::new().try_reserve_exact(size).map_err(too_many)?;
        let PackedFit { model, allocation, .. } = self.packed::<f64>()?;
        let is_posterior = self.specification.objective == Objective::Variational;
        let mut weights = allocation.expected_weights.clone();
        // The weights of point estimates already sum to one, as in their density.
        if is_posterior {
            weights.push(allocation.leftover);
        }
        let n_sources = weights.len();
        weights.extend(model.background.as_ref().map(|_| allocation.background_weight));
        let chances = Chances::new(&weights);
        let ranges: Vec<_> = blocks(n, BLOCK).collect();
        let chosen = map(ranges.len(), |block| {
            let mut generator = stream(seed, Purpose::Draws, block as u64);
            let components = ranges[block].clone().map(|_| chances.choose(&mut generator) as u32).collect();
            ChosenBlock { components, generator }
        });
        let nothing = vec![0.0; self.summary.n_statistics];
        let components = self.components_and_prior(&nothing);
        let sums = column_sums(&components, self.summary.n_statistics);
        let all = Sufficient { count: components.iter().map(|component| component.count).sum(), statistics: &sums };
        let from = Draw { estimate: (!is_posterior).then(|| self.estimate()), all };
        let mut is_used = vec![false; weights.len()];
        chosen.iter().flat_map(|block| &block.components).for_each(|&k| is_used[k as usize] = true);
        let mut sources = try_map(n_sources, |k| {
            cancel.check()?;
            let source = is_used[k].then(|| model.likelihood.row_source(components[k], from)).transpose();
            source.map_err(|error| error.of_component(k))
        })?;
        sources.extend(model.background.as_ref().map(|background| Some(background.row_source())));
        let mut rows = vec![0.0; size];
        let parts = rows.chunks_mut(BLOCK * d).zip(chosen).collect();
        let scratch = || vec![0.0; AT_ONCE * self.origin.len()];
        for_each_with(parts, scratch, |scratch, (rows, block)| {
            cancel.check()?;
            self.fill_block(rows, block, &sources, scratch);
            Ok(())
        })?;
        Ok(rows)
    }

    /// Draws the rows of a block, component by component.
    fn fill_block(&self, rows: &mut [f64], block: ChosenBlock, sources: &[Option<RowSource<'_>>], scratch: &mut [f64]) {
        let (d, r) = (self.n_data_columns(), self.origin.len());
        let ChosenBlock { components, mut generator } = block;
        let mut places = vec![Vec::new(); sources.len()];
        components.iter().enumerate().for_each(|(row, &k)| places[k as usize].push(row));
        for (source, places) in sources.iter().zip(&places) {
            let Some(source) = source else { continue };
            for places in places.chunks(AT_ONCE) {
                let drawn = &mut scratch[..places.len() * r];
                source(drawn, &mut generator);
                for (&row, drawn) in places.iter().zip(drawn.chunks_exact(r)) {
                    self.coordinates.raise_to(drawn, &mut rows[row * d..][..d]);
                }
            }
        }
    }
}

fn column_sums(components: &[Sufficient<'_>], n_statistics: usize) -> Vec<f64> {
    let mut sums = vec![0.0; n_statistics];
    for component in components {
        sums.iter_mut().zip(component.statistics).for_each(|(sum, value)| *sum += value);
    }
    sums
}
