//! Log densities of complete rows as sums over columns, and the predictive.

use std::f64::consts::PI;

use crate::likelihood::spherical_gaussian::predictive::ProductPredictive;
use crate::likelihood::spherical_gaussian::{Base, SphericalGaussian, SphericalPoint, SphericalPosterior};
use crate::likelihood::{Density, Estimate};
use crate::objective::Objective;
use crate::scoring::Column;
use crate::special::{digamma, ln_gamma_difference};
use crate::suffstats::Sufficient;

impl SphericalGaussian {
    /// The prior of the conjugate family with the same expected variances, in which rows are compared with centres.
    pub(super) fn twin(&self) -> SphericalPosterior {
        let variance = if self.base == Base::Product { self.prior.rate / self.prior.shape } else { 1.0 };
        SphericalPosterior { kappa: self.prior.kappa * variance, ..self.prior.clone() }
    }

    /// As in the diagonal family, with one common variance (mathematics 5.2).
    fn divergence_columns(&self, component: Sufficient<'_>) -> (f64, Vec<Column>) {
        let (d, prior) = (self.d(), self.twin());
        let twin = Self { frame: self.frame.clone(), base: Base::Conjugate, prior, rounding: self.rounding.clone() };
        let (posterior, prior) = (twin.posterior(component), &twin.prior);
        let row_shape = prior.shape + 0.5 * d;
        let shrinkage = (prior.kappa + 1.0).recip();
        let curvature = 0.5 * d * prior.kappa * shrinkage / row_shape + shrinkage * shrinkage;
        let variance = posterior.rate / posterior.shape;
        let columns = posterior.mean.iter().zip(&prior.mean).map(|(m, m_0)| {
            let away = m - m_0;
            let rest = away * away * (1.0 - shrinkage * shrinkage / curvature);
            Column::square(curvature / variance, m_0 + shrinkage / curvature * away, -0.5 * rest / variance)
        });
        let constant = -0.5 * d * (prior.rate / row_shape / variance + variance.ln() - 1.0);
        (constant, columns.collect())
    }

    /// log p(x | lambda) without the component weight, as a function of |x - m|^2.
    pub(super) fn predictive(&self, posterior: &SphericalPosterior) -> Box<dyn Fn(f64) -> f64 + Send + Sync> {
        let (d, SphericalPosterior { kappa, shape, rate, .. }) = (self.d(), posterior.clone());
        if self.base == Base::Conjugate {
            let scale = kappa / (kappa + 1.0) / (2.0 * rate);
            let constant = ln_gamma_difference(shape, 0.5 * d) + 0.5 * d * (scale / PI).ln();
            return Box::new(move |square| constant - (shape + 0.5 * d) * (scale * square).ln_1p());
        }
        let integral = ProductPredictive::new(d, shape, rate, kappa);
        Box::new(move |square| integral.log_density(square))
    }

    pub(super) fn columns(&self, component: Sufficient<'_>, density: Density) -> (f64, Vec<Column>) {
        let d = self.d();
        let of_point = |estimate, blurred| {
            let SphericalPoint { mean, precision, blur } = self.point(component, estimate);
            let blur = if blurred { precision * blur } else { 0.0 };
            let columns = mean.iter().map(|&m| Column::square(precision, m, 0.0)).collect();
            (0.5 * d * (precision.ln() - (2.0 * PI).ln() - blur), columns)
        };
        match density {
            Density::Divergence => self.divergence_columns(component),
            Density::Expected(Objective::Map) => of_point(Estimate::Mode, true),
            Density::Expected(Objective::Ml) => of_point(Estimate::MaximumLikelihood, true),
            Density::PlugIn(estimate) => of_point(estimate, false),
            _ => {
                let posterior = self.posterior(component);
                let precision = posterior.shape / posterior.rate;
                let spread = self.spread(&posterior) + precision * posterior.rounding;
                let constant = 0.5 * (d * (digamma(posterior.shape) - posterior.rate.ln() - (2.0 * PI).ln()) - spread);
                (constant, posterior.mean.iter().map(|&m| Column::square(precision, m, 0.0)).collect())
            }
        }
    }
}
