//! Executors run visits of batches and return summaries, and pass questions to shards. A shard stays with the worker
//! that holds its local state: this process, another process, or another machine behind the same trait.

use std::cell::RefCell;

use serde::{Deserialize, Serialize};

use crate::component::{Class, EditLog};
use crate::data::BatchSource;
use crate::error::{Error, Result};
use crate::global_step::Globals;
use crate::local_step::{Buffers, KnownRows, Outcome, Tap, Work};
use crate::model::Model;
use crate::moves::{Finder, Findings, Look, Move, Plan, Seen};
use crate::parallel::Cancel;
use crate::payload::Payload;
use crate::simd::Scalar;
use crate::suffstats::Summary;
use crate::tree_sum::TreeSum;
use crate::visits::{Additive, Asked, AskedUnits, LocalOptions, Question, Shard, UnitKind, UnitsQuestion, Visitor};

/// Result of visiting a shard, or the sum over the shards of a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Visit {
    /// The summary of its units.
    pub summary: Summary,
    /// Computational cost.
    pub work: Work,
    /// Findings for moves.
    pub findings: Findings,
    /// For each component the sum of responsibilities of rows of known class; empty if rows have no classes.
    pub known_rows: Vec<f64>,
}

impl Visit {
    /// Adds the visit of other shards under the same globals and plan.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for other components; as [`Findings::add`].
    pub fn add<F: Scalar>(&mut self, other: Self, plan: &Plan, moves: &[&dyn Move<F>]) -> Result<()> {
        self.summary.add_compact(&other.summary)?;
        self.work += other.work;
        add_known(&mut self.known_rows, &other.known_rows);
        self.findings.add(other.findings, plan, moves)
    }
}

/// Adds sums of responsibilities of rows of known class.
pub(crate) fn add_known(sum: &mut Vec<f64>, others: &[f64]) {
    sum.resize(others.len(), 0.0);
    sum.iter_mut().zip(others).for_each(|(sum, other)| *sum += other);
}

/// Runs the local step of one batch wherever its shards are stored.
pub trait Executor {
    /// Number of batches.
    fn n_batches(&self) -> usize;

    /// Number of shards of all batches.
    fn n_shards(&self) -> usize {
        self.n_batches()
    }

    /// Visits all shards of a batch: replays the edits that their local states have not yet seen, runs their local
    /// steps under `globals`, and searches for what `plan` requests.
    ///
    /// # Errors
    /// [`Error::Source`] if a shard cannot be loaded; [`Error::Cancelled`]; [`Error::Numerical`].
    fn visit(&mut self, batch: usize, globals: &Globals, edits: &EditLog, plan: &Plan) -> Result<Visit>;

    /// Returns the answer of a shard to a question; [`ask`] asks all shards.
    ///
    /// # Errors
    /// As [`Executor::visit`]; [`Error::NotSupported`] for a question that cannot be answered here.
    fn answer(&mut self, _shard: usize, asked: &Asked) -> Result<Payload> {
        Err(asked.refusal())
    }

    /// Serialises the local states of all shards.
    ///
    /// # Errors
    /// [`Error::Format`]; [`Error::Source`] if a worker does not respond.
    fn save_states(&mut self) -> Result<Vec<Vec<u8>>>;

    /// Replaces the local states of all shards by saved ones.
    ///
    /// # Errors
    /// [`Error::Format`] for bytes that are not states of this number of shards; [`Error::Source`].
    fn load_states(&mut self, states: &[Vec<u8>]) -> Result<()>;
}

/// Asks every shard and returns the sum of the answers. `globals` are the components under which the question is asked,
/// if it depends on any.
///
/// # Errors
/// As [`Executor::answer`]; [`Error::Format`] for an answer to another question.
pub fn ask<Q: Question>(executor: &mut dyn Executor, question: Q, globals: Option<&Globals>) -> Result<Q::Answer> {
    let asked = Asked::new(question, globals);
    let mut sum = Q::Answer::default();
    for shard in 0..executor.n_shards() {
        sum.add(executor.answer(shard, &asked)?.into_value()?);
    }
    Ok(sum)
}

fn no_shards(batch: usize) -> Error {
    Error::Source { batch: Some(batch), message: "it has no shards".to_owned() }
}

