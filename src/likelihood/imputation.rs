//! Missing values of new rows, from the predictive distribution given the values that are there (mathematics 6.2).

use crate::error::Result;
use crate::laws::Law;
use crate::likelihood::{Laws, RowSource, row_by_row};
use crate::suffstats::Sufficient;

/// Means and variances, as [`Imputation::moments_given`](crate::likelihood::Imputation::moments_given).
pub fn moments_given(
    laws: &impl Laws,
    origin: &[f64],
    component: Sufficient<'_>,
    row: &[f64],
) -> Result<Option<(Vec<f64>, Vec<f64>)>> {
    let Some((missing, law)) = law_given(laws, origin, component, row)? else { return Ok(None) };
    let mut means: Vec<f64> = row.iter().zip(origin).map(|(x, o)| x + o).collect();
    let mut variances = vec![0.0; row.len()];
    let covariance = law.covariance();
    for (index, (&column, mean)) in missing.iter().zip(law.mean()).enumerate() {
        (means[column], variances[column]) = (mean, covariance[index * (missing.len() + 1)]);
    }
    Ok(Some((means, variances)))
}

/// Draws, as [`Imputation::source_given`](crate::likelihood::Imputation::source_given).
pub fn source_given<'a>(
    laws: &impl Laws,
    origin: &[f64],
    component: Sufficient<'_>,
    row: &[f64],
) -> Result<Option<RowSource<'a>>> {
    let Some((missing, law)) = law_given(laws, origin, component, row)? else { return Ok(None) };
    let d = row.len();
    let present: Vec<f64> = row.iter().zip(origin).map(|(x, o)| x + o).collect();
    Ok(Some(row_by_row(d, move |row, generator| {
        row.copy_from_slice(&present);
        let mut drawn = vec![f64::NAN; missing.len()];
        if law.draw(&mut drawn, generator).is_ok() {
            missing.iter().zip(drawn).for_each(|(&column, value)| row[column] = value);
        }
    })))
}

/// The missing columns of a row, if it has some and others, and their distribution given these.
fn law_given(
    laws: &impl Laws,
    origin: &[f64],
    component: Sufficient<'_>,
    row: &[f64],
) -> Result<Option<(Vec<usize>, Law)>> {
    let (missing, present): (Vec<usize>, Vec<usize>) = (0..row.len()).partition(|&column| row[column].is_nan());
    if missing.is_empty() || present.is_empty() {
        return Ok(None);
    }
    let values: Vec<f64> = present.iter().map(|&column| row[column] + origin[column]).collect();
    let (_, law) = laws.law(component, None)?.conditional(&missing, &present, &values)?;
    Ok(Some((missing, law)))
}
