//! Coordinates: the affine map from the data's columns to the columns that a model sees.
//!
//! A column is divided by its unit, a power of two, so no digit is lost. A constant column is left out. So is a column
//! that is an affine function of others: the rows lie on a subspace, and the kept columns are coordinates on it. A
//! column that nearly follows from others is replaced by what is left of it, row by row.

mod residuals;
mod rounded;
mod stored;

pub use rounded::Rounded;
use serde::{Deserialize, Serialize};

use crate::linalg::{cholesky, solve_lower};
use crate::real::Real;

/// The changes of columns under which a likelihood remains the same model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Freedom {
    /// None: columns are not changed.
    Fixed,
    /// One unit common to all columns, and leaving out constant columns.
    Common,
    /// A unit for each column, and leaving out constant columns.
    Columns,
    /// A unit for each column, and leaving out constant columns and columns that depend on others.
    Subspace,
}

/// A column that is an affine function of the kept columns, or nearly so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dependent {
    /// Index of the column.
    pub column: usize,
    /// Its standard deviation, or a robust estimate if a few rows dominate it. Rows may be off the subspace by a small
    /// part of it, so it is larger for a column that follows by rounding.
    pub spread: f64,
    /// Its slope in each kept column, in the data's units, (r,).
    pub slopes: Vec<f64>,
}

/// The map `y = x[kept] / unit`, and the columns that follow from y. D is the number of columns of x, r that of y. Of a
/// residual column, y is what its affine function of other columns leaves, which is a map of volume one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Coordinates {
    /// The kept columns, ascending, (r,).
    kept: Vec<usize>,
    /// The unit of each kept column, a power of two, (r,).
    units: Vec<f64>,
    /// The values of the constant columns, zero if they have none, and a point on the subspace in the others, (D,).
    centre: Vec<f64>,
    /// Columns that depend on others, ascending.
    dependents: Vec<Dependent>,
    /// Kept columns that are replaced by what an affine function of kept columns that are none of these leaves of them,
    /// ascending.
    residuals: Vec<Dependent>,
    /// Constant columns, ascending, also those without any value.
    constants: Vec<usize>,
    /// Columns without any value, ascending. Nothing is known about values in them.
    unseen: Vec<usize>,
}

/// Maximum distance from the subspace, in standard deviations of a column, at which a row counts as lying on it.
const OFF_SUBSPACE: f64 = 1e-3;
/// Maximum distance from a constant, as a fraction of its value, or absolute near zero, at which a value counts as
/// constant.
const OFF_CONSTANT: f64 = 1e-6;

impl Coordinates {
    /// Coordinates that change nothing.
    pub fn identity(n_columns: usize) -> Self {
        Self {
            kept: (0..n_columns).collect(),
            units: vec![1.0; n_columns],
            centre: vec![0.0; n_columns],
            dependents: Vec::new(),
            residuals: Vec::new(),
            constants: Vec::new(),
            unseen: Vec::new(),
        }
    }

    /// NaN in `centre` is the value of a constant column without any value.
    fn of(kept: Vec<usize>, units: Vec<f64>, mut centre: Vec<f64>, dependents: Vec<Dependent>) -> Self {
        let follows = |j: &usize| dependents.iter().any(|dependent| dependent.column == *j);
        let constants = (0..centre.len()).filter(|j| kept.binary_search(j).is_err() && !follows(j)).collect();
        let unseen: Vec<usize> = (0..centre.len()).filter(|&j| centre[j].is_nan()).collect();
        for &j in &unseen {
            centre[j] = 0.0;
        }
        Self { kept, units, centre, dependents, residuals: Vec::new(), constants, unseen }
    }

    /// The centre in the form that [`Coordinates::of`] takes.
    fn marked_centre(&self) -> Vec<f64> {
        let mut centre = self.centre.clone();
        for &j in &self.unseen {
            centre[j] = f64::NAN;
        }
        centre
    }

