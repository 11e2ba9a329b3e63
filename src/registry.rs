//! The registry describes each likelihood, process and move before it is used: its name, its rows, its capabilities,
//! and its parameters. It holds data only; each entry is defined in the file of the type that it describes.
//!
//! Core, binding, command line and tests read these entries, so that every rule is stated only once.

use crate::data::{Domain, Freedom};

/// The entry of one likelihood, process, move or prior.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Entry {
    /// Name, equal to that of the Python class.
    pub name: &'static str,
    /// Values that rows may have, for a likelihood.
    pub domain: Option<Domain>,
    /// Which columns of the data a likelihood may leave out, unless its parameters say otherwise.
    pub freedom: Freedom,
    /// Parameters and estimates that have a unit.
    pub measures: &'static [Measured],
    /// Optional parts of its trait that it implements.
    pub faces: &'static [&'static str],
    /// Its capabilities.
    pub supports: &'static [Support],
    /// Parameters, in the order of the Python class.
    pub parameters: &'static [Parameter],
    /// Parameters that only a fit sets.
    pub unlisted: &'static [Parameter],
}

/// A capability, and when it is unavailable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Support {
    /// The capability.
    pub feature: Feature,
    /// The parameter and the word with which the capability is unavailable.
    pub unless: Option<(&'static str, &'static str)>,
}

/// Capabilities of likelihoods, processes and moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// A likelihood: rows may be sparse.
    Sparse,
    /// A likelihood: missing values may be left out.
    Missing,
    /// A likelihood or a process: bounds with different numbers of components can be compared, so moves can be judged.
    Moves,
    /// A likelihood: missing values are imputed, with a distribution that depends on the component of the row.
    Imputed,
    /// A likelihood: a part of each row is not seen, so that its statistics depend on the component that it is under.
    Hidden,
    /// A move: it can raise the number of components.
    Growth,
}

/// A parameter or an estimate of a likelihood that has a unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// Its name.
    pub name: &'static str,
    /// How it scales with the units of the columns.
    pub measure: Measure,
    /// The parameter and the word with which it has the unit, if not always.
    pub only: Option<(&'static str, &'static str)>,
}

/// How a value scales with the units of the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// A position: one number per column.
    Place,
    /// A length per column, or one for all columns.
    Lengths,
    /// A square per column, or one for all columns.
    Squares,
    /// A number without a unit for each column, unless one is shared by all.
    Shared,
    /// One square for all columns, which have a common unit.
    Square,
    /// One reciprocal of a square.
    InverseSquare,
    /// Products of columns, (D, D).
    Products,
    /// Degrees of freedom of a distribution of products: reduced by one for each column that the model does not see, by
    /// the distribution of a block of an inverse Wishart matrix.
    Dof,
}

/// A parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameter {
    /// Name, as the user writes it.
    pub name: &'static str,
    /// Allowed values.
    pub kind: ParameterKind,
    /// Default value.
    pub default: DefaultValue,
}

/// The allowed values of a parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ParameterKind {
    /// A number in this range.
    Number(Range),
    /// A number in this range, or a Gamma prior.
    NumberOrGamma(Range),
    /// A number in this range, or a Beta prior.
    NumberOrBeta(Range),
    /// One number for all columns, or a vector with one per column, (D,).
    NumberOrVector(Range),
    /// A number, or a symmetric positive definite matrix, (D, D).
    NumberOrMatrix(Range),
    /// Two numbers in this range.
    Pair(Range),
    /// A vector of finite numbers, (D,).
    Vector,
    /// A symmetric positive definite matrix, (D, D).
    Matrix,
    /// A vector of positive numbers, (D,), or a symmetric positive definite matrix, (D, D), by another parameter.
    VectorOrMatrix,
    /// An integer.
    Integer {
        /// Smallest value.
        least: u32,
        /// Largest value.
        greatest: u32,
    },
    /// One of these words.
    Word(&'static [&'static str]),
    /// True or false; 1 or 0 in the core.
    Flag,
    /// Likelihoods by blocks of columns.
    Blocks,
    /// The position or the name of a column of the data, or [`TOTAL`]. A name stands for a position that is not known
    /// yet.
    ColumnOrTotal,
}

/// Numbers from `least` to `greatest`. Other parameters or the data may rule out some of them; numbers outside are
/// always refused.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// Smallest value.
    pub least: f64,
    /// Largest value.
    pub greatest: f64,
    /// Whether `greatest` itself is excluded.
    pub below: bool,
}

/// The default of a parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DefaultValue {
    /// No default: the parameter is required.
    Required,
    /// The default depends on the data.
    Data,
    /// The default depends on the data at first, and is then estimated by evidence (mathematics 10), unless [`PRIOR`]
    /// disables it.
    Evidence,
    /// A number, an integer or a flag.
    Number(f64),
    /// The default shown to the user. If absent, the parameter starts from this number and is estimated (mathematics
    /// 11.6).
    NumberOrEvidence(f64),
    /// A word.
    Word(&'static str),
}

impl Entry {
    /// An entry with a name only, to be completed.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            domain: None,
            freedom: Freedom::Fixed,
            measures: &[],
            faces: &[],
            supports: &[],
            parameters: &[],
            unlisted: &[],
        }
    }

    /// Every parameter that takes words, paired with each of its words.
    #[cfg(test)]
    pub fn words(&self) -> Vec<(&'static str, &'static str)> {
        let of = |parameter: &Parameter| match parameter.kind {
            ParameterKind::Word(words) => words.iter().map(|&word| (parameter.name, word)).collect(),
            _ => Vec::new(),
        };
        self.parameters.iter().flat_map(of).collect()
    }

    /// The support of a feature, whatever the parameters or only with some of them.
    pub fn support(&self, feature: Feature) -> Option<Support> {
        self.supports.iter().copied().find(|support| support.feature == feature)
    }
}

