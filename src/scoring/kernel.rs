//! Computes `|A x + b|^2` with a triangular `A` for many rows x: rows of data in vector lanes, rows of `A` in
//! registers.
//!
//! Three vectors of rows are multiplied by a band of rows of `A`. The residuals of the whole band stay in registers
//! from the first column to the diagonal, where the triangle is unrolled, so that no operation is spent on a zero. A
//! factor is packed in the order in which it is read.

use pulp::Simd;

use crate::simd::{Instructions, Scalar, VECTORS};

/// Number of rows of a factor that are processed together, with 32 registers and with 16.
const WIDE_BAND: usize = 8;
const NARROW_BAND: usize = 4;

/// Triangular factors of one size, packed for one instruction set.
#[derive(Debug)]
pub struct Factors<F> {
    instructions: Instructions,
    dimension: usize,
    /// The factors, consecutively: bands of rows, each column by column up to its diagonal.
    packed: Vec<F>,
    /// Offsets `b`, one value per row.
    offsets: Vec<F>,
}

impl<F: Scalar> Factors<F> {
    /// An empty list of factors.
    pub fn new(dimension: usize, instructions: Instructions) -> Self {
        Self { instructions, dimension, packed: Vec::new(), offsets: Vec::new() }
    }

    /// Adds a factor and its offset; `value(row, column)` gives the entries at and below the diagonal.
    pub fn push(&mut self, value: impl Fn(usize, usize) -> f64, offset: impl IntoIterator<Item = f64>) {
        let band = self.band();
        for first in (0..self.dimension).step_by(band) {
            let rows = first..self.dimension.min(first + band);
            for column in 0..rows.end {
                self.packed.extend((first.max(column)..rows.end).map(|row| F::from_f64(value(row, column))));
            }
        }
        self.offsets.extend(offset.into_iter().map(F::from_f64));
    }

    /// Number of columns of a factor.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// The instruction set for which the factors are packed.
    pub fn instructions(&self) -> Instructions {
        self.instructions
    }

    fn band(&self) -> usize {
        match self.instructions {
            Instructions::Avx512 | Instructions::Neon => WIDE_BAND,
            Instructions::Avx2 | Instructions::Portable => NARROW_BAND,
        }
    }

    fn factor(&self, factor: usize) -> &[F] {
        let size = self.dimension * (self.dimension + 1) / 2;
        &self.packed[factor * size..][..size]
    }

    fn offset(&self, factor: usize) -> &[F] {
        &self.offsets[factor * self.dimension..][..self.dimension]
    }

    /// The squared length for one row x, computed by the plain loop.
    pub fn squared_length(&self, factor: usize, x: impl Fn(usize) -> F) -> F {
        let mut packed = self.factor(factor).iter();
        let mut length = F::ZERO;
        for (number, offsets) in self.offset(factor).chunks(self.band()).enumerate() {
            let first = number * self.band();
            let mut residuals = [F::ZERO; WIDE_BAND];
            residuals[..offsets.len()].copy_from_slice(offsets);
            for column in 0..first + offsets.len() {
                let rows = column.saturating_sub(first)..offsets.len();
                for (residual, &value) in residuals[rows].iter_mut().zip(&mut packed) {
                    *residual += value * x(column);
                }
            }
            length += residuals.iter().map(|&residual| residual * residual).sum();
        }
        length
    }

    /// Whether a squared length is summed over several bands, so that it can be abandoned between them.
    pub fn has_bands(&self) -> bool {
        self.dimension > self.band()
    }

    /// Writes the squared lengths of one factor for a group of [`Scalar::GROUP`] rows, stored column by column in
    /// `columns`. With `wanted`, a part of the group is abandoned, with its partial sums, as soon as none of its rows
    /// is wanted. Returns the parts that were completed, the first in the last bit. Call only inside
    /// [`Instructions::run`].
    #[inline(always)]
    pub fn squared_lengths<S: Simd>(
        &self,
        simd: S,
        factor: usize,
        columns: &[F],
        wanted: Option<Wanted<'_, F>>,
        out: &mut [F],
    ) -> Parts {
        let (packed, offsets) = (self.factor(factor), self.offset(factor));
        if self.band() == WIDE_BAND {
            group::<S, F, WIDE_BAND>(simd, packed, offsets, columns, wanted, out)
        } else {
            group::<S, F, NARROW_BAND>(simd, packed, offsets, columns, wanted, out)
        }
    }
}

/// Which squared lengths q are wanted: those for which `constant - q / 2` is at least `least` of the row.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a, F> {
    /// Constant, equal for all rows.
    pub constant: F,
    /// One threshold per row of the group.
    pub least: &'a [F],
}

/// `constant - q / 2`.
#[inline(always)]
pub fn gaussian<S: Simd, F: Scalar>(simd: S, constant: F::Vector<S>, q: F::Vector<S>) -> F::Vector<S> {
    F::mul_add(simd, F::splat(simd, F::from_f64(-0.5)), q, constant)
}

#[inline(always)]
fn group<S: Simd, F: Scalar, const BAND: usize>(
    simd: S,
    packed: &[F],
    offsets: &[F],
    columns: &[F],
    wanted: Option<Wanted<'_, F>>,
    out: &mut [F],
) -> Parts {
    let columns: &[F::Vector<S>] = bytemuck::cast_slice(columns);
    let out: &mut [F::Vector<S>] = bytemuck::cast_slice_mut(out);
    let stride = out.len();
    let rows = F::GROUP * VECTORS / stride;
    let mut parts = Parts { rows, complete: 0 };
    for (part, out) in out.chunks_exact_mut(VECTORS).enumerate() {
        let columns = LaneColumns { vectors: &columns[part * VECTORS..], stride };
        let wanted = match wanted {
            Some(Wanted { constant, least }) => Some(Wanted { constant, least: &least[part * rows..][..rows] }),
            None => None,
        };
        let (sums, complete) = lengths::<S, F, BAND>(simd, &columns, packed, offsets, wanted);
        out.copy_from_slice(&sums);
        parts.complete |= u32::from(complete) << part;
    }
    parts
}

