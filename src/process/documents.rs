//! Weights per document: what a topic model asks of a process.

use crate::process::{Allocation, Weights};
use crate::suffstats::DocumentTerms;

/// A process as a prior on the weights of the components in each of many documents, with a bound (mathematics 11). Of
/// all documents together [`Weights::allocate`] knows nothing but the counts.
pub trait Documents: Weights {
    /// The optimal prior of the documents' weights, and its part of the bound, given the counts of the components and
    /// the terms of the documents; before the first visit there are none.
    fn allocate_documents(&self, counts: &[f64], documents: Option<&DocumentTerms>) -> Allocation;
}
