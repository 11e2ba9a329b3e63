//! The partition of the lowest expected loss over draws, by a greedy search in the manner of Dahl, Johnson & Mueller
//! (2022): without a matrix of n x n similarities.

use crate::error::Result;
use crate::parallel::{Cancel, try_map};
use crate::partitions::table::{CellCounts, ExpectedLoss};
use crate::partitions::{LabelDraws, Loss};
use crate::rng::{Choices, Generator, Purpose, permutation, stream};

/// Clusters for which a run has room at first.
const ROOM: usize = 8;
/// Clusters that are taken apart in each round of a run.
const TAKEN_APART: usize = 10;
/// Runs begin with as many of the draws, so that most of the way costs little.
const FEW_DRAWS: usize = 100;
/// The usual number of runs.
const RUNS: usize = 16;
/// Runs before the first look at whether they agree, and how many of them must agree.
const FIRST_RUNS: usize = 4;
const AGREE: usize = 3;
/// Groups between two looks at a request to stop.
const BETWEEN_LOOKS: usize = 64;
/// Up to this many groups all partitions are tried: there are 4,140.
const FEW_GROUPS: usize = 8;
/// Up to this limit the search starts also from the best partition of one cluster less, so that a higher limit never
/// ends worse.
const SMALL_LIMIT: usize = 10;
/// Pairs of groups that a round offers to exchange.
const EXCHANGES: usize = 2000;
/// Changes of the loss that are smaller than this share of it are rounding, of sums over up to some thousand draws.
const ROUNDING: f64 = 1e-11;

/// How the search runs.
#[derive(Debug, Clone, Copy)]
pub struct SearchPlan {
    /// Number of runs from different starts; the best one counts. `None`: usually 16, but four if three of them end
    /// with the same loss, which is the lowest of them.
    pub runs: Option<usize>,
    /// The largest number of clusters, at least 1; usually [`LabelDraws::most_clusters`].
    pub max_clusters: usize,
    /// Decides the order of rows, and the clusters taken apart.
    pub seed: u64,
}

/// A partition and its expected loss.
#[derive(Debug, Clone, PartialEq)]
pub struct PartitionEstimate {
    /// Labels in the order of first appearance, (n,).
    pub labels: Vec<u32>,
    /// The mean loss over all draws: nats, or pairs of rows.
    pub loss: f64,
}

/// Searches the partition with the lowest expected loss.
///
/// # Errors
/// [`crate::Error::InvalidArgument`] for `max_clusters` if the counts of a run do not fit in memory;
/// [`crate::Error::Cancelled`].
pub fn estimate(draws: &LabelDraws, loss: Loss, plan: SearchPlan, cancel: &Cancel) -> Result<PartitionEstimate> {
    let objective = ExpectedLoss::new(draws, loss);
    let (loss, of_groups) = if draws.n_groups() <= FEW_GROUPS {
        best_of_all(&objective, plan.max_clusters)?
    } else {
        let is_limit = plan.max_clusters < draws.most_clusters() && plan.max_clusters <= SMALL_LIMIT;
        let mut best: Option<(f64, Vec<u32>)> = None;
        for max_clusters in (1..=plan.max_clusters).filter(|_| is_limit) {
            best = Some(best_of_runs(&objective, SearchPlan { max_clusters, ..plan }, best.as_ref(), cancel)?);
        }
        best.map_or_else(|| best_of_runs(&objective, plan, None, cancel), Ok)?
    };
    let mut numbers = vec![u32::MAX; of_groups.len()];
    let mut n = 0;
    let number = |&group: &u32| {
        let number = &mut numbers[of_groups[group as usize] as usize];
        if *number == u32::MAX {
            *number = n;
            n += 1;
        }
        *number
    };
    Ok(PartitionEstimate { labels: draws.groups.iter().map(number).collect(), loss })
}

