//! The nearest other components of every component, by the divergence in which starts choose their seeds (mathematics
//! 5.2).

use std::borrow::Cow;

use crate::data::{Nodes, TreeNode};
use crate::error::Result;
use crate::likelihood::{Density, Likelihood};
use crate::local_step::{ByScore, Chunk, Keep, LocalStep, NodeUnits, Tap};
use crate::model::Model;
use crate::parallel::Cancel;
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
    let scorer = likelihood.scorer(&averages.components(), &vec![0.0; total.n_components()], Density::Divergence)?;
    // The component itself is among its nearest.
    let width = (n + 1).min(total.n_components());
    let assign =
        ByScore { scorer: scorer.as_ref(), has_tail: false, width, margin: None, abandon: true, row_terms: false };
    let step = LocalStep { likelihood, ids: &total.ids, assign: &assign, keep: Keep::Nothing, cancel };
    let mut neighbours = Neighbours { n, found: Vec::new() };
    step.run(&centres(likelihood, &averages)?, None, &mut [&mut neighbours])?;
    Ok(neighbours.found)
}

/// The centres of averaged components as units.
fn centres<'a, F: Scalar>(likelihood: &dyn Likelihood<F>, averages: &Summary) -> Result<NodeUnits<'a, F>> {
    let all: Vec<TreeNode> =
        averages.components().into_iter().map(|average| centre(likelihood, average)).collect::<Result<_>>()?;
    let squares = likelihood.squares().len();
    let mut nodes = Nodes::new(all.first().map_or(0, |node| node.mean.len()), squares);
    for node in &all {
        nodes.push(node);
    }
    Ok(NodeUnits::new(likelihood, Cow::Owned(nodes)))
}

/// The expected row of a component; its squares stand for it if there is no mean.
fn centre<F: Scalar>(likelihood: &dyn Likelihood<F>, average: Sufficient<'_>) -> Result<TreeNode> {
    let (d, squares) = (likelihood.dimension(), likelihood.squares());
    let n_linear = average.statistics.len() - squares.len();
    let (mean, spread) = if n_linear == 0 {
        (vec![0.0; d], average.statistics.to_vec())
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
