//! Rearrangements of components that overlap: one to three of them are replaced by as many or one more parts of their
//! rows, and the result is kept if it has a higher bound after plain passes of all components (mathematics 10.10).
//! Births cannot find these states, because a split is judged before its neighbours react.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::component::{Class, ComponentId, EditLog};
use crate::data::{BatchSource, Dataset, RowUnits, Sample, SeenBatches, SeenRows};
use crate::elbo;
use crate::error::Result;
use crate::executor::{Executor, InProcess};
use crate::fit::copies::Copies;
use crate::fit::order::falling;
use crate::fit::prepare::Prepared;
use crate::fit::pulse::Pulse;
use crate::fit::stages::BestState;
use crate::global_step::Globals;
use crate::local_step::{Chunk, FromLabels, Keep, LocalStep, Tap};
use crate::model::Model;
use crate::moves::{part_labels, tried};
use crate::parallel::Cancel;
use crate::rng::{Choices, Generator, Purpose, stream};
use crate::simd::Scalar;
use crate::suffstats::Summary;
use crate::visits::LocalOptions;

/// How often one, two and three components are replaced.
const POOLS: [f64; 3] = [1.0, 2.0, 1.0];
/// Responsibility of the pool above which a row counts as one of its rows.
const LEAST_SHARE: f64 = 1e-3;
/// Number of plain passes after which a replacement is judged.
const PASSES: usize = 8;
/// Number of plain passes of a promising replacement.
const LONG: usize = 40;
/// A replacement is promising if it lacks at most this much, nats.
const SHORT: f64 = 8.0;
/// Least gain of a replacement, nats.
const GAIN: f64 = 0.05;
/// Gain of a plain pass below which no further one is made, nats.
const SETTLED: f64 = 0.01;
/// Maximum number of replacements tried, since those without rows cost nothing.
const MOST_TRIES: usize = 1000;

impl<F: Scalar> Prepared<'_, F> {
    /// The summary and the classes of a better state than the best, under its base measure, if rearrangements lead to
    /// one for `budget` pairs of rows and components. They end when the pulse says so.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`]; [`crate::Error::Source`].
    pub(super) fn rearrange(
        &self,
        best: &BestState,
        budget: usize,
        pulse: &mut Pulse<'_>,
    ) -> Result<Option<(Summary, Vec<Class>)>> {
        if best.total.n_components() < 2 {
            return Ok(None);
        }
        // Visits show the responsibilities of single rows, and there are many.
        let Some(copies) = Copies::of_all(self.job.rows)? else {
            return self.rearrange_rows(self.job.rows, self.source.as_ref(), best, budget, pulse);
        };
        let rows = copies.table();
        let (source, coordinates) = (rows.batches(self.sharding)?, Arc::clone(&self.grounds.coordinates));
        self.rearrange_rows(&rows, &SeenBatches { source, coordinates, allowed: None }, best, budget, pulse)
    }

    fn rearrange_rows(
        &self,
        rows: &dyn Dataset<F>,
        source: &dyn BatchSource<F>,
        best: &BestState,
        budget: usize,
        pulse: &mut Pulse<'_>,
    ) -> Result<Option<(Summary, Vec<Class>)>> {
        let rows = SeenRows { rows, coordinates: &self.grounds.coordinates };
        let model = self.model.with_base(best.base.clone())?;
        let local = LocalOptions { keep: Keep::Summary, bounds_memory: 0, ..self.settings.local };
        let list: Vec<u64> = (0..self.n_rows as u64).collect();
        let rearranging = Rearranging {
            executor: self.executor_over(source, &model, local)?,
            units: rows.pick(&list)?,
            cancel: self.cancel,
            generator: stream(self.settings.seed, Purpose::Rearrangements, 0),
            edits: EditLog::default(),
            n_visits: 0,
            pairs: 0,
            model,
        };
        rearranging.run(best, budget, pulse)
    }
}

