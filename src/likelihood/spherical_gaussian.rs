//! One variance for all columns (mathematics 1d'): with the conjugate base measure, in which the prior variance of the
//! mean is proportional to it, or with the product of a normal and a gamma distribution (Blei & Jordan 2006, section
//! 5).
//!
//! The product is conjugate in each factor alone: q(mu) q(lambda) is found by turns. It has no closed marginal
//! likelihood; in its place stands the bound of a component by itself.

mod evidence;
mod points;
mod predictive;
mod product;

use std::f64::consts::PI;

use crate::data::{Domain, Freedom, Moments, Needs, RowBlock};
use crate::error::{Error, Result};
use crate::likelihood::diagonal_gaussian::RIDGE;
use crate::likelihood::gamma;
use crate::likelihood::no_marginal;
use crate::likelihood::spherical_gaussian::predictive::ProductPredictive;
use crate::likelihood::wishart::{LEAST_SHARE, resolution, resolved_resolution};
use crate::likelihood::{
    Conjugate, Density, Estimate, Evidence, Frame, FromParameters, Likelihood, PointEstimates, RowDraws, Scores, Urn,
};
use crate::objective::Objective;
use crate::parallel::map;
use crate::parameters::{Parameters, Value, table, vector};
use crate::registry::{
    DefaultValue, Entry, Feature, Measure, Measured, PRIOR, Parameter, ParameterKind, RESOLUTION, Range, Support,
};
use crate::scoring::{Column, ColumnScorer, Columns, Curve, RowFunction, RowScorer, Scorer};
use crate::simd::{Lines, Scalar};
use crate::special::{digamma, ln_gamma_difference};
use crate::suffstats::Sufficient;

/// The base measure of mean and precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    /// mu | lambda ~ N(mean, 1 / (`mean_precision` lambda) I).
    Conjugate,
    /// mu ~ N(mean, 1 / `mean_precision` I), independent of lambda.
    Product,
}

/// x ~ N(mu, I / lambda), lambda ~ Gamma(shape, rate). Statistics: sum x, sum |x|^2.
#[derive(Debug)]
pub struct SphericalGaussian {
    frame: Frame,
    base: Base,
    prior: SphericalPosterior,
}

/// The distribution of mean and precision; the mean is relative to the origin.
#[derive(Debug, Clone, PartialEq)]
struct SphericalPosterior {
    mean: Vec<f64>,
    /// kappa under the conjugate base measure, the precision of the mean itself under the product.
    kappa: f64,
    shape: f64,
    rate: f64,
    /// Variance of a row within the cell to which it is rounded, summed over columns.
    rounding: f64,
}

/// A point estimate.
struct SphericalPoint {
    mean: Vec<f64>,
    precision: f64,
    /// As in the diagonal family.
    blur: f64,
}

/// Count, sums and scatter about the mean of what belongs to a component.
struct Centred<'a> {
    n: f64,
    sums: &'a [f64],
    scatter: f64,
}

impl SphericalGaussian {
    fn d(&self) -> f64 {
        self.prior.mean.len() as f64
    }

