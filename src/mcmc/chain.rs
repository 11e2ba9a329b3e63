//! Runs chains concurrently; contains the only loop over sweeps.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::events::{Event, Observer, Sweep};
use crate::identity::Identity;
use crate::mcmc::clusters::n_distinct;
use crate::mcmc::{Attempts, ChainState, Info, Sampler, Target, Turn};
use crate::parallel::{Cancel, for_each, n_threads};
use crate::rng::{Purpose, key, stream};
use crate::room::check_room;

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
    /// The current state.
    pub state: ChainState,
    /// Number of complete sweeps.
    pub sweep: usize,
    /// Draws so far, without partitions.
    pub draws: ChainDraws,
    /// Labels of the draws, (draws, n).
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

/// A run of chains of one sampler on one target.
pub struct Sampling<'a> {
    /// The target.
    pub target: &'a Target,
    /// The sampler.
    pub sampler: &'a dyn Sampler,
    /// The initial labels of all chains, one per row.
    pub labels: &'a [u32],
    /// Length of the chains.
    pub plan: ChainPlan,
    /// Start time of the chains.
    pub started: Instant,
    /// What a checkpoint says of the run.
    pub identity: Identity,
}

impl Sampling<'_> {
    /// Runs all chains and writes their labels to `partitions`, (chains, draws, n). A chain that is interrupted, or
    /// exceeds its time limit, returns the draws made so far.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] before any sweep; [`Error::Numerical`]; [`Error::Cancelled`] if some chain has no
    /// draw yet.
    pub fn run(
        &self,
        partitions: &mut [i32],
        resumed: Option<Vec<SavedChain>>,
        observer: &dyn Observer,
        cancel: &Cancel,
    ) -> Result<Vec<ChainDraws>> {
        let n = self.target.n_rows();
        self.sampler.check(n)?;
        self.check_room()?;
        let start = SavedChain {
            state: ChainState::new(self.target, self.labels)?,
            sweep: 0,
            draws: ChainDraws::default(),
            labels: Vec::new(),
        };
        let starts = resumed.unwrap_or_else(|| vec![start; self.plan.chains]);
        let most = AtomicUsize::new(self.plan.draws);
        let rooms = partitions.chunks_mut((self.plan.draws * n).max(1)).zip(starts).enumerate();
        let chain = |(chain, (room, start)): (usize, (_, SavedChain))| {
            let room: &mut [i32] = room;
            room[..start.labels.len()].copy_from_slice(&start.labels);
            let SavedChain { state, sweep, draws, .. } = start;
            ChainRun {
                sampling: self,
                chain,
                cancel,
                most: &most,
                state,
                sweep,
                draws,
                room,
                observer,
                outcome: Ok(()),
            }
        };
        let mut chains: Vec<ChainRun<'_>> = rooms.map(chain).collect();
        self.offer_checkpoint(&chains, observer, false)?;
        // Chains take turns, so that chains that share a thread have about equally many draws at any time.
        while chains.iter().any(ChainRun::goes_on) {
            for_each(chains.iter_mut().collect(), ChainRun::take_turn);
            if self.is_late() || cancel.check().is_err() || chains.iter().any(|chain| chain.outcome.is_err()) {
                break;
            }
            self.offer_checkpoint(&chains, observer, false)?;
        }
        self.offer_checkpoint(&chains, observer, true)?;
        self.finish(chains, cancel)
    }

    /// Refuses a start whose clusters, over all chains, do not fit in memory, and a sampler whose steps do not.
    fn check_room(&self) -> Result<()> {
        let (clusters, chains) = (n_distinct(self.labels), self.plan.chains);
        let of_one = self.target.empty.len() + self.target.lane_len;
        check_room(of_one.saturating_mul(clusters).saturating_mul(chains), |size| {
            let found = format!("a start of {clusters} clusters, whose statistics in {chains} chains take {size}");
            Error::invalid("init", found, "a start whose clusters fit in memory, such as \"single\"")
        })?;
        self.sampler.check_room(self.target, chains.min(n_threads()))
    }

    fn is_late(&self) -> bool {
        self.plan.limit.is_some_and(|limit| self.started.elapsed() >= limit)
    }

    /// Offers a checkpoint of all chains, unless one stopped within a sweep.
    fn offer_checkpoint(&self, chains: &[ChainRun<'_>], observer: &dyn Observer, last: bool) -> Result<()> {
        if chains.iter().all(|chain| chain.outcome.is_ok()) && observer.wants_checkpoint(last) {
            let saved: Vec<SavedChain> = chains.iter().map(ChainRun::saved).collect();
            let bytes = postcard::to_stdvec(&(&self.identity, saved))
                .map_err(|error| Error::Format { message: error.to_string() })?;
            observer.on_event(0, Event::Checkpoint(bytes));
        }
        Ok(())
    }

    fn finish(&self, chains: Vec<ChainRun<'_>>, cancel: &Cancel) -> Result<Vec<ChainDraws>> {
        let draws = chains.into_iter().map(|chain| match chain.outcome {
            Ok(()) | Err(Error::Cancelled) => Ok(chain.draws),
            Err(error) => Err(error),
        });
        let draws = draws.collect::<Result<Vec<_>>>()?;
        match draws.iter().map(|chain| chain.log_joint.len()).min() {
            Some(0) if cancel.check().is_ok() => {
                let found = format!("{} seconds", self.plan.limit.unwrap_or_default().as_secs_f64());
                Err(Error::invalid("max_seconds", found, "enough for the warm-up and the first draw"))
            }
            Some(0) => Err(Error::Cancelled),
            _ => Ok(draws),
        }
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
    state: ChainState,
    /// Number of complete sweeps.
    sweep: usize,
    draws: ChainDraws,
    /// Output for the labels of its draws, (draws, n).
    room: &'a mut [i32],
    observer: &'a dyn Observer,
    outcome: Result<()>,
}

impl ChainRun<'_> {
    fn goes_on(&self) -> bool {
        self.outcome.is_ok() && self.draws.log_joint.len() < self.most.load(Ordering::Relaxed)
    }

    fn saved(&self) -> SavedChain {
        let n_labels = self.draws.log_joint.len() * self.sampling.target.n_rows();
        let labels = self.room[..n_labels].to_vec();
        SavedChain { state: self.state.clone(), sweep: self.sweep, draws: self.draws.clone(), labels }
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

    /// Runs one sweep: updates the partition, then auxiliary values and learned parameters. Its random stream depends
    /// only on the seed, the chain and the sweep.
    fn advance(&mut self) -> Result<Vec<Info>> {
        let Sampling { target, sampler, plan, .. } = self.sampling;
        let mut generator = stream(key(plan.seed, [self.chain as u64]), Purpose::Sweeps, self.sweep as u64);
        self.cancel.check()?;
        let state = &mut self.state;
        let infos = sampler.step(state, &mut Turn { target, draws: &mut generator, cancel: self.cancel })?;
        let before = state.process;
        target.process.update(&state.clusters.sizes(), &mut state.process, &mut generator);
        if state.process != before {
            state.refresh(target);
        }
        Ok(infos)
    }

    /// Stores and reports the draw of the last sweep. Returns whether an observer requests a stop.
    fn report(&mut self) -> Result<bool> {
        let (target, index, state) = (self.sampling.target, self.sweep - 1, &self.state);
        let draw = self.sampling.plan.draw_of(index);
        if draw.is_none() && !self.observer.wants_progress(self.chain) {
            return Ok(false);
        }
        let (log_joint, n_clusters) = (state.log_joint(target)?, state.clusters.n_clusters());
        if let Some(draw) = draw {
            let n = target.n_rows();
            state.clusters.write_labels(&mut self.room[draw * n..][..n]);
            self.draws.log_joint.push(log_joint);
            self.draws.n_clusters.push(n_clusters as u32);
            self.draws.traced.extend(target.process.traced(&state.process).into_iter().map(|(_, value)| value));
        }
        let seconds = self.sampling.started.elapsed().as_secs_f64();
        Ok(self.observer.on_event(self.chain, Event::Sweep(Sweep { index, draw, seconds, log_joint, n_clusters })))
    }
}
