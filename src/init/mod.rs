//! Initialisation of inference.

mod classes;
mod kmeans;
mod seeder;
mod seeds;
mod sequential;
mod swaps;
mod topics;

use crate::component::ComponentId;
use crate::data::{BatchSource, Coordinates, Dataset, RowUnits};
use crate::error::{Error, Result};
use crate::hash::{fingerprint, of_numbers};
use crate::likelihood::Likelihood;
use crate::local_step::{Assign, FromLabels, FromTable, Keep, LocalStep};
use crate::memo::Memo;
use crate::model::{Model, Specification};
use crate::parallel::Cancel;
use crate::rng::{Generator, Purpose, stream};
use crate::room::check_room;
use crate::simd::Scalar;
use crate::suffstats::Summary;
use crate::tree_sum::TreeSum;

pub use kmeans::smoothed_kmeans;
pub use seeder::Seeder;

/// Number of summaries besides those of the batches: the total, that of a visit, and the packed components.
const OTHER_SUMMARIES: usize = 6;

/// An initialisation, as specified by the user.
#[derive(Debug, Clone)]
pub enum Init<'a> {
    /// Bregman k-means++ on smoothed statistics (mathematics 5.2).
    KmeansPlusPlus,
    /// K distinct rows, one per component (mathematics 5.1).
    Random,
    /// Adds the rows one by one in random order, each under the components formed by the rows before it (mathematics
    /// 5.3).
    Sequential,
    /// A component for every row, (n,).
    Labels(&'a [u32]),
    /// Responsibilities, (n, K) in row-major order.
    Table(&'a [f64]),
    /// The summary of a previous fit, with the origin of its statistics.
    Summary {
        /// The summary.
        summary: &'a Summary,
        /// The origin.
        origin: &'a [f64],
        /// The model of the fit, in these coordinates.
        specification: &'a Specification,
        /// The coordinates of all of these.
        coordinates: &'a Coordinates,
        /// The class of each component, -1 for free ones; empty if all are.
        classes: &'a [i64],
    },
}

impl Init<'_> {
    /// Returns the number of components of the start for `n` rows; for labels, the smallest number that includes them
    /// all. `None` if the start can make any number.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] unless there is a label, or a row of responsibilities, for every row.
    pub fn n_components(&self, n: usize) -> Result<Option<usize>> {
        match self {
            Self::KmeansPlusPlus | Self::Random | Self::Sequential => Ok(None),
            Self::Labels(labels) => {
                expect_length(labels.len(), n)?;
                Ok(labels.iter().max().map(|&label| label as usize + 1))
            }
            Self::Table(values) => {
                let k = values.len() / n;
                expect_length(values.len(), n * k)?;
                Ok(Some(k))
            }
            Self::Summary { summary, .. } => Ok(Some(summary.n_components())),
        }
    }

    /// Whether the start can make any requested number of components.
    pub fn makes_any_number(&self) -> bool {
        matches!(self, Self::KmeansPlusPlus | Self::Random | Self::Sequential)
    }

    /// A number that identifies this start.
    pub fn fingerprint(&self) -> u64 {
        match self {
            Self::KmeansPlusPlus => 1,
            Self::Random => 2,
            Self::Sequential => 6,
            Self::Labels(labels) => fingerprint(3, labels.iter().map(|&label| u64::from(label))),
            Self::Table(values) => of_numbers(4, *values),
            Self::Summary { summary, origin, coordinates, classes, .. } => {
                let tail = summary.tail.as_ref().map_or(&[][..], |tail| &tail.statistics);
                let numbers = summary.counts.iter().chain(&summary.statistics).chain(tail).chain(*origin);
                let map = coordinates.to_parts();
                let of_fit = if coordinates.is_identity() {
                    of_numbers(5, numbers)
                } else {
                    of_numbers(5, numbers.chain(map.iter().flatten()))
                };
                if classes.is_empty() {
                    of_fit
                } else {
                    fingerprint(of_fit, classes.iter().map(|class| class.cast_unsigned()))
                }
            }
        }
    }
}

fn expect_length(found: usize, allowed: usize) -> Result<()> {
    if found == allowed {
        return Ok(());
    }
    Err(Error::invalid(
        "init",
        format!("of {found} values"),
        format!("of {allowed} values, one for every row of the data"),
    ))
}

/// The inputs of every start.
#[derive(Clone, Copy)]
pub struct Beginning<'a, F: Scalar> {
    /// The model.
    pub model: &'a Model<F>,
    /// All data.
    pub data: &'a dyn Dataset<F>,
    /// The same data in batches.
    pub source: &'a dyn BatchSource<F>,
    /// The components.
    pub ids: &'a [ComponentId],
    /// Whether pair gaps are kept.
    pub keep: Keep,
    /// Whether to keep a separate summary for each batch.
    pub by_batch: bool,
    /// The amount of all data: the sum of the weights of the rows.
    pub mass: f64,
    /// Random seed of the fit.
    pub seed: u64,
    /// Checked between blocks.
    pub cancel: &'a Cancel,
}

