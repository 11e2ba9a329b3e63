//! Independent columns of counts with a Gamma base measure each (mathematics 1g, and with missing values 1.7).

use rand_distr::Distribution;

use crate::data::{Allowed, Domain, Moments, Needs};
use crate::error::{Error, Result};
use crate::laws::{ColumnLaw, count};
use crate::likelihood::counts::{
    CountFamily, Counts, Exposures, LEAST, OfColumns, Repeats, Risings, Separate, Tallied, Tally,
};
use crate::likelihood::evidence::{GUARD, maximum_at};
use crate::likelihood::gamma;
use crate::likelihood::gamma_evidence::{SHAPES, gamma_divergence};
use crate::likelihood::{AtPoint, Caution, Draw, Estimate, Frame, FromParameters, Given, RowSource, row_by_row};
use crate::parallel::{blocks, map};
use crate::parameters::{Parameters, Value, table, vector};
use crate::registry::{
    DefaultValue, EXPOSURE, Entry, Feature, MEAN_EXPOSURE, PRIOR, Parameter, ParameterKind, REPEATS, Range, Support,
    TOTAL,
};
use crate::scoring::{Column, Row, RowFunction, RowScorer, Shared};
use crate::special::{Last, digamma, digamma_difference, ln_factorial, ln_gamma_difference, x_ln_x};

/// Number of columns whose shapes one task estimates.
const COLUMNS: usize = 64;

/// theta_d ~ Gamma(`shape_d`, rate), x_d ~ Poisson(e theta_d) with the exposure e of the row. Statistics: sum x, and
/// with missing values the count of each column.
pub type Poisson = Counts<Rates>;

/// The base measures of the columns.
#[derive(Debug)]
pub struct Rates {
    /// That of each column, (D,). They have the same rate.
    columns: Vec<Rate>,
    /// Sum of the shapes of the columns of the data.
    total_shape: f64,
    repeats: Repeats,
    exposures: Exposures,
}

/// Gamma(shape, rate).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    shape: f64,
    rate: f64,
}

impl Rate {
    fn mean(self) -> f64 {
        self.shape / self.rate
    }

    /// `x ln theta - theta`, of which the second term is multiplied by exposures.
    fn column(theta: f64) -> Column {
        Column::line(theta.max(LEAST).ln(), -theta)
    }

    /// Negative divergence of a row's smoothed mean, without the term that depends on the row alone (mathematics 5.2);
    /// `usual` is the exposure of an average row.
    fn divergence(self, prior: Self, usual: f64) -> Column {
        let (theta, total) = (self.mean(), prior.rate + usual);
        Column::line(usual * theta.ln() / total, prior.shape * theta.ln() / total - theta)
    }

    /// Negative of the term that depends on the row alone, per exposure; `self` is the prior, and `x` the count per
    /// exposure.
    fn smoothed_part(self, x: f64, usual: f64) -> f64 {
        let mean = (self.shape + usual * x) / (self.rate + usual);
        mean - x_ln_x(mean)
    }

    /// ln p(x | lambda) without `x ln e - ln x!`, for the exposure e: a negative binomial.
    fn log_predictive(self, x: f64, exposure: f64) -> f64 {
        let none = self.log_predictive_of_zero(exposure);
        if x == 0.0 { none } else { none + ln_gamma_difference(self.shape, x) - x * (self.rate + exposure).ln() }
    }

    fn log_predictive_of_zero(self, exposure: f64) -> f64 {
        -self.shape * (exposure / self.rate).ln_1p()
    }
}

impl FromParameters for Rates {
    const ENTRY: Entry = Entry {
        domain: Some(Domain::Counts),
        faces: &["scores", "points", "imputation", "draws", "parameters", "urn", "evidence", "laws"],
        supports: &[
            Support::always(Feature::Sparse),
            Support { feature: Feature::Missing, unless: Some((EXPOSURE.name, TOTAL)) },
            Support::always(Feature::Moves),
        ],
        parameters: &[
            Parameter::new("shape", ParameterKind::NumberOrVector(Range::POSITIVE), DefaultValue::Evidence),
            Parameter::new("rate", ParameterKind::Number(Range::POSITIVE), DefaultValue::Evidence),
            PRIOR,
            EXPOSURE,
        ],
        unlisted: &[REPEATS, MEAN_EXPOSURE],
        ..Entry::new("Poisson")
    };
    const NEEDS: Needs = Needs::Means;