/// The best of all partitions of a few groups into at most `most` clusters.
fn best_of_all(objective: &ExpectedLoss<'_>, most: usize) -> Result<(f64, Vec<u32>)> {
    let n = objective.draws.n_groups();
    let (mut labels, mut best) = (vec![0_u32; n], (f64::INFINITY, Vec::new()));
    loop {
        let loss = CellCounts::of(objective, &labels)?.loss();
        if loss < best.0 {
            best = (loss, labels.clone());
        }
        // The next labels whose clusters are numbered by first appearance.
        let may_rise = |place: usize| {
            let before = labels[..place].iter().max().map_or(0, |&label| label + 1);
            labels[place] < before.min(most as u32 - 1)
        };
        let Some(place) = (1..n).rev().find(|&place| may_rise(place)) else { return Ok(best) };
        labels[place] += 1;
        labels[place + 1..].fill(0);
    }
}

/// The best of several runs, and of one that goes on from the labels of groups `from`, with their loss.
fn best_of_runs(
    objective: &ExpectedLoss<'_>,
    plan: SearchPlan,
    from: Option<&(f64, Vec<u32>)>,
    cancel: &Cancel,
) -> Result<(f64, Vec<u32>)> {
    let some = objective.draws.thinned(FEW_DRAWS);
    let coarse = some.as_ref().map(|some| ExpectedLoss::new(some, objective.loss));
    let search = |run| {
        let first = coarse.as_ref().unwrap_or(objective);
        let found = Searcher::start(first, plan, run, cancel)?.search()?;
        match &coarse {
            // The best partition for some of the draws is where the search among all begins.
            Some(_) => Searcher::from(objective, plan, run, &found.1, cancel)?.search(),
            None => Ok(found),
        }
    };
    let mut runs = try_map(plan.runs.unwrap_or(FIRST_RUNS), search)?;
    let lowest = runs.iter().map(|(loss, _)| *loss).fold(f64::INFINITY, f64::min);
    let same = objective.loss_of(ROUNDING * objective.of_all_rows());
    let n_lowest = runs.iter().filter(|(loss, _)| *loss <= lowest + same).count();
    if n_lowest < AGREE && plan.runs.is_none() {
        runs.extend(try_map(RUNS - FIRST_RUNS, |run| search(run + FIRST_RUNS))?);
    }
    if let Some((loss, labels)) = from {
        runs.push((*loss, labels.clone()));
        runs.push(Searcher::from(objective, plan, RUNS, labels, cancel)?.search()?);
    }
    let first = |best: (f64, Vec<u32>), run: (f64, Vec<u32>)| if run.0 < best.0 { run } else { best };
    Ok(runs.into_iter().reduce(first).unwrap_or_default())
}

/// The index of the lowest number, the first one of several.
fn lowest(changes: &[f64]) -> usize {
    changes.iter().enumerate().fold(0, |best, (index, change)| if *change < changes[best] { index } else { best })
}

/// Numbers from 0 to below 1, of which any first few are spread out: 0, 1/2, 1/4, 3/4, 1/8 and so on.
fn spread(index: usize) -> f64 {
    (index as u64).reverse_bits() as f64 / 2_f64.powi(64)
}

/// One run of the search.
struct Searcher<'a> {
    table: CellCounts<'a>,
    n_groups: usize,
    max_clusters: usize,
    generator: Generator,
    cancel: &'a Cancel,
    changes: Vec<f64>,
    /// For each group, the change of the loss, times its unit, by moving it to the best other cluster, when it was
    /// last visited.
    gaps: Vec<f64>,
    /// Changes of the loss, times its unit, that count as none.
    rounding: f64,
}

