//! Independent columns with a Normal-gamma base measure each (mathematics 1c, and with missing values 1.7).

mod draws;
mod evidence;
mod laws;
mod normal_gamma;

use std::f64::consts::PI;

use crate::data::{Domain, Freedom, Moments, Needs, RowBlock};
use crate::error::{Error, Result};
use crate::likelihood::counts::check_presence;
use crate::likelihood::diagonal_gaussian::normal_gamma::ColumnSums;
use crate::likelihood::resolution::{cell_variances, resolved_resolution};
use crate::likelihood::ridge::{LEAST_SHARE, RIDGE, ridge};
use crate::likelihood::wishart::ScaleSums;
use crate::likelihood::{
    AtPoint, Conjugate, Density, Estimate, Frame, FromParameters, Imputation, PointEstimates, Scores, Urn,
    capabilities, urn,
};
use crate::objective::Objective;
use crate::parallel::map;
use crate::parameters::{Parameters, Value, table, vector};
use crate::registry::{
    DefaultValue, Entry, Feature, Measure, Measured, PRIOR, Parameter, ParameterKind, RESOLUTION, Range, Support,
};
use crate::scoring::{Column, ColumnScorer, ColumnTerms, Curve, Row, RowFunction, RowScorer, Scorer};
use crate::simd::{Lines, Scalar};
use crate::suffstats::Sufficient;

pub(super) use normal_gamma::NormalGamma;

/// lambda_d ~ Gamma(shape, `rate_d`), mu_d | lambda_d ~ N(`mean_d`, 1 / (`mean_precision` lambda_d)), x_d ~ N(mu_d, 1 /
/// lambda_d). Statistics: sum x, sum x^2, and with missing values the count of each column.
#[derive(Debug)]
pub struct DiagonalGaussian {
    frame: Frame,
    /// Base measure of each column, (D,).
    prior: Vec<NormalGamma>,
    /// Whether rows have scales (mathematics 1k): values are summed as often as the scale of their row, with missing
    /// values the sums of the scales of each column precede its counts, and the statistics of scales are the last.
    has_scales: bool,
}

/// A point estimate of one column.
#[derive(Debug, Clone, Copy)]
pub(super) struct ColumnPoint {
    pub(super) mean: f64,
    pub(super) precision: f64,
    /// Variance by which every value is blurred in the likelihood (mathematics 1.8: the ridge of the covariance). The
    /// local step includes it too, so that the objective cannot fall.
    blur: f64,
}

impl DiagonalGaussian {
    pub(super) fn frame(&self) -> &Frame {
        &self.frame
    }

    /// The base measures of all columns.
    pub(super) fn prior(&self) -> &[NormalGamma] {
        &self.prior
    }

