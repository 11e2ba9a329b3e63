//! Named values, used to pass specifications to the core and results back.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::data::Exposure;
use crate::error::{Error, Result};
use crate::real::Plain;
use crate::registry::{DefaultValue, EXPOSURE, Entry, Parameter, ParameterKind, Range, TOTAL};

/// The value of one parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Value {
    /// Not given: the default depends on the data.
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
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Parameters(pub BTreeMap<String, Value>);

impl Parameters {
    /// Parameters from pairs.
    pub fn from_pairs<const N: usize>(pairs: [(&str, Value); N]) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// Returns the number called `name`, or `None` if it is absent.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if it is not a number or not finite.
    pub fn number(&self, name: &str) -> Result<Option<f64>> {
        match self.0.get(name) {
            None | Some(Value::Absent) => Ok(None),
            Some(Value::Number(value)) if value.is_finite() => Ok(Some(*value)),
            Some(other) => Err(Error::invalid(name, other, "a finite number")),
        }
    }

    /// As [`Parameters::number`], and checks a range.
    ///
    /// # Errors
    /// Also if it is out of range.
    pub fn number_within(&self, name: &str, range: Range) -> Result<Option<f64>> {
        self.number(name)?.map(|value| within(name, value, range)).transpose()
    }

    /// Returns the number called `parameter` after checking its range, or its default; `None` if the default depends on
    /// the data.
    ///
    /// # Errors
    /// As [`Parameters::number_within`], and if it is required and absent.
    pub fn given(&self, parameter: &Parameter) -> Result<Option<f64>> {
        let value = match parameter.kind.range() {
            Some(range) => self.number_within(parameter.name, range)?,
            None => self.number(parameter.name)?,
        };
        match (value, parameter.default) {
            (None, DefaultValue::Number(usual)) => Ok(Some(usual)),
            (None, DefaultValue::Required) => Err(Error::invalid(parameter.name, "absent", "given")),
            _ => Ok(value),
        }
    }

    /// Returns the integer called `parameter`, or its default.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if it is not an integer, out of range, or required and absent.
    pub fn integer(&self, parameter: &Parameter) -> Result<usize> {
        Self::required(parameter.name, self.optional_integer(parameter)?)
    }

    /// Returns the integer called `parameter`, or its default; `None` if the default depends on the data.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if it is not an integer, out of range, or required and absent.
    pub fn optional_integer(&self, parameter: &Parameter) -> Result<Option<usize>> {
        let ParameterKind::Integer { least, greatest } = parameter.kind else {
            unreachable!("{} is an integer", parameter.name)
        };
        let Some(value) = self.given(parameter)? else { return Ok(None) };
        if value.fract() == 0.0 && (f64::from(least)..=f64::from(greatest)).contains(&value) {
            return Ok(Some(value as usize));
        }
        let or_none = if parameter.default == DefaultValue::Data { ", or None" } else { "" };
        let allowed = format!("an integer from {least} to {greatest}{or_none}");
        Err(Error::invalid(parameter.name, Value::Number(value), allowed))
    }

