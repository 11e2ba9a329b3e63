//! The first two moments of the data, needed for default hyper-parameters and for centring.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use crate::data::histogram::{Counters, Histogram};
use crate::data::resolution::{Distinct, MOST_ROWS};
use crate::data::{Allowed, Csr, Dataset, Needs, RowUnits, Sought};
use crate::error::{Error, Result};
use crate::hash::fingerprint;
use crate::linalg::{add_moments, packed_len, unpack};
use crate::parallel::{Cancel, blocks, try_map_with};
use crate::room::check_room;
use crate::simd::{Lines, Scalar};

/// The smallest sum or mean of squares with full precision: below it the loss to subnormal numbers exceeds rounding.
const LEAST_SQUARE: f64 = f64::MIN_POSITIVE / f64::EPSILON;
/// Number of rows processed at a time.
const BLOCK: usize = 1024;
/// Number of blocks after which most continuous columns have been recognised.
const FIRST_BLOCKS: usize = 8;

/// Weighted moments of a dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct Moments {
    /// Number of rows.
    pub n_rows: usize,
    /// Sum of the weights.
    pub mass: f64,
    /// Column means over the values that are not missing, (D,).
    pub mean: Vec<f64>,
    /// Column variances about the means, each divided by the mass of its values, (D,); empty if not needed.
    pub variance: Vec<f64>,
    /// Covariance about the means divided by the mass, (D, D); empty if not needed.
    pub covariance: Vec<f64>,
    /// As `variance`, but always of all rows, even if the other moments are those of most rows, (D,).
    pub overall: Vec<f64>,
    /// The largest value of each column, (D,); only for codes, otherwise empty.
    pub largest: Vec<f64>,
    /// The smallest value of each column in rows of positive weight, (D,); empty for sparse rows.
    pub least: Vec<f64>,
    /// The largest value of each column in rows of positive weight, (D,); empty for sparse rows.
    pub most: Vec<f64>,
    /// The fraction of the mass in rows with a value outside the extremes.
    pub beyond: f64,
    /// How far the median of these rows is from the middle of the extremes, in half ranges; 1 if there are none.
    pub distance: f64,
    /// Number of distinct rows of positive weight, counted only up to the number that matters.
    pub n_distinct: usize,
    /// The step of a rounded column, 0 for a continuous one, (D,); zeros if no likelihood requires it.
    pub resolution: Vec<f64>,
    /// How often each column has each count, if a likelihood requires it.
    pub values: Option<Arc<Histogram>>,
    /// A number that identifies these rows and weights, in this order.
    pub fingerprint: u64,
}

impl Moments {
    /// Number of columns.
    pub fn dimension(&self) -> usize {
        self.mean.len()
    }

    /// The value of a column that has only one, NaN if it has none; `None` if it has several.
    pub fn constant(&self, column: usize) -> Option<f64> {
        let (least, most) = (self.least[column], self.most[column]);
        (least >= most).then_some(if least == most { least } else { f64::NAN })
    }

    /// Second moments about zero, (D, D), if the covariance is known.
    pub fn about_zero(&self) -> Vec<f64> {
        let d = self.dimension();
        self.covariance
            .iter()
            .enumerate()
            .map(|(entry, covariance)| covariance + self.mean[entry / d] * self.mean[entry % d])
            .collect()
    }

    /// Mean of the column variances.
    pub fn mean_variance(&self) -> f64 {
        self.variance.iter().sum::<f64>() / self.dimension() as f64
    }
}

/// Reads the data once or twice: means and fingerprint first, then scatter about the means, so that an offset of 10^8
/// costs no digits. With `missing`, NaN stands for a missing value.
///
/// # Errors
/// [`Error::InvalidArgument`] for the first value that is not allowed, and for values whose squares leave the
/// range of float64.
pub fn moments<F: Scalar>(
    data: &dyn Dataset<F>,
    needs: Needs,
    allowed: &Allowed,
    missing: bool,
    cancel: &Cancel,
) -> Result<Moments> {
    all_moments(data, Sought { needs, resolution: false, values: false }, allowed, missing, cancel)
}

