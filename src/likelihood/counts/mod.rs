//! Code common to the likelihoods of counts, flags and codes.

mod evidence;
mod exposures;
mod family;
mod repeats;
mod rising;
mod tally;
mod urn;

pub use evidence::{PSEUDO_COUNTS, SharedCounts, dirichlet_divergence, pseudo_count};
pub use exposures::Exposures;
pub use family::{CountFamily, Counts, OfColumns, Separate};
pub use repeats::Repeats;
pub use rising::{LogRisings, Risings};
pub use tally::{LEAST, Tallied, Tally, check_presence};
