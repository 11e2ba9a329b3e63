//! The search after the moves are exhausted: the moves once more under a loose base measure, if there are few columns,
//! then passes under an estimated one again (mathematics 10.8), then another start, if there is one (10.9), then
//! rearrangements (10.10). The run ends with the best state.

use crate::component::Edit;
use crate::elbo;
use crate::error::{Error, Result};
use crate::events::Observer;
use crate::evidence;
use crate::fit::engine::Engine;
use crate::fit::position::Position;
use crate::fit::pulse::Pulse;
use crate::fit::run::Run;
use crate::fit::stages::{BestState, NewStart, Stage};
use crate::fitted::StopReason;
use crate::likelihood::Loosening;
use crate::model::Model;
use crate::moves::MANY_ROWS;
use crate::simd::Scalar;
use crate::visits::UnitOptions;

/// The loose base measure.
const LOOSENING: Loosening<'static> = Loosening { divisors: &[16.0], certainty: 1.0, precision: 0.01 };
/// Number of statistics for each row above which there is no search: its moves would cost more than all passes.
const WIDE: f64 = 100.0;
/// Number of second moments for each row above which there is no loose base measure: a component of a few rows would
/// gain from it, so that components multiply and lead nowhere.
const MANY_MOMENTS: f64 = 1.0;
/// Work of a stage as a fraction of the work before the search.
const SHARE: f64 = 1.0;
/// The same for more than [`MANY_ROWS`] rows.
const SHARE_OF_MANY: f64 = 0.2;
/// Work of rearrangements as a fraction of the work before the search.
const REARRANGING_SHARE: f64 = 4.0;

