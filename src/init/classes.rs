//! The start of a fit with partial labels: k-means++ whose first seeds are the means of the classes. Rows of a class
//! belong to seeds of that class, and rows of unknown class to free seeds if there are any (mathematics 3.2; Basu,
//! Banerjee & Mooney 2002). So at first a component of a class is made of rows that are known to be in it. The
//! first local step lets rows of unknown class join it.

use crate::component::Class;
use crate::data::{PartialLabels, RowUnits};
use crate::error::Result;
use crate::init::kmeans::sampled_rows;
use crate::init::{Beginning, Init};
use crate::likelihood::Density;
use crate::local_step::{ByScore, FromLabels, Keep, LocalStep, Mask};
use crate::memo::Memo;
use crate::rng::Choices;
use crate::simd::Scalar;
use crate::suffstats::Summary;

/// SampledRows rows, and the divergence of each from the nearest seed that it may belong to.
struct SampledRows {
    classes: Vec<Class>,
    masses: Vec<f64>,
    distances: Vec<f64>,
}

impl Init<'_> {
    /// The classes of the `k` components of a start that has its own.
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] for `init` if rows of two classes share a component, or if a class has none.
    pub fn classes(&self, labels: &PartialLabels, k: usize) -> Result<Option<Vec<Class>>> {
        match self {
            Self::Labels(components) => labels.of_components(components, k).map(Some),
            Self::Summary { classes, .. } => labels.numbered(classes, k).map(Some),
            _ => Ok(None),
        }
    }
}

impl<F: Scalar> Beginning<'_, F> {
    /// Returns the memo for the first global step of a fit with labels, and the class of each component.
    ///
    /// # Errors
    /// As [`Beginning::memo`].
    pub fn memo_of_classes(&self, init: &Init<'_>, labels: &PartialLabels) -> Result<(Memo, Vec<Class>)> {
        if let Some(classes) = init.classes(labels, self.ids.len())? {
            return Ok((self.memo(init)?, classes));
        }
        let (seeds, classes) = self.seeds_of_classes(labels)?;
        // Rows of unknown class belong to free seeds as if these had a class of their own.
        let unknown = classes.contains(&None).then_some(labels.n_classes() as u32);
        let at_first = |classes: &[Class]| classes.iter().map(|class| class.or(unknown)).collect::<Vec<Class>>();
        let (of_rows, of_seeds) = (at_first(labels.rows()), at_first(&classes));
        let zeros = vec![0.0; seeds.n_components()];
        let scorer = self.likelihood().scorer(&seeds.components(), &zeros, Density::Divergence)?;
        let assign = ByScore {
            scorer: scorer.as_ref(),
            has_tail: false,
            width: 1,
            margin: None,
            abandon: true,
            row_terms: false,
            mask: Some(Mask { rows: &of_rows, components: &of_seeds }),
        };
        Ok((self.given(&assign)?, classes))
    }

    /// One seed for each class, its mean row, and further seeds that are rows. A further seed has the class of its row,
    /// and the first one is of unknown class if any row is, so that rows of no class have a component.
    fn seeds_of_classes(&self, labels: &PartialLabels) -> Result<(Summary, Vec<Class>)> {
        let (k, mut generator) = (self.ids.len(), self.generator());
        let n_batches = self.source.n_batches().unwrap_or(1);
        self.check_room(k, if self.by_batch { n_batches } else { 0 })?;
        let means = self.means(labels)?;
        let mut classes: Vec<Class> = (0..labels.n_classes() as u32).map(Some).collect();
        let sample = sampled_rows(self.data, k, &mut generator);
        let units = self.data.pick(&sample)?;
        let mut rows = self.sampled(&units, &means, labels)?;
        let mut picked = Vec::new();
        let n_trials = 2 + (k as f64).ln() as usize;
        while classes.len() < k {
            let weights = rows.weights();
            let trials: Vec<u32> = (0..n_trials).map(|_| generator.choose(&weights) as u32).collect();
            let distances = self.seeding().divergences(&units, &trials)?;
            let left: Vec<f64> = (0..n_trials)
                .map(|trial| rows.left(trials[trial], distances.iter().skip(trial).step_by(n_trials)))
                .collect();
            // Ties go to the first draw.
            let best = (1..n_trials).fold(0, |best, trial| if left[trial] < left[best] { trial } else { best });
            rows.take(trials[best], distances.iter().skip(best).step_by(n_trials));
            classes.push(rows.classes[trials[best] as usize]);
            picked.push(trials[best]);
        }
        let mut seeds = Summary::empty(self.ids.to_vec(), means.n_statistics, false);
        (0..means.n_components()).for_each(|class| seeds.add_component(class, &means, class));
        if !picked.is_empty() {
            let singles = self.seeding().singles(&units, &picked)?;
            (0..picked.len()).for_each(|seed| seeds.add_component(means.n_components() + seed, &singles, seed));
        }
        Ok((seeds, classes))
    }

    /// The mean row of every class.
    fn means(&self, labels: &PartialLabels) -> Result<Summary> {
        let numbers: Vec<u32> = labels.rows().iter().map(|class| class.unwrap_or(0)).collect();
        let step = LocalStep {
            likelihood: self.likelihood(),
            ids: &self.ids[..labels.n_classes()],
            assign: &FromLabels { labels: &numbers },
            keep: Keep::Summary,
            cancel: self.cancel,
        };
        let mut sums = Summary::empty(step.ids.to_vec(), self.likelihood().n_statistics(), false);
        for batch in 0..self.source.n_batches().unwrap_or(1) {
            sums.add(&self.sum_of_shards(batch, |units| {
                let has_class = |&unit: &u32| labels.rows()[units.row_number(unit as usize)].is_some();
                let list: Vec<u32> = (0..units.len() as u32).filter(has_class).collect();
                Ok(step.run(&units.select(&list), None, &mut [])?.summary)
            })?)?;
        }
        Ok(sums.averages())
    }

    fn sampled(&self, units: &RowUnits<'_, F>, means: &Summary, labels: &PartialLabels) -> Result<SampledRows> {
        let classes: Vec<Class> = (0..units.len()).map(|unit| labels.rows()[units.row_number(unit)]).collect();
        let from_means = self.seeding().divergences_from(units, means)?;
        let nearest = |(class, distances): (&Class, &[f64])| class.map_or(f64::INFINITY, |k| distances[k as usize]);
        let distances = classes.iter().zip(from_means.chunks_exact(labels.n_classes())).map(nearest).collect();
        let masses = (0..units.len()).map(|unit| units.mass(unit)).collect();
        Ok(SampledRows { classes, masses, distances })
    }
}

