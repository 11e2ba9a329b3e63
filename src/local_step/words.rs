//! The distinct words of documents as units. A document is a group that a visit never splits (mathematics 11.1).

use std::ops::Range;

use crate::data::{Csr, CsrRows, RowBlock, RowUnits, Sample, SparseRows};
use crate::local_step::{Units, cut_mut};
use crate::parallel::{blocks, for_each, map};
use crate::simd::Scalar;

/// Number of documents whose words one task collects.
const COLLECTED: usize = 8;

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
        let lengths = map(ranges.len(), |index| {
            let mut lengths = vec![0; ranges[index].len()];
            for_each_word(documents, ranges[index].clone(), |place, _, _| lengths[place] += 1);
            lengths
        });
        let (mut starts, mut ends) = (vec![0], Vec::with_capacity(ranges.len()));
        for lengths in lengths {
            for length in lengths {
                starts.push(starts[starts.len() - 1] + length);
            }
            ends.push(starts[starts.len() - 1]);
        }
        let (n_documents, n) = (documents.len(), starts[starts.len() - 1]);
        let weights: Vec<f64> = (0..n_documents).map(|document| documents.mass(document)).collect();
        let (mut words, mut counts, mut masses) = (vec![0; n], vec![0.0; n], vec![0.0; n]);
        let (mut row_starts, mut ones) = (vec![0; n + 1], vec![F::ZERO; n]);
        let columns = cut_mut(&mut words, &ends, 1).into_iter().zip(cut_mut(&mut counts, &ends, 1));
        let numbers = cut_mut(&mut masses, &ends, 1).into_iter().zip(cut_mut(&mut ones, &ends, 1));
        let items = ranges.into_iter().zip(columns).zip(numbers).zip(cut_mut(&mut row_starts[1..], &ends, 1));
        for_each(items.collect(), |(((some, (words, counts)), (masses, ones)), row_starts)| {
            let first = some.start;
            ones.fill(F::from_f64(1.0));
            row_starts.iter_mut().zip(starts[first] as u64 + 1..).for_each(|(start, number)| *start = number);
            let mut places = words.iter_mut().zip(counts).zip(masses);
            for_each_word(documents, some, |place, column, count: F| {
                // There is no place for a word that another thread has written since words were counted.
                if let Some(((word, of_word), mass)) = places.next() {
                    (*word, *of_word) = (column, count.to_f64());
                    *mass = *of_word * weights[first + place];
                }
            });
        });
        Self { n_columns: documents.dimension(), starts, words, counts, masses, weights, row_starts, ones }
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

/// Calls `take` with the place in `some`, the column and the count of every word of some documents.
fn for_each_word<F: Scalar>(documents: &RowUnits<'_, F>, some: Range<usize>, mut take: impl FnMut(usize, u32, F)) {
    let n_columns = documents.dimension();
    let (zeros, mut row) = (vec![F::ZERO; if documents.csr().is_some() { 0 } else { n_columns }], Vec::new());
    for (place, document) in some.enumerate() {
        let mut take = |(word, count)| {
            if count > F::ZERO {
                take(place, word, count);
            }
        };
        if let Some(table) = documents.csr() {
            table.entries(documents.row_number(document), n_columns).for_each(&mut take);
        } else {
            row.resize(n_columns, F::ZERO);
            documents.read(std::iter::once(document), &zeros, &mut row);
            (0..).zip(row.iter().copied()).for_each(&mut take);
        }
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
