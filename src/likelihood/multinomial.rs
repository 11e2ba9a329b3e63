//! Counts of the words of a vocabulary with a Dirichlet base measure (spec 1e).

use rand_distr::{Binomial, Distribution};

use crate::data::{Demands, Domain, Moments, Needs, RowBlock};
use crate::error::{Error, Result};
use crate::likelihood::counts::{LEAST, Tally};
use crate::likelihood::gamma;
use crate::likelihood::{
    AtPoint, Conjugate, Density, Draw, Draws, Estimate, Frame, PointEstimates, Scores, Specification, capabilities,
};
use crate::objective::Objective;
use crate::parallel::map;
use crate::parameters::{Parameters, Value, table, vector};
use crate::rng::Generator;
use crate::scoring::{Column, ColumnScorer, Columns, Curve, RowFunction, RowScorer, Scorer};
use crate::simd::{Lines, Scalar};
use crate::special::{digamma, ln_factorial, ln_gamma, ln_gamma_difference, x_ln_x};
use crate::suffstats::Sufficient;

/// phi ~ Dir(`pseudo_counts`), x ~ Mult(phi) given its total. Statistics: sum x.
#[derive(Debug)]
pub struct Multinomial {
    tally: Tally,
    pseudo_counts: Vec<f64>,
    /// Their sum.
    total: f64,
    /// Whether the density is that of counts, not of one sequence of words.
    coefficient: bool,
}

impl Multinomial {
    /// beta_0 + S, and the sum of it.
    fn posterior(&self, component: Sufficient<'_>) -> (Vec<f64>, f64) {
        let beta: Vec<f64> = self.pseudo_counts.iter().zip(component.statistics).map(|(b, s)| b + s.max(0.0)).collect();
        let total = beta.iter().sum();
        (beta, total)
    }

    /// phi.
    fn probabilities(&self, component: Sufficient<'_>, estimate: Estimate) -> Vec<f64> {
        let v = self.pseudo_counts.len() as f64;
        let (beta, total) = self.posterior(component);
        let words: f64 = component.statistics.iter().sum();
        match estimate {
            Estimate::Mode if total - v > 0.0 => beta.iter().map(|b| (b - 1.0).max(0.0) / (total - v)).collect(),
            Estimate::MaximumLikelihood if words > 0.0 => {
                component.statistics.iter().map(|s| s.max(0.0) / words).collect()
            }
            _ => beta.iter().map(|b| b / total).collect(),
        }
    }

    /// ln h(x), where the coefficient counts.
    fn log_coefficient() -> RowFunction {
        RowFunction::new(|row| ln_factorial(row.total()) - row.sum(0.0, |_, x| ln_factorial(x)))
    }
}

impl Specification for Multinomial {
    const DEMANDS: Demands = Demands { domain: Domain::Counts, needs: Needs::Means, sparse: true, holes: false };

    fn check(parameters: &Parameters) -> Result<()> {
        parameters.only(&["pseudo_counts", "coefficient"])?;
        parameters.positives("pseudo_counts", None)?;
        coefficient(parameters).map(drop)
    }

    fn resolve(parameters: &Parameters, data: &Moments) -> Result<Parameters> {
        Self::check(parameters)?;
        let d = data.dimension();
        let pseudo_counts = parameters.positives("pseudo_counts", Some(d))?.unwrap_or_else(|| vec![0.1; d]);
        Ok(Parameters::from_pairs([
            ("pseudo_counts", vector(pseudo_counts)),
            ("coefficient", Value::Number(f64::from(u8::from(coefficient(parameters)?)))),
        ]))
    }

    fn build(parameters: &Parameters, frame: Frame) -> Result<Self> {
        Self::check(parameters)?;
        let d = frame.origin.len();
        let pseudo_counts = Parameters::required("pseudo_counts", parameters.positives("pseudo_counts", Some(d))?)?;
        let (total, coefficient) = (pseudo_counts.iter().sum(), coefficient(parameters)?);
        Ok(Self { tally: Tally::new(d, false), pseudo_counts, total, coefficient })
    }
}

