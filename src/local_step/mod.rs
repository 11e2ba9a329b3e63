//! The local step turns units and components into responsibilities and, in the same pass, a summary.
//!
//! Units are processed in chunks whose size depends only on the data. Within a chunk, blocks of rows are scored and
//! normalised in parallel, taps observe the responsibilities, and then the statistics are summed component by
//! component. An n x K array never exists, and results do not depend on the number of threads.

mod accumulate;
mod assign;
mod bounds;
mod buffers;
mod documents;
mod draw;
mod gather;
mod known;
mod nodes;
mod order;
mod pairs;
mod state;
mod tap;
mod units;
mod words;

use std::ops::{AddAssign, Range};

use serde::{Deserialize, Serialize};

use crate::component::ComponentId;
use crate::error::Result;
use crate::likelihood::Likelihood;
use crate::parallel::{Cancel, blocks, for_each, for_each_with, map};
use crate::responsibilities::{Responsibilities, TopL, best_of};
use crate::scoring::{PairBounds, Scratch};
use crate::simd::Scalar;
use crate::suffstats::Summary;

use accumulate::ChunkUnits;
pub use accumulate::pair_gap;
pub use assign::{
    Assign, BlockMut, ByScore, FromLabels, FromPairs, FromTable, Listed, Mask, OfShares, OneEach, RawScores,
};
pub use bounds::Bounds;
use bounds::Known;
pub use buffers::Buffers;
pub use documents::{ByDocument, DocumentCounts, DocumentOptions, Documented, Restarts, TopicTable};
pub use draw::{ByDraw, Slices};
pub use gather::Gather;
pub use known::KnownRows;
pub use nodes::{
    BatchTree, Behind, Frontier, Judging, NodeUnits, OpeningCandidate, OpeningRule, STANDING, TreeOptions, units_of,
};
use order::{Order, Places};
use pairs::Sorting;
pub use state::LocalState;
pub use tap::{Chunk, OwnOrder, Tap};
pub use units::{Read, Statistics, Units};
pub use words::DocumentWords;

/// Number of rows scored together. They and one band of products fit in the second-level cache.
const BLOCK: usize = 240;
/// Block size when distance bounds are kept. Large enough that the rows that need one component fill whole SIMD groups.
const BOUNDED_BLOCK: usize = 1920;
/// Number of units whose best components one task writes down, and whose log normalisers it sums.
const NOTED: usize = 1024;
/// Minimum number of blocks of a chunk, so that threads can share them.
const BOUNDED_BLOCKS: usize = 32;

/// Scratch space that a thread reuses from block to block.
#[derive(Debug, Default)]
pub struct Space<F> {
    sink: TopL<F>,
    scratch: Scratch<F>,
    documents: documents::DocumentSpace,
    draws: draw::RowDrawSpace,
}

/// What a pass over units keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Keep {
    /// Nothing: only taps see the responsibilities (prediction).
    Nothing,
    /// Counts, statistics and entropies.
    Summary,
    /// The same, plus the merge-entropy gap of every pair of components that share a unit.
    SummaryAndGaps,
}

/// Outputs of a chunk, in the order in which its units are scored.
struct ChunkMut<'a, F> {
    read: &'a mut [F],
    responsibilities: &'a mut Responsibilities,
    /// The best component of each unit; empty if not needed.
    leaders: &'a mut [u32],
}

/// One local step, ready to run over any units.
pub struct LocalStep<'a, F: Scalar> {
    /// The likelihood, which defines the statistics.
    pub likelihood: &'a dyn Likelihood<F>,
    /// The components at the positions that `assign` returns; the position after the last one is the tail.
    pub ids: &'a [ComponentId],
    /// Source of responsibilities.
    pub assign: &'a dyn Assign<F>,
    /// What to keep.
    pub keep: Keep,
    /// Checked between blocks.
    pub cancel: &'a Cancel,
}

/// What a local step returns.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The summary of the units (empty for [`Keep::Nothing`]).
    pub summary: Summary,
    /// Sum over units of mass x log-sum-exp of the kept log weights, nats.
    pub log_normalizer: f64,
    /// Computational cost.
    pub work: Work,
}

