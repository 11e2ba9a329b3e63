//! Independent columns of integer codes with a Dirichlet base measure each (mathematics 1h). Each column acts as one
//! word.

use crate::data::{Allowed, Domain, MOST_LEVELS, Moments, Needs};
use crate::error::Result;
use crate::laws::ColumnLaw;
use crate::likelihood::counts::{CountFamily, Counts, OfColumns, Repeats, SharedCounts, Tallied, Tally, pseudo_count};
use crate::likelihood::multinomial::Words;
use crate::likelihood::{AtPoint, Draw, Estimate, Frame, FromParameters, Given, RowSource, row_by_row};
use crate::parameters::{Parameters, vector};
use crate::registry::{DefaultValue, Entry, Feature, PRIOR, Parameter, ParameterKind::NumberOrVector, Range, Support};
use crate::rng::Chances;
use crate::scoring::{Codes, Column, RowFunction};

/// phi_d ~ Dir(`pseudo_counts_d`, one for each of `levels_d`), x_d ~ phi_d. Statistics: the number of rows by level.
pub type Categorical = Counts<Levels>;

/// The base measure of each column, (D,).
#[derive(Debug)]
pub struct Levels {
    codes: Codes,
    columns: Vec<Words>,
}

impl Levels {
    fn parts<'a>(&'a self, component: Tallied<'a>) -> impl Iterator<Item = (&'a Words, Tallied<'a>)> {
        self.columns.iter().zip(self.codes.ranges()).map(move |(words, range)| (words, component.part(range)))
    }

    fn each<T>(&self, component: Tallied<'_>, of: impl Fn(&Words, Tallied<'_>) -> Vec<T>) -> Vec<T> {
        self.parts(component).flat_map(|(words, column)| of(words, column)).collect()
    }
}

impl FromParameters for Levels {
    const ENTRY: Entry = Entry {
        domain: Some(Domain::Codes),
        faces: &["scores", "points", "imputation", "draws", "parameters", "urn", "evidence", "laws"],
        supports: &[Support::always(Feature::Missing), Support::always(Feature::Moves)],
        parameters: &[
            Parameter::new("pseudo_counts", NumberOrVector(Range::POSITIVE), DefaultValue::Evidence),
            Parameter::new("levels", NumberOrVector(Range::closed(1.0, MOST_LEVELS as f64)), DefaultValue::Data),
            PRIOR,
        ],
        ..Entry::new("Categorical")
    };
    const NEEDS: Needs = Needs::Means;
    fn check(parameters: &Parameters) -> Result<()> {
        parameters.check(&Self::ENTRY)?;
        parameters.integers("levels", None, MOST_LEVELS).map(drop)
    }

    fn resolve(parameters: &Parameters, data: &Moments) -> Result<Parameters> {
        let d = data.dimension();
        let pseudo_counts = parameters.positives("pseudo_counts", Some(d))?.unwrap_or_else(|| vec![0.5; d]);
        let levels = parameters.positives("levels", Some(d))?;
        let levels = levels.unwrap_or_else(|| data.largest.iter().map(|code| code + 1.0).collect());
        Ok(Parameters::from_pairs([("pseudo_counts", vector(pseudo_counts)), ("levels", vector(levels))]))
    }

    fn allowed(parameters: &Parameters) -> Result<Allowed> {
        Ok(Allowed::codes(parameters.integers("levels", None, MOST_LEVELS)?.unwrap_or_default()))
    }

    fn build(parameters: &Parameters, frame: Frame) -> Result<Self> {
        let d = Some(frame.origin.len());
        let pseudo_counts = Parameters::required("pseudo_counts", parameters.positives("pseudo_counts", d)?)?;
        let levels = Parameters::required("levels", parameters.integers("levels", d, MOST_LEVELS)?)?;
        let columns =
            pseudo_counts.into_iter().zip(&levels).map(|(b, &levels)| Words::new(vec![b; levels as usize], false));
        Ok(Self { codes: Codes::new(&levels), columns: columns.collect() })
    }
}

