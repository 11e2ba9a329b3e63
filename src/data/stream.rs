//! Rows that arrive in blocks and can be read only in order, from the beginning, once per pass.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::data::{
    Allowed, BatchSource, Dataset, DenseRows, OTHER_VALUES, Prints, RowUnits, Rows, ShardRanges, Sharding, check_rows,
    print_of_values,
};
use crate::error::{Error, Result};
use crate::parallel::Cancel;
use crate::real::Real;

/// Approximate size of a slab of rows, in bytes.
const SLAB: usize = 16 << 20;
/// Number of rows per chunk. Each reading is compared with the first one chunk by chunk.
const CHUNK: usize = 64;

/// Blocks of rows, of any sizes, that can be read from the beginning repeatedly.
pub trait Blocks<F: Real>: Send + Sync {
    /// Number of columns of every block.
    fn n_columns(&self) -> usize;

    /// Starts a new reading.
    ///
    /// # Errors
    /// [`Error::Source`] with the source's own message.
    fn start(&self) -> Result<Box<dyn BlockReader<F>>>;
}

/// The blocks of one reading.
pub trait BlockReader<F: Real>: Send {
    /// Returns the values of the next block, a whole number of consecutive rows; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Source`] with the source's own message.
    fn next_block(&mut self) -> Result<Option<Vec<F>>>;
}

/// A reading in progress: a chunk that has been compared with the first reading, and the rest of a block.
struct Cursor<F: Real> {
    reader: Box<dyn BlockReader<F>>,
    block: Vec<F>,
    /// Number of values of the block that have been moved to chunks.
    used: usize,
    chunk: Vec<F>,
    /// Number of values of the chunk that have been consumed.
    taken: usize,
    /// Index of the next row.
    row: usize,
}

impl<F: Real> Cursor<F> {
    fn new(reader: Box<dyn BlockReader<F>>) -> Self {
        Self { reader, block: Vec::new(), used: 0, chunk: Vec::new(), taken: 0, row: 0 }
    }

    /// Fills the chunk with the next rows; fewer than [`CHUNK`] only at the end.
    fn fill(&mut self, d: usize) -> Result<()> {
        self.chunk.clear();
        self.taken = 0;
        while self.chunk.len() < CHUNK * d {
            let left = &self.block[self.used..];
            if !left.is_empty() {
                let n = left.len().min(CHUNK * d - self.chunk.len());
                self.chunk.extend_from_slice(&left[..n]);
                self.used += n;
                continue;
            }
            match self.reader.next_block()? {
                None => break,
                Some(block) if block.len() % d == 0 => (self.block, self.used) = (block, 0),
                Some(block) => return Err(failed(format!("a block of {} values, {d} columns each", block.len()))),
            }
        }
        Ok(())
    }
}

/// A stream of blocks as the rows of a fit. It holds one block, the allowed values, and fingerprints of the first
/// reading, with which all later readings are compared.
pub struct Stream<'a, F: Real> {
    blocks: &'a dyn Blocks<F>,
    weights: Option<&'a [f64]>,
    n_rows: OnceLock<usize>,
    /// Allowed values, and whether values may be missing.
    watched: Mutex<Option<(Allowed, bool)>>,
    cursor: Mutex<Option<Cursor<F>>>,
    /// Fingerprints of the chunks.
    prints: Prints,
}

impl<'a, F: Real> Stream<'a, F> {
    /// Creates a stream without reading anything.
    pub fn new(blocks: &'a dyn Blocks<F>, weights: Option<&'a [f64]>) -> Self {
        let (watched, cursor) = (Mutex::new(None), Mutex::new(None));
        Self { blocks, weights, n_rows: OnceLock::new(), watched, cursor, prints: Prints::default() }
    }

