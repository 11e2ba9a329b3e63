//! Independent columns of overdispersed counts with a Beta base measure each (mathematics 1i, and with missing values
//! 1.7).

mod chance;
mod evidence;

use std::sync::{Arc, OnceLock};

use rand_distr::Distribution;

use crate::data::{Allowed, Domain, Histogram, Moments, Needs};
use crate::error::{Error, Result};
use crate::laws::{ColumnLaw, mixed_count};
use crate::likelihood::counts::{CountFamily, Counts, Exposures, LEAST, OfColumns, Repeats, Tallied, Tally};
use crate::likelihood::gamma;
use crate::likelihood::gamma_evidence::{SHAPES, gamma_divergence};
use crate::likelihood::negative_binomial::chance::Chance;
use crate::likelihood::{AtPoint, Caution, Draw, Estimate, Frame, FromParameters, Given, RowSource, row_by_row};
use crate::parallel::map;
use crate::parameters::{Parameters, Value, table, vector};
use crate::registry::{
    DefaultValue, EXPOSURE, Entry, Feature, MEAN_EXPOSURE, PRIOR, Parameter, ParameterKind, Range, Support, TOTAL,
};
use crate::scoring::{Column, Row, RowFunction, RowScorer};
use crate::special::{Last, ln_beta, ln_factorial, ln_gamma_difference, weighted_ln_gamma_differences};

/// The dispersion with which estimation starts, for rows of exposure 1.
const START: f64 = 2.0;
const DISPERSION: Parameter =
    Parameter::new("dispersion", ParameterKind::NumberOrVector(Range::closed(1e-6, 1e9)), DefaultValue::Evidence);
/// The same for rows with exposures, of any unit.
const PER_EXPOSURE: Parameter =
    Parameter::new("dispersion", ParameterKind::NumberOrVector(Range::closed(1e-110, 1e110)), DefaultValue::Evidence);
const RATE: Parameter =
    Parameter::new("rate", ParameterKind::Number(Range::closed(1e-150, 1e150)), DefaultValue::Evidence);

/// p_d ~ Beta(`shape_d`, `dispersion_d` rate), x_d ~ NB(`dispersion_d` e, p_d) with the exposure e of the row.
/// Statistics: sum x, and with missing values the count of each column.
pub type NegativeBinomial = Counts<Dispersed>;

/// The base measures of the columns.
#[derive(Debug)]
pub struct Dispersed {
    /// That of each column, (D,).
    columns: Vec<Chance>,
    /// The weight of the prior, in exposures.
    rate: f64,
    exposures: Exposures,
    /// Without the column of exposures.
    repeats: Repeats,
    values: Option<Arc<Histogram>>,
    /// `sum_n log Gamma(x_n + dispersion) / Gamma(dispersion)` over the rows of the histogram, once it is computed.
    variable_base: OnceLock<f64>,
}

/// `ln Gamma(x + dispersion) / Gamma(dispersion)`, the part of the base measure with a parameter.
fn variable_part(dispersion: f64, x: f64) -> f64 {
    // A row without counts may have the exposure 0, and so the dispersion 0.
    if x == 0.0 { 0.0 } else { ln_gamma_difference(dispersion, x) }
}

impl FromParameters for Dispersed {
    const ENTRY: Entry = Entry {
        domain: Some(Domain::Counts),
        faces: &["scores", "points", "imputation", "draws", "parameters", "urn", "evidence", "laws"],
        supports: &[
            Support::always(Feature::Sparse),
            Support { feature: Feature::Missing, unless: Some((EXPOSURE.name, TOTAL)) },
            Support::always(Feature::Moves),
        ],
        parameters: &[
            DISPERSION,
            // Larger ones would lose the digits of the counts.
            Parameter::new("shape", ParameterKind::NumberOrVector(Range::closed(1e-300, 1e10)), DefaultValue::Evidence),
            RATE,
            PRIOR,
            EXPOSURE,
        ],
        unlisted: &[MEAN_EXPOSURE],
        ..Entry::new("NegativeBinomial")
    };
    const NEEDS: Needs = Needs::Means;
    const VALUES: bool = true;