    fn check(parameters: &Parameters) -> Result<()> {
        parameters.check(&Self::ENTRY)
    }

    fn allowed(parameters: &Parameters) -> Result<Allowed> {
        Ok(Allowed::counts(parameters.exposure()?))
    }

    fn resolve(parameters: &Parameters, data: &Moments) -> Result<Parameters> {
        Self::check(parameters)?;
        let (d, exposures) = (data.dimension(), Exposures::of_data(parameters, data)?);
        let rate = parameters.number("rate")?.unwrap_or(exposures.mean());
        let overall = Repeats::overall_mean(parameters, data)?;
        let ridge = if overall > 0.0 { 1e-3 * overall } else { 1e-3 };
        let rows = rate / exposures.mean();
        let follow = || data.mean.iter().map(|mean| rows * (mean + ridge)).collect();
        let mut shape: Vec<f64> = parameters.positives("shape", Some(d))?.unwrap_or_else(follow);
        exposures.set(&mut shape, 1.0);
        let found = Parameters::from_pairs([("shape", vector(shape)), ("rate", Value::Number(rate))]);
        Ok(exposures.keep(parameters, Repeats::keep(parameters, found)))
    }

    fn build(parameters: &Parameters, frame: Frame) -> Result<Self> {
        Self::check(parameters)?;
        let d = frame.origin.len();
        let shape = Parameters::required("shape", parameters.positives("shape", Some(d))?)?;
        let rate = Parameters::required("rate", parameters.number("rate")?)?;
        let (repeats, exposures) = (Repeats::read(parameters, d)?, Exposures::read(parameters, d)?);
        let total_shape = repeats.sum(shape.iter().copied());
        let columns = shape.into_iter().map(|shape| Rate { shape, rate }).collect();
        Ok(Self { columns, total_shape, repeats, exposures })
    }
}

impl Rates {
    fn posterior(&self, component: Tallied<'_>) -> Vec<Rate> {
        let columns = component.columns().zip(&self.columns);
        columns.map(|((n, s), prior)| Rate { shape: prior.shape + s, rate: prior.rate + n }).collect()
    }
}

