//! Executors run visits of batches and return summaries. A batch stays with the worker that holds its local state: this
//! process, another process, or another machine behind the same trait.

mod trees;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::component::{ComponentId, EditLog};
use crate::data::{BatchSource, RowUnits};
use crate::error::{Error, Result};
use crate::global_step::Globals;
use crate::local_step::{
    Behind, Bounds, ByDocument, ByScore, DocumentOptions, DocumentWords, Frontier, Keep, LocalState, LocalStep, Memory,
    NodeUnits, OpeningCandidate, OpeningRule, Outcome, Tap, TopicTable, TreeOptions, Units, Work, chunk_rows,
};
use crate::model::Model;
use crate::moves::{Finder, Findings, Look, Move, Plan, Seen};
use crate::parallel::{Cancel, map};
use crate::responsibilities::Sparsity;
use crate::scoring::{Scorer, SparseScorer};
use crate::simd::Scalar;
use crate::suffstats::Summary;

/// Result of visiting a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Visit {
    /// The summary of the batch.
    pub summary: Summary,
    /// Computational cost.
    pub work: Work,
    /// Findings for moves.
    pub findings: Findings,
}

/// What is asked of the frontiers of trees between passes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum TreeRequest {
    /// Nodes that are worth opening under these globals.
    Judge {
        /// The components.
        globals: Box<Globals>,
        /// By what.
        rule: OpeningRule,
        /// The value that is worth it, exclusive.
        tolerance: f64,
        /// Seed of the choice of rows.
        seed: u64,
        /// Number of rows of a node to look at; smaller nodes are looked at whole.
        n_rows: usize,
        /// Whether only nodes are asked for that have not been judged since they came.
        fresh: bool,
    },
    /// Opens these nodes, ascending.
    Open(Vec<u32>),
    /// Opens everything: from now on units are rows.
    OpenAll,
}

/// What a request brings back.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tended {
    /// Nodes that are worth opening, where it was asked for them.
    pub candidates: Vec<OpeningCandidate>,
    /// How many nodes the frontier has, where it was asked for them.
    pub n_units: usize,
}

/// Runs the local step of one batch wherever the batch is stored.
pub trait Executor {
    /// Number of batches.
    fn n_batches(&self) -> usize;

    /// Replays the edits that the batch's local state has not yet seen, runs its local step under `globals`, and
    /// searches for what `plan` requests.
    ///
    /// # Errors
    /// [`Error::Source`] if the batch cannot be loaded; [`Error::Cancelled`]; [`Error::Numerical`].
    fn visit(&mut self, batch: usize, globals: &Globals, edits: &EditLog, plan: &Plan) -> Result<Visit>;

    /// Does what is asked of the tree of a batch, and says what there is.
    ///
    /// # Errors
    /// As [`Executor::visit`]; [`Error::NotSupported`] for an executor without trees.
    fn tend(&mut self, _batch: usize, _request: &TreeRequest) -> Result<Tended> {
        Err(Error::not_supported("units", "a tree", "this executor visits rows", "units=None"))
    }

    /// Serialises the local states of all batches.
    ///
    /// # Errors
    /// [`Error::Format`]; [`Error::Source`] if a worker does not respond.
    fn save_states(&mut self) -> Result<Vec<Vec<u8>>>;

    /// Replaces the local states of all batches by saved ones.
    ///
    /// # Errors
    /// [`Error::Format`] for bytes that are not states of this number of batches; [`Error::Source`].
    fn load_states(&mut self, states: &[Vec<u8>]) -> Result<()>;
}

/// Options of local steps.
#[derive(Debug, Clone, Copy)]
pub struct LocalOptions {
    /// Number of components kept per unit.
    pub sparsity: Sparsity,
    /// Drop components whose log weight is more than this many nats below the row's best.
    pub margin: Option<f64>,
    /// Memory limit in bytes for distance bounds; with 0 every score is computed in full.
    pub bounds_memory: usize,
    /// What a visit keeps.
    pub keep: Keep,
    /// How documents are visited, in a topic model.
    pub documents: DocumentOptions,
    /// How trees are made, if units are their nodes.
    pub tree: Option<TreeOptions>,
}