    /// The range of dispersions is that of rows of exposure 1. With exposures in another unit it is wider.
    fn check(parameters: &Parameters) -> Result<()> {
        if parameters.is_absent(EXPOSURE.name) {
            return parameters.check(&Self::ENTRY);
        }
        parameters.numbers(&PER_EXPOSURE, None)?;
        parameters.with([("dispersion", Value::Absent)]).check(&Self::ENTRY)
    }

    fn allowed(parameters: &Parameters) -> Result<Allowed> {
        Ok(Allowed::counts(parameters.exposure()?))
    }

    fn resolve(parameters: &Parameters, data: &Moments) -> Result<Parameters> {
        Self::check(parameters)?;
        let (d, exposures) = (data.dimension(), Exposures::of_data(parameters, data)?);
        let rate = parameters.number("rate")?.unwrap_or(exposures.mean());
        let counts = Repeats::of_counts(parameters, d)?;
        let overall = counts.sum(data.mean.iter().copied()) / counts.n_data_columns();
        let (rows, ridge) = (rate / exposures.mean(), if overall > 0.0 { 1e-3 * overall } else { 1e-3 });
        let follow = || {
            let within = |mean: &f64| (rows * (mean + ridge)).clamp(SHAPES.least, SHAPES.greatest);
            data.mean.iter().map(within).collect()
        };
        let mut shape: Vec<f64> = parameters.positives("shape", Some(d))?.unwrap_or_else(follow);
        let start = || vec![START / exposures.mean(); d];
        let mut dispersion = parameters.numbers(&PER_EXPOSURE, Some(d))?.unwrap_or_else(start);
        exposures.set(&mut shape, 1.0);
        exposures.set(&mut dispersion, START / exposures.mean());
        let pairs = [("dispersion", vector(dispersion)), ("shape", vector(shape)), ("rate", Value::Number(rate))];
        Ok(exposures.keep(parameters, Parameters::from_pairs(pairs)))
    }

    fn build(parameters: &Parameters, frame: Frame) -> Result<Self> {
        Self::check(parameters)?;
        let d = frame.origin.len();
        let shape = Parameters::required("shape", parameters.positives("shape", Some(d))?)?;
        let rate = Parameters::required("rate", parameters.number("rate")?)?;
        let dispersion = Parameters::required("dispersion", parameters.numbers(&PER_EXPOSURE, Some(d))?)?;
        let (exposures, repeats) = (Exposures::read(parameters, d)?, Repeats::of_counts(parameters, d)?);
        let columns = shape.into_iter().zip(dispersion);
        let columns = columns.map(|(a, dispersion)| Chance { a, b: dispersion * rate, dispersion }).collect();
        Ok(Self { columns, rate, exposures, repeats, values: frame.values, variable_base: OnceLock::new() })
    }
}

impl Dispersed {
    /// The base measures of the columns of counts, with the numbers of these columns.
    fn columns_of_counts(&self) -> impl Iterator<Item = (usize, &Chance)> {
        self.columns.iter().enumerate().filter(|(column, _)| self.exposures.column() != Some(*column))
    }

    fn posterior(&self, component: Tallied<'_>) -> Vec<Chance> {
        component.columns().zip(&self.columns).map(|((n, s), prior)| prior.after(n, s)).collect()
    }

    /// The sum over columns of a function of the prior, the size and the sum of each column.
    fn sum(&self, component: Tallied<'_>, f: impl Fn(Chance, f64, f64) -> f64) -> f64 {
        let (columns, mut last) = (component.columns().zip(&self.columns), Last::default());
        self.repeats.sum(columns.map(|((n, s), prior)| last.of((*prior, n, s), |(prior, n, s)| f(prior, n, s))))
    }

