//! Samplers of partitions with the components integrated out. Their chains keep all rows in memory, in `f64`, and a
//! cache for each cluster.

use std::fmt::Debug;

use crate::error::{Error, Result};
use crate::likelihood;
use crate::mcmc::learned_base::traced;
use crate::mcmc::samplers::{Chain, Chains, Setup, is_sound};
use crate::mcmc::tree_guided::is_forest;
use crate::mcmc::{ChainState, Info, Sampler, StartLabels, Target, Turn};
use crate::model::{Named, Specification};
use crate::parallel::Cancel;
use crate::process::Hyperparameters;
use crate::rng::Generator;
use crate::room::check_room;
use crate::suffstats::Sufficient;

/// A sampler whose steps leave the posterior of partitions, given auxiliary values and learned parameters, invariant.
pub trait Collapsed: Debug + Send + Sync {
    /// Builds data shared by all chains, once, before they run.
    ///
    /// # Errors
    /// [`Error::Numerical`], [`Error::Cancelled`].
    fn prepare(&mut self, _target: &Target, _seed: u64, _cancel: &Cancel) -> Result<()> {
        Ok(())
    }

    /// Runs one sweep. After an error the state may be incomplete.
    ///
    /// # Errors
    /// [`Error::Numerical`], [`Error::Cancelled`].
    fn step(&self, state: &mut ChainState, turn: &mut Turn<'_>) -> Result<Vec<Info>>;

    /// Refuses a target for which the steps of this many chains at once do not fit in memory.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for `sampler`.
    fn check_room(&self, _target: &Target, _at_once: usize) -> Result<()> {
        Ok(())
    }

    /// See [`Sampler::check`].
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] naming the parameter.
    fn check(&self, n_rows: usize) -> Result<()>;
}

impl<S: Collapsed> Sampler for S {
    fn check(&self, n_rows: usize) -> Result<()> {
        Collapsed::check(self, n_rows)
    }

    /// Rows join and leave clusters one by one, or cluster by cluster.
    fn check_model(&self, specification: &Specification) -> Result<()> {
        let Named { name, parameters } = &specification.likelihood;
        likelihood::check_urns(name, parameters, "BlockedGibbs() or Slice(), or ")?;
        specification.partitions().map(|_| ())
    }

    fn chains<'a>(&'a mut self, setup: Setup<'a>) -> Result<Box<dyn Chains + 'a>> {
        let Setup { grounds, rows, starts, seed, cancel } = setup;
        let target = grounds.target(rows)?;
        let starts = StartLabels::new(starts, seed, |start, seed| start.labels(&target, seed, cancel))?;
        self.prepare(&target, seed, cancel)?;
        Ok(Box::new(CollapsedChains { target, sampler: self, starts }))
    }
}

/// All chains of one sampler on one target.
#[derive(Debug)]
pub struct CollapsedChains<'a> {
    /// The target.
    pub target: Target,
    /// The sampler, prepared for it.
    pub sampler: &'a dyn Collapsed,
    /// The labels with which chains start.
    pub starts: StartLabels,
}

impl CollapsedChains<'_> {
    /// A chain in this state.
    pub fn chain(&self, state: ChainState) -> CollapsedChain<'_> {
        CollapsedChain { chains: self, own: None, state }
    }
}

impl Chains for CollapsedChains<'_> {
    fn n_rows(&self) -> usize {
        self.target.n_rows()
    }

    fn dimension(&self) -> usize {
        self.target.table.dimension()
    }

    fn process(&self) -> &dyn Hyperparameters {
        self.target.process.as_ref()
    }

    fn starts(&self) -> &StartLabels {
        &self.starts
    }

    fn check_room(&self, n_chains: usize, at_once: usize) -> Result<()> {
        let clusters = self.starts.most_clusters();
        let of_one = self.target.empty.len() + self.target.lane_len;
        check_room(of_one.saturating_mul(clusters).saturating_mul(n_chains), |size| {
            let found = format!("a start of {clusters} clusters, whose statistics in {n_chains} chains take {size}");
            Error::invalid("init", found, "a start whose clusters fit in memory, such as \"single\"")
        })?;
        self.sampler.check_room(&self.target, at_once)
    }

    fn start(&self, chain: usize) -> Result<Box<dyn Chain + '_>> {
        Ok(Box::new(self.chain(ChainState::new(&self.target, self.starts.of(chain))?)))
    }

    fn restore(&self, bytes: &[u8]) -> Option<Box<dyn Chain + '_>> {
        let mut state: ChainState = postcard::from_bytes(bytes).ok()?;
        let ChainState { clusters, process, trees, learned } = &state;
        let fits = clusters.fits(&self.target)
            && (trees.is_empty() || is_forest(trees, clusters.slots()))
            && is_sound(process, self.target.process.as_ref(), *learned, self.target.learned.as_ref());
        if !fits {
            return None;
        }
        let value = self.target.learned.as_ref().zip(*learned);
        let own = value.map(|(learned, value)| self.target.at(learned, value)).transpose().ok()?;
        state.refresh(own.as_ref().unwrap_or(&self.target));
        Some(Box::new(CollapsedChain { own, ..self.chain(state) }))
    }
}

/// A chain of a collapsed sampler.
#[derive(Debug)]
pub struct CollapsedChain<'a> {
    chains: &'a CollapsedChains<'a>,
    /// The target at the learned value, once it has left its start.
    own: Option<Target>,
    state: ChainState,
}

impl CollapsedChain<'_> {
    fn target(&self) -> &Target {
        self.own.as_ref().unwrap_or(&self.chains.target)
    }

    /// Draws the learned parameter of the base measure given the partition.
    fn learn(&mut self, draws: &mut Generator) -> Result<()> {
        let (target, state) = (self.own.as_ref().unwrap_or(&self.chains.target), &mut self.state);
        if let (Some(learned), Some(value)) = (&target.learned, &mut state.learned) {
            let summaries = state.clusters.summaries(target);
            let clusters: Vec<_> =
                summaries.iter().map(|(count, statistics)| Sufficient { count: *count, statistics }).collect();
            *value = learned.update(*value, &clusters, draws);
            let own = target.at(learned, *value)?;
            state.clusters.recache(&own)?;
            state.refresh(&own);
            self.own = Some(own);
        }
        Ok(())
    }
}

impl Chain for CollapsedChain<'_> {
    /// Updates the partition, then auxiliary values and learned parameters.
    fn sweep(&mut self, draws: &mut Generator, _key: u64, cancel: &Cancel) -> Result<Vec<Info>> {
        let target = self.own.as_ref().unwrap_or(&self.chains.target);
        let state = &mut self.state;
        let infos = self.chains.sampler.step(state, &mut Turn { target, draws, cancel })?;
        let before = state.process;
        target.process.update(&state.clusters.sizes(), &mut state.process, draws);
        if state.process != before {
            state.refresh(target);
        }
        self.learn(draws)?;
        Ok(infos)
    }

    fn write_labels(&self, out: &mut [i32]) {
        self.state.clusters.write_labels(out);
    }

    fn n_clusters(&self) -> usize {
        self.state.clusters.n_clusters()
    }

    fn traced(&self) -> Vec<f64> {
        traced(self.target().process.as_ref(), &self.state.process, self.state.learned)
    }

    fn log_joint(&self) -> Result<f64> {
        self.state.log_joint(self.target())
    }

    fn save(&self) -> Result<Vec<u8>> {
        postcard::to_stdvec(&self.state).map_err(|error| Error::Format { message: error.to_string() })
    }
}
