//! Another start of a small table: a hierarchy of its rows, whose evidence tells how wide components are, and whose cut
//! how many there are (mathematics 10.9).

use std::sync::Arc;

use crate::component::EditLog;
use crate::data::{Dataset, RowUnits, SeenRows};
use crate::error::{Error, Result};
use crate::fit::prepare::Prepared;
use crate::fit::stages::{BestState, NewStart, Stage};
use crate::likelihood::{self, Given, Loosening};
use crate::local_step::{FromLabels, Keep, LocalStep};
use crate::mcmc::{Hierarchy, HierarchyPlan, Method, RowTable, Target, TreeCut};
use crate::model::Estimated;
use crate::parameters::Parameters;
use crate::process::Partitions;
use crate::rng::{Choices, Generator, Purpose, stream};
use crate::simd::Scalar;
use crate::suffstats::Summary;

/// Number of rows above which there is no other start.
const LARGE: usize = 20_000;
/// Maximum number of rows of trees that are compared.
const MOST_ROWS: usize = 1_000;
/// The same of trees that compare breadths of single columns.
const FEW_ROWS: usize = 400;
/// Maximum number of columns. A tree costs their square for every row and level.
const MOST_COLUMNS: usize = 6;
/// Precision of the prior mean, in rows.
const PRECISION: f64 = 0.001;
/// Number of trees of all rows, since a tree depends on their order.
const N_TRIALS: usize = 3;
/// Number of successive trees with a clearly lower evidence after which no narrower one is built.
const FALLS: usize = 2;
/// Loss of evidence that is clear, nats for each row. Before the clusters of a regular arrangement come apart, each
/// step loses only a few nats.
const CLEAR: f64 = 0.02;
/// The variances that trees expect, as divisors of that of the data.
const DIVISORS: [f64; 6] = [4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0];
/// The certainty about variances of trees for clusters of one shape, and factors of the divisors then.
const CERTAIN: f64 = 8.0;
const FACTORS: [f64; 4] = [1.0, 2.0, 4.0, 8.0];

impl<F: Scalar> Prepared<'_, F> {
    /// The clusters of a tree under the base measure with the highest evidence, if there are more of them than
    /// components of the best state. `None` if trees do not take such rows or such a model, too.
    ///
    /// # Errors
    /// [`Error::Cancelled`]; [`Error::Source`].
    pub(super) fn tree_start(&self, best: &BestState) -> Result<Option<NewStart>> {
        let rows = SeenRows { rows: self.job.rows, coordinates: &self.grounds.coordinates };
        let specification = &self.grounds.specification;
        let is_small = self.n_rows <= LARGE && self.model.likelihood.dimension() <= MOST_COLUMNS;
        let is_plain = rows.weights().is_none() && !rows.is_sparse() && !specification.missing && rows.can_seek();
        let (Some(estimated), true) = (&specification.estimated, is_small && is_plain) else { return Ok(None) };
        let Ok(process) = specification.partitions() else { return Ok(None) };
        let trees = Trees { prepared: self, estimated, process };
        let list: Vec<u32> = (0..self.n_rows as u32).collect();
        let units = rows.pick(&list)?;
        let values = relative(&units, self.model.likelihood.origin());
        let mut generator = stream(self.settings.seed, Purpose::Trees, u64::MAX);
        let Some((n_clusters, breadth)) = trees.breadth(&values, &mut generator)? else { return Ok(None) };
        let (most, n) = (best.total.n_components(), self.n_rows);
        if n_clusters * n <= most * n.min(MOST_ROWS) {
            return Ok(None);
        }
        let all = RowTable::dense(values, self.model.likelihood.dimension());
        let Some(tree) = trees.grown(&all, &breadth, N_TRIALS)?.filter(|tree| tree.n_clusters() > most) else {
            return Ok(None);
        };
        Ok(Some(NewStart { total: self.sums(&units, &tree)?, base: tree.base, stage: Stage::OtherStart }))
    }

    /// The sums of the rows of each cluster.
    fn sums(&self, units: &RowUnits<'_, F>, tree: &CutTree) -> Result<Summary> {
        let ids = EditLog::default().issue(tree.n_clusters());
        let step = LocalStep {
            likelihood: self.model.likelihood.as_ref(),
            ids: &ids,
            assign: &FromLabels { labels: &tree.labels },
            keep: Keep::Summary,
            cancel: self.cancel,
        };
        Ok(step.run(units, None, &mut [])?.summary.into_dense())
    }
}

