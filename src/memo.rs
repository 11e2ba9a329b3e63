//! The memo: the contribution of every batch at its last visit, and the total (Hughes & Sudderth 2013, section 3).

mod changes;

use serde::{Deserialize, Serialize};

use crate::component::{ComponentId, Edit};
use crate::error::Result;
use crate::suffstats::{PairGaps, Summary, Tail};

pub use changes::Changes;

/// Summaries by batch and their total. Totals are additive, so a visit costs one subtraction and one addition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Memo {
    /// Summary of each batch, `None` before its first visit; empty if the total is an estimate.
    batches: Vec<Option<Summary>>,
    total: Summary,
    /// Stands in for the batches that have not been visited.
    start: Option<StandIn>,
    /// The amount of all data ([`Summary::amount`]), if the start is dropped once a batch has been visited.
    grows_to: Option<f64>,
    /// Summary of the data of an earlier fit, which no visit replaces.
    earlier: Option<Summary>,
    /// Rows that are temporarily counted twice, so that fresh components survive; never part of a bound.
    twice: Option<Summary>,
    /// Set if batch summaries are not kept.
    estimate: Option<RunningEstimate>,
    /// Changes of the total since it was lent; `None` if anything may have changed.
    #[serde(skip)]
    changes: Option<Changes>,
}

/// What stands in for batches before their first visit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct StandIn {
    summary: Summary,
    /// The mass of all batches.
    mass: f64,
    /// Whether it is the total until all batches have been visited. Otherwise it stands in for each by its fraction of
    /// the mass.
    alone: bool,
}

impl StandIn {
    /// The part of the start in the total, after visits of batches of this mass.
    fn remainder(&self, visited: f64) -> Summary {
        if self.alone { self.summary.clone() } else { self.summary.scale(1.0 - visited / self.mass) }
    }
}

/// An estimated total, without batch summaries.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct RunningEstimate {
    /// The amount of all data ([`Summary::amount`]).
    amount: f64,
    /// Whether the total is still the exact sum over all data, as after some starts.
    exact: bool,
}

impl Memo {
    /// A memo of `n_batches` unvisited batches of total mass `mass`. Until a batch is visited, its fraction of `start`
    /// stands in for it, so that a component without units in the first batches survives.
    pub fn starting_from(start: Summary, n_batches: usize, mass: f64) -> Self {
        Self::with_start(StandIn { summary: start, mass, alone: false }, n_batches)
    }

    /// The same for a start that does not have the mass of all data, such as one row for each component: its share of
    /// the unvisited batches would count for nothing beside those visited. So it is the total until all batches have
    /// been visited, and the first pass is that of a single batch.
    pub fn standing_alone(start: Summary, n_batches: usize, mass: f64) -> Self {
        Self::with_start(StandIn { summary: start, mass, alone: true }, n_batches)
    }

    fn with_start(start: StandIn, n_batches: usize) -> Self {
        Self { start: Some(start.clone()), ..Self::of(vec![None; n_batches], start.summary) }
    }

    /// A memo of the same batches, all unvisited, that starts from other components. This one must be complete.
    #[must_use]
    pub fn begun_again(&self, start: Summary) -> Self {
        Self::starting_from(start, self.batches.len(), self.total.mass)
    }

    /// A memo of `n_batches` batches with the total `amount`. Its total is the start until the first visit, and then
    /// the sum over the batches visited so far (mathematics 11.5).
    pub fn growing_from(start: Summary, n_batches: usize, amount: f64) -> Self {
        Self { grows_to: Some(amount), ..Self::starting_from(start, n_batches, amount) }
    }

    /// A memo of `n_batches` batches of new data, added to the summary of an earlier fit.
    pub fn beside(earlier: Summary, n_batches: usize) -> Self {
        let batches = vec![None; n_batches];
        Self { earlier: Some(earlier.clone()), ..Self::of(batches, earlier) }
    }

    fn of(batches: Vec<Option<Summary>>, total: Summary) -> Self {
        Self { batches, total, start: None, grows_to: None, earlier: None, twice: None, estimate: None, changes: None }
    }

