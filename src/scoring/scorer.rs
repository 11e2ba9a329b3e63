//! The two ways to score: rows under all components, or a list of rows under one component.

use std::any::Any;
use std::ops::Range;

use pulp::Simd;

use crate::data::{Nodes, RowBlock};
use crate::responsibilities::TopL;
use crate::scoring::bounds::Scan;
use crate::scoring::kernel::RowVectors;
use crate::scoring::{Drift, PairBounds};
use crate::simd::{Lines, Scalar, Vectors, copy_column, parts_of_group, rows_of_part};

/// The rows of one block, transposed so that a kernel finds neighbouring rows side by side: groups of `F::GROUP` rows,
/// each stored column by column, the last one padded with zeros.
#[derive(Debug, Default)]
pub struct Tile<F> {
    n_rows: usize,
    dimension: usize,
    values: Lines<F>,
}

impl<F: Scalar> Tile<F> {
    /// Fills the tile with row-major rows of `dimension` values.
    pub fn fill(&mut self, rows: &[F], dimension: usize) {
        (self.n_rows, self.dimension) = (rows.len() / dimension, dimension);
        self.values.resize(self.n_padded() * dimension);
        if self.n_rows < self.n_padded() {
            let last = self.n_rows / F::GROUP * F::GROUP * dimension;
            self.values[last..].fill(F::ZERO);
        }
        let groups = self.values.chunks_exact_mut(F::GROUP * dimension).zip(rows.chunks(F::GROUP * dimension));
        for (group, rows) in groups {
            match dimension {
                2 => transpose_narrow::<F, 2>(rows, group),
                3 => transpose_narrow::<F, 3>(rows, group),
                4 => transpose_narrow::<F, 4>(rows, group),
                _ => transpose(rows.len() / dimension, |row| &rows[row * dimension..][..dimension], group),
            }
        }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of rows including the padding of the last group.
    #[inline(always)]
    pub fn n_padded(&self) -> usize {
        self.n_rows.next_multiple_of(F::GROUP)
    }

    /// The values of one group, column by column, `F::GROUP` values each.
    #[inline(always)]
    pub fn group(&self, group: usize) -> &[F] {
        let size = self.dimension * F::GROUP;
        &self.values[group * size..][..size]
    }

    /// The values of one part of the padded rows.
    #[inline(always)]
    pub fn part<S: Simd>(&self, part: usize) -> RowVectors<'_, S, F> {
        let parts = parts_of_group::<S, F>();
        let columns: &[Vectors<S, F>] = bytemuck::cast_slice(self.group(part / parts));
        RowVectors { columns: &columns[part % parts..] }
    }

    /// The rows of one part, without padding.
    #[inline(always)]
    pub fn rows_of_part<S: Simd>(&self, part: usize) -> Range<usize> {
        let size = rows_of_part::<S, F>();
        (part * size).min(self.n_rows)..((part + 1) * size).min(self.n_rows)
    }

    /// Fills the tile with listed rows of a row-major table. The padding of the last group is undefined.
    pub fn gather(&mut self, rows: &[F], dimension: usize, list: &[u32]) {
        (self.n_rows, self.dimension) = (list.len(), dimension);
        self.values.resize(self.n_padded() * dimension);
        for (group, list) in self.values.chunks_exact_mut(F::GROUP * dimension).zip(list.chunks(F::GROUP)) {
            transpose(list.len(), |row| &rows[list[row] as usize * dimension..][..dimension], group);
        }
    }
}

/// Transposes blocks of four rows by four columns, which fit in registers.
fn transpose<'a, F: Scalar>(n_rows: usize, row: impl Fn(usize) -> &'a [F], group: &mut [F]) {
    let whole = n_rows / 4 * 4;
    for lane in (0..whole).step_by(4) {
        let [a, b, c, d] = [0, 1, 2, 3].map(|next| row(lane + next).as_chunks::<4>());
        let mut columns = group.chunks_exact_mut(F::GROUP);
        for (((a, b), c), d) in a.0.iter().zip(b.0).zip(c.0).zip(d.0) {
            for (column, out) in columns.by_ref().take(4).enumerate() {
                out[lane..lane + 4].copy_from_slice(&[a[column], b[column], c[column], d[column]]);
            }
        }
        for (column, out) in columns.enumerate() {
            out[lane..lane + 4].copy_from_slice(&[a.1[column], b.1[column], c.1[column], d.1[column]]);
        }
    }
    for lane in whole..n_rows {
        for (out, &value) in group.chunks_exact_mut(F::GROUP).zip(row(lane)) {
            out[lane] = value;
        }
    }
}

