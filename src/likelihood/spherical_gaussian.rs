//! One variance for all columns (mathematics 1d'). The base measure is either conjugate, with a prior variance of the
//! mean proportional to the variance, or the product of a normal and a gamma distribution (Blei & Jordan 2006, section
//! 5).
//!
//! The product is conditionally conjugate: q(mu) q(lambda) is found by alternating updates. It has no closed marginal
//! likelihood; the evidence lower bound of the component takes its place.
//!
//! With missing values every column has its own count and therefore its own kappa (mathematics 1.7).

mod densities;
mod evidence;
mod laws;
mod missing;
mod points;
mod predictive;
mod product;

use std::f64::consts::PI;

use crate::data::{Domain, Freedom, Moments, Needs, RowBlock};
use crate::error::{Error, Result};
use crate::likelihood::counts::check_presence;
use crate::likelihood::gamma;
use crate::likelihood::no_marginal;
use crate::likelihood::resolution::{cell_variances, resolved_resolution};
use crate::likelihood::ridge::{LEAST_SHARE, RIDGE};
use crate::likelihood::{
    Conjugate, Density, Estimate, Evidence, Frame, FromParameters, Imputation, Laws, Likelihood, ParameterDraws,
    PointEstimates, RowDraws, Scores, Urn,
};
use crate::parallel::map;
use crate::parameters::{Parameters, Value, table, vector};
use crate::registry::{
    DefaultValue, Entry, Feature, Measure, Measured, PRIOR, Parameter, ParameterKind, RESOLUTION, Range, Support,
};
use crate::scoring::{ColumnScorer, ColumnTerms, Curve, RowFunction, RowScorer, Scorer};
use crate::simd::{Lines, Scalar};
use crate::special::digamma;
use crate::suffstats::Sufficient;

/// The base measure of mean and precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    /// mu | lambda ~ N(mean, 1 / (`mean_precision` lambda) I).
    Conjugate,
    /// mu ~ N(mean, 1 / `mean_precision` I), independent of lambda.
    Product,
}

/// x ~ N(mu, I / lambda), lambda ~ Gamma(shape, rate). Statistics: sum x, sum |x|^2, and with missing values the count
/// of each column.
#[derive(Debug)]
pub struct SphericalGaussian {
    frame: Frame,
    base: Base,
    prior: SphericalPosterior,
    /// Variance of a value within its rounding cell, (D,).
    rounding: Vec<f64>,
}

/// The distribution of mean and precision; the mean is relative to the origin.
#[derive(Debug, Clone, PartialEq)]
struct SphericalPosterior {
    mean: Vec<f64>,
    /// kappa under the conjugate base measure; the precision of the mean itself under the product.
    kappa: f64,
    /// kappa by column if values may be missing; empty if all are equal.
    kappas: Vec<f64>,
    shape: f64,
    rate: f64,
    /// Variance of a row within its rounding cell, summed over columns.
    rounding: f64,
}

/// A point estimate.
struct SphericalPoint {
    mean: Vec<f64>,
    precision: f64,
    /// Variance by which values are blurred, as in the diagonal family.
    blur: f64,
}

/// Count, sums and scatter about the mean of the rows of a component.
struct Centred<'a> {
    n: f64,
    sums: &'a [f64],
    scatter: f64,
    /// Number of rows with a value, by column; empty if no values are missing.
    counts: &'a [f64],
}

impl SphericalGaussian {
    fn d(&self) -> f64 {
        self.prior.mean.len() as f64
    }