impl Outcome {
    /// Adds the outcome for other units under the same components.
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] for other components.
    pub fn add(&mut self, other: &Self) -> Result<()> {
        self.log_normalizer += other.log_normalizer;
        self.work += other.work;
        self.summary.add_compact(&other.summary)
    }
}

/// Work done, in (unit, component) pairs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// Total number of pairs.
    pub pairs: usize,
    /// Number of pairs whose log weight was computed.
    pub evaluated: usize,
    /// Number of units.
    pub units: usize,
    /// Restarts of documents.
    pub restarts: Restarts,
}

impl AddAssign for Work {
    fn add_assign(&mut self, other: Self) {
        self.pairs += other.pairs;
        self.evaluated += other.evaluated;
        self.units += other.units;
        self.restarts += other.restarts;
    }
}

impl<F: Scalar> LocalStep<'_, F> {
    /// Runs over all units, updates the local state and shows every chunk to every tap, in order.
    ///
    /// # Errors
    /// As [`LocalStep::run_compact`].
    pub fn run(
        &self,
        units: &dyn Units<F>,
        state: Option<&mut LocalState>,
        taps: &mut [&mut dyn Tap],
    ) -> Result<Outcome> {
        let outcome = self.run_compact(units, state, taps)?;
        Ok(Outcome { summary: outcome.summary.into_dense(), ..outcome })
    }

    /// As [`LocalStep::run`]. The summary of sparse units stores only nonzeros if that is smaller.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`]; [`crate::Error::Numerical`] for a row without any finite log weight; any error of a
    /// tap.
    pub fn run_compact(
        &self,
        units: &dyn Units<F>,
        state: Option<&mut LocalState>,
        taps: &mut [&mut dyn Tap],
    ) -> Result<Outcome> {
        self.run_in(&mut Buffers::default(), units, state, taps)
    }

    /// As [`LocalStep::run_compact`], in buffers of an earlier run.
    ///
    /// # Errors
    /// As [`LocalStep::run_compact`].
    pub fn run_in(
        &self,
        buffers: &mut Buffers<F>,
        units: &dyn Units<F>,
        mut state: Option<&mut LocalState>,
        taps: &mut [&mut dyn Tap],
    ) -> Result<Outcome> {
        let gaps = self.keep == Keep::SummaryAndGaps;
        let n_statistics = self.likelihood.n_statistics();
        let empty = if self.sums_by_non_zeros(units) { Summary::empty_sparse } else { Summary::empty };
        let mut summary = empty(self.ids.to_vec(), n_statistics, gaps);
        let mut log_normalizer = 0.0;
        let d = units.dimension();
        let width = self.assign.width();
        let n_columns = self.ids.len() + usize::from(self.assign.has_tail());
        // Sparse rows are not copied, so large chunks do not take their room.
        let size = chunk_rows(self.assign.usual_width(), if units.is_sparse() { FEW_COLUMNS } else { d });
        let Buffers { read, responsibilities, scored, leaders, pairs } = buffers;
        (responsibilities.width, scored.width) = (width, width);
        let mut evaluated = 0;
        let mut best = vec![None; if state.is_some() { units.len() } else { 0 }];
        let base = state.as_deref_mut().and_then(|state| *state.log_base_measure_mut());
        for (index, range) in chunks(units, size).enumerate() {
            read.resize(range.len() * units.n_values(), F::ZERO);
            responsibilities.resize(range.len());
            let last = state.as_deref().filter(|_| order::pays(n_columns, d));
            let order = Order::new(range.clone(), last, self.ids);
            let bounds = state.as_deref().and_then(LocalState::bounds);
            let known = bounds.map(|bounds| bounds.known(index, range.clone(), self.ids));
            let mut values = vec![0; known.as_ref().map_or(0, |known| known.drifts.len() * order.units.len())];
            leaders.resize(if state.is_some() { range.len() } else { 0 }, 0);
            let out = ChunkMut { read, responsibilities, leaders };
            evaluated += self.assign_chunk(units, &order, range.start, out, known.as_ref(), &mut values)?;
            // Most taps need responsibilities in row order; the accumulation works with either order.
            let is_restored = taps.iter().any(|tap| tap.needs_order());
            if is_restored {
                order.restore(responsibilities, scored);
            }
            let places = if is_restored { Places::default() } else { order.places() };
            let list: Vec<u32> = (range.start as u32..range.end as u32).collect();
            let masses = units.masses(&list);
            log_normalizer += sum_of_log_normalizers(&masses, &responsibilities.log_normalizers, places);
            tap::show(taps, units, &list, responsibilities, places)?;
            if self.keep != Keep::Nothing {
                let (responsibilities, order, masses) = (&*responsibilities, &order, &masses);
                let is_compact = self.assign.is_compact();
                pairs.sort(Sorting { responsibilities, places, order, masses, k: n_columns, is_compact });
                let mut numbers = Vec::new();
                let rows = units.rows(&order.units, read, &mut numbers);
                let chunk = ChunkUnits { units, rows, order, places, base };
                accumulate::accumulate(self, chunk, masses, responsibilities, pairs, &mut summary)?;
            }
            if let Some(state) = state.as_deref_mut() {
                self.note_best(&mut best[range.clone()], leaders, order.places());
                if let Some(bounds) = state.bounds_mut() {
                    bounds.put(index, range.start, order.units, self.ids, values);
                }
            }
        }
        if let Some(base) = base {
            summary.log_base_measure = base;
        }
        if let Some(state) = state {
            *state.log_base_measure_mut() = Some(summary.log_base_measure).filter(|_| self.keep != Keep::Nothing);
            state.remember(best);
        }
        let work =
            Work { pairs: units.len() * n_columns, evaluated, units: units.len(), restarts: Restarts::default() };
        Ok(Outcome { summary: summary.compact(), log_normalizer, work })
    }

    /// Writes down the best component of each unit of a chunk.
    fn note_best(&self, best: &mut [Option<ComponentId>], leaders: &[u32], places: Places<'_>) {
        let items = best.chunks_mut(NOTED).zip(blocks(leaders.len(), NOTED)).collect();
        for_each(items, |(best, units): (&mut [Option<ComponentId>], Range<usize>)| {
            for (best, unit) in best.iter_mut().zip(units) {
                *best = self.ids.get(leaders[places.of(unit)] as usize).copied();
            }
        });
    }

    /// Whether units contribute only to the statistics of the columns that they store.
    fn sums_by_non_zeros(&self, units: &dyn Units<F>) -> bool {
        units.is_sparse() && self.likelihood.is_by_column()
    }

    fn assign_chunk(
        &self,
        units: &dyn Units<F>,
        order: &Order,
        first: usize,
        out: ChunkMut<'_, F>,
        known: Option<&Known<'_>>,
        values: &mut [u16],
    ) -> Result<usize> {
        let block = match known {
            Some(_) => (order.units.len() / BOUNDED_BLOCKS).next_multiple_of(F::GROUP).clamp(BLOCK, BOUNDED_BLOCK),
            None => BLOCK,
        };
        let ChunkMut { read, responsibilities, leaders } = out;
        let (n_values, width, is_compact) = (units.n_values(), responsibilities.width, self.assign.is_compact());
        let origin: Vec<F> = self.likelihood.origin().iter().map(|&value| F::from_f64(value)).collect();
        // Blocks hold whole groups, as chunks do.
        let n = order.units.len();
        let mut ends = Vec::with_capacity(n.div_ceil(block));
        while let Some(&(mut end)) = ends.last().or(Some(&0)).filter(|end| **end < n) {
            end = (units.chunk_end(first + end, block) - first).min(n);
            ends.push(end);
        }
        let mut n_evaluated = vec![0; ends.len()];
        let n_bounds = known.map_or(0, |known| known.drifts.len());
        let lists = cut(&order.units, &ends).into_iter().zip(cut(&order.leads, &ends)).zip(&mut n_evaluated);
        let outs = cut_mut(&mut responsibilities.components, &ends, width)
            .into_iter()
            .zip(cut_mut(&mut responsibilities.values, &ends, width))
            .zip(cut_mut(&mut responsibilities.log_normalizers, &ends, 1));
        let spaces = cut_mut(read, &ends, n_values).into_iter().zip(cut_mut(values, &ends, n_bounds));
        let leaders = cut_mut(leaders, &ends, usize::from(!leaders.is_empty()));
        let items: Vec<_> =
            outs.zip(lists).zip(spaces).zip(leaders).map(|((items, space), leaders)| (items, space, leaders)).collect();
        for_each_with(
            items,
            Space::default,
            |space, ((outs, ((listed, leads), n_evaluated)), (read, values), leaders)| {
                self.cancel.check()?;
                let ((components, values_of), log_normalizers) = outs;
                let listed = Listed { units: listed, leads };
                units.read(listed.units, &origin, read);
                let mut numbers = Vec::new();
                let rows = units.rows(listed.units, read, &mut numbers);
                let bounds = known.map(|known| {
                    known.copy(listed.units, values);
                    PairBounds { values, drifts: &known.drifts }
                });
                let (of, to) = (&mut *components, &mut *values_of);
                let out = BlockMut { components: of, values: to, log_normalizers, n_evaluated, bounds };
                self.assign.assign(units, listed, rows, out, space)?;
                let pairs = components.chunks_exact(width).zip(values_of.chunks_exact(width));
                for (leader, (components, values)) in leaders.iter_mut().zip(pairs) {
                    *leader = if is_compact { components[0] } else { best_of(components, values) };
                }
                Ok(())
            },
        )?;
        Ok(n_evaluated.iter().sum())
    }
}

