//! Columns that follow from others by rounding, such as whole inches beside whole centimetres: others leave less of
//! them than the distance of their values, in which there is no structure (mathematics 1.10).

use std::cmp::Ordering;

use crate::data::{
    Coordinates, Dataset, Dependent, Domain, Freedom, Moments, Needs, Rounded, SeenRows, Sought, all_moments,
    precision, slopes,
};
use crate::error::Result;
use crate::likelihood;
use crate::model::{Named, Specification};
use crate::parallel::Cancel;
use crate::simd::Scalar;

/// Maximum fraction of the variance of such a column that others leave.
const LEFT: f64 = 0.05;
/// The fraction that is rounding error: such columns stay if a given scale lets rows vary in their direction.
const EXACT: f64 = 1e-12;
/// Maximum distance of a row from the affine function, in steps: that of rounding, and errors of the slopes.
const ROUNDING: f64 = 0.5;
const ERRORS: f64 = 0.125;
/// The same if the other columns were rounded from the same measurements.
const WITHIN: f64 = 1.0;
/// Minimum number of distinct rows for each column: with fewer, the slopes follow the rows.
const ROWS_PER_COLUMN: usize = 4;
/// A column matters for another one if one standard deviation of it changes that one by this many steps.
const MATTERS: f64 = 0.1;
/// Where no rows agree in the columns that matter, others are rounded to this part of a step of the column at most.
/// Otherwise the function may be that of an unknown number of steps, such as a last day after a first one.
const FINE: f64 = 0.25;
/// Minimum share of the rows that agree in these columns with others, where these rows tell of a function.
const AGREEING: f64 = 0.25;
/// Maximum share of rows that differ from most of those that agree with them in the columns that matter: if there is
/// no function but rounding, and if both columns were rounded from one measurement. Then rows differ only near the ends
/// of cells, so this share of the rows of large groups is in groups without differences.
const UNEQUAL: (f64, f64) = (0.02, 0.15);
const IN_PURE: f64 = 0.3;
const LARGE_GROUP: usize = 30;

/// Columns that vary as one, of which some may follow from others.
pub(super) struct Correlated {
    about_zero: bool,
    columns: Vec<usize>,
    /// The inverse of their correlations.
    precision: Vec<f64>,
}

/// Groups of columns of which some nearly follow from others, as the moments tell.
pub(super) fn groups(specification: &Specification, data: &Moments, found: &Coordinates) -> Result<Vec<Correlated>> {
    let Named { name, parameters } = &specification.likelihood;
    let mut groups = Vec::new();
    for member in likelihood::members(name, parameters)? {
        let given = member.parameters(parameters);
        if likelihood::demands(member.entry.name, &given)?.freedom != Freedom::Subspace {
            continue;
        }
        let has = |column: &usize| member.columns.as_ref().is_none_or(|columns| columns.contains(column));
        let is_residual = |column: &usize| found.residuals().iter().any(|one| one.column == *column);
        let columns: Vec<usize> =
            found.kept().iter().copied().filter(|column| has(column) && !is_residual(column)).collect();
        if columns.len() < 2 || data.repeats.n_distinct < ROWS_PER_COLUMN * columns.len() {
            continue;
        }
        let about_zero = member.entry.domain == Some(Domain::Centred);
        let precision = precision(data, &columns, about_zero);
        let inverses = |all: &Vec<f64>| all.iter().step_by(columns.len() + 1).copied().collect::<Vec<f64>>();
        let precision = precision.filter(|all| {
            let all = inverses(all);
            all.iter().any(|value| LEFT * value >= 1.0) && all.iter().all(|value| EXACT * value <= 1.0)
        });
        groups.extend(precision.map(|precision| Correlated { about_zero, columns, precision }));
    }
    Ok(groups)
}

/// Leaves out columns that follow from others by rounding.
pub(super) struct RoundedColumns<'a, F: Scalar> {
    pub(super) rows: &'a dyn Dataset<F>,
    pub(super) data: &'a Moments,
    /// Some of the rows.
    pub(super) sample: &'a [Vec<f64>],
    pub(super) cancel: &'a Cancel,
}

