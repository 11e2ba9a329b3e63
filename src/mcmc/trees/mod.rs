//! Binary trees over rows with the potentials of their nodes, and how they are built (mathematics 8.8).

mod agglomeration;
mod arena;
mod hierarchy;
mod incremental;
mod insertion;
mod walk;

pub use agglomeration::MOST_ROWS;
pub(super) use agglomeration::{agglomerate, join_on_top};
pub(super) use arena::{Arena, softplus};
pub use hierarchy::{Cut, Hierarchy, Method, Plan};
pub(super) use hierarchy::{first_process, grow, shape};
pub(super) use incremental::{incremental, on_top_of_nearest};
pub(super) use walk::{Evenness, Walk};

#[cfg(test)]
mod tests;