    fn centred<'a>(&self, component: Sufficient<'a>) -> Centred<'a> {
        let (sums, square) = component.statistics.split_at(self.prior.mean.len());
        let n = component.count;
        let squares: f64 = sums.iter().map(|s| s * s).sum();
        let scatter = |n: f64| (square[0] - squares / n).max(0.0) + n * self.prior.rounding;
        Centred { n, sums, scatter: if n < 1e-12 { 0.0 } else { scatter(n) } }
    }

    fn posterior(&self, component: Sufficient<'_>) -> SphericalPosterior {
        let own = self.centred(component);
        match self.base {
            _ if own.n < 1e-12 => self.prior.clone(),
            Base::Conjugate => self.conjugate(&own),
            Base::Product => self.product(&own),
        }
    }

    fn conjugate(&self, own: &Centred<'_>) -> SphericalPosterior {
        let SphericalPosterior { mean, kappa: kappa_0, shape, rate, rounding } = &self.prior;
        let kappa = kappa_0 + own.n;
        let away = |(s, m): (&f64, &f64)| s / own.n - m;
        let distance: f64 = own.sums.iter().zip(mean).map(away).map(|away| away * away).sum();
        SphericalPosterior {
            mean: own.sums.iter().zip(mean).map(|(s, m)| m + own.n / kappa * away((s, m))).collect(),
            kappa,
            shape: shape + 0.5 * own.n * self.d(),
            rate: rate + 0.5 * (own.scatter + kappa_0 * own.n / kappa * distance),
            rounding: *rounding,
        }
    }

    /// E |mu - E mu|^2 lambda, in all columns together.
    fn spread(&self, own: &SphericalPosterior) -> f64 {
        match self.base {
            Base::Conjugate => self.d() / own.kappa,
            Base::Product => self.d() / own.kappa * own.shape / own.rate,
        }
    }

    /// sum r E log p(x | phi) without the base measure.
    fn expected_log_likelihood(&self, own: &SphericalPosterior, of: &Centred<'_>) -> f64 {
        if of.n < 1e-12 {
            return 0.0;
        }
        let distance: f64 = of.sums.iter().zip(&own.mean).map(|(s, m)| (s / of.n - m).powi(2)).sum();
        let precision = own.shape / own.rate;
        0.5 * (of.n * (self.d() * (digamma(own.shape) - own.rate.ln()) - self.spread(own))
            - precision * (of.scatter + of.n * distance))
    }

    fn divergence(&self, own: &SphericalPosterior) -> f64 {
        let (prior, ratio) = (&self.prior, self.prior.kappa / own.kappa);
        let distance: f64 = own.mean.iter().zip(&prior.mean).map(|(a, b)| (a - b).powi(2)).sum();
        let precision = if self.base == Base::Conjugate { own.shape / own.rate } else { 1.0 };
        0.5 * self.d() * (ratio - 1.0 - ratio.ln())
            + 0.5 * prior.kappa * precision * distance
            + gamma::divergence((prior.shape, prior.rate), (own.shape - prior.shape, own.rate - prior.rate))
    }

    fn point(&self, component: Sufficient<'_>, estimate: Estimate) -> SphericalPoint {
        let own = self.centred(component);
        let posterior = self.posterior(component);
        match estimate {
            Estimate::MaximumLikelihood if own.n >= 1e-12 => {
                let blur = RIDGE * self.prior.rate / self.prior.shape;
                let variance = own.scatter / (own.n * self.d()) + blur;
                SphericalPoint { mean: own.sums.iter().map(|s| s / own.n).collect(), precision: variance.recip(), blur }
            }
            Estimate::Mode if self.base == Base::Conjugate => {
                let precision = (posterior.shape - 1.0 + 0.5 * self.d()) / posterior.rate;
                SphericalPoint { mean: posterior.mean, precision, blur: 0.0 }
            }
            Estimate::Mode => self.product_mode(&own, posterior),
            _ => SphericalPoint { precision: posterior.shape / posterior.rate, mean: posterior.mean, blur: 0.0 },
        }
    }

    /// The conjugate family of the same variances: rows are compared with centres in it.
    fn twin(&self) -> SphericalPosterior {
        let variance = if self.base == Base::Product { self.prior.rate / self.prior.shape } else { 1.0 };
        SphericalPosterior { kappa: self.prior.kappa * variance, ..self.prior.clone() }
    }

    /// As in the diagonal family, with one variance (mathematics 5.2).
    fn divergence_columns(&self, component: Sufficient<'_>) -> (f64, Vec<Column>) {
        let (d, prior) = (self.d(), self.twin());
        let own = Self { frame: self.frame.clone(), base: Base::Conjugate, prior: prior.clone() }.posterior(component);
        let row_shape = prior.shape + 0.5 * d;
        let shrinkage = (prior.kappa + 1.0).recip();
        let curvature = 0.5 * d * prior.kappa * shrinkage / row_shape + shrinkage * shrinkage;
        let variance = own.rate / own.shape;
        let columns = own.mean.iter().zip(&prior.mean).map(|(m, m_0)| {
            let away = m - m_0;
            let rest = away * away * (1.0 - shrinkage * shrinkage / curvature);
            Column::square(curvature / variance, m_0 + shrinkage / curvature * away, -0.5 * rest / variance)
        });
        let constant = -0.5 * d * (prior.rate / row_shape / variance + variance.ln() - 1.0);
        (constant, columns.collect())
    }

    /// log p(x | lambda) without its weight as a function of |x - m|^2.
    fn predictive(&self, own: &SphericalPosterior) -> Box<dyn Fn(f64) -> f64 + Send + Sync> {
        let (d, SphericalPosterior { kappa, shape, rate, .. }) = (self.d(), own.clone());
        if self.base == Base::Conjugate {
            let scale = kappa / (kappa + 1.0) / (2.0 * rate);
            let constant = ln_gamma_difference(shape, 0.5 * d) + 0.5 * d * (scale / PI).ln();
            return Box::new(move |square| constant - (shape + 0.5 * d) * (scale * square).ln_1p());
        }
        let integral = ProductPredictive::new(d, shape, rate, kappa);
        Box::new(move |square| integral.at(square))
    }

    fn columns(&self, component: Sufficient<'_>, density: Density) -> (f64, Vec<Column>) {
        let d = self.d();
        let of_point = |estimate, blurred| {
            let SphericalPoint { mean, precision, blur } = self.point(component, estimate);
            let blur = if blurred { precision * blur } else { 0.0 };
            let columns = mean.iter().map(|&m| Column::square(precision, m, 0.0)).collect();
            (0.5 * d * (precision.ln() - (2.0 * PI).ln() - blur), columns)
        };
        match density {
            Density::Divergence => self.divergence_columns(component),
            Density::Expected(Objective::Map) => of_point(Estimate::Mode, true),
            Density::Expected(Objective::Ml) => of_point(Estimate::MaximumLikelihood, true),
            Density::PlugIn(estimate) => of_point(estimate, false),
            _ => {
                let own = self.posterior(component);
                let precision = own.shape / own.rate;
                let spread = self.spread(&own) + precision * own.rounding;
                let constant = 0.5 * (d * (digamma(own.shape) - own.rate.ln() - (2.0 * PI).ln()) - spread);
                (constant, own.mean.iter().map(|&m| Column::square(precision, m, 0.0)).collect())
            }
        }
    }
}