impl<'a> Searcher<'a> {
    /// Runs with an even number start from a draw, the others from rows that are put into clusters one by one.
    fn start(objective: &'a ExpectedLoss<'a>, plan: SearchPlan, run: usize, cancel: &'a Cancel) -> Result<Self> {
        let draws = objective.draws;
        let mut generator = stream(plan.seed, Purpose::Draws, run as u64);
        let allowed = draws.of_clusters(plan.max_clusters);
        // More runs begin like fewer.
        let place = (spread(run / 2) * allowed.len() as f64) as usize;
        let from = allowed.get(place).filter(|_| run.is_multiple_of(2));
        let table = match from {
            Some(&draw) => CellCounts::of(objective, &draws.draw(draw))?,
            None => CellCounts::empty(objective, ROOM)?,
        };
        let order = permutation(draws.n_groups() as u32, &mut generator);
        let mut run = Self::new(objective, plan, table, generator, cancel);
        if from.is_none() {
            run.allot(&order)?;
        }
        Ok(run)
    }

    /// Starts from the clusters of all groups.
    fn from(
        objective: &'a ExpectedLoss<'a>,
        plan: SearchPlan,
        run: usize,
        labels: &[u32],
        cancel: &'a Cancel,
    ) -> Result<Self> {
        let table = CellCounts::of(objective, labels)?;
        Ok(Self::new(objective, plan, table, stream(plan.seed, Purpose::Start, run as u64), cancel))
    }

    fn new(
        objective: &'a ExpectedLoss<'a>,
        plan: SearchPlan,
        table: CellCounts<'a>,
        generator: Generator,
        cancel: &'a Cancel,
    ) -> Self {
        let rounding = ROUNDING * objective.of_all_rows();
        let (n_groups, max_clusters) = (objective.draws.n_groups(), plan.max_clusters);
        let (changes, gaps) = (Vec::new(), vec![0.0; n_groups]);
        Self { table, n_groups, max_clusters, generator, cancel, changes, gaps, rounding }
    }

    fn search(mut self) -> Result<(f64, Vec<u32>)> {
        loop {
            self.settle()?;
            if self.merge()? || self.take_apart()? || self.exchange()? {
                continue;
            }
            return Ok((self.table.loss(), self.table.labels().to_vec()));
        }
    }

    /// The best cluster of a group that has none. Where only rounding separates them, it is the old one, so that a
    /// scan ends.
    fn best(&mut self, group: usize, old: Option<usize>) -> usize {
        self.table.changes(group, &mut self.changes);
        if self.table.n_clusters() == self.max_clusters {
            self.changes.pop();
        }
        let best = lowest(&self.changes);
        old.filter(|&old| self.changes[old] <= self.changes[best] + self.rounding).unwrap_or(best)
    }

    /// Puts groups that have no cluster where they are best, one after another.
    fn allot(&mut self, groups: &[u32]) -> Result<()> {
        for (index, &group) in groups.iter().enumerate() {
            if index.is_multiple_of(BETWEEN_LOOKS) {
                self.cancel.check()?;
            }
            let best = self.best(group as usize, None);
            self.table.add(group as usize, best)?;
        }
        Ok(())
    }

    /// Scans until no group moves. After a scan, those are visited that could move next: that lose no more by a move
    /// than others have just gained. If none of them moves, all are visited again.
    fn settle(&mut self) -> Result<()> {
        let all: Vec<u32> = (0..self.n_groups as u32).collect();
        let mut gained = f64::INFINITY;
        loop {
            let visits_all = gained == f64::INFINITY;
            let may_move = |group: &u32| self.gaps[*group as usize] <= gained;
            let visited: Vec<u32> = all.iter().copied().filter(may_move).collect();
            gained = match self.scan(&visited)? {
                None if visits_all => return Ok(()),
                None => f64::INFINITY,
                Some(gained) => gained,
            };
        }
    }

