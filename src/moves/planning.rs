//! The inputs of moves while a pass is planned.

use std::collections::{BTreeMap, BTreeSet};

use crate::component::{ComponentId, EditLog};
use crate::memo::Memo;
use crate::moves::{Bag, MoveState, Plan, Round};
use crate::simd::Scalar;
use crate::suffstats::Summary;

/// The inputs of moves before a pass, and the plan under construction.
pub struct Planning<'p, 'a, F: Scalar> {
    /// The model, the moves and the settings of the run.
    pub round: &'p Round<'a, F>,
    /// Index of the pass.
    pub pass: usize,
    /// Summaries of the batches. Only moves that append components for the pass change them.
    pub memo: &'p mut Memo,
    /// All edits of the list of components.
    pub edits: &'p mut EditLog,
    /// Rows from which parts can be made.
    pub bags: &'p BTreeMap<ComponentId, Bag>,
    /// State of the moves.
    pub state: &'p mut MoveState,
    /// The plan so far.
    pub plan: Plan,
    /// Components that were appended for this pass. Once there are any, planning cannot be cancelled.
    pub fresh: BTreeSet<ComponentId>,
    /// Components that may be split and have copied rows, largest first, with their positions.
    pub(super) candidates: Vec<(ComponentId, usize)>,
}

impl<F: Scalar> Planning<'_, '_, F> {
    /// Summaries of all components.
    pub fn total(&self) -> &Summary {
        self.memo.total()
    }

    /// Whether everything is tried once more before the run ends.
    pub fn is_last_round(&self) -> bool {
        self.state.last_round == Some(self.pass)
    }

    /// Whether edits may be judged under a re-estimated base measure.
    pub fn looks_ahead(&self) -> bool {
        self.state.is_in_last_round(self.pass) && self.round.estimates()
    }
}