/// Runs every batch in this process, on the thread pool from which it is called.
pub struct InProcess<'a, F: Scalar> {
    /// The model with the base measure of the last visit.
    model: Model<F>,
    source: &'a dyn BatchSource<F>,
    options: LocalOptions,
    cancel: Cancel,
    states: Vec<LocalState>,
    /// The components of the last visit, if bounds are kept.
    last: Option<(Vec<ComponentId>, Box<dyn Scorer<F>>)>,
    /// The packed components of the last visit of sparse rows, and their version.
    sparse: Option<(u64, SparseScorer<F>)>,
    /// The topics of the last visit.
    topics: TopicTable,
    finder: Finder<'a, F>,
}

/// Minimum number of rows per column in a batch with distance bounds. With fewer rows, measuring how components have
/// moved would cost more than the bounds save.
const ROWS_PER_COLUMN: usize = 400;

/// Number of passes in which every document starts afresh. Otherwise the results of the first, poor topics would
/// persist in short documents.
const COLD_PASSES: usize = 2;

impl<'a, F: Scalar> InProcess<'a, F> {
    /// Creates an executor that has not visited any batch.
    ///
    /// # Errors
    /// [`Error::NotSupported`] for a source with an unknown number of batches, or one that cannot be read again.
    pub fn new(
        model: &Model<F>,
        source: &'a dyn BatchSource<F>,
        options: LocalOptions,
        cancel: Cancel,
    ) -> Result<Self> {
        let n_batches = source.n_batches().filter(|_| source.can_replay()).ok_or_else(|| {
            Error::not_supported(
                "data",
                "a memoized fit of a source that can be read only once",
                "every pass visits all batches",
                "a source whose batches can be loaded again",
            )
        })?;
        Ok(Self {
            model: model.clone(),
            source,
            options,
            cancel,
            states: vec![LocalState::default(); n_batches],
            last: None,
            sparse: None,
            topics: TopicTable::default(),
            finder: Finder::default(),
        })
    }

