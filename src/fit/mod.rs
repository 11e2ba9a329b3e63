//! The run: from data and a specification to a fitted mixture.

mod engine;
mod fitted;
mod history;
mod imputation;
mod position;
mod schedule;
mod update;

use std::time::Instant;

use crate::component::{ComponentId, EditLog};
use crate::data::{BatchSource, Dataset, Demands, Moments, moments};
use crate::error::{Error, Result};
use crate::executor::{Executor, InProcess, LocalOptions};
use crate::init::{Beginning, Init};
use crate::likelihood;
use crate::local_step::Keep;
use crate::model::Specification;
use crate::moves::{Bag, Moves, Round};
use crate::parallel::Cancel;
use crate::responsibilities::Sparsity;
use crate::rng::{Purpose, name};
use crate::simd::Scalar;

pub use engine::{Engine, Run};
pub use fitted::Fitted;
pub use history::{Observer, Record, StopReason};
pub use position::{Identity, Position};
pub use schedule::Schedule;
pub use update::Limits;

/// How to run.
#[derive(Debug, Clone, Copy)]
pub struct Options<'a> {
    /// Where inference starts, if neither the process nor the start says it.
    pub n_components: Option<usize>,
    /// What a batch is.
    pub batches: Cut,
    /// Whether rows are dealt to batches, and batches visited, at random; else both are taken as they come.
    pub shuffle: bool,
    /// How the number of components changes between passes.
    pub moves: Moves,
    /// How a visit enters the total.
    pub schedule: Schedule,
    /// Components kept a unit.
    pub sparsity: Sparsity,
    /// Nats below the best from which on a component is not kept; `None` keeps all that `sparsity` allows.
    pub margin: Option<f64>,
    /// Bytes that may be spent to spare work; with 0 every log weight is computed.
    pub bounds_memory: usize,
    /// Passes over the data at most.
    pub max_passes: usize,
    /// Stop when a pass gains less, in nats per unit of mass; 0 never stops early.
    pub tol: f64,
    /// The seed.
    pub seed: u64,
    /// The checkpoint of an earlier run to go on from.
    pub resume: Option<&'a [u8]>,
}

/// Into how many batches rows are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// One for every 5000 rows, at most 20.
    Auto,
    /// This many.
    Number(usize),
    /// As few as hold at most so many rows each.
    Size(usize),
}

impl Cut {
    /// The number of batches of `n` rows.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for batches of no rows, or of more than there are.
    fn n_batches(self, n: usize) -> Result<usize> {
        match self {
            Self::Auto => Ok((n / 5000).clamp(1, 20)),
            Self::Number(batches) => Ok(batches),
            Self::Size(size) if (1..=n).contains(&size) => Ok(n.div_ceil(size)),
            Self::Size(size) => {
                Err(Error::invalid("batch_size", size, format!("between 1 and the number of rows, {n}")))
            }
        }
    }
}

/// Components where nobody says how many and there are no births to find more.
const DEFAULT_COMPONENTS: usize = 50;

