//! Lines over sparse rows: only stored values are looked at. The slopes of all components stand side by side, column by
//! column, so that one value meets all components in a few vectors.

use pulp::{Simd, WithSimd};

use crate::data::SparseRows;
use crate::responsibilities::TopL;
use crate::scoring::scorer::Scratch;
use crate::simd::{Instructions, Lines, Scalar};

/// Slopes of all components.
pub struct SparseTable<F> {
    /// The score of a row of zeros, by component.
    totals: Vec<F>,
    /// (D, K).
    slopes: Vec<F>,
}

impl<F: Scalar> SparseTable<F> {
    /// `slope(k, column)` and the score of a row of zeros, by component.
    pub fn new(dimension: usize, totals: Vec<F>, slope: impl Fn(usize, usize) -> f64) -> Self {
        let k = totals.len();
        let slopes = (0..dimension * k).map(|at| F::from_f64(slope(at % k, at / k))).collect();
        Self { totals, slopes }
    }

    /// Offers the scores of all rows and components.
    pub fn score_rows(&self, rows: SparseRows<'_, F>, sink: &mut TopL<F>, scratch: &mut Scratch<F>) {
        Instructions::widest().run(ScoreSparse { table: self, rows, sink, scratch });
    }
}

struct ScoreSparse<'a, F> {
    table: &'a SparseTable<F>,
    rows: SparseRows<'a, F>,
    sink: &'a mut TopL<F>,
    scratch: &'a mut Scratch<F>,
}

impl<F: Scalar> WithSimd for ScoreSparse<'_, F> {
    type Output = ();

    #[allow(clippy::inline_always, reason = "compiled once for each instruction set")]
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { table, rows, sink, scratch } = self;
        let k = table.totals.len();
        let (all, own) = (&mut scratch.scores, &mut scratch.common);
        all.reset(k * F::GROUP, F::ZERO);
        own.resize(k);
        for (group, numbers) in rows.numbers.chunks(F::GROUP).enumerate() {
            for (lane, (columns, values)) in (SparseRows { numbers, ..rows }).iter().enumerate() {
                own.copy_from_slice(&table.totals);
                for (&column, &value) in columns.iter().zip(values) {
                    add_scaled::<S, F>(simd, value, &table.slopes[column as usize * k..][..k], own);
                }
                for (score, &value) in all[lane..].iter_mut().step_by(F::GROUP).zip(&**own) {
                    *score = value;
                }
            }
            offer_all(simd, all, group, sink);
        }
        sink.n_evaluated += k * rows.numbers.len();
    }
}

/// `sums += value * slopes`.
#[allow(clippy::inline_always, reason = "compiled once for each instruction set")]
#[inline(always)]
fn add_scaled<S: Simd, F: Scalar>(simd: S, value: F, slopes: &[F], sums: &mut [F]) {
    let lanes = size_of::<F::Vector<S>>() / size_of::<F>();
    let whole = slopes.len() / lanes * lanes;
    let (slopes, rest_slopes) = slopes.split_at(whole);
    let (sums, rest) = sums.split_at_mut(whole);
    let vector = F::splat(simd, value);
    for (sums, slopes) in sums.chunks_exact_mut(lanes).zip(slopes.chunks_exact(lanes)) {
        let sum: F::Vector<S> = bytemuck::pod_read_unaligned(bytemuck::cast_slice(sums));
        let slope: F::Vector<S> = bytemuck::pod_read_unaligned(bytemuck::cast_slice(slopes));
        let sum = F::mul_add(simd, vector, slope, sum);
        sums.copy_from_slice(bytemuck::cast_slice(std::slice::from_ref(&sum)));
    }
    for (sum, &slope) in rest.iter_mut().zip(rest_slopes) {
        *sum += value * slope;
    }
}

/// Offers the scores of a group of rows, (K, `F::GROUP`).
#[allow(clippy::inline_always, reason = "compiled once for each instruction set")]
#[inline(always)]
pub fn offer_all<S: Simd, F: Scalar>(simd: S, scores: &Lines<F>, group: usize, sink: &mut TopL<F>) {
    for (component, scores) in scores.chunks_exact(F::GROUP).enumerate() {
        sink.offer(simd, component, group, scores);
    }
}