impl CountFamily for Rates {
    const ESTIMATE: &'static str = "rate";
    const PRIOR_COUNTS: &'static [&'static str] = &["shape", "rate"];
    const CAUTIONS: &'static [(&'static str, Caution)] = &[("shape", Caution::Kept)];

    fn repeats(&self) -> Repeats {
        self.repeats
    }

    fn exposures(&self) -> Option<Exposures> {
        Some(self.exposures)
    }

    fn log_marginal(&self, component: Tallied<'_>) -> f64 {
        let (columns, mut last) = (component.columns().zip(&self.columns), Last::default());
        let gain = |(prior, n, s): (Rate, f64, f64)| gamma::cumulant_above((prior.shape, prior.rate), (s, n));
        self.repeats.sum(columns.map(|((n, s), prior)| last.of((*prior, n, s), gain)))
    }

    fn divergence_from_prior(&self, component: Tallied<'_>) -> f64 {
        let (columns, mut last) = (component.columns().zip(&self.columns), Last::default());
        let divergence = |(prior, n, s): (Rate, f64, f64)| gamma::divergence((prior.shape, prior.rate), (s, n));
        self.repeats.sum(columns.map(|((n, s), prior)| last.of((*prior, n, s), divergence)))
    }

    fn points(&self, component: Tallied<'_>, estimate: Estimate) -> Vec<f64> {
        let columns = self.posterior(component).into_iter().zip(component.columns());
        let of_column = |(posterior, (n, s)): (Rate, (f64, f64))| match estimate {
            Estimate::Mode => (posterior.shape - 1.0).max(0.0) / posterior.rate,
            Estimate::MaximumLikelihood if n > 0.0 => s / n,
            _ => posterior.mean(),
        };
        let mut points = columns.map(of_column).collect::<Vec<_>>();
        self.exposures.set(&mut points, component.mean_exposure().unwrap_or(self.exposures.mean()));
        points
    }

    fn at_point(&self, component: Tallied<'_>, points: &[f64]) -> AtPoint {
        let mut contribution = AtPoint { log_likelihood: 0.0, log_prior: 0.0 };
        for (column, (((n, s), theta), prior)) in component.columns().zip(points).zip(&self.columns).enumerate() {
            let times = self.repeats.of(column);
            contribution.log_likelihood += times * (s * theta.max(LEAST).ln() - n * theta);
            contribution.log_prior += times * gamma::log_density(theta.max(LEAST), prior.shape, prior.rate);
        }
        contribution
    }

    fn check_mode(&self) -> Result<()> {
        let columns = self.columns.iter().enumerate().filter(|(column, _)| self.exposures.column() != Some(*column));
        match columns.map(|(_, prior)| prior).find(|prior| prior.shape < 1.0) {
            Some(prior) => {
                Err(Error::invalid("shape", Value::Number(prior.shape), "at least 1 where the objective is \"map\""))
            }
            None => Ok(()),
        }
    }

    fn posterior_parameters(&self, components: &[Tallied<'_>], tally: &Tally) -> Parameters {
        let d = self.columns.len();
        let all: Vec<Rate> = components.iter().flat_map(|component| self.posterior(*component)).collect();
        let shape = table(d, all.iter().map(|posterior| posterior.shape).collect());
        // Equal in all columns unless values are missing.
        let rate = if tally.missing {
            table(d, all.iter().map(|posterior| posterior.rate).collect())
        } else {
            vector(components.iter().map(|component| self.columns[0].rate + component.size()).collect())
        };
        Parameters::from_pairs([("shape", shape), ("rate", rate)])
    }

    fn expected(&self, component: Tallied<'_>) -> Vec<Column> {
        let expected =
            |posterior: Rate| Column::line(digamma(posterior.shape) - posterior.rate.ln(), -posterior.mean());
        let mut last = Last::default();
        self.posterior(component).into_iter().map(|posterior| last.of(posterior, expected)).collect()
    }

    /// Gamma distributions.
    fn parameter_rows(&self, component: Tallied<'_>) -> Result<RowSource<'static>> {
        let columns = self.posterior(component).into_iter().map(|rate| gamma::distribution(rate.shape, rate.rate));
        let columns: Vec<_> = columns.collect::<Result<_>>()?;
        let (exposures, usual) = (self.exposures, component.mean_exposure().unwrap_or(self.exposures.mean()));
        Ok(row_by_row(columns.len(), move |row, generator| {
            row.iter_mut().zip(&columns).for_each(|(to, rate)| *to = rate.sample(generator));
            exposures.set(row, usual);
        }))
    }

    fn of_columns(&self) -> Option<&dyn OfColumns> {
        Some(self)
    }

    fn separate(&self) -> Option<&dyn Separate> {
        Some(self)
    }

    fn column_at(&self, _: usize, point: f64) -> Column {
        Rate::column(point)
    }

    fn divergence(&self, component: Tallied<'_>) -> (f64, Vec<Column>) {
        let (columns, mut last) = (self.posterior(component).into_iter().zip(&self.columns), Last::default());
        let usual = self.exposures.mean();
        let divergence = |(posterior, prior): (Rate, Rate)| posterior.divergence(prior, usual);
        (0.0, columns.map(|(posterior, prior)| last.of((posterior, *prior), divergence)).collect())
    }

    fn row_divergence(&self) -> RowFunction {
        let (prior, repeats, exposures, mut last) =
            (self.columns.clone(), self.repeats, self.exposures, Last::default());
        let usual = exposures.mean();
        let at_zero = repeats.sum(prior.iter().map(|prior| last.of(*prior, |prior| prior.smoothed_part(0.0, usual))));
        RowFunction::new(move |row| {
            let exposure = exposures.of(row);
            if exposure == 0.0 {
                return 0.0;
            }
            let part = |column: usize, x| repeats.of(column) * prior[column].smoothed_part(x / exposure, usual);
            exposure * exposures.sum(row, at_zero, part)
        })
    }

    fn log_base(&self) -> Option<RowFunction> {
        let exposures = self.exposures;
        Some(RowFunction::new(move |row| {
            let log = exposures.of(row).ln();
            exposures.sum(row, 0.0, |_, x| if x == 0.0 { 0.0 } else { x * log - ln_factorial(x) })
        }))
    }

    fn predictive(&self, components: &[Tallied<'_>], log_weights: &[f64]) -> Option<RowScorer> {
        let log_weights = log_weights.to_vec();
        let parts: Vec<_> = components.iter().map(|component| self.posterior(*component)).collect();
        let (repeats, exposures) = (self.repeats, self.exposures);
        // Without exposures that of every row is 1.
        let none =
            |columns: &Vec<Rate>| repeats.sum(columns.iter().map(|posterior| posterior.log_predictive(0.0, 1.0)));
        let at_zero: Vec<f64> = parts.iter().map(none).collect();
        let shapes = |columns: &Vec<Rate>| Rate {
            shape: repeats.sum(columns.iter().map(|posterior| posterior.shape)),
            rate: columns[usize::from(exposures.column() == Some(0))].rate,
        };
        let totals: Vec<Rate> = parts.iter().map(shapes).collect();
        Some(RowScorer::new(self.columns.len(), components.len(), move |k, row| {
            let (columns, exposure) = (&parts[k], exposures.of(row));
            let log = exposure.ln();
            let of_value = |column: usize, x| {
                let of_base = if x == 0.0 { 0.0 } else { x * log - ln_factorial(x) };
                repeats.of(column) * (columns[column].log_predictive(x, exposure) + of_base)
            };
            let at_zero = exposures.source().map_or_else(|| at_zero[k], |_| totals[k].log_predictive_of_zero(exposure));
            log_weights[k] + exposures.sum(row, at_zero, of_value)
        }))
    }

    fn moments(&self, component: Tallied<'_>) -> (Vec<f64>, Vec<f64>) {
        let (columns, usual) = (self.posterior(component).into_iter(), self.exposures.mean());
        let of_column = |posterior: Rate| {
            let mean = usual * posterior.mean();
            (mean, mean * (1.0 + usual / posterior.rate))
        };
        let (mut means, mut variances): (Vec<f64>, Vec<f64>) = columns.map(of_column).unzip();
        self.exposures.set(&mut means, usual);
        self.exposures.set(&mut variances, 0.0);
        (means, variances)
    }

    fn log_predictive(&self, component: Tallied<'_>, row: Row<'_>) -> f64 {
        let exposure = self.exposures.of(row);
        let column = |column: usize, x| {
            let ((n, s), prior) = (component.column(column), self.columns[column]);
            let posterior = Rate { shape: prior.shape + s, rate: prior.rate + n };
            self.repeats.of(column) * posterior.log_predictive(x, exposure)
        };
        self.exposures.sum_of(row, self.columns.len(), column)
    }

    fn risings(&self) -> Option<&dyn Risings> {
        Some(self)
    }

    fn divergence_of(&self, start: &Self) -> f64 {
        let (columns, mut last) = (self.columns.iter().zip(&start.columns), Last::default());
        let divergence =
            |(prior, start): (Rate, Rate)| gamma_divergence((start.shape, start.rate), (prior.shape, prior.rate));
        self.repeats.sum(columns.map(|(prior, start)| last.of((*prior, *start), divergence)))
    }

    /// Estimates a shape for each column, then their common rate (mathematics 10.4).
    fn estimate(&self, components: &[Tallied<'_>], start: &Self, given: &Given<'_>) -> Parameters {
        let mut found = given.parameters.clone();
        let mut shapes: Vec<f64> = self.columns.iter().map(|prior| prior.shape).collect();
        let rate = self.columns[0].rate;
        if given.is_free("shape") {
            let best = |shape: f64, start: Rate, cells: &[(f64, f64)]| {
                let rows: f64 = cells.iter().map(|(n, _)| (n / rate).ln_1p()).sum();
                let guard = digamma(start.shape) - start.rate.ln() + rate.ln();
                maximum_at(shape, SHAPES, |shape| {
                    let seen = cells.iter().filter(|(_, s)| *s > 0.0);
                    seen.map(|(_, s)| digamma_difference(shape, *s)).sum::<f64>() - rows
                        + GUARD * (guard - digamma(shape))
                })
            };
            let has_all = components.iter().all(|component| component.has_all());
            let blocks: Vec<_> = blocks(shapes.len(), COLUMNS).collect();
            let of_block = |block: usize| {
                let mut last = Last::default();
                let of_column = |column: usize| {
                    if self.exposures.column() == Some(column) {
                        return 1.0;
                    }
                    let cells: Vec<(f64, f64)> = components.iter().map(|component| component.column(column)).collect();
                    let (shape, start) = (shapes[column], start.columns[column]);
                    if has_all && cells.iter().all(|(_, s)| *s == 0.0) {
                        return last.of((shape, start), |(shape, start)| best(shape, start, &cells));
                    }
                    best(shape, start, &cells)
                };
                blocks[block].clone().map(of_column).collect::<Vec<_>>()
            };
            shapes = map(blocks.len(), of_block).concat();
            found = found.with([("shape", vector(shapes.clone()))]);
        }
        if given.is_free("rate") {
            let of_shapes = self.repeats.sum(shapes.iter().copied());
            let cells: Vec<(f64, f64)> = if components.iter().all(|component| component.has_all()) {
                let whole = |component: &Tallied<'_>| {
                    (component.size(), of_shapes + component.columns().map(|(_, s)| s).sum::<f64>())
                };
                components.iter().map(whole).collect()
            } else {
                let each = |component: &Tallied<'_>| {
                    component.columns().zip(&shapes).map(|((n, s), shape)| (n, shape + s)).collect::<Vec<_>>()
                };
                components.iter().flat_map(each).collect()
            };
            let guard = self.repeats.sum(start.columns.iter().map(|prior| prior.shape / prior.rate));
            let number = components.len() as f64 + GUARD;
            let value = maximum_at(rate, SHAPES.times(self.exposures.mean()), |rate| {
                number * of_shapes / rate - cells.iter().map(|(n, a)| a / (rate + n)).sum::<f64>() - GUARD * guard
            });
            found = found.with([("rate", Value::Number(value))]);
        }
        found
    }

    fn source(&self, component: Tallied<'_>, from: Draw<'_>) -> Result<RowSource<'_>> {
        let (exposures, usual) = (self.exposures, self.exposures.mean());
        if let Some(estimate) = from.estimate {
            let rates = self.points(component, estimate);
            return Ok(row_by_row(rates.len(), move |row, generator| {
                row.iter_mut().zip(&rates).for_each(|(to, &rate)| *to = count(usual * rate, generator));
                exposures.set(row, usual);
            }));
        }
        let rates = self.posterior(component).into_iter().map(|rate| gamma::distribution(rate.shape, rate.rate));
        let rates: Vec<_> = rates.collect::<Result<_>>()?;
        Ok(row_by_row(rates.len(), move |row, generator| {
            for (to, rate) in row.iter_mut().zip(&rates) {
                let rate = rate.sample(generator);
                *to = count(usual * rate, generator);
            }
            exposures.set(row, usual);
        }))
    }
}

