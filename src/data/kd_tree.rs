//! A kd-tree over the rows of a batch. Nodes are ranges of one list of rows, and opening a node cuts its range in two
//! (mathematics 12.2).

use std::ops::Range;

use crate::data::{RowUnits, Tree};
use crate::parallel::{blocks, map, map_all};
use crate::real::Real;

/// Number of rows from which the position of a cut is estimated.
const SAMPLED: usize = 4096;
/// The principal axis is estimated from one in this many of them.
const FOR_AXIS: usize = 4;
/// Number of power iterations. An axis near the principal one cuts as well.
const TURNS: usize = 8;
/// Number of rows that one task reads.
const ROWS: usize = 4096;

/// The axis along which nodes are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeCut {
    /// The column in which the rows have the widest range.
    Axis,
    /// The principal axis of the rows.
    Principal,
}

impl NodeCut {
    /// Name used by the interface.
    pub fn name(self) -> &'static str {
        match self {
            Self::Axis => "axis",
            Self::Principal => "principal",
        }
    }

    /// Returns the cut with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Axis, Self::Principal].into_iter().find(|cut| cut.name() == name)
    }
}

/// The rows of a batch in the order of the nodes. The rows of an unopened node are in ascending order, so the contents
/// of a node do not depend on which other nodes were opened before it. Takes four bytes per row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KdTree {
    order: Vec<u32>,
}

/// The rows of the two children of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Halves {
    /// Rows of the left child, followed by those of the right child.
    pub rows: Vec<u32>,
    /// Number of rows of the left child.
    pub n_left: usize,
}

/// The axis along which rows are compared.
enum Axis {
    Column(usize),
    Direction(Vec<f64>),
}

impl Axis {
    fn value<F: Real>(&self, row: &[F]) -> f64 {
        match self {
            Self::Column(column) => row[*column].to_f64(),
            Self::Direction(direction) => direction.iter().zip(row).map(|(u, x)| u * x.to_f64()).sum(),
        }
    }
}

impl KdTree {
    /// Creates a tree with only the root, over `n` rows.
    pub fn new(n: usize) -> Self {
        Self { order: (0..n as u32).collect() }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.order.len()
    }

    /// The rows of a node.
    pub fn rows(&self, node: Range<usize>) -> &[u32] {
        &self.order[node]
    }

    /// Returns the children of a node with at least two rows. Neither child is empty. The cut is at the median of a few
    /// thousand rows of the node; equal values are in the order of rows.
    pub fn halves<F: Real>(&self, node: Range<usize>, rows: &RowUnits<'_, F>, cut: NodeCut) -> Halves {
        let list = &self.order[node];
        let d = rows.dimension();
        let read = |list: &[u32]| {
            let mut values = vec![F::ZERO; list.len() * d];
            rows.read(list.iter().map(|&row| row as usize), &vec![F::ZERO; d], &mut values);
            values
        };
        let sampled: Vec<u32> = list.iter().copied().step_by(list.len().div_ceil(SAMPLED)).collect();
        let values = read(&sampled);
        let widest = widest(&values, d);
        let axis = match cut {
            NodeCut::Axis => Axis::Column(widest),
            NodeCut::Principal => principal(&values, d, widest).map_or(Axis::Column(widest), Axis::Direction),
        };
        let mut keys: Vec<(f64, u32)> =
            values.chunks_exact(d).map(|row| axis.value(row)).zip(sampled.iter().copied()).collect();
        let is_below = |a: &(f64, u32), b: &(f64, u32)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
        keys.sort_unstable_by(is_below);
        let median = keys[keys.len() / 2];
        let ranges = blocks(list.len(), ROWS);
        let parts: Vec<[Vec<u32>; 2]> = map_all(ranges.collect(), |range: Range<usize>| {
            let (list, mut sides) = (&list[range], [Vec::new(), Vec::new()]);
            for (row, &number) in read(list).chunks_exact(d).zip(list) {
                let is_left = is_below(&(axis.value(row), number), &median).is_lt();
                sides[usize::from(!is_left)].push(number);
            }
            sides
        });
        let n_left = parts.iter().map(|[left, _]| left.len()).sum();
        let [left, right] = [0, 1].map(|side| parts.iter().flat_map(move |sides| sides[side].iter().copied()));
        Halves { rows: left.chain(right).collect(), n_left }
    }

    /// Replaces the rows of a parent, which begin at `start`, by those of its children.
    pub fn open(&mut self, start: usize, halves: &Halves) {
        self.order[start..start + halves.rows.len()].copy_from_slice(&halves.rows);
    }

