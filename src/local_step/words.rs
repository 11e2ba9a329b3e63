//! The distinct words of documents as units. A document is a group that a visit never splits (mathematics 11.1).

use std::ops::Range;

use crate::data::{Csr, CsrRows, RowBlock, RowUnits, Sample, SparseRows};
use crate::local_step::Units;
use crate::parallel::{blocks, map};
use crate::simd::Scalar;

/// Number of documents whose words one task collects.
const COLLECTED: usize = 32;

/// The words of the documents of a batch, in order. A word with count c in a document of weight w is a unit of mass c
/// w, whose row has a single one, in the column of the word.
#[derive(Debug)]
pub struct DocumentWords<F> {
    n_columns: usize,
    /// Offset of each document among the words; one extra entry at the end.
    starts: Vec<usize>,
    /// Columns, (n words,).
    words: Vec<u32>,
    /// Count of each word in its document.
    counts: Vec<f64>,
    /// Counts times document weights.
    masses: Vec<f64>,
    /// Weights of documents, (n documents,).
    weights: Vec<f64>,
    /// Offset of each word's row in compressed sparse rows, and its values.
    row_starts: Vec<u64>,
    ones: Vec<F>,
}

impl<F: Scalar> DocumentWords<F> {
    /// Collects the words in the rows of a batch; zeros are left out.
    pub fn of(documents: &RowUnits<'_, F>) -> Self {
        let ranges: Vec<_> = blocks(documents.len(), COLLECTED).collect();
        let mut parts = map(ranges.len(), |index| Self::of_some(documents, ranges[index].clone())).into_iter();
        let mut all = parts.next().unwrap_or_else(|| Self::of_some(documents, 0..0));
        for part in parts {
            let before = all.words.len();
            all.starts.extend(part.starts[1..].iter().map(|start| before + start));
            all.words.extend(part.words);
            all.counts.extend(part.counts);
            all.masses.extend(part.masses);
            all.weights.extend(part.weights);
        }
        all.row_starts = (0..=all.words.len() as u64).collect();
        all.ones = vec![F::from_f64(1.0); all.words.len()];
        all
    }

    /// The same for some documents, without what does not depend on their words.
    fn of_some(documents: &RowUnits<'_, F>, some: Range<usize>) -> Self {
        let mut all = Self {
            n_columns: documents.dimension(),
            starts: vec![0],
            words: Vec::new(),
            counts: Vec::new(),
            masses: Vec::new(),
            weights: some.clone().map(|document| documents.mass(document)).collect(),
            row_starts: Vec::new(),
            ones: Vec::new(),
        };
        let is_sparse = documents.csr().is_some();
        let (zeros, mut row) = (vec![F::ZERO; if is_sparse { 0 } else { all.n_columns }], Vec::new());
        for (place, document) in some.enumerate() {
            if let Some(table) = documents.csr() {
                all.take(table.entries(documents.row_number(document), all.n_columns));
            } else {
                row.resize(all.n_columns, F::ZERO);
                documents.read(std::iter::once(document), &zeros, &mut row);
                all.take((0..).zip(row.iter().copied()));
            }
            let weight = all.weights[place];
            all.masses.extend(all.counts[all.starts[place]..].iter().map(|count| count * weight));
            all.starts.push(all.words.len());
        }
        all
    }

    fn take(&mut self, row: impl Iterator<Item = (u32, F)>) {
        for (word, count) in row.filter(|(_, count)| *count > F::ZERO) {
            self.words.push(word);
            self.counts.push(count.to_f64());
        }
    }

    /// Number of documents.
    pub fn n_documents(&self) -> usize {
        self.weights.len()
    }

    /// The range of word indices of a document.
    pub fn of_document(&self, document: usize) -> std::ops::Range<usize> {
        self.starts[document]..self.starts[document + 1]
    }

    /// The document that contains a word.
    pub fn document_of(&self, word: usize) -> usize {
        self.starts.partition_point(|&start| start <= word) - 1
    }

    /// The weight of a document.
    pub fn weight(&self, document: usize) -> f64 {
        self.weights[document]
    }

    /// The columns of all words.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// The count of each word in its document.
    pub fn counts(&self) -> &[f64] {
        &self.counts
    }
}

impl<F: Scalar> Units<F> for DocumentWords<F> {
    fn len(&self) -> usize {
        self.words.len()
    }

    fn dimension(&self) -> usize {
        self.n_columns
    }

    /// The row number is the index of the word's document in the batch.
    fn row_number(&self, unit: usize) -> usize {
        self.document_of(unit)
    }

    fn mass(&self, unit: usize) -> f64 {
        self.masses[unit]
    }

    fn chunk_end(&self, first: usize, size: usize) -> usize {
        let last = self.starts.partition_point(|&start| start <= first + size) - 1;
        let after = self.starts.partition_point(|&start| start <= first);
        self.starts[last].max(self.starts.get(after).copied().unwrap_or(first))
    }

    fn is_sparse(&self) -> bool {
        true
    }

    fn n_values(&self) -> usize {
        0
    }

    fn read(&self, _: &[u32], _: &[F], _: &mut [F]) {}

    fn rows<'a>(&'a self, list: &[u32], _: &'a [F], numbers: &'a mut Vec<u32>) -> RowBlock<'a, F> {
        numbers.clear();
        numbers.extend_from_slice(list);
        let table = Csr { starts: &self.row_starts, columns: &self.words, values: &self.ones };
        RowBlock::Sparse(SparseRows { table, numbers })
    }

    fn select(&self, list: &[u32]) -> Box<dyn Units<F> + '_> {
        let index = |&word: &u32| word as usize;
        Box::new(Self {
            n_columns: self.n_columns,
            starts: (0..=list.len()).collect(),
            words: list.iter().map(|word| self.words[index(word)]).collect(),
            counts: list.iter().map(|word| self.counts[index(word)]).collect(),
            masses: list.iter().map(|word| self.masses[index(word)]).collect(),
            weights: list.iter().map(|word| self.weights[self.document_of(index(word))]).collect(),
            row_starts: (0..=list.len() as u64).collect(),
            ones: vec![F::from_f64(1.0); list.len()],
        })
    }

    fn copy_into(&self, list: &[u32], sample: &mut Sample) {
        let table = Csr { starts: &self.row_starts, columns: &self.words, values: &self.ones };
        if let Ok(rows) = CsrRows::new(table, self.n_columns) {
            let chosen = RowUnits::list(&rows, Some(&self.masses), list);
            sample.extend(&chosen, &(0..list.len() as u32).collect::<Vec<_>>());
        }
    }
}
