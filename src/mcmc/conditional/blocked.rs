//! Blocked Gibbs sampling of a truncated process (Ishwaran & James 2001; mathematics 8.11).

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::likelihood;
use crate::mcmc::conditional::field::Field;
use crate::mcmc::conditional::{COLLAPSED, ConditionalChains, DrawnWeights, LabelState, WeightDraws};
use crate::mcmc::{Chains, Info, Sampler, Setup};
use crate::model::{Named, Specification};
use crate::parameters::Parameters;
use crate::process::{self, Exchangeable, Stick, Sticks, draw_sticks, least_truncation, log_weights};
use crate::registry::{DefaultValue, Entry, Parameter, ParameterKind};
use crate::rng::{Draws, Generator};

/// Draws weights and parameters of a fixed number of components, then all labels.
#[derive(Debug, Clone, Copy, Default)]
pub struct BlockedGibbs {
    /// Number of components of a process that has infinitely many; `None` for the default.
    truncation: Option<usize>,
}

const TRUNCATION: Parameter = Parameter::new("truncation", ParameterKind::integer_from(1), DefaultValue::Data);

/// Bound on the change of the probability of the rows by the default truncation.
const ERROR: f64 = 1e-4;
/// The largest default truncation.
const MOST: usize = 2_000;

impl BlockedGibbs {
    /// Entry in the registry.
    pub const ENTRY: Entry = Entry { parameters: &[TRUNCATION], ..Entry::new("BlockedGibbs") };

    /// Builds the sampler from the parameters of [`BlockedGibbs::ENTRY`].
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] naming the parameter.
    pub fn new(parameters: &Parameters) -> Result<Self> {
        parameters.check(&Self::ENTRY)?;
        Ok(Self { truncation: parameters.optional_integer(&TRUNCATION)? })
    }

    /// The weights of a process, if it has any that can be drawn at once. By default there are at least half as many
    /// components again as the start has clusters.
    fn weighing(self, named: &Named, n: usize, n_clusters: usize) -> Result<Box<dyn WeightDraws>> {
        let process = process::build(&named.name, &named.parameters)?;
        if let Some(process) = process.clone().shares() {
            let n_components = process.n_components().unwrap_or(1);
            if let Some(truncation) = self.truncation {
                let reason = format!("its number of components is {n_components}");
                let found = format!("truncation={truncation} with {}", named.name);
                return Err(Error::not_supported(TRUNCATION.name, found, reason, "None"));
            }
            return Ok(Box::new(FixedComponents { process, n_components }));
        }
        let Some(process) = process.clone().sticks() else {
            let found = format!("BlockedGibbs with {}", named.name);
            let reason = "its weights are not pieces of a stick that could be truncated";
            let allowed = if process.jumps().is_some() { "Slice()" } else { COLLAPSED };
            return Err(Error::not_supported("sampler", found, reason, allowed));
        };
        let default = || {
            let least = least_truncation(process.as_ref(), process.start(false)?, n, ERROR, MOST);
            let too_many = || {
                let found = format!("None, for which the rows need more than {MOST} components");
                let allowed = "a number of components, or Slice(), which needs none";
                Error::invalid(TRUNCATION.name, found, allowed)
            };
            Ok(least.ok_or_else(too_many)?.max(n_clusters + n_clusters.div_ceil(2)))
        };
        let n_components = self.truncation.map_or_else(default, Ok)?;
        Ok(Box::new(Truncated { process, n_components }))
    }
}

impl Sampler for BlockedGibbs {
    fn check(&self, _n_rows: usize) -> Result<()> {
        Ok(())
    }

    /// A process that needs too many components for one row needs them for all.
    fn check_model(&self, specification: &Specification) -> Result<()> {
        let Named { name, parameters } = &specification.likelihood;
        likelihood::check_closed(name, parameters)?;
        specification.law()?;
        self.weighing(&specification.process, 1, 1).map(|_| ())
    }

    fn chains<'a>(&'a mut self, setup: Setup<'a>) -> Result<Box<dyn Chains + 'a>> {
        let field = Field::new(setup.grounds, setup.rows)?;
        let starts = field.labels(setup.starts, setup.seed, setup.cancel)?;
        let process = &setup.grounds.specification.process;
        let weighing = self.weighing(process, field.n_rows(), starts.most_clusters())?;
        Ok(Box::new(ConditionalChains { field, weighing, starts }))
    }
}

/// Sticks of which the last one takes all that is left.
#[derive(Debug)]
struct Truncated {
    process: Arc<dyn Sticks>,
    n_components: usize,
}

/// The label of the rows of each component: as before, and none beyond the labels.
fn same_labels(state: &LabelState, n_components: usize) -> Vec<Option<usize>> {
    (0..n_components).map(|k| (k < state.counts.len()).then_some(k)).collect()
}

impl WeightDraws for Truncated {
    fn weigh(&self, state: &mut LabelState, draws: &mut Generator, _key: u64) -> Result<DrawnWeights<'_>> {
        let mut counts = state.counts.clone();
        counts.resize(self.n_components, 0.0);
        let process = self.process.as_ref();
        let of_last = counts.split_off(self.n_components - 1)[0];
        // Sticks behind the last row have their prior, which says nothing of learned parameters.
        let occupied = &counts[..counts.len().min(state.counts.len())];
        process.update_given_counts(occupied, of_last, &mut state.process, draws);
        let mut sticks = draw_sticks(process, &counts, of_last, &state.process, draws);
        sticks.push(Stick::LAST);
        let sources = same_labels(state, self.n_components);
        Ok(DrawnWeights { sources, log_weights: log_weights(&sticks), slices: None, sticks: Some((process, sticks)) })
    }

    fn n_components(&self) -> Option<usize> {
        Some(self.n_components)
    }

    /// Sweeps in which the last tenth of the components has rows: the truncation then matters.
    fn report(&self, counts: &[f64]) -> Option<Info> {
        let tenth = self.n_components - self.n_components.div_ceil(10);
        let is_reached = counts.iter().skip(tenth).any(|&count| count > 0.0);
        Some(Info::of_draws("last_tenth", 1, u64::from(is_reached)))
    }
}

/// A fixed number of exchangeable components.
#[derive(Debug)]
struct FixedComponents {
    process: Arc<dyn Exchangeable>,
    n_components: usize,
}

impl WeightDraws for FixedComponents {
    fn weigh(&self, state: &mut LabelState, draws: &mut Generator, _key: u64) -> Result<DrawnWeights<'_>> {
        let count = |k: usize| state.counts.get(k).copied().unwrap_or(0.0);
        // Weights that are not normalised have the same ratios.
        let log_weights = (0..self.n_components).map(|k| draws.log_gamma(self.process.share() + count(k))).collect();
        Ok(DrawnWeights { sources: same_labels(state, self.n_components), log_weights, slices: None, sticks: None })
    }

    fn n_components(&self) -> Option<usize> {
        Some(self.n_components)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcmc::conditional::tests::{check_sticks, large};

    #[test]
    fn sticks_follow_the_concentration_that_the_sweep_has_drawn() {
        let process = large();
        let built = process::build(&process.name, &process.parameters).expect("valid");
        check_sticks(
            &Truncated { process: built.sticks().expect("of a Dirichlet process"), n_components: 40 },
            &process,
        );
    }
}
