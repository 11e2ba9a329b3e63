//! Independent columns of counts with a Gamma base measure each (spec 1g; with holes, spec of missing entries, 2.4).

use rand_distr::Distribution;

use crate::data::{Demands, Domain, Moments, Needs, RowBlock};
use crate::error::{Error, Result};
use crate::likelihood::counts::{LEAST, Tally};
use crate::likelihood::gamma;
use crate::likelihood::{
    AtPoint, Conjugate, Density, Draw, Draws, Estimate, Frame, Imputation, PointEstimates, Scores, Specification,
    capabilities,
};
use crate::objective::Objective;
use crate::parallel::map;
use crate::parameters::{Parameters, Value, table, vector};
use crate::rng::Generator;
use crate::scoring::{Column, ColumnScorer, Columns, Curve, RowFunction, RowScorer, Scorer};
use crate::simd::{Lines, Scalar};
use crate::special::{digamma, ln_factorial, ln_gamma_difference, x_ln_x};
use crate::suffstats::Sufficient;

/// theta_d ~ Gamma(`shape_d`, rate), x_d ~ Poisson(theta_d). Statistics: sum x, and with holes the count of each column.
#[derive(Debug)]
pub struct Poisson {
    tally: Tally,
    /// (D,).
    prior: Vec<Rate>,
}

/// Gamma(shape, rate).
#[derive(Debug, Clone, Copy, PartialEq)]
struct Rate {
    shape: f64,
    rate: f64,
}

impl Rate {
    fn mean(self) -> f64 {
        self.shape / self.rate
    }

    /// `x ln theta - theta`.
    fn column(theta: f64) -> Column {
        Column::line(theta.max(LEAST).ln(), -theta)
    }

    /// Minus the divergence of a row's smoothed mean, but for the row's own part (spec 5.2).
    fn divergence(self, prior: Self) -> Column {
        let (theta, total) = (self.mean(), prior.rate + 1.0);
        Column::line(theta.ln() / total, prior.shape * theta.ln() / total - theta)
    }

    /// Minus the row's own part; `self` is the prior.
    fn smoothed_part(self, x: f64) -> f64 {
        let mean = (self.shape + x) / (self.rate + 1.0);
        mean - x_ln_x(mean)
    }

    /// ln p(x | lambda) without ln x!: a negative binomial.
    fn log_predictive(self, x: f64) -> f64 {
        let none = -self.shape * self.rate.recip().ln_1p();
        if x == 0.0 { none } else { none + ln_gamma_difference(self.shape, x) - x * self.rate.ln_1p() }
    }
}

impl Poisson {
    fn posterior(&self, component: Sufficient<'_>) -> Vec<Rate> {
        let columns = self.tally.of(component).zip(&self.prior);
        columns.map(|((n, s), prior)| Rate { shape: prior.shape + s, rate: prior.rate + n }).collect()
    }

    fn rates(&self, component: Sufficient<'_>, estimate: Estimate) -> Vec<f64> {
        let columns = self.posterior(component).into_iter().zip(self.tally.of(component));
        columns
            .map(|(own, (n, s))| match estimate {
                Estimate::Mode => (own.shape - 1.0).max(0.0) / own.rate,
                Estimate::MaximumLikelihood if n > 0.0 => s / n,
                _ => own.mean(),
            })
            .collect()
    }

    /// ln h(x).
    fn log_base() -> RowFunction {
        RowFunction::new(|row| -row.sum(0.0, |_, x| ln_factorial(x)))
    }
}

impl Specification for Poisson {
    const DEMANDS: Demands = Demands { domain: Domain::Counts, needs: Needs::Means, sparse: true, holes: true };

    fn check(parameters: &Parameters) -> Result<()> {
        parameters.only(&["shape", "rate"])?;
        parameters.positives("shape", None)?;
        parameters.positive("rate").map(drop)
    }

    fn resolve(parameters: &Parameters, data: &Moments) -> Result<Parameters> {
        Self::check(parameters)?;
        let d = data.dimension();
        let rate = parameters.number("rate")?.unwrap_or(1.0);
        let overall = data.mean.iter().sum::<f64>() / d as f64;
        let ridge = if overall > 0.0 { 1e-3 * overall } else { 1e-3 };
        let follow = || data.mean.iter().map(|mean| rate * (mean + ridge)).collect();
        let shape = parameters.positives("shape", Some(d))?.unwrap_or_else(follow);
        Ok(Parameters::from_pairs([("shape", vector(shape)), ("rate", Value::Number(rate))]))
    }

    fn build(parameters: &Parameters, frame: Frame) -> Result<Self> {
        Self::check(parameters)?;
        let d = frame.origin.len();
        let shape = Parameters::required("shape", parameters.positives("shape", Some(d))?)?;
        let rate = Parameters::required("rate", parameters.number("rate")?)?;
        let prior = shape.into_iter().map(|shape| Rate { shape, rate }).collect();
        Ok(Self { tally: Tally::new(d, frame.holes), prior })
    }
}

impl Conjugate for Poisson {
    fn n_statistics(&self) -> usize {
        self.tally.n_statistics()
    }

    fn origin(&self) -> &[f64] {
        &self.tally.origin
    }

    fn accumulate(&self, rows: RowBlock<'_, f64>, weights: &[f64], statistics: &mut [f64], _: &mut Lines<f64>) {
        self.tally.accumulate(rows, weights, statistics);
    }

    fn log_marginal(&self, component: Sufficient<'_>) -> Result<f64> {
        let columns = self.tally.of(component).zip(&self.prior);
        Ok(columns.map(|((n, s), prior)| gamma::cumulant_above((prior.shape, prior.rate), (s, n))).sum())
    }

