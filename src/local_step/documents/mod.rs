//! The local step of documents. The words of a document are assigned to topics together, because they share the
//! document's topic weights (mathematics 11.3).

mod columns;
mod first;
mod kernels;
mod memory;
mod restarts;
mod table;
#[cfg(test)]
mod tests;
mod visit;

use std::sync::OnceLock;

use crate::component::ComponentId;
use crate::data::RowBlock;
use crate::error::Result;
use crate::local_step::{Assign, BlockMut, DocumentWords, Listed, Space, Units};
use crate::simd::Scalar;
use crate::special::{digamma, ln_gamma, ln_of_positive};
use crate::suffstats::DocumentTerms;

use first::FirstTopics;
pub use memory::DocumentCounts;
pub use restarts::Restarts;
pub use table::TopicTable;
use visit::{Document, LEAST_COUNT, Visiting};
pub use visit::{DocumentOptions, DocumentSpace};

/// Typical number of topics in a document, if words may have all topics.
const USUAL_TOPICS: usize = 128;

/// Assigns the words of whole documents.
pub struct ByDocument<'a, F> {
    words: &'a DocumentWords<F>,
    table: &'a TopicTable,
    prior: &'a [f64],
    log_factors: Vec<f64>,
    width: usize,
    options: DocumentOptions,
    starts: Option<Vec<(Vec<u32>, Vec<f32>)>>,
    first: FirstTopics,
    visited: Vec<OnceLock<Finished>>,
}

/// Result of visiting one document.
#[derive(Debug, Default)]
struct Finished {
    /// The topics of the document and their expected counts.
    topics: Vec<u32>,
    counts: Vec<f64>,
    restarts: Restarts,
    steps: usize,
}

/// Combined result of visiting the documents of a batch.
#[derive(Debug)]
pub struct Documented {
    /// Contribution to the summary.
    pub terms: DocumentTerms,
    /// State for the next visit.
    pub memory: DocumentCounts,
    /// Number of restarts proposed and accepted.
    pub restarts: Restarts,
    /// Total number of steps.
    pub steps: usize,
}

impl<'a, F: Scalar> ByDocument<'a, F> {
    /// Prepares a visit of the documents with these words, keeping `width` topics per word. `prior` holds pseudo-counts
    /// of the topics; `starts` holds the initial counts of each document, if any.
    pub fn new(
        words: &'a DocumentWords<F>,
        table: &'a TopicTable,
        prior: &'a [f64],
        width: usize,
        options: DocumentOptions,
        starts: Option<Vec<(Vec<u32>, Vec<f32>)>>,
    ) -> Self {
        let log_factors = table.factors().iter().map(|factor| factor.ln()).collect();
        let visited = (0..words.n_documents()).map(|_| OnceLock::new()).collect();
        let first = FirstTopics::default();
        Self { words, table, prior, log_factors, width, options, starts, first, visited }
    }

    fn visit(&self, index: usize, space: &mut DocumentSpace, out: &mut BlockMut<'_>, first: usize) -> Finished {
        let range = self.words.of_document(index);
        let (table, prior, log_factors) = (self.table, self.prior, &self.log_factors);
        let (width, options, first_topics) = (self.width, self.options, &self.first);
        let shared = Visiting { table, prior, log_factors, width, options, first: first_topics };
        let start = self.starts.as_ref().map(|starts| (&starts[index].0[..], &starts[index].1[..]));
        let start = start.filter(|(topics, _)| !topics.is_empty());
        let words = &self.words.words()[range.clone()];
        let document = Document { words, counts: &self.words.counts()[range.clone()], start };
        space.settle(shared, document);
        let mut restarts = Restarts::default();
        if self.options.restarts > 0 {
            restarts = space.restart(shared, document);
        }
        space.source.weigh();
        let mut sums = vec![0.0; space.source.topics.len()];
        for (word, &count) in document.counts.iter().enumerate() {
            let unit = range.start + word - first;
            self.assign_word(shared, document, space, word, count, unit, out, &mut sums);
        }
        let kept = space.source.topics.iter().zip(sums).filter(|(_, count)| *count > f64::from(LEAST_COUNT));
        let (topics, counts) = kept.unzip();
        Finished { topics, counts, restarts, steps: space.steps }
    }

