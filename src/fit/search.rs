//! The search after the moves are exhausted: the moves once more under a loose base measure, then passes under an
//! estimated one again (mathematics 10.8), then another start, if there is one (10.9). The run ends with the best state.

use serde::{Deserialize, Serialize};

use crate::component::Edit;
use crate::elbo;
use crate::error::Result;
use crate::evidence;
use crate::fit::engine::Engine;
use crate::fit::position::Position;
use crate::likelihood::Loosening;
use crate::model::Model;
use crate::parameters::Parameters;
use crate::simd::Scalar;
use crate::suffstats::Summary;
use crate::visits::UnitOptions;

/// The loose base measure.
const LOOSENING: Loosening = Loosening { divisor: 16.0, precision: 0.01 };
/// Number of passes after which a search begins although the fit has not converged.
const LONG: usize = 100;
/// Number of rows above which a stage may cost only [`LARGE_SHARE`] of the work before the search.
const LARGE: f64 = 20_000.0;
/// Work of a stage as a fraction of the work before the search.
const SHARE: f64 = 1.0;
/// The same for many rows.
const LARGE_SHARE: f64 = 0.2;

/// How far a search is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// It has not begun.
    #[default]
    Ahead,
    /// Moves are made under a loose base measure.
    Loose,
    /// The base measure is estimated again.
    Estimating,
    /// The run goes on from another start.
    OtherStart,
}

/// The state of a search.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Search {
    /// How far it is.
    pub(super) stage: Stage,
    /// The best state before the current stage.
    best: Option<Box<Best>>,
    /// Work before the search, in pairs of rows and components.
    before: usize,
    /// Work of the current stage.
    of_stage: usize,
}

/// A state to which a run returns if it finds no better one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Best {
    /// Its bound, nats.
    pub elbo: f64,
    /// Its objective, nats.
    pub objective: f64,
    /// Parameters of its base measure.
    pub base: Parameters,
    /// The sum over all data.
    pub total: Summary,
    /// Whether its last pass gained less than the tolerance.
    pub is_settled: bool,
}

impl Search {
    /// Counts the work of a pass.
    pub(super) fn count(&mut self, pairs: usize) {
        *(if self.stage == Stage::Ahead { &mut self.before } else { &mut self.of_stage }) += pairs;
    }

    /// The best state before the current stage, if it is not worse than the current one, with this objective.
    pub(super) fn better_than(&self, objective: f64) -> Option<&Best> {
        // Objectives under a loose base measure do not compare.
        let compares = self.stage != Stage::Loose && objective.is_finite();
        self.best.as_deref().filter(|best| !compares || best.objective >= objective)
    }

    /// Number of components of the best state.
    fn n_components(&self) -> usize {
        self.best.as_ref().map_or(0, |best| best.total.n_components())
    }

    /// Whether this can be the state of such a run, since files may hold anything.
    pub(super) fn fits(&self, n_statistics: usize) -> bool {
        let fits = |best: &Best| best.total.sparse.is_none() && best.total.fits(&best.total.ids, n_statistics);
        self.best.as_deref().map_or(self.stage == Stage::Ahead, fits)
    }

    fn begin(&mut self, stage: Stage) {
        (self.stage, self.of_stage) = (stage, 0);
    }
}

impl<F: Scalar> Engine<'_, F> {
    /// Takes the next step of the search when the current stage has ended. Returns whether there is more to do.
    pub(super) fn search_on(&mut self, position: &mut Position, is_settled: bool) -> Result<bool> {
        if !self.may_search(position) {
            return Ok(false);
        }
        match position.search.stage {
            Stage::Ahead => {
                let Some(loose) = evidence::loose(&self.model, LOOSENING)? else { return Ok(false) };
                self.keep_best(position, is_settled)?;
                self.go_on_with(position, Stage::Loose, loose);
                Ok(true)
            }
            Stage::Loose => Ok(self.estimate_again(position)? || self.start_again(position)?),
            Stage::Estimating => {
                self.keep_best(position, is_settled)?;
                self.start_again(position)
            }
            Stage::OtherStart => Ok(false),
        }
    }

    /// Whether the current stage of a search has used up the work that it may do.
    pub(super) fn is_search_late(&self, position: &Position) -> bool {
        let search = &position.search;
        let share = if position.memo.total().mass > LARGE { LARGE_SHARE } else { SHARE };
        let is_late = search.of_stage as f64 > share * search.before as f64;
        match search.stage {
            Stage::Ahead => position.pass >= LONG && self.may_search(position),
            Stage::Loose => is_late,
            // A better state is worth its passes.
            Stage::Estimating | Stage::OtherStart => {
                is_late && position.objectives.last().is_some_and(|last| search.better_than(*last).is_some())
            }
        }
    }

    /// Whether a search is possible: components can grow, their base measure is estimated, and units are rows.
    fn may_search(&self, position: &Position) -> bool {
        let grows = self.round.as_ref().is_some_and(|round| !round.growing().is_empty());
        let is_whole = matches!(self.settings.units, UnitOptions::Rows) && position.memo.is_complete();
        grows && is_whole && self.model.base.estimated.is_some() && position.pass < self.settings.max_passes
    }

    /// Keeps the current state if it is the best so far.
    fn keep_best(&self, position: &mut Position, is_settled: bool) -> Result<()> {
        let total = position.memo.total();
        let elbo = elbo::collapsed(&self.model, total)?.total();
        let objective = self.objective(total, elbo)?;
        if position.search.better_than(objective).is_none() {
            let (base, total) = (position.base.clone(), total.clone());
            position.search.best = Some(Box::new(Best { elbo, objective, base, total, is_settled }));
        }
        Ok(())
    }

    /// Goes on under an estimated base measure if the loose one has led to more components.
    fn estimate_again(&mut self, position: &mut Position) -> Result<bool> {
        if position.memo.total().n_components() <= position.search.n_components() {
            return Ok(false);
        }
        let usual = self.model.holding(false);
        let usual = evidence::raise(&usual, position.memo.total()).map_or(usual, |(raised, _)| raised);
        self.go_on_with(position, Stage::Estimating, usual);
        Ok(true)
    }

    /// Goes on from another start if it has more components than the best state.
    fn start_again(&mut self, position: &mut Position) -> Result<bool> {
        let most = position.search.n_components();
        let Some((memo, base)) = self.data.other_start(most, &mut position.edits)? else { return Ok(false) };
        let model = self.model.holding(false).with_base(base)?;
        let model = evidence::raise(&model, memo.total()).map_or(model, |(raised, _)| raised);
        // The log has appended the new components.
        let gone = std::mem::replace(&mut position.memo, memo).into_total().ids;
        gone.into_iter().for_each(|id| position.edits.push(Edit::Delete { id }));
        self.go_on_with(position, Stage::OtherStart, model);
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
