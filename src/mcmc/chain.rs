//! Runs chains concurrently; contains the only loop over sweeps.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::events::{Event, Observer, Sweep};
use crate::identity::Identity;
use crate::mcmc::samplers::{Chain, Chains};
use crate::mcmc::{Attempts, Info, effective_sample_size, split_r_hat};
use crate::parallel::{Cancel, for_each, n_threads};
use crate::rng::{Purpose, key, stream};

/// Length of the chains, and the draws that they keep.
#[derive(Debug, Clone, Copy)]
pub struct ChainPlan {
    /// Number of draws that each chain keeps.
    pub draws: usize,
    /// Number of sweeps before the first draw.
    pub warmup: usize,
    /// Number of sweeps per draw.
    pub thin: usize,
    /// Number of chains.
    pub chains: usize,
    /// The seed of all chains.
    pub seed: u64,
    /// Time limit; no sweep begins after it.
    pub limit: Option<Duration>,
    /// When draws are enough.
    pub until: Option<Until>,
}

/// Draws are enough if every quantity has this many effective draws and an R-hat of at most this. Both are asked at
/// fixed numbers of draws of each chain, so that where chains end does not depend on time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Until {
    /// Effective draws, over all chains.
    pub ess: f64,
    /// R-hat.
    pub r_hat: f64,
}

/// The number of draws of a chain that are asked first, and by how much each further number is larger.
const FIRST_ASKED: usize = 100;
const GROWTH: f64 = 1.2;

/// Why chains ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainEnd {
    /// They have all draws.
    Draws,
    /// [`ChainPlan::until`] is met.
    Until,
    /// The time limit.
    Limit,
    /// The user.
    Interrupted,
    /// An observer.
    Callback,
    /// An error.
    Failed,
}

impl ChainEnd {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Draws => "draws",
            Self::Until => "until",
            Self::Limit => "max_seconds",
            Self::Interrupted => "interrupted",
            Self::Callback => "callback",
            Self::Failed => "error",
        }
    }
}

impl ChainPlan {
    /// The draw that sweep number `sweep` makes, if any.
    fn draw_of(&self, sweep: usize) -> Option<usize> {
        let behind = (sweep + 1).checked_sub(self.warmup)?;
        (behind > 0 && behind.is_multiple_of(self.thin)).then(|| behind / self.thin - 1)
    }
}

/// Draws of one chain, without the partitions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ChainDraws {
    /// log p(X, partition | hyper-parameters) of each draw, nats.
    pub log_joint: Vec<f64>,
    /// Number of clusters of each draw.
    pub n_clusters: Vec<u32>,
    /// Number of rows of each cluster of each draw, by label, concatenated over draws.
    pub sizes: Vec<u32>,
    /// Values reported by the process, concatenated over draws.
    pub traced: Vec<f64>,
    /// Running time of the chain in seconds, warm-up included.
    pub seconds: f64,
    /// Proposals after the warm-up, by name.
    pub proposals: Vec<(String, Attempts)>,
}

/// A chain as stored in a checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SavedChain {
    /// The current state, as [`Chain::save`] writes it.
    pub state: Vec<u8>,
    /// Number of complete sweeps.
    pub sweep: usize,
    /// Draws so far, without partitions.
    pub draws: ChainDraws,
    /// Labels of the kept rows, (draws, rows).
    pub labels: Vec<i32>,
}

/// A chain that begins or goes on.
pub struct ChainStart<'a> {
    /// The current state.
    pub state: Box<dyn Chain + 'a>,
    /// Number of complete sweeps.
    pub sweep: usize,
    /// Draws so far, without partitions.
    pub draws: ChainDraws,
    /// Labels of the kept rows, (draws, rows).
    pub labels: Vec<i32>,
}

impl ChainDraws {
    fn count(&mut self, infos: &[Info]) {
        for info in infos {
            match self.proposals.iter_mut().find(|(name, _)| name == info.name) {
                Some((_, attempts)) => *attempts += info.attempts,
                None => self.proposals.push((info.name.to_owned(), info.attempts)),
            }
        }
    }
}

/// A run of chains.
pub struct Sampling<'a> {
    /// What they share.
    pub chains: &'a dyn Chains,
    /// Length of the chains.
    pub plan: ChainPlan,
    /// Positions of the rows whose labels are kept; `None` for all.
    pub kept: Option<&'a [u32]>,
    /// Start time of the chains.
    pub started: Instant,
    /// What a checkpoint says of the run.
    pub identity: Identity,
}

