//! Independent columns of zeros and ones with a Beta base measure each (mathematics 1f, and with missing values 1.7).

use rand::RngExt;

use crate::data::{Domain, Moments, Needs};
use crate::error::{Error, Result};
use crate::laws::ColumnLaw;
use crate::likelihood::counts::{
    CountFamily, Counts, LEAST, OfColumns, PSEUDO_COUNTS, Repeats, Tallied, Tally, dirichlet_divergence,
};
use crate::likelihood::evidence::{GUARD, maximum_at};
use crate::likelihood::{AtPoint, Draw, Estimate, Frame, FromParameters, Given, RowSource, row_by_row};
use crate::parameters::{Parameters, Value, table, vector};
use crate::registry::{DefaultValue, Entry, Feature, PRIOR, Parameter, ParameterKind, REPEATS, Range, Support};
use crate::rng::Draws;
use crate::scoring::{Column, RowFunction};
use crate::special::{Last, digamma, digamma_difference, ln_beta, ln_gamma_difference, x_ln_x};

/// p_d ~ Beta(`successes_d`, `failures_d`), x_d ~ Bernoulli(p_d). Statistics: sum x, and with missing values the count
/// of each column.
pub type Bernoulli = Counts<Betas>;

/// The base measures of the columns.
#[derive(Debug)]
pub struct Betas {
    /// That of each column, (D,).
    columns: Vec<Beta>,
    repeats: Repeats,
}

/// Beta(successes, failures).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Beta {
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

    /// ln B of the posterior after `s` successes and `f` failures minus ln B of this prior. Computed from differences,
    /// because float64 loses the counts in ln B itself if the prior is large.
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

    /// Negative divergence of a row's smoothed mean, without the term that depends on the row alone (mathematics 5.2).
    fn divergence(self, prior: Self) -> Column {
        let (success, failure) = log_odds(self.mean());
        let total = prior.total() + 1.0;
        let constant = (prior.successes * success + (prior.failures + 1.0) * failure) / total;
        Column::line((success - failure) / total, constant)
    }

    /// Negative of the term that depends on the row alone; `self` is the prior.
    fn smoothed_entropy(self, x: f64) -> f64 {
        let total = self.total() + 1.0;
        -x_ln_x((self.successes + x) / total) - x_ln_x((self.failures + 1.0 - x) / total)
    }
}

/// Count and sum of every column. Rounding may leave a sum above its count, so the count is raised to it.
fn columns(component: Tallied<'_>) -> impl Iterator<Item = (f64, f64)> {
    component.columns().map(|(n, s)| (n.max(s), s))
}

impl Betas {
    fn posterior(&self, component: Tallied<'_>) -> Vec<Beta> {
        let columns = columns(component).zip(&self.columns);
        columns
            .map(|((n, s), prior)| Beta { successes: prior.successes + s, failures: prior.failures + n - s })
            .collect()
    }
}

/// Successes and failures of one column of a component, or of `times` columns with equal counts and equal priors.
#[derive(Debug, Clone, Copy)]
struct Cell {
    column: usize,
    s: f64,
    f: f64,
    times: f64,
}

/// A cell as seen from one of the two pseudo-counts: the count on that side, and the sum of both counts.
struct Side {
    column: usize,
    count: f64,
    sum: f64,
    times: f64,
}

impl Side {
    fn of(cell: &Cell) -> Self {
        Self { column: cell.column, count: 0.0, sum: 0.0, times: cell.times }
    }
}