    /// A memo in which every batch has its summary.
    ///
    /// # Errors
    /// If the summaries do not have the same components.
    pub fn complete(batches: Vec<Summary>) -> Result<Self> {
        let empty = |like: &Summary| Summary::empty(like.ids.clone(), like.n_statistics, true);
        let total = batches.first().map_or_else(Summary::default, empty);
        let batches = batches.into_iter().map(Some).collect();
        let mut memo = Self::of(batches, total);
        memo.resum()?;
        Ok(memo)
    }

    /// Converts the memo to an estimate for data of this amount ([`Summary::amount`]); batch summaries are dropped.
    #[must_use]
    pub fn into_estimate(self, amount: f64) -> Self {
        let estimate = Some(RunningEstimate { amount, exact: self.is_complete() });
        Self { batches: Vec::new(), start: None, grows_to: None, estimate, ..self }
    }

    /// The current total over batches.
    pub fn total(&self) -> &Summary {
        &self.total
    }

    /// The total over batches; drops everything else.
    pub fn into_total(self) -> Summary {
        self.total
    }

    /// Whether every batch has been visited, so that the total covers all data.
    pub fn is_complete(&self) -> bool {
        let exact = self.estimate.is_none_or(|estimate| estimate.exact);
        exact && self.start.is_none() && self.twice.is_none() && self.batches.iter().all(Option::is_some)
    }

    /// Whether the total is an estimate, which only [`Memo::blend`] changes.
    pub fn is_estimate(&self) -> bool {
        self.estimate.is_some()
    }

    /// Factor that scales the total to all data, if it covers only the batches visited so far; otherwise 1.
    pub fn growth(&self) -> f64 {
        let seen = self.total.amount();
        self.grows_to
            .filter(|_| self.start.is_none() && !self.is_complete() && seen > 0.0)
            .map_or(1.0, |all| all / seen)
    }

    /// The mass of the data that visits can replace.
    pub fn mass_visited(&self) -> f64 {
        self.total.mass - self.earlier.as_ref().map_or(0.0, |earlier| earlier.mass)
    }

    /// The summary of batch `batch` at its last visit.
    pub fn batch(&self, batch: usize) -> Option<&Summary> {
        self.batches[batch].as_ref()
    }

    /// Takes out the statistics of the total, for the globals called `version`. Also returns their changes since they
    /// were last lent, if these are known. Must be followed by [`Memo::take_back`].
    pub fn lend(&mut self, version: u64) -> (Vec<f64>, Option<Changes>) {
        let changes = self.changes.replace(Changes::none(version, self.total.n_components()));
        (std::mem::take(&mut self.total.statistics), changes)
    }

    /// Returns the lent statistics.
    pub fn take_back(&mut self, statistics: Vec<f64>) {
        self.total.statistics = statistics;
    }

    fn total_mut(&mut self) -> &mut Summary {
        self.changes = None;
        &mut self.total
    }

    /// Replaces the summary of a batch.
    ///
    /// # Errors
    /// If it does not have the same components.
    pub fn replace(&mut self, batch: usize, summary: Summary) -> Result<()> {
        let changes = self.changes.take();
        match (&self.batches[batch], &self.start) {
            (Some(old), _) => {
                let changed = self.total.exchange(old, &summary)?;
                self.changes = changes.zip(changed).map(|(changes, changed)| changes.and(&changed));
            }
            (None, Some(_)) if self.grows_to.is_some() => {
                let start = std::mem::take(self.total_mut());
                self.total = start.emptied();
                self.total.add(&summary)?;
                self.start = None;
            }
            // The last of them replaces it below.
            (None, Some(StandIn { alone: true, .. })) => {}
            (None, start) => {
                if let Some(start) = start {
                    self.total.sub(&start.summary.scale(summary.mass / start.mass))?;
                }
                self.total.add(&summary)?;
            }
        }
        self.batches[batch] = Some(summary);
        if self.start.is_some() && self.batches.iter().all(Option::is_some) {
            self.start = None;
            self.resum()?;
        }
        Ok(())
    }

    /// Moves an estimate by a step `rate` towards the batch's summary scaled to all data (mathematics 4.2).
    ///
    /// # Errors
    /// If the summary does not have the same components.
    pub fn blend(&mut self, summary: &Summary, rate: f64) -> Result<()> {
        let amount = self.estimate.map_or(self.total.amount(), |estimate| estimate.amount);
        self.estimate = Some(RunningEstimate { amount, exact: false });
        // A batch without mass has no information about the data.
        if summary.mass > 0.0 {
            *self.total_mut() = self.total.scale(1.0 - rate);
            self.total.add(&summary.scale(rate * amount / summary.amount()))?;
        }
        Ok(())
    }