/// As [`moments`], with all that is sought.
pub fn all_moments<F: Scalar>(
    data: &dyn Dataset<F>,
    sought: Sought,
    allowed: &Allowed,
    missing: bool,
    cancel: &Cancel,
) -> Result<Moments> {
    let (d, Sought { needs, resolution, .. }) = (data.n_columns(), sought);
    let (room, what) = if needs == Needs::Covariance { (4 * d, "D x D matrices") } else { (8, "single rows") };
    // Moments are computed in `fit`, where the argument is called `data`.
    check_room(room.saturating_mul(d), |_| {
        Error::invalid("data", format!("{d} columns"), format!("of few enough columns that {what} fit in memory"))
    })?;
    let of_rank = if needs == Needs::Covariance { d + 2 } else { 0 };
    let n_rows_sought = of_rank.max(if resolution { MOST_ROWS } else { 0 });
    let means = Means::of(data, n_rows_sought, sought, allowed, missing, cancel)?;
    let (variance, covariance) = match needs {
        Needs::Means => (Vec::new(), Vec::new()),
        Needs::Variances => {
            let squares = squares(data, &means, cancel)?;
            let masses = &means.masses;
            let variance = squares.iter().zip(masses).map(|(sum, &mass)| if mass > 0.0 { sum / mass } else { 0.0 });
            (variance.collect(), Vec::new())
        }
        Needs::Covariance => {
            let scatter = scatter(data, &means, cancel)?;
            // Sums over the rows that have both columns, so divided that the matrix stays positive semidefinite.
            let mass = |entry: usize| (means.masses[entry / d] * means.masses[entry % d]).sqrt();
            let mean = |(entry, value): (usize, f64)| if mass(entry) > 0.0 { value / mass(entry) } else { 0.0 };
            let covariance: Vec<f64> = scatter.into_iter().enumerate().map(mean).collect();
            (covariance.iter().step_by(d + 1).copied().collect(), covariance)
        }
    };
    let Means { n_rows, mass, mean, largest, least, most, n_distinct, resolution, values, fingerprint, .. } = means;
    let overall = variance.clone();
    Ok(Moments {
        n_rows,
        mass,
        mean,
        variance,
        covariance,
        overall,
        beyond: 0.0,
        distance: 1.0,
        largest,
        least,
        most,
        n_distinct,
        resolution,
        values,
        fingerprint,
    })
}

/// Results of the first reading.
struct Means {
    n_rows: usize,
    mass: f64,
    /// Mass of the present values of each column.
    masses: Vec<f64>,
    mean: Vec<f64>,
    largest: Vec<f64>,
    least: Vec<f64>,
    most: Vec<f64>,
    n_distinct: usize,
    resolution: Vec<f64>,
    values: Option<Arc<Histogram>>,
    fingerprint: u64,
}

/// Sums of the first reading, relative to a pivot.
struct FirstReading<F> {
    n_rows: usize,
    pivot: Option<Vec<F>>,
    mass: f64,
    sums: Vec<f64>,
    /// Mass of the missing values of each column.
    absent: Vec<f64>,
    /// Only for codes.
    largest: Vec<f64>,
    extremes: Extremes,
    /// Hashes of the distinct rows of positive weight, up to `n_rows_sought` of them.
    rows: BTreeSet<u64>,
    n_rows_sought: usize,
    distinct: Distinct,
    /// Of no columns unless they are sought.
    counters: Counters,
    fingerprint: u64,
}

/// The smallest and the largest value of each column.
struct Extremes {
    least: Vec<f64>,
    most: Vec<f64>,
}

impl Extremes {
    fn new(d: usize) -> Self {
        Self { least: vec![f64::INFINITY; d], most: vec![f64::NEG_INFINITY; d] }
    }

    fn add(&mut self, other: &Self) {
        self.least.iter_mut().zip(&other.least).for_each(|(extreme, value)| *extreme = extreme.min(*value));
        self.most.iter_mut().zip(&other.most).for_each(|(extreme, value)| *extreme = extreme.max(*value));
    }

    /// Missing values are ignored.
    fn add_row<F: Scalar>(&mut self, row: &[F]) {
        for ((least, most), value) in self.least.iter_mut().zip(&mut self.most).zip(row) {
            let value = value.to_f64();
            *least = least.min(value);
            *most = most.max(value);
        }
    }
}

