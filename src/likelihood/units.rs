//! Conversion of parameters and estimates between the data's columns and reduced coordinates, by the measures in the
//! registry.

use crate::data::{Coordinates, Dependent};
use crate::error::{Error, Result};
use crate::likelihood::layout::{Member, forget_kept, keep, members};
use crate::linalg::cholesky;
use crate::parameters::{Parameters, Value, table, vector};
use crate::registry::{Entry, Measure, Measured};

/// Variance shown in directions in which the data do not vary, as a fraction of the variance elsewhere. It keeps shown
/// matrices and vectors positive, so that they can be given as parameters again.
const SHOWN: f64 = 1e-9;
/// The variance of a residual keeps few digits beside that of its column if it is a smaller part of it.
const LOST: f64 = 1e-13;
/// A given parameter leaves a direction out if its variance there is at most this fraction.
const THIN: f64 = 1e-6;

/// The parameters that are present, as pairs of measure and value.
fn measured<'a>(
    entry: &'a Entry,
    chosen: &'a Parameters,
    values: &'a Parameters,
) -> impl Iterator<Item = (&'a Measured, &'a Value)> {
    let holds = |measured: &&Measured| match measured.only {
        None => true,
        Some(word) => chosen.has_word(entry, word),
    };
    entry.measures.iter().filter(holds).filter_map(|measured| {
        // A word has no unit.
        let value = values.0.get(measured.name).filter(|value| !matches!(value, Value::Absent | Value::Text(_)))?;
        Some((measured, value))
    })
}

/// Whether given parameters let rows vary in a direction that the coordinates leave out. Parameters returned by
/// [`of_data`] do not.
pub fn fills_directions(entry: &Entry, given: &Parameters, coordinates: &Coordinates) -> bool {
    let d = coordinates.n_columns();
    let fills = |(measured, value): (&Measured, &Value)| match (measured.measure, value) {
        (Measure::Squares | Measure::Products, _) if coordinates.is_full() => true,
        (Measure::Squares, Value::Array { data, .. }) if data.len() == d => is_filled(data, coordinates, 0),
        (Measure::Products, Value::Array { data, .. }) if data.len() == d * d => is_filled(data, coordinates, d),
        (measure, _) => matches!(measure, Measure::Squares | Measure::Products),
    };
    measured(entry, given, given).any(fills)
}

/// Whether squares are more than negligible in the left-out directions; `stride` as in `fill`.
fn is_filled(squares: &[f64], coordinates: &Coordinates, stride: usize) -> bool {
    let total: f64 = coordinates.kept().iter().map(|j| squares[j * (stride + 1)]).sum();
    let mean = total / coordinates.rank() as f64;
    let constant = |j: usize| squares[j * (stride + 1)] > THIN * mean;
    let has_square = |dependent: &Dependent| {
        let mut along = vec![0.0; stride];
        dependent.slopes.iter().zip(coordinates.kept()).for_each(|(slope, &p)| along[p] = -slope);
        along[dependent.column] = 1.0;
        let product = |row: &[f64]| row.iter().zip(&along).map(|(value, x)| value * x).sum::<f64>();
        let square: f64 = squares.chunks_exact(stride).zip(&along).map(|(row, x)| x * product(row)).sum();
        square > THIN * squares[dependent.column * (stride + 1)]
    };
    coordinates.constants().iter().any(|&j| constant(j)) || coordinates.dependents().iter().any(has_square)
}

/// Returns the log Jacobian of the change from coordinates to the data's columns: what the log density of one
/// component's parameters gains.
///
/// # Errors
/// [`Error::InvalidArgument`] for an unknown likelihood.
pub fn log_jacobian(name: &str, chosen: &Parameters, coordinates: &Coordinates) -> Result<f64> {
    let of = |member: &Member| {
        let own = member.coordinates(coordinates);
        if own.rank() == 0 { 0.0 } else { log_jacobian_of(member.entry, &member.parameters(chosen), &own) }
    };
    Ok(members(name, chosen)?.iter().map(of).sum())
}

fn log_jacobian_of(entry: &Entry, chosen: &Parameters, coordinates: &Coordinates) -> f64 {
    let (volume, r) = (coordinates.log_units(), coordinates.rank() as f64);
    let of = |(measured, _): (&Measured, &Value)| match measured.measure {
        _ if !entry.parameters.iter().any(|parameter| parameter.name == measured.name) => 0.0,
        Measure::Place => -volume,
        Measure::Products => (r + 1.0) * volume,
        Measure::Squares => 2.0 * volume,
        Measure::Square => 2.0 * volume / r,
        _ => 0.0,
    };
    measured(entry, chosen, chosen).map(of).sum()
}

