//! The resolution of columns: how wide the cells are for which the values of a column stand, if they are rounded
//! (mathematics 10.5).

use serde::{Deserialize, Serialize};

use crate::real::Real;

/// Columns with more distinct values than this count as continuous.
const MOST_VALUES: usize = 4096;

/// A column has cells if its values are shared, on average, by more than this many rows.
const ROWS_PER_VALUE: f64 = 2.0;
/// The same for a column on a lattice of some values, which stand for cells however few rows share them.
const ROWS_ON_LATTICE: f64 = 1.1;
const VALUES_ON_LATTICE: usize = 10;
/// A gap counts as a step only if it is this many times the largest gap left by rounding.
const LARGE: f64 = 1000.0;
/// A value that fewer rows have shows no cell of its own.
const LEAST_ROWS: f64 = 3.0;
/// The share of the gaps of a lattice that are multiples of the smallest one.
const ON_LATTICE: f64 = 0.9;
/// The cells of a column of two values, in units of their distance: the least with which no component gains from a
/// division by value, whatever the shares of the values are.
const OF_TWO: f64 = 1.09;
/// Values are even if successive gaps differ by at most this factor, in this share of at least so many values: values
/// on a lattice in other units, rounded again, or their roots and logarithms. Gaps of values without
/// rounding differ by more in six of ten cases.
const EVEN: f64 = 2.5;
const SHARE_OF_EVEN: f64 = 0.8;
const LEAST_EVEN: usize = 20;
/// The smallest gap of a lattice has at most this many steps.
const PARTS: u8 = 10;
/// Maximum distance of a multiple from a whole number, and the part of it that is allowed without rounding.
const OFF_LATTICE: (f64, f64) = (0.25, 1e-3);

/// The distinct values of each column, as long as they are few.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Distinct {
    /// `None` for a continuous column.
    columns: Vec<Option<Values>>,
}

/// Distinct values, ascending, and the mass of the rows with each.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Values {
    distinct: Vec<f64>,
    masses: Vec<f64>,
}

impl Distinct {
    /// Starts without values of any of the `d` columns. Values are collected only if `wanted`.
    pub(super) fn new(d: usize, wanted: bool) -> Self {
        Self { columns: vec![wanted.then(Values::default); d] }
    }

    /// Collects the values of columns that are not yet known to be continuous, from rows of positive weight.
    pub(super) fn of_block<F: Real>(&self, rows: &[F], weights: impl Fn(usize) -> f64) -> Self {
        let d = self.columns.len();
        let heavy: Vec<(usize, f64)> = if self.columns.iter().any(Option::is_some) {
            (0..rows.len() / d).map(|row| (row, weights(row))).filter(|(_, weight)| *weight > 0.0).collect()
        } else {
            Vec::new()
        };
        let is_equal = heavy.iter().all(|(_, weight)| *weight == 1.0);
        let of = |(j, known): (usize, &Option<Values>)| {
            known.as_ref()?;
            // Adding zero converts minus zero to zero.
            let value = |row: usize| rows[row * d + j].to_f64() + 0.0;
            Some(if is_equal {
                Values::counted(heavy.iter().map(|&(row, _)| value(row)).filter(|value| value.is_finite()).collect())
            } else {
                let pairs = heavy.iter().map(|&(row, weight)| (value(row), weight));
                Values::summed(pairs.filter(|(value, _)| value.is_finite()).collect())
            })
        };
        Self { columns: self.columns.iter().enumerate().map(of).collect() }
    }

    /// Merges the values of both. The values do not depend on the order of merging, nor does the decision that a column
    /// is continuous.
    pub(super) fn add(&mut self, other: Self) {
        for (column, other) in self.columns.iter_mut().zip(other.columns) {
            let union = column.take().zip(other).map(|(values, other)| values.with(other));
            *column = union.filter(|values| values.distinct.len() <= MOST_VALUES);
        }
    }

    /// For each column, the root mean square of the cells of its values, (D,): 0 for continuous columns, and if gaps
    /// and rounding to `F` cannot be separated. `scales`: the number of rows that count for columns on a lattice, and
    /// for others, as fractions of their mass.
    pub(super) fn resolution<F: Real>(&self, scales: [f64; 2]) -> Vec<f64> {
        let of = |values: &Values| {
            let largest = values.distinct.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
            values.without_noise(share_of_rounding::<F>() * largest).map_or(0.0, |values| values.resolution(scales))
        };
        self.columns.iter().map(|column| column.as_ref().map_or(0.0, of)).collect()
    }
}

/// The fraction of the largest value of a column below which gaps between values may be due to rounding to `F`.
fn share_of_rounding<F: Real>() -> f64 {
    if F::NAME == "float32" { 1e-6 } else { 1e-12 }
}