/// The columns of a group.
struct Divided {
    about_zero: bool,
    /// Those that stay.
    others: Vec<usize>,
    /// Those that may follow from them, with their steps.
    rounded: Vec<(usize, f64)>,
}

impl<F: Scalar> RoundedColumns<'_, F> {
    /// The coordinates without columns that follow from others by rounding.
    pub(super) fn left_out(&self, found: Coordinates, groups: Vec<Correlated>) -> Result<Coordinates> {
        let mut groups: Vec<Divided> = groups.into_iter().map(|group| self.divided(&found, group)).collect();
        loop {
            let rounded = self.functions(&found, &groups)?;
            if rounded.is_empty() {
                return Ok(found);
            }
            let mut all_follow = true;
            for group in &mut groups {
                let follows = |column: usize| rounded.iter().any(|one| one.column == column);
                let (follow, stay): (Vec<_>, Vec<_>) =
                    group.rounded.drain(..).partition(|(column, _)| follows(*column));
                all_follow &= stay.is_empty();
                group.others.extend(stay.into_iter().map(|(column, _)| column));
                group.rounded = follow;
            }
            if all_follow {
                return Ok(found.without_rounded(&rounded));
            }
        }
    }

    /// Takes columns out one after the other, as the moments tell, those with the coarsest values first.
    fn divided(&self, found: &Coordinates, Correlated { about_zero, columns, mut precision }: Correlated) -> Divided {
        let d = columns.len();
        let may_go = |column: usize| {
            let place = found.kept().partition_point(|&kept| kept < column);
            found.residuals().iter().all(|one| one.slopes[place] == 0.0)
        };
        let steps: Vec<f64> =
            columns.iter().map(|&column| if may_go(column) { self.step(column) } else { 0.0 }).collect();
        let spread = |place: usize| self.data.variance[columns[place]].sqrt();
        let mut places: Vec<usize> = (0..d).collect();
        places.sort_by(|&a, &b| (steps[b] / spread(b)).total_cmp(&(steps[a] / spread(a))));
        let mut others = columns.clone();
        let mut rounded = Vec::new();
        for place in places {
            let left = precision[place * (d + 1)].recip();
            let step = steps[place];
            // Columns of a few values are flags and codes.
            if left > LEFT || step > spread(place) || left.sqrt() * spread(place) > WITHIN * step {
                continue;
            }
            rounded.push((columns[place], step));
            others.retain(|&column| column != columns[place]);
            // The inverse of the matrix without the column.
            let own: Vec<f64> = precision[place * d..][..d].to_vec();
            for (row, one) in precision.chunks_exact_mut(d).zip(&own) {
                row.iter_mut().zip(&own).for_each(|(value, other)| *value -= one * other / own[place]);
            }
        }
        Divided { about_zero, others, rounded }
    }

    /// The columns that do follow from others in all rows, with their functions.
    fn functions(&self, found: &Coordinates, groups: &[Divided]) -> Result<Vec<Rounded>> {
        let d = self.data.dimension();
        let mut centre: Vec<f64> = (0..d).map(|j| self.data.constant(j).unwrap_or(self.data.mean[j])).collect();
        let mut all = Vec::new();
        for group in groups.iter().filter(|group| !group.rounded.is_empty()) {
            let columns: Vec<usize> = group.rounded.iter().map(|(column, _)| *column).collect();
            if group.about_zero {
                columns.iter().chain(&group.others).for_each(|&column| centre[column] = 0.0);
            }
            let found = slopes(self.data, &group.others, &columns, group.about_zero);
            for (&(column, step), own) in group.rounded.iter().zip(found) {
                let mut slopes = vec![0.0; d];
                group.others.iter().zip(own).for_each(|(&other, slope)| slopes[other] = slope);
                all.push((group.about_zero, Rounded { column, step, intercept: 0.0, slopes }));
            }
        }
        let follows = |one: &Rounded| {
            let is_finite = one.slopes.iter().all(|slope| slope.is_finite());
            is_finite && self.is_function(one).unwrap_or_else(|| self.steps_of_others(one) <= FINE * one.step)
        };
        all.retain(|(_, one)| follows(one));
        all.sort_unstable_by_key(|(_, one)| one.column);
        if all.is_empty() {
            return Ok(Vec::new());
        }
        let of = |(_, one): &(bool, Rounded)| Dependent { column: one.column, spread: 1.0, slopes: one.slopes.clone() };
        let trial = found.with_near(centre.clone(), &all.iter().map(of).collect::<Vec<_>>(), &[]).into();
        let seen = SeenRows { rows: self.rows, coordinates: &trial };
        let seen = all_moments(&seen, Sought::of(Needs::Means), &Domain::Real.into(), false, self.cancel)?;
        let mut functions = Vec::new();
        for (about_zero, mut one) in all {
            let place = trial.kept().partition_point(|&kept| kept < one.column);
            let (least, most) = (seen.least[place], seen.most[place]);
            let middle = if about_zero { 0.0 } else { 0.5 * (least + most) };
            let at_centre: f64 = one.slopes.iter().zip(&centre).map(|(slope, value)| slope * value).sum();
            one.intercept = centre[one.column] + middle - at_centre;
            let within = (ROUNDING * (1.0 + self.steps_of_others(&one) / one.step) + ERRORS).min(WITHIN);
            if (most - middle).max(middle - least) <= within * one.step {
                functions.push(one);
            }
        }
        Ok(functions)
    }

    /// By how much a step of each of the others changes a column.
    fn steps_of_others(&self, one: &Rounded) -> f64 {
        let others = one.slopes.iter().enumerate().filter(|(_, slope)| **slope != 0.0);
        others.map(|(column, slope)| slope.abs() * self.rounding(column)).sum()
    }

    /// The smallest distance of values of a column in the sample.
    fn step(&self, column: usize) -> f64 {
        let mut values: Vec<f64> = self.sample.iter().map(|row| row[column]).collect();
        values.sort_unstable_by(f64::total_cmp);
        let gaps = values.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > 0.0);
        gaps.fold(f64::INFINITY, f64::min)
    }

    /// The step of a column whose values repeat; 0 if it is not rounded.
    fn rounding(&self, column: usize) -> f64 {
        let mut values: Vec<f64> = self.sample.iter().map(|row| row[column]).collect();
        values.sort_unstable_by(f64::total_cmp);
        values.dedup();
        if 2 * values.len() < self.sample.len() { self.step(column) } else { 0.0 }
    }

    /// Whether rows of the sample that agree in the columns that matter for one agree in that one, too, but for
    /// rounding. Days of which some are one day later do not. `None` if too few rows agree.
    fn is_function(&self, one: &Rounded) -> Option<bool> {
        let matters =
            |&column: &usize| one.slopes[column].abs() * self.data.variance[column].sqrt() > MATTERS * one.step;
        let mut columns: Vec<usize> = (0..self.data.dimension()).filter(matters).collect();
        let n_others = columns.len();
        columns.push(one.column);
        let of = |row: &Vec<f64>| columns.iter().map(|&column| row[column]).collect();
        let mut rows: Vec<Vec<f64>> = self.sample.iter().map(of).collect();
        rows.sort_unstable_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
        let (mut n, mut unequal, mut in_large, mut in_pure) = (0, 0, 0, 0);
        for group in rows.chunk_by(|a, b| a[..n_others] == b[..n_others]).filter(|group| group.len() > 1) {
            let commonest = group.chunk_by(|a, b| a == b).map(<[_]>::len).max().unwrap_or(0);
            n += group.len();
            unequal += group.len() - commonest;
            if group.len() >= LARGE_GROUP {
                in_large += group.len();
                in_pure += if commonest == group.len() { group.len() } else { 0 };
            }
        }
        let share = unequal as f64 / n.max(1) as f64;
        let in_pure = in_large > 0 && in_pure as f64 >= IN_PURE * in_large as f64;
        let agrees = n as f64 >= AGREEING * self.sample.len() as f64;
        agrees.then_some(share <= UNEQUAL.0 || (share <= UNEQUAL.1 && in_pure))
    }
}
