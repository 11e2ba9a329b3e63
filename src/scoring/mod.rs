//! The scoring engine: log weights of rows under packed components of any likelihood. It has squared residuals (the
//! Gaussian family), sums over columns, functions of one row, and distance bounds that save most of the work.

mod bounds;
mod by_row;
mod codes;
mod columns;
mod drift;
mod kernel;
mod quadratic;
mod score_rows;
mod scorer;
mod sparse;

pub use bounds::PairBounds;
pub use by_row::{Row, RowFunction, RowScorer};
pub use codes::{CodeScorer, Codes};
pub use columns::{Column, ColumnScorer, Columns, Curve};
pub use drift::Drift;
pub use quadratic::{Link, Quadratic, QuadraticScorer};
pub use scorer::{Block, NO_LEAD, Scorer, Scratch, Spreads};
pub use sparse::{Shared, SparseScorer, SparseTable};
