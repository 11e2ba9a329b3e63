//! Weights per document: the part of a process that topic models use.

use crate::process::{Allocation, Weights};
use crate::suffstats::DocumentTerms;

/// A process as a prior on the weights of the components in each of many documents, with a bound (mathematics 11).
/// [`Weights::allocate`] sees only the total counts of all documents.
pub trait Documents: Weights {
    /// Returns the optimal prior of the documents' weights, and its part of the bound, given the counts of the
    /// components and the terms of the documents. `documents` is `None` before the first visit.
    fn allocate_documents(&self, counts: &[f64], documents: Option<&DocumentTerms>) -> Allocation;
}
