//! Blocks of columns, each with a likelihood of its own, independent given the component (mathematics 1j).
//!
//! Statistics are concatenated; scores, marginals and evidence are sums. Where values may be missing, a block whose
//! likelihood leaves out none may lack all of its columns in a row; its rows are then counted.

mod completing;
mod evidence;
mod rows;
mod scores;
mod urn;

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use crate::data::{Allowed, Demands, Domain, Moments, Needs, RowBlock, Sought};
use crate::error::{Error, Result};
use crate::likelihood::columns::completing::add_blocks;
use crate::likelihood::layout::{self, BLOCKS, KEPT, Member};
use crate::likelihood::{
    self as likelihoods, Conjugate, Emissions, Evidence, Frame, FromParameters, Imputation, Laws, Likelihood,
    ParameterDraws, PointEstimates, RowDraws, Scores, Seeding, Urn,
};
use crate::parameters::Parameters;
use crate::registry::{Entry, Feature, Support};
use crate::scoring::lacks;
use crate::simd::{Lines, Scalar};
use crate::suffstats::Sufficient;

/// A likelihood for rows of both scalar types.
#[derive(Debug, Clone)]
pub struct OfAnyScalar {
    wide: Arc<dyn Likelihood<f64>>,
    narrow: Arc<dyn Likelihood<f32>>,
}

impl OfAnyScalar {
    /// From the likelihood.
    pub fn new<L: Likelihood<f64> + Likelihood<f32> + 'static>(likelihood: L) -> Self {
        let shared = Arc::new(likelihood);
        Self { wide: shared.clone(), narrow: shared }
    }

    /// The likelihood for rows of type `F`.
    ///
    /// # Panics
    /// For a scalar type other than `f32` and `f64`, of which there is none.
    fn of<F: Scalar>(&self) -> &dyn Likelihood<F> {
        let all: [&dyn Any; 2] = [&self.wide, &self.narrow];
        let found = all.into_iter().find_map(|one| one.downcast_ref::<Arc<dyn Likelihood<F>>>());
        found.expect("f32 or f64").as_ref()
    }
}

/// A block of columns.
#[derive(Debug)]
struct ColumnBlock {
    /// Says how its parameters are named.
    member: Member,
    place: Place,
    likelihood: OfAnyScalar,
}

/// Where a block is.
#[derive(Debug, Clone)]
struct Place {
    /// Its columns among those that the model sees.
    columns: Vec<usize>,
    /// Its own statistics.
    statistics: Range<usize>,
    /// The statistic that counts the rows that do not lack it, if a row may.
    present: Option<usize>,
}

impl ColumnBlock {
    fn conjugate(&self) -> &dyn Likelihood<f64> {
        self.likelihood.wide.as_ref()
    }

    /// Count and statistics of a component for this block.
    fn of<'a>(&self, component: Sufficient<'a>) -> Sufficient<'a> {
        let count = self.place.present.map_or(component.count, |present| component.statistics[present]);
        Sufficient { count, statistics: &component.statistics[self.place.statistics.clone()] }
    }

    fn of_all<'a>(&self, components: &[Sufficient<'a>]) -> Vec<Sufficient<'a>> {
        components.iter().map(|component| self.of(*component)).collect()
    }

    /// Whether a row has this block.
    fn is_in<F: Scalar>(&self, row: &[F]) -> bool {
        self.place.present.is_none() || !lacks(row, &self.place.columns)
    }

    /// Its values of a vector with one for each column.
    fn values(&self, all: &[f64]) -> Vec<f64> {
        self.place.columns.iter().map(|&column| all[column]).collect()
    }
}

/// Blocks of columns with their likelihoods.
#[derive(Debug)]
pub struct Columns {
    origin: Vec<f64>,
    n_statistics: usize,
    blocks: Vec<ColumnBlock>,
}

impl Columns {
    /// Whether all blocks have a capability.
    fn all(&self, has: impl Fn(&dyn Likelihood<f64>) -> bool) -> bool {
        self.blocks.iter().all(|block| has(block.conjugate()))
    }

    /// The sum over blocks.
    fn sum<'a>(
        &self,
        component: Sufficient<'a>,
        of: impl Fn(&dyn Likelihood<f64>, Sufficient<'a>) -> Result<f64>,
    ) -> Result<f64> {
        self.blocks.iter().map(|block| of(block.conjugate(), block.of(component))).sum()
    }

    /// The only block, if it has all columns in their order and no row may lack it.
    fn only(&self) -> Option<&ColumnBlock> {
        match &self.blocks[..] {
            [only] if only.place.present.is_none() && only.place.columns.is_sorted() => Some(only),
            _ => None,
        }
    }
}

