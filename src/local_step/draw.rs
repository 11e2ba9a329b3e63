//! Responsibilities of samplers: each row belongs to one component, drawn from its weights.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::data::RowBlock;
use crate::error::Result;
use crate::local_step::assign::{Assign, BlockMut, Listed, no_weight_of};
use crate::local_step::{Space, Units};
use crate::parallel::{blocks, map};
use crate::responsibilities::{DrawBlock, DrawSpace, far};
use crate::rng::chance;
use crate::scoring::{Block, Completing, Scorer};

/// Number of rows whose slices one task looks at.
const LOOKED_AT: usize = 1 << 14;

/// The slice of each row, a level that the components it may belong to exceed (mathematics 8.11). A slice is uniform
/// below the level of the component that the row is in.
#[derive(Debug, Clone, PartialEq)]
pub struct Slices {
    /// What the random numbers of rows follow from.
    pub key: u64,
    /// The position of each component in the order of falling levels, by its label.
    pub places: Vec<u32>,
    /// The log level of each position, falling.
    pub log_levels: Vec<f64>,
}

impl Slices {
    /// The log slice of a row in a component.
    fn of(&self, row: usize, label: u32) -> f64 {
        self.log_levels[self.places[label as usize] as usize] + chance(self.key, row as u64).ln()
    }

    /// The number of positions that a row may belong to.
    fn reach(&self, row: usize, label: u32) -> u32 {
        let log_slice = self.of(row, label);
        let above = self.log_levels.partition_point(|&level| level > log_slice) as u32;
        // Rounding may leave the slice at the level itself.
        above.max(self.places[label as usize] + 1)
    }

    /// The lowest log slice of all rows, and its row.
    pub fn lowest(&self, labels: &[AtomicU32]) -> (f64, usize) {
        let ranges: Vec<_> = blocks(labels.len(), LOOKED_AT).collect();
        let of_row = |row: usize| (self.of(row, labels[row].load(Ordering::Relaxed)), row);
        let lower = |a: (f64, usize), b: (f64, usize)| if b.0 < a.0 { b } else { a };
        let of_range = |index: usize| ranges[index].clone().map(of_row).fold((f64::INFINITY, 0), lower);
        map(ranges.len(), of_range).into_iter().fold((f64::INFINITY, 0), lower)
    }
}

/// Space for the draws of a block.
#[derive(Debug, Default)]
pub(super) struct RowDrawSpace {
    draws: DrawSpace,
    chances: Vec<f64>,
    reach: Vec<u32>,
}

/// Draws the component of each row, and writes down its label. The random number of a row follows from its row number
/// alone.
pub struct ByDraw<'a> {
    /// The components, packed at drawn parameters with their log weights.
    pub scorer: &'a dyn Scorer<f64>,
    /// The label of each row, before and after.
    pub labels: &'a [AtomicU32],
    /// What the random numbers of rows follow from.
    pub key: u64,
    /// The components that each row may belong to; all if absent.
    pub slices: Option<&'a Slices>,
    /// Number of rows whose component has changed.
    moved: AtomicU64,
}

impl<'a> ByDraw<'a> {
    /// Draws from packed components.
    pub fn new(scorer: &'a dyn Scorer<f64>, labels: &'a [AtomicU32], key: u64, slices: Option<&'a Slices>) -> Self {
        Self { scorer, labels, key, slices, moved: AtomicU64::new(0) }
    }

    /// The number of rows whose component has changed.
    pub fn n_moved(&self) -> u64 {
        self.moved.load(Ordering::Relaxed)
    }

    /// The position among the components of a label from before.
    fn place(&self, label: u32) -> u32 {
        self.slices.map_or(label, |slices| slices.places[label as usize])
    }
}

impl Assign<f64> for ByDraw<'_> {
    fn width(&self) -> usize {
        1
    }

    fn is_compact(&self) -> bool {
        true
    }

    fn completing(&self) -> Option<&dyn Completing> {
        self.scorer.completing()
    }

    fn assign(
        &self,
        units: &dyn Units<f64>,
        listed: Listed<'_>,
        rows: RowBlock<'_, f64>,
        out: BlockMut<'_>,
        space: &mut Space<f64>,
    ) -> Result<()> {
        let k = self.scorer.n_components();
        let Space { sink, scratch, draws: RowDrawSpace { draws, chances, reach }, .. } = space;
        // The best component may be beyond the reach of a row, whose other components must then be scored.
        let may_abandon = self.slices.is_none();
        sink.reset(listed.units.len(), k, k, Some(far(k)), may_abandon, false);
        let block = Block { rows, leads: listed.leads };
        units.score(self.scorer, listed.units, block, None, sink, scratch);
        *out.n_evaluated = sink.n_evaluated;
        let numbers = listed.units.iter().map(|&unit| units.row_number(unit as usize));
        chances.clear();
        chances.extend(numbers.clone().map(|row| chance(self.key, row as u64)));
        reach.clear();
        if let Some(slices) = self.slices {
            reach.extend(numbers.clone().map(|row| slices.reach(row, self.labels[row].load(Ordering::Relaxed))));
        }
        let (scores, stride) = sink.all_scores();
        let block = DrawBlock { scores, stride, reach, chances, drawn: out.components };
        block.draw(draws).map_err(|row| no_weight_of(units, listed, rows, row))?;
        let mut n_moved = 0;
        for (row, &component) in numbers.zip(&*out.components) {
            let before = self.place(self.labels[row].load(Ordering::Relaxed));
            n_moved += u64::from(component != before);
            self.labels[row].store(component, Ordering::Relaxed);
        }
        self.moved.fetch_add(n_moved, Ordering::Relaxed);
        out.values.fill(1.0);
        out.log_normalizers.fill(0.0);
        Ok(())
    }
}