    /// Recomputes the total as the exact sum over batches in their order, so that rounding errors do not accumulate
    /// over passes.
    ///
    /// # Errors
    /// If the summaries do not have the same components.
    pub fn resum(&mut self) -> Result<()> {
        if self.start.is_none() && self.estimate.is_none() {
            let mut total = std::mem::take(self.total_mut()).emptied();
            for summary in self.earlier.iter().chain(&self.twice).chain(self.batches.iter().flatten()) {
                total.add(summary)?;
            }
            self.total = total;
        }
        Ok(())
    }

    /// Makes a place for rows behind all components.
    pub fn open_tail(&mut self) {
        let zeros = Tail::zeros(self.total.n_statistics);
        for summary in self.batches.iter_mut().flatten().chain([&mut self.total]) {
            summary.tail.get_or_insert_with(|| zeros.clone());
        }
    }

    /// Removes the tail of a start if the process has no tail.
    pub fn drop_tail(&mut self) {
        let start = self.start.iter_mut().map(|start| &mut start.summary);
        for summary in self.batches.iter_mut().flatten().chain(start).chain([&mut self.total]) {
            if let Some(tail) = summary.tail.take() {
                summary.mass -= tail.count;
            }
        }
    }

    /// Whether this can be the memo of `n_batches` batches of a fit with the components `ids`.
    pub fn fits(&self, ids: &[ComponentId], n_statistics: usize, n_batches: usize) -> bool {
        let mass = self.start.as_ref().is_none_or(|start| start.mass > 0.0);
        let start = self.start.iter().map(|start| &start.summary);
        let complete = self.start.is_some() || self.grows_to.is_some() || self.batches.iter().all(Option::is_some);
        let mut summaries = self.batches.iter().flatten().chain(start).chain(&self.earlier);
        let twice = self
            .twice
            .iter()
            .all(|rows| rows.ids.iter().all(|id| ids.contains(id)) && rows.fits(&rows.ids, n_statistics));
        let n_remembered = if self.is_estimate() { 0 } else { n_batches };
        let all = summaries.all(|summary| summary.fits(ids, n_statistics));
        // Only batch summaries may be sparse, because they are only added up.
        let whole = [Some(&self.total), self.start.as_ref().map(|start| &start.summary), self.earlier.as_ref()];
        let dense = whole.into_iter().flatten().all(|summary| summary.sparse.is_none());
        mass && complete
            && twice
            && all
            && dense
            && self.total.fits(ids, n_statistics)
            && self.batches.len() == n_remembered
            && self.estimate.is_none_or(|estimate| estimate.amount > 0.0)
            && self.grows_to.is_none_or(|amount| amount.is_finite() && amount > 0.0)
            && self.total.ids == ids
            && self.adds_up().unwrap_or(false)
    }

    /// Whether no count is negative, and the counts of the total are the sums of all its parts, up to rounding.
    fn adds_up(&self) -> Result<bool> {
        let visited = || self.batches.iter().flatten();
        let others = || self.earlier.iter().chain(&self.twice);
        let tolerance = 1e-6 * (1.0 + self.total.mass.abs());
        let start = self.start.iter().map(|start| &start.summary);
        let mut counts =
            others().chain(visited()).chain(start).chain([&self.total]).flat_map(|summary| &summary.counts);
        if counts.any(|&count| count < -tolerance) {
            return Ok(false);
        }
        if self.is_estimate() {
            return Ok(true);
        }
        let mut sum = self.total.clone().emptied();
        let stands_alone = self.start.as_ref().is_some_and(|start| start.alone);
        for summary in others().chain(visited().filter(|_| !stands_alone)) {
            sum.add(summary)?;
        }
        if let Some(start) = &self.start {
            sum.add(&start.remainder(visited().map(|summary| summary.mass).sum()))?;
        }
        let mut pairs = sum.counts.iter().zip(&self.total.counts);
        Ok(pairs.all(|(sum, total)| (sum - total).abs() <= tolerance))
    }

