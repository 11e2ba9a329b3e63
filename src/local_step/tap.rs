//! Taps observe responsibilities once, as they are computed.

use crate::error::Result;
use crate::local_step::Units;
use crate::local_step::order::Places;
use crate::responsibilities::Responsibilities;
use crate::simd::Scalar;

/// The responsibilities of consecutive units.
pub struct Chunk<'a> {
    row_number: &'a dyn Fn(usize) -> usize,
    /// Indices of the chunk's units in the local step.
    pub units: &'a [u32],
    /// The responsibilities of units `0..len` of the chunk, in unit order if some tap needs that; otherwise use
    /// [`Chunk::own_order`].
    pub responsibilities: &'a Responsibilities,
    places: Places<'a>,
}

impl Chunk<'_> {
    /// The row number of unit `unit` of the chunk in its original table.
    pub fn row_number(&self, unit: usize) -> usize {
        (self.row_number)(unit)
    }

    /// The responsibilities in unit order, however they are stored.
    pub fn own_order(&self) -> OwnOrder<'_> {
        OwnOrder { responsibilities: self.responsibilities, places: self.places }
    }
}

/// View of the responsibilities of a chunk by unit.
#[derive(Clone, Copy)]
pub struct OwnOrder<'a> {
    responsibilities: &'a Responsibilities,
    places: Places<'a>,
}

impl<'a> OwnOrder<'a> {
    /// The component positions of unit `unit` of the chunk, and their responsibilities.
    pub fn pairs(self, unit: usize) -> (&'a [u32], &'a [f64]) {
        let Responsibilities { width, components, values, .. } = self.responsibilities;
        let first = self.places.of(unit) * width;
        (&components[first..][..*width], &values[first..][..*width])
    }
}

/// Observes every chunk of a local step, in order.
pub trait Tap {
    /// Observes one chunk.
    ///
    /// # Errors
    /// An error ends the local step.
    fn observe(&mut self, chunk: &Chunk<'_>) -> Result<()>;

    /// Whether responsibilities must be stored in unit order.
    fn needs_order(&self) -> bool {
        true
    }
}

/// Shows a chunk of listed units to every tap.
pub(super) fn show<F: Scalar>(
    taps: &mut [&mut dyn Tap],
    units: &dyn Units<F>,
    listed: &[u32],
    responsibilities: &Responsibilities,
    places: Places<'_>,
) -> Result<()> {
    let row_number = |unit: usize| units.row_number(listed[unit] as usize);
    let chunk = Chunk { row_number: &row_number, units: listed, responsibilities, places };
    taps.iter_mut().try_for_each(|tap| tap.observe(&chunk))
}
