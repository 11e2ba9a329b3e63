//! The weights of all words in all topics, in linear space, which the local step of documents reads (mathematics 11.3).

use crate::likelihood::Emissions;
use crate::objective::Objective;
use crate::parallel::{blocks, for_each};
use crate::simd::Lines;
use crate::suffstats::Sufficient;

/// Length of the widest vector; rows are padded to a multiple of it.
pub const LANES: usize = 16;
/// Number of words computed per task.
const WORDS: usize = 64;
/// Lower limit of the weight of a word in a topic, relative to its best topic. Topic weights have the same limit, so
/// that no product underflows in f32.
pub const LEAST: f32 = 1e-18;

/// exp E log phi_kv by word, with the K topics stored consecutively.
#[derive(Debug, Default)]
pub struct TopicTable {
    /// K.
    n_topics: usize,
    /// K padded to whole vectors; the padding has weight zero.
    stride: usize,
    /// By word, relative to the best topic and without the topics' factors; (V, stride).
    rows: Lines<f32>,
    /// Log of the scale by which each row was divided, nats, (V,).
    log_scales: Vec<f64>,
    /// The factors of the topics, (K,).
    factors: Vec<f64>,
}

impl TopicTable {
    /// Computes the rows of the words that are `used` and leaves the others unchanged. Statistics are multiplied by
    /// `growth`.
    pub fn fill(
        &mut self,
        emissions: &dyn Emissions,
        objective: Objective,
        topics: &[Sufficient<'_>],
        growth: f64,
        used: &[bool],
    ) {
        let (k, v) = (topics.len(), used.len());
        self.n_topics = k;
        self.stride = k.next_multiple_of(LANES);
        self.factors = topics.iter().map(|topic| emissions.of_topic(growth * topic.count, objective)).collect();
        if self.rows.len() != v * self.stride {
            self.rows.reset(v * self.stride, 0.0);
        }
        self.log_scales.resize(v, 0.0);
        let items: Vec<_> = self
            .rows
            .chunks_mut(WORDS * self.stride)
            .zip(self.log_scales.chunks_mut(WORDS))
            .zip(blocks(v, WORDS))
            .filter(|(_, words)| used[words.clone()].contains(&true))
            .collect();
        let stride = self.stride;
        for_each(items, |((rows, log_scales), words)| {
            let n = words.len();
            let (mut sums, mut column, mut best) = ([0.0; WORDS], [0.0; WORDS], [0.0_f64; WORDS]);
            let mut all = vec![0.0; n * k];
            for (topic, topic_sums) in topics.iter().enumerate() {
                let of_words = &topic_sums.statistics[words.clone()];
                sums.iter_mut().zip(of_words).for_each(|(sum, statistic)| *sum = growth * statistic);
                emissions.fill(words.start, &sums[..n], objective, &mut column[..n]);
                for ((&value, best), all) in
                    column[..n].iter().zip(&mut best).zip(all.iter_mut().skip(topic).step_by(k))
                {
                    *all = value;
                    *best = best.max(value);
                }
            }
            for (((row, all), best), log_scale) in
                rows.chunks_exact_mut(stride).zip(all.chunks_exact(k)).zip(best).zip(log_scales)
            {
                // A word with zero weight in all topics carries no information about topics.
                let scale = if best > 0.0 { 1.0 / best } else { 0.0 };
                *log_scale = if best > 0.0 { best.ln() } else { 0.0 };
                for (to, from) in row.iter_mut().zip(all) {
                    *to = if scale > 0.0 { ((from * scale) as f32).max(LEAST) } else { 1.0 };
                }
            }
        });
    }

    /// K.
    pub fn n_topics(&self) -> usize {
        self.n_topics
    }

    /// K padded to whole vectors.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// All rows, stored consecutively.
    pub fn rows(&self) -> &[f32] {
        &self.rows
    }

    /// The factors of the topics.
    pub fn factors(&self) -> &[f64] {
        &self.factors
    }

    /// Log of the scale by which the weights of `word` were divided, nats.
    pub fn log_scale(&self, word: usize) -> f64 {
        self.log_scales[word]
    }
}
