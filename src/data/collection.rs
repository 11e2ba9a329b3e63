//! Collections: data that come in shards, which may be in other processes. Sums over them are made shard by shard
//! and added up in a fixed tree, so they have the same bits wherever the shards are.

use crate::data::{
    BatchSource, Dataset, DenseRows, Prints, ReadSums, Reading, RowUnits, Sample, Sharding, batch_range, changed_shard,
    print_of_rows,
};
use crate::error::{Error, Result};
use crate::parallel::Cancel;
use crate::real::Real;
use crate::rng::{Purpose, permutation, stream};
use crate::tree_sum::TreeSum;

/// Shards of rows, in the order of the data.
pub trait Shards<F: Real>: Send + Sync {
    /// Number of columns.
    fn n_columns(&self) -> usize;

    /// Number of rows of each shard.
    fn sizes(&self) -> &[usize];

    /// One weight per row of all shards, if any.
    fn weights(&self) -> Option<&[f64]> {
        None
    }

    /// Loads the rows of a shard, which are counted from its first row, with their weights.
    ///
    /// # Errors
    /// [`Error::Source`], also where shards cannot be loaded because they are in other processes.
    fn load(&self, shard: usize) -> Result<RowUnits<'_, F>>;

    /// The sums of a reading over all shards, added up in the fixed tree.
    ///
    /// # Errors
    /// As [`ReadSums::read`]; [`Error::Source`].
    fn sum(&self, reading: &Reading, cancel: &Cancel) -> Result<ReadSums> {
        let mut add = |sum: &mut ReadSums, sums: ReadSums| sum.add(sums, reading);
        let mut sum = TreeSum::default();
        for shard in 0..self.sizes().len() {
            sum.push(sums_of_shard(&self.load(shard)?, reading, cancel)?, &mut add)?;
        }
        sum.finish(&mut add)?.ok_or_else(|| Error::invalid("data", "no shards", "at least one row"))
    }

    /// Copies of rows of some shards, ascending in each.
    ///
    /// # Errors
    /// [`Error::Source`].
    fn pick(&self, rows: &[(usize, Vec<u32>)]) -> Result<Vec<Sample>> {
        rows.iter().map(|(shard, list)| Ok(sample_of_shard(&self.load(*shard)?, list))).collect()
    }
}

/// The sums of a reading over the rows of a shard.
///
/// # Errors
/// As [`ReadSums::read`].
pub fn sums_of_shard<F: Real>(units: &RowUnits<'_, F>, reading: &Reading, cancel: &Cancel) -> Result<ReadSums> {
    let d = units.dimension();
    let mut sums = ReadSums::new(reading, d, units.csr().is_some(), d as u64);
    sums.read(reading, units, cancel)?;
    Ok(sums)
}

/// Copies of the listed rows of a shard.
pub fn sample_of_shard<F: Real>(units: &RowUnits<'_, F>, list: &[u32]) -> Sample {
    let mut sample = Sample::default();
    sample.extend(units, list);
    sample
}

/// A collection as the rows of a fit.
pub struct Collection<'a, F: Real> {
    shards: &'a dyn Shards<F>,
    /// The first row of each shard, and the number of all rows.
    starts: Vec<usize>,
    /// Fingerprints of the shards at the first reading.
    prints: Prints,
}

impl<'a, F: Real> Collection<'a, F> {
    /// The rows of these shards.
    pub fn new(shards: &'a dyn Shards<F>) -> Self {
        let mut starts = vec![0];
        for size in shards.sizes() {
            starts.push(starts[starts.len() - 1] + size);
        }
        Self { shards, starts, prints: Prints::default() }
    }

    fn n_shards(&self) -> usize {
        self.starts.len() - 1
    }
}

