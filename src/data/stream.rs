//! Rows that come in blocks and can be read only in order, from the beginning, as often as a fit makes passes.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::data::{
    Allowed, BatchSource, Dataset, DenseRows, Prints, RowUnits, Rows, batch_range, check_rows, cut_fingerprint,
};
use crate::error::{Error, Result};
use crate::parallel::Cancel;
use crate::real::Real;

/// Bytes of a slab of rows, roughly.
const SLAB: usize = 16 << 20;

/// Blocks of rows, of any sizes, that can be read from the beginning as often as needed.
pub trait Blocks<F: Real>: Send + Sync {
    /// Number of columns of every block.
    fn n_columns(&self) -> usize;

    /// Starts from the beginning.
    ///
    /// # Errors
    /// [`Error::Source`] in the source's own words.
    fn start(&self) -> Result<Box<dyn BlockReader<F>>>;
}

/// The blocks of one reading.
pub trait BlockReader<F: Real>: Send {
    /// The values of the next block, whole rows one after another; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Source`] in the source's own words.
    fn next_block(&mut self) -> Result<Option<Vec<F>>>;
}

/// A reading under way: at most one block that has not been used up.
struct Cursor<F: Real> {
    reader: Box<dyn BlockReader<F>>,
    block: Vec<F>,
    /// Values of the block that have been used.
    used: usize,
    /// The row that comes next.
    row: usize,
}

impl<F: Real> Cursor<F> {
    /// Moves up to `n` rows of the current block, or of the next one, to the end of `out`; 0 at the end.
    fn advance(&mut self, d: usize, n: usize, mut out: Option<&mut Vec<F>>) -> Result<usize> {
        while self.used == self.block.len() {
            match self.reader.next_block()? {
                None => return Ok(0),
                Some(block) if block.len() % d == 0 => (self.block, self.used) = (block, 0),
                Some(block) => return Err(failed(format!("a block of {} values, {d} columns each", block.len()))),
            }
        }
        let n = n.min((self.block.len() - self.used) / d);
        if let Some(out) = &mut out {
            out.extend_from_slice(&self.block[self.used..][..n * d]);
        }
        self.used += n * d;
        self.row += n;
        Ok(n)
    }
}

/// A stream of blocks as the rows of a fit. It holds one block and the demands on its values.
pub struct Stream<'a, F: Real> {
    blocks: &'a dyn Blocks<F>,
    weights: Option<&'a [f64]>,
    n_rows: OnceLock<usize>,
    /// What values must be, and whether some may be missing.
    watched: Mutex<Option<(Allowed, bool)>>,
    cursor: Mutex<Option<Cursor<F>>>,
}

impl<'a, F: Real> Stream<'a, F> {
    /// Nothing is read yet.
    pub fn new(blocks: &'a dyn Blocks<F>, weights: Option<&'a [f64]>) -> Self {
        Self { blocks, weights, n_rows: OnceLock::new(), watched: Mutex::new(None), cursor: Mutex::new(None) }
    }

    fn cursor(&self) -> MutexGuard<'_, Option<Cursor<F>>> {
        // A reading that failed starts again from the beginning.
        self.cursor.lock().unwrap_or_else(|poisoned| {
            let mut cursor = PoisonError::into_inner(poisoned);
            *cursor = None;
            cursor
        })
    }

    fn start(&self) -> Result<Cursor<F>> {
        Ok(Cursor { reader: self.blocks.start()?, block: Vec::new(), used: 0, row: 0 })
    }

    fn check(&self, units: &RowUnits<'_, F>) -> Result<()> {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some((allowed, missing)) = watched else { return Ok(()) };
        check_rows(units, &allowed, missing, "data", &Cancel::default()).map_err(changed)
    }

    /// The values of the rows in `range`, which must be rows of the stream; reading goes on where it is, or starts
    /// again.
    fn read(&self, range: Range<usize>) -> Result<Vec<F>> {
        let (d, n) = (self.n_columns(), self.n_rows());
        let mut guard = self.cursor();
        // After any failure the next reading is a new one.
        let mut cursor = match guard.take() {
            Some(cursor) if cursor.row <= range.start => cursor,
            _ => self.start()?,
        };
        let ended = |row| {
            let message =
                format!("it ended after {row} rows, but had {n} at first; every reading must bring the same rows");
            Err(failed(message))
        };
        while cursor.row < range.start {
            if cursor.advance(d, range.start - cursor.row, None)? == 0 {
                return ended(cursor.row);
            }
        }
        let mut values = room(range.len(), d)?;
        while cursor.row < range.end {
            if cursor.advance(d, range.end - cursor.row, Some(&mut values))? == 0 {
                return ended(cursor.row);
            }
        }
        if range.end < n {
            *guard = Some(cursor);
        } else if cursor.advance(d, 1, None)? > 0 {
            let message = format!("it has more rows than at first, {n}; every reading must bring the same rows");
            return Err(failed(message));
        }
        Ok(values)
    }
}

