//! Counts of the words of a vocabulary with a Dirichlet base measure (mathematics 1e).

use std::sync::OnceLock;

use rand_distr::{Binomial, Distribution};

use crate::data::{Domain, Moments, Needs};
use crate::error::{Error, Result};
use crate::likelihood::counts::{
    CountFamily, Counts, LEAST, LogRisings, Repeats, Risings, Separate, SharedCounts, Tallied, Tally, pseudo_count,
};
use crate::likelihood::gamma;
use crate::likelihood::{AtPoint, Draw, Emissions, Estimate, Frame, FromParameters, Given, RowSource, row_by_row};
use crate::objective::Objective;
use crate::parameters::{Parameters, Value, table, vector};
use crate::registry::{DefaultValue, Entry, Feature, PRIOR, Parameter, ParameterKind, REPEATS, Range, Support};
use crate::rng::{Draws, Generator};
use crate::scoring::{Column, RowFunction, RowScorer, Shared};
use crate::simd::sum;
use crate::special::{
    Last, digamma, exp_digamma, ln_factorial, ln_gamma, ln_gamma_difference, sum_of_ln_gamma_differences, x_ln_x,
};

/// phi ~ Dir(`pseudo_counts`), x ~ Mult(phi) given its total. Statistics: sum x.
pub type Multinomial = Counts<Words>;

/// The base measure of all columns together.
#[derive(Debug)]
pub struct Words {
    pseudo_counts: Vec<f64>,
    /// Sum of the pseudo-counts.
    total: f64,
    /// Whether the density includes the multinomial coefficient: the density of counts rather than of one sequence of
    /// words.
    coefficient: bool,
    repeats: Repeats,
    /// Made when a sampler first asks; `None` for pseudo-counts that differ.
    log_risings: OnceLock<Option<LogRisings>>,
    /// Whether units are single words. Their point estimate is the mode in softmax coordinates (mathematics 11.4).
    single: bool,
}

impl Words {
    /// The base measure with these pseudo-counts.
    pub fn new(pseudo_counts: Vec<f64>, coefficient: bool) -> Self {
        let repeats = Repeats::none(pseudo_counts.len());
        let total = pseudo_counts.iter().sum();
        Self { pseudo_counts, total, coefficient, repeats, log_risings: OnceLock::new(), single: false }
    }

    /// Negative divergence of a row that is one word, by word (mathematics 1h). Each entry includes the terms of all
    /// words, because a row has exactly one word or none.
    pub fn divergence_of_one(&self, component: Tallied<'_>) -> Vec<Column> {
        let (cost, columns) = self.divergence(component);
        columns.iter().map(|column| Column::line((column.slope + cost) / (self.total + 1.0), 0.0)).collect()
    }

    /// The part of this divergence that depends on the row alone, by word, for equal pseudo-counts.
    pub fn row_divergence_of_one(&self) -> Vec<f64> {
        let (b, total, words) = (self.pseudo_counts[0], self.total + 1.0, self.pseudo_counts.len());
        vec![-(words as f64 - 1.0) * x_ln_x(b / total) - x_ln_x((b + 1.0) / total); words]
    }

    /// The pseudo-count of every column, if all are equal.
    pub fn pseudo_count(&self) -> f64 {
        self.pseudo_counts[0]
    }

    /// beta_0 + S and its sum.
    pub fn posterior(&self, component: Tallied<'_>) -> (Vec<f64>, f64) {
        let beta: Vec<f64> = self.pseudo_counts.iter().zip(component.sums).map(|(b, s)| b + s.max(0.0)).collect();
        let total = self.repeats.sum(beta.iter().copied());
        (beta, total)
    }
}

const COEFFICIENT: Parameter = Parameter::new("coefficient", ParameterKind::Flag, DefaultValue::Number(1.0));