    /// Replaces some components in every batch without changing their sum: the parts of a component replace it and the
    /// empty components that were appended for them.
    pub fn put(&mut self, parts: &[Summary]) -> Result<()> {
        for (batch, parts) in self.batches.iter_mut().flatten().zip(parts) {
            batch.put(parts)?;
        }
        self.resum()
    }

    /// Adds a change to the contribution of a batch; [`Memo::resum`] then updates the total.
    pub fn amend(&mut self, batch: usize, change: &Summary) -> Result<()> {
        self.batches[batch].as_mut().map_or(Ok(()), |summary| summary.add(change))
    }

    /// Replaces the statistics of a component in a batch; [`Memo::resum`] then updates the total.
    ///
    /// # Errors
    /// If the component is unknown.
    pub fn restate(&mut self, batch: usize, id: ComponentId, statistics: &[f64]) -> Result<()> {
        self.batches[batch].as_mut().map_or(Ok(()), |summary| summary.restate(id, statistics))
    }

    /// Adds `rows` to the total of some components, as copies of rows that the batches already contain, until
    /// [`Memo::deflate`] (mathematics 4.6.3). Their mass and entropy are not counted.
    pub fn inflate(&mut self, rows: Summary) -> Result<()> {
        self.total_mut().add(&rows)?;
        self.twice = Some(rows);
        Ok(())
    }

    /// Removes the copies, so that the total is the exact sum over batches again.
    pub fn deflate(&mut self) -> Result<()> {
        match self.twice.take() {
            None => Ok(()),
            // There is no exact sum before all batches have been visited.
            Some(rows) if self.start.is_some() => self.total_mut().sub(&rows),
            Some(_) => self.resum(),
        }
    }

    /// Drops all merge-entropy gaps, which become invalid at the next visit.
    pub fn drop_gaps(&mut self) {
        let batches = self.batches.iter_mut().flatten();
        batches.chain([&mut self.total]).for_each(|summary| summary.gaps = PairGaps::Unknown);
    }

    /// Replays an edit. A reorder affects only the total, because batches are keyed by identity.
    pub fn apply(&mut self, edit: &Edit) -> Result<()> {
        self.apply_all(std::slice::from_ref(edit))
    }

