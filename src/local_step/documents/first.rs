//! The first step of documents without a stored state. They all start from the weights of the prior, so a word has the
//! same topics in each of them. These are selected once.

use std::sync::OnceLock;

/// The best topics of each word under the weights of the prior, and their products with these; found when first asked
/// for.
#[derive(Debug, Default)]
pub struct FirstTopics(OnceLock<Vec<OnceLock<OfWord>>>);

type OfWord = Box<[(u32, f32)]>;

impl FirstTopics {
    /// Topics and products of a word.
    pub(super) fn of(&self, n_words: usize, word: u32, find: impl FnOnce() -> OfWord) -> &[(u32, f32)] {
        let all = self.0.get_or_init(|| (0..n_words).map(|_| OnceLock::new()).collect());
        all[word as usize].get_or_init(find)
    }
}
