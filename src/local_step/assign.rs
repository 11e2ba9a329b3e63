//! Where responsibilities come from: scores, given labels, or a given table.

use crate::data::Units;
use crate::error::Result;
use crate::likelihood::Scorer;
use crate::local_step::Work;
use crate::responsibilities::no_finite_weight;
use crate::simd::Scalar;

/// The responsibilities of one block, to be filled in.
pub struct BlockMut<'a> {
    /// Positions of components, (n, width).
    pub components: &'a mut [u32],
    /// Responsibilities, (n, width).
    pub values: &'a mut [f64],
    /// Log-sum-exp of the kept log weights, (n,), nats; 0 where there are none.
    pub log_normalizers: &'a mut [f64],
}

/// Gives every unit of a block its responsibilities.
pub trait Assign<F: Scalar>: Sync {
    /// Pairs a unit.
    fn width(&self) -> usize;

    /// Fills in the block that begins with unit `first` and has the centred `rows`.
    ///
    /// # Errors
    /// [`crate::Error::Numerical`] for a row without any finite log weight.
    fn assign(
        &self,
        units: &Units<'_, F>,
        first: usize,
        rows: &[F],
        out: BlockMut<'_>,
        work: &mut Work<F>,
    ) -> Result<()>;
}

/// The `width` largest log weights, normalised (spec 3.1).
pub struct ByScore<'a, F: Scalar> {
    /// The packed components.
    pub scorer: &'a dyn Scorer<F>,
    /// Pairs a unit.
    pub width: usize,
}

impl<F: Scalar> Assign<F> for ByScore<'_, F> {
    fn width(&self) -> usize {
        self.width
    }

    fn assign(
        &self,
        units: &Units<'_, F>,
        first: usize,
        rows: &[F],
        out: BlockMut<'_>,
        work: &mut Work<F>,
    ) -> Result<()> {
        work.tile.fill(rows, units.dimension());
        work.sink.reset(out.log_normalizers.len(), self.width, self.scorer.n_components());
        self.scorer.score_rows(&work.tile, &mut work.sink, &mut work.scratch);
        work.sink.normalize(out.components, out.values, out.log_normalizers).map_err(|row| {
            let values = &rows[row * units.dimension()..][..units.dimension()];
            no_finite_weight(units.row_number(first + row), values)
        })
    }
}

/// Not responsibilities but the log weights themselves, of every component: seeding needs them.
pub struct RawScores<'a, F: Scalar> {
    /// The packed components.
    pub scorer: &'a dyn Scorer<F>,
}

impl<F: Scalar> Assign<F> for RawScores<'_, F> {
    fn width(&self) -> usize {
        self.scorer.n_components()
    }

    fn assign(&self, units: &Units<'_, F>, _: usize, rows: &[F], out: BlockMut<'_>, work: &mut Work<F>) -> Result<()> {
        let k = self.scorer.n_components();
        work.tile.fill(rows, units.dimension());
        work.sink.reset(out.log_normalizers.len(), k, k);
        self.scorer.score_rows(&work.tile, &mut work.sink, &mut work.scratch);
        for (row, values) in out.values.chunks_exact_mut(k).enumerate() {
            values.iter_mut().enumerate().for_each(|(slot, value)| *value = work.sink.score(row, slot).to_f64());
        }
        Ok(())
    }
}

/// Every unit to the component of its row's label.
pub struct FromLabels<'a> {
    /// Positions of components, one a row of the table the units come from.
    pub labels: &'a [u32],
}

impl<F: Scalar> Assign<F> for FromLabels<'_> {
    fn width(&self) -> usize {
        1
    }

    fn assign(&self, units: &Units<'_, F>, first: usize, _: &[F], out: BlockMut<'_>, _: &mut Work<F>) -> Result<()> {
        for (i, (component, value)) in out.components.iter_mut().zip(out.values).enumerate() {
            *component = self.labels[units.row_number(first + i)];
            *value = 1.0;
        }
        Ok(())
    }
}

/// Every unit to a component of its own: the first to the first, and so on.
pub struct OneEach;

impl<F: Scalar> Assign<F> for OneEach {
    fn width(&self) -> usize {
        1
    }

    fn assign(&self, _: &Units<'_, F>, first: usize, _: &[F], out: BlockMut<'_>, _: &mut Work<F>) -> Result<()> {
        for (i, (component, value)) in out.components.iter_mut().zip(out.values).enumerate() {
            *component = (first + i) as u32;
            *value = 1.0;
        }
        Ok(())
    }
}

/// Responsibilities given as a table.
pub struct FromTable<'a> {
    /// (n, K), one row a row of the table the units come from.
    pub values: &'a [f64],
    /// K.
    pub n_components: usize,
}

impl<F: Scalar> Assign<F> for FromTable<'_> {
    fn width(&self) -> usize {
        self.n_components
    }

    fn assign(&self, units: &Units<'_, F>, first: usize, _: &[F], out: BlockMut<'_>, _: &mut Work<F>) -> Result<()> {
        let k = self.n_components;
        let rows = out.components.chunks_exact_mut(k).zip(out.values.chunks_exact_mut(k));
        for (i, (components, values)) in rows.enumerate() {
            values.copy_from_slice(&self.values[units.row_number(first + i) * k..][..k]);
            components.iter_mut().zip(0..).for_each(|(component, position)| *component = position);
        }
        Ok(())
    }
}
