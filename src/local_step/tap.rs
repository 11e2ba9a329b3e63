//! Taps see responsibilities once, as they are made.

use crate::error::Result;
use crate::local_step::Units;
use crate::local_step::order::Places;
use crate::responsibilities::Responsibilities;
use crate::simd::Scalar;

/// The responsibilities of consecutive units.
pub struct Chunk<'a> {
    row_number: &'a dyn Fn(usize) -> usize,
    /// The numbers of the chunk's units among those of the local step.
    pub units: &'a [u32],
    /// Of units `0..len` of the chunk, where some tap needs their order; otherwise see [`Chunk::own_order`].
    pub responsibilities: &'a Responsibilities,
    places: Places<'a>,
}

impl Chunk<'_> {
    /// The number of unit `unit` of the chunk in the table it comes from.
    pub fn row_number(&self, unit: usize) -> usize {
        (self.row_number)(unit)
    }

    /// The responsibilities in the order of the units, wherever they stand.
    pub fn own_order(&self) -> OwnOrder<'_> {
        OwnOrder { responsibilities: self.responsibilities, places: self.places }
    }
}

/// The responsibilities of a chunk by unit.
#[derive(Clone, Copy)]
pub struct OwnOrder<'a> {
    responsibilities: &'a Responsibilities,
    places: Places<'a>,
}

impl<'a> OwnOrder<'a> {
    /// The positions of the components of unit `unit` of the chunk, and their responsibilities.
    pub fn pairs(self, unit: usize) -> (&'a [u32], &'a [f64]) {
        let Responsibilities { width, components, values, .. } = self.responsibilities;
        let first = self.places.of(unit) * width;
        (&components[first..][..*width], &values[first..][..*width])
    }
}

/// Sees every chunk of a local step, in order.
pub trait Tap {
    /// Looks at one chunk.
    ///
    /// # Errors
    /// An error ends the local step.
    fn observe(&mut self, chunk: &Chunk<'_>) -> Result<()>;

    /// Whether responsibilities must stand in the order of the units.
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
    let row_number = |at: usize| units.row_number(listed[at] as usize);
    let chunk = Chunk { row_number: &row_number, units: listed, responsibilities, places };
    taps.iter_mut().try_for_each(|tap| tap.observe(&chunk))
}