    /// Offers groups another cluster, in random order. Returns the largest gain of a move, times the unit of the loss,
    /// if any moved.
    fn scan(&mut self, groups: &[u32]) -> Result<Option<f64>> {
        let mut largest = None;
        for (index, place) in permutation(groups.len() as u32, &mut self.generator).into_iter().enumerate() {
            if index.is_multiple_of(BETWEEN_LOOKS) {
                self.cancel.check()?;
            }
            let group = groups[place as usize] as usize;
            let old = self.table.label(group);
            let best = self.best(group, Some(old));
            let stays = std::mem::replace(&mut self.changes[old], f64::INFINITY);
            self.gaps[group] = self.changes[lowest(&self.changes)] - stays;
            if best != old {
                largest = Some(f64::max(largest.unwrap_or(0.0), -self.gaps[group]));
                self.table.take(group);
                self.table.add(group, best)?;
                if self.table.size(old) == 0 {
                    self.table.drop_empty(old);
                }
            }
        }
        Ok(largest)
    }

    /// Joins pairs of clusters as long as that lowers the loss. Returns whether any were joined.
    fn merge(&mut self) -> Result<bool> {
        let (mut merged, mut cluster) = (false, 1);
        while cluster < self.table.n_clusters() {
            self.cancel.check()?;
            let changes = self.table.changes_by_merges(cluster);
            let into = lowest(&changes);
            if changes[into] < -self.rounding {
                self.table.merge(cluster, into);
                // The cluster that it joined may now join another one before it.
                (merged, cluster) = (true, into.max(1));
            } else {
                cluster += 1;
            }
        }
        Ok(merged)
    }

    /// Where no further cluster is allowed, offers pairs of groups of different clusters to change places. Returns
    /// whether that lowered the loss.
    fn exchange(&mut self) -> Result<bool> {
        let (n, unit) = (self.n_groups, self.rounding);
        if self.table.n_clusters() < self.max_clusters || self.max_clusters == 1 {
            return Ok(false);
        }
        let mut pairs = Vec::new();
        if n * (n - 1) / 2 <= EXCHANGES {
            (0..n).for_each(|other| pairs.extend((0..other).map(|one| (one, other))));
        } else {
            pairs.extend((0..EXCHANGES).map(|_| (self.generator.pick(n), self.generator.pick(n))));
        }
        let mut gained = false;
        for (one, other) in pairs {
            let (a, b) = (self.table.label(one), self.table.label(other));
            if a == b {
                continue;
            }
            self.cancel.check()?;
            let change = self.moved(one, b)? + self.moved(other, a)?;
            if change < -unit {
                gained = true;
            } else {
                self.moved(other, b)?;
                self.moved(one, a)?;
            }
        }
        Ok(gained)
    }

    /// Moves a group, and returns the change of the loss times its unit.
    fn moved(&mut self, group: usize, to: usize) -> Result<f64> {
        let old = self.table.label(group);
        self.table.changes(group, &mut self.changes);
        let change = self.changes[to] - self.changes[old];
        self.table.take(group);
        self.table.add(group, to)?;
        Ok(change)
    }

    /// Takes some clusters apart, one at a time, and puts their rows where they are best. Returns whether that lowered
    /// the loss; if not, the partition is what it was.
    fn take_apart(&mut self) -> Result<bool> {
        let n_clusters = self.table.n_clusters();
        for cluster in self.generator.subset(n_clusters, TAKEN_APART) {
            let (before, kept) = (self.table.loss(), self.table.clone());
            let label = |&group: &u32| self.table.label(group as usize) == cluster as usize;
            let members: Vec<u32> = (0..self.n_groups as u32).filter(label).collect();
            for &group in &members {
                self.table.take(group as usize);
            }
            self.table.drop_empty(cluster as usize);
            let order = permutation(members.len() as u32, &mut self.generator);
            self.allot(&order.into_iter().map(|index| members[index as usize]).collect::<Vec<_>>())?;
            self.scan(&members)?;
            if self.table.loss() < before * (1.0 - ROUNDING) {
                return Ok(true);
            }
            self.table = kept;
        }
        Ok(false)
    }
}
