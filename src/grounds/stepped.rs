//! Columns of a few values that are steps of another one, such as groups of ages beside ages: they follow from it, and
//! tell nothing (mathematics 1.10).

use crate::data::{Coordinates, Domain, Freedom, Moments, Rounded, slopes};
use crate::error::Result;
use crate::likelihood;
use crate::model::{Named, Specification};

/// Maximum number of values of such a column, and how many times as many the other one has at least.
const MOST_VALUES: usize = 20;
const TIMES: usize = 3;
/// No row is off the subspace for its value: another row may have a value of the other column that no row had before.
const EVERY_VALUE: f64 = 1e300;
/// Columns of which one is a function of the other one that never falls are correlated.
const LEAST_SQUARED_CORRELATION: f64 = 0.1;
/// Minimum mean number of rows of a value of the other column: values of single rows are in some order with any column.
const ROWS_PER_VALUE: usize = 3;

/// A column whose value is that of a monotone function of another one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stepped {
    pub(super) column: usize,
    pub(super) other: usize,
    /// Whether the model is about zero.
    pub(super) about_zero: bool,
}

/// Pairs of kept columns of which one has few values and may be steps of the other one, as the moments tell; with their
/// resolution, if it `is_told`.
pub(super) fn candidates(
    specification: &Specification,
    data: &Moments,
    found: &Coordinates,
    is_told: bool,
) -> Result<Vec<Stepped>> {
    let Named { name, parameters } = &specification.likelihood;
    let (d, mut all) = (data.dimension(), Vec::new());
    let may_have = |column: usize, few: bool| {
        let resolution = data.resolution[column];
        let has_few = data.most[column] - data.least[column] <= MOST_VALUES as f64 * resolution;
        !is_told || (resolution > 0.0 && has_few == few)
    };
    let go_together = |a: usize, b: usize| {
        let variances = data.covariance[a * d + a] * data.covariance[b * d + b];
        data.covariance[a * d + b].powi(2) >= LEAST_SQUARED_CORRELATION * variances
    };
    for member in likelihood::members(name, parameters)? {
        let demands = likelihood::demands(member.entry.name, &member.parameters(parameters))?;
        if demands.freedom != Freedom::Subspace || data.covariance.is_empty() {
            continue;
        }
        let about_zero = member.entry.domain == Some(Domain::Centred);
        let has = |column: &usize| member.columns.as_ref().is_none_or(|columns| columns.contains(column));
        let in_residuals = |(place, column): (usize, usize)| {
            found.residuals().iter().any(|one| one.column == column || one.slopes[place] != 0.0)
        };
        let kept = found.kept().iter().copied().enumerate().filter(|(_, column)| has(column));
        let own: Vec<usize> = kept.filter(|&one| !in_residuals(one)).map(|(_, column)| column).collect();
        for &column in own.iter().filter(|&&column| may_have(column, true)) {
            let others = own.iter().filter(|&&other| other != column && may_have(other, false));
            let others = others.filter(|&&other| go_together(column, other));
            all.extend(others.map(|&other| Stepped { column, other, about_zero }));
        }
    }
    Ok(all)
}

/// The columns that are steps of another one in all rows of a sample, each of the first such one, as columns that count
/// as multiples of that one, whatever value a row has.
pub(super) fn steps(candidates: Vec<Stepped>, data: &Moments, sample: &[Vec<f64>]) -> Vec<Rounded> {
    let values = |column: usize| {
        let mut values: Vec<f64> = sample.iter().map(|row| row[column]).collect();
        values.sort_unstable_by(f64::total_cmp);
        values.dedup();
        values.len()
    };
    let is_one = |one: &Stepped| {
        let (few, many) = (values(one.column), values(one.other));
        let may_tell = few <= MOST_VALUES && many >= TIMES * few && ROWS_PER_VALUE * many <= sample.len();
        may_tell && is_step(sample, one.column, one.other)
    };
    let mut all: Vec<Stepped> = candidates.into_iter().filter(is_one).collect();
    // Of what is a step itself, steps are steps of the same other column.
    let going: Vec<usize> = all.iter().map(|one| one.column).collect();
    all.retain(|one| !going.contains(&one.other));
    all.dedup_by_key(|one| one.column);
    let of = |one: &Stepped| {
        let mut slopes = vec![0.0; data.dimension()];
        let slope = self::slopes(data, &[one.other], &[one.column], one.about_zero)[0][0];
        slopes[one.other] = slope;
        let intercept = if one.about_zero { 0.0 } else { data.mean[one.column] - slope * data.mean[one.other] };
        Rounded { column: one.column, step: EVERY_VALUE, intercept, slopes }
    };
    all.iter().map(of).collect()
}

/// Whether a column neither falls and rises, nor differs among rows of one value of another one.
fn is_step(sample: &[Vec<f64>], column: usize, other: usize) -> bool {
    let mut pairs: Vec<(f64, f64)> = sample.iter().map(|row| (row[other], row[column])).collect();
    pairs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let is_function = pairs.windows(2).all(|pair| pair[0].0 != pair[1].0 || pair[0].1 == pair[1].1);
    is_function && (pairs.is_sorted_by(|a, b| a.1 <= b.1) || pairs.is_sorted_by(|a, b| a.1 >= b.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_monotone_functions() {
        let rows = |step: fn(usize) -> f64| -> Vec<Vec<f64>> {
            (0..120).map(|row| vec![(row % 40) as f64, step(row % 40)]).collect()
        };
        assert!(is_step(&rows(|age| f64::from(u8::from(age > 17))), 1, 0));
        assert!(is_step(&rows(|age| -((age / 7) as f64).powi(2)), 1, 0));
        assert!(!is_step(&rows(|age| (age % 3) as f64), 1, 0));
        let mut one_differs = rows(|age| (age / 20) as f64);
        one_differs[55][1] = 1.0;
        assert!(!is_step(&one_differs, 1, 0));
    }
}
