//! Rows, the units made of them, and where batches of units come from.

mod batches;
mod moments;
mod rows;

pub use batches::{ArrayBatches, BatchSource, CallbackBatches, whole};
pub use moments::{Moments, moments};
pub use rows::{DenseRows, Rows, Units, copy_rows};
