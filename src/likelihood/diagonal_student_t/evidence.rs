//! Estimation of the base measure and of the tail by evidence, as for independent normal columns but with sums over
//! scales (mathematics 10.3 and 10.11).

use crate::error::Result;
use crate::likelihood::diagonal_student_t::DiagonalStudentT;
use crate::likelihood::evidence::{Caution, Evidence, Given, Loosening};
use crate::likelihood::student_t::COVARIANCE;
use crate::likelihood::wishart::TAIL_DOF;
use crate::parameters::{Parameters, Value};

/// The parameters that a normal column calls otherwise, which are twice as large here.
const NAMES: [(&str, &str); 2] = [("dof", "shape"), ("scale", "rate")];

/// Parameters as those of normal columns.
fn of_normal(parameters: &Parameters) -> Parameters {
    let mut own = parameters.clone();
    own.0.remove(TAIL_DOF);
    own.0.remove(COVARIANCE.name);
    for (ours, theirs) in NAMES {
        own.map_numbers(ours, |value| 0.5 * value);
        let value = own.0.remove(ours).unwrap_or(Value::Absent);
        own.0.insert(theirs.to_owned(), value);
    }
    own
}

/// Calls `estimate` with what is given in the names of normal columns, and returns parameters with what it finds.
fn with_names_of_normal(
    given: &Given<'_>,
    estimate: impl FnOnce(&Given<'_>) -> Result<Option<Parameters>>,
) -> Result<Option<Parameters>> {
    let (parameters, start) = (of_normal(given.parameters), of_normal(given.start));
    let theirs =
        |name: &String| NAMES.iter().find(|(ours, _)| ours == name).map_or(name.clone(), |(_, n)| (*n).to_owned());
    let free: Vec<String> = given.free.iter().map(theirs).collect();
    let inner = Given { parameters: &parameters, start: &start, free: &free, ..*given };
    let Some(mut found) = estimate(&inner)? else { return Ok(None) };
    let mut all = given.parameters.clone();
    for (ours, theirs) in [("mean_precision", "mean_precision")].into_iter().chain(NAMES) {
        if given.is_free(ours) {
            found.map_numbers(theirs, |value| if ours == theirs { value } else { 2.0 * value });
            all.0.insert(ours.to_owned(), found.0.remove(theirs).unwrap_or(Value::Absent));
        }
    }
    Ok(Some(all))
}

impl Evidence for DiagonalStudentT {
    fn cautions(&self) -> Vec<(String, Caution)> {
        vec![("dof".to_owned(), Caution::Kept), ("mean_precision".to_owned(), Caution::Capped)]
    }

    fn divergence_of(&self, start: &Parameters) -> Result<f64> {
        self.normal.divergence_of(&of_normal(start))
    }

    fn estimate(&self, given: &Given<'_>) -> Result<Parameters> {
        let found = with_names_of_normal(given, |inner| self.normal.estimate(inner).map(Some))?;
        let found = found.unwrap_or_else(|| given.parameters.clone());
        let occupied = given.occupied();
        if occupied.is_empty() || !given.is_free(TAIL_DOF) {
            return Ok(found);
        }
        Ok(found.with([(TAIL_DOF, Value::Number(self.tail.estimate(&occupied)))]))
    }

    fn loose(&self, given: &Given<'_>, by: Loosening<'_>) -> Result<Option<Parameters>> {
        with_names_of_normal(given, |inner| self.normal.loose(inner, by))
    }
}