impl<'a> Sampling<'a> {
    /// Number of rows whose labels are kept.
    pub fn n_kept(&self) -> usize {
        self.kept.map_or(self.chains.n_rows(), <[u32]>::len)
    }

    /// Runs all chains and writes their labels to `partitions`, (chains, draws, kept rows). A chain that is
    /// interrupted, or exceeds its time limit, returns the draws made so far.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] before any sweep; if some chain has no draw yet, [`Error::Numerical`] and
    /// [`Error::Cancelled`].
    pub fn run(
        &self,
        partitions: &mut [i32],
        resumed: Option<Vec<ChainStart<'a>>>,
        observer: &dyn Observer,
        cancel: &Cancel,
    ) -> Result<Sampled> {
        let n_kept = self.n_kept();
        self.chains.check_room(self.plan.chains, self.plan.chains.min(n_threads()))?;
        let begin = |chain| {
            let state = self.chains.start(chain).map_err(|error| of_chain(error, chain, self.plan.chains))?;
            Ok(ChainStart { state, sweep: 0, draws: ChainDraws::default(), labels: Vec::new() })
        };
        let starts = resumed.map_or_else(|| (0..self.plan.chains).map(begin).collect::<Result<_>>(), Ok)?;
        let most = AtomicUsize::new(self.plan.draws);
        let asked = AtomicUsize::new(self.plan.until.map_or(usize::MAX, |_| FIRST_ASKED));
        let rooms = partitions.chunks_mut((self.plan.draws * n_kept).max(1)).zip(starts).enumerate();
        let chain = |(chain, (room, start)): (usize, (_, ChainStart<'a>))| {
            let room: &mut [i32] = room;
            room[..start.labels.len()].copy_from_slice(&start.labels);
            let ChainStart { state, sweep, draws, .. } = start;
            ChainRun {
                sampling: self,
                chain,
                cancel,
                most: &most,
                asked: &asked,
                state,
                sweep,
                draws,
                room,
                labels: vec![0; self.chains.n_rows()],
                observer,
                outcome: Ok(()),
            }
        };
        let mut chains: Vec<ChainRun<'_>> = rooms.map(chain).collect();
        self.offer_checkpoint(&chains, observer, false)?;
        let (mut is_enough, mut is_cut) = (false, false);
        while !is_enough {
            let n_asked = asked.load(Ordering::Relaxed);
            let has_asked = |chain: &ChainRun<'_>| chain.outcome.is_ok() && chain.draws.log_joint.len() >= n_asked;
            if chains.iter().all(has_asked) {
                is_enough = self.plan.until.is_some_and(|until| until.is_met(&chains, n_asked));
                asked.store((n_asked as f64 * GROWTH).ceil() as usize, Ordering::Relaxed);
                continue;
            }
            if is_cut || !chains.iter().any(ChainRun::goes_on) {
                break;
            }
            // Chains take turns, so that chains that share a thread have about equally many draws at any time.
            for_each(chains.iter_mut().collect(), ChainRun::take_turn);
            is_cut = self.is_late() || cancel.check().is_err() || chains.iter().any(|chain| chain.outcome.is_err());
            if !is_cut {
                self.offer_checkpoint(&chains, observer, false)?;
            }
        }
        self.offer_checkpoint(&chains, observer, true)?;
        let n_draws = chains.iter().map(|chain| chain.draws.log_joint.len()).min().unwrap_or(0);
        let has_failed = |chain: &ChainRun<'_>| !matches!(chain.outcome, Ok(()) | Err(Error::Cancelled));
        let ended = match () {
            () if chains.iter().any(has_failed) => ChainEnd::Failed,
            () if cancel.check().is_err() => ChainEnd::Interrupted,
            () if is_enough => ChainEnd::Until,
            () if n_draws >= self.plan.draws => ChainEnd::Draws,
            () if self.is_late() => ChainEnd::Limit,
            () => ChainEnd::Callback,
        };
        let states = if chains.iter().all(|chain| chain.outcome.is_ok()) {
            chains.iter().map(|chain| chain.beyond(n_draws)).collect::<Result<_>>()?
        } else {
            Vec::new()
        };
        self.finish(chains, ended, states, cancel)
    }

    fn is_late(&self) -> bool {
        self.plan.limit.is_some_and(|limit| self.started.elapsed() >= limit)
    }

    /// Offers a checkpoint of all chains, unless one stopped within a sweep.
    fn offer_checkpoint(&self, chains: &[ChainRun<'_>], observer: &dyn Observer, last: bool) -> Result<()> {
        if chains.iter().all(|chain| chain.outcome.is_ok()) && observer.wants_checkpoint(last) {
            let saved = chains.iter().map(ChainRun::saved).collect::<Result<Vec<_>>>()?;
            let bytes = postcard::to_stdvec(&(&self.identity, saved))
                .map_err(|error| Error::Format { message: error.to_string() })?;
            observer.on_event(0, Event::Checkpoint(bytes));
        }
        Ok(())
    }

    fn finish(
        &self,
        chains: Vec<ChainRun<'_>>,
        ended: ChainEnd,
        states: Vec<SavedChain>,
        cancel: &Cancel,
    ) -> Result<Sampled> {
        let (mut draws, mut error) = (Vec::with_capacity(chains.len()), None);
        for chain in chains {
            draws.push(chain.draws);
            error = error.or(chain.outcome.err().filter(|error| *error != Error::Cancelled));
        }
        match (draws.iter().map(|chain| chain.log_joint.len()).min(), error) {
            (Some(0), Some(error)) => Err(error),
            (Some(0), None) if cancel.check().is_ok() => {
                let found = format!("{} seconds", self.plan.limit.unwrap_or_default().as_secs_f64());
                Err(Error::invalid("max_seconds", found, "enough for the warm-up and the first draw"))
            }
            (Some(0), None) => Err(Error::Cancelled),
            (_, error) => Ok(Sampled { draws, error, ended, states }),
        }
    }
}

/// An error of the start of one chain of several.
fn of_chain(error: Error, chain: usize, chains: usize) -> Error {
    match error {
        Error::InvalidArgument { argument, found, allowed, .. } if argument == "init" && chains > 1 => {
            Error::invalid(&argument, format!("for chain {chain} {found}"), allowed)
        }
        other => other,
    }
}

/// The draws of all chains, and the error that ended them early, if one did.
#[derive(Debug)]
pub struct Sampled {
    /// The draws of each chain, at least one.
    pub draws: Vec<ChainDraws>,
    /// What ended the chains.
    pub error: Option<Error>,
    /// Why they ended.
    pub ended: ChainEnd,
    /// Where each chain is, with the draws that it has beyond those that all have; empty if one stopped within a sweep.
    pub states: Vec<SavedChain>,
}

impl Until {
    /// Whether the first draws of all chains are enough.
    fn is_met(&self, chains: &[ChainRun<'_>], n_draws: usize) -> bool {
        let all = |of: &dyn Fn(&ChainDraws) -> Vec<f64>| -> Vec<f64> {
            chains.iter().flat_map(|chain| of(&chain.draws)).collect()
        };
        let largest = |draws: &ChainDraws| {
            let mut rest = &draws.sizes[..];
            let sizes = draws.n_clusters[..n_draws].iter().map(|&n_clusters| {
                let own = rest.split_off(..n_clusters as usize).unwrap_or_default();
                own.iter().max().copied().unwrap_or(0).into()
            });
            sizes.collect::<Vec<f64>>()
        };
        let n_traced = chains.first().map_or(0, |chain| chain.draws.traced.len() / chain.draws.log_joint.len().max(1));
        let mut quantities = vec![
            all(&|draws| draws.log_joint[..n_draws].to_vec()),
            all(&|draws| draws.n_clusters[..n_draws].iter().map(|&n| n.into()).collect()),
            all(&largest),
        ];
        quantities.extend((0..n_traced).map(|place| {
            all(&|draws| draws.traced.iter().skip(place).step_by(n_traced).take(n_draws).copied().collect())
        }));
        quantities.iter().all(|values| {
            let ess = effective_sample_size(values, chains.len());
            // A quantity that never moves has no effective draws, and needs none.
            split_r_hat(values, chains.len()) <= self.r_hat && (ess.is_nan() || ess >= self.ess)
        })
    }
}

/// How long a chain runs before other chains have their turn.
const TURN: Duration = Duration::from_millis(50);

/// A running chain.
struct ChainRun<'a> {
    sampling: &'a Sampling<'a>,
    chain: usize,
    cancel: &'a Cancel,
    /// Number of draws after which all chains end.
    most: &'a AtomicUsize,
    /// Number of draws at which all chains wait until it is known whether these are enough.
    asked: &'a AtomicUsize,
    state: Box<dyn Chain + 'a>,
    /// Number of complete sweeps.
    sweep: usize,
    draws: ChainDraws,
    /// Output for the labels of its draws, (draws, kept rows).
    room: &'a mut [i32],
    /// Scratch for the labels of all rows.
    labels: Vec<i32>,
    observer: &'a dyn Observer,
    outcome: Result<()>,
}

impl ChainRun<'_> {
    fn goes_on(&self) -> bool {
        let most = self.most.load(Ordering::Relaxed).min(self.asked.load(Ordering::Relaxed));
        self.outcome.is_ok() && self.draws.log_joint.len() < most
    }

    /// Its state, with the draws beyond the first ones.
    fn beyond(&self, n_draws: usize) -> Result<SavedChain> {
        let draws = &self.draws;
        let n_traced = draws.traced.len() / draws.log_joint.len().max(1);
        let n_sizes: usize = draws.n_clusters[..n_draws].iter().map(|&n| n as usize).sum();
        let n_kept = self.sampling.n_kept();
        let own = ChainDraws {
            log_joint: draws.log_joint[n_draws..].to_vec(),
            n_clusters: draws.n_clusters[n_draws..].to_vec(),
            sizes: draws.sizes[n_sizes..].to_vec(),
            traced: draws.traced[n_draws * n_traced..].to_vec(),
            ..ChainDraws::default()
        };
        let labels = self.room[n_draws * n_kept..draws.log_joint.len() * n_kept].to_vec();
        Ok(SavedChain { state: self.state.save()?, sweep: self.sweep, draws: own, labels })
    }

    fn saved(&self) -> Result<SavedChain> {
        let n_labels = self.draws.log_joint.len() * self.sampling.n_kept();
        let labels = self.room[..n_labels].to_vec();
        Ok(SavedChain { state: self.state.save()?, sweep: self.sweep, draws: self.draws.clone(), labels })
    }

    /// Runs sweeps until the turn is over, the plan is complete, or something stops the chain.
    fn take_turn(&mut self) {
        let began = Instant::now();
        // only-one: loop over sweeps
        while self.goes_on() && began.elapsed() < TURN && !self.sampling.is_late() {
            self.outcome = self.sweep_once();
        }
        self.draws.seconds += began.elapsed().as_secs_f64();
    }

    fn sweep_once(&mut self) -> Result<()> {
        let infos = self.advance()?;
        if self.sweep >= self.sampling.plan.warmup {
            self.draws.count(&infos);
        }
        self.sweep += 1;
        if self.report()? {
            self.most.fetch_min(self.draws.log_joint.len().max(1), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Runs one sweep. Its random numbers depend only on the seed, the chain and the sweep.
    fn advance(&mut self) -> Result<Vec<Info>> {
        let of_chain = key(self.sampling.plan.seed, [self.chain as u64]);
        let mut generator = stream(of_chain, Purpose::Sweeps, self.sweep as u64);
        self.cancel.check()?;
        self.state.sweep(&mut generator, key(of_chain, [Purpose::Rows as u64, self.sweep as u64]), self.cancel)
    }

    /// Stores and reports the draw of the last sweep. Returns whether an observer requests a stop.
    fn report(&mut self) -> Result<bool> {
        let (index, state) = (self.sweep - 1, &self.state);
        let draw = self.sampling.plan.draw_of(index);
        if draw.is_none() && !self.observer.wants_progress(self.chain) {
            return Ok(false);
        }
        let (log_joint, n_clusters) = (state.log_joint()?, state.n_clusters());
        if let Some(draw) = draw {
            state.write_labels(&mut self.labels);
            let n_kept = self.sampling.n_kept();
            let room = &mut self.room[draw * n_kept..][..n_kept];
            match self.sampling.kept {
                None => room.copy_from_slice(&self.labels),
                Some(rows) => room.iter_mut().zip(rows).for_each(|(label, &row)| *label = self.labels[row as usize]),
            }
            let first = self.draws.sizes.len();
            self.draws.sizes.resize(first + n_clusters, 0);
            self.labels.iter().for_each(|&label| self.draws.sizes[first + label as usize] += 1);
            self.draws.log_joint.push(log_joint);
            self.draws.n_clusters.push(n_clusters as u32);
            self.draws.traced.extend(state.traced());
        }
        let seconds = self.sampling.started.elapsed().as_secs_f64();
        Ok(self.observer.on_event(self.chain, Event::Sweep(Sweep { index, draw, seconds, log_joint, n_clusters })))
    }
}