    /// Opens all nodes with at least two rows and returns the result as a binary tree; `None` if there are no rows.
    pub fn open_all<F: Real>(mut self, rows: &RowUnits<'_, F>, cut: NodeCut) -> Option<Tree> {
        // Inner nodes, the root first, and the children of each: an inner node, or `None` for a row.
        let mut inner: Vec<Range<usize>> = std::iter::once(0..self.n_rows()).collect();
        let mut children: Vec<[Option<usize>; 2]> = Vec::new();
        if self.n_rows() < 2 {
            return if self.n_rows() == 1 { Tree::new(Vec::new()) } else { None };
        }
        let mut done = 0;
        while done < inner.len() {
            let level = inner[done..].to_vec();
            let halves = map(level.len(), |index| self.halves(level[index].clone(), rows, cut));
            for (node, halves_of_node) in level.iter().zip(&halves) {
                self.open(node.start, halves_of_node);
                let middle = node.start + halves_of_node.n_left;
                children.push([node.start..middle, middle..node.end].map(|child| {
                    (child.len() > 1).then(|| {
                        inner.push(child);
                        inner.len() - 1
                    })
                }));
            }
            done += level.len();
        }
        let n = self.n_rows();
        // A tree stores joins in reverse: children before parents.
        let joins = inner.iter().zip(&children).enumerate().rev().map(|(index, (node, of_node))| {
            let ends = [node.start, node.end - 1];
            debug_assert!(of_node.iter().flatten().all(|child| *child > index));
            [0, 1].map(|side| match of_node[side] {
                Some(child) => (n + inner.len() - 1 - child) as u32,
                None => self.order[ends[side]],
            })
        });
        Tree::new(joins.collect())
    }
}

/// Returns the column with the largest difference between two rows; ties go to the first column.
fn widest<F: Real>(values: &[F], d: usize) -> usize {
    let mut ends = vec![(f64::INFINITY, f64::NEG_INFINITY); d];
    for row in values.chunks_exact(d) {
        for (end, x) in ends.iter_mut().zip(row) {
            *end = (end.0.min(x.to_f64()), end.1.max(x.to_f64()));
        }
    }
    let width = |column: usize| ends[column].1 - ends[column].0;
    (1..d).fold(0, |best, column| if width(column) > width(best) { column } else { best })
}

/// Approximates the principal axis of rows; `None` if all are equal.
fn principal<F: Real>(values: &[F], d: usize, widest: usize) -> Option<Vec<f64>> {
    let rows: Vec<&[F]> =
        values.chunks_exact(d).step_by(if values.len() / d > SAMPLED / 2 { FOR_AXIS } else { 1 }).collect();
    let mean: Vec<f64> =
        (0..d).map(|column| rows.iter().map(|row| row[column].to_f64()).sum::<f64>() / rows.len() as f64).collect();
    let mut axis = vec![0.0; d];
    axis[widest] = 1.0;
    for _ in 0..TURNS {
        let mut next = vec![0.0; d];
        for row in &rows {
            let away = |column: usize| row[column].to_f64() - mean[column];
            let along: f64 = axis.iter().enumerate().map(|(column, u)| u * away(column)).sum();
            next.iter_mut().enumerate().for_each(|(column, sum)| *sum += along * away(column));
        }
        let length = next.iter().map(|u| u * u).sum::<f64>().sqrt();
        if !(length.is_normal() && length.recip().is_finite()) {
            return None;
        }
        axis = next.into_iter().map(|u| u / length).collect();
    }
    Some(axis)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::data::DenseRows;

    proptest! {
        /// Each child holds rows of its parent in ascending order, and a plane separates the children.
        #[test]
        fn halves_part_the_rows(
            d in 1_usize..5,
            n in 2_usize..300,
            values in prop::collection::vec(-3_i32..3, 5 * 300),
            principal in any::<bool>(),
        ) {
            let values: Vec<f64> = values[..n * d].iter().map(|&x| f64::from(x)).collect();
            let table = DenseRows::new(&values, d);
            let units = RowUnits::all(&table, None);
            let cut = if principal { NodeCut::Principal } else { NodeCut::Axis };
            let tree = KdTree::new(n);
            let halves = tree.halves(0..n, &units, cut);
            let (left, right) = halves.rows.split_at(halves.n_left);
            prop_assert!(left.len() == n / 2 && left.is_sorted() && right.is_sorted());
            let mut all = halves.rows.clone();
            all.sort_unstable();
            prop_assert_eq!(all, (0..n as u32).collect::<Vec<_>>());
            if !principal {
                let has_plane = |column: usize| {
                    let of = |row: &u32| values[*row as usize * d + column];
                    let most = left.iter().map(of).fold(f64::NEG_INFINITY, f64::max);
                    most <= right.iter().map(of).fold(f64::INFINITY, f64::min)
                };
                prop_assert!((0..d).any(has_plane));
            }
        }

        /// A tree with all nodes open is a valid binary tree over all rows.
        #[test]
        fn an_open_tree_is_a_tree(n in 1_usize..200, values in prop::collection::vec(-2_i32..2, 2 * 200)) {
            let values: Vec<f64> = values[..2 * n].iter().map(|&x| f64::from(x)).collect();
            let table = DenseRows::new(&values, 2);
            let units = RowUnits::all(&table, None);
            let tree = KdTree::new(n).open_all(&units, NodeCut::Axis).expect("a tree");
            prop_assert_eq!(tree.n_rows(), n);
            let sizes = tree.sizes();
            for &[left, right] in tree.joins() {
                prop_assert!(sizes[left as usize].abs_diff(sizes[right as usize]) <= 1);
            }
        }
    }
}
