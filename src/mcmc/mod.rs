//! The exact posterior: samplers of partitions with components integrated out or drawn (mathematics 8).
//!
//! A sampler makes [`Chains`] on some rows, and each [`Chain`] has its own state and makes sweeps that leave the
//! posterior invariant. One loop over sweeps ([`Sampling::run`]) drives all of them. There are two kinds: collapsed
//! samplers visit rows one at a time, with the components integrated out, and conditional samplers draw the labels of
//! all rows at once, given drawn components.

mod chain;
pub mod checkpoint;
mod clusters;
mod collapsed;
mod components;
mod conditional;
mod diagnostics;
mod gibbs;
mod learned_base;
mod pair;
mod predictive;
mod prepare;
mod prior;
mod registry;
mod run_length;
mod samplers;
mod split_merge;
mod start;
mod table;
mod target;
mod tree_guided;
mod trees;

pub use chain::{ChainDraws, ChainEnd, ChainPlan, ChainStart, Sampled, Sampling, Until};
pub use clusters::{ChainState, Clusters};
pub use collapsed::{Collapsed, CollapsedChains};
pub use components::{Band, Mixtures, band};
pub use conditional::{BlockedGibbs, Slice};
pub use diagnostics::{autocorrelation, effective_sample_size, split_r_hat};
pub use gibbs::CollapsedGibbs;
pub use predictive::{Predictive, Weighed, log_predictive, predict};
pub use prepare::{check_model, check_room_for_copy};
pub use prior::{PriorDraw, draw_prior};
pub use registry::{ENTRIES, build};
pub use run_length::{Accuracy, RunLength};
pub use samplers::{Attempts, Chain, Chains, Info, Sampler, Setup};
pub use split_merge::SplitMerge;
pub use start::{Start, StartLabels, at_most};
pub use table::RowTable;
pub use target::{Target, Turn};
pub use tree_guided::TreeGuided;
pub use trees::{Arena, Evenness, Hierarchy, HierarchyPlan, MOST_ROWS, Method, TreeCut, Walk, check_hierarchy};

#[cfg(test)]
pub(crate) mod tests;
