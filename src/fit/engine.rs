//! The main loop over passes (Hughes & Sudderth 2013, section 3; mathematics 4.3). Full-batch inference is memoized
//! inference with one batch.

use std::time::Instant;

use crate::elbo;
use crate::error::{Error, Result};
use crate::events::{Event, Observer};
use crate::evidence;
use crate::executor::{Executor, add_known};
use crate::fit::classes;
use crate::fit::order::falling;
use crate::fit::position::Position;
use crate::fit::pulse::Pulse;
use crate::fit::run::Run;
use crate::fit::settings::Settings;
use crate::fit::stages::{BestState, NewStart, Stage};
use crate::fitted::{Record, StopReason};
use crate::global_step::Globals;
use crate::identity::Identity;
use crate::local_step::Work;
use crate::memo::Memo;
use crate::model::Model;
use crate::moves::{Plan, Report, Round};
use crate::parallel::Cancel;
use crate::rng::{Purpose, permutation, stream};
use crate::simd::Scalar;
use crate::suffstats::Summary;

/// The inputs of a run besides the batches.
pub struct Engine<'a, F: Scalar> {
    /// The model, with the current base measure.
    pub model: Model<F>,
    /// The identity of this run in a checkpoint.
    pub identity: &'a Identity,
    /// Settings of the run.
    pub settings: &'a Settings,
    /// The moves, if any.
    pub round: Option<Round<'a, F>>,
    /// What is asked of the data beside visits.
    pub data: &'a dyn DataAccess,
    /// Start time of the fit.
    pub started: Instant,
}

/// Under a loose base measure, passes end at this multiple of the tolerance.
const LOOSE_TOL: f64 = 100.0;
/// A gain of this many nats is nothing, however few units there are, unless the tolerance for [`FEW`] units is smaller.
const NOTHING: f64 = 1e-3;
const FEW: f64 = 1000.0;

/// What a run asks of its data beside visits.
pub trait DataAccess {
    /// Refuses data that have changed since the run was prepared. Asked only after a failure or a fall of the
    /// objective, because it reads all data.
    ///
    /// # Errors
    /// [`Error::Source`]; [`Error::Cancelled`].
    fn check(&self) -> Result<()>;

    /// Another start than that of the best state, if there is a promising one.
    ///
    /// # Errors
    /// [`Error::Cancelled`]; [`Error::Source`].
    fn other_start(&self, _best: &BestState) -> Result<Option<NewStart>> {
        Ok(None)
    }

    /// A better state than the best one, under its base measure, if rearrangements lead to one for `budget` pairs of
    /// units and components. They end when the pulse says so.
    ///
    /// # Errors
    /// [`Error::Cancelled`]; [`Error::Source`].
    fn rearranged(&self, _best: &BestState, _budget: usize, _pulse: &mut Pulse<'_>) -> Result<Option<NewStart>> {
        Ok(None)
    }
}

/// Checks by calling the function.
impl<T: Fn() -> Result<()>> DataAccess for T {
    fn check(&self) -> Result<()> {
        self()
    }
}

