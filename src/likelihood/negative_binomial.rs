//! Independent columns of overdispersed counts with a Beta base measure each (mathematics 1i, and with missing values
//! 1.7).

mod evidence;

use std::sync::{Arc, OnceLock};

use rand_distr::Distribution;

use crate::data::{Domain, Histogram, Moments, Needs};
use crate::error::{Error, Result};
use crate::laws::{ColumnLaw, mixed_count};
use crate::likelihood::counts::{CountFamily, Counts, LEAST, OfColumns, Repeats, Tallied, Tally};
use crate::likelihood::gamma;
use crate::likelihood::gamma_evidence::{SHAPES, gamma_divergence};
use crate::likelihood::{AtPoint, Caution, Draw, Estimate, Frame, FromParameters, Given, RowSource, row_by_row};
use crate::parallel::map;
use crate::parameters::{Parameters, Value, table, vector};
use crate::registry::{DefaultValue, Entry, Feature, PRIOR, Parameter, ParameterKind, Range, Support};
use crate::scoring::{Column, Row, RowFunction, RowScorer};
use crate::special::{Last, digamma_difference, ln_beta, ln_factorial, ln_gamma_difference};

/// The dispersion with which estimation starts.
const START: f64 = 2.0;
const DISPERSION: Parameter =
    Parameter::new("dispersion", ParameterKind::NumberOrVector(Range::closed(1e-6, 1e9)), DefaultValue::Evidence);
const RATE: Parameter =
    Parameter::new("rate", ParameterKind::Number(Range::closed(1e-150, 1e150)), DefaultValue::Evidence);

/// p_d ~ Beta(`shape_d`, `dispersion_d` rate), x_d ~ NB(`dispersion_d`, p_d). Statistics: sum x, and with missing
/// values the count of each column.
pub type NegativeBinomial = Counts<Dispersed>;

/// The base measures of the columns.
#[derive(Debug)]
pub struct Dispersed {
    /// That of each column, (D,).
    columns: Vec<Chance>,
    /// The weight of the prior in rows.
    rate: f64,
    values: Option<Arc<Histogram>>,
    /// `sum_n log Gamma(x_n + dispersion) / Gamma(dispersion)` over the rows of the histogram, once it is computed.
    variable_base: OnceLock<f64>,
}

/// Beta(a, b), the distribution of the probability p of one column with this dispersion.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Chance {
    a: f64,
    b: f64,
    dispersion: f64,
}

impl Chance {
    /// The expected count at the mean of p, which is also the centre of the rows' divergences.
    fn centre(self) -> f64 {
        self.dispersion * self.a / self.b
    }

    /// The expected count, or the one at the mean of p if it is infinite.
    fn mean(self) -> f64 {
        if self.b > 1.0 { self.dispersion * self.a / (self.b - 1.0) } else { self.centre() }
    }

    /// The posterior after `n` rows with the sum `s`.
    fn after(self, n: f64, s: f64) -> Self {
        Self { a: self.a + s, b: self.b + self.dispersion * n, ..self }
    }

    /// `ln B(a + s, b + f) - ln B(a, b)` with f successes of the other kind, free of cancellation where f and b are
    /// large.
    fn gain(self, s: f64, f: f64) -> f64 {
        ln_gamma_difference(self.a, s) - ln_gamma_difference(self.b + f, self.a + s)
            + ln_gamma_difference(self.b, self.a)
    }

    /// KL(posterior || self) after `n` rows with the sum `s`.
    fn divergence_to(self, n: f64, s: f64) -> f64 {
        let (Self { a, b, .. }, f) = (self.after(n, s), self.dispersion * n);
        -s * digamma_difference(a, b) - f * digamma_difference(b, a) - self.gain(s, f)
    }

    /// `E [x ln p + dispersion ln(1 - p)]`.
    fn expected(self) -> Column {
        let Self { a, b, dispersion } = self;
        Column::line(-digamma_difference(a, b), -dispersion * digamma_difference(b, a))
    }

