//! Conditional samplers (mathematics 8.11): weights and parameters of components are drawn given the labels, and then
//! the labels of all rows at once, in one local step. Rows are read where they are.

mod blocked;
mod field;
mod labels;
mod slice;
mod state;

use std::fmt::Debug;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::likelihood::{ComponentStreams, Likelihood};
use crate::local_step::{ByDraw, Slices};
use crate::mcmc::learned_base::traced;
use crate::mcmc::{Chain, Chains, Info, StartLabels};
use crate::parallel::{Cancel, n_threads};
use crate::process::{Hyperparameters, Stick, Sticks};
use crate::rng::{Generator, Purpose, key};
use crate::room::check_room;

pub use blocked::BlockedGibbs;
pub(super) use field::{Field, PassSpace};
pub use slice::Slice;
use state::LabelState;

/// The samplers that need no weights.
const COLLAPSED: &str = "CollapsedGibbs(), SplitMerge() or TreeGuided()";

/// Weights drawn for the components of a sweep.
struct DrawnWeights<'a> {
    /// For each component, the label of its rows before the sweep, if it has rows.
    sources: Vec<Option<usize>>,
    /// Log weights, nats; with slices, divided by the levels.
    log_weights: Vec<f64>,
    /// What limits the components of each row.
    slices: Option<Slices>,
    /// The sticks, if the order of the labels has a meaning. Otherwise components without rows are forgotten.
    sticks: Option<(&'a dyn Sticks, Vec<Stick>)>,
}

/// How a sampler draws weights.
trait WeightDraws: Debug + Send + Sync {
    /// Draws the weights of all components that rows may belong to, and learned parameters.
    ///
    /// # Errors
    /// [`Error::Numerical`] for more components than a sweep can have.
    fn weigh(&self, state: &mut LabelState, draws: &mut Generator, key: u64) -> Result<DrawnWeights<'_>>;

    /// The number of components, if it is fixed.
    fn n_components(&self) -> Option<usize>;

    /// Counts that the sampler reports besides its moves, given the sizes of components by label.
    fn report(&self, _counts: &[f64]) -> Option<Info> {
        None
    }
}

/// All chains of one conditional sampler on some rows.
struct ConditionalChains<'a> {
    field: Field<'a>,
    weighing: Box<dyn WeightDraws>,
    /// The labels with which chains start.
    starts: StartLabels,
}

impl ConditionalChains<'_> {
    /// Refuses a start with more clusters than the sampler has components.
    fn check_size(&self, n_clusters: usize) -> Result<()> {
        match self.weighing.n_components() {
            Some(most) if n_clusters > most => Err(Error::invalid(
                "init",
                format!("one of {n_clusters} clusters"),
                format!("a partition into at most {most}, the number of components of the sampler"),
            )),
            _ => Ok(()),
        }
    }

    fn chain(&self, state: LabelState) -> Result<Box<dyn Chain + '_>> {
        let likelihood = self.field.likelihood_at(state.learned)?;
        Ok(Box::new(ConditionalChain { chains: self, likelihood, state, space: PassSpace::default() }))
    }
}

impl Chains for ConditionalChains<'_> {
    fn n_rows(&self) -> usize {
        self.field.n_rows()
    }

    fn dimension(&self) -> usize {
        self.field.likelihood.dimension()
    }

    fn process(&self) -> &dyn Hyperparameters {
        self.field.law.hyperparameters()
    }

    fn starts(&self) -> &StartLabels {
        &self.starts
    }

    fn check_room(&self, n_chains: usize, _at_once: usize) -> Result<()> {
        let n_clusters = self.starts.most_clusters();
        self.check_size(n_clusters)?;
        let k = self.weighing.n_components().unwrap_or(n_clusters);
        self.field.check_room(k, n_chains)
    }

    fn start(&self, chain: usize) -> Result<Box<dyn Chain + '_>> {
        self.chain(LabelState::new(&self.field, self.starts.of(chain))?)
    }

    fn restore(&self, bytes: &[u8]) -> Option<Box<dyn Chain + '_>> {
        let state: LabelState = postcard::from_bytes(bytes).ok()?;
        let fits = state.fits(&self.field) && self.check_size(state.counts.len()).is_ok();
        if fits { self.chain(state).ok() } else { None }
    }
}