/// Transposes column by column, for so few columns that an inner loop would cost more than the copy.
fn transpose_narrow<F: Scalar, const D: usize>(rows: &[F], group: &mut [F]) {
    for column in 0..D {
        copy_column::<F, D>(rows, column, &mut group[column * F::GROUP..][..F::GROUP]);
    }
}

/// Scratch space that a thread reuses from block to block.
#[derive(Debug, Default)]
pub struct Scratch<F> {
    /// The rows, transposed.
    pub tile: Tile<F>,
    /// The scores of complete rows, where others have missing values.
    pub complete: Lines<F>,
    /// The scores of one component for a group of rows.
    pub scores: Lines<F>,
    /// Terms common to all components, for the rows of a tile.
    pub common: Lines<F>,
    /// The scores that rows must reach to be kept, and the squared lengths that follow from them.
    pub thresholds: [Lines<F>; 2],
    /// The score that each listed row must reach to be kept.
    pub least: Lines<F>,
    /// The pairs that their bounds do not exclude, row by row.
    pub scan: Scan,
    /// The pairs that their bounds do not exclude, listed by component.
    pub lists: Lists,
    /// For sums over blocks of columns.
    pub sums: Option<Box<SumScratch<F>>>,
}

/// Space for sums over blocks of columns.
#[derive(Debug, Default)]
pub struct SumScratch<F> {
    /// The columns of a block.
    pub rows: Vec<F>,
    /// The scores of a block.
    pub sink: TopL<F>,
    /// The sums, (K, rows).
    pub sums: Lines<F>,
}

/// Rows listed by component.
#[derive(Debug, Default)]
pub struct Lists {
    /// The lengths of all rows.
    pub lengths: Vec<f32>,
    /// (component, row), by row.
    pub pairs: Vec<(u32, u32)>,
    /// Offset of each component in `rows`; one extra entry at the end.
    pub starts: Vec<usize>,
    /// Rows by component.
    pub rows: Vec<u32>,
}

impl Lists {
    /// Computes the lengths of all rows, rounded up.
    #[inline(always)]
    pub fn measure<F: Scalar>(&mut self, rows: &[F], dimension: usize) {
        self.lengths.resize(rows.len() / dimension, 0.0);
        for (length, row) in self.lengths.iter_mut().zip(rows.chunks_exact(dimension)) {
            let mut squares = [0.0; 8];
            let (eights, rest) = row.as_chunks::<8>();
            for eight in eights {
                for (square, x) in squares.iter_mut().zip(eight) {
                    *square += x.to_f64() * x.to_f64();
                }
            }
            for (square, x) in squares.iter_mut().zip(rest) {
                *square += x.to_f64() * x.to_f64();
            }
            let square = squares[0] + squares[1] + squares[2] + squares[3];
            *length = (square + squares[4] + squares[5] + squares[6] + squares[7]).sqrt() as f32 * (1.0 + 1e-6);
        }
    }

    /// Counting sort of `pairs` by component.
    pub fn sort(&mut self, n_components: usize) {
        let Self { pairs, starts, rows, .. } = self;
        starts.clear();
        starts.resize(n_components + 2, 0);
        for &(component, _) in &*pairs {
            starts[component as usize + 2] += 1;
        }
        for component in 2..starts.len() {
            starts[component] += starts[component - 1];
        }
        rows.resize(pairs.len(), 0);
        for &(component, row) in &*pairs {
            let position = &mut starts[component as usize + 1];
            rows[*position] = row;
            *position += 1;
        }
    }
}

/// Marks a row without a lead.
pub const NO_LEAD: u32 = u32::MAX;

/// Rows that are scored together.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a, F> {
    /// The rows.
    pub rows: RowBlock<'a, F>,
    /// For each row, the component that is likely to be its best, or [`NO_LEAD`]; may be empty. Results do not depend
    /// on it, only the amount of work, which is least if neighbours share their lead.
    pub leads: &'a [u32],
}