    /// The same columns in other units, powers of two.
    #[must_use]
    pub(super) fn with_units(self, units: Vec<f64>) -> Self {
        Self { units, ..self }
    }

    /// Returns the same columns without units.
    #[must_use]
    pub fn without_units(self) -> Self {
        Self { units: vec![1.0; self.kept.len()], ..self }
    }

    /// Returns these coordinates restricted to fewer columns.
    #[must_use]
    pub(super) fn restricted(self, kept: &[usize], centre: Vec<f64>, dependents: Vec<Dependent>) -> Self {
        let units = kept.iter().map(|&j| self.units[j]).collect();
        Self::of(kept.to_vec(), units, centre, dependents)
    }

    /// Coordinates that leave out all columns, which have these values.
    #[must_use]
    pub fn nothing(values: Vec<f64>) -> Self {
        Self::of(Vec::new(), Vec::new(), values, Vec::new())
    }

    /// Joins the coordinates of blocks, which name their columns of the data.
    #[must_use]
    pub fn of_blocks(blocks: &[(Vec<usize>, Self)]) -> Self {
        let mut kept: Vec<(usize, f64)> = Vec::new();
        for (columns, own) in blocks {
            kept.extend(own.kept.iter().zip(&own.units).map(|(&place, &unit)| (columns[place], unit)));
        }
        kept.sort_unstable_by_key(|(column, _)| *column);
        let (kept, units): (Vec<usize>, Vec<f64>) = kept.into_iter().unzip();
        let mut centre = vec![0.0; blocks.iter().map(|(columns, _)| columns.len()).sum()];
        let mut dependents = Vec::new();
        for (columns, own) in blocks {
            columns.iter().zip(own.marked_centre()).for_each(|(&column, value)| centre[column] = value);
            for dependent in &own.dependents {
                let mut slopes = vec![0.0; kept.len()];
                for (&place, &slope) in own.kept.iter().zip(&dependent.slopes) {
                    if let Ok(position) = kept.binary_search(&columns[place]) {
                        slopes[position] = slope;
                    }
                }
                dependents.push(Dependent { column: columns[dependent.column], slopes, ..*dependent });
            }
        }
        dependents.sort_unstable_by_key(|dependent| dependent.column);
        Self::of(kept, units, centre, dependents)
    }

    /// The coordinates of a block of columns on which no other column depends.
    #[must_use]
    pub fn of_columns(&self, columns: &[usize]) -> Self {
        let place = |column: usize| self.kept.binary_search(&column).ok();
        let positions: Vec<usize> = columns.iter().filter_map(|&column| place(column)).collect();
        let kept = (0..columns.len()).filter(|&index| place(columns[index]).is_some()).collect();
        let among = |all: &[Dependent]| {
            let of = |(index, column): (usize, &usize)| {
                let dependent = all.iter().find(|dependent| dependent.column == *column)?;
                let slopes = positions.iter().map(|&position| dependent.slopes[position]).collect();
                Some(Dependent { column: index, slopes, ..*dependent })
            };
            columns.iter().enumerate().filter_map(of).collect::<Vec<_>>()
        };
        let units = positions.iter().map(|&position| self.units[position]).collect();
        let (centre, dependents) = (self.marked_centre(), among(&self.dependents));
        Self::of(kept, units, columns.iter().map(|&column| centre[column]).collect(), dependents)
            .with_residuals(among(&self.residuals))
    }

    /// Number of columns of the data, D.
    pub fn n_columns(&self) -> usize {
        self.centre.len()
    }

    /// Number of columns that a model sees, r.
    pub fn rank(&self) -> usize {
        self.kept.len()
    }

    /// The kept columns, ascending.
    pub fn kept(&self) -> &[usize] {
        &self.kept
    }

    /// The units of the kept columns, (r,).
    pub fn units(&self) -> &[f64] {
        &self.units
    }

