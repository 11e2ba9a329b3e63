//! How far the search of a run is, and the best state before it.

use serde::{Deserialize, Serialize};

use crate::component::Class;
use crate::error::Error;
use crate::fit::run::Run;
use crate::fitted::{Record, StopReason};
use crate::parameters::Parameters;
use crate::suffstats::Summary;

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
    /// The run goes on from a rearrangement of the best state.
    Rearranged,
    /// The run goes on from the best state, which had not converged.
    Last,
}

/// The state of a search.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Search {
    /// How far it is.
    pub(super) stage: Stage,
    /// The best state before the current stage.
    pub(super) best: Option<Box<BestState>>,
    /// Work before the search, in pairs of rows and components.
    pub(super) before: usize,
    /// Work of the current stage.
    pub(super) of_stage: usize,
}

/// A state to which a run returns if it finds no better one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BestState {
    /// Its bound, nats.
    pub elbo: f64,
    /// Its objective, nats.
    pub objective: f64,
    /// Parameters of its base measure.
    pub base: Parameters,
    /// The sum over all data.
    pub total: Summary,
    /// The class of each of its components.
    pub classes: Vec<Class>,
    /// Whether it was kept before passes had converged.
    pub is_cut: bool,
}

/// Other components from which a run goes on.
#[derive(Debug)]
pub struct NewStart {
    /// Their sums. Their identities are not those of the run.
    pub total: Summary,
    /// The class of each of its components.
    pub classes: Vec<Class>,
    /// Parameters of the base measure.
    pub base: Parameters,
    /// The stage that begins.
    pub stage: Stage,
}

impl BestState {
    /// The result of a run that found no better state.
    pub(super) fn into_run(self, history: Vec<Record>, stop_reason: StopReason, error: Option<Error>) -> Run {
        let of_state = if self.is_cut { StopReason::MaxPasses } else { StopReason::Converged };
        let is_usual = matches!(stop_reason, StopReason::MaxPasses | StopReason::Converged);
        let stop_reason = if is_usual { of_state } else { stop_reason };
        let Self { elbo, base, total: summary, classes, .. } = self;
        Run { summary, classes, elbo, base, history, stop_reason, error }
    }
}

impl Search {
    /// Counts the work of a pass.
    pub(super) fn count(&mut self, pairs: usize) {
        *(if self.stage == Stage::Ahead { &mut self.before } else { &mut self.of_stage }) += pairs;
    }

    /// The best state before the current stage, if it is not worse than the current one, with this objective.
    pub(super) fn better_than(&self, objective: f64) -> Option<&BestState> {
        // Objectives under a loose base measure do not compare.
        let compares = self.stage != Stage::Loose && objective.is_finite();
        self.best.as_deref().filter(|best| !compares || best.objective >= objective)
    }

    /// Number of components of the best state.
    pub(super) fn n_components(&self) -> usize {
        self.best.as_ref().map_or(0, |best| best.total.n_components())
    }

    /// Whether this can be the state of such a run, since files may hold anything.
    pub(super) fn fits(&self, n_statistics: usize) -> bool {
        let fits = |best: &BestState| {
            let total = &best.total;
            total.sparse.is_none() && total.fits(&total.ids, n_statistics) && best.classes.len() == total.n_components()
        };
        self.best.as_deref().map_or(self.stage == Stage::Ahead, fits)
    }

    /// Notes that passes have converged from the best state.
    pub(super) fn end(&mut self) {
        if let Some(best) = &mut self.best {
            best.is_cut = false;
        }
    }

    pub(super) fn begin(&mut self, stage: Stage) {
        (self.stage, self.of_stage) = (stage, 0);
    }
}
