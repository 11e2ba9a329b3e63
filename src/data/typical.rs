//! Moments of most of a table: without values far from the usual ones, and without a few rows so far away that their
//! squares hide all others.

use crate::data::{Dataset, Moments};
use crate::error::Result;
use crate::simd::Scalar;

/// Maximum numbers of rows and of values that are looked at.
const MOST_ROWS: usize = 4096;
const MOST_VALUES: usize = 1 << 22;
/// With fewer rows, a few far ones may be a cluster.
const LEAST_ROWS: usize = 20;
/// Quantiles between which a column has its usual range.
const USUAL: [f64; 2] = [0.1, 0.9];
/// A row is far if a value is more usual ranges than this from the nearer quantile.
const FAR: f64 = 100.0;
/// A value more usual ranges than this from the nearer quantile does not count in the extremes of its column.
const NEAR: f64 = 10.0;
/// The moments of near rows are used if their variance is below this fraction of that of all rows in some column.
const HIDDEN: f64 = 1e-3;
/// Fraction of the squares of all rows that is added to the diagonal of covariances, so that the prior scale keeps a
/// scatter matrix of all rows positive definite.
const KEPT: f64 = 16.0 * f64::EPSILON;
/// Least fraction of the variance that is added, twice of what a scale must be beside it.
const LEAST_KEPT: f64 = 2e3 * f64::EPSILON;

/// The moments of most rows: extremes without values far from the usual ones, and means and (co)variances of the rows
/// that are not far from the others in any column, if the far ones hide their variance.
///
/// # Errors
/// [`crate::Error::Source`].
pub fn typical<F: Scalar>(data: &dyn Dataset<F>, all: &Moments) -> Result<Moments> {
    let n = data.n_rows();
    if all.variance.is_empty() || data.is_sparse() || n < LEAST_ROWS {
        return Ok(all.clone());
    }
    let d = all.dimension();
    let step = n.div_ceil(MOST_ROWS.min(MOST_VALUES / d).max(LEAST_ROWS));
    let list: Vec<u64> = (0..n as u64).step_by(step).collect();
    let units = data.pick(&list)?;
    let mut values = vec![F::ZERO; list.len() * d];
    units.read(0..list.len(), &vec![F::ZERO; d], &mut values);
    let weighted = |(row, values)| (units.mass(row), values);
    let rows: Vec<(f64, &[F])> =
        values.chunks_exact(d).enumerate().map(weighted).filter(|(weight, _)| *weight > 0.0).collect();
    let column = |column: usize| {
        let values = sorted(rows.iter().map(|(_, row)| row[column].to_f64()));
        let usual = usual(&values);
        (usual, range(&values, usual, [all.least[column], all.most[column]]))
    };
    let (usual, ranges): (Vec<[f64; 2]>, Vec<[f64; 2]>) = (0..d).map(column).unzip();
    let is_near = |(value, [low, high]): (&F, &[f64; 2])| {
        let (value, reach) = (value.to_f64(), FAR * (high - low));
        reach == 0.0 || !(value < low - reach || value > high + reach)
    };
    let near: Vec<&(f64, &[F])> = rows.iter().filter(|(_, row)| row.iter().zip(&usual).all(is_near)).collect();
    let of_near = if 2 * near.len() < rows.len() { all.clone() } else { of_rows(&near, all) };
    let is_hidden = of_near.variance.iter().zip(&all.variance).any(|(near, all)| *near < HIDDEN * all);
    let mut found = if is_hidden { of_near } else { all.clone() };
    (found.beyond, found.distance) = beyond(&rows, &ranges);
    (found.least, found.most) = ranges.into_iter().map(|[least, most]| (least, most)).unzip();
    Ok(found)
}

/// The values that are not missing, ascending.
fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.filter(|value| !value.is_nan()).collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// The usual range of ascending values; empty if there are none.
fn usual(values: &[f64]) -> [f64; 2] {
    let Some(last) = values.len().checked_sub(1) else { return [0.0; 2] };
    USUAL.map(|share| values[(share * last as f64).round() as usize])
}

