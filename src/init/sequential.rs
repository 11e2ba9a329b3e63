//! Initialisation that adds the rows one by one in random order (Blei & Jordan 2006; mathematics 5.3).

use crate::component::ComponentId;
use crate::error::{Error, Result};
use crate::global_step::Globals;
use crate::init::Beginning;
use crate::likelihood::Density;
use crate::local_step::{Assign, ByScore, Keep, LocalStep, OneEach};
use crate::model::{Model, Objective};
use crate::rng::{Generator, permutation};
use crate::scoring::Scorer;
use crate::simd::Scalar;
use crate::suffstats::Summary;

/// Maximum number of global steps. With more rows than that, consecutive rows of the random order share a step.
const STEPS: usize = 1000;

/// Visits the rows in random order. For each row, computes the globals from the summary so far, assigns the row by the
/// posterior predictive, `E w_k p(x | lambda_k)`, and adds it. Every row is added once.
///
/// The expected log densities of the local step would not work: under them, a component without rows looks no better to
/// a row than a cluster of others, and far too few clusters would be found.
///
/// The components start equal, and only the prior of their weights distinguishes them. If that is symmetric, soft
/// responsibilities would stay equal for ever. In this case each of the first K rows gets a component of its own.
///
/// # Errors
/// [`crate::Error::Cancelled`]; [`crate::Error::Numerical`].
pub fn one_by_one<F: Scalar>(begin: &Beginning<'_, F>, generator: &mut Generator) -> Result<Summary> {
    let likelihood = begin.likelihood();
    let mut total = Summary::empty(begin.ids.to_vec(), likelihood.n_statistics(), begin.keep == Keep::SummaryAndGaps);
    if !begin.data.can_seek() {
        return Err(Error::not_supported(
            "init",
            "init=\"sequential\" with a source that is read in order",
            "it visits the rows in random order",
            "\"kmeans++\" or \"random\"",
        ));
    }
    let order = permutation(begin.data.n_rows() as u32, generator);
    let add = |rows: &[u32], ids: &[ComponentId], assign: &dyn Assign<F>, total: &mut Summary| {
        let step = LocalStep { likelihood, ids, assign, keep: begin.keep, cancel: begin.cancel };
        let mut rows: Vec<u64> = rows.iter().map(|&row| row.into()).collect();
        rows.sort_unstable();
        total.add(&step.run(&begin.data.pick(&rows)?, None, &mut [])?.summary)
    };
    // For every objective, because components without rows have no point estimates.
    let model = Model { objective: Objective::Variational, ..begin.model.clone() };
    let at_first = model.allocate(&total).expected_weights;
    let alike = at_first.windows(2).all(|pair| pair[0] == pair[1]);
    let n_single = if alike { begin.ids.len().min(order.len()) } else { 0 };
    let (single, shared) = order.split_at(n_single);
    for (row, id) in single.chunks(1).zip(begin.ids.chunks(1)) {
        add(row, id, &OneEach, &mut total)?;
    }
    for (version, rows) in shared.chunks(order.len().div_ceil(STEPS).max(1)).enumerate() {
        let globals = Globals::new(&model, &total, version as u64);
        let log_weights: Vec<f64> = globals.allocation.expected_weights.iter().map(|weight| weight.ln()).collect();
        let scorer: Box<dyn Scorer<F>> = likelihood.scorer(&globals.components(), &log_weights, Density::Predictive)?;
        let assign = ByScore {
            scorer: scorer.as_ref(),
            has_tail: false,
            width: begin.ids.len(),
            margin: None,
            abandon: true,
            row_terms: false,
            mask: None,
        };
        add(rows, begin.ids, &assign, &mut total)?;
    }
    Ok(total)
}
