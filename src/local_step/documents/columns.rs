//! Some of the topics, as columns of the weights of a document's words.

use crate::local_step::documents::kernels::{WeighTopics, scale_weights};
use crate::local_step::documents::table::LANES;
use crate::simd::{Instructions, Lines};

/// Expected counts and weights of some topics in one document.
#[derive(Debug, Default)]
pub struct TopicColumns {
    /// Which topic each column is.
    pub topics: Vec<u32>,
    /// N, filled up to whole vectors.
    pub counts: Lines<f32>,
    /// N of the step before.
    pub before: Lines<f32>,
    /// p, filled up to whole vectors with zeros.
    pub weights: Lines<f32>,
    /// a.
    pub prior: Vec<f64>,
    /// ln c; minus infinity for a topic that is not active any more.
    pub log_factors: Vec<f64>,
    /// Logarithms of the weights, up to a constant.
    pub logs: Vec<f64>,
}

impl TopicColumns {
    /// Becomes these topics, without counts; `prior` and `log_factors` are of all topics.
    pub fn reset(&mut self, topics: impl Iterator<Item = u32>, prior: &[f64], log_factors: &[f64]) {
        self.topics.clear();
        self.topics.extend(topics);
        let of = |all: &[f64], own: &mut Vec<f64>| {
            own.clear();
            own.extend(self.topics.iter().map(|&topic| all[topic as usize]));
        };
        of(prior, &mut self.prior);
        of(log_factors, &mut self.log_factors);
        let width = self.topics.len().next_multiple_of(LANES);
        self.counts.reset(width, 0.0);
        self.before.reset(width, 0.0);
        self.weights.reset(width, 0.0);
    }

    /// Numbers in a row of these columns.
    pub fn width(&self) -> usize {
        self.counts.len()
    }

    /// The weights under the counts.
    pub fn weigh(&mut self) {
        let Self { counts, prior, log_factors, logs, weights, .. } = self;
        Instructions::widest().run(WeighTopics { counts, prior, log_factors, logs, out: weights });
    }

    /// The weights under the prior alone, ln a_k + ln c_k: how a document is first seen (mathematics 11.3).
    pub fn weigh_prior(&mut self) {
        self.logs.clear();
        self.logs.extend(self.prior.iter().zip(&self.log_factors).map(|(a, log_factor)| a.ln() + log_factor));
        scale_weights(&mut self.logs, &mut self.weights);
    }

    /// The largest change of a count.
    pub fn change(&self) -> f32 {
        let pairs = self.counts.iter().zip(&*self.before);
        pairs.fold(0.0, |most, (now, before)| (now - before).abs().max(most))
    }

    /// Puts the counts into the place of those before, and these into theirs.
    pub fn turn(&mut self) {
        std::mem::swap(&mut self.counts, &mut self.before);
    }
}
