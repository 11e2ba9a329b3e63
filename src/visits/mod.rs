//! Kinds of units. A kind is one file: its options, what it refuses, how its data are divided, how a batch of its units
//! is visited, and which questions it answers. To add one, implement [`UnitKind`] and [`Visitor`] in a file of its own
//! and give it an arm of [`UnitOptions`]. A question that any units can answer is a [`UnitsQuestion`].

mod documents;
mod kind;
mod nodes;
mod options;
mod question;
mod rows;
mod saving;
mod shard;

pub use documents::{DocumentVisits, FirstPass, WordOptions};
pub use kind::{Extent, Nouns, Task, UnitKind, Visitor};
pub use nodes::{FEW_ROWS, JudgeNodes, JudgedNodes, NodeVisits, OpenNodes, TreeSettings};
pub use options::UnitOptions;
pub use question::{Additive, Asked, AskedUnits, Question, UnitsQuestion};
pub use rows::{RowKind, RowVisits};
pub use saving::{load_state, save_state};
pub use shard::{LocalOptions, Shard};
