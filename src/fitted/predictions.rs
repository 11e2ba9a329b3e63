//! Predictions for rows under a fit: the largest responsibilities as pairs, all as a table, and log densities.

use crate::data::Rows;
use crate::error::{Error, Result};
use crate::fitted::Fitted;
use crate::fitted::packs::{PackedFit, Prediction};
use crate::fitted::result::Scored;
use crate::local_step::{Chunk, Keep, Tap};
use crate::parallel::{Cancel, for_each};
use crate::responsibilities::Responsibilities;
use crate::room::check_room;
use crate::simd::Scalar;

/// Number of rows that a task copies.
const COPIED: usize = 1024;

/// Copies responsibilities into whole arrays.
struct CollectArrays<'a> {
    all: &'a mut Assigned,
    /// Number of rows that are there.
    filled: usize,
}

impl Tap for CollectArrays<'_> {
    fn observe(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        let (from, width) = (chunk.responsibilities, self.all.width);
        let n = from.log_normalizers.len();
        let (rows, pairs) = (self.filled..self.filled + n, self.filled * width..(self.filled + n) * width);
        let size = COPIED * width;
        let components = self.all.components[pairs.clone()].chunks_mut(size).zip(from.components.chunks(size));
        let values = self.all.values[pairs].chunks_mut(size).zip(from.values.chunks(size));
        for_each(components.zip(values).collect(), |((components, from), (values, of))| {
            components.iter_mut().zip(from).for_each(|(component, &from)| *component = i64::from(from));
            values.copy_from_slice(of);
        });
        self.all.log_normalizers[rows].copy_from_slice(&from.log_normalizers);
        self.filled += n;
        Ok(())
    }
}

/// Copies all responsibilities of every row into a table, (n, K).
struct CollectTable<'a> {
    table: &'a mut [f64],
    filled: usize,
}

impl Tap for CollectTable<'_> {
    fn observe(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        // Where all components of a row are kept, they are in their order.
        let Responsibilities { width, values, .. } = chunk.responsibilities;
        let table = &mut self.table[self.filled..self.filled + values.len()];
        let size = COPIED * width;
        for_each(table.chunks_mut(size).zip(values.chunks(size)).collect(), |(table, values): (&mut [f64], &[f64])| {
            table.copy_from_slice(values);
        });
        self.filled += values.len();
        Ok(())
    }
}

/// Responsibilities of all rows of a table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Assigned {
    /// Number of pairs per row.
    pub width: usize,
    /// Positions of components, (n, width).
    pub components: Vec<i64>,
    /// Responsibilities, (n, width).
    pub values: Vec<f64>,
    /// Log-sum-exp of the kept log weights, (n,), nats.
    pub log_normalizers: Vec<f64>,
}

/// Collects log normalisers only.
struct Normalizers<'a>(&'a mut Vec<f64>);

impl Tap for Normalizers<'_> {
    fn observe(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        self.0.extend_from_slice(&chunk.responsibilities.log_normalizers);
        Ok(())
    }
}

impl Fitted {
    /// Returns the `width` largest responsibilities of every row, for the components alone or, `with_tail`, also for
    /// the tail, which comes last.
    ///
    /// # Errors
    /// As [`Fitted::evaluate`].
    pub fn assign<F: Scalar>(
        &self,
        rows: &dyn Rows<F>,
        width: usize,
        with_tail: bool,
        cancel: &Cancel,
    ) -> Result<Assigned> {
        let PackedFit { model, allocation, .. } = self.packed()?;
        let scorer = self.scorer(if with_tail { Prediction::WithTail } else { Prediction::Components })?;
        let has_tail = with_tail && allocation.tail_log_weight.is_some();
        let scored = Scored { model, scorer, has_tail, width, margin: None, keep: Keep::Nothing };
        self.collect(rows, &scored, cancel)
    }

    /// Writes the responsibilities of every row for all components, and `with_tail` also for the tail, which comes
    /// last, into a table, (n, K) or (n, K + 1).
    ///
    /// # Errors
    /// As [`Fitted::evaluate`].
    pub fn fill_table<F: Scalar>(
        &self,
        rows: &dyn Rows<F>,
        with_tail: bool,
        table: &mut [f64],
        cancel: &Cancel,
    ) -> Result<()> {
        let PackedFit { model, allocation, .. } = self.packed()?;
        let scorer = self.scorer(if with_tail { Prediction::WithTail } else { Prediction::Components })?;
        let has_tail = with_tail && allocation.tail_log_weight.is_some();
        let scored =
            Scored { model, scorer, has_tail, width: scorer.n_components(), margin: None, keep: Keep::Nothing };
        let mut tap = CollectTable { table, filled: 0 };
        self.local_step(rows, None, &scored, &mut [&mut tap], cancel)?;
        Ok(())
    }

    /// Returns the log density of every row, nats: under the posterior predictive, with the left-over weight on the
    /// prior (mathematics 6), or at point estimates of the components, whose weights sum to one.
    ///
    /// # Errors
    /// As [`Fitted::evaluate`].
    pub fn log_densities<F: Scalar>(
        &self,
        rows: &dyn Rows<F>,
        prediction: Prediction,
        cancel: &Cancel,
    ) -> Result<Vec<f64>> {
        check_room(rows.n_rows(), |size| {
            let found = format!("of {} rows, whose log densities take {size}", rows.n_rows());
            Error::invalid("X", found, "of few enough rows at a time that they fit in memory")
        })?;
        let (model, scorer) = (&self.packed::<F>()?.model, self.scorer(prediction)?);
        let width = scorer.n_components();
        let scored = Scored { model, scorer, has_tail: false, width, margin: None, keep: Keep::Nothing };
        let mut log_normalizers = Vec::with_capacity(rows.n_rows());
        let mut tap = Normalizers(&mut log_normalizers);
        self.local_step(rows, None, &scored, &mut [&mut tap], cancel)?;
        for value in &mut log_normalizers {
            *value -= model.log_volume;
        }
        for row in self.strays(rows, None, cancel)?.units {
            log_normalizers[row] = f64::NEG_INFINITY;
        }
        Ok(log_normalizers)
    }

    pub(super) fn collect<F: Scalar>(
        &self,
        rows: &dyn Rows<F>,
        scored: &Scored<'_, F>,
        cancel: &Cancel,
    ) -> Result<Assigned> {
        // One component and one responsibility per slot, and one log normaliser per row.
        check_room(rows.n_rows().saturating_mul(2 * scored.width + 1), |size| {
            let found = format!("of {} rows, for which {} components take {size}", rows.n_rows(), scored.width);
            Error::invalid("X", found, "of few enough rows at a time that their responsibilities fit in memory")
        })?;
        let n = rows.n_rows();
        let mut all = Assigned {
            width: scored.width,
            components: vec![0; n * scored.width],
            values: vec![0.0; n * scored.width],
            log_normalizers: vec![0.0; n],
        };
        let mut tap = CollectArrays { all: &mut all, filled: 0 };
        self.local_step(rows, None, scored, &mut [&mut tap], cancel)?;
        Ok(all)
    }
}
