//! Sources of responsibilities: scores, given labels, or a given table.

use crate::component::Class;
use crate::data::RowBlock;
use crate::error::{Error, Result};
use crate::local_step::{Space, Units};
use crate::responsibilities::{TopL, no_finite_weight};
use crate::scoring::{Block, Completing, PairBounds, Scorer};
use crate::simd::Scalar;

/// Output for the responsibilities of one block.
pub struct BlockMut<'a> {
    /// Positions of components, (n, width).
    pub components: &'a mut [u32],
    /// Responsibilities, (n, width).
    pub values: &'a mut [f64],
    /// Log-sum-exp of the kept log weights, (n,), nats; 0 if responsibilities are given.
    pub log_normalizers: &'a mut [f64],
    /// Number of (unit, component) pairs whose log weight was computed.
    pub n_evaluated: &'a mut usize,
    /// Distance bounds of the pairs, for scorers that use them.
    pub bounds: Option<PairBounds<'a>>,
}

/// The units of a block.
#[derive(Debug, Clone, Copy)]
pub struct Listed<'a> {
    /// Indices of the units.
    pub units: &'a [u32],
    /// For each unit, the position of its best component at the last visit, or [`crate::scoring::NO_LEAD`].
    pub leads: &'a [u32],
}

/// Gives every unit of a block its responsibilities.
pub trait Assign<F: Scalar>: Sync {
    /// Number of pairs per unit.
    fn width(&self) -> usize;

    /// Typical number of nonzero pairs per unit, which determines the size of chunks.
    fn usual_width(&self) -> usize {
        self.width()
    }

    /// Whether the position after the last component is the tail.
    fn has_tail(&self) -> bool {
        false
    }

    /// Whether the first responsibility of every unit is the largest, and zeros come last.
    fn is_compact(&self) -> bool {
        false
    }

    /// Completes rows under the components that they are assigned to. Otherwise their statistics are those of the base
    /// measure, if a part of them is not seen.
    fn completing(&self) -> Option<&dyn Completing> {
        None
    }

    /// Fills in a block of `listed` units, whose centred values are `rows`.
    ///
    /// # Errors
    /// [`crate::Error::Numerical`] for a row without any finite log weight.
    fn assign(
        &self,
        units: &dyn Units<F>,
        listed: Listed<'_>,
        rows: RowBlock<'_, F>,
        out: BlockMut<'_>,
        space: &mut Space<F>,
    ) -> Result<()>;
}

/// The error for the row of a block that has no finite log weight.
pub(super) fn no_weight_of<F: Scalar>(
    units: &dyn Units<F>,
    listed: Listed<'_>,
    rows: RowBlock<'_, F>,
    row: usize,
) -> Error {
    let values = match rows {
        RowBlock::Dense(rows) => &rows[row * units.dimension()..][..units.dimension()],
        RowBlock::Sparse(rows) => rows.table.row(rows.numbers[row] as usize).1,
    };
    no_finite_weight(units.row_number(listed.units[row] as usize), values)
}

/// The components that each row may belong to, by classes (mathematics 3.2).
#[derive(Debug, Clone, Copy)]
pub struct Mask<'a> {
    /// The class of each row of the table that the units come from.
    pub rows: &'a [Class],
    /// The class of each packed component, (K,), with the tail.
    pub components: &'a [Class],
}

/// Normalises the `width` largest log weights of each row (mathematics 3.1).
pub struct ByScore<'a, F: Scalar> {
    /// The packed components, followed by the tail if there is one.
    pub scorer: &'a dyn Scorer<F>,
    /// Whether the last packed component is the tail.
    pub has_tail: bool,
    /// Number of pairs per unit.
    pub width: usize,
    /// Drop components whose log weight is more than this many nats below the row's best.
    pub margin: Option<f64>,
    /// Whether to abandon a score once it cannot be kept. The result is the same.
    pub abandon: bool,
    /// Whether the log normalizers include terms that depend on the row alone.
    pub row_terms: bool,
    /// The components that each row may belong to; all if absent.
    pub mask: Option<Mask<'a>>,
}

