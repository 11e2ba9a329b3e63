//! Weights and parameters of the clusters of draws, drawn given each partition, and densities at them (mathematics
//! 8.14).

use std::sync::Arc;

use crate::component::ComponentId;
use crate::data::{RowUnits, Rows};
use crate::error::{Error, Result};
use crate::grounds::Grounds;
use crate::likelihood::{self, ComponentStreams, Density, Likelihood, parameters_of_draws};
use crate::local_step::{ByScore, Chunk, FromLabels, Keep, LocalStep, Tap};
use crate::mcmc::Predictive;
use crate::mcmc::conditional::{Field, PassSpace};
use crate::mcmc::learned_base::split;
use crate::model::Named;
use crate::parallel::{Cancel, map, try_map};
use crate::parameters::{Parameters, Value};
use crate::rng::{Purpose, key, stream, stream_of_component};
use crate::room::check_room;
use crate::scoring::Scorer;
use crate::special::{log_sum_exp, quantile};
use crate::suffstats::{Sufficient, Summary};

/// Name of the weights among the parameters.
const WEIGHTS: &str = "weights";

/// Draws of partitions of some rows, each with weights and parameters that depend on the seed and its index alone.
pub struct Mixtures<'a> {
    grounds: &'a Grounds,
    field: Field<'a>,
    draws: &'a [Predictive<'a>],
    seed: u64,
}

/// A draw with its weights: the summary of its clusters, and their log weights, followed by that of everything outside
/// them, nats.
struct WeighedDraw {
    /// At the learned value of the draw.
    likelihood: Arc<dyn Likelihood<f64>>,
    summary: Summary,
    log_weights: Vec<f64>,
}

/// Log normalisers of all rows.
struct LogNormalizers(Vec<f64>);

impl Tap for LogNormalizers {
    fn observe(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        self.0.extend_from_slice(&chunk.responsibilities.log_normalizers);
        Ok(())
    }
}