impl CountFamily for Levels {
    const ESTIMATE: &'static str = "probabilities";
    const PRIOR_COUNTS: &'static [&'static str] = &["pseudo_counts"];
    fn codes(&self) -> Option<Codes> {
        Some(self.codes.clone())
    }

    fn repeats(&self) -> Repeats {
        Repeats::none(self.codes.n_levels())
    }

    fn log_marginal(&self, component: Tallied<'_>) -> f64 {
        self.parts(component).map(|(words, column)| words.log_marginal(column)).sum()
    }

    fn divergence_from_prior(&self, component: Tallied<'_>) -> f64 {
        self.parts(component).map(|(words, column)| words.divergence_from_prior(column)).sum()
    }

    fn points(&self, component: Tallied<'_>, estimate: Estimate) -> Vec<f64> {
        self.each(component, |words, column| words.points(column, estimate))
    }

    fn at_point(&self, component: Tallied<'_>, points: &[f64]) -> AtPoint {
        self.parts(component)
            .zip(self.codes.ranges())
            .map(|((words, column), range)| words.at_point(column, &points[range]))
            .sum()
    }

    fn check_mode(&self) -> Result<()> {
        self.columns.iter().try_for_each(Words::check_mode)
    }

    fn posterior_parameters(&self, components: &[Tallied<'_>], tally: &Tally) -> Parameters {
        let all =
            components.iter().flat_map(|component| self.each(*component, |words, column| words.posterior(column).0));
        Parameters::from_pairs([("pseudo_counts", tally.table(all.collect()))])
    }

    fn expected(&self, component: Tallied<'_>) -> Vec<Column> {
        self.each(component, Words::expected)
    }

    fn divergence(&self, component: Tallied<'_>) -> (f64, Vec<Column>) {
        (0.0, self.each(component, Words::divergence_of_one))
    }

    fn row_divergence(&self) -> RowFunction {
        let columns: Vec<f64> = self.columns.iter().flat_map(Words::row_divergence_of_one).collect();
        RowFunction::new(move |row| row.sum(0.0, |level, x| x * columns[level]))
    }

    fn divergence_of(&self, start: &Self) -> f64 {
        self.columns.iter().zip(&start.columns).map(|(prior, start)| prior.divergence_of(start)).sum()
    }

    /// Estimates one pseudo-count for all levels of all columns (mathematics 10.4).
    fn estimate(&self, components: &[Tallied<'_>], start: &Self, given: &Given<'_>) -> Parameters {
        let column = |range: std::ops::Range<usize>| {
            SharedCounts::of(range.len() as f64, components.iter().map(|component| component.part(range.clone())))
        };
        let columns: Vec<SharedCounts> = self.codes.ranges().map(column).collect();
        let found = pseudo_count(self.columns[0].pseudo_count(), start.columns[0].pseudo_count(), &columns);
        given.parameters.with([("pseudo_counts", vector(vec![found; columns.len()]))])
    }

    /// A Dirichlet distribution for each column.
    fn parameter_rows(&self, component: Tallied<'_>) -> Result<RowSource<'static>> {
        let codes = self.codes.clone();
        let columns: Vec<RowSource<'_>> =
            self.parts(component).map(|(words, column)| words.parameter_rows(column)).collect::<Result<_>>()?;
        Ok(row_by_row(codes.n_levels(), move |row, generator| {
            for (levels, column) in codes.ranges().zip(&columns) {
                column(&mut row[levels], generator);
            }
        }))
    }

    fn of_columns(&self) -> Option<&dyn OfColumns> {
        Some(self)
    }

    fn source(&self, component: Tallied<'_>, from: Draw<'_>) -> Result<RowSource<'_>> {
        let points = self.points(component, from.estimate.unwrap_or(Estimate::Mean));
        let columns: Vec<Chances> = self.codes.ranges().map(|levels| Chances::new(&points[levels])).collect();
        Ok(row_by_row(columns.len(), move |row, generator| {
            for (to, levels) in row.iter_mut().zip(&columns) {
                *to = levels.choose(generator) as f64;
            }
        }))
    }
}

impl OfColumns for Levels {
    fn laws(&self, component: Tallied<'_>, estimate: Option<Estimate>) -> Vec<ColumnLaw> {
        let points = self.points(component, estimate.unwrap_or(Estimate::Mean));
        self.codes.ranges().map(|levels| ColumnLaw::Table(points[levels].to_vec())).collect()
    }
}
