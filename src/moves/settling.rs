//! The inputs of moves at the end of a pass.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use crate::component::{ComponentId, EditLog};
use crate::memo::Memo;
use crate::model::Model;
use crate::moves::lookahead::Unedited;
use crate::moves::{Judge, MoveState, Round};
use crate::simd::Scalar;

/// The inputs of moves after a pass, and the results of earlier moves of the same pass.
pub struct Settling<'s, 'a, F: Scalar> {
    /// The model, the moves and the settings of the run.
    pub round: &'s Round<'a, F>,
    /// Judges edits by the exact bound.
    pub judge: Judge<'a, F>,
    /// Index of the pass.
    pub pass: usize,
    /// Summaries of the batches.
    pub memo: &'s mut Memo,
    /// All edits of the list of components.
    pub edits: &'s mut EditLog,
    /// State of the moves: the plan and the findings.
    pub state: &'s mut MoveState,
    /// For each component that was removed, and each part, the component to which it now belongs.
    pub owner: BTreeMap<ComponentId, ComponentId>,
    /// Components that have changed since the visits were made.
    pub touched: BTreeSet<ComponentId>,
    /// Components that were appended for this pass and have been settled.
    pub fresh: BTreeSet<ComponentId>,
    /// Whether edits may be judged under a re-estimated base measure, because nothing else is left to try.
    pub looks_ahead: bool,
    /// The objective before such edits, once it is known.
    pub unedited: Cell<Option<Unedited>>,
    /// The model with the re-estimated base measure, if such edits were carried out. They end the moves of the pass.
    pub ahead: Option<Model<F>>,
    /// Whether the pass has been undone. Its findings then refer to responsibilities that no longer exist.
    pub undone: bool,
}

impl<F: Scalar> Settling<'_, '_, F> {
    /// The counts of all components as they are now.
    pub fn counts(&self) -> BTreeMap<ComponentId, f64> {
        let total = self.memo.total();
        total.ids.iter().copied().zip(total.counts.iter().copied()).collect()
    }

    /// Records that the component `gone`, with everything that belonged to it, now belongs to `keep`.
    pub fn merged(&mut self, keep: ComponentId, gone: ComponentId) {
        self.owner.values_mut().filter(|id| **id == gone).for_each(|id| *id = keep);
        self.owner.insert(gone, keep);
        self.state.forget(keep);
        self.state.forget(gone);
    }

    /// Whether no move of this pass has changed a component.
    pub fn is_alone(&self, id: ComponentId) -> bool {
        !self.owner.contains_key(&id) && !self.owner.values().any(|owner| *owner == id)
    }
}