/// Computes the answer to a question that units of any kind can answer.
type Respond<F> = fn(&Asked, &AskedUnits<'_, F>) -> Result<Payload>;

/// Runs every batch in this process, on the thread pool from which it is called.
pub struct InProcess<'a, F: Scalar> {
    /// The model with the base measure of the last visit.
    model: Model<F>,
    source: &'a dyn BatchSource<F>,
    n_batches: usize,
    n_shards: usize,
    /// The class of each row of the data, if rows have classes.
    classes: Option<&'a [Class]>,
    options: LocalOptions,
    cancel: Cancel,
    visitor: Box<dyn Visitor<F>>,
    finder: Finder<'a, F>,
    questions: Vec<(&'static str, Respond<F>)>,
    buffers: RefCell<Buffers<F>>,
}

impl<'a, F: Scalar> InProcess<'a, F> {
    /// Creates an executor that has not visited any batch, for units of this kind.
    ///
    /// # Errors
    /// [`Error::NotSupported`] for a source with an unknown number of batches, or one that cannot be read again.
    pub fn new(
        kind: &dyn UnitKind<F>,
        model: &Model<F>,
        source: &'a dyn BatchSource<F>,
        options: LocalOptions,
        cancel: Cancel,
    ) -> Result<Self> {
        let sizes = source.n_batches().zip(source.n_shards()).filter(|_| source.can_replay());
        let (n_batches, n_shards) = sizes.ok_or_else(|| {
            Error::not_supported(
                "data",
                "a memoized fit of a source that can be read only once",
                "every pass visits all batches",
                "a source whose batches can be loaded again",
            )
        })?;
        let (model, visitor) = (model.clone(), kind.visitor(n_shards));
        let (finder, questions) = (Finder::default(), Vec::new());
        let (classes, buffers) = (None, RefCell::default());
        Ok(Self { model, source, n_batches, n_shards, classes, options, cancel, visitor, finder, questions, buffers })
    }

    /// Sets the class of each row of the data. Rows of a class then belong to components of that class only.
    #[must_use]
    pub fn with_classes(self, classes: Option<&'a [Class]>) -> Self {
        Self { classes, ..self }
    }

    /// Adds moves outside the registry, whose findings visits then collect.
    #[must_use]
    pub fn with_moves(self, moves: &'a [&'a dyn Move<F>]) -> Self {
        Self { finder: Finder::with_moves(moves), ..self }
    }

    /// Adds a question that units of any kind can answer.
    #[must_use]
    pub fn answering<Q: UnitsQuestion<F>>(mut self) -> Self {
        let respond: Respond<F> = |asked, units| {
            let question = asked.get::<Q>()?.ok_or_else(|| asked.refusal())?;
            question.answer(units).map(Payload::new)
        };
        self.questions.push((Q::NAME, respond));
        self
    }

    /// Drops the caches of a shard. Results do not change.
    pub fn forget(&mut self, shard: usize) {
        self.visitor.forget(shard);
    }

    /// Memory held for a shard, in bytes.
    pub fn bytes(&self, shard: usize) -> usize {
        self.visitor.bytes(shard)
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
        let mut add = |sum: &mut Outcome, outcome: Outcome| sum.add(&outcome);
        let mut sum = TreeSum::default();
        for shard in self.source.shards(batch) {
            sum.push(self.visit_shard_with_taps(shard, globals, edits, taps)?, &mut add)?;
        }
        sum.finish(&mut add)?.ok_or_else(|| no_shards(batch))
    }

    fn visit_shard_with_taps(
        &mut self,
        shard: usize,
        globals: &Globals,
        edits: &EditLog,
        taps: &mut [&mut dyn Tap],
    ) -> Result<Outcome> {
        self.adopt(globals)?;
        let shard = Shard::new(shard, &self.model, self.source, self.options, &self.cancel, &self.buffers)
            .with_classes(self.classes, edits);
        self.visitor.visit(&shard, globals, edits, taps)
    }

    /// Visits one shard of a batch, as [`Executor::visit`] visits all of them.
    ///
    /// # Errors
    /// As [`Executor::visit`].
    pub fn visit_shard(
        &mut self,
        batch: usize,
        shard: usize,
        globals: &Globals,
        edits: &EditLog,
        plan: &Plan,
    ) -> Result<Visit> {
        let mut known = KnownRows::new(self.classes, globals.n_components());
        if plan.is_empty() {
            let mut taps: Vec<&mut dyn Tap> = Vec::new();
            if self.classes.is_some() {
                taps.push(&mut known);
            }
            let Outcome { summary, work, .. } = self.visit_shard_with_taps(shard, globals, edits, &mut taps)?;
            return Ok(Visit { summary, work, findings: Findings::default(), known_rows: known.sums });
        }
        self.adopt(globals)?;
        let shard = Shard::new(shard, &self.model, self.source, self.options, &self.cancel, &self.buffers)
            .with_classes(self.classes, edits);
        let mut seen = Seen::default();
        let Outcome { mut summary, work, .. } =
            self.visitor.visit(&shard, globals, edits, &mut [&mut seen, &mut known])?;
        let (finder, mut findings) = (&mut self.finder, Findings::default());
        self.visitor.show(&shard, plan.collect.as_ref().map(|collect| collect.seed), &mut |units| {
            let look = Look {
                model: shard.model,
                plan,
                batch,
                shard: shard.index,
                units,
                seen: &seen,
                ids: &globals.ids,
                classes: self.classes,
                sparsity: shard.options.sparsity,
                cancel: shard.cancel,
            };
            findings = finder.find(&look, &mut summary)?;
            Ok(())
        })?;
        Ok(Visit { summary, work, findings, known_rows: known.sums })
    }

    /// Adopts the base measure of a visit.
    fn adopt(&mut self, globals: &Globals) -> Result<()> {
        if globals.base != self.model.base.parameters {
            self.model = self.model.with_base(globals.base.clone())?;
            self.visitor.rebase();
        }
        Ok(())
    }
}