    fn check_statistics(&self, components: &[Sufficient<'_>]) -> Result<()> {
        self.tally.check(components, false)
    }

    fn posterior_parameters(&self, components: &[Sufficient<'_>]) -> Result<Parameters> {
        let d = self.prior.len();
        let all: Vec<Rate> = components.iter().flat_map(|component| self.posterior(*component)).collect();
        let shape = table(d, all.iter().map(|own| own.shape).collect());
        // The same in all columns unless some have holes.
        let rate = if self.tally.holes {
            table(d, all.iter().map(|own| own.rate).collect())
        } else {
            vector(all.iter().step_by(d).map(|own| own.rate).collect())
        };
        Ok(Parameters::from_pairs([("shape", shape), ("rate", rate)]))
    }
}

capabilities!(Poisson: scores, points, imputation, draws);

impl<F: Scalar> Scores<F> for Poisson {
    fn scorer(
        &self,
        components: &[Sufficient<'_>],
        log_weights: &[f64],
        density: Density,
    ) -> Result<Box<dyn Scorer<F>>> {
        let (d, k) = (self.prior.len(), components.len());
        if density == Density::Predictive {
            let log_weights = log_weights.to_vec();
            let parts: Vec<_> = components.iter().map(|component| self.posterior(*component)).collect();
            let at_zero: Vec<f64> =
                parts.iter().map(|columns| columns.iter().map(|own| own.log_predictive(0.0)).sum()).collect();
            return Ok(Box::new(RowScorer::new(d, k, move |k, row| {
                let columns = &parts[k];
                log_weights[k] + row.sum(at_zero[k], |column, x| columns[column].log_predictive(x) - ln_factorial(x))
            })));
        }
        let packed = map(k, |k| {
            let of_point = |estimate| -> Vec<Column> {
                self.rates(components[k], estimate).into_iter().map(Rate::column).collect()
            };
            let columns = match density {
                Density::Expected(Objective::Map) => of_point(Estimate::Mode),
                Density::Expected(Objective::Ml) => of_point(Estimate::MaximumLikelihood),
                Density::PlugIn(estimate) => of_point(estimate),
                Density::Divergence => {
                    let columns = self.posterior(components[k]).into_iter().zip(&self.prior);
                    columns.map(|(own, prior)| own.divergence(*prior)).collect()
                }
                _ => {
                    let expected = |own: Rate| Column::line(digamma(own.shape) - own.rate.ln(), -own.mean());
                    self.posterior(components[k]).into_iter().map(expected).collect()
                }
            };
            Columns { constant: log_weights[k], columns }
        });
        let scorer = ColumnScorer::new(Curve::Line, packed, self.tally.holes).and_sparse();
        let terms = if density == Density::Divergence {
            let prior = self.prior.clone();
            let at_zero = prior.iter().map(|prior| prior.smoothed_part(0.0)).sum();
            RowFunction::new(move |row| row.sum(at_zero, |column, x| prior[column].smoothed_part(x)))
        } else {
            Self::log_base()
        };
        Ok(Box::new(scorer.with_row_terms(terms)))
    }

    fn divergence_from_prior(&self, component: Sufficient<'_>) -> Result<f64> {
        let columns = self.tally.of(component).zip(&self.prior);
        Ok(columns.map(|((n, s), prior)| gamma::divergence((prior.shape, prior.rate), (s, n))).sum())
    }

    fn log_base_measure(&self, rows: RowBlock<'_, F>, masses: &[f64]) -> f64 {
        Self::log_base().weighted_sum(rows, self.prior.len(), masses)
    }
}

impl PointEstimates for Poisson {
    fn at_point(&self, component: Sufficient<'_>, estimate: Estimate) -> Result<AtPoint> {
        let mut at = AtPoint { log_likelihood: 0.0, log_prior: 0.0 };
        for (((n, s), theta), prior) in self.tally.of(component).zip(self.rates(component, estimate)).zip(&self.prior) {
            at.log_likelihood += s * theta.max(LEAST).ln() - n * theta;
            at.log_prior += gamma::log_density(theta.max(LEAST), prior.shape, prior.rate);
        }
        Ok(at)
    }

    fn check_mode(&self) -> Result<()> {
        match self.prior.iter().find(|prior| prior.shape < 1.0) {
            Some(prior) => {
                Err(Error::invalid("shape", Value::Number(prior.shape), "at least 1 where the objective is \"map\""))
            }
            None => Ok(()),
        }
    }

    fn point_estimates(&self, components: &[Sufficient<'_>], estimate: Estimate) -> Result<Parameters> {
        let all = components.iter().flat_map(|component| self.rates(*component, estimate)).collect();
        Ok(Parameters::from_pairs([("rate", table(self.prior.len(), all))]))
    }
}

impl Imputation for Poisson {
    fn predictive_moments(&self, component: Sufficient<'_>) -> Result<(Vec<f64>, Vec<f64>)> {
        let columns = self.posterior(component).into_iter();
        Ok(columns.map(|own| (own.mean(), own.mean() * (1.0 + own.rate.recip()))).unzip())
    }
}

impl Draws for Poisson {
    fn draw(&self, component: Sufficient<'_>, from: Draw<'_>, generator: &mut Generator) -> Result<Vec<f64>> {
        let rates = if let Some(estimate) = from.estimate {
            self.rates(component, estimate)
        } else {
            let draws = self.posterior(component).into_iter().map(|own| gamma::draw(own.shape, own.rate, generator));
            draws.collect::<Result<_>>()?
        };
        // A rate of zero gives no count.
        let count = |theta| rand_distr::Poisson::new(theta).map_or(0.0, |poisson| poisson.sample(generator));
        Ok(rates.into_iter().map(count).collect())
    }
}