impl Position {
    /// Whether the current stage of a search has used up the work that it may do.
    pub(super) fn is_search_late(&self) -> bool {
        let search = &self.search;
        let share = if self.memo.total().mass > MANY_ROWS { SHARE_OF_MANY } else { SHARE };
        let is_limited = !matches!(search.stage, Stage::Ahead | Stage::Last);
        is_limited && search.of_stage as f64 > share * search.before as f64
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
    /// Takes the next step of the search when the current stage has ended, or was cut. Returns why the run ends if
    /// there is no more to do.
    pub(super) fn search_on(
        &mut self,
        position: &mut Position,
        is_cut: bool,
        observer: &dyn Observer,
    ) -> Result<Option<StopReason>> {
        let ended = Some(StopReason::Converged);
        if !self.may_search(position) {
            return Ok(ended);
        }
        if position.search.stage == Stage::Last {
            position.search.end();
            return Ok(ended);
        }
        let mut pulse = Pulse::new(observer, position.history.last().cloned());
        let goes_on = match position.search.stage {
            Stage::Ahead => {
                self.keep_best(position, false)?;
                self.let_go(position)? || self.start_again(position)? || self.rearrange(position, &mut pulse)?
            }
            Stage::Loose => {
                self.estimate_again(position) || self.start_again(position)? || self.rearrange(position, &mut pulse)?
            }
            Stage::Estimating => {
                self.keep_best(position, is_cut)?;
                self.start_again(position)? || self.rearrange(position, &mut pulse)?
            }
            Stage::OtherStart => {
                self.keep_best(position, is_cut)?;
                self.rearrange(position, &mut pulse)?
            }
            Stage::Rearranged | Stage::Last => {
                self.keep_best(position, is_cut)?;
                false
            }
        };
        if pulse.has_stopped {
            return Ok(Some(StopReason::Callback));
        }
        Ok(if goes_on || self.settle(position)? { None } else { ended })
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

    /// Keeps the current state if it is the best so far. `is_cut`: whether passes might still gain.
    fn keep_best(&self, position: &mut Position, is_cut: bool) -> Result<()> {
        let total = position.memo.total();
        let elbo = elbo::collapsed(&self.model, total)?.total();
        let objective = self.objective(total, elbo)?;
        if position.search.better_than(objective).is_none() {
            let (base, total, classes) = (position.base.clone(), total.clone(), position.edits.classes(&total.ids));
            position.search.best = Some(Box::new(BestState { elbo, objective, base, total, classes, is_cut }));
        }
        Ok(())
    }

    /// Goes on under a loose base measure, if there is one and rows can do without a certain one.
    fn let_go(&mut self, position: &mut Position) -> Result<bool> {
        let total = position.memo.total();
        if self.model.likelihood.squares().len() as f64 > MANY_MOMENTS * total.mass {
            return Ok(false);
        }
        let Some(loose) = evidence::loose(&self.model, total, LOOSENING)? else { return Ok(false) };
        self.go_on_with(position, Stage::Loose, loose);
        Ok(true)
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

    /// Goes on from another start, if there is a promising one.
    fn start_again(&mut self, position: &mut Position) -> Result<bool> {
        let Some(best) = position.search.best.as_deref() else { return Ok(false) };
        let found = self.data.other_start(best)?;
        found.map_or(Ok(false), |start| self.go_on_from(position, start))
    }

    /// Goes on from a rearrangement of the best state, if one is better.
    fn rearrange(&mut self, position: &mut Position, pulse: &mut Pulse<'_>) -> Result<bool> {
        let Some(best) = position.search.best.as_deref().filter(|best| best.total.mass <= MANY_ROWS) else {
            return Ok(false);
        };
        let budget = (REARRANGING_SHARE * position.search.before as f64) as usize;
        let found = self.data.rearranged(best, budget, pulse)?;
        found.map_or(Ok(false), |start| self.go_on_from(position, start))
    }

    /// Goes on from the best state if it was kept before it had converged.
    fn settle(&mut self, position: &mut Position) -> Result<bool> {
        let Some(best) = position.search.best.as_deref().filter(|best| best.is_cut) else { return Ok(false) };
        let (total, classes, base) = (best.total.clone(), best.classes.clone(), best.base.clone());
        let start = NewStart { total, classes, base, stage: Stage::Last };
        self.go_on_from(position, start)
    }

    /// Goes on from other components.
    fn go_on_from(&mut self, position: &mut Position, start: NewStart) -> Result<bool> {
        let NewStart { mut total, classes, base, stage } = start;
        let mut model = self.model.holding(false).with_base(base)?;
        if let Some((raised, _)) = evidence::raise(&model, &total) {
            model = raised;
        }
        total.ids = position.edits.issue(total.n_components());
        total.ids.iter().zip(classes).for_each(|(&id, class)| position.edits.set_class(id, class));
        position.edits.push(Edit::Append { ids: total.ids.clone() });
        let memo = position.memo.begun_again(total);
        for id in std::mem::replace(&mut position.memo, memo).into_total().ids {
            position.edits.push(Edit::Delete { id });
        }
        self.go_on_with(position, stage, model);
        Ok(true)
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

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::data::{DenseRows, TableRows};
    use crate::fit::prepare::Prepared;
    use crate::fit::{Job, Settings};
    use crate::init::Init;
    use crate::model::Specification;
    use crate::moves::Moves;
    use crate::parallel::Cancel;

    /// Why a run ends whose stage has ended, or was cut; its stage then, and whether passes from its best state may
    /// still gain.
    fn ends(stage: Stage, is_cut: bool) -> (Option<StopReason>, Stage, bool) {
        let values: Vec<f64> = (0..60).map(|row| f64::from(row % 3) * 5.0 + f64::from(row).sin()).collect();
        let labels: Vec<u32> = (0..60).map(|row| row % 3).collect();
        let table = DenseRows::new(&values[..], 1);
        let rows = TableRows { rows: &table, weights: None };
        let moves = Moves::usual();
        let settings = Settings { n_components: Some(3), moves, max_passes: 50, ..Settings::default() };
        let (specification, init) = (Specification::new("Gaussian", "DirichletProcess"), Init::Labels(&labels));
        let job = Job { specification: &specification, rows: &rows, init: &init, settings: &settings, ask: None };
        let cancel = Cancel::default();
        let prepared = Prepared::new(&job, None, &cancel).expect("a good job");
        // No other start and no rearrangement.
        let (data, identity) = (|| Ok(()), &prepared.identity);
        let (model, round, started) = (prepared.model.clone(), prepared.round(), Instant::now());
        let mut engine = Engine { model, identity, settings: &prepared.settings, round, data: &data, started };
        let mut position = prepared.start().expect("labels");
        position.search.stage = stage;
        if stage == Stage::Last {
            engine.keep_best(&mut position, true).expect("finite");
        }
        let reason = engine.search_on(&mut position, is_cut, &()).expect("finite");
        let best = position.search.best.as_deref().expect("kept");
        assert_eq!(position.memo.total().counts, best.total.counts);
        (reason, position.search.stage, best.is_cut)
    }

    #[test]
    fn a_stage_that_was_cut_is_settled_before_the_end() {
        let ended = Some(StopReason::Converged);
        for stage in [Stage::Estimating, Stage::OtherStart, Stage::Rearranged] {
            assert_eq!(ends(stage, true), (None, Stage::Last, true), "{stage:?}");
            assert_eq!(ends(stage, false), (ended, stage, false), "{stage:?}");
        }
        assert_eq!(ends(Stage::Last, false), (ended, Stage::Last, false));
    }
}