impl<F: Scalar> Beginning<'_, F> {
    /// Refuses a number of components whose summaries, one per batch and a few for a visit, do not fit in memory.
    fn check_room(&self, k: usize, n_batches: usize) -> Result<()> {
        let of_one = k.saturating_mul(self.likelihood().n_statistics() + 2);
        check_room(of_one.saturating_mul(n_batches.saturating_add(OTHER_SUMMARIES)), |size| {
            let found = format!("{k}, whose statistics in {n_batches} batches take {size}");
            Error::invalid("n_components", found, "small enough for the statistics of all batches to fit in memory")
        })
    }

    /// Returns the memo for the first global step. If the start gives every row its responsibilities, the memo is
    /// complete, and its bound covers all data.
    ///
    /// # Errors
    /// [`Error::Cancelled`]; [`Error::Numerical`]; [`Error::InvalidArgument`] for an inconsistent start.
    pub fn memo(&self, init: &Init<'_>) -> Result<Memo> {
        let k = self.ids.len();
        let n_batches = self.source.n_batches().unwrap_or(1);
        self.check_room(k, if self.by_batch { n_batches } else { 0 })?;
        if self.model.documents.is_some() {
            return self.topics(init);
        }
        match init {
            Init::Labels(labels) => self.given(&FromLabels { labels }),
            Init::Table(values) => self.given(&FromTable { values, n_components: k }),
            Init::KmeansPlusPlus => {
                let mut generator = self.generator();
                match smoothed_kmeans(self, &mut generator)? {
                    kmeans::Seeded::Labels(labels) => self.given(&FromLabels { labels: &labels }),
                    kmeans::Seeded::Summary(summary) => Ok(Memo::starting_from(summary, n_batches, self.mass)),
                }
            }
            Init::Random => {
                let rows = distinct_rows(self.data, k, &mut self.generator());
                let mut picked = rows.clone();
                picked.sort_unstable();
                picked.dedup();
                // Position of each row among the picked rows.
                let places: Vec<u32> =
                    rows.iter().map(|row| picked.partition_point(|other| other < row) as u32).collect();
                let start = self.seeding().singles(&self.data.pick(&picked)?, &places)?;
                Ok(Memo::standing_alone(start, n_batches, self.mass))
            }
            Init::Sequential => {
                let summary = sequential::one_by_one(self, &mut self.generator())?;
                // All rows have responsibilities, but only their total contribution is known.
                Ok(if n_batches == 1 {
                    Memo::complete(vec![summary])?
                } else {
                    Memo::starting_from(summary, n_batches, self.mass)
                })
            }
            Init::Summary { summary, origin, specification, .. } => {
                let likelihood = self.likelihood();
                if summary.n_statistics != likelihood.n_statistics() || origin.len() != likelihood.dimension() {
                    return Err(Error::invalid(
                        "init",
                        "a fit of another likelihood or dimension",
                        "a fit of the same likelihood and dimension",
                    ));
                }
                let mut start = (*summary).clone();
                start.ids = self.ids.to_vec();
                start.statistics.clear();
                for &component in &summary.components() {
                    start.statistics.extend(self.likelihood().rebase(component, origin)?);
                }
                let earlier = specification.background.as_ref();
                if self.model.background.is_some() || earlier.is_some() {
                    // The background of other data has another density.
                    let is_same = earlier == self.model.base.background.as_ref() && likelihood.origin() == *origin;
                    let lost = if is_same { None } else { start.tail.take() };
                    start.mass -= lost.map_or(0.0, |tail| tail.count);
                } else if let Some(tail) = &mut start.tail {
                    tail.statistics = self.likelihood().rebase(tail.sufficient(), origin)?;
                }
                Ok(Memo::starting_from(start, n_batches, self.mass))
            }
        }
    }

    /// Returns the seeder in the divergence of the likelihood.
    pub fn seeding(&self) -> Seeder<'_, F> {
        Seeder { likelihood: self.likelihood(), ids: self.ids, cancel: self.cancel }
    }

    fn likelihood(&self) -> &'_ dyn Likelihood<F> {
        self.model.likelihood.as_ref()
    }

    fn generator(&self) -> Generator {
        stream(self.seed, Purpose::Start, 0)
    }

    /// The sum of the summaries of the shards of a batch.
    fn sum_of_shards(
        &self,
        batch: usize,
        mut summarise: impl FnMut(&RowUnits<'_, F>) -> Result<Summary>,
    ) -> Result<Summary> {
        let mut add = |sum: &mut Summary, summary: Summary| sum.add_compact(&summary);
        let mut sum = TreeSum::default();
        for shard in self.source.shards(batch) {
            self.cancel.check()?;
            sum.push(summarise(&self.source.load(shard)?)?, &mut add)?;
        }
        Ok(sum.finish(&mut add)?.unwrap_or_default())
    }

    fn given(&self, assign: &dyn Assign<F>) -> Result<Memo> {
        let step =
            LocalStep { likelihood: self.likelihood(), ids: self.ids, assign, keep: self.keep, cancel: self.cancel };
        let n_batches = self.source.n_batches().unwrap_or(1);
        let mut batches: Vec<Summary> = Vec::new();
        for batch in 0..n_batches {
            let summary = self.sum_of_shards(batch, |units| Ok(step.run_compact(units, None, &mut [])?.summary))?;
            match batches.last_mut().filter(|_| !self.by_batch) {
                Some(sum) => sum.add(&summary)?,
                None => batches.push(summary),
            }
        }
        Memo::complete(batches)
    }
}

/// `k` distinct rows, uniform among those with positive mass; some are repeated if there are fewer.
fn distinct_rows<F: Scalar>(data: &dyn Dataset<F>, k: usize, generator: &mut Generator) -> Vec<u64> {
    let heavy = with_mass(data);
    let n = heavy.as_ref().map_or(data.n_rows(), Vec::len);
    let picked = rand::seq::index::sample(generator, n, k.min(n));
    let rows: Vec<u64> = picked.iter().map(|i| heavy.as_ref().map_or(i as u64, |rows| rows[i])).collect();
    rows.iter().copied().cycle().take(k).collect()
}

/// The rows with positive mass; `None` if rows have no weights, so that all have.
fn with_mass<F: Scalar>(data: &dyn Dataset<F>) -> Option<Vec<u64>> {
    let weights = data.weights()?;
    Some((0..weights.len()).filter(|&row| weights[row] > 0.0).map(|row| row as u64).collect())
}
