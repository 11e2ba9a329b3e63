//! What a kind of unit must provide.

use crate::component::EditLog;
use crate::data::Dataset;
use crate::error::Result;
use crate::global_step::Globals;
use crate::local_step::{Outcome, Tap, Units};
use crate::model::Specification;
use crate::payload::Payload;
use crate::responsibilities::Sparsity;
use crate::simd::Scalar;
use crate::visits::{Asked, Shard};

/// Number of rows per batch and maximum number of batches, if the user does not choose them.
const ROWS_A_BATCH: usize = 5000;
const MOST_BATCHES: usize = 20;
/// The first number for data that come in shards: each of eight workers has some 400,000 rows of a batch.
const ROWS_A_BATCH_OF_SHARDS: usize = 3_200_000;

/// A fit before any row is read.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// The model.
    pub specification: &'a Specification,
    /// Whether rows are sparse.
    pub is_sparse: bool,
    /// Whether the algorithm estimates the total, and so never makes a pass over all rows.
    pub estimates: bool,
}

/// Size of the data.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    /// Number of rows.
    pub rows: usize,
    /// Maximum number of components.
    pub units: usize,
    /// Default number of batches.
    pub batches: usize,
    /// Nouns for messages.
    pub nouns: Nouns,
}

/// Nouns of a kind of unit in messages.
#[derive(Debug, Clone, Copy)]
pub struct Nouns {
    /// Components, plural.
    pub components: &'static str,
    /// Units, plural.
    pub units: &'static str,
    /// The parameter of the process that is its number of components.
    pub n_components: &'static str,
}

impl Nouns {
    /// Those of rows.
    pub const ROWS: Self = Self { components: "components", units: "rows", n_components: "n_components" };
}

/// A kind of unit and its options.
pub trait UnitKind<F: Scalar> {
    /// Refuses a task that these units do not support.
    ///
    /// # Errors
    /// [`crate::Error::NotSupported`] for `units`.
    fn check(&self, task: &Task<'_>) -> Result<()>;

    /// Limits of the size of `n_rows` rows that have not been read.
    fn unread(&self, n_rows: usize) -> Extent {
        Extent { rows: n_rows, units: n_rows, batches: 1, nouns: Nouns::ROWS }
    }

    /// Size of `n_rows` rows.
    ///
    /// # Errors
    /// [`crate::Error::Source`]; [`crate::Error::InvalidArgument`] for data without units.
    fn extent(&self, rows: &dyn Dataset<F>, n_rows: usize) -> Result<Extent> {
        if rows.has_shards() {
            let batches = (n_rows / ROWS_A_BATCH_OF_SHARDS).clamp(1, MOST_BATCHES);
            return Ok(Extent { batches, ..self.unread(n_rows) });
        }
        // A batch of sparse rows should hold at least as many values as there are columns.
        let most_batches = rows.csr().map_or(usize::MAX, |table| table.values.len() / rows.n_columns());
        let batches = (n_rows / ROWS_A_BATCH).min(most_batches).clamp(1, MOST_BATCHES);
        Ok(Extent { batches, ..self.unread(n_rows) })
    }

    /// Number of components kept per unit, of the initial `n_components`.
    fn sparsity(&self, asked: Sparsity, _n_components: usize) -> Sparsity {
        asked
    }

    /// Whether a batch can be visited in several shards. Otherwise it is a single shard of any size.
    fn has_shards(&self) -> bool {
        false
    }

    /// What must be equal to continue from a checkpoint: names of options and their values as text.
    fn identity(&self) -> Vec<(&'static str, String)>;

    /// Returns a visitor of this number of shards, which has not visited any.
    fn visitor(&self, n_shards: usize) -> Box<dyn Visitor<F>>;
}

/// Visits shards of one kind of unit, and holds their local states.
pub trait Visitor<F: Scalar>: Send {
    /// Replays the edits that the shard's local state has not yet seen, and runs the local step of its units. The model
    /// of `shard` has the base measure of `globals`.
    ///
    /// # Errors
    /// [`crate::Error::Source`]; [`crate::Error::Cancelled`]; [`crate::Error::Numerical`]; any error of a tap.
    fn visit(
        &mut self,
        shard: &Shard<'_, F>,
        globals: &Globals,
        edits: &EditLog,
        taps: &mut [&mut dyn Tap],
    ) -> Result<Outcome>;

    /// Passes the units of a shard to `take`. With a seed, rows can be copied out of units that stand for several.
    ///
    /// # Errors
    /// [`crate::Error::Source`]; errors of `take`.
    fn show(
        &mut self,
        shard: &Shard<'_, F>,
        seed: Option<u64>,
        take: &mut dyn FnMut(&dyn Units<F>) -> Result<()>,
    ) -> Result<()>;

    /// Answers a question about this kind of unit; `None` for any other question.
    fn answer(&mut self, _shard: &Shard<'_, F>, _asked: &Asked) -> Result<Option<Payload>> {
        Ok(None)
    }

    /// Drops caches that depend on the base measure, which has changed.
    fn rebase(&mut self) {}

    /// Drops the caches of a shard. Results do not change.
    fn forget(&mut self, shard: usize);

    /// Memory held for a shard, in bytes.
    fn bytes(&self, shard: usize) -> usize;

    /// Serialises the part of the local state of a shard on which results depend.
    ///
    /// # Errors
    /// [`crate::Error::Format`] if serialisation fails.
    fn save(&self, shard: usize) -> Result<Vec<u8>>;

    /// Replaces the local state of a shard by a saved one, with empty caches.
    ///
    /// # Errors
    /// [`crate::Error::Format`] for anything else.
    fn load(&mut self, shard: usize, bytes: &[u8]) -> Result<()>;
}
