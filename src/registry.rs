//! What there is to know of each likelihood, process and move before it is used: its name, its rows, what it can do,
//! and its parameters. Data only; each entry stands in the file of what it describes.
//!
//! Core, binding, command line and tests read these entries, so that no rule stands twice.

use crate::data::{Domain, Freedom};

/// The description of one likelihood, process, move or prior.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Entry {
    /// Its name, which is that of its Python class.
    pub name: &'static str,
    /// Values that rows may have, for a likelihood.
    pub domain: Option<Domain>,
    /// Which columns of the data it leaves out, for a likelihood.
    pub freedom: Freedom,
    /// Its parameters and estimates that have a unit.
    pub measures: &'static [Measured],
    /// Optional parts of its trait that it has.
    pub faces: &'static [&'static str],
    /// Its capabilities.
    pub supports: &'static [Support],
    /// Its parameters, in the order of the Python class.
    pub parameters: &'static [Parameter],
}

/// Something that an entry can do, and when it cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Support {
    /// Its capabilities.
    pub feature: Feature,
    /// The parameter and its word with which it cannot.
    pub unless: Option<(&'static str, &'static str)>,
}

/// Capabilities of likelihoods, processes and moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// A likelihood: rows may be sparse.
    Sparse,
    /// A likelihood: missing values may be left out.
    Missing,
    /// A likelihood or a process: bounds of different numbers of components compare, so moves can be judged.
    Moves,
    /// A move: it can raise the number of components.
    Growth,
}

/// A parameter or an estimate of a likelihood that has a unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// Its name.
    pub name: &'static str,
    /// How it changes with the units of the columns.
    pub measure: Measure,
    /// The parameter and its word with which it has the unit, where it is not always.
    pub only: Option<(&'static str, &'static str)>,
}

/// How a value changes with the units of the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// A point: a number for each column.
    Place,
    /// A length for each column, or one for all.
    Lengths,
    /// A square for each column, or one for all.
    Squares,
    /// A number without a unit for each column, where it is not one for all.
    Shared,
    /// One square for all columns, where they have a common unit.
    Square,
    /// One reciprocal of a square.
    InverseSquare,
    /// Products of columns, (D, D).
    Products,
    /// Degrees of freedom of a distribution of products: one less for each column that the model does not see, by the
    /// law of a part of a Wishart matrix's inverse.
    Dof,
}

/// A parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameter {
    /// Its name, as the user writes it.
    pub name: &'static str,
    /// Its values.
    pub kind: ParameterKind,
    /// Its value where the user gives none.
    pub default: DefaultValue,
}

/// The values of a parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ParameterKind {
    /// A number.
    Number(Range),
    /// A number, or its Gamma prior.
    NumberOrGamma(Range),
    /// A number, or its Beta prior.
    NumberOrBeta(Range),
    /// A number for all columns, or a vector with one for each, (D,).
    NumberOrVector(Range),
    /// A number, or a symmetric positive definite matrix, (D, D).
    NumberOrMatrix(Range),
    /// A vector of finite numbers, (D,).
    Vector,
    /// A symmetric positive definite matrix, (D, D).
    Matrix,
    /// An integer.
    Integer {
        /// The least.
        least: u32,
        /// The greatest.
        greatest: u32,
    },
    /// One of these words.
    Word(&'static [&'static str]),
    /// True or false; 1 or 0 in the core.
    Flag,
}

/// Numbers from `least` to `greatest`. Other parameters or the data may forbid some of them; numbers outside are always
/// refused.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// The least.
    pub least: f64,
    /// The greatest.
    pub greatest: f64,
    /// Whether `greatest` itself is left out.
    pub below: bool,
}

/// The value of a parameter that is not given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DefaultValue {
    /// There is none: it must be given.
    Required,
    /// It follows the data.
    Data,
    /// It follows the data at first, and is then estimated by evidence (mathematics 10), unless [`PRIOR`] says
    /// otherwise.
    Evidence,
    /// A number, which may be whole, or a flag.
    Number(f64),
    /// A number for the user; absent, it starts from that number and is estimated (mathematics 11.6).
    NumberOrEvidence(f64),
    /// A word.
    Word(&'static str),
}

impl Entry {
    /// An entry without anything but a name, to be filled in.
    pub const fn new(name: &'static str) -> Self {
        Self { name, domain: None, freedom: Freedom::Fixed, measures: &[], faces: &[], supports: &[], parameters: &[] }
    }

