//! The two ways to score: rows against all components, and one component against a list of rows.

use crate::responsibilities::TopL;
use crate::simd::{Lines, Scalar};

/// The rows of one block, transposed so that a kernel finds neighbouring rows side by side: groups of `F::GROUP` rows, each
/// column by column, the last one filled up with zeros.
#[derive(Debug, Default)]
pub struct Tile<F> {
    n_rows: usize,
    dimension: usize,
    values: Lines<F>,
}

impl<F: Scalar> Tile<F> {
    /// Takes row-major rows of `dimension` values.
    pub fn fill(&mut self, rows: &[F], dimension: usize) {
        (self.n_rows, self.dimension) = (rows.len() / dimension, dimension);
        self.values.reset(self.n_padded() * dimension, F::ZERO);
        let groups = self.values.chunks_exact_mut(F::GROUP * dimension).zip(rows.chunks(F::GROUP * dimension));
        for (group, rows) in groups {
            for (lane, row) in rows.chunks_exact(dimension).enumerate() {
                for (values, &value) in group.chunks_exact_mut(F::GROUP).zip(row) {
                    values[lane] = value;
                }
            }
        }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of rows with those that fill up the last group.
    pub fn n_padded(&self) -> usize {
        self.n_rows.next_multiple_of(F::GROUP)
    }

    /// The values of one group: column after column, `F::GROUP` values each.
    pub fn group(&self, group: usize) -> &[F] {
        let size = self.dimension * F::GROUP;
        &self.values[group * size..][..size]
    }

    /// One value.
    pub fn get(&self, row: usize, column: usize) -> F {
        self.values[(row / F::GROUP * self.dimension + column) * F::GROUP + row % F::GROUP]
    }
}

/// Space that a thread reuses from block to block.
#[derive(Debug, Default)]
pub struct Scratch<F> {
    /// What one component makes of a group of rows.
    pub scores: Lines<F>,
    /// What is the same for all components, for the rows of a tile.
    pub common: Lines<F>,
    /// What a score of a group of rows must reach to be kept.
    pub least: Lines<F>,
}

/// Marks a row that has no lead.
pub const NO_LEAD: u32 = u32::MAX;

/// Components packed for scoring.
pub trait Scorer<F: Scalar>: Send + Sync {
    /// Number of components.
    fn n_components(&self) -> usize;

    /// Offers the log weights of all rows and components to the sink, but for those that are found not to be kept before
    /// they are complete. `leads` names for each row the component that is likely to be its best, or [`NO_LEAD`]; it may be
    /// empty. What is kept does not depend on it, only the work does, which is least where neighbours share their lead.
    fn score_rows(&self, tile: &Tile<F>, leads: &[u32], sink: &mut TopL<F>, scratch: &mut Scratch<F>);

    /// The log weights of one component for the listed rows of a tile.
    fn score_component(&self, component: usize, tile: &Tile<F>, rows: &[u32], out: &mut [F]);
}
