//! Settings of a fit besides its model and its rows, in one value that is passed from the specification of an algorithm
//! to the main loop.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::fit::algorithm::Algorithm;
use crate::likelihood;
use crate::local_step::Keep;
use crate::model::{Named, Objective, Specification};
use crate::moves::Moves;
use crate::responsibilities::Sparsity;
use crate::visits::{LocalOptions, UnitOptions, WordOptions};

/// Usual maximum number of passes with moves that add components.
const PASSES_OF_A_SEARCH: usize = 500;
/// Usual maximum number of rows of a shard.
const SHARD_ROWS: usize = 1 << 17;
/// Usual memory limit for distance bounds, bytes.
pub(super) const BOUNDS_MEMORY: usize = 128 << 20;

/// Settings of a run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Initial number of components, if the user chooses one.
    pub n_components: Option<usize>,
    /// How rows are divided into batches.
    pub batches: Cut,
    /// Maximum number of rows that are visited at once, if units are rows.
    pub shard_rows: usize,
    /// Whether rows are assigned to batches, and batches visited, in random order. Otherwise both keep the order of the
    /// data.
    pub shuffle: bool,
    /// How a visit updates the total.
    pub algorithm: Algorithm,
    /// How the number of components changes between passes.
    pub moves: Moves,
    /// Options of the local steps.
    pub local: LocalOptions,
    /// The class of each row, or -1 where it is unknown; see [`crate::data::PartialLabels`].
    pub labels: Option<Arc<[i64]>>,
    /// The kind of units.
    pub units: UnitOptions,
    /// Maximum number of passes over the data.
    pub max_passes: usize,
    /// Stop when a pass gains less, in nats per unit of mass; 0 never stops early.
    pub tol: f64,
    /// The seed of the run.
    pub seed: u64,
}

impl Default for Settings {
    /// One batch, no responsibilities dropped, no moves, and no passes.
    fn default() -> Self {
        Self {
            n_components: None,
            batches: Cut::Number(1),
            shard_rows: SHARD_ROWS,
            shuffle: false,
            algorithm: Algorithm::Memoized,
            moves: Moves::default(),
            local: LocalOptions { sparsity: Sparsity::Dense, margin: None, bounds_memory: 1, keep: Keep::Summary },
            labels: None,
            units: UnitOptions::Rows,
            max_passes: 0,
            tol: 0.0,
            seed: 0,
        }
    }
}

impl Settings {
    /// The settings of a fit for which the user has chosen nothing: memoized, with moves if the model supports them.
    pub fn usual(specification: &Specification) -> Result<Self> {
        let Named { name, parameters } = &specification.likelihood;
        let takes_moves = specification.objective == Objective::Variational
            && specification.weights()?.is_nested()
            && likelihood::check_closed(name, parameters).is_ok();
        let bare = Self::default();
        Ok(Self {
            batches: Cut::Auto,
            shuffle: true,
            moves: if takes_moves { Moves::usual() } else { Moves::default() },
            local: LocalOptions {
                sparsity: Sparsity::Auto,
                margin: Some(20.0),
                bounds_memory: BOUNDS_MEMORY,
                ..bare.local
            },
            units: UnitOptions::usual(specification, WordOptions::default())?,
            max_passes: if takes_moves { PASSES_OF_A_SEARCH } else { 100 },
            tol: 1e-6,
            ..bare
        })
    }
}

/// The number of batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// One for every 5000 rows, at most 20. For sparse rows, few enough that each holds as many values as there are
    /// columns. For documents, one for every 40,000 words, at most 10.
    Auto,
    /// This number of batches.
    Number(usize),
    /// The smallest number of batches with at most this many rows each.
    Size(usize),
}

impl Cut {
    /// Returns the number of batches of `n` rows; `auto` is the value for [`Cut::Auto`].
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for no batches, batches of no rows, or more of either than there are rows.
    pub(super) fn n_batches(self, n: usize, auto: usize) -> Result<usize> {
        let checked = |argument: &str, number: usize| {
            if (1..=n).contains(&number) {
                return Ok(number);
            }
            Err(Error::invalid(argument, number, format!("at most {n}, the number of rows")))
        };
        match self {
            Self::Auto => Ok(auto.clamp(1, n)),
            Self::Number(batches) => checked("batches", batches),
            Self::Size(size) => checked("batch_size", size).map(|size| n.div_ceil(size)),
        }
    }
}
