//! Document completion: the log probability of some words of a document, given its other words (mathematics 11.7).

use crate::data::{RowUnits, Rows};
use crate::error::Result;
use crate::fitted::Fitted;
use crate::local_step::DocumentWords;
use crate::parallel::{Cancel, try_map};
use crate::simd::Scalar;
use crate::special::digamma;

/// How the proportions of a partly observed document are estimated (mathematics 11.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    /// The fixed point of `theta_k` proportional to `N_k + a`, whose objective has a single maximum.
    Map,
    /// Mean-field variational inference.
    Variational,
    /// Maximum likelihood.
    Ml,
}

impl Completion {
    /// Returns the method with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "map" => Some(Self::Map),
            "vb" => Some(Self::Variational),
            "ml" => Some(Self::Ml),
            _ => None,
        }
    }
}

/// Lower limit of the probability of a word in a topic.
const FLOOR: f64 = 1e-12;
/// Iterations end once no proportion grows by more than this fraction of itself in a turn. With N words given, the
/// objective of "map" and "ml" is then within N + K a times this many nats of its maximum.
const SETTLED: f64 = 1e-11;
/// Maximum number of turns.
const TURNS: usize = 100_000;
/// Lower limit of a proportion, so that its logarithm is finite.
const LEAST: f64 = 1e-300;

impl Fitted {
    /// Returns the log probability of the words of each document in `held`, given proportions estimated from the same
    /// document in `given`, (n,), nats. `concentration` is the pseudo-count of a topic.
    ///
    /// # Errors
    /// As [`Fitted::proportions`].
    pub fn complete<F: Scalar>(
        &self,
        given: &dyn Rows<F>,
        held: &dyn Rows<F>,
        method: Completion,
        concentration: f64,
        cancel: &Cancel,
    ) -> Result<Vec<f64>> {
        self.check_documents(given, "test", cancel)?;
        self.check_documents(held, "test", cancel)?;
        let (k, v) = (self.summary.n_components(), self.n_data_columns());
        let topics = self.topics()?;
        // Topic probabilities by word, with the floor added and renormalised.
        let mut by_word = vec![0.0; k * v];
        for (topic, own) in topics.chunks_exact(v).enumerate() {
            let total: f64 = own.iter().map(|p| p + FLOOR).sum();
            by_word.iter_mut().skip(topic).step_by(k).zip(own).for_each(|(to, p)| *to = (p + FLOOR) / total);
        }
        let (given, held) =
            (DocumentWords::of(&RowUnits::all(given, None)), DocumentWords::of(&RowUnits::all(held, None)));
        let row = |word: u32| &by_word[word as usize * k..][..k];
        try_map(given.n_documents(), |document| {
            cancel.check()?;
            let range = given.of_document(document);
            let words = given.words()[range.clone()].iter().zip(&given.counts()[range]);
            let words = KnownWords { words: words.map(|(&word, &count)| (count, row(word))).collect(), n_topics: k };
            let theta = words.proportions(method, concentration);
            let range = held.of_document(document);
            let of_word = |(&word, count): (&u32, &f64)| {
                let p: f64 = theta.iter().zip(row(word)).map(|(theta, phi)| theta * phi).sum();
                count * p.ln()
            };
            Ok(held.words()[range.clone()].iter().zip(&held.counts()[range]).map(of_word).sum())
        })
    }
}

/// The words from which the proportions of a document are found.
struct KnownWords<'a> {
    /// Count of each word, and its probability in every topic, (K,).
    words: Vec<(f64, &'a [f64])>,
    n_topics: usize,
}

/// A turn: the next proportions, and the objective of the ones before, nats.
struct Iterate {
    next: Vec<f64>,
    objective: f64,
}

