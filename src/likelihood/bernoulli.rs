//! Independent columns of zeros and ones with a Beta base measure each (spec 1f; with holes, spec of missing entries, 2.3).

use rand::RngExt;

use crate::data::{Demands, Domain, Moments, Needs, RowBlock};
use crate::error::{Error, Result};
use crate::likelihood::counts::{LEAST, Tally};
use crate::likelihood::{
    AtPoint, Conjugate, Density, Draw, Draws, Estimate, Frame, Imputation, PointEstimates, Scores, Specification,
    capabilities,
};
use crate::objective::Objective;
use crate::parallel::map;
use crate::parameters::{Parameters, Value, table, vector};
use crate::rng::Generator;
use crate::scoring::{Column, ColumnScorer, Columns, Curve, RowFunction, Scorer};
use crate::simd::{Lines, Scalar};
use crate::special::{digamma, ln_beta, ln_gamma_difference, x_ln_x};
use crate::suffstats::Sufficient;

/// p_d ~ Beta(`successes_d`, `failures_d`), x_d ~ Bernoulli(p_d). Statistics: sum x, and with holes the count of each column.
#[derive(Debug)]
pub struct Bernoulli {
    tally: Tally,
    /// (D,).
    prior: Vec<Beta>,
}

/// Beta(successes, failures).
#[derive(Debug, Clone, Copy, PartialEq)]
struct Beta {
    successes: f64,
    failures: f64,
}

/// ln p and ln(1 - p).
fn log_odds(p: f64) -> (f64, f64) {
    (p.max(LEAST).ln(), (1.0 - p).max(LEAST).ln())
}

impl Beta {
    fn total(self) -> f64 {
        self.successes + self.failures
    }

    fn mean(self) -> f64 {
        self.successes / self.total()
    }

    /// ln B of the posterior after `s` successes and `f` failures less ln B of this prior, as differences: beside large priors the
    /// functions themselves have lost the counts.
    fn gain(self, s: f64, f: f64) -> f64 {
        ln_gamma_difference(self.successes, s) + ln_gamma_difference(self.failures, f)
            - ln_gamma_difference(self.total(), s + f)
    }

    /// KL(posterior || self) after `s` successes and `f` failures.
    fn divergence_to(self, s: f64, f: f64) -> f64 {
        let of_total = digamma(self.total() + s + f);
        s * (digamma(self.successes + s) - of_total) + f * (digamma(self.failures + f) - of_total) - self.gain(s, f)
    }

    /// `ln p` where x is 1, `ln (1 - p)` where it is 0.
    fn column((success, failure): (f64, f64)) -> Column {
        Column::line(success - failure, failure)
    }

    /// Minus the divergence of a row's smoothed mean, but for the row's own part (spec 5.2).
    fn divergence(self, prior: Self) -> Column {
        let (success, failure) = log_odds(self.mean());
        let total = prior.total() + 1.0;
        let constant = (prior.successes * success + (prior.failures + 1.0) * failure) / total;
        Column::line((success - failure) / total, constant)
    }

    /// Minus the row's own part; `self` is the prior.
    fn smoothed_entropy(self, x: f64) -> f64 {
        let total = self.total() + 1.0;
        -x_ln_x((self.successes + x) / total) - x_ln_x((self.failures + 1.0 - x) / total)
    }
}

impl Bernoulli {
    /// Count and sum of every column; rounding may leave a sum above its count.
    fn columns<'a>(&self, component: Sufficient<'a>) -> impl Iterator<Item = (f64, f64)> + use<'a> {
        self.tally.of(component).map(|(n, s)| (n.max(s), s))
    }

    fn posterior(&self, component: Sufficient<'_>) -> Vec<Beta> {
        let columns = self.columns(component).zip(&self.prior);
        columns
            .map(|((n, s), prior)| Beta { successes: prior.successes + s, failures: prior.failures + n - s })
            .collect()
    }

    fn probabilities(&self, component: Sufficient<'_>, estimate: Estimate) -> Vec<f64> {
        let columns = self.posterior(component).into_iter().zip(self.columns(component));
        columns
            .map(|(own, (n, s))| match estimate {
                Estimate::Mode if own.total() > 2.0 => (own.successes - 1.0) / (own.total() - 2.0),
                Estimate::MaximumLikelihood if n > 0.0 => s / n,
                _ => own.mean(),
            })
            .collect()
    }
}