const BASE: Parameter =
    Parameter::new("base", ParameterKind::Word(&["conjugate", "product"]), DefaultValue::Word("conjugate"));

impl FromParameters for SphericalGaussian {
    const ENTRY: Entry = Entry {
        domain: Some(Domain::Real),
        freedom: Freedom::Common,
        measures: &[
            Measured::always("mean", Measure::Place),
            Measured { name: "mean_precision", measure: Measure::InverseSquare, only: Some((BASE.name, "product")) },
            Measured::always("rate", Measure::Square),
            Measured::always("variance", Measure::Square),
            Measured::always(RESOLUTION.name, Measure::Lengths),
        ],
        faces: &["scores", "points", "draws", "urn", "evidence"],
        supports: &[Support { feature: Feature::Moves, unless: Some((BASE.name, "product")) }],
        parameters: &[
            Parameter::new("mean", ParameterKind::Vector, DefaultValue::Data),
            Parameter::new("mean_precision", ParameterKind::Number(Range::POSITIVE), DefaultValue::Evidence),
            Parameter::new("shape", ParameterKind::Number(Range::SURENESS), DefaultValue::Evidence),
            Parameter::new("rate", ParameterKind::Number(Range::POSITIVE), DefaultValue::Evidence),
            BASE,
            RESOLUTION,
            PRIOR,
        ],
        ..Entry::new("SphericalGaussian")
    };
    const NEEDS: Needs = Needs::Variances;

    fn check(parameters: &Parameters) -> Result<()> {
        parameters.check(&Self::ENTRY)
    }