    /// The size and the sum of a column of every component.
    fn cells(components: &[Tallied<'_>], column: usize) -> Vec<(f64, f64)> {
        components.iter().map(|component| component.column(column)).collect()
    }
}

impl CountFamily for Dispersed {
    const ESTIMATE: &'static str = "mean";
    const PRIOR_COUNTS: &'static [&'static str] = &["shape", "rate"];
    const CAUTIONS: &'static [(&'static str, Caution)] = &[("shape", Caution::Kept)];

    fn repeats(&self) -> Repeats {
        self.repeats
    }

    fn exposures(&self) -> Option<Exposures> {
        Some(self.exposures)
    }

    fn log_marginal(&self, component: Tallied<'_>) -> f64 {
        self.sum(component, |prior, n, s| prior.gain(s, prior.dispersion * n))
    }

    fn divergence_from_prior(&self, component: Tallied<'_>) -> f64 {
        self.sum(component, Chance::divergence_to)
    }

    fn points(&self, component: Tallied<'_>, estimate: Estimate) -> Vec<f64> {
        let columns = self.posterior(component).into_iter().zip(component.columns());
        let of_column = |(posterior, (n, s)): (Chance, (f64, f64))| match estimate {
            // The mode of p, as an expected count.
            Estimate::Mode if posterior.b > 1.0 => {
                posterior.dispersion * (posterior.a - 1.0).max(0.0) / (posterior.b - 1.0)
            }
            Estimate::MaximumLikelihood if n > 0.0 => s / n,
            _ => posterior.mean(),
        };
        let mut points = columns.map(of_column).collect::<Vec<_>>();
        self.exposures.set(&mut points, component.mean_exposure().unwrap_or(self.exposures.mean()));
        points
    }

    fn at_point(&self, component: Tallied<'_>, points: &[f64]) -> AtPoint {
        let columns = component.columns().zip(points).zip(&self.columns).enumerate();
        columns
            .filter(|(column, _)| self.exposures.column() != Some(*column))
            .map(|(_, (((n, s), mean), prior))| {
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
        for (_, prior) in self.columns_of_counts() {
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
        let of_component = |component: &Tallied<'_>| self.rate + component.size();
        let rates = if tally.missing { table(d, rates) } else { vector(components.iter().map(of_component).collect()) };
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
        let (exposures, usual) = (self.exposures, component.mean_exposure().unwrap_or(self.exposures.mean()));
        Ok(row_by_row(columns.len(), move |row, generator| {
            for (to, (dispersion, a, b)) in row.iter_mut().zip(&columns) {
                *to = (dispersion * a.sample(generator) / b.sample(generator)).min(f64::MAX);
            }
            exposures.set(row, usual);
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
        let usual = self.exposures.mean();
        let divergence = |(posterior, prior): (Chance, Chance)| posterior.divergence(prior.a, self.rate, usual);
        (0.0, columns.map(|(posterior, prior)| last.of((posterior, *prior), divergence)).collect())
    }

    fn row_divergence(&self) -> RowFunction {
        let (columns, rate, exposures) = (self.columns.clone(), self.rate, self.exposures);
        let usual = exposures.mean();
        let at_zero = self.repeats.sum(columns.iter().map(|prior| prior.smoothed_part(rate, 0.0, usual)));
        RowFunction::new(move |row| {
            let exposure = exposures.of(row);
            if exposure == 0.0 {
                return 0.0;
            }
            let part = |column: usize, x| columns[column].smoothed_part(rate, x / exposure, usual);
            exposure * exposures.sum(row, at_zero, part)
        })
    }

    fn log_base(&self) -> Option<RowFunction> {
        let dispersions: Vec<f64> = self.columns.iter().map(|prior| prior.dispersion).collect();
        let exposures = self.exposures;
        Some(RowFunction::new(move |row| {
            let exposure = exposures.of(row);
            exposures.sum(row, 0.0, |column, x| variable_part(dispersions[column] * exposure, x) - ln_factorial(x))
        }))
    }

    fn log_fixed_base(&self) -> Option<RowFunction> {
        let exposures = self.exposures;
        Some(RowFunction::new(move |row| -exposures.sum(row, 0.0, |_, x| ln_factorial(x))))
    }

    fn log_variable_base(&self, mass: f64) -> f64 {
        let Some(values) = self.values.as_ref().filter(|values| values.mass > 0.0) else { return 0.0 };
        let of_rows = self.variable_base.get_or_init(|| {
            let column = |column: usize| {
                let dispersion = self.columns[column].dispersion;
                let entries = values.column(column).iter();
                let [shapes, counts, masses]: [Vec<f64>; 3] = [
                    entries.clone().map(|entry| dispersion * entry.exposure).collect(),
                    entries.clone().map(|entry| entry.count).collect(),
                    entries.map(|entry| entry.mass).collect(),
                ];
                weighted_ln_gamma_differences(&shapes, &counts, &masses)
            };
            map(self.columns.len(), column).iter().sum()
        });
        mass / values.mass * of_rows
    }

    fn predictive(&self, components: &[Tallied<'_>], log_weights: &[f64]) -> Option<RowScorer> {
        let log_weights = log_weights.to_vec();
        let parts: Vec<_> = components.iter().map(|component| self.posterior(*component)).collect();
        let (repeats, exposures) = (self.repeats, self.exposures);
        let none = move |columns: &Vec<Chance>, exposure: f64| {
            repeats.sum(columns.iter().map(|posterior| posterior.log_predictive(0.0, exposure)))
        };
        // Without exposures that of every row is 1.
        let at_zero: Vec<f64> = parts.iter().map(|columns| none(columns, 1.0)).collect();
        Some(RowScorer::new(self.columns.len(), components.len(), move |k, row| {
            let exposure = exposures.of(row);
            let of_value = |column: usize, x| {
                let chance: Chance = parts[k][column];
                let of_base = variable_part(chance.dispersion * exposure, x) - ln_factorial(x);
                chance.log_predictive(x, exposure) + of_base
            };
            let at_zero = match (exposures.source(), row) {
                (Some(_), Row::Sparse(..)) => none(&parts[k], exposure),
                _ => at_zero[k],
            };
            log_weights[k] + exposures.sum(row, at_zero, of_value)
        }))
    }

    fn moments(&self, component: Tallied<'_>) -> (Vec<f64>, Vec<f64>) {
        let usual = self.exposures.mean();
        // A row of the usual exposure has counts of a dispersion that is as many times as large.
        let of_row = |posterior: Chance| Chance { dispersion: usual * posterior.dispersion, ..posterior };
        let posteriors = self.posterior(component).into_iter().map(of_row);
        let (mut means, mut variances): (Vec<f64>, Vec<f64>) =
            posteriors.map(|posterior| (posterior.mean(), posterior.law().variance())).unzip();
        self.exposures.set(&mut means, usual);
        self.exposures.set(&mut variances, 0.0);
        (means, variances)
    }

    fn log_predictive(&self, component: Tallied<'_>, row: Row<'_>) -> f64 {
        let exposure = self.exposures.of(row);
        self.exposures.sum_of(row, self.columns.len(), |column, x| {
            let (n, s) = component.column(column);
            self.columns[column].after(n, s).log_predictive(x, exposure)
        })
    }

    /// That of the rates in the limit of large dispersions. The dispersions themselves are not guarded: as
    /// probabilities, equal rates under other dispersions would be far apart.
    fn divergence_of(&self, start: &Self) -> f64 {
        let (columns, mut last) = (self.columns.iter().zip(&start.columns), Last::default());
        let divergence =
            |(prior, start_shape): (f64, f64)| gamma_divergence((start_shape, start.rate), (prior, self.rate));
        self.repeats.sum(columns.map(|(prior, start)| last.of((prior.a, start.a), divergence)))
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
        let (exposures, usual) = (self.exposures, self.exposures.mean());
        let dispersions = self
            .columns
            .iter()
            .map(|prior| Ok((prior.dispersion, gamma::distribution(usual * prior.dispersion, 1.0)?)));
        let dispersions: Vec<_> = dispersions.collect::<Result<_>>()?;
        Ok(row_by_row(dispersions.len(), move |row, generator| {
            means(row, generator);
            for (to, (dispersion, gamma)) in row.iter_mut().zip(&dispersions) {
                *to = mixed_count(*to / dispersion * gamma.sample(generator), generator);
            }
            exposures.set(row, usual);
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
    use crate::data::Counted;
    use crate::special::ln_gamma;

    fn family(dispersion: f64, values: &[(f64, f64)], mass: f64) -> Dispersed {
        let parameters = Parameters::from_pairs([
            ("dispersion", Value::Number(dispersion)),
            ("shape", Value::Number(1.5)),
            ("rate", Value::Number(0.7)),
        ]);
        let entry = |&(count, mass): &(f64, f64)| Counted { count, exposure: 1.0, mass };
        let values = Histogram::new(mass, &[values.iter().map(entry).collect()]);
        let values = Some(Arc::new(values.expect("sorted")));
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