    /// The columns that depend on others, ascending.
    pub fn dependents(&self) -> &[Dependent] {
        &self.dependents
    }

    /// The columns without any value, which are among the constant ones, ascending.
    pub fn unseen(&self) -> &[usize] {
        &self.unseen
    }

    /// The constant columns, ascending.
    pub fn constants(&self) -> &[usize] {
        &self.constants
    }

    /// Whether every column is kept.
    pub fn is_full(&self) -> bool {
        self.rank() == self.n_columns()
    }

    /// Whether the map is the identity.
    pub fn is_identity(&self) -> bool {
        self.is_full() && self.residuals.is_empty() && self.units.iter().all(|&unit| unit == 1.0)
    }

    /// The common unit of all columns.
    pub fn common_unit(&self) -> f64 {
        self.units[0]
    }

    /// Restricts (D,) values to the kept columns and divides each by a power of its unit, (r,).
    pub fn lower(&self, values: &[f64], power: i32) -> Vec<f64> {
        self.kept.iter().zip(&self.units).map(|(&j, unit)| values[j] / unit.powi(power)).collect()
    }

    /// A row in coordinates, (r,).
    pub fn lower_row(&self, row: &[f64]) -> Vec<f64> {
        let mut values = row.to_vec();
        for residual in &self.residuals {
            values[residual.column] = self.left_of(residual, |column| row[column]);
        }
        self.lower(&values, 1)
    }

    /// Transforms a (D, D) matrix to coordinates, (r, r).
    pub fn lower_matrix(&self, matrix: &[f64]) -> Vec<f64> {
        let d = self.n_columns();
        let mut sheared = matrix.to_vec();
        for residual in &self.residuals {
            self.shear(residual, -1.0, &mut sheared);
        }
        let matrix = &sheared;
        let of = |(&i, u): (&usize, &f64)| {
            let row = &matrix[i * d..][..d];
            self.kept.iter().zip(&self.units).map(|(&j, v)| row[j] / u / v).collect::<Vec<f64>>()
        };
        self.kept.iter().zip(&self.units).flat_map(of).collect()
    }

