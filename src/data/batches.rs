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
    /// Number of shards of all batches, if the source knows it.
    fn n_shards(&self) -> Option<usize> {
        self.n_batches()
    }
    /// The shards of a batch, in the order in which their sums are added up. Every shard is in one batch.
    fn shards(&self, batch: usize) -> Vec<usize> {
        vec![batch]
    }
    /// Loads a shard, which must have the same units every time.
    ///
    /// # Errors
    /// [`Error::Source`] with the source's own message.
    fn load(&self, shard: usize) -> Result<RowUnits<'_, F>>;
    /// Whether a shard can be loaded more than once.
    fn can_replay(&self) -> bool;
}

/// A table in memory or in a memory map. Its rows are assigned to batches by a permutation that depends on the seed.
pub struct ArrayBatches<'a, F: Real> {
    rows: &'a dyn Rows<F>,
    weights: Option<&'a [f64]>,
    order: Option<Vec<u32>>,
    ranges: ShardRanges,
}

impl<'a, F: Real> ArrayBatches<'a, F> {
    /// Divides `rows`. Their permutation depends only on the seed and on the number of rows.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for no batch, more batches than rows, or more than 2^32 - 1 rows.
    pub fn new(rows: &'a dyn Rows<F>, weights: Option<&'a [f64]>, sharding: Sharding) -> Result<Self> {
        let n = rows.n_rows();
        let Sharding { n_batches, shuffle, .. } = sharding;
        let ranges = ShardRanges::new(n, &sharding)?;
        let count = row_count(n)?;
        // With a single batch the order does not matter, and the original order lets a memory map be read sequentially.
        let order = shuffle.filter(|_| n_batches > 1).map(|seed| {
            let mut order = permutation(count, &mut stream(seed, Purpose::Batches, 0));
            for batch in 0..n_batches {
                order[batch_range(n, n_batches, batch)].sort_unstable();
            }
            order
        });
        Ok(Self { rows, weights, order, ranges })
    }
}

/// The number of rows of a table, whose rows have 32-bit numbers.
///
/// # Errors
/// [`Error::InvalidArgument`] for more than 2^32 - 1 rows.
pub(super) fn row_count(n: usize) -> Result<u32> {
    u32::try_from(n).map_err(|_| Error::invalid("data", format!("{n} rows"), "at most 4294967295 rows"))
}

/// How rows are divided into batches, and these into shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sharding {
    /// Number of batches.
    pub n_batches: usize,
    /// The seed by which rows are shuffled, if they are.
    pub shuffle: Option<u64>,
    /// Maximum number of rows of a shard.
    pub shard_rows: usize,
}

impl Sharding {
    /// Batches of one shard each.
    pub fn of(n_batches: usize, shuffle: Option<u64>) -> Self {
        Self { n_batches, shuffle, shard_rows: usize::MAX }
    }
}

/// Consecutive rows, in shuffled order, as shards of batches. Sizes of batches differ by at most one row. All shards of
/// a batch but the last are as large as allowed.
#[derive(Debug)]
pub(super) struct ShardRanges {
    /// The rows of each shard.
    rows: Vec<Range<usize>>,
    /// The shards of each batch.
    shards: Vec<Range<usize>>,
}

impl ShardRanges {
    /// Divides `n` rows.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for no batch, or more batches than rows.
    pub(super) fn new(n: usize, sharding: &Sharding) -> Result<Self> {
        let &Sharding { n_batches, shard_rows, .. } = sharding;
        if n_batches == 0 || n_batches > n {
            return Err(Error::invalid("batches", n_batches, format!("between 1 and the number of rows, {n}")));
        }
        let (mut rows, mut shards) = (Vec::new(), Vec::new());
        for batch in 0..n_batches {
            let (first, all) = (rows.len(), batch_range(n, n_batches, batch));
            let starts = all.clone().step_by(shard_rows.max(1));
            rows.extend(starts.map(|start| start..start.saturating_add(shard_rows.max(1)).min(all.end)));
            shards.push(first..rows.len());
        }
        Ok(Self { rows, shards })
    }

    pub(super) fn n_batches(&self) -> usize {
        self.shards.len()
    }

    pub(super) fn n_shards(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn shards(&self, batch: usize) -> Vec<usize> {
        self.shards[batch].clone().collect()
    }

    /// The batch of a shard.
    pub(super) fn batch(&self, shard: usize) -> usize {
        self.shards.partition_point(|shards| shards.end <= shard)
    }

    /// The rows of a shard.
    pub(super) fn rows(&self, shard: usize) -> Range<usize> {
        self.rows[shard].clone()
    }
}

/// The rows of batch `b` of `n_batches`, in shuffled order.
pub(super) fn batch_range(n: usize, n_batches: usize, b: usize) -> Range<usize> {
    let start = |b: usize| ((n as u128 * b as u128) / n_batches as u128) as usize;
    start(b)..start(b + 1)
}

impl<F: Real> BatchSource<F> for ArrayBatches<'_, F> {
    fn dimension(&self) -> usize {
        self.rows.n_columns()
    }

