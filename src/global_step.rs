//! The global step: from the summary of all data to the components.

use serde::{Deserialize, Serialize};

use crate::component::ComponentId;
use crate::error::{Error, Result};
use crate::likelihood::{Density, capable_of};
use crate::local_step::TopicTable;
use crate::memo::{Changes, Memo};
use crate::model::Model;
use crate::parallel::{over_components, try_map};
use crate::parameters::Parameters;
use crate::process::Allocation;
use crate::scoring::{Scorer, SparseScorer};
use crate::simd::Scalar;
use crate::suffstats::{Sufficient, Summary};

/// A snapshot of all components: immutable, versioned, and small enough to send to a worker. The posterior of a
/// component is a function of its count and statistics, so only these are sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Globals {
    /// Increases with every global step.
    pub version: u64,
    /// The components in stick order.
    pub ids: Vec<ComponentId>,
    /// N_k, (K,).
    pub counts: Vec<f64>,
    /// S_k, (K, P).
    pub statistics: Vec<f64>,
    /// q of the weights.
    pub allocation: Allocation,
    /// Parameters of the base measure.
    pub base: Parameters,
    /// Factor that scales counts and statistics to all data (mathematics 11.5); 1 except in the first pass over
    /// documents.
    pub growth: f64,
    /// Changes of the statistics since an earlier version, if known.
    pub changes: Option<Changes>,
}

impl Globals {
    /// The optimal globals given a summary: lambda_k = lambda_0 + S_k and q of the weights (mathematics 4).
    pub fn new<F: Scalar>(model: &Model<F>, summary: &Summary, version: u64) -> Self {
        Self::with_statistics(model, summary, summary.statistics.clone(), version)
    }

    /// The globals of the total of a memo. The memo lends its statistics until [`Memo::take_back`], so that visits do
    /// not copy them.
    pub fn lent<F: Scalar>(model: &Model<F>, memo: &mut Memo, version: u64) -> Self {
        let (statistics, changes) = memo.lend(version);
        Self { changes, ..Self::with_statistics(model, memo.total(), statistics, version) }
    }

    fn with_statistics<F: Scalar>(model: &Model<F>, summary: &Summary, statistics: Vec<f64>, version: u64) -> Self {
        let mass = summary.counts.iter().sum::<f64>();
        // Rounding of sums and differences may leave counts of emptied components below zero.
        let counts: Vec<f64> =
            summary.counts.iter().map(|&n| if n < 0.0 && n > -1e-9 * (1.0 + mass) { 0.0 } else { n }).collect();
        debug_assert!(counts.iter().all(|&n| n >= 0.0), "a count below zero is a bug: {counts:?}");
        Self {
            version,
            ids: summary.ids.clone(),
            allocation: model.allocate(summary),
            counts,
            statistics,
            base: model.base.parameters.clone(),
            growth: 1.0,
            changes: None,
        }
    }

    /// Number of components.
    pub fn n_components(&self) -> usize {
        self.ids.len()
    }