    fn resolve(parameters: &Parameters, data: &Moments) -> Result<Parameters> {
        Self::check(parameters)?;
        let d = data.dimension();
        let variance = if data.mean_variance() > 0.0 { data.mean_variance() } else { 1.0 };
        let ridge = 1e-3 * variance;
        let shape = parameters.number("shape")?.unwrap_or(1.5);
        let rate = parameters.number("rate")?.unwrap_or(shape / 3.0 * (data.mean_variance() + ridge));
        let mean = parameters.vector_of("mean", d)?.map_or_else(|| data.mean.clone(), <[f64]>::to_vec);
        let precision = match (parameters.number("mean_precision")?, base(parameters)?) {
            (Some(precision), _) => precision,
            (None, Base::Conjugate) => 0.1,
            (None, Base::Product) => 0.1 / variance,
        };
        if rate < LEAST_SHARE * data.mean_variance() {
            let found = "so small that float64 loses it beside the scatter of the data";
            let allowed = format!("at least {LEAST_SHARE:.0e} of the variance of a column");
            return Err(Error::invalid("rate", found, allowed));
        }
        if mean.iter().zip(&data.mean).any(|(m, x)| rate < LEAST_SHARE * (m - x).powi(2)) {
            let found = "so far from the data that float64 loses `rate` beside the distance";
            return Err(Error::invalid("mean", found, "nearer the data, or used with a larger `rate`"));
        }
        Ok(Parameters::from_pairs([
            ("mean", vector(mean)),
            ("mean_precision", Value::Number(precision)),
            ("shape", Value::Number(shape)),
            ("rate", Value::Number(rate)),
            ("base", Value::Text(parameters.word(&BASE)?.to_owned())),
            (RESOLUTION.name, resolved_resolution(parameters, data)?),
        ]))
    }

    fn build(parameters: &Parameters, frame: Frame) -> Result<Self> {
        Self::check(parameters)?;
        let mean = Parameters::required("mean", parameters.vector_of("mean", frame.origin.len())?)?;
        let number = |name| Parameters::required(name, parameters.number(name)?);
        let prior = SphericalPosterior {
            mean: mean.iter().zip(&frame.origin).map(|(m, o)| m - o).collect(),
            kappa: number("mean_precision")?,
            shape: number("shape")?,
            rate: number("rate")?,
            rounding: resolution(parameters, frame.origin.len())?.iter().map(|width| width * width / 12.0).sum(),
        };
        Ok(Self { frame, base: base(parameters)?, prior })
    }
}

fn base(parameters: &Parameters) -> Result<Base> {
    Ok(if parameters.word(&BASE)? == "conjugate" { Base::Conjugate } else { Base::Product })
}

impl Conjugate for SphericalGaussian {
    fn n_statistics(&self) -> usize {
        self.prior.mean.len() + 1
    }

    fn origin(&self) -> &[f64] {
        &self.frame.origin
    }

    fn accumulate(&self, rows: RowBlock<'_, f64>, weights: &[f64], statistics: &mut [f64], _: &mut Lines<f64>) {
        let d = self.prior.mean.len();
        let (sums, square) = statistics.split_at_mut(d);
        for (row, &weight) in rows.dense().chunks_exact(d).zip(weights) {
            let mut squares = 0.0;
            for (sum, &x) in sums.iter_mut().zip(row) {
                *sum += weight * x;
                squares += x * x;
            }
            square[0] += weight * squares;
        }
    }

    fn check_marginal(&self) -> Result<()> {
        match self.base {
            Base::Conjugate => Ok(()),
            Base::Product => Err(no_marginal("SphericalGaussian(base=\"product\")", "base=\"conjugate\"")),
        }
    }

    fn log_marginal(&self, component: Sufficient<'_>) -> Result<f64> {
        let own = self.posterior(component);
        Ok(match self.base {
            Base::Conjugate => {
                gamma::cumulant_above(
                    (self.prior.shape, self.prior.rate),
                    (own.shape - self.prior.shape, own.rate - self.prior.rate),
                ) + 0.5 * self.d() * (self.prior.kappa / own.kappa).ln()
            }
            Base::Product => self.expected_log_likelihood(&own, &self.centred(component)) - self.divergence(&own),
        })
    }