    fn cursor(&self) -> MutexGuard<'_, Option<Cursor<F>>> {
        // After a failed reading, starts again from the beginning.
        self.cursor.lock().unwrap_or_else(|poisoned| {
            let mut cursor = PoisonError::into_inner(poisoned);
            *cursor = None;
            cursor
        })
    }

    fn start(&self) -> Result<Cursor<F>> {
        Ok(Cursor::new(self.blocks.start()?))
    }

    /// Moves rows of the current chunk, or of the next one, to the end of `out`, stopping before row `end`. Returns
    /// their number, which is 0 after the last row.
    fn advance(&self, cursor: &mut Cursor<F>, end: usize, mut out: Option<&mut Vec<F>>) -> Result<usize> {
        let d = self.n_columns();
        if cursor.taken == cursor.chunk.len() {
            cursor.fill(d)?;
            self.compare(cursor)?;
        }
        let left = &cursor.chunk[cursor.taken..];
        let n = (end - cursor.row).min(left.len() / d);
        if let Some(out) = &mut out {
            out.extend_from_slice(&left[..n * d]);
        }
        cursor.taken += n * d;
        cursor.row += n;
        Ok(n)
    }

    /// Refuses a new chunk that differs from the first reading.
    fn compare(&self, cursor: &Cursor<F>) -> Result<()> {
        let (d, row) = (self.n_columns(), cursor.row);
        let found = cursor.chunk.len() / d;
        if let Some(&n) = self.n_rows.get() {
            let expected = CHUNK.min(n - row);
            let message = if found < expected {
                format!("it ended after {} rows, but had {n} at first", row + found)
            } else {
                format!("it has more rows than at first, {n}")
            };
            if found != expected {
                return Err(failed(format!("{message}; every reading must bring the same rows")));
            }
        }
        if found == 0 || self.prints.agree(row / CHUNK, print_of_values(found as u64, &cursor.chunk)) {
            return Ok(());
        }
        let rows = Window::new(row, cursor.chunk.clone(), d);
        self.check(&RowUnits::window(Box::new(rows), None, row..row + found))?;
        Err(failed(OTHER_VALUES.into()))
    }

    /// Refuses values that are not allowed.
    fn check(&self, units: &RowUnits<'_, F>) -> Result<()> {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some((allowed, missing)) = watched else { return Ok(()) };
        check_rows(units, &allowed, missing, "data", &Cancel::default()).map_err(changed)
    }

    /// Reads the rows in `range`, which must be rows of the stream. Continues the current reading if possible,
    /// otherwise starts a new one.
    fn read(&self, range: Range<usize>) -> Result<Vec<F>> {
        let (d, n) = (self.n_columns(), self.n_rows());
        let mut guard = self.cursor();
        // After any failure the next call starts a new reading. A reading that is given up ends before another begins.
        let mut cursor = match guard.take().filter(|cursor| cursor.row <= range.start) {
            Some(cursor) => cursor,
            None => self.start()?,
        };
        while cursor.row < range.start {
            self.advance(&mut cursor, range.start, None)?;
        }
        let mut values = room(range.len(), d)?;
        while cursor.row < range.end {
            self.advance(&mut cursor, range.end, Some(&mut values))?;
        }
        if range.end < n {
            *guard = Some(cursor);
        } else {
            // More rows than expected are an error.
            self.advance(&mut cursor, n + 1, None)?;
        }
        Ok(values)
    }
}

/// Converts the error of a later reading with values outside the domain.
fn changed(error: Error) -> Error {
    match error {
        Error::InvalidArgument { .. } => failed(format!("{error}; every reading must bring the same rows")),
        other => other,
    }
}

/// Allocates space for `n` rows.
fn room<F>(n: usize, d: usize) -> Result<Vec<F>> {
    let mut values = Vec::new();
    values.try_reserve_exact(n.saturating_mul(d)).map_err(|_| {
        Error::invalid("batches", format!("batches of {n} rows"), "more batches, each small enough for memory")
    })?;
    Ok(values)
}

fn failed(message: String) -> Error {
    Error::Source { batch: None, message }
}

