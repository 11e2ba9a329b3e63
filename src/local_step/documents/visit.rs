//! The local step of one document: alternates between expected counts of topics and responsibilities of words until
//! convergence (mathematics 11.3; Hughes & Sudderth 2016, section 5).

use crate::local_step::documents::columns::TopicColumns;
use crate::local_step::documents::first::FirstTopics;
use crate::local_step::documents::kernels::{Expect, ListTopics, Select, WordRows};
use crate::local_step::documents::table::{LANES, TopicTable};
use crate::responsibilities::RowBest;
use crate::simd::{Instructions, Lines};

/// Topics with fewer expected words become inactive.
pub const LEAST_COUNT: f32 = 1e-9;
/// Topics are selected in the first steps, and every tenth step after that.
const FIRST_SELECTIONS: usize = 5;
const SELECT_EVERY: usize = 10;
/// In documents with more words than this the tolerance grows in proportion to the number of words.
const WORDS: f64 = 100.0;
/// Number of steps between convergence tests.
const TEST_EVERY: usize = 5;

/// How documents are visited.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DocumentOptions {
    /// Maximum number of steps.
    pub max_steps: usize,
    /// A document has converged once no count changes by more than this, in words; in a document of more than 100
    /// words, by more than this per 100 words.
    pub tolerance: f64,
    /// Whether a document starts from its counts at the last visit, if available.
    pub warm: bool,
    /// Maximum number of restarts tried at the end of a visit.
    pub restarts: usize,
}

impl DocumentOptions {
    /// Default options.
    pub const USUAL: Self = Self { max_steps: 100, tolerance: 0.05, warm: true, restarts: 0 };
}

/// Quantities shared by all documents of a visit.
#[derive(Clone, Copy)]
pub struct Visiting<'a> {
    /// The weights of words in topics.
    pub table: &'a TopicTable,
    /// Prior pseudo-counts of the topics, (K,).
    pub prior: &'a [f64],
    /// Logarithms of the factors of the topics, (K,).
    pub log_factors: &'a [f64],
    /// Number of topics kept per word.
    pub width: usize,
    /// How documents are visited.
    pub options: DocumentOptions,
    /// The first step shared by documents without a stored state.
    pub first: &'a FirstTopics,
}

/// One document and its initial state.
#[derive(Clone, Copy)]
pub struct Document<'a> {
    /// Its distinct words.
    pub words: &'a [u32],
    /// How often each word occurs.
    pub counts: &'a [f64],
    /// Topics and counts to start from.
    pub start: Option<(&'a [u32], &'a [f32])>,
}

/// Scratch space that a thread reuses for successive documents, holding the result of the last one.
#[derive(Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is true or false whatever the others are")]
pub struct DocumentSpace {
    /// Counts of the words.
    pub(super) words: Vec<f32>,
    /// The identity map 0, 1, ...
    own_places: Vec<u32>,
    /// Sum of the products of each word.
    pub(super) sums: Vec<f32>,
    /// The topics available to the words.
    pub(super) source: TopicColumns,
    /// Their weights in each word, if these are not rows of the table.
    rows: Lines<f32>,
    moved: Lines<f32>,
    is_table: bool,
    /// Columns kept for each word, (n, width), and their number.
    pub(super) kept: Vec<u32>,
    pub(super) lengths: Vec<u32>,
    /// The columns kept by at least one word, and the words' weights in them, zero in columns that a word does not
    /// keep.
    frozen: TopicColumns,
    frozen_rows: Lines<f32>,
    is_frozen: bool,
    pub(super) products: Lines<f32>,
    pub(super) best: RowBest<f32>,
    /// Whether every word keeps all active topics.
    pub(super) is_dense: bool,
    /// Number of steps taken.
    pub steps: usize,
}

impl DocumentSpace {
    /// Alternates counts and responsibilities until convergence; the counts are then in [`DocumentSpace::source`].
    pub fn settle(&mut self, shared: Visiting<'_>, document: Document<'_>) {
        self.begin(shared, document);
        let options = shared.options;
        let n_words: f64 = document.counts.iter().sum();
        let tolerance = options.tolerance * (n_words / WORDS).max(1.0);
        self.steps = 0;
        for step in 0..options.max_steps.max(1) {
            let selects = step < FIRST_SELECTIONS || (step - 1) % SELECT_EVERY == 0;
            if step > 0 {
                if selects {
                    self.thaw();
                    self.shrink(shared, document);
                }
                if self.is_frozen { self.frozen.weigh() } else { self.source.weigh() }
            }
            if step == 0 && document.start.is_none() && !self.is_dense {
                self.first_step(shared, document);
            } else {
                self.step(shared, document, selects);
            }
            self.steps += 1;
            let columns = if self.is_frozen { &self.frozen } else { &self.source };
            if step > 0 && step % TEST_EVERY == 0 && f64::from(columns.change()) < tolerance {
                break;
            }
        }
        self.thaw();
    }

