//! Columns that are functions of another one, such as groups of ages, or logarithms of them, beside ages: they tell
//! nothing beside it (mathematics 1.10).

use crate::data::{Coordinates, Domain, Freedom, Moments, Rounded, are_smooth, slopes};
use crate::error::Result;
use crate::likelihood;
use crate::model::{Named, Specification};
use crate::special::ln_gamma;

/// Steps are at most this many values, and the other column has this many times as many.
const MOST_STEPS: usize = 20;
const TIMES: usize = 3;
/// Minimum number of values of the other column for functions with more values, and for those that rise and fall.
const LEAST_VALUES: usize = 20;
/// No row is off the subspace for its value: another row may have a value of the other column that no row had before.
const EVERY_VALUE: f64 = 1e300;
/// Steps of a few rows, such as the one row in which a pixel is not white, may be steps of some other column by chance:
/// if there are fewer ways to have them than the exponential of this.
const LEAST_SURPRISE: f64 = 25.0;
/// Minimum mean number of rows of a value of the other column: single rows have one value each of any column.
const ROWS_PER_VALUE: usize = 3;

/// Columns that are seen together, of which some may be functions of others.
pub(super) struct Together {
    about_zero: bool,
    columns: Vec<usize>,
    /// Those that have cells, if these are sought: values of others repeat for no known reason.
    with_cells: Vec<usize>,
}

/// The kept columns of each part of the model that sees them together; none without a column that has cells, if these
/// are `sought`.
pub(super) fn together(
    specification: &Specification,
    data: &Moments,
    found: &Coordinates,
    sought: bool,
) -> Result<Vec<Together>> {
    let Named { name, parameters } = &specification.likelihood;
    let mut all = Vec::new();
    for member in likelihood::members(name, parameters)? {
        let demands = likelihood::demands(member.entry.name, &member.parameters(parameters))?;
        if demands.freedom != Freedom::Subspace || data.covariance.is_empty() {
            continue;
        }
        let has = |column: &usize| member.columns.as_ref().is_none_or(|columns| columns.contains(column));
        let in_residuals = |(place, column): (usize, usize)| {
            found.residuals().iter().any(|one| one.column == column || one.slopes[place] != 0.0)
        };
        let kept = found.kept().iter().copied().enumerate().filter(|(_, column)| has(column));
        let columns: Vec<usize> = kept.filter(|&one| !in_residuals(one)).map(|(_, column)| column).collect();
        let with_cells: Vec<usize> =
            columns.iter().copied().filter(|&column| !sought || data.resolution[column] > 0.0).collect();
        if columns.len() > 1 && !with_cells.is_empty() {
            all.push(Together { about_zero: member.entry.domain == Some(Domain::Centred), columns, with_cells });
        }
    }
    Ok(all)
}

/// A column of a sample, by its distinct values, ascending.
struct Ranked {
    values: Vec<f64>,
    /// The place of the value of each row.
    places: Vec<usize>,
}

impl Ranked {
    fn of(sample: &[Vec<f64>], column: usize) -> Self {
        let mut values: Vec<f64> = sample.iter().map(|row| row[column]).collect();
        values.sort_unstable_by(f64::total_cmp);
        values.dedup();
        let place = |row: &Vec<f64>| values.partition_point(|value| *value < row[column]);
        Self { places: sample.iter().map(place).collect(), values }
    }

    /// Its value for each value of another column, if it is a function of that one.
    fn by(&self, other: &Self) -> Option<Vec<f64>> {
        let mut found = vec![usize::MAX; other.values.len()];
        for (&place, &beside) in self.places.iter().zip(&other.places) {
            if found[beside] == usize::MAX {
                found[beside] = place;
            } else if found[beside] != place {
                return None;
            }
        }
        Some(found.into_iter().map(|place| self.values[place]).collect())
    }

    /// Whether it tells nothing beside another column.
    fn follows(&self, other: &Self) -> bool {
        let (few, many) = (self.values.len(), other.values.len());
        if few > many || ROWS_PER_VALUE * many > self.places.len() {
            return false;
        }
        let are_steps = few <= MOST_STEPS && many >= TIMES * few;
        if !are_steps && many < LEAST_VALUES {
            return false;
        }
        let Some(values) = self.by(other) else { return false };
        let is_monotone = values.is_sorted() || values.is_sorted_by(|a, b| a >= b);
        if self.surprise() < LEAST_SURPRISE {
            return false;
        }
        // Of two that are functions of each other, the one with more even values stays.
        let may_go = few < many || self.unevenness() > other.unevenness();
        may_go && (is_monotone || (many >= LEAST_VALUES && are_smooth(&values)))
    }

    /// The log of the number of ways in which as many rows could have each of its values.
    fn surprise(&self) -> f64 {
        let mut places = self.places.clone();
        places.sort_unstable();
        let ln_factorial = |count: usize| ln_gamma(count as f64 + 1.0);
        let of_values = places.chunk_by(|a, b| a == b).map(|equal| ln_factorial(equal.len())).sum::<f64>();
        ln_factorial(places.len()) - of_values
    }

