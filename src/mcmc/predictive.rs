//! New rows under draws: the posterior predictive density, and the most probable cluster of a row.

use crate::error::{Error, Result};
use crate::mcmc::{RowTable, Target};
use crate::parallel::{Cancel, blocks, try_map};
use crate::process::Occupancy;
use crate::responsibilities::no_finite_weight;
use crate::room::check_room;
use crate::scoring::Row;
use crate::special::log_sum_exp;

/// Number of draws scored in parallel. Their densities are then added up in order.
const AT_ONCE: usize = 32;
/// Number of new rows that one task scores under a draw.
const BLOCK: usize = 64;

/// One draw: a label for each row, and the values reported by the process.
#[derive(Debug, Clone, Copy)]
pub struct Predictive<'a> {
    /// Labels from 0, (n,).
    pub labels: &'a [i32],
    /// Learned parameters and auxiliary values.
    pub traced: &'a [f64],
}

/// The clusters of a draw, each with the exact log prior weight for one more row (mathematics 8.3).
#[derive(Debug)]
pub struct Weighed {
    caches: Vec<f64>,
    /// The target of the draw, if it differs from that of the trace.
    own: Option<Target>,
    /// Log weight of each cluster, followed by that of a new one; their exponentials sum to one.
    log_weights: Vec<f64>,
}

impl Weighed {
    /// Builds the clusters of a draw.
    ///
    /// # Errors
    /// [`Error::Format`] for invalid labels; as [`crate::likelihood::Conjugate::log_marginal`].
    pub fn new(target: &Target, draw: Predictive<'_>) -> Result<Self> {
        let foreign = || Error::Format { message: "its labels do not match the rows".to_owned() };
        let most = draw.labels.iter().max().and_then(|&most| usize::try_from(most).ok());
        let n_clusters = most.ok_or_else(foreign)? + 1;
        if draw.labels.len() != target.n_rows() || n_clusters > target.n_rows() {
            return Err(foreign());
        }
        let (own, state) = target.of_draw(draw.traced)?;
        let target = own.as_ref().unwrap_or(target);
        let len = target.empty.len();
        let (mut caches, mut sizes) = (target.empty.repeat(n_clusters), vec![0_usize; n_clusters]);
        for (row, &label) in draw.labels.iter().enumerate() {
            let label = usize::try_from(label).map_err(|_| foreign())?;
            sizes[label] += 1;
            target.urn().add(&mut caches[label * len..][..len], target.table.row(row))?;
        }
        if sizes.contains(&0) {
            return Err(foreign());
        }
        let law = &target.process;
        let rest = |units: usize, blocks: usize| law.log_rest(Occupancy { units, blocks }, &state);
        let (n, k) = (target.n_rows(), n_clusters);
        let (before, joined, opened) = (rest(n, k), rest(n + 1, k), rest(n + 1, k + 1));
        let join = |&size: &usize| law.log_block(size + 1, &state) - law.log_block(size, &state) + joined - before;
        let mut log_weights: Vec<f64> = sizes.iter().map(join).collect();
        log_weights.push(law.log_block(1, &state) + opened - before);
        Ok(Self { caches, own, log_weights })
    }

    /// Log weight plus log density of a row under each cluster, followed by a new cluster; `None` if a density is out
    /// of range, because then those of the others say nothing about which is the largest.
    fn score(&self, target: &Target, row: Row<'_>) -> Result<Option<Vec<f64>>> {
        let target = self.own.as_ref().unwrap_or(target);
        let mut scores = vec![0.0; self.log_weights.len()];
        let n_clusters = scores.len() - 1;
        target.urn().log_predictives(&self.caches, row, &mut scores[..n_clusters])?;
        target.urn().log_predictives(&target.empty, row, &mut scores[n_clusters..])?;
        let in_range = scores.iter().all(|score| score.is_finite());
        scores.iter_mut().zip(&self.log_weights).for_each(|(score, weight)| *score += weight);
        Ok(in_range.then_some(scores))
    }
}

/// Refuses draws and rows for which the draws that are scored together do not fit in memory.
fn check_draws(target: &Target, draws: &[Predictive<'_>], new: &RowTable) -> Result<()> {
    let most = draws.iter().flat_map(|draw| draw.labels).max().and_then(|&most| usize::try_from(most).ok());
    // Other labels are refused later.
    let clusters = most.map_or(0, |most| most + 1).min(target.n_rows());
    let at_once = draws.len().min(AT_ONCE);
    let of_draw = clusters.saturating_mul(target.empty.len() + 1).saturating_add(new.n_rows());
    check_room(of_draw.saturating_mul(at_once), |size| {
        let found =
            format!("{} rows, for which {at_once} draws of up to {clusters} clusters take {size}", new.n_rows());
        Error::invalid("X", found, "few enough rows, and a trace of few enough clusters, to fit in memory")
    })
}

/// Returns the log of the posterior predictive density of each row of `new`, averaged over draws, nats, in the data's
/// units; minus infinity for rows whose squared distance overflows.
///
/// # Errors
/// As [`Weighed::new`]; [`Error::InvalidArgument`] for `X` if the clusters and densities of some draws do not fit in
/// memory; [`Error::Cancelled`].
pub fn log_predictive(target: &Target, draws: &[Predictive<'_>], new: &RowTable, cancel: &Cancel) -> Result<Vec<f64>> {
    check_draws(target, draws, new)?;
    let mut totals = vec![f64::NEG_INFINITY; new.n_rows()];
    for some in draws.chunks(AT_ONCE) {
        let scored = try_map(some.len(), |draw| {
            let clusters = Weighed::new(target, some[draw])?;
            let blocks: Vec<_> = blocks(new.n_rows(), BLOCK).collect();
            // In the total, NaN stays.
            let density =
                |row| Ok(clusters.score(target, new.row(row))?.map_or(f64::NAN, |scores| log_sum_exp(&scores)));
            let scored = try_map(blocks.len(), |index| {
                cancel.check()?;
                blocks[index].clone().map(density).collect::<Result<Vec<_>>>()
            })?;
            Ok(scored.concat())
        })?;
        for densities in scored {
            totals.iter_mut().zip(densities).for_each(|(total, density)| *total = log_sum_exp(&[*total, density]));
        }
    }
    let common = (draws.len() as f64).ln() + target.log_volume;
    let density = |total: f64| if total.is_nan() { f64::NEG_INFINITY } else { total - common };
    Ok(totals.into_iter().map(density).collect())
}

/// Returns the most probable cluster of a draw for each row of `new`; the number of clusters stands for a new one.
///
/// # Errors
/// As [`Weighed::new`]; [`Error::Numerical`] for a row whose squared distance overflows; [`Error::Cancelled`].
pub fn predict(target: &Target, draw: Predictive<'_>, new: &RowTable, cancel: &Cancel) -> Result<Vec<i64>> {
    let clusters = Weighed::new(target, draw)?;
    try_map(new.n_rows(), |row| {
        cancel.check()?;
        let scores = clusters.score(target, new.row(row))?.ok_or_else(|| no_finite_weight::<f64>(row, &[]))?;
        let best = scores
            .iter()
            .enumerate()
            .fold(0, |best, (cluster, score)| if *score > scores[best] { cluster } else { best });
        Ok(i64::try_from(best).unwrap_or(i64::MAX))
    })
}
