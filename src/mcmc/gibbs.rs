//! Collapsed Gibbs sampling (Neal 2000, algorithm 3): each row in turn leaves its cluster and joins one drawn from its
//! conditional distribution given all other rows.

use pulp::{Simd, WithSimd};

use crate::error::{Error, Result};
use crate::mcmc::samplers::{SUBSET, check_subset};
use crate::mcmc::{ChainState, Collapsed, Info, Turn};
use crate::parameters::Parameters;
use crate::registry::Entry;
use crate::simd::Instructions;
use crate::special::exp_of_nonpositive;

/// Visits all rows in order, or a uniform subset. The choice of rows does not depend on the state, so every sweep
/// leaves the posterior invariant.
#[derive(Debug, Clone, Copy, Default)]
pub struct CollapsedGibbs {
    /// Number of rows per sweep, drawn anew each time; `None` for all rows.
    pub subset: Option<usize>,
}

/// Number of rows between two checks for cancellation.
const BETWEEN_LOOKS: usize = 256;

impl CollapsedGibbs {
    /// Entry in the registry.
    pub const ENTRY: Entry = Entry { parameters: &[SUBSET], ..Entry::new("CollapsedGibbs") };

    /// Builds the sampler from the parameters of [`CollapsedGibbs::ENTRY`].
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] naming the parameter.
    pub fn new(parameters: &Parameters) -> Result<Self> {
        parameters.check(&Self::ENTRY)?;
        Ok(Self { subset: parameters.optional_integer(&SUBSET)? })
    }
}

impl Collapsed for CollapsedGibbs {
    fn step(&self, state: &mut ChainState, turn: &mut Turn<'_>) -> Result<Vec<Info>> {
        let n = turn.target.n_rows();
        let rows = match self.subset {
            None => (0..n as u32).collect(),
            Some(size) => turn.draws.subset(n, size),
        };
        let mut space = Vec::new();
        let mut n_moved = 0;
        for (visit, &row) in rows.iter().enumerate() {
            if visit % BETWEEN_LOOKS == 0 {
                turn.cancel.check()?;
            }
            n_moved += u64::from(visit_row(state, turn, row, &mut space)?);
        }
        Ok(vec![Info::of_draws("gibbs", rows.len(), n_moved)])
    }

    fn check(&self, n_rows: usize) -> Result<()> {
        check_subset(self.subset, n_rows)
    }
}

/// Exponentiates log weights relative to the largest; returns false if no weight is finite. Works on whole groups of
/// eight, so that no scalar remainder loop is needed.
struct Exponentials<'a>(&'a mut [[f64; 8]]);

impl WithSimd for Exponentials<'_> {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> bool {
        let mut parts = [f64::NEG_INFINITY; 8];
        for eight in &*self.0 {
            for (part, &value) in parts.iter_mut().zip(eight) {
                *part = if value > *part { value } else { *part };
            }
        }
        let most = parts.into_iter().fold(f64::NEG_INFINITY, |most, value| if value > most { value } else { most });
        for eight in self.0 {
            for value in eight {
                *value = exp_of_nonpositive(*value - most);
            }
        }
        most.is_finite()
    }
}

/// Redraws the cluster of one row from its conditional distribution. Returns whether the partition changed.
fn visit_row(state: &mut ChainState, turn: &mut Turn<'_>, row: u32, space: &mut Vec<[f64; 8]>) -> Result<bool> {
    let slot = state.clusters.slot(row) as usize;
    if let Some(n_options) = state.weigh_within(turn.target, row, space) {
        let choice = choose(space, n_options, turn, row)?;
        if choice == slot {
            return Ok(false);
        }
        state.take_out(turn.target, row)?;
        return state.put_in(turn.target, row, choice);
    }
    state.take_out(turn.target, row)?;
    let n_options = state.weigh(turn.target, row, space)?;
    let choice = choose(space, n_options, turn, row)?;
    state.put_in(turn.target, row, choice)
}

/// Draws one of the options given their log weights.
pub(super) fn choose(log_weights: &mut [[f64; 8]], n_options: usize, turn: &mut Turn<'_>, row: u32) -> Result<usize> {
    log_weights.as_flattened_mut()[n_options..].fill(f64::NEG_INFINITY);
    if !Instructions::widest().run(Exponentials(log_weights)) {
        return Err(Error::numerical(None, format!("no cluster has a finite density of row {row}; rescale the data")));
    }
    Ok(turn.draws.choose(&log_weights.as_flattened()[..n_options]))
}
