//! What workers that hold shards do, as functions from bytes and rows to bytes. They keep nothing on which a result
//! depends, so what is lost can be asked for again with the same bits.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::component::EditLog;
use crate::data::{
    BatchSource, Coordinates, OTHER_VALUES, ReadSums, Reading, RowUnits, Rows, SeenBatches, changed_shard,
    print_of_rows, sample_of_shard, sums_of_shard,
};
use crate::error::{Error, Result};
use crate::executor::{ShardVisits, Visit};
use crate::global_step::Globals;
use crate::model::{Model, Specification};
use crate::moves::{KeyLimits, Moves, Plan};
use crate::parallel::Cancel;
use crate::simd::Scalar;
use crate::tree_sum::TreeSum;
use crate::visits::{LocalOptions, RowKind};

/// Memory for what workers remember of rows, bytes; more rows are forgotten after each visit.
const CACHED: usize = 256 << 20;

/// What is the same for all visits of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunSetup {
    /// The model in the coordinates, with all parameters.
    pub specification: Specification,
    /// The coordinates.
    pub coordinates: Coordinates,
    /// The origin, subtracted from every row.
    pub origin: Vec<f64>,
    /// Options of local steps.
    pub options: LocalOptions,
    /// Fingerprints of the shards at the first reading.
    pub prints: Vec<u64>,
}

/// What differs between visits.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Head {
    pub batch: usize,
    /// The edits since the last visits of these shards.
    pub edits: EditLog,
    /// Rows with larger keys need not be copied.
    pub limits: KeyLimits,
}

/// A part of a request as it came, with a number that identifies its bytes.
#[derive(Debug, Clone, Copy)]
pub struct Came<'a> {
    /// Equal for equal bytes only.
    pub key: u64,
    /// The bytes.
    pub bytes: &'a [u8],
}

/// A request for visits of shards that are a branch of the tree, and the sum of those made so far.
pub struct VisitBranch<'a> {
    plan: Came<'a>,
    globals: Came<'a>,
    head: Head,
    sum: TreeSum<Visit>,
}

impl<'a> VisitBranch<'a> {
    /// No visits, given plan, globals and head.
    ///
    /// # Errors
    /// [`Error::Format`].
    pub fn new([plan, globals, head]: [Came<'a>; 3]) -> Result<Self> {
        Ok(Self { plan, globals, head: decoded(head.bytes)?, sum: TreeSum::default() })
    }
}

/// A reading of shards that are a branch of the tree, and the sum of those read so far.
pub struct ReadBranch {
    reading: Reading,
    sum: TreeSum<ReadSums>,
}

impl ReadBranch {
    /// Nothing read, given a [`Reading`] as bytes.
    ///
    /// # Errors
    /// [`Error::Format`].
    pub fn new(reading: &[u8]) -> Result<Self> {
        Ok(Self { reading: decoded(reading)?, sum: TreeSum::default() })
    }

    /// Reads the next shard.
    ///
    /// # Errors
    /// As [`ReadSums::read`].
    pub fn read<F: Scalar>(&mut self, rows: &dyn Rows<F>, weights: Option<&[f64]>) -> Result<()> {
        let Self { reading, sum } = self;
        let sums = sums_of_shard(&RowUnits::all(rows, weights), reading, &Cancel::default())?;
        sum.push(sums, &mut |sum: &mut ReadSums, sums| sum.add(sums, reading))
    }

    /// The sum as bytes.
    ///
    /// # Errors
    /// [`Error::Format`], also without shards.
    pub fn finish(self) -> Result<Vec<u8>> {
        let Self { reading, sum } = self;
        let sum = sum.finish(&mut |sum: &mut ReadSums, sums| sum.add(sums, &reading))?;
        encoded(&sum.ok_or_else(no_branch)?)
    }
}

/// A decoded part.
struct Latest<T>(Option<(u64, T)>);

impl<T: DeserializeOwned> Latest<T> {
    /// Decodes a part, unless it is the same as the last one.
    fn get(&mut self, came: Came<'_>) -> Result<&T> {
        let latest = match self.0.take() {
            Some(latest) if latest.0 == came.key => latest,
            _ => (came.key, decoded(came.bytes)?),
        };
        Ok(&self.0.insert(latest).1)
    }
}

/// Visits shards on behalf of a run in another process.
pub struct Worker<F: Scalar> {
    coordinates: Arc<Coordinates>,
    prints: Vec<u64>,
    visits: ShardVisits<'static, F>,
    plan: Latest<Plan>,
    globals: Latest<Globals>,
    /// Memory of what is remembered of each shard, and of all, bytes.
    sizes: Vec<usize>,
    cached: usize,
}

impl<F: Scalar> Worker<F> {
    /// Of a run with this [`RunSetup`], as bytes.
    ///
    /// # Errors
    /// [`Error::Format`] for other bytes; [`Error::InvalidArgument`] for a model of another version.
    pub fn new(setup: &[u8]) -> Result<Self> {
        let RunSetup { specification, coordinates, origin, options, prints } = decoded(setup)?;
        let model: Model<F> = specification.build_in(origin, &coordinates)?;
        let visits = ShardVisits::new(&RowKind, &model, prints.len(), options, Cancel::default());
        let (coordinates, sizes) = (Arc::new(coordinates), vec![0; prints.len()]);
        let (plan, globals) = (Latest(None), Latest(None));
        Ok(Self { coordinates, prints, visits, plan, globals, sizes, cached: 0 })
    }