impl<F: Scalar> Assign<F> for ByScore<'_, F> {
    fn width(&self) -> usize {
        self.width
    }

    fn has_tail(&self) -> bool {
        self.has_tail
    }

    fn is_compact(&self) -> bool {
        TopL::<F>::is_compact(self.width, self.scorer.n_components(), self.margin)
    }

    fn completing(&self) -> Option<&dyn Completing> {
        self.scorer.completing()
    }

    fn assign(
        &self,
        units: &dyn Units<F>,
        listed: Listed<'_>,
        rows: RowBlock<'_, F>,
        out: BlockMut<'_>,
        space: &mut Space<F>,
    ) -> Result<()> {
        let (n, k) = (out.log_normalizers.len(), self.scorer.n_components());
        // The presence of bounds must not change results.
        space.sink.reset(n, self.width, k, self.margin, self.abandon, self.scorer.uses_bounds());
        if let Some(Mask { rows, components }) = self.mask {
            let classes = listed.units.iter().map(|&unit| rows[units.row_number(unit as usize)]);
            space.sink.restrict(classes, components);
        }
        let block = Block { rows, leads: listed.leads };
        units.score(self.scorer, listed.units, block, out.bounds, &mut space.sink, &mut space.scratch);
        *out.n_evaluated = space.sink.n_evaluated;
        let outcome = space.sink.normalize(out.components, out.values, out.log_normalizers);
        outcome.map_err(|row| no_weight_of(units, listed, rows, row))?;
        if self.row_terms {
            units.add_row_terms(self.scorer, listed.units, rows, out.log_normalizers);
        }
        Ok(())
    }
}

/// Distributes only part of each unit's mass by scores. Its responsibilities for other components stay unchanged
/// (mathematics 4.6.2 and 4.7).
pub struct OfShares<'a, F: Scalar> {
    /// Distributes the part among components.
    pub deal: ByScore<'a, F>,
    /// The fraction of each unit to distribute.
    pub shares: &'a [f64],
}

impl<F: Scalar> Assign<F> for OfShares<'_, F> {
    fn width(&self) -> usize {
        self.deal.width
    }

    fn has_tail(&self) -> bool {
        self.deal.has_tail
    }

    fn is_compact(&self) -> bool {
        self.deal.is_compact()
    }

    fn completing(&self) -> Option<&dyn Completing> {
        self.deal.completing()
    }

    fn assign(
        &self,
        units: &dyn Units<F>,
        listed: Listed<'_>,
        rows: RowBlock<'_, F>,
        out: BlockMut<'_>,
        space: &mut Space<F>,
    ) -> Result<()> {
        let BlockMut { components, values, log_normalizers, n_evaluated, bounds } = out;
        let whole = BlockMut { components, values: &mut *values, log_normalizers, n_evaluated, bounds };
        self.deal.assign(units, listed, rows, whole, space)?;
        for (values, &unit) in values.chunks_exact_mut(self.deal.width).zip(listed.units) {
            let share = self.shares[unit as usize];
            for value in values {
                *value *= share;
            }
        }
        Ok(())
    }
}

/// Responsibilities given as pairs.
pub struct FromPairs<'a> {
    /// Number of pairs per unit.
    pub width: usize,
    /// Positions of components, (n, width).
    pub components: &'a [u32],
    /// Responsibilities, (n, width); pairs with value 0 are ignored.
    pub values: &'a [f64],
}

impl<F: Scalar> Assign<F> for FromPairs<'_> {
    fn width(&self) -> usize {
        self.width
    }

    fn assign(
        &self,
        _: &dyn Units<F>,
        listed: Listed<'_>,
        _: RowBlock<'_, F>,
        out: BlockMut<'_>,
        _: &mut Space<F>,
    ) -> Result<()> {
        let rows = out.components.chunks_exact_mut(self.width).zip(out.values.chunks_exact_mut(self.width));
        for ((components, values), &unit) in rows.zip(listed.units) {
            let first = unit as usize * self.width;
            components.copy_from_slice(&self.components[first..][..self.width]);
            values.copy_from_slice(&self.values[first..][..self.width]);
        }
        Ok(())
    }
}