/// Refuses components whose numbers do not fit in memory.
///
/// # Errors
/// [`Error::Numerical`].
fn check_sweep(n_numbers: usize, n_components: usize) -> Result<()> {
    check_room(n_numbers, |size| {
        let way_out = "use CollapsedGibbs() where it runs, fewer columns, or a smaller concentration, discount or mass";
        Error::numerical(None, format!("a sweep with {n_components} components takes {size}; {way_out}"))
    })
}

/// A chain of a conditional sampler.
struct ConditionalChain<'a> {
    chains: &'a ConditionalChains<'a>,
    /// At the learned value.
    likelihood: Arc<dyn Likelihood<f64>>,
    state: LabelState,
    space: PassSpace,
}

impl ConditionalChain<'_> {
    /// Draws the learned parameter of the base measure given the labels.
    fn learn(&mut self, draws: &mut Generator) -> Result<()> {
        let (field, state) = (&self.chains.field, &mut self.state);
        if let Some((learned, value)) = field.learned.as_ref().zip(state.learned) {
            let nothing = vec![0.0; field.likelihood.n_statistics()];
            let clusters: Vec<_> = state.occupied().into_iter().map(|k| state.component(Some(k), &nothing)).collect();
            let drawn = learned.update(value, &clusters, draws);
            state.learned = Some(drawn);
            self.likelihood = learned.likelihood(drawn)?;
        }
        Ok(())
    }
}

impl Chain for ConditionalChain<'_> {
    fn sweep(&mut self, draws: &mut Generator, key_of_sweep: u64, cancel: &Cancel) -> Result<Vec<Info>> {
        self.learn(draws)?;
        let ConditionalChains { field, weighing, .. } = self.chains;
        let state = &mut self.state;
        let DrawnWeights { sources, log_weights, slices, sticks } = weighing.weigh(state, draws, key_of_sweep)?;
        check_sweep(field.size_of(sources.len()).saturating_mul(n_threads()), sources.len())?;
        cancel.check()?;
        let scorer = {
            let nothing = vec![0.0; field.likelihood.n_statistics()];
            let components: Vec<_> = sources.iter().map(|source| state.component(*source, &nothing)).collect();
            self.likelihood.drawn_scorer(&components, &log_weights, ComponentStreams { key: key_of_sweep, cancel })?
        };
        cancel.check()?;
        let (labels, slices) = (&state.labels[..], slices.as_ref());
        let rows_key = key(key_of_sweep, [Purpose::Rows as u64]);
        let assign = ByDraw::new(scorer.as_ref(), labels, rows_key, slices);
        let summary = field.pass(&assign, sources.len(), &mut self.space, cancel)?;
        let mut infos = vec![Info::of_draws("gibbs", field.n_rows(), assign.n_moved())];
        state.take(summary);
        infos.extend(weighing.report(&state.counts));
        match sticks {
            Some((process, sticks)) => {
                let is_truncated = weighing.n_components().is_some();
                let (order, moves) = labels::reorder(process, state, sticks, is_truncated, draws);
                infos.extend(moves);
                state.arrange(&order)?;
            }
            None => state.arrange(&state.occupied())?,
        }
        Ok(infos)
    }

    fn write_labels(&self, out: &mut [i32]) {
        self.state.write_labels(out);
    }

    fn n_clusters(&self) -> usize {
        self.state.n_clusters()
    }

    fn traced(&self) -> Vec<f64> {
        traced(self.chains.field.law.hyperparameters(), &self.state.process, self.state.learned)
    }

    fn log_joint(&self) -> Result<f64> {
        self.state.log_joint(&self.chains.field, self.likelihood.as_ref())
    }

    fn save(&self) -> Result<Vec<u8>> {
        postcard::to_stdvec(&self.state).map_err(|error| Error::Format { message: error.to_string() })
    }
}

#[cfg(test)]
mod tests;
