//! Which likelihood has which columns: one has all of them, or blocks of columns have their own.
//!
//! The parameters of [`Columns`](super::Columns) are those of its blocks, each name with the number of its block before
//! it, as in `1.shape`.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::data::Coordinates;
use crate::error::{Error, Result};
use crate::likelihood::entry;
use crate::parameters::{Parameters, Value, vector};
use crate::registry::{DefaultValue, Entry, Parameter, ParameterKind};

/// The name of the likelihood of blocks.
pub const NAME: &str = "Columns";
/// The parameter that says which block has which likelihood and columns of the data, as in `Gaussian 0 1; Poisson 2`.
pub const BLOCKS: Parameter = Parameter::new("blocks", ParameterKind::Blocks, DefaultValue::Required);
/// The columns that the model sees, if it does not see all.
pub const KEPT: Parameter = Parameter::new("kept", ParameterKind::Vector, DefaultValue::Data);

/// One likelihood of a specification.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its entry in the registry.
    pub entry: &'static Entry,
    /// Its columns of the data; `None` for all.
    pub columns: Option<Vec<usize>>,
    /// What its parameters begin with.
    prefix: String,
}

impl Member {
    /// Its own parameters.
    pub fn parameters<'a>(&self, all: &'a Parameters) -> Cow<'a, Parameters> {
        if self.prefix.is_empty() {
            return Cow::Borrowed(all);
        }
        let own = all.0.iter().filter_map(|(name, value)| Some((self.own_name(name)?.to_owned(), value.clone())));
        Cow::Owned(Parameters(own.collect()))
    }

    /// Puts its parameters among all.
    pub fn put(&self, all: &mut Parameters, own: Parameters) {
        all.0.extend(own.0.into_iter().map(|(name, value)| (self.name(&name), value)));
    }

    /// The name among all of one of its parameters.
    pub fn name(&self, own: &str) -> String {
        format!("{}{own}", self.prefix)
    }

    /// The parameter's own name; `None` for a parameter of another member.
    pub fn own_name<'a>(&self, name: &'a str) -> Option<&'a str> {
        name.strip_prefix(&self.prefix)
    }

    /// The coordinates of its columns.
    pub fn coordinates<'a>(&self, all: &'a Coordinates) -> Cow<'a, Coordinates> {
        match &self.columns {
            None => Cow::Borrowed(all),
            Some(columns) => Cow::Owned(all.of_columns(columns)),
        }
    }
}

/// The likelihoods of a specification: its blocks, or the one likelihood itself.
///
/// # Errors
/// [`Error::InvalidArgument`] for an unknown likelihood or wrong blocks.
pub fn members(name: &str, parameters: &Parameters) -> Result<Vec<Member>> {
    let entry = entry(name)?;
    if name != NAME {
        return Ok(vec![Member { entry, columns: None, prefix: String::new() }]);
    }
    let blocks = read_blocks(parameters)?.into_iter().enumerate();
    Ok(blocks
        .map(|(index, (entry, columns))| Member { entry, columns: Some(columns), prefix: format!("{index}.") })
        .collect())
}

/// The entry and the columns of every block.
fn read_blocks(parameters: &Parameters) -> Result<Vec<(&'static Entry, Vec<usize>)>> {
    let text = parameters.text(BLOCKS.name, "")?;
    let wrong = |found: &str| {
        Error::invalid(
            BLOCKS.name,
            format!("{found:?}"),
            "likelihoods, each with its columns, which have one block each",
        )
    };
    let mut all = Vec::new();
    let mut seen = BTreeSet::new();
    for block in text.split(';') {
        let mut words = block.split_whitespace();
        let own = entry(words.next().ok_or_else(|| wrong(text))?)?;
        if own.name == NAME {
            let reason = "its blocks are blocks of the whole";
            return Err(Error::not_supported(BLOCKS.name, "Columns in a block of Columns", reason, "its blocks"));
        }
        let columns: Vec<usize> = words.map(|word| word.parse().map_err(|_| wrong(block))).collect::<Result<_>>()?;
        if columns.is_empty() || !columns.iter().all(|&column| seen.insert(column)) {
            return Err(wrong(block));
        }
        all.push((own, columns));
    }
    if seen.last().is_some_and(|&last| last + 1 == seen.len()) { Ok(all) } else { Err(wrong(text)) }
}

/// The number of columns of the data.
pub fn n_columns(parts: &[Member]) -> usize {
    parts.iter().flat_map(|member| &member.columns).map(Vec::len).sum()
}

/// For each member, the positions of its columns among those that the model sees.
pub fn seen(parts: &[Member], parameters: &Parameters) -> Result<Vec<Vec<usize>>> {
    let d = n_columns(parts);
    let kept = match parameters.vector(KEPT.name)? {
        None => (0..d).collect(),
        Some(kept) => kept.iter().map(|&column| column as usize).collect::<Vec<usize>>(),
    };
    if kept.last().is_none_or(|&last| last >= d) || !kept.is_sorted_by(|a, b| a < b) {
        return Err(Error::invalid(KEPT.name, format!("{kept:?}"), "some of the columns, in order"));
    }
    let of = |member: &Member| {
        member.columns.iter().flatten().filter_map(|column| kept.binary_search(column).ok()).collect::<Vec<usize>>()
    };
    Ok(parts.iter().map(of).collect())
}

/// The likelihoods that the model sees some columns of.
///
/// # Errors
/// As [`members`].
pub fn seen_members(name: &str, parameters: &Parameters) -> Result<Vec<Member>> {
    let all = members(name, parameters)?;
    if all.iter().all(|member| member.columns.is_none()) {
        return Ok(all);
    }
    let columns = seen(&all, parameters)?;
    Ok(all.into_iter().zip(columns).filter(|(_, columns)| !columns.is_empty()).map(|(member, _)| member).collect())
}

/// Records which columns the model sees.
pub fn keep(parameters: &mut Parameters, coordinates: &Coordinates) {
    if !coordinates.is_full() {
        let kept = coordinates.kept().iter().map(|&column| column as f64).collect();
        parameters.0.insert(KEPT.name.to_owned(), vector(kept));
    }
}

/// Parameters without what [`keep`] recorded.
pub fn forget_kept(parameters: &mut Parameters) {
    parameters.0.remove(KEPT.name);
}

/// Refuses parameters of no block.
///
/// # Errors
/// [`Error::InvalidArgument`] naming the parameter.
pub fn check_names(parts: &[Member], parameters: &Parameters) -> Result<()> {
    let is_known = |name: &str| {
        [BLOCKS.name, KEPT.name].contains(&name) || parts.iter().any(|member| member.own_name(name).is_some())
    };
    match parameters.0.iter().find(|(name, value)| !is_known(name) && **value != Value::Absent) {
        Some((name, _)) => Err(Error::invalid(name, "given", "a parameter of a block")),
        None => Ok(()),
    }
}