impl Betas {
    /// Cells of all columns of all components. If all priors are equal, columns without a one are pooled, so that there
    /// are at most as many cells as ones plus components.
    fn cells(&self, components: &[Tallied<'_>]) -> Vec<Cell> {
        let is_shared = self.columns.iter().all(|prior| *prior == self.columns[0]);
        let mut cells = Vec::new();
        for component in components {
            let mut without = Cell { column: 0, s: 0.0, f: 0.0, times: 0.0 };
            for (column, (n, s)) in columns(*component).enumerate() {
                let cell = Cell { column, s, f: n - s, times: self.repeats.of(column) };
                if !is_shared || s > 0.0 {
                    cells.push(cell);
                } else if without.times > 0.0 && without.f != n {
                    // The column has another count because values are missing.
                    cells.push(cell);
                } else {
                    without = Cell { times: without.times + cell.times, ..cell };
                }
            }
            cells.push(without);
        }
        cells.retain(|cell| cell.times > 0.0);
        cells
    }
}

/// The pseudo-count of one side that maximises the evidence, shared by all columns. `others`: pseudo-counts of the
/// other side, each now and in the initial base measure.
fn best_side(now: f64, start: f64, others: &[(f64, f64)], cells: impl Iterator<Item = Side>, repeats: Repeats) -> f64 {
    let cells: Vec<Side> = cells.collect();
    let mut last = Last::default();
    let mut less = |value: f64, other: f64| last.of((value, other), |(a, b)| digamma(a) - digamma(a + b));
    let of_start = repeats.sum(others.iter().map(|(_, other)| less(start, *other)));
    maximum_at(now, PSEUDO_COUNTS, |value| {
        let cell = |cell: &Side| {
            let both = value + others[cell.column].0;
            cell.times * (digamma_difference(value, cell.count) - digamma_difference(both, cell.sum))
        };
        let of_value = repeats.sum(others.iter().map(|(other, _)| less(value, *other)));
        cells.iter().map(cell).sum::<f64>() + GUARD * (of_start - of_value)
    })
}

impl FromParameters for Betas {
    const ENTRY: Entry = Entry {
        domain: Some(Domain::Binary),
        faces: &["scores", "points", "imputation", "draws", "parameters", "urn", "evidence", "laws"],
        supports: &[
            Support::always(Feature::Sparse),
            Support::always(Feature::Missing),
            Support::always(Feature::Moves),
        ],
        parameters: &[
            Parameter::new("successes", ParameterKind::NumberOrVector(Range::POSITIVE), DefaultValue::Evidence),
            Parameter::new("failures", ParameterKind::NumberOrVector(Range::POSITIVE), DefaultValue::Evidence),
            PRIOR,
        ],
        unlisted: &[REPEATS],
        ..Entry::new("Bernoulli")
    };
    const NEEDS: Needs = Needs::Means;

    fn check(parameters: &Parameters) -> Result<()> {
        parameters.check(&Self::ENTRY)?;
        let d = parameters.positives("successes", None)?.filter(|values| values.len() > 1).map(|values| values.len());
        parameters.positives("failures", d).map(drop)
    }

    fn resolve(parameters: &Parameters, data: &Moments) -> Result<Parameters> {
        let d = data.dimension();
        let of = |name| Ok(vector(parameters.positives(name, Some(d))?.unwrap_or_else(|| vec![1.0; d])));
        let found = Parameters::from_pairs([("successes", of("successes")?), ("failures", of("failures")?)]);
        Ok(Repeats::keep(parameters, found))
    }

    fn build(parameters: &Parameters, frame: Frame) -> Result<Self> {
        let d = frame.origin.len();
        let of = |name| Parameters::required(name, parameters.positives(name, Some(d))?);
        let columns = of("successes")?.into_iter().zip(of("failures")?);
        let columns = columns.map(|(successes, failures)| Beta { successes, failures }).collect();
        Ok(Self { columns, repeats: Repeats::read(parameters, d)? })
    }
}

impl CountFamily for Betas {
    const ESTIMATE: &'static str = "probabilities";
    const PRIOR_COUNTS: &'static [&'static str] = &["successes", "failures"];
    const FLAGS: bool = true;

    fn repeats(&self) -> Repeats {
        self.repeats
    }

    fn log_marginal(&self, component: Tallied<'_>) -> f64 {
        let gain = |(prior, n, s): (Beta, f64, f64)| prior.gain(s, n - s);
        let mut last = Last::default();
        self.repeats.sum(columns(component).zip(&self.columns).map(|((n, s), prior)| last.of((*prior, n, s), gain)))
    }

