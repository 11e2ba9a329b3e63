//! Another start of a small table: a hierarchy of its rows, whose evidence tells how wide components are, and whose cut
//! how many there are (mathematics 10.9).

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::component::EditLog;
use crate::data::{Dataset, RowUnits, SeenRows};
use crate::error::{Error, Result};
use crate::fit::copies::Copies;
use crate::fit::prepare::Prepared;
use crate::fit::stages::{BestState, NewStart, Stage};
use crate::global_step::Globals;
use crate::likelihood::{self, Given, Loosening};
use crate::local_step::{ByScore, Chunk, FromLabels, Keep, LocalStep, Tap};
use crate::mcmc::{Hierarchy, HierarchyPlan, Method, RowTable, Target, TreeCut};
use crate::model::Estimated;
use crate::moves::MANY_ROWS;
use crate::parallel::{n_threads, try_map};
use crate::parameters::Parameters;
use crate::process::Partitions;
use crate::rng::{Choices, Generator, Purpose, stream};
use crate::simd::Scalar;
use crate::suffstats::Summary;

/// Number of rows above which there is no other start. All of them are read, and trees of [`MANY_ROWS`] are built.
const MOST: usize = 200_000;
/// Maximum number of rows of trees that are compared.
const MOST_ROWS: usize = 1_000;
/// The same of trees that tell whether more are worth their cost. The last ones also compare breadths of columns.
const FEW_ROWS: [usize; 2] = [300, 400];
/// Mean number of rows of clusters above which births find them.
const BIG: usize = 100;
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
    /// components of the best state, also among rows near each other. `None` if trees do not take such rows or such a
    /// model, too.
    ///
    /// # Errors
    /// [`Error::Cancelled`]; [`Error::Source`].
    pub(super) fn tree_start(&self, best: &BestState) -> Result<Option<NewStart>> {
        let rows = self.job.rows;
        let specification = &self.grounds.specification;
        let is_small = self.n_rows <= MOST && self.model.likelihood.dimension() <= MOST_COLUMNS;
        let is_plain = self.model.likelihood.urn().is_some()
            && rows.weights().is_none()
            && !rows.is_sparse()
            && !specification.missing;
        let (Some(estimated), true) = (&specification.estimated, is_small && is_plain) else { return Ok(None) };
        let Ok(process) = specification.partitions() else { return Ok(None) };
        let copies = Copies::of_all(rows)?;
        let table = copies.as_ref().map(Copies::table);
        let rows = table.as_ref().map_or(rows, |table| table as &dyn Dataset<F>);
        let rows = SeenRows { rows, coordinates: &self.grounds.coordinates };
        let all: Vec<u64> = (0..self.n_rows as u64).collect();
        let values = relative(&rows.pick(&all)?, self.model.likelihood.origin());
        let d = self.model.likelihood.dimension();
        let mut generator = stream(self.settings.seed, Purpose::Trees, u64::MAX);
        let near = nearest(&values, d, &mut generator);
        let [few, more] = FEW_ROWS.map(|most| &near[..near.len().min(most)]);
        let mut by_column = None;
        let mut trees = Trees { prepared: self, estimated, process, table: picked(&values, d, few), known: Vec::new() };
        for (part, known) in [(few, 1), (more, self.n_present(best, &rows, more)?)] {
            trees.move_to(|| picked(&values, d, part), part.len());
            let Some(common) = trees.common()? else { return Ok(None) };
            by_column = trees.by_column(&common.1)?;
            if trees.best(common, by_column.as_ref())?.0.n_clusters() <= known {
                return Ok(None);
            }
        }
        trees.move_to(|| picked(&values, d, &near), near.len());
        let Some(common) = trees.common()? else { return Ok(None) };
        let (found, breadth) = trees.best(common, by_column.as_ref())?;
        if found.n_clusters() <= self.n_present(best, &rows, &near)? || found.n_clusters() * BIG < near.len() {
            return Ok(None);
        }
        let most = best.total.n_components();
        let mut some = generator.subset(self.n_rows, MANY_ROWS as usize);
        some.sort_unstable();
        trees.table = picked(&values, d, &some);
        let tree = trees.grown(&breadth, N_TRIALS)?;
        let Some(tree) = tree.filter(|tree| tree.n_clusters() > most) else { return Ok(None) };
        let total = self.sums(&rows.pick(&numbers(&some))?, &tree)?;
        let classes = vec![None; total.n_components()];
        Ok(Some(NewStart { total, classes, base: tree.base, stage: Stage::OtherStart }))
    }

    /// Number of components of a state that are the best one for some of these rows.
    fn n_present(&self, state: &BestState, rows: &SeenRows<'_, F>, list: &[u32]) -> Result<usize> {
        let model = self.model.with_base(state.base.clone())?;
        let globals = Globals::new(&model, &state.total, 0);
        let scorer = globals.scorer_without_tail(&model)?;
        let step = LocalStep {
            likelihood: model.likelihood.as_ref(),
            ids: &globals.ids,
            assign: &ByScore {
                scorer: scorer.as_ref(),
                has_tail: false,
                width: 1,
                margin: None,
                abandon: true,
                row_terms: false,
                mask: None,
            },
            keep: Keep::Nothing,
            cancel: self.cancel,
        };
        let mut present = Present(BTreeSet::new());
        step.run(&rows.pick(&numbers(list))?, None, &mut [&mut present])?;
        Ok(present.0.len())
    }

    /// The sums of the rows of each cluster of a tree of these rows, scaled to the mass of all rows.
    fn sums(&self, units: &RowUnits<'_, F>, tree: &CutTree) -> Result<Summary> {
        let ids = EditLog::default().issue(tree.n_clusters());
        let mut labels = vec![0; self.n_rows];
        for (unit, &label) in tree.labels.iter().enumerate() {
            labels[units.row_number(unit)] = label;
        }
        let step = LocalStep {
            likelihood: self.model.likelihood.as_ref(),
            ids: &ids,
            assign: &FromLabels { labels: &labels },
            keep: Keep::Summary,
            cancel: self.cancel,
        };
        let sums = step.run(units, None, &mut [])?.summary.into_dense();
        Ok(sums.scale(self.n_rows as f64 / units.len() as f64))
    }
}

