//! Partitions of the same rows: how far they differ, which rows are together, and the one that represents many
//! (mathematics 8.12).

mod ball;
mod contingency;
mod draws;
mod loss;
mod search;
mod similarity;
mod table;

pub use ball::{CredibleBall, distances};
pub use contingency::Contingency;
pub use draws::LabelDraws;
pub use loss::Loss;
pub use search::{PartitionEstimate, SearchPlan, estimate};
pub use similarity::{similarity, similarity_between};

#[cfg(test)]
mod tests;
