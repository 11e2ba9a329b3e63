//! How far the labels of two fits of the same data agree.

use crate::data::Dataset;
use crate::error::Result;
use crate::fitted::packs::Prediction;
use crate::fitted::result::{Fitted, Scored};
use crate::local_step::{Chunk, Keep, Tap};
use crate::parallel::Cancel;
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
        Ok(Some(adjusted_rand(&labels[0], &labels[1])))
    }

    fn labels<F: Scalar>(&self, data: &dyn Dataset<F>, cancel: &Cancel) -> Result<Vec<u32>> {
        let mut labels = RowLabels(Vec::with_capacity(data.n_rows()));
        let (model, scorer) = (&self.packed()?.model, self.scorer(Prediction::Components)?);
        let scored = Scored { model, scorer, tail: None, width: 1, margin: None, keep: Keep::Nothing };
        data.for_each_slab(1, &mut |units| {
            scored.step(&units.borrowed().seen_through(&self.coordinates), &mut [&mut labels], cancel)?;
            Ok(())
        })?;
        Ok(labels.0)
    }
}

/// The adjusted Rand index of two labellings (Hubert & Arabie 1985): 1 if they are the same, 0 on average if they have
/// nothing to do with each other.
fn adjusted_rand(one: &[u32], other: &[u32]) -> f64 {
    let n_labels = |labels: &[u32]| labels.iter().max().map_or(0, |most| *most as usize + 1);
    let (n_ones, n_others) = (n_labels(one), n_labels(other));
    let mut table = vec![0.0; n_ones * n_others];
    for (&a, &b) in one.iter().zip(other) {
        table[a as usize * n_others + b as usize] += 1.0;
    }
    let pairs = |count: f64| count * (count - 1.0) / 2.0;
    let of_ones: f64 = table.chunks(n_others.max(1)).map(|row| pairs(row.iter().sum())).sum();
    let column = |b: usize| table.iter().skip(b).step_by(n_others).sum();
    let of_others: f64 = (0..n_others).map(|b| pairs(column(b))).sum();
    let together: f64 = table.iter().copied().map(pairs).sum();
    let expected = of_ones * of_others / pairs(one.len() as f64).max(1.0);
    let most = f64::midpoint(of_ones, of_others);
    // Only two labellings of one cluster, or of single rows, leave nothing to adjust.
    if most == expected { 1.0 } else { (together - expected) / (most - expected) }
}

#[cfg(test)]
mod tests {
    use super::adjusted_rand;

    #[test]
    fn known_values() {
        // The example of scikit-learn's manual, and the same labels under other names.
        assert!((adjusted_rand(&[0, 0, 1, 1], &[0, 0, 1, 2]) - 4.0 / 7.0).abs() < 1e-15);
        assert_eq!(adjusted_rand(&[0, 0, 1, 2], &[2, 2, 0, 1]).to_bits(), 1.0_f64.to_bits());
        assert!((adjusted_rand(&[0, 0, 1, 1], &[0, 1, 0, 1]) + 0.5).abs() < 1e-15);
        assert_eq!(adjusted_rand(&[0, 0, 0], &[0, 0, 0]).to_bits(), 1.0_f64.to_bits());
    }
}
