//! The (Normal-)Wishart distribution of one component, prior or posterior (mathematics 1a and 1b).
//!
//! `Lambda ~ W(nu, B^-1)` with E[Lambda] = nu B^-1 and `mu | Lambda ~ N(m, (kappa Lambda)^-1)`. A zero-mean model is
//! the limit 1 / kappa = 0 and m = 0; every formula below keeps its form.

use std::f64::consts::{LN_2, PI};

use rand::RngExt;
use rand_distr::{ChiSquared, Distribution, StandardNormal};

use crate::error::{Error, Result};
use crate::laws::{Elliptical, Law};
use crate::likelihood::{Estimate, ParameterSource, RowSource, row_by_row};
use crate::linalg::{
    LANES, LowerMatrix, cholesky, invert_lower, log_determinant_from_cholesky, multiply, solve_lower,
    solve_lower_matrix, square_of_lower, transposed,
};
use crate::rng::Generator;
use crate::scoring::{Link, Quadratic};
use crate::special::{ln_gamma, ln_multivariate_gamma, multivariate_digamma};

/// Number of row products that are summed sequentially before block sums are added.
const ADDED: f64 = 256.0;

fn chi_squared(dof: f64) -> Result<ChiSquared<f64>> {
    ChiSquared::new(dof).map_err(|_| Error::numerical(None, format!("a posterior with {dof} degrees of freedom")))
}