    pub(super) fn sums<'a>(&self, component: Sufficient<'a>) -> impl Iterator<Item = ColumnSums> + use<'a> {
        let d = self.prior.len();
        let (sums, rest) = component.statistics.split_at(d);
        let (squares, rest) = rest.split_at(d);
        let scales = self.has_scales.then(|| ScaleSums::of(component).mass.max(0.0));
        let (masses, counts) = match (scales, self.frame.missing) {
            (Some(_), true) => rest.split_at(d),
            (Some(_), false) => (&rest[..0], &rest[..0]),
            (None, _) => (rest, rest),
        };
        sums.iter().zip(squares).enumerate().map(move |(column, (&sum, &squares))| ColumnSums {
            rows: counts.get(column).map_or(component.count, |&count| count.max(0.0)),
            mass: masses.get(column).map_or(scales.unwrap_or(component.count), |&mass| mass.max(0.0)),
            sum,
            squares,
        })
    }

    /// The same base measures, for rows with scales.
    pub(super) fn with_scales(frame: Frame, prior: Vec<NormalGamma>) -> Self {
        Self { frame, prior, has_scales: true }
    }

    /// The same with other parameters.
    fn rebuilt(&self, parameters: &Parameters) -> Result<Self> {
        Ok(Self { has_scales: self.has_scales, ..Self::build(parameters, self.frame.clone())? })
    }

    pub(super) fn posterior(&self, component: Sufficient<'_>) -> Vec<NormalGamma> {
        let columns = self.sums(component).zip(&self.prior);
        columns.map(|(sums, prior)| prior.posterior(sums)).collect()
    }

    pub(super) fn points(&self, component: Sufficient<'_>, estimate: Estimate) -> Vec<ColumnPoint> {
        let columns = self.sums(component).zip(&self.prior);
        let point = |(sums, prior): (ColumnSums, &NormalGamma)| {
            let posterior = prior.posterior(sums);
            match estimate {
                Estimate::MaximumLikelihood if sums.mass >= 1e-12 && !self.has_scales => {
                    let mean = sums.sum / sums.mass;
                    let blur = RIDGE * prior.rate / prior.shape;
                    let variance = (sums.squares / sums.mass - mean * mean).max(0.0) + blur;
                    ColumnPoint { mean, precision: variance.recip(), blur }
                }
                Estimate::Mode => {
                    ColumnPoint { mean: posterior.mean, precision: (posterior.shape - 0.5) / posterior.rate, blur: 0.0 }
                }
                Estimate::Mean | Estimate::MaximumLikelihood => {
                    ColumnPoint { mean: posterior.mean, precision: posterior.shape / posterior.rate, blur: 0.0 }
                }
            }
        };
        columns.map(point).collect()
    }
}

/// Refuses squares, one for each column, that float64 loses beside those of the data. `name`: their parameter.
pub(super) fn check_survival(name: &str, squares: &[f64], mean: &[f64], data: &Moments) -> Result<()> {
    let lost = |square: &dyn Fn(usize) -> f64| (0..squares.len()).find(|&j| squares[j] < LEAST_SHARE * square(j));
    if let Some(j) = lost(&|j| data.variance[j]) {
        let found = format!("so small in column {j} that float64 rounding of the scatter of the data hides it");
        let allowed = format!("at least {LEAST_SHARE:.0e} of the variance of a column");
        return Err(Error::invalid(name, found, allowed));
    }
    if let Some(j) = lost(&|j| (mean[j] - data.mean[j]).powi(2)) {
        let found = format!("so far from the data in column {j} that `{name}` is lost to float64 rounding");
        return Err(Error::invalid("mean", found, format!("closer to the data, or used with a larger `{name}`")));
    }
    Ok(())
}

impl FromParameters for DiagonalGaussian {
    const ENTRY: Entry = Entry {
        domain: Some(Domain::Real),
        freedom: Freedom::Columns,
        measures: &[
            Measured::always("mean", Measure::Place),
            Measured::always("mean_precision", Measure::Shared),
            Measured::always("shape", Measure::Shared),
            Measured::always("rate", Measure::Squares),
            Measured::always("variance", Measure::Squares),
            Measured::always(RESOLUTION.name, Measure::Lengths),
        ],
        faces: &["scores", "points", "imputation", "draws", "parameters", "urn", "evidence", "laws"],
        supports: &[Support::always(Feature::Missing), Support::always(Feature::Moves)],
        parameters: &[
            Parameter::new("mean", ParameterKind::Vector, DefaultValue::Data),
            Parameter::new("mean_precision", ParameterKind::NumberOrGamma(Range::POSITIVE), DefaultValue::Evidence),
            Parameter::new("shape", ParameterKind::Number(Range::SURENESS), DefaultValue::Evidence),
            Parameter::new("rate", ParameterKind::NumberOrVector(Range::POSITIVE), DefaultValue::Evidence),
            RESOLUTION,
            PRIOR,
        ],
        ..Entry::new("DiagonalGaussian")
    };
    const NEEDS: Needs = Needs::Variances;

    fn check(parameters: &Parameters) -> Result<()> {
        parameters.check(&Self::ENTRY)?;
        let d = parameters.vector("mean")?.map(<[f64]>::len);
        parameters.positives("rate", d).map(drop)
    }

