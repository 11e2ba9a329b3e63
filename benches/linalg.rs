//! Which library multiplies our blocks: faer or matrixmultiply. One thread, shapes of the local step, D from 2 to 256.
//!
//! Criterion's `elem/s` are floating-point operations per second. `gemm/n=1024` is the peak that the others are a
//! fraction of. `lower` counts the operations of the whole product, of which it computes the lower triangle.

#![allow(missing_docs, unsafe_code)] // Criterion's macros; matrixmultiply takes pointers.

use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use faer::linalg::matmul::{matmul, triangular};
use faer::{Accum, MatMut, MatRef, Par};
use stickbreak::linalg::{Scalar, cholesky, gram, invert_lower};

const DIMENSIONS: [usize; 11] = [2, 4, 8, 16, 25, 32, 50, 64, 100, 128, 256];
const BLOCK_ROWS: usize = 256;

/// A matrix in a buffer without gaps.
#[derive(Clone, Copy)]
struct View<'a, T> {
    values: &'a [T],
    n_rows: usize,
    n_columns: usize,
    row_major: bool,
}

impl<'a, T: Number> View<'a, T> {
    fn new(values: &'a [T], n_rows: usize, n_columns: usize, row_major: bool) -> Self {
        assert_eq!(values.len(), n_rows * n_columns);
        Self { values, n_rows, n_columns, row_major }
    }

    fn strides(self) -> (isize, isize) {
        if self.row_major { (self.n_columns.cast_signed(), 1) } else { (1, self.n_rows.cast_signed()) }
    }

    fn for_faer(self) -> MatRef<'a, T> {
        if self.row_major {
            MatRef::from_row_major_slice(self.values, self.n_rows, self.n_columns)
        } else {
            MatRef::from_column_major_slice(self.values, self.n_rows, self.n_columns)
        }
    }
}

/// C = A B, C column-major.
type Product<T> = fn(&mut [T], View<T>, View<T>);

trait Number: Scalar {
    fn faer(c: &mut [Self], a: View<Self>, b: View<Self>);
    fn faer_lower(c: &mut [Self], a: View<Self>, b: View<Self>);
    fn matrixmultiply(c: &mut [Self], a: View<Self>, b: View<Self>);
}

macro_rules! impl_number {
    ($t:ident, $gemm:ident) => {
        impl Number for $t {
            fn faer(c: &mut [Self], a: View<Self>, b: View<Self>) {
                let c = MatMut::from_column_major_slice_mut(c, a.n_rows, b.n_columns);
                matmul(c, Accum::Replace, a.for_faer(), b.for_faer(), 1.0, Par::Seq);
            }

            fn faer_lower(c: &mut [Self], a: View<Self>, b: View<Self>) {
                use triangular::BlockStructure::{Rectangular, TriangularLower};
                let c = MatMut::from_column_major_slice_mut(c, a.n_rows, b.n_columns);
                let (a, b) = (a.for_faer(), b.for_faer());
                triangular::matmul(c, TriangularLower, Accum::Replace, a, Rectangular, b, Rectangular, 1.0, Par::Seq);
            }

            fn matrixmultiply(c: &mut [Self], a: View<Self>, b: View<Self>) {
                let (m, k, n) = (a.n_rows, a.n_columns, b.n_columns);
                assert!(c.len() == m * n && b.n_rows == k);
                let ((rsa, csa), (rsb, csb)) = (a.strides(), b.strides());
                let (a, b, c) = (a.values.as_ptr(), b.values.as_ptr(), c.as_mut_ptr());
                // SAFETY: the lengths have been checked, here and by `View::new`, and `c` is borrowed mutably.
                unsafe { matrixmultiply::$gemm(m, k, n, 1.0, a, rsa, csa, b, rsb, csb, 0.0, c, 1, m.cast_signed()) }
            }
        }
    };
}

impl_number!(f32, sgemm);
impl_number!(f64, dgemm);

fn values<T: Number>(n: usize) -> Vec<T> {
    (0..n).map(|i| T::from_f64((i * 7919 % 1000) as f64 / 1000.0 - 0.5)).collect()
}

