//! A background: a row that belongs to no component has a fixed density, uniform around most rows and with heavy tails
//! (mathematics 2h; Banfield & Raftery 1993).

mod density;
mod scorer;

use std::sync::Arc;

use crate::data::{Coordinates, Moments};
use crate::error::{Error, Result};
use crate::laws::Law;
use crate::likelihood::{self, Likelihood, RowSource, row_by_row};
use crate::parameters::{Parameters, Value, vector};
use crate::process::Allocation;
use crate::registry::{DefaultValue, Entry, Measure, Measured, Parameter, ParameterKind, Range};
use crate::rng::{Draws, Generator};
use crate::scoring::Scorer;
use crate::simd::Scalar;
use crate::special::{digamma, ln_beta};
use crate::suffstats::Summary;

use density::WideDensity;
use scorer::BackgroundScorer;

/// The parameters, and how they change with the units of the columns.
pub const ENTRY: Entry = Entry {
    measures: &[Measured::always("centre", Measure::Place), Measured::always("reach", Measure::Lengths)],
    parameters: &[
        Parameter::new("outliers", ParameterKind::Number(Range::SURENESS), DefaultValue::Number(1.0)),
        Parameter::new("inliers", ParameterKind::Number(Range::SURENESS), DefaultValue::Number(99.0)),
        Parameter::new("centre", ParameterKind::Vector, DefaultValue::Data),
        Parameter::new("tails", ParameterKind::Number(Range::closed(1e-9, 1.0)), DefaultValue::Data),
        Parameter::new("spread", ParameterKind::Number(Range::POSITIVE), DefaultValue::Data),
        Parameter::new("reach", ParameterKind::NumberOrVector(Range::POSITIVE), DefaultValue::Data),
    ],
    ..Entry::new("Background")
};

/// The reach shown for constant columns, as a fraction of the largest one.
const SHOWN: f64 = 1e-4;
/// How much farther than the outermost of the usual values it reaches, so that rounding puts none of them outside.
const MARGIN: f64 = 1.01;
/// Share of the tails among the rows of the background that are expected within its reach.
const TAILS: f64 = 0.02;

/// A row is in the background with probability eps ~ Beta(outliers, inliers), and then has a density that is uniform
/// within a reach around a centre, beyond which it has heavy tails. By default it reaches over the usual values of each
/// column.
#[derive(Debug, Clone)]
pub struct Background {
    outliers: f64,
    inliers: f64,
    density: WideDensity,
}

/// Checks parameters, as far as that is possible without data.
///
/// # Errors
/// [`Error::InvalidArgument`] naming the parameter.
pub fn check(parameters: &Parameters) -> Result<()> {
    parameters.check(&ENTRY)?;
    parameters.positives("reach", None).map(drop)
}

/// Completes the parameters with what follows from the data. `alike`: groups of columns whose scales a likelihood takes
/// for equal, and which have one reach.
///
/// # Errors
/// [`Error::InvalidArgument`] naming the parameter.
pub fn resolve(given: &Parameters, data: &Moments, alike: &[Vec<usize>]) -> Result<Parameters> {
    let d = data.dimension();
    let number = |name: &str, default: f64| Ok::<_, Error>(given.number(name)?.unwrap_or(default));
    let ends = || data.least.iter().zip(&data.most);
    let mut reaches: Vec<f64> = ends().map(|(least, most)| 0.5 * MARGIN * (most - least)).collect();
    for group in alike {
        let most = group.iter().map(|&column| reaches[column]).fold(0.0, f64::max);
        for &column in group {
            reaches[column] = most;
        }
    }
    for reach in reaches.iter_mut().filter(|reach| **reach <= 0.0) {
        // A column that does not vary, if the likelihood keeps it.
        *reach = likelihood::ridge(0.0, &data.variance).sqrt();
    }
    let centre = || ends().map(|(least, most)| 0.5 * (least + most)).collect();
    let (outliers, inliers) = (number("outliers", 1.0)?, number("inliers", 99.0)?);
    // Rows beyond the reach can only come from the tails. How many are beyond a given one is not known.
    let is_given = |name: &str| given.0.get(name).is_some_and(|value| *value != Value::Absent);
    let is_own = !is_given("centre") && !is_given("reach");
    let (beyond, distance) = if is_own { (data.beyond, data.distance) } else { (0.0, 1.0) };
    let expected = outliers / (outliers + inliers);
    let tails = (beyond + TAILS * expected) / (beyond + expected);
    let complete = Parameters::from_pairs([
        ("outliers", Value::Number(outliers)),
        ("inliers", Value::Number(inliers)),
        ("tails", Value::Number(number("tails", tails)?)),
        ("spread", Value::Number(number("spread", distance)?)),
        ("centre", vector(given.vector_of("centre", d)?.map_or_else(centre, <[f64]>::to_vec))),
        ("reach", vector(given.positives("reach", Some(d))?.unwrap_or(reaches))),
    ]);
    check(&complete)?;
    Ok(complete)
}