/// Collects the best components of rows.
struct Present(BTreeSet<u32>);

impl Tap for Present {
    fn observe(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        self.0.extend(&chunk.responsibilities.components);
        Ok(())
    }
}

/// A tree that was cut.
#[derive(Clone)]
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
#[derive(Debug, Clone, PartialEq)]
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

/// Trees of the same rows under several base measures.
struct Trees<'a, F: Scalar> {
    prepared: &'a Prepared<'a, F>,
    estimated: &'a Estimated,
    process: Arc<dyn Partitions>,
    /// The rows.
    table: RowTable,
    /// The trees that have been grown once.
    known: Vec<(Breadth, Option<CutTree>)>,
}

impl<F: Scalar> Trees<'_, F> {
    /// Goes on with this many of the nearest rows, unless these are its rows.
    fn move_to(&mut self, table: impl FnOnce() -> RowTable, n_rows: usize) {
        if n_rows != self.table.n_rows() {
            (self.table, self.known) = (table(), Vec::new());
        }
    }

    /// The best tree under breadths that are the same in all columns.
    fn common(&mut self) -> Result<Option<(CutTree, Breadth)>> {
        self.climb(DIVISORS.map(|divisor| Breadth { divisors: vec![divisor], certainty: 1.0 }))
    }

    /// The best tree under the common breadth, the one by column, and both with more certainty.
    fn best(&mut self, common: (CutTree, Breadth), by_column: Option<&Breadth>) -> Result<(CutTree, Breadth)> {
        let rivals: Vec<Breadth> = [&common.1].into_iter().chain(by_column).cloned().collect();
        let mut best = better(common, self.climb(by_column.cloned())?);
        for rival in rivals {
            let certain = FACTORS.map(|factor| rival.times(factor, CERTAIN));
            best = better(best, self.climb(certain)?);
        }
        Ok(best)
    }

    /// The tree with the highest evidence of those under wider and then narrower base measures, until the evidence
    /// clearly falls.
    fn climb(&mut self, breadths: impl IntoIterator<Item = Breadth>) -> Result<Option<(CutTree, Breadth)>> {
        let mut best: Option<(CutTree, Breadth)> = None;
        let mut n_worse = 0;
        let breadths: Vec<Breadth> = breadths.into_iter().collect();
        // With more threads, trees are grown that are not needed after a fall.
        for some in breadths.chunks(n_threads()) {
            let new: Vec<&Breadth> = some.iter().filter(|breadth| self.place_of(breadth).is_none()).collect();
            let trees = try_map(new.len(), |index| self.grown(new[index], 1))?;
            self.known.extend(new.into_iter().cloned().zip(trees));
            for breadth in some {
                let known = self.place_of(breadth).and_then(|place| self.known[place].1.clone());
                let Some(tree) = known else { return Ok(best) };
                let most = best.as_ref().map_or(f64::NEG_INFINITY, |(best, _)| best.evidence);
                let is_clear = tree.evidence < most - CLEAR * self.table.n_rows() as f64;
                n_worse = if is_clear { n_worse + 1 } else { 0 };
                if tree.evidence > most {
                    best = Some((tree, breadth.clone()));
                }
                if n_worse == FALLS {
                    return Ok(best);
                }
            }
        }
        Ok(best)
    }

    /// Where the tree of this breadth is among the known ones.
    fn place_of(&self, breadth: &Breadth) -> Option<usize> {
        self.known.iter().position(|(known, _)| known == breadth)
    }

    /// The best breadth when one column after the other is scaled, unless it is the common one.
    fn by_column(&mut self, common: &Breadth) -> Result<Option<Breadth>> {
        let d = self.prepared.model.likelihood.dimension();
        if d == 1 {
            return Ok(None);
        }
        let common = Breadth { divisors: vec![common.divisors[0]; d], ..*common };
        let Some(mut best) = self.climb([common.clone()])? else { return Ok(None) };
        for column in 0..d {
            let now = best.1.clone();
            let others = [1.0].into_iter().chain(DIVISORS).map(|divisor| now.with(column, divisor));
            best = better(best, self.climb(others)?);
        }
        let breadth = best.1;
        Ok((breadth.divisors != common.divisors).then_some(breadth))
    }

    /// The best of some trees under a base measure of this breadth; `None` if there is none for this model, or too
    /// little memory.
    fn grown(&self, breadth: &Breadth, n_trials: usize) -> Result<Option<CutTree>> {
        match self.tree(breadth, n_trials) {
            Err(error @ (Error::Cancelled | Error::Source { .. })) => Err(error),
            found => Ok(found.ok().flatten()),
        }
    }

    fn tree(&self, Breadth { divisors, certainty }: &Breadth, n_trials: usize) -> Result<Option<CutTree>> {
        let Prepared { model, grounds, settings, cancel, .. } = self.prepared;
        let Estimated { start, free, .. } = self.estimated;
        let Some(evidence) = model.likelihood.evidence() else { return Ok(None) };
        let given = Given { components: &[], parameters: start, start, free };
        let by = Loosening { divisors, certainty: *certainty, precision: PRECISION };
        let Some(base) = evidence.loose(&given, by)? else { return Ok(None) };
        let exact = grounds.specification.with_base(base.clone()).without_cells()?.likelihood;
        let likelihood = likelihood::build::<f64>(&exact.name, &exact.parameters, model.frame())?;
        let target = Target::new(likelihood, Arc::clone(&self.process), self.table.clone(), 0.0)?;
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

/// At most [`MOST_ROWS`] rows, the nearest to a random one in columns of equal variance, in order of distance: a random
/// sample would have few rows of each of many clusters.
fn nearest(values: &[f64], d: usize, generator: &mut Generator) -> Vec<u32> {
    let n = values.len() / d;
    let square = |column: usize| values.iter().skip(column).step_by(d).map(|x| x * x).sum::<f64>();
    let squares: Vec<f64> = (0..d).map(|column| square(column).max(f64::MIN_POSITIVE)).collect();
    let centre = &values[generator.pick(n) * d..][..d];
    let term = |((x, c), square): ((&f64, &f64), &f64)| (x - c).powi(2) / square;
    let distance = |row: &[f64]| row.iter().zip(centre).zip(&squares).map(term).sum::<f64>();
    let mut rows: Vec<(u64, u32)> =
        // Squares are not negative, so their bits order as they do.
        values.chunks_exact(d).zip(0..).map(|(row, index)| (distance(row).to_bits(), index)).collect();
    rows.sort_unstable();
    rows.truncate(MOST_ROWS);
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Rows as they are numbered in the data, in ascending order.
fn numbers(rows: &[u32]) -> Vec<u64> {
    let mut numbers: Vec<u64> = rows.iter().map(|&row| row.into()).collect();
    numbers.sort_unstable();
    numbers
}

/// These rows as a table.
fn picked(values: &[f64], d: usize, rows: &[u32]) -> RowTable {
    RowTable::dense(rows.iter().flat_map(|&row| &values[row as usize * d..][..d]).copied().collect(), d)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{DenseRows, TableRows};
    use crate::fit::{Job, Settings};
    use crate::init::Init;
    use crate::model::Specification;
    use crate::parallel::Cancel;

    /// A start from some rows stands for all of them, as one of more than [`MANY_ROWS`] rows does.
    #[test]
    fn the_sums_of_some_rows_have_the_mass_of_all() {
        let values: Vec<f64> = (0..40).map(|row| f64::from(row % 4) * 5.0 + f64::from(row).sin()).collect();
        let table = DenseRows::new(&values[..], 1);
        let rows = TableRows { rows: &table, weights: None };
        let (settings, init) = (Settings::default(), Init::KmeansPlusPlus);
        let specification = Specification::new("Gaussian", "DirichletProcess");
        let job = Job { specification: &specification, rows: &rows, init: &init, settings: &settings, ask: None };
        let cancel = Cancel::default();
        let prepared = Prepared::new(&job, None, &cancel).expect("a good job");
        let rows = SeenRows { rows: &rows, coordinates: &prepared.grounds.coordinates };
        let units = rows.pick(&[1, 4, 5, 9, 17, 18, 30, 33]).expect("rows of the table");
        let tree = CutTree { evidence: 0.0, labels: vec![0, 1, 0, 0, 0, 2, 2, 0], base: Parameters::default() };
        let found = prepared.sums(&units, &tree).expect("finite");
        assert!((found.mass - 40.0).abs() < 1e-12 && found.counts == [25.0, 5.0, 10.0], "{found:?}");
        // The sums of a cluster are its count times its mean.
        let relative = relative(&units, prepared.model.likelihood.origin());
        let mean = 0.5 * (relative[5] + relative[6]);
        assert!((found.component(2).statistics[0] - 10.0 * mean).abs() < 1e-9, "{found:?}");
    }
}
