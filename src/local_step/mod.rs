//! The local step: units and components become responsibilities and, fused, a summary.
//!
//! Units are taken in chunks of a fixed size. Within a chunk, blocks of rows are scored and normalised in
//! parallel, taps see the responsibilities, and then the statistics are summed component by component. An
//! n x K array never exists, and nothing depends on the number of threads.

mod accumulate;
mod assign;
mod state;
mod tap;

use crate::component::ComponentId;
use crate::data::Units;
use crate::error::Result;
use crate::likelihood::{Likelihood, Scratch, Tile};
use crate::parallel::{Cancel, blocks, for_each_with};
use crate::responsibilities::{Responsibilities, TopL};
use crate::simd::Scalar;
use crate::suffstats::Summary;

pub use assign::{Assign, BlockMut, ByScore, FromLabels, FromTable, OneEach, RawScores};
pub use state::LocalState;
pub use tap::{Chunk, Tap};

/// Rows scored together: they and one band of products stay in the second-level cache.
const BLOCK: usize = 240;

/// Space that a thread reuses from block to block.
#[derive(Debug, Default)]
pub struct Work<F> {
    tile: Tile<F>,
    sink: TopL<F>,
    scratch: Scratch<F>,
}

/// What a pass over units keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Only what the taps see: prediction.
    Nothing,
    /// Counts, statistics and entropies.
    Summary,
    /// Those, and the merge-entropy gap of every pair that shares a unit.
    SummaryAndGaps,
}

/// One local step, ready to run over any units.
pub struct LocalStep<'a, F: Scalar> {
    /// The likelihood that knows the statistics.
    pub likelihood: &'a dyn Likelihood<F>,
    /// The components in the order of the positions that `assign` gives.
    pub ids: &'a [ComponentId],
    /// Where responsibilities come from.
    pub assign: &'a dyn Assign<F>,
    /// What is kept.
    pub keep: Keep,
    /// Stops between blocks.
    pub cancel: &'a Cancel,
}

/// What a local step returns.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The summary of the units (empty for [`Keep::Nothing`]).
    pub summary: Summary,
    /// Sum over units of mass x log-sum-exp of the kept log weights, nats.
    pub log_normalizer: f64,
}

impl<F: Scalar> LocalStep<'_, F> {
    /// Runs over all units, updates the local state and shows every tap every chunk, in order.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`]; [`crate::Error::Numerical`] for a row without any finite log weight; what a
    /// tap returns.
    pub fn run(
        &self,
        units: &Units<'_, F>,
        mut state: Option<&mut LocalState>,
        taps: &mut [&mut dyn Tap],
    ) -> Result<Outcome> {
        let gaps = self.keep == Keep::SummaryAndGaps;
        let n_statistics = self.likelihood.n_statistics();
        let mut summary = Summary::empty(self.ids.to_vec(), n_statistics, gaps);
        let mut log_normalizer = 0.0;
        let d = units.dimension();
        let width = self.assign.width();
        let size = chunk_rows(width, d);
        let mut rows = vec![F::ZERO; size.min(units.len()) * d];
        for range in blocks(units.len(), size) {
            let rows = &mut rows[..range.len() * d];
            let mut responsibilities = Responsibilities::zeros(range.len(), width);
            self.assign_chunk(units, range.start, rows, &mut responsibilities)?;
            let masses: Vec<f64> = range.clone().map(|unit| units.mass(unit)).collect();
            log_normalizer +=
                masses.iter().zip(&responsibilities.log_normalizers).map(|(mass, value)| mass * value).sum::<f64>();
            if let Some(state) = state.as_deref_mut() {
                state.remember(range.start, &responsibilities, self.ids);
            }
            tap::show(taps, units, range.start, &responsibilities)?;
            if self.keep != Keep::Nothing {
                accumulate::accumulate(self, rows, &masses, &responsibilities, &mut summary)?;
            }
        }
        Ok(Outcome { summary, log_normalizer })
    }

    fn assign_chunk(
        &self,
        units: &Units<'_, F>,
        start: usize,
        rows: &mut [F],
        responsibilities: &mut Responsibilities,
    ) -> Result<()> {
        let (d, width) = (units.dimension(), responsibilities.width);
        let origin: Vec<F> = self.likelihood.origin().iter().map(|&value| F::from_f64(value)).collect();
        let outs = responsibilities
            .components
            .chunks_mut(BLOCK * width)
            .zip(responsibilities.values.chunks_mut(BLOCK * width))
            .zip(responsibilities.log_normalizers.chunks_mut(BLOCK));
        let items: Vec<_> = rows.chunks_mut(BLOCK * d).zip(outs).enumerate().collect();
        for_each_with(items, Work::default, |work, (block, (rows, ((components, values), log_normalizers)))| {
            self.cancel.check()?;
            let first = start + block * BLOCK;
            units.read(first..first + log_normalizers.len(), &origin, rows);
            self.assign.assign(units, first, rows, BlockMut { components, values, log_normalizers }, work)
        })
    }
}

/// Rows of a chunk: enough pairs a component for long sums, bounded memory, a function of the sizes only.
fn chunk_rows(width: usize, d: usize) -> usize {
    let rows = (1_usize << 20) / width.max(1);
    let rows = rows.min((1 << 22) / d.max(1)).clamp(BLOCK, 1 << 16);
    rows / BLOCK * BLOCK
}
