//! The first step of documents without a stored state. They all start from the weights of the prior, so a word has the
//! same topics in each of them. These are selected once.

use std::sync::OnceLock;

use crate::local_step::documents::kernels::ListTopics;
use crate::local_step::documents::visit::{Document, DocumentSpace, Visiting};
use crate::simd::Instructions;

/// The best topics of each word under the weights of the prior, with the products of both weights. Computed on first
/// use.
#[derive(Debug, Default)]
pub struct FirstTopics(OnceLock<Vec<OnceLock<OfWord>>>);

type OfWord = Box<[(u32, f32)]>;

impl FirstTopics {
    fn of(&self, n_words: usize, word: u32, find: impl FnOnce() -> OfWord) -> &[(u32, f32)] {
        let all = self.0.get_or_init(|| (0..n_words).map(|_| OnceLock::new()).collect());
        all[word as usize].get_or_init(find)
    }
}

impl DocumentSpace {
    /// Takes a step with selection when all topics have the weights of the prior.
    pub(super) fn first_step(&mut self, shared: Visiting<'_>, document: Document<'_>) {
        self.source.turn();
        let Self { source, products, best, .. } = self;
        let (weights, out) = (&*source.weights, &mut source.counts);
        out.fill(0.0);
        if products.len() != out.len() {
            products.reset(out.len(), 0.0);
        }
        let (rows, stride, width) = (shared.table.rows(), shared.table.stride(), shared.width);
        let of_words = self.kept.chunks_exact_mut(width).zip(&mut self.lengths).zip(&mut self.sums);
        let words = document.words.iter().zip(&self.words);
        for (((kept, length), sum), (&word, count)) in of_words.zip(words) {
            let topics_of_word = shared.first.of(rows.len() / stride, word, || {
                let row = &rows[word as usize * stride..][..stride];
                Instructions::widest().run(ListTopics { row, weights, width, products, best });
                best.components.iter().copied().zip(best.scores.iter().copied()).collect()
            });
            *sum = topics_of_word.iter().map(|(_, product)| product).sum();
            *length = topics_of_word.len() as u32;
            kept.fill(topics_of_word[0].0);
            let share = count / *sum;
            for (slot, &(topic, product)) in kept.iter_mut().zip(topics_of_word) {
                *slot = topic;
                out[topic as usize] += share * product;
            }
        }
    }
}
