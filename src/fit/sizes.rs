//! Initial number of components and number of batches, which depend on the number of rows.

use crate::component::MOST_COMPONENTS;
use crate::data::PartialLabels;
use crate::error::{Error, Result};
use crate::fit::settings::Settings;
use crate::init::Init;
use crate::model::Specification;
use crate::visits::Extent;

/// Default number of components without births, which could add more.
const DEFAULT_COMPONENTS: usize = 50;

/// Sizes of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// Initial number of components.
    pub(super) components: usize,
    /// Number of components plus the tail.
    pub(super) columns: usize,
    /// Number of batches per pass.
    pub(super) batches: usize,
}

impl Sizes {
    /// Computes the number of components and the number of batches for data of this size.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for numbers inconsistent with the number of rows or with each other.
    pub(super) fn new(
        specification: &Specification,
        init: &Init<'_>,
        settings: &Settings,
        labels: Option<&PartialLabels>,
        extent: Extent,
    ) -> Result<Self> {
        let n = extent.rows;
        if n == 0 {
            return Err(Error::invalid("data", "0 rows", "at least one row"));
        }
        let components = n_components(specification, init, settings, labels, extent)?;
        if !settings.moves.grow() {
            settings.local.sparsity.check(components, extent.nouns.components)?;
        }
        let columns = components + usize::from(specification.has_tail()?);
        Ok(Self { components, columns, batches: settings.batches.n_batches(n, extent.batches)? })
    }
}

/// The user's number of components, otherwise the process's, otherwise that of the start, otherwise 1 if the number can
/// grow, otherwise 50 or the number of rows. With labels at least one for each class, and by default one more if some
/// rows are of unknown class.
fn n_components(
    specification: &Specification,
    init: &Init<'_>,
    settings: &Settings,
    labels: Option<&PartialLabels>,
    Extent { rows: n, units, nouns, .. }: Extent,
) -> Result<usize> {
    let (fixed, asked) = (specification.weights()?.n_components(), settings.n_components);
    if let Some(asked) = asked {
        let refuse = |allowed: String| Err(Error::invalid("n_components", asked, allowed));
        match fixed {
            _ if !(1..=units).contains(&asked) => return refuse(format!("an integer from 1 to {units}, or None")),
            Some(fixed) if fixed != asked => return refuse(format!("{fixed}, the number of the process")),
            _ => {}
        }
    }
    let given = init.n_components(n)?;
    let n_classes = labels.map_or(0, PartialLabels::n_classes);
    let n_first = n_classes + usize::from(labels.is_none_or(PartialLabels::are_partial));
    let default = if settings.moves.grow() { n_first } else { n_first.max(DEFAULT_COMPONENTS).min(n) };
    let k = asked.or(fixed).or(given).unwrap_or(default);
    if k == 0 || k > units {
        let allowed = format!("at most {units}, the number of {}", nouns.units);
        return Err(match fixed {
            Some(_) => Error::invalid(nouns.n_components, k, allowed),
            None => Error::invalid("init", format!("of {k} components"), allowed),
        });
    }
    if k < n_classes {
        let argument = if asked.is_some() || fixed.is_none() { "n_components" } else { nouns.n_components };
        return Err(Error::invalid(argument, k, format!("at least {n_classes}, the number of classes in labels")));
    }
    if k > MOST_COMPONENTS as usize {
        return Err(Error::invalid("n_components", k, format!("at most {MOST_COMPONENTS}")));
    }
    match given {
        Some(given) if given != k => check_start(init, given, k, asked.is_some()).map(|()| k),
        _ => Ok(k),
    }
}

/// Refuses a start with `given` components for a run with `k`.
fn check_start(init: &Init<'_>, given: usize, k: usize, is_asked: bool) -> Result<()> {
    match init {
        // PartialLabels may leave the last components empty.
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