    fn n_batches(&self) -> Option<usize> {
        Some(self.ranges.n_batches())
    }

    fn n_shards(&self) -> Option<usize> {
        Some(self.ranges.n_shards())
    }

    fn shards(&self, batch: usize) -> Vec<usize> {
        self.ranges.shards(batch)
    }

    fn load(&self, shard: usize) -> Result<RowUnits<'_, F>> {
        let range = self.ranges.rows(shard);
        Ok(match &self.order {
            None => RowUnits::range(self.rows, self.weights, range),
            Some(order) => RowUnits::list(self.rows, self.weights, &order[range]),
        })
    }

    fn can_replay(&self) -> bool {
        true
    }
}

/// Number of rows per fingerprint within a batch.
const PRINTED_TOGETHER: usize = 256;

/// Fingerprints of pieces of the data, which are read repeatedly and must have the same values every time.
#[derive(Debug, Default)]
pub(super) struct Prints(Mutex<Vec<Option<u64>>>);

impl Prints {
    /// Notes the fingerprints of all pieces, unless those of some are known.
    pub(super) fn begin(&self, prints: &[u64]) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_empty() {
            known.extend(prints.iter().copied().map(Some));
        }
    }

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

/// The error for a shard that differs from its first reading.
pub(crate) fn changed_shard(batch: Option<usize>, shard: usize) -> Error {
    Error::Source { batch, message: OTHER_VALUES.replacen("it", &format!("shard {shard}"), 1) }
}

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
}

/// A single batch of all rows, in one shard.
pub fn whole<'a, F: Real>(rows: &'a dyn Rows<F>, weights: Option<&'a [f64]>) -> Result<ArrayBatches<'a, F>> {
    ArrayBatches::new(rows, weights, Sharding::of(1, None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::DenseRows;

    fn numbers(source: &ArrayBatches<'_, f64>) -> Vec<Vec<usize>> {
        (0..source.n_shards().expect("known"))
            .map(|b| {
                let units = source.load(b).expect("in memory");
                (0..units.len()).map(|unit| units.row_number(unit)).collect()
            })
            .collect()
    }

    #[test]
    fn every_row_is_in_one_batch_and_the_permutation_depends_on_n_only() {
        let rows = DenseRows::new(vec![0.0_f64; 103], 1);
        let seven = numbers(&ArrayBatches::new(&rows, None, Sharding::of(7, Some(5))).expect("7 of 103"));
        let mut all: Vec<usize> = seven.concat();
        all.sort_unstable();
        assert_eq!(all, (0..103).collect::<Vec<_>>());
        assert!(seven.iter().all(|batch| (14..=15).contains(&batch.len()) && batch.is_sorted()));

        let one_each = numbers(&ArrayBatches::new(&rows, None, Sharding::of(103, Some(5))).expect("as many as rows"));
        let first: std::collections::BTreeSet<usize> = one_each[..seven[0].len()].concat().into_iter().collect();
        assert_eq!(first.into_iter().collect::<Vec<_>>(), seven[0]);
    }

    #[test]
    fn without_shuffle_rows_keep_their_order() {
        let rows = DenseRows::new(vec![0.0_f64; 10], 1);
        let batches = numbers(&ArrayBatches::new(&rows, None, Sharding::of(3, None)).expect("3 of 10"));
        assert_eq!(batches.concat(), (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn shards_of_a_batch_are_its_rows_in_order() {
        let rows = DenseRows::new(vec![0.0_f64; 103], 1);
        let batches = numbers(&ArrayBatches::new(&rows, None, Sharding::of(7, Some(5))).expect("7 of 103"));
        for shard_rows in [1, 4, 14, 15, usize::MAX] {
            let sharding = Sharding { shard_rows, ..Sharding::of(7, Some(5)) };
            let source = ArrayBatches::new(&rows, None, sharding).expect("7 of 103");
            let mut shards = numbers(&source);
            assert_eq!(source.n_shards(), Some(shards.len()));
            for (index, batch) in batches.iter().enumerate() {
                let listed = source.shards(index);
                assert!(listed.is_sorted() && listed.iter().all(|&shard| shards[shard].len() <= shard_rows));
                assert_eq!(listed.len(), batch.len().div_ceil(shard_rows));
                let joined: Vec<usize> = listed.iter().flat_map(|&shard| std::mem::take(&mut shards[shard])).collect();
                assert_eq!(joined, *batch);
            }
            assert!(shards.iter().all(Vec::is_empty), "a shard is in one batch");
        }
    }

    #[test]
    fn too_many_batches_are_refused() {
        let rows = DenseRows::new(vec![0.0_f64; 10], 1);
        assert!(ArrayBatches::new(&rows, None, Sharding::of(11, None)).is_err());
        assert!(ArrayBatches::new(&rows, None, Sharding::of(0, None)).is_err());
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
