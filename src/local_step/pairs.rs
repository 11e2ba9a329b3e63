//! The pairs of a chunk, sorted by component, from which its statistics are summed.

use std::ops::Range;

use crate::local_step::order::{Order, Places};
use crate::parallel::{blocks, for_each};
use crate::responsibilities::Responsibilities;

/// Number of units whose pairs one task sorts.
const SORTED: usize = 256;

/// The (unit, responsibility) pairs of a chunk, sorted by component and then by unit; those of the tail come last. Zero
/// responsibilities and units of zero mass are left out.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    blocks: Vec<BlockPairs>,
    /// Number of pairs of each component.
    counts: Vec<usize>,
    /// The masses by row; `None` if all are one.
    pub masses: Option<Vec<f64>>,
}

/// The pairs of consecutive units.
#[derive(Debug, Default)]
struct BlockPairs {
    /// Position of each pair's unit among the rows of the chunk.
    rows: Vec<u32>,
    values: Vec<f64>,
    /// Offset of each component; one extra entry at the end.
    starts: Vec<usize>,
}

/// The units of a chunk whose pairs are to be sorted.
#[derive(Clone, Copy)]
pub(super) struct Sorting<'a> {
    /// Their responsibilities.
    pub responsibilities: &'a Responsibilities,
    /// Position of each unit among the responsibilities.
    pub places: Places<'a>,
    /// Position of each unit among the rows.
    pub order: &'a Order,
    /// Their masses.
    pub masses: &'a [f64],
    /// Number of components, including the tail.
    pub k: usize,
    /// Whether the nonzero pairs of each unit come first.
    pub is_compact: bool,
}

impl Pairs {
    /// Sorts the pairs of a chunk.
    pub fn sort(&mut self, sorting: Sorting<'_>) {
        let Sorting { order, masses, k, .. } = sorting;
        self.masses = masses.iter().any(|&mass| mass != 1.0).then(|| {
            let mut by_row = vec![0.0; masses.len()];
            masses.iter().enumerate().for_each(|(unit, &mass)| by_row[order.places().of(unit)] = mass);
            by_row
        });
        let ranges = blocks(masses.len(), SORTED);
        self.blocks.resize_with(ranges.len(), BlockPairs::default);
        for_each(self.blocks.iter_mut().zip(ranges).collect(), |(block, units)| block.sort(sorting, units));
        self.counts = (0..k).map(|component| self.blocks.iter().map(|block| block.count(component)).sum()).collect();
    }

    /// The number of pairs of a component.
    pub fn count(&self, component: usize) -> usize {
        self.counts[component]
    }

    /// Rows and values of all pairs of a component, one piece per block.
    pub fn of(&self, component: usize) -> impl Iterator<Item = (&[u32], &[f64])> {
        self.blocks.iter().map(move |block| block.of(component))
    }

    /// Copies rows and values of a range of a component's pairs.
    pub fn copy(&self, component: usize, range: Range<usize>, rows: &mut Vec<u32>, values: &mut Vec<f64>) {
        rows.clear();
        values.clear();
        let mut first = 0;
        for (of_rows, of_values) in self.of(component) {
            let (start, end) =
                (range.start.max(first) - first, range.end.min(first + of_rows.len()).max(first) - first);
            if start < end {
                rows.extend_from_slice(&of_rows[start..end]);
                values.extend_from_slice(&of_values[start..end]);
            }
            first += of_rows.len();
            if first >= range.end {
                break;
            }
        }
    }
}

impl BlockPairs {
    /// A counting sort.
    fn sort(&mut self, sorting: Sorting<'_>, units: Range<usize>) {
        let Self { rows, values, starts } = self;
        starts.clear();
        starts.resize(sorting.k + 1, 0);
        sorting.for_each(units.clone(), |_, component, _| starts[component + 1] += 1);
        for component in 0..sorting.k {
            starts[component + 1] += starts[component];
        }
        let mut next = starts.clone();
        rows.resize(starts[sorting.k], 0);
        values.resize(starts[sorting.k], 0.0);
        sorting.for_each(units, |unit, component, value| {
            let index = &mut next[component];
            (rows[*index], values[*index]) = (sorting.order.places().of(unit) as u32, value);
            *index += 1;
        });
    }

    fn count(&self, component: usize) -> usize {
        self.starts[component + 1] - self.starts[component]
    }

    fn of(&self, component: usize) -> (&[u32], &[f64]) {
        let range = self.starts[component]..self.starts[component + 1];
        (&self.rows[range.clone()], &self.values[range])
    }
}

impl Sorting<'_> {
    /// Calls `take` with the unit, the component and the value of every nonzero pair of listed units, in the order of
    /// units.
    fn for_each(&self, units: Range<usize>, mut take: impl FnMut(usize, usize, f64)) {
        let Responsibilities { width, components, values, .. } = self.responsibilities;
        for unit in units {
            if self.masses[unit] <= 0.0 {
                continue;
            }
            let first = self.places.of(unit) * width;
            for (&component, &value) in components[first..][..*width].iter().zip(&values[first..][..*width]) {
                if value > 0.0 {
                    take(unit, component as usize, value);
                } else if self.is_compact {
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_come_by_component_and_then_by_unit_however_they_are_cut() {
        let n = 2 * SORTED + 77;
        let mut responsibilities = Responsibilities::zeros(n, 2);
        for unit in 0..n {
            responsibilities.components[2 * unit..][..2].copy_from_slice(&[(unit % 3) as u32, 1]);
            responsibilities.values[2 * unit..][..2].copy_from_slice(&[0.5, if unit % 3 == 1 { 0.0 } else { 0.25 }]);
        }
        let masses: Vec<f64> = (0..n).map(|unit| if unit == 4 { 0.0 } else { 1.0 }).collect();
        let order = Order::new(0..n, None, &[]);
        let places = Places::default();
        let mut pairs = Pairs::default();
        pairs.sort(Sorting {
            responsibilities: &responsibilities,
            places,
            order: &order,
            masses: &masses,
            k: 3,
            is_compact: true,
        });
        let (mut rows, mut values) = (Vec::new(), Vec::new());
        for component in 0..3 {
            let has = |unit: &usize| *unit != 4 && (unit % 3 == component || component == 1);
            let expected: Vec<u32> = (0..n).filter(has).map(|unit| unit as u32).collect();
            assert_eq!(pairs.count(component), expected.len());
            for range in [0..expected.len(), 0..0, 5..SORTED, SORTED - 1..expected.len()] {
                let range = range.start.min(expected.len())..range.end.min(expected.len());
                pairs.copy(component, range.clone(), &mut rows, &mut values);
                assert_eq!(rows, expected[range]);
                assert!(
                    values
                        .iter()
                        .zip(&rows)
                        .all(|(&value, row)| { value == if component == 1 && row % 3 != 1 { 0.25 } else { 0.5 } })
                );
            }
        }
    }
}
