//! Estimation of (Normal-)Wishart base measures by evidence (mathematics 10.2).

use crate::error::{Error, Result};
use crate::likelihood::Frame;
use crate::likelihood::evidence::{Caution, Evidence, GUARD, Given, Loosening, dual_root, maximum_at};
use crate::likelihood::mean_evidence::{MeanTerm, mean_precision};
use crate::likelihood::ridge::FLOOR;
use crate::likelihood::wishart::model::{NormalWishartModel, mass, n_rows, with_values};
use crate::likelihood::wishart::normal_wishart::NormalWishart;
use crate::linalg::{
    add_gram_of_lower, cholesky, log_determinant_from_cholesky, mirror, multiply, symmetric_eigen, transposed,
};
use crate::parallel::try_map;
use crate::parameters::{Parameters, Value, table};
use crate::registry::Range;
use crate::special::multivariate_digamma;
use crate::suffstats::Sufficient;

/// The parameter of tails.
pub const TAIL_DOF: &str = "tail_dof";
/// Number of components summed in one task.
const CHUNK: usize = 16;

/// Sums over the posteriors of components.
struct PrecisionMoments {
    number: f64,
    /// sum nu B^-1, (D, D), column-major; zero above the diagonal.
    mean: Vec<f64>,
    /// sum E ln |Lambda|.
    log: f64,
}

impl PrecisionMoments {
    fn none(d: usize) -> Self {
        Self { number: 0.0, mean: vec![0.0; d * d], log: 0.0 }
    }