    /// `x ln p + dispersion ln(1 - p)` at the expected count `mean`.
    fn column(self, mean: f64) -> Column {
        let mean = mean.max(LEAST);
        Column::line(-(self.dispersion / mean).ln_1p(), -self.dispersion * (mean / self.dispersion).ln_1p())
    }

    /// Negative divergence of a row's smoothed mean from the centre, without the term that depends on the row alone;
    /// `rate` is that of the prior, `shape` its shape.
    fn divergence(self, shape: f64, rate: f64) -> Column {
        let Column { slope, constant, .. } = self.column(self.centre());
        let total = rate + 1.0;
        Column::line(slope / total, shape / total * slope + constant)
    }

    /// The term that depends on the row alone; `self` is the prior, of this rate.
    fn smoothed_part(self, rate: f64, x: f64) -> f64 {
        let (mean, dispersion) = (((self.a + x) / (rate + 1.0)).max(LEAST), self.dispersion);
        mean * ((mean + dispersion).ln() - mean.ln()) + dispersion * (mean / dispersion).ln_1p()
    }

    /// ln p(x | lambda) without its base measure.
    fn log_predictive(self, x: f64) -> f64 {
        self.gain(x, self.dispersion)
    }

    fn law(self) -> ColumnLaw {
        ColumnLaw::BetaNegativeBinomial { a: self.a, b: self.b, dispersion: self.dispersion }
    }
}

/// `ln Gamma(x + dispersion) / Gamma(dispersion)`, the part of the base measure with a parameter.
fn variable_part(dispersion: f64, x: f64) -> f64 {
    ln_gamma_difference(dispersion, x)
}

impl FromParameters for Dispersed {
    const ENTRY: Entry = Entry {
        domain: Some(Domain::Counts),
        faces: &["scores", "points", "imputation", "draws", "parameters", "urn", "evidence", "laws"],
        supports: &[
            Support::always(Feature::Sparse),
            Support::always(Feature::Missing),
            Support::always(Feature::Moves),
        ],
        parameters: &[
            DISPERSION,
            // Larger ones would lose the digits of the counts.
            Parameter::new("shape", ParameterKind::NumberOrVector(Range::closed(1e-300, 1e10)), DefaultValue::Evidence),
            RATE,
            PRIOR,
        ],
        ..Entry::new("NegativeBinomial")
    };
    const NEEDS: Needs = Needs::Means;
    const VALUES: bool = true;

    fn check(parameters: &Parameters) -> Result<()> {
        parameters.check(&Self::ENTRY)
    }

    fn resolve(parameters: &Parameters, data: &Moments) -> Result<Parameters> {
        Self::check(parameters)?;
        let d = data.dimension();
        let rate = parameters.number("rate")?.unwrap_or(1.0);
        let overall = data.mean.iter().sum::<f64>() / d as f64;
        let ridge = if overall > 0.0 { 1e-3 * overall } else { 1e-3 };
        let follow = || {
            let within = |mean: &f64| (rate * (mean + ridge)).clamp(SHAPES.least, SHAPES.greatest);
            data.mean.iter().map(within).collect()
        };
        let shape = parameters.positives("shape", Some(d))?.unwrap_or_else(follow);
        let dispersion = parameters.numbers(&DISPERSION, Some(d))?.unwrap_or_else(|| vec![START; d]);
        let pairs = [("dispersion", vector(dispersion)), ("shape", vector(shape)), ("rate", Value::Number(rate))];
        Ok(Parameters::from_pairs(pairs))
    }

    fn build(parameters: &Parameters, frame: Frame) -> Result<Self> {
        Self::check(parameters)?;
        let d = frame.origin.len();
        let shape = Parameters::required("shape", parameters.positives("shape", Some(d))?)?;
        let rate = Parameters::required("rate", parameters.number("rate")?)?;
        let dispersion = Parameters::required("dispersion", parameters.numbers(&DISPERSION, Some(d))?)?;
        let columns = shape.into_iter().zip(dispersion);
        let columns = columns.map(|(a, dispersion)| Chance { a, b: dispersion * rate, dispersion }).collect();
        Ok(Self { columns, rate, values: frame.values, variable_base: OnceLock::new() })
    }
}

