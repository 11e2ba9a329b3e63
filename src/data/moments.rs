//! The first two moments of the data: what default hyper-parameters and centring need.

use crate::data::Units;
use crate::error::{Error, Result};
use crate::hash::fingerprint;
use crate::linalg::{add_moments, packed_len, unpack};
use crate::parallel::{Cancel, blocks, try_map_with};
use crate::simd::{Lines, Scalar};

/// The least sum or mean of squares that keeps its digits: what is lost of it in subnormal numbers is below its rounding.
const LEAST_SQUARE: f64 = f64::MIN_POSITIVE / f64::EPSILON;
/// Rows handled at a time.
const BLOCK: usize = 1024;

/// Weighted moments of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Moments {
    /// Number of rows.
    pub n_rows: usize,
    /// Sum of the weights.
    pub mass: f64,
    /// Column means, (D,).
    pub mean: Vec<f64>,
    /// Covariance about the means divided by the mass, (D, D).
    pub covariance: Vec<f64>,
    /// A number that tells these rows and weights, in this order, from others.
    pub fingerprint: u64,
}

impl Moments {
    /// Number of columns.
    pub fn dimension(&self) -> usize {
        self.mean.len()
    }
}

/// Reads the data twice: means and fingerprint first, then scatter about them, so that an offset of 10^8 costs no digits.
///
/// # Errors
/// [`Error::InvalidArgument`] for the first value that is NaN or infinite, and for values whose squares leave the
/// range of float64.
pub fn moments<F: Scalar>(units: &Units<'_, F>, cancel: &Cancel) -> Result<Moments> {
    let d = units.dimension();
    // The argument is called `data` where moments are taken: in `fit`.
    let room = Vec::<f64>::new().try_reserve_exact(4 * d * d);
    room.map_err(|_| {
        Error::invalid("data", format!("{d} columns"), "of so few columns that D x D matrices fit in memory")
    })?;
    let (mass, mean, fingerprint) = means(units, cancel)?;
    let covariance = scatter(units, &mean, cancel)?.into_iter().map(|value| value / mass).collect();
    Ok(Moments { n_rows: units.len(), mass, mean, covariance, fingerprint })
}

fn means<F: Scalar>(units: &Units<'_, F>, cancel: &Cancel) -> Result<(f64, Vec<f64>, u64)> {
    let d = units.dimension();
    let mut pivot = vec![F::ZERO; d];
    if !units.is_empty() {
        units.read(0..1, &vec![F::ZERO; d], &mut pivot);
    }
    let ranges: Vec<_> = blocks(units.len(), BLOCK).collect();
    let parts = try_map_with(
        ranges.len(),
        || vec![F::ZERO; BLOCK * d],
        |rows, index| {
            cancel.check()?;
            let range = ranges[index].clone();
            let rows = &mut rows[..range.len() * d];
            units.read(range.clone(), &vec![F::ZERO; d], rows);
            let (mut mass, mut sums, mut print) = (0.0, vec![0.0; d], 0);
            for (unit, row) in range.zip(rows.chunks_exact(d)) {
                if let Some(column) = row.iter().position(|value| !value.is_finite()) {
                    let row_number = units.row_number(unit);
                    return Err(Error::invalid(
                        "data",
                        format!("{} in row {row_number}, column {column}", row[column]),
                        "finite",
                    ));
                }
                let weight = units.mass(unit);
                mass += weight;
                print = fingerprint(print, row.iter().map(|value| value.to_f64().to_bits()).chain([weight.to_bits()]));
                for ((sum, &value), &zero) in sums.iter_mut().zip(row).zip(&pivot) {
                    *sum += weight * (value.to_f64() - zero.to_f64());
                }
            }
            Ok((mass, sums, print))
        },
    )?;
    let (mut mass, mut mean, mut print) = (0.0, vec![0.0; d], d as u64);
    for (part_mass, sums, part_print) in parts {
        mass += part_mass;
        print = fingerprint(print, [part_print]);
        mean.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
    }
    for (value, zero) in mean.iter_mut().zip(pivot) {
        *value = zero.to_f64() + if mass > 0.0 { *value / mass } else { 0.0 };
    }
    Ok((mass, mean, print))
}

fn scatter<F: Scalar>(units: &Units<'_, F>, mean: &[f64], cancel: &Cancel) -> Result<Vec<f64>> {
    let d = mean.len();
    let origin: Vec<F> = mean.iter().map(|&value| F::from_f64(value)).collect();
    let ranges: Vec<_> = blocks(units.len(), BLOCK).collect();
    let scratch = || (vec![F::ZERO; BLOCK * d], Vec::new(), Lines::default());
    let parts = try_map_with(ranges.len(), scratch, |(rows, wide, space), index| {
        cancel.check()?;
        let range = ranges[index].clone();
        let size = range.len() * d;
        units.read(range.clone(), &origin, &mut rows[..size]);
        wide.clear();
        wide.extend(rows[..size].iter().map(|value| value.to_f64()));
        let weights: Vec<f64> = range.map(|unit| units.mass(unit)).collect();
        let nonzero = |row: &[f64]| row.iter().any(|&value| value != 0.0);
        let moved = wide.chunks_exact(d).zip(&weights).any(|(row, &weight)| weight > 0.0 && nonzero(row));
        let mut packed = vec![0.0; packed_len(d)];
        add_moments(wide, &weights, d, &mut [], &mut packed, space);
        Ok((moved, packed))
    })?;
    let mut total = vec![0.0; packed_len(d)];
    let mut any_moved = false;
    for (moved, part) in parts {
        any_moved |= moved;
        total.iter_mut().zip(part).for_each(|(sum, value)| *sum += value);
    }
    let total = unpack(d, &total);
    let trace: f64 = (0..d).map(|i| total[i * d + i]).sum();
    let allowed = "of a scale whose squares float64 can hold; rescale it";
    if !trace.is_finite() {
        return Err(Error::invalid("data", "values whose squares overflow", allowed));
    }
    let variance = trace / (d as f64 * units.total_mass());
    if any_moved && trace.min(variance) < LEAST_SQUARE {
        return Err(Error::invalid("data", "values whose squares vanish or lose digits", allowed));
    }
    // A row is scored in its own type, divided by its standard deviation, which float32 cannot hold below this.
    if F::NAME == "float32" && any_moved && variance < 1e-70 {
        let found = format!("values of standard deviation {:.0e} in float32", variance.sqrt());
        return Err(Error::invalid("data", found, "of a scale float32 can divide by; rescale it or pass float64"));
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::DenseRows;

    fn of(values: &[f64], d: usize, weights: Option<&[f64]>) -> Result<Moments> {
        let rows = DenseRows::new(values, d);
        moments(&Units::all(&rows, weights), &Cancel::default())
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
        // These squares are there, but without most of their digits.
        assert!(of(&[1e-160, -1e-160], 1, None).is_err());
        assert!(of(&[1e-100, -1e-100], 1, None).is_ok());
    }
}