impl Support {
    /// A capability that is available with all parameters.
    pub const fn always(feature: Feature) -> Self {
        Self { feature, unless: None }
    }

    /// Whether the capability is unavailable with this parameter and word.
    pub fn fails(self, chosen: Option<(&str, &str)>) -> bool {
        self.unless.is_some() && self.unless == chosen
    }
}

impl Measured {
    /// A measure that applies with all parameters.
    pub const fn always(name: &'static str, measure: Measure) -> Self {
        Self { name, measure, only: None }
    }

    /// A measure that applies with this word for a parameter.
    pub const fn only(name: &'static str, measure: Measure, parameter: &'static str, word: &'static str) -> Self {
        Self { name, measure, only: Some((parameter, word)) }
    }
}

impl Feature {
    /// Public name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sparse => "sparse",
            Self::Missing => "missing",
            Self::Moves => "moves",
            Self::Imputed => "imputed",
            Self::Hidden => "hidden",
            Self::Growth => "growth",
        }
    }
}

impl Parameter {
    /// A parameter with these properties.
    pub const fn new(name: &'static str, kind: ParameterKind, default: DefaultValue) -> Self {
        Self { name, kind, default }
    }
}

/// Whether the base measure is estimated by evidence. If absent, it is.
pub const PRIOR: Parameter = Parameter::new("prior", ParameterKind::Word(&["rule"]), DefaultValue::Data);

/// How many columns of the data the last column stands for, if none of them has a value (`fit/absent.rs`).
pub const REPEATS: Parameter =
    Parameter::new("repeats", ParameterKind::Number(Range::closed(1.0, 1e12)), DefaultValue::Number(1.0));

/// The column that holds the exposures of the rows, if it is not their sum (mathematics 1g).
pub const EXPOSURE: Parameter = Parameter::new("exposure", ParameterKind::ColumnOrTotal, DefaultValue::Data);

/// The exposure of an average row of the data of a fit.
pub const MEAN_EXPOSURE: Parameter =
    Parameter::new("mean_exposure", ParameterKind::Number(Range::POSITIVE), DefaultValue::Number(1.0));

/// The word for the sum of a row, in place of a column.
pub const TOTAL: &str = "total";

/// The width of the rounding cells of each column (mathematics 10.5); 0 for none.
pub const RESOLUTION: Parameter = Parameter::new(
    "resolution",
    ParameterKind::NumberOrVector(Range { least: 0.0, greatest: 1e150, below: false }),
    DefaultValue::Data,
);

/// Largest integer parameter: components are indexed in 32 bits, and the last two values are reserved.
pub const LARGEST_INTEGER: u32 = u32::MAX - 1;

impl ParameterKind {
    /// An integer of at least `least`.
    pub const fn integer_from(least: u32) -> Self {
        Self::Integer { least, greatest: LARGEST_INTEGER }
    }

    /// Public name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Number(_) => "number",
            Self::NumberOrGamma(_) => "number or gamma",
            Self::NumberOrBeta(_) => "number or beta",
            Self::NumberOrVector(_) => "number or vector",
            Self::NumberOrMatrix(_) => "number or matrix",
            Self::Pair(_) => "pair",
            Self::Vector => "vector",
            Self::Matrix => "matrix",
            Self::VectorOrMatrix => "vector or matrix",
            Self::Integer { .. } => "integer",
            Self::Word(_) => "word",
            Self::Flag => "flag",
            Self::Blocks => "blocks",
            Self::ColumnOrTotal => "column or total",
        }
    }

    /// The range of its numbers, if it has numbers.
    pub fn range(self) -> Option<Range> {
        match self {
            Self::Number(range)
            | Self::NumberOrGamma(range)
            | Self::NumberOrBeta(range)
            | Self::NumberOrVector(range)
            | Self::Pair(range)
            | Self::NumberOrMatrix(range) => Some(range),
            _ => None,
        }
    }
}

impl Range {
    /// Positive numbers whose reciprocal and gamma function have finite logarithms.
    pub const POSITIVE: Self = Self::closed(1e-300, 1e300);
    /// Prior sample size of a precision, in rows. Beyond 1e9 rows rounding in float64 loses the data: the bound is a
    /// difference of terms of this size times their logarithms. At 1e9 it has an absolute error near 1e-5 nats per
    /// component, and at 1e15 no correct digits.
    pub const SURENESS: Self = Self::closed(1e-300, 1e9);

    /// A range that includes both ends.
    pub const fn closed(least: f64, greatest: f64) -> Self {
        Self { least, greatest, below: false }
    }

    /// A range that excludes `greatest`.
    pub const fn half_open(least: f64, greatest: f64) -> Self {
        Self { least, greatest, below: true }
    }

    /// The range of these numbers times a factor.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self { least: factor * self.least, greatest: factor * self.greatest, ..self }
    }

    /// Whether the range contains a number.
    pub fn has(self, value: f64) -> bool {
        value >= self.least && (value < self.greatest || (value == self.greatest && !self.below))
    }

    /// Description of the range, for error messages.
    pub fn allowed(self) -> String {
        let Self { least, greatest, below } = self;
        if below {
            format!("a number from {} on, below {}", shown(least), shown(greatest))
        } else {
            format!("a number from {} to {}", shown(least), shown(greatest))
        }
    }
}

/// Formats a limit briefly.
fn shown(limit: f64) -> String {
    if limit == 0.0 || (1e-3..1e9).contains(&limit.abs()) { limit.to_string() } else { format!("{limit:e}") }
}
