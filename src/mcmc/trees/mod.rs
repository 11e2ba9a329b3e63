//! Binary trees over rows: potentials of their nodes, and how trees are built (mathematics 8.9).

mod agglomeration;
mod arena;
mod hierarchy;
mod incremental;
mod insertion;
mod walk;

pub use agglomeration::MOST_ROWS;
pub(super) use agglomeration::{agglomerate, join_on_top};
pub use arena::Arena;
pub(super) use arena::softplus;
pub use hierarchy::{Hierarchy, HierarchyPlan, Method, TreeCut, check_hierarchy};
pub(super) use hierarchy::{first_process, grow, shape};
pub(super) use incremental::{incremental, on_top_of_nearest};
pub use walk::{Evenness, Walk};

#[cfg(test)]
mod tests;