/// Converts complete parameters from coordinates to the data's columns. The reach of a column that depends on others
/// follows from theirs; that of a constant one is tiny and positive.
pub fn of_data(parameters: &Parameters, coordinates: &Coordinates) -> Parameters {
    let mut all = likelihood::raised(&ENTRY, parameters, parameters, coordinates);
    if let Some(Value::Array { data, .. }) = all.0.get_mut("reach") {
        for dependent in coordinates.dependents() {
            let terms =
                dependent.slopes.iter().zip(coordinates.kept()).map(|(slope, &kept)| (slope * data[kept]).powi(2));
            data[dependent.column] = terms.sum::<f64>().sqrt();
        }
        let shown = SHOWN * data.iter().copied().fold(0.0, f64::max);
        for reach in data.iter_mut().filter(|reach| **reach == 0.0) {
            *reach = shown;
        }
    }
    all
}

/// The count of all components, of which rounding may leave some below zero.
fn inside(summary: &Summary) -> f64 {
    summary.counts.iter().map(|count| count.max(0.0)).sum()
}

impl Background {
    /// From complete parameters, in coordinates of `d` columns.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] naming the parameter.
    pub fn build(parameters: &Parameters, d: usize) -> Result<Self> {
        check(parameters)?;
        let number = |name: &str| Parameters::required(name, parameters.number(name)?);
        let centre = Parameters::required("centre", parameters.vector_of("centre", d)?)?.to_vec();
        let reach = Parameters::required("reach", parameters.positives("reach", Some(d))?)?;
        let density = WideDensity::new(centre, reach, number("tails")?, number("spread")?);
        Ok(Self { outliers: number("outliers")?, inliers: number("inliers")?, density })
    }

    /// The distributions of its rows and their weights, which sum to one, in coordinates.
    pub fn laws(&self) -> [(f64, Law); 2] {
        self.density.laws()
    }

    /// The posterior Beta(a, b) of its share, given the rows outside and inside of components.
    fn share(&self, outside: f64, inside: f64) -> (f64, f64) {
        (self.outliers + outside, self.inliers + inside)
    }

    /// The part of the bound that belongs to its share, nats.
    pub fn gain_of_share(&self, summary: &Summary) -> f64 {
        let (a, b) = self.share(summary.tail_count(), inside(summary));
        ln_beta(a, b) - ln_beta(self.outliers, self.inliers)
    }

    /// The part of the bound that depends on which rows are in the background, nats.
    pub fn bound(&self, summary: &Summary) -> f64 {
        let of_rows = summary.tail.as_ref().map_or(0.0, |tail| tail.statistics[0] + tail.entropy);
        of_rows + self.gain_of_share(summary)
    }

    /// Draws the share that it leaves to the components from its posterior.
    pub fn draw_left(&self, summary: &Summary, generator: &mut Generator) -> f64 {
        let (a, b) = self.share(summary.tail_count(), inside(summary));
        generator.beta(a, b).1
    }

    /// Draws rows, in coordinates.
    pub fn row_source(&self) -> RowSource<'_> {
        row_by_row(self.density.dimension(), |row, generator| self.density.draw(row, generator))
    }

    /// Adds the background to the weights of the components, which share what it leaves (mathematics 2h). It gives no
    /// rows to the background as long as the summary has no place for them.
    pub fn attach(&self, mut allocation: Allocation, summary: &Summary) -> Allocation {
        let (outside, inside) = (summary.tail_count(), inside(summary));
        let (a, b) = self.share(outside, inside);
        let total = digamma(a + b);
        let (log_outside, log_inside) = (digamma(a) - total, digamma(b) - total);
        let left = b / (a + b);
        for log_weight in &mut allocation.expected_log_weights {
            *log_weight += log_inside;
        }
        for weight in &mut allocation.expected_weights {
            *weight *= left;
        }
        allocation.leftover *= left;
        allocation.tail_log_weight = summary.tail.is_some().then_some(log_outside);
        allocation.background_weight = a / (a + b);
        let gain = self.gain_of_share(summary);
        allocation.bound += gain;
        allocation.divergence += outside * log_outside + inside * log_inside - gain;
        allocation
    }

    /// Packs the background as one more column behind those of `components`. `log_weight`: of the background, nats.
    pub fn behind<F: Scalar>(
        &self,
        components: Box<dyn Scorer<F>>,
        likelihood: Arc<dyn Likelihood<F>>,
        log_weight: f64,
    ) -> Box<dyn Scorer<F>> {
        Box::new(BackgroundScorer::new(components, likelihood, &self.density, log_weight))
    }
}
