//! Scores against a plain loop of the same arithmetic and against the FMA peak, in turns in one run.
//!
//! The plain loop knows nothing of what scores are for: three vectors of rows at a time, eight rows of a packed
//! triangle at a time, the square of the residuals, and of these the least of each row. The engine also packs rows into
//! tiles, adds constants, and keeps the best four components of each row with their numbers. Operations are those of
//! the triangles, `D (D + 1)` a pair. The best of many short runs counts: whatever else a machine does only ever takes
//! time away.

#![allow(clippy::print_stdout, reason = "a program that prints a table")]

use std::hint::black_box;
use std::time::Instant;

use pulp::{Simd, WithSimd};
use stickbreak::data::RowBlock;
use stickbreak::linalg::packed_len;
use stickbreak::responsibilities::TopL;
use stickbreak::scoring::{Block, Scratch};
use stickbreak::simd::{Instructions, Lines, Scalar, VECTORS};
use stickbreak_benches::{Sizes, State, generate, print_peak, short_name};

/// Where the command line names none.
const DIMENSIONS: [usize; 7] = [8, 16, 25, 32, 50, 64, 128];
/// Whole groups in either type.
const ROWS: usize = 480;
const COMPONENTS: usize = 128;
const WIDTH: usize = 4;
/// Rows of a triangle that are worked on together.
const BAND: usize = 8;
const RUNS: usize = 100;

/// The plain loop, to be compiled for each instruction set.
struct Plain<'a, F> {
    d: usize,
    /// Column by column for three vectors of rows at a time.
    rows: &'a [F],
    /// Bands of a triangle, column by column.
    packed: &'a [F],
    /// The least square of each row.
    least: &'a mut [F],
}

impl<F: Scalar> WithSimd for Plain<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { d, rows, packed, least } = self;
        let rows: &[F::Vector<S>] = bytemuck::cast_slice(rows);
        let least: &mut [F::Vector<S>] = bytemuck::cast_slice_mut(least);
        for packed in packed.chunks_exact(packed_len(d)) {
            for (rows, least) in rows.chunks_exact(VECTORS * d).zip(least.chunks_exact_mut(VECTORS)) {
                let sums = triangle::<S, F>(simd, d, rows, packed);
                for (least, sum) in least.iter_mut().zip(sums) {
                    *least = F::select(simd, F::at_least(simd, sum, *least), *least, sum);
                }
            }
        }
    }
}

#[inline(always)]
fn triangle<S: Simd, F: Scalar>(simd: S, d: usize, rows: &[F::Vector<S>], mut packed: &[F]) -> [F::Vector<S>; VECTORS] {
    let mut sums = [F::splat(simd, F::ZERO); VECTORS];
    for first in (0..d).step_by(BAND) {
        let rows = &rows[..VECTORS * d.min(first + BAND)];
        packed = match d - first {
            1 => band::<S, F, 1>(simd, rows, packed, &mut sums),
            2 => band::<S, F, 2>(simd, rows, packed, &mut sums),
            _ => band::<S, F, BAND>(simd, rows, packed, &mut sums),
        };
    }
    sums
}

#[inline(always)]
fn band<'a, S: Simd, F: Scalar, const H: usize>(
    simd: S,
    rows: &[F::Vector<S>],
    packed: &'a [F],
    sums: &mut [F::Vector<S>; VECTORS],
) -> &'a [F] {
    let (columns, _) = rows.as_chunks::<VECTORS>();
    let (square, columns) = columns.split_at(columns.len() - H);
    let (values, packed) = packed.split_at(square.len() * H);
    let (triangle, packed) = packed.split_at(H * (H + 1) / 2);
    let mut residuals = [[F::splat(simd, F::ZERO); VECTORS]; H];
    for (x, values) in square.iter().zip(values.as_chunks::<H>().0) {
        for h in 0..H {
            let value = F::splat(simd, values[h]);
            for v in 0..VECTORS {
                residuals[h][v] = F::mul_add(simd, value, x[v], residuals[h][v]);
            }
        }
    }
    let mut values = triangle.iter();
    for (column, x) in columns.iter().enumerate() {
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

fn best(mut task: impl FnMut()) -> f64 {
    (0..RUNS).fold(f64::INFINITY, |best, _| {
        let started = Instant::now();
        task();
        best.min(started.elapsed().as_secs_f64())
    })
}

fn lines<F: Scalar>(len: usize) -> Lines<F> {
    let mut lines = Lines::default();
    lines.reset(len, F::ZERO);
    lines.iter_mut().enumerate().for_each(|(at, value)| *value = F::from_f64((at * 7919 % 1000) as f64 / 1000.0));
    lines
}

fn measure<F: Scalar>(dimensions: &[usize], peak: f64) {
    for &d in dimensions {
        let sizes = Sizes { n: ROWS, d, k: COMPONENTS, width: WIDTH, threads: 1 };
        let data = generate::<F>(sizes);
        let state = State::new(&data, sizes);
        let scorer = state.globals().scorer(&state.model).expect("definite");
        let (mut sink, mut scratch) = (TopL::default(), Scratch::default());
        let ours = best(|| {
            sink.reset(ROWS, WIDTH, COMPONENTS, None, false, false);
            let block = Block { rows: RowBlock::Dense(black_box(&data.rows)), leads: &[] };
            scorer.score_rows(block, None, &mut sink, &mut scratch);
        });
        let (rows, packed, mut least) =
            (lines::<F>(ROWS * d), lines::<F>(COMPONENTS * packed_len(d)), Lines::default());
        let plain = best(|| {
            least.reset(ROWS, F::INFINITY);
            let (rows, packed) = (black_box(&*rows), black_box(&*packed));
            Instructions::widest().run(Plain { d, rows, packed, least: &mut least });
        });
        let share = |seconds: f64| 100.0 * sizes.score_operations() / seconds / peak;
        println!(
            "{} D={d}: scores {:.0} % of the peak, plain loop {:.0} %, ratio {:.2}",
            short_name::<F>(),
            share(ours),
            share(plain),
            plain / ours
        );
    }
}

fn main() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("threads start");
    let named: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let dimensions = if named.is_empty() { &DIMENSIONS[..] } else { &named };
    measure::<f64>(dimensions, print_peak::<f64>(&pool));
    measure::<f32>(dimensions, print_peak::<f32>(&pool));
}
