//! Rows and labels drawn from the prior predictive: a partition, and rows one after another given those before them in
//! their cluster (mathematics 8.14).

use std::collections::HashMap;

use crate::data::RowBlock;
use crate::error::{Error, Result};
use crate::likelihood::{self, Draw, Frame, Likelihood};
use crate::mcmc::check_model;
use crate::mcmc::prepare::check_cells;
use crate::model::{Named, Specification};
use crate::parallel::Cancel;
use crate::parameters::Value;
use crate::process::{LabelLaw, MOST_ATOMS, Occupancy, Partitions, ProcessState, Stick, Sticks};
use crate::registry::{DefaultValue, EXPOSURE, PRIOR, Parameter};
use crate::rng::{Choices, Draws, Generator, Purpose, stream};
use crate::room::check_room;
use crate::simd::Lines;
use crate::special::log_sum_exp;
use crate::suffstats::Sufficient;

/// Updates of learned parameters without rows, each of which leaves their prior invariant. Those that are not drawn
/// independently are drawn by slice sampling on an interval, which forgets its start after a few steps.
const UPDATES: usize = 100;

/// A draw from the prior predictive.
#[derive(Debug, Clone, PartialEq)]
pub struct PriorDraw {
    /// The rows, (n, D).
    pub rows: Vec<f64>,
    /// D.
    pub n_columns: usize,
    /// Labels in the order of first appearance, (n,).
    pub labels: Vec<u32>,
    /// Learned parameters, by name.
    pub learned: Vec<(&'static str, f64)>,
}

/// Learned parameters drawn from their prior.
fn learned(process: &dyn Partitions, generator: &mut Generator) -> Result<ProcessState> {
    let mut state = process.start(process.augments())?;
    for _ in 0..UPDATES {
        process.update(&[], &mut state, generator);
    }
    Ok(state.integrated())
}

/// Labels in the order of first appearance, and learned parameters by name.
struct DrawnLabels {
    labels: Vec<u32>,
    learned: Vec<(&'static str, f64)>,
}

fn draw_labels(law: &LabelLaw, n: usize, generator: &mut Generator, cancel: &Cancel) -> Result<DrawnLabels> {
    match law {
        LabelLaw::Partitions(process) => {
            let state = learned(process.as_ref(), generator)?;
            let mut sizes = Vec::new();
            let mut draw = |_| {
                cancel.check()?;
                let label = next_label(process.as_ref(), &sizes, &state, generator);
                if label == sizes.len() {
                    sizes.push(0);
                }
                sizes[label] += 1;
                Ok(label as u32)
            };
            let labels = (0..n).map(&mut draw).collect::<Result<_>>()?;
            Ok(DrawnLabels { labels, learned: process.traced(&state) })
        }
        LabelLaw::Sticks(process) => {
            let labels = from_sticks(process.as_ref(), n, generator, cancel)?;
            Ok(DrawnLabels { labels, learned: Vec::new() })
        }
    }
}

/// Draws labels from sticks, which are broken as far as the rows reach.
fn from_sticks(process: &dyn Sticks, n: usize, generator: &mut Generator, cancel: &Cancel) -> Result<Vec<u32>> {
    let state = process.start(false)?;
    let (mut sticks, mut numbers) = (Vec::new(), HashMap::new());
    let mut draw = |_| {
        cancel.check()?;
        let mut place = 0;
        loop {
            if place == sticks.len() {
                if place == MOST_ATOMS {
                    let message = format!("a row is beyond {MOST_ATOMS} components; use sticks of a larger mean");
                    return Err(Error::numerical(None, message));
                }
                sticks.push(Stick::draw(process.stick(place, &state), generator).log_on.exp());
            }
            if generator.uniform() < sticks[place] {
                let next = numbers.len() as u32;
                return Ok(*numbers.entry(place).or_insert(next));
            }
            place += 1;
        }
    };
    (0..n).map(&mut draw).collect()
}

/// Draws the label of one more row after blocks of these sizes; the number of blocks stands for a new one.
fn next_label(process: &dyn Partitions, sizes: &[usize], state: &ProcessState, generator: &mut Generator) -> usize {
    let all = Occupancy::of(sizes);
    let rest = |blocks: usize| process.log_rest(Occupancy { units: all.units + 1, blocks }, state);
    let (joined, opened) = (rest(all.blocks.max(1)), rest(all.blocks + 1));
    let join = |&size: &usize| process.log_block(size + 1, state) - process.log_block(size, state) + joined;
    let mut log_weights: Vec<f64> = sizes.iter().map(join).collect();
    log_weights.push(process.log_block(1, state) + opened);
    let total = log_sum_exp(&log_weights);
    generator.choose(&log_weights.iter().map(|weight| (weight - total).exp()).collect::<Vec<_>>())
}

/// Refuses a likelihood with a parameter that would follow from data. Returns the number of columns that the others
/// imply, or `n_columns`.
fn check_given(likelihood: &Named, n_columns: Option<usize>) -> Result<usize> {
    let Named { name, parameters } = likelihood;
    let from_data = |one: &&Parameter| matches!(one.default, DefaultValue::Data | DefaultValue::Evidence);
    let parts = likelihood::members(name, parameters)?;
    let is_choice = |one: &&Parameter| [PRIOR.name, EXPOSURE.name].contains(&one.name);
    for part in &parts {
        let own = part.parameters(parameters);
        let is_open = |one: &&Parameter| from_data(one) && !is_choice(one) && own.is_absent(one.name);
        if let Some(open) = part.entry.parameters.iter().find(is_open) {
            return Err(Error::invalid(open.name, "None", "a value, because its default depends on data"));
        }
    }
    let length = |value: &Value| if let Value::Array { shape, .. } = value { shape.first().copied() } else { None };
    let of_blocks = Some(likelihood::n_columns(&parts)).filter(|&d| d > 0);
    match (of_blocks.or_else(|| parameters.0.values().find_map(length)), n_columns) {
        (Some(d), Some(given)) if d != given => {
            Err(Error::invalid("n_columns", given, format!("{d}, as the parameters of the likelihood have it")))
        }
        (None, None) => {
            let allowed = "a number of columns, because no parameter of the likelihood has one";
            Err(Error::invalid("n_columns", "None", allowed))
        }
        (implied, given) => Ok(implied.or(given).unwrap_or_default()),
    }
}

/// Draws a partition of `n` rows, and the rows; `n_columns` is needed if no parameter of the likelihood is a vector.
///
/// # Errors
/// [`Error::InvalidArgument`] for a parameter of the likelihood that is not given; [`Error::NotSupported`] for a model
/// whose rows cannot be drawn; [`Error::Numerical`]; [`Error::Cancelled`].
pub fn draw_prior(
    specification: &Specification,
    n: usize,
    n_columns: Option<usize>,
    seed: u64,
    cancel: &Cancel,
) -> Result<PriorDraw> {
    let law = check_model(specification)?;
    check_cells(specification)?;
    let specification = specification.clone().without_cells()?;
    let Named { name, parameters } = &specification.likelihood;
    let n_columns = check_given(&specification.likelihood, n_columns)?;
    check_room(n.saturating_mul(n_columns), |size| {
        Error::invalid("n", format!("{n} rows, which take {size}"), "few enough rows to fit in memory")
    })?;
    let frame = Frame { origin: vec![0.0; n_columns], ..Frame::default() };
    let mut generator = stream(seed, Purpose::Draws, 0);
    let value = specification.learned.map(|learned| (learned, learned.draw(&mut generator)));
    let parameters = &value.map_or_else(|| parameters.clone(), |(learned, value)| learned.at(parameters, value));
    let likelihood = likelihood::build::<f64>(name, parameters, frame)?;
    if likelihood.emissions().is_some() {
        let reason = "it has no law of the number of words in a row";
        return Err(Error::not_supported("model", format!("{name} for sample_prior"), reason, "Poisson"));
    }
    let DrawnLabels { labels, learned } = draw_labels(&law, n, &mut generator, cancel)?;
    let n_clusters = labels.iter().max().map_or(0, |&last| last as usize + 1);
    let of_clusters = n_clusters.saturating_mul(likelihood.n_statistics() + 1);
    check_room(n.saturating_mul(n_columns + 1).saturating_add(of_clusters), |size| {
        let found = format!("{n} rows in {n_clusters} clusters, which take {size}");
        Error::invalid("n", found, "few enough rows and clusters to fit in memory")
    })?;
    let too_far = |error: Error| match (error, value) {
        (Error::Numerical { .. }, Some((learned, value))) => {
            let message = format!("rows at the drawn {} of {value:e} are too far away", learned.name);
            Error::numerical(None, format!("{message}; choose a prior with less mass near 0"))
        }
        (error, _) => error,
    };
    let rows = draw_rows(likelihood.as_ref(), &labels, n_clusters, &mut generator, cancel).map_err(too_far)?;
    let of_base = value.map(|(learned, value)| (learned.name, value));
    let learned = learned.into_iter().chain(of_base).collect();
    Ok(PriorDraw { rows, n_columns, labels, learned })
}

/// Draws each row from the posterior predictive of its cluster.
fn draw_rows(
    likelihood: &dyn Likelihood<f64>,
    labels: &[u32],
    n_clusters: usize,
    generator: &mut Generator,
    cancel: &Cancel,
) -> Result<Vec<f64>> {
    let (d, width) = (likelihood.dimension(), likelihood.n_statistics());
    let (mut counts, mut statistics) = (vec![0.0; n_clusters], vec![0.0; n_clusters * width]);
    let (mut rows, mut space) = (vec![0.0; labels.len() * d], Lines::default());
    let nothing = vec![0.0; width];
    let all = Sufficient { count: 0.0, statistics: &nothing };
    for (row, &label) in rows.chunks_exact_mut(d).zip(labels) {
        cancel.check()?;
        let of_cluster = &mut statistics[label as usize * width..][..width];
        let component = Sufficient { count: counts[label as usize], statistics: of_cluster };
        likelihood.row_source(component, Draw { estimate: None, all })?(row, generator);
        likelihood.accumulate(RowBlock::Dense(row), &[1.0], of_cluster, &mut space);
        counts[label as usize] += 1.0;
    }
    Ok(rows)
}
