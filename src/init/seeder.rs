//! Seeds and Lloyd steps in the divergence of the likelihood (mathematics 5.2).

use crate::component::ComponentId;
use crate::data::RowUnits;
use crate::error::Result;
use crate::init::seeds::Seeds;
use crate::likelihood::{Density, Likelihood, Metric};
use crate::local_step::{ByScore, Chunk, Keep, LocalStep, OneEach, RawScores, Tap};
use crate::parallel::Cancel;
use crate::rng::Choices;
use crate::simd::Scalar;
use crate::suffstats::{Sufficient, Summary};

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
    pub(super) fn by_distance(&self) -> Result<bool> {
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
                has_tail: false,
                width: 1,
                margin: None,
                abandon: true,
                row_terms: false,
                mask: None,
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
        for (seed, &row) in rows.iter().enumerate() {
            // Rounding leaves a small divergence of a seed from itself; it must not be drawn again because of it.
            distances[row as usize * rows.len() + seed] = 0.0;
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

    /// The same, with the two nearest seeds of every unit.
    pub(super) fn seeds(&self, units: &RowUnits<'_, F>, choices: &mut dyn Choices) -> Result<Seeds> {
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
