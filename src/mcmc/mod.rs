//! The exact posterior: samplers of partitions with the components integrated out (mathematics 8).
//!
//! A sampler is `step(state, turn) -> infos`. It changes the [`ChainState`] so that the posterior of partitions is
//! invariant. All its random choices go through [`crate::rng::Draws`]. One loop over sweeps ([`Sampling::run`]) drives
//! all samplers.

mod chain;
pub mod checkpoint;
mod clusters;
mod diagnostics;
mod gibbs;
mod pair;
mod predictive;
mod prepare;
mod registry;
mod samplers;
mod split_merge;
mod start;
mod table;
mod target;
mod tree_guided;
mod trees;

pub use chain::{ChainDraws, ChainPlan, Sampling, SavedChain};
pub use clusters::{ChainState, Clusters};
pub use diagnostics::{effective_sample_size, similarity, split_r_hat};
pub use gibbs::CollapsedGibbs;
pub use predictive::{Predictive, Weighed, log_predictive, predict};
pub use prepare::{check_model, check_room_for_copy};
pub use registry::{ENTRIES, build};
pub use samplers::{Attempts, Info, Sampler, Turn};
pub use split_merge::SplitMerge;
pub use start::Start;
pub use table::RowTable;
pub use target::Target;
pub use tree_guided::TreeGuided;
pub use trees::{Arena, Evenness, Hierarchy, HierarchyPlan, MOST_ROWS, Method, TreeCut, Walk, check_hierarchy};

#[cfg(test)]
pub(crate) mod tests;
