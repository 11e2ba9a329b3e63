//! A background: a row that belongs to no component has a fixed density with heavy tails (mathematics 2h; Banfield &
//! Raftery 1993).

mod cauchy;
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

use cauchy::Cauchy;
use scorer::BackgroundScorer;

/// The parameters, and how they change with the units of the columns.
pub const ENTRY: Entry = Entry {
    measures: &[Measured::always("centre", Measure::Place), Measured::always("scale", Measure::Lengths)],
    parameters: &[
        Parameter::new("outliers", ParameterKind::Number(Range::SURENESS), DefaultValue::Number(1.0)),
        Parameter::new("inliers", ParameterKind::Number(Range::SURENESS), DefaultValue::Number(99.0)),
        Parameter::new("centre", ParameterKind::Vector, DefaultValue::Data),
        Parameter::new("scale", ParameterKind::NumberOrVector(Range::POSITIVE), DefaultValue::Data),
    ],
    ..Entry::new("Background")
};

/// The scale shown for constant columns, as a fraction of the largest one.
const SHOWN: f64 = 1e-4;

/// A row is in the background with probability eps ~ Beta(outliers, inliers), and then has a multivariate Cauchy
/// density. Its centre and scale are the mean and the standard deviation of each column in most of the data.
#[derive(Debug, Clone)]
pub struct Background {
    outliers: f64,
    inliers: f64,
    density: Cauchy,
}

/// Checks parameters, as far as that is possible without data.
///
/// # Errors
/// [`Error::InvalidArgument`] naming the parameter.
pub fn check(parameters: &Parameters) -> Result<()> {
    parameters.check(&ENTRY)?;
    parameters.positives("scale", None).map(drop)
}

/// Completes the parameters with what follows from the data. `alike`: groups of columns whose scales a likelihood takes
/// for equal.
///
/// # Errors
/// [`Error::InvalidArgument`] naming the parameter.
pub fn resolve(given: &Parameters, data: &Moments, alike: &[Vec<usize>]) -> Result<Parameters> {
    let d = data.dimension();
    let number = |name: &str, default: f64| Ok::<_, Error>(Value::Number(given.number(name)?.unwrap_or(default)));
    let mut squares = data.variance.clone();
    for group in alike {
        let mean = group.iter().map(|&column| data.variance[column]).sum::<f64>() / group.len() as f64;
        for &column in group {
            squares[column] = mean;
        }
    }
    // A column that does not vary, if the likelihood keeps it.
    let square = |&square: &f64| if square > 0.0 { square } else { likelihood::ridge(square, &data.variance) };
    let usual = || squares.iter().map(|variance| square(variance).sqrt()).collect();
    let complete = Parameters::from_pairs([
        ("outliers", number("outliers", 1.0)?),
        ("inliers", number("inliers", 99.0)?),
        ("centre", vector(given.vector_of("centre", d)?.map_or_else(|| data.mean.clone(), <[f64]>::to_vec))),
        ("scale", vector(given.positives("scale", Some(d))?.unwrap_or_else(usual))),
    ]);
    check(&complete)?;
    Ok(complete)
}

/// Converts complete parameters from coordinates to the data's columns. The scale of a column that depends on others
/// follows from theirs; that of a constant one is tiny and positive.
pub fn of_data(parameters: &Parameters, coordinates: &Coordinates) -> Parameters {
    let mut all = likelihood::raised(&ENTRY, parameters, parameters, coordinates);
    if let Some(Value::Array { data, .. }) = all.0.get_mut("scale") {
        for dependent in coordinates.dependents() {
            let terms =
                dependent.slopes.iter().zip(coordinates.kept()).map(|(slope, &kept)| (slope * data[kept]).powi(2));
            data[dependent.column] = terms.sum::<f64>().sqrt();
        }
        let shown = SHOWN * data.iter().copied().fold(0.0, f64::max);
        for scale in data.iter_mut().filter(|scale| **scale == 0.0) {
            *scale = shown;
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
        let scale = Parameters::required("scale", parameters.positives("scale", Some(d))?)?;
        Ok(Self { outliers: number("outliers")?, inliers: number("inliers")?, density: Cauchy::new(centre, scale) })
    }

    /// The distribution of its rows, in coordinates.
    pub fn law(&self) -> Law {
        self.density.law()
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
