//! Sources of batches.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::data::{RowUnits, Rows};
use crate::error::{Error, Result};
use crate::hash::fingerprint;
use crate::real::Real;
use crate::rng::{Purpose, permutation, stream};

/// A source of batches of units.
pub trait BatchSource<F: Real>: Send + Sync {
    /// Number of columns of every batch.
    fn dimension(&self) -> usize;
    /// Number of batches, if the source knows it.
    fn n_batches(&self) -> Option<usize>;
    /// Loads batch `batch`, which must have the same units every time.
    ///
    /// # Errors
    /// [`Error::Source`] with the source's own message.
    fn load(&self, batch: usize) -> Result<RowUnits<'_, F>>;
    /// Whether a batch can be loaded more than once.
    fn can_replay(&self) -> bool;
    /// A number that identifies the data and their division into batches.
    fn fingerprint(&self) -> u64;
}

/// A table in memory or in a memory map. Its rows are assigned to batches by a permutation that depends on the seed.
pub struct ArrayBatches<'a, F: Real> {
    rows: &'a dyn Rows<F>,
    weights: Option<&'a [f64]>,
    order: Option<Vec<u32>>,
    n_batches: usize,
    fingerprint: u64,
}

impl<'a, F: Real> ArrayBatches<'a, F> {
    /// Divides `rows` into `n_batches`; with `shuffle`, by a permutation that depends on the seed and the number of
    /// rows only. `content` is any number that identifies the data.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for no batch, more batches than rows, or more than 2^32 - 1 rows.
    pub fn new(
        rows: &'a dyn Rows<F>,
        weights: Option<&'a [f64]>,
        n_batches: usize,
        shuffle: Option<u64>,
        content: u64,
    ) -> Result<Self> {
        let n = rows.n_rows();
        if n_batches == 0 || n_batches > n {
            return Err(Error::invalid("batches", n_batches, format!("between 1 and the number of rows, {n}")));
        }
        let count =
            u32::try_from(n).map_err(|_| Error::invalid("data", format!("{n} rows"), "at most 4294967295 rows"))?;
        // With a single batch the order does not matter, and the original order lets a memory map be read sequentially.
        let order = shuffle.filter(|_| n_batches > 1).map(|seed| {
            let mut order = permutation(count, &mut stream(seed, Purpose::Batches, 0));
            for range in ranges(n, n_batches) {
                order[range].sort_unstable();
            }
            order
        });
        let fingerprint = cut_fingerprint(content, n, rows.n_columns(), n_batches, shuffle);
        Ok(Self { rows, weights, order, n_batches, fingerprint })
    }
}

/// A number that identifies the data and their division into batches.
pub(super) fn cut_fingerprint(content: u64, n: usize, d: usize, n_batches: usize, shuffle: Option<u64>) -> u64 {
    let cut = [n as u64, d as u64, n_batches as u64, shuffle.map_or(0, |seed| seed.wrapping_add(1))];
    fingerprint(content, cut)
}

fn ranges(n: usize, n_batches: usize) -> impl Iterator<Item = Range<usize>> {
    (0..n_batches).map(move |b| batch_range(n, n_batches, b))
}

/// The rows of batch `b`, in shuffled order.
pub(super) fn batch_range(n: usize, n_batches: usize, b: usize) -> Range<usize> {
    cut(n, n_batches, b)..cut(n, n_batches, b + 1)
}

/// Start of batch `b` of `n_batches`. Sizes differ by at most one row.
fn cut(n: usize, n_batches: usize, b: usize) -> usize {
    ((n as u128 * b as u128) / n_batches as u128) as usize
}