impl KnownWords<'_> {
    /// The proportions of the topics, (K,).
    fn proportions(&self, method: Completion, concentration: f64) -> Vec<f64> {
        let even = vec![1.0 / self.n_topics as f64; self.n_topics];
        if self.words.is_empty() {
            return even;
        }
        match method {
            Completion::Map => self.climb(even, concentration),
            Completion::Ml => self.climb(even, 0.0),
            Completion::Variational => self.mean_field(concentration),
        }
    }

    /// Expected counts of the topics if their weights are these, (K,), and the log likelihood of the words, nats.
    fn counts(&self, weights: &[f64]) -> (Vec<f64>, f64) {
        let (mut counts, mut log_likelihood) = (vec![0.0; self.n_topics], 0.0);
        for (count, phi) in &self.words {
            let sum: f64 = weights.iter().zip(*phi).map(|(w, p)| w * p).sum::<f64>().max(LEAST);
            let share = count / sum;
            counts.iter_mut().zip(*phi).for_each(|(n, p)| *n += share * p);
            log_likelihood += count * sum.ln();
        }
        counts.iter_mut().zip(weights).for_each(|(n, w)| *n *= w);
        (counts, log_likelihood)
    }

    /// One turn of `theta_k` proportional to `N_k + a`.
    fn turn(&self, theta: &[f64], concentration: f64) -> Iterate {
        let (counts, log_likelihood) = self.counts(theta);
        let prior = if concentration > 0.0 { concentration * theta.iter().map(|p| p.ln()).sum::<f64>() } else { 0.0 };
        Iterate { next: normalized(counts, concentration), objective: log_likelihood + prior }
    }

    /// The maximum of the concave objective `sum_w n_w ln sum_k theta_k phi_kw + a sum_k ln theta_k`. Turns raise it,
    /// but slowly where topics are alike or a proportion tends to zero. So every second turn leaps along the last two,
    /// in the logarithms of the proportions, if the objective rises by it (Varadhan & Roland 2008).
    fn climb(&self, mut theta: Vec<f64>, concentration: f64) -> Vec<f64> {
        let mut longest = 1.0;
        let mut first = self.turn(&theta, concentration);
        for _ in 0..TURNS / 2 {
            if is_settled(&theta, &first.next) {
                return first.next;
            }
            let second = self.turn(&first.next, concentration);
            if is_settled(&first.next, &second.next) {
                return second.next;
            }
            let (leap, length) = leap(&theta, &first.next, &second.next, longest);
            let landed = self.turn(&leap, concentration);
            if landed.objective >= second.objective {
                longest = if length < longest { longest } else { 4.0 * longest };
                (theta, first) = (leap, landed);
            } else {
                longest = f64::max(1.0, longest / 4.0);
                first = self.turn(&second.next, concentration);
                theta = second.next;
            }
        }
        first.next
    }

    /// The fixed point of `N_k` under weights `exp(digamma(N_k + a))`, from equal weights.
    fn mean_field(&self, concentration: f64) -> Vec<f64> {
        let mut weights = vec![1.0; self.n_topics];
        let mut theta = vec![1.0 / self.n_topics as f64; self.n_topics];
        for _ in 0..TURNS {
            let counts = self.counts(&weights).0;
            let logs: Vec<f64> = counts.iter().map(|n| digamma(n + concentration)).collect();
            let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            weights = logs.iter().map(|log| (log - most).exp()).collect();
            let next = normalized(counts, concentration);
            let ends = is_settled(&theta, &next);
            theta = next;
            if ends {
                break;
            }
        }
        theta
    }
}

/// `N_k + a` as proportions.
fn normalized(mut counts: Vec<f64>, concentration: f64) -> Vec<f64> {
    let total: f64 = counts.iter().map(|n| n + concentration).sum();
    for n in &mut counts {
        *n = ((*n + concentration) / total).max(LEAST);
    }
    counts
}

/// Whether no proportion grows by more than [`SETTLED`] of itself.
fn is_settled(theta: &[f64], next: &[f64]) -> bool {
    theta.iter().zip(next).all(|(before, after)| after - before <= SETTLED * before)
}

/// Extrapolates two turns, `longest` times as far at most, and returns the length of the leap.
fn leap(theta: &[f64], once: &[f64], twice: &[f64], longest: f64) -> (Vec<f64>, f64) {
    let logs = |at: &[f64]| at.iter().map(|p| p.ln()).collect::<Vec<f64>>();
    let [from, once, twice] = [theta, once, twice].map(logs);
    let moved: Vec<f64> = once.iter().zip(&from).map(|(a, b)| a - b).collect();
    let bent: Vec<f64> = twice.iter().zip(&once).zip(&moved).map(|((a, b), moved)| a - b - moved).collect();
    // Changes of small proportions count little.
    let norm = |all: &[f64]| all.iter().zip(theta).map(|(x, p)| p * x * x).sum::<f64>();
    let length = (norm(&moved) / norm(&bent)).sqrt();
    let length = if length.is_nan() { 1.0 } else { length.clamp(1.0, longest) };
    let log = |k: usize| from[k] + length * (2.0 * moved[k] + length * bent[k]);
    let most = (0..from.len()).map(log).fold(f64::NEG_INFINITY, f64::max);
    (normalized((0..from.len()).map(|k| (log(k) - most).exp()).collect(), 0.0), length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// No direction within the simplex raises the objective:
        /// `sum_w n_w phi_kw / sum_j theta_j phi_jw + a / theta_k` is at most `N + K a`, which is its mean under theta.
        #[test]
        fn the_maximum_has_no_direction_up(
            values in prop::collection::vec((1_u32..9, prop::collection::vec(1e-6_f64..1.0, 5)), 1..12),
            concentration in prop_oneof![Just(0.0), 1e-3..1.0],
        ) {
            let list: Vec<(f64, &[f64])> = values.iter().map(|(count, phi)| (f64::from(*count), &phi[..])).collect();
            let all = list.iter().map(|(count, _)| count).sum::<f64>() + 5.0 * concentration;
            let words = KnownWords { words: list, n_topics: 5 };
            let method = if concentration > 0.0 { Completion::Map } else { Completion::Ml };
            let theta = words.proportions(method, concentration);
            prop_assert!((theta.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            for k in 0..5 {
                let of_word = |(count, phi): &(f64, &[f64])| {
                    count * phi[k] / theta.iter().zip(*phi).map(|(t, p)| t * p).sum::<f64>()
                };
                let slope: f64 = words.words.iter().map(of_word).sum::<f64>() + concentration / theta[k];
                prop_assert!(slope <= all * (1.0 + 1e-9), "{slope} {all}");
            }
        }
    }

    #[test]
    fn without_words_topics_are_equal() {
        let words = KnownWords { words: Vec::new(), n_topics: 4 };
        for method in [Completion::Map, Completion::Variational, Completion::Ml] {
            assert_eq!(words.proportions(method, 0.1), [0.25; 4]);
        }
    }
}
