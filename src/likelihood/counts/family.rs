//! Common implementation of the families of counts and flags. Statistics are sums by column, scores are linear in the
//! values, and rows may be sparse or have missing values. A family supplies only what differs.

use std::fmt::Debug;
use std::ops::Range;

use crate::data::{Allowed, Moments, Needs, RowBlock};
use crate::error::Result;
use crate::laws::{ColumnLaw, Law};
use crate::likelihood::capabilities::no_laws;
use crate::likelihood::counts::exposures::{Exposures, fold, refused};
use crate::likelihood::counts::repeats::Repeats;
use crate::likelihood::counts::rising::Risings;
use crate::likelihood::counts::tally::{LEAST, Tallied, Tally};
use crate::likelihood::{
    AtPoint, Caution, ComponentStreams, Conjugate, Density, Draw, Emissions, Estimate, Evidence, Frame, FromParameters,
    Given, Imputation, Laws, Likelihood, ParameterDraws, ParameterSource, PointEstimates, RowDraws, RowSource, Scores,
    Urn, row_by_row,
};
use crate::objective::Objective;
use crate::parallel::{map, try_map};
use crate::parameters::Parameters;
use crate::registry::{Entry, Feature};
use crate::rng::Generator;
use crate::scoring::{
    CodeScorer, Codes, Column, ColumnScorer, ColumnTerms, Curve, Row, RowFunction, RowScorer, Scorer, Shared,
    SparseScorer, SparseTable,
};
use crate::simd::{Lines, Scalar};
use crate::special::digamma;
use crate::suffstats::Sufficient;

