//! The one loop over passes (Hughes & Sudderth 2013, section 3; spec 4.3). A full pass is a memoized one with one batch.

use std::time::Instant;

use crate::component::EditLog;
use crate::elbo;
use crate::error::{Error, Result};
use crate::executor::Executor;
use crate::fit::history::{Observer, Record, StopReason};
use crate::global_step::Globals;
use crate::linalg::Scalar;
use crate::memo::Memo;
use crate::model::Model;
use crate::parallel::Cancel;
use crate::rng::{Purpose, permutation, stream};
use crate::suffstats::Summary;

/// What a run needs besides the batches.
pub struct Engine<'a, F: Scalar> {
    /// The model.
    pub model: &'a Model<F>,
    /// Passes at most.
    pub max_passes: usize,
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
    /// Passes over the batches until something stops it; whatever that is, the last complete state is returned.
    ///
    /// # Errors
    /// [`Error::Numerical`]; [`Error::Source`] where no pass was completed.
    pub fn run(
        &self,
        executor: &mut dyn Executor,
        mut memo: Memo,
        edits: &EditLog,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Run> {
        let mut history = Vec::new();
        // The start may give a row more components than the local step will, so its bound is nothing to compare with.
        let mut bound = f64::NAN;
        let (mut stop_reason, mut error) = (StopReason::MaxPasses, None);
        // only-one: loop over passes
        for pass in 0..self.max_passes {
            match self.sweep(pass, executor, &mut memo, edits, observer, cancel) {
                Ok(()) => {}
                Err(Error::Cancelled) => {
                    stop_reason = StopReason::Interrupted;
                    break;
                }
                Err(failure @ Error::Source { .. }) if !history.is_empty() => {
                    (stop_reason, error) = (StopReason::SourceError, Some(failure));
                    break;
                }
                Err(failure) => return Err(failure),
            }
            let before = std::mem::replace(&mut bound, self.bound(&memo)?);
            // float32 scores may cost the last digits; NaN stands for a pass that has nothing to compare with.
            let fell = F::NAME == "float64" && bound < before - 1e-8 * (1.0 + before.abs());
            debug_assert!(!fell, "the bound fell from {before} to {bound}");
            let record = self.record(pass, bound, &memo);
            history.push(record);
            if observer.on_pass(&record) {
                // An interrupt may have been seen while the record was shown.
                let interrupted = cancel.check().is_err();
                stop_reason = if interrupted { StopReason::Interrupted } else { StopReason::Callback };
                break;
            }
            if self.tol > 0.0 && (bound - before) / memo.total().mass.max(1.0) < self.tol {
                stop_reason = StopReason::Converged;
                break;
            }
        }
        memo.resum()?;
        let elbo = self.bound(&memo)?;
        Ok(Run { summary: memo.total().clone(), elbo, history, stop_reason, error })
    }

    /// Visits every batch once, in an order of this pass's own; each visit sees the globals of all visits before it.
    fn sweep(
        &self,
        pass: usize,
        executor: &mut dyn Executor,
        memo: &mut Memo,
        edits: &EditLog,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<()> {
        let n_batches = executor.n_batches();
        let order = permutation(n_batches as u32, &mut stream(self.seed, Purpose::Visits, pass as u64));
        for (done, batch) in order.into_iter().enumerate() {
            cancel.check()?;
            let version = (pass * n_batches + done) as u64;
            let globals = Globals::new(self.model, memo.total(), version);
            memo.replace(batch as usize, executor.visit(batch as usize, &globals, edits)?)?;
            observer.on_batch(pass, done + 1, n_batches);
        }
        memo.resum()
    }

    fn bound(&self, memo: &Memo) -> Result<f64> {
        if memo.is_complete() { Ok(elbo::collapsed(self.model, memo.total())?.total()) } else { Ok(f64::NAN) }
    }

    fn record(&self, index: usize, elbo: f64, memo: &Memo) -> Record {
        Record {
            index,
            seconds: self.started.elapsed().as_secs_f64(),
            elbo,
            n_components: memo.total().n_components(),
            proposed: 0,
            accepted: 0,
            evaluated_share: 1.0,
        }
    }
}