/// A state, with the responsibilities that led to it.
struct State {
    total: Summary,
    bound: f64,
    /// By row: positions of components and their responsibilities.
    rows: Vec<Vec<(u32, f64)>>,
    /// The entropy that joining two components would remove, lower position first.
    overlaps: BTreeMap<(usize, usize), f64>,
}

/// Tries rearrangements under a fixed base measure.
struct Rearranging<'a, F: Scalar> {
    model: Model<F>,
    executor: InProcess<'a, F>,
    /// All rows.
    units: RowUnits<'a, F>,
    cancel: &'a Cancel,
    generator: Generator,
    /// Identities and classes of parts. There are no edits, because visits keep nothing by component.
    edits: EditLog,
    n_visits: u64,
    /// Work so far.
    pairs: usize,
}

impl<F: Scalar> Rearranging<'_, F> {
    fn run(mut self, best: &BestState, budget: usize, pulse: &mut Pulse<'_>) -> Result<Option<(Summary, Vec<Class>)>> {
        let mut total = best.total.clone();
        total.ids = self.edits.issue(total.n_components());
        total.ids.iter().zip(&best.classes).for_each(|(&id, &class)| self.edits.set_class(id, class));
        let Some(mut best) = self.settled(total)? else { return Ok(None) };
        let first = best.bound;
        for _ in 0..MOST_TRIES {
            if self.pairs >= budget || pulse.stops() {
                break;
            }
            if let Some(better) = self.attempt(&best)? {
                best = better;
            }
        }
        let classes = self.edits.classes(&best.total.ids);
        Ok((best.bound > first + GAIN).then_some((best.total, classes)))
    }

    /// A state with a higher bound, if one replacement leads to it. A failed computation is no gain.
    fn attempt(&mut self, state: &State) -> Result<Option<State>> {
        let Some(other) = tried(self.replaced(state))?.flatten() else { return Ok(None) };
        let wanted = state.bound + GAIN;
        let Some((mut total, mut bound)) = tried(self.after(other, PASSES, wanted - SHORT))? else { return Ok(None) };
        if bound > wanted - SHORT && bound < wanted {
            let Some(found) = tried(self.after(total, LONG, wanted))? else { return Ok(None) };
            (total, bound) = found;
        }
        if bound > wanted { self.settled(total) } else { Ok(None) }
    }

    /// The state after plain passes, with its responsibilities.
    fn settled(&mut self, total: Summary) -> Result<Option<State>> {
        let Some((total, _)) = tried(self.after(total, LONG, f64::NEG_INFINITY))? else { return Ok(None) };
        let mut seen = SeenShares::new(self.units.len());
        let Some(total) = tried(self.pass(&total, &mut [&mut seen]))? else { return Ok(None) };
        let Some(bound) = tried(self.bound(&total))? else { return Ok(None) };
        Ok(Some(State { total, bound, overlaps: seen.overlaps(&self.units), rows: seen.rows }))
    }

    /// The summary and its bound after some plain passes, fewer if they gain nothing, or if the bound would not come
    /// to `wanted` although all gained as much as the last one.
    fn after(&mut self, mut total: Summary, passes: usize, wanted: f64) -> Result<(Summary, f64)> {
        let mut bound = f64::NEG_INFINITY;
        for left in (0..passes).rev() {
            total = self.pass(&total, &mut [])?;
            let before = std::mem::replace(&mut bound, self.bound(&total)?);
            let gain = bound - before;
            if gain < SETTLED || bound + gain * (left as f64) < wanted {
                break;
            }
        }
        Ok((total, bound))
    }

    fn bound(&self, total: &Summary) -> Result<f64> {
        Ok(elbo::collapsed(&self.model, total)?.total())
    }

    /// A visit of every batch under the components of `total`.
    fn pass(&mut self, total: &Summary, taps: &mut [&mut dyn Tap]) -> Result<Summary> {
        let globals = Globals::new(&self.model, total, self.n_visits);
        self.n_visits += 1;
        let mut next = Summary::empty(globals.ids.clone(), total.n_statistics, false);
        for batch in 0..self.executor.n_batches() {
            self.cancel.check()?;
            let visit = self.executor.visit_with_taps(batch, &globals, &self.edits, taps)?;
            next.add(&visit.summary)?;
            self.pairs += visit.work.pairs;
        }
        if taps.is_empty()
            && let Some(edit) = falling(&self.model, &next)?
        {
            next.apply(&edit)?;
        }
        Ok(next)
    }

    /// The summary with a few components replaced by parts of their rows; `None` if they have too few.
    fn replaced(&mut self, state: &State) -> Result<Option<Summary>> {
        let pool = self.pool(state);
        let is_more = pool.len() == 1 || self.generator.pick(2) == 1;
        let fresh = pool.len() + usize::from(is_more);
        let mut sample = Sample::default();
        for (row, pairs) in state.rows.iter().enumerate() {
            let share: f64 = pairs.iter().filter(|(k, _)| pool.contains(&(*k as usize))).map(|(_, share)| share).sum();
            if share > LEAST_SHARE && self.units.mass(row) > 0.0 {
                sample.extend_weighted(&self.units, &[row as u32], share);
            }
        }
        if sample.len() < (2 * fresh).max(4) {
            return Ok(None);
        }
        let parts = self.parts(&sample, &pool, fresh, &state.total)?;
        let others: Vec<usize> = (0..state.total.n_components()).filter(|k| !pool.contains(k)).collect();
        // A part of less than half a row would end empty.
        let kept: Vec<usize> = (0..fresh).filter(|&part| parts.counts[part] >= 0.5).collect();
        let ids: Vec<ComponentId> =
            others.iter().map(|&k| state.total.ids[k]).chain(kept.iter().map(|&part| parts.ids[part])).collect();
        let mut next = Summary::empty(ids, state.total.n_statistics, false);
        (next.mass, next.log_base_measure) = (state.total.mass, state.total.log_base_measure);
        others.iter().enumerate().for_each(|(to, &from)| next.add_component(to, &state.total, from));
        kept.iter().enumerate().for_each(|(to, &from)| next.add_component(others.len() + to, &parts, from));
        Ok(Some(next))
    }

    /// Positions of one to three components that overlap, all of one class or all free.
    fn pool(&mut self, state: &State) -> Vec<usize> {
        let k = state.total.n_components();
        let wanted = 1 + self.generator.choose(&POOLS);
        let mut pool = vec![self.generator.pick(k)];
        let classes = self.edits.classes(&state.total.ids);
        while pool.len() < wanted {
            let overlap = |a: usize, b: usize| state.overlaps.get(&(a.min(b), a.max(b))).copied().unwrap_or(0.0);
            let of_all = |b: usize| pool.iter().map(|&a| overlap(a, b)).sum::<f64>();
            let is_left = |b: usize| !pool.contains(&b) && classes[b] == classes[pool[0]];
            let weights: Vec<f64> = (0..k).map(|b| if is_left(b) { of_all(b).max(0.0) } else { 0.0 }).collect();
            if weights.iter().sum::<f64>() <= 0.0 {
                break;
            }
            pool.push(self.generator.choose(&weights));
        }
        pool
    }

    /// The sums of `fresh` parts of these rows, by k-means++.
    fn parts(&mut self, sample: &Sample, pool: &[usize], fresh: usize, total: &Summary) -> Result<Summary> {
        let ids = self.edits.issue(fresh);
        self.edits.inherit(total.ids[pool[0]], &ids);
        let mut pooled = Summary::empty(ids[..1].to_vec(), total.n_statistics, false);
        for &k in pool {
            pooled.add_component(0, total, k);
        }
        let units = sample.units::<F>(1.0);
        let labels = part_labels(&self.model, &units, pooled.component(0), &ids, &mut self.generator, self.cancel)?;
        let step = LocalStep {
            likelihood: self.model.likelihood.as_ref(),
            ids: &ids,
            assign: &FromLabels { labels: &labels },
            keep: Keep::Summary,
            cancel: self.cancel,
        };
        Ok(step.run(&units, None, &mut [])?.summary.into_dense())
    }
}

