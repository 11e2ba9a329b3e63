//! All shards in this process.

use crate::component::{Class, EditLog};
use crate::data::BatchSource;
use crate::error::{Error, Result};
use crate::executor::{Executor, ShardVisits, Visit, no_shards};
use crate::global_step::Globals;
use crate::local_step::{Outcome, Tap};
use crate::model::Model;
use crate::moves::{Move, Plan};
use crate::parallel::Cancel;
use crate::payload::Payload;
use crate::simd::Scalar;
use crate::tree_sum::TreeSum;
use crate::visits::{Asked, LocalOptions, UnitKind, UnitsQuestion};

/// Runs every batch in this process, on the thread pool from which it is called.
pub struct InProcess<'a, F: Scalar> {
    source: &'a dyn BatchSource<F>,
    n_batches: usize,
    visits: ShardVisits<'a, F>,
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
        Ok(Self { source, n_batches, visits: ShardVisits::new(kind, model, n_shards, options, cancel) })
    }

    /// Sets the class of each row of the data. Rows of a class then belong to components of that class only.
    #[must_use]
    pub fn with_classes(mut self, classes: Option<&'a [Class]>) -> Self {
        self.visits.set_classes(classes);
        self
    }

    /// Adds moves outside the registry, whose findings visits then collect.
    #[must_use]
    pub fn with_moves(mut self, moves: &'a [&'a dyn Move<F>]) -> Self {
        self.visits.set_moves(moves);
        self
    }

    /// Adds a question that units of any kind can answer.
    #[must_use]
    pub fn answering<Q: UnitsQuestion<F>>(mut self) -> Self {
        self.visits.add_question::<Q>();
        self
    }

    /// Drops the caches of a shard. Results do not change.
    pub fn forget(&mut self, shard: usize) {
        self.visits.visitor().forget(shard);
    }

    /// Memory held for a shard, in bytes.
    pub fn bytes(&self, shard: usize) -> usize {
        self.visits.bytes(shard)
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
            sum.push(self.visits.visit_with_taps(self.source, shard, globals, edits, taps)?, &mut add)?;
        }
        sum.finish(&mut add)?.ok_or_else(|| no_shards(batch))
    }
}

impl<F: Scalar> Executor for InProcess<'_, F> {
    fn n_batches(&self) -> usize {
        self.n_batches
    }

    fn n_shards(&self) -> usize {
        self.visits.n_shards()
    }

    fn visit(&mut self, batch: usize, globals: &Globals, edits: &EditLog, plan: &Plan) -> Result<Visit> {
        let mut sum = TreeSum::default();
        for shard in self.source.shards(batch) {
            let visit = self.visits.visit(self.source, (batch, shard), globals, edits, plan)?;
            let moves = self.visits.moves();
            sum.push(visit, &mut |sum: &mut Visit, visit| sum.add(visit, plan, &moves))?;
        }
        let moves = self.visits.moves();
        sum.finish(&mut |sum: &mut Visit, visit| sum.add(visit, plan, &moves))?.ok_or_else(|| no_shards(batch))
    }

    fn answer(&mut self, shard: usize, asked: &Asked) -> Result<Payload> {
        self.visits.answer(self.source, shard, asked)
    }

    fn save_states(&mut self) -> Result<Vec<Vec<u8>>> {
        (0..self.visits.n_shards()).map(|shard| self.visits.visitor().save(shard)).collect()
    }

    fn load_states(&mut self, states: &[Vec<u8>]) -> Result<()> {
        if states.len() != self.visits.n_shards() {
            let message = format!("{} local states for {} shards", states.len(), self.visits.n_shards());
            return Err(Error::Format { message });
        }
        states.iter().enumerate().try_for_each(|(shard, state)| self.visits.visitor().load(shard, state))
    }
}
