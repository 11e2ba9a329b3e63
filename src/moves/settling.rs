//! The inputs of moves at the end of a pass.

use std::collections::{BTreeMap, BTreeSet};

use crate::component::{ComponentId, EditLog};
use crate::memo::Memo;
use crate::model::Model;
use crate::moves::{Judge, MoveState, Round};
use crate::simd::Scalar;

/// The inputs of moves after a pass, and the results of earlier moves of the same pass.
pub struct Settling<'s, 'a, F: Scalar> {
    /// The model, the moves and the settings of the run.
    pub round: &'s Round<'a, F>,
    /// Judges edits by the exact bound.
    pub judge: Judge<'a, F>,
    /// The pass.
    pub pass: usize,
    /// Summaries of the batches.
    pub memo: &'s mut Memo,
    /// All edits of the list of components.
    pub edits: &'s mut EditLog,
    /// Where moves stand: what the plan was, and what has been found.
    pub state: &'s mut MoveState,
    /// By component that has ended, and by part, the component that it now belongs to.
    pub owner: BTreeMap<ComponentId, ComponentId>,
    /// Components that are not what they were while the visits were made.
    pub touched: BTreeSet<ComponentId>,
    /// Components that were appended for this pass and have been settled.
    pub fresh: BTreeSet<ComponentId>,
    /// Whether edits may be judged under the base measure that they lead to: nothing else is left to try.
    pub looks_ahead: bool,
    /// The model with that base measure, where such edits were carried out. No move comes after them in the pass.
    pub ahead: Option<Model<F>>,
    /// Whether the pass has been undone. Its findings then belong to responsibilities that no longer exist.
    pub undone: bool,
}

impl<F: Scalar> Settling<'_, '_, F> {
    /// The counts of all components as they are now.
    pub fn counts(&self) -> BTreeMap<ComponentId, f64> {
        let total = self.memo.total();
        total.ids.iter().copied().zip(total.counts.iter().copied()).collect()
    }

    /// The component `gone` now belongs to `keep`, and so does all that belonged to it.
    pub fn merged(&mut self, keep: ComponentId, gone: ComponentId) {
        self.owner.values_mut().filter(|id| **id == gone).for_each(|id| *id = keep);
        self.owner.insert(gone, keep);
        self.state.forget(keep);
        self.state.forget(gone);
    }

    /// Whether moves of this pass have left a component alone.
    pub fn is_alone(&self, id: ComponentId) -> bool {
        !self.owner.contains_key(&id) && !self.owner.values().any(|owner| *owner == id)
    }
}