    /// Returns the word called `parameter`, or its default; an empty string if it is optional and absent.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if it is not one of the allowed words.
    pub fn word<'a>(&'a self, parameter: &Parameter) -> Result<&'a str> {
        let ParameterKind::Word(words) = parameter.kind else { unreachable!("{} is a word", parameter.name) };
        let usual = if let DefaultValue::Word(usual) = parameter.default { usual } else { "" };
        let word = self.text(parameter.name, usual)?;
        if words.contains(&word) || (word.is_empty() && parameter.default == DefaultValue::Data) {
            return Ok(word);
        }
        let known: Vec<String> = words.iter().map(|known| format!("{known:?}")).collect();
        Err(Error::invalid(parameter.name, format!("{word:?}"), format!("one of {}", known.join(", "))))
    }

    /// Whether a parameter of an entry is this word, by choice or by default.
    pub fn has_word(&self, entry: &Entry, (name, word): (&str, &str)) -> bool {
        match self.0.get(name) {
            None | Some(Value::Absent) => entry
                .parameters
                .iter()
                .any(|one| one.name == name && matches!(one.default, DefaultValue::Word(usual) if usual == word)),
            Some(value) => matches!(value, Value::Text(chosen) if chosen == word),
        }
    }

    /// Returns the flag called `parameter`, or its default; 1 and 0 stand for true and false.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if it is neither.
    pub fn flag(&self, parameter: &Parameter) -> Result<bool> {
        match Self::required(parameter.name, self.given(parameter)?)? {
            value if value == 0.0 || value == 1.0 => Ok(value == 1.0),
            value => Err(Error::invalid(parameter.name, Value::Number(value), "True or False")),
        }
    }

    /// Returns the position of the column called `name`, or `None` if it is absent.
    fn column(&self, name: &str) -> Result<Option<usize>> {
        match self.0.get(name) {
            None | Some(Value::Absent) => Ok(None),
            Some(Value::Number(column)) if column.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(column) => {
                Ok(Some(*column as usize))
            }
            Some(other) => Err(Error::invalid(name, other, "the position of a column, from 0, or \"total\"")),
        }
    }

    /// Returns where the exposures of rows are, or `None` if rows have none.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if it is neither a position nor [`TOTAL`].
    pub fn exposure(&self) -> Result<Option<Exposure>> {
        match self.0.get(EXPOSURE.name) {
            Some(Value::Text(word)) if word == TOTAL => Ok(Some(Exposure::Total)),
            _ => Ok(self.column(EXPOSURE.name)?.map(Exposure::Column)),
        }
    }

    /// The same for rows with `n_columns` columns.
    ///
    /// # Errors
    /// Also for a position that is not that of a column, and for the only column.
    pub fn exposure_among(&self, n_columns: usize) -> Result<Option<Exposure>> {
        let found = self.exposure()?;
        match found.and_then(Exposure::column) {
            Some(column) if column >= n_columns => {
                let allowed = format!("a position from 0 to {}, or \"total\"", n_columns.saturating_sub(1));
                Err(Error::invalid(EXPOSURE.name, column, allowed))
            }
            Some(column) if n_columns == 1 => {
                Err(Error::invalid(EXPOSURE.name, format!("{column}, the only column"), "one of several columns"))
            }
            _ => Ok(found),
        }
    }

    /// Checks each parameter separately against its description, and refuses unknown parameters.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] naming the first invalid parameter.
    pub fn check(&self, entry: &Entry) -> Result<()> {
        let known: Vec<&str> = entry.parameters.iter().map(|parameter| parameter.name).collect();
        let is_unlisted = |name: &str| entry.unlisted.iter().any(|parameter| parameter.name == name);
        if let Some(name) = self.0.keys().find(|name| !known.contains(&name.as_str()) && !is_unlisted(name)) {
            return Err(Error::invalid(name, "given", format!("one of the parameters {}", known.join(", "))));
        }
        for parameter in entry.parameters.iter().chain(entry.unlisted) {
            let name = parameter.name;
            let given = self.0.get(name).unwrap_or(&Value::Absent);
            if parameter.default == DefaultValue::Required && *given == Value::Absent {
                return Err(Error::invalid(name, given, "given"));
            }
            let is_array = matches!(given, Value::Array { .. });
            match parameter.kind {
                ParameterKind::Number(_) => self.given(parameter).map(drop),
                ParameterKind::NumberOrGamma(_) | ParameterKind::NumberOrBeta(_) | ParameterKind::NumberOrMatrix(_)
                    if !is_array =>
                {
                    self.given(parameter).map(drop)
                }
                ParameterKind::NumberOrGamma(_) | ParameterKind::NumberOrBeta(_) | ParameterKind::Vector => {
                    self.vector(name).map(drop)
                }
                ParameterKind::Pair(_) => self.pair(parameter).map(drop),
                ParameterKind::NumberOrVector(_) => self.numbers(parameter, None).map(drop),
                ParameterKind::VectorOrMatrix if matches!(given, Value::Array { shape, .. } if shape.len() == 1) => {
                    self.vector(name).map(drop)
                }
                ParameterKind::NumberOrMatrix(_) | ParameterKind::Matrix | ParameterKind::VectorOrMatrix => {
                    self.square(name).map(drop)
                }
                ParameterKind::Integer { .. } => self.optional_integer(parameter).map(drop),
                ParameterKind::Word(_) => self.word(parameter).map(drop),
                ParameterKind::Flag => self.flag(parameter).map(drop),
                ParameterKind::Blocks => self.text(name, "").map(drop),
                ParameterKind::ColumnOrTotal if matches!(given, Value::Text(name) if !name.is_empty()) => Ok(()),
                ParameterKind::ColumnOrTotal => self.column(name).map(drop),
            }?;
        }
        Ok(())
    }

    /// Returns the vector called `name`, or `None` if it is absent.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if it is not a vector, empty or not finite.
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

    /// Returns the two numbers called `parameter` after checking their range, or `None` if they are absent.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if it is anything else.
    pub fn pair(&self, parameter: &Parameter) -> Result<Option<(f64, f64)>> {
        let ParameterKind::Pair(range) = parameter.kind else { unreachable!("{} is a pair", parameter.name) };
        match self.0.get(parameter.name) {
            None | Some(Value::Absent) => Ok(None),
            Some(Value::Array { data, .. }) if data.len() == 2 && data.iter().all(|&number| range.has(number)) => {
                Ok(Some((data[0], data[1])))
            }
            Some(other) => {
                let found = match other {
                    Value::Array { data, .. } if data.len() == 2 => format!("({}, {})", data[0], data[1]),
                    _ => other.to_string(),
                };
                let limits = range.allowed();
                let allowed = format!("two numbers {}, or None", limits.trim_start_matches("a number "));
                Err(Error::invalid(parameter.name, found, allowed))
            }
        }
    }

    /// Whether the value called `name` is absent.
    pub fn is_absent(&self, name: &str) -> bool {
        matches!(self.0.get(name), None | Some(Value::Absent))
    }

    /// A copy with the values in `others` added or replaced.
    #[must_use]
    pub fn with<const N: usize>(&self, others: [(&str, Value); N]) -> Self {
        let mut all = self.clone();
        all.0.extend(Self::from_pairs(others).0);
        all
    }

    /// Replaces all numbers of a parameter.
    pub fn map_numbers(&mut self, name: &str, of: impl Fn(f64) -> f64) {
        match self.0.get_mut(name) {
            Some(Value::Number(value)) => *value = of(*value),
            Some(Value::Array { data, .. }) => data.iter_mut().for_each(|value| *value = of(*value)),
            _ => {}
        }
    }

    /// Returns a value for each column, from one number for all columns or a vector with one for each, all in
    /// [`Range::POSITIVE`].
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if it is neither, or if the length of a vector differs from a known `d`.
    pub fn positives(&self, name: &str, d: Option<usize>) -> Result<Option<Vec<f64>>> {
        self.numbers_within(name, d, Range::POSITIVE)
    }

    /// The same for a parameter with its own range.
    ///
    /// # Errors
    /// As [`Parameters::positives`].
    pub fn numbers(&self, parameter: &Parameter, d: Option<usize>) -> Result<Option<Vec<f64>>> {
        let range = parameter.kind.range().unwrap_or(Range::POSITIVE);
        self.numbers_within(parameter.name, d, range)
    }

    fn numbers_within(&self, name: &str, d: Option<usize>, range: Range) -> Result<Option<Vec<f64>>> {
        let values = match self.0.get(name) {
            Some(Value::Array { .. }) => self.vector(name)?.map(<[f64]>::to_vec),
            _ => self.number(name)?.map(|value| vec![value; d.unwrap_or(1)]),
        };
        let Some(values) = values else { return Ok(None) };
        for &value in &values {
            within(name, value, range)?;
        }
        match d {
            Some(d) if values.len() != d => {
                let allowed = format!("a number or of size {d}, the number of columns of the data");
                Err(Error::invalid(name, format!("of size {}", values.len()), allowed))
            }
            _ => Ok(Some(values)),
        }
    }

    /// The same for integers from 1 to `greatest`.
    ///
    /// # Errors
    /// As [`Parameters::positives`].
    pub fn integers(&self, name: &str, d: Option<usize>, greatest: u32) -> Result<Option<Vec<u32>>> {
        let Some(values) = self.positives(name, d)? else { return Ok(None) };
        let is_allowed = |value: f64| value.fract() == 0.0 && (1.0..=f64::from(greatest)).contains(&value);
        match values.iter().find(|value| !is_allowed(**value)) {
            Some(&value) => Err(Error::invalid(name, Value::Number(value), format!("integers from 1 to {greatest}"))),
            None => Ok(Some(values.into_iter().map(|value| value as u32).collect())),
        }
    }

    /// Returns the vector called `name` with `d` numbers, one per column of the data.
    ///
    /// # Errors
    /// As [`Parameters::vector`], and if its length differs.
    pub fn vector_of(&self, name: &str, d: usize) -> Result<Option<&[f64]>> {
        match self.vector(name)? {
            Some(values) if values.len() != d => {
                let allowed = format!("of size {d}, the number of columns of the data");
                Err(Error::invalid(name, format!("of size {}", values.len()), allowed))
            }
            values => Ok(values),
        }
    }

    /// Unwraps a value that complete parameters must have.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if it is absent.
    pub fn required<T>(name: &str, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| Error::invalid(name, "absent", "given"))
    }

    /// Returns the square matrix called `name` and its size, or `None` if it is absent.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if it is not a square matrix, empty or not finite.
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

    /// Returns the word called `name`, or `default` if it is absent.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if it is not a word.
    pub fn text<'a>(&'a self, name: &str, default: &'a str) -> Result<&'a str> {
        match self.0.get(name) {
            None | Some(Value::Absent) => Ok(default),
            Some(Value::Text(word)) => Ok(word),
            Some(other) => Err(Error::invalid(name, other, "a word")),
        }
    }
}