impl FromParameters for Words {
    const ENTRY: Entry = Entry {
        domain: Some(Domain::Counts),
        faces: &["scores", "points", "draws", "parameters", "urn", "evidence", "emissions"],
        supports: &[Support::always(Feature::Sparse), Support::always(Feature::Moves)],
        parameters: &[
            Parameter::new("pseudo_counts", ParameterKind::NumberOrVector(Range::POSITIVE), DefaultValue::Evidence),
            COEFFICIENT,
            PRIOR,
        ],
        unlisted: &[REPEATS],
        ..Entry::new("Multinomial")
    };
    const NEEDS: Needs = Needs::Means;

    fn check(parameters: &Parameters) -> Result<()> {
        parameters.check(&Self::ENTRY)
    }

    fn resolve(parameters: &Parameters, data: &Moments) -> Result<Parameters> {
        Self::check(parameters)?;
        let d = data.dimension();
        let pseudo_counts = parameters.positives("pseudo_counts", Some(d))?.unwrap_or_else(|| vec![0.1; d]);
        let found = Parameters::from_pairs([
            ("pseudo_counts", vector(pseudo_counts)),
            ("coefficient", Value::Number(f64::from(u8::from(parameters.flag(&COEFFICIENT)?)))),
        ]);
        Ok(Repeats::keep(parameters, found))
    }

    fn build(parameters: &Parameters, frame: Frame) -> Result<Self> {
        Self::check(parameters)?;
        let d = frame.origin.len();
        let pseudo_counts = Parameters::required("pseudo_counts", parameters.positives("pseudo_counts", Some(d))?)?;
        let coefficient = parameters.flag(&COEFFICIENT)? && !frame.words;
        let repeats = Repeats::read(parameters, d)?;
        let total = repeats.sum(pseudo_counts.iter().copied());
        Ok(Self { pseudo_counts, total, coefficient, repeats, log_risings: OnceLock::new(), single: frame.words })
    }
}

