//! The concentration of a process: a number or a Gamma prior.

use crate::error::{Error, Result};
use crate::parameters::{Parameters, Value};
use crate::process::Gamma;
use crate::registry::{DefaultValue, Parameter, ParameterKind, Range};

/// Default concentration.
pub(super) const USUAL: f64 = 1.0;

/// The parameter shared by all processes whose concentration is positive.
pub(super) const CONCENTRATION: Parameter =
    Parameter::new("concentration", ParameterKind::NumberOrGamma(Range::POSITIVE), DefaultValue::Number(USUAL));

const NAME: &str = CONCENTRATION.name;

/// The concentration, which controls the expected number of components.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Concentration {
    /// Known value.
    Fixed(f64),
    /// Prior of an unknown value.
    Unknown(Gamma),
}

impl Concentration {
    /// Reads the parameter `concentration`: a positive number, or the shape and the rate of its prior.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if it is neither.
    pub fn new(parameters: &Parameters) -> Result<Self> {
        Self::of(parameters, &CONCENTRATION)
    }

    /// As [`Concentration::new`], for a parameter with another name.
    pub fn of(parameters: &Parameters, parameter: &Parameter) -> Result<Self> {
        let name = parameter.name;
        if !matches!(parameters.0.get(name), Some(Value::Array { .. })) {
            return Parameters::required(name, parameters.given(parameter)?).map(Self::Fixed);
        }
        match parameters.vector(name)? {
            Some(&[shape, rate]) => Gamma::new(shape, rate).map(Self::Unknown),
            _ => Err(Error::invalid(name, &parameters.0[name], "a number, or a shape and a rate")),
        }
    }

    /// Returns the number.
    ///
    /// # Errors
    /// [`Error::NotSupported`] if it has a prior; `why` is the reason given.
    pub fn fixed(self, process: &str, why: &str) -> Result<f64> {
        match self {
            Self::Fixed(value) => Ok(value),
            Self::Unknown(_) => {
                let found = format!("a Gamma prior on the concentration of {process}");
                Err(Error::not_supported(NAME, found, why, "a number"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::vector;

    #[test]
    fn a_concentration_is_a_number_or_a_shape_and_a_rate() {
        let of = |value: Value| Concentration::new(&Parameters::from_pairs([(NAME, value)]));
        assert_eq!(of(Value::Absent), Ok(Concentration::Fixed(1.0)));
        assert_eq!(of(Value::Number(2.5)), Ok(Concentration::Fixed(2.5)));
        assert_eq!(of(vector(vec![2.0, 3.0])), Ok(Concentration::Unknown(Gamma { shape: 2.0, rate: 3.0 })));
        for refused in [Value::Number(0.0), vector(vec![1.0]), vector(vec![1.0, 2.0, 3.0]), Value::Text("two".into())] {
            assert!(matches!(of(refused.clone()), Err(Error::InvalidArgument { argument, .. }) if argument == NAME));
        }
        let refused = of(vector(vec![1.0, -2.0]));
        assert!(matches!(refused, Err(Error::InvalidArgument { argument, .. }) if argument == "rate"));
    }
}