impl<F: Real> Dataset<F> for Collection<'_, F> {
    fn n_columns(&self) -> usize {
        self.shards.n_columns()
    }

    fn n_rows(&self) -> usize {
        self.starts[self.n_shards()]
    }

    fn weights(&self) -> Option<&[f64]> {
        self.shards.weights()
    }

    fn for_each_slab(&self, _: usize, take: &mut dyn FnMut(&RowUnits<'_, F>) -> Result<()>) -> Result<()> {
        (0..self.n_shards()).try_for_each(|shard| take(&self.shards.load(shard)?))
    }

    /// Squares are summed about the means, and means about the first row of all shards, so that an offset costs no
    /// digits.
    fn sum(&self, reading: &Reading, cancel: &Cancel) -> Result<ReadSums> {
        let Reading::First(first) = reading else { return self.shards.sum(reading, cancel) };
        let sample = self.pick(&[0])?;
        let mut row = vec![F::ZERO; self.n_columns()];
        sample.read(0..1, &vec![F::ZERO; self.n_columns()], &mut row);
        let pivot = row.iter().map(|value| if value.to_f64().is_finite() { value.to_f64() } else { 0.0 }).collect();
        let sums = self.shards.sum(&Reading::First(first.clone().about(pivot)), cancel)?;
        if let ReadSums::First(sums) = &sums {
            self.prints.begin(&sums.prints);
        }
        Ok(sums)
    }

    fn pick(&self, rows: &[u64]) -> Result<RowUnits<'_, F>> {
        debug_assert!(rows.is_sorted(), "each change of the shard would load another one");
        let shard_of = |row: u64| self.starts.partition_point(|&start| start <= row as usize) - 1;
        let lists: Vec<(usize, Vec<u32>)> = rows
            .chunk_by(|&a, &b| shard_of(a) == shard_of(b))
            .map(|rows| {
                let shard = shard_of(rows[0]);
                (shard, rows.iter().map(|&row| (row as usize - self.starts[shard]) as u32).collect())
            })
            .collect();
        let mut all = Sample::default();
        for sample in self.shards.pick(&lists)? {
            all.append(sample);
        }
        let (d, n) = (self.n_columns(), all.len());
        let mut values = vec![F::ZERO; n * d];
        all.units::<F>(1.0).read(0..n, &vec![F::ZERO; d], &mut values);
        Ok(RowUnits::owned(Box::new(DenseRows::new(values, d)), Some(all.masses().to_vec())))
    }

    fn batches(&self, sharding: Sharding) -> Result<Box<dyn BatchSource<F> + '_>> {
        let (n, Sharding { n_batches, shuffle, .. }) = (self.n_shards(), sharding);
        if n_batches == 0 || n_batches > n {
            return Err(Error::invalid("batches", n_batches, format!("between 1 and the number of shards, {n}")));
        }
        let order = match shuffle.filter(|_| n_batches > 1) {
            Some(seed) => permutation(n as u32, &mut stream(seed, Purpose::Batches, 0)),
            None => (0..n as u32).collect(),
        };
        let batch = |batch: usize| {
            let mut shards: Vec<usize> =
                order[batch_range(n, n_batches, batch)].iter().map(|&shard| shard as usize).collect();
            shards.sort_unstable();
            shards
        };
        Ok(Box::new(CollectionBatches { collection: self, batches: (0..n_batches).map(batch).collect() }))
    }

    fn can_seek(&self) -> bool {
        false
    }

    fn has_shards(&self) -> bool {
        true
    }
}

/// Batches of whole shards.
struct CollectionBatches<'a, F: Real> {
    collection: &'a Collection<'a, F>,
    batches: Vec<Vec<usize>>,
}

impl<F: Real> BatchSource<F> for CollectionBatches<'_, F> {
    fn dimension(&self) -> usize {
        self.collection.n_columns()
    }

    fn n_batches(&self) -> Option<usize> {
        Some(self.batches.len())
    }

    fn n_shards(&self) -> Option<usize> {
        Some(self.collection.n_shards())
    }

    fn shards(&self, batch: usize) -> Vec<usize> {
        self.batches[batch].clone()
    }

    fn load(&self, shard: usize) -> Result<RowUnits<'_, F>> {
        let batch = self.batches.iter().position(|shards| shards.contains(&shard));
        let named = |error: Error| match batch {
            Some(batch) => error.at_batch(batch),
            None => error,
        };
        let units = self.collection.shards.load(shard).map_err(named)?;
        if self.collection.prints.agree(shard, print_of_rows(&units, &Cancel::default())?) {
            Ok(units)
        } else {
            Err(changed_shard(batch, shard))
        }
    }

    fn can_replay(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More rows than 32 bits count, in three shards; a copy of a row holds its shard and its number there.
    struct Many([usize; 3]);

    impl Shards<f64> for Many {
        fn n_columns(&self) -> usize {
            2
        }

        fn sizes(&self) -> &[usize] {
            &self.0
        }

        fn load(&self, shard: usize) -> Result<RowUnits<'_, f64>> {
            Err(Error::Source { batch: Some(shard), message: "too large".to_owned() })
        }

        fn pick(&self, rows: &[(usize, Vec<u32>)]) -> Result<Vec<Sample>> {
            let copied = |(shard, list): &(usize, Vec<u32>)| {
                let values: Vec<f64> = list.iter().flat_map(|&row| [*shard as f64, f64::from(row)]).collect();
                let all: Vec<u32> = (0..list.len() as u32).collect();
                sample_of_shard(&RowUnits::owned(Box::new(DenseRows::new(values, 2)), None), &all)
            };
            Ok(rows.iter().map(copied).collect())
        }
    }

    #[test]
    fn rows_beyond_32_bits_are_picked() {
        let size = 1_usize << 31;
        let many = Many([size, size + 7, size]);
        let rows = Collection::new(&many);
        let last = 3 * size as u64 + 6;
        let picked = rows.pick(&[5, size as u64, 2 * size as u64 + 6, 2 * size as u64 + 7, last]).expect("five rows");
        let mut values = [0.0; 10];
        picked.read(0..5, &[0.0; 2], &mut values);
        let end = size as f64 - 1.0;
        assert_eq!(values, [0.0, 5.0, 1.0, 0.0, 1.0, end + 7.0, 2.0, 0.0, 2.0, end]);
    }
}