impl<F: Scalar> Engine<'_, F> {
    /// Runs passes over the batches from `position` until a stopping condition, and returns the last complete state.
    /// Every visit completes a state: if a pass is interrupted, its visits count, and the state is newer than the last
    /// record.
    ///
    /// # Errors
    /// [`Error::Numerical`]; [`Error::Source`] if no pass was completed.
    pub fn run(
        mut self,
        executor: &mut dyn Executor,
        mut position: Position,
        observer: &dyn Observer,
        cancel: &Cancel,
    ) -> Result<Run> {
        let mut error = None;
        if let Some(round) = &self.round {
            round.check(&position.moves, &position.memo.total().ids)?;
        }
        self.adopt_of(&position)?;
        if position.pass == 0 && position.done == 0 && self.settings.max_passes > 0 {
            self.reorder(&mut position)?;
        }
        self.offer_checkpoint(executor, &position, observer, false)?;
        // only-one: loop over passes
        let stop_reason = loop {
            let outcome = match self.reason_to_end(executor, &mut position, observer) {
                Ok(None) => self.sweep(executor, &mut position, observer, cancel).map(|()| None),
                reason => reason,
            };
            match outcome.map_err(|failure| self.cause(failure)) {
                Ok(None) => {}
                Ok(Some(reason)) => break reason,
                Err(Error::Cancelled) => break StopReason::Interrupted,
                Err(failure @ Error::Source { .. }) if !position.history.is_empty() => {
                    error = Some(failure);
                    break StopReason::SourceError;
                }
                Err(failure) => return position.rescued(failure),
            }
            let record = match self.finish_pass(&mut position, executor.n_batches()) {
                Ok(record) => record,
                Err(failure) => return position.rescued(failure),
            };
            position.history.push(record.clone());
            position.tree.wait();
            (position.pass, position.done, position.work) = (position.pass + 1, 0, Work::default());
            if observer.on_event(0, Event::Pass(record)) {
                // An interrupt may have arrived while the record was shown.
                break if cancel.check().is_err() { StopReason::Interrupted } else { StopReason::Callback };
            }
            self.offer_checkpoint(executor, &position, observer, false)?;
        };
        // A run that is continued starts from this state, not from the result of the closing pass.
        self.offer_checkpoint(executor, &position, observer, true)?;
        position.memo.deflate()?;
        position.memo.resum()?;
        if position.done > 0 {
            // The run ended within a pass, so the components have not been reordered yet.
            self.reorder(&mut position)?;
        }
        self.tell_time(&mut position);
        let last = position.objectives.last().copied().unwrap_or(f64::NAN);
        if let Some(best) = position.search.better_than(last).cloned() {
            return Ok(best.into_run(position.history, stop_reason, error));
        }
        let ended = matches!(stop_reason, StopReason::MaxPasses | StopReason::Callback);
        let closed = if ended && self.settings.algorithm.estimates() && position.pass > 0 {
            self.close(executor, &position, observer, cancel).map(|(summary, elbo)| (Some(summary), elbo))
        } else {
            Ok((None, self.bound(&position.memo)?))
        };
        let estimate = |position: Position, stop_reason, error| {
            let Position { base, history, memo, edits, .. } = position;
            let summary = memo.into_total();
            Ok(Run { classes: edits.classes(&summary.ids), summary, elbo: f64::NAN, base, history, stop_reason, error })
        };
        match closed {
            Ok((summary, elbo)) => {
                let Position { base, history, memo, edits, .. } = position;
                let summary = summary.unwrap_or_else(|| memo.into_total());
                Ok(Run { classes: edits.classes(&summary.ids), summary, elbo, base, history, stop_reason, error })
            }
            Err(Error::Cancelled) => estimate(position, StopReason::Interrupted, None),
            Err(failure @ Error::Source { .. }) => estimate(position, StopReason::SourceError, Some(failure)),
            Err(failure) => Err(failure),
        }
    }

    /// Sets the time of the last record to now if there was a search, which may have gone on for long without a pass.
    fn tell_time(&self, position: &mut Position) {
        if position.search.best.is_some()
            && let Some(record) = position.history.last_mut()
        {
            record.seconds = position.seconds + self.started.elapsed().as_secs_f64();
        }
    }

    /// Computes the sum over all batches under the globals of an estimate, and its bound, so that the estimate becomes
    /// a fit.
    fn close(
        &self,
        executor: &mut dyn Executor,
        position: &Position,
        observer: &dyn Observer,
        cancel: &Cancel,
    ) -> Result<(Summary, f64)> {
        let n_batches = executor.n_batches();
        let globals = Globals::new(&self.model, position.memo.total(), (position.pass * n_batches) as u64);
        let mut total = Summary::empty(globals.ids.clone(), position.memo.total().n_statistics, true);
        for batch in 0..n_batches {
            cancel.check()?;
            total.add(&executor.visit(batch, &globals, &position.edits, &Plan::default())?.summary)?;
            report_batch(observer, position.pass, batch + 1, n_batches);
        }
        if let Some(edit) = falling(&self.model, &total)? {
            total.apply(&edit)?;
        }
        let elbo = elbo::collapsed(&self.model, &total)?.total();
        Ok((total, elbo))
    }

    /// Makes the moves of a pass whose visits have been made, re-estimates the base measure, and records the pass.
    fn finish_pass(&mut self, position: &mut Position, n_batches: usize) -> Result<Record> {
        self.reorder(position)?;
        let reports = self.move_on(position)?;
        let gain = self.raise_evidence(position);
        self.record(position, n_batches, reports, gain)
    }

    /// Judges what the visits of the pass found for moves.
    fn move_on(&mut self, position: &mut Position) -> Result<Vec<Report>> {
        let Some(round) = &self.round else { return Ok(Vec::new()) };
        let Position { moves, memo, edits, pass, .. } = position;
        let (reports, ahead) = round.settle(moves, memo, edits, *pass)?;
        if let Some(model) = ahead {
            position.base = model.base.parameters.clone();
            position.moves.end_waits();
            self.adopt(model);
        }
        self.reorder(position)?;
        Ok(reports)
    }

    /// Re-estimates the base measure by evidence after a pass (mathematics 10.1). Returns the gain, nats.
    fn raise_evidence(&mut self, position: &mut Position) -> f64 {
        let memo = &position.memo;
        if !memo.is_complete() && !self.settings.algorithm.estimates() {
            return 0.0;
        }
        let Some((model, gain)) = evidence::raise(&self.model, memo.total()) else { return 0.0 };
        position.base = model.base.parameters.clone();
        // A move that failed under the old base measure may gain under the new one.
        if gain > memo.total().n_components() as f64 {
            position.moves.end_waits();
        }
        self.adopt(model);
        gain
    }

    /// Adopts the base measure of a position, which may come from a file.
    fn adopt_of(&mut self, position: &Position) -> Result<()> {
        if position.base != self.model.base.parameters {
            let failed = |_| Error::Checkpoint { message: "it is damaged: its base measure".to_owned() };
            self.adopt(self.model.with_base(position.base.clone()).map_err(failed)?);
        }
        if position.search.stage == Stage::Loose {
            self.adopt(self.model.holding(true));
        }
        Ok(())
    }

    pub(super) fn adopt(&mut self, model: Model<F>) {
        if let Some(round) = &mut self.round {
            round.model = model.clone();
        }
        self.model = model;
    }

    /// Returns why no further pass is made, or `None` to continue. Opens nodes of trees when it is time.
    fn reason_to_end(
        &mut self,
        executor: &mut dyn Executor,
        position: &mut Position,
        observer: &dyn Observer,
    ) -> Result<Option<StopReason>> {
        // A run that resumes in the middle of a pass has not ended.
        if position.done > 0 {
            return Ok(None);
        }
        self.check_rise(position)?;
        let mut ended = self.ended(position);
        let is_cut = ended.is_none() && position.is_search_late();
        if ended == Some(StopReason::Converged) && self.open_background(position) {
            return Ok(self.out_of_passes(position));
        }
        if ended == Some(StopReason::Converged) || is_cut {
            ended = self.search_on(position, is_cut, observer)?.or_else(|| self.out_of_passes(position));
        }
        let is_settled = ended == Some(StopReason::Converged);
        let opened = (ended.is_none() || is_settled) && self.open_nodes(executor, position, is_settled)?;
        // The newly opened nodes may still gain.
        Ok(if is_settled && opened { self.out_of_passes(position) } else { ended })
    }

    /// Lets rows into the background once components have been found without it. Returns whether that is new.
    fn open_background(&self, position: &mut Position) -> bool {
        let opens = self.has_closed_background(position);
        if opens {
            position.memo.open_tail();
            position.moves.end_waits();
        }
        opens
    }

    fn has_closed_background(&self, position: &Position) -> bool {
        self.model.background.is_some() && position.memo.total().tail.is_none()
    }

    fn out_of_passes(&self, position: &Position) -> Option<StopReason> {
        (position.pass >= self.settings.max_passes).then_some(StopReason::MaxPasses)
    }

    /// Refuses data that have changed, if the objective fell in the last pass of this run. No step lowers it otherwise.
    fn check_rise(&self, position: &Position) -> Result<()> {
        if let [before, now] = position.objectives[..]
            && position.history.len() >= position.first_own + 2
            && self.model.documents.is_none()
            && self.fell(before, now, position.memo.total())
        {
            self.data.check()?;
            debug_assert!(F::NAME != "float64", "the objective fell from {before} to {now}");
        }
        Ok(())
    }

    /// The error of changed data in place of a failure that they caused.
    fn cause(&self, failure: Error) -> Error {
        if matches!(failure, Error::Cancelled | Error::Source { .. }) {
            return failure;
        }
        match self.data.check() {
            Err(changed @ Error::Source { .. }) => changed,
            _ => failure,
        }
    }

    /// Returns why no further pass is made, judged only by the gain of the last pass.
    fn ended(&self, position: &mut Position) -> Option<StopReason> {
        // The start may give a row more components than the local step will, so the first pass cannot be compared with
        // it. A pass without a predecessor to compare with has NaN.
        if let ([before, now], Some(last)) = (&position.objectives[..], position.history.last()) {
            let (before, now) = (*before, *now);
            // The state under a loose base measure, or without the background, is only a start.
            let is_start = position.search.stage == Stage::Loose || self.has_closed_background(position);
            let tol = if is_start { LOOSE_TOL } else { 1.0 } * self.settings.tol;
            let small = (tol * position.memo.mass_visited()).max(NOTHING.min(tol * FEW));
            let gain = now - before;
            let is_settled = last.base_measure_gain < small;
            let total = position.memo.total();
            let is_small = tol > 0.0 && gain < small && is_settled;
            // A falling bound has not converged, unless the fall is within rounding.
            let is_small = is_small && (gain > -small || !self.fell(before, now, total));
            let Position { moves, pass, .. } = position;
            let is_exhausted = |round: &Round<'_, F>| round.is_exhausted(moves, total, &last.moves, *pass);
            if is_small && self.round.as_ref().is_none_or(is_exhausted) {
                return Some(StopReason::Converged);
            }
        }
        self.out_of_passes(position)
    }

    /// Visits the remaining batches of the pass, in a random order specific to the pass. Each visit uses the globals
    /// after all earlier visits.
    fn sweep(
        &self,
        executor: &mut dyn Executor,
        position: &mut Position,
        observer: &dyn Observer,
        cancel: &Cancel,
    ) -> Result<()> {
        let n_batches = executor.n_batches();
        let pass = position.pass;
        let order = if self.settings.shuffle {
            permutation(n_batches as u32, &mut stream(self.settings.seed, Purpose::Visits, pass as u64))
        } else {
            (0..n_batches as u32).collect()
        };
        if let Some(round) = self.round.as_ref().filter(|round| !round.is_planned(&position.moves, pass)) {
            round.plan(&mut position.moves, &mut position.memo, &mut position.edits, pass)?;
        }
        for &batch in &order[position.done..] {
            cancel.check()?;
            let visits = pass * n_batches + position.done;
            let scales = self.settings.units.scales_first_pass();
            let growth = if scales { position.memo.growth() } else { 1.0 };
            let globals = Globals { growth, ..Globals::lent(&self.model, &mut position.memo, visits as u64) };
            let visit = executor.visit(batch as usize, &globals, &position.edits, &position.moves.plan);
            position.memo.take_back(globals.statistics);
            let visit = visit?;
            if let Some(round) = &self.round {
                round.take(&mut position.moves, batch as usize, visit.findings)?;
            }
            self.settings.algorithm.take(&mut position.memo, batch as usize, visit.summary, visits)?;
            position.work += visit.work;
            add_known(&mut position.known_rows, &visit.known_rows);
            position.done += 1;
            report_batch(observer, pass, position.done, n_batches);
            if position.done < n_batches {
                self.offer_checkpoint(executor, position, observer, false)?;
            }
        }
        classes::set_free(position);
        position.memo.resum()
    }

    /// Sorts components by decreasing counts.
    fn reorder(&self, position: &mut Position) -> Result<()> {
        if let Some(edit) = falling(&self.model, position.memo.total())? {
            position.memo.apply(&edit)?;
            position.edits.push(edit);
        }
        Ok(())
    }

    fn offer_checkpoint(
        &self,
        executor: &mut dyn Executor,
        position: &Position,
        observer: &dyn Observer,
        last: bool,
    ) -> Result<()> {
        if observer.wants_checkpoint(last) {
            let seconds = position.seconds + self.started.elapsed().as_secs_f64();
            observer.on_event(0, Event::Checkpoint(self.identity.write(position, seconds, executor)?));
        }
        Ok(())
    }

    fn bound(&self, memo: &Memo) -> Result<f64> {
        if memo.is_complete() { Ok(elbo::collapsed(&self.model, memo.total())?.total()) } else { Ok(f64::NAN) }
    }

    /// Whether the objective fell by more than rounding and the dropped responsibilities explain.
    fn fell(&self, before: f64, now: f64, total: &Summary) -> bool {
        now < before && now < before - self.slack(before, total)
    }

    /// By how much rounding and the dropped responsibilities may lower the objective.
    fn slack(&self, before: f64, total: &Summary) -> f64 {
        let n_columns = total.n_components() + usize::from(self.model.has_tail());
        let dropped = self.settings.local.margin.map_or(0.0, |margin| total.mass * n_columns as f64 * (-margin).exp());
        // float32 scores lose more digits.
        let digits = if F::NAME == "float64" { 1e-8 } else { 1e-6 };
        dropped + digits * (1.0 + before.abs()) + evidence::rounding(&self.model, total)
    }

    /// The objective of a state with this bound, nats.
    pub(super) fn objective(&self, total: &Summary, elbo: f64) -> Result<f64> {
        Ok(elbo + evidence::guard(&self.model)? + self.model.allocate(total).guard)
    }

    /// Records a pass. During a search the record tells of the best state, which is what the run would return.
    fn record(
        &self,
        position: &mut Position,
        n_batches: usize,
        moves: Vec<Report>,
        base_measure_gain: f64,
    ) -> Result<Record> {
        let elbo = self.bound(&position.memo)?;
        let objective = self.objective(position.memo.total(), elbo)?;
        position.add_objective(objective);
        position.search.count(position.work.pairs);
        let current = (elbo, objective, position.memo.total().n_components());
        let of_best = |best: &BestState| (best.elbo, best.objective, best.total.n_components());
        let (elbo, objective, n_components) = position.search.better_than(objective).map_or(current, of_best);
        let restarts = position.work.restarts;
        Ok(Record {
            index: position.pass,
            seconds: position.seconds + self.started.elapsed().as_secs_f64(),
            elbo,
            objective,
            base_measure_gain,
            n_components,
            n_units: position.work.units,
            mass: position.memo.total().mass,
            n_batches,
            proposed: restarts.proposed + moves.iter().map(|report| report.proposed).sum::<usize>(),
            accepted: restarts.accepted + moves.iter().map(|report| report.accepted).sum::<usize>(),
            evaluated_share: position.work.evaluated as f64 / position.work.pairs as f64,
            moves,
        })
    }
}

/// A run counts as number 0; [`crate::events::OfRun`] tells the runs of a fit apart.
fn report_batch(observer: &dyn Observer, pass: usize, done: usize, n_batches: usize) {
    if observer.wants_progress(0) {
        observer.on_event(0, Event::Batch { pass, done, n_batches });
    }
}
