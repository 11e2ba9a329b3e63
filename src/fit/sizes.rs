//! Numbers that follow from the number of rows: components to start from, batches.

use crate::component::MOST_COMPONENTS;
use crate::error::{Error, Result};
use crate::fit::settings::Settings;
use crate::init::Init;
use crate::model::Specification;

/// Number of components where nothing else gives one and there are no births to find more.
const DEFAULT_COMPONENTS: usize = 50;

/// Numbers that follow from the number of rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// Components that the run starts from.
    pub(super) components: usize,
    /// Those and the tail.
    pub(super) columns: usize,
    /// Batches of a pass.
    pub(super) batches: usize,
}

/// How large the data are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    /// Rows.
    pub rows: usize,
    /// Units: the words of documents, or else the rows.
    pub units: usize,
    /// Batches, where the user leaves them open.
    pub batches: usize,
}

impl Sizes {
    /// The numbers of components and of batches of data of an extent.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for those that do not go with the number of rows, or with each other.
    pub(super) fn new(
        specification: &Specification,
        init: &Init<'_>,
        settings: &Settings,
        Extent { rows: n, units, batches }: Extent,
    ) -> Result<Self> {
        if n == 0 {
            return Err(Error::invalid("data", "0 rows", "at least one row"));
        }
        check_numbers("data", n)?;
        let components = n_components(specification, init, settings, n, units)?;
        if !settings.moves.grow() {
            let what = if specification.documents()?.is_some() { "topics" } else { "components" };
            settings.local.sparsity.check(components, what)?;
        }
        let columns = components + usize::from(specification.weights()?.has_tail());
        Ok(Self { components, columns, batches: settings.batches.n_batches(n, batches)? })
    }
}

/// The number that the user asks for, else the process's own, else that of the start, else 1 where it can grow, else 50
/// or the number of rows.
fn n_components(
    specification: &Specification,
    init: &Init<'_>,
    settings: &Settings,
    n: usize,
    units: usize,
) -> Result<usize> {
    let (own, asked) = (specification.weights()?.n_components(), settings.n_components);
    if let Some(asked) = asked {
        let refuse = |allowed: String| Err(Error::invalid("n_components", asked, allowed));
        match own {
            _ if !(1..=units).contains(&asked) => return refuse(format!("an integer from 1 to {units}, or None")),
            Some(own) if own != asked => return refuse(format!("{own}, the number of the process")),
            _ => {}
        }
    }
    let given = init.n_components(n)?;
    let default = if settings.moves.grow() { 1 } else { DEFAULT_COMPONENTS.min(n) };
    let k = asked.or(own).or(given).unwrap_or(default);
    if k == 0 || k > units {
        let of_words = specification.documents()?.is_some();
        let what = if of_words { "tokens (words, counted as often as they occur)" } else { "rows" };
        let allowed = format!("at most {units}, the number of {what}");
        return Err(match own {
            Some(_) => Error::invalid(if of_words { "n_topics" } else { "n_components" }, k, allowed),
            None => Error::invalid("init", format!("of {k} components"), allowed),
        });
    }
    if k > MOST_COMPONENTS as usize {
        return Err(Error::invalid("n_components", k, format!("at most {MOST_COMPONENTS}")));
    }
    match given {
        Some(given) if given != k => check_start(init, given, k, asked.is_some()).map(|()| k),
        _ => Ok(k),
    }
}

/// Refuses a start of `given` components for a run of `k`.
fn check_start(init: &Init<'_>, given: usize, k: usize, is_asked: bool) -> Result<()> {
    match init {
        // Labels may leave the last components empty.
        Init::Labels(_) if given < k => Ok(()),
        Init::Labels(_) => {
            Err(Error::invalid("init", format!("labels up to {}", given - 1), format!("labels from 0 to {}", k - 1)))
        }
        _ if is_asked => Err(Error::invalid("n_components", k, format!("{given}, the number of init"))),
        _ => {
            let allowed = format!("of {k} components, the number of the process");
            Err(Error::invalid("init", format!("of {given} components"), allowed))
        }
    }
}

/// Checks that rows can be numbered as they are while they are scored.
pub(super) fn check_numbers(argument: &str, n_rows: usize) -> Result<()> {
    if u32::try_from(n_rows).is_ok() {
        return Ok(());
    }
    Err(Error::invalid(argument, format!("{n_rows} rows"), format!("at most {} rows", u32::MAX)))
}