/// A tree that was cut.
struct CutTree {
    evidence: f64,
    /// The cluster of each row.
    labels: Vec<u32>,
    /// Parameters of its base measure.
    base: Parameters,
}

impl CutTree {
    fn n_clusters(&self) -> usize {
        self.labels.iter().max().map_or(0, |label| *label as usize + 1)
    }
}

/// How wide the clusters of a tree are expected to be: divisors of the variance, one or by column, and the certainty.
#[derive(Debug, Clone)]
struct Breadth {
    divisors: Vec<f64>,
    certainty: f64,
}

impl Breadth {
    fn times(&self, factor: f64, certainty: f64) -> Self {
        Self { divisors: self.divisors.iter().map(|divisor| factor * divisor).collect(), certainty }
    }

    fn with(&self, column: usize, divisor: f64) -> Self {
        let mut other = self.clone();
        other.divisors[column] = divisor;
        other
    }
}

/// Trees under several base measures.
struct Trees<'a, F: Scalar> {
    prepared: &'a Prepared<'a, F>,
    estimated: &'a Estimated,
    process: Arc<dyn Partitions>,
}

impl<F: Scalar> Trees<'_, F> {
    /// The breadth with the highest evidence on some of the rows, and the number of their clusters: the same in all
    /// columns, by column, or more certain.
    fn breadth(&self, values: &[f64], generator: &mut Generator) -> Result<Option<(usize, Breadth)>> {
        let d = self.prepared.model.likelihood.dimension();
        let part = near(values, d, MOST_ROWS, generator);
        let few = RowTable::dense(near(&part, d, FEW_ROWS, generator), d);
        let table = RowTable::dense(part, d);
        let same = DIVISORS.map(|divisor| Breadth { divisors: vec![divisor], certainty: 1.0 });
        let Some(mut best) = self.climb(&table, same)? else { return Ok(None) };
        let by_column = self.by_column(&few, &best.1)?;
        let mut rivals = vec![best.1.clone()];
        if let Some(breadth) = by_column {
            rivals.push(breadth.clone());
            best = better(best, self.climb(&table, [breadth])?);
        }
        for rival in rivals {
            let certain = FACTORS.map(|factor| rival.times(factor, CERTAIN));
            best = better(best, self.climb(&table, certain)?);
        }
        let (tree, breadth) = best;
        Ok(Some((tree.n_clusters(), breadth)))
    }

    /// The tree with the highest evidence of those under wider and then narrower base measures, until the evidence
    /// clearly falls.
    fn climb(
        &self,
        table: &RowTable,
        breadths: impl IntoIterator<Item = Breadth>,
    ) -> Result<Option<(CutTree, Breadth)>> {
        let mut best: Option<(CutTree, Breadth)> = None;
        let mut n_worse = 0;
        for breadth in breadths {
            if n_worse == FALLS {
                break;
            }
            let Some(tree) = self.grown(table, &breadth, 1)? else { break };
            let most = best.as_ref().map_or(f64::NEG_INFINITY, |(best, _)| best.evidence);
            let is_clear = tree.evidence < most - CLEAR * table.n_rows() as f64;
            n_worse = if is_clear { n_worse + 1 } else { 0 };
            if tree.evidence > most {
                best = Some((tree, breadth));
            }
        }
        Ok(best)
    }

    /// The best breadth when one column after the other is scaled, unless it is the common one.
    fn by_column(&self, table: &RowTable, common: &Breadth) -> Result<Option<Breadth>> {
        let d = self.prepared.model.likelihood.dimension();
        if d == 1 {
            return Ok(None);
        }
        let common = Breadth { divisors: vec![common.divisors[0]; d], ..*common };
        let Some(mut best) = self.climb(table, [common.clone()])? else { return Ok(None) };
        for column in 0..d {
            let now = best.1.clone();
            let others = [1.0].into_iter().chain(DIVISORS).map(|divisor| now.with(column, divisor));
            best = better(best, self.climb(table, others)?);
        }
        let breadth = best.1;
        Ok((breadth.divisors != common.divisors).then_some(breadth))
    }

    /// The best of some trees under a base measure of this breadth; `None` if there is none for this model, or too
    /// little memory.
    fn grown(&self, table: &RowTable, breadth: &Breadth, n_trials: usize) -> Result<Option<CutTree>> {
        match self.tree(table, breadth, n_trials) {
            Err(error @ (Error::Cancelled | Error::Source { .. })) => Err(error),
            found => Ok(found.ok().flatten()),
        }
    }

    fn tree(
        &self,
        table: &RowTable,
        Breadth { divisors, certainty }: &Breadth,
        n_trials: usize,
    ) -> Result<Option<CutTree>> {
        let Prepared { model, grounds, settings, cancel, .. } = self.prepared;
        let Estimated { start, free, .. } = self.estimated;
        let Some(evidence) = model.likelihood.evidence() else { return Ok(None) };
        let given = Given { components: &[], parameters: start, start, free };
        let by = Loosening { divisors, certainty: *certainty, precision: PRECISION };
        let Some(base) = evidence.loose(&given, by)? else { return Ok(None) };
        let exact = grounds.specification.with_base(base.clone()).without_cells()?.likelihood;
        let likelihood = likelihood::build::<f64>(&exact.name, &exact.parameters, model.frame())?;
        let target = Target::new(likelihood, Arc::clone(&self.process), table.clone(), 0.0)?;
        let plan = HierarchyPlan { method: Method::Incremental, n_trials, seed: settings.seed };
        let tree = Hierarchy::build(&target, plan, cancel)?;
        Ok(Some(CutTree { evidence: tree.log_evidence_bound(&target), labels: tree.cut(TreeCut::Bhc), base }))
    }
}