impl Means {
    fn of<F: Scalar>(
        data: &dyn Dataset<F>,
        n_rows_sought: usize,
        sought: Sought,
        allowed: &Allowed,
        missing: bool,
        cancel: &Cancel,
    ) -> Result<Self> {
        let d = data.n_columns();
        let mut total = FirstReading {
            n_rows: 0,
            pivot: None,
            mass: 0.0,
            sums: vec![0.0; d],
            absent: vec![0.0; d],
            largest: vec![0.0; if allowed.has_codes() { d } else { 0 }],
            extremes: Extremes::new(if data.is_sparse() { 0 } else { d }),
            rows: BTreeSet::new(),
            n_rows_sought,
            distinct: Distinct::new(d, sought.resolution),
            counters: Counters::new(if sought.values { d } else { 0 }),
            fingerprint: data.layout(),
        };
        data.for_each_slab(BLOCK, &mut |units| match units.csr() {
            Some(table) => total.add_sparse(units, table, allowed, cancel),
            None => total.add(units, allowed, missing, cancel),
        })?;
        let FirstReading { n_rows, pivot, mass, sums: mut mean, absent, largest, extremes, rows, distinct, .. } = total;
        let values = sought.values.then(|| Arc::new(Histogram::from(total.counters)));
        let masses: Vec<f64> = absent.iter().map(|absent| mass - absent).collect();
        let pivot = pivot.unwrap_or_else(|| vec![F::ZERO; d]);
        for ((value, zero), &mass) in mean.iter_mut().zip(pivot).zip(&masses) {
            *value = zero.to_f64() + if mass > 0.0 { *value / mass } else { 0.0 };
        }
        let (Extremes { least, most }, n_distinct, fingerprint) = (extremes, rows.len(), total.fingerprint);
        let resolution = distinct.resolution::<F>(if d > 1 { n_distinct } else { n_rows });
        Ok(Self { n_rows, mass, masses, mean, largest, least, most, n_distinct, resolution, values, fingerprint })
    }
}

impl<F: Scalar> FirstReading<F> {
    fn add(&mut self, units: &RowUnits<'_, F>, allowed: &Allowed, missing: bool, cancel: &Cancel) -> Result<()> {
        let ranges: Vec<_> = blocks(units.len(), BLOCK).collect();
        // The first few blocks show that most columns are continuous; later blocks then skip the sorting of those.
        let (first, others) = ranges.split_at(FIRST_BLOCKS.min(ranges.len()));
        for ranges in [first, others].into_iter().filter(|ranges| !ranges.is_empty()) {
            self.add_blocks(units, ranges, allowed, missing, cancel)?;
        }
        self.n_rows += units.len();
        Ok(())
    }

    fn add_blocks(
        &mut self,
        units: &RowUnits<'_, F>,
        ranges: &[Range<usize>],
        allowed: &Allowed,
        missing: bool,
        cancel: &Cancel,
    ) -> Result<()> {
        let d = units.dimension();
        let n_rows_sought = if self.rows.len() < self.n_rows_sought { self.n_rows_sought } else { 0 };
        let (distinct, n_counted) = (&self.distinct, self.counters.columns.len());
        let pivot: &[F] = self.pivot.get_or_insert_with(|| {
            let mut pivot = vec![F::ZERO; d];
            units.read(0..1, &vec![F::ZERO; d], &mut pivot);
            pivot.iter_mut().filter(|value| value.is_nan()).for_each(|value| *value = F::ZERO);
            pivot
        });
        let parts = try_map_with(
            ranges.len(),
            || vec![F::ZERO; BLOCK * d],
            |rows, index| {
                cancel.check()?;
                let range = ranges[index].clone();
                let rows = &mut rows[..range.len() * d];
                units.read(range.clone(), &vec![F::ZERO; d], rows);
                let values = distinct.of_block(rows, |row| units.mass(range.start + row));
                let (mut extremes, mut seen) = (Extremes::new(d), BTreeSet::new());
                let (mut mass, mut sums, mut print) = (0.0, vec![0.0; d], 0);
                let mut absent = vec![0.0; if missing { d } else { 0 }];
                let mut largest = vec![0.0; if allowed.has_codes() { d } else { 0 }];
                let mut counters = Counters::new(n_counted);
                for (unit, row) in range.zip(rows.chunks_exact(d)) {
                    let weight = units.mass(unit);
                    allowed.check_holes("data", row, units.row_number(unit), missing)?;
                    mass += weight;
                    let bits = row.iter().map(|value| value.to_f64().to_bits());
                    print = fingerprint(print, bits.chain([weight.to_bits()]));
                    for (column, ((sum, &value), &zero)) in sums.iter_mut().zip(row).zip(pivot).enumerate() {
                        if missing && value.is_nan() {
                            absent[column] += weight;
                            continue;
                        }
                        if !allowed.has(value.to_f64(), column) {
                            allowed.check("data", value, units.row_number(unit), column)?;
                        }
                        *sum += weight * (value.to_f64() - zero.to_f64());
                    }
                    counters.add_row(row, weight, allowed);
                    for (largest, value) in largest.iter_mut().zip(row) {
                        *largest = value.to_f64().max(*largest);
                    }
                    if weight > 0.0 {
                        extremes.add_row(row);
                        if seen.len() < n_rows_sought {
                            seen.insert(fingerprint(0, row.iter().map(|value| value.to_f64().to_bits())));
                        }
                    }
                }
                Ok(((mass, sums, absent, largest, print), (extremes, seen, values, counters)))
            },
        )?;
        for ((mass, sums, absent, largest, print), (extremes, seen, values, counters)) in parts {
            self.extremes.add(&extremes);
            self.distinct.add(values);
            self.counters.merge(&counters);
            for row in seen {
                if self.rows.len() < self.n_rows_sought {
                    self.rows.insert(row);
                }
            }
            self.mass += mass;
            self.fingerprint = fingerprint(self.fingerprint, [print]);
            self.sums.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
            self.absent.iter_mut().zip(absent).for_each(|(total, part)| *total += part);
            self.largest.iter_mut().zip(largest).for_each(|(total, part)| *total = part.max(*total));
        }
        Ok(())
    }

