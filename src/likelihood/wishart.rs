//! The (Normal-)Wishart posterior that the Gaussian likelihoods share (spec 1a and 1b).
//!
//! `Lambda ~ W(nu, B^-1)` with E[Lambda] = nu B^-1 and `mu | Lambda ~ N(m, (kappa Lambda)^-1)`. A zero-mean model is
//! the limit of a mean known exactly, 1 / kappa = 0 and m = 0, in which every formula below keeps its form.

use std::f64::consts::{LN_2, PI};

use rand::RngExt;
use rand_distr::{ChiSquared, Distribution, StandardNormal};

use crate::data::Moments;
use crate::error::{Error, Result};
use crate::likelihood::quadratic::{Link, Quadratic, QuadraticScorer};
use crate::likelihood::scoring::Scorer;
use crate::likelihood::{Conjugate, Density, Likelihood};
use crate::linalg::{add_moments, cholesky, invert_lower, log_determinant_from_cholesky, packed_len, solve_lower};
use crate::parallel::try_map;
use crate::parameters::{Parameters, Value, vector};
use crate::rng::Generator;
use crate::simd::{Lines, Scalar, sum};
use crate::special::{ln_gamma, ln_multivariate_gamma, multivariate_digamma};
use crate::suffstats::Sufficient;

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

    fn dimension(&self) -> usize {
        self.mean.len()
    }

    /// The full matrix B, row by row.
    pub fn scale(&self) -> Vec<f64> {
        let d = self.dimension();
        let l = &self.factor;
        let mut full = vec![0.0; d * d];
        for i in 0..d {
            for j in 0..=i {
                let value = (0..=j).map(|k| l[k * d + i] * l[k * d + j]).sum();
                full[i * d + j] = value;
                full[j * d + i] = value;
            }
        }
        full
    }

    /// c(lambda) without `D/2 ln 2 pi - D/2 ln kappa`: the log-normaliser of the Wishart.
    fn wishart_cumulant(&self) -> f64 {
        let d = self.dimension();
        let half = 0.5 * self.dof;
        ln_multivariate_gamma(d, half) + half * d as f64 * LN_2 - half * self.log_determinant
    }

    /// ln(kappa_0 / kappa) of prior and posterior; 0 for a mean known exactly.
    fn ln_kappa_ratio(&self, prior: &Self) -> f64 {
        if prior.inverse_kappa > 0.0 { (self.inverse_kappa / prior.inverse_kappa).ln() } else { 0.0 }
    }

    /// c(lambda) - c(lambda_0), spec 1a.
    pub fn cumulant_above(&self, prior: &Self) -> f64 {
        let d = self.dimension() as f64;
        self.wishart_cumulant() - prior.wishart_cumulant() + 0.5 * d * self.ln_kappa_ratio(prior)
    }

    /// E ln |Lambda|.
    fn expected_log_determinant(&self) -> f64 {
        let d = self.dimension();
        multivariate_digamma(d, 0.5 * self.dof) + d as f64 * LN_2 - self.log_determinant
    }

    /// L^-1, lower, column-major.
    fn inverse_factor(&self) -> Vec<f64> {
        let d = self.dimension();
        let mut inverse = vec![0.0; d * d];
        invert_lower(d, &self.factor, &mut inverse);
        inverse
    }

    /// |L^-1 v|^2.
    fn squared_length(&self, vector: &[f64]) -> f64 {
        let mut solved = vector.to_vec();
        solve_lower(self.dimension(), &self.factor, &mut solved);
        solved.iter().map(|x| x * x).sum()
    }

    /// L^-1 M for a lower-triangular M, column-major.
    fn solve_lower_matrix(&self, other: &[f64]) -> Vec<f64> {
        let d = self.dimension();
        let mut solved = other.to_vec();
        solved.chunks_exact_mut(d).for_each(|column| solve_lower(d, &self.factor, column));
        solved
    }

    /// tr(B^-1 B_0) = |L^-1 L_0|_F^2.
    fn trace_of_prior(&self, prior: &Self) -> f64 {
        self.solve_lower_matrix(&prior.factor).iter().map(|x| x * x).sum()
    }

    fn difference(&self, other: &Self) -> Vec<f64> {
        self.mean.iter().zip(&other.mean).map(|(a, b)| a - b).collect()
    }

    /// KL(q || p) of spec 1a.
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

    /// The packed form of one density.
    fn quadratic(&self, prior: &Self, log_weight: f64, density: Density) -> Quadratic {
        match density {
            Density::Expected => self.expected(log_weight),
            Density::Predictive => self.predictive(log_weight),
            Density::Divergence => self.divergence(prior),
        }
    }

    /// E log p(x) + `log_weight` as a function of the row (spec 1a).
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

    /// log p(x | lambda) + `log_weight`: a Student t with nu - D + 1 degrees of freedom (spec 1a).
    pub fn predictive(&self, log_weight: f64) -> Quadratic {
        let d = self.dimension() as f64;
        let half = 0.5 * (self.dof + 1.0);
        let constant = ln_gamma(half)
            - ln_gamma(half - 0.5 * d)
            - 0.5 * (d * PI.ln() + d * self.inverse_kappa.ln_1p() + self.log_determinant)
            + log_weight;
        Quadratic {
            factor: self.inverse_factor(),
            scale: (1.0 + self.inverse_kappa).recip().sqrt(),
            centre: self.mean.clone(),
            constant,
            link: Link::StudentT { half },
        }
    }

    /// Minus the divergence of a row's smoothed moments from this component's, but for the term of
    /// [`NormalWishart::divergence_row_term`] (spec 5.2): `KL(N(m_n, S_n) || N(m, B / nu))` with
    /// `S_n = (B_0 + u u^T / (1 + 1/kappa_0)) / (nu_0 + 1)`, `m_n = m_0 + u / (kappa_0 + 1)`, `u = x - m_0`, where
    /// the two squares in u are completed to one.
    pub fn divergence(&self, prior: &Self) -> Quadratic {
        let d = self.dimension() as f64;
        let row_dof = prior.dof + 1.0;
        let from_scatter = 1.0 / ((1.0 + prior.inverse_kappa) * row_dof);
        let shrinkage = prior.inverse_kappa / (1.0 + prior.inverse_kappa);
        let curvature = from_scatter + shrinkage * shrinkage;
        let away = self.difference(prior);
        let centre = prior.mean.iter().zip(&away).map(|(m0, w)| m0 + shrinkage / curvature * w).collect();
        let rest = self.dof * (from_scatter / curvature) * self.squared_length(&away);
        let constant = -0.5
            * (self.dof * self.trace_of_prior(prior) / row_dof + rest - prior.log_determinant
                + d * row_dof.ln()
                + self.log_determinant
                - d * self.dof.ln()
                - d);
        Quadratic {
            factor: self.inverse_factor(),
            scale: (self.dof * curvature).sqrt(),
            centre,
            constant,
            link: Link::Gaussian,
        }
    }

    /// What every divergence of a row has in common, `-1/2 ln(1 + |u|^2_(B_0) / (1 + 1/kappa_0))`: to be taken from
    /// the scores of [`NormalWishart::divergence`]. `self` is the prior.
    pub fn divergence_row_term(&self) -> Quadratic {
        Quadratic {
            factor: self.inverse_factor(),
            scale: (1.0 + self.inverse_kappa).recip().sqrt(),
            centre: self.mean.clone(),
            constant: 0.0,
            link: Link::StudentT { half: 0.5 },
        }
    }

    /// A row of the predictive, relative to the origin: `m + L z sqrt((1 + 1/kappa) / chi^2)`, `chi^2` with
    /// nu - D + 1 degrees of freedom.
    pub fn draw(&self, generator: &mut Generator) -> Result<Vec<f64>> {
        let d = self.dimension();
        let dof = self.dof - d as f64 + 1.0;
        let chi_squared = ChiSquared::new(dof)
            .map_err(|_| Error::numerical(None, format!("a predictive with {dof} degrees of freedom")))?;
        let z: Vec<f64> = (0..d).map(|_| generator.sample(StandardNormal)).collect();
        let scale = ((1.0 + self.inverse_kappa) / chi_squared.sample(generator)).sqrt();
        Ok((0..d).map(|i| self.mean[i] + scale * (0..=i).map(|j| self.factor[j * d + i] * z[j]).sum::<f64>()).collect())
    }
}

