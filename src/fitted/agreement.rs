//! How far the labels of two fits of the same data agree.

use crate::data::Dataset;
use crate::error::Result;
use crate::fitted::packs::Prediction;
use crate::fitted::result::{Fitted, Scored};
use crate::local_step::{Chunk, Keep, Tap};
use crate::parallel::Cancel;
use crate::partitions::Contingency;
use crate::simd::Scalar;

/// Collects the best component of each row.
struct RowLabels(Vec<u32>);

impl Tap for RowLabels {
    fn observe(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        self.0.extend_from_slice(&chunk.responsibilities.components);
        Ok(())
    }
}

impl Fitted {
    /// The adjusted Rand index of the labels of two fits; `None` for documents, which have no single label, and for
    /// streams, which would be read twice more.
    ///
    /// # Errors
    /// As [`Fitted::evaluate`].
    pub(crate) fn agreement<F: Scalar>(
        &self,
        other: &Self,
        data: &dyn Dataset<F>,
        cancel: &Cancel,
    ) -> Result<Option<f64>> {
        if self.packed::<F>()?.model.documents.is_some() || !data.can_seek() {
            return Ok(None);
        }
        let labels = [self.labels(data, cancel)?, other.labels(data, cancel)?];
        Ok(Some(Contingency::new(&labels[0], &labels[1]).adjusted_rand()))
    }

    fn labels<F: Scalar>(&self, data: &dyn Dataset<F>, cancel: &Cancel) -> Result<Vec<u32>> {
        let mut labels = RowLabels(Vec::with_capacity(data.n_rows()));
        let model = &self.packed()?.model;
        let has_tail = model.background.is_some();
        let scorer = self.scorer(if has_tail { Prediction::WithTail } else { Prediction::Components })?;
        let scored = Scored { model, scorer, has_tail, width: 1, margin: None, keep: Keep::Nothing };
        data.for_each_slab(1, &mut |units| {
            scored.step(&units.borrowed().seen_through(&self.coordinates), &mut [&mut labels], cancel)?;
            Ok(())
        })?;
        Ok(labels.0)
    }
}
