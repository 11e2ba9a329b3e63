//! A visit, as moves see it.

use crate::component::{Class, ComponentId};
use crate::local_step::Units;
use crate::model::Model;
use crate::moves::{Plan, Seen};
use crate::parallel::Cancel;
use crate::responsibilities::Sparsity;
use crate::simd::Scalar;

/// A visit and the plan of what to look for.
pub struct Look<'a, F: Scalar> {
    /// The model.
    pub model: &'a Model<F>,
    /// The plan.
    pub plan: &'a Plan,
    /// Index of the batch.
    pub batch: usize,
    /// Index of the shard.
    pub shard: usize,
    /// Units of the shard.
    pub units: &'a dyn Units<F>,
    /// Responsibilities of the units.
    pub seen: &'a Seen,
    /// The components of the visit, by position.
    pub ids: &'a [ComponentId],
    /// The class of each row of the data, if rows have classes.
    pub classes: Option<&'a [Class]>,
    /// Number of components kept per unit.
    pub sparsity: Sparsity,
    /// Checked between blocks.
    pub cancel: &'a Cancel,
}
