//! Columns that nearly follow from others: what is left of them is computed row by row, before any sum, because second
//! moments resolve a hundred-millionth of the spread only (mathematics 1.10).

use std::sync::Arc;

use crate::data::{Coordinates, Dataset, Dependent, Domain, Moments, SeenRows, Sought, all_moments, slopes};
use crate::error::Result;
use crate::likelihood;
use crate::model::{Named, Specification};
use crate::parallel::Cancel;
use crate::simd::Scalar;

/// Rounding errors of a residual, in units of the last place of the largest value.
const ROUNDING: f64 = 8.0;
/// Maximum number of decimal places of numbers that count as rounded.
const PLACES: i32 = 9;
/// A shorter slope may change a residual by this part of its standard deviation.
const SHORTENED: f64 = 0.5;
/// A residual of which others leave less of the variance than this follows from them.
const NOTHING_LEFT: f64 = 1e-9;
/// A kept column of which others leave less of the variance than this may follow from them, too, if any column does.
const LITTLE_LEFT: f64 = 1e-6;
/// Number of times that slopes are refined.
const TURNS: usize = 2;

/// The moments of rows in coordinates. Where columns are replaced by their residuals, rows are read once more.
///
/// # Errors
/// As [`all_moments`].
pub(crate) fn seen_moments<F: Scalar>(
    rows: &dyn Dataset<F>,
    data: &Moments,
    coordinates: &Arc<Coordinates>,
    sought: Sought,
    cancel: &Cancel,
) -> Result<Moments> {
    if coordinates.residuals().is_empty() {
        return Ok(data.seen_through(coordinates));
    }
    let plain = data.seen_through(&coordinates.without_residuals());
    let sought = Sought { values: false, ..sought };
    let own = all_moments(&SeenRows { rows, coordinates }, sought, &Domain::Real.into(), false, cancel)?;
    let (repeats, fingerprint) = (plain.repeats, plain.fingerprint);
    Ok(Moments { largest: plain.largest, values: plain.values, prints: plain.prints, repeats, fingerprint, ..own })
}

/// Tells columns that follow from others exactly from those of which something is left. The dependent columns of the
/// coordinates were found from moments, which cannot tell them apart.
pub(super) struct NearColumns<'a, F: Scalar> {
    pub(super) specification: &'a Specification,
    pub(super) rows: &'a dyn Dataset<F>,
    pub(super) data: &'a Moments,
    pub(super) sought: Sought,
    /// Some of the rows.
    pub(super) sample: &'a [Vec<f64>],
    pub(super) cancel: &'a Cancel,
}

/// A column that may follow from others, with its slopes by column of the data.
struct Following {
    column: usize,
    /// The columns on which it may depend, and whether the model is about zero.
    others: Vec<usize>,
    about_zero: bool,
    slopes: Vec<f64>,
}

