//! The scoring engine: log weights of rows under packed components of any likelihood. It has squared residuals (the
//! Gaussian family), sums over columns, functions of one row, and distance bounds that save most of the work.

mod bounds;
mod by_row;
mod codes;
mod column_tail;
mod column_terms;
mod columns;
mod drift;
mod kernel;
mod patterns;
mod quadratic;
mod quadratic_form;
mod row;
mod score_rows;
mod scorer;
mod sparse;
mod sum;

pub use bounds::PairBounds;
pub use by_row::RowScorer;
pub use codes::{CodeScorer, Codes};
pub use column_terms::{Column, ColumnTerms};
pub use columns::{ColumnScorer, Curve};
pub use drift::Drift;
pub use patterns::{PatternScorer, by_pattern, columns_of};
pub use quadratic::QuadraticScorer;
pub use quadratic_form::{Link, Quadratic, Scales};
pub use row::{Row, RowFunction};
pub use scorer::{Block, Completing, Incomplete, NO_LEAD, Scorer, Scratch, Spreads};
pub use sparse::{Shared, SparseScorer, SparseTable};
pub use sum::{ScoredColumns, SumScorer, gather, lacks, offer_column};
