//! Taps see responsibilities once, as they are made.

use crate::error::Result;
use crate::local_step::Units;
use crate::responsibilities::Responsibilities;
use crate::simd::Scalar;

/// The responsibilities of consecutive units.
pub struct Chunk<'a> {
    row_number: &'a dyn Fn(usize) -> usize,
    /// The numbers of the chunk's units among those of the local step.
    pub units: &'a [u32],
    /// Of units `0..len` of the chunk.
    pub responsibilities: &'a Responsibilities,
}

impl Chunk<'_> {
    /// The number of unit `unit` of the chunk in the table it comes from.
    pub fn row_number(&self, unit: usize) -> usize {
        (self.row_number)(unit)
    }
}

/// Sees every chunk of a local step, in order.
pub trait Tap {
    /// Looks at one chunk.
    ///
    /// # Errors
    /// An error ends the local step.
    fn observe(&mut self, chunk: &Chunk<'_>) -> Result<()>;
}

/// Shows a chunk of listed units to every tap.
pub(super) fn show<F: Scalar>(
    taps: &mut [&mut dyn Tap],
    units: &dyn Units<F>,
    listed: &[u32],
    responsibilities: &Responsibilities,
) -> Result<()> {
    let row_number = |at: usize| units.row_number(listed[at] as usize);
    let chunk = Chunk { row_number: &row_number, units: listed, responsibilities };
    taps.iter_mut().try_for_each(|tap| tap.observe(&chunk))
}
