//! Rows as units.

use crate::component::{ComponentId, EditLog};
use crate::data::RowUnits;
use crate::error::{Error, Result};
use crate::global_step::Globals;
use crate::local_step::{Bounds, LocalState, Outcome, Tap, Units, chunk_rows};
use crate::parallel::map;
use crate::scoring::{Scorer, SparseScorer};
use crate::simd::Scalar;
use crate::visits::{Shard, Task, UnitKind, Visitor, load_state, save_state};

/// Minimum number of rows per column in a shard with distance bounds. With fewer rows, measuring how components have
/// moved would cost more than the bounds save.
const ROWS_PER_COLUMN: usize = 400;

/// Every row is a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowKind;

impl<F: Scalar> UnitKind<F> for RowKind {
    fn check(&self, task: &Task<'_>) -> Result<()> {
        if task.specification.documents()?.is_some() {
            let reason = "its units are the words of documents";
            return Err(Error::not_supported("units", "rows for a TopicModel", reason, "words"));
        }
        Ok(())
    }

    fn has_shards(&self) -> bool {
        true
    }

    fn identity(&self) -> Vec<(&'static str, String)> {
        vec![("units", "rows".into())]
    }

    fn visitor(&self, n_shards: usize) -> Box<dyn Visitor<F>> {
        Box::new(RowVisits::new(n_shards))
    }
}

/// Visits rows.
pub struct RowVisits<F: Scalar> {
    pub(super) states: Vec<LocalState>,
    /// The components of the last visit, if bounds are kept.
    pub(super) last: Option<(Vec<ComponentId>, Box<dyn Scorer<F>>)>,
    /// The packed components of the last visit of sparse rows, and their version.
    sparse: Option<(u64, SparseScorer<F>)>,
}

impl<F: Scalar> RowVisits<F> {
    /// Has not visited any of the batches.
    pub fn new(n_shards: usize) -> Self {
        Self { states: vec![LocalState::default(); n_shards], last: None, sparse: None }
    }

    /// The local state of a shard.
    pub fn state(&self, shard: usize) -> &LocalState {
        &self.states[shard]
    }

    /// Whether a visit keeps bounds. Depends only on sizes and arguments.
    fn keeps_bounds(&self, shard: &Shard<'_, F>, units: &RowUnits<'_, F>, scorer: &dyn Scorer<F>) -> bool {
        let (n, d, k, width) = (units.len(), units.dimension(), scorer.n_components(), shard.width(scorer));
        // Every shard has its own bounds, but one shard is visited at a time. Two states of the components are kept to
        // compute their drift.
        let at_rest = self.states.len() * Bounds::bytes_for(n, 0, k);
        let in_a_visit = Bounds::bytes_for(n, chunk_rows(width, d), k) - Bounds::bytes_for(n, 0, k);
        let components = 2 * k * d * d * size_of::<f64>();
        shard.options.margin.is_some()
            && scorer.uses_bounds()
            && !shard.model.has_tail()
            && width < k
            && n >= ROWS_PER_COLUMN * d
            && at_rest + in_a_visit + components <= shard.options.bounds_memory
    }

    /// Updates the bounds of all shards by the movement of the components since the last visit.
    fn drift(&mut self, ids: &[ComponentId], scorer: &dyn Scorer<F>) {
        let Some((earlier_ids, earlier)) = &self.last else { return };
        let moved: Vec<_> = map(ids.len(), |component| {
            let was = earlier_ids.iter().position(|id| *id == ids[component])?;
            Some((ids[component], scorer.drift_since(earlier.as_ref(), was, component)))
        });
        let moved = moved.into_iter().flatten().collect();
        self.states.iter_mut().filter_map(|state| state.bounds_mut().as_mut()).for_each(|bounds| bounds.drift(&moved));
    }

    /// Packs the components for these units, updating the pack of the last visit if possible.
    fn pack(&mut self, shard: &Shard<'_, F>, units: &RowUnits<'_, F>, globals: &Globals) -> Result<VisitScorer<F>> {
        if units.is_sparse() {
            let since = globals.changes.as_ref().map(|changes| changes.since);
            let last = self.sparse.take().filter(|(version, _)| Some(*version) == since).map(|(_, scorer)| scorer);
            if let Some(scorer) = globals.sparse_scorer(shard.model, last)? {
                return Ok(VisitScorer::Sparse(scorer));
            }
        }
        globals.scorer(shard.model).map(VisitScorer::Any)
    }
}

/// The packed components of a visit.
enum VisitScorer<F: Scalar> {
    Any(Box<dyn Scorer<F>>),
    Sparse(SparseScorer<F>),
}

impl<F: Scalar> VisitScorer<F> {
    fn scorer(&self) -> &dyn Scorer<F> {
        match self {
            Self::Any(scorer) => scorer.as_ref(),
            Self::Sparse(scorer) => scorer,
        }
    }
}

impl<F: Scalar> Visitor<F> for RowVisits<F> {
    fn visit(
        &mut self,
        shard: &Shard<'_, F>,
        globals: &Globals,
        edits: &EditLog,
        taps: &mut [&mut dyn Tap],
    ) -> Result<Outcome> {
        let units = shard.rows()?;
        let packed = self.pack(shard, units, globals)?;
        let scorer = packed.scorer();
        self.states[shard.index].replay(edits);
        self.drift(&globals.ids, scorer);
        let bounds = self.states[shard.index].bounds_mut().take();
        *self.states[shard.index].bounds_mut() =
            self.keeps_bounds(shard, units, scorer).then(|| bounds.unwrap_or_default());
        let outcome = shard.score(units, scorer, globals, &mut self.states[shard.index], taps);
        match packed {
            VisitScorer::Sparse(scorer) => self.sparse = Some((globals.version, scorer)),
            VisitScorer::Any(scorer) => {
                let any_bounds = self.states.iter().any(|state| state.bounds().is_some());
                self.last = any_bounds.then(|| (globals.ids.clone(), scorer));
            }
        }
        outcome
    }

    fn show(
        &mut self,
        shard: &Shard<'_, F>,
        _seed: Option<u64>,
        take: &mut dyn FnMut(&dyn Units<F>) -> Result<()>,
    ) -> Result<()> {
        take(shard.rows()?)
    }

    fn rebase(&mut self) {
        self.sparse = None;
        self.states.iter_mut().for_each(|state| *state.log_base_measure_mut() = None);
    }

    fn forget(&mut self, shard: usize) {
        self.sparse = None;
        self.states[shard].forget();
    }

    fn bytes(&self, shard: usize) -> usize {
        self.states[shard].bytes()
    }

    fn save(&self, shard: usize) -> Result<Vec<u8>> {
        save_state(&self.states[shard])
    }

    fn load(&mut self, shard: usize, bytes: &[u8]) -> Result<()> {
        self.states[shard] = load_state(bytes)?;
        Ok(())
    }
}