/// Whether ascending values, of which missing ones do not count, are on a lattice: nearly all gaps are multiples of the
/// smallest one, or of a part of it. Tenths of a degree Celsius are, of whole degrees Fahrenheit.
pub(super) fn is_lattice(values: &[f64]) -> bool {
    parts_of_gap(values).is_some()
}

/// Whether ascending values have gaps that change slowly.
pub(super) fn are_even(values: &[f64]) -> bool {
    let gaps: Vec<f64> = values.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let is_even = |pair: &&[f64]| pair[0].max(pair[1]) <= EVEN * pair[0].min(pair[1]);
    let n_even = gaps.windows(2).filter(is_even).count();
    values.len() >= LEAST_EVEN && n_even as f64 >= SHARE_OF_EVEN * (gaps.len() - 1) as f64
}

/// The number of steps of a lattice in its smallest gap.
fn parts_of_gap(values: &[f64]) -> Option<u8> {
    let values: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    let gaps = || values.windows(2).map(|pair| pair[1] - pair[0]);
    let least = gaps().fold(f64::INFINITY, f64::min);
    let largest = values.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
    // Numbers of float32 in float64 are exact, but stand for numbers that are not.
    let rounding =
        if values.iter().all(|&value| f64::from(value as f32) == value) { f32::EPSILON.into() } else { f64::EPSILON };
    let is_multiple = |gap: f64, parts: f64| {
        let times = gap / least;
        let allowed = OFF_LATTICE.1 + 2.0 * parts * (1.0 + times) * rounding * largest / least;
        (parts * times - (parts * times).round()).abs() <= allowed.min(OFF_LATTICE.0)
    };
    let asked = ON_LATTICE * values.len().saturating_sub(1) as f64;
    (1..=PARTS).find(|&parts| gaps().filter(|&gap| is_multiple(gap, parts.into())).count() as f64 >= asked)
}

