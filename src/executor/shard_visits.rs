//! Visits of single shards in this process, on behalf of a fit here or elsewhere.

use std::cell::RefCell;

use crate::component::{Class, EditLog};
use crate::data::BatchSource;
use crate::error::Result;
use crate::executor::Visit;
use crate::global_step::Globals;
use crate::local_step::{Buffers, KnownRows, Outcome, Tap};
use crate::model::Model;
use crate::moves::{Finder, Findings, KeyLimits, Look, Move, Plan, Seen};
use crate::parallel::Cancel;
use crate::payload::Payload;
use crate::simd::Scalar;
use crate::visits::{Asked, AskedUnits, LocalOptions, Shard, UnitKind, UnitsQuestion, Visitor};

/// Computes the answer to a question that units of any kind can answer.
type Respond<F> = fn(&Asked, &AskedUnits<'_, F>) -> Result<Payload>;

/// Visits shards, and holds their local states.
pub struct ShardVisits<'a, F: Scalar> {
    /// The model with the base measure of the last visit.
    model: Model<F>,
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

impl<'a, F: Scalar> ShardVisits<'a, F> {
    /// Has not visited any of the shards, whose units are of this kind.
    pub fn new(
        kind: &dyn UnitKind<F>,
        model: &Model<F>,
        n_shards: usize,
        options: LocalOptions,
        cancel: Cancel,
    ) -> Self {
        let (model, visitor) = (model.clone(), kind.visitor(n_shards));
        let (finder, questions) = (Finder::default(), Vec::new());
        let (classes, buffers) = (None, RefCell::default());
        Self { model, n_shards, classes, options, cancel, visitor, finder, questions, buffers }
    }

    pub(super) fn set_classes(&mut self, classes: Option<&'a [Class]>) {
        self.classes = classes;
    }

    pub(super) fn set_moves(&mut self, moves: &'a [&'a dyn Move<F>]) {
        self.finder = Finder::with_moves(moves);
    }

    pub(super) fn add_question<Q: UnitsQuestion<F>>(&mut self) {
        let respond: Respond<F> = |asked, units| {
            let question = asked.get::<Q>()?.ok_or_else(|| asked.refusal())?;
            question.answer(units).map(Payload::new)
        };
        self.questions.push((Q::NAME, respond));
    }

    /// Number of shards.
    pub fn n_shards(&self) -> usize {
        self.n_shards
    }

    /// All moves whose findings visits can collect.
    pub fn moves(&self) -> Vec<&dyn Move<F>> {
        self.finder.moves()
    }

    /// Sets what the next visit under the plan of this version need not copy, whatever was visited here before.
    pub fn limit_keys(&mut self, version: u64, limits: KeyLimits) {
        self.finder.limit_keys(version, limits);
    }

    /// The visitor.
    pub(super) fn visitor(&mut self) -> &mut dyn Visitor<F> {
        self.visitor.as_mut()
    }

    /// Memory held for a shard, in bytes.
    pub fn bytes(&self, shard: usize) -> usize {
        self.visitor.bytes(shard)
    }

    /// Adopts the base measure of a visit.
    fn adopt(&mut self, globals: &Globals) -> Result<()> {
        if globals.base != self.model.base.parameters {
            self.model = self.model.with_base(globals.base.clone())?;
            self.visitor.rebase();
        }
        Ok(())
    }

    /// Runs the local step of a shard, with taps that observe the responsibilities.
    ///
    /// # Errors
    /// As [`ShardVisits::visit`], and any error of a tap.
    pub fn visit_with_taps(
        &mut self,
        source: &dyn BatchSource<F>,
        shard: usize,
        globals: &Globals,
        edits: &EditLog,
        taps: &mut [&mut dyn Tap],
    ) -> Result<Outcome> {
        self.adopt(globals)?;
        let shard = Shard::new(shard, &self.model, source, self.options, &self.cancel, &self.buffers)
            .with_classes(self.classes, edits);
        self.visitor.visit(&shard, globals, edits, taps)
    }

    /// Visits a shard of a batch.
    ///
    /// # Errors
    /// [`crate::Error::Source`] if it cannot be loaded; [`crate::Error::Cancelled`]; [`crate::Error::Numerical`].
    pub fn visit(
        &mut self,
        source: &dyn BatchSource<F>,
        (batch, shard): (usize, usize),
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
            let Outcome { summary, work, .. } = self.visit_with_taps(source, shard, globals, edits, &mut taps)?;
            return Ok(Visit { summary, work, findings: Findings::default(), known_rows: known.sums });
        }
        self.adopt(globals)?;
        let shard = Shard::new(shard, &self.model, source, self.options, &self.cancel, &self.buffers)
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

    /// Returns the answer of a shard to a question. The visitor, which knows the kind of units, comes first, then the
    /// answers that units of any kind can give.
    ///
    /// # Errors
    /// As [`ShardVisits::visit`]; [`crate::Error::NotSupported`] for a question without an answer here.
    pub fn answer(&mut self, source: &dyn BatchSource<F>, shard: usize, asked: &Asked) -> Result<Payload> {
        if let Some(globals) = asked.globals() {
            self.adopt(globals)?;
        }
        let shard = Shard::new(shard, &self.model, source, self.options, &self.cancel, &self.buffers);
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
}
