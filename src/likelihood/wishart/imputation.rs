//! Missing values of the Gaussians with a (Normal-)Wishart base measure: moments and draws of those of new rows
//! (mathematics 6.2).

use crate::error::Result;
use crate::laws::Law;
use crate::likelihood::wishart::model::NormalWishartModel;
use crate::likelihood::{Imputation, Laws, RowSource, row_by_row};
use crate::suffstats::Sufficient;

/// Moments of the missing values of a row, from the predictive distribution given the others.
impl<M: NormalWishartModel> Imputation for M {
    fn predictive_moments(&self, component: Sufficient<'_>) -> Result<(Vec<f64>, Vec<f64>)> {
        let (law, d) = (self.law(component, None)?, NormalWishartModel::origin(self).len());
        Ok((law.mean(), law.covariance().into_iter().step_by(d + 1).collect()))
    }

    fn moments_given(&self, component: Sufficient<'_>, row: &[f64]) -> Result<Option<(Vec<f64>, Vec<f64>)>> {
        let Some((missing, law)) = law_given(self, component, row)? else { return Ok(None) };
        let origin = NormalWishartModel::origin(self);
        let mut means: Vec<f64> = row.iter().zip(origin).map(|(x, o)| x + o).collect();
        let mut variances = vec![0.0; row.len()];
        let covariance = law.covariance();
        for (index, (&column, mean)) in missing.iter().zip(law.mean()).enumerate() {
            (means[column], variances[column]) = (mean, covariance[index * (missing.len() + 1)]);
        }
        Ok(Some((means, variances)))
    }

    fn source_given(&self, component: Sufficient<'_>, row: &[f64]) -> Result<Option<RowSource<'_>>> {
        let Some((missing, law)) = law_given(self, component, row)? else { return Ok(None) };
        let d = row.len();
        let present: Vec<f64> = row.iter().zip(NormalWishartModel::origin(self)).map(|(x, o)| x + o).collect();
        Ok(Some(row_by_row(d, move |row, generator| {
            row.copy_from_slice(&present);
            let mut drawn = vec![f64::NAN; missing.len()];
            if law.draw(&mut drawn, generator).is_ok() {
                missing.iter().zip(drawn).for_each(|(&column, value)| row[column] = value);
            }
        })))
    }
}

/// The missing columns of a row, if it has some and others, and their distribution given these.
fn law_given<M: NormalWishartModel>(
    model: &M,
    component: Sufficient<'_>,
    row: &[f64],
) -> Result<Option<(Vec<usize>, Law)>> {
    let (missing, present): (Vec<usize>, Vec<usize>) = (0..row.len()).partition(|&column| row[column].is_nan());
    if missing.is_empty() || present.is_empty() {
        return Ok(None);
    }
    let origin = NormalWishartModel::origin(model);
    let values: Vec<f64> = present.iter().map(|&column| row[column] + origin[column]).collect();
    let (_, law) = model.law(component, None)?.conditional(&missing, &present, &values)?;
    Ok(Some((missing, law)))
}
