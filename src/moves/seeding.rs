//! Initial labels of the parts of a component: k-means++ in the metric that suits the likelihood (mathematics 4.6.1).

use crate::component::ComponentId;
use crate::data::RowUnits;
use crate::error::Result;
use crate::init::Seeder;
use crate::likelihood::Metric;
use crate::linalg::symmetric_eigen;
use crate::model::Model;
use crate::moves::contrast;
use crate::parallel::Cancel;
use crate::rng::Choices;
use crate::simd::Scalar;
use crate::suffstats::Sufficient;

/// Number of Lloyd iterations after seeding.
const LLOYD_STEPS: usize = 3;

/// Returns labels 0 .. `k` for every unit.
///
/// # Errors
/// [`crate::Error::Cancelled`]; [`crate::Error::Numerical`].
pub(super) fn labels<F: Scalar>(
    model: &Model<F>,
    units: &RowUnits<'_, F>,
    metric: &Metric,
    ids: &[ComponentId],
    choices: &mut dyn Choices,
    cancel: &Cancel,
) -> Result<Vec<u32>> {
    match metric {
        Metric::Divergence => {
            let seeding = Seeder { likelihood: model.likelihood.as_ref(), ids, cancel };
            let seeds = seeding.seed_rows(units, choices)?;
            seeding.settle(units, &seeds, LLOYD_STEPS).map(|(_, labels)| labels)
        }
        Metric::Columns(factors) => {
            let points = Points::scaled(model, units, factors);
            let mut centres = points.seeds(ids.len(), choices);
            let mut labels = points.nearest(&centres);
            for _ in 0..LLOYD_STEPS {
                centres = points.means(&labels, &centres);
                labels = points.nearest(&centres);
            }
            Ok(labels)
        }
        Metric::Angle(whiten) => {
            let points = Points::directions(model, units, whiten);
            Ok(points.nearest(&points.seeds(ids.len(), choices)))
        }
    }
}

/// Labels of parts of a component with these sums, in the metric that suits it.
///
/// # Errors
/// [`crate::Error::Cancelled`]; [`crate::Error::Numerical`].
pub(crate) fn part_labels<F: Scalar>(
    model: &Model<F>,
    units: &RowUnits<'_, F>,
    component: Sufficient<'_>,
    ids: &[ComponentId],
    choices: &mut dyn Choices,
    cancel: &Cancel,
) -> Result<Vec<u32>> {
    labels(model, units, &model.likelihood.metric(component)?, ids, choices, cancel)
}

/// Labels 0 and 1 by the side of the plane through the mean, across the leading principal component (mathematics 4.8).
pub(super) fn bisect<F: Scalar>(model: &Model<F>, units: &RowUnits<'_, F>, factors: &[f64]) -> Result<Vec<u32>> {
    let points = Points::scaled(model, units, factors);
    let d = points.d;
    let mean = points.mean();
    let mut covariance = vec![0.0; d * d];
    for (row, mass) in points.rows() {
        for j in 0..d {
            for i in j..d {
                covariance[j * d + i] += mass * (row[i] - mean[i]) * (row[j] - mean[j]);
            }
        }
    }
    // Eigenvalues ascend.
    let (_, vectors) = symmetric_eigen(d, &covariance)?;
    let axis = &vectors[(d - 1) * d..];
    let side = |row: &[f64]| row.iter().zip(&mean).zip(axis).map(|((x, m), u)| (x - m) * u).sum::<f64>() > 0.0;
    Ok(points.rows().map(|(row, _)| u32::from(side(row))).collect())
}

/// Labels 0 and 1 on either side of a plane across the direction in which the rows look least like a normal
/// distribution. `None` if there are too few rows for such a direction to mean anything.
pub(super) fn contrast<F: Scalar>(
    model: &Model<F>,
    units: &RowUnits<'_, F>,
    factors: &[f64],
    choices: &mut dyn Choices,
) -> Result<Option<Vec<u32>>> {
    let d = units.dimension();
    if units.len() < contrast::ROWS_PER_COLUMN * d {
        return Ok(None);
    }
    let points = Points::scaled(model, units, factors);
    contrast::labels(d, &points.values, &points.masses, choices)
}

/// Rows as points with a distance.
struct Points {
    d: usize,
    values: Vec<f64>,
    masses: Vec<f64>,
    /// Whether only the axes of points matter, so that a point and its negative are equal.
    angles: bool,
}

