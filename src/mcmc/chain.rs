//! Runs chains concurrently; contains the only loop over sweeps.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::events::{Event, Observer, Sweep};
use crate::identity::Identity;
use crate::mcmc::samplers::{Chain, Chains};
use crate::mcmc::{Attempts, Info};
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
pub(super) struct SavedChain {
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
        let begin = |_| {
            let state = self.chains.start()?;
            Ok(ChainStart { state, sweep: 0, draws: ChainDraws::default(), labels: Vec::new() })
        };
        let starts = resumed.map_or_else(|| (0..self.plan.chains).map(begin).collect::<Result<_>>(), Ok)?;
        let most = AtomicUsize::new(self.plan.draws);
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

    fn finish(&self, chains: Vec<ChainRun<'_>>, cancel: &Cancel) -> Result<Sampled> {
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
            (_, error) => Ok(Sampled { draws, error }),
        }
    }
}

/// The draws of all chains, and the error that ended them early, if one did.
#[derive(Debug)]
pub struct Sampled {
    /// The draws of each chain, at least one.
    pub draws: Vec<ChainDraws>,
    /// What ended the chains.
    pub error: Option<Error>,
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
        self.outcome.is_ok() && self.draws.log_joint.len() < self.most.load(Ordering::Relaxed)
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