/// Checks a degrees-of-freedom parameter against the number of columns.
pub fn check_dof(dof: f64, d: usize) -> Result<()> {
    let least = d as f64 - 1.0;
    if dof > least { Ok(()) } else { Err(Error::invalid("dof", dof, format!("greater than D - 1 = {least}"))) }
}

/// Checks that a row-major matrix is symmetric and positive definite.
pub fn check_scale(d: usize, scale: &[f64]) -> Result<()> {
    let largest = scale.iter().fold(0.0_f64, |a, b| a.max(b.abs()));
    for i in 0..d {
        for j in 0..i {
            if (scale[i * d + j] - scale[j * d + i]).abs() > 1e-10 * largest {
                return Err(Error::invalid("scale", format!("different at ({i}, {j}) and ({j}, {i})"), "symmetric"));
            }
        }
    }
    cholesky(d, &mut scale.to_vec()).map_err(|failure| {
        Error::invalid("scale", format!("without a Cholesky factor at row {}", failure.pivot), "positive definite")
    })
}

/// The least share of squares that a prior scale must have to survive beside them. A component of few rows has a
/// scatter with rounding errors of `f64::EPSILON` of the squares it is the difference of, and only the prior's scale
/// keeps it positive definite; at this share it loses no more than a thousandth.
const LEAST_SHARE: f64 = 1e3 * f64::EPSILON;

/// Whether a positive definite scale survives the addition of squares, one a column.
pub fn survives_beside(d: usize, scale: &[f64], square: impl Fn(usize) -> f64) -> bool {
    let mut factor = scale.to_vec();
    cholesky(d, &mut factor).is_ok() && (0..d).all(|j| factor[j * (d + 1)].powi(2) >= LEAST_SHARE * square(j))
}

