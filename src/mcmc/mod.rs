//! The exact posterior: samplers of partitions with the components integrated out (mathematics 8).
//!
//! A sampler is `step(state, turn) -> infos`. It changes the [`ChainState`] so that the posterior of partitions stays
//! as it is; all its random choices go through [`crate::rng::Draws`]. One loop over sweeps ([`Sampling::run`]) drives
//! them all.

mod chain;
pub mod checkpoint;
mod clusters;
mod diagnostics;
mod gibbs;
mod pair;
mod predictive;
mod prepare;
mod samplers;
mod split_merge;
mod table;
mod target;

pub use chain::{ChainDraws, ChainObserver, ChainPlan, ChainWatcher, Sampling, Sweep};
pub use clusters::{ChainState, Clusters};
pub use diagnostics::{effective_sample_size, split_r_hat};
pub use gibbs::CollapsedGibbs;
pub use predictive::{Predictive, Weighed, log_predictive, predict};
pub use prepare::{Grounds, Start, check_values};
pub use samplers::{ENTRIES, Info, Sampler, Turn, build};
pub use split_merge::SplitMerge;
pub use table::RowTable;
pub use target::Target;

#[cfg(test)]
mod tests;