    fn divergence_from_prior(&self, component: Tallied<'_>) -> f64 {
        let divergence = |(prior, n, s): (Beta, f64, f64)| prior.divergence_to(s, n - s);
        let mut last = Last::default();
        let columns = columns(component).zip(&self.columns);
        self.repeats.sum(columns.map(|((n, s), prior)| last.of((*prior, n, s), divergence)))
    }

    fn points(&self, component: Tallied<'_>, estimate: Estimate) -> Vec<f64> {
        let columns = self.posterior(component).into_iter().zip(columns(component));
        columns
            .map(|(posterior, (n, s))| match estimate {
                Estimate::Mode if posterior.total() > 2.0 => (posterior.successes - 1.0) / (posterior.total() - 2.0),
                Estimate::MaximumLikelihood if n > 0.0 => s / n,
                _ => posterior.mean(),
            })
            .collect()
    }

    fn at_point(&self, component: Tallied<'_>, points: &[f64]) -> AtPoint {
        let mut contribution = AtPoint { log_likelihood: 0.0, log_prior: 0.0 };
        let points = points.iter().copied().map(log_odds);
        let columns = columns(component).zip(points).zip(&self.columns);
        for (column, (((n, s), (success, failure)), prior)) in columns.enumerate() {
            let times = self.repeats.of(column);
            contribution.log_likelihood += times * (s * success + (n - s) * failure);
            contribution.log_prior += times
                * ((prior.successes - 1.0) * success + (prior.failures - 1.0) * failure
                    - ln_beta(prior.successes, prior.failures));
        }
        contribution
    }

    fn check_mode(&self) -> Result<()> {
        for prior in &self.columns {
            for (name, value) in [("successes", prior.successes), ("failures", prior.failures)] {
                if value < 1.0 {
                    let allowed = "at least 1 where the objective is \"map\"";
                    return Err(Error::invalid(name, Value::Number(value), allowed));
                }
            }
        }
        Ok(())
    }

