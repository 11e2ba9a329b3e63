//! The two ways to score: rows against all components, and one component against a list of rows.

use crate::linalg::Scalar;
use crate::responsibilities::TopL;

/// The rows of one block, transposed so that a kernel finds neighbouring rows side by side.
#[derive(Debug, Default)]
pub struct Tile<F> {
    n_rows: usize,
    values: Vec<F>,
}

impl<F: Scalar> Tile<F> {
    /// Takes row-major rows of `dimension` values.
    pub fn fill(&mut self, rows: &[F], dimension: usize) {
        self.n_rows = rows.len() / dimension;
        self.values.clear();
        self.values.resize(rows.len(), F::ZERO);
        for (row, values) in rows.chunks_exact(dimension).enumerate() {
            for (column, &value) in values.iter().enumerate() {
                self.values[column * self.n_rows + row] = value;
            }
        }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Column after column, `n_rows` values each.
    pub fn values(&self) -> &[F] {
        &self.values
    }
}

/// Space that a thread reuses from block to block.
#[derive(Debug, Default)]
pub struct Scratch<F> {
    /// Products of a tile with packed components, or of rows with rows.
    pub products: Vec<F>,
    /// Sums over the rows of a factor, or weighted rows.
    pub sums: Vec<F>,
}

/// Components packed for scoring.
pub trait Scorer<F: Scalar>: Send + Sync {
    /// Number of components.
    fn n_components(&self) -> usize;

    /// Offers the log weight of every row and component to the sink, components in increasing order. The sink's
    /// threshold tells what cannot be kept any more.
    fn score_rows(&self, tile: &Tile<F>, sink: &mut TopL<F>, scratch: &mut Scratch<F>);

    /// The log weights of one component for the listed rows of a tile.
    fn score_component(&self, component: usize, tile: &Tile<F>, rows: &[u32], out: &mut [F]);
}
