//! The one loop over passes (Hughes & Sudderth 2013, section 3; spec 4.3). A full pass is a memoized one with one batch.

use std::time::Instant;

use crate::elbo;
use crate::error::{Error, Result};
use crate::executor::Executor;
use crate::fit::history::{Observer, Record, StopReason};
use crate::fit::position::{Identity, Position};
use crate::global_step::Globals;
use crate::local_step::Work;
use crate::memo::Memo;
use crate::model::Model;
use crate::parallel::Cancel;
use crate::rng::{Purpose, permutation, stream};
use crate::simd::Scalar;
use crate::suffstats::Summary;

/// What a run needs besides the batches.
pub struct Engine<'a, F: Scalar> {
    /// The model.
    pub model: &'a Model<F>,
    /// What a checkpoint of this run says of it.
    pub identity: &'a Identity,
    /// Passes at most.
    pub max_passes: usize,
    /// The margin of the local steps, by which the bound may fall: at most n K e^-margin.
    pub margin: Option<f64>,
    /// Least gain of a pass, nats per unit of mass; 0 never stops early.
    pub tol: f64,
    /// The seed of the visiting orders.
    pub seed: u64,
    /// When the fit began.
    pub started: Instant,
}

/// How a run ended.
#[derive(Debug, Clone)]
pub struct Run {
    /// The summary that produced the components.
    pub summary: Summary,
    /// Its bound, nats; NaN where it does not cover all data.
    pub elbo: f64,
    /// One record a pass.
    pub history: Vec<Record>,
    /// Why it ended.
    pub stop_reason: StopReason,
    /// What the source said, for [`StopReason::SourceError`].
    pub error: Option<Error>,
}

impl<F: Scalar> Engine<'_, F> {
    /// Passes over the batches from where `position` stands until something stops it; whatever that is, the last
    /// complete state is returned.
    ///
    /// # Errors
    /// [`Error::Numerical`]; [`Error::Source`] where no pass was completed.
    pub fn run(
        &self,
        executor: &mut dyn Executor,
        mut position: Position,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Run> {
        let mut error = None;
        self.offer_checkpoint(executor, &position, observer, false)?;
        // only-one: loop over passes
        let stop_reason = loop {
            // A run that goes on in the middle of a pass has not ended.
            if let Some(reason) = self.ended(&position).filter(|_| position.done == 0) {
                break reason;
            }
            match self.sweep(executor, &mut position, observer, cancel) {
                Ok(()) => {}
                Err(Error::Cancelled) => break StopReason::Interrupted,
                Err(failure @ Error::Source { .. }) if !position.history.is_empty() => {
                    error = Some(failure);
                    break StopReason::SourceError;
                }
                Err(failure) => return Err(failure),
            }
            let record = self.record(&position)?;
            position.history.push(record);
            (position.pass, position.done, position.work) = (position.pass + 1, 0, Work::default());
            if observer.on_pass(&record) {
                // An interrupt may have been seen while the record was shown.
                break if cancel.check().is_err() { StopReason::Interrupted } else { StopReason::Callback };
            }
            self.offer_checkpoint(executor, &position, observer, false)?;
        };
        self.offer_checkpoint(executor, &position, observer, true)?;
        position.memo.resum()?;
        let elbo = self.bound(&position.memo)?;
        Ok(Run { summary: position.memo.total().clone(), elbo, history: position.history, stop_reason, error })
    }

    /// Why no further pass is made, if none is.
    fn ended(&self, position: &Position) -> Option<StopReason> {
        // The start may give a row more components than the local step will, so its bound is nothing to compare the
        // first one with. NaN stands for a pass that has nothing to compare with.
        if let [.., before, last] = position.history.as_slice() {
            let gain = (last.elbo - before.elbo) / position.memo.total().mass.max(1.0);
            if self.tol > 0.0 && gain < self.tol {
                return Some(StopReason::Converged);
            }
        }
        (position.pass >= self.max_passes).then_some(StopReason::MaxPasses)
    }

    /// Visits the batches that are left of the pass, in an order of this pass's own; each visit sees the globals of all
    /// visits before it.
    fn sweep(
        &self,
        executor: &mut dyn Executor,
        position: &mut Position,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<()> {
        let n_batches = executor.n_batches();
        let pass = position.pass;
        let order = permutation(n_batches as u32, &mut stream(self.seed, Purpose::Visits, pass as u64));
        for &batch in &order[position.done..] {
            cancel.check()?;
            let version = (pass * n_batches + position.done) as u64;
            let globals = Globals::new(self.model, position.memo.total(), version);
            let visit = executor.visit(batch as usize, &globals, &position.edits)?;
            position.memo.replace(batch as usize, visit.summary)?;
            position.work += visit.work;
            position.done += 1;
            observer.on_batch(pass, position.done, n_batches);
            if position.done < n_batches {
                self.offer_checkpoint(executor, position, observer, false)?;
            }
        }
        position.memo.resum()
    }

    fn offer_checkpoint(
        &self,
        executor: &mut dyn Executor,
        position: &Position,
        observer: &mut dyn Observer,
        last: bool,
    ) -> Result<()> {
        if observer.wants_checkpoint(last) {
            let seconds = position.seconds + self.started.elapsed().as_secs_f64();
            observer.on_checkpoint(self.identity.write(position, seconds, executor)?);
        }
        Ok(())
    }

    fn bound(&self, memo: &Memo) -> Result<f64> {
        if memo.is_complete() { Ok(elbo::collapsed(self.model, memo.total())?.total()) } else { Ok(f64::NAN) }
    }

    fn record(&self, position: &Position) -> Result<Record> {
        let (elbo, before) = (self.bound(&position.memo)?, position.history.last().map_or(f64::NAN, |last| last.elbo));
        // float32 scores may cost the last digits.
        let total = position.memo.total();
        let dropped = self.margin.map_or(0.0, |margin| total.mass * total.n_components() as f64 * (-margin).exp());
        let fell = F::NAME == "float64" && elbo < before - dropped - 1e-8 * (1.0 + before.abs());
        debug_assert!(!fell, "the bound fell from {before} to {elbo}");
        Ok(Record {
            index: position.pass,
            seconds: position.seconds + self.started.elapsed().as_secs_f64(),
            elbo,
            n_components: position.memo.total().n_components(),
            proposed: 0,
            accepted: 0,
            evaluated_share: position.work.evaluated as f64 / position.work.pairs as f64,
        })
    }
}