impl<F: Real> BatchSource<F> for ArrayBatches<'_, F> {
    fn dimension(&self) -> usize {
        self.rows.n_columns()
    }

    fn n_batches(&self) -> Option<usize> {
        Some(self.n_batches)
    }

    fn load(&self, batch: usize) -> Result<RowUnits<'_, F>> {
        let range = batch_range(self.rows.n_rows(), self.n_batches, batch);
        Ok(match &self.order {
            None => RowUnits::range(self.rows, self.weights, range),
            Some(order) => RowUnits::list(self.rows, self.weights, &order[range]),
        })
    }

    fn can_replay(&self) -> bool {
        true
    }

    fn fingerprint(&self) -> u64 {
        self.fingerprint
    }
}

/// Number of rows per fingerprint within a batch.
const PRINTED_TOGETHER: usize = 256;

/// Fingerprints of pieces of the data, which are read repeatedly and must have the same values every time.
#[derive(Debug, Default)]
pub(super) struct Prints(Mutex<Vec<Option<u64>>>);

impl Prints {
    /// Whether a piece has the same fingerprint as when it was first read.
    pub(super) fn agree(&self, piece: usize, print: u64) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let n_known = known.len().max(piece + 1);
        known.resize(n_known, None);
        *known[piece].get_or_insert(print) == print
    }
}

/// Error message if a batch, or a piece of it, differs from its first reading.
pub(crate) const OTHER_VALUES: &str =
    "it has other values than when it was read first; every reading must bring the same rows";

/// The fingerprint of the values of a batch.
fn print_of<F: Real>(units: &RowUnits<'_, F>) -> u64 {
    let (n, d) = (units.len(), units.dimension());
    let (zeros, mut values) = (vec![F::ZERO; d], vec![F::ZERO; PRINTED_TOGETHER * d]);
    (0..n).step_by(PRINTED_TOGETHER).fold(n as u64, |print, first| {
        let rows = first..n.min(first + PRINTED_TOGETHER);
        let values = &mut values[..rows.len() * d];
        units.read(rows, &zeros, values);
        print_of_values(print, values)
    })
}

/// Continues the fingerprint `before` with further values. Zeros of either sign are equal, and so are all NaN.
pub(super) fn print_of_values<F: Real>(before: u64, values: &[F]) -> u64 {
    let bits = |value: &F| match value.to_f64() {
        value if value.is_nan() => f64::NAN.to_bits(),
        value => (value + 0.0).to_bits(),
    };
    fingerprint(before, values.iter().map(bits))
}

/// Batches that a function creates on demand.
pub struct CallbackBatches<G> {
    dimension: usize,
    n_batches: usize,
    load: G,
    prints: Prints,
}

impl<G> CallbackBatches<G> {
    /// Calls `load(b)` for batches `0..n_batches`, once per pass.
    pub fn new<F: Real>(dimension: usize, n_batches: usize, load: G) -> Self
    where
        G: Fn(usize) -> Result<RowUnits<'static, F>> + Send + Sync,
    {
        Self { dimension, n_batches, load, prints: Prints::default() }
    }
}

impl<F: Real, G: Fn(usize) -> Result<RowUnits<'static, F>> + Send + Sync> BatchSource<F> for CallbackBatches<G> {
    fn dimension(&self) -> usize {
        self.dimension
    }

    fn n_batches(&self) -> Option<usize> {
        Some(self.n_batches)
    }

    fn load(&self, batch: usize) -> Result<RowUnits<'_, F>> {
        let units = (self.load)(batch)?;
        let failed = |message| Err(Error::Source { batch: Some(batch), message });
        if units.dimension() != self.dimension {
            return failed(format!("{} columns instead of {}", units.dimension(), self.dimension));
        }
        if self.prints.agree(batch, print_of(&units)) { Ok(units) } else { failed(OTHER_VALUES.into()) }
    }

    fn can_replay(&self) -> bool {
        true
    }

    fn fingerprint(&self) -> u64 {
        0
    }
}