impl FromParameters for Columns {
    const ENTRY: Entry = Entry {
        domain: Some(Domain::Mixed),
        faces: &["scores", "points", "imputation", "draws", "parameters", "urn", "evidence", "laws"],
        supports: &[Support::always(Feature::Missing), Support::always(Feature::Moves)],
        parameters: &[BLOCKS],
        unlisted: &[KEPT],
        ..Entry::new(layout::NAME)
    };
    const NEEDS: Needs = Needs::Covariance;

    fn check(parameters: &Parameters) -> Result<()> {
        let parts = layout::members(layout::NAME, parameters)?;
        layout::check_names(&parts, parameters)?;
        parts.iter().try_for_each(|member| likelihoods::check(member.entry.name, &member.parameters(parameters)))
    }

    fn resolve(parameters: &Parameters, data: &Moments) -> Result<Parameters> {
        let parts = layout::members(layout::NAME, parameters)?;
        let mut found = parameters.clone();
        for (member, columns) in parts.iter().zip(layout::seen(&parts, parameters)?) {
            if !columns.is_empty() {
                let own = member.parameters(parameters);
                let complete = likelihoods::resolve(member.entry.name, &own, &data.of_columns(&columns))?;
                member.put(&mut found, complete);
            }
        }
        Ok(found)
    }

    fn allowed(parameters: &Parameters) -> Result<Allowed> {
        let parts = layout::members(layout::NAME, parameters)?;
        let of = |member: &Member| {
            let own = member.parameters(parameters);
            let allowed = likelihoods::allowed(member.entry.name, &own)?;
            let leaves_out = supports(member, Feature::Missing, parameters);
            Ok((member.columns.clone().unwrap_or_default(), allowed, !leaves_out))
        };
        Ok(Allowed::of_blocks(&parts.iter().map(of).collect::<Result<Vec<_>>>()?))
    }

    fn demands(parameters: &Parameters) -> Result<Demands> {
        let mut all = Demands {
            domain: Domain::Mixed,
            sought: Sought::of(Needs::Means),
            sparse: false,
            missing: true,
            freedom: Self::ENTRY.freedom,
        };
        for member in layout::members(layout::NAME, parameters)? {
            let own = likelihoods::demands(member.entry.name, &member.parameters(parameters))?.sought;
            let sought = &mut all.sought;
            sought.needs = sought.needs.max(own.needs);
            sought.resolution |= own.resolution;
            sought.values |= own.values;
        }
        Ok(all)
    }

    fn build(parameters: &Parameters, frame: Frame) -> Result<Self> {
        let parts = layout::members(layout::NAME, parameters)?;
        let all_columns = layout::seen(&parts, parameters)?;
        let d: usize = all_columns.iter().map(Vec::len).sum();
        if d != frame.origin.len() {
            let found = format!("blocks of {d} columns");
            return Err(Error::invalid(BLOCKS.name, found, format!("blocks of {} columns", frame.origin.len())));
        }
        let mut origin = frame.origin.clone();
        let (mut n_statistics, mut blocks) = (0, Vec::new());
        for (member, columns) in parts.into_iter().zip(all_columns) {
            if columns.is_empty() {
                continue;
            }
            let own = member.parameters(parameters);
            let leaves_out = supports(&member, Feature::Missing, parameters);
            let own_frame = Frame {
                origin: columns.iter().map(|&column| frame.origin[column]).collect(),
                missing: frame.missing && leaves_out,
                words: false,
                values: frame.values.as_ref().map(|values| Arc::new(values.of_columns(&columns))),
            };
            let likelihood = likelihoods::of_any_scalar(member.entry.name, &own, own_frame)?;
            columns.iter().zip(likelihood.wide.origin()).for_each(|(&column, &zero)| origin[column] = zero);
            let imputes = supports(&member, Feature::Imputed, parameters);
            let present = (frame.missing && (imputes || !leaves_out)).then_some(n_statistics);
            let first = n_statistics + usize::from(present.is_some());
            n_statistics = first + likelihood.wide.n_statistics();
            let statistics = first..n_statistics;
            blocks.push(ColumnBlock { member, place: Place { columns, statistics, present }, likelihood });
        }
        Ok(Self { origin, n_statistics, blocks })
    }
}

/// Whether the likelihood of a member has a capability, with its parameters.
fn supports(member: &Member, feature: Feature, parameters: &Parameters) -> bool {
    let support = member.entry.support(feature);
    let is_without = |word| member.parameters(parameters).has_word(member.entry, word);
    support.is_some_and(|support| !support.unless.is_some_and(is_without))
}