/// Converts parameters from the user's columns to coordinates.
///
/// # Errors
/// [`Error::InvalidArgument`] naming a parameter whose size does not match the data.
pub fn in_coordinates(name: &str, given: &Parameters, coordinates: &Coordinates) -> Result<Parameters> {
    if coordinates.is_identity() {
        return Ok(given.clone());
    }
    let mut all = given.clone();
    for member in members(name, given)? {
        let own = member.coordinates(coordinates);
        if own.rank() > 0 {
            member.put(&mut all, lowered(member.entry, &member.parameters(given), &own)?);
        }
        if member.columns.is_some() {
            keep(&mut all, coordinates);
        }
    }
    Ok(all)
}

/// [`in_coordinates`] for parameters of one entry.
///
/// # Errors
/// As [`in_coordinates`].
pub fn lowered(entry: &Entry, given: &Parameters, coordinates: &Coordinates) -> Result<Parameters> {
    let d = coordinates.n_columns();
    let n_lost = (d - coordinates.rank()) as f64;
    let power = coordinates.common_unit().powi(2);
    let mut all = given.clone();
    for (Measured { name, measure, .. }, value) in measured(entry, given, given) {
        let squares = i32::from(*measure == Measure::Squares) + 1;
        let converted = match (measure, value) {
            (Measure::Place, _) => given.vector_of(name, d)?.map(|values| vector(coordinates.lower_row(values))),
            (Measure::Lengths | Measure::Squares, Value::Number(number)) => {
                Some(if *number == 0.0 { value.clone() } else { vector(coordinates.lower(&vec![*number; d], squares)) })
            }
            (Measure::Lengths | Measure::Squares, Value::Array { shape, data }) if shape == &[d] => {
                Some(vector(coordinates.lower(data, squares)))
            }
            (Measure::Lengths | Measure::Squares, Value::Array { shape, .. }) if shape.len() == 1 => {
                let allowed = format!("a number or of size {d}, the number of columns of the data");
                return Err(Error::invalid(*name, format!("of size {}", shape[0]), allowed));
            }
            (Measure::Square, Value::Number(number)) => Some(Value::Number(number / power)),
            (Measure::InverseSquare, Value::Number(number)) => Some(Value::Number(number * power)),
            (Measure::Products, _) => match given.square(name)? {
                Some((size, _)) if size != d => {
                    let allowed = format!("of size {d}, the number of columns of the data");
                    return Err(Error::invalid(*name, format!("of size {size}"), allowed));
                }
                Some((_, data)) => Some(table(coordinates.rank(), lowered_matrix(name, data, coordinates)?)),
                None => None,
            },
            (Measure::Dof, Value::Number(number)) if *number <= d as f64 - 1.0 => {
                let allowed = format!("greater than D - 1 = {}", d - 1);
                return Err(Error::invalid(*name, value, allowed));
            }
            (Measure::Dof, Value::Number(number)) => Some(Value::Number(number - n_lost)),
            // A word, or a value that the likelihood refuses later.
            _ => None,
        };
        if let Some(converted) = converted {
            all.0.insert((*name).to_owned(), converted);
        }
    }
    Ok(all)
}

/// A matrix of the data's columns in coordinates.
///
/// # Errors
/// [`Error::InvalidArgument`] if the variance of a residual is lost among the digits of that of its column.
fn lowered_matrix(name: &str, matrix: &[f64], coordinates: &Coordinates) -> Result<Vec<f64>> {
    let (d, r) = (coordinates.n_columns(), coordinates.rank());
    let lowered = coordinates.lower_matrix(matrix);
    let column_of = |place: usize| coordinates.kept()[place];
    let is_residual = |place: &usize| coordinates.residuals().iter().any(|one| one.column == column_of(*place));
    let is_lost = |place: &usize| {
        let square = lowered[place * (r + 1)] * coordinates.units()[*place].powi(2);
        square < LOST * matrix[column_of(*place) * (d + 1)]
    };
    match (0..r).filter(is_residual).find(is_lost) {
        None => Ok(lowered),
        Some(place) => {
            let column = column_of(place);
            let found = format!("a matrix in whose digits what column {column} has beyond the others is lost");
            let allowed = format!("None, or data with a difference in place of column {column}");
            Err(Error::invalid(name, found, allowed))
        }
    }
}

/// Converts complete parameters from coordinates to the data's columns, in the form that [`in_coordinates`] accepts.
///
/// # Errors
/// [`Error::InvalidArgument`] for an unknown likelihood.
pub fn of_data(name: &str, parameters: &Parameters, coordinates: &Coordinates) -> Result<Parameters> {
    let mut all = parameters.clone();
    for member in members(name, parameters)? {
        let own = member.coordinates(coordinates);
        if own.rank() > 0 {
            member.put(&mut all, of_data_of(member.entry, &member.parameters(parameters), &own));
        }
    }
    forget_kept(&mut all);
    Ok(all)
}

