//! The state of a chain of a conditional sampler between sweeps: labels and the summary of the rows of each.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::likelihood::Likelihood;
use crate::local_step::FromLabels;
use crate::mcmc::conditional::check_sweep;
use crate::mcmc::conditional::field::{Field, PassSpace};
use crate::mcmc::learned_base::LearnedBase;
use crate::mcmc::samplers::is_sound;
use crate::parallel::{Cancel, for_each};
use crate::process::ProcessState;
use crate::suffstats::{Sufficient, Summary};

/// Number of rows whose labels one task changes.
const RELABELLED: usize = 1 << 16;

/// Labels, the summary of their components, and learned parameters. Weights and parameters of components are drawn anew
/// in each sweep, so they are not part of it.
#[derive(Debug, Serialize, Deserialize)]
pub struct LabelState {
    /// The component of each row.
    pub labels: Vec<AtomicU32>,
    /// Number of rows of each component, (K,); the last one has rows.
    pub counts: Vec<f64>,
    /// Their statistics, (K, P).
    statistics: Vec<f64>,
    /// Sum over rows of the log base measure, nats.
    log_base_measure: f64,
    /// Auxiliary values and learned parameters.
    pub process: ProcessState,
    /// The value of a learned parameter of the base measure.
    pub learned: Option<f64>,
}

impl LabelState {
    /// The state of these labels, one per row. Clusters are numbered by falling size.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for `init` if the process does not allow the partition; as [`Field::pass`].
    pub fn new(field: &Field<'_>, labels: &[u32]) -> Result<Self> {
        let mut sizes: HashMap<u32, usize> = HashMap::new();
        for &label in labels {
            *sizes.entry(label).or_default() += 1;
        }
        let mut order: Vec<(u32, usize)> = sizes.into_iter().collect();
        order.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        let numbers: HashMap<u32, u32> = order.iter().map(|(label, _)| *label).zip(0..).collect();
        let labels: Vec<u32> = labels.iter().map(|label| numbers[label]).collect();
        let counts = order.iter().map(|(_, size)| *size as f64).collect::<Vec<_>>();
        let hyperparameters = field.law.hyperparameters();
        let process = hyperparameters.start(hyperparameters.augments())?;
        if field.law.log_probability(&counts, &process) == f64::NEG_INFINITY {
            let found = format!("a partition into {} clusters", counts.len());
            return Err(Error::invalid("init", found, "a partition that the process allows"));
        }
        let labels = labels.into_iter().map(AtomicU32::new).collect();
        let learned = field.learned.as_ref().map(LearnedBase::start);
        Self { labels, counts, statistics: Vec::new(), log_base_measure: 0.0, process, learned }.on(field)
    }

    /// The same labels and learned parameters, with the summary of these rows.
    ///
    /// # Errors
    /// As [`Field::pass`].
    pub fn on(mut self, field: &Field<'_>) -> Result<Self> {
        let labels: Vec<u32> = self.labels.iter().map(|label| label.load(Ordering::Relaxed)).collect();
        let (assign, k) = (FromLabels { labels: &labels }, self.counts.len());
        self.take(field.pass(&assign, k, &mut PassSpace::default(), &Cancel::default())?);
        Ok(self)
    }

    /// Whether this can be a state of a chain on these rows, since files are not trusted.
    pub fn fits(&self, field: &Field<'_>) -> bool {
        let mut sizes = vec![0_usize; self.counts.len()];
        let mut labels = self.labels.iter().map(|label| label.load(Ordering::Relaxed) as usize);
        let has_labels = labels.all(|label| sizes.get_mut(label).map(|size| *size += 1).is_some());
        has_labels
            && self.labels.len() == field.n_rows()
            && sizes.iter().zip(&self.counts).all(|(&size, &count)| size as f64 == count)
            && sizes.last().is_some_and(|&last| last > 0)
            && self.statistics.len() == self.counts.len() * field.likelihood.n_statistics()
            && self.statistics.iter().chain([&self.log_base_measure]).all(|value| value.is_finite())
            && is_sound(&self.process, field.law.hyperparameters(), self.learned, field.learned.as_ref())
    }