/// The tree with the higher evidence.
fn better(best: (CutTree, Breadth), other: Option<(CutTree, Breadth)>) -> (CutTree, Breadth) {
    other.filter(|(tree, _)| tree.evidence > best.0.evidence).unwrap_or(best)
}

/// The values of dense rows, relative to the origin.
fn relative<F: Scalar>(units: &RowUnits<'_, F>, origin: &[f64]) -> Vec<f64> {
    let origin: Vec<F> = origin.iter().map(|&value| F::from_f64(value)).collect();
    let mut values = vec![F::ZERO; units.len() * origin.len()];
    units.read(0..units.len(), &origin, &mut values);
    values.into_iter().map(F::to_f64).collect()
}

/// At most `most` rows, the nearest to one of them in columns of equal variance: a random sample would have few rows of
/// each of many clusters.
fn near(values: &[f64], d: usize, most: usize, generator: &mut Generator) -> Vec<f64> {
    let n = values.len() / d;
    if n <= most {
        return values.to_vec();
    }
    let square = |column: usize| values.iter().skip(column).step_by(d).map(|x| x * x).sum::<f64>();
    let squares: Vec<f64> = (0..d).map(|column| square(column).max(f64::MIN_POSITIVE)).collect();
    let centre = &values[generator.pick(n) * d..][..d];
    let term = |((x, c), square): ((&f64, &f64), &f64)| (x - c).powi(2) / square;
    let mut rows: Vec<&[f64]> = values.chunks_exact(d).collect();
    // Squares are not negative, so their bits order as they do.
    rows.sort_by_cached_key(|row| row.iter().zip(centre).zip(&squares).map(term).sum::<f64>().to_bits());
    rows[..most].concat()
}