    /// Count and statistics of every component.
    pub fn components(&self) -> Vec<Sufficient<'_>> {
        let p = self.statistics.len() / self.ids.len().max(1);
        self.counts
            .iter()
            .enumerate()
            .map(|(k, &count)| Sufficient { count, statistics: &self.statistics[k * p..][..p] })
            .collect()
    }

    /// Packs the components for the local step, E log w_k + E log p(x | phi_k), followed by the tail if there is one.
    /// In the tail every component beyond K is at the prior (mathematics 2c).
    ///
    /// # Errors
    /// [`Error::Numerical`] naming the component without a Cholesky factor.
    pub fn scorer<F: Scalar>(&self, model: &Model<F>) -> Result<Box<dyn Scorer<F>>> {
        if let (true, Some(log_weight)) = (model.background.is_some(), self.allocation.tail_log_weight) {
            return Ok(model.before_background(self.scorer_without_tail(model)?, log_weight));
        }
        let nothing = vec![0.0; model.likelihood.n_statistics()];
        let (components, log_weights) = self.with_tail(&nothing);
        packed(model, &components, &log_weights)
    }

    /// Packs the components for sparse rows only. Returns `None` if the likelihood scores sparse rows like others.
    /// `earlier` must be packed from the version in [`Globals::changes`]. Only changes are then recomputed, with the
    /// same bits.
    pub fn sparse_scorer<F: Scalar>(
        &self,
        model: &Model<F>,
        earlier: Option<SparseScorer<F>>,
    ) -> Result<Option<SparseScorer<F>>> {
        let nothing = vec![0.0; model.likelihood.n_statistics()];
        let (components, log_weights) = self.with_tail(&nothing);
        let earlier = earlier.zip(self.changes.as_ref().map(|changes| &changes.columns[..]));
        model.likelihood.sparse_scorer(&components, &log_weights, model.objective, earlier)
    }

    /// Computes the weights of the used words in all topics (mathematics 11.3).
    ///
    /// # Errors
    /// [`Error::NotSupported`] for a likelihood without words.
    pub fn fill_topics<F: Scalar>(&self, model: &Model<F>, used: &[bool], table: &mut TopicTable) -> Result<()> {
        let Some(emissions) = model.likelihood.emissions() else {
            let reason = "its rows have no words that topics could share";
            return Err(Error::not_supported(
                "likelihood",
                "topics of this likelihood",
                reason,
                capable_of("emissions"),
            ));
        };
        table.fill(emissions, model.objective, &self.components(), self.growth, used);
        Ok(())
    }

    /// All components and their expected log weights, followed by the tail if there is one.
    fn with_tail<'a>(&'a self, nothing: &'a [f64]) -> (Vec<Sufficient<'a>>, Vec<f64>) {
        let (mut components, mut log_weights) = (self.components(), self.allocation.expected_log_weights.clone());
        if let Some(tail) = self.allocation.tail_log_weight {
            components.push(Sufficient { count: 0.0, statistics: nothing });
            log_weights.push(tail);
        }
        (components, log_weights)
    }

    /// Packs the components without the tail for the local step.
    pub fn scorer_without_tail<F: Scalar>(&self, model: &Model<F>) -> Result<Box<dyn Scorer<F>>> {
        packed(model, &self.components(), &self.allocation.expected_log_weights)
    }

    /// Packs the components, followed by the prior with the left-over weight, for the posterior predictive (mathematics
    /// 6). A background is left out.
    pub fn predictive_scorer<F: Scalar>(&self, model: &Model<F>) -> Result<Box<dyn Scorer<F>>> {
        let nothing = vec![0.0; model.likelihood.n_statistics()];
        let mut components = self.components();
        let mut log_weights: Vec<f64> = self.allocation.expected_weights.iter().map(|w| w.ln()).collect();
        if self.allocation.leftover > 0.0 {
            components.push(Sufficient { count: 0.0, statistics: &nothing });
            log_weights.push(self.allocation.leftover.ln());
        }
        model.likelihood.scorer(&components, &log_weights, Density::Predictive)
    }

    /// Returns KL(q || p) of all global factors, nats.
    pub fn divergence<F: Scalar>(&self, model: &Model<F>) -> Result<f64> {
        let components = self.components();
        let parts = try_map(components.len(), |k| {
            model.likelihood.cost(components[k], model.objective).map_err(|error| error.of_component(k))
        })?;
        Ok(parts.iter().sum::<f64>() + self.allocation.divergence)
    }

    /// Serialises the snapshot, exact to the bit.
    ///
    /// # Errors
    /// [`Error::Format`] if serialisation fails.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        postcard::to_stdvec(self).map_err(|error| Error::Format { message: error.to_string() })
    }

    /// Reads a snapshot from [`Globals::to_bytes`].
    ///
    /// # Errors
    /// [`Error::Format`] for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        postcard::from_bytes(bytes).map_err(|error| Error::Format { message: error.to_string() })
    }
}

/// Packs components for the local step.
fn packed<F: Scalar>(
    model: &Model<F>,
    components: &[Sufficient<'_>],
    log_weights: &[f64],
) -> Result<Box<dyn Scorer<F>>> {
    over_components(components.len(), model.likelihood.n_statistics(), || {
        model.likelihood.scorer(components, log_weights, Density::Expected(model.objective))
    })
}