impl<F: Scalar> Executor for InProcess<'_, F> {
    fn n_batches(&self) -> usize {
        self.n_batches
    }

    fn n_shards(&self) -> usize {
        self.n_shards
    }

    fn visit(&mut self, batch: usize, globals: &Globals, edits: &EditLog, plan: &Plan) -> Result<Visit> {
        let mut sum = TreeSum::default();
        for shard in self.source.shards(batch) {
            let visit = self.visit_shard(batch, shard, globals, edits, plan)?;
            let moves = self.finder.moves();
            sum.push(visit, &mut |sum: &mut Visit, visit| sum.add(visit, plan, &moves))?;
        }
        let moves = self.finder.moves();
        sum.finish(&mut |sum: &mut Visit, visit| sum.add(visit, plan, &moves))?.ok_or_else(|| no_shards(batch))
    }

    /// Asks the visitor, which knows the kind of units, first. Then tries the answers that units of any kind can give.
    fn answer(&mut self, shard: usize, asked: &Asked) -> Result<Payload> {
        if let Some(globals) = asked.globals() {
            self.adopt(globals)?;
        }
        let shard = Shard::new(shard, &self.model, self.source, self.options, &self.cancel, &self.buffers);
        if let Some(answer) = self.visitor.answer(&shard, asked)? {
            return Ok(answer);
        }
        let known = self.questions.iter().find(|(name, _)| *name == asked.name());
        let (_, respond) = known.ok_or_else(|| asked.refusal())?;
        let mut answer = None;
        self.visitor.show(&shard, None, &mut |units| {
            let (globals, model, cancel) = (asked.globals(), shard.model, shard.cancel);
            answer = Some(respond(asked, &AskedUnits { shard: shard.index, units, model, globals, cancel })?);
            Ok(())
        })?;
        answer.ok_or_else(|| asked.refusal())
    }

    fn save_states(&mut self) -> Result<Vec<Vec<u8>>> {
        (0..self.n_shards).map(|shard| self.visitor.save(shard)).collect()
    }

    fn load_states(&mut self, states: &[Vec<u8>]) -> Result<()> {
        if states.len() != self.n_shards {
            let message = format!("{} local states for {} shards", states.len(), self.n_shards);
            return Err(Error::Format { message });
        }
        states.iter().enumerate().try_for_each(|(shard, state)| self.visitor.load(shard, state))
    }
}
