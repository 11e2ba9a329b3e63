//! The memo: what every batch contributed at its last visit, and the total (Hughes & Sudderth 2013, section 3).

use crate::component::Edit;
use crate::error::Result;
use crate::suffstats::Summary;

/// Summaries by batch and their total. Totals are additive, so a visit is a subtraction and an addition.
#[derive(Debug, Clone)]
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