/// Smallest limit that a user is told for a number that is not above zero.
const LEAST_SHOWN: f64 = 1e-3;

/// Refuses a number that is out of range.
fn within(name: &str, value: f64, range: Range) -> Result<f64> {
    if range.has(value) {
        return Ok(value);
    }
    // Limits near zero only protect float64.
    let is_positive = range.least > 0.0 && range.least < LEAST_SHOWN;
    let allowed = if is_positive && value <= 0.0 { "greater than 0".to_owned() } else { range.allowed() };
    Err(Error::invalid(name, Value::Number(value), allowed))
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Absent => write!(f, "absent"),
            Self::Number(value) => write!(f, "{}", Plain(*value)),
            Self::Text(word) => write!(f, "{word:?}"),
            Self::Array { shape, data } => {
                let finite = if data.iter().all(|x| x.is_finite()) { "" } else { " with values that are not finite" };
                write!(f, "an array of shape {}{finite}", Shape(shape))
            }
        }
    }
}

/// A shape as NumPy writes it: (3,) and (2, 3).
struct Shape<'a>(&'a [usize]);

impl std::fmt::Display for Shape<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            [length] => write!(f, "({length},)"),
            sizes => write!(f, "({})", sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_as_python_writes_them() {
        let shown = |value: Value| value.to_string();
        assert_eq!(shown(vector(vec![1.0, 2.0, 3.0])), "an array of shape (3,)");
        assert_eq!(shown(table(2, vec![1.0; 6])), "an array of shape (3, 2)");
        assert_eq!(shown(Value::Number(0.25)), "0.25");
        assert_eq!(shown(Value::Number(-5e-324)), "-5e-324");
        assert_eq!(shown(Value::Number(1e308)), "1e308");
    }

    #[test]
    fn positive_numbers_have_limits() {
        let of = |value: f64| Parameters::from_pairs([("x", Value::Number(value))]).number_within("x", Range::POSITIVE);
        for refused in [0.0, -1.0, 5e-324, 1e-301, 1e301, f64::NAN, f64::INFINITY] {
            assert!(of(refused).is_err(), "{refused}");
        }
        for taken in [1e-300, 1.0, 1e300] {
            assert_eq!(of(taken), Ok(Some(taken)));
        }
    }

    /// For each kind of parameter, one value that is refused and one that is accepted.
    #[test]
    fn parameters_are_checked_by_their_kind() {
        let word = |word: &str| Value::Text(word.to_owned());
        let (two, half) = (vector(vec![1.0, 2.0]), Value::Number(0.5));
        let (square, flat) = (table(2, vec![1.0; 4]), table(2, vec![1.0; 6]));
        for (kind, refused, taken) in [
            (ParameterKind::Number(Range::half_open(0.0, 1.0)), Value::Number(1.0), half.clone()),
            (ParameterKind::NumberOrGamma(Range::POSITIVE), square.clone(), two.clone()),
            (ParameterKind::NumberOrVector(Range::POSITIVE), vector(vec![1.0, -2.0]), two.clone()),
            (ParameterKind::NumberOrMatrix(Range::POSITIVE), flat.clone(), square.clone()),
            (ParameterKind::Vector, half.clone(), two),
            (ParameterKind::Matrix, flat, square),
            (ParameterKind::integer_from(1), half, Value::Number(3.0)),
            (ParameterKind::Word(&["a", "b"]), word("c"), word("b")),
            (ParameterKind::Flag, Value::Number(2.0), Value::Number(0.0)),
        ] {
            let default = if matches!(kind, ParameterKind::Word(_)) {
                DefaultValue::Word("a")
            } else {
                DefaultValue::Number(1.0)
            };
            let parameters: &'static [Parameter] = Box::leak(Box::new([Parameter::new("x", kind, default)]));
            let entry = Entry { parameters, ..Entry::new("Any") };
            let check = |name: &str, value: &Value| Parameters::from_pairs([(name, value.clone())]).check(&entry);
            assert!(check("x", &refused).is_err(), "{kind:?} {refused}");
            assert_eq!(check("x", &taken), Ok(()), "{kind:?}");
            assert_eq!(check("x", &Value::Absent), Ok(()), "{kind:?}");
            assert!(check("y", &taken).is_err_and(|error| error.to_string().contains("parameters x")));
        }
        let required = [Parameter::new("x", ParameterKind::Vector, DefaultValue::Required)];
        let entry = Entry { parameters: Box::leak(Box::new(required)), ..Entry::new("Any") };
        assert!(Parameters::default().check(&entry).is_err());
    }
}
