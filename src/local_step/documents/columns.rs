//! A subset of the topics, as columns of the weights of a document's words.

use crate::local_step::documents::kernels::{WeighTopics, scale_weights};
use crate::local_step::documents::table::LANES;
use crate::simd::{Instructions, Lines};

/// Expected counts and weights of some topics in one document.
#[derive(Debug, Default)]
pub struct TopicColumns {
    /// The topic of each column.
    pub topics: Vec<u32>,
    /// Expected counts N, padded to whole vectors.
    pub counts: Lines<f32>,
    /// Expected counts N of the previous step.
    pub before: Lines<f32>,
    /// Weights p, padded with zeros to whole vectors.
    pub weights: Lines<f32>,
    /// Prior pseudo-counts a.
    pub prior: Vec<f64>,
    /// ln c; minus infinity for a topic that is no longer active.
    pub log_factors: Vec<f64>,
    /// Logarithms of the weights, up to a constant.
    pub logs: Vec<f64>,
}

impl TopicColumns {
    /// Resets to these topics with zero counts. `prior` and `log_factors` cover all topics.
    pub fn reset(&mut self, topics: impl Iterator<Item = u32>, prior: &[f64], log_factors: &[f64]) {
        self.topics.clear();
        self.topics.extend(topics);
        let of = |all: &[f64], column_values: &mut Vec<f64>| {
            column_values.clear();
            column_values.extend(self.topics.iter().map(|&topic| all[topic as usize]));
        };
        of(prior, &mut self.prior);
        of(log_factors, &mut self.log_factors);
        let width = self.topics.len().next_multiple_of(LANES);
        self.counts.reset(width, 0.0);
        self.before.reset(width, 0.0);
        self.weights.reset(width, 0.0);
    }

    /// Padded number of columns.
    pub fn width(&self) -> usize {
        self.counts.len()
    }

    /// Computes the weights given the counts.
    pub fn weigh(&mut self) {
        let Self { counts, prior, log_factors, logs, weights, .. } = self;
        Instructions::widest().run(WeighTopics { counts, prior, log_factors, logs, out: weights });
    }

    /// Computes the weights from the prior alone, ln a_k + ln c_k, for the first step of a document (mathematics 11.3).
    pub fn weigh_prior(&mut self) {
        self.logs.clear();
        self.logs.extend(self.prior.iter().zip(&self.log_factors).map(|(a, log_factor)| a.ln() + log_factor));
        scale_weights(&mut self.logs, &mut self.weights);
    }

    /// The largest change of a count in the last step.
    pub fn change(&self) -> f32 {
        let pairs = self.counts.iter().zip(&*self.before);
        pairs.fold(0.0, |most, (now, before)| (now - before).abs().max(most))
    }

    /// Swaps the current and the previous counts.
    pub fn turn(&mut self) {
        std::mem::swap(&mut self.counts, &mut self.before);
    }
}
