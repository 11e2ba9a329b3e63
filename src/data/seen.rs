//! Datasets and batches seen in coordinates.

use std::sync::Arc;

use crate::data::{BatchSource, Coordinates, Dataset, RowUnits};
use crate::error::Result;
use crate::real::Real;

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

    fn pick(&self, rows: &[u32]) -> Result<RowUnits<'_, F>> {
        Ok(self.rows.pick(rows)?.seen_through(self.coordinates))
    }

    fn batches(&self, n_batches: usize, shuffle: Option<u64>, content: u64) -> Result<Box<dyn BatchSource<F> + '_>> {
        let source = self.rows.batches(n_batches, shuffle, content)?;
        Ok(Box::new(SeenBatches { source, coordinates: Arc::clone(self.coordinates) }))
    }

    fn can_seek(&self) -> bool {
        self.rows.can_seek()
    }

    fn n_stored(&self) -> Option<usize> {
        self.rows.n_stored()
    }
}

/// Batches seen in coordinates.
pub struct SeenBatches<'a, F: Real> {
    /// The batches of the data.
    pub source: Box<dyn BatchSource<F> + 'a>,
    /// The coordinates.
    pub coordinates: Arc<Coordinates>,
}

impl<F: Real> BatchSource<F> for SeenBatches<'_, F> {
    fn dimension(&self) -> usize {
        self.coordinates.rank()
    }

    fn n_batches(&self) -> Option<usize> {
        self.source.n_batches()
    }

    fn load(&self, batch: usize) -> Result<RowUnits<'_, F>> {
        Ok(self.source.load(batch)?.seen_through(&self.coordinates))
    }

    fn can_replay(&self) -> bool {
        self.source.can_replay()
    }

    fn fingerprint(&self) -> u64 {
        self.source.fingerprint()
    }
}