/// Sum over the units of a chunk of mass times log normaliser, nats.
fn sum_of_log_normalizers(masses: &[f64], log_normalizers: &[f64], places: Places<'_>) -> f64 {
    let noted: Vec<_> = blocks(masses.len(), NOTED).collect();
    let of_unit = |unit: usize| masses[unit] * log_normalizers[places.of(unit)];
    map(noted.len(), |block| noted[block].clone().map(of_unit).sum::<f64>()).iter().sum()
}

/// Splits a list at the given ends.
fn cut<'a, T>(list: &'a [T], ends: &[usize]) -> Vec<&'a [T]> {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts.zip(ends).map(|(start, &end)| &list[start..end]).collect()
}

/// The same for a list with `width` entries per unit.
fn cut_mut<'a, T>(mut list: &'a mut [T], ends: &[usize], width: usize) -> Vec<&'a mut [T]> {
    let mut pieces = Vec::with_capacity(ends.len());
    let mut start = 0;
    for &end in ends {
        let (piece, rest) = list.split_at_mut((end - start) * width);
        pieces.push(piece);
        (list, start) = (rest, end);
    }
    pieces
}

/// The chunks of at most `size` units, made of whole groups, in order.
fn chunks<F: Scalar>(units: &dyn Units<F>, size: usize) -> impl Iterator<Item = Range<usize>> {
    let mut first = 0;
    std::iter::from_fn(move || {
        let range = first..units.chunk_end(first, size);
        first = range.end;
        (!range.is_empty()).then_some(range)
    })
}

/// Number of columns below which chunks are small.
const FEW_COLUMNS: usize = 32;

/// Number of rows of a chunk, a function of the sizes only. It gives each component enough pairs for long sums in
/// bounded memory. With few columns, a small chunk lets its results be read again while they are in the cache; with
/// many, a large chunk lets neighbours share their best component.
pub fn chunk_rows(width: usize, d: usize) -> usize {
    let rows = (1_usize << 20) / width.max(1);
    let rows = rows.min((1 << 22) / d.max(1)).clamp(BLOCK, if d < FEW_COLUMNS { 1 << 15 } else { 1 << 16 });
    rows / BLOCK * BLOCK
}