impl<F: Real> Dataset<F> for Stream<'_, F> {
    fn n_columns(&self) -> usize {
        self.blocks.n_columns()
    }

    fn n_rows(&self) -> usize {
        self.n_rows.get().copied().unwrap_or(0)
    }

    fn weights(&self) -> Option<&[f64]> {
        self.weights
    }

    fn for_each_slab(&self, multiple: usize, take: &mut dyn FnMut(&RowUnits<'_, F>) -> Result<()>) -> Result<()> {
        let d = self.n_columns();
        let size = (SLAB / (d * size_of::<F>()).max(1) / multiple).max(1) * multiple;
        let mut cursor = self.start()?;
        loop {
            let first = cursor.row;
            let mut values = Vec::new();
            while cursor.row < first + size && self.advance(&mut cursor, first + size, Some(&mut values))? > 0 {}
            let end = cursor.row;
            if end == first {
                break;
            }
            if let Some(weights) = self.weights.filter(|weights| weights.len() < end) {
                return Err(other_length(weights.len(), &format!("at least {end}")));
            }
            let units = RowUnits::window(Box::new(Window::new(first, values, d)), self.weights, first..end);
            take(&units)?;
        }
        let n = cursor.row;
        match self.weights {
            Some(weights) if weights.len() != n => return Err(other_length(weights.len(), &n.to_string())),
            _ => {}
        }
        if n == 0 {
            return Err(failed("it has no rows; every reading must begin anew".into()));
        }
        self.n_rows.get_or_init(|| n);
        Ok(())
    }

    fn pick(&self, rows: &[u64]) -> Result<RowUnits<'_, F>> {
        debug_assert!(rows.is_sorted(), "each step back would begin another reading");
        let d = self.n_columns();
        let mut values = room(rows.len(), d)?;
        for &row in rows {
            let row = row as usize;
            values.extend(self.read(row..row + 1)?);
        }
        let weights = self.weights.map(|weights| rows.iter().map(|&row| weights[row as usize]).collect());
        Ok(RowUnits::owned(Box::new(DenseRows::new(values, d)), weights))
    }

    fn batches(&self, sharding: Sharding) -> Result<Box<dyn BatchSource<F> + '_>> {
        if sharding.shuffle.is_some() && sharding.n_batches > 1 {
            return Err(Error::not_supported(
                "shuffle",
                "shuffle=True with a source that is read in order",
                "its rows can only be read in their own order",
                "shuffle=False, with rows already in random order",
            ));
        }
        Ok(Box::new(StreamBatches { stream: self, ranges: ShardRanges::new(self.n_rows(), &sharding)? }))
    }

    fn watch(&self, allowed: Allowed, missing: bool) {
        *self.watched.lock().unwrap_or_else(PoisonError::into_inner) = Some((allowed, missing));
    }

    fn can_seek(&self) -> bool {
        false
    }
}

fn other_length(found: usize, rows: &str) -> Error {
    Error::invalid(
        "sample_weight",
        format!("of {found} values"),
        format!("of {rows} values, one for every row of the data"),
    )
}

/// Rows that keep their row numbers in the whole stream.
struct Window<F: Real> {
    first: usize,
    rows: DenseRows<'static, F>,
}

impl<F: Real> Window<F> {
    fn new(first: usize, values: Vec<F>, d: usize) -> Self {
        Self { first, rows: DenseRows::new(values, d) }
    }
}

impl<F: Real> Rows<F> for Window<F> {
    fn n_rows(&self) -> usize {
        self.first + self.rows.n_rows()
    }

    fn n_columns(&self) -> usize {
        self.rows.n_columns()
    }

    fn read_row(&self, row: usize, out: &mut [F]) {
        self.rows.read_row(row - self.first, out);
    }

    fn read_rows(&self, rows: &[usize], out: &mut [F]) {
        let rows: Vec<usize> = rows.iter().map(|row| row - self.first).collect();
        self.rows.read_rows(&rows, out);
    }
}

/// Batches of consecutive rows of a stream.
struct StreamBatches<'a, F: Real> {
    stream: &'a Stream<'a, F>,
    ranges: ShardRanges,
}

