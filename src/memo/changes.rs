//! Records which statistics of the total have changed since an earlier version, so that quantities derived from a
//! single statistic need not all be recomputed.

use serde::{Deserialize, Serialize};

use crate::parallel::for_each;

/// The statistics that have changed since the total was lent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// Version of the globals to which it was lent.
    pub since: u64,
    /// For each component position, the changed statistics, ascending.
    pub columns: Vec<Vec<u32>>,
}

impl Changes {
    /// No changes yet.
    pub fn none(since: u64, k: usize) -> Self {
        Self { since, columns: vec![Vec::new(); k] }
    }

    /// Adds further changes.
    #[must_use]
    pub fn and(mut self, columns: &[Vec<u32>]) -> Self {
        for_each(self.columns.iter_mut().zip(columns).collect(), |(changed, more): (&mut Vec<u32>, &Vec<u32>)| {
            changed.extend_from_slice(more);
            changed.sort_unstable();
            changed.dedup();
        });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_add_up() {
        let changes = Changes::none(5, 2).and(&[vec![1, 4], vec![]]).and(&[vec![0, 4, 5], vec![8]]);
        assert_eq!(changes, Changes { since: 5, columns: vec![vec![0, 1, 4, 5], vec![8]] });
    }
}