/// The extremes of ascending values without those far from the usual ones. `ends` are the extremes of all rows, of
/// which `values` may be a part.
fn range(values: &[f64], usual: [f64; 2], ends: [f64; 2]) -> [f64; 2] {
    let ([low, high], [least, most]) = (usual, ends);
    let (first, last) = (low - NEAR * (high - low), high + NEAR * (high - low));
    if low == high || (least >= first && most <= last) {
        return ends;
    }
    let near = &values[values.partition_point(|&value| value < first)..values.partition_point(|&value| value <= last)];
    let of =
        |end: f64, inner: Option<&f64>| if (first..=last).contains(&end) { end } else { inner.copied().unwrap_or(end) };
    [of(least, near.first()), of(most, near.last())]
}

/// The fraction of the mass in rows with a value outside the ranges, and the median distance of these rows in half
/// ranges.
fn beyond<F: Scalar>(rows: &[(f64, &[F])], ranges: &[[f64; 2]]) -> (f64, f64) {
    let (mut outside, mut all, mut distances) = (0.0, 0.0, Vec::new());
    for (weight, row) in rows {
        let is_outside = |(value, [least, most]): (&F, &[f64; 2])| value.to_f64() < *least || value.to_f64() > *most;
        all += weight;
        if row.iter().zip(ranges).any(is_outside) {
            let away = |(value, [least, most]): (&F, &[f64; 2])| (2.0 * value.to_f64() - least - most) / (most - least);
            distances.push(row.iter().zip(ranges).map(away).fold(1.0, |most, away| away.abs().max(most)));
            outside += weight;
        }
    }
    distances.sort_unstable_by(f64::total_cmp);
    (outside / all, distances.get(distances.len() / 2).copied().unwrap_or(1.0))
}

