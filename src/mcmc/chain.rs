//! Chains, side by side, and the one loop over sweeps.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::mcmc::{ChainState, Info, Sampler, Target, Turn};
use crate::parallel::{Cancel, side_by_side};
use crate::rng::{Purpose, key, stream};

/// How long chains run, and what they keep.
#[derive(Debug, Clone, Copy)]
pub struct ChainPlan {
    /// Draws that each chain keeps.
    pub draws: usize,
    /// Sweeps before the first draw.
    pub warmup: usize,
    /// Sweeps from one draw to the next.
    pub thin: usize,
    /// Number of chains.
    pub chains: usize,
    /// The seed of all chains.
    pub seed: u64,
    /// Time after which no further sweep begins.
    pub limit: Option<Duration>,
}

impl ChainPlan {
    /// Sweeps of one chain.
    pub fn n_sweeps(&self) -> usize {
        self.warmup.saturating_add(self.draws.saturating_mul(self.thin))
    }

    /// The draw that sweep number `sweep` makes, if it makes one.
    fn draw_of(&self, sweep: usize) -> Option<usize> {
        let behind = (sweep + 1).checked_sub(self.warmup)?;
        (behind > 0 && behind.is_multiple_of(self.thin)).then(|| behind / self.thin - 1)
    }
}

/// What a chain tells after a sweep.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sweep {
    /// The chain, from 0.
    pub chain: usize,
    /// The sweep, from 0, warm-up included.
    pub index: usize,
    /// The draw that it made, from 0.
    pub draw: Option<usize>,
    /// Seconds that the chain has run.
    pub seconds: f64,
    /// log p(X, partition | hyper-parameters), nats; NaN where nobody asked for it.
    pub log_joint: f64,
    /// Number of clusters.
    pub n_clusters: usize,
}

/// Sees one chain from outside.
pub trait ChainObserver {
    /// Whether it wants to see a sweep that makes no draw.
    fn wants_sweep(&mut self) -> bool {
        false
    }
    /// A sweep is complete; `true` ends all chains.
    fn on_sweep(&mut self, _sweep: &Sweep) -> bool {
        false
    }
    /// Whether it wants a checkpoint now; `last`: whether the chain has ended.
    fn wants_checkpoint(&mut self, _last: bool) -> bool {
        false
    }
    /// The checkpoint that it wanted.
    fn on_checkpoint(&mut self, _bytes: Vec<u8>) {}
}

/// Sees nothing.
impl ChainObserver for () {}

/// Makes the observer of each chain.
pub trait ChainWatcher: Sync {
    /// The observer of a chain.
    fn observer(&self, chain: usize) -> Box<dyn ChainObserver + '_>;
}

/// Watches nothing.
impl ChainWatcher for () {
    fn observer(&self, _chain: usize) -> Box<dyn ChainObserver + '_> {
        Box::new(())
    }
}

/// Draws of one chain, without the partitions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ChainDraws {
    /// log p(X, partition | hyper-parameters) of each draw, nats.
    pub log_joint: Vec<f64>,
    /// Number of clusters of each draw.
    pub n_clusters: Vec<u32>,
    /// Values that the process reports, one draw after another.
    pub traced: Vec<f64>,
    /// Seconds that the chain ran, warm-up included.
    pub seconds: f64,
    /// Proposals after the warm-up: name, how many, how many accepted.
    pub proposals: Vec<(String, u64, u64)>,
}

impl ChainDraws {
    fn count(&mut self, infos: &[Info]) {
        for info in infos {
            let known = self.proposals.iter_mut().find(|(name, ..)| name == info.name);
            match known {
                Some((_, proposed, accepted)) => {
                    *proposed += info.proposed;
                    *accepted += info.accepted;
                }
                None => self.proposals.push((info.name.to_owned(), info.proposed, info.accepted)),
            }
        }
    }
}

/// Chains of one sampler on one target.
pub struct Sampling<'a> {
    /// What is sampled.
    pub target: &'a Target,
    /// How.
    pub sampler: &'a dyn Sampler,
    /// The labels that chains start from, one a row.
    pub labels: &'a [u32],
    /// How long.
    pub plan: ChainPlan,
    /// When the chains began.
    pub started: Instant,
}