impl CountFamily for Words {
    const ESTIMATE: &'static str = "probabilities";
    const PRIOR_COUNTS: &'static [&'static str] = &["pseudo_counts"];

    fn repeats(&self) -> Repeats {
        self.repeats
    }

    fn log_marginal(&self, component: Tallied<'_>) -> f64 {
        let words: f64 = component.sums.iter().sum();
        let gains = sum_of_ln_gamma_differences(&self.pseudo_counts, component.sums);
        gains - ln_gamma_difference(self.total, words.max(0.0))
    }

    fn divergence_from_prior(&self, component: Tallied<'_>) -> f64 {
        let (beta, total) = self.posterior(component);
        let of_total = digamma(total);
        // Uses the sums themselves rather than beta - beta_0, in which a large prior absorbs them.
        let seen = beta.iter().zip(component.sums).filter(|(_, s)| **s > 0.0);
        let weighted: f64 = seen.map(|(b, s)| s * (digamma(*b) - of_total)).sum();
        weighted - self.log_marginal(component)
    }

    fn points(&self, component: Tallied<'_>, estimate: Estimate) -> Vec<f64> {
        let v = self.repeats.n_data_columns();
        let (beta, total) = self.posterior(component);
        let words: f64 = component.sums.iter().sum();
        match estimate {
            Estimate::Mode if total - v > 0.0 && !self.single => {
                beta.iter().map(|b| (b - 1.0).max(0.0) / (total - v)).collect()
            }
            Estimate::MaximumLikelihood if words > 0.0 => component.sums.iter().map(|s| s.max(0.0) / words).collect(),
            _ => beta.iter().map(|b| b / total).collect(),
        }
    }

    fn at_point(&self, component: Tallied<'_>, points: &[f64]) -> AtPoint {
        let mut contribution = AtPoint { log_likelihood: 0.0, log_prior: ln_gamma(self.total) };
        // In softmax coordinates the density has a factor phi_v for every word.
        let less = if self.single { 0.0 } else { 1.0 };
        for (column, ((p, s), b)) in points.iter().zip(component.sums).zip(&self.pseudo_counts).enumerate() {
            let log = p.max(LEAST).ln();
            contribution.log_likelihood += s * log;
            contribution.log_prior += self.repeats.of(column) * ((b - less) * log - ln_gamma(*b));
        }
        contribution
    }

    fn check_mode(&self) -> Result<()> {
        match self.pseudo_counts.iter().find(|b| **b < 1.0 && !self.single) {
            Some(b) => {
                Err(Error::invalid("pseudo_counts", Value::Number(*b), "at least 1 where the objective is \"map\""))
            }
            None => Ok(()),
        }
    }

    fn posterior_parameters(&self, components: &[Tallied<'_>], _: &Tally) -> Parameters {
        let all = components.iter().flat_map(|component| self.posterior(*component).0).collect();
        Parameters::from_pairs([("pseudo_counts", table(self.pseudo_counts.len(), all))])
    }

    fn expected(&self, component: Tallied<'_>) -> Vec<Column> {
        let (beta, total) = self.posterior(component);
        let of_total = digamma(total);
        let mut last = Last::default();
        beta.iter().map(|b| Column::line(last.of(*b, digamma) - of_total, 0.0)).collect()
    }

    fn separate(&self) -> Option<&dyn Separate> {
        Some(self)
    }

    fn emissions(&self) -> Option<&dyn Emissions> {
        Some(self)
    }

    /// `-sum (b_0 + x) ln(p / phi)` with p the smoothed proportions of the row.
    fn divergence(&self, component: Tallied<'_>) -> (f64, Vec<Column>) {
        let (points, mut last) = (self.points(component, Estimate::Mean), Last::default());
        let columns: Vec<Column> =
            points.into_iter().map(|point| last.of(point, |point| self.column_at(0, point))).collect();
        let cost = self.repeats.sum(columns.iter().zip(&self.pseudo_counts).map(|(column, b)| b * column.slope));
        (cost, columns)
    }

    fn row_divergence(&self) -> RowFunction {
        let (prior, total, repeats) = (self.pseudo_counts.clone(), self.total, self.repeats);
        let mut last = Last::default();
        let at_zero = repeats.sum(prior.iter().map(|b| last.of(*b, x_ln_x)));
        let of_word = move |v: usize, x: f64| repeats.of(v) * x_ln_x(prior[v] + x);
        RowFunction::new(move |row| x_ln_x(total + row.total()) - row.sum(at_zero, &of_word))
    }

    fn log_base(&self) -> Option<RowFunction> {
        let log_coefficient =
            || RowFunction::new(|row| ln_factorial(row.total()) - row.sum(0.0, |_, x| ln_factorial(x)));
        self.coefficient.then(log_coefficient)
    }

    fn predictive(&self, components: &[Tallied<'_>], log_weights: &[f64]) -> Option<RowScorer> {
        let (log_weights, coefficient) = (log_weights.to_vec(), self.coefficient);
        let parts: Vec<_> = components.iter().map(|component| self.posterior(*component)).collect();
        Some(RowScorer::new(self.pseudo_counts.len(), components.len(), move |k, row| {
            let (beta, total) = &parts[k];
            let words = row.total();
            if coefficient {
                return log_weights[k] - log_rising(*total, words) + row.sum(0.0, |v, x| log_rising(beta[v], x));
            }
            let gain = |v: usize, x: f64| if x == 0.0 { 0.0 } else { ln_gamma_difference(beta[v], x) };
            log_weights[k] - ln_gamma_difference(*total, words) + row.sum(0.0, gain)
        }))
    }

    fn risings(&self) -> Option<&dyn Risings> {
        Some(self)
    }

    fn divergence_of(&self, start: &Self) -> f64 {
        self.repeats.dirichlet_divergence(&start.pseudo_counts, &self.pseudo_counts)
    }

    /// Estimates one pseudo-count for all columns (mathematics 10.4).
    fn estimate(&self, components: &[Tallied<'_>], start: &Self, given: &Given<'_>) -> Parameters {
        let counts = SharedCounts::of(self.repeats.n_data_columns(), components.iter().copied());
        let found = pseudo_count(self.pseudo_count(), start.pseudo_count(), &[counts]);
        given.parameters.with([("pseudo_counts", vector(vec![found; self.pseudo_counts.len()]))])
    }

    /// A Dirichlet distribution.
    fn parameter_rows(&self, component: Tallied<'_>) -> Result<RowSource<'static>> {
        let (pseudo_counts, _) = self.posterior(component);
        Ok(row_by_row(pseudo_counts.len(), move |row, generator| generator.simplex(&pseudo_counts, row)))
    }

    /// Draws rows of the average length.
    fn source(&self, component: Tallied<'_>, from: Draw<'_>) -> Result<RowSource<'_>> {
        let words: f64 = from.all.statistics.iter().sum();
        let n_words = (words / from.all.count.max(1e-12)).round().max(0.0) as u64;
        if let Some(estimate) = from.estimate {
            let phi = self.points(component, estimate);
            return Ok(row_by_row(phi.len(), move |row, generator| deal_words(n_words, &phi, row, generator)));
        }
        let gammas = self.posterior(component).0.into_iter().map(|b| gamma::distribution(b, 1.0));
        let gammas: Vec<_> = gammas.collect::<Result<_>>()?;
        Ok(row_by_row(gammas.len(), move |row, generator| {
            let phi: Vec<f64> = gammas.iter().map(|gamma| gamma.sample(generator)).collect();
            deal_words(n_words, &phi, row, generator);
        }))
    }
}

/// phi_v or exp E log phi_v, as a product of a factor of the word's sum and a factor of the sum over all words.
impl Emissions for Words {
    fn fill(&self, first: usize, sums: &[f64], objective: Objective, out: &mut [f64]) {
        let all = self.pseudo_counts[first..].iter().zip(sums).zip(out);
        match objective {
            Objective::Variational => all.for_each(|((b, s), out)| *out = exp_digamma(b + s.max(0.0))),
            Objective::Map | Objective::Ml => all.for_each(|((b, s), out)| *out = b + s.max(0.0)),
        }
    }

    fn of_topic(&self, sum: f64, objective: Objective) -> f64 {
        let total = self.total + sum.max(0.0);
        1.0 / if objective == Objective::Variational { exp_digamma(total) } else { total }
    }
}

impl Risings for Words {
    fn shape(&self, column: usize) -> f64 {
        self.pseudo_counts[column]
    }

    fn of_totals(&self, _: f64, all: f64, own: f64) -> f64 {
        -ln_gamma_difference(self.total + all, own)
    }

    fn marginals(&self, _: f64, all: f64) -> Option<(f64, &LogRisings)> {
        let logs = self.log_risings.get_or_init(|| {
            let first = self.pseudo_counts[0];
            self.pseudo_counts.iter().all(|b| *b == first).then(|| LogRisings::new(first))
        });
        logs.as_ref().map(|logs| (-ln_gamma_difference(self.total, all), logs))
    }
}

impl Separate for Words {
    fn argument(&self, column: usize, sum: f64) -> f64 {
        self.pseudo_counts[column] + sum.max(0.0)
    }

    fn shared(&self, component: Tallied<'_>) -> Shared {
        Shared { constant: 0.0, common: digamma(self.total + sum(component.sums).max(0.0)) }
    }
}

/// Draws word counts with probabilities proportional to `phi`.
fn deal_words(n_words: u64, phi: &[f64], row: &mut [f64], generator: &mut Generator) {
    let (mut left, mut mass) = (n_words, phi.iter().sum::<f64>());
    for (to, p) in row.iter_mut().zip(phi) {
        // Draws the words one after another from the remaining words and probability.
        let share = if mass > 0.0 { (p / mass).clamp(0.0, 1.0) } else { 0.0 };
        let count = Binomial::new(left, share).map_or(0, |binomial| binomial.sample(generator));
        *to = count as f64;
        left -= count;
        mass -= p;
    }
}

/// `ln {Gamma(beta + x) / (Gamma(beta) x!)}`, without cancellation for large counts.
fn log_rising(beta: f64, x: f64) -> f64 {
    if x > beta && x >= 256.0 {
        return ln_gamma_difference(x + 1.0, beta - 1.0) - ln_gamma(beta);
    }
    if x == 0.0 { 0.0 } else { ln_gamma_difference(beta, x) - ln_factorial(x) }
}
