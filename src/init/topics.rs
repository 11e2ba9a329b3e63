//! Initialisation of topic models: sums of words by topic (mathematics 11.5). Documents have no counts of topics yet.

use rand::RngExt;

use crate::error::{Error, Result};
use crate::init::{Beginning, Init, distinct_rows};
use crate::local_step::{FromLabels, FromTable};
use crate::memo::Memo;
use crate::rng::Generator;
use crate::simd::Scalar;
use crate::suffstats::Summary;

impl<F: Scalar> Beginning<'_, F> {
    /// Returns the memo of a topic model before its first visit. The start is dropped once a batch has been visited.
    pub(super) fn topics(&self, init: &Init<'_>) -> Result<Memo> {
        let (k, mut generator) = (self.ids.len(), self.generator());
        let mut start = match init {
            Init::KmeansPlusPlus => self.of_documents(&super::kmeans::smoothed_kmeans(self, &mut generator)?)?,
            Init::Random => self.of_seeds(&distinct_rows(self.data, k, &mut generator))?,
            Init::Labels(labels) => self.given(&FromLabels { labels })?.into_total(),
            Init::Table(values) => self.given(&FromTable { values, n_components: k })?.into_total(),
            Init::Summary { summary, .. } => {
                if summary.n_statistics != self.likelihood().n_statistics() {
                    return Err(Error::invalid("init", "a fit of another vocabulary", "a fit of the same vocabulary"));
                }
                Summary { ids: self.ids.to_vec(), documents: None, ..(*summary).clone() }
            }
            Init::Sequential => {
                let allowed = "\"kmeans++\", \"random\", labels, responsibilities or a fit";
                let reason = "documents belong to many topics at a time";
                return Err(Error::not_supported("init", "init=\"sequential\" for a topic model", reason, allowed));
            }
        };
        if !matches!(init, Init::Summary { .. }) {
            self.tell_apart(&mut start, &mut generator)?;
        }
        // From here on, units are words.
        let sums =
            start.statistics.chunks_exact(start.n_statistics.max(1)).map(|sums_of_topic| sums_of_topic.iter().sum());
        start.counts = sums.collect();
        start.mass = start.counts.iter().sum();
        start.log_base_measure = 0.0;
        start.entropies.fill(0.0);
        Ok(Memo::growing_from(start, self.source.n_batches().unwrap_or(1), self.mass))
    }

    /// The sums of the k-means++ result.
    fn of_documents(&self, seeded: &super::kmeans::Seeded) -> Result<Summary> {
        Ok(match seeded {
            super::kmeans::Seeded::Labels(labels) => self.given(&FromLabels { labels })?.into_total(),
            super::kmeans::Seeded::Summary(summary) => summary.clone(),
        })
    }

    /// The sums of one document per topic.
    fn of_seeds(&self, rows: &[u64]) -> Result<Summary> {
        let mut picked = rows.to_vec();
        picked.sort_unstable();
        picked.dedup();
        let places: Vec<u32> = rows.iter().map(|row| picked.partition_point(|other| other < row) as u32).collect();
        self.seeding().singles(&self.data.pick(&picked)?, &places)
    }

    /// Gives topics without words those of a random document, and perturbs the words of equal topics at random, because
    /// nothing else would ever distinguish them.
    fn tell_apart(&self, start: &mut Summary, generator: &mut Generator) -> Result<()> {
        let p = start.n_statistics;
        let total = |sums_of_topic: &[f64]| sums_of_topic.iter().sum::<f64>();
        let empty: Vec<usize> =
            (0..start.n_components()).filter(|&k| total(start.component(k).statistics) == 0.0).collect();
        if !empty.is_empty() {
            let rows = distinct_rows(self.data, empty.len(), generator);
            let seeds = self.of_seeds_of(&rows, start.n_components())?;
            for (&k, sums_of_topic) in empty.iter().zip(seeds.statistics.chunks_exact(p)) {
                start.statistics[k * p..][..p].copy_from_slice(sums_of_topic);
            }
        }
        let mut seen = std::collections::BTreeSet::new();
        for sums_of_topic in start.statistics.chunks_exact_mut(p) {
            let is_new = seen.insert(crate::hash::of_numbers(0, sums_of_topic.iter()));
            if !is_new || total(sums_of_topic) == 0.0 {
                for value in sums_of_topic.iter_mut() {
                    *value = (*value + 0.01) * generator.random_range(0.5..1.5);
                }
            }
        }
        Ok(())
    }

    /// Returns the sums of one document for each of some topics.
    fn of_seeds_of(&self, rows: &[u64], n_topics: usize) -> Result<Summary> {
        let ids = &self.ids[..rows.len().min(n_topics)];
        Beginning { ids, ..*self }.of_seeds(rows)
    }
}