    /// Visits the next shard of a branch.
    ///
    /// # Errors
    /// [`Error::Source`] for rows that have changed; [`Error::Format`]; [`Error::Numerical`].
    pub fn visit(
        &mut self,
        branch: &mut VisitBranch<'_>,
        shard: usize,
        rows: &dyn Rows<F>,
        weights: Option<&[f64]>,
    ) -> Result<()> {
        let VisitBranch { plan, globals, head: Head { batch, edits, limits }, sum } = branch;
        let plan = self.plan.get(*plan)?;
        let globals = self.globals.get(*globals)?;
        let units = RowUnits::all(rows, weights);
        let print = *self.prints.get(shard).ok_or_else(|| format_error("a shard beyond the last"))?;
        if print_of_rows(&units, &Cancel::default())? != print {
            return Err(changed_shard(Some(*batch), shard));
        }
        let source = Box::new(OneShard { shard, units });
        let source = SeenBatches { source, coordinates: Arc::clone(&self.coordinates), allowed: None };
        // What earlier visits copied may belong to another attempt.
        self.visits.limit_keys(plan.version, limits.clone());
        let visit = self.visits.visit(&source, (*batch, shard), globals, edits, plan)?;
        sum.push(visit, &mut |sum: &mut Visit, visit| added::<F>(sum, visit, plan))?;
        self.drop_cache(shard);
        Ok(())
    }

    /// The sum of the visits of a branch as bytes.
    ///
    /// # Errors
    /// [`Error::Format`], also without shards.
    pub fn finish(&mut self, branch: VisitBranch<'_>) -> Result<Vec<u8>> {
        let plan = self.plan.get(branch.plan)?;
        let sum = branch.sum.finish(&mut |sum: &mut Visit, visit| added::<F>(sum, visit, plan))?;
        encoded(&sum.ok_or_else(no_branch)?)
    }

    /// Drops the cache of a shard that was visited if those of all shards take too much memory.
    fn drop_cache(&mut self, shard: usize) {
        let size = self.visits.bytes(shard);
        self.cached = self.cached + size - std::mem::replace(&mut self.sizes[shard], size);
        if self.cached > CACHED {
            self.visits.visitor().forget(shard);
            let size = self.visits.bytes(shard);
            self.cached -= std::mem::replace(&mut self.sizes[shard], size) - size;
        }
    }
}

/// A source of one shard.
struct OneShard<'a, F: Scalar> {
    shard: usize,
    units: RowUnits<'a, F>,
}

impl<F: Scalar> BatchSource<F> for OneShard<'_, F> {
    fn dimension(&self) -> usize {
        self.units.dimension()
    }

    fn n_batches(&self) -> Option<usize> {
        None
    }

    fn load(&self, shard: usize) -> Result<RowUnits<'_, F>> {
        debug_assert_eq!(shard, self.shard);
        Ok(self.units.borrowed())
    }

    fn can_replay(&self) -> bool {
        true
    }
}

/// Copies of the listed rows of a shard, as bytes.
///
/// # Errors
/// [`Error::Format`].
pub fn pick_rows<F: Scalar>(rows: &dyn Rows<F>, weights: Option<&[f64]>, list: &[u32]) -> Result<Vec<u8>> {
    if list.iter().any(|&row| row as usize >= rows.n_rows()) {
        return Err(Error::Source { batch: None, message: OTHER_VALUES.to_owned() });
    }
    encoded(&sample_of_shard(&RowUnits::all(rows, weights), list))
}

/// The sum of two neighbours in the tree of visits under a plan; all are bytes.
///
/// # Errors
/// [`Error::Format`].
pub fn add_visits<F: Scalar>(plan: &[u8], left: &[u8], right: &[u8]) -> Result<Vec<u8>> {
    let (plan, mut sum): (Plan, Visit) = (decoded(plan)?, decoded(left)?);
    added::<F>(&mut sum, decoded(right)?, &plan)?;
    encoded(&sum)
}

/// Adds a neighbour in the tree of visits.
fn added<F: Scalar>(sum: &mut Visit, visit: Visit, plan: &Plan) -> Result<()> {
    sum.add::<F>(visit, plan, &Moves::all().list())?;
    // Rows that are not among the smallest keys need not travel.
    sum.findings.cut(plan);
    Ok(())
}

/// The sum of two neighbours in the tree of a reading; all are bytes.
///
/// # Errors
/// [`Error::Format`].
pub fn add_sums(reading: &[u8], left: &[u8], right: &[u8]) -> Result<Vec<u8>> {
    let (reading, mut sum): (Reading, ReadSums) = (decoded(reading)?, decoded(left)?);
    sum.add(decoded(right)?, &reading)?;
    encoded(&sum)
}

pub(super) fn encoded<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    postcard::to_stdvec(value).map_err(|error| format_error(&error.to_string()))
}

pub(super) fn decoded<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    match postcard::take_from_bytes(bytes).map_err(|error| format_error(&error.to_string()))? {
        (value, []) => Ok(value),
        _ => Err(format_error("it is longer than it should be")),
    }
}

fn no_branch() -> Error {
    format_error("a branch without shards")
}

fn format_error(message: &str) -> Error {
    Error::Format { message: message.to_owned() }
}
