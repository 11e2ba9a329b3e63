//! The rows and the model that all chains of a conditional sampler share.

use std::sync::Arc;

use crate::component::ComponentId;
use crate::data::{RowUnits, Rows};
use crate::error::{Error, Result};
use crate::grounds::Grounds;
use crate::likelihood::{self, Likelihood};
use crate::local_step::{Assign, Buffers, Keep, LocalState, LocalStep};
use crate::mcmc::learned_base::LearnedBase;
use crate::mcmc::{Start, StartLabels};
use crate::model::Named;
use crate::parallel::Cancel;
use crate::process::LabelLaw;
use crate::room::check_room;
use crate::suffstats::Summary;

/// What a pass leaves for the next one, which makes it fast and changes no bit.
#[derive(Debug, Default)]
pub struct PassSpace {
    buffers: Buffers<f64>,
    last: LocalState,
}

/// Rows, which are read where they are, and the model.
pub struct Field<'a> {
    grounds: &'a Grounds,
    rows: &'a dyn Rows<f64>,
    units: RowUnits<'a, f64>,
    /// The likelihood.
    pub likelihood: Arc<dyn Likelihood<f64>>,
    /// The distribution of labels.
    pub law: LabelLaw,
    /// A parameter of the base measure that each chain learns; the likelihood has the value at which chains start.
    pub learned: Option<LearnedBase>,
}

impl<'a> Field<'a> {
    /// The rows under the model of `grounds`.
    ///
    /// # Errors
    /// As [`crate::likelihood::build`].
    pub fn new(grounds: &'a Grounds, rows: &'a dyn Rows<f64>) -> Result<Self> {
        let units = RowUnits::all(rows, None).seen_through(&grounds.coordinates);
        let (likelihood, law) = (grounds.sampled_likelihood()?, grounds.specification.law()?);
        Ok(Self { grounds, rows, units, likelihood, law, learned: LearnedBase::of(grounds) })
    }

    /// The likelihood at a value of the learned parameter, if there is one.
    ///
    /// # Errors
    /// As [`LearnedBase::likelihood`].
    pub fn likelihood_at(&self, value: Option<f64>) -> Result<Arc<dyn Likelihood<f64>>> {
        match self.learned.as_ref().zip(value) {
            Some((learned, value)) => learned.likelihood(value),
            None => Ok(Arc::clone(&self.likelihood)),
        }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.rows.n_rows()
    }

    /// The rows as units.
    #[cfg(test)]
    pub fn units(&self) -> &RowUnits<'a, f64> {
        &self.units
    }

    /// The log of the volume, in the data's units, of one unit of volume in coordinates, for all rows, nats.
    pub fn log_volume(&self) -> f64 {
        self.n_rows() as f64 * self.grounds.coordinates.log_volume()
    }

    /// The labels of starts. Only trees need the rows in memory.
    ///
    /// # Errors
    /// As [`Start::labels`].
    pub fn labels(&self, starts: &[Start<'_>], seed: u64, cancel: &Cancel) -> Result<StartLabels> {
        StartLabels::new(starts, seed, |start, seed| match start {
            Start::Incremental | Start::OnTop => {
                let Named { name, parameters } = &self.grounds.specification.likelihood;
                if likelihood::check_urns(name, parameters, "").is_err() {
                    let found = format!("one of trees under {name}");
                    let (reason, allowed) =
                        ("its clusters have no closed marginal likelihood", "\"dispersed\" or labels");
                    return Err(Error::not_supported("init", found, reason, allowed));
                }
                start.labels(&self.grounds.target(self.rows)?, seed, cancel)
            }
            _ => start.of_rows(self.n_rows(), seed),
        })
    }

    /// Number of values of the statistics of this many components before a sweep, after it, and while they are made, of
    /// their packed form, and of a block of scores.
    pub fn size_of(&self, n_components: usize) -> usize {
        let d = self.likelihood.dimension();
        let of_one = self.likelihood.n_statistics().saturating_mul(4).saturating_add(d.saturating_mul(4));
        n_components.saturating_mul(of_one.saturating_add(256))
    }

    /// Refuses components that do not fit in memory.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for `truncation`.
    pub fn check_room(&self, n_components: usize, n_chains: usize) -> Result<()> {
        check_room(self.size_of(n_components).saturating_mul(n_chains), |size| {
            let found = format!("{n_components} components, whose statistics in {n_chains} chains take {size}");
            Error::invalid("truncation", found, "few enough components to fit in memory")
        })
    }

    /// Gives every row its component, and returns the summary of all rows.
    ///
    /// # Errors
    /// As [`LocalStep::run_compact`].
    pub fn pass(
        &self,
        assign: &dyn Assign<f64>,
        n_components: usize,
        space: &mut PassSpace,
        cancel: &Cancel,
    ) -> Result<Summary> {
        let ids: Vec<ComponentId> = (0..n_components as u32).map(ComponentId).collect();
        let likelihood = self.likelihood.as_ref();
        let step = LocalStep { likelihood, ids: &ids, assign, keep: Keep::Summary, cancel };
        let PassSpace { buffers, last } = space;
        Ok(step.run_in(buffers, &self.units, Some(last), &mut [])?.summary.into_dense())
    }
}
