//! What a local step writes, kept from visit to visit: allocating it would take longer than filling it.

use crate::local_step::pairs::Pairs;
use crate::responsibilities::Responsibilities;

/// Buffers of a local step. Nothing is read before it is written again.
#[derive(Debug)]
pub struct Buffers<F> {
    /// The values of a chunk, in the order in which its units are scored.
    pub(super) read: Vec<F>,
    /// Its responsibilities, in the order of units or of scoring.
    pub(super) responsibilities: Responsibilities,
    /// The same in the other order.
    pub(super) scored: Responsibilities,
    /// The best component of each unit, in the order of scoring.
    pub(super) leaders: Vec<u32>,
    /// The pairs of the chunk by component.
    pub(super) pairs: Pairs,
}

impl<F> Default for Buffers<F> {
    fn default() -> Self {
        let none = || Responsibilities::zeros(0, 0);
        let pairs = Pairs::default();
        Self { read: Vec::new(), responsibilities: none(), scored: none(), leaders: Vec::new(), pairs }
    }
}
