//! Missing values of the Gaussians with a (Normal-)Wishart base measure: moments and draws of those of new rows
//! (mathematics 6.2).

use crate::error::Result;
use crate::likelihood::imputation::{moments_given, source_given};
use crate::likelihood::wishart::model::NormalWishartModel;
use crate::likelihood::{Imputation, Laws, RowSource};
use crate::suffstats::Sufficient;

/// Moments of the missing values of a row, from the predictive distribution given the others.
impl<M: NormalWishartModel> Imputation for M {
    fn predictive_moments(&self, component: Sufficient<'_>) -> Result<(Vec<f64>, Vec<f64>)> {
        let (law, d) = (self.law(component, None)?, NormalWishartModel::origin(self).len());
        Ok((law.mean(), law.covariance().into_iter().step_by(d + 1).collect()))
    }

    fn moments_given(&self, component: Sufficient<'_>, row: &[f64]) -> Result<Option<(Vec<f64>, Vec<f64>)>> {
        moments_given(self, NormalWishartModel::origin(self), component, row)
    }

    fn source_given(&self, component: Sufficient<'_>, row: &[f64]) -> Result<Option<RowSource<'_>>> {
        source_given(self, NormalWishartModel::origin(self), component, row)
    }
}