    /// Adds a sparse table, from the stored values; the pivot is zero.
    fn add_sparse(
        &mut self,
        units: &RowUnits<'_, F>,
        table: Csr<'_, F>,
        allowed: &Allowed,
        cancel: &Cancel,
    ) -> Result<()> {
        for range in blocks(units.len(), BLOCK) {
            cancel.check()?;
            for unit in range {
                let (number, weight) = (units.row_number(unit), units.mass(unit));
                self.mass += weight;
                for (column, value) in table.entries(number, self.sums.len()) {
                    allowed.check("data", value, number, column as usize)?;
                    self.sums[column as usize] += weight * value.to_f64();
                }
                self.counters.add_entries(table.entries(number, self.sums.len()), weight, allowed);
                let (columns, values) = table.row(number);
                allowed.check_exposure("data", columns, number)?;
                let bits = values.iter().map(|value| value.to_f64().to_bits());
                let columns = columns.iter().map(|&column| column.into());
                self.fingerprint = fingerprint(self.fingerprint, columns.chain(bits).chain([weight.to_bits()]));
            }
        }
        self.n_rows += units.len();
        Ok(())
    }
}

/// Sums of squares about the means, by column, over the values that are not missing.
fn squares<F: Scalar>(data: &dyn Dataset<F>, means: &Means, cancel: &Cancel) -> Result<Vec<f64>> {
    let d = means.mean.len();
    let origin: Vec<F> = means.mean.iter().map(|&value| F::from_f64(value)).collect();
    let mut total = vec![0.0; d];
    let mut any_moved = false;
    data.for_each_slab(BLOCK, &mut |units| {
        let ranges: Vec<_> = blocks(units.len(), BLOCK).collect();
        let parts = try_map_with(
            ranges.len(),
            || vec![F::ZERO; BLOCK * d],
            |rows, index| {
                cancel.check()?;
                let range = ranges[index].clone();
                let rows = &mut rows[..range.len() * d];
                units.read(range.clone(), &origin, rows);
                let (mut sums, mut moved) = (vec![0.0; d], false);
                for (unit, row) in range.zip(rows.chunks_exact(d)) {
                    let weight = units.mass(unit);
                    for (sum, value) in sums.iter_mut().zip(row).filter(|(_, value)| !value.is_nan()) {
                        moved |= weight > 0.0 && *value != F::ZERO;
                        *sum += weight * value.to_f64() * value.to_f64();
                    }
                }
                Ok((moved, sums))
            },
        )?;
        for (moved, part) in parts {
            any_moved |= moved;
            total.iter_mut().zip(part).for_each(|(sum, value)| *sum += value);
        }
        Ok(())
    })?;
    check_squares::<F>(total.iter().sum(), d as f64 * means.mass, any_moved)?;
    Ok(total)
}

/// Refuses data whose squares overflow or underflow in float64 or float32.
fn check_squares<F: Scalar>(trace: f64, mass: f64, any_moved: bool) -> Result<()> {
    let allowed = "of a scale whose squares float64 can hold; rescale it";
    if !trace.is_finite() {
        return Err(Error::invalid("data", "values whose squares overflow", allowed));
    }
    let variance = trace / mass;
    if any_moved && trace.min(variance) < LEAST_SQUARE {
        return Err(Error::invalid("data", "values whose squares underflow", allowed));
    }
    // Rows are scored in their own type and divided by their standard deviation; float32 cannot represent a smaller
    // one.
    if F::NAME == "float32" && any_moved && variance < 1e-70 {
        let found = format!("values of standard deviation {:.0e} in float32", variance.sqrt());
        return Err(Error::invalid("data", found, "of a larger standard deviation; rescale it or pass float64"));
    }
    Ok(())
}