impl Sampling<'_> {
    /// Runs all chains; `partitions` takes their labels, (chains, draws, n). A chain that is interrupted, or runs out
    /// of time, returns the draws that it has.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] before any sweep; [`Error::Numerical`]; [`Error::Cancelled`] where some chain has no
    /// draw yet.
    pub fn run(&self, partitions: &mut [i32], watcher: &dyn ChainWatcher, cancel: &Cancel) -> Result<Vec<ChainDraws>> {
        let n = self.target.n_rows();
        self.sampler.check(n)?;
        let start = ChainState::new(self.target, self.labels)?;
        let rooms: Vec<_> = partitions.chunks_mut(self.plan.draws * n).map(|room| Mutex::new(Some(room))).collect();
        let outcomes = side_by_side(self.plan.chains, |chain| {
            let room = rooms[chain].lock().ok().and_then(|mut room| room.take()).unwrap_or_default();
            let mut observer = watcher.observer(chain);
            let run = ChainRun { sampling: self, chain, cancel, draws: ChainDraws::default(), room };
            let outcome = run.sweep_on(start.clone(), observer.as_mut());
            // The others need not go on in vain.
            if outcome.is_err() {
                cancel.cancel();
            }
            outcome
        })?;
        let first = outcomes.iter().find_map(|outcome| outcome.as_ref().err().filter(|e| **e != Error::Cancelled));
        if let Some(error) = first {
            return Err(error.clone());
        }
        let draws = outcomes.into_iter().collect::<Result<Vec<_>>>()?;
        match draws.iter().map(|chain| chain.log_joint.len()).min() {
            Some(0) if cancel.check().is_ok() => {
                let found = format!("{:?}, before the first draw", self.plan.limit.unwrap_or_default());
                Err(Error::invalid("max_seconds", found, "enough for the warm-up and one draw"))
            }
            Some(0) => Err(Error::Cancelled),
            _ => Ok(draws),
        }
    }
}

/// One chain while it runs.
struct ChainRun<'a> {
    sampling: &'a Sampling<'a>,
    chain: usize,
    cancel: &'a Cancel,
    draws: ChainDraws,
    /// Where the labels of its draws go, (draws, n).
    room: &'a mut [i32],
}

impl ChainRun<'_> {
    /// Sweeps until the plan is done or something stops it.
    fn sweep_on(mut self, mut state: ChainState, observer: &mut dyn ChainObserver) -> Result<ChainDraws> {
        let plan = self.sampling.plan;
        let mut sweep = 0;
        // only-one: loop over sweeps
        while sweep < plan.n_sweeps() {
            if plan.limit.is_some_and(|limit| self.sampling.started.elapsed() >= limit) {
                break;
            }
            match self.advance(&mut state, sweep) {
                Ok(infos) if sweep >= plan.warmup => self.draws.count(&infos),
                Ok(_) => {}
                Err(Error::Cancelled) => break,
                Err(error) => return Err(error),
            }
            if self.report(&state, sweep, observer)? {
                self.cancel.cancel();
            }
            sweep += 1;
        }
        self.draws.seconds = self.sampling.started.elapsed().as_secs_f64();
        Ok(self.draws)
    }

    /// One sweep: the partition, then auxiliary values and learned parameters. Its random stream depends on the seed,
    /// the chain and the sweep alone.
    fn advance(&self, state: &mut ChainState, sweep: usize) -> Result<Vec<Info>> {
        let Sampling { target, sampler, plan, .. } = self.sampling;
        let mut generator = stream(key(plan.seed, [self.chain as u64]), Purpose::Sweeps, sweep as u64);
        self.cancel.check()?;
        let infos = sampler.step(state, &mut Turn { target, draws: &mut generator, cancel: self.cancel })?;
        let before = state.process;
        target.process.update(&state.clusters.sizes(), &mut state.process, &mut generator);
        if state.process != before {
            state.refresh(target);
        }
        Ok(infos)
    }

    /// Keeps the draw that the sweep makes, and tells of the sweep; whether an observer asks to stop.
    fn report(&mut self, state: &ChainState, index: usize, observer: &mut dyn ChainObserver) -> Result<bool> {
        let (target, draw) = (self.sampling.target, self.sampling.plan.draw_of(index));
        if draw.is_none() && !observer.wants_sweep() {
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
        Ok(observer.on_sweep(&Sweep { chain: self.chain, index, draw, seconds, log_joint, n_clusters }))
    }
}
