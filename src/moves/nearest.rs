//! The nearest other components of every component, by the divergence in which starts choose their seeds (mathematics
//! 5.2).

use std::borrow::Cow;

use crate::data::{Nodes, TreeNode};
use crate::error::Result;
use crate::likelihood::{Density, Likelihood};
use crate::local_step::{ByScore, Chunk, Keep, LocalStep, NodeUnits, Tap, Units};
use crate::model::Model;
use crate::parallel::Cancel;
use crate::responsibilities::{TopL, largest};
use crate::scoring::{Block, Scratch};
use crate::simd::Scalar;
use crate::suffstats::{Sufficient, Summary};

/// Returns for every component the positions of the `n` others whose centres are nearest to its own.
///
/// # Errors
/// [`crate::Error::Cancelled`]; [`crate::Error::Numerical`] for a component without a divergence.
pub(super) fn nearest<F: Scalar>(
    model: &Model<F>,
    total: &Summary,
    n: usize,
    cancel: &Cancel,
) -> Result<Vec<Vec<usize>>> {
    let (likelihood, averages) = (model.likelihood.as_ref(), total.clone().averages());
    let blocks: Vec<_> = averages.components().into_iter().map(|component| likelihood.blocks(component)).collect();
    if blocks.first().is_some_and(|blocks| blocks.len() > 1) {
        return nearest_by_blocks(&blocks, n, cancel);
    }
    let scorer = likelihood.scorer(&averages.components(), &vec![0.0; total.n_components()], Density::Divergence)?;
    // The component itself is among its nearest.
    let width = (n + 1).min(total.n_components());
    let assign = ByScore {
        scorer: scorer.as_ref(),
        has_tail: false,
        width,
        margin: None,
        abandon: true,
        row_terms: false,
        mask: None,
    };
    let step = LocalStep { likelihood, ids: &total.ids, assign: &assign, keep: Keep::Nothing, cancel };
    let mut neighbours = Neighbours { n, found: Vec::new() };
    step.run(&centres(likelihood, &averages)?, None, &mut [&mut neighbours])?;
    Ok(neighbours.found)
}

/// As [`nearest`], by the sum of the divergences of blocks of columns. `blocks`: those of every averaged component.
fn nearest_by_blocks<F: Scalar>(
    blocks: &[Vec<(&dyn Likelihood<F>, Sufficient<'_>)>],
    n: usize,
    cancel: &Cancel,
) -> Result<Vec<Vec<usize>>> {
    let k = blocks.len();
    let mut sums = vec![0.0; k * k];
    for (block, (likelihood, _)) in blocks[0].iter().enumerate() {
        cancel.check()?;
        // Rows that lack the block leave less than one row in the average.
        let own = |k: usize| blocks[k][block].1;
        let share = |k: usize| if own(k).count > 0.0 { own(k).count.recip() } else { 1.0 };
        let scaled = |k: usize| own(k).statistics.iter().map(|value| share(k) * value).collect();
        let statistics: Vec<Vec<f64>> = (0..k).map(scaled).collect();
        let of = |k: usize| Sufficient { count: share(k) * own(k).count, statistics: &statistics[k] };
        let components: Vec<Sufficient<'_>> = (0..k).map(of).collect();
        let scorer = likelihood.scorer(&components, &vec![0.0; k], Density::Divergence)?;
        let centres = components.iter().map(|&average| centre(*likelihood, average)).collect::<Result<Vec<_>>>()?;
        let units = centres_as_units(*likelihood, &centres);
        let (list, mut numbers) = ((0..k as u32).collect::<Vec<_>>(), Vec::new());
        let mut values = vec![F::ZERO; k * units.n_values()];
        units.read(&list, &[], &mut values);
        let rows = units.rows(&list, &values, &mut numbers);
        let mut sink = TopL::default();
        sink.reset(k, k, k, None, false, false);
        units.score(scorer.as_ref(), &list, Block { rows, leads: &[] }, None, &mut sink, &mut Scratch::default());
        for (index, sum) in sums.iter_mut().enumerate() {
            *sum += sink.score(index / k, index % k).to_f64();
        }
    }
    let of = |(own, scores): (usize, &mut [f64])| {
        scores[own] = f64::NEG_INFINITY;
        let (others, _) = largest(scores, n.min(k - 1));
        others.into_iter().map(|(other, _)| other).filter(|&other| other != own).collect()
    };
    Ok(sums.chunks_exact_mut(k).enumerate().map(of).collect())
}

/// The centres of averaged components as units.
fn centres<'a, F: Scalar>(likelihood: &dyn Likelihood<F>, averages: &Summary) -> Result<NodeUnits<'a, F>> {
    let all: Vec<TreeNode> =
        averages.components().into_iter().map(|average| centre(likelihood, average)).collect::<Result<_>>()?;
    Ok(centres_as_units(likelihood, &all))
}

fn centres_as_units<'a, F: Scalar>(likelihood: &dyn Likelihood<F>, all: &[TreeNode]) -> NodeUnits<'a, F> {
    let mut nodes = Nodes::new(all.first().map_or(0, |node| node.mean.len()), likelihood.squares().len());
    for node in all {
        nodes.push(node);
    }
    NodeUnits::new(likelihood, Cow::Owned(nodes))
}

/// The expected row of a component; its squares stand for it if there is no mean.
fn centre<F: Scalar>(likelihood: &dyn Likelihood<F>, average: Sufficient<'_>) -> Result<TreeNode> {
    let (d, squares) = (likelihood.dimension(), likelihood.squares());
    let n_linear = average.statistics.len() - squares.len();
    let (mean, spread) = if n_linear == 0 {
        (vec![0.0; d], average.statistics.to_vec())
    } else if let Some(mean) = likelihood.centre(average) {
        (mean, Vec::new())
    } else if n_linear == d {
        (average.statistics[..d].to_vec(), Vec::new())
    } else {
        // Some values are missing, or rows are codes.
        let mut mean = likelihood.predictive_moments(average)?.0;
        mean.iter_mut().zip(likelihood.origin()).for_each(|(mean, origin)| *mean -= origin);
        (mean, Vec::new())
    };
    Ok(TreeNode { row: 0, mass: 1.0, mean, spread, log_base: 0.0, excess: 0.0 })
}

/// Collects the nearest components of every centre.
struct Neighbours {
    n: usize,
    found: Vec<Vec<usize>>,
}

impl Tap for Neighbours {
    fn observe(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        let pairs = chunk.own_order();
        for (unit, centre) in chunk.units.iter().enumerate() {
            let others = pairs.pairs(unit).0.iter().filter(|&other| other != centre);
            self.found.push(others.take(self.n).map(|&other| other as usize).collect());
        }
        Ok(())
    }
}
