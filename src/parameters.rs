//! Named values: how a specification reaches the core and how results leave it.

use std::collections::BTreeMap;

use crate::error::{Error, Result};

/// The value of one parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Not given: follows the data.
    Absent,
    /// A number.
    Number(f64),
    /// A word.
    Text(String),
    /// An array in row-major order.
    Array {
        /// Its shape.
        shape: Vec<usize>,
        /// Its values.
        data: Vec<f64>,
    },
}

/// Parameters by name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Parameters(pub BTreeMap<String, Value>);

impl Parameters {
    /// Parameters from pairs.
    pub fn from_pairs<const N: usize>(pairs: [(&str, Value); N]) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// Refuses names that are not in `known`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] naming the first unknown one.
    pub fn only(&self, known: &[&str]) -> Result<()> {
        match self.0.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => Err(Error::invalid(name, "given", format!("one of the parameters {}", known.join(", ")))),
        }
    }

    /// The number called `name`, `None` where it is absent.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where it is something else or not finite.
    pub fn number(&self, name: &str) -> Result<Option<f64>> {
        match self.0.get(name) {
            None | Some(Value::Absent) => Ok(None),
            Some(Value::Number(value)) if value.is_finite() => Ok(Some(*value)),
            Some(other) => Err(Error::invalid(name, other, "a finite number")),
        }
    }

    /// As [`Parameters::number`], and greater than `lower`.
    ///
    /// # Errors
    /// Also where it is not.
    pub fn number_above(&self, name: &str, lower: f64) -> Result<Option<f64>> {
        match self.number(name)? {
            Some(value) if value <= lower => Err(Error::invalid(name, value, format!("greater than {lower}"))),
            value => Ok(value),
        }
    }

    /// The vector called `name`, `None` where it is absent.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where it is something else, empty or not finite.
    pub fn vector(&self, name: &str) -> Result<Option<&[f64]>> {
        match self.0.get(name) {
            None | Some(Value::Absent) => Ok(None),
            Some(Value::Array { shape, data })
                if shape.len() == 1 && !data.is_empty() && data.iter().all(|x| x.is_finite()) =>
            {
                Ok(Some(data))
            }
            Some(other) => Err(Error::invalid(name, other, "a vector of finite numbers, shape (D,)")),
        }
    }

    /// The square matrix called `name` and its size, `None` where it is absent.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where it is something else, empty or not finite.
    pub fn square(&self, name: &str) -> Result<Option<(usize, &[f64])>> {
        match self.0.get(name) {
            None | Some(Value::Absent) => Ok(None),
            Some(Value::Array { shape, data })
                if shape.len() == 2
                    && shape[0] == shape[1]
                    && !data.is_empty()
                    && data.iter().all(|x| x.is_finite()) =>
            {
                Ok(Some((shape[0], data)))
            }
            Some(other) => Err(Error::invalid(name, other, "a square matrix of finite numbers, shape (D, D)")),
        }
    }

    /// The word called `name`, or `default` where it is absent.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where it is something else.
    pub fn text<'a>(&'a self, name: &str, default: &'a str) -> Result<&'a str> {
        match self.0.get(name) {
            None | Some(Value::Absent) => Ok(default),
            Some(Value::Text(word)) => Ok(word),
            Some(other) => Err(Error::invalid(name, other, "a word")),
        }
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Absent => write!(f, "absent"),
            Self::Number(value) => write!(f, "{value}"),
            Self::Text(word) => write!(f, "{word:?}"),
            Self::Array { shape, data } => {
                let finite = if data.iter().all(|x| x.is_finite()) { "" } else { " with values that are not finite" };
                write!(f, "an array of shape {shape:?}{finite}")
            }
        }
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

/// A vector as a parameter.
pub fn vector(data: Vec<f64>) -> Value {
    Value::Array { shape: vec![data.len()], data }
}

/// A table with `columns` columns as a parameter.
pub fn table(columns: usize, data: Vec<f64>) -> Value {
    Value::Array { shape: vec![data.len() / columns, columns], data }
}