    /// Writes the responsibilities of one word, largest first, and adds them to the counts.
    #[allow(clippy::too_many_arguments, reason = "one word of many, in the innermost loop")]
    fn assign_word(
        &self,
        shared: Visiting<'_>,
        document: Document<'_>,
        space: &DocumentSpace,
        word: usize,
        count: f64,
        unit: usize,
        out: &mut BlockMut<'_>,
        sums: &mut [f64],
    ) {
        let width = self.width;
        let components = &mut out.components[unit * width..][..width];
        let values = &mut out.values[unit * width..][..width];
        let (mut n, mut total, mut best) = (0, 0.0, 0);
        let mut take = |column: usize| {
            let product = space.product(shared, document, word, column);
            if product > 0.0 {
                (components[n], values[n]) = (column as u32, product);
                total += product;
                best = if product > values[best] { n } else { best };
                n += 1;
            }
        };
        if space.is_dense {
            (0..space.source.topics.len()).for_each(&mut take);
        } else {
            let kept = &space.kept[word * width..][..space.lengths[word] as usize];
            for &column in kept {
                take(column as usize);
            }
        }
        let share = 1.0 / total;
        for (component, value) in components[..n].iter_mut().zip(&mut values[..n]) {
            *value *= share;
            sums[*component as usize] += count * *value;
            *component = space.source.topics[*component as usize];
        }
        components[..n].swap(0, best);
        values[..n].swap(0, best);
        // Ends the list of nonzero responsibilities.
        if n < width {
            (components[n], values[n]) = (0, 0.0);
        }
        out.log_normalizers[unit] = ln_of_positive(total) + self.table.log_scale(document.words[word] as usize);
    }

    /// Expected proportions of the topics in each document, (n, K). Requires that every document has been visited.
    pub fn proportions(mut self) -> Vec<f64> {
        let mut all = Vec::with_capacity(self.visited.len() * self.prior.len());
        for visited in &mut self.visited {
            let of_document = visited.take().unwrap_or_default();
            let total = self.prior.iter().sum::<f64>() + of_document.counts.iter().sum::<f64>();
            let first = all.len();
            all.extend(self.prior.iter().map(|a| a / total));
            of_document
                .topics
                .iter()
                .zip(of_document.counts)
                .for_each(|(&topic, count)| all[first + topic as usize] += count / total);
        }
        all
    }

    /// Combines the results of all documents after each has been visited. `ids` are the topics.
    pub fn finish(mut self, ids: &[ComponentId]) -> Documented {
        let visited: Vec<Finished> =
            self.visited.iter_mut().map(|visited| visited.take().unwrap_or_default()).collect();
        let mut terms = DocumentTerms::zeros(ids.len());
        let of_prior: Vec<(f64, f64)> = self.prior.iter().map(|&a| (ln_gamma(a), digamma(a))).collect();
        let total_of_prior: f64 = self.prior.iter().sum();
        let (mut restarts, mut steps) = (Restarts::default(), 0);
        let mut of_totals = 0.0;
        for (document, of_document) in visited.iter().enumerate() {
            let weight = self.words.weight(document);
            let total = total_of_prior + of_document.counts.iter().sum::<f64>();
            let of_total = digamma(total);
            terms.n_documents += weight;
            terms.log_gamma_of_totals += weight * ln_gamma(total);
            of_totals += weight * of_total;
            for (&topic, &count) in of_document.topics.iter().zip(&of_document.counts) {
                let (k, theta) = (topic as usize, self.prior[topic as usize] + count);
                terms.log_gammas[k] += weight * (ln_gamma(theta) - of_prior[k].0);
                terms.log_weights[k] += weight * (digamma(theta) - of_prior[k].1);
            }
            restarts += of_document.restarts;
            steps += of_document.steps;
        }
        // Topics absent from a document contribute the same in every document, apart from the document's total.
        for (k, (log_gamma, of_prior)) in of_prior.into_iter().enumerate() {
            terms.log_gammas[k] += terms.n_documents * log_gamma;
            terms.log_weights[k] += terms.n_documents * of_prior - of_totals;
            terms.slacks[k] = -self.prior[k] * terms.log_weights[k];
        }
        let memory = DocumentCounts::of(
            ids,
            visited.iter().map(|of_document| (&of_document.topics[..], &of_document.counts[..])),
        );
        Documented { terms, memory, restarts, steps }
    }
}

impl<F: Scalar> Assign<F> for ByDocument<'_, F> {
    fn width(&self) -> usize {
        self.width
    }

    fn usual_width(&self) -> usize {
        self.width.min(USUAL_TOPICS)
    }

    fn is_compact(&self) -> bool {
        true
    }

    /// The block holds whole documents in order.
    fn assign(
        &self,
        _: &dyn Units<F>,
        listed: Listed<'_>,
        _: RowBlock<'_, F>,
        mut out: BlockMut<'_>,
        space: &mut Space<F>,
    ) -> Result<()> {
        let (Some(&first), Some(&last)) = (listed.units.first(), listed.units.last()) else { return Ok(()) };
        *out.n_evaluated = 0;
        for document in self.words.document_of(first as usize)..=self.words.document_of(last as usize) {
            let n = self.words.of_document(document).len();
            if n > 0 {
                let visited = self.visit(document, &mut space.documents, &mut out, first as usize);
                *out.n_evaluated += n * self.table.n_topics();
                let _ = self.visited[document].set(visited);
            }
        }
        Ok(())
    }
}