/// A single batch of all rows.
pub fn whole<'a, F: Real>(rows: &'a dyn Rows<F>, weights: Option<&'a [f64]>) -> Result<ArrayBatches<'a, F>> {
    ArrayBatches::new(rows, weights, 1, None, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::DenseRows;

    fn numbers(source: &ArrayBatches<'_, f64>) -> Vec<Vec<usize>> {
        (0..source.n_batches().expect("known"))
            .map(|b| {
                let units = source.load(b).expect("in memory");
                (0..units.len()).map(|unit| units.row_number(unit)).collect()
            })
            .collect()
    }

    #[test]
    fn every_row_is_in_one_batch_and_the_permutation_depends_on_n_only() {
        let rows = DenseRows::new(vec![0.0_f64; 103], 1);
        let seven = numbers(&ArrayBatches::new(&rows, None, 7, Some(5), 0).expect("7 of 103"));
        let mut all: Vec<usize> = seven.concat();
        all.sort_unstable();
        assert_eq!(all, (0..103).collect::<Vec<_>>());
        assert!(seven.iter().all(|batch| (14..=15).contains(&batch.len()) && batch.is_sorted()));

        let one_each = numbers(&ArrayBatches::new(&rows, None, 103, Some(5), 0).expect("as many as rows"));
        let first: std::collections::BTreeSet<usize> = one_each[..seven[0].len()].concat().into_iter().collect();
        assert_eq!(first.into_iter().collect::<Vec<_>>(), seven[0]);
    }

    #[test]
    fn without_shuffle_rows_keep_their_order() {
        let rows = DenseRows::new(vec![0.0_f64; 10], 1);
        let batches = numbers(&ArrayBatches::new(&rows, None, 3, None, 0).expect("3 of 10"));
        assert_eq!(batches.concat(), (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn fingerprints_tell_cuts_and_contents_apart() {
        let rows = DenseRows::new(vec![0.0_f64; 10], 1);
        let print = |n, seed, content| ArrayBatches::new(&rows, None, n, seed, content).expect("allowed").fingerprint();
        let all = [print(2, None, 0), print(3, None, 0), print(2, Some(0), 0), print(2, Some(1), 0), print(2, None, 9)];
        assert!((0..5).all(|i| (0..i).all(|j| all[i] != all[j])));
        assert_eq!(print(2, Some(1), 9), print(2, Some(1), 9));
    }

    #[test]
    fn too_many_batches_are_refused() {
        let rows = DenseRows::new(vec![0.0_f64; 10], 1);
        assert!(ArrayBatches::new(&rows, None, 11, None, 0).is_err());
        assert!(ArrayBatches::new(&rows, None, 0, None, 0).is_err());
    }

    #[test]
    fn a_callback_source_of_the_wrong_width_is_an_error() {
        let source = CallbackBatches::new(3, 2, |batch| {
            let columns = if batch == 0 { 3 } else { 2 };
            Ok(RowUnits::owned(Box::new(DenseRows::new(vec![1.0_f64; 6], columns)), None))
        });
        assert_eq!(source.load(0).expect("three columns").len(), 2);
        assert!(matches!(source.load(1), Err(Error::Source { batch: Some(1), .. })));
    }

    #[test]
    fn a_callback_source_of_other_values_is_an_error() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        let loads = AtomicUsize::new(0);
        let source = CallbackBatches::new(2, 3, |batch| {
            let mut values: Vec<f64> = (0..2000).map(|i| (batch * i) as f64).collect();
            // Changing the sign of a zero is no change; changing the last value of batch 1 is.
            let load = loads.fetch_add(1, Ordering::Relaxed);
            values[0] = if load.is_multiple_of(2) { 0.0 } else { -0.0 };
            values[1999] += if batch == 1 && load > 3 { 1e-9 } else { 0.0 };
            Ok(RowUnits::owned(Box::new(DenseRows::new(values, 2)), None))
        });
        assert!((0..3).chain(0..1).all(|batch| source.load(batch).is_ok()));
        assert!(matches!(source.load(1), Err(Error::Source { batch: Some(1), .. })));
        assert!(source.load(2).is_ok());
    }
}