impl Values {
    /// Of values that count as one row each.
    fn counted(mut values: Vec<f64>) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        let mut found = Self::default();
        for run in values.chunk_by(|a, b| a == b) {
            found.distinct.push(run[0]);
            found.masses.push(run.len() as f64);
        }
        found
    }

    /// Of values with masses.
    fn summed(mut pairs: Vec<(f64, f64)>) -> Self {
        pairs.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let mut found = Self::default();
        for run in pairs.chunk_by(|(a, _), (b, _)| a == b) {
            found.distinct.push(run[0].0);
            found.masses.push(run.iter().map(|(_, mass)| mass).sum());
        }
        found
    }

    fn with(mut self, other: Self) -> Self {
        if self.distinct.is_empty() {
            return other;
        }
        let places: Option<Vec<usize>> = other
            .distinct
            .iter()
            .map(|value| self.distinct.binary_search_by(|probe| probe.total_cmp(value)).ok())
            .collect();
        if let Some(places) = places {
            places.into_iter().zip(other.masses).for_each(|(place, mass)| self.masses[place] += mass);
            return self;
        }
        let pairs = |values: Self| values.distinct.into_iter().zip(values.masses);
        Self::summed(pairs(self).chain(pairs(other)).collect())
    }

    /// The values with those joined whose gaps are at most `noise`; `None` if such gaps may hide the step.
    fn without_noise(&self, noise: f64) -> Option<Self> {
        let mut found = Self::default();
        let (mut largest_noise, mut least, mut last) = (0.0_f64, f64::INFINITY, f64::NEG_INFINITY);
        for (&value, &mass) in self.distinct.iter().zip(&self.masses) {
            let gap = value - last;
            last = value;
            match found.masses.last_mut() {
                Some(joined) if gap <= noise => {
                    *joined += mass;
                    largest_noise = largest_noise.max(gap);
                }
                _ => {
                    least = least.min(gap);
                    found.distinct.push(value);
                    found.masses.push(mass);
                }
            }
        }
        // If both are of similar size, the step itself may be lost in the rounding of large values.
        (found.distinct.len() > 1 && least > LARGE * largest_noise).then_some(found)
    }

    /// The root mean square of the cells; 0 if the column has none.
    fn resolution(&self, [on_lattice, elsewhere]: [f64; 2]) -> f64 {
        let mass: f64 = self.masses.iter().sum();
        let is_lattice = is_lattice(&self.distinct) || are_even(&self.distinct);
        let scale = if is_lattice { on_lattice } else { elsewhere };
        let is_seen = is_lattice && self.distinct.len() >= VALUES_ON_LATTICE;
        let shared = if is_seen { ROWS_ON_LATTICE } else { ROWS_PER_VALUE };
        if mass * scale <= shared * self.distinct.len() as f64 {
            return 0.0;
        }
        if let [one, other] = self.distinct[..] {
            return OF_TWO * (other - one);
        }
        let least = self.distinct.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
        let step = is_lattice.then_some(least);
        // Gaps that are not multiples of the smallest one are those of values that were computed and rounded.
        let has_holes = is_lattice && parts_of_gap(&self.distinct) == Some(1);
        let spread = self.spread(mass);
        let cells: Vec<f64> = (0..self.distinct.len())
            .map(|place| self.cell(place, scale, step, spread, has_holes).min(spread.max(least)))
            .collect();
        if cells.iter().all(|&cell| cell == cells[0]) {
            return cells[0];
        }
        let squares: f64 = cells.iter().zip(&self.masses).map(|(cell, mass)| mass * cell * cell).sum();
        (squares / mass).sqrt()
    }

    /// The standard deviation of the rows.
    fn spread(&self, mass: f64) -> f64 {
        let mean = self.distinct.iter().zip(&self.masses).map(|(value, mass)| value * mass).sum::<f64>() / mass;
        let square = |(value, mass): (&f64, &f64)| mass * (value - mean).powi(2);
        (self.distinct.iter().zip(&self.masses).map(square).sum::<f64>() / mass).sqrt()
    }

    /// The cell of a value: half of the way to the nearest values on both sides that are not clearly less than half as
    /// common, of which the farther one counts as at most twice as far as the nearer one, and as far where the column
    /// has all gaps on a lattice, which may have holes. It is the
    /// step of the lattice for values of few rows, and for those that are far more common than all others.
    fn cell(&self, place: usize, scale: f64, step: Option<f64>, spread: f64, has_holes: bool) -> f64 {
        let count = scale * self.masses[place];
        if count < LEAST_ROWS {
            return step.unwrap_or(0.0);
        }
        // Two standard errors of a count.
        let common = 0.5 * (count - 2.0 * count.sqrt());
        let is_common = |other: &usize| scale * self.masses[*other] >= common;
        let below = (0..place).rev().find(is_common).map(|other| self.distinct[place] - self.distinct[other]);
        let above = (place + 1..self.distinct.len()).find(is_common);
        let above = above.map(|other| self.distinct[other] - self.distinct[place]);
        let near = below.into_iter().chain(above).fold(f64::INFINITY, f64::min);
        let far = below.into_iter().chain(above).fold(0.0, f64::max);
        if near > spread {
            return step.unwrap_or(near);
        }
        if has_holes { near } else { 0.5 * (near + far.min(2.0 * near)) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn collected<F: Real>(blocks: &[Vec<F>]) -> Distinct {
        let mut all = Distinct::new(1, true);
        for block in blocks {
            all.add(all.of_block(block, |_| 1.0));
        }
        all
    }

    /// The resolution of values that each occur three times.
    fn found(blocks: &[Vec<f64>]) -> f64 {
        collected(&[blocks, blocks, blocks].concat()).resolution::<f64>([1.0; 2])[0]
    }

    proptest! {
        /// The order and the division into blocks of the values make no difference, and units scale the result.
        #[test]
        fn it_is_one_number_of_all_rows(
            power in -3_i32..3,
            counts in prop::collection::vec(-50_i32..50, 1..300),
            size in 1_usize..40,
        ) {
            let step = 2.0_f64.powi(power);
            let values: Vec<f64> = counts.iter().map(|&count| step * f64::from(count)).collect();
            let blocks: Vec<Vec<f64>> = values.chunks(size).map(<[f64]>::to_vec).collect();
            let whole = found(&[values]);
            prop_assert_eq!(found(&blocks), whole);
            let backwards: Vec<Vec<f64>> = blocks.into_iter().rev().collect();
            prop_assert_eq!(found(&backwards), whole);
            prop_assert!(whole == 0.0 || whole >= step);
            let doubled: Vec<f64> = counts.iter().map(|&count| 2.0 * step * f64::from(count)).collect();
            prop_assert_eq!(found(&[doubled]), 2.0 * whole);
        }

        /// A weight of w is w rows.
        #[test]
        fn weights_are_copies(rows in prop::collection::vec((0_i32..9, 1_u32..4), 1..60)) {
            let values: Vec<f64> = rows.iter().map(|&(value, _)| f64::from(value)).collect();
            let weighted = Distinct::new(1, true).of_block(&values, |row| f64::from(rows[row].1));
            let copied = rows.iter().flat_map(|&(value, n)| vec![f64::from(value); n as usize]).collect();
            prop_assert_eq!(weighted.resolution::<f64>([1.0; 2]), collected(&[copied]).resolution::<f64>([1.0; 2]));
        }
    }

    /// Whole numbers from a triangle of counts.
    fn heights() -> Vec<f64> {
        (0..21).flat_map(|value| vec![f64::from(value); 4 * (11 - (10_i32 - value).unsigned_abs() as usize)]).collect()
    }

    #[test]
    fn cells_are_local() {
        let of = |values: Vec<f64>| collected(&[values]).resolution::<f64>([1.0; 2])[0];
        assert_eq!(of(heights()), 1.0);
        // Where some values have tenths, most cells are still whole.
        let some: Vec<f64> = heights().into_iter().step_by(5).map(|value| value + 0.3).collect();
        let mixed = of([heights(), some].concat());
        assert!(mixed > 0.7 && mixed < 1.0, "{mixed}");
        // Values heaped at fives have cells of five there.
        let heaped: Vec<f64> = (0..21).map(|value| f64::from(5 * value)).flat_map(|value| vec![value; 40]).collect();
        let others: Vec<f64> = (0..100).map(f64::from).collect();
        let found = of([heaped, others].concat());
        assert!(found > 4.5 && found < 5.0, "{found}");
        // A value far more common than all others has the step of the lattice.
        let zeros = of([heights(), vec![0.0; 2000]].concat());
        assert_eq!(zeros, 1.0);
    }

    #[test]
    fn a_lattice_has_nearly_all_gaps_in_common() {
        assert!(is_lattice(&[0.0, 0.1, 0.2, 0.5, 0.9]) && is_lattice(&[1e9, 1e9 + 1.0, 1e9 + 7.0]));
        assert!(is_lattice(&[-17.8, -17.2, -16.7, -15.0, -13.9]));
        assert!(!is_lattice(&[0.0, 0.1, 0.2345, 0.51, 0.9]));
        let doses = [0.0, 0.1, 0.5, 1.0, 5.0];
        assert!(is_lattice(&doses) && is_lattice(&doses.map(|dose| f64::from(dose as f32))));
    }

    #[test]
    fn continuous_columns_have_none() {
        let values: Vec<f64> = (0..5000).map(|index| (f64::from(index) * 0.7).sin()).collect();
        assert_eq!(found(&values.chunks(1024).map(<[f64]>::to_vec).collect::<Vec<_>>()), 0.0);
        assert!(found(&[values[..4000].to_vec()]) > 0.0);
        // If only a third of the rows count, these values are shared by none.
        assert_eq!(collected(&[values[..4000].repeat(3)]).resolution::<f64>([1.0 / 3.0; 2]), [0.0]);
    }

    #[test]
    fn a_step_that_is_lost_in_the_rounding_of_large_values_is_not_told() {
        // Metres north of the equator in steps of a half, in two towns.
        let rows: Vec<f32> = (0..40).map(|i| 5.4e6 + 0.5 * (i % 20) as f32 + 19.0 * (i / 20) as f32).collect();
        assert_eq!(collected(&vec![rows.clone(); 3]).resolution::<f32>([1.0; 2]), [0.0]);
        let doubles: Vec<f64> = rows.into_iter().map(f64::from).collect();
        assert_eq!(found(&[doubles]), 0.5);
    }

    #[test]
    fn rounding_is_no_gap() {
        let noisy = [[1.0, 1.0 + 1e-12, 2.0, 3.0].repeat(3), vec![f64::NAN]].concat();
        let found = collected(&[noisy]).resolution::<f64>([1.0; 2])[0];
        assert!((found - 1.0).abs() < 1e-9, "{found}");
        // The rows of values that differ by rounding are added up: a value that is common in two forms is common.
        let exact: Vec<f64> = heights();
        let rounded = exact.iter().zip(0..).map(|(value, row)| value + if row % 2 == 0 { 1e-13 } else { 0.0 });
        let heaped: Vec<f64> = (0..21).map(|value| f64::from(5 * value)).flat_map(|value| vec![value; 40]).collect();
        let noisy = heaped.iter().zip(0..).map(|(value, row)| value + if row % 4 == 0 { 0.0 } else { 1e-12 });
        let others: Vec<f64> = (0..100).map(f64::from).collect();
        let pairs: [(Vec<f64>, Vec<f64>); 2] = [
            (exact.clone(), rounded.collect()),
            ([heaped.clone(), others.clone()].concat(), noisy.chain(others).collect()),
        ];
        for (exact, rounded) in pairs {
            let of = |values: Vec<f64>| collected(&[values]).resolution::<f64>([1.0; 2])[0];
            let (found, expected) = (of(rounded), of(exact));
            assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        }
        // Rows without weight are ignored.
        let rows = [1.0, 1.5, 2.0, 3.0].repeat(3);
        let heavy = Distinct::new(1, true).of_block(&rows, |row| f64::from(u8::from(row % 4 != 1)));
        assert_eq!(heavy.resolution::<f64>([1.0; 2]), [1.0]);
    }
}