/// One product of an m x k and a k x n matrix by one library.
fn measure<T: Number>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    id: &str,
    product: Product<T>,
    (m, k, n): (usize, usize, usize),
    (a_by_rows, b_by_rows): (bool, bool),
) {
    let (a, b) = (values::<T>(m * k), values::<T>(k * n));
    let mut c = vec![T::ZERO; m * n];
    group.throughput(Throughput::Elements(2 * (m * k * n) as u64));
    group.bench_function(BenchmarkId::new(id, T::NAME), |bencher| {
        let (a, b) = (View::new(&a, m, k, a_by_rows), View::new(&b, k, n, b_by_rows));
        bencher.iter(|| product(&mut c, a, b));
    });
}

fn libraries<T: Number>() -> [(&'static str, Product<T>); 2] {
    [("faer", T::faer), ("matrixmultiply", T::matrixmultiply)]
}

fn peak<T: Number>(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("gemm");
    for (library, product) in libraries::<T>() {
        measure(&mut group, &format!("n=1024/{library}"), product, (1024, 1024, 1024), (false, false));
    }
    group.finish();
}

/// Scores of a block: rows x D by D x columns, the rows contiguous in each column of A.
fn scoring<T: Number>(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("scoring");
    for d in DIMENSIONS {
        for (library, product) in libraries::<T>() {
            measure(&mut group, &format!("D={d}/{library}"), product, (BLOCK_ROWS, d, 256), (false, false));
        }
    }
    group.finish();
}

/// The same with other numbers of columns, and with A as the data come: row-major.
fn scoring_layout<T: Number>(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("scoring_layout");
    for d in [16, 64] {
        for n in [64, 256, 1024] {
            for (layout, by_rows) in [("columns", false), ("rows", true)] {
                for (library, product) in libraries::<T>() {
                    let id = format!("D={d}/n={n}/{layout}/{library}");
                    measure(&mut group, &id, product, (BLOCK_ROWS, d, n), (by_rows, false));
                }
            }
        }
    }
    group.finish();
}

/// Statistics of a block: D x m by m x D.
fn gram_of_rows<T: Number>(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("gram");
    for d in DIMENSIONS {
        for m in [1024, 128] {
            let lower: (&str, Product<T>) = ("faer_lower", T::faer_lower);
            for (library, product) in libraries::<T>().into_iter().chain([lower]) {
                measure(&mut group, &format!("D={d}/m={m}/{library}"), product, (d, m, d), (false, true));
            }
            let (a, mut c) = (values::<T>(m * d), vec![T::ZERO; d * d]);
            group.bench_function(BenchmarkId::new(format!("D={d}/m={m}/chosen"), T::NAME), |bencher| {
                bencher.iter(|| gram(d, m, &a, &a, &mut c));
            });
        }
    }
    group.finish();
}

/// What the global step does for each component.
fn factors(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("factor");
    for d in DIMENSIONS {
        let mut matrix = vec![0.0; d * d];
        for (at, value) in matrix.iter_mut().enumerate() {
            *value = 1.0 / (1.0 + (at % d).abs_diff(at / d) as f64);
        }
        let mut factor = matrix.clone();
        group.throughput(Throughput::Elements((d * d * d).div_ceil(3) as u64));
        group.bench_function(BenchmarkId::new(format!("D={d}/cholesky"), "float64"), |bencher| {
            bencher.iter(|| {
                factor.copy_from_slice(&matrix);
                cholesky(d, &mut factor)
            });
        });
        let mut inverse = matrix.clone();
        group.bench_function(BenchmarkId::new(format!("D={d}/inverse"), "float64"), |bencher| {
            bencher.iter(|| invert_lower(d, &factor, &mut inverse));
        });
    }
    group.finish();
}

fn of_both_types(criterion: &mut Criterion) {
    peak::<f32>(criterion);
    scoring::<f32>(criterion);
    scoring_layout::<f32>(criterion);
    gram_of_rows::<f32>(criterion);
    peak::<f64>(criterion);
    scoring::<f64>(criterion);
    scoring_layout::<f64>(criterion);
    gram_of_rows::<f64>(criterion);
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .without_plots()
        .sample_size(15)
        .nresamples(2000)
        .warm_up_time(Duration::from_millis(60))
        .measurement_time(Duration::from_millis(250));
    targets = of_both_types, factors
}
criterion_main!(benches);