/// The error of a later reading with values outside the domain.
fn changed(error: Error) -> Error {
    match error {
        Error::InvalidArgument { .. } => failed(format!("{error}; every reading must bring the same rows")),
        other => other,
    }
}

/// Room for this many rows.
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
            while cursor.row < first + size && cursor.advance(d, first + size - cursor.row, Some(&mut values))? > 0 {}
            let end = cursor.row;
            if end == first {
                break;
            }
            if let Some(weights) = self.weights.filter(|weights| weights.len() < end) {
                return Err(other_length(weights.len(), &format!("at least {end}")));
            }
            let units = RowUnits::window(Box::new(Window::new(first, values, d)), self.weights, first..end);
            if self.n_rows.get().is_some() {
                self.check(&units)?;
            }
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
        let known = *self.n_rows.get_or_init(|| n);
        if known == n {
            return Ok(());
        }
        Err(failed(format!("it brought {known} rows at first, and {n} then; every reading must bring the same rows")))
    }

    fn pick(&self, rows: &[u32]) -> Result<RowUnits<'_, F>> {
        let d = self.n_columns();
        let mut values = room(rows.len(), d)?;
        for &row in rows {
            let row = row as usize;
            let window = Window::new(row, self.read(row..row + 1)?, d);
            let units = RowUnits::window(Box::new(window), None, row..row + 1);
            self.check(&units)?;
            let first = values.len();
            values.resize(first + d, F::ZERO);
            units.read(0..1, &vec![F::ZERO; d], &mut values[first..]);
        }
        let weights = self.weights.map(|weights| rows.iter().map(|&row| weights[row as usize]).collect());
        Ok(RowUnits::owned(Box::new(DenseRows::new(values, d)), weights))
    }

    fn batches(&self, n_batches: usize, shuffle: Option<u64>, content: u64) -> Result<Box<dyn BatchSource<F> + '_>> {
        let n = self.n_rows();
        if shuffle.is_some() && n_batches > 1 {
            return Err(Error::not_supported(
                "shuffle",
                "shuffle=True with a source that is read in order",
                "its rows come as they are",
                "shuffle=False, with rows that are in random order",
            ));
        }
        if n_batches == 0 || n_batches > n {
            return Err(Error::invalid("batches", n_batches, format!("between 1 and the number of rows, {n}")));
        }
        let fingerprint = cut_fingerprint(content, n, self.n_columns(), n_batches, shuffle);
        Ok(Box::new(StreamBatches { stream: self, n_batches, fingerprint, prints: Prints::new(n_batches) }))
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

/// Rows that have the numbers which they have in the whole stream.
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

/// Consecutive runs of the rows of a stream.
struct StreamBatches<'a, F: Real> {
    stream: &'a Stream<'a, F>,
    n_batches: usize,
    fingerprint: u64,
    prints: Prints,
}