/// Fits a mixture to the rows of a table or a stream.
///
/// # Errors
/// [`Error::InvalidArgument`] and [`Error::Checkpoint`] before any work starts; [`Error::Numerical`];
/// [`Error::Cancelled`] where there is no state to return yet.
pub fn fit<F: Scalar>(
    specification: &Specification,
    rows: &dyn Dataset<F>,
    init: &Init<'_>,
    options: Options<'_>,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<Fitted> {
    let started = Instant::now();
    // A stream has to be read before its rows are counted.
    if rows.can_seek() {
        sizes(specification, init, &options, rows.n_rows())?;
    }
    let demands = likelihood::demands(&specification.likelihood.name)?;
    check_form(specification, rows.is_sparse(), demands)?;
    rows.watch(demands.domain, specification.holes);
    let data = moments(rows, demands, specification.holes, cancel)?;
    let n = data.n_rows;
    if n < 2 && !rows.can_seek() {
        return Err(Error::invalid("data", format!("{n} rows"), "at least two rows"));
    }
    let Sizes { n_components: k, n_columns, batches } = sizes(specification, init, &options, n)?;
    let shuffle = options.shuffle.then_some(options.seed);
    let source = rows.batches(batches, shuffle, data.fingerprint)?;
    let source = source.as_ref();
    let specification = specification.resolve(&data)?;
    // The origin is a number of the data's own type, so that taking it from a row is exact to the last bit of the row.
    let origin = data.mean.iter().map(|&value| F::from_f64(value).to_f64()).collect();
    let model = specification.build::<F>(origin)?;
    options.moves.check(model.likelihood.as_ref(), model.process.as_ref(), model.objective)?;
    let identity = identity(&data, source, &specification, init, &options, (k, n_columns));
    let local = LocalOptions {
        sparsity: options.sparsity,
        margin: options.margin,
        bounds_memory: options.bounds_memory,
        keep: Keep::Summary,
    };
    let mut executor = InProcess::new(&model, source, local, cancel.clone())?;
    let position = if let Some(bytes) = options.resume {
        let (position, states) = identity.read(bytes, batches, model.likelihood.n_statistics())?;
        if position.memo.is_estimate() != options.schedule.estimates() {
            return Err(Error::Checkpoint { message: "it is damaged: what its batches remember".into() });
        }
        executor.load_states(&states).map_err(|error| match error {
            Error::Format { message } => Error::Checkpoint { message: format!("it is damaged: {message}") },
            other => other,
        })?;
        position
    } else {
        let edits = EditLog::with_components(k);
        let beginning = Beginning {
            model: &model,
            data: rows,
            source,
            ids: &edits.components()?,
            keep: local.keep,
            by_batch: !options.schedule.estimates(),
            mass: data.mass,
            seed: options.seed,
            cancel,
        };
        let mut memo = beginning.memo(init)?;
        if !specification.weights()?.has_tail() {
            memo.drop_tail();
        }
        let mut position =
            Position::first(if options.schedule.estimates() { memo.into_estimate(data.mass) } else { memo }, edits);
        if k == 1 && options.moves.grow() {
            position.moves.start_from(ComponentId(0), first_rows(rows, &options)?);
        }
        position
    };
    let round = (!options.moves.is_empty()).then_some(Round {
        model: &model,
        moves: &options.moves,
        sparsity: options.sparsity,
        margin: options.margin,
        seed: options.seed,
        n_batches: batches,
        cancel,
    });
    let engine = Engine {
        model: &model,
        round,
        identity: &identity,
        max_passes: options.max_passes,
        margin: options.margin,
        tol: options.tol,
        schedule: options.schedule,
        shuffle: options.shuffle,
        seed: options.seed,
        started,
    };
    let run = engine.run(&mut executor, position, observer, cancel)?;
    Ok(Fitted {
        specification,
        origin: model.likelihood.origin().to_vec(),
        n_rows: n,
        sparsity: options.sparsity.clamp(run.summary.n_components() + n_columns - k),
        margin: options.margin,
        summary: run.summary,
        elbo: run.elbo,
        history: run.history,
        stop_reason: run.stop_reason,
        error: run.error,
    })
}

/// A random choice of all rows: what the first parts of a single component are made of.
fn first_rows<F: Scalar>(rows: &dyn Dataset<F>, options: &Options<'_>) -> Result<Bag> {
    let most = options.moves.birth.map_or(5000, |birth| birth.max_subsample);
    let has_mass = |row: usize| rows.weights().is_none_or(|weights| weights[row] > 0.0);
    let mut named: Vec<(u64, u32)> = Vec::new();
    let mut last = u64::MAX;
    for row in (0..rows.n_rows()).filter(|&row| has_mass(row)) {
        let own = name(options.seed, [Purpose::Collection as u64, u64::MAX, row as u64]);
        if own <= last {
            named.push((own, row as u32));
        }
        // Sorted out now and then, so that memory does not grow with the data.
        if named.len() >= 2 * most {
            named.sort_unstable();
            named.truncate(most);
            last = named[most - 1].0;
        }
    }
    named.sort_unstable();
    named.truncate(most);
    named.sort_unstable_by_key(|(_, row)| *row);
    let (names, own): (Vec<_>, Vec<_>) = named.into_iter().unzip();
    let units = rows.pick(&own)?;
    let mut bag = Bag { names, ..Bag::default() };
    bag.rows.extend(&units, &(0..units.len() as u32).collect::<Vec<_>>());
    Ok(bag)
}

/// Numbers that follow from the number of rows.
struct Sizes {
    n_components: usize,
    /// Those and the tail.
    n_columns: usize,
    batches: usize,
}

/// The numbers of components and of batches, checked against the number of rows.
fn sizes(specification: &Specification, init: &Init<'_>, options: &Options<'_>, n: usize) -> Result<Sizes> {
    if n == 0 {
        return Err(Error::invalid("data", "0 rows", "at least one row"));
    }
    check_numbers("data", n)?;
    let n_components = n_components(specification, init, options.n_components, options.moves.grow(), n)?;
    let n_columns = n_components + usize::from(specification.weights()?.has_tail());
    if !options.moves.grow() {
        options.sparsity.width(n_columns)?;
    }
    Ok(Sizes { n_components, n_columns, batches: options.batches.n_batches(n)? })
}

