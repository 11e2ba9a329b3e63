//! Runs a fit from several starts and keeps the best.

use crate::data::Moments;
use crate::error::{Error, Result};
use crate::events::{Event, Observer, OfRun};
use crate::fit::{Job, Settings, fit_surveyed};
use crate::fitted::{Ended, Fitted, Resumed, StopReason};
use crate::grounds::survey;
use crate::parallel::{Cancel, side_by_side};
use crate::simd::Scalar;

/// The starts of a fit.
#[derive(Debug, Clone, Copy)]
pub struct Starts<'a> {
    /// One seed for each start.
    pub seeds: &'a [u64],
    /// Whether to make the runs one after another. Otherwise they run concurrently if there are spare threads.
    pub in_turn: bool,
}

/// Starts that run concurrently.
struct StartRound {
    seeds: Vec<u64>,
    /// Whether they start with more components than were found before.
    is_wide: bool,
}

impl<F: Scalar> Job<'_, F> {
    /// As [`Job::best_of`], with all columns of the rows. Where copies and weights hide the structure, it is sought in
    /// the search rows, by which starts are compared.
    pub(super) fn best_of_columns(
        &self,
        starts: Starts<'_>,
        resumed: Resumed<'_>,
        observer: &dyn Observer,
        cancel: &Cancel,
    ) -> Result<Fitted> {
        self.check_unread()?;
        let data = &survey(self.specification, self.rows, cancel)?;
        let Some(search) = self.search_rows(data, cancel)? else {
            return self.best_of_starts(starts, resumed, Some(data), observer, cancel);
        };
        let found = search.with_job(self, |job| job.best_of_starts(starts, resumed, None, observer, cancel))?;
        let found = Fitted { repeats: data.repeats, ..found };
        self.of_all_rows(found, data, observer, cancel)
    }

    /// The best fit of all starts.
    fn best_of_starts(
        &self,
        starts: Starts<'_>,
        resumed: Resumed<'_>,
        surveyed: Option<&Moments>,
        observer: &dyn Observer,
        cancel: &Cancel,
    ) -> Result<Fitted> {
        let rounds = self.rounds(starts)?;
        let n_classes = self.labels()?.map_or(0, |labels| labels.n_classes());
        let Resumed { mut standing, run: mut checkpoint } = resumed;
        for index in standing.index..rounds.len() {
            let round = &rounds[index];
            standing.index = index;
            let first = rounds[..index].iter().map(|round| round.seeds.len()).sum();
            observer
                .on_event(0, Event::Round { first, n_runs: round.seeds.len(), standing: Box::new(standing.clone()) });
            let n_wide = standing.n_wide.map(|n_wide| n_wide.max(n_classes));
            let n_components = if round.is_wide { n_wide } else { self.settings.n_components };
            let ended = self.run_round(&round.seeds, n_components, surveyed, checkpoint.take(), observer, cancel);
            // A failure to compare them must not lose the fits.
            let agree = |one: &Fitted, other: &Fitted| one.agreement(other, self.rows, cancel).ok().flatten();
            if let Some(stopped) = standing.take(ended, &agree)? {
                return Ok(stopped);
            }
        }
        standing.best.ok_or_else(|| Error::invalid("n_init", rounds.len(), "at least 1"))
    }

    /// All rounds of starts.
    fn rounds(&self, Starts { seeds, in_turn }: Starts<'_>) -> Result<Vec<StartRound>> {
        let every_second = |first: usize| seeds.iter().skip(first).step_by(2).copied().collect();
        let mut rounds = vec![StartRound { seeds: seeds.to_vec(), is_wide: false }];
        if self.widens()? {
            rounds = vec![
                StartRound { seeds: every_second(0), is_wide: false },
                StartRound { seeds: every_second(1), is_wide: true },
            ];
        }
        // Only one run can read a stream at a time.
        if in_turn || !self.rows.can_seek() {
            let alone = |StartRound { seeds, is_wide }: StartRound| {
                seeds.into_iter().map(move |seed| StartRound { seeds: vec![seed], is_wide })
            };
            rounds = rounds.into_iter().flat_map(alone).collect();
        }
        rounds.retain(|round| !round.seeds.is_empty());
        Ok(rounds)
    }

    /// Whether later starts may begin with more components than the first: the number of components can grow, and its
    /// initial value is not given.
    fn widens(&self) -> Result<bool> {
        let is_free = self.settings.n_components.is_none() && self.init.makes_any_number();
        Ok(is_free && self.settings.moves.grow() && self.specification.weights()?.n_components().is_none())
    }

    /// Runs one fit for each seed. An error in one run ends the others. After an interrupt, runs without a state are
    /// left out.
    fn run_round(
        &self,
        seeds: &[u64],
        n_components: Option<usize>,
        surveyed: Option<&Moments>,
        checkpoint: Option<&[u8]>,
        observer: &dyn Observer,
        cancel: &Cancel,
    ) -> Result<Ended> {
        let outcomes = side_by_side(seeds.len(), |run| {
            let settings = Settings { seed: seeds[run], n_components, ..self.settings.clone() };
            let job = Job { settings: &settings, ..*self };
            let outcome = fit_surveyed(&job, surveyed, checkpoint, &OfRun { run, observer }, cancel);
            if outcome.is_err() {
                cancel.cancel();
            }
            outcome
        })?;
        let is_cancelled = outcomes.iter().any(|outcome| matches!(outcome, Err(Error::Cancelled)));
        let fits = outcomes
            .into_iter()
            .filter(|outcome| !matches!(outcome, Err(Error::Cancelled)))
            .collect::<Result<Vec<_>>>()?;
        let from_outside = [StopReason::Interrupted, StopReason::SourceError, StopReason::Callback];
        let stop = from_outside.into_iter().find(|&reason| fits.iter().any(|fit| fit.stop_reason == reason));
        let stop = if is_cancelled { Some(StopReason::Interrupted) } else { stop };
        let error = fits.iter().find_map(|fit| fit.error.clone());
        Ok(Ended { fits, stop, error })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::prelude::*;

    use super::*;
    use crate::data::{DenseRows, TableRows};
    use crate::fit::fit;
    use crate::init::Init;
    use crate::model::{Named, Objective, Specification};
    use crate::moves::Moves;
    use crate::parallel::with_threads;
    use crate::parameters::Parameters;

    const SEEDS: [u64; 5] = [3, 1, 4, 15, 9];

    /// Calls `check` with a job of 60 rows in one column, with or without a growing number of components.
    fn with_job<T>(grows: bool, check: impl FnOnce(&Job<'_, f64>) -> T) -> T {
        let values: Vec<f64> = (0..60).map(|row| f64::from(row % 6) * 7.0 + f64::from(row * row % 11) / 5.0).collect();
        let table = DenseRows::new(&values, 1);
        let rows = TableRows { rows: &table, weights: None };
        let named = |name: &str| Named { name: name.into(), parameters: Parameters::default() };
        let specification = Specification {
            likelihood: named("Gaussian"),
            process: named("DirichletProcess"),
            objective: Objective::Variational,
            missing: false,
            estimated: None,
            learned: None,
            values: None,
            background: None,
        };
        let mut settings = Settings { n_components: Some(4), max_passes: 5, ..Settings::default() };
        if grows {
            let mut moves = Moves::default();
            moves.add("Birth", &Parameters::default()).expect("the usual births");
            settings = Settings { n_components: None, moves, ..settings };
        }
        check(&Job { specification: &specification, rows: &rows, init: &Init::Random, settings: &settings, ask: None })
    }

    fn by_hand(job: &Job<'_, f64>, seed: u64, n_components: Option<usize>) -> Fitted {
        let settings = Settings { n_components, seed, ..job.settings.clone() };
        fit(&Job { settings: &settings, ..*job }, None, &(), &Cancel::default()).expect("well-behaved data")
    }

    /// Stops, or cancels, after this many passes in all runs together.
    struct Stops {
        passes: AtomicUsize,
        most: usize,
        cancel: Option<Cancel>,
    }

    impl Observer for Stops {
        fn on_event(&self, _run: usize, event: Event) -> bool {
            match event {
                Event::Round { first, n_runs, standing } => {
                    assert_eq!((first, n_runs, standing.best.is_some()), (standing.index, 1, standing.index > 0));
                    false
                }
                Event::Pass(_) => {
                    let stops = self.passes.fetch_add(1, Ordering::Relaxed) + 1 == self.most;
                    if let (true, Some(cancel)) = (stops, &self.cancel) {
                        cancel.cancel();
                    }
                    stops
                }
                _ => false,
            }
        }
    }

    proptest! {
        #[test]
        fn every_seed_has_its_turn_and_wide_starts_come_last(
            n in 1_usize..12, in_turn in any::<bool>(), grows in any::<bool>(),
        ) {
            let seeds: Vec<u64> = (0..n as u64).collect();
            let rounds = with_job(grows, |job| job.rounds(Starts { seeds: &seeds, in_turn })).expect("a process");
            let made: Vec<(u64, bool)> =
                rounds.iter().flat_map(|round| round.seeds.iter().map(|&seed| (seed, round.is_wide))).collect();
            let expected: Vec<(u64, bool)> = [false, true]
                .into_iter()
                .flat_map(|wide| seeds.iter().map(move |&seed| (seed, wide)))
                .filter(|&(seed, wide)| wide == (grows && seed % 2 == 1))
                .collect();
            prop_assert_eq!(made, expected);
            prop_assert_eq!(rounds.len(), if in_turn { n } else { (1 + usize::from(grows)).min(n) });
        }
    }

    #[test]
    fn the_best_is_kept_side_by_side_or_in_turn() {
        for grows in [false, true] {
            with_job(grows, |job| {
                let n_occupied = |fit: &Fitted| fit.summary.counts.iter().filter(|&&count| count >= 0.5).count();
                let n_wide = grows.then(|| (2 * n_occupied(&by_hand(job, SEEDS[0], None)) + 10).min(60));
                let n_components =
                    |start: usize| if start % 2 == 1 && grows { n_wide } else { job.settings.n_components };
                let fits = SEEDS.iter().enumerate().map(|(start, &seed)| by_hand(job, seed, n_components(start)));
                let best = fits.max_by(|a, b| a.elbo.total_cmp(&b.elbo)).expect("five");
                for (threads, in_turn) in [(1, false), (1, true), (3, false), (3, true)] {
                    let starts = Starts { seeds: &SEEDS, in_turn };
                    let run = || job.best_of(starts, Resumed::default(), &(), &Cancel::default());
                    let found = with_threads(Some(threads), run).expect("a pool").expect("well-behaved data");
                    assert_eq!(found.elbo.to_bits(), best.elbo.to_bits());
                    assert_eq!(found.summary, best.summary);
                }
            });
        }
    }

    #[test]
    fn a_stop_ends_all_starts_and_leaves_the_best() {
        for (interrupts, reason) in [(false, StopReason::Callback), (true, StopReason::Interrupted)] {
            with_job(false, |job| {
                let cancel = Cancel::default();
                let interrupt = interrupts.then(|| cancel.clone());
                let stops = Stops { passes: AtomicUsize::new(0), most: 7, cancel: interrupt };
                let starts = Starts { seeds: &SEEDS, in_turn: true };
                let found = job.best_of(starts, Resumed::default(), &stops, &cancel).expect("a first run");
                assert_eq!((found.stop_reason, stops.passes.into_inner()), (reason, 7));
                assert!(found.elbo >= by_hand(job, SEEDS[0], Some(4)).elbo);
            });
        }
    }

    #[test]
    fn an_interrupt_before_there_is_a_state_is_cancelled() {
        with_job(false, |job| {
            let cancel = Cancel::default();
            cancel.cancel();
            let starts = Starts { seeds: &SEEDS, in_turn: false };
            let outcome = job.best_of(starts, Resumed::default(), &(), &cancel);
            assert_eq!(outcome.map(|fit| fit.elbo), Err(Error::Cancelled));
        });
    }
}
