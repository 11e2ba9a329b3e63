//! The likelihoods whose components have a (Normal-)Wishart posterior (mathematics 1a and 1b): all that follows from
//! the posterior.

use std::f64::consts::PI;
use std::ops::Range;

use crate::data::RowBlock;
use crate::error::{Error, Result};
use crate::laws::Law;
use crate::likelihood::ridge::{LEAST_SHARE, RIDGE};
use crate::likelihood::wishart::constants::Constants;
use crate::likelihood::wishart::holes::{Fill, N_FILLS, rows_with_values};
use crate::likelihood::wishart::normal_wishart::NormalWishart;
use crate::likelihood::wishart::patterns::scorer_of_patterns;
use crate::likelihood::wishart::tail::{HeavyTail, N_SCALES, ScaleSums, TailScorer};
use crate::likelihood::{
    AtPoint, ComponentStreams, Conjugate, Density, Draw, Estimate, Evidence, FromParameters, Imputation, Laws,
    Likelihood, Metric, ParameterDraws, ParameterSource, PointEstimates, RowDraws, RowSource, Scores, Seeding, Urn,
};
use crate::linalg::{add_moments, packed_diagonal, packed_len, transposed, unpack};
use crate::objective::Objective;
use crate::parallel::try_map;
use crate::parameters::{Parameters, Value, table, vector};
use crate::registry::Feature;
use crate::scoring::{Column, ColumnScorer, ColumnTerms, Curve, Quadratic, QuadraticScorer, Scorer};
use crate::simd::{Lines, Scalar};
use crate::suffstats::Sufficient;