impl Specification for Bernoulli {
    const DEMANDS: Demands = Demands { domain: Domain::Binary, needs: Needs::Means, sparse: true, holes: true };

    fn check(parameters: &Parameters) -> Result<()> {
        parameters.only(&["successes", "failures"])?;
        let d = parameters.positives("successes", None)?.filter(|values| values.len() > 1).map(|values| values.len());
        parameters.positives("failures", d).map(drop)
    }

    fn resolve(parameters: &Parameters, data: &Moments) -> Result<Parameters> {
        let d = data.dimension();
        let of = |name| Ok(vector(parameters.positives(name, Some(d))?.unwrap_or_else(|| vec![1.0; d])));
        Ok(Parameters::from_pairs([("successes", of("successes")?), ("failures", of("failures")?)]))
    }

    fn build(parameters: &Parameters, frame: Frame) -> Result<Self> {
        let d = frame.origin.len();
        let of = |name| Parameters::required(name, parameters.positives(name, Some(d))?);
        let columns = of("successes")?.into_iter().zip(of("failures")?);
        let prior = columns.map(|(successes, failures)| Beta { successes, failures }).collect();
        Ok(Self { tally: Tally::new(d, frame.holes), prior })
    }
}

impl Conjugate for Bernoulli {
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
        Ok(self.columns(component).zip(&self.prior).map(|((n, s), prior)| prior.gain(s, n - s)).sum())
    }

    fn check_statistics(&self, components: &[Sufficient<'_>]) -> Result<()> {
        self.tally.check(components, true)
    }

    fn posterior_parameters(&self, components: &[Sufficient<'_>]) -> Result<Parameters> {
        let all: Vec<Beta> = components.iter().flat_map(|component| self.posterior(*component)).collect();
        let of = |value: fn(&Beta) -> f64| table(self.prior.len(), all.iter().map(value).collect());
        Ok(Parameters::from_pairs([("successes", of(|own| own.successes)), ("failures", of(|own| own.failures))]))
    }
}

capabilities!(Bernoulli: scores, points, imputation, draws);

impl<F: Scalar> Scores<F> for Bernoulli {
    fn scorer(
        &self,
        components: &[Sufficient<'_>],
        log_weights: &[f64],
        density: Density,
    ) -> Result<Box<dyn Scorer<F>>> {
        let packed = map(components.len(), |k| {
            let of_point = |estimate| -> Vec<Column> {
                self.probabilities(components[k], estimate).into_iter().map(|p| Beta::column(log_odds(p))).collect()
            };
            let columns = match density {
                Density::Expected(Objective::Variational) => {
                    let expected = |own: Beta| {
                        let of_total = digamma(own.total());
                        Beta::column((digamma(own.successes) - of_total, digamma(own.failures) - of_total))
                    };
                    self.posterior(components[k]).into_iter().map(expected).collect()
                }
                Density::Expected(Objective::Map) => of_point(Estimate::Mode),
                Density::Expected(Objective::Ml) => of_point(Estimate::MaximumLikelihood),
                Density::PlugIn(estimate) => of_point(estimate),
                // The expected probability is all that a single row sees.
                Density::Predictive => of_point(Estimate::Mean),
                Density::Divergence => {
                    let columns = self.posterior(components[k]).into_iter().zip(&self.prior);
                    columns.map(|(own, prior)| own.divergence(*prior)).collect()
                }
            };
            Columns { constant: log_weights[k], columns }
        });
        let scorer = ColumnScorer::new(Curve::Line, packed, self.tally.holes).and_sparse();
        if density != Density::Divergence {
            return Ok(Box::new(scorer));
        }
        let prior = self.prior.clone();
        let at_zero = prior.iter().map(|prior| prior.smoothed_entropy(0.0)).sum();
        Ok(Box::new(scorer.with_row_terms(RowFunction::new(move |row| {
            row.sum(at_zero, |column, x| prior[column].smoothed_entropy(x))
        }))))
    }

    fn divergence_from_prior(&self, component: Sufficient<'_>) -> Result<f64> {
        Ok(self.columns(component).zip(&self.prior).map(|((n, s), prior)| prior.divergence_to(s, n - s)).sum())
    }

    fn log_base_measure(&self, _: RowBlock<'_, F>, _: &[f64]) -> f64 {
        0.0
    }
}

impl PointEstimates for Bernoulli {
    fn at_point(&self, component: Sufficient<'_>, estimate: Estimate) -> Result<AtPoint> {
        let mut at = AtPoint { log_likelihood: 0.0, log_prior: 0.0 };
        let points = self.probabilities(component, estimate).into_iter().map(log_odds);
        for (((n, s), (success, failure)), prior) in self.columns(component).zip(points).zip(&self.prior) {
            at.log_likelihood += s * success + (n - s) * failure;
            at.log_prior += (prior.successes - 1.0) * success + (prior.failures - 1.0) * failure
                - ln_beta(prior.successes, prior.failures);
        }
        Ok(at)
    }

    fn check_mode(&self) -> Result<()> {
        for prior in &self.prior {
            for (name, value) in [("successes", prior.successes), ("failures", prior.failures)] {
                if value < 1.0 {
                    return Err(Error::invalid(
                        name,
                        Value::Number(value),
                        "at least 1 where the objective is \"map\"",
                    ));
                }
            }
        }
        Ok(())
    }

    fn point_estimates(&self, components: &[Sufficient<'_>], estimate: Estimate) -> Result<Parameters> {
        let all = components.iter().flat_map(|component| self.probabilities(*component, estimate)).collect();
        Ok(Parameters::from_pairs([("probabilities", table(self.prior.len(), all))]))
    }
}

impl Imputation for Bernoulli {
    fn predictive_moments(&self, component: Sufficient<'_>) -> Result<(Vec<f64>, Vec<f64>)> {
        let means = self.posterior(component).into_iter().map(Beta::mean);
        Ok(means.map(|p| (p, p * (1.0 - p))).unzip())
    }
}

impl Draws for Bernoulli {
    fn draw(&self, component: Sufficient<'_>, from: Draw<'_>, generator: &mut Generator) -> Result<Vec<f64>> {
        // The expected probability is all that a single row sees.
        let columns = self.probabilities(component, from.estimate.unwrap_or(Estimate::Mean)).into_iter();
        Ok(columns.map(|p| f64::from(u8::from(generator.random::<f64>() < p))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::likelihood::gamma;
    use crate::rng::{Purpose, stream};

    /// E[p] and E ln p by draws p = g / (g + h).
    #[test]
    fn expectations_are_those_of_a_beta_distribution() {
        let own = Beta { successes: 2.5, failures: 1.25 };
        let mut generator = stream(3, Purpose::Draws, 0);
        let n = 200_000;
        let (mut mean, mut log) = (0.0, 0.0);
        for _ in 0..n {
            let g = gamma::draw(own.successes, 1.0, &mut generator).expect("allowed");
            let h = gamma::draw(own.failures, 1.0, &mut generator).expect("allowed");
            mean += g / (g + h) / f64::from(n);
            log += (g / (g + h)).ln() / f64::from(n);
        }
        assert!((mean - own.mean()).abs() < 3e-3 && (log - digamma(2.5) + digamma(3.75)).abs() < 8e-3);
    }
}
