//! K-means++ in the divergence of the likelihood, with swaps (mathematics 5.2; Ackermann & Bloemer 2009).
//!
//! Rows are compared with centres through smoothed statistics: lambda_0 + T(x) against the average lambda_0 + S_k / N_k
//! over the cluster's rows. (Against lambda_0 + S_k a large, tight cluster would be far from each of its own rows.)
//! Gaussians with a free mean compare rows with means instead: docs/decisions/kmeans-start.md. Seeds are drawn with
//! probability proportional to the divergence from the nearest seed, swaps replace poor seeds, and a few Lloyd steps
//! follow.

use crate::component::ComponentId;
use crate::data::RowUnits;
use crate::error::Result;
use crate::init::swaps::Seeds;
use crate::init::{Beginning, with_mass};
use crate::likelihood::{Density, Likelihood, Metric};
use crate::local_step::{ByScore, Chunk, Keep, LocalStep, OneEach, RawScores, Tap};
use crate::parallel::Cancel;
use crate::rng::{Choices, Generator};
use crate::simd::Scalar;
use crate::suffstats::{Sufficient, Summary};

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

/// Collects the best component of every unit.
#[derive(Default, PartialEq)]
struct Labels(Vec<u32>);

impl Tap for Labels {
    fn observe(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        let responsibilities = chunk.responsibilities;
        self.0.extend((0..responsibilities.len()).map(|unit| responsibilities.best(unit)));
        Ok(())
    }
}

/// Collects the scores of every unit.
#[derive(Default)]
struct SeenScores(Vec<f64>);

impl Tap for SeenScores {
    fn observe(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        self.0.extend_from_slice(&chunk.responsibilities.values);
        Ok(())
    }
}

/// Runs seeding, swaps and Lloyd steps on at most 10000 rows (50 per component if that is more).
///
/// # Errors
/// [`crate::Error::Cancelled`]; [`crate::Error::Numerical`].
pub fn smoothed_kmeans<F: Scalar>(begin: &Beginning<'_, F>, generator: &mut Generator) -> Result<Seeded> {
    let k = begin.ids.len();
    let n = begin.data.n_rows();
    let size = SUBSAMPLE.max(SUBSAMPLE_PER_COMPONENT * k);
    let heavy = with_mass(begin.data);
    let whole = n <= size;
    let sample: Vec<u32> = if whole || heavy.len() <= size {
        heavy
    } else {
        let mut picked: Vec<u32> =
            rand::seq::index::sample(generator, heavy.len(), size).iter().map(|i| heavy[i]).collect();
        picked.sort_unstable();
        picked
    };
    let units = begin.data.pick(&sample)?;
    let seeding = begin.seeding();
    let mut seeds = seeding.seeds(&units, generator)?;
    // Swaps have not been found to help other likelihoods, whose divergences cost more.
    if seeding.by_distance()? {
        seeding.swap_seeds(&units, &mut seeds, TRIALS + TRIALS_PER_COMPONENT * k, generator)?;
    }
    let (summary, labels) = seeding.settle(&units, &seeds.rows, LLOYD_STEPS)?;
    if whole {
        // Rows without mass contribute nothing, whatever their label.
        let mut all = vec![0; n];
        sample.iter().zip(labels).for_each(|(&row, label)| all[row as usize] = label);
        return Ok(Seeded::Labels(all));
    }
    Ok(Seeded::Summary(summary.scale(begin.mass / summary.mass)))
}

/// Seeds units in the divergence of the likelihood.
pub struct Seeder<'a, F: Scalar> {
    /// The likelihood.
    pub likelihood: &'a dyn Likelihood<F>,
    /// The components to seed, each from one unit.
    pub ids: &'a [ComponentId],
    /// Checked between blocks.
    pub cancel: &'a Cancel,
}

