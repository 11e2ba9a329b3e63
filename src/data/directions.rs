//! The directions in which data vary, and the columns that a likelihood needs to represent them.

use crate::data::Moments;
use crate::data::coordinates::{Coordinates, Dependent, Freedom};
use crate::error::Result;
use crate::linalg::{add_gram_of_lower, cholesky, invert_lower, mirror, solve_lower, symmetric_eigen};
use crate::real::Real;

/// Maximum standard deviation of a constant column, as a fraction of its largest value: in float64, and in float32.
const CONSTANT: (f64, f64) = (1.0 / (1_u64 << 40) as f64, 1.0 / (1_u64 << 20) as f64);
/// Maximum eigenvalue of the correlations in a direction in which the data do not vary: for exact numbers, and for
/// numbers rounded by float32 or by a mean far from zero.
const NULL: (f64, f64) = (1e-9, 1e-8);
/// Means farther than this from zero, in standard deviations, cost digits.
const FAR: f64 = 1e3;
/// A column is kept if the kept columns leave more than this fraction of its variance. The thresholds are tried in turn
/// until there are enough columns.
const LEFT: [f64; 5] = [1e-2, 1e-4, 1e-6, 1e-8, 0.0];

/// Coordinates chosen from the moments of the data.
#[derive(Debug, Clone, PartialEq)]
pub struct Informative {
    /// The coordinates.
    pub coordinates: Coordinates,
    /// Whether there are too few rows to span all columns. Columns are not treated as dependent for this reason.
    pub lacks_rows: bool,
    /// Whether any column varies.
    pub varies: bool,
}