impl<F: Scalar> NearColumns<'_, F> {
    /// The coordinates with near-dependent columns as residuals; `None` if there are none, or if a few rows off the
    /// subspace are all that is left of a column.
    pub(super) fn coordinates(&self, found: &Coordinates) -> Result<Option<Coordinates>> {
        let rows = self.sample;
        let mut candidates = self.candidates(found)?;
        let middle = self.middle(rows, &candidates);
        let in_residuals = |candidates: &[Following]| {
            let trial = Arc::new(found.with_near(middle.clone(), &dependents(candidates, self.data), &[]));
            let seen = seen_moments(self.rows, self.data, &trial, self.sought, self.cancel)?;
            Ok((trial, seen))
        };
        let (mut trial, mut seen) = in_residuals(&candidates)?;
        for _ in 0..TURNS {
            if !refine(&mut candidates, &trial, &seen) {
                break;
            }
            (trial, seen) = in_residuals(&candidates)?;
        }
        let steps: Vec<f64> = (0..self.data.dimension()).map(|column| step(rows, column, epsilon::<F>())).collect();
        let (mut near, mut exact): (Vec<Following>, Vec<Following>) = (Vec::new(), Vec::new());
        for candidate in candidates {
            let place = place_of(&trial, candidate.column);
            let allowed = self.rounding(&candidate, &steps);
            if seen.most[place] - seen.least[place] <= 2.0 * allowed {
                exact.push(candidate);
            } else if is_mostly_exact(rows, &candidate, &middle, allowed) {
                return Ok(None);
            } else {
                near.push(candidate);
            }
        }
        if near.is_empty() {
            return Ok(None);
        }
        let (near, composed) = telling(near, &trial, &seen);
        exact.extend(composed);
        exact.sort_unstable_by_key(|candidate| candidate.column);
        Ok(Some(found.with_near(middle, &dependents(&near, self.data), &dependents(&exact, self.data))))
    }

    /// The dependent columns, and kept ones that nearly follow from kept ones before them, each with the other kept
    /// columns of its likelihood.
    fn candidates(&self, found: &Coordinates) -> Result<Vec<Following>> {
        let Named { name, parameters } = &self.specification.likelihood;
        let mut all = Vec::new();
        for member in likelihood::members(name, parameters)? {
            let about_zero = member.entry.domain == Some(Domain::Centred);
            let has = |column: usize| member.columns.as_ref().is_none_or(|columns| columns.contains(&column));
            let dependents: Vec<usize> =
                found.dependents().iter().map(|dependent| dependent.column).filter(|&column| has(column)).collect();
            if dependents.is_empty() {
                continue;
            }
            let (mut others, mut following) = (Vec::new(), dependents);
            for column in found.kept().iter().copied().filter(|&column| has(column)) {
                let is_other = others.is_empty() || self.left(&others, column, about_zero) > LITTLE_LEFT;
                if is_other { others.push(column) } else { following.push(column) }
            }
            let of = |column: usize| {
                let mut by_column = vec![0.0; self.data.dimension()];
                let found = &slopes(self.data, &others, &[column], about_zero)[0];
                let known = others.iter().zip(found).filter(|(_, slope)| slope.is_finite());
                known.for_each(|(&other, &slope)| by_column[other] = slope);
                Following { column, others: others.clone(), about_zero, slopes: by_column }
            };
            all.extend(following.into_iter().map(of));
        }
        all.sort_unstable_by_key(|following| following.column);
        Ok(all)
    }

    /// The fraction of the variance of a column that others leave.
    fn left(&self, others: &[usize], column: usize, about_zero: bool) -> f64 {
        let (d, Moments { mean, covariance, .. }) = (self.data.dimension(), self.data);
        let product = |i: usize, j: usize| covariance[i * d + j] + if about_zero { mean[i] * mean[j] } else { 0.0 };
        let found = &slopes(self.data, others, &[column], about_zero)[0];
        let told: f64 = others.iter().zip(found).map(|(&other, slope)| slope * product(column, other)).sum();
        1.0 - told / product(column, column)
    }

    /// The row nearest to the means, in standard deviations: differences from a row are exact where values are rounded.
    /// The origin for models about zero.
    fn middle(&self, rows: &[Vec<f64>], candidates: &[Following]) -> Vec<f64> {
        let Moments { mean, variance, .. } = self.data;
        if candidates.iter().any(|candidate| candidate.about_zero) {
            return (0..self.data.dimension()).map(|column| self.data.constant(column).unwrap_or(0.0)).collect();
        }
        let distance = |row: &&Vec<f64>| {
            let squares = row.iter().zip(mean).zip(variance).filter(|(_, variance)| **variance > 0.0);
            squares.map(|((x, m), variance)| (x - m).powi(2) / variance).sum::<f64>()
        };
        let nearest = rows.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
        nearest.cloned().unwrap_or_else(|| mean.clone())
    }

    /// How far rounding may take a residual from zero.
    fn rounding(&self, candidate: &Following, steps: &[f64]) -> f64 {
        let of = |column: usize, slope: f64| {
            let largest = self.data.least[column].abs().max(self.data.most[column].abs());
            // Numbers that were once in float32, and are no decimals.
            let is_single = || self.sample.iter().all(|row| f64::from(row[column] as f32) == row[column]);
            let was_single = steps[column] == 0.0 && is_single();
            let epsilon = if was_single { f32::EPSILON.into() } else { epsilon::<F>() };
            slope.abs() * (ROUNDING * epsilon * largest + 0.501 * steps[column])
        };
        let slopes = candidate.slopes.iter().enumerate();
        of(candidate.column, 1.0) + slopes.map(|(column, &slope)| of(column, slope)).sum::<f64>()
    }
}

/// Whether half of the rows or more lie on the subspace.
fn is_mostly_exact(rows: &[Vec<f64>], candidate: &Following, middle: &[f64], allowed: f64) -> bool {
    let left = |row: &Vec<f64>| {
        let slopes = candidate.slopes.iter().enumerate().filter(|(_, slope)| **slope != 0.0);
        let away = |column: usize| row[column] - middle[column];
        away(candidate.column) - slopes.map(|(column, slope)| slope * away(column)).sum::<f64>()
    };
    let mut residuals: Vec<f64> = rows.iter().map(left).collect();
    residuals.sort_unstable_by(f64::total_cmp);
    let quantile = |share: f64| residuals[(share * (residuals.len() - 1) as f64) as usize];
    quantile(0.75) - quantile(0.25) <= 2.0 * allowed
}

/// The rounding of values of a type, relative to the largest one.
fn epsilon<F: Scalar>() -> f64 {
    if F::NAME == "float32" { f32::EPSILON.into() } else { f64::EPSILON }
}

/// Where a column is among the kept ones.
fn place_of(coordinates: &Coordinates, column: usize) -> usize {
    coordinates.kept().partition_point(|&kept| kept < column)
}

fn dependents(candidates: &[Following], data: &Moments) -> Vec<Dependent> {
    let of = |candidate: &Following| Dependent {
        column: candidate.column,
        spread: data.variance[candidate.column].sqrt(),
        slopes: candidate.slopes.clone(),
    };
    candidates.iter().map(of).collect()
}