    /// Number of components with rows.
    pub fn n_clusters(&self) -> usize {
        self.counts.iter().filter(|count| **count > 0.0).count()
    }

    /// The components with rows.
    pub fn occupied(&self) -> Vec<usize> {
        (0..self.counts.len()).filter(|&k| self.counts[k] > 0.0).collect()
    }

    /// Sizes of the components with rows.
    pub fn sizes(&self) -> Vec<usize> {
        self.occupied().into_iter().map(|k| self.counts[k] as usize).collect()
    }

    /// Count and statistics of a component; `nothing` holds the statistics of one without rows.
    pub fn component<'a>(&'a self, label: Option<usize>, nothing: &'a [f64]) -> Sufficient<'a> {
        let rows = label.map(|k| (self.counts[k], &self.statistics[k * nothing.len()..][..nothing.len()]));
        let (count, statistics) = rows.filter(|(count, _)| *count > 0.0).unwrap_or((0.0, nothing));
        Sufficient { count, statistics }
    }

    /// Takes over the summary of a pass over all rows.
    pub fn take(&mut self, summary: Summary) {
        (self.counts, self.statistics) = (summary.counts, summary.statistics);
        self.log_base_measure = summary.log_base_measure;
    }

    /// Puts the components in this order; those that are left out, and those after the last one with rows, must have no
    /// rows and are forgotten. A position beyond the components stands for one without rows.
    ///
    /// # Errors
    /// [`Error::Numerical`] for more components than fit in memory.
    pub fn arrange(&mut self, order: &[usize]) -> Result<()> {
        let count = |k: &usize| self.counts.get(*k).copied().unwrap_or(0.0);
        let n_kept = order.iter().rposition(|k| count(k) > 0.0).map_or(0, |last| last + 1);
        let order = &order[..n_kept];
        if order.iter().copied().eq(0..n_kept) {
            let length = self.statistics.len() / self.counts.len().max(1);
            self.counts.truncate(n_kept);
            self.statistics.truncate(n_kept * length);
            return Ok(());
        }
        let length = self.statistics.len() / self.counts.len().max(1);
        check_sweep(n_kept.saturating_mul(length), n_kept)?;
        let mut places = vec![u32::MAX; self.counts.len()];
        let mut statistics = vec![0.0; n_kept * length];
        for ((place, &k), to) in order.iter().enumerate().zip(statistics.chunks_exact_mut(length.max(1))) {
            if k < self.counts.len() {
                places[k] = place as u32;
                to.copy_from_slice(&self.statistics[k * length..][..length]);
            }
        }
        self.counts = order.iter().map(count).collect();
        self.statistics = statistics;
        let places = &places;
        for_each(self.labels.chunks(RELABELLED).collect(), |labels: &[AtomicU32]| {
            for label in labels {
                label.store(places[label.load(Ordering::Relaxed) as usize], Ordering::Relaxed);
            }
        });
        Ok(())
    }

    /// Writes the cluster of each row, numbered in order of first appearance.
    pub fn write_labels(&self, out: &mut [i32]) {
        let mut numbers = vec![-1; self.counts.len()];
        let mut next = 0;
        for (out, label) in out.iter_mut().zip(&self.labels) {
            let number = &mut numbers[label.load(Ordering::Relaxed) as usize];
            if *number < 0 {
                *number = next;
                next += 1;
            }
            *out = *number;
        }
    }

    /// See [`crate::mcmc::Chain::log_joint`].
    ///
    /// # Errors
    /// [`Error::Numerical`].
    pub fn log_joint(&self, field: &Field<'_>, likelihood: &dyn Likelihood<f64>) -> Result<f64> {
        let prior = field.law.log_probability(&self.counts, &self.process);
        let nothing = vec![0.0; likelihood.n_statistics()];
        let base = self.log_base_measure + likelihood.log_variable_base(field.n_rows() as f64);
        let mut total = prior + base - field.log_volume();
        for k in self.occupied() {
            total += likelihood.log_marginal(self.component(Some(k), &nothing))?;
        }
        Ok(total)
    }
}