    fn posterior_parameters(&self, components: &[Tallied<'_>], _: &Tally) -> Parameters {
        let all: Vec<Beta> = components.iter().flat_map(|component| self.posterior(*component)).collect();
        let of = |value: fn(&Beta) -> f64| table(self.columns.len(), all.iter().map(value).collect());
        Parameters::from_pairs([("successes", of(|beta| beta.successes)), ("failures", of(|beta| beta.failures))])
    }

    fn expected(&self, component: Tallied<'_>) -> Vec<Column> {
        let expected = |posterior: Beta| {
            let of_total = digamma(posterior.total());
            Beta::column((digamma(posterior.successes) - of_total, digamma(posterior.failures) - of_total))
        };
        let mut last = Last::default();
        self.posterior(component).into_iter().map(|posterior| last.of(posterior, expected)).collect()
    }

    fn column_at(&self, _: usize, point: f64) -> Column {
        Beta::column(log_odds(point))
    }

    fn divergence(&self, component: Tallied<'_>) -> (f64, Vec<Column>) {
        let (columns, mut last) = (self.posterior(component).into_iter().zip(&self.columns), Last::default());
        let divergence = |(posterior, prior): (Beta, Beta)| posterior.divergence(prior);
        (0.0, columns.map(|(posterior, prior)| last.of((posterior, *prior), divergence)).collect())
    }

    fn row_divergence(&self) -> RowFunction {
        let (prior, repeats, mut last) = (self.columns.clone(), self.repeats, Last::default());
        let at_zero = repeats.sum(prior.iter().map(|prior| last.of(*prior, |prior| prior.smoothed_entropy(0.0))));
        RowFunction::new(move |row| {
            row.sum(at_zero, |column, x| repeats.of(column) * prior[column].smoothed_entropy(x))
        })
    }

    fn divergence_of(&self, start: &Self) -> f64 {
        let pair = |prior: Beta| [prior.successes, prior.failures];
        let divergence = |(prior, start): (Beta, Beta)| dirichlet_divergence(&pair(start), &pair(prior));
        let mut last = Last::default();
        let columns = self.columns.iter().zip(&start.columns);
        self.repeats.sum(columns.map(|(prior, start)| last.of((*prior, *start), divergence)))
    }

    /// Estimates one pair of pseudo-counts for all columns (mathematics 10.4).
    fn estimate(&self, components: &[Tallied<'_>], start: &Self, given: &Given<'_>) -> Parameters {
        let cells = self.cells(components);
        let (mut columns, mut found) = (self.columns.clone(), given.parameters.clone());
        let d = columns.len();
        if given.is_free("successes") {
            let side = |cell: &Cell| Side { count: cell.s, sum: cell.s + cell.f, ..Side::of(cell) };
            let others: Vec<_> =
                columns.iter().zip(&start.columns).map(|pair| (pair.0.failures, pair.1.failures)).collect();
            let value = best_side(
                columns[0].successes,
                start.columns[0].successes,
                &others,
                cells.iter().map(side),
                self.repeats,
            );
            for prior in &mut columns {
                prior.successes = value;
            }
            found = found.with([("successes", vector(vec![value; d]))]);
        }
        if given.is_free("failures") {
            let side = |cell: &Cell| Side { count: cell.f, sum: cell.s + cell.f, ..Side::of(cell) };
            let others: Vec<_> =
                columns.iter().zip(&start.columns).map(|pair| (pair.0.successes, pair.1.successes)).collect();
            let value = best_side(
                columns[0].failures,
                start.columns[0].failures,
                &others,
                cells.iter().map(side),
                self.repeats,
            );
            found = found.with([("failures", vector(vec![value; d]))]);
        }
        found
    }

    /// Beta distributions.
    fn parameter_rows(&self, component: Tallied<'_>) -> Result<RowSource<'static>> {
        let columns = self.posterior(component);
        Ok(row_by_row(columns.len(), move |row, generator| {
            row.iter_mut().zip(&columns).for_each(|(to, beta)| *to = generator.beta(beta.successes, beta.failures).0);
        }))
    }

    fn of_columns(&self) -> Option<&dyn OfColumns> {
        Some(self)
    }

    fn source(&self, component: Tallied<'_>, from: Draw<'_>) -> Result<RowSource<'_>> {
        // For a single row only the expected probability matters.
        let columns = self.points(component, from.estimate.unwrap_or(Estimate::Mean));
        Ok(row_by_row(columns.len(), move |row, generator| {
            for (to, p) in row.iter_mut().zip(&columns) {
                *to = f64::from(u8::from(generator.random::<f64>() < *p));
            }
        }))
    }
}

impl OfColumns for Betas {
    fn laws(&self, component: Tallied<'_>, estimate: Option<Estimate>) -> Vec<ColumnLaw> {
        let points = self.points(component, estimate.unwrap_or(Estimate::Mean));
        points.into_iter().map(|p| ColumnLaw::Table(vec![1.0 - p, p])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::likelihood::gamma;
    use crate::rng::{Purpose, stream};
    use rand_distr::Distribution;

    /// Compares E[p] and E ln p with draws p = g / (g + h).
    #[test]
    fn expectations_are_those_of_a_beta_distribution() {
        let beta = Beta { successes: 2.5, failures: 1.25 };
        let [successes, failures] =
            [beta.successes, beta.failures].map(|a| gamma::distribution(a, 1.0).expect("allowed"));
        let mut generator = stream(3, Purpose::Draws, 0);
        let n = 200_000;
        let (mut mean, mut log) = (0.0, 0.0);
        for _ in 0..n {
            let (g, h) = (successes.sample(&mut generator), failures.sample(&mut generator));
            mean += g / (g + h) / f64::from(n);
            log += (g / (g + h)).ln() / f64::from(n);
        }
        assert!((mean - beta.mean()).abs() < 3e-3 && (log - digamma(2.5) + digamma(3.75)).abs() < 8e-3);
    }
}
