//! The resolution of columns: the step between their values, if these are rounded.

use serde::{Deserialize, Serialize};

use crate::real::Real;

/// Columns with more distinct values than this count as continuous.
const MOST_VALUES: usize = 4096;

/// A column is on a grid if its values are shared, on average, by more than this many distinct rows. Distinct rows are
/// counted so that repeating a table changes nothing.
const ROWS_PER_VALUE: usize = 2;
/// A gap counts as a step only if it is this many times the largest gap left by rounding.
const LARGE: f64 = 1000.0;
/// Maximum number of distinct rows that need to be counted.
pub(super) const MOST_ROWS: usize = ROWS_PER_VALUE * MOST_VALUES + 1;

/// The distinct values of each column, as long as they are few.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Distinct {
    /// `None` for a continuous column.
    columns: Vec<Option<Values>>,
}

/// Distinct values, ascending, and the number of rows with these values.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Values {
    distinct: Vec<f64>,
    n_rows: usize,
}

impl Distinct {
    /// Starts without values of any of the `d` columns. Values are collected only if `wanted`.
    pub(super) fn new(d: usize, wanted: bool) -> Self {
        Self { columns: vec![wanted.then(Values::default); d] }
    }

    /// Collects the values of columns that are not yet known to be continuous, from rows of positive weight.
    pub(super) fn of_block<F: Real>(&self, rows: &[F], weights: impl Fn(usize) -> f64) -> Self {
        let d = self.columns.len();
        let heavy: Vec<usize> = if self.columns.iter().any(Option::is_some) {
            (0..rows.len() / d).filter(|&row| weights(row) > 0.0).collect()
        } else {
            Vec::new()
        };
        let of = |(j, known): (usize, &Option<Values>)| {
            known.as_ref()?;
            let values = heavy.iter().map(|&row| rows[row * d + j].to_f64());
            let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
            Some(Values { n_rows: values.len(), distinct: sorted(values) })
        };
        Self { columns: self.columns.iter().enumerate().map(of).collect() }
    }

    /// Merges the values of both. The result does not depend on the order of merging, nor does the decision that a
    /// column is continuous.
    pub(super) fn add(&mut self, other: Self) {
        for (column, other) in self.columns.iter_mut().zip(other.columns) {
            let union = column.take().zip(other).map(|(values, other)| Values {
                n_rows: values.n_rows + other.n_rows,
                distinct: merged(values.distinct, other.distinct),
            });
            *column = union.filter(|values| values.distinct.len() <= MOST_VALUES);
        }
    }

    /// For each column on a grid, the smallest gap between values that is larger than rounding to `F`, (D,). 0 for the
    /// other columns, and if gaps and rounding cannot be separated. `n_distinct` is the number of distinct rows. In a
    /// table of one column distinct rows are its values, so pass the number of all rows there.
    pub(super) fn resolution<F: Real>(&self, n_distinct: usize) -> Vec<f64> {
        let share = if F::NAME == "float32" { 1e-6 } else { 1e-12 };
        let of = |Values { distinct, .. }: &Values| {
            let largest = distinct.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
            let gaps = || distinct.windows(2).map(|pair| pair[1] - pair[0]);
            let is_rounding = |gap: &f64| *gap <= share * largest;
            let noise = gaps().filter(is_rounding).fold(0.0, f64::max);
            let least = gaps().filter(|gap| !is_rounding(gap)).fold(f64::INFINITY, f64::min);
            // If both are of similar size, the step itself may be lost in the rounding of large values.
            if least.is_finite() && least > LARGE * noise { least } else { 0.0 }
        };
        let is_grid = |values: &&Values| values.n_rows.min(n_distinct) > ROWS_PER_VALUE * values.distinct.len();
        self.columns.iter().map(|column| column.as_ref().filter(is_grid).map_or(0.0, of)).collect()
    }
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    // Converts minus zero to zero.
    for value in &mut values {
        *value += 0.0;
    }
    values.sort_unstable_by(f64::total_cmp);
    values.dedup();
    values
}