/// Prior and formulas of one family.
pub trait CountFamily: FromParameters + Debug + Send + Sync + 'static {
    /// How codes become flags, for a family of codes. The family itself sees only flags.
    fn codes(&self) -> Option<Codes> {
        None
    }

    /// Name of the point estimates.
    const ESTIMATE: &'static str;
    /// See [`Evidence::cautions`].
    const CAUTIONS: &'static [(&'static str, Caution)] = &[];
    /// Parameters that act as counts before the data.
    const PRIOR_COUNTS: &'static [&'static str];
    /// Whether all values are 0 or 1.
    const FLAGS: bool = false;

    /// How many columns of counts its columns stand for.
    fn repeats(&self) -> Repeats;
    /// The exposures of rows, by which the constants of terms are multiplied.
    fn exposures(&self) -> Option<Exposures> {
        None
    }
    /// See [`Conjugate::log_marginal`].
    fn log_marginal(&self, component: Tallied<'_>) -> f64;
    /// See [`Scores::divergence_from_prior`].
    fn divergence_from_prior(&self, component: Tallied<'_>) -> f64;
    /// Point estimates, (D,).
    fn points(&self, component: Tallied<'_>, estimate: Estimate) -> Vec<f64>;
    /// See [`PointEstimates::at_point`]; `points` comes from [`CountFamily::points`].
    fn at_point(&self, component: Tallied<'_>, points: &[f64]) -> AtPoint;
    /// See [`PointEstimates::check_mode`].
    fn check_mode(&self) -> Result<()>;
    /// See [`Conjugate::posterior_parameters`].
    fn posterior_parameters(&self, components: &[Tallied<'_>], tally: &Tally) -> Parameters;
    /// E log p(x) without the base measure, (D,).
    fn expected(&self, component: Tallied<'_>) -> Vec<Column>;
    /// E log p(x) without the base measure as `constant + sum_j x_j (slope_j - common)`, if each slope depends only on
    /// the sum of its own column.
    fn separate(&self) -> Option<&dyn Separate> {
        None
    }
    /// See [`Likelihood::emissions`].
    fn emissions(&self) -> Option<&dyn Emissions> {
        None
    }
    /// log p(x) of a column at a point estimate, without the base measure. The default is for a probability per unit of
    /// x.
    fn column_at(&self, _column: usize, point: f64) -> Column {
        Column::line(point.max(LEAST).ln(), 0.0)
    }
    /// Negative divergence of a row's smoothed statistics, without [`CountFamily::row_divergence`]: a constant and one
    /// term per column, (D,).
    fn divergence(&self, component: Tallied<'_>) -> (f64, Vec<Column>);
    /// The part of the negative divergence that depends on the row alone.
    fn row_divergence(&self) -> RowFunction;
    /// ln h(x); `None` if it is zero.
    fn log_base(&self) -> Option<RowFunction> {
        None
    }
    /// The part of ln h(x) that depends on no parameter.
    fn log_fixed_base(&self) -> Option<RowFunction> {
        self.log_base()
    }
    /// See [`Conjugate::log_variable_base`].
    fn log_variable_base(&self, _mass: f64) -> f64 {
        0.0
    }
    /// The posterior predictive with its base measure; `None` if it equals the density at posterior means.
    fn predictive(&self, _components: &[Tallied<'_>], _log_weights: &[f64]) -> Option<RowScorer> {
        None
    }
    /// See [`Imputation::predictive_moments`]; the default is for flags.
    fn moments(&self, component: Tallied<'_>) -> (Vec<f64>, Vec<f64>) {
        self.points(component, Estimate::Mean).into_iter().map(|p| (p, p * (1.0 - p))).unzip()
    }
    /// ln p(row | rows of a cluster) without the base measure. The default is for a family without
    /// [`CountFamily::predictive`].
    fn log_predictive(&self, component: Tallied<'_>, row: Row<'_>) -> f64 {
        let points = self.points(component, Estimate::Mean);
        row.sum_of(points.len(), |column, x| {
            let Column { slope, constant, .. } = self.column_at(column, points[column]);
            self.repeats().of(column) * (constant + slope * x)
        })
    }
    /// The same density where no value is missing, if it consists of rising factorials.
    fn risings(&self) -> Option<&dyn Risings> {
        None
    }
    /// See [`crate::likelihood::Evidence::divergence_of`].
    fn divergence_of(&self, start: &Self) -> f64;
    /// See [`crate::likelihood::Evidence::estimate`]; `components` are those that have rows.
    fn estimate(&self, components: &[Tallied<'_>], start: &Self, given: &Given<'_>) -> Parameters;
    /// See [`RowDraws::source`].
    fn source(&self, component: Tallied<'_>, from: Draw<'_>) -> Result<RowSource<'_>>;
    /// Draws the parameter called [`CountFamily::ESTIMATE`], (D,).
    fn parameter_rows(&self, component: Tallied<'_>) -> Result<RowSource<'static>>;
    /// log p(x) at a draw of that parameter, without the base measure, (D,).
    fn drawn_columns(&self, component: Tallied<'_>, generator: &mut Generator) -> Result<Vec<Column>> {
        let mut drawn = vec![0.0; component.sums.len()];
        self.parameter_rows(component)?(&mut drawn, generator);
        Ok(drawn.into_iter().enumerate().map(|(column, point)| self.column_at(column, point)).collect())
    }
    /// The distributions of the columns, if they are independent given the component.
    fn of_columns(&self) -> Option<&dyn OfColumns> {
        None
    }
}

/// Columns that are independent given the component.
pub trait OfColumns: Sync {
    /// See [`Laws::law`].
    fn laws(&self, component: Tallied<'_>, estimate: Option<Estimate>) -> Vec<ColumnLaw>;
}

/// E log p(x) of a family in which the slope of a column is a digamma that depends only on the sum of that column.
pub trait Separate: Sync {
    /// The slope of a column is digamma of this, given its sum.
    fn argument(&self, column: usize, sum: f64) -> f64;
    /// The terms shared by all columns.
    fn shared(&self, component: Tallied<'_>) -> Shared;
}

/// A likelihood of a family of counts.
#[derive(Debug)]
pub struct Counts<M> {
    pub(super) tally: Tally,
    pub(super) family: M,
    frame: Frame,
}

impl<M: CountFamily> Counts<M> {
    pub(super) fn tally(&self) -> &Tally {
        &self.tally
    }

    pub(super) fn family(&self) -> &M {
        &self.family
    }

    pub(super) fn frame(&self) -> Frame {
        self.frame.clone()
    }

    /// The form of sparse rows in which each slope follows from the sum of its column, if the family has one.
    fn separate(&self) -> Option<&dyn Separate> {
        if self.tally.missing || self.tally.codes.is_some() || self.tally.exposure.is_some() {
            return None;
        }
        self.family.separate()
    }

    /// The terms of columns that stand for several ones, and of exposures.
    fn repeated(&self, mut packed: Vec<ColumnTerms>) -> Vec<ColumnTerms> {
        let repeats = self.family.repeats();
        for ColumnTerms { columns, .. } in &mut packed {
            columns.iter_mut().enumerate().for_each(|(column, term)| term.constant *= repeats.of(column));
            fold(self.tally.exposure, columns);
        }
        packed
    }

    fn write_bases<F: Scalar>(&self, base: Option<RowFunction>, rows: RowBlock<'_, F>, out: &mut [f64]) {
        out.fill(0.0);
        if let Some(base) = base {
            base.add(rows, self.tally.origin.len(), out);
        }
    }

    /// A scorer of flags as one of rows.
    fn with_codes<F: Scalar>(&self, scorer: ColumnScorer<F>) -> Box<dyn Scorer<F>> {
        match &self.tally.codes {
            Some(codes) => Box::new(CodeScorer::new(codes.clone(), scorer)),
            None => Box::new(scorer),
        }
    }

    fn packed(&self, component: Tallied<'_>, density: Density) -> (f64, Vec<Column>) {
        let of_point = |estimate| {
            let points = self.family.points(component, estimate).into_iter().enumerate();
            (0.0, points.map(|(column, point)| self.family.column_at(column, point)).collect())
        };
        match density {
            Density::Expected(Objective::Variational) => (0.0, self.family.expected(component)),
            Density::Expected(Objective::Map) => of_point(Estimate::Mode),
            Density::Expected(Objective::Ml) => of_point(Estimate::MaximumLikelihood),
            Density::PlugIn(estimate) => of_point(estimate),
            Density::Predictive => of_point(Estimate::Mean),
            Density::Divergence => self.family.divergence(component),
        }
    }
}

impl<M: CountFamily> FromParameters for Counts<M> {
    const ENTRY: Entry = M::ENTRY;
    const NEEDS: Needs = M::NEEDS;
    const VALUES: bool = M::VALUES;

    fn check(parameters: &Parameters) -> Result<()> {
        M::check(parameters)
    }

    fn resolve(parameters: &Parameters, data: &Moments) -> Result<Parameters> {
        M::resolve(parameters, data)
    }

    fn build(parameters: &Parameters, frame: Frame) -> Result<Self> {
        let tally = Tally::new(frame.origin.len(), frame.missing);
        let family = M::build(parameters, frame.clone())?;
        let exposure = family.exposures().and_then(Exposures::source);
        Ok(Self { tally: Tally { codes: family.codes(), exposure, ..tally }, family, frame })
    }

    fn allowed(parameters: &Parameters) -> Result<Allowed> {
        M::allowed(parameters)
    }
}

impl<M: CountFamily> Conjugate for Counts<M> {
    fn origin(&self) -> &[f64] {
        &self.tally.origin
    }

    fn n_statistics(&self) -> usize {
        self.tally.n_statistics()
    }

    fn accumulate(&self, rows: RowBlock<'_, f64>, weights: &[f64], statistics: &mut [f64], _: &mut Lines<f64>) {
        self.tally.accumulate(rows, weights, statistics);
    }

    fn is_by_column(&self) -> bool {
        !self.tally.missing && self.tally.codes.is_none()
    }

    fn log_marginal(&self, component: Sufficient<'_>) -> Result<f64> {
        Ok(self.family.log_marginal(self.tally.of(component)))
    }

    fn expected_at_prior(&self, units: Sufficient<'_>) -> Result<f64> {
        let nothing = vec![0.0; self.n_statistics()];
        let columns = self.family.expected(self.tally.of(Sufficient { count: 0.0, statistics: &nothing }));
        let sums = self.tally.of(units).columns();
        let terms = sums.zip(&columns).map(|((n, s), column)| n * column.constant + s * column.slope);
        Ok(self.family.repeats().sum(terms))
    }

    fn log_variable_base(&self, mass: f64) -> f64 {
        self.family.log_variable_base(mass)
    }

    fn posterior_parameters(&self, components: &[Sufficient<'_>]) -> Result<Parameters> {
        let components: Vec<_> = components.iter().map(|component| self.tally.of(*component)).collect();
        Ok(self.family.posterior_parameters(&components, &self.tally))
    }

    fn check_statistics(&self, components: &[Sufficient<'_>]) -> Result<()> {
        self.tally.check(components, M::FLAGS || self.tally.codes.is_some())
    }
}

/// The terms shared by the columns of each component, with its log weight.
fn shared(form: &dyn Separate, components: &[Tallied<'_>], log_weights: &[f64]) -> Vec<Shared> {
    map(components.len(), |k| {
        let Shared { constant, common } = form.shared(components[k]);
        Shared { constant: log_weights[k] + constant, common }
    })
}

fn table<F: Scalar>(form: &dyn Separate, components: &[Tallied<'_>], log_weights: &[f64]) -> SparseTable<F> {
    let dimension = components.first().map_or(0, |component| component.sums.len());
    let argument = |k: usize, column: usize| form.argument(column, components[k].sums[column]);
    SparseTable::new(dimension, &shared(form, components, log_weights), argument, digamma)
}

impl<F: Scalar, M: CountFamily> Scores<F> for Counts<M> {
    fn scorer(
        &self,
        components: &[Sufficient<'_>],
        log_weights: &[f64],
        density: Density,
    ) -> Result<Box<dyn Scorer<F>>> {
        let components: Vec<_> = components.iter().map(|component| self.tally.of(*component)).collect();
        if density == Density::Predictive
            && let Some(scorer) = self.family.predictive(&components, log_weights)
        {
            return Ok(Box::new(scorer));
        }
        let packed = map(components.len(), |k| {
            let (constant, columns) = self.packed(components[k], density);
            ColumnTerms { constant: log_weights[k] + constant, columns }
        });
        let packed = self.repeated(packed);
        let expected = density == Density::Expected(Objective::Variational);
        let table = self.separate().filter(|_| expected).map(|form| table(form, &components, log_weights));
        let scorer = ColumnScorer::new(Curve::Line, packed, self.tally.missing).and_sparse(table);
        let terms =
            if density == Density::Divergence { Some(self.family.row_divergence()) } else { self.family.log_base() };
        let scorer = match terms {
            Some(terms) => scorer.with_row_terms(terms),
            None => scorer,
        };
        Ok(self.with_codes(scorer))
    }

    fn sparse_scorer(
        &self,
        components: &[Sufficient<'_>],
        log_weights: &[f64],
        objective: Objective,
        earlier: Option<(SparseScorer<F>, &[Vec<u32>])>,
    ) -> Option<SparseScorer<F>> {
        let form = self.separate().filter(|_| objective == Objective::Variational)?;
        let components: Vec<_> = components.iter().map(|component| self.tally.of(*component)).collect();
        if let Some((scorer, changed)) = earlier.filter(|(scorer, _)| scorer.has(components.len())) {
            let slope = |k: usize, column: usize| digamma(form.argument(column, components[k].sums[column]));
            return Some(scorer.updated(&shared(form, &components, log_weights), changed, slope));
        }
        let table = table(form, &components, log_weights);
        Some(SparseScorer::new(self.tally.origin.len(), table, self.family.log_base()))
    }

    fn divergence_from_prior(&self, component: Sufficient<'_>) -> Result<f64> {
        Ok(self.family.divergence_from_prior(self.tally.of(component)))
    }

    fn log_base_measures(&self, rows: RowBlock<'_, F>, out: &mut [f64]) {
        self.write_bases(self.family.log_base(), rows, out);
    }

    fn log_fixed_bases(&self, rows: RowBlock<'_, F>, out: &mut [f64]) {
        self.write_bases(self.family.log_fixed_base(), rows, out);
    }
}

impl<M: CountFamily> PointEstimates for Counts<M> {
    fn at_point(&self, component: Sufficient<'_>, estimate: Estimate) -> Result<AtPoint> {
        let tallied = self.tally.of(component);
        Ok(self.family.at_point(tallied, &self.family.points(tallied, estimate)))
    }

    fn check_mode(&self) -> Result<()> {
        self.family.check_mode()
    }

    fn point_estimates(&self, components: &[Sufficient<'_>], estimate: Estimate) -> Result<Parameters> {
        let all = components.iter().flat_map(|component| self.family.points(self.tally.of(*component), estimate));
        Ok(Parameters::from_pairs([(M::ESTIMATE, self.tally.table(all.collect()))]))
    }
}

impl<M: CountFamily> Imputation for Counts<M> {
    fn predictive_moments(&self, component: Sufficient<'_>) -> Result<(Vec<f64>, Vec<f64>)> {
        Ok(self.family.moments(self.tally.of(component)))
    }

    fn levels(&self) -> Vec<(usize, Range<usize>)> {
        self.tally.codes.iter().flat_map(|codes| codes.ranges().enumerate()).collect()
    }
}

impl<M: CountFamily> RowDraws for Counts<M> {
    fn source(&self, component: Sufficient<'_>, from: Draw<'_>) -> Result<RowSource<'_>> {
        self.family.source(self.tally.of(component), from)
    }
}

impl<M: CountFamily> ParameterDraws for Counts<M> {
    fn parameter_source(&self, component: Sufficient<'_>) -> Result<ParameterSource<'_>> {
        let tallied = self.tally.of(component);
        let (n_values, fill) = (tallied.sums.len(), self.family.parameter_rows(tallied)?);
        let shape = self.tally.shape();
        let rows = row_by_row(shape.iter().product(), move |row, generator| {
            let mut drawn = vec![0.0; n_values];
            fill(&mut drawn, generator);
            row.copy_from_slice(&self.tally.padded(drawn));
        });
        Ok(ParameterSource { shapes: vec![(M::ESTIMATE.to_owned(), shape)], rows })
    }

    fn drawn_scorer(
        &self,
        components: &[Sufficient<'_>],
        log_weights: &[f64],
        draws: ComponentStreams<'_>,
    ) -> Result<Box<dyn Scorer<f64>>> {
        let packed = try_map(components.len(), |k| {
            let columns = self.family.drawn_columns(self.tally.of(components[k]), &mut draws.of(k)?);
            Ok(ColumnTerms { constant: log_weights[k], columns: columns.map_err(|error| error.of_component(k))? })
        })?;
        let scorer = ColumnScorer::new(Curve::Line, self.repeated(packed), self.tally.missing).and_sparse(None);
        Ok(self.with_codes(match self.family.log_base() {
            Some(terms) => scorer.with_row_terms(terms),
            None => scorer,
        }))
    }
}

/// Only for a family with [`CountFamily::of_columns`].
impl<M: CountFamily> Laws for Counts<M> {
    fn law(&self, component: Sufficient<'_>, estimate: Option<Estimate>) -> Result<Law> {
        if self.tally.exposure.is_some() {
            return Err(refused("the density of some columns"));
        }
        let columns = self.family.of_columns().ok_or_else(no_laws)?;
        Ok(Law::Columns(columns.laws(self.tally.of(component), estimate)))
    }
}

impl<F: Scalar, M: CountFamily> Likelihood<F> for Counts<M> {
    fn scores(&self) -> Option<&dyn Scores<F>> {
        Some(self)
    }

    fn points(&self) -> Option<&dyn PointEstimates> {
        Some(self)
    }

    fn imputation(&self) -> Option<&dyn Imputation> {
        M::ENTRY.support(Feature::Missing).map(|_| self as &dyn Imputation)
    }

    fn draws(&self) -> Option<&dyn RowDraws> {
        Some(self)
    }

    fn parameter_draws(&self) -> Option<&dyn ParameterDraws> {
        Some(self)
    }

    fn emissions(&self) -> Option<&dyn Emissions> {
        self.family.emissions()
    }

    fn evidence(&self) -> Option<&dyn Evidence> {
        Some(self)
    }

    fn urn(&self) -> Option<&dyn Urn> {
        Some(self)
    }

    fn laws(&self) -> Option<&dyn Laws> {
        self.family.of_columns().map(|_| self as &dyn Laws)
    }
}
