//! Which statistics of the total have changed since it was last seen, so that what follows from a single statistic need
//! not be computed again for all of them.

use serde::{Deserialize, Serialize};

/// The statistics that have changed since the total was seen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// The version of the globals that saw it.
    pub since: u64,
    /// By position of a component, which of its statistics, ascending.
    pub columns: Vec<Vec<u32>>,
}

impl Changes {
    /// None yet.
    pub fn none(since: u64, k: usize) -> Self {
        Self { since, columns: vec![Vec::new(); k] }
    }

    /// These and more.
    #[must_use]
    pub fn and(mut self, columns: &[Vec<u32>]) -> Self {
        for (own, more) in self.columns.iter_mut().zip(columns) {
            own.extend_from_slice(more);
            own.sort_unstable();
            own.dedup();
        }
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