impl<F: Real> BatchSource<F> for StreamBatches<'_, F> {
    fn dimension(&self) -> usize {
        self.stream.n_columns()
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
        let values = self.stream.read(range.clone()).map_err(|error| error.at_batch(self.ranges.batch(shard)))?;
        let window = Window::new(range.start, values, self.dimension());
        Ok(RowUnits::window(Box::new(window), self.stream.weights, range))
    }

    fn can_replay(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::prelude::*;

    use super::*;
    use crate::data::{Domain, Needs, TableRows, moments};
    use crate::parallel::Cancel;

    /// Rows 0, 1, 2, ... of two columns, in blocks of the listed sizes, with a separate list for each reading.
    struct Counting {
        readings: Vec<Vec<usize>>,
        begun: AtomicUsize,
        /// A reading, and the row whose values differ in it.
        changed: (usize, usize),
    }

    impl Counting {
        fn new(readings: Vec<Vec<usize>>) -> Self {
            Self { readings, begun: AtomicUsize::new(0), changed: (usize::MAX, 0) }
        }

        fn begun(&self) -> usize {
            self.begun.load(Ordering::Relaxed)
        }
    }

    struct Reading {
        sizes: std::vec::IntoIter<usize>,
        row: usize,
        changed: usize,
    }

    fn row(number: usize) -> [f64; 2] {
        [number as f64, (number as f64 * 0.7).sin()]
    }

    impl Blocks<f64> for Counting {
        fn n_columns(&self) -> usize {
            2
        }

        fn start(&self) -> Result<Box<dyn BlockReader<f64>>> {
            let begun = self.begun.fetch_add(1, Ordering::Relaxed);
            let sizes = self.readings[begun.min(self.readings.len() - 1)].clone().into_iter();
            let changed = if begun == self.changed.0 { self.changed.1 } else { usize::MAX };
            Ok(Box::new(Reading { sizes, row: 0, changed }))
        }
    }

    impl BlockReader<f64> for Reading {
        fn next_block(&mut self) -> Result<Option<Vec<f64>>> {
            let Some(size) = self.sizes.next() else { return Ok(None) };
            let first = self.row;
            self.row += size;
            let mut values: Vec<f64> = (first..self.row).flat_map(row).collect();
            if (first..self.row).contains(&self.changed) {
                values[2 * (self.changed - first)] += 1e-9;
            }
            Ok(Some(values))
        }
    }

    fn counted<'a>(blocks: &'a Counting, weights: Option<&'a [f64]>) -> Stream<'a, f64> {
        let stream = Stream::new(blocks, weights);
        stream.for_each_slab(4, &mut |_| Ok(())).expect("readable");
        stream
    }

    fn rows_of(units: &RowUnits<'_, f64>) -> Vec<f64> {
        let mut out = vec![0.0; 2 * units.len()];
        units.read(0..units.len(), &[0.0, 0.0], &mut out);
        out
    }

    fn said(error: &Error) -> String {
        error.to_string()
    }

    proptest! {
        /// For any block sizes, batches, moments and picked rows equal those of the table.
        #[test]
        fn it_is_the_table(
            sizes in prop::collection::vec(0_usize..2000, 1..8),
            n_batches in 1_usize..6,
            shard_rows in prop_oneof![1_usize..2000, Just(usize::MAX)],
            weighted in any::<bool>(),
        ) {
            let n: usize = sizes.iter().sum();
            prop_assume!(n >= n_batches);
            let values: Vec<f64> = (0..n).flat_map(row).collect();
            let weights: Vec<f64> = (0..n).map(|number| (number % 3) as f64 + 0.1).collect();
            let weights = weighted.then_some(weights.as_slice());
            let rows = DenseRows::new(values, 2);
            let table = TableRows { rows: &rows, weights };
            let blocks = Counting::new(vec![sizes]);
            let stream = Stream::new(&blocks, weights);

            let cancel = Cancel::default();
            for needs in [Needs::Means, Needs::Variances, Needs::Covariance] {
                let allowed = Domain::Real.into();
                let found = moments(&stream, needs, &allowed, false, &cancel);
                prop_assert_eq!(found, moments(&table, needs, &allowed, false, &cancel));
            }
            let sharding = Sharding { n_batches, shuffle: None, shard_rows };
            let (ours, theirs) = (stream.batches(sharding)?, table.batches(sharding)?);
            prop_assert!((0..n_batches).all(|batch| ours.shards(batch) == theirs.shards(batch)));
            for _ in 0..2 {
                for shard in 0..ours.n_shards().expect("known") {
                    let (ours, theirs) = (ours.load(shard)?, theirs.load(shard)?);
                    prop_assert_eq!(rows_of(&ours), rows_of(&theirs));
                    let last = ours.len() - 1;
                    prop_assert_eq!(ours.row_number(last), theirs.row_number(last));
                    prop_assert_eq!(ours.mass(last), theirs.mass(last));
                }
            }
            let list: Vec<u64> = (0..n as u64).step_by(7).collect();
            let (ours, theirs) = (stream.pick(&list)?, table.pick(&list)?);
            prop_assert_eq!(rows_of(&ours), rows_of(&theirs));
            prop_assert_eq!(ours.mass(0), theirs.mass(0));
        }
    }

    #[test]
    fn a_pass_in_order_is_one_reading() {
        let blocks = Counting::new(vec![vec![3, 5, 2]]);
        let stream = counted(&blocks, None);
        let batches = stream.batches(Sharding::of(4, None)).expect("4 of 10");
        for passes in 1..=3 {
            for batch in 0..4 {
                batches.load(batch).expect("there");
            }
            assert_eq!(blocks.begun(), 1 + passes);
        }
        // Going back to an earlier batch starts a new reading, which skips the rows before it.
        batches.load(2).expect("there");
        batches.load(1).expect("there");
        assert_eq!(blocks.begun(), 6);
    }

    #[test]
    fn slabs_hold_whole_blocks_of_rows() {
        let blocks = Counting::new(vec![vec![3, 500, 2]]);
        let mut sizes = Vec::new();
        Stream::new(&blocks, None)
            .for_each_slab(4, &mut |units| {
                sizes.push((units.row_number(0), units.len()));
                Ok(())
            })
            .expect("readable");
        assert_eq!(sizes, [(0, 505)]);
    }

    #[test]
    fn other_rows_in_a_later_reading_are_an_error() {
        for (later, message) in [
            (vec![4, 2], "ended after 6 rows"),
            (vec![4, 7], "more rows than at first, 10"),
            (vec![], "ended after 0 rows"),
        ] {
            let blocks = Counting::new(vec![vec![10], later, vec![10]]);
            let stream = counted(&blocks, None);
            let batches = stream.batches(Sharding::of(2, None)).expect("2 of 10");
            let error = (0..2).find_map(|batch| batches.load(batch).err()).expect("not the same rows");
            assert!(said(&error).contains(message), "{error}");
            assert!(matches!(error, Error::Source { batch: Some(_), .. }));
            // The stream can be read again.
            assert_eq!(batches.load(1).expect("the third reading is whole").len(), 5);
        }
    }

    #[test]
    fn other_values_in_any_reading_are_an_error() {
        for (reading, row) in [(1, 0), (1, 299), (2, 70), (3, 128), (3, 299)] {
            let blocks = Counting { changed: (reading, row), ..Counting::new(vec![vec![100, 150, 50]]) };
            let stream = counted(&blocks, None);
            let batches = stream.batches(Sharding::of(3, None)).expect("3 of 300");
            // Readings 1 to 3: a slab, the last row (skipping all others), batches.
            let errors = [
                stream.for_each_slab(4, &mut |_| Ok(())).err(),
                stream.pick(&[299]).err(),
                (0..3).find_map(|batch| batches.load(batch).err()),
            ];
            for (number, error) in errors.into_iter().enumerate() {
                assert_eq!(error.is_some(), number + 1 == reading, "{row}: {error:?}");
                assert!(error.is_none_or(|error| said(&error).contains("other values")));
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let blocks = Counting::new(vec![vec![6, 4]]);
        for n in [5, 9, 11] {
            let weights = vec![1.0; n];
            let error = Stream::new(&blocks, Some(&weights)).for_each_slab(4, &mut |_| Ok(())).expect_err("10 rows");
            assert!(said(&error).contains("sample_weight"), "{error}");
        }
        let stream = counted(&blocks, None);
        assert!(matches!(stream.batches(Sharding::of(2, Some(1))), Err(Error::NotSupported { .. })));
        assert!(stream.batches(Sharding::of(0, None)).is_err() && stream.batches(Sharding::of(11, None)).is_err());
        let fewer = Counting::new(vec![vec![10], vec![9]]);
        let stream = counted(&fewer, None);
        assert!(said(&stream.for_each_slab(4, &mut |_| Ok(())).expect_err("9 of 10")).contains("had 10 at first"));
    }
}