/// Checks that the likelihood takes rows of this form.
fn check_form(specification: &Specification, sparse: bool, demands: Demands) -> Result<()> {
    let refuse = |argument: &str, what: &str, reason: &str, allowed: &str| {
        let found = format!("{what} for {}", specification.likelihood.name);
        Err(Error::not_supported(argument, found, reason, allowed))
    };
    if sparse && !demands.sparse {
        return refuse("data", "a sparse array", "zeros are values like any other to it", "a dense array");
    }
    if specification.holes && !demands.holes {
        let allowed = "DiagonalGaussian, Bernoulli or Poisson, or data without missing values";
        return refuse("missing", "missing=\"marginalize\"", "it would not be exact", allowed);
    }
    if specification.holes && sparse {
        let reason = "what it does not store is zero, not missing";
        return refuse("missing", "missing=\"marginalize\" on a sparse array", reason, "a dense array");
    }
    Ok(())
}

/// What must be the same for a run to go on from a checkpoint to the same bits. How long it may go on is not among it.
fn identity<F: Scalar>(
    data: &Moments,
    source: &dyn BatchSource<F>,
    specification: &Specification,
    init: &Init<'_>,
    options: &Options<'_>,
    (n_components, n_columns): (usize, usize),
) -> Identity {
    // A number of components that stays says how many "auto" keeps.
    let sparsity = if options.moves.grow() {
        format!("{:?}", options.sparsity)
    } else {
        options.sparsity.clamp(n_columns).to_string()
    };
    let pairs = [
        ("data", format!("{} x {} {}, {:016x}", data.n_rows, data.dimension(), F::NAME, data.fingerprint)),
        ("likelihood", format!("{:?}", specification.likelihood)),
        ("process", format!("{:?}", specification.process)),
        ("objective", specification.objective.name().into()),
        ("holes", specification.holes.to_string()),
        ("batches", source.n_batches().unwrap_or(1).to_string()),
        ("shuffle", options.shuffle.to_string()),
        ("algorithm", options.schedule.name()),
        ("set of moves", options.moves.name()),
        ("sparsity", sparsity),
        ("margin", options.margin.map_or("None".into(), |margin| margin.to_string())),
        ("n_components", n_components.to_string()),
        ("init", format!("{:016x}", init.fingerprint())),
        ("seed", options.seed.to_string()),
    ];
    Identity(pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// The process's own number, else that of the start, else what the user says, else 1 where it can grow, else 50 or the number
/// of rows.
fn n_components(
    specification: &Specification,
    init: &Init<'_>,
    asked: Option<usize>,
    grows: bool,
    n: usize,
) -> Result<usize> {
    let own = specification.weights()?.n_components();
    let given = match init {
        Init::KmeansPlusPlus | Init::Random | Init::Sequential => None,
        Init::Labels(labels) => {
            expect_length(labels.len(), n)?;
            labels.iter().max().map(|&label| label as usize + 1)
        }
        Init::Table(values) => {
            let k = values.len() / n;
            expect_length(values.len(), n * k)?;
            Some(k)
        }
        Init::Summary { summary, .. } => Some(summary.n_components()),
    };
    let default = if grows { 1 } else { DEFAULT_COMPONENTS.min(n) };
    let k = own.or(asked).or(given).unwrap_or(default);
    if let Some(asked) = asked.filter(|&asked| asked != k) {
        return Err(Error::invalid("n_components", asked, format!("{k}, as the process says")));
    }
    match given {
        // Labels may leave the last components empty.
        Some(given) if given > k || (given < k && !matches!(init, Init::Labels(_))) => {
            Err(Error::invalid("init", format!("for {given} components"), format!("for {k} components")))
        }
        _ if k == 0 || k > n => {
            Err(Error::invalid("n_components", k, format!("between 1 and the number of rows, {n}")))
        }
        _ if k > MOST_COMPONENTS => Err(Error::invalid("n_components", k, format!("at most {MOST_COMPONENTS}"))),
        _ => Ok(k),
    }
}

/// Components that can be told apart while they are scored: whole numbers that float32 holds.
const MOST_COMPONENTS: usize = 1 << 24;

/// Checks that rows can be numbered as they are while they are scored.
pub(super) fn check_numbers(argument: &str, n_rows: usize) -> Result<()> {
    if u32::try_from(n_rows).is_ok() {
        return Ok(());
    }
    Err(Error::invalid(argument, format!("{n_rows} rows"), format!("at most {} rows", u32::MAX)))
}

fn expect_length(found: usize, allowed: usize) -> Result<()> {
    if found == allowed {
        return Ok(());
    }
    Err(Error::invalid(
        "init",
        format!("of {found} values"),
        format!("of {allowed} values, one for every row of the data"),
    ))
}