    /// The median distance of the logs of gaps between neighbouring values from their median: 0 for whole numbers.
    fn unevenness(&self) -> f64 {
        let mut gaps: Vec<f64> = self.values.windows(2).map(|pair| (pair[1] - pair[0]).ln()).collect();
        let middle = median(&mut gaps);
        let mut apart: Vec<f64> = gaps.iter().map(|gap| (gap - middle).abs()).collect();
        median(&mut apart)
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The columns that are functions of another one in all rows of a sample, as columns that count as multiples of that
/// one, whatever value a row has.
pub(super) fn functions(all: &[Together], data: &Moments, found: &Coordinates, sample: &[Vec<f64>]) -> Vec<Rounded> {
    let mut functions = Vec::new();
    for Together { about_zero, columns, with_cells } in all {
        let is_kept = |column: &&usize| found.kept().contains(column);
        let ranked: Vec<(usize, Ranked)> =
            columns.iter().filter(is_kept).map(|&column| (column, Ranked::of(sample, column))).collect();
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        for (column, one) in &ranked {
            let others = ranked.iter().filter(|(other, _)| other != column && with_cells.contains(other));
            pairs.extend(others.filter(|(_, other)| one.follows(other)).map(|&(other, _)| (*column, other)));
        }
        // What follows from a column that goes follows from that one's other column, too.
        let going: Vec<usize> = pairs.iter().map(|(column, _)| *column).collect();
        pairs.retain(|(_, other)| !going.contains(other));
        pairs.dedup_by_key(|(column, _)| *column);
        functions.extend(pairs.iter().map(|&(column, other)| multiple(data, column, other, *about_zero)));
    }
    functions
}

/// A column as a multiple of another one.
fn multiple(data: &Moments, column: usize, other: usize, about_zero: bool) -> Rounded {
    let mut slopes = vec![0.0; data.dimension()];
    let slope = self::slopes(data, &[other], &[column], about_zero)[0][0];
    slopes[other] = slope;
    let intercept = if about_zero { 0.0 } else { data.mean[column] - slope * data.mean[other] };
    Rounded { column, step: EVERY_VALUE, intercept, slopes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{DenseRows, Needs, TableRows, moments};
    use crate::parallel::Cancel;

    /// Whether a function of 40 whole numbers, three rows each, follows from them.
    fn follows(function: fn(usize) -> f64) -> bool {
        let rows: Vec<Vec<f64>> = (0..120).map(|row| vec![(row % 40) as f64, function(row)]).collect();
        Ranked::of(&rows, 1).follows(&Ranked::of(&rows, 0))
    }

    #[test]
    fn steps_and_smooth_functions_follow() {
        assert!(follows(|row| f64::from(u8::from(row % 40 > 17))));
        assert!(follows(|row| f64::from(u8::from(row % 40 > 2))));
        assert!(follows(|row| -((row % 40 / 7) as f64).powi(2)));
        assert!(follows(|row| [2.0, 0.0, 3.0, 1.0][row % 40 / 10]));
        assert!(follows(|row| (1.0 + (row % 40) as f64).ln()));
        assert!(follows(|row| ((row % 40) as f64 - 15.0).powi(2)));
    }

    /// Wide groups of ages follow from narrow ones, from ages, and from another column; each group follows from one
    /// column that stays, by the line of least squares, which passes through zero if the model does.
    #[test]
    fn functions_of_functions_follow_from_one_column_that_stays() {
        let of_row = |row: u32| {
            let age = f64::from(row * 37 % 80);
            let wide = (age / 20.0).floor();
            [wide, (age / 5.0).floor(), age, 20.0 * wide + (age + 3.0 * f64::from(row / 80)) % 20.0]
        };
        let orders = [[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 1, 0], [3, 1, 2, 0]];
        for (order, about_zero) in orders.into_iter().flat_map(|order| [(order, false), (order, true)]) {
            let sample: Vec<Vec<f64>> = (0..800).map(|row| order.map(|column| of_row(row)[column]).to_vec()).collect();
            let values = sample.concat();
            let table = DenseRows::new(&values, 4);
            let rows = TableRows { rows: &table, weights: None };
            let data = moments(&rows, Needs::Covariance, &Domain::Real.into(), false, &Cancel::default());
            let data = data.expect("numbers");
            let all = [Together { about_zero, columns: (0..4).collect(), with_cells: (0..4).collect() }];
            let found = functions(&all, &data, &Coordinates::identity(4), &sample);
            let follows: Vec<usize> = (0..4).filter(|&column| order[column] < 2).collect();
            let mut columns: Vec<usize> = found.iter().map(|one| one.column).collect();
            columns.sort_unstable();
            assert_eq!(columns, follows, "{order:?}");
            for one in &found {
                let others: Vec<usize> = (0..4).filter(|&column| one.slopes[column] != 0.0).collect();
                assert!(others.len() == 1 && !follows.contains(&others[0]), "{order:?} {others:?}");
                let left = |row: &Vec<f64>| row[one.column] - one.intercept - one.slopes[others[0]] * row[others[0]];
                let along: f64 = sample.iter().map(|row| left(row) * row[others[0]]).sum();
                assert!(along.abs() < 1e-6, "{along}");
                let sum: f64 = sample.iter().map(left).sum();
                assert!(if about_zero { one.intercept == 0.0 } else { sum.abs() < 1e-8 }, "{sum}");
            }
        }
    }

    #[test]
    fn other_columns_do_not() {
        assert!(!follows(|row| (row % 3) as f64));
        // Three rows at one end may be there by chance.
        assert!(!follows(|row| f64::from(u8::from(row % 40 > 0))));
        // A table of values in any order, one row that differs, and the numbers themselves.
        assert!(!follows(|row| ((row % 40) * 17 % 41) as f64));
        assert!(!follows(|row| if row == 55 { 1.0 } else { (row % 40 / 20) as f64 }));
        assert!(!follows(|row| (row % 40) as f64));
    }
}