/// Collects the responsibilities of all rows.
struct SeenShares {
    rows: Vec<Vec<(u32, f64)>>,
}

impl Tap for SeenShares {
    fn observe(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        let found = chunk.responsibilities;
        let width = found.width;
        let pairs = found.components.chunks_exact(width).zip(found.values.chunks_exact(width));
        for (unit, (components, values)) in pairs.enumerate() {
            let row = components.iter().copied().zip(values.iter().copied()).filter(|(_, value)| *value > 0.0);
            self.rows[chunk.row_number(unit)] = row.collect();
        }
        Ok(())
    }
}

impl SeenShares {
    fn new(n: usize) -> Self {
        Self { rows: vec![Vec::new(); n] }
    }

    /// The entropy that joining two components would remove, by their positions, the lower one first.
    fn overlaps<F: Scalar>(&self, units: &RowUnits<'_, F>) -> BTreeMap<(usize, usize), f64> {
        let entropy = |r: f64| if r > 0.0 { -r * r.ln() } else { 0.0 };
        let mut overlaps = BTreeMap::new();
        for (row, pairs) in self.rows.iter().enumerate() {
            for (index, &(a, of_a)) in pairs.iter().enumerate() {
                for &(b, of_b) in &pairs[index + 1..] {
                    let gap = units.mass(row) * (entropy(of_a) + entropy(of_b) - entropy(of_a + of_b));
                    *overlaps.entry((a.min(b) as usize, a.max(b) as usize)).or_insert(0.0) += gap;
                }
            }
        }
        overlaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{DenseRows, Sharding, TableRows};
    use crate::fit::{Job, Settings};
    use crate::init::Init;
    use crate::mcmc::tests::cases::{dirichlet, gaussian, specification};
    use crate::model::Specification;
    use crate::moves::Moves;
    use crate::responsibilities::Sparsity;
    use crate::visits::RowKind;

    /// Groups of three clusters on a line, of which the first two share a component and the third has two.
    fn crossed(n_groups: u32, of_cluster: u32) -> (Vec<f64>, Vec<u32>) {
        let of_group = 3 * of_cluster;
        let place = |row: u32| row / of_cluster + 5 * (row / of_group);
        let value = |row: u32| 9.0 * f64::from(place(row)) + f64::from(row * row % 17) / 8.0;
        let part = |row: u32| if row % of_group < 2 * of_cluster { 0 } else { 1 + row % 2 };
        let rows = 0..n_groups * of_group;
        (rows.clone().map(value).collect(), rows.map(|row| 3 * (row / of_group) + part(row)).collect())
    }

    /// The best state of these components, and what its rearrangement leads to.
    fn rearranged(n_groups: u32, of_cluster: u32, budget: usize) -> (BestState, Option<Summary>, f64) {
        let (best, found, bound) = rearranged_within(n_groups, of_cluster, budget, None);
        (best, found.map(|(total, _)| total), bound)
    }

    /// The same with the class of each row.
    fn rearranged_within(
        n_groups: u32,
        of_cluster: u32,
        budget: usize,
        classes: Option<Vec<i64>>,
    ) -> (BestState, Option<(Summary, Vec<Class>)>, f64) {
        let (values, labels) = crossed(n_groups, of_cluster);
        let table = DenseRows::new(&values[..], 1);
        let rows = TableRows { rows: &table, weights: None };
        let settings = Settings {
            n_components: Some(3 * n_groups as usize),
            moves: Moves::usual(),
            labels: classes.map(Into::into),
            ..Settings::default()
        };
        let (specification, init) = (Specification::new("Gaussian", "DirichletProcess"), Init::Labels(&labels));
        let job = Job { specification: &specification, rows: &rows, init: &init, settings: &settings, ask: None };
        let cancel = Cancel::default();
        let prepared = Prepared::new(&job, None, &cancel).expect("a good job");
        let position = prepared.start().expect("labels");
        let (total, base) = (position.memo.total().clone(), position.base.clone());
        let model = prepared.model.with_base(base.clone()).expect("the same base measure");
        let elbo = elbo::collapsed(&model, &total).expect("numbers").total();
        let classes = position.edits.classes(&total.ids);
        let best = BestState { elbo, objective: elbo, base, total, classes, is_cut: false };
        let found = prepared.rearrange(&best, budget, &mut Pulse::new(&(), None)).expect("numbers");
        let bound_of = |total: &Summary| elbo::collapsed(&model, total).expect("numbers").total();
        let bound = found.as_ref().map_or(f64::NAN, |(total, _)| bound_of(total));
        (best, found, bound)
    }

    /// The parts of a pool are made of the rows of all its components.
    #[test]
    fn a_replacement_has_all_rows() {
        let (values, labels) = crossed(2, 60);
        let table = DenseRows::new(&values[..], 1);
        let rows = TableRows { rows: &table, weights: None };
        let settings = Settings { n_components: Some(6), moves: Moves::usual(), ..Settings::default() };
        let (specification, init) = (Specification::new("Gaussian", "DirichletProcess"), Init::Labels(&labels));
        let job = Job { specification: &specification, rows: &rows, init: &init, settings: &settings, ask: None };
        let cancel = Cancel::default();
        let prepared = Prepared::new(&job, None, &cancel).expect("a good job");
        let seen = SeenRows { rows: &rows, coordinates: &prepared.grounds.coordinates };
        let list: Vec<u64> = (0..values.len() as u64).collect();
        let local = LocalOptions { keep: Keep::Summary, bounds_memory: 0, ..prepared.settings.local };
        let executor = prepared.executor_over(prepared.source.as_ref(), &prepared.model, local).expect("rows");
        let mut rearranging = Rearranging {
            executor,
            units: seen.pick(&list).expect("rows of the table"),
            cancel: &cancel,
            generator: stream(1, Purpose::Rearrangements, 0),
            edits: EditLog::default(),
            n_visits: 0,
            pairs: 0,
            model: prepared.model.clone(),
        };
        let mut total = prepared.start().expect("labels").memo.total().clone();
        total.ids = rearranging.edits.issue(total.n_components());
        let state = rearranging.settled(total).expect("not cancelled").expect("finite");
        let n = values.len() as f64;
        let mut n_replaced = [0; 4];
        for _ in 0..40 {
            let Some(next) = rearranging.replaced(&state).expect("finite") else { continue };
            n_replaced[state.total.ids.iter().filter(|id| !next.ids.contains(id)).count()] += 1;
            // Small shares and parts of less than half a row are left out.
            let mass = next.counts.iter().sum::<f64>();
            assert!((mass - n).abs() < 0.01 * n, "{mass} {n}");
            assert_eq!((next.mass, next.log_base_measure), (state.total.mass, state.total.log_base_measure));
        }
        assert!(n_replaced[1..].iter().all(|&n| n > 0), "{n_replaced:?}");
    }

    /// However much components of two classes overlap, one rearrangement takes those of one class, and their parts are
    /// of that class.
    #[test]
    fn components_of_one_class_make_room_for_parts_of_that_class() {
        let values: Vec<f64> = (0..120).map(|place| f64::from(place * 37 % 17)).collect();
        let table = DenseRows::new(&values, 2);
        let rows = TableRows { rows: &table, weights: None };
        let source = rows.batches(Sharding::of(1, None)).expect("one batch");
        let model: Model<f64> = specification(gaussian(2), dirichlet(1.0)).build(vec![0.0; 2]).expect("valid");
        let local =
            LocalOptions { sparsity: Sparsity::Limited(2), margin: None, bounds_memory: 0, keep: Keep::Summary };
        let cancel = Cancel::default();
        let executor = InProcess::new(&RowKind, &model, source.as_ref(), local, cancel.clone()).expect("one batch");
        let all: Vec<u64> = (0..60).collect();
        let (units, labels) = (rows.pick(&all).expect("rows"), (0..60).map(|row| row % 5).collect::<Vec<u32>>());
        let (mut edits, classes) = (EditLog::default(), [Some(0), Some(1), Some(0), Some(1), None]);
        let ids = edits.issue(5);
        ids.iter().zip(classes).for_each(|(&id, class)| edits.set_class(id, class));
        let step = LocalStep {
            likelihood: model.likelihood.as_ref(),
            ids: &ids,
            assign: &FromLabels { labels: &labels },
            keep: Keep::Summary,
            cancel: &cancel,
        };
        let total = step.run(&units, None, &mut []).expect("sums").summary.into_dense();
        let overlaps = (0..5).flat_map(|b| (0..b).map(move |a| ((a, b), 1.0))).collect();
        let state = State { total, bound: 0.0, rows: Vec::new(), overlaps };
        let generator = stream(5, Purpose::Rearrangements, 0);
        let mut rearranging = Rearranging {
            model: model.clone(),
            executor,
            units,
            cancel: &cancel,
            generator,
            edits,
            n_visits: 0,
            pairs: 0,
        };
        let mut n_pairs = 0;
        for _ in 0..200 {
            let pool = rearranging.pool(&state);
            let class = classes[pool[0]];
            assert!(pool.iter().all(|&k| classes[k] == class), "{pool:?}");
            n_pairs += usize::from(pool.len() == 2);
            let own: Vec<u32> = (0..60).filter(|row| pool.contains(&(*row as usize % 5))).collect();
            let mut sample = Sample::default();
            sample.extend(&rearranging.units, &own);
            let parts = rearranging.parts(&sample, &pool, 2, &state.total).expect("parts");
            assert_eq!(rearranging.edits.classes(&parts.ids), [class; 2]);
        }
        assert!(n_pairs > 50, "{n_pairs}");
    }

    #[test]
    fn components_of_a_class_are_put_right_within_it() {
        let (best, found, bound) = rearranged_within(2, 100, 5_000_000, Some((0..600).map(|row| row / 300).collect()));
        let (found, classes) = found.expect("a better state");
        assert!(bound > best.elbo + 10.0, "{bound} {}", best.elbo);
        for class in [0, 1] {
            let of_class = found.counts.iter().zip(&classes).filter(|(_, other)| **other == Some(class));
            assert!((of_class.map(|(count, _)| count).sum::<f64>() - 300.0).abs() < 1e-9, "{:?}", found.counts);
        }
    }

    #[test]
    fn crossed_components_are_put_right() {
        // Later ones are found only from the responsibilities that earlier ones led to.
        for (n_groups, of_cluster, budget) in [(1, 20, 100_000), (2, 400, 5_000_000)] {
            let (best, found, bound) = rearranged(n_groups, of_cluster, budget);
            let found = found.expect("a better state");
            assert!(bound > best.elbo + 10.0, "{bound} {}", best.elbo);
            // No two clusters share a component, although one may have several.
            assert!(found.n_components() >= 3 * n_groups as usize);
            for count in &found.counts {
                assert!(count / f64::from(of_cluster) < 1.05, "{:?}", found.counts);
            }
            // The draws are those of the seed.
            assert_eq!(rearranged(n_groups, of_cluster, budget).1, Some(found));
        }
    }

    #[test]
    fn nothing_is_tried_without_a_budget() {
        assert_eq!(rearranged(1, 20, 0).1, None);
    }
}