    fn centred<'a>(&self, component: Sufficient<'a>) -> Centred<'a> {
        let (sums, rest) = component.statistics.split_at(self.prior.mean.len());
        let (square, counts) = rest.split_at(1);
        if self.frame.missing {
            return self.centred_columns(component.count, sums, square[0], counts);
        }
        let n = component.count;
        let squares: f64 = sums.iter().map(|s| s * s).sum();
        let scatter = |n: f64| (square[0] - squares / n).max(0.0) + n * self.prior.rounding;
        Centred { n, sums, scatter: if n < 1e-12 { 0.0 } else { scatter(n) }, counts }
    }

    fn posterior(&self, component: Sufficient<'_>) -> SphericalPosterior {
        let centred = self.centred(component);
        match self.base {
            _ if centred.n < 1e-12 => self.prior.clone(),
            Base::Conjugate if self.frame.missing => self.conjugate_columns(&centred),
            Base::Conjugate => self.conjugate(&centred),
            Base::Product => self.product(&centred),
        }
    }

    fn conjugate(&self, centred: &Centred<'_>) -> SphericalPosterior {
        let SphericalPosterior { mean, kappa: kappa_0, shape, rate, rounding, .. } = &self.prior;
        let kappa = kappa_0 + centred.n;
        let away = |(s, m): (&f64, &f64)| s / centred.n - m;
        let distance: f64 = centred.sums.iter().zip(mean).map(away).map(|away| away * away).sum();
        SphericalPosterior {
            mean: centred.sums.iter().zip(mean).map(|(s, m)| m + centred.n / kappa * away((s, m))).collect(),
            kappa,
            kappas: Vec::new(),
            shape: shape + 0.5 * centred.n * self.d(),
            rate: rate + 0.5 * (centred.scatter + kappa_0 * centred.n / kappa * distance),
            rounding: *rounding,
        }
    }

    /// E[lambda |mu - E mu|^2], summed over columns.
    fn spread(&self, posterior: &SphericalPosterior) -> f64 {
        match self.base {
            Base::Conjugate => self.d() / posterior.kappa,
            Base::Product => self.d() / posterior.kappa * posterior.shape / posterior.rate,
        }
    }

    /// sum r E log p(x | phi) without the base measure.
    fn expected_log_likelihood(&self, posterior: &SphericalPosterior, centred: &Centred<'_>) -> f64 {
        if centred.n < 1e-12 {
            return 0.0;
        }
        let distance: f64 = centred.sums.iter().zip(&posterior.mean).map(|(s, m)| (s / centred.n - m).powi(2)).sum();
        let precision = posterior.shape / posterior.rate;
        0.5 * (centred.n * (self.d() * (digamma(posterior.shape) - posterior.rate.ln()) - self.spread(posterior))
            - precision * (centred.scatter + centred.n * distance))
    }

    fn divergence(&self, posterior: &SphericalPosterior) -> f64 {
        let prior = &self.prior;
        let distance: f64 = posterior.mean.iter().zip(&prior.mean).map(|(a, b)| (a - b).powi(2)).sum();
        let precision = if self.base == Base::Conjugate { posterior.shape / posterior.rate } else { 1.0 };
        let of_ratio = |kappa: f64| {
            let ratio = prior.kappa / kappa;
            ratio - 1.0 - ratio.ln()
        };
        0.5 * self.sum_over_columns(posterior, of_ratio)
            + 0.5 * prior.kappa * precision * distance
            + gamma::divergence((prior.shape, prior.rate), (posterior.shape - prior.shape, posterior.rate - prior.rate))
    }

    fn point(&self, component: Sufficient<'_>, estimate: Estimate) -> SphericalPoint {
        let centred = self.centred(component);
        let posterior = self.posterior(component);
        match estimate {
            Estimate::MaximumLikelihood if self.frame.missing && centred.n >= 1e-12 => {
                self.likeliest(&centred, posterior)
            }
            Estimate::MaximumLikelihood if centred.n >= 1e-12 => {
                let blur = RIDGE * self.prior.rate / self.prior.shape;
                let variance = centred.scatter / (centred.n * self.d()) + blur;
                SphericalPoint {
                    mean: centred.sums.iter().map(|s| s / centred.n).collect(),
                    precision: variance.recip(),
                    blur,
                }
            }
            Estimate::Mode if self.base == Base::Conjugate => {
                let precision = (posterior.shape - 1.0 + 0.5 * self.d()) / posterior.rate;
                SphericalPoint { mean: posterior.mean, precision, blur: 0.0 }
            }
            Estimate::Mode => self.product_mode(&centred, posterior),
            _ => SphericalPoint { precision: posterior.shape / posterior.rate, mean: posterior.mean, blur: 0.0 },
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
        faces: &["scores", "points", "imputation", "draws", "parameters", "urn", "evidence", "laws"],
        supports: &[
            Support { feature: Feature::Missing, unless: Some((BASE.name, "product")) },
            Support { feature: Feature::Moves, unless: Some((BASE.name, "product")) },
        ],
        parameters: &[
            Parameter::new("mean", ParameterKind::Vector, DefaultValue::Data),
            Parameter::new("mean_precision", ParameterKind::NumberOrGamma(Range::POSITIVE), DefaultValue::Evidence),
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
            let found = "so small that float64 rounding of the scatter of the data hides it";
            let allowed = format!("at least {LEAST_SHARE:.0e} of the variance of a column");
            return Err(Error::invalid("rate", found, allowed));
        }
        if mean.iter().zip(&data.mean).any(|(m, x)| rate < LEAST_SHARE * (m - x).powi(2)) {
            let found = "so far from the data that `rate` is lost to float64 rounding";
            return Err(Error::invalid("mean", found, "closer to the data, or used with a larger `rate`"));
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
        let rounding = cell_variances(parameters, frame.origin.len())?;
        let prior = SphericalPosterior {
            mean: mean.iter().zip(&frame.origin).map(|(m, o)| m - o).collect(),
            kappa: number("mean_precision")?,
            kappas: Vec::new(),
            shape: number("shape")?,
            rate: number("rate")?,
            rounding: rounding.iter().sum(),
        };
        let base = base(parameters)?;
        if frame.missing && base == Base::Product {
            return Err(Error::not_supported(
                "missing",
                "missing=\"marginalize\" for SphericalGaussian(base=\"product\")",
                "missing values cannot be integrated out exactly",
                "another base, or data without missing values",
            ));
        }
        Ok(Self { frame, base, prior, rounding })
    }
}

fn base(parameters: &Parameters) -> Result<Base> {
    Ok(if parameters.word(&BASE)? == "conjugate" { Base::Conjugate } else { Base::Product })
}

impl Conjugate for SphericalGaussian {
    fn n_statistics(&self) -> usize {
        let d = self.prior.mean.len();
        if self.frame.missing { 2 * d + 1 } else { d + 1 }
    }

    fn origin(&self) -> &[f64] {
        &self.frame.origin
    }

    fn accumulate(&self, rows: RowBlock<'_, f64>, weights: &[f64], statistics: &mut [f64], _: &mut Lines<f64>) {
        let d = self.prior.mean.len();
        if self.frame.missing {
            return missing::accumulate(d, rows.dense(), weights, statistics);
        }
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

    fn squares(&self) -> std::ops::Range<usize> {
        self.prior.mean.len()..self.prior.mean.len() + 1
    }

    fn check_marginal(&self) -> Result<()> {
        match self.base {
            Base::Conjugate => Ok(()),
            Base::Product => Err(no_marginal("SphericalGaussian(base=\"product\")", "base=\"conjugate\"")),
        }
    }

    fn log_marginal(&self, component: Sufficient<'_>) -> Result<f64> {
        let posterior = self.posterior(component);
        Ok(match self.base {
            Base::Conjugate => {
                gamma::cumulant_above(
                    (self.prior.shape, self.prior.rate),
                    (posterior.shape - self.prior.shape, posterior.rate - self.prior.rate),
                ) + 0.5 * self.sum_over_columns(&posterior, |kappa| (self.prior.kappa / kappa).ln())
            }
            Base::Product => {
                self.expected_log_likelihood(&posterior, &self.centred(component)) - self.divergence(&posterior)
            }
        })
    }

    fn expected_at_prior(&self, units: Sufficient<'_>) -> Result<f64> {
        let (SphericalPosterior { mean, shape, rate, .. }, d) = (&self.prior, self.prior.mean.len());
        let (sums, rest) = units.statistics.split_at(d);
        let (precision, spread) = (shape / rate, self.spread(&self.prior) / self.d());
        let count = |j: usize| rest.get(1 + j).map_or(units.count, |count| count.max(0.0));
        let of_column = |j: usize| {
            let (n, m) = (count(j), mean[j]);
            let distance = n * m * m - 2.0 * m * sums[j] + n * self.rounding[j];
            n * (digamma(*shape) - rate.ln() - spread) - precision * distance
        };
        Ok(0.5 * ((0..d).map(of_column).sum::<f64>() - precision * rest[0]))
    }

    fn posterior_parameters(&self, components: &[Sufficient<'_>]) -> Result<Parameters> {
        let all: Vec<SphericalPosterior> = components.iter().map(|component| self.posterior(*component)).collect();
        let of = |value: fn(&SphericalPosterior) -> f64| vector(all.iter().map(value).collect());
        let means = all
            .iter()
            .flat_map(|posterior| posterior.mean.iter().zip(&self.frame.origin).map(|(m, o)| m + o))
            .collect();
        Ok(Parameters::from_pairs([
            ("mean", table(self.prior.mean.len(), means)),
            ("mean_precision", if self.frame.missing { self.kappas_of(&all) } else { of(|posterior| posterior.kappa) }),
            ("shape", of(|posterior| posterior.shape)),
            ("rate", of(|posterior| posterior.rate)),
        ]))
    }

    fn rebase(&self, component: Sufficient<'_>, origin: &[f64]) -> Result<Vec<f64>> {
        let d = self.prior.mean.len();
        let mut moved = component.statistics.to_vec();
        for j in 0..d {
            let count = component.statistics.get(d + 1 + j).copied().unwrap_or(component.count);
            let shift = origin[j] - self.frame.origin[j];
            if self.prior.rate < LEAST_SHARE * shift * shift {
                let found = "a fit of data so far from these that float64 loses precision";
                return Err(Error::invalid("init", found, "a fit of data closer to these"));
            }
            moved[j] += count * shift;
            moved[d] += shift * (2.0 * component.statistics[j] + count * shift);
        }
        Ok(moved)
    }

    fn check_statistics(&self, components: &[Sufficient<'_>]) -> Result<()> {
        let first = self.prior.mean.len() + 1;
        check_presence(components.iter().map(|component| (component.count, &component.statistics[first..])))
    }
}

impl<F: Scalar> Likelihood<F> for SphericalGaussian {
    fn scores(&self) -> Option<&dyn Scores<F>> {
        Some(self)
    }

    fn points(&self) -> Option<&dyn PointEstimates> {
        Some(self)
    }

    fn imputation(&self) -> Option<&dyn Imputation> {
        if self.base == Base::Conjugate { Some(self) } else { None }
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

    fn laws(&self) -> Option<&dyn Laws> {
        Some(self)
    }

    fn urn(&self) -> Option<&dyn Urn> {
        if self.base == Base::Conjugate { Some(self) } else { None }
    }
}

/// Valid under the conjugate base measure only.
impl Urn for SphericalGaussian {}

impl<F: Scalar> Scores<F> for SphericalGaussian {
    fn scorer(
        &self,
        components: &[Sufficient<'_>],
        log_weights: &[f64],
        density: Density,
    ) -> Result<Box<dyn Scorer<F>>> {
        let k = components.len();
        if self.frame.missing {
            return Ok(self.scorer_with_missing(components, log_weights, density));
        }
        if density == Density::Predictive {
            let (d, log_weights) = (self.prior.mean.len(), log_weights.to_vec());
            let parts: Vec<_> = components
                .iter()
                .map(|component| {
                    let posterior = self.posterior(*component);
                    (self.predictive(&posterior), posterior.mean)
                })
                .collect();
            return Ok(Box::new(RowScorer::new(d, k, move |k, row| {
                let (density, mean) = &parts[k];
                log_weights[k] + density(row.sum(0.0, |column, x| (x - mean[column]).powi(2)))
            })));
        }
        let packed = map(k, |k| {
            let (constant, columns) = self.columns(components[k], density);
            ColumnTerms { constant: constant + log_weights[k], columns }
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

    fn log_base_measures(&self, rows: RowBlock<'_, F>, out: &mut [f64]) {
        out.fill(-0.5 * self.d() * (2.0 * PI).ln());
        if self.frame.missing {
            for (row, out) in rows.dense().chunks_exact(self.prior.mean.len()).zip(out) {
                *out = -0.5 * (2.0 * PI).ln() * row.iter().filter(|x| !x.is_nan()).count() as f64;
            }
        }
    }
}