/// Merges two sorted lists.
fn merged(values: Vec<f64>, other: Vec<f64>) -> Vec<f64> {
    if values.is_empty() {
        return other;
    }
    if other.iter().all(|value| values.binary_search_by(|probe| probe.total_cmp(value)).is_ok()) {
        return values;
    }
    sorted([values, other].concat())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The resolution of values that each occur three times.
    fn found(blocks: &[Vec<f64>]) -> f64 {
        let mut all = Distinct::new(1, true);
        for block in blocks.iter().chain(blocks).chain(blocks) {
            let part = all.of_block(block, |_| 1.0);
            all.add(part);
        }
        all.resolution::<f64>(usize::MAX)[0]
    }

    proptest! {
        /// The order and the division into blocks of the values make no difference.
        #[test]
        fn it_is_the_step(
            step in prop::sample::select(vec![0.25, 0.5, 1.0, 2.0]),
            counts in prop::collection::vec(-50_i32..50, 1..300),
            size in 1_usize..40,
        ) {
            let values: Vec<f64> = counts.iter().map(|&count| step * f64::from(count)).collect();
            let blocks: Vec<Vec<f64>> = values.chunks(size).map(<[f64]>::to_vec).collect();
            let whole = found(&[values]);
            prop_assert_eq!(found(&blocks), whole);
            let backwards: Vec<Vec<f64>> = blocks.into_iter().rev().collect();
            prop_assert_eq!(found(&backwards), whole);
            prop_assert!(whole == 0.0 || (whole >= step && whole % step == 0.0));
        }
    }

    #[test]
    fn continuous_columns_have_none() {
        let values: Vec<f64> = (0..5000).map(|index| (f64::from(index) * 0.7).sin()).collect();
        assert_eq!(found(&values.chunks(1024).map(<[f64]>::to_vec).collect::<Vec<_>>()), 0.0);
        assert!(found(&[values[..4000].to_vec()]) > 0.0);
    }

    #[test]
    fn a_step_that_is_lost_in_the_rounding_of_large_values_is_not_told() {
        let of = |values: Vec<f32>| {
            let mut all = Distinct::new(1, true);
            for block in [&values; 3] {
                let part = all.of_block(block.as_slice(), |_| 1.0);
                all.add(part);
            }
            all.resolution::<f32>(usize::MAX)[0]
        };
        // Metres north of the equator in steps of a half, in two towns.
        let rows: Vec<f32> = (0..40).map(|i| 5.4e6 + 0.5 * (i % 20) as f32 + 19.0 * (i / 20) as f32).collect();
        assert_eq!(of(rows.clone()), 0.0);
        let doubles: Vec<f64> = rows.into_iter().map(f64::from).collect();
        assert_eq!(found(&[doubles]), 0.5);
    }

    #[test]
    fn rounding_is_no_gap() {
        assert_eq!(found(&[vec![1.0, 1.0 + 1e-12, 3.0, f64::NAN]]), 3.0 - (1.0 + 1e-12));
        let single = Distinct::new(1, true).of_block(&[1.0_f32, 1.000_000_1, 3.0].repeat(3), |_| 1.0);
        assert_eq!(single.resolution::<f32>(9), [3.0 - f64::from(1.000_000_1_f32)]);
        // Rows without weight are ignored.
        let rows = [1.0, 1.5, 2.0].repeat(3);
        let heavy = Distinct::new(1, true).of_block(&rows, |row| f64::from(u8::from(row % 3 != 1)));
        assert_eq!(heavy.resolution::<f64>(9), [1.0]);
        assert_eq!(heavy.resolution::<f64>(4), [0.0]);
        // Repeated data are not on a grid.
        let twice = Distinct::new(1, true).of_block(&rows[..6], |_| 1.0);
        assert_eq!(twice.resolution::<f64>(6), [0.0]);
    }
}