    /// What a step with selection does when all topics have the weights of the prior.
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
            let listed = shared.first.of(rows.len() / stride, word, || {
                let row = &rows[word as usize * stride..][..stride];
                Instructions::widest().run(ListTopics { row, weights, width, products, best });
                best.components.iter().copied().zip(best.scores.iter().copied()).collect()
            });
            *sum = listed.iter().map(|(_, product)| product).sum();
            *length = listed.len() as u32;
            kept.fill(listed[0].0);
            let share = count / *sum;
            for (slot, &(topic, product)) in kept.iter_mut().zip(listed) {
                *slot = topic;
                out[topic as usize] += share * product;
            }
        }
    }

    /// Sets up the words and the topics with the weights of the first step.
    pub(super) fn begin(&mut self, shared: Visiting<'_>, document: Document<'_>) {
        let n = document.words.len();
        self.words.clear();
        self.words.extend(document.counts.iter().map(|&count| count as f32));
        if self.own_places.len() < n {
            self.own_places = (0..n as u32).collect();
        }
        self.sums.resize(n, 0.0);
        self.is_frozen = false;
        self.kept.clear();
        self.kept.resize(n * shared.width, 0);
        self.lengths.clear();
        self.lengths.resize(n, 0);
        let k = shared.table.n_topics();
        self.is_table = document.start.is_none();
        match document.start {
            None => {
                self.source.reset(0..k as u32, shared.prior, shared.log_factors);
                self.source.weigh_prior();
            }
            Some((topics, counts)) => {
                self.source.reset(topics.iter().copied(), shared.prior, shared.log_factors);
                self.source.counts[..counts.len()].copy_from_slice(counts);
                self.source.weigh();
                let width = self.source.width();
                self.rows.reset(n * width, 0.0);
                let (all, stride) = (shared.table.rows(), shared.table.stride());
                for (row, &word) in self.rows.chunks_exact_mut(width).zip(document.words) {
                    let from = &all[word as usize * stride..][..stride];
                    row.iter_mut().zip(topics).for_each(|(to, &topic)| *to = from[topic as usize]);
                }
            }
        }
        self.is_dense = self.source.topics.len() <= shared.width;
    }

    /// One step: responsibilities from the weights, then counts from the responsibilities.
    pub(super) fn step(&mut self, shared: Visiting<'_>, document: Document<'_>, selects: bool) {
        let set = Instructions::widest();
        if !self.is_dense && !selects && !self.is_frozen {
            self.freeze(shared, document);
        }
        let columns = if self.is_frozen { &mut self.frozen } else { &mut self.source };
        columns.turn();
        let TopicColumns { counts: out, weights, .. } = columns;
        let (counts, sums) = (&self.words, &mut self.sums);
        let rows = if self.is_frozen {
            WordRows { values: &self.frozen_rows, width: out.len(), places: &self.own_places }
        } else if self.is_table {
            WordRows { values: shared.table.rows(), width: out.len(), places: document.words }
        } else {
            WordRows { values: &self.rows, width: out.len(), places: &self.own_places }
        };
        if self.is_dense || self.is_frozen {
            set.run(Expect { rows, counts, weights, sums, out });
            return;
        }
        if self.products.len() != out.len() {
            self.products.reset(out.len(), 0.0);
        }
        let (kept, lengths, products) = (&mut self.kept, &mut self.lengths, &mut self.products);
        let (width, best) = (shared.width, &mut self.best);
        set.run(Select { rows, counts, weights, width, kept, lengths, products, best, sums, out });
    }

    /// Copies the weights of the words in the kept topics into consecutive rows.
    fn freeze(&mut self, shared: Visiting<'_>, document: Document<'_>) {
        const NOWHERE: u32 = u32::MAX;
        let mut places = vec![NOWHERE; self.source.width()];
        let mut columns: Vec<u32> = Vec::new();
        for &column in &self.kept {
            if places[column as usize] == NOWHERE {
                places[column as usize] = columns.len() as u32;
                columns.push(column);
            }
        }
        let topics = columns.iter().map(|&column| self.source.topics[column as usize]);
        self.frozen.reset(topics, shared.prior, shared.log_factors);
        for (kept_column, &column) in columns.iter().enumerate() {
            self.frozen.counts[kept_column] = self.source.counts[column as usize];
        }
        let width = self.frozen.width();
        self.frozen_rows.reset(document.words.len() * width, 0.0);
        let rows = self.frozen_rows.chunks_exact_mut(width).zip(self.kept.chunks_exact(shared.width));
        for (word, (row, kept)) in rows.enumerate() {
            let from = if self.is_table {
                &shared.table.rows()[document.words[word] as usize * shared.table.stride()..][..self.source.width()]
            } else {
                &self.rows[word * self.source.width()..][..self.source.width()]
            };
            for &column in &kept[..self.lengths[word] as usize] {
                row[places[column as usize] as usize] = from[column as usize];
            }
        }
        // The next step needs weights in these columns.
        self.frozen.weigh();
        self.is_frozen = true;
    }

    /// Returns from the kept columns to all columns.
    fn thaw(&mut self) {
        if !self.is_frozen {
            return;
        }
        let mut places = vec![0; self.source.topics.iter().map(|&topic| topic as usize + 1).max().unwrap_or(0)];
        self.source.topics.iter().zip(0..).for_each(|(&topic, column)| places[topic as usize] = column);
        self.source.counts.fill(0.0);
        for (&topic, &count) in self.frozen.topics.iter().zip(&*self.frozen.counts) {
            let column: usize = places[topic as usize];
            self.source.counts[column] = count;
        }
        self.is_frozen = false;
    }

    /// Removes topics without words. They never return within a visit.
    fn shrink(&mut self, shared: Visiting<'_>, document: Document<'_>) {
        let active = |&(_, &count): &(usize, &f32)| count > LEAST_COUNT;
        let n_columns = self.source.topics.len();
        let columns: Vec<usize> =
            self.source.counts[..n_columns].iter().enumerate().filter(active).map(|a| a.0).collect();
        let (width, old) = (columns.len().next_multiple_of(LANES), self.source.width());
        let is_dense = columns.len() <= shared.width;
        if 2 * width > old && is_dense == self.is_dense {
            for (column, log_factor) in self.source.log_factors.iter_mut().enumerate() {
                if self.source.counts[column] <= LEAST_COUNT {
                    *log_factor = f64::NEG_INFINITY;
                }
            }
            return;
        }
        let n = document.words.len();
        self.moved.reset(n * width, 0.0);
        let (all, stride) = (shared.table.rows(), shared.table.stride());
        for (word, row) in self.moved.chunks_exact_mut(width).enumerate() {
            let from = if self.is_table {
                &all[document.words[word] as usize * stride..][..old]
            } else {
                &self.rows[word * old..][..old]
            };
            row.iter_mut().zip(&columns).for_each(|(to, &column)| *to = from[column]);
        }
        std::mem::swap(&mut self.rows, &mut self.moved);
        self.renumber_kept(&columns, shared.width);
        let topics: Vec<u32> = columns.iter().map(|&column| self.source.topics[column]).collect();
        let counts: Vec<f32> = columns.iter().map(|&column| self.source.counts[column]).collect();
        self.source.reset(topics.into_iter(), shared.prior, shared.log_factors);
        self.source.counts[..counts.len()].copy_from_slice(&counts);
        (self.is_table, self.is_dense) = (false, is_dense);
    }

    /// Renumbers the columns kept by each word when only these `columns` stay; a word that loses one forgets all.
    fn renumber_kept(&mut self, columns: &[usize], width: usize) {
        let mut places = vec![None; self.source.width()];
        (0_u32..).zip(columns).for_each(|(place, &column)| places[column] = Some(place));
        for (kept, length) in self.kept.chunks_exact_mut(width).zip(&mut self.lengths) {
            for column in &mut kept[..*length as usize] {
                match places[*column as usize] {
                    Some(place) => *column = place,
                    None => *length = 0,
                }
            }
        }
    }

    /// The weight of a column in a word, under the latest weights.
    pub(super) fn product(&self, shared: Visiting<'_>, document: Document<'_>, word: usize, column: usize) -> f64 {
        let row = if self.is_table {
            &shared.table.rows()[document.words[word] as usize * shared.table.stride()..]
        } else {
            &self.rows[word * self.source.width()..]
        };
        f64::from(self.source.weights[column]) * f64::from(row[column])
    }
}