impl Risings for Rates {
    fn shape(&self, column: usize) -> f64 {
        self.columns[column].shape
    }

    fn of_totals(&self, count: f64, all: f64, own: f64) -> f64 {
        let all = Rate { shape: self.total_shape + all, rate: self.columns[0].rate + count };
        all.log_predictive_of_zero(1.0) - own * all.rate.ln_1p()
    }
}

impl Separate for Rates {
    fn argument(&self, column: usize, sum: f64) -> f64 {
        self.columns[column].shape + sum.max(0.0)
    }

    /// Valid because all columns have the same rate.
    fn shared(&self, component: Tallied<'_>) -> Shared {
        let rate = self.columns[0].rate + component.column(0).0;
        let shapes = self.repeats.sum(component.columns().zip(&self.columns).map(|((_, s), prior)| prior.shape + s));
        Shared { constant: -shapes / rate, common: rate.ln() }
    }
}

impl OfColumns for Rates {
    fn laws(&self, component: Tallied<'_>, estimate: Option<Estimate>) -> Vec<ColumnLaw> {
        if let Some(estimate) = estimate {
            return self.points(component, estimate).into_iter().map(ColumnLaw::Poisson).collect();
        }
        let posterior = self.posterior(component).into_iter();
        posterior.map(|Rate { shape, rate }| ColumnLaw::NegativeBinomial { shape, rate }).collect()
    }
}