/// The completed parts of a group, of `rows` rows each.
#[derive(Debug, Clone, Copy)]
pub struct Parts {
    /// Number of rows per part.
    pub rows: usize,
    complete: u32,
}

impl Parts {
    /// Whether part `part` was completed.
    #[inline(always)]
    pub fn has(self, part: usize) -> bool {
        self.complete >> part & 1 == 1
    }

    /// Whether no part was completed.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.complete == 0
    }

    /// How many of the first `n` rows of the group are in completed parts.
    #[inline(always)]
    pub fn count(self, n: usize) -> usize {
        let mut count = 0;
        let mut first = 0;
        let mut complete = self.complete;
        while complete != 0 && first < n {
            count += if complete & 1 == 1 { self.rows.min(n - first) } else { 0 };
            (first, complete) = (first + self.rows, complete >> 1);
        }
        count
    }
}

/// Three vectors per column; columns are `stride` vectors apart.
struct LaneColumns<'a, V> {
    vectors: &'a [V],
    stride: usize,
}

impl<V> LaneColumns<'_, V> {
    /// The vectors of one column.
    #[inline(always)]
    fn column(&self, column: usize) -> &[V; VECTORS] {
        self.vectors[column * self.stride..].first_chunk().expect("three vectors a column")
    }
}

/// The squared lengths and `true`. If none is wanted any more before the last band, the partial sums and `false`.
#[inline(always)]
fn lengths<S: Simd, F: Scalar, const BAND: usize>(
    simd: S,
    columns: &LaneColumns<'_, F::Vector<S>>,
    mut packed: &[F],
    offsets: &[F],
    wanted: Option<Wanted<'_, F>>,
) -> ([F::Vector<S>; VECTORS], bool) {
    let mut sums = [F::splat(simd, F::ZERO); VECTORS];
    let mut first = 0;
    let mut bands = offsets.chunks_exact(BAND);
    for offsets in &mut bands {
        packed = band::<S, F, BAND>(simd, columns, first, packed, offsets, &mut sums);
        first += BAND;
        if let Some(Wanted { constant, least }) = wanted {
            let constant = F::splat(simd, constant);
            let least: &[F::Vector<S>; VECTORS] =
                bytemuck::cast_slice(least).first_chunk().expect("one a row of three vectors");
            // Squares only add up, and rounding is monotonic, so a row that falls short now falls short in the end.
            let mut near = F::at_least(simd, gaussian::<S, F>(simd, constant, sums[0]), least[0]);
            for v in 1..VECTORS {
                near = F::either(simd, near, F::at_least(simd, gaussian::<S, F>(simd, constant, sums[v]), least[v]));
            }
            if !F::any(simd, near) {
                return (sums, false);
            }
        }
    }
    let rest = bands.remainder();
    match rest.len() {
        1 => band::<S, F, 1>(simd, columns, first, packed, rest, &mut sums),
        2 => band::<S, F, 2>(simd, columns, first, packed, rest, &mut sums),
        3 => band::<S, F, 3>(simd, columns, first, packed, rest, &mut sums),
        4 => band::<S, F, 4>(simd, columns, first, packed, rest, &mut sums),
        5 => band::<S, F, 5>(simd, columns, first, packed, rest, &mut sums),
        6 => band::<S, F, 6>(simd, columns, first, packed, rest, &mut sums),
        7 => band::<S, F, 7>(simd, columns, first, packed, rest, &mut sums),
        _ => packed,
    };
    (sums, true)
}

/// Adds the squares of rows `first..first + H` of the factor; returns the unread rest of the factor.
#[inline(always)]
fn band<'a, S: Simd, F: Scalar, const H: usize>(
    simd: S,
    columns: &LaneColumns<'_, F::Vector<S>>,
    first: usize,
    packed: &'a [F],
    offsets: &[F],
    sums: &mut [F::Vector<S>; VECTORS],
) -> &'a [F] {
    let mut residuals = [[F::splat(simd, F::ZERO); VECTORS]; H];
    for (residual, &offset) in residuals.iter_mut().zip(offsets) {
        *residual = [F::splat(simd, offset); VECTORS];
    }
    let (square, packed) = packed.split_at(first * H);
    let (triangle, packed) = packed.split_at(H * (H + 1) / 2);
    for (column, values) in square.chunks_exact(H).enumerate() {
        let x = columns.column(column);
        for (residual, &value) in residuals.iter_mut().zip(values) {
            let value = F::splat(simd, value);
            for v in 0..VECTORS {
                residual[v] = F::mul_add(simd, value, x[v], residual[v]);
            }
        }
    }
    let mut values = triangle.iter();
    for column in 0..H {
        let x = columns.column(first + column);
        for (residual, &value) in residuals[column..].iter_mut().zip(&mut values) {
            let value = F::splat(simd, value);
            for v in 0..VECTORS {
                residual[v] = F::mul_add(simd, value, x[v], residual[v]);
            }
        }
    }
    for residual in residuals {
        for v in 0..VECTORS {
            sums[v] = F::mul_add(simd, residual[v], residual[v], sums[v]);
        }
    }
    packed
}
