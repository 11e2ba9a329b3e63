//! K-means++ in the divergence of the likelihood, with swaps (mathematics 5.2; Ackermann & Bloemer 2009).
//!
//! Rows are compared with centres through smoothed statistics: lambda_0 + T(x) against the average lambda_0 + S_k / N_k
//! over the cluster's rows. (Against lambda_0 + S_k a large, tight cluster would be far from each of its own rows.)
//! Gaussians with a free mean compare rows with means instead: docs/decisions/kmeans-start.md. Seeds are drawn with
//! probability proportional to the divergence from the nearest seed, swaps replace poor seeds, and a few Lloyd steps
//! follow.

use crate::data::Dataset;
use crate::error::Result;
use crate::init::{Beginning, with_mass};
use crate::rng::Generator;
use crate::simd::Scalar;
use crate::suffstats::Summary;

/// Number of rows used for seeding, or 50 per component if that is more. Seeds from a subsample are as good.
const SUBSAMPLE: usize = 10_000;
const SUBSAMPLE_PER_COMPONENT: usize = 50;
/// Number of trial swaps: a constant plus a number per component.
const TRIALS: usize = 20;
const TRIALS_PER_COMPONENT: usize = 2;
/// Number of Lloyd steps after seeding.
const LLOYD_STEPS: usize = 5;

/// Result of k-means++.
#[allow(clippy::large_enum_variant, reason = "there is one, for a moment")]
pub enum Seeded {
    /// A component for every row of the data.
    Labels(Vec<u32>),
    /// The summary of a subsample, scaled to the mass of all data.
    Summary(Summary),
}

fn sample_size(k: usize) -> usize {
    SUBSAMPLE.max(SUBSAMPLE_PER_COMPONENT * k)
}

/// At most 10000 rows of positive mass (50 per component if that is more), ascending.
pub(super) fn sampled_rows<F: Scalar>(data: &dyn Dataset<F>, k: usize, generator: &mut Generator) -> Vec<u64> {
    let (size, heavy) = (sample_size(k), with_mass(data));
    let n = heavy.as_ref().map_or(data.n_rows(), Vec::len);
    let row = |index: usize| heavy.as_ref().map_or(index as u64, |rows| rows[index]);
    if n <= size {
        return (0..n).map(row).collect();
    }
    let mut picked: Vec<u64> = rand::seq::index::sample(generator, n, size).iter().map(row).collect();
    picked.sort_unstable();
    picked
}

/// Runs seeding, swaps and Lloyd steps on at most 10000 rows (50 per component if that is more).
///
/// # Errors
/// [`crate::Error::Cancelled`]; [`crate::Error::Numerical`].
pub fn smoothed_kmeans<F: Scalar>(begin: &Beginning<'_, F>, generator: &mut Generator) -> Result<Seeded> {
    let k = begin.ids.len();
    let n = begin.data.n_rows();
    let whole = n <= sample_size(k);
    let sample = sampled_rows(begin.data, k, generator);
    let units = begin.data.pick(&sample)?;
    let seeding = begin.seeding();
    let mut seeds = seeding.seeds(&units, generator)?;
    // Swaps have not been found to help other likelihoods, whose divergences cost more.
    if seeding.by_distance()? {
        seeding.swap_seeds(&units, &mut seeds, TRIALS + TRIALS_PER_COMPONENT * k, generator)?;
    }
    let (summary, labels) = seeding.settle(&units, &seeds.rows, LLOYD_STEPS)?;
    // Labels of single rows are no help where rows are in other processes.
    if whole && !begin.data.has_shards() {
        // Rows without mass contribute nothing, whatever their label.
        let mut all = vec![0; n];
        sample.iter().zip(labels).for_each(|(&row, label)| all[row as usize] = label);
        return Ok(Seeded::Labels(all));
    }
    // The mass of all rows, added up in another order, may differ in the last digit.
    Ok(Seeded::Summary(if whole { summary } else { summary.scale(begin.mass / summary.mass) }))
}
