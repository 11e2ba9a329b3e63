//! Bregman k-means++ on smoothed statistics (mathematics 5.2; Ackermann & Bloemer 2009).
//!
//! A single row has a singular covariance, so rows are compared with centres through smoothed statistics,
//! lambda_0 + T(x) against the average lambda_0 + S_k / N_k over the cluster's rows. (Against lambda_0 + S_k a large,
//! tight cluster would be far from every one of its own rows. For a Gaussian with a free mean the average is not the
//! centre of least total divergence; that one, tried on digits, led to a lower bound.) Seeds are drawn with probability
//! proportional to the divergence from the nearest seed, and a few Lloyd steps follow.

use crate::component::ComponentId;
use crate::data::RowUnits;
use crate::error::Result;
use crate::init::{Beginning, with_mass};
use crate::likelihood::{Density, Likelihood};
use crate::local_step::{ByScore, Chunk, Keep, LocalStep, OneEach, RawScores, Tap};
use crate::parallel::Cancel;
use crate::rng::{Choices, Generator};
use crate::simd::Scalar;
use crate::suffstats::Summary;

/// Seeding looks at this many rows, or 50 a component if that is more: the seeds of a subsample are as good.
const SUBSAMPLE: usize = 10_000;
const SUBSAMPLE_PER_COMPONENT: usize = 50;
/// Lloyd steps after seeding.
const LLOYD_STEPS: usize = 5;

/// What k-means++ returns.
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

/// Collects the values of every unit.
#[derive(Default)]
struct SeenScores(Vec<f64>);

impl Tap for SeenScores {
    fn observe(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        self.0.extend_from_slice(&chunk.responsibilities.values);
        Ok(())
    }
}

/// Seeds and Lloyd steps on at most 10000 rows (50 a component if more).
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
    let seeds = seeding.seed_rows(&units, generator)?;
    let (summary, labels) = seeding.settle(&units, &seeds, LLOYD_STEPS)?;
    if whole {
        // Rows without mass carry nothing, with any label.
        let mut all = vec![0; n];
        sample.iter().zip(labels).for_each(|(&row, label)| all[row as usize] = label);
        return Ok(Seeded::Labels(all));
    }
    Ok(Seeded::Summary(summary.scale(begin.mass / summary.mass)))
}

/// Units in the divergence of the likelihood.
pub struct Seeder<'a, F: Scalar> {
    /// The likelihood.
    pub likelihood: &'a dyn Likelihood<F>,
    /// The components that are to start, each at one unit.
    pub ids: &'a [ComponentId],
    /// Stops between blocks.
    pub cancel: &'a Cancel,
}

impl<F: Scalar> Seeder<'_, F> {
    /// A summary with one unit a component, each of mass 1.
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

    /// Hard labels from seeds, after `steps` Lloyd steps or fewer, and what the components have then.
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

    /// Hard assignment of every unit to the component of least divergence.
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
    fn divergences(&self, units: &RowUnits<'_, F>, rows: &[u32]) -> Result<Vec<f64>> {
        let centres = self.singles(units, rows)?;
        let scorer = self.likelihood.scorer(&centres.components(), &vec![0.0; rows.len()], Density::Divergence)?;
        let step = LocalStep {
            likelihood: self.likelihood,
            ids: &centres.ids,
            assign: &RawScores { scorer: scorer.as_ref() },
            keep: Keep::Nothing,
            cancel: self.cancel,
        };
        let mut scores = SeenScores::default();
        step.run(units, None, &mut [&mut scores])?;
        let mut distances = scores.0;
        for (at, distance) in distances.iter_mut().enumerate() {
            // Rounding leaves a tiny divergence; a seed must not be drawn again because of it.
            let itself = at / rows.len() == rows[at % rows.len()] as usize;
            *distance = if itself { 0.0 } else { (-*distance).max(0.0) };
        }
        Ok(distances)
    }

    /// K seeds: the first by mass, each further one by mass x divergence from the nearest seed so far, the best of
    /// `2 + ln K` draws. Every draw goes through `choices`.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`]; [`crate::Error::Numerical`].
    pub fn seed_rows(&self, units: &RowUnits<'_, F>, choices: &mut dyn Choices) -> Result<Vec<u32>> {
        let k = self.ids.len();
        let masses: Vec<f64> = (0..units.len()).map(|unit| units.mass(unit)).collect();
        let n_trials = 2 + (k as f64).ln() as usize;
        let mut seeds = vec![choices.choose(&masses) as u32];
        let mut nearest = self.divergences(units, &seeds)?;
        while seeds.len() < k {
            let potential: Vec<f64> = masses.iter().zip(&nearest).map(|(mass, d)| mass * d).collect();
            // Fewer distinct rows than components: all that is left to do is to repeat some.
            let weights = if potential.iter().sum::<f64>() > 0.0 { &potential } else { &masses };
            let trials: Vec<u32> = (0..n_trials).map(|_| choices.choose(weights) as u32).collect();
            let distances = self.divergences(units, &trials)?;
            let mut left = vec![0.0; n_trials];
            for ((row, &so_far), &mass) in distances.chunks_exact(n_trials).zip(&nearest).zip(&masses) {
                left.iter_mut().zip(row).for_each(|(left, &distance)| *left += mass * distance.min(so_far));
            }
            // The first of equals.
            let best = (1..n_trials).fold(0, |best, trial| if left[trial] < left[best] { trial } else { best });
            seeds.push(trials[best]);
            let chosen = distances.iter().skip(best).step_by(n_trials);
            nearest.iter_mut().zip(chosen).for_each(|(so_far, &distance)| *so_far = distance.min(*so_far));
        }
        Ok(seeds)
    }
}
