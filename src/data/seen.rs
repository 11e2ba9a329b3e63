//! Datasets and batches seen in coordinates.

use std::sync::Arc;

use crate::data::{
    Allowed, BatchSource, Coordinates, Csr, Dataset, OTHER_VALUES, ReadSums, Reading, RowUnits, Sharding,
};
use crate::error::{Error, Result};
use crate::parallel::{Cancel, blocks, try_map};
use crate::real::Real;

/// Number of values that one task checks, about.
const CHECKED: usize = 4096;

/// A dataset seen in coordinates.
pub struct SeenRows<'a, F: Real> {
    /// The data.
    pub rows: &'a dyn Dataset<F>,
    /// The coordinates.
    pub coordinates: &'a Arc<Coordinates>,
}

impl<F: Real> Dataset<F> for SeenRows<'_, F> {
    fn n_columns(&self) -> usize {
        self.coordinates.rank()
    }

    fn n_rows(&self) -> usize {
        self.rows.n_rows()
    }

    fn weights(&self) -> Option<&[f64]> {
        self.rows.weights()
    }

    fn for_each_slab(&self, multiple: usize, take: &mut dyn FnMut(&RowUnits<'_, F>) -> Result<()>) -> Result<()> {
        self.rows.for_each_slab(multiple, &mut |units| take(&units.borrowed().seen_through(self.coordinates)))
    }

    /// Sums are about the first row of all, wherever the rows are.
    fn sum(&self, reading: &Reading, cancel: &Cancel) -> Result<ReadSums> {
        let mut reading = reading.clone();
        if let Reading::First(first) = &mut reading {
            let row = self.pick(&[0])?;
            let mut values = vec![F::ZERO; row.dimension()];
            row.read(0..1, &vec![F::ZERO; row.dimension()], &mut values);
            let pivot = values.iter().map(|value| if value.is_nan() { 0.0 } else { value.to_f64() });
            first.pivot = Some(pivot.collect());
        }
        self.rows.sum(&Reading::Seen(Arc::clone(self.coordinates), Box::new(reading)), cancel)
    }

    fn pick(&self, rows: &[u64]) -> Result<RowUnits<'_, F>> {
        Ok(self.rows.pick(rows)?.seen_through(self.coordinates))
    }

    fn batches(&self, sharding: Sharding) -> Result<Box<dyn BatchSource<F> + '_>> {
        let source = self.rows.batches(sharding)?;
        Ok(Box::new(SeenBatches { source, coordinates: Arc::clone(self.coordinates), allowed: None }))
    }

    fn can_seek(&self) -> bool {
        self.rows.can_seek()
    }

    fn has_shards(&self) -> bool {
        self.rows.has_shards()
    }

    fn csr(&self) -> Option<Csr<'_, F>> {
        self.rows.csr()
    }
}

/// Batches seen in coordinates.
pub struct SeenBatches<'a, F: Real> {
    /// The batches of the data.
    pub source: Box<dyn BatchSource<F> + 'a>,
    /// The coordinates.
    pub coordinates: Arc<Coordinates>,
    /// Allowed values of sparse rows. They are read in place, and another thread may change them after they were
    /// accepted, so each loading of a batch checks them again.
    pub allowed: Option<Allowed>,
}

/// Refuses sparse rows whose columns are not ascending columns of the table, or whose values are not allowed.
fn check_unchanged<F: Real>(
    units: &RowUnits<'_, F>,
    table: Csr<'_, F>,
    allowed: &Allowed,
    batch: Option<usize>,
) -> Result<()> {
    let failed = |message| Error::Source { batch, message };
    let d = units.dimension();
    let rows = CHECKED * table.starts.len() / table.values.len().max(1);
    let ranges: Vec<_> = blocks(units.len(), rows.max(1)).collect();
    try_map(ranges.len(), |index| {
        for row in ranges[index].clone().map(|unit| units.row_number(unit)) {
            let mut least = 0;
            for (column, value) in table.entries(row, usize::MAX).map(|(column, value)| (column as usize, value)) {
                if column < least || column >= d {
                    return Err(failed(OTHER_VALUES.to_owned()));
                }
                if !allowed.has(value.to_f64(), column) {
                    let error = allowed.check("data", value, row, column).err();
                    return Err(failed(error.map_or_else(String::new, |error| format!("{error}; ")) + OTHER_VALUES));
                }
                least = column + 1;
            }
            allowed
                .check_exposure("data", table.row(row).0, row)
                .map_err(|error| failed(format!("{error}; {OTHER_VALUES}")))?;
        }
        Ok(())
    })
    .map(drop)
}

impl<F: Real> BatchSource<F> for SeenBatches<'_, F> {
    fn dimension(&self) -> usize {
        self.coordinates.rank()
    }

    fn n_batches(&self) -> Option<usize> {
        self.source.n_batches()
    }

    fn n_shards(&self) -> Option<usize> {
        self.source.n_shards()
    }

    fn shards(&self, batch: usize) -> Vec<usize> {
        self.source.shards(batch)
    }

    fn load(&self, shard: usize) -> Result<RowUnits<'_, F>> {
        let units = self.source.load(shard)?;
        if let (Some(allowed), Some(table)) = (&self.allowed, units.csr()) {
            let batch = self.n_batches().and_then(|n| (0..n).find(|&batch| self.shards(batch).contains(&shard)));
            check_unchanged(&units, table, allowed, batch)?;
        }
        Ok(units.seen_through(&self.coordinates))
    }

    fn can_replay(&self) -> bool {
        self.source.can_replay()
    }
}