impl<'a> Mixtures<'a> {
    /// Draws of partitions of these rows.
    ///
    /// # Errors
    /// As [`crate::likelihood::build`].
    pub fn new(grounds: &'a Grounds, rows: &'a dyn Rows<f64>, draws: &'a [Predictive<'a>], seed: u64) -> Result<Self> {
        Ok(Self { grounds, field: Field::new(grounds, rows)?, draws, seed })
    }

    /// A draw with its weights.
    fn weighed(&self, index: usize, cancel: &Cancel) -> Result<WeighedDraw> {
        let foreign = || Error::Format { message: "its labels do not match the rows".to_owned() };
        let draw = self.draws[index];
        let labels = draw.labels.iter().map(|&label| u32::try_from(label).ok()).collect::<Option<Vec<u32>>>();
        let labels = labels.filter(|labels| labels.len() == self.field.n_rows()).ok_or_else(foreign)?;
        let n_clusters = labels.iter().max().map_or(0, |&most| most as usize + 1);
        if n_clusters > labels.len() {
            return Err(foreign());
        }
        let summary =
            self.field.pass(&FromLabels { labels: &labels }, n_clusters, &mut PassSpace::default(), cancel)?;
        let sizes: Vec<usize> = summary.counts.iter().map(|&count| count as usize).collect();
        if sizes.contains(&0) {
            return Err(foreign());
        }
        let (of_process, value) = split(self.field.learned.as_ref(), draw.traced)?;
        let process = self.field.law.partitions()?;
        let state = process.restored(of_process)?.integrated();
        let mut generator = stream(self.seed, Purpose::Weights, index as u64);
        let mut log_weights = process.draw_weights(&sizes, &state, &mut generator);
        let total = log_sum_exp(&log_weights);
        for weight in &mut log_weights {
            *weight -= total;
        }
        Ok(WeighedDraw { likelihood: self.field.likelihood_at(value)?, summary, log_weights })
    }

    /// The log of the sum of weighted densities of each row, nats, in coordinates.
    fn scored(&self, scorer: &dyn Scorer<f64>, new: &RowUnits<'_, f64>, cancel: &Cancel) -> Result<Vec<f64>> {
        let width = scorer.n_components();
        let ids: Vec<ComponentId> = (0..width as u32).map(ComponentId).collect();
        let assign =
            &ByScore { scorer, has_tail: false, width, margin: None, abandon: false, row_terms: true, mask: None };
        let likelihood = self.field.likelihood.as_ref();
        let step = LocalStep { likelihood, ids: &ids, assign, keep: Keep::Nothing, cancel };
        let mut found = LogNormalizers(Vec::new());
        step.run(new, None, &mut [&mut found])?;
        Ok(found.0)
    }

    /// The log density of each row of `new` at the components of each draw, (draws, rows), nats, in the data's units.
    /// Outside the clusters the density is the mean of the base measure.
    ///
    /// # Errors
    /// [`Error::Format`] for labels that are not those of the rows; [`Error::InvalidArgument`] for `X` if the densities
    /// do not fit in memory; [`Error::Numerical`]; [`Error::Cancelled`].
    pub fn log_densities(&self, new: &dyn Rows<f64>, cancel: &Cancel) -> Result<Vec<f64>> {
        check_room(new.n_rows().saturating_mul(self.draws.len()).saturating_mul(2), |size| {
            let found = format!("{} rows, whose densities at {} draws take {size}", new.n_rows(), self.draws.len());
            Error::invalid("X", found, "few enough rows that they fit in memory")
        })?;
        let units = RowUnits::all(new, None).seen_through(&self.grounds.coordinates);
        let nothing = vec![0.0; self.field.likelihood.n_statistics()];
        let outside = |likelihood: &dyn Likelihood<f64>| {
            let prior = [Sufficient { count: 0.0, statistics: &nothing }];
            self.scored(likelihood.scorer(&prior, &[0.0], Density::Predictive)?.as_ref(), &units, cancel)
        };
        let of_all = if self.field.learned.is_none() { outside(self.field.likelihood.as_ref())? } else { Vec::new() };
        let log_volume = self.grounds.coordinates.log_volume();
        let found = try_map(self.draws.len(), |index| {
            cancel.check()?;
            let WeighedDraw { likelihood, summary, mut log_weights } = self.weighed(index, cancel)?;
            let of_draw = if of_all.is_empty() { outside(likelihood.as_ref())? } else { Vec::new() };
            let log_outside = log_weights.pop().unwrap_or(f64::NEG_INFINITY);
            let drawn = key(self.seed, [Purpose::Parameters as u64, index as u64]);
            let scorer = likelihood.drawn_scorer(
                &summary.components(),
                &log_weights,
                ComponentStreams { key: drawn, cancel },
            )?;
            let mut densities = self.scored(scorer.as_ref(), &units, cancel)?;
            for (density, outside) in densities.iter_mut().zip(of_all.iter().chain(&of_draw)) {
                *density = log_sum_exp(&[*density, log_outside + outside]) - log_volume;
            }
            Ok(densities)
        })?;
        Ok(found.concat())
    }

    /// Refuses draws whose parameters do not fit in memory. At the peak there are seven copies of them: those of each
    /// draw, the table of all draws, its conversion to the data's units, and the room that growing vectors reserve. A
    /// full matrix has nearly twice as many entries as the statistics of a component.
    fn check_room(&self) -> Result<()> {
        let clusters_of = |draw: &Predictive<'_>| draw.labels.iter().max().map_or(0, |&most| most.max(0) as usize + 1);
        let n_clusters: usize = self.draws.iter().map(clusters_of).sum();
        let of_one = self.field.likelihood.n_statistics().saturating_mul(2).saturating_add(2);
        check_room(n_clusters.saturating_mul(of_one).saturating_mul(7), |size| {
            let found = format!("parameters of {n_clusters} clusters in {} draws, which take {size}", self.draws.len());
            Error::invalid("k", found, "a number of clusters that fewer draws have, or a trace of fewer draws")
        })
    }

    /// Weights and parameters of the clusters of all draws, one draw after another, each with the shape (clusters,
    /// ...), in the data's units.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for `k` if they do not fit in memory; [`Error::Format`] for labels that are not those
    /// of the rows; [`Error::NotSupported`]; [`Error::Numerical`]; [`Error::Cancelled`].
    pub fn parameters(&self, cancel: &Cancel) -> Result<Parameters> {
        self.check_room()?;
        let drawn = try_map(self.draws.len(), |index| {
            cancel.check()?;
            let WeighedDraw { likelihood, summary, log_weights } = self.weighed(index, cancel)?;
            let (mut values, mut shapes) = (Vec::new(), Vec::new());
            for (k, component) in summary.components().into_iter().enumerate() {
                cancel.check()?;
                let source = likelihood.parameter_source(component).map_err(|error| error.of_component(k))?;
                let width = source.shapes.iter().map(|(_, shape)| shape.iter().product::<usize>()).sum();
                let mut row = vec![0.0; width];
                (source.rows)(
                    &mut row,
                    &mut stream_of_component(self.seed, Purpose::Parameters, index as u64, k as u64),
                );
                values.extend(row);
                shapes = source.shapes;
            }
            let weights: Vec<f64> = log_weights[..summary.counts.len()].iter().map(|weight| weight.exp()).collect();
            Ok((weights, values, shapes))
        })?;
        cancel.check()?;
        let Some((.., shapes)) = drawn.first() else { return Ok(Parameters::default()) };
        let weights: Vec<f64> = drawn.iter().flat_map(|(weights, ..)| weights).copied().collect();
        let values: Vec<f64> = drawn.iter().flat_map(|(_, values, _)| values).copied().collect();
        let parameters = parameters_of_draws(&values, [1, weights.len()], shapes);
        let Named { name, parameters: given } = &self.grounds.specification.likelihood;
        let of_data = likelihood::components_of_data(name, given, &parameters, &self.grounds.coordinates)?;
        let shape = vec![1, weights.len()];
        Ok(of_data.with([(WEIGHTS, Value::Array { shape, data: weights })]))
    }
}

/// A mean and two quantiles of densities, in the data's units.
#[derive(Debug, Clone, PartialEq)]
pub struct Band {
    /// The mean density of each row.
    pub mean: Vec<f64>,
    /// The quantiles of each row.
    pub ends: [Vec<f64>; 2],
}

/// The mean and two quantiles over draws of the densities of rows, from their logs, (draws, rows).
pub fn band(log_densities: &[f64], n_rows: usize, ends: [f64; 2]) -> Band {
    let n_draws = log_densities.len() / n_rows.max(1);
    let of_row = |row: usize| {
        let mut column: Vec<f64> = log_densities.iter().skip(row).step_by(n_rows).map(|log| log.exp()).collect();
        column.sort_unstable_by(f64::total_cmp);
        let mean = column.iter().sum::<f64>() / n_draws as f64;
        (mean, ends.map(|end| quantile(&column, end)))
    };
    let found = map(n_rows, of_row);
    let end = |side: usize| found.iter().map(|(_, ends)| ends[side]).collect();
    Band { mean: found.iter().map(|(mean, _)| *mean).collect(), ends: [end(0), end(1)] }
}