impl<F: Real> BatchSource<F> for StreamBatches<'_, F> {
    fn dimension(&self) -> usize {
        self.stream.n_columns()
    }

    fn n_batches(&self) -> Option<usize> {
        Some(self.n_batches)
    }

    fn load(&self, batch: usize) -> Result<RowUnits<'_, F>> {
        let range = batch_range(self.stream.n_rows(), self.n_batches, batch);
        let named = |error| match error {
            Error::Source { batch: None, message } => Error::Source { batch: Some(batch), message },
            other => other,
        };
        let values = self.stream.read(range.clone()).map_err(named)?;
        let window = Window::new(range.start, values, self.dimension());
        let units = RowUnits::window(Box::new(window), self.stream.weights, range);
        self.stream.check(&units).map_err(named)?;
        self.prints.check(batch, &units)?;
        Ok(units)
    }

    fn can_replay(&self) -> bool {
        true
    }

    fn fingerprint(&self) -> u64 {
        self.fingerprint
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::prelude::*;

    use super::*;
    use crate::data::{Domain, Needs, TableRows, moments};
    use crate::parallel::Cancel;

    /// Rows 0, 1, 2, ... of two columns in blocks of the sizes of the list, for each reading another list.
    struct Counting {
        readings: Vec<Vec<usize>>,
        begun: AtomicUsize,
    }

    impl Counting {
        fn new(readings: Vec<Vec<usize>>) -> Self {
            Self { readings, begun: AtomicUsize::new(0) }
        }

        fn begun(&self) -> usize {
            self.begun.load(Ordering::Relaxed)
        }
    }

    struct Reading {
        sizes: std::vec::IntoIter<usize>,
        row: usize,
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
            Ok(Box::new(Reading { sizes, row: 0 }))
        }
    }

    impl BlockReader<f64> for Reading {
        fn next_block(&mut self) -> Result<Option<Vec<f64>>> {
            let Some(size) = self.sizes.next() else { return Ok(None) };
            let first = self.row;
            self.row += size;
            Ok(Some((first..self.row).flat_map(row).collect()))
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
        /// For any blocks, batches, moments and picked rows are those of the table.
        #[test]
        fn it_is_the_table(
            sizes in prop::collection::vec(0_usize..2000, 1..8),
            n_batches in 1_usize..6,
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
            let (ours, theirs) = (stream.batches(n_batches, None, 5)?, table.batches(n_batches, None, 5)?);
            prop_assert_eq!(ours.fingerprint(), theirs.fingerprint());
            for _ in 0..2 {
                for batch in 0..n_batches {
                    let (ours, theirs) = (ours.load(batch)?, theirs.load(batch)?);
                    prop_assert_eq!(rows_of(&ours), rows_of(&theirs));
                    let last = ours.len() - 1;
                    prop_assert_eq!(ours.row_number(last), theirs.row_number(last));
                    prop_assert_eq!(ours.mass(last), theirs.mass(last));
                }
            }
            let list: Vec<u32> = (0..n as u32).step_by(7).collect();
            let (ours, theirs) = (stream.pick(&list)?, table.pick(&list)?);
            prop_assert_eq!(rows_of(&ours), rows_of(&theirs));
            prop_assert_eq!(ours.mass(0), theirs.mass(0));
        }
    }

    #[test]
    fn a_pass_in_order_is_one_reading() {
        let blocks = Counting::new(vec![vec![3, 5, 2]]);
        let stream = counted(&blocks, None);
        let batches = stream.batches(4, None, 0).expect("4 of 10");
        for passes in 1..=3 {
            for batch in 0..4 {
                batches.load(batch).expect("there");
            }
            assert_eq!(blocks.begun(), 1 + passes);
        }
        // Back to an earlier batch: a new reading, which passes over what comes before.
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
            let batches = stream.batches(2, None, 0).expect("2 of 10");
            let error = (0..2).find_map(|batch| batches.load(batch).err()).expect("not the same rows");
            assert!(said(&error).contains(message), "{error}");
            assert!(matches!(error, Error::Source { batch: Some(_), .. }));
            // And it can be read again.
            assert_eq!(batches.load(1).expect("the third reading is whole").len(), 5);
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
        assert!(matches!(stream.batches(2, Some(1), 0), Err(Error::NotSupported { .. })));
        assert!(stream.batches(0, None, 0).is_err() && stream.batches(11, None, 0).is_err());
        let fewer = Counting::new(vec![vec![10], vec![9]]);
        let stream = counted(&fewer, None);
        assert!(said(&stream.for_each_slab(4, &mut |_| Ok(())).expect_err("9 of 10")).contains("10 rows at first"));
    }
}