/// Checks that a scale survives beside the scatter of the data.
pub fn check_scale_beside(data: &Moments, scale: &[f64]) -> Result<()> {
    let d = data.dimension();
    if survives_beside(d, scale, |j| data.covariance[j * (d + 1)]) {
        return Ok(());
    }
    let found = "so small that float64 loses it beside the scatter of the data";
    Err(Error::invalid("scale", found, format!("at least {LEAST_SHARE:.0e} of the variance of every column")))
}

/// The default scale: the covariance of the data plus a ridge of 1e-3 of its mean variance. Mean-removed image
/// patches have a singular covariance, so the ridge matters; where all rows are equal it is 1e-3 by itself.
pub fn default_scale(d: usize, covariance: &[f64]) -> Vec<f64> {
    let trace: f64 = covariance.iter().step_by(d + 1).sum();
    let ridge = if trace > 0.0 { 1e-3 * trace / d as f64 } else { 1e-3 };
    let mut scale = covariance.to_vec();
    scale.iter_mut().step_by(d + 1).for_each(|value| *value += ridge);
    scale
}

/// A likelihood whose components have a (Normal-)Wishart posterior; all else follows from these few answers.
pub trait NormalWishartModel: std::fmt::Debug + Send + Sync {
    /// What is taken from every row, (D,).
    fn origin(&self) -> &[f64];
    /// The base measure.
    fn prior(&self) -> &NormalWishart;
    /// Length of the sum of x in front of the packed sum of x x^T: D, or 0 where the mean is known.
    fn n_sums(&self) -> usize;
    /// The posterior of a component.
    fn posterior(&self, component: Sufficient<'_>) -> Result<NormalWishart>;
    /// See [`Conjugate::posterior_parameters`].
    fn parameters(&self, posteriors: &[NormalWishart]) -> Parameters;
    /// See [`Conjugate::rebase`].
    fn rebase(&self, component: Sufficient<'_>, origin: &[f64]) -> Result<Vec<f64>>;
}

/// nu of every component.
pub fn dofs(posteriors: &[NormalWishart]) -> Value {
    vector(posteriors.iter().map(|posterior| posterior.dof).collect())
}

/// B of every component, (K, D, D).
pub fn scales(posteriors: &[NormalWishart]) -> Value {
    let d = posteriors.first().map_or(0, NormalWishart::dimension);
    let data = posteriors.iter().flat_map(NormalWishart::scale).collect();
    Value::Array { shape: vec![posteriors.len(), d, d], data }
}

impl<M: NormalWishartModel> Conjugate for M {
    fn dimension(&self) -> usize {
        NormalWishartModel::origin(self).len()
    }

    fn n_statistics(&self) -> usize {
        self.n_sums() + packed_len(NormalWishartModel::origin(self).len())
    }

    fn origin(&self) -> &[f64] {
        NormalWishartModel::origin(self)
    }

    fn accumulate(&self, rows: &[f64], weights: &[f64], statistics: &mut [f64], space: &mut Lines<f64>) {
        let (sums, packed) = statistics.split_at_mut(self.n_sums());
        add_moments(rows, weights, NormalWishartModel::origin(self).len(), sums, packed, space);
    }

    fn log_marginal(&self, component: Sufficient<'_>) -> Result<f64> {
        Ok(self.posterior(component)?.cumulant_above(self.prior()))
    }

    fn divergence_from_prior(&self, component: Sufficient<'_>) -> Result<f64> {
        Ok(self.posterior(component)?.divergence_from(self.prior()))
    }

    fn posterior_parameters(&self, components: &[Sufficient<'_>]) -> Result<Parameters> {
        let posterior = |k: usize| self.posterior(components[k]).map_err(|error| error.of_component(k));
        Ok(self.parameters(&try_map(components.len(), posterior)?))
    }

    fn draw(&self, component: Sufficient<'_>, generator: &mut Generator) -> Result<Vec<f64>> {
        let row = self.posterior(component)?.draw(generator)?;
        Ok(row.iter().zip(NormalWishartModel::origin(self)).map(|(x, o)| x + o).collect())
    }

    fn rebase(&self, component: Sufficient<'_>, origin: &[f64]) -> Result<Vec<f64>> {
        NormalWishartModel::rebase(self, component, origin)
    }
}

impl<F: Scalar, M: NormalWishartModel> Likelihood<F> for M {
    fn scorer(
        &self,
        components: &[Sufficient<'_>],
        log_weights: &[f64],
        density: Density,
    ) -> Result<Box<dyn Scorer<F>>> {
        let packed: Vec<Quadratic> = try_map(components.len(), |k| {
            let posterior = self.posterior(components[k]).map_err(|error| error.of_component(k))?;
            Ok(posterior.quadratic(self.prior(), log_weights[k], density))
        })?;
        let row_term = (density == Density::Divergence).then(|| self.prior().divergence_row_term());
        Ok(Box::new(QuadraticScorer::new(NormalWishartModel::origin(self).len(), packed, row_term.as_ref())))
    }

    fn log_base_measure(&self, _rows: &[F], masses: &[f64]) -> f64 {
        -0.5 * NormalWishartModel::origin(self).len() as f64 * (2.0 * PI).ln() * sum(masses)
    }
}