    /// Adds moves outside the registry, whose findings visits then collect.
    #[must_use]
    pub fn with_moves(self, moves: &'a [&'a dyn Move<F>]) -> Self {
        Self { finder: Finder::with_moves(moves), ..self }
    }

    /// The local state of a batch.
    pub fn state(&self, batch: usize) -> &LocalState {
        &self.states[batch]
    }

    /// Drops the cache of a batch and the components packed in the last visit. Results do not change.
    pub fn forget(&mut self, batch: usize) {
        self.sparse = None;
        self.states[batch].forget();
    }

    /// Replaces the local state of a batch, as after loading a checkpoint.
    pub fn set_state(&mut self, batch: usize, state: LocalState) {
        self.states[batch] = state;
        // Its bounds may refer to other components than those of the last visit here.
        *self.states[batch].bounds_mut() = None;
    }

    /// Whether a visit keeps bounds. Depends only on sizes and arguments.
    fn keeps_bounds(&self, units: &RowUnits<'_, F>, scorer: &dyn Scorer<F>, width: usize) -> bool {
        let (n, d, k) = (units.len(), units.dimension(), scorer.n_components());
        // Every batch has its own bounds, but one batch is visited at a time. Two states of the components are kept to
        // compute their drift.
        let at_rest = self.states.len() * Bounds::bytes_for(n, 0, k);
        let in_a_visit = Bounds::bytes_for(n, chunk_rows(width, d), k) - Bounds::bytes_for(n, 0, k);
        let components = 2 * k * d * d * size_of::<f64>();
        self.options.margin.is_some()
            && scorer.uses_bounds()
            && !self.model.process.has_tail()
            && width < k
            && n >= ROWS_PER_COLUMN * d
            && at_rest + in_a_visit + components <= self.options.bounds_memory
    }

    /// Updates the bounds of all batches by the movement of the components since the last visit.
    fn drift(&mut self, ids: &[ComponentId], scorer: &dyn Scorer<F>) {
        let Some((earlier_ids, earlier)) = &self.last else { return };
        let moved: Vec<_> = map(ids.len(), |component| {
            let was = earlier_ids.iter().position(|id| *id == ids[component])?;
            Some((ids[component], scorer.drift_since(earlier.as_ref(), was, component)))
        });
        let moved = moved.into_iter().flatten().collect();
        self.states.iter_mut().filter_map(|state| state.bounds_mut().as_mut()).for_each(|bounds| bounds.drift(&moved));
    }

    /// As [`Executor::visit`], with taps that observe the responsibilities.
    ///
    /// # Errors
    /// As [`Executor::visit`], and any error of a tap.
    pub fn visit_with_taps(
        &mut self,
        batch: usize,
        globals: &Globals,
        edits: &EditLog,
        taps: &mut [&mut dyn Tap],
    ) -> Result<Outcome> {
        if self.has_nodes(batch) {
            let tree = self.tree(batch)?;
            let outcome = self.visit_nodes(batch, &tree, globals, edits, taps);
            self.states[batch].put_tree(tree);
            return outcome;
        }
        let units = self.source.load(batch)?;
        self.local_step(batch, &units, globals, edits, taps)
    }

    /// Adopts the base measure of a visit.
    fn adopt(&mut self, globals: &Globals) -> Result<()> {
        if globals.base != self.model.base.parameters {
            self.model = self.model.with_base(globals.base.clone())?;
            self.sparse = None;
            self.states.iter_mut().for_each(|state| *state.log_base_measure_mut() = None);
        }
        Ok(())
    }

    fn local_step(
        &mut self,
        batch: usize,
        units: &RowUnits<'_, F>,
        globals: &Globals,
        edits: &EditLog,
        taps: &mut [&mut dyn Tap],
    ) -> Result<Outcome> {
        self.adopt(globals)?;
        if self.model.documents.is_some() {
            return self.visit_documents(batch, units, globals, edits, taps);
        }
        let (version, packed) = (globals.version, self.pack(units, globals)?);
        let scorer = packed.scorer();
        let width = self.options.sparsity.clamp(scorer.n_components());
        self.states[batch].replay(edits);
        self.drift(&globals.ids, scorer);
        let bounds = self.states[batch].bounds_mut().take();
        *self.states[batch].bounds_mut() = self.keeps_bounds(units, scorer, width).then(|| bounds.unwrap_or_default());
        let assign = self.assign(scorer, globals, width);
        let step = LocalStep {
            likelihood: self.model.likelihood.as_ref(),
            ids: &globals.ids,
            assign: &assign,
            keep: self.options.keep,
            cancel: &self.cancel,
        };
        let outcome = step.run_compact(units, Some(&mut self.states[batch]), taps);
        match packed {
            VisitScorer::Sparse(scorer) => self.sparse = Some((version, scorer)),
            VisitScorer::Any(scorer) => {
                let any_bounds = self.states.iter().any(|state| state.bounds().is_some());
                self.last = any_bounds.then(|| (globals.ids.clone(), scorer));
            }
        }
        outcome
    }

    /// The local step of the words of documents (mathematics 11.3).
    fn visit_documents(
        &mut self,
        batch: usize,
        documents: &RowUnits<'_, F>,
        globals: &Globals,
        edits: &EditLog,
        taps: &mut [&mut dyn Tap],
    ) -> Result<Outcome> {
        let (words, options) = (DocumentWords::of(documents), self.options.documents);
        let mut used = vec![false; documents.dimension()];
        words.words().iter().for_each(|&word| used[word as usize] = true);
        globals.fill_topics(&self.model, &used, &mut self.topics)?;
        self.states[batch].replay(edits);
        let pass = globals.version as usize / self.states.len();
        let starts = match self.states[batch].memory() {
            Memory::Documents(counts) if options.warm && pass >= COLD_PASSES => {
                let positions = counts.positions(&globals.ids, words.n_documents());
                let unfit = || Error::Format { message: "the counts of its documents".into() };
                Some(positions.ok_or_else(unfit)?)
            }
            _ => None,
        };
        let width = self.options.sparsity.of_words(globals.n_components()).clamp(globals.n_components());
        let prior = globals.allocation.of_documents.as_deref().unwrap_or_default();
        let assign = ByDocument::new(&words, &self.topics, prior, width, options, starts);
        let likelihood = self.model.likelihood.as_ref();
        let (ids, keep, cancel) = (&globals.ids, self.options.keep, &self.cancel);
        let step = LocalStep { likelihood, ids, assign: &assign, keep, cancel };
        let mut outcome = step.run_compact(&words, None, taps)?;
        let found = assign.finish(ids);
        outcome.summary.documents = Some(found.terms);
        outcome.work.restarts = found.restarts;
        self.states[batch].remember_documents(found.memory);
        Ok(outcome)
    }

    /// Finds what the plan of a visit requests.
    fn find(
        &mut self,
        batch: usize,
        globals: &Globals,
        plan: &Plan,
        units: &dyn Units<F>,
        seen: &Seen,
        outcome: Outcome,
    ) -> Result<Visit> {
        let Outcome { mut summary, work, .. } = outcome;
        let look = Look {
            model: &self.model,
            plan,
            batch,
            units,
            seen,
            ids: &globals.ids,
            sparsity: self.options.sparsity,
            cancel: &self.cancel,
        };
        let findings = self.finder.find(&look, &mut summary)?;
        Ok(Visit { summary, work, findings })
    }

    /// How units are assigned to packed components.
    fn assign<'b>(&self, scorer: &'b dyn Scorer<F>, globals: &Globals, width: usize) -> ByScore<'b, F> {
        ByScore {
            scorer,
            tail: globals.allocation.tail_log_weight,
            width,
            margin: self.options.margin,
            abandon: self.options.bounds_memory > 0,
            // The expected log likelihood of a tail is derived from the log normalizers.
            row_terms: globals.allocation.tail_log_weight.is_some(),
        }
    }

    /// Packs the components for these units, updating the pack of the last visit if possible.
    fn pack(&mut self, units: &RowUnits<'_, F>, globals: &Globals) -> Result<VisitScorer<F>> {
        if units.is_sparse() {
            let since = globals.changes.as_ref().map(|changes| changes.since);
            let last = self.sparse.take().filter(|(version, _)| Some(*version) == since).map(|(_, scorer)| scorer);
            if let Some(scorer) = globals.sparse_scorer(&self.model, last)? {
                return Ok(VisitScorer::Sparse(scorer));
            }
        }
        globals.scorer(&self.model).map(VisitScorer::Any)
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

impl<F: Scalar> Executor for InProcess<'_, F> {
    fn n_batches(&self) -> usize {
        self.states.len()
    }

    fn visit(&mut self, batch: usize, globals: &Globals, edits: &EditLog, plan: &Plan) -> Result<Visit> {
        if plan.is_empty() {
            let Outcome { summary, work, .. } = self.visit_with_taps(batch, globals, edits, &mut [])?;
            return Ok(Visit { summary, work, findings: Findings::default() });
        }
        let source = self.source;
        let mut seen = Seen::default();
        if self.has_nodes(batch) {
            let tree = self.tree(batch)?;
            let mut visit = || {
                let outcome = self.visit_nodes(batch, &tree, globals, edits, &mut [&mut seen])?;
                let rows = plan.collect.is_some().then(|| source.load(batch)).transpose()?;
                let mut units = NodeUnits::new(self.model.likelihood.as_ref(), Cow::Borrowed(tree.nodes()));
                if let (Some(rows), Some(collect)) = (&rows, &plan.collect) {
                    units = units.with_rows(Behind { tree: &tree, rows, seed: collect.seed });
                }
                self.find(batch, globals, plan, &units, &seen, outcome)
            };
            let visit = visit();
            self.states[batch].put_tree(tree);
            return visit;
        }
        let units = source.load(batch)?;
        let outcome = self.local_step(batch, &units, globals, edits, &mut [&mut seen])?;
        self.find(batch, globals, plan, &units, &seen, outcome)
    }

    fn tend(&mut self, batch: usize, request: &TreeRequest) -> Result<Tended> {
        match request {
            TreeRequest::OpenAll => self.states[batch].open(Frontier::Rows, None),
            _ if !self.has_nodes(batch) => {}
            TreeRequest::Judge { globals, rule, tolerance, seed, n_rows, fresh } => {
                let mut tree = self.tree(batch)?;
                let judged = self.judge_nodes(batch, &mut tree, globals, (*rule, *tolerance), (*seed, *n_rows), *fresh);
                let n_units = tree.starts().len();
                self.states[batch].put_tree(tree);
                return judged.map(|candidates| Tended { candidates, n_units });
            }
            TreeRequest::Open(list) => {
                let mut tree = self.tree(batch)?;
                let opened = self.source.load(batch).map(|rows| {
                    let list: Vec<usize> = list.iter().map(|&node| node as usize).collect();
                    tree.open(self.model.likelihood.as_ref(), &rows, &list);
                });
                let frontier = Frontier::Nodes(tree.starts().to_vec());
                self.states[batch].open(frontier, Some(tree));
                opened?;
            }
        }
        Ok(Tended::default())
    }

    fn save_states(&mut self) -> Result<Vec<Vec<u8>>> {
        self.states.iter().map(LocalState::save).collect()
    }

    fn load_states(&mut self, states: &[Vec<u8>]) -> Result<()> {
        if states.len() != self.states.len() {
            let message = format!("{} local states for {} batches", states.len(), self.states.len());
            return Err(Error::Format { message });
        }
        self.states = states.iter().map(|state| LocalState::load(state)).collect::<Result<_>>()?;
        Ok(())
    }
}