/// The moments with means and (co)variances of these rows. A column in which they do not vary keeps its variance.
fn of_rows<F: Scalar>(rows: &[&(f64, &[F])], all: &Moments) -> Moments {
    let d = all.dimension();
    let mut found = all.clone();
    let mut masses = vec![0.0; d];
    let mut sums = vec![0.0; d];
    for (weight, row) in rows {
        for (column, value) in row.iter().enumerate().filter(|(_, value)| !value.is_nan()) {
            masses[column] += weight;
            sums[column] += weight * (value.to_f64() - all.mean[column]);
        }
    }
    for (mean, (sum, mass)) in found.mean.iter_mut().zip(sums.iter().zip(&masses)) {
        *mean += if *mass > 0.0 { sum / mass } else { 0.0 };
    }
    let mut scatter = vec![0.0; if all.covariance.is_empty() { 0 } else { d * d }];
    let mut squares = vec![0.0; d];
    for (weight, row) in rows {
        // A missing value adds nothing, as in the covariance of all rows.
        let from = row.iter().zip(&found.mean).map(|(value, mean)| value.to_f64() - mean);
        let from: Vec<f64> = from.map(|x| if x.is_nan() { 0.0 } else { x }).collect();
        squares.iter_mut().zip(&from).for_each(|(sum, x)| *sum += weight * x * x);
        for (sums, left) in scatter.chunks_exact_mut(d).zip(&from) {
            sums.iter_mut().zip(&from).for_each(|(sum, right)| *sum += weight * left * right);
        }
    }
    for column in 0..d {
        let variance = squares[column] / masses[column];
        found.variance[column] = if variance > 0.0 { variance } else { all.variance[column] };
    }
    for (entry, value) in found.covariance.iter_mut().enumerate() {
        let (row, column) = (entry / d, entry % d);
        let kept = (KEPT * all.mass).max(LEAST_KEPT) * all.variance[row];
        // So divided that the matrix stays positive semidefinite if values are missing.
        let mass = (masses[row] * masses[column]).sqrt();
        *value = if row == column { found.variance[row] + kept } else { scatter[entry] / mass };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{DenseRows, Domain, Needs, TableRows, moments};
    use crate::parallel::Cancel;

    fn moments_of(values: &[f64], weights: Option<&[f64]>) -> (Moments, Moments) {
        let missing = values.iter().any(|value| value.is_nan());
        let table = DenseRows::new(values, 2);
        let rows = TableRows { rows: &table, weights };
        let all =
            moments(&rows, Needs::Covariance, &Domain::Real.into(), missing, &Cancel::default()).expect("numbers");
        let found = typical(&rows, &all).expect("rows in memory");
        (all, found)
    }

    /// 40 rows on a curve.
    fn near() -> Vec<f64> {
        (0..40).flat_map(|row| [f64::from(row * 7 % 40), f64::from(row * row % 11)]).collect()
    }

    #[test]
    fn far_rows_leave_the_moments_of_the_others() {
        let expected = moments_of(&near(), None).0;
        let mut values = near();
        values.splice(20..20, [1e7, 3.0, 5.0, -1e8]);
        let (all, found) = moments_of(&values, None);
        for (mine, its) in found.mean.iter().zip(&expected.mean) {
            assert!((mine - its).abs() < 1e-8, "{mine} {its}");
        }
        for (entry, (mine, its)) in found.covariance.iter().zip(&expected.covariance).enumerate() {
            let added = if entry % 3 == 0 { LEAST_KEPT * all.variance[entry / 2] } else { 0.0 };
            assert!((mine - its - added).abs() < 1e-6, "{entry}: {mine} {its}");
        }
        assert_eq!((found.mass, found.n_rows), (all.mass, all.n_rows));
        assert_eq!((found.least, found.most), (expected.least, expected.most));
        assert!((found.beyond - 2.0 / 42.0).abs() < 1e-15);
        // The second far row is the farther one of two; its distance is that of -1e8 in the second column.
        assert!((found.distance - (1e8 + 4.5) / 4.5).abs() < 1e-6);
    }

    #[test]
    fn missing_values_have_no_part_in_the_moments_of_the_others() {
        let mut values = near();
        (values[4], values[9], values[20]) = (f64::NAN, f64::NAN, f64::NAN);
        let expected = moments_of(&values, None).0;
        values.extend([1e7, 3.0]);
        let (all, found) = moments_of(&values, None);
        for (entry, (mine, its)) in found.covariance.iter().zip(&expected.covariance).enumerate() {
            let added = if entry % 3 == 0 { LEAST_KEPT * all.variance[entry / 2] } else { 0.0 };
            assert!((mine - its - added).abs() < 1e-6, "{entry}: {mine} {its}");
        }
    }

    #[test]
    fn rows_at_ordinary_distances_are_part_of_the_bulk() {
        let mut values = near();
        values.extend([1e3, 3.0]);
        let (all, found) = moments_of(&values, None);
        assert_eq!((&found.mean, &found.covariance), (&all.mean, &all.covariance));
        // They do not belong to its range.
        assert_eq!((found.most, all.most[0]), (vec![39.0, 9.0], 1e3));
        assert_eq!(found.least, all.least);
        // Nor does a weight of zero hide anything.
        values.extend([1e9, 1e9]);
        let weights: Vec<f64> = (0..42).map(|row| f64::from(u8::from(row < 41))).collect();
        let (all, found) = moments_of(&values, Some(&weights));
        assert_eq!(found.covariance, all.covariance);
    }

    /// Neither the usual range of a column nor the far rows follow from rows without weight, however many there are.
    #[test]
    fn rows_without_weight_say_nothing_of_the_usual_range() {
        let mut values = near();
        values.extend([1e7, 3.0, 1e3, 5.0]);
        let expected = moments_of(&values, None).1;
        // Rows that would make both far rows usual.
        values.extend((0..40).flat_map(|row| [1e6 * f64::from(row - 20), 1e3 * f64::from(row % 7)]));
        let weights: Vec<f64> = (0..82).map(|row| f64::from(u8::from(row < 42))).collect();
        let found = moments_of(&values, Some(&weights)).1;
        assert_eq!((&found.least, &found.most), (&expected.least, &expected.most));
        assert!((found.beyond - expected.beyond).abs() < 1e-15 && found.beyond > 0.0);
        assert!((found.distance - expected.distance).abs() < 1e-9 * expected.distance);
        for (mine, its) in found.covariance.iter().zip(&expected.covariance) {
            assert!((mine - its).abs() < 1e-9 * (1.0 + its.abs()), "{mine} {its}");
        }
        // The share of the far rows is that of their weight.
        let weights: Vec<f64> = (0..42).map(|row| f64::from(1 + 2 * u8::from(row >= 40))).collect();
        let heavy = moments_of(&values[..84], Some(&weights)).1;
        assert!((heavy.beyond - 6.0 / 46.0).abs() < 1e-15, "{}", heavy.beyond);
    }

    #[test]
    fn a_column_that_varies_in_far_rows_alone_keeps_its_variance() {
        let mut values = near();
        values.chunks_exact_mut(2).for_each(|row| row[1] = 4.0);
        values.extend([1e9, 5.0]);
        let (all, found) = moments_of(&values, None);
        assert!(found.variance[0] < 200.0);
        assert_eq!(found.variance[1], all.variance[1]);
        assert_eq!(found.covariance[1], 0.0);
    }
}
