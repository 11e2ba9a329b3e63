//! Rows, the units made from them, and sources of batches of units.

mod batches;
mod bulk;
mod coordinates;
mod dataset;
mod directions;
mod domain;
mod exposure;
mod histogram;
mod kd_tree;
mod moments;
mod nodes;
mod resolution;
mod rows;
mod sample;
mod seen;
mod selection;
mod stream;
mod tree;

pub(crate) use batches::OTHER_VALUES;
pub use batches::{ArrayBatches, BatchSource, CallbackBatches, whole};
use batches::{Prints, batch_range, cut_fingerprint, print_of_values};
pub use bulk::bulk;
pub use coordinates::{Coordinates, Dependent, Freedom};
pub use dataset::{Dataset, TableRows};
pub use directions::{Informative, Strays, informative, strays};
pub use domain::{Allowed, Demands, Domain, MOST_LEVELS, Needs, Sought, check_rows};
pub use exposure::{Exposed, Exposure};
pub use histogram::{Counted, Histogram};
pub use kd_tree::{Halves, KdTree, NodeCut};
pub use moments::{Moments, all_moments, moments};
pub use nodes::{Nodes, TreeNode};
pub use rows::{Csr, CsrRows, DenseRows, RowBlock, RowUnits, Rows, SparseRows, Widened, copy_rows, in_f64};
pub use sample::Sample;
pub use seen::{SeenBatches, SeenRows};
pub use stream::{BlockReader, Blocks, Stream};
pub use tree::{Restrictions, Tree};
