//! Statistics of nodes from their rows. Each row is read once, block by block in parallel (mathematics 12.2).

use std::ops::Range;

use crate::data::{RowBlock, RowUnits, TreeNode};
use crate::likelihood::Likelihood;
use crate::parallel::{blocks, map};
use crate::simd::{Lines, Scalar};

/// Number of rows that one task reads.
const ROWS: usize = 2048;

/// How the statistics of nodes are stored.
#[derive(Debug, Clone)]
pub(super) struct NodeForm {
    /// Number of linear statistics that are stored.
    pub width: usize,
    /// Position of the squares among all statistics.
    pub squares: Range<usize>,
    n_statistics: usize,
}

impl NodeForm {
    pub fn of<F: Scalar>(likelihood: &dyn Likelihood<F>) -> Self {
        let (squares, n_statistics) = (likelihood.squares(), likelihood.n_statistics());
        let width = if squares.is_empty() { n_statistics } else { likelihood.dimension() };
        Self { width, squares, n_statistics }
    }

    /// Whether linear statistics differ from the columns themselves.
    pub fn is_coded(&self, dimension: usize) -> bool {
        self.width != dimension
    }
}

/// Sums over a block of rows.
struct BlockSums {
    mass: f64,
    /// Mean linear statistics, (W,).
    mean: Vec<f64>,
    /// Sum of masses times squares about the mean, (S,).
    squares: Vec<f64>,
    /// Sum of masses times log base measures.
    log_base: f64,
    /// The first row, if all rows equal it.
    equal: Option<Vec<f64>>,
}

/// Returns the nodes of the listed rows, in order.
pub(super) fn nodes<F: Scalar>(
    likelihood: &dyn Likelihood<F>,
    rows: &RowUnits<'_, F>,
    lists: &[&[u32]],
) -> Vec<TreeNode> {
    let form = NodeForm::of(likelihood);
    let pieces: Vec<(usize, Range<usize>)> = lists
        .iter()
        .enumerate()
        .flat_map(|(node, list)| blocks(list.len(), ROWS).map(move |range| (node, range)))
        .collect();
    let sums = map(pieces.len(), |piece| {
        let (node, range) = &pieces[piece];
        block_sums(&form, likelihood, rows, &lists[*node][range.clone()])
    });
    let mut by_node: Vec<Vec<BlockSums>> = lists.iter().map(|_| Vec::new()).collect();
    pieces.iter().zip(sums).for_each(|((node, _), sums)| by_node[*node].push(sums));
    map(lists.len(), |node| joined(&form, likelihood, lists[node][0], &by_node[node]))
}

fn block_sums<F: Scalar>(
    form: &NodeForm,
    likelihood: &dyn Likelihood<F>,
    rows: &RowUnits<'_, F>,
    list: &[u32],
) -> BlockSums {
    let d = likelihood.dimension();
    let origin: Vec<F> = likelihood.origin().iter().map(|&value| F::from_f64(value)).collect();
    let mut read = vec![F::ZERO; list.len() * d];
    rows.read(list.iter().map(|&row| row as usize), &origin, &mut read);
    let masses = rows.masses(list);
    let mut log_bases = vec![0.0; list.len()];
    likelihood.log_fixed_bases(RowBlock::Dense(&read), &mut log_bases);
    let mut values: Vec<f64> = read.iter().map(|value| value.to_f64()).collect();
    let first = values[..d].to_vec();
    let equal = values.chunks_exact(d).all(|row| row == first).then_some(first);
    let mass: f64 = masses.iter().sum();
    let log_base = masses.iter().zip(&log_bases).filter(|(mass, _)| **mass > 0.0).map(|(mass, x)| mass * x).sum();
    let mut space = Lines::default();
    let mut sums = BlockSums { mass, mean: vec![0.0; form.width], squares: Vec::new(), log_base, equal };
    if mass <= 0.0 {
        return sums;
    }
    if form.squares.is_empty() {
        likelihood.accumulate(RowBlock::Dense(&values), &masses, &mut sums.mean, &mut space);
        sums.mean.iter_mut().for_each(|sum| *sum /= mass);
        return sums;
    }
    for (row, mass) in values.chunks_exact(d).zip(&masses) {
        sums.mean.iter_mut().zip(row).for_each(|(sum, x)| *sum += mass * x);
    }
    sums.mean.iter_mut().for_each(|sum| *sum /= mass);
    for row in values.chunks_exact_mut(d) {
        row.iter_mut().zip(&sums.mean).for_each(|(x, mean)| *x -= mean);
    }
    let mut statistics = vec![0.0; form.n_statistics];
    likelihood.accumulate(RowBlock::Dense(&values), &masses, &mut statistics, &mut space);
    sums.squares = statistics[form.squares.clone()].to_vec();
    sums
}

/// Combines the sums of all blocks of a node. Squares about the block means and squares of the block means about the
/// node's mean add up, without cancellation.
fn joined<F: Scalar>(form: &NodeForm, likelihood: &dyn Likelihood<F>, row: u32, all: &[BlockSums]) -> TreeNode {
    let mass: f64 = all.iter().map(|block| block.mass).sum();
    let first = all[0].equal.as_ref();
    let is_equal = first.is_some() && all.iter().all(|block| block.equal.as_ref() == first);
    let mut node = TreeNode { row, mass, mean: vec![0.0; form.width], spread: Vec::new(), log_base: 0.0, excess: 0.0 };
    if mass > 0.0 {
        for block in all.iter().filter(|block| block.mass > 0.0) {
            let share = block.mass / mass;
            node.mean.iter_mut().zip(&block.mean).for_each(|(sum, x)| *sum += share * x);
        }
        node.log_base = all.iter().map(|block| block.log_base).sum::<f64>() / mass;
    }
    let d = likelihood.dimension();
    if let Some(row) = first.filter(|_| is_equal && !form.is_coded(d)) {
        // The mean of equal rows is that row, to the bit. A weighted mean would round.
        node.mean.copy_from_slice(row);
    } else if mass > 0.0 && !form.squares.is_empty() && !is_equal {
        node.spread = spread(form, likelihood, &node, all);
    }
    if !form.is_coded(d) && mass > 0.0 {
        let mean: Vec<F> = node.mean.iter().map(|&x| F::from_f64(x)).collect();
        let mut of_mean = [0.0];
        likelihood.log_fixed_bases(RowBlock::Dense(&mean), &mut of_mean);
        node.excess = node.log_base - of_mean[0];
    }
    node
}

fn spread<F: Scalar>(form: &NodeForm, likelihood: &dyn Likelihood<F>, node: &TreeNode, all: &[BlockSums]) -> Vec<f64> {
    let away: Vec<f64> =
        all.iter().flat_map(|block| block.mean.iter().zip(&node.mean).map(|(x, mean)| x - mean)).collect();
    let masses: Vec<f64> = all.iter().map(|block| block.mass).collect();
    let mut statistics = vec![0.0; form.n_statistics];
    likelihood.accumulate(RowBlock::Dense(&away), &masses, &mut statistics, &mut Lines::default());
    let mut spread = statistics[form.squares.clone()].to_vec();
    for block in all {
        spread.iter_mut().zip(&block.squares).for_each(|(sum, x)| *sum += x);
    }
    for sum in &mut spread {
        *sum /= node.mass;
    }
    spread
}