    /// Maps a row back to the data's columns, (D,).
    pub fn raise(&self, row: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.n_columns()];
        self.raise_to(row, &mut out);
        out
    }

    /// Writes a row in the data's columns to `out`, (D,).
    pub fn raise_to(&self, row: &[f64], out: &mut [f64]) {
        out.copy_from_slice(&self.centre);
        for ((&j, unit), y) in self.kept.iter().zip(&self.units).zip(row) {
            out[j] = unit * y;
        }
        for residual in &self.residuals {
            let slopes = residual.slopes.iter().zip(&self.kept).filter(|(slope, _)| **slope != 0.0);
            out[residual.column] +=
                self.centre[residual.column] + slopes.map(|(slope, &p)| slope * (out[p] - self.centre[p])).sum::<f64>();
        }
        for dependent in &self.dependents {
            let slopes = dependent.slopes.iter().zip(&self.kept);
            out[dependent.column] += slopes.map(|(slope, &p)| slope * (out[p] - self.centre[p])).sum::<f64>();
        }
    }

    /// Multiplies (r,) values by a power of their units, and fills columns that are left out with 0, (D,).
    pub fn raise_by(&self, values: &[f64], power: i32) -> Vec<f64> {
        let mut out = vec![0.0; self.n_columns()];
        for ((&j, unit), value) in self.kept.iter().zip(&self.units).zip(values) {
            out[j] = value * unit.powi(power);
        }
        out
    }

    /// `A B A^T` for a symmetric (r, r) matrix B, (D, D).
    pub fn raise_matrix(&self, matrix: &[f64]) -> Vec<f64> {
        let (d, r) = (self.n_columns(), self.rank());
        let mut out = vec![0.0; d * d];
        for (a, (&i, u)) in self.kept.iter().zip(&self.units).enumerate() {
            for (b, (&j, v)) in self.kept.iter().zip(&self.units).enumerate() {
                out[i * d + j] = matrix[a * r + b] * u * v;
            }
        }
        for residual in &self.residuals {
            self.shear(residual, 1.0, &mut out);
        }
        for dependent in &self.dependents {
            let along = |out: &[f64], j: usize| -> f64 {
                dependent.slopes.iter().zip(&self.kept).map(|(slope, &p)| slope * out[p * d + j]).sum()
            };
            // Covariances with the other columns, which are complete, and then the variance.
            for j in (0..d).filter(|&j| j != dependent.column).chain([dependent.column]) {
                let value = along(&out, j);
                out[dependent.column * d + j] = value;
                out[j * d + dependent.column] = value;
            }
        }
        out
    }

    /// Sum of the logs of the units.
    pub fn log_units(&self) -> f64 {
        self.units.iter().map(|unit| unit.log2()).sum::<f64>() * std::f64::consts::LN_2
    }

    /// Log of the volume, on the subspace in the data's columns, of one unit of volume of y: `1/2 log |A^T A|`.
    pub fn log_volume(&self) -> f64 {
        let of_units = self.log_units();
        if self.dependents.is_empty() {
            return of_units;
        }
        let (lengths, factor) = self.gram();
        let r = self.rank();
        of_units + (0..r).map(|p| (lengths[p] * factor[p * (r + 1)]).ln()).sum::<f64>()
    }

    /// For each kept column, the length of its direction on the subspace relative to its own part, and the Cholesky
    /// factor of the cosines between these directions, column-major.
    fn gram(&self) -> (Vec<f64>, Vec<f64>) {
        let r = self.rank();
        let mut gram = vec![0.0; r * r];
        if self.dependents.is_empty() {
            gram.iter_mut().step_by(r + 1).for_each(|value| *value = 1.0);
            return (vec![1.0; r], gram);
        }
        let squares = |p: usize| 1.0 + self.dependents.iter().map(|dependent| dependent.slopes[p].powi(2)).sum::<f64>();
        let lengths: Vec<f64> = (0..r).map(|p| squares(p).sqrt()).collect();
        for p in 0..r {
            for q in 0..=p {
                let direct = f64::from(u8::from(p == q));
                let sum =
                    direct + self.dependents.iter().map(|direct| direct.slopes[p] * direct.slopes[q]).sum::<f64>();
                gram[q * r + p] = sum / lengths[p] / lengths[q];
            }
        }
        // A Gram matrix of directions with a unit part each has a factor, unless a file holds slopes of arbitrary size.
        if cholesky(r, &mut gram).is_err() {
            gram.fill(f64::NAN);
        }
        (lengths, gram)
    }

    /// An orthonormal basis of the directions of the subspace, (D, r) in row-major order.
    pub fn basis(&self) -> Vec<f64> {
        let (d, r) = (self.n_columns(), self.rank());
        let (lengths, factor) = self.gram();
        let mut basis = vec![0.0; d * r];
        let mut solve = |column: usize, direction: Vec<f64>| {
            let mut row: Vec<f64> = direction.iter().zip(&lengths).map(|(value, length)| value / length).collect();
            solve_lower(r, &factor, &mut row);
            basis[column * r..][..r].copy_from_slice(&row);
        };
        for (p, &column) in self.kept.iter().enumerate() {
            solve(column, (0..r).map(|q| f64::from(u8::from(p == q))).collect());
        }
        for dependent in &self.dependents {
            solve(dependent.column, dependent.slopes.clone());
        }
        basis
    }

    /// The columns in which a row of the data lies off the subspace. Missing values never do.
    pub fn strays(&self, row: &[f64]) -> Vec<usize> {
        if self.is_full() {
            return Vec::new();
        }
        let mut off: Vec<usize> = Vec::new();
        for &j in self.constants.iter().filter(|j| !self.unseen.contains(j)) {
            if (row[j] - self.centre[j]).abs() > OFF_CONSTANT * self.centre[j].abs().max(1.0) {
                off.push(j);
            }
        }
        for dependent in &self.dependents {
            let slopes = dependent.slopes.iter().zip(&self.kept);
            let away: f64 = slopes.map(|(slope, &p)| slope * (row[p] - self.centre[p])).sum();
            if (row[dependent.column] - self.centre[dependent.column] - away).abs() > OFF_SUBSPACE * dependent.spread {
                off.push(dependent.column);
            }
        }
        off.sort_unstable();
        off
    }

    /// Lowers the spread of each dependent column to `spread(column)`, if that is smaller.
    #[must_use]
    pub fn narrowed(mut self, spread: impl Fn(usize) -> f64) -> Self {
        for dependent in &mut self.dependents {
            let typical = spread(dependent.column);
            dependent.spread = if typical > 0.0 { dependent.spread.min(typical) } else { dependent.spread };
        }
        self
    }

    /// Copies rows to `out` in coordinates, each minus `origin`; `read` copies the original rows.
    pub(super) fn read<F: Real>(&self, n: usize, read: impl FnOnce(&mut [F]), origin: &[F], out: &mut [F]) {
        let (d, r) = (self.n_columns(), self.rank());
        let factors: Vec<f64> = self.units.iter().map(|unit| unit.recip()).collect();
        let seen = |value: F, factor: f64, zero: F| F::from_f64(value.to_f64() * factor) - zero;
        if self.is_full() && self.residuals.is_empty() {
            read(out);
            // The factors of short rows are repeated, because an inner loop over two columns would cost more than the
            // copy.
            let times = 64_usize.div_ceil(d);
            let (factors, origins) = (factors.repeat(times), origin.repeat(times));
            for values in out.chunks_mut(origins.len()) {
                for ((value, &factor), &zero) in values.iter_mut().zip(&factors).zip(&origins) {
                    *value = seen(*value, factor, zero);
                }
            }
            return;
        }
        let mut whole = vec![F::ZERO; n * d];
        read(&mut whole);
        for (row, out) in whole.chunks_exact(d).zip(out.chunks_exact_mut(r)) {
            for (((out, &j), &factor), &zero) in out.iter_mut().zip(&self.kept).zip(&factors).zip(origin) {
                *out = seen(row[j], factor, zero);
            }
            for residual in &self.residuals {
                let Ok(place) = self.kept.binary_search(&residual.column) else { continue };
                let left = self.left_of(residual, |column| row[column].to_f64());
                out[place] = F::from_f64(left * factors[place]) - origin[place];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Three columns, of which the third nearly follows from the first two, and one that follows from all.
    fn near(slopes: [f64; 2], units: [i32; 3]) -> Coordinates {
        let dependent = |column, slopes: &[f64]| Dependent { column, spread: 1.0, slopes: slopes.to_vec() };
        let units = units.map(|power| 2.0_f64.powi(power)).to_vec();
        let centre = vec![1.0, -2.0, 0.5, 4.0];
        Coordinates::of(vec![0, 1, 2], units, centre, vec![dependent(3, &[1.0, 0.5, -2.0])])
            .with_residuals(vec![dependent(2, &[slopes[0], slopes[1], 0.0])])
    }

    proptest! {
        /// The map and its inverse, of rows and of matrices, and its form in files; residuals change no volume.
        #[test]
        fn residuals_come_back(
            slopes in [-3.0_f64..3.0, -3.0..3.0],
            units in [-3_i32..3, -3..3, -3..3],
            row in [-9.0_f64..9.0, -9.0..9.0, -9.0..9.0],
        ) {
            let coordinates = near(slopes, units);
            let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(x, y)| (x - y).abs() < 1e-10 * (1.0 + y.abs()));
            let raised = coordinates.raise(&row);
            prop_assert!(close(&coordinates.lower_row(&raised), &row));
            prop_assert!(coordinates.strays(&raised).is_empty());
            let mut read = [0.0; 3];
            coordinates.read(1, |out: &mut [f64]| out.copy_from_slice(&raised), &[0.0; 3], &mut read);
            prop_assert!(close(&read, &row));
            let square = |entry: usize| row[entry / 3] * row[entry % 3];
            let matrix: Vec<f64> = (0..9).map(|entry| square(entry) + f64::from(u8::from(entry % 4 == 0))).collect();
            prop_assert!(close(&coordinates.lower_matrix(&coordinates.raise_matrix(&matrix)), &matrix));
            // The rows of a matrix are mapped as differences of rows are.
            let zero = coordinates.raise(&[0.0; 3]);
            let difference: Vec<f64> = raised.iter().zip(zero).map(|(x, z)| x - z).collect();
            let square: Vec<f64> = (0..9).map(square).collect();
            let expected: Vec<f64> = (0..16).map(|entry| difference[entry / 4] * difference[entry % 4]).collect();
            prop_assert!(close(&coordinates.raise_matrix(&square), &expected));
            let [units, centre, spreads, slopes] = coordinates.to_parts();
            prop_assert_eq!(Coordinates::from_parts(&units, &centre, &spreads, &slopes), Ok(coordinates.clone()));
            let away = coordinates.log_volume() - coordinates.without_residuals().log_volume();
            prop_assert!(away.abs() < 1e-12);
        }
    }

    proptest! {
        /// Without a rounded column, on which another one depends, rows that are off its function by less than its
        /// step lie on the subspace, and others do not.
        #[test]
        fn columns_go_by_rounding(
            slope in -3.0_f64..3.0,
            of_others in [-3.0_f64..3.0, -3.0..3.0],
            row in [-9.0_f64..9.0, -9.0..9.0],
            off in -0.99_f64..0.99,
        ) {
            let step = 0.5;
            let of_second = Dependent { column: 3, spread: 1e-6, slopes: vec![of_others[0], of_others[1], 0.0] };
            let whole = Coordinates::of(vec![0, 1, 2], vec![2.0, 4.0, 1.0], vec![1.0, -2.0, 0.5, 4.0], vec![of_second])
                .with_residuals(vec![Dependent { column: 2, spread: 1.0, slopes: vec![1.0, 0.0, 0.0] }]);
            let rounded = Rounded { column: 1, step, intercept: 7.0, slopes: vec![slope, 0.0, 0.0, 0.0] };
            let coordinates = whole.without_rounded(&[rounded]);
            prop_assert_eq!(coordinates.kept(), &[0, 2]);
            prop_assert_eq!(coordinates.units(), &[2.0, 1.0]);
            let mut raised = coordinates.raise(&row);
            let seen = coordinates.lower_row(&raised);
            prop_assert!(seen.iter().zip(row).all(|(a, b)| (a - b).abs() < 1e-9));
            prop_assert!((raised[1] - (7.0 + slope * raised[0])).abs() < 1e-9);
            let of_raised = 4.0 + of_others[0] * (raised[0] - 1.0) + of_others[1] * (raised[1] + 2.0);
            prop_assert!((raised[3] - of_raised).abs() < 1e-9);
            raised[1] += off * step;
            raised[3] += of_others[1] * off * step;
            prop_assert!(coordinates.strays(&raised).is_empty());
            raised[1] += 2.0 * step;
            prop_assert_eq!(coordinates.strays(&raised), [1]);
        }
    }

    #[test]
    fn a_residual_of_another_one_is_refused() {
        let [units, centre, _, _] = near([1.0, 2.0], [0; 3]).to_parts();
        let spreads = [0.0, 1.0, 1.0, 0.0];
        let slopes = [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]].concat();
        assert!(
            Coordinates::from_parts(&[units[0], 1.0, 1.0, 1.0], &centre, &spreads, &[slopes, vec![]].concat()).is_err()
        );
    }
}
