//! Scales of rows: their distributions given the components of the rows, and the statistics of rows that have them
//! (mathematics 1k).

use rand_distr::{Distribution, Gamma};

use crate::likelihood::row_scale::{ExpectedScales, ScaleOfRow};
use crate::likelihood::wishart::{HeavyTail, N_SCALES};
use crate::rng::{Purpose, stream};
use crate::scoring::{Column, Completing, Incomplete};
use crate::simd::Lines;

/// The columns of a component, and the part of their expected squares that does not depend on the row.
pub struct ScaledColumns {
    pub columns: Vec<Column>,
    pub spreads: Vec<f64>,
}

/// A row's number of columns and its expected square, which `q(u) = Gamma((f + n) / 2, (f + e) / 2)` follows from.
struct RowSquare {
    n: usize,
    square: f64,
}

impl ScaledColumns {
    fn of_row(&self, row: &[f64]) -> RowSquare {
        let mut seen = RowSquare { n: 0, square: 0.0 };
        for ((x, column), spread) in row.iter().zip(&self.columns).zip(&self.spreads) {
            if !x.is_nan() {
                seen.n += 1;
                seen.square += (column.slope * x + column.offset).powi(2) + spread;
            }
        }
        seen
    }
}

/// Completes rows with their scales.
pub struct SharedScales {
    dof: f64,
    components: Vec<ScaledColumns>,
    missing: bool,
    /// By number of columns that a row has, (D + 1,).
    expected: Vec<ExpectedScales>,
    /// What the draws of scales follow from, if they are drawn.
    key: Option<u64>,
}

impl SharedScales {
    /// Expected scales.
    pub fn new(dof: f64, components: Vec<ScaledColumns>, missing: bool) -> Self {
        let d = components.first().map_or(0, |component| component.columns.len());
        let expected = (0..=d).map(|n| ExpectedScales::new(0.5 * (dof + n as f64), n)).collect();
        Self { dof, components, missing, expected, key: None }
    }

    /// Drawn scales (mathematics 8.11).
    pub fn drawn(self, key: u64) -> Self {
        Self { key: Some(key), ..self }
    }

    fn scale(&self, seen: &RowSquare, number: impl FnOnce() -> usize) -> ScaleOfRow {
        let (expected, rate) = (self.expected[seen.n], 0.5 * (self.dof + seen.square));
        let Some(key) = self.key else { return expected.at(rate) };
        let of_one = Gamma::new(expected.shape, 1.0).expect("a shape above zero");
        let drawn = of_one.sample(&mut stream(key, Purpose::Scales, number() as u64));
        expected.drawn((drawn / rate).max(f64::MIN_POSITIVE))
    }
}

impl Completing for SharedScales {
    fn accumulate(&self, component: usize, rows: Incomplete<'_>, statistics: &mut [f64], _: &mut Lines<f64>) {
        let Incomplete { values, weights, number } = rows;
        let columns = &self.components[component];
        let scale = |index: usize, row: &[f64]| self.scale(&columns.of_row(row), || number(index));
        add(columns.columns.len(), self.missing, values.dense(), weights, statistics, scale);
    }
}

/// Adds up statistics of rows without a component: their scales have the distribution that they have before any row is
/// seen.
pub fn accumulate_alone(tail: &HeavyTail, missing: bool, rows: &[f64], weights: &[f64], statistics: &mut [f64]) {
    let half = 0.5 * tail.dof;
    let d = (statistics.len() - N_SCALES) / if missing { 4 } else { 2 };
    let by_number: Vec<ExpectedScales> = (0..=d).map(|n| ExpectedScales::new(half, n)).collect();
    let scale = |_: usize, row: &[f64]| by_number[row.iter().filter(|x| !x.is_nan()).count()].at(half);
    add(d, missing, rows, weights, statistics, scale);
}

/// Adds up statistics of rows of `d` columns with these scales.
fn add(
    d: usize,
    missing: bool,
    rows: &[f64],
    weights: &[f64],
    statistics: &mut [f64],
    scale: impl Fn(usize, &[f64]) -> ScaleOfRow,
) {
    let (columns, scales) = statistics.split_last_chunk_mut::<N_SCALES>().expect("statistics of scales");
    let (sums, rest) = columns.split_at_mut(d);
    let (squares, rest) = rest.split_at_mut(d);
    let (masses, counts) = rest.split_at_mut(if missing { d } else { 0 });
    for (index, (row, &weight)) in rows.chunks_exact(d).zip(weights).enumerate() {
        let ScaleOfRow { value, log, rest } = scale(index, row);
        let scaled = weight * value;
        scales[0] += scaled;
        scales[1] += weight * log;
        scales[2] += weight * rest;
        if !missing {
            for ((sum, square), &x) in sums.iter_mut().zip(&mut *squares).zip(row) {
                *sum += scaled * x;
                *square += scaled * x * x;
            }
            continue;
        }
        for (column, &x) in row.iter().enumerate().filter(|(_, x)| !x.is_nan()) {
            sums[column] += scaled * x;
            squares[column] += scaled * x * x;
            masses[column] += scaled;
            counts[column] += weight;
        }
    }
}