    fn resolve(parameters: &Parameters, data: &Moments) -> Result<Parameters> {
        Self::check(parameters)?;
        let d = data.dimension();
        let shape = parameters.number("shape")?.unwrap_or(1.5);
        // With shape 3/2 this is the rule of `Gaussian` for one column. The expected prior precision does not depend on
        // the shape.
        let rule = |variance: f64| shape / 3.0 * (variance + ridge(variance, &data.variance));
        let rate = parameters
            .positives("rate", Some(d))?
            .unwrap_or_else(|| data.variance.iter().map(|&variance| rule(variance)).collect());
        let mean = parameters.vector_of("mean", d)?.map_or_else(|| data.mean.clone(), <[f64]>::to_vec);
        check_survival("rate", &rate, &mean, data)?;
        Ok(Parameters::from_pairs([
            ("mean", vector(mean)),
            ("mean_precision", Value::Number(parameters.number("mean_precision")?.unwrap_or(0.1))),
            ("shape", Value::Number(shape)),
            ("rate", vector(rate)),
            (RESOLUTION.name, resolved_resolution(parameters, data)?),
        ]))
    }

    fn build(parameters: &Parameters, frame: Frame) -> Result<Self> {
        Self::check(parameters)?;
        let d = frame.origin.len();
        let mean = Parameters::required("mean", parameters.vector_of("mean", d)?)?;
        let kappa = Parameters::required("mean_precision", parameters.number("mean_precision")?)?;
        let shape = Parameters::required("shape", parameters.number("shape")?)?;
        let rate = Parameters::required("rate", parameters.positives("rate", Some(d))?)?;
        let rounding = cell_variances(parameters, d)?;
        let column = |j: usize| NormalGamma {
            kappa,
            mean: mean[j] - frame.origin[j],
            shape,
            rate: rate[j],
            rounding: rounding[j],
        };
        Ok(Self { prior: (0..d).map(column).collect(), frame, has_scales: false })
    }
}

impl Conjugate for DiagonalGaussian {
    fn n_statistics(&self) -> usize {
        (if self.frame.missing { 3 } else { 2 }) * self.prior.len()
    }

    fn origin(&self) -> &[f64] {
        &self.frame.origin
    }

    fn accumulate(&self, rows: RowBlock<'_, f64>, weights: &[f64], statistics: &mut [f64], _: &mut Lines<f64>) {
        let d = self.prior.len();
        let (sums, rest) = statistics.split_at_mut(d);
        let (squares, counts) = rest.split_at_mut(d);
        for (row, &weight) in rows.dense().chunks_exact(d).zip(weights) {
            if counts.is_empty() || row.iter().all(|x| !x.is_nan()) {
                for ((sum, square), &x) in sums.iter_mut().zip(&mut *squares).zip(row) {
                    let weighted = weight * x;
                    *sum += weighted;
                    *square += weighted * x;
                }
                for count in &mut *counts {
                    *count += weight;
                }
                continue;
            }
            for (column, &x) in row.iter().enumerate().filter(|(_, x)| !x.is_nan()) {
                sums[column] += weight * x;
                squares[column] += weight * x * x;
                counts[column] += weight;
            }
        }
    }

    fn squares(&self) -> std::ops::Range<usize> {
        self.prior.len()..2 * self.prior.len()
    }

    fn log_marginal(&self, component: Sufficient<'_>) -> Result<f64> {
        let posterior = self.posterior(component);
        Ok(posterior.iter().zip(&self.prior).map(|(column, prior)| column.cumulant_above(*prior)).sum())
    }

    fn expected_at_prior(&self, units: Sufficient<'_>) -> Result<f64> {
        Ok(self.sums(units).zip(&self.prior).map(|(sums, prior)| prior.expected_of(sums)).sum())
    }