impl<F: Scalar> Seeder<'_, F> {
    /// Whether the divergence is a distance between rows and means.
    fn by_distance(&self) -> Result<bool> {
        let nothing = vec![0.0; self.likelihood.n_statistics()];
        let metric = self.likelihood.metric(Sufficient { count: 0.0, statistics: &nothing })?;
        Ok(matches!(metric, Metric::Columns(_)))
    }

    /// A summary with one unit per component, each of mass 1.
    pub(super) fn singles(&self, units: &RowUnits<'_, F>, rows: &[u32]) -> Result<Summary> {
        let step = LocalStep {
            likelihood: self.likelihood,
            ids: &self.ids[..rows.len()],
            assign: &OneEach,
            keep: Keep::Summary,
            cancel: self.cancel,
        };
        Ok(step.run(&units.select(rows), None, &mut [])?.summary.averages())
    }

    /// Returns the summary and hard labels after at most `steps` Lloyd steps from the seeds.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`]; [`crate::Error::Numerical`].
    pub fn settle(&self, units: &RowUnits<'_, F>, seeds: &[u32], steps: usize) -> Result<(Summary, Vec<u32>)> {
        let mut summary = self.singles(units, seeds)?;
        let mut labels = Labels::default();
        for _ in 0..=steps {
            let (next, moved) = self.assign(units, &summary)?;
            let settled = moved == labels;
            (summary, labels) = (next, moved);
            if settled {
                break;
            }
        }
        Ok((summary, labels.0))
    }

    /// Assigns every unit to the component with the smallest divergence.
    fn assign(&self, units: &RowUnits<'_, F>, centres: &Summary) -> Result<(Summary, Labels)> {
        let zeros = vec![0.0; centres.n_components()];
        let averages = centres.clone().averages();
        let scorer = self.likelihood.scorer(&averages.components(), &zeros, Density::Divergence)?;
        let step = LocalStep {
            likelihood: self.likelihood,
            ids: &centres.ids,
            assign: &ByScore {
                scorer: scorer.as_ref(),
                tail: None,
                width: 1,
                margin: None,
                abandon: true,
                row_terms: false,
            },
            keep: Keep::Summary,
            cancel: self.cancel,
        };
        let mut labels = Labels::default();
        let outcome = step.run(units, None, &mut [&mut labels])?;
        Ok((outcome.summary, labels))
    }

    /// Divergences of every unit from each of a few rows, (n, rows).
    pub(super) fn divergences(&self, units: &RowUnits<'_, F>, rows: &[u32]) -> Result<Vec<f64>> {
        let mut distances = self.divergences_from(units, &self.singles(units, rows)?)?;
        for (column, &row) in rows.iter().enumerate() {
            // Rounding leaves a small divergence of a seed from itself; it must not be drawn again because of it.
            distances[row as usize * rows.len() + column] = 0.0;
        }
        Ok(distances)
    }

    /// Divergences of every unit from each centre, (n, K).
    pub(super) fn divergences_from(&self, units: &RowUnits<'_, F>, centres: &Summary) -> Result<Vec<f64>> {
        let zeros = vec![0.0; centres.n_components()];
        let scorer = self.likelihood.scorer(&centres.components(), &zeros, Density::Divergence)?;
        let step = LocalStep {
            likelihood: self.likelihood,
            ids: &centres.ids,
            assign: &RawScores { scorer: scorer.as_ref() },
            keep: Keep::Nothing,
            cancel: self.cancel,
        };
        let mut scores = SeenScores::default();
        step.run(units, None, &mut [&mut scores])?;
        Ok(scores.0.into_iter().map(|score| (-score).max(0.0)).collect())
    }

    /// Draws K seeds: the first by mass, each further one by mass x divergence from the nearest seed so far, the best
    /// of `2 + ln K` draws. All draws use `choices`.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`]; [`crate::Error::Numerical`].
    pub fn seed_rows(&self, units: &RowUnits<'_, F>, choices: &mut dyn Choices) -> Result<Vec<u32>> {
        self.seeds(units, choices).map(|seeds| seeds.rows)
    }

    fn seeds(&self, units: &RowUnits<'_, F>, choices: &mut dyn Choices) -> Result<Seeds> {
        let k = self.ids.len();
        let masses: Vec<f64> = (0..units.len()).map(|unit| units.mass(unit)).collect();
        let n_trials = 2 + (k as f64).ln() as usize;
        let mut seeds = Seeds::of(masses.clone());
        let first = choices.choose(&masses) as u32;
        seeds.push(first, self.divergences(units, &[first])?.into_iter());
        while seeds.rows.len() < k {
            let potential = seeds.potential();
            // With fewer distinct rows than components, some rows are repeated.
            let weights = if potential.iter().sum::<f64>() > 0.0 { &potential } else { &masses };
            let trials: Vec<u32> = (0..n_trials).map(|_| choices.choose(weights) as u32).collect();
            let distances = self.divergences(units, &trials)?;
            let mut left = vec![0.0; n_trials];
            for ((row, so_far), &mass) in distances.chunks_exact(n_trials).zip(seeds.distances()).zip(&masses) {
                left.iter_mut().zip(row).for_each(|(left, &distance)| *left += mass * distance.min(so_far));
            }
            // Ties go to the first draw.
            let best = (1..n_trials).fold(0, |best, trial| if left[trial] < left[best] { trial } else { best });
            seeds.push(trials[best], distances.into_iter().skip(best).step_by(n_trials));
        }
        Ok(seeds)
    }
}
