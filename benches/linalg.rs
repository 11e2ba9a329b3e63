//! Moments of weighted rows by our own kernel and by products of faer's, and the factors that faer computes. One
//! thread, float64, D from 2 to 256. The decisions are in `linalg.md`.
//!
//! Criterion's `elem/s` are useful floating-point operations per second: `m D (D + 1)` for moments.

#![allow(missing_docs)] // Criterion's macros.

use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use faer::linalg::matmul::triangular;
use faer::{Accum, MatMut, MatRef, Par};
use stickbreak::linalg::{add_moments, cholesky, invert_lower, packed_len};
use stickbreak::simd::Lines;

const DIMENSIONS: [usize; 11] = [2, 4, 8, 16, 25, 32, 50, 64, 100, 128, 256];
/// Rows of one component that are gathered at a time.
const ROWS: usize = 512;

fn values(n: usize) -> Vec<f64> {
    (0..n).map(|i| (i * 7919 % 1000) as f64 / 1000.0 - 0.5).collect()
}

/// The whole second moment, or its lower triangle, as a product of rows and weighted rows.
fn by_product(rows: &[f64], weights: &[f64], d: usize, lower: bool, weighted: &mut Vec<f64>, product: &mut [f64]) {
    use triangular::BlockStructure::{Rectangular, TriangularLower};
    weighted.clear();
    for (row, weight) in rows.chunks_exact(d).zip(weights) {
        weighted.extend(row.iter().map(|value| weight * value));
    }
    let target = MatMut::from_column_major_slice_mut(product, d, d);
    let left = MatRef::from_column_major_slice(weighted, d, weights.len());
    let right = MatRef::from_row_major_slice(rows, weights.len(), d);
    let shape = if lower { TriangularLower } else { Rectangular };
    triangular::matmul(target, shape, Accum::Add, left, Rectangular, right, Rectangular, 1.0, Par::Seq);
}

fn moments(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("moments");
    for d in DIMENSIONS {
        let (rows, weights) = (values(ROWS * d), values(ROWS));
        group.throughput(Throughput::Elements((ROWS * d * (d + 1)) as u64));
        let (mut packed, mut space) = (vec![0.0; packed_len(d)], Lines::default());
        group.bench_function(format!("D={d}/own"), |bencher| {
            bencher.iter(|| add_moments(&rows, &weights, d, &mut [], &mut packed, &mut space));
        });
        let (mut weighted, mut product) = (Vec::new(), vec![0.0; d * d]);
        for (name, lower) in [("faer", false), ("faer_lower", true)] {
            group.bench_function(format!("D={d}/{name}"), |bencher| {
                bencher.iter(|| by_product(&rows, &weights, d, lower, &mut weighted, &mut product));
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
        group.bench_function(format!("D={d}/cholesky"), |bencher| {
            bencher.iter(|| {
                factor.copy_from_slice(&matrix);
                cholesky(d, &mut factor)
            });
        });
        let mut inverse = matrix.clone();
        group.bench_function(format!("D={d}/inverse"), |bencher| {
            bencher.iter(|| invert_lower(d, &factor, &mut inverse));
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .without_plots()
        .sample_size(15)
        .nresamples(2000)
        .warm_up_time(Duration::from_millis(60))
        .measurement_time(Duration::from_millis(250));
    targets = moments, factors
}
criterion_main!(benches);