fn coefficient(parameters: &Parameters) -> Result<bool> {
    match parameters.number("coefficient")? {
        None => Ok(true),
        Some(value) if value == 0.0 || value == 1.0 => Ok(value == 1.0),
        Some(value) => Err(Error::invalid("coefficient", Value::Number(value), "True or False")),
    }
}

impl Conjugate for Multinomial {
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
        let words: f64 = component.statistics.iter().sum();
        let gains: f64 = self
            .pseudo_counts
            .iter()
            .zip(component.statistics)
            .filter(|(_, s)| **s > 0.0)
            .map(|(b, s)| ln_gamma_difference(*b, *s))
            .sum();
        Ok(gains - ln_gamma_difference(self.total, words.max(0.0)))
    }

    fn check_statistics(&self, components: &[Sufficient<'_>]) -> Result<()> {
        self.tally.check(components, false)
    }

    fn posterior_parameters(&self, components: &[Sufficient<'_>]) -> Result<Parameters> {
        let all = components.iter().flat_map(|component| self.posterior(*component).0).collect();
        Ok(Parameters::from_pairs([("pseudo_counts", table(self.pseudo_counts.len(), all))]))
    }
}

capabilities!(Multinomial: scores, points, draws);

impl<F: Scalar> Scores<F> for Multinomial {
    fn scorer(
        &self,
        components: &[Sufficient<'_>],
        log_weights: &[f64],
        density: Density,
    ) -> Result<Box<dyn Scorer<F>>> {
        let (d, k) = (self.pseudo_counts.len(), components.len());
        if density == Density::Predictive {
            let log_weights = log_weights.to_vec();
            let parts: Vec<_> = components.iter().map(|component| self.posterior(*component)).collect();
            let coefficient = self.coefficient;
            return Ok(Box::new(RowScorer::new(d, k, move |k, row| {
                let (beta, total) = &parts[k];
                let words = row.total();
                if coefficient {
                    return log_weights[k] - log_rising(*total, words) + row.sum(0.0, |v, x| log_rising(beta[v], x));
                }
                let gain = |v: usize, x: f64| if x == 0.0 { 0.0 } else { ln_gamma_difference(beta[v], x) };
                log_weights[k] - ln_gamma_difference(*total, words) + row.sum(0.0, gain)
            })));
        }
        let packed = map(k, |k| {
            let of_point = |estimate| -> Columns {
                let phi = self.probabilities(components[k], estimate);
                let columns = phi.iter().map(|p| Column::line(p.max(LEAST).ln(), 0.0)).collect();
                Columns { constant: log_weights[k], columns }
            };
            match density {
                Density::Expected(Objective::Map) => of_point(Estimate::Mode),
                Density::Expected(Objective::Ml) => of_point(Estimate::MaximumLikelihood),
                Density::PlugIn(estimate) => of_point(estimate),
                Density::Divergence => {
                    // -sum (b_0 + x) ln(share of it / phi), but for the row's own part.
                    let mut own = of_point(Estimate::Mean);
                    let cost = own.columns.iter().zip(&self.pseudo_counts).map(|(column, b)| b * column.slope);
                    own.constant += cost.sum::<f64>();
                    own
                }
                _ => {
                    let (beta, total) = self.posterior(components[k]);
                    let of_total = digamma(total);
                    let columns = beta.iter().map(|b| Column::line(digamma(*b) - of_total, 0.0)).collect();
                    Columns { constant: log_weights[k], columns }
                }
            }
        });
        let scorer = ColumnScorer::new(Curve::Line, packed, false).and_sparse();
        if density == Density::Divergence {
            let (prior, total) = (self.pseudo_counts.clone(), self.total);
            let at_zero = prior.iter().map(|b| x_ln_x(*b)).sum();
            return Ok(Box::new(scorer.with_row_terms(RowFunction::new(move |row| {
                x_ln_x(total + row.total()) - row.sum(at_zero, |v, x| x_ln_x(prior[v] + x))
            }))));
        }
        if self.coefficient {
            return Ok(Box::new(scorer.with_row_terms(Self::log_coefficient())));
        }
        Ok(Box::new(scorer))
    }

    fn divergence_from_prior(&self, component: Sufficient<'_>) -> Result<f64> {
        let (beta, total) = self.posterior(component);
        let of_total = digamma(total);
        // The sums themselves, not the differences of beta and beta_0: a large prior absorbs them.
        let weighted: f64 = beta
            .iter()
            .zip(component.statistics)
            .filter(|(_, s)| **s > 0.0)
            .map(|(b, s)| s * (digamma(*b) - of_total))
            .sum();
        Ok(weighted - self.log_marginal(component)?)
    }

    fn log_base_measure(&self, rows: RowBlock<'_, F>, masses: &[f64]) -> f64 {
        if self.coefficient {
            Self::log_coefficient().weighted_sum(rows, self.pseudo_counts.len(), masses)
        } else {
            0.0
        }
    }
}

impl PointEstimates for Multinomial {
    fn at_point(&self, component: Sufficient<'_>, estimate: Estimate) -> Result<AtPoint> {
        let phi = self.probabilities(component, estimate);
        let mut at = AtPoint { log_likelihood: 0.0, log_prior: ln_gamma(self.total) };
        for ((p, s), b) in phi.iter().zip(component.statistics).zip(&self.pseudo_counts) {
            let log = p.max(LEAST).ln();
            at.log_likelihood += s * log;
            at.log_prior += (b - 1.0) * log - ln_gamma(*b);
        }
        Ok(at)
    }

    fn check_mode(&self) -> Result<()> {
        match self.pseudo_counts.iter().find(|b| **b < 1.0) {
            Some(b) => {
                Err(Error::invalid("pseudo_counts", Value::Number(*b), "at least 1 where the objective is \"map\""))
            }
            None => Ok(()),
        }
    }

    fn point_estimates(&self, components: &[Sufficient<'_>], estimate: Estimate) -> Result<Parameters> {
        let all = components.iter().flat_map(|component| self.probabilities(*component, estimate)).collect();
        Ok(Parameters::from_pairs([("probabilities", table(self.pseudo_counts.len(), all))]))
    }
}

impl Draws for Multinomial {
    /// A row of the average length.
    fn draw(&self, component: Sufficient<'_>, from: Draw<'_>, generator: &mut Generator) -> Result<Vec<f64>> {
        let words: f64 = from.all.statistics.iter().sum();
        let mut left = (words / from.all.count.max(1e-12)).round().max(0.0) as u64;
        let phi = if let Some(estimate) = from.estimate {
            self.probabilities(component, estimate)
        } else {
            let draws = self.posterior(component).0.into_iter().map(|b| gamma::draw(b, 1.0, generator));
            draws.collect::<Result<_>>()?
        };
        let mut mass: f64 = phi.iter().sum();
        let mut row = Vec::with_capacity(phi.len());
        for p in phi {
            // What is left of the words goes here by its share of what is left of the probability.
            let share = if mass > 0.0 { (p / mass).clamp(0.0, 1.0) } else { 0.0 };
            let count = Binomial::new(left, share).map_or(0, |binomial| binomial.sample(generator));
            row.push(count as f64);
            left -= count;
            mass -= p;
        }
        Ok(row)
    }
}

/// `ln {Gamma(beta + x) / (Gamma(beta) x!)}`, without the cancellation of the two beside counts that are large.
fn log_rising(beta: f64, x: f64) -> f64 {
    if x > beta && x >= 256.0 {
        return ln_gamma_difference(x + 1.0, beta - 1.0) - ln_gamma(beta);
    }
    if x == 0.0 { 0.0 } else { ln_gamma_difference(beta, x) - ln_factorial(x) }
}
