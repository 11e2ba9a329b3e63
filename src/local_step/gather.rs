//! Gathers the rows of one component contiguously in `f64`, for summation.

use pulp::{Simd, WithSimd};

use crate::data::{Csr, RowBlock, SparseRows};
use crate::simd::{Instructions, Lines, Scalar};

/// Scratch space for the rows of one component.
#[derive(Debug, Default)]
pub struct Gather {
    rows: Vec<f64>,
    sparse: GatherSparse,
    /// Scratch space for the summation.
    pub space: Lines<f64>,
}

/// Gathered sparse rows.
#[derive(Debug, Default)]
struct GatherSparse {
    starts: Vec<u64>,
    columns: Vec<u32>,
    values: Vec<f64>,
    numbers: Vec<u32>,
}

impl Gather {
    /// Copies the listed rows of a block with `dimension` columns.
    pub fn gather<F: Scalar>(
        &mut self,
        block: RowBlock<'_, F>,
        dimension: usize,
        list: &[u32],
    ) -> (RowBlock<'_, f64>, &mut Lines<f64>) {
        let Self { rows, sparse, space } = self;
        let gathered = match block {
            RowBlock::Dense(from) => {
                rows.resize(list.len() * dimension, 0.0);
                Instructions::widest().run(GatherRows { from, dimension, list, to: rows });
                RowBlock::Dense(rows)
            }
            RowBlock::Sparse(from) => sparse.gather(from, dimension, list),
        };
        (gathered, space)
    }

    /// The columns of the sparse rows that were gathered last.
    pub fn columns(&self) -> &[u32] {
        &self.sparse.columns
    }
}

impl GatherSparse {
    fn gather<F: Scalar>(&mut self, rows: SparseRows<'_, F>, dimension: usize, list: &[u32]) -> RowBlock<'_, f64> {
        let Self { starts, columns, values, numbers } = self;
        starts.clear();
        starts.push(0);
        columns.clear();
        values.clear();
        numbers.clear();
        for (number, &row) in (0..).zip(list) {
            for (column, value) in rows.table.entries(rows.numbers[row as usize] as usize, dimension) {
                columns.push(column);
                values.push(value.to_f64());
            }
            starts.push(values.len() as u64);
            numbers.push(number);
        }
        RowBlock::Sparse(SparseRows { table: Csr { starts, columns, values }, numbers })
    }
}

/// Copies listed rows; compiled for each instruction set.
struct GatherRows<'a, F> {
    from: &'a [F],
    dimension: usize,
    list: &'a [u32],
    to: &'a mut [f64],
}

impl<F: Scalar> WithSimd for GatherRows<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { from, dimension, list, to } = self;
        match dimension {
            1 => gather_narrow::<F, 1>(from, list, to),
            2 => gather_narrow::<F, 2>(from, list, to),
            3 => gather_narrow::<F, 3>(from, list, to),
            4 => gather_narrow::<F, 4>(from, list, to),
            _ => {
                for (&row, to) in list.iter().zip(to.chunks_exact_mut(dimension)) {
                    convert(&from[row as usize * dimension..][..dimension], to);
                }
            }
        }
    }
}

/// Copies the listed rows of `D` columns. With so few columns an inner loop would cost more than the copy.
#[inline(always)]
fn gather_narrow<F: Scalar, const D: usize>(from: &[F], list: &[u32], to: &mut [f64]) {
    let (from, _) = from.as_chunks::<D>();
    let (to, _) = to.as_chunks_mut::<D>();
    for (&row, to) in list.iter().zip(to) {
        convert(&from[row as usize], to);
    }
}

#[inline(always)]
fn convert<F: Scalar>(row: &[F], to: &mut [f64]) {
    for (to, value) in to.iter_mut().zip(row) {
        *to = value.to_f64();
    }
}