/// The scatter about the means, (D, D).
fn scatter<F: Scalar>(data: &dyn Dataset<F>, means: &Means, cancel: &Cancel) -> Result<Vec<f64>> {
    let d = means.mean.len();
    let origin: Vec<F> = means.mean.iter().map(|&value| F::from_f64(value)).collect();
    let mut total = vec![0.0; packed_len(d)];
    let mut any_moved = false;
    data.for_each_slab(BLOCK, &mut |units| {
        let ranges: Vec<_> = blocks(units.len(), BLOCK).collect();
        let scratch = || (vec![F::ZERO; BLOCK * d], Vec::new(), Lines::default());
        let parts = try_map_with(ranges.len(), scratch, |(rows, wide, space), index| {
            cancel.check()?;
            let range = ranges[index].clone();
            let size = range.len() * d;
            units.read(range.clone(), &origin, &mut rows[..size]);
            wide.clear();
            // A missing value is at the mean.
            wide.extend(rows[..size].iter().map(|value| if value.is_nan() { 0.0 } else { value.to_f64() }));
            let weights: Vec<f64> = range.map(|unit| units.mass(unit)).collect();
            let nonzero = |row: &[f64]| row.iter().any(|&value| value != 0.0);
            let moved = wide.chunks_exact(d).zip(&weights).any(|(row, &weight)| weight > 0.0 && nonzero(row));
            let mut packed = vec![0.0; packed_len(d)];
            add_moments(wide, &weights, d, &mut [], &mut packed, space);
            Ok((moved, packed))
        })?;
        for (moved, part) in parts {
            any_moved |= moved;
            total.iter_mut().zip(part).for_each(|(sum, value)| *sum += value);
        }
        Ok(())
    })?;
    let total = unpack(d, &total);
    let trace: f64 = (0..d).map(|i| total[i * d + i]).sum();
    check_squares::<F>(trace, d as f64 * means.mass, any_moved)?;
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{DenseRows, Domain, TableRows};

    fn of(values: &[f64], d: usize, weights: Option<&[f64]>) -> Result<Moments> {
        let rows = DenseRows::new(values, d);
        moments(&TableRows { rows: &rows, weights }, Needs::Covariance, &Domain::Real.into(), false, &Cancel::default())
    }

    #[test]
    fn an_offset_of_1e8_costs_no_digits() {
        let plain = [1.0, 2.0, 4.0, -1.0, 0.5, 3.0];
        let moved: Vec<f64> = plain.iter().map(|x| x + 1e8).collect();
        let (a, b) = (of(&plain, 2, None).expect("finite"), of(&moved, 2, None).expect("finite"));
        for (x, y) in a.covariance.iter().zip(&b.covariance) {
            assert!((x - y).abs() < 1e-7, "{x} {y}");
        }
        // Rows (1, 2), (4, -1), (0.5, 3): mean (11/6, 4/3).
        assert!((a.mean[0] - 11.0 / 6.0).abs() < 1e-15 && (a.mean[1] - 4.0 / 3.0).abs() < 1e-15);
        let cov: f64 = (1.0 * 2.0 - 4.0 + 0.5 * 3.0) / 3.0 - 11.0 / 6.0 * 4.0 / 3.0;
        assert!((a.covariance[1] - cov).abs() < 1e-14);
    }

    #[test]
    fn a_weight_of_two_is_two_rows() {
        let twice = of(&[1.0, 5.0, 2.0, 3.0, 2.0, 3.0], 2, None).expect("finite");
        let weighted = of(&[1.0, 5.0, 2.0, 3.0], 2, Some(&[1.0, 2.0])).expect("finite");
        assert_eq!(weighted.mass, 3.0);
        for (x, y) in twice.covariance.iter().zip(&weighted.covariance) {
            assert!((x - y).abs() < 1e-14);
        }
    }

    #[test]
    fn the_first_bad_value_is_named() {
        let mut values = vec![0.0; 5000];
        values[4321] = f64::NAN;
        values[4999] = f64::INFINITY;
        let error = of(&values, 2, None).expect_err("NaN");
        assert_eq!(error, Error::invalid("data", "NaN in row 2160, column 1", "finite"));
    }

    #[test]
    fn squares_out_of_range_are_an_error() {
        assert!(of(&[1e200, -1e200], 1, None).is_err());
        assert!(of(&[1e-200, -1e-200], 1, None).is_err());
        // These squares are nonzero, but have lost most of their digits.
        assert!(of(&[1e-160, -1e-160], 1, None).is_err());
        assert!(of(&[1e-100, -1e-100], 1, None).is_ok());
    }
}