impl SampledRows {
    /// The weights by which the next seed is drawn: the masses of rows without a seed that they may belong to, if there
    /// are any, otherwise mass times divergence, and the mass alone if all rows are seeds.
    fn weights(&self) -> Vec<f64> {
        let all = || self.masses.iter().zip(&self.distances);
        if self.distances.contains(&f64::INFINITY) {
            return all().map(|(&mass, &distance)| if distance == f64::INFINITY { mass } else { 0.0 }).collect();
        }
        let weights: Vec<f64> = all().map(|(mass, distance)| mass * distance).collect();
        if weights.iter().sum::<f64>() > 0.0 { weights } else { self.masses.clone() }
    }

    /// The sum of mass times divergence from the nearest seed with one more seed, at these distances from all rows.
    fn left<'a>(&self, seed: u32, distances: impl Iterator<Item = &'a f64>) -> f64 {
        let nearest = |(row, &distance): (usize, &f64)| {
            let joins = self.classes[row] == self.classes[seed as usize];
            self.masses[row] * if joins { distance.min(self.distances[row]) } else { self.distances[row] }
        };
        distances.enumerate().map(nearest).sum()
    }

    /// Adds a seed.
    fn take<'a>(&mut self, seed: u32, distances: impl Iterator<Item = &'a f64>) {
        for (row, &distance) in distances.enumerate() {
            if self.classes[row] == self.classes[seed as usize] {
                self.distances[row] = distance.min(self.distances[row]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two rows of class 0, one of class 1 and one of no class, of these masses and divergences from their seeds.
    fn rows() -> SampledRows {
        let classes = vec![Some(0), Some(0), Some(1), None];
        SampledRows { classes, masses: vec![1.0, 2.0, 4.0, 8.0], distances: vec![3.0, 5.0, 7.0, 9.0] }
    }

    #[test]
    fn a_seed_is_judged_by_the_rows_that_it_may_have() {
        // All rows are near the seed, but only those of its class may join it.
        let near = [0.0, 1.0, 0.5, 2.0];
        let others = |of: [f64; 4]| of.iter().sum::<f64>();
        assert_eq!(rows().left(0, near.iter()), others([0.0, 2.0, 28.0, 72.0]));
        assert_eq!(rows().left(2, near.iter()), others([3.0, 10.0, 2.0, 72.0]));
        assert_eq!(rows().left(3, near.iter()), others([3.0, 10.0, 28.0, 16.0]));
    }

    #[test]
    fn what_is_left_is_what_stays_once_a_seed_is_taken() {
        let near = [4.0, 1.0, 0.5, 2.0];
        for seed in 0..4 {
            let (left, mut rows) = (rows().left(seed, near.iter()), rows());
            rows.take(seed, near.iter());
            assert_eq!(left, rows.weights().iter().sum::<f64>(), "{seed}");
        }
    }
}