/// Mean squares about the mean of the nodes that are scored: the packed lower triangle, column by column, one number
/// per column, or one number for all columns.
#[derive(Debug, Clone, Copy)]
pub struct Spreads<'a> {
    /// The nodes.
    pub nodes: &'a Nodes,
    /// The node of each row.
    pub list: &'a [u32],
}

impl Spreads<'_> {
    /// Subtracts half of `term` of the spread of each listed node from its score.
    #[inline(always)]
    pub fn take<F: Scalar>(&self, rows: std::ops::Range<usize>, scores: &mut [F], term: impl Fn(&[f64]) -> f64) {
        for (score, &node) in scores.iter_mut().zip(&self.list[rows]) {
            if let Some(spread) = self.nodes.spread(node as usize)
                && *score > F::NEG_INFINITY
            {
                *score = F::from_f64(score.to_f64() - 0.5 * term(spread));
            }
        }
    }
}

/// Components packed for scoring.
pub trait Scorer<F: Scalar>: Send + Sync {
    /// Number of components.
    fn n_components(&self) -> usize;

    /// Passes the log weights of all rows and components to the sink. Leaves out those that cannot be kept: either
    /// while they are computed, or, with `bounds`, which are updated, before.
    fn score_rows(
        &self,
        block: Block<'_, F>,
        bounds: Option<PairBounds<'_>>,
        sink: &mut TopL<F>,
        scratch: &mut Scratch<F>,
    );

    /// As [`Scorer::score_rows`], for nodes: the rows are their means, and `_spreads` holds their squares about the
    /// means. Scorers that are linear in the row need no spreads.
    fn score_nodes(&self, block: Block<'_, F>, _spreads: Spreads<'_>, sink: &mut TopL<F>, scratch: &mut Scratch<F>) {
        self.score_rows(block, None, sink, scratch);
    }

    /// Adds the terms that depend on the row alone, which `score_rows` may omit, to one value for each row, nats.
    fn add_row_terms(&self, _rows: RowBlock<'_, F>, _out: &mut [f64]) {}

    /// Writes the log weights of one component for rows, (n, D) relative to the origin.
    fn score_component(&self, component: usize, rows: &[F], out: &mut [F]);

    /// Whether it uses distance bounds.
    fn uses_bounds(&self) -> bool {
        false
    }

    /// How far component `was` of an earlier scorer has moved to become `component` of this one.
    fn drift_since(&self, _earlier: &dyn Scorer<F>, _was: usize, _component: usize) -> Drift {
        Drift::ANY
    }

    /// Completes rows, if their statistics depend on the component that they are under.
    fn completing(&self) -> Option<&dyn Completing> {
        None
    }

    /// This value as [`Any`].
    fn as_any(&self) -> &dyn Any;
}

/// Adds up expected statistics of rows of which a part is not seen, such as a scale of each row. The distribution of
/// that part follows from the component that the row is under.
pub trait Completing: Send + Sync {
    /// Adds weights times the expected statistics of rows under a component.
    fn accumulate(&self, component: usize, rows: Incomplete<'_>, statistics: &mut [f64], space: &mut Lines<f64>);
}

/// Rows of which a part is not seen.
#[derive(Clone, Copy)]
pub struct Incomplete<'a> {
    /// What is seen of them.
    pub values: RowBlock<'a, f64>,
    /// Their weights.
    pub weights: &'a [f64],
    /// The number of each row in its original table.
    pub number: &'a dyn Fn(usize) -> usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tile_holds_every_value_and_then_zeros() {
        let mut tile = Tile::default();
        for (n, d) in [(200, 3), (25, 1), (24, 2), (50, 4), (3, 7), (49, 25)] {
            let rows: Vec<f64> = (1..=n * d).map(|value| value as f64).collect();
            tile.fill(&rows, d);
            for (row, column) in (0..tile.n_padded()).flat_map(|row| (0..d).map(move |column| (row, column))) {
                let expected = rows.get(row * d + column).copied().unwrap_or(0.0);
                let found = tile.group(row / f64::GROUP)[column * f64::GROUP + row % f64::GROUP];
                assert_eq!(found, expected, "{row} {column} of {n} {d}");
            }
        }
    }
}
