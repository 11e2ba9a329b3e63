//! The target of chains: the posterior of partitions of the rows under one model.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::likelihood::{Likelihood, Urn};
use crate::mcmc::RowTable;
use crate::mcmc::learned_base::{LearnedBase, split};
use crate::parallel::Cancel;
use crate::process::{Partitions, ProcessState};
use crate::rng::Draws;

/// A model with the rows to sample partitions of. It is constant while chains run.
#[derive(Debug)]
pub struct Target {
    pub(super) likelihood: Arc<dyn Likelihood<f64>>,
    /// The distribution over partitions.
    pub process: Arc<dyn Partitions>,
    /// The rows.
    pub table: Arc<RowTable>,
    /// Correction of log densities per row, to be subtracted: log of the volume, in the data's units, of one unit of
    /// volume in coordinates.
    pub log_volume: f64,
    /// The cache of a cluster without rows.
    pub empty: Vec<f64>,
    /// ln m of each row in a cluster of its own, nats.
    pub singles: Vec<f64>,
    /// See [`Urn::lane_len`].
    pub lane_len: usize,
    /// A parameter of the base measure that each chain learns.
    pub learned: Option<LearnedBase>,
}

/// The inputs of one step of a chain.
pub struct Turn<'a> {
    /// The target.
    pub target: &'a Target,
    /// Source of all random choices.
    pub draws: &'a mut dyn Draws,
    /// Checked during long steps.
    pub cancel: &'a Cancel,
}

impl Target {
    /// Builds a target from a likelihood with a closed marginal, a distribution over partitions, and rows.
    ///
    /// # Errors
    /// [`Error::NotSupported`] for a likelihood without a closed marginal; [`Error::Numerical`].
    pub fn new(
        likelihood: Arc<dyn Likelihood<f64>>,
        process: Arc<dyn Partitions>,
        table: impl Into<Arc<RowTable>>,
        log_volume: f64,
    ) -> Result<Self> {
        let table = table.into();
        let Some(urn) = likelihood.urn() else {
            let reason = "it has no closed marginal likelihood";
            return Err(Error::not_supported(
                "likelihood",
                "this likelihood for partitions of the rows",
                reason,
                "fit",
            ));
        };
        let mut empty = vec![0.0; urn.cache_len()];
        urn.clear(&mut empty)?;
        let mut singles = vec![0.0; table.n_rows()];
        for (row, single) in singles.iter_mut().enumerate() {
            urn.log_predictives(&empty, table.row(row), std::slice::from_mut(single))?;
        }
        if let Some(row) = singles.iter().position(|single| !single.is_finite()) {
            return Err(Error::numerical(
                None,
                format!("the density of row {row} under the base measure is not finite"),
            ));
        }
        let lane_len = urn.lane_len();
        Ok(Self { likelihood, process, table, log_volume, empty, singles, lane_len, learned: None })
    }

    /// The same target at another value of the learned parameter.
    ///
    /// # Errors
    /// As [`Target::new`].
    pub fn at(&self, learned: &LearnedBase, value: f64) -> Result<Self> {
        let (process, table) = (Arc::clone(&self.process), Arc::clone(&self.table));
        let target = Self::new(learned.likelihood(value)?, process, table, self.log_volume)?;
        Ok(Self { learned: self.learned.clone(), ..target })
    }

    /// The target and the state of the process of a draw that reported these values; no target if it is this one.
    ///
    /// # Errors
    /// [`Error::Format`] for values that no chain of this target reports; as [`Target::new`].
    pub fn of_draw(&self, traced: &[f64]) -> Result<(Option<Self>, ProcessState)> {
        let (of_process, value) = split(self.learned.as_ref(), traced)?;
        let state = self.process.restored(of_process)?.integrated();
        let moved = self.learned.as_ref().zip(value).map(|(learned, value)| self.at(learned, value)).transpose()?;
        Ok((moved, state))
    }

    /// The likelihood as an urn.
    ///
    /// # Panics
    /// Never: [`Target::new`] has checked that it exists.
    pub fn urn(&self) -> &dyn Urn {
        self.likelihood.urn().expect("a target has a closed marginal likelihood")
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.table.n_rows()
    }
}