fn of_data_of(entry: &Entry, parameters: &Parameters, coordinates: &Coordinates) -> Parameters {
    let n_lost = (coordinates.n_columns() - coordinates.rank()) as f64;
    let mut all = raised(entry, parameters, parameters, coordinates);
    for (Measured { name, measure, .. }, value) in measured(entry, parameters, parameters) {
        match (measure, all.0.get_mut(*name), value) {
            (Measure::Dof, Some(Value::Number(shown)), Value::Number(number)) => *shown = number + n_lost,
            (Measure::Products, Some(Value::Array { data, .. }), _) => {
                fill(data, coordinates, coordinates.n_columns());
                if !coordinates.residuals().is_empty() {
                    make_positive_definite(data, coordinates.n_columns());
                }
            }
            (Measure::Squares, Some(Value::Array { data, .. }), _) => fill(data, coordinates, 0),
            _ => {}
        }
    }
    all
}

/// Makes squares positive in the left-out directions. `stride`: size of a matrix that has the squares on its diagonal,
/// or 0 for a vector.
fn fill(squares: &mut [f64], coordinates: &Coordinates, stride: usize) {
    let total: f64 = coordinates.kept().iter().map(|j| squares[j * (stride + 1)]).sum();
    let mean = total / coordinates.rank() as f64;
    for &j in coordinates.constants() {
        squares[j * (stride + 1)] = SHOWN * mean;
    }
    for dependent in coordinates.dependents() {
        squares[dependent.column * (stride + 1)] *= 1.0 + SHOWN;
    }
}

/// Raises the diagonal where the variance of a residual is lost among the digits of those of the columns.
fn make_positive_definite(matrix: &mut [f64], d: usize) {
    let mut share = f64::EPSILON;
    while let Err(failure) = cholesky(d, &mut matrix.to_vec()) {
        if share > SHOWN {
            return;
        }
        matrix[failure.pivot * (d + 1)] *= 1.0 + share;
        share *= 2.0;
    }
}

/// Converts parameters or estimates of K components from coordinates to the data's columns. `chosen`: the parameters of
/// the likelihood. Matrices are singular in the left-out directions.
///
/// # Errors
/// [`Error::InvalidArgument`] for an unknown likelihood.
pub fn components_of_data(
    name: &str,
    chosen: &Parameters,
    values: &Parameters,
    coordinates: &Coordinates,
) -> Result<Parameters> {
    let mut all = values.clone();
    for member in members(name, chosen)? {
        let own = member.coordinates(coordinates);
        if own.rank() > 0 {
            let (chosen, values) = (member.parameters(chosen), member.parameters(values));
            member.put(&mut all, raised(member.entry, &chosen, &values, &own));
        }
    }
    Ok(all)
}

/// [`components_of_data`] for values of one entry.
pub fn raised(entry: &Entry, chosen: &Parameters, values: &Parameters, coordinates: &Coordinates) -> Parameters {
    let mut all = values.clone();
    if coordinates.is_identity() {
        return all;
    }
    let (d, r) = (coordinates.n_columns(), coordinates.rank());
    let power = coordinates.common_unit().powi(2);
    for (Measured { name, measure, .. }, value) in measured(entry, chosen, values) {
        let each = |factor: f64| match value {
            Value::Number(number) => Value::Number(number * factor),
            Value::Array { shape, data } => {
                Value::Array { shape: shape.clone(), data: data.iter().map(|value| value * factor).collect() }
            }
            other => other.clone(),
        };
        let by_axes = |axes: usize, raise: &dyn Fn(&[f64]) -> Vec<f64>| match value {
            Value::Array { shape, data } => {
                let mut shape = shape.clone();
                let first = shape.len().saturating_sub(axes);
                shape[first..].fill(d);
                let size = r.pow(axes as u32);
                Value::Array { shape, data: data.chunks_exact(size).flat_map(raise).collect() }
            }
            other => other.clone(),
        };
        let raised = match measure {
            Measure::Place => by_axes(1, &|row| coordinates.raise(row)),
            Measure::Lengths => by_axes(1, &|row| coordinates.raise_by(row, 1)),
            Measure::Squares => by_axes(1, &|row| coordinates.raise_by(row, 2)),
            Measure::Products => by_axes(2, &|matrix| coordinates.raise_matrix(matrix)),
            Measure::Square => each(power),
            Measure::InverseSquare => each(power.recip()),
            Measure::Shared if matches!(value, Value::Array { shape, .. } if shape.len() == 2) => {
                by_axes(1, &|row| coordinates.raise_by(row, 0))
            }
            Measure::Dof | Measure::Shared => continue,
        };
        all.0.insert((*name).to_owned(), raised);
    }
    all
}
