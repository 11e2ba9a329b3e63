//! Exposures of rows: the library size of a cell, or the time at risk.

use serde::{Deserialize, Serialize};

use crate::real::Real;

/// Where the exposure of a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exposure {
    /// In a column, which holds no counts.
    Column(usize),
    /// The sum of the row.
    Total,
}

impl Exposure {
    /// The column of exposures, if there is one.
    pub fn column(self) -> Option<usize> {
        if let Self::Column(column) = self { Some(column) } else { None }
    }

    /// The exposure of a dense row.
    pub fn of_row<F: Real>(self, row: &[F]) -> f64 {
        match self {
            Self::Column(column) => row.get(column).map_or(0.0, |value| value.to_f64()),
            Self::Total => row.iter().map(|value| value.to_f64()).sum(),
        }
    }

    /// The exposure of a sparse row.
    pub fn of_entries<F: Real>(self, entries: impl Iterator<Item = (u32, F)>) -> f64 {
        let is_part = |column: u32| self.column().is_none_or(|own| own == column as usize);
        entries.filter(|(column, _)| is_part(*column)).map(|(_, value)| value.to_f64()).sum()
    }
}

/// The exposures of the counts in some columns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exposed {
    /// Where they are.
    pub source: Exposure,
    /// The columns, which a total adds up; `None` for all.
    pub columns: Option<Vec<usize>>,
}

impl Exposed {
    /// Whether the counts of a column have these exposures.
    pub fn has(&self, column: usize) -> bool {
        self.source.column() != Some(column) && self.columns.as_ref().is_none_or(|own| own.contains(&column))
    }

    /// The same for a block of columns of a wider table.
    #[must_use]
    pub fn of_block(&self, block: &[usize]) -> Self {
        let source = match self.source {
            Exposure::Column(column) => Exposure::Column(block.get(column).copied().unwrap_or(usize::MAX)),
            Exposure::Total => Exposure::Total,
        };
        Self { source, columns: Some(block.to_vec()) }
    }

    /// The exposure of a dense row.
    pub fn of_row<F: Real>(&self, row: &[F]) -> f64 {
        match (self.source, &self.columns) {
            (Exposure::Total, Some(columns)) => columns.iter().map(|&column| row[column].to_f64()).sum(),
            _ => self.source.of_row(row),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_exposures_of_its_own() {
        let row = [3.0, 9.0, 2.0, 0.5];
        let of = |source| Exposed { source, columns: None }.of_block(&[3, 0, 2]);
        let (column, total) = (of(Exposure::Column(0)), of(Exposure::Total));
        assert_eq!((column.of_row(&row), total.of_row(&row)), (0.5, 5.5));
        assert!(column.has(0) && column.has(2) && !column.has(3) && !column.has(1) && total.has(3) && !total.has(1));
    }

    #[test]
    fn sparse_rows_have_the_exposures_of_dense_ones() {
        let (row, entries) = ([3.0, 0.0, 2.5], [(0, 3.0), (2, 2.5)]);
        for (exposure, expected) in [(Exposure::Column(2), 2.5), (Exposure::Column(1), 0.0), (Exposure::Total, 5.5)] {
            assert_eq!(exposure.of_row(&row), expected);
            assert_eq!(exposure.of_entries(entries.into_iter()), expected);
        }
    }
}