impl Dispersed {
    fn posterior(&self, component: Tallied<'_>) -> Vec<Chance> {
        component.columns().zip(&self.columns).map(|((n, s), prior)| prior.after(n, s)).collect()
    }

    /// The sum over columns of a function of the prior, the count and the sum of each column.
    fn sum(&self, component: Tallied<'_>, f: impl Fn(Chance, f64, f64) -> f64) -> f64 {
        let (columns, mut last) = (component.columns().zip(&self.columns), Last::default());
        columns.map(|((n, s), prior)| last.of((*prior, n, s), |(prior, n, s)| f(prior, n, s))).sum()
    }

    /// The count and the sum of a column of every component.
    fn cells(components: &[Tallied<'_>], column: usize) -> Vec<(f64, f64)> {
        components.iter().map(|component| component.column(column)).collect()
    }
}

impl CountFamily for Dispersed {
    const ESTIMATE: &'static str = "mean";
    const PRIOR_COUNTS: &'static [&'static str] = &["shape", "rate"];
    const CAUTIONS: &'static [(&'static str, Caution)] = &[("shape", Caution::Kept)];

    fn repeats(&self) -> Repeats {
        Repeats::none(self.columns.len())
    }

    fn log_marginal(&self, component: Tallied<'_>) -> f64 {
        self.sum(component, |prior, n, s| prior.gain(s, prior.dispersion * n))
    }

    fn divergence_from_prior(&self, component: Tallied<'_>) -> f64 {
        self.sum(component, Chance::divergence_to)
    }

    fn points(&self, component: Tallied<'_>, estimate: Estimate) -> Vec<f64> {
        let columns = self.posterior(component).into_iter().zip(component.columns());
        columns
            .map(|(posterior, (n, s))| match estimate {
                // The mode of p, as an expected count.
                Estimate::Mode if posterior.b > 1.0 => {
                    posterior.dispersion * (posterior.a - 1.0).max(0.0) / (posterior.b - 1.0)
                }
                Estimate::MaximumLikelihood if n > 0.0 => s / n,
                _ => posterior.mean(),
            })
            .collect()
    }

    fn at_point(&self, component: Tallied<'_>, points: &[f64]) -> AtPoint {
        let columns = component.columns().zip(points).zip(&self.columns);
        columns
            .map(|(((n, s), mean), prior)| {
                let Column { slope, constant, .. } = prior.column(*mean);
                let failure = constant / prior.dispersion;
                AtPoint {
                    log_likelihood: s * slope + n * constant,
                    log_prior: (prior.a - 1.0) * slope + (prior.b - 1.0) * failure - ln_beta(prior.a, prior.b),
                }
            })
            .sum()
    }

    fn check_mode(&self) -> Result<()> {
        for prior in &self.columns {
            if prior.a < 1.0 {
                let allowed = "at least 1 where the objective is \"map\"";
                return Err(Error::invalid("shape", Value::Number(prior.a), allowed));
            }
            if prior.b < 1.0 {
                let allowed = format!("at least {} where the objective is \"map\"", prior.dispersion.recip());
                return Err(Error::invalid("rate", Value::Number(self.rate), allowed));
            }
        }
        Ok(())
    }

    fn posterior_parameters(&self, components: &[Tallied<'_>], tally: &Tally) -> Parameters {
        let d = self.columns.len();
        let all = components.iter().flat_map(|component| component.columns().zip(&self.columns));
        let (shapes, rates): (Vec<f64>, Vec<f64>) = all.map(|((n, s), prior)| (prior.a + s, self.rate + n)).unzip();
        // Equal in all columns unless values are missing.
        let rates = if tally.missing { table(d, rates) } else { vector(rates.into_iter().step_by(d).collect()) };
        Parameters::from_pairs([("shape", table(d, shapes)), ("rate", rates)])
    }

    fn expected(&self, component: Tallied<'_>) -> Vec<Column> {
        let mut last = Last::default();
        self.posterior(component).into_iter().map(|posterior| last.of(posterior, Chance::expected)).collect()
    }

    /// Ratios of gamma variables.
    fn parameter_rows(&self, component: Tallied<'_>) -> Result<RowSource<'static>> {
        let of = |chance: Chance| {
            Ok((chance.dispersion, gamma::distribution(chance.a, 1.0)?, gamma::distribution(chance.b, 1.0)?))
        };
        let columns: Vec<_> = self.posterior(component).into_iter().map(of).collect::<Result<_>>()?;
        Ok(row_by_row(columns.len(), move |row, generator| {
            for (to, (dispersion, a, b)) in row.iter_mut().zip(&columns) {
                *to = (dispersion * a.sample(generator) / b.sample(generator)).min(f64::MAX);
            }
        }))
    }

    fn of_columns(&self) -> Option<&dyn OfColumns> {
        Some(self)
    }

    fn column_at(&self, column: usize, point: f64) -> Column {
        self.columns[column].column(point)
    }

    fn divergence(&self, component: Tallied<'_>) -> (f64, Vec<Column>) {
        let (columns, mut last) = (self.posterior(component).into_iter().zip(&self.columns), Last::default());
        let divergence = |(posterior, prior): (Chance, Chance)| posterior.divergence(prior.a, self.rate);
        (0.0, columns.map(|(posterior, prior)| last.of((posterior, *prior), divergence)).collect())
    }

    fn row_divergence(&self) -> RowFunction {
        let (columns, rate) = (self.columns.clone(), self.rate);
        let at_zero = columns.iter().map(|prior| prior.smoothed_part(rate, 0.0)).sum();
        RowFunction::new(move |row| row.sum(at_zero, |column, x| columns[column].smoothed_part(rate, x)))
    }

    fn log_base(&self) -> Option<RowFunction> {
        let dispersions: Vec<f64> = self.columns.iter().map(|prior| prior.dispersion).collect();
        Some(RowFunction::new(move |row| {
            row.sum(0.0, |column, x| variable_part(dispersions[column], x) - ln_factorial(x))
        }))
    }

    fn log_fixed_base(&self) -> Option<RowFunction> {
        Some(RowFunction::new(|row| -row.sum(0.0, |_, x| ln_factorial(x))))
    }

    fn log_variable_base(&self, mass: f64) -> f64 {
        let Some(values) = self.values.as_ref().filter(|values| values.mass > 0.0) else { return 0.0 };
        let of_rows = self.variable_base.get_or_init(|| {
            let column = |column: usize| {
                let dispersion = self.columns[column].dispersion;
                values.column(column).iter().map(|(x, mass)| mass * variable_part(dispersion, *x)).sum::<f64>()
            };
            map(self.columns.len(), column).iter().sum()
        });
        mass / values.mass * of_rows
    }

    fn predictive(&self, components: &[Tallied<'_>], log_weights: &[f64]) -> Option<RowScorer> {
        let log_weights = log_weights.to_vec();
        let parts: Vec<_> = components.iter().map(|component| self.posterior(*component)).collect();
        let none = |columns: &Vec<Chance>| columns.iter().map(|posterior| posterior.log_predictive(0.0)).sum();
        let at_zero: Vec<f64> = parts.iter().map(none).collect();
        Some(RowScorer::new(self.columns.len(), components.len(), move |k, row| {
            let of_value = |column: usize, x| {
                let chance: Chance = parts[k][column];
                chance.log_predictive(x) + variable_part(chance.dispersion, x) - ln_factorial(x)
            };
            log_weights[k] + row.sum(at_zero[k], of_value)
        }))
    }

    fn moments(&self, component: Tallied<'_>) -> (Vec<f64>, Vec<f64>) {
        self.posterior(component).into_iter().map(|posterior| (posterior.mean(), posterior.law().variance())).unzip()
    }

    fn log_predictive(&self, component: Tallied<'_>, row: Row<'_>) -> f64 {
        row.sum_of(self.columns.len(), |column, x| {
            let (n, s) = component.column(column);
            self.columns[column].after(n, s).log_predictive(x)
        })
    }

    /// That of the rates in the limit of large dispersions. The dispersions themselves are not guarded: as
    /// probabilities, equal rates under other dispersions would be far apart.
    fn divergence_of(&self, start: &Self) -> f64 {
        let (columns, mut last) = (self.columns.iter().zip(&start.columns), Last::default());
        let divergence =
            |(prior, start_shape): (f64, f64)| gamma_divergence((start_shape, start.rate), (prior, self.rate));
        columns.map(|(prior, start)| last.of((prior.a, start.a), divergence)).sum()
    }

    fn estimate(&self, components: &[Tallied<'_>], start: &Self, given: &Given<'_>) -> Parameters {
        self.estimated(components, start, given)
    }

    fn source(&self, component: Tallied<'_>, from: Draw<'_>) -> Result<RowSource<'_>> {
        let means = match from.estimate {
            Some(estimate) => {
                let means = self.points(component, estimate);
                row_by_row(means.len(), move |row, _| row.copy_from_slice(&means))
            }
            None => self.parameter_rows(component)?,
        };
        let dispersions =
            self.columns.iter().map(|prior| Ok((prior.dispersion, gamma::distribution(prior.dispersion, 1.0)?)));
        let dispersions: Vec<_> = dispersions.collect::<Result<_>>()?;
        Ok(row_by_row(dispersions.len(), move |row, generator| {
            means(row, generator);
            for (to, (dispersion, gamma)) in row.iter_mut().zip(&dispersions) {
                *to = mixed_count(*to / dispersion * gamma.sample(generator), generator);
            }
        }))
    }
}

impl OfColumns for Dispersed {
    fn laws(&self, component: Tallied<'_>, estimate: Option<Estimate>) -> Vec<ColumnLaw> {
        let Some(estimate) = estimate else {
            return self.posterior(component).into_iter().map(Chance::law).collect();
        };
        let points = self.points(component, estimate).into_iter().zip(&self.columns);
        points
            .map(|(mean, prior)| ColumnLaw::NegativeBinomial {
                shape: prior.dispersion,
                rate: prior.dispersion / mean.max(LEAST),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::special::ln_gamma;

    fn family(dispersion: f64, values: &[(f64, f64)], mass: f64) -> Dispersed {
        let parameters = Parameters::from_pairs([
            ("dispersion", Value::Number(dispersion)),
            ("shape", Value::Number(1.5)),
            ("rate", Value::Number(0.7)),
        ]);
        let values = Some(Arc::new(Histogram::new(mass, &[values.to_vec()]).expect("sorted")));
        let frame = Frame { origin: vec![0.0], values, ..Frame::default() };
        Dispersed::build(&parameters, frame).expect("complete")
    }

    /// In the first pass over batches a summary holds part of the rows.
    #[test]
    fn the_variable_base_has_the_mass_that_is_asked_for() {
        let dispersed = family(2.5, &[(1.0, 3.0), (4.0, 2.0)], 8.0);
        let rising = |x: f64| ln_gamma(2.5 + x) - ln_gamma(2.5);
        let all = 3.0 * rising(1.0) + 2.0 * rising(4.0);
        assert!((dispersed.log_variable_base(8.0) - all).abs() < 1e-12);
        assert!((dispersed.log_variable_base(2.0) - all / 4.0).abs() < 1e-12);
    }

    #[test]
    fn gains_lose_no_digits_near_poisson_counts() {
        // ln B(a + s, b + f) - ln B(a, b) for b = 1e9 and f = 2e9 is s ln(1 / 3e9) and terms of a, to 1e-8.
        let chance = Chance { a: 2.0, b: 1e9, dispersion: 1e9 };
        let limit = ln_gamma(5.0) - ln_gamma(2.0) - 5.0 * 3e9_f64.ln() + 2.0 * 1e9_f64.ln();
        assert!((chance.gain(3.0, 2e9) - limit).abs() < 1e-7);
    }
}