/// Corrects the slopes of candidates by the regression of their residuals on the other columns, and makes them as short
/// as the residuals allow. Returns whether any has changed.
fn refine(candidates: &mut [Following], trial: &Coordinates, seen: &Moments) -> bool {
    let mut changed = false;
    for candidate in candidates {
        let place = place_of(trial, candidate.column);
        let others: Vec<usize> = candidate.others.iter().map(|&other| place_of(trial, other)).collect();
        let spread = |place: usize| seen.variance[place].sqrt();
        if spread(place) == 0.0 {
            continue;
        }
        let correction = &slopes(seen, &others, &[place], candidate.about_zero)[0];
        let share = SHORTENED / (others.len() as f64).sqrt();
        for ((&column, &other), correction) in candidate.others.iter().zip(&others).zip(correction) {
            let exact = candidate.slopes[column] + if correction.is_finite() { *correction } else { 0.0 };
            let shorter = shortened(exact, share * spread(place) / spread(other));
            changed |= shorter != candidate.slopes[column];
            candidate.slopes[column] = shorter;
        }
    }
    changed
}

/// The number with the fewest binary digits that differs by at most `most`. So a slope of one has no other digits, and
/// units that are powers of two change no digit.
fn shortened(value: f64, most: f64) -> f64 {
    if value.abs() <= most {
        return 0.0;
    }
    let of = |lost: u32| {
        let digits = value.to_bits();
        // Half of the last digit that is kept is added, which rounds.
        f64::from_bits((digits + (1_u64 << lost >> 1)) >> lost << lost)
    };
    (1..f64::MANTISSA_DIGITS).rev().map(of).find(|shorter| (shorter - value).abs() <= most).unwrap_or(value)
}

/// The smallest decimal step of which all values of a column are multiples; 0 if there is none.
fn step(rows: &[Vec<f64>], column: usize, epsilon: f64) -> f64 {
    let is_multiple = |places: i32| {
        let times = 10_f64.powi(places);
        rows.iter().all(|row| {
            let value = row[column] * times;
            (value - value.round()).abs() <= 4.0 * epsilon * value.abs()
        })
    };
    // Digits beyond the last of the type are none that anybody wrote.
    let largest = rows.iter().fold(0.0_f64, |largest, row| largest.max(row[column].abs()));
    let can_tell = |places: &i32| largest * 10_f64.powi(*places) < 0.02 / epsilon;
    (0..=PLACES).filter(can_tell).find(|&places| is_multiple(places)).map_or(0.0, |places| 10_f64.powi(-places))
}

/// Divides candidates into those that others do not tell, and those that follow from these, with slopes in them, too.
fn telling(candidates: Vec<Following>, trial: &Coordinates, seen: &Moments) -> (Vec<Following>, Vec<Following>) {
    let (mut near, mut exact): (Vec<Following>, Vec<Following>) = (Vec::new(), Vec::new());
    for mut candidate in candidates {
        let place = place_of(trial, candidate.column);
        let same = |one: &&Following| one.others == candidate.others;
        let columns: Vec<usize> = near.iter().filter(same).map(|one| one.column).collect();
        let others: Vec<usize> =
            candidate.others.iter().chain(&columns).map(|&column| place_of(trial, column)).collect();
        let of = &slopes(seen, &others, &[place], candidate.about_zero)[0];
        let d = seen.dimension();
        let told: f64 = others.iter().zip(of).map(|(&other, slope)| slope * seen.covariance[place * d + other]).sum();
        if columns.is_empty() || seen.variance[place] - told > NOTHING_LEFT * seen.variance[place] {
            near.push(candidate);
            continue;
        }
        let n_plain = candidate.others.len();
        for (&column, slope) in candidate.others.iter().zip(of) {
            candidate.slopes[column] += slope;
        }
        for (&column, &slope) in columns.iter().zip(&of[n_plain..]) {
            let Some(one) = near.iter().find(|one| one.column == column) else { continue };
            candidate.slopes.iter_mut().zip(&one.slopes).for_each(|(to, of_one)| *to -= slope * of_one);
            candidate.slopes[column] = slope;
        }
        exact.push(candidate);
    }
    (near, exact)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_are_as_short_as_residuals_allow() {
        assert_eq!(shortened(1.000_000_03, 1e-6), 1.0);
        assert_eq!(shortened(-1.8, 0.1), -1.75);
        assert!((shortened(-1.800_000_2, 1e-6) + 1.8).abs() <= 1.2e-6);
        assert_eq!(shortened(1e-9, 1e-6), 0.0);
        assert_eq!(shortened(std::f64::consts::PI, 0.0), std::f64::consts::PI);
    }

    #[test]
    fn steps_are_decimal() {
        let of = |values: &[f64]| step(&values.iter().map(|&value| vec![value]).collect::<Vec<_>>(), 0, f64::EPSILON);
        assert_eq!(of(&[1.7e9, 1.6e9 + 3.0]), 1.0);
        assert_eq!(of(&[0.25, 3.5]), 0.01);
        assert_eq!(of(&[1.0 / 3.0, 0.7]), 0.0);
    }
}
