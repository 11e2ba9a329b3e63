//! The inputs of the moves of a run.

use crate::component::ComponentId;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::moves::{Move, MoveKind, MoveState, RunShape, Subsample};
use crate::parallel::Cancel;
use crate::responsibilities::Sparsity;
use crate::simd::Scalar;

/// The inputs of the moves of a run.
pub struct Round<'a, F: Scalar> {
    /// The model, with the current base measure.
    pub model: Model<F>,
    /// The moves, in the order in which they plan and settle.
    pub moves: &'a [&'a dyn Move<F>],
    /// Number of components kept per unit.
    pub sparsity: Sparsity,
    /// Drop components whose log weight is more than this many nats below the row's best.
    pub margin: Option<f64>,
    /// The seed of the run.
    pub seed: u64,
    /// Number of batches per pass.
    pub n_batches: usize,
    /// Checked between blocks.
    pub cancel: &'a Cancel,
}

impl<F: Scalar> Round<'_, F> {
    /// The kinds of moves that can raise the number of components.
    pub fn growing(&self) -> Vec<MoveKind> {
        self.moves.iter().filter(|one| one.subsample().is_some()).map(|one| one.kind()).collect()
    }

    /// Options for the rows from which parts of components are made.
    pub(super) fn subsample(&self) -> Subsample {
        Subsample::of(self.moves)
    }

    /// Whether the base measure is estimated.
    pub(super) fn estimates(&self) -> bool {
        self.model.base.estimated.is_some() && !self.model.base.is_held
    }

    /// Refuses a state that is impossible for such a run, since files may hold anything.
    ///
    /// # Errors
    /// [`Error::Checkpoint`].
    pub fn check(&self, state: &MoveState, ids: &[ComponentId]) -> Result<()> {
        let shape = RunShape { ids, n_statistics: self.model.likelihood.n_statistics(), n_batches: self.n_batches };
        let kinds: Vec<MoveKind> = self.moves.iter().map(|one| one.kind()).collect();
        let mut payloads =
            [&state.plan.wanted, &state.found.payloads, &state.payloads].into_iter().flat_map(|all| &all.0);
        if payloads.all(|(kind, _)| kinds.contains(kind)) && self.moves.iter().all(|one| one.fits(state, &shape)) {
            return Ok(());
        }
        Err(Error::Checkpoint { message: "it is damaged: its moves".to_owned() })
    }

    /// Whether `pass` has been planned.
    pub fn is_planned(&self, state: &MoveState, pass: usize) -> bool {
        state.plan.version == pass as u64 + 1
    }
}
