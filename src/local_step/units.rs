//! Units, which receive responsibilities: a row, a tree node that stands for many rows, or a distinct word of a
//! document.

use crate::data::{RowBlock, RowUnits, Sample, SparseRows};
use crate::likelihood::Likelihood;
use crate::local_step::gather::Gather;
use crate::responsibilities::TopL;
use crate::scoring::{Block, Completing, Incomplete, PairBounds, Scorer, Scratch};
use crate::simd::Scalar;

/// Weighted units with sufficient statistics. Units form groups that a visit never splits; a row is a group of its own.
pub trait Units<F: Scalar>: Sync {
    /// Number of units.
    fn len(&self) -> usize;

    /// Whether there are no units.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of columns.
    fn dimension(&self) -> usize;

    /// The row number of a unit in its original table.
    fn row_number(&self, unit: usize) -> usize;

    /// The mass of a unit.
    fn mass(&self, unit: usize) -> f64;

    /// The masses of listed units.
    fn masses(&self, list: &[u32]) -> Vec<f64> {
        list.iter().map(|&unit| self.mass(unit as usize)).collect()
    }

    /// End of a chunk that begins at unit `first` and has at most `size` units. It is the end of a whole group, and of
    /// the first group even if that is larger than `size`.
    fn chunk_end(&self, first: usize, size: usize) -> usize {
        self.len().min(first + size)
    }

    /// Whether the rows that are scored are sparse.
    fn is_sparse(&self) -> bool {
        false
    }

    /// Number of values that [`Units::read`] copies per unit.
    fn n_values(&self) -> usize;

    /// Copies the values of listed units, relative to the origin.
    fn read(&self, list: &[u32], origin: &[F], out: &mut [F]);

    /// The rows to score for listed units, from the values that were read. `numbers` is scratch space.
    fn rows<'a>(&'a self, list: &[u32], values: &'a [F], numbers: &'a mut Vec<u32>) -> RowBlock<'a, F>;

    /// Passes the log weights of listed units to the sink, as [`Scorer::score_rows`].
    fn score(
        &self,
        scorer: &dyn Scorer<F>,
        _list: &[u32],
        block: Block<'_, F>,
        bounds: Option<PairBounds<'_>>,
        sink: &mut TopL<F>,
        scratch: &mut Scratch<F>,
    ) {
        scorer.score_rows(block, bounds, sink, scratch);
    }

    /// Adds weights times the mean statistics of units of one component.
    fn add_statistics(
        &self,
        of: Statistics<'_, F>,
        read: Read<'_, F>,
        weights: &[f64],
        statistics: &mut [f64],
        gather: &mut Gather,
    ) {
        let (rows, space) = gather.gather(read.block, self.dimension(), read.places);
        match of.completing {
            Some(completing) => {
                let number = |place: usize| self.row_number(read.units[read.places[place] as usize] as usize);
                let rows = Incomplete { values: rows, weights, number: &number };
                completing.accumulate(of.component, rows, statistics, space);
            }
            None => of.likelihood.accumulate(rows, weights, statistics, space),
        }
    }

    /// Adds the terms that depend on a unit alone, which scorers may omit, to one value for each listed unit, nats.
    fn add_row_terms(&self, scorer: &dyn Scorer<F>, _list: &[u32], rows: RowBlock<'_, F>, out: &mut [f64]) {
        scorer.add_row_terms(rows, out);
    }

    /// Writes the part of the mean log base measure of every unit that depends on no parameter to `out`, nats.
    fn log_fixed_bases(&self, likelihood: &dyn Likelihood<F>, read: Read<'_, F>, out: &mut [f64]) {
        likelihood.log_fixed_bases(read.block, out);
    }

    /// Returns the listed units.
    fn select(&self, list: &[u32]) -> Box<dyn Units<F> + '_>;

    /// Copies the listed units out of their batch, for birth and delete moves.
    fn copy_into(&self, list: &[u32], sample: &mut Sample);

    /// Copies rows of the listed units, from which parts of components may be made. Returns the number of rows copied
    /// for each unit.
    fn copy_rows_into(&self, list: &[u32], sample: &mut Sample) -> Vec<u32> {
        self.copy_into(list, sample);
        vec![1; list.len()]
    }
}

/// What defines the statistics of units of a component.
#[derive(Clone, Copy)]
pub struct Statistics<'a, F: Scalar> {
    /// The likelihood.
    pub likelihood: &'a dyn Likelihood<F>,
    /// Completes rows under the component, if a part of them is not seen.
    pub completing: Option<&'a dyn Completing>,
    /// The component.
    pub component: usize,
}

/// Units whose rows have been read.
#[derive(Debug, Clone, Copy)]
pub struct Read<'a, F> {
    /// Indices of the units of the rows.
    pub units: &'a [u32],
    /// The rows that were read.
    pub block: RowBlock<'a, F>,
    /// Positions of the selected rows and units; empty for all.
    pub places: &'a [u32],
}

impl<F: Scalar> Units<F> for RowUnits<'_, F> {
    fn len(&self) -> usize {
        self.len()
    }

    fn dimension(&self) -> usize {
        self.dimension()
    }

    fn row_number(&self, unit: usize) -> usize {
        self.row_number(unit)
    }

    fn mass(&self, unit: usize) -> f64 {
        self.mass(unit)
    }

    fn masses(&self, list: &[u32]) -> Vec<f64> {
        self.masses(list)
    }

    fn is_sparse(&self) -> bool {
        self.csr().is_some()
    }

    // Sparse rows are read in place.
    fn n_values(&self) -> usize {
        if self.csr().is_some() { 0 } else { self.dimension() }
    }

    fn read(&self, list: &[u32], origin: &[F], out: &mut [F]) {
        if self.csr().is_none() {
            self.read(list.iter().map(|&unit| unit as usize), origin, out);
        }
    }

    fn rows<'a>(&'a self, list: &[u32], values: &'a [F], numbers: &'a mut Vec<u32>) -> RowBlock<'a, F> {
        let Some(table) = self.csr() else { return RowBlock::Dense(values) };
        numbers.clear();
        numbers.extend(list.iter().map(|&unit| self.row_number(unit as usize) as u32));
        RowBlock::Sparse(SparseRows { table, numbers })
    }

    fn select(&self, list: &[u32]) -> Box<dyn Units<F> + '_> {
        Box::new(self.select(list))
    }

    fn copy_into(&self, list: &[u32], sample: &mut Sample) {
        sample.extend(self, list);
    }
}
