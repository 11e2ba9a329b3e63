//! The first two moments of the data, needed for default hyper-parameters and for centring.

use std::sync::Arc;

use crate::data::first_reading::{Extremes, First, FirstSums};
use crate::data::histogram::Histogram;
use crate::data::repeats::{RepeatedRows, Sketch};
use crate::data::second_reading::{Second, Squares};
use crate::data::{Allowed, Dataset, Needs, Reading, Sought};
use crate::error::{Error, Result};
use crate::hash::fingerprint;
use crate::linalg::unpack;
use crate::parallel::Cancel;
use crate::room::check_room;
use crate::simd::Scalar;

/// The smallest sum or mean of squares with full precision: below it the loss to subnormal numbers exceeds rounding.
const LEAST_SQUARE: f64 = f64::MIN_POSITIVE / f64::EPSILON;

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
    /// Rows that repeat as wholes, if rows are dense.
    pub repeats: RepeatedRows,
    /// The width of the cells for which the values of a rounded column stand, 0 for a continuous one, (D,); zeros if no
    /// likelihood requires it.
    pub resolution: Vec<f64>,
    /// How often each column has each count, if a likelihood requires it.
    pub values: Option<Arc<Histogram>>,
    /// A number that identifies these rows and weights, in this order.
    pub fingerprint: u64,
    /// The same of each shard, if the data come in shards; otherwise of all rows.
    pub prints: Vec<u64>,
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
    all_moments(data, Sought::of(needs), allowed, missing, cancel)
}

/// As [`moments`], with all that is sought.
pub fn all_moments<F: Scalar>(
    data: &dyn Dataset<F>,
    sought: Sought,
    allowed: &Allowed,
    missing: bool,
    cancel: &Cancel,
) -> Result<Moments> {
    let (d, needs) = (data.n_columns(), sought.needs);
    let (room, what) = if needs == Needs::Covariance { (4 * d, "D x D matrices") } else { (8, "single rows") };
    // Moments are computed in `fit`, where the argument is called `data`.
    check_room(room.saturating_mul(d), |_| {
        Error::invalid("data", format!("{d} columns"), format!("of few enough columns that {what} fit in memory"))
    })?;
    let n_distinct = if needs == Needs::Covariance { d + 2 } else { 0 };
    let first = First { sought, n_distinct, allowed: allowed.clone(), missing, pivot: None };
    let means = Means::of(data, first, cancel)?;
    let (variance, covariance) = match needs {
        Needs::Means => (Vec::new(), Vec::new()),
        Needs::Variances => {
            let squares = squares(data, &means, false, cancel)?;
            let masses = &means.masses;
            let variance = squares.iter().zip(masses).map(|(sum, &mass)| if mass > 0.0 { sum / mass } else { 0.0 });
            (variance.collect(), Vec::new())
        }
        Needs::Covariance => {
            let scatter = squares(data, &means, true, cancel)?;
            // Sums over the rows that have both columns, so divided that the matrix stays positive semidefinite.
            let mass = |entry: usize| (means.masses[entry / d] * means.masses[entry % d]).sqrt();
            let mean = |(entry, value): (usize, f64)| if mass(entry) > 0.0 { value / mass(entry) } else { 0.0 };
            let covariance: Vec<f64> = scatter.into_iter().enumerate().map(mean).collect();
            (covariance.iter().step_by(d + 1).copied().collect(), covariance)
        }
    };
    let Means { n_rows, mass, mean, largest, least, most, repeats, resolution, values, prints, .. } = means;
    let fingerprint = if let [only] = prints[..] { only } else { fingerprint(0, prints.iter().copied()) };
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
        repeats,
        resolution,
        values,
        fingerprint,
        prints,
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
    repeats: RepeatedRows,
    resolution: Vec<f64>,
    values: Option<Arc<Histogram>>,
    prints: Vec<u64>,
}

impl Means {
    fn of<F: Scalar>(data: &dyn Dataset<F>, first: First, cancel: &Cancel) -> Result<Self> {
        let (d, sought, are_real) = (data.n_columns(), first.sought, first.allowed.are_real());
        let sums = data.sum(&Reading::First(first), cancel)?.into_first()?;
        let FirstSums {
            n_rows, pivot, mass, sums: mut mean, absent, largest, extremes, repeats, distinct, prints, ..
        } = sums;
        let values = sought.values.then(|| Arc::new(Histogram::from(sums.counters)));
        let masses: Vec<f64> = absent.iter().map(|absent| mass - absent).collect();
        let pivot = pivot.unwrap_or_else(|| vec![0.0; d]);
        for ((value, zero), &mass) in mean.iter_mut().zip(pivot).zip(&masses) {
            *value = zero + if mass > 0.0 { *value / mass } else { 0.0 };
        }
        let Extremes { least, most } = extremes;
        let repeats = if sought.repeats { judged(data, &repeats, are_real)? } else { repeats.judge::<F>(&[], d, true) };
        let resolution = distinct.resolution::<F>(repeats.rows_of_mass(mass));
        Ok(Self { n_rows, mass, masses, mean, largest, least, most, repeats, resolution, values, prints })
    }
}

/// What is known of repeated rows, after a look at some of them if they matter.
fn judged<F: Scalar>(data: &dyn Dataset<F>, sketch: &Sketch, are_real: bool) -> Result<RepeatedRows> {
    let d = data.n_columns();
    // Few values of sparse rows tell why they repeat.
    if !sketch.may_hide() || data.is_sparse() {
        return Ok(sketch.judge::<F>(&[], d, are_real));
    }
    let units = data.pick(&sketch.numbers())?;
    let mut values = vec![F::ZERO; units.len() * d];
    units.read(0..units.len(), &vec![F::ZERO; d], &mut values);
    Ok(sketch.judge(&values, d, are_real))
}

/// The sums of squares of the second reading.
fn squares<F: Scalar>(data: &dyn Dataset<F>, means: &Means, products: bool, cancel: &Cancel) -> Result<Vec<f64>> {
    let (d, second) = (means.mean.len(), Second { means: means.mean.clone(), products });
    let Squares { sums, any_moved } = data.sum(&Reading::Second(second), cancel)?.into_second()?;
    let sums = if products { unpack(d, &sums) } else { sums };
    let trace = if products { (0..d).map(|i| sums[i * d + i]).sum() } else { sums.iter().sum() };
    check_squares::<F>(trace, d as f64 * means.mass, any_moved)?;
    Ok(sums)
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
