//! The search after the moves are exhausted: the moves once more under a loose base measure, then passes under an
//! estimated one again (mathematics 10.8), then another start, if there is one (10.9), then rearrangements (10.10). The
//! run ends with the best state.

use crate::component::Edit;
use crate::elbo;
use crate::error::{Error, Result};
use crate::evidence;
use crate::fit::engine::Engine;
use crate::fit::position::Position;
use crate::fit::run::Run;
use crate::fit::stages::{BestState, Stage};
use crate::fitted::StopReason;
use crate::likelihood::Loosening;
use crate::memo::Memo;
use crate::model::Model;
use crate::parameters::Parameters;
use crate::simd::Scalar;
use crate::visits::UnitOptions;

/// The loose base measure.
const LOOSENING: Loosening = Loosening { divisor: 16.0, precision: 0.01 };
/// Number of statistics for each row above which there is no search: its moves would cost more than all passes.
const WIDE: f64 = 100.0;
/// Number of rows above which a stage may cost only [`LARGE_SHARE`] of the work before the search.
const LARGE: f64 = 20_000.0;
/// Work of a stage as a fraction of the work before the search.
const SHARE: f64 = 1.0;
/// The same for many rows.
const LARGE_SHARE: f64 = 0.2;
/// Work of rearrangements as a fraction of the work before the search.
const REARRANGING_SHARE: f64 = 12.0;

impl Position {
    /// Whether the current stage of a search has used up the work that it may do.
    pub(super) fn is_search_late(&self) -> bool {
        let search = &self.search;
        let share = if self.memo.total().mass > LARGE { LARGE_SHARE } else { SHARE };
        let is_late = search.of_stage as f64 > share * search.before as f64;
        match search.stage {
            Stage::Ahead => false,
            Stage::Loose => is_late,
            // A better state is worth its passes.
            Stage::Estimating | Stage::OtherStart | Stage::Rearranged => {
                is_late && self.objectives.last().is_some_and(|last| search.better_than(*last).is_some())
            }
        }
    }

    /// The result after a failure: the best state if a computation has failed in a search, else the failure.
    pub(super) fn rescued(self, failure: Error) -> Result<Run> {
        match self.search.best {
            Some(best) if matches!(failure, Error::Numerical { .. }) => {
                Ok(best.into_run(self.history, StopReason::Converged, None))
            }
            _ => Err(failure),
        }
    }
}

impl<F: Scalar> Engine<'_, F> {
    /// Takes the next step of the search when the current stage has ended. Returns whether there is more to do.
    pub(super) fn search_on(&mut self, position: &mut Position) -> Result<bool> {
        if !self.may_search(position) {
            return Ok(false);
        }
        match position.search.stage {
            Stage::Ahead => {
                let Some(loose) = evidence::loose(&self.model, position.memo.total(), LOOSENING)? else {
                    return Ok(false);
                };
                self.keep_best(position)?;
                self.go_on_with(position, Stage::Loose, loose);
                Ok(true)
            }
            Stage::Loose => {
                Ok(self.estimate_again(position) || self.start_again(position)? || self.rearrange(position)?)
            }
            Stage::Estimating => {
                self.keep_best(position)?;
                Ok(self.start_again(position)? || self.rearrange(position)?)
            }
            Stage::OtherStart => {
                self.keep_best(position)?;
                self.rearrange(position)
            }
            Stage::Rearranged => Ok(false),
        }
    }

    /// Whether a search is possible: components can grow, their base measure is estimated, and units are rows.
    fn may_search(&self, position: &Position) -> bool {
        let grows = self.round.as_ref().is_some_and(|round| !round.growing().is_empty());
        let is_whole = matches!(self.settings.units, UnitOptions::Rows) && position.memo.is_complete();
        let n_statistics = position.memo.total().n_statistics as f64;
        let is_wide = n_statistics > WIDE * position.memo.total().mass;
        let is_open = self.model.base.estimated.is_some() && position.pass < self.settings.max_passes;
        grows && is_whole && is_open && !is_wide
    }

    /// Keeps the current state if it is the best so far.
    fn keep_best(&self, position: &mut Position) -> Result<()> {
        let total = position.memo.total();
        let elbo = elbo::collapsed(&self.model, total)?.total();
        let objective = self.objective(total, elbo)?;
        if position.search.better_than(objective).is_none() {
            let (base, total) = (position.base.clone(), total.clone());
            position.search.best = Some(Box::new(BestState { elbo, objective, base, total }));
        }
        Ok(())
    }

    /// Goes on under an estimated base measure if the loose one has led to more components.
    fn estimate_again(&mut self, position: &mut Position) -> bool {
        if position.memo.total().n_components() <= position.search.n_components() {
            return false;
        }
        let usual = self.model.holding(false);
        let usual = evidence::raise(&usual, position.memo.total()).map_or(usual, |(raised, _)| raised);
        self.go_on_with(position, Stage::Estimating, usual);
        true
    }

    /// Goes on from another start if it has more components than the best state.
    fn start_again(&mut self, position: &mut Position) -> Result<bool> {
        let most = position.search.n_components();
        // An interrupt must not leave identities that are issued to nothing.
        let mut edits = position.edits.clone();
        let Some((memo, base)) = self.data.other_start(most, &mut edits)? else { return Ok(false) };
        position.edits = edits;
        self.go_on_from(position, Stage::OtherStart, memo, base)?;
        Ok(true)
    }

    /// Goes on from a rearrangement of the best state, if one is better.
    fn rearrange(&mut self, position: &mut Position) -> Result<bool> {
        let Some(best) = position.search.best.as_deref() else { return Ok(false) };
        if best.total.mass > LARGE {
            return Ok(false);
        }
        let budget = (REARRANGING_SHARE * position.search.before as f64) as usize;
        let (mut edits, base) = (position.edits.clone(), best.base.clone());
        let Some(memo) = self.data.rearranged(best, budget, &mut edits)? else { return Ok(false) };
        position.edits = edits;
        self.go_on_from(position, Stage::Rearranged, memo, base)?;
        Ok(true)
    }

    /// Goes on from a memo of other components, which the log has appended.
    fn go_on_from(&mut self, position: &mut Position, stage: Stage, memo: Memo, base: Parameters) -> Result<()> {
        let model = self.model.holding(false).with_base(base)?;
        let model = evidence::raise(&model, memo.total()).map_or(model, |(raised, _)| raised);
        let gone = std::mem::replace(&mut position.memo, memo).into_total().ids;
        for id in gone {
            position.edits.push(Edit::Delete { id });
        }
        self.go_on_with(position, stage, model);
        Ok(())
    }

    /// Makes a fresh start of the moves under another base measure.
    fn go_on_with(&mut self, position: &mut Position, stage: Stage, model: Model<F>) {
        position.search.begin(stage);
        position.base = model.base.parameters.clone();
        position.objectives.clear();
        position.moves.start_over();
        self.adopt(model);
    }
}