impl Points {
    fn new<F: Scalar>(model: &Model<F>, units: &RowUnits<'_, F>) -> Self {
        let (n, d) = (units.len(), units.dimension());
        let origin: Vec<F> = model.likelihood.origin().iter().map(|&value| F::from_f64(value)).collect();
        let mut rows = vec![F::ZERO; n * d];
        units.read(0..n, &origin, &mut rows);
        let values = rows.iter().map(|value| value.to_f64()).collect();
        Self { d, values, masses: (0..n).map(|unit| units.mass(unit)).collect(), angles: false }
    }

    fn scaled<F: Scalar>(model: &Model<F>, units: &RowUnits<'_, F>, factors: &[f64]) -> Self {
        let mut points = Self::new(model, units);
        let scale = |row: &mut [f64]| row.iter_mut().zip(factors).for_each(|(value, factor)| *value *= factor);
        points.values.chunks_exact_mut(points.d).for_each(scale);
        points
    }

    fn directions<F: Scalar>(model: &Model<F>, units: &RowUnits<'_, F>, whiten: &[f64]) -> Self {
        let mut points = Self::new(model, units);
        let d = points.d;
        for row in points.values.chunks_exact_mut(d) {
            let seen: Vec<f64> = (0..d).map(|i| (0..=i).map(|j| whiten[j * d + i] * row[j]).sum()).collect();
            let length = seen.iter().map(|x| x * x).sum::<f64>().sqrt();
            let unit = if length > 0.0 { length.recip() } else { 0.0 };
            row.iter_mut().zip(seen).for_each(|(to, x)| *to = unit * x);
        }
        Self { angles: true, ..points }
    }

    fn rows(&self) -> impl Iterator<Item = (&[f64], f64)> {
        self.values.chunks_exact(self.d).zip(self.masses.iter().copied())
    }

    fn distance(&self, row: &[f64], centre: &[f64]) -> f64 {
        if self.angles {
            let cosine: f64 = row.iter().zip(centre).map(|(x, c)| x * c).sum();
            return (1.0 - cosine * cosine).max(0.0);
        }
        row.iter().zip(centre).map(|(x, c)| (x - c) * (x - c)).sum()
    }

    /// Chooses `k` rows. Each further row is drawn in proportion to its mass times its distance from the nearest chosen
    /// row.
    fn seeds(&self, k: usize, choices: &mut dyn Choices) -> Vec<Vec<f64>> {
        let row = |index: usize| self.values[index * self.d..][..self.d].to_vec();
        let mut seeds = vec![row(choices.choose(&self.masses))];
        let mut nearest = vec![f64::INFINITY; self.masses.len()];
        while seeds.len() < k {
            let last = &seeds[seeds.len() - 1];
            for ((row, _), nearest) in self.rows().zip(&mut nearest) {
                *nearest = nearest.min(self.distance(row, last));
            }
            let potential: Vec<f64> =
                self.masses.iter().zip(&nearest).map(|(mass, distance)| mass * distance).collect();
            let left: f64 = potential.iter().sum();
            // All rows are seeds already, or the distances overflow.
            if left <= 0.0 || !left.is_finite() {
                break;
            }
            seeds.push(row(choices.choose(&potential)));
        }
        seeds
    }

    /// The nearest centre of every row; ties go to the first.
    fn nearest(&self, centres: &[Vec<f64>]) -> Vec<u32> {
        let nearest = |row: &[f64]| {
            let mut best = (f64::INFINITY, 0);
            for (label, centre) in (0..).zip(centres) {
                let distance = self.distance(row, centre);
                if distance < best.0 {
                    best = (distance, label);
                }
            }
            best.1
        };
        self.rows().map(|(row, _)| nearest(row)).collect()
    }

    /// The mean of the rows of each label; a centre without rows stays unchanged.
    fn means(&self, labels: &[u32], centres: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let mut sums = vec![vec![0.0; self.d]; centres.len()];
        let mut masses = vec![0.0; centres.len()];
        for ((row, mass), &label) in self.rows().zip(labels) {
            masses[label as usize] += mass;
            sums[label as usize].iter_mut().zip(row).for_each(|(sum, x)| *sum += mass * x);
        }
        let mean = |(sum, mass): (Vec<f64>, f64), centre: &Vec<f64>| {
            if mass > 0.0 { sum.into_iter().map(|x| x / mass).collect() } else { centre.clone() }
        };
        sums.into_iter().zip(masses).zip(centres).map(|(sum, centre)| mean(sum, centre)).collect()
    }

    fn mean(&self) -> Vec<f64> {
        self.means(&vec![0; self.masses.len()], &[vec![0.0; self.d]]).swap_remove(0)
    }
}