/// Draws the inverse of a scale of rows, `f / chi^2` with f degrees of freedom; 1 without.
fn inverse_scales(tail: Option<f64>) -> Result<impl Fn(&mut Generator) -> f64 + Send + Sync> {
    let scaled = tail.map(|f| Ok((f, chi_squared(f)?))).transpose()?;
    Ok(move |generator: &mut Generator| scaled.as_ref().map_or(1.0, |(f, squares)| f / squares.sample(generator)))
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Draws the rows of `L A^-T`, (D, D), whose product with its transpose is inverse Wishart with the scale `L L^T`.
fn inverse_wishart_root(factor: &[f64], squares: &[ChiSquared<f64>], generator: &mut Generator) -> Vec<f64> {
    let d = squares.len();
    let (mut lower, mut inverse) = (vec![0.0; d * d], vec![0.0; d * d]);
    for (j, square) in squares.iter().enumerate() {
        lower[j * (d + 1)] = square.sample(generator).sqrt();
        lower[j * (d + 1) + 1..(j + 1) * d].fill_with(|| generator.sample(StandardNormal));
    }
    invert_lower(d, &lower, &mut inverse);
    let entry = |i: usize, k: usize| (0..=i.min(k)).map(|m| factor[m * d + i] * inverse[m * d + k]).sum();
    (0..d * d).map(|index| entry(index / d, index % d)).collect()
}

/// Parameters of one component, prior or posterior.
#[derive(Debug, Clone, PartialEq)]
pub struct NormalWishart {
    /// nu.
    pub dof: f64,
    /// 1 / kappa.
    pub inverse_kappa: f64,
    /// m, relative to the origin of the rows.
    pub mean: Vec<f64>,
    /// Cholesky factor of B, lower, column-major.
    pub factor: Vec<f64>,
    /// ln |B|.
    pub log_determinant: f64,
}

impl NormalWishart {
    /// From nu, 1 / kappa, m and the full matrix B (its lower triangle).
    ///
    /// # Errors
    /// [`Error::Numerical`] where B has no Cholesky factor.
    pub fn new(dof: f64, inverse_kappa: f64, mean: Vec<f64>, mut scale: Vec<f64>) -> Result<Self> {
        let d = mean.len();
        cholesky(d, &mut scale).map_err(|failure| {
            Error::numerical(
                None,
                format!(
                    "the scale matrix of a component is not positive definite (pivot {} of {d}); \
                     give a larger `scale`, or, for data far from zero, a likelihood with a free mean",
                    failure.pivot
                ),
            )
        })?;
        let log_determinant = log_determinant_from_cholesky(d, &scale);
        Ok(Self { dof, inverse_kappa, mean, factor: scale, log_determinant })
    }

    pub fn dimension(&self) -> usize {
        self.mean.len()
    }

    /// The full matrix B.
    pub fn scale(&self) -> Vec<f64> {
        square_of_lower(self.dimension(), &self.factor)
    }

    /// c(lambda) without `D/2 ln 2 pi - D/2 ln kappa`: the log-normaliser of the Wishart.
    pub fn wishart_cumulant(&self) -> f64 {
        let d = self.dimension();
        let half = 0.5 * self.dof;
        ln_multivariate_gamma(d, half) + half * d as f64 * LN_2 - half * self.log_determinant
    }

    /// Bound on the rounding error of the log determinant in [`Self::wishart_cumulant`], nats. Each squared diagonal
    /// entry of the factor is the remainder of an entry of B after subtraction, so the last digits of the entry are
    /// lost. The remainder is small if rows of mean zero lie far out. Rows are added in blocks of [`ADDED`], so the
    /// error of an entry is a random walk of that many steps.
    pub fn rounding_of_cumulant(&self) -> f64 {
        let d = self.dimension();
        let square = |i: usize, k: usize| self.factor[k * d + i].powi(2);
        let shares = (0..d).map(|i| (0..=i).map(|k| square(i, k)).sum::<f64>() / square(i, i));
        0.5 * self.dof * f64::EPSILON * ADDED.sqrt() * shares.sum::<f64>()
    }

    /// ln(kappa_0 / kappa) of prior and posterior; 0 if the mean is known exactly.
    pub fn ln_kappa_ratio(&self, prior: &Self) -> f64 {
        if prior.inverse_kappa > 0.0 { (self.inverse_kappa / prior.inverse_kappa).ln() } else { 0.0 }
    }

    /// c(lambda) - c(lambda_0), mathematics 1a.
    pub fn cumulant_above(&self, prior: &Self) -> f64 {
        let d = self.dimension() as f64;
        self.wishart_cumulant() - prior.wishart_cumulant() + 0.5 * d * self.ln_kappa_ratio(prior)
    }

    /// E ln |Lambda|.
    pub fn expected_log_determinant(&self) -> f64 {
        let d = self.dimension();
        multivariate_digamma(d, 0.5 * self.dof) + d as f64 * LN_2 - self.log_determinant
    }

    /// L^-1, lower, column-major.
    pub fn inverse_factor(&self) -> Vec<f64> {
        let d = self.dimension();
        let mut inverse = vec![0.0; d * d];
        invert_lower(d, &self.factor, &mut inverse);
        inverse
    }

    /// |L^-1 v|^2.
    pub fn squared_length(&self, vector: &[f64]) -> f64 {
        let mut solved = vector.to_vec();
        solve_lower(self.dimension(), &self.factor, &mut solved);
        solved.iter().map(|x| x * x).sum()
    }

    /// L^-1 M, column-major.
    pub fn solve_lower_matrix(&self, other: &[f64]) -> Vec<f64> {
        let mut solved = other.to_vec();
        solve_lower_matrix(self.dimension(), &self.factor, &mut solved);
        solved
    }

    /// tr(B^-1 B_0) = |L^-1 L_0|_F^2.
    pub fn trace_of_prior(&self, prior: &Self) -> f64 {
        self.solve_lower_matrix(&prior.factor).iter().map(|x| x * x).sum()
    }

    pub fn difference(&self, other: &Self) -> Vec<f64> {
        self.mean.iter().zip(&other.mean).map(|(a, b)| a - b).collect()
    }

    /// KL(q || p) of mathematics 1a.
    pub fn divergence_from(&self, prior: &Self) -> f64 {
        let d = self.dimension() as f64;
        let wishart = 0.5 * (self.dof - prior.dof) * self.expected_log_determinant()
            - 0.5 * self.dof * (d - self.trace_of_prior(prior))
            + prior.wishart_cumulant()
            - self.wishart_cumulant();
        if prior.inverse_kappa == 0.0 {
            return wishart;
        }
        let ratio = self.inverse_kappa / prior.inverse_kappa;
        let mean = 0.5 * d * (ratio - 1.0 - ratio.ln())
            + 0.5 * self.dof / prior.inverse_kappa * self.squared_length(&self.difference(prior));
        mean + wishart
    }

    /// log p(x) at the point mean m and precision `times B^-1`. A nonempty `blur` is added to the diagonal of the
    /// covariance.
    pub fn at_precision(&self, times: f64, blur: &[f64], log_weight: f64) -> Quadratic {
        let d = self.dimension() as f64;
        let inverse = if blur.is_empty() { Vec::new() } else { self.inverse_factor() };
        let columns = inverse.chunks_exact(self.dimension()).zip(blur);
        // Columns of L^-1: since B^-1 = L^-T L^-1, a diagonal entry of B^-1 is the squared norm of a column.
        let blurred =
            times * columns.map(|(column, variance)| variance * column.iter().map(|x| x * x).sum::<f64>()).sum::<f64>();
        let constant = 0.5 * (self.log_determinant_at(times) - d * (2.0 * PI).ln() - blurred) + log_weight;
        Quadratic {
            factor: self.inverse_factor(),
            scale: times.sqrt(),
            centre: self.mean.clone(),
            constant,
            link: Link::Gaussian,
        }
    }

    /// ln |times B^-1|.
    pub fn log_determinant_at(&self, times: f64) -> f64 {
        self.dimension() as f64 * times.ln() - self.log_determinant
    }

    /// `nu / 2 tr(B^-1 M)`: the loss of E log p through squares M about the mean, such as the rounding covariance
    /// (mathematics 10.5); 0 for an empty M.
    pub fn cost_of_squares(&self, squares: &[f64]) -> f64 {
        let d = self.dimension();
        if squares.is_empty() {
            return 0.0;
        }
        // tr(L^-1 M L^-T).
        let turned = transposed(d, &self.solve_lower_matrix(squares));
        0.5 * self.dof * self.solve_lower_matrix(&turned).iter().step_by(d + 1).sum::<f64>()
    }

    /// The factor of B^-1 in a point estimate of the precision, from the posterior (mathematics 1.8): for its mean, or
    /// for the joint mode in mean and precision.
    pub fn times(&self, estimate: Estimate) -> f64 {
        let d = self.dimension() as f64;
        match estimate {
            Estimate::Mode if self.inverse_kappa > 0.0 => self.dof - d,
            Estimate::Mode => self.dof - d - 1.0,
            Estimate::Mean | Estimate::MaximumLikelihood => self.dof,
        }
    }

    /// ln p(mu, Lambda) at the mean of `point` and the precision `times B^-1`; `self` is the prior.
    pub fn log_density(&self, point: &Self, times: f64) -> f64 {
        let d = self.dimension() as f64;
        let log_determinant = point.log_determinant_at(times);
        let wishart = 0.5 * (self.dof - d - 1.0) * log_determinant
            - 0.5 * times * point.trace_of_prior(self)
            - self.wishart_cumulant();
        if self.inverse_kappa == 0.0 {
            return wishart;
        }
        let distance = times * point.squared_length(&point.difference(self));
        wishart + 0.5 * (log_determinant - d * (2.0 * PI * self.inverse_kappa).ln() - distance / self.inverse_kappa)
    }

    /// E log p(x) + `log_weight` as a function of the row (mathematics 1a).
    pub fn expected(&self, log_weight: f64) -> Quadratic {
        let d = self.dimension() as f64;
        let constant =
            0.5 * (self.expected_log_determinant() - d * (2.0 * PI).ln() - d * self.inverse_kappa) + log_weight;
        Quadratic {
            factor: self.inverse_factor(),
            scale: self.dof.sqrt(),
            centre: self.mean.clone(),
            constant,
            link: Link::Gaussian,
        }
    }

    /// The part of log p(x | lambda) that is independent of the row, from nu, 1 / kappa and ln |B|.
    pub fn predictive_constant(d: usize, dof: f64, inverse_kappa: f64, log_determinant: f64) -> f64 {
        let (d, half) = (d as f64, 0.5 * (dof + 1.0));
        ln_gamma(half) - ln_gamma(half - 0.5 * d) - 0.5 * (d * PI.ln() + d * inverse_kappa.ln_1p() + log_determinant)
    }

    /// log p(x | lambda) + `log_weight`: a Student t with nu - D + 1 degrees of freedom (mathematics 1a).
    pub fn predictive(&self, log_weight: f64) -> Quadratic {
        let half = 0.5 * (self.dof + 1.0);
        let of_rows = Self::predictive_constant(self.dimension(), self.dof, self.inverse_kappa, self.log_determinant);
        let constant = of_rows + log_weight;
        Quadratic {
            factor: self.inverse_factor(),
            scale: (1.0 + self.inverse_kappa).recip().sqrt(),
            centre: self.mean.clone(),
            constant,
            link: Link::StudentT { half },
        }
    }

    /// Negative divergence of a row's smoothed covariance from this component's, for a known mean, without the term of
    /// [`NormalWishart::divergence_row_term`] (mathematics 5.2): `KL(N(0, S_n) || N(0, B / nu))` with `S_n = (B_0 + x
    /// x^T) / (nu_0 + 1)`.
    pub fn divergence(&self, prior: &Self) -> Quadratic {
        let d = self.dimension() as f64;
        let row_dof = prior.dof + 1.0;
        let constant = -0.5
            * (self.dof * self.trace_of_prior(prior) / row_dof - prior.log_determinant
                + d * row_dof.ln()
                + self.log_determinant
                - d * self.dof.ln()
                - d);
        Quadratic {
            factor: self.inverse_factor(),
            scale: (self.dof / row_dof).sqrt(),
            centre: self.mean.clone(),
            constant,
            link: Link::Gaussian,
        }
    }

    /// The term common to all divergences of a row, `-1/2 ln(1 + |x|^2_(B_0))`, to subtract from the scores of
    /// [`NormalWishart::divergence`]. `self` is the prior.
    pub fn divergence_row_term(&self) -> Quadratic {
        Quadratic {
            factor: self.inverse_factor(),
            scale: 1.0,
            centre: self.mean.clone(),
            constant: 0.0,
            link: Link::StudentT { half: 0.5 },
        }
    }

    /// Draws rows of the predictive: `m + L z sqrt((1/u + 1/kappa) / chi^2)`, `chi^2` with nu - D + 1 degrees of
    /// freedom, and a scale u with `tail` degrees of freedom; u = 1 without.
    pub fn predictive_rows(&self, tail: Option<f64>, origin: &[f64]) -> Result<RowSource<'static>> {
        let (dof, inverse_kappa) = (self.dof - self.dimension() as f64 + 1.0, self.inverse_kappa);
        let (chi_squared, inverse_scale) = (chi_squared(dof)?, inverse_scales(tail)?);
        Ok(self.scaled_rows(origin, move |generator| {
            let spread = inverse_scale(generator) + inverse_kappa;
            (spread / chi_squared.sample(generator)).sqrt()
        }))
    }

    /// Draws rows `m + scale L z / sqrt(u)` with a scale u as in [`NormalWishart::predictive_rows`].
    pub fn rows_at(&self, scale: f64, tail: Option<f64>, origin: &[f64]) -> Result<RowSource<'static>> {
        let inverse_scale = inverse_scales(tail)?;
        Ok(self.scaled_rows(origin, move |generator| scale * inverse_scale(generator).sqrt()))
    }

    /// Draws the mean, unless it is known, and the covariance: `L A^-T A^-1 L^T` with a lower-triangular A of standard
    /// normal entries and chi diagonal, chi^2 with nu - i degrees of freedom (mathematics 6.5).
    pub fn parameter_source(&self, origin: &[f64], has_mean: bool) -> Result<ParameterSource<'static>> {
        let (d, factor) = (self.dimension(), self.factor.clone());
        let squares = (0..d).map(|i| chi_squared(self.dof - i as f64)).collect::<Result<Vec<_>>>()?;
        let centre: Vec<f64> = self.mean.iter().zip(origin).map(|(m, o)| m + o).filter(|_| has_mean).collect();
        let spread = self.inverse_kappa.sqrt();
        let shapes = if has_mean { vec![("mean".to_owned(), vec![d])] } else { Vec::new() };
        let rows = row_by_row(centre.len() + d * d, move |row, generator| {
            let root = inverse_wishart_root(&factor, &squares, generator);
            let (mean, covariance) = row.split_at_mut(centre.len());
            if has_mean {
                let normals: Vec<f64> = (0..d).map(|_| generator.sample(StandardNormal)).collect();
                for ((to, centre), root_row) in mean.iter_mut().zip(&centre).zip(root.chunks_exact(d)) {
                    *to = centre + spread * dot(root_row, &normals);
                }
            }
            for (to, root_row) in covariance.chunks_exact_mut(d).zip(root.chunks_exact(d)) {
                to.iter_mut().zip(root.chunks_exact(d)).for_each(|(to, other)| *to = dot(root_row, other));
            }
        });
        Ok(ParameterSource { shapes: [shapes, vec![("covariance".to_owned(), vec![d, d])]].concat(), rows })
    }

    /// log p(x) + `log_weight` at a drawn mean and precision. With a lower-triangular G of standard normal entries and
    /// chi diagonal, chi^2 with nu - D + 1 + i degrees of freedom, the precision is R^T R with R = G L^-1 (mathematics
    /// 8.11).
    pub fn drawn(&self, log_weight: f64, generator: &mut Generator) -> Result<Quadratic> {
        let d = self.dimension();
        let mut lower = vec![0.0; d * d];
        for j in 0..d {
            lower[j * (d + 1)] = chi_squared(self.dof - (d - 1 - j) as f64)?.sample(generator).sqrt();
            lower[j * (d + 1) + 1..(j + 1) * d].fill_with(|| generator.sample(StandardNormal));
        }
        let factor = multiply(d, &lower, &self.inverse_factor());
        let log_determinant = 2.0 * factor.iter().step_by(d + 1).map(|x| x.ln()).sum::<f64>();
        let mut away: Vec<f64> = (0..d).map(|_| generator.sample(StandardNormal)).collect();
        solve_lower(d, &factor, &mut away);
        let spread = self.inverse_kappa.sqrt();
        let centre = self.mean.iter().zip(away).map(|(m, away)| m + spread * away).collect();
        let constant = 0.5 * (log_determinant - d as f64 * (2.0 * PI).ln()) + log_weight;
        Ok(Quadratic { factor, scale: 1.0, centre, constant, link: Link::Gaussian })
    }

    /// The predictive distribution: a Student t with nu - D + 1 degrees of freedom.
    pub fn predictive_law(&self, origin: &[f64]) -> Law {
        let dof = self.dof - self.dimension() as f64 + 1.0;
        self.law(((1.0 + self.inverse_kappa) / dof).sqrt(), dof, origin)
    }

    /// The distribution with location m and scale matrix `scale^2 B`.
    pub fn law(&self, scale: f64, dof: f64, origin: &[f64]) -> Law {
        let place = self.mean.iter().zip(origin).map(|(m, o)| m + o).collect();
        let factor = self.factor.iter().map(|value| scale * value).collect();
        Law::Joint(Elliptical::from_factor(place, factor, dof))
    }

    fn scaled_rows(
        &self,
        origin: &[f64],
        scale: impl Fn(&mut Generator) -> f64 + Send + Sync + 'static,
    ) -> RowSource<'static> {
        let d = self.dimension();
        let centre: Vec<f64> = self.mean.iter().zip(origin).map(|(m, o)| m + o).collect();
        let factor = LowerMatrix::new(d, &self.factor);
        Box::new(move |rows, generator| {
            let (mut scales, mut vectors) = ([0.0; LANES], vec![[0.0; LANES]; d]);
            for group in rows.chunks_mut(LANES * d) {
                for (lane, lane_scale) in scales.iter_mut().enumerate().take(group.len() / d) {
                    *lane_scale = scale(generator);
                    for column in &mut vectors {
                        column[lane] = generator.sample(StandardNormal);
                    }
                }
                factor.multiply(&mut vectors);
                for ((lane, row), scale) in group.chunks_exact_mut(d).enumerate().zip(scales) {
                    let values = centre.iter().zip(&vectors);
                    row.iter_mut().zip(values).for_each(|(to, (centre, column))| *to = centre + scale * column[lane]);
                }
            }
        })
    }
}