/// The power of two closest in ratio to a standard deviation; 1 if that is zero.
fn unit(variance: f64) -> f64 {
    if variance < f64::MIN_POSITIVE || !variance.is_finite() {
        return 1.0;
    }
    let exponent = ((variance.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    2_f64.powi((exponent + 1).div_euclid(2))
}

impl Coordinates {
    /// All columns of the data, in units of their standard deviations, or of their root mean squares if `about_zero`. A
    /// common unit is that of the columns that vary.
    pub fn in_units(data: &Moments, freedom: Freedom, about_zero: bool) -> Self {
        let coordinates = Self::identity(data.dimension());
        let units = match freedom {
            Freedom::Fixed => return coordinates,
            Freedom::Common => {
                let n_varying = data.variance.iter().filter(|variance| **variance > 0.0).count().max(1);
                vec![unit(data.variance.iter().sum::<f64>() / n_varying as f64); data.dimension()]
            }
            Freedom::Columns | Freedom::Subspace => {
                let square = |j: usize| data.variance[j] + if about_zero { data.mean[j].powi(2) } else { 0.0 };
                (0..data.dimension()).map(|j| unit(square(j))).collect()
            }
        };
        coordinates.with_units(units)
    }
}

impl Coordinates {
    /// The same columns, in units of their standard deviations in these coordinates, which have no units.
    #[must_use]
    pub fn in_units_of(self, seen: &Moments) -> Self {
        self.with_units(seen.variance.iter().map(|&variance| unit(variance)).collect())
    }
}

/// Finds the units of columns, constant columns, and columns that depend on others. `about_zero`: the model assumes
/// rows of mean zero.
///
/// # Errors
/// [`crate::Error::Numerical`] for correlations without eigenvalues.
pub fn informative<F: Real>(data: &Moments, freedom: Freedom, about_zero: bool) -> Result<Informative> {
    let whole = Coordinates::in_units(data, freedom, about_zero);
    let single = F::NAME == "float32";
    if freedom == Freedom::Fixed {
        return Ok(Informative { coordinates: whole, lacks_rows: false, varies: true });
    }
    let share = if single { CONSTANT.1 } else { CONSTANT.0 };
    let is_constant = |j: usize| {
        let (least, most) = (data.least[j], data.most[j]);
        // A column without any value says as little as a constant one.
        least >= most || data.variance[j] <= (share * least.abs().max(most.abs())).powi(2)
    };
    let mut varying: Vec<usize> = (0..data.dimension()).filter(|&j| !is_constant(j)).collect();
    if varying.is_empty() && about_zero {
        // Equal rows span one direction about zero. With further columns, rounding alone would determine the scale.
        varying.extend((0..data.dimension()).find(|&j| data.least[j] == data.most[j] && data.mean[j] != 0.0));
    }
    if varying.is_empty() {
        return Ok(Informative { coordinates: whole, lacks_rows: false, varies: false });
    }
    let (mut lacks_rows, mut kept) = (false, varying.clone());
    if freedom == Freedom::Subspace && varying.len() > 1 {
        let correlations = Correlations::of(data, &varying, about_zero);
        let rank = correlations.rank(single)?;
        // n rows span at most n directions, or n - 1 if the mean is free.
        let n_distinct = data.repeats.n_distinct;
        let most = n_distinct - usize::from(!about_zero && n_distinct > 0);
        lacks_rows = rank < varying.len() && rank >= most;
        if rank < varying.len() && !lacks_rows {
            kept = correlations.independent(rank).into_iter().map(|position| varying[position]).collect();
        }
    }
    let dependents = varying.iter().filter(|j| !kept.contains(j)).copied();
    let dependents: Vec<usize> = dependents.collect();
    let slopes = if dependents.is_empty() { Vec::new() } else { slopes(data, &kept, &dependents, about_zero) };
    let dependents: Vec<Dependent> = dependents
        .into_iter()
        .zip(slopes)
        .map(|(column, slopes)| Dependent { column, spread: data.variance[column].sqrt(), slopes })
        .collect();
    let point = |j: usize| if about_zero && !is_constant(j) { 0.0 } else { data.mean[j] };
    let centre = (0..data.dimension()).map(|j| data.constant(j).unwrap_or_else(|| point(j)));
    let coordinates = whole.restricted(&kept, centre.collect(), dependents);
    Ok(Informative { coordinates, lacks_rows, varies: true })
}

/// Second moments of columns in units of their standard deviations, about the means or about zero.
struct Correlations {
    d: usize,
    /// (d, d).
    values: Vec<f64>,
    /// Whether a mean is far from zero, relative to the standard deviation.
    far: bool,
}

impl Correlations {
    fn of(data: &Moments, columns: &[usize], about_zero: bool) -> Self {
        let (d, all) = (columns.len(), data.dimension());
        let spread: Vec<f64> = columns.iter().map(|&j| data.variance[j].sqrt()).collect();
        let mean: Vec<f64> = columns.iter().zip(&spread).map(|(&j, s)| data.mean[j] / s).collect();
        let mut values = vec![0.0; d * d];
        for a in 0..d {
            for b in 0..d {
                let about = if about_zero { mean[a] * mean[b] } else { 0.0 };
                values[a * d + b] = data.covariance[columns[a] * all + columns[b]] / spread[a] / spread[b] + about;
            }
        }
        Self { d, values, far: mean.iter().any(|mean| mean.abs() > FAR) }
    }

    /// Number of directions in which the data vary.
    fn rank(&self, single: bool) -> Result<usize> {
        let least = if single || self.far { NULL.1 } else { NULL.0 };
        let (values, _) = symmetric_eigen(self.d, &self.values)?;
        Ok(values.iter().filter(|value| **value > least).count().max(1))
    }

    /// Selects `rank` columns on which the others depend, ascending. Prefers earlier columns that vary enough given
    /// those already selected.
    fn independent(&self, rank: usize) -> Vec<usize> {
        let d = self.d;
        let mut left: Vec<f64> = self.values.iter().step_by(d + 1).copied().collect();
        let mut factor: Vec<Vec<f64>> = Vec::new();
        let mut chosen: Vec<usize> = Vec::new();
        for share in LEFT {
            for j in 0..d {
                if chosen.len() == rank || chosen.contains(&j) || left[j] <= share * self.values[j * (d + 1)] {
                    continue;
                }
                let pivot = left[j].sqrt();
                let along = |i: usize| {
                    let known: f64 = factor.iter().map(|column| column[i] * column[j]).sum();
                    (self.values[i * d + j] - known) / pivot
                };
                let column: Vec<f64> = (0..d).map(along).collect();
                left.iter_mut().zip(&column).for_each(|(left, value)| *left -= value * value);
                factor.push(column);
                chosen.push(j);
            }
        }
        chosen.sort_unstable();
        chosen
    }
}

/// The inverse of the correlations of columns, (r, r); `None` if they have none. A column of which others leave the
/// fraction f of its variance has 1 / f on the diagonal.
pub fn precision(data: &Moments, columns: &[usize], about_zero: bool) -> Option<Vec<f64>> {
    let d = columns.len();
    let mut factor = Correlations::of(data, columns, about_zero).values;
    cholesky(d, &mut factor).ok()?;
    let (mut inverse, mut precision) = (vec![0.0; d * d], vec![0.0; d * d]);
    invert_lower(d, &factor, &mut inverse);
    add_gram_of_lower(d, &inverse, 1.0, &mut precision);
    mirror(d, &mut precision);
    Some(precision)
}

/// For each dependent column, its slopes in the kept columns.
pub fn slopes(data: &Moments, kept: &[usize], dependents: &[usize], about_zero: bool) -> Vec<Vec<f64>> {
    let all: Vec<usize> = kept.iter().chain(dependents).copied().collect();
    let (d, r) = (all.len(), kept.len());
    let correlations = Correlations::of(data, &all, about_zero).values;
    let mut factor: Vec<f64> = (0..r * r).map(|entry| correlations[entry / r * d + entry % r]).collect();
    if cholesky(r, &mut factor).is_err() {
        factor.fill(f64::NAN);
    }
    let of = |dependent: usize| {
        let mut solved = correlations[(r + dependent) * d..][..r].to_vec();
        solve_lower(r, &factor, &mut solved);
        // Solves L^T a = y by back substitution.
        for p in (0..r).rev() {
            let later: f64 = (p + 1..r).map(|q| factor[p * r + q] * solved[q]).sum();
            solved[p] = (solved[p] - later) / factor[p * (r + 1)];
        }
        let spread = |j: usize| data.variance[j].sqrt();
        solved.iter().zip(kept).map(|(slope, &p)| slope * (spread(dependents[dependent]) / spread(p))).collect()
    };
    (0..dependents.len()).map(of).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::data::{DenseRows, Domain, Needs, Sought, TableRows, all_moments};
    use crate::parallel::Cancel;

    fn seen(values: &[f64], d: usize) -> (Moments, Coordinates) {
        let rows = DenseRows::new(values, d);
        let table = TableRows { rows: &rows, weights: None };
        let (domain, cancel) = (Domain::Real.into(), Cancel::default());
        let sought = Sought { resolution: true, ..Sought::of(Needs::Covariance) };
        let data = all_moments(&table, sought, &domain, false, &cancel).expect("finite");
        let found = informative::<f64>(&data, Freedom::Subspace, false).expect("finite");
        (data, found.coordinates)
    }

    proptest! {
        /// Two columns with a constant, their sum and a copy: rows can be reconstructed, also from parts, and scaling
        /// by powers of two changes no bit.
        #[test]
        fn rows_come_back(
            raw in prop::collection::vec((-3.0_f64..3.0, -3.0_f64..3.0), 8..40),
            power in -40_i32..40,
        ) {
            let row = |&(x, y): &(f64, f64)| [7.0, x, x + 2.0 * y, y, 1.0 - 3.0 * x];
            let values: Vec<f64> = raw.iter().flat_map(row).collect();
            let (data, coordinates) = seen(&values, 5);
            prop_assume!(data.variance[1].min(data.variance[3]) > 0.1 && coordinates.rank() == 2);
            prop_assert_eq!(coordinates.constants(), [0]);
            for row in values.chunks_exact(5) {
                let back = coordinates.raise(&coordinates.lower(row, 1));
                prop_assert!(coordinates.strays(row).is_empty());
                for (a, b) in back.iter().zip(row) {
                    prop_assert!((a - b).abs() < 1e-12 * (1.0 + b.abs()), "{back:?} {row:?}");
                }
                let off = [row[0], row[1], row[2], row[3], row[4] + 1.0];
                prop_assert_eq!(coordinates.strays(&off).len(), if coordinates.kept().contains(&4) { 2 } else { 1 });
            }
            let basis = coordinates.basis();
            for p in 0..2 {
                for q in 0..2 {
                    let product: f64 = (0..5).map(|j| basis[j * 2 + p] * basis[j * 2 + q]).sum();
                    prop_assert!((product - f64::from(u8::from(p == q))).abs() < 1e-14);
                }
            }
            let [units, centre, spreads, slopes] = coordinates.to_parts();
            prop_assert_eq!(Coordinates::from_parts(&units, &centre, &spreads, &slopes), Ok(coordinates.clone()));
            let scaled: Vec<f64> = values.iter().map(|value| value * 2_f64.powi(power)).collect();
            let (larger, other) = seen(&scaled, 5);
            prop_assert_eq!(&larger.seen_through(&other).covariance, &data.seen_through(&coordinates).covariance);
            prop_assert_eq!(other.kept(), coordinates.kept());
            let away = other.log_volume() - coordinates.log_volume() - 2.0 * f64::from(power) * std::f64::consts::LN_2;
            prop_assert!(away.abs() < 1e-12 * (1.0 + f64::from(power).abs()));
        }
    }

    #[test]
    fn few_rows_leave_nothing_out() {
        let values: Vec<f64> = (0..40).map(|value| (f64::from(value * value) * 1.7).sin()).collect();
        let (data, coordinates) = seen(&values, 10);
        assert!((data.repeats.n_distinct, coordinates.rank()) == (4, 10));
        assert_eq!(seen(&[values.clone(), values].concat(), 10).1.rank(), 10);
    }

    #[test]
    fn moments_know_the_range_and_the_resolution() {
        let pairs = [0.0, 1.0, 3.0].into_iter().flat_map(|x| [16.0, 32.0, 64.0].into_iter().flat_map(move |y| [x, y]));
        let (data, coordinates) = seen(&pairs.collect::<Vec<_>>(), 2);
        assert_eq!((data.least.clone(), data.most.clone()), (vec![0.0, 16.0], vec![3.0, 64.0]));
        assert_eq!(data.resolution, [1.0, 16.0]);
        assert_eq!(data.seen_through(&coordinates).resolution, [1.0, 1.0]);
        assert_eq!(coordinates.to_parts()[0], [1.0, 16.0]);
    }
}