    /// Sums over all components.
    fn of<M: NormalWishartModel>(model: &M, components: &[Sufficient<'_>]) -> Result<Self> {
        let d = model.prior().dimension();
        let chunks: Vec<&[Sufficient<'_>]> = components.chunks(CHUNK).collect();
        let parts = try_map(chunks.len(), |chunk| {
            let mut sum = Self::none(d);
            for component in chunks[chunk] {
                sum.add(&model.posterior(*component)?, 1.0);
            }
            Ok(sum)
        })?;
        let mut total = Self::none(d);
        for part in parts {
            total.number += part.number;
            total.log += part.log;
            total.mean.iter_mut().zip(part.mean).for_each(|(sum, value)| *sum += value);
        }
        Ok(total)
    }

    fn add(&mut self, posterior: &NormalWishart, times: f64) {
        let d = posterior.dimension();
        self.number += times;
        self.log += times * posterior.expected_log_determinant();
        // B^-1 = L^-T L^-1.
        add_gram_of_lower(d, &posterior.inverse_factor(), times * posterior.dof, &mut self.mean);
    }

    /// Estimates nu_0 together with its optimal scale.
    fn dof(&self, now: f64, d: usize) -> Result<f64> {
        let mut factor: Vec<f64> = self.mean.iter().map(|value| value / self.number).collect();
        decompose(d, &mut factor)?;
        let excess = log_determinant_from_cholesky(d, &factor) - self.log / self.number;
        Ok(dof_at(now, d, |half| log_less_digamma(d, half) - excess))
    }

    /// Estimates nu_0 given the log determinant of the scale.
    fn dof_under(&self, now: f64, d: usize, log_determinant: f64) -> f64 {
        let target = log_determinant + self.log / self.number - d as f64 * std::f64::consts::LN_2;
        dof_at(now, d, |half| target - multivariate_digamma(d, half))
    }

    /// The optimal B_0 given nu_0.
    fn scale(&self, dof: f64, d: usize) -> Result<Vec<f64>> {
        let inverse = inverse(d, &self.mean)?;
        Ok(inverse.into_iter().map(|value| dof * self.number * value).collect())
    }
}

/// Maximises from the sign of a derivative in nu_0 / 2, subject to at least D degrees of freedom, so that the
/// predictive density of a new component has at least one.
fn dof_at(now: f64, d: usize, mut derivative: impl FnMut(f64) -> f64) -> f64 {
    let least = d as f64 - 1.0;
    let found = maximum_at(now - least, Range::closed(1.0, 1e9), |above| derivative(0.5 * (least + above)));
    (least + found).min(1e9)
}

/// `D ln y - psi_D(y)`, which decreases from infinity to zero.
fn log_less_digamma(d: usize, y: f64) -> f64 {
    let columns = d as f64;
    if y > 1e5 * columns {
        return columns * (columns + 1.0) / (4.0 * y);
    }
    columns * y.ln() - multivariate_digamma(d, y)
}

fn decompose(d: usize, matrix: &mut [f64]) -> Result<()> {
    let failed = |_| Error::numerical(None, "the sum of the precisions of all components is not positive definite");
    cholesky(d, matrix).map_err(failed)
}

/// Inverts a positive definite matrix, of which only the lower triangle is read.
fn inverse(d: usize, matrix: &[f64]) -> Result<Vec<f64>> {
    let distribution = NormalWishart::new(1.0, 0.0, vec![0.0; d], matrix.to_vec())?;
    let mut inverse = vec![0.0; d * d];
    add_gram_of_lower(d, &distribution.inverse_factor(), 1.0, &mut inverse);
    mirror(d, &mut inverse);
    Ok(inverse)
}

/// Eigenvalues and eigenvectors of `F^-1 M F^-T`: M in the metric of the initial scale, whose factor is F.
fn seen_from(start: &NormalWishart, matrix: &[f64]) -> Result<(Vec<f64>, Vec<f64>)> {
    let d = start.dimension();
    let turned = transposed(d, &start.solve_lower_matrix(matrix));
    symmetric_eigen(d, &start.solve_lower_matrix(&turned))
}

/// The matrix with these eigenvalues and eigenvectors in the metric of the initial scale.
fn of_eigen(start: &NormalWishart, values: &[f64], vectors: &[f64]) -> Vec<f64> {
    let d = start.dimension();
    let lifted = multiply(d, &start.factor, vectors);
    let mut scaled = lifted.clone();
    scaled.chunks_exact_mut(d).zip(values).for_each(|(vector, value)| vector.iter_mut().for_each(|x| *x *= value));
    multiply(d, &scaled, &transposed(d, &lifted))
}

/// The scale that maximises the evidence among scales with eigenvalues of at least `floor`, in the metric of the
/// initial scale (mathematics 10.6).
fn above_floor(scale: Vec<f64>, floor: f64, start: &NormalWishart) -> Result<Vec<f64>> {
    let d = start.dimension();
    let mut rest: Vec<f64> = scale.iter().zip(start.scale()).map(|(b, v)| b - floor * v).collect();
    if cholesky(d, &mut rest).is_ok() {
        return Ok(scale);
    }
    let (mut values, vectors) = seen_from(start, &scale)?;
    for value in &mut values {
        *value = value.max(floor);
    }
    Ok(of_eigen(start, &values, &vectors))
}

/// Rebuilds the model with other parameters of its base measure.
fn rebuilt<M: NormalWishartModel>(model: &M, parameters: &Parameters) -> Result<M> {
    M::build(parameters, Frame { origin: NormalWishartModel::origin(model).to_vec(), ..Frame::default() })
}

/// Estimates the precision of the prior mean from the distances of the components' means, each in the metric of its own
/// scatter.
fn kappa<M: NormalWishartModel>(model: &M, occupied: &[Sufficient<'_>], start: &NormalWishart) -> Result<f64> {
    let prior = model.prior();
    let (kappa_0, columns) = (prior.inverse_kappa.recip(), prior.dimension() as f64);
    let terms = try_map(occupied.len(), |k| {
        let (n, posterior) = (mass(model, occupied[k]), model.posterior(occupied[k])?);
        // With B = A + t d d^T and s = d^T B^-1 d: d^T A^-1 d = s / (1 - t s).
        let (t, stretch) = (kappa_0 * n / (kappa_0 + n), (kappa_0 + n) / n);
        let s = stretch * stretch * posterior.squared_length(&posterior.difference(prior));
        let curve = s / (1.0 - t * s).max(f64::EPSILON);
        Ok(MeanTerm { n, columns, slope: posterior.dof * curve, curve })
    })?;
    Ok(mean_precision(kappa_0, start.inverse_kappa.recip(), columns, &terms))
}

impl<M: NormalWishartModel> Evidence for M {
    fn cautions(&self) -> Vec<(String, Caution)> {
        vec![("dof".to_owned(), Caution::Kept), ("mean_precision".to_owned(), Caution::Capped)]
    }

    /// Bounds the rounding error of the log determinant of the scale. A scatter formed by subtracting squares has their
    /// rounding error, which matters relative to the smallest variance that the scale allows.
    fn rounding(&self, start: &Parameters, mass: f64, n_components: usize) -> f64 {
        let (d, prior) = (self.prior().dimension(), self.prior());
        let Ok(Some((_, initial))) = start.square("scale") else { return 0.0 };
        let share = |j: usize| initial[j * (d + 1)] / prior.factor[j * (d + 1)].powi(2);
        let worst = (0..d).map(share).fold(1.0, f64::max);
        let dofs = mass + n_components as f64 * prior.dof;
        f64::EPSILON * worst * d as f64 * (1.0 + mass) * dofs
    }

    fn divergence_of(&self, start: &Parameters) -> Result<f64> {
        Ok(rebuilt(self, start)?.prior().divergence_from(self.prior()))
    }

    fn estimate(&self, given: &Given<'_>) -> Result<Parameters> {
        let (d, occupied) = (self.prior().dimension(), given.occupied());
        let mut found = given.parameters.clone();
        if occupied.is_empty() {
            return Ok(found);
        }
        if let Some(tail) = self.tail().filter(|_| given.is_free(TAIL_DOF)) {
            let seen: Vec<_> = occupied.iter().map(|component| with_values(self, *component)).collect();
            found = found.with([(TAIL_DOF, Value::Number(tail.estimate(&seen)))]);
        }
        let start = rebuilt(self, given.start)?;
        let mut model = rebuilt(self, &found)?;
        if given.is_free("mean_precision") && self.n_sums() > 0 {
            found = found.with([("mean_precision", Value::Number(kappa(&model, &occupied, start.prior())?))]);
            model = rebuilt(self, &found)?;
        }
        let (scale_is_free, dof_is_free) = (given.is_free("scale"), given.is_free("dof"));
        if !scale_is_free && !dof_is_free {
            return Ok(found);
        }
        let mut moments = PrecisionMoments::of(&model, &occupied)?;
        let n: f64 = occupied.iter().map(|component| n_rows(self, *component)).sum();
        if scale_is_free && n < model.prior().dof * occupied.len() as f64 {
            let scale = dual_scale(&model, &moments, start.prior(), &occupied)?;
            found = found.with([("scale", table(d, scale))]);
            model = rebuilt(self, &found)?;
            moments = PrecisionMoments::of(&model, &occupied)?;
        }
        moments.add(start.prior(), GUARD);
        let now = model.prior().dof;
        let dof = match (scale_is_free, dof_is_free) {
            (true, true) => moments.dof(now, d)?,
            (false, true) => moments.dof_under(now, d, model.prior().log_determinant),
            _ => now,
        };
        if dof_is_free {
            found = found.with([("dof", Value::Number(dof))]);
        }
        if scale_is_free {
            let scale = above_floor(moments.scale(dof, d)?, given.floor() * dof, start.prior())?;
            found = found.with([("scale", table(d, symmetric(d, &scale)))]);
        }
        Ok(found)
    }

    fn loose(&self, given: &Given<'_>, by: Loosening<'_>) -> Result<Option<Parameters>> {
        if !given.is_free("scale") {
            return Ok(None);
        }
        let (start, prior) = (rebuilt(self, given.start)?, self.prior());
        let d = prior.dimension();
        let dof = if given.is_free("dof") { by.certainty * start.prior().dof } else { prior.dof };
        // The expected covariance is the scale over this.
        let excess = |dof: f64| (dof - d as f64 - 1.0).max(dof / (d as f64 + 2.0));
        let times = excess(dof) / excess(prior.dof);
        let shrunk = |(index, value)| times * value / (by.divisor(index / d) * by.divisor(index % d)).sqrt();
        let scale = prior.scale().into_iter().enumerate().map(shrunk).collect();
        let scale = above_floor(scale, given.floor() * dof, start.prior())?;
        let mut found = given.parameters.with([("dof", Value::Number(dof)), ("scale", table(d, symmetric(d, &scale)))]);
        if self.n_sums() > 0 {
            let precision = given.loose_precision(prior.inverse_kappa.recip(), by);
            found = found.with([("mean_precision", Value::Number(precision))]);
        }
        Ok(Some(found))
    }
}

/// Updates the scale by the dual bound, which converges fast where components have few rows relative to nu_0. Solves `B
/// P B + m B = Q` with `Q = sum nu (B_0 - B_0 B^-1 B_0)`, `m = N - tau nu_0` and `P = tau nu_p B_p^-1` from the guard.
fn dual_scale<M: NormalWishartModel>(
    model: &M,
    moments: &PrecisionMoments,
    start: &NormalWishart,
    occupied: &[Sufficient<'_>],
) -> Result<Vec<f64>> {
    let prior = model.prior();
    let (d, scale) = (prior.dimension(), prior.scale());
    let dofs: f64 = occupied.iter().map(|component| prior.dof + n_rows(model, *component)).sum();
    let mut mean = moments.mean.clone();
    mirror(d, &mut mean);
    let both = multiply(d, &multiply(d, &scale, &mean), &scale);
    let q: Vec<f64> = scale.iter().zip(&both).map(|(b, bmb)| dofs * b - bmb).collect();
    let (mut values, vectors) = seen_from(start, &symmetric(d, &q))?;
    let n: f64 = occupied.iter().map(|component| n_rows(model, *component)).sum();
    let of_guard = GUARD * start.dof;
    for value in &mut values {
        *value = dual_root(n - GUARD * prior.dof, of_guard, value.max(0.0)).max(FLOOR * prior.dof);
    }
    Ok(symmetric(d, &of_eigen(start, &values, &vectors)))
}

/// The mean of a matrix and its transpose.
fn symmetric(d: usize, matrix: &[f64]) -> Vec<f64> {
    matrix.iter().zip(transposed(d, matrix)).map(|(a, b)| 0.5 * (a + b)).collect()
}
