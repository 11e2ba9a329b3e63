//! A Beta prior on a discount.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::parameters::{Parameters, Value};
use crate::registry::{DefaultValue, Entry, Parameter, ParameterKind, Range};
use crate::special::ln_beta;

/// Beta(a, b), with the mean a / (a + b).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BetaPrior {
    /// Exponent of x plus one.
    pub a: f64,
    /// Exponent of 1 - x plus one.
    pub b: f64,
}

const RANGE: Range = Range::closed(1e-3, 1e6);

impl BetaPrior {
    /// Entry in the registry.
    pub const ENTRY: Entry = Entry {
        parameters: &[
            Parameter::new("a", ParameterKind::Number(RANGE), DefaultValue::Required),
            Parameter::new("b", ParameterKind::Number(RANGE), DefaultValue::Required),
        ],
        ..Entry::new("Beta")
    };

    /// Builds the prior from both parameters.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] naming the parameter that is out of its range.
    pub fn new(a: f64, b: f64) -> Result<Self> {
        let both = Parameters::from_pairs([("a", Value::Number(a)), ("b", Value::Number(b))]);
        Self::ENTRY.parameters.iter().try_for_each(|parameter| both.given(parameter).map(|_| ()))?;
        Ok(Self { a, b })
    }

    /// E x.
    pub fn mean(self) -> f64 {
        self.a / (self.a + self.b)
    }

    /// The standard deviation.
    pub fn deviation(self) -> f64 {
        (self.mean() * (1.0 - self.mean()) / (self.a + self.b + 1.0)).sqrt()
    }

    /// The log density, nats.
    pub fn log_density(self, x: f64) -> f64 {
        (self.a - 1.0) * x.ln() + (self.b - 1.0) * (-x).ln_1p() - ln_beta(self.a, self.b)
    }
}

/// A discount: a number or a prior.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Discount {
    /// Known value.
    Fixed(f64),
    /// Prior of an unknown value.
    Unknown(BetaPrior),
}

/// The parameter shared by all processes with a discount.
pub(super) const DISCOUNT: Parameter =
    Parameter::new(Discount::NAME, ParameterKind::NumberOrBeta(Range::half_open(0.0, 1.0)), DefaultValue::Required);

impl Discount {
    /// The name of the parameter.
    pub(super) const NAME: &str = "discount";
    /// Range of a learned discount.
    pub(super) const LIMITS: (f64, f64) = (1e-6, 1.0 - 1e-6);

    /// Reads the parameter: a number in its range, or both parameters of its prior.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if it is neither.
    pub fn new(parameters: &Parameters, parameter: &Parameter) -> Result<Self> {
        let name = parameter.name;
        if !matches!(parameters.0.get(name), Some(Value::Array { .. })) {
            return Parameters::required(name, parameters.given(parameter)?).map(Self::Fixed);
        }
        match parameters.vector(name)? {
            Some(&[a, b]) => BetaPrior::new(a, b).map(Self::Unknown),
            _ => Err(Error::invalid(name, &parameters.0[name], "a number, or both parameters of a Beta prior")),
        }
    }
}