/// Returns log weights instead of responsibilities, for every component. Used for seeding.
pub struct RawScores<'a, F: Scalar> {
    /// The packed components.
    pub scorer: &'a dyn Scorer<F>,
}

impl<F: Scalar> Assign<F> for RawScores<'_, F> {
    fn width(&self) -> usize {
        self.scorer.n_components()
    }

    fn assign(
        &self,
        units: &dyn Units<F>,
        listed: Listed<'_>,
        rows: RowBlock<'_, F>,
        out: BlockMut<'_>,
        space: &mut Space<F>,
    ) -> Result<()> {
        let k = self.scorer.n_components();
        space.sink.reset(out.log_normalizers.len(), k, k, None, false, false);
        let block = Block { rows, leads: &[] };
        units.score(self.scorer, listed.units, block, None, &mut space.sink, &mut space.scratch);
        out.log_normalizers.fill(0.0);
        units.add_row_terms(self.scorer, listed.units, rows, out.log_normalizers);
        for ((row, values), term) in out.values.chunks_exact_mut(k).enumerate().zip(&*out.log_normalizers) {
            values.iter_mut().enumerate().for_each(|(slot, value)| {
                *value = space.sink.score(row, slot).to_f64() + term;
            });
        }
        Ok(())
    }
}

/// Assigns every unit to the component of its row's label.
pub struct FromLabels<'a> {
    /// Positions of components, one per row of the table that the units come from.
    pub labels: &'a [u32],
}

impl<F: Scalar> Assign<F> for FromLabels<'_> {
    fn width(&self) -> usize {
        1
    }

    fn assign(
        &self,
        units: &dyn Units<F>,
        listed: Listed<'_>,
        _: RowBlock<'_, F>,
        out: BlockMut<'_>,
        _: &mut Space<F>,
    ) -> Result<()> {
        for ((component, value), &unit) in out.components.iter_mut().zip(out.values).zip(listed.units) {
            *component = self.labels[units.row_number(unit as usize)];
            *value = 1.0;
        }
        Ok(())
    }
}

/// Assigns unit i to component i.
pub struct OneEach;

impl<F: Scalar> Assign<F> for OneEach {
    fn width(&self) -> usize {
        1
    }

    fn assign(
        &self,
        _: &dyn Units<F>,
        listed: Listed<'_>,
        _: RowBlock<'_, F>,
        out: BlockMut<'_>,
        _: &mut Space<F>,
    ) -> Result<()> {
        for ((component, value), &unit) in out.components.iter_mut().zip(out.values).zip(listed.units) {
            *component = unit;
            *value = 1.0;
        }
        Ok(())
    }
}

/// Responsibilities given as a table.
pub struct FromTable<'a> {
    /// (n, K), one row per row of the table that the units come from.
    pub values: &'a [f64],
    /// Number of components, K.
    pub n_components: usize,
}

impl<F: Scalar> Assign<F> for FromTable<'_> {
    fn width(&self) -> usize {
        self.n_components
    }

    fn assign(
        &self,
        units: &dyn Units<F>,
        listed: Listed<'_>,
        _: RowBlock<'_, F>,
        out: BlockMut<'_>,
        _: &mut Space<F>,
    ) -> Result<()> {
        let k = self.n_components;
        let rows = out.components.chunks_exact_mut(k).zip(out.values.chunks_exact_mut(k));
        for ((components, values), &unit) in rows.zip(listed.units) {
            values.copy_from_slice(&self.values[units.row_number(unit as usize) * k..][..k]);
            components.iter_mut().zip(0..).for_each(|(component, position)| *component = position);
        }
        Ok(())
    }
}
