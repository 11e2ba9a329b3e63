//! Computes `|A x + b|^2` with a triangular `A` for many rows x: rows of data in vector lanes, rows of `A` in
//! registers.
//!
//! Three vectors of rows are multiplied by a band of rows of `A`. The residuals of the whole band stay in registers
//! from the first column to the diagonal, where the triangle is unrolled, so that no operation is spent on a zero. A
//! factor is packed in the order in which it is read.

use pulp::Simd;

use crate::simd::{Instructions, Scalar, VECTORS, Vectors, parts_of_group};

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

    /// One of the factors.
    #[inline(always)]
    pub fn factor(&self, factor: usize) -> Factor<'_, F> {
        let size = self.dimension * (self.dimension + 1) / 2;
        let packed = &self.packed[factor * size..][..size];
        let offsets = &self.offsets[factor * self.dimension..][..self.dimension];
        Factor { packed, offsets, band: self.band() }
    }

    /// Whether a squared length is summed over several bands, so that it can be abandoned between them.
    pub fn has_bands(&self) -> bool {
        self.dimension > self.band()
    }
}

/// One factor of [`Factors`].
#[derive(Debug, Clone, Copy)]
pub struct Factor<'a, F> {
    packed: &'a [F],
    offsets: &'a [F],
    band: usize,
}

impl<F: Scalar> Factor<'_, F> {
    /// The squared length for one row x, computed by the plain loop.
    pub fn squared_length(self, x: impl Fn(usize) -> F) -> F {
        let mut packed = self.packed.iter();
        let mut length = F::ZERO;
        for (number, offsets) in self.offsets.chunks(self.band).enumerate() {
            let first = number * self.band;
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

    /// The squared lengths for three vectors of rows, and `true`. With `wanted`, the partial sums and `false` as soon
    /// as none of the rows is wanted. Call only inside [`Instructions::run`].
    #[inline(always)]
    pub fn squared_lengths<S: Simd>(
        self,
        simd: S,
        rows: RowVectors<'_, S, F>,
        wanted: Option<Wanted<S, F>>,
    ) -> (Vectors<S, F>, bool) {
        if self.band == WIDE_BAND {
            lengths::<S, F, WIDE_BAND>(simd, rows, self.packed, self.offsets, wanted)
        } else {
            lengths::<S, F, NARROW_BAND>(simd, rows, self.packed, self.offsets, wanted)
        }
    }
}

/// Three vectors of rows of a tile, column by column.
#[derive(Clone, Copy)]
pub struct RowVectors<'a, S: Simd, F: Scalar> {
    /// The vectors of a group from these on; columns are [`parts_of_group`] apart.
    pub columns: &'a [Vectors<S, F>],
}

/// Which squared lengths q are wanted: those for which `constant - q / 2` is at least `least` of the row.
#[derive(Clone, Copy)]
pub struct Wanted<S: Simd, F: Scalar> {
    /// Constant, equal for all rows.
    pub constant: F::Vector<S>,
    /// One threshold per row.
    pub least: Vectors<S, F>,
}

impl<S: Simd, F: Scalar> Wanted<S, F> {
    /// Whether any of these squared lengths is wanted.
    #[inline(always)]
    pub fn any(&self, simd: S, lengths: Vectors<S, F>) -> bool {
        let Self { constant, least } = *self;
        let mut near = F::at_least(simd, gaussian::<S, F>(simd, constant, lengths[0]), least[0]);
        for v in 1..VECTORS {
            near = F::either(simd, near, F::at_least(simd, gaussian::<S, F>(simd, constant, lengths[v]), least[v]));
        }
        F::any(simd, near)
    }
}

/// `constant - q / 2`.
#[inline(always)]
pub fn gaussian<S: Simd, F: Scalar>(simd: S, constant: F::Vector<S>, q: F::Vector<S>) -> F::Vector<S> {
    F::mul_add(simd, F::splat(simd, F::from_f64(-0.5)), q, constant)
}

#[inline(always)]
fn lengths<S: Simd, F: Scalar, const BAND: usize>(
    simd: S,
    rows: RowVectors<'_, S, F>,
    mut packed: &[F],
    offsets: &[F],
    wanted: Option<Wanted<S, F>>,
) -> (Vectors<S, F>, bool) {
    let mut sums = [F::splat(simd, F::ZERO); VECTORS];
    let mut first = 0;
    let mut bands = offsets.chunks_exact(BAND);
    for offsets in &mut bands {
        packed = band::<S, F, BAND>(simd, rows, first, packed, offsets, &mut sums);
        first += BAND;
        if let Some(wanted) = &wanted {
            // Squares only add up, and rounding is monotonic, so a row that falls short now falls short in the end.
            if !wanted.any(simd, sums) {
                return (sums, false);
            }
        }
    }
    let rest = bands.remainder();
    match rest.len() {
        1 => band::<S, F, 1>(simd, rows, first, packed, rest, &mut sums),
        2 => band::<S, F, 2>(simd, rows, first, packed, rest, &mut sums),
        3 => band::<S, F, 3>(simd, rows, first, packed, rest, &mut sums),
        4 => band::<S, F, 4>(simd, rows, first, packed, rest, &mut sums),
        5 => band::<S, F, 5>(simd, rows, first, packed, rest, &mut sums),
        6 => band::<S, F, 6>(simd, rows, first, packed, rest, &mut sums),
        7 => band::<S, F, 7>(simd, rows, first, packed, rest, &mut sums),
        _ => packed,
    };
    (sums, true)
}

/// Adds the squares of rows `first..first + H` of the factor; returns the unread rest of the factor.
#[inline(always)]
fn band<'a, S: Simd, F: Scalar, const H: usize>(
    simd: S,
    rows: RowVectors<'_, S, F>,
    first: usize,
    packed: &'a [F],
    offsets: &[F],
    sums: &mut Vectors<S, F>,
) -> &'a [F] {
    let step = parts_of_group::<S, F>();
    // Of constant length, so that the triangle needs no checks.
    let (left, own) = (&rows.columns[..first * step], &rows.columns[first * step..][..=(H - 1) * step]);
    let (square, packed) = packed.split_at(first * H);
    let (triangle, packed) = packed.split_at(H * (H + 1) / 2);
    let offsets = offsets.first_chunk::<H>().expect("one a row of the band");
    let mut residuals = [[F::splat(simd, F::ZERO); VECTORS]; H];
    for h in 0..H {
        residuals[h] = [F::splat(simd, offsets[h]); VECTORS];
    }
    for (x, values) in left.iter().step_by(step).zip(square.as_chunks::<H>().0) {
        for h in 0..H {
            let value = F::splat(simd, values[h]);
            for v in 0..VECTORS {
                residuals[h][v] = F::mul_add(simd, value, x[v], residuals[h][v]);
            }
        }
    }
    let mut values = triangle.iter();
    for column in 0..H {
        let x = &own[column * step];
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