    /// Replays edits.
    pub fn apply_all(&mut self, edits: &[Edit]) -> Result<()> {
        let of_batches = || edits.iter().filter(|edit| !matches!(edit, Edit::Reorder { .. }));
        let rest = self.start.iter_mut().map(|start| &mut start.summary).chain(&mut self.earlier);
        let mut summaries = self.batches.iter_mut().flatten().chain(rest);
        summaries.try_for_each(|summary| summary.apply_all(of_batches()))?;
        self.total_mut().apply_all(edits)?;
        self.resum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::component::ComponentId;

    fn summary(counts: [f64; 2]) -> Summary {
        let mut summary = Summary::empty(vec![ComponentId(0), ComponentId(1)], 1, false);
        summary.counts = counts.to_vec();
        summary.statistics = counts.iter().map(|count| 10.0 * count).collect();
        summary.mass = counts.iter().sum();
        summary
    }

    #[test]
    fn the_start_stands_for_unvisited_batches_by_their_share() {
        let mut memo = Memo::starting_from(summary([4.0, 4.0]), 2, 8.0);
        memo.replace(1, summary([2.0, 0.0])).expect("same components");
        // A quarter of the mass has been visited, so three quarters of the start remain.
        assert_eq!(memo.total().counts, [5.0, 3.0]);
        assert!(!memo.is_complete());
        memo.replace(0, summary([1.0, 5.0])).expect("same components");
        assert!(memo.is_complete());
        assert_eq!(memo.total().counts, [3.0, 5.0]);
        assert_eq!(memo.total().statistics, [30.0, 50.0]);
        assert_eq!(memo.total().mass, 8.0);
    }

    #[test]
    fn a_start_that_stands_alone_yields_to_all_batches_at_once() {
        let mut memo = Memo::standing_alone(summary([1.0, 1.0]), 2, 8.0);
        memo.replace(1, summary([2.0, 0.0])).expect("same components");
        assert_eq!((memo.total(), memo.is_complete(), memo.adds_up()), (&summary([1.0, 1.0]), false, Ok(true)));
        memo.replace(0, summary([1.0, 5.0])).expect("same components");
        assert_eq!((memo.total(), memo.is_complete()), (&summary([3.0, 5.0]), true));
    }

    #[test]
    fn what_an_earlier_fit_knows_stays() {
        let mut memo = Memo::beside(summary([10.0, 20.0]), 1);
        assert!(!memo.is_complete());
        for counts in [[1.0, 2.0], [3.0, 0.0]] {
            memo.replace(0, summary(counts)).expect("same components");
        }
        memo.resum().expect("same components");
        assert!(memo.is_complete());
        assert_eq!((memo.total().counts.clone(), memo.mass_visited()), (vec![13.0, 20.0], 3.0));
    }

    #[test]
    fn an_estimate_moves_by_the_rate_and_keeps_its_mass() {
        let exact = Memo::complete(vec![summary([4.0, 2.0]), summary([0.0, 2.0])]).expect("same components");
        let mut memo = exact.into_estimate(8.0);
        assert!(memo.is_complete() && memo.is_estimate());
        // A step of a quarter from (4, 4) to four times (1, 1).
        memo.blend(&summary([0.0, 2.0]), 0.25).expect("same components");
        assert_eq!(memo.total().counts, [3.0, 5.0]);
        assert_eq!(memo.total().statistics, [30.0, 50.0]);
        assert!(!memo.is_complete());
        memo.blend(&summary([0.0, 0.0]), 1.0).expect("same components");
        assert_eq!((memo.total().counts.clone(), memo.total().mass), (vec![3.0, 5.0], 8.0));
        memo.blend(&summary([2.0, 6.0]), 1.0).expect("same components");
        assert_eq!(memo.total().counts, [2.0, 6.0]);
    }

    #[test]
    fn a_visit_replaces_what_the_batch_contributed() {
        let mut memo = Memo::complete(vec![summary([1.0, 2.0]), summary([3.0, 4.0])]).expect("same components");
        memo.replace(0, summary([2.0, 1.0])).expect("same components");
        assert_eq!(memo.total().counts, [5.0, 5.0]);
        assert_eq!(memo.batch(0).map(|batch| batch.counts.clone()), Some(vec![2.0, 1.0]));
    }

    /// The gaps of a batch stay valid when fresh components are appended, because none of its units belongs to them
    /// before its next visit (mathematics 4.6.3, number 5).
    #[test]
    fn fresh_components_have_no_gaps_before_a_visit_scores_them() {
        let [old, other, fresh] = [0, 1, 2].map(ComponentId);
        let with_gap = |gap: f64| {
            let mut with_gap = summary([2.0, 2.0]);
            with_gap.gaps = PairGaps::Known([((old, other), gap)].into());
            with_gap
        };
        let mut memo = Memo::complete(vec![with_gap(0.5), with_gap(0.25)]).expect("same components");
        memo.apply(&Edit::Append { ids: vec![fresh] }).expect("a fresh identity");
        for batch in [0, 1] {
            let gaps = &memo.batch(batch).expect("visited").gaps;
            assert_eq!((gaps.get(old, fresh), gaps.get(other, fresh)), (Some(0.0), Some(0.0)));
        }
        let mut visited = Summary::empty(vec![old, other, fresh], 1, true);
        visited.gaps = PairGaps::Known([((old, fresh), 0.125)].into());
        memo.replace(1, visited).expect("same components");
        let gaps = &memo.total().gaps;
        assert_eq!(
            [(old, other), (old, fresh), (other, fresh)].map(|(a, b)| gaps.get(a, b)),
            [0.5, 0.125, 0.0].map(Some)
        );
    }

    /// Each of many visits may cost a last digit; recomputing the sum at the end of a pass restores it.
    #[test]
    fn a_resum_is_exact() {
        let batches: Vec<Summary> = (1..=7).map(|i| summary([0.1 * f64::from(i), 1e8])).collect();
        let mut memo = Memo::complete(batches.clone()).expect("same components");
        for visit in 0..1000 {
            memo.replace(visit % 7, batches[visit % 7].clone()).expect("same components");
        }
        memo.resum().expect("same components");
        assert_eq!(memo.total(), Memo::complete(batches).expect("same components").total());
    }
}