    fn posterior_parameters(&self, components: &[Sufficient<'_>]) -> Result<Parameters> {
        let all: Vec<SphericalPosterior> = components.iter().map(|component| self.posterior(*component)).collect();
        let of = |value: fn(&SphericalPosterior) -> f64| vector(all.iter().map(value).collect());
        let means = all.iter().flat_map(|own| own.mean.iter().zip(&self.frame.origin).map(|(m, o)| m + o)).collect();
        Ok(Parameters::from_pairs([
            ("mean", table(self.prior.mean.len(), means)),
            ("mean_precision", of(|own| own.kappa)),
            ("shape", of(|own| own.shape)),
            ("rate", of(|own| own.rate)),
        ]))
    }

    fn rebase(&self, component: Sufficient<'_>, origin: &[f64]) -> Result<Vec<f64>> {
        let d = self.prior.mean.len();
        let mut moved = component.statistics.to_vec();
        for j in 0..d {
            let shift = origin[j] - self.frame.origin[j];
            if self.prior.rate < LEAST_SHARE * shift * shift {
                let found = "a fit of data so far from these that float64 cannot hold it there";
                return Err(Error::invalid("init", found, "a fit of data like these"));
            }
            moved[j] += component.count * shift;
            moved[d] += shift * (2.0 * component.statistics[j] + component.count * shift);
        }
        Ok(moved)
    }
}

impl<F: Scalar> Likelihood<F> for SphericalGaussian {
    fn scores(&self) -> Option<&dyn Scores<F>> {
        Some(self)
    }

    fn points(&self) -> Option<&dyn PointEstimates> {
        Some(self)
    }

    fn draws(&self) -> Option<&dyn RowDraws> {
        Some(self)
    }

    fn evidence(&self) -> Option<&dyn Evidence> {
        Some(self)
    }

    fn urn(&self) -> Option<&dyn Urn> {
        if self.base == Base::Conjugate { Some(self) } else { None }
    }
}

/// Of the conjugate base measure.
impl Urn for SphericalGaussian {}

impl<F: Scalar> Scores<F> for SphericalGaussian {
    fn scorer(
        &self,
        components: &[Sufficient<'_>],
        log_weights: &[f64],
        density: Density,
    ) -> Result<Box<dyn Scorer<F>>> {
        let k = components.len();
        if density == Density::Predictive {
            let (d, log_weights) = (self.prior.mean.len(), log_weights.to_vec());
            let parts: Vec<_> = components
                .iter()
                .map(|component| {
                    let own = self.posterior(*component);
                    (self.predictive(&own), own.mean)
                })
                .collect();
            return Ok(Box::new(RowScorer::new(d, k, move |k, row| {
                let (density, mean) = &parts[k];
                log_weights[k] + density(row.sum(0.0, |column, x| (x - mean[column]).powi(2)))
            })));
        }
        let packed = map(k, |k| {
            let (constant, columns) = self.columns(components[k], density);
            Columns { constant: constant + log_weights[k], columns }
        });
        let scorer = ColumnScorer::new(Curve::Square, packed, false);
        if density != Density::Divergence {
            return Ok(Box::new(scorer));
        }
        let (d, prior) = (self.d(), self.twin());
        Ok(Box::new(scorer.with_row_terms(RowFunction::new(move |row| {
            let square = row.sum(0.0, |column, x| (x - prior.mean[column]).powi(2));
            let rate = prior.rate + 0.5 * prior.kappa / (prior.kappa + 1.0) * square;
            0.5 * d * (rate / (prior.shape + 0.5 * d)).ln()
        }))))
    }

    fn divergence_from_prior(&self, component: Sufficient<'_>) -> Result<f64> {
        Ok(self.divergence(&self.posterior(component)))
    }

    fn log_base_measures(&self, _: RowBlock<'_, F>, out: &mut [f64]) {
        out.fill(-0.5 * self.d() * (2.0 * PI).ln());
    }
}