    fn check_statistics(&self, components: &[Sufficient<'_>]) -> Result<()> {
        let sums = 2 * self.prior.len();
        check_presence(components.iter().map(|component| (component.count, &component.statistics[sums..])))
    }

    fn posterior_parameters(&self, components: &[Sufficient<'_>]) -> Result<Parameters> {
        let d = self.prior.len();
        let all: Vec<NormalGamma> = components.iter().flat_map(|component| self.posterior(*component)).collect();
        let of = |value: fn(&NormalGamma) -> f64| table(d, all.iter().map(value).collect());
        // Equal in all columns unless values are missing.
        let shared = |value: fn(&NormalGamma) -> f64| {
            if self.frame.missing { of(value) } else { vector(all.iter().step_by(d).map(value).collect()) }
        };
        let means = all.iter().zip(self.frame.origin.iter().cycle()).map(|(column, o)| column.mean + o).collect();
        Ok(Parameters::from_pairs([
            ("mean", table(d, means)),
            ("mean_precision", shared(|column| column.kappa)),
            ("shape", shared(|column| column.shape)),
            ("rate", of(|column| column.rate)),
        ]))
    }

    fn rebase(&self, component: Sufficient<'_>, origin: &[f64]) -> Result<Vec<f64>> {
        // With t = old origin - new origin: sum (x + t) = s + n t, sum (x + t)^2 = q + 2 t s + n t^2.
        let d = self.prior.len();
        let mut moved = component.statistics.to_vec();
        for (j, sums) in self.sums(component).enumerate() {
            let shift = origin[j] - self.frame.origin[j];
            if self.prior[j].rate < LEAST_SHARE * shift * shift {
                let found = "a fit of data so far from these that float64 loses precision";
                return Err(Error::invalid("init", found, "a fit of data closer to these"));
            }
            moved[j] += sums.mass * shift;
            moved[d + j] += shift * (2.0 * sums.sum + sums.mass * shift);
        }
        Ok(moved)
    }
}

capabilities!(DiagonalGaussian: scores, points, imputation, draws, parameters, urn, evidence, laws);

impl Urn for DiagonalGaussian {
    /// A Student t density per column.
    fn log_predictives(&self, caches: &[f64], row: Row<'_>, out: &mut [f64]) -> Result<()> {
        for (cache, out) in caches.chunks_exact(self.cache_len()).zip(out) {
            let posterior = self.posterior(urn::parts(cache).0);
            *out = row.sum(0.0, |column, x| posterior[column].predictive()(x));
        }
        Ok(())
    }

    fn memo(&self, _: Sufficient<'_>) -> Result<f64> {
        Ok(0.0)
    }
}

impl<F: Scalar> Scores<F> for DiagonalGaussian {
    fn scorer(
        &self,
        components: &[Sufficient<'_>],
        log_weights: &[f64],
        density: Density,
    ) -> Result<Box<dyn Scorer<F>>> {
        let k = components.len();
        if density == Density::Predictive {
            let (d, log_weights) = (self.prior.len(), log_weights.to_vec());
            let columns: Vec<Vec<_>> = components
                .iter()
                .map(|component| self.posterior(*component).into_iter().map(NormalGamma::predictive).collect())
                .collect();
            return Ok(Box::new(RowScorer::new(d, k, move |k, row| {
                log_weights[k] + row.sum(0.0, |column, x| columns[k][column](x))
            })));
        }
        let packed = map(k, |k| {
            let columns = match density {
                Density::Expected(Objective::Map) => self.of_points(components[k], Estimate::Mode, true),
                Density::Expected(Objective::Ml) => self.of_points(components[k], Estimate::MaximumLikelihood, true),
                Density::PlugIn(estimate) => self.of_points(components[k], estimate, false),
                Density::Divergence => {
                    let posterior = self.posterior(components[k]);
                    posterior.iter().zip(&self.prior).map(|(column, prior)| column.divergence(*prior)).collect()
                }
                _ => self.posterior(components[k]).into_iter().map(NormalGamma::expected).collect(),
            };
            ColumnTerms { constant: log_weights[k], columns }
        });
        let scorer = ColumnScorer::new(Curve::Square, packed, self.frame.missing);
        if density != Density::Divergence {
            return Ok(Box::new(scorer));
        }
        let prior = self.prior.clone();
        Ok(Box::new(scorer.with_row_terms(RowFunction::new(move |row| {
            0.5 * row.sum(0.0, |column, x| prior[column].smoothed_log_variance(x))
        }))))
    }

    fn divergence_from_prior(&self, component: Sufficient<'_>) -> Result<f64> {
        let posterior = self.posterior(component);
        Ok(posterior.iter().zip(&self.prior).map(|(column, prior)| column.divergence_from(*prior)).sum())
    }

    fn log_base_measures(&self, rows: RowBlock<'_, F>, out: &mut [f64]) {
        let d = self.prior.len();
        let present = |row: &[F]| if self.frame.missing { row.iter().filter(|x| !x.is_nan()).count() } else { d };
        for (row, out) in rows.dense().chunks_exact(d).zip(out) {
            *out = -0.5 * (2.0 * PI).ln() * present(row) as f64;
        }
    }
}

impl PointEstimates for DiagonalGaussian {
    fn at_point(&self, component: Sufficient<'_>, estimate: Estimate) -> Result<AtPoint> {
        let mut contribution = AtPoint { log_likelihood: 0.0, log_prior: 0.0 };
        for ((sums, point), prior) in self.sums(component).zip(self.points(component, estimate)).zip(&self.prior) {
            let ColumnPoint { mean, precision, blur } = point;
            let scatter = sums.squares - 2.0 * mean * sums.sum + sums.mass * (mean * mean + blur);
            contribution.log_likelihood += 0.5 * (sums.rows * precision.ln() - precision * scatter);
            contribution.log_prior += prior.log_density(mean, precision);
        }
        Ok(contribution)
    }

    fn check_mode(&self) -> Result<()> {
        match self.prior.first() {
            Some(prior) if prior.shape <= 0.5 => Err(Error::invalid(
                "shape",
                Value::Number(prior.shape),
                "greater than 1/2 where the objective is \"map\"",
            )),
            _ => Ok(()),
        }
    }

    fn point_estimates(&self, components: &[Sufficient<'_>], estimate: Estimate) -> Result<Parameters> {
        let d = self.prior.len();
        let points: Vec<ColumnPoint> =
            components.iter().flat_map(|component| self.points(*component, estimate)).collect();
        let means = points.iter().zip(self.frame.origin.iter().cycle()).map(|(point, o)| point.mean + o).collect();
        let variances = points.iter().map(|point| point.precision.recip()).collect();
        Ok(Parameters::from_pairs([("mean", table(d, means)), ("variance", table(d, variances))]))
    }
}

impl Imputation for DiagonalGaussian {
    fn predictive_moments(&self, component: Sufficient<'_>) -> Result<(Vec<f64>, Vec<f64>)> {
        let moments = |(posterior, origin): (NormalGamma, &f64)| {
            let spread = posterior.rate * (posterior.kappa + 1.0) / (posterior.kappa * (posterior.shape - 1.0));
            (posterior.mean + origin, if posterior.shape > 1.0 { spread } else { f64::INFINITY })
        };
        Ok(self.posterior(component).into_iter().zip(&self.frame.origin).map(moments).unzip())
    }
}

impl DiagonalGaussian {
    /// log p(x) at point estimates. `blurred` adds the blur, as in the objective.
    fn of_points(&self, component: Sufficient<'_>, estimate: Estimate, blurred: bool) -> Vec<Column> {
        let column = |ColumnPoint { mean, precision, blur }: ColumnPoint| {
            let blur = if blurred { precision * blur } else { 0.0 };
            Column::square(precision, mean, 0.5 * (precision.ln() - (2.0 * PI).ln() - blur))
        };
        self.points(component, estimate).into_iter().map(column).collect()
    }
}
