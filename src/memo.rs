//! The memo: what every batch contributed at its last visit, and the total (Hughes & Sudderth 2013, section 3).

use serde::{Deserialize, Serialize};

use crate::component::{ComponentId, Edit};
use crate::error::Result;
use crate::suffstats::Summary;

/// Summaries by batch and their total. Totals are additive, so a visit is a subtraction and an addition.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Memo {
    batches: Vec<Option<Summary>>,
    total: Summary,
    /// Stands for the batches that have not been visited, each by its share of the mass.
    start: Option<(Summary, f64)>,
}

impl Memo {
    /// A memo of `n_batches` batches of total mass `mass` that no visit has filled yet: until a batch is visited,
    /// its share of `start` stands for it, so that a component without units in the first batches is not lost.
    pub fn starting_from(start: Summary, n_batches: usize, mass: f64) -> Self {
        Self { batches: vec![None; n_batches], total: start.clone(), start: Some((start, mass)) }
    }

    /// A memo in which every batch has its summary.
    ///
    /// # Errors
    /// Where the summaries do not have the same components.
    pub fn complete(batches: Vec<Summary>) -> Result<Self> {
        let total = batches.first().map_or_else(|| Summary::empty(Vec::new(), 0, true), emptied);
        let mut memo = Self { batches: batches.into_iter().map(Some).collect(), total, start: None };
        memo.resum()?;
        Ok(memo)
    }

    /// The sum over batches.
    pub fn total(&self) -> &Summary {
        &self.total
    }

    /// Whether every batch has been visited, so that the total is that of all data.
    pub fn is_complete(&self) -> bool {
        self.start.is_none()
    }

    /// What batch `batch` contributed at its last visit.
    pub fn batch(&self, batch: usize) -> Option<&Summary> {
        self.batches[batch].as_ref()
    }

    /// Puts a new summary in the place of the batch's old one.
    ///
    /// # Errors
    /// Where it does not have the same components.
    pub fn replace(&mut self, batch: usize, summary: Summary) -> Result<()> {
        match (&self.batches[batch], &self.start) {
            (Some(old), _) => self.total.sub(old)?,
            (None, Some((start, mass))) => self.total.sub(&start.scale(summary.mass / mass))?,
            (None, None) => {}
        }
        self.total.add(&summary)?;
        self.batches[batch] = Some(summary);
        if self.start.is_some() && self.batches.iter().all(Option::is_some) {
            self.start = None;
            self.resum()?;
        }
        Ok(())
    }

    /// Makes the total the exact sum over batches in their order, so that rounding does not build up over passes.
    ///
    /// # Errors
    /// Where the summaries do not have the same components.
    pub fn resum(&mut self) -> Result<()> {
        if self.start.is_none() {
            let mut total = emptied(&self.total);
            for summary in self.batches.iter().flatten() {
                total.add(summary)?;
            }
            self.total = total;
        }
        Ok(())
    }

    /// Whether this can be the memo of `n_batches` batches of a fit with the components `ids`.
    pub fn fits(&self, ids: &[ComponentId], n_statistics: usize, n_batches: usize) -> bool {
        let mass = self.start.as_ref().is_none_or(|(_, mass)| *mass > 0.0);
        let start = self.start.iter().map(|(start, _)| start);
        let complete = self.start.is_some() || self.batches.iter().all(Option::is_some);
        let mut summaries = self.batches.iter().flatten().chain(start);
        let all = summaries.all(|summary| summary.fits(ids, n_statistics));
        mass && complete
            && all
            && self.total.fits(ids, n_statistics)
            && self.batches.len() == n_batches
            && self.total.ids == ids
    }

    /// Replays an edit. A reorder moves only the total: batches are keyed by identity.
    ///
    /// # Errors
    /// As [`Summary::apply`].
    pub fn apply(&mut self, edit: &Edit) -> Result<()> {
        if !matches!(edit, Edit::Reorder { .. }) {
            self.batches.iter_mut().flatten().try_for_each(|summary| summary.apply(edit))?;
            if let Some((start, _)) = &mut self.start {
                start.apply(edit)?;
            }
        }
        self.total.apply(edit)?;
        self.resum()
    }
}

/// A summary of no units with the components of `like`; whether gaps are known follows from what is added.
fn emptied(like: &Summary) -> Summary {
    Summary::empty(like.ids.clone(), like.n_statistics, true)
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
        // A quarter of the mass has been visited: three quarters of the start are left.
        assert_eq!(memo.total().counts, [5.0, 3.0]);
        assert!(!memo.is_complete());
        memo.replace(0, summary([1.0, 5.0])).expect("same components");
        assert!(memo.is_complete());
        assert_eq!(memo.total().counts, [3.0, 5.0]);
        assert_eq!(memo.total().statistics, [30.0, 50.0]);
        assert_eq!(memo.total().mass, 8.0);
    }

    #[test]
    fn a_visit_replaces_what_the_batch_contributed() {
        let mut memo = Memo::complete(vec![summary([1.0, 2.0]), summary([3.0, 4.0])]).expect("same components");
        memo.replace(0, summary([2.0, 1.0])).expect("same components");
        assert_eq!(memo.total().counts, [5.0, 5.0]);
        assert_eq!(memo.batch(0).map(|batch| batch.counts.clone()), Some(vec![2.0, 1.0]));
    }

    /// Each of many visits may cost a last digit; the sum at the end of a pass costs none.
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