/// A likelihood whose components have a (Normal-)Wishart posterior. Everything else follows from these methods.
pub trait NormalWishartModel: FromParameters + std::fmt::Debug + Send + Sync {
    /// Subtracted from every row, (D,).
    fn origin(&self) -> &[f64];
    /// The base measure.
    fn prior(&self) -> &NormalWishart;
    /// Length of the sum of x, which precedes the packed sum of x x^T: D, or 0 if the mean is known.
    fn n_sums(&self) -> usize;
    /// Covariance of a row within its rounding cell (mathematics 10.5), (D, D); empty if rows are not rounded.
    fn rounding(&self) -> &[f64];
    /// Tabulated constants of the predictives.
    fn constants(&self) -> &Constants;
    /// The posterior of a component.
    fn posterior(&self, component: Sufficient<'_>) -> Result<NormalWishart>;
    /// The maximum-likelihood mean and scatter, in the form of a posterior whose degrees of freedom are the number of
    /// rows. That number times `blur` is added to the diagonal of the scatter, by column.
    fn most_likely(&self, component: Sufficient<'_>, blur: &[f64]) -> Result<NormalWishart>;
    /// The tail of rows; `None` for normal rows.
    fn tail(&self) -> Option<&HeavyTail> {
        None
    }
    /// Fills missing values of rows without a component; `None` if no values are missing.
    fn fill(&self) -> Option<&Fill> {
        None
    }
    /// See [`Conjugate::posterior_parameters`].
    fn parameters(&self, posteriors: &[NormalWishart]) -> Parameters;
    /// See [`Conjugate::rebase`].
    fn rebase(&self, component: Sufficient<'_>, origin: &[f64]) -> Result<Vec<f64>>;
}

/// Number of rows of a component that have a value.
pub fn n_rows<M: NormalWishartModel>(model: &M, component: Sufficient<'_>) -> f64 {
    if model.fill().is_some() { rows_with_values(component, model.squares().end) } else { component.count }
}

/// The rows of a component that have a value.
pub fn with_values<'a, M: NormalWishartModel>(model: &M, component: Sufficient<'a>) -> Sufficient<'a> {
    Sufficient { count: n_rows(model, component), ..component }
}

/// Number of rows of a component by which its mean becomes certain: of rows with tails, the sum of their scales.
pub fn mass<M: NormalWishartModel>(model: &M, component: Sufficient<'_>) -> f64 {
    if model.tail().is_some() { ScaleSums::of(component).mass } else { n_rows(model, component) }
}

/// Sums and packed squares of a component.
fn moments<'a, M: NormalWishartModel>(model: &M, component: Sufficient<'a>) -> (&'a [f64], &'a [f64]) {
    let (sums, rest) = component.statistics.split_at(model.n_sums());
    (sums, &rest[..packed_len(NormalWishartModel::origin(model).len())])
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

/// What the scales of the rows of a component contribute to the bound, nats.
fn contribution<M: NormalWishartModel>(model: &M, component: Sufficient<'_>) -> f64 {
    let of_fills = model.fill().map_or(0.0, |_| component.statistics[model.squares().end]);
    of_fills + model.tail().map_or(0.0, |tail| tail.contribution(with_values(model, component)))
}

/// A point estimate: the distribution with its mean and matrix B, the factor of B^-1 in its precision, and a variance
/// added to each column (empty if none).
struct MatrixPoint {
    wishart: NormalWishart,
    times: f64,
    blur: Vec<f64>,
}

/// The point estimate of a component. Without rows there is no maximum-likelihood estimate, and the prior's is used.
fn point<M: NormalWishartModel>(model: &M, component: Sufficient<'_>, estimate: Estimate) -> Result<MatrixPoint> {
    if estimate == Estimate::MaximumLikelihood && n_rows(model, component) >= 1e-12 && model.tail().is_none() {
        let prior = model.prior();
        let diagonal = prior.scale().into_iter().step_by(prior.dimension() + 1);
        let blur: Vec<f64> = diagonal.map(|square| RIDGE * square / prior.dof).collect();
        let wishart = model.most_likely(component, &blur)?;
        return Ok(MatrixPoint { times: wishart.dof, wishart, blur });
    }
    let wishart = model.posterior(component)?;
    Ok(MatrixPoint { times: wishart.times(estimate), wishart, blur: Vec::new() })
}

/// Packs one density for scoring.
fn quadratic<M: NormalWishartModel>(
    model: &M,
    component: Sufficient<'_>,
    log_weight: f64,
    density: Density,
) -> Result<Quadratic> {
    let of_point = |estimate, blurred| {
        let MatrixPoint { wishart, times, blur } = point(model, component, estimate)?;
        let normal = wishart.at_precision(times, if blurred { &blur } else { &[] }, log_weight);
        Ok(match model.tail() {
            Some(tail) => tail.of_normal(normal, 0.0),
            None => normal,
        })
    };
    match density {
        Density::Expected(Objective::Variational) => {
            let posterior = model.posterior(component)?;
            Ok(posterior.expected(log_weight - posterior.cost_of_squares(model.rounding())))
        }
        Density::Expected(Objective::Map) => of_point(Estimate::Mode, true),
        Density::Expected(Objective::Ml) => of_point(Estimate::MaximumLikelihood, true),
        Density::PlugIn(estimate) => of_point(estimate, false),
        Density::Predictive => {
            let posterior = model.posterior(component)?;
            Ok(match model.tail() {
                Some(tail) => tail.predictive(&posterior, log_weight),
                None => posterior.predictive(log_weight),
            })
        }
        Density::Divergence => Ok(model.posterior(component)?.divergence(model.prior())),
    }
}

/// Half the squared distances of rows from the means of components, with each column in units of the prior scale: the
/// divergence of k-means++ for a free mean (mathematics 5.2).
fn distances_of_means<M: NormalWishartModel>(
    model: &M,
    components: &[Sufficient<'_>],
    log_weights: &[f64],
) -> Vec<ColumnTerms> {
    let (d, prior) = (model.n_sums(), model.prior());
    let precisions: Vec<f64> = prior.scale().into_iter().step_by(d + 1).map(f64::recip).collect();
    let pack = |(component, &constant): (&Sufficient<'_>, &f64)| {
        let mean = |j: usize| {
            let n = mass(model, *component);
            if n > 0.0 { component.statistics[j] / n } else { prior.mean[j] }
        };
        let columns = precisions.iter().enumerate().map(|(j, &precision)| Column::square(precision, mean(j), 0.0));
        ColumnTerms { constant, columns: columns.collect() }
    };
    components.iter().zip(log_weights).map(pack).collect()
}

impl<M: NormalWishartModel> Conjugate for M {
    fn n_statistics(&self) -> usize {
        let of_scales = if self.tail().is_some() { N_SCALES } else { 0 };
        let of_fills = if self.fill().is_some() { N_FILLS } else { 0 };
        self.squares().end + of_scales + of_fills
    }

    fn origin(&self) -> &[f64] {
        NormalWishartModel::origin(self)
    }

    fn accumulate(&self, rows: RowBlock<'_, f64>, weights: &[f64], statistics: &mut [f64], space: &mut Lines<f64>) {
        if let Some(tail) = self.tail() {
            return tail.accumulate_alone(self.fill(), rows.dense(), weights, statistics, space);
        }
        if let Some(fill) = self.fill() {
            return fill.accumulate(rows.dense(), weights, statistics, space);
        }
        let (sums, packed) = statistics.split_at_mut(self.n_sums());
        add_moments(rows.dense(), weights, NormalWishartModel::origin(self).len(), sums, packed, space);
    }

    fn squares(&self) -> Range<usize> {
        self.n_sums()..self.n_sums() + packed_len(NormalWishartModel::origin(self).len())
    }

    fn log_marginal(&self, component: Sufficient<'_>) -> Result<f64> {
        Ok(self.posterior(component)?.cumulant_above(self.prior()) + contribution(self, component))
    }

    fn expected_at_prior(&self, units: Sufficient<'_>) -> Result<f64> {
        let (n, prior) = (mass(self, units), self.prior());
        let (sums, packed) = moments(self, units);
        let d = prior.dimension();
        let (mut squares, mean) = (unpack(d, packed), &prior.mean);
        // With a known mean, squares are about it.
        if !sums.is_empty() {
            for (index, square) in squares.iter_mut().enumerate() {
                let (i, j) = (index % d, index / d);
                *square += n * mean[i] * mean[j] - sums[i] * mean[j] - mean[i] * sums[j];
            }
        }
        squares.iter_mut().zip(self.rounding()).for_each(|(square, variance)| *square += n * variance);
        let of_rows = n_rows(self, units) * prior.expected_log_determinant() - n * d as f64 * prior.inverse_kappa;
        Ok(0.5 * of_rows - prior.cost_of_squares(&squares) + contribution(self, units))
    }

    fn rounding_of_marginal(&self, component: Sufficient<'_>) -> f64 {
        self.posterior(component).map_or(f64::INFINITY, |posterior| posterior.rounding_of_cumulant())
    }

    fn surviving_marginal(&self, component: Sufficient<'_>) -> Result<Option<f64>> {
        let posterior = self.posterior(component)?;
        let (sums, packed) = moments(self, component);
        let d = sums.len();
        // Squares about zero lose no digits, because nothing is subtracted.
        let mut pivots = posterior.factor.iter().step_by(d + 1).zip(packed_diagonal(d, packed));
        let survives = d == 0
            || n_rows(self, component) <= f64::MIN_POSITIVE
            || pivots.all(|(pivot, square)| pivot.powi(2) >= LEAST_SHARE * square);
        Ok(survives.then(|| posterior.cumulant_above(self.prior()) + contribution(self, component)))
    }

    fn posterior_parameters(&self, components: &[Sufficient<'_>]) -> Result<Parameters> {
        let posterior = |k: usize| self.posterior(components[k]).map_err(|error| error.of_component(k));
        Ok(self.parameters(&try_map(components.len(), posterior)?))
    }

    fn rebase(&self, component: Sufficient<'_>, origin: &[f64]) -> Result<Vec<f64>> {
        NormalWishartModel::rebase(self, component, origin)
    }

    fn completes(&self) -> bool {
        self.tail().is_some() || self.fill().is_some()
    }

    fn centre(&self, average: Sufficient<'_>) -> Option<Vec<f64>> {
        if !self.completes() {
            return None;
        }
        let n = mass(self, average);
        Some(moments(self, average).0.iter().map(|sum| if n > 0.0 { sum / n } else { 0.0 }).collect())
    }

    fn check_statistics(&self, components: &[Sufficient<'_>]) -> Result<()> {
        if self.tail().is_none() {
            return Ok(());
        }
        components.iter().try_for_each(|component| ScaleSums::check(*component))
    }
}

impl<F: Scalar, M: NormalWishartModel> Scores<F> for M {
    fn scorer(
        &self,
        components: &[Sufficient<'_>],
        log_weights: &[f64],
        density: Density,
    ) -> Result<Box<dyn Scorer<F>>> {
        if density == Density::Divergence && self.n_sums() > 0 {
            let packed = distances_of_means(self, components, log_weights);
            return Ok(Box::new(ColumnScorer::new(Curve::Square, packed, self.fill().is_some())));
        }
        if self.fill().is_some() {
            let ready = try_map(components.len(), |k| {
                let of = match density {
                    Density::PlugIn(estimate) => {
                        point(self, components[k], estimate).map(|point| (point.wishart, point.times))
                    }
                    _ => self.posterior(components[k]).map(|posterior| (posterior, 0.0)),
                };
                of.map_err(|error| error.of_component(k))
            })?;
            return Ok(scorer_of_patterns(ready, self.tail(), self.rounding(), log_weights, density));
        }
        if let (Some(tail), Density::Expected(Objective::Variational)) = (self.tail(), density) {
            let packed = try_map(components.len(), |k| {
                let posterior = self.posterior(components[k]);
                let of = posterior.map(|posterior| tail.of_posterior(&posterior, self.rounding(), log_weights[k]));
                of.map_err(|error| error.of_component(k))
            })?;
            return Ok(Box::new(TailScorer::new(tail.clone(), packed)));
        }
        let packed: Vec<Quadratic> = try_map(components.len(), |k| {
            quadratic(self, components[k], log_weights[k], density).map_err(|error| error.of_component(k))
        })?;
        let row_term = (density == Density::Divergence).then(|| self.prior().divergence_row_term());
        Ok(Box::new(QuadraticScorer::new(NormalWishartModel::origin(self).len(), packed, row_term.as_ref())))
    }

    fn divergence_from_prior(&self, component: Sufficient<'_>) -> Result<f64> {
        Ok(self.posterior(component)?.divergence_from(self.prior()))
    }

    fn log_base_measures(&self, rows: RowBlock<'_, F>, out: &mut [f64]) {
        let d = NormalWishartModel::origin(self).len();
        out.fill(-0.5 * d as f64 * (2.0 * PI).ln());
        if self.fill().is_some() {
            let rows = rows.dense().chunks_exact(d).zip(out);
            rows.filter(|(row, _)| row.iter().all(|value| value.is_nan())).for_each(|(_, out)| *out = 0.0);
        }
    }
}

impl<M: NormalWishartModel> PointEstimates for M {
    fn at_point(&self, component: Sufficient<'_>, estimate: Estimate) -> Result<AtPoint> {
        let MatrixPoint { wishart, times, blur } = point(self, component, estimate)?;
        let d = wishart.dimension();
        let (n, m) = (n_rows(self, component), &wishart.mean);
        let (sums, packed) = moments(self, component);
        // sum r (x - m)(x - m)^T + n diag(blur), and the trace of its product with B^-1.
        let mut scatter = unpack(d, packed);
        for j in 0..d {
            for i in 0..d {
                if !sums.is_empty() {
                    scatter[j * d + i] += n * m[i] * m[j] - sums[i] * m[j] - m[i] * sums[j];
                }
            }
            scatter[j * d + j] += n * blur.get(j).unwrap_or(&0.0);
        }
        let turned = transposed(d, &wishart.solve_lower_matrix(&scatter));
        let trace: f64 = wishart.solve_lower_matrix(&turned).iter().step_by(d + 1).sum();
        Ok(AtPoint {
            log_likelihood: 0.5 * (n * wishart.log_determinant_at(times) - times * trace),
            log_prior: self.prior().log_density(&wishart, times),
        })
    }

    fn check_mode(&self) -> Result<()> {
        let prior = self.prior();
        if prior.times(Estimate::Mode) > 0.0 {
            return Ok(());
        }
        let least = prior.dof - prior.times(Estimate::Mode);
        let allowed = format!("greater than {least} where the objective is \"map\"");
        Err(Error::invalid("dof", Value::Number(prior.dof), allowed))
    }

    fn point_estimates(&self, components: &[Sufficient<'_>], estimate: Estimate) -> Result<Parameters> {
        let points =
            try_map(components.len(), |k| point(self, components[k], estimate).map_err(|error| error.of_component(k)))?;
        let d = NormalWishartModel::origin(self).len();
        let covariances = points.iter().flat_map(|point| {
            let times = point.times;
            point.wishart.scale().into_iter().map(move |value| value / times)
        });
        let covariances = Value::Array { shape: vec![points.len(), d, d], data: covariances.collect() };
        if self.n_sums() == 0 {
            return Ok(Parameters::from_pairs([("covariance", covariances)]));
        }
        let origin = NormalWishartModel::origin(self);
        let means = points.iter().flat_map(|point| point.wishart.mean.iter().zip(origin).map(|(m, o)| m + o));
        Ok(Parameters::from_pairs([("mean", table(d, means.collect())), ("covariance", covariances)]))
    }
}

impl<M: NormalWishartModel> Seeding for M {
    /// With a free mean: distances by column in units of the prior scale. With a known mean: angles in the metric of
    /// the component's covariance.
    fn metric(&self, component: Sufficient<'_>) -> Result<Metric> {
        let d = self.prior().dimension();
        if self.n_sums() == 0 {
            return Ok(Metric::Angle(self.posterior(component)?.inverse_factor()));
        }
        let scale = self.prior().scale();
        Ok(Metric::Columns(scale.iter().step_by(d + 1).map(|b| b.sqrt().recip()).collect()))
    }
}

impl<M: NormalWishartModel> RowDraws for M {
    fn source(&self, component: Sufficient<'_>, from: Draw<'_>) -> Result<RowSource<'_>> {
        let origin = NormalWishartModel::origin(self);
        let tail = self.tail().map(|tail| tail.dof);
        let Some(estimate) = from.estimate else { return self.posterior(component)?.predictive_rows(tail, origin) };
        let MatrixPoint { wishart, times, .. } = point(self, component, estimate)?;
        wishart.rows_at(times.sqrt().recip(), tail, origin)
    }
}

impl<M: NormalWishartModel> ParameterDraws for M {
    fn parameter_source(&self, component: Sufficient<'_>) -> Result<ParameterSource<'_>> {
        self.posterior(component)?.parameter_source(NormalWishartModel::origin(self), self.n_sums() > 0)
    }

    fn drawn_scorer(
        &self,
        components: &[Sufficient<'_>],
        log_weights: &[f64],
        draws: ComponentStreams<'_>,
    ) -> Result<Box<dyn Scorer<f64>>> {
        let packed: Vec<Quadratic> = try_map(components.len(), |k| {
            let posterior = self.posterior(components[k]);
            let drawn = posterior.and_then(|posterior| posterior.drawn(log_weights[k], &mut draws.of(k)?));
            let drawn = drawn.map(|drawn| match self.tail() {
                Some(tail) => tail.of_normal(drawn, 0.0),
                None => drawn,
            });
            drawn.map_err(|error| error.of_component(k))
        })?;
        Ok(match self.tail() {
            Some(tail) => Box::new(TailScorer::of_draws(tail.clone(), packed, draws.key)),
            None => Box::new(QuadraticScorer::new(NormalWishartModel::origin(self).len(), packed, None)),
        })
    }
}

impl<M: NormalWishartModel> Laws for M {
    fn law(&self, component: Sufficient<'_>, estimate: Option<Estimate>) -> Result<Law> {
        let origin = NormalWishartModel::origin(self);
        let Some(estimate) = estimate else {
            let posterior = self.posterior(component)?;
            return Ok(match self.tail() {
                Some(tail) => tail.predictive_law(&posterior, origin),
                None => posterior.predictive_law(origin),
            });
        };
        let MatrixPoint { wishart, times, .. } = point(self, component, estimate)?;
        let dof = self.tail().map_or(f64::INFINITY, |tail| tail.dof);
        Ok(wishart.law(times.sqrt().recip(), dof, origin))
    }
}

impl<F: Scalar, M: NormalWishartModel> Likelihood<F> for M {
    fn laws(&self) -> Option<&dyn Laws> {
        Some(self)
    }

    fn scores(&self) -> Option<&dyn Scores<F>> {
        Some(self)
    }

    fn points(&self) -> Option<&dyn PointEstimates> {
        Some(self)
    }

    /// With missing values, rows have no distance from each other.
    fn seeding(&self) -> Option<&dyn Seeding> {
        if self.fill().is_some() { None } else { Some(self) }
    }

    fn imputation(&self) -> Option<&dyn Imputation> {
        M::ENTRY.support(Feature::Missing).map(|_| self as &dyn Imputation)
    }

    fn draws(&self) -> Option<&dyn RowDraws> {
        Some(self)
    }

    fn parameter_draws(&self) -> Option<&dyn ParameterDraws> {
        Some(self)
    }

    fn evidence(&self) -> Option<&dyn Evidence> {
        Some(self)
    }

    /// With a part of rows unseen there is no closed marginal likelihood.
    fn urn(&self) -> Option<&dyn Urn> {
        if self.completes() { None } else { Some(self) }
    }
}