impl Conjugate for Columns {
    fn origin(&self) -> &[f64] {
        &self.origin
    }

    fn n_statistics(&self) -> usize {
        self.n_statistics
    }

    fn accumulate(&self, rows: RowBlock<'_, f64>, weights: &[f64], statistics: &mut [f64], space: &mut Lines<f64>) {
        if let Some(only) = self.only() {
            return only.conjugate().accumulate(rows, weights, statistics, space);
        }
        let (rows, places) = (rows.dense(), self.blocks.iter().map(|block| &block.place));
        add_blocks(places, self.origin.len(), rows, weights, statistics, |index, rows, weights, _, own| {
            self.blocks[index].conjugate().accumulate(RowBlock::Dense(rows), weights, own, space);
        });
    }

    fn completes(&self) -> bool {
        self.blocks.iter().any(|block| block.conjugate().completes())
    }

    fn squares(&self) -> Range<usize> {
        self.only().map_or(0..0, |only| only.conjugate().squares())
    }

    fn log_marginal(&self, component: Sufficient<'_>) -> Result<f64> {
        self.sum(component, |own, component| own.log_marginal(component))
    }

    fn expected_at_prior(&self, units: Sufficient<'_>) -> Result<f64> {
        self.sum(units, |own, units| own.expected_at_prior(units))
    }

    fn log_variable_base(&self, mass: f64) -> f64 {
        self.blocks.iter().map(|block| block.conjugate().log_variable_base(mass)).sum()
    }

    fn rounding_of_marginal(&self, component: Sufficient<'_>) -> f64 {
        self.blocks.iter().map(|block| block.conjugate().rounding_of_marginal(block.of(component))).sum()
    }

    fn surviving_marginal(&self, component: Sufficient<'_>) -> Result<Option<f64>> {
        self.blocks.iter().map(|block| block.conjugate().surviving_marginal(block.of(component))).sum()
    }

    fn posterior_parameters(&self, components: &[Sufficient<'_>]) -> Result<Parameters> {
        let mut all = Parameters::default();
        for block in &self.blocks {
            let own = block.conjugate().posterior_parameters(&block.of_all(components))?;
            block.member.put(&mut all, own);
        }
        Ok(all)
    }

    fn rebase(&self, component: Sufficient<'_>, origin: &[f64]) -> Result<Vec<f64>> {
        let mut all = component.statistics.to_vec();
        for block in &self.blocks {
            let own = block.conjugate().rebase(block.of(component), &block.values(origin))?;
            all[block.place.statistics.clone()].copy_from_slice(&own);
        }
        Ok(all)
    }

    fn check_statistics(&self, components: &[Sufficient<'_>]) -> Result<()> {
        self.blocks.iter().try_for_each(|block| block.conjugate().check_statistics(&block.of_all(components)))
    }

    fn check_marginal(&self) -> Result<()> {
        self.blocks.iter().try_for_each(|block| block.conjugate().check_marginal())
    }
}

impl<F: Scalar> Likelihood<F> for Columns {
    fn scores(&self) -> Option<&dyn Scores<F>> {
        Some(self)
    }

    fn points(&self) -> Option<&dyn PointEstimates> {
        self.all(|own| own.points().is_some()).then_some(self)
    }

    fn seeding(&self) -> Option<&dyn Seeding> {
        self.only()?.conjugate().seeding()
    }

    fn imputation(&self) -> Option<&dyn Imputation> {
        self.all(|own| own.imputation().is_some() || own.laws().is_some()).then_some(self)
    }

    fn draws(&self) -> Option<&dyn RowDraws> {
        self.all(|own| own.draws().is_some()).then_some(self)
    }

    fn parameter_draws(&self) -> Option<&dyn ParameterDraws> {
        self.all(|own| own.parameter_draws().is_some()).then_some(self)
    }

    fn emissions(&self) -> Option<&dyn Emissions> {
        None
    }

    fn evidence(&self) -> Option<&dyn Evidence> {
        Some(self)
    }

    fn urn(&self) -> Option<&dyn Urn> {
        self.all(|own| own.urn().is_some()).then_some(self)
    }

    fn laws(&self) -> Option<&dyn Laws> {
        self.all(|own| own.laws().is_some()).then_some(self)
    }

    fn blocks<'a>(&'a self, component: Sufficient<'a>) -> Vec<(&'a dyn Likelihood<F>, Sufficient<'a>)> {
        self.blocks.iter().map(|block| (block.likelihood.of(), block.of(component))).collect()
    }
}