    /// Each of its parameters that is a word, with each of its words.
    #[cfg(test)]
    pub fn words(&self) -> Vec<(&'static str, &'static str)> {
        let of = |parameter: &Parameter| match parameter.kind {
            ParameterKind::Word(words) => words.iter().map(|&word| (parameter.name, word)).collect(),
            _ => Vec::new(),
        };
        self.parameters.iter().flat_map(of).collect()
    }

    /// Whether it supports a feature, whatever its parameters or with some of them.
    pub fn support(&self, feature: Feature) -> Option<Support> {
        self.supports.iter().copied().find(|support| support.feature == feature)
    }
}

impl Support {
    /// With all parameters.
    pub const fn always(feature: Feature) -> Self {
        Self { feature, unless: None }
    }

    /// Whether it is not there with a parameter of this name and word.
    pub fn fails(self, chosen: Option<(&str, &str)>) -> bool {
        self.unless.is_some() && self.unless == chosen
    }
}

impl Measured {
    /// With all parameters.
    pub const fn always(name: &'static str, measure: Measure) -> Self {
        Self { name, measure, only: None }
    }
}

impl Feature {
    /// The name used outside.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sparse => "sparse",
            Self::Missing => "missing",
            Self::Moves => "moves",
            Self::Growth => "growth",
        }
    }
}

impl Parameter {
    /// A parameter.
    pub const fn new(name: &'static str, kind: ParameterKind, default: DefaultValue) -> Self {
        Self { name, kind, default }
    }
}

/// Whether the base measure is estimated. Absent, it is.
pub const PRIOR: Parameter = Parameter::new("prior", ParameterKind::Word(&["rule"]), DefaultValue::Data);

/// The width of the cells to which the values of each column are rounded (mathematics 10.5); 0 for none.
pub const RESOLUTION: Parameter = Parameter::new(
    "resolution",
    ParameterKind::NumberOrVector(Range { least: 0.0, greatest: 1e150, below: false }),
    DefaultValue::Data,
);

/// Largest integer parameter: components are numbered in 32 bits, and the last two numbers are reserved.
pub const LARGEST_INTEGER: u32 = u32::MAX - 1;

impl ParameterKind {
    /// An integer from `least` on.
    pub const fn integer_from(least: u32) -> Self {
        Self::Integer { least, greatest: LARGEST_INTEGER }
    }

    /// The name used outside.
    pub fn name(self) -> &'static str {
        match self {
            Self::Number(_) => "number",
            Self::NumberOrGamma(_) => "number or gamma",
            Self::NumberOrBeta(_) => "number or beta",
            Self::NumberOrVector(_) => "number or vector",
            Self::NumberOrMatrix(_) => "number or matrix",
            Self::Vector => "vector",
            Self::Matrix => "matrix",
            Self::Integer { .. } => "integer",
            Self::Word(_) => "word",
            Self::Flag => "flag",
        }
    }

    /// The range of its numbers.
    pub fn range(self) -> Option<Range> {
        match self {
            Self::Number(range)
            | Self::NumberOrGamma(range)
            | Self::NumberOrBeta(range)
            | Self::NumberOrVector(range)
            | Self::NumberOrMatrix(range) => Some(range),
            _ => None,
        }
    }
}

impl Range {
    /// Positive numbers whose reciprocal and gamma function have logarithms.
    pub const POSITIVE: Self = Self::closed(1e-300, 1e300);
    /// How sure a prior is of a precision, in rows. Beside more than 1e9 of them float64 loses the data: the bound is a
    /// difference of terms of this size times their logarithms, so at 1e9 it has an absolute error near 1e-5 nats a
    /// component, and at 1e15 none of its digits.
    pub const SURENESS: Self = Self::closed(1e-300, 1e9);

    /// With both ends.
    pub const fn closed(least: f64, greatest: f64) -> Self {
        Self { least, greatest, below: false }
    }

    /// Without the greatest.
    pub const fn half_open(least: f64, greatest: f64) -> Self {
        Self { least, greatest, below: true }
    }

    /// Whether it has the number.
    pub fn has(self, value: f64) -> bool {
        value >= self.least && (value < self.greatest || (value == self.greatest && !self.below))
    }

    /// Its numbers, in words.
    pub fn allowed(self) -> String {
        let Self { least, greatest, below } = self;
        if below {
            format!("a number from {} on, below {}", shown(least), shown(greatest))
        } else {
            format!("a number from {} to {}", shown(least), shown(greatest))
        }
    }
}

/// A limit in few characters.
fn shown(limit: f64) -> String {
    if limit == 0.0 || (1e-3..1e9).contains(&limit.abs()) { limit.to_string() } else { format!("{limit:e}") }
}
