//! The density of a row of a fit as a mixture of distributions in closed form (mathematics 6.4).

use crate::data::{Domain, RowUnits, Rows, check_rows};
use crate::error::Result;
use crate::fitted::Fitted;
use crate::fitted::packs::PackedFit;
use crate::laws::{Law, MixtureLaw};
use crate::model::Objective;
use crate::parallel::{Cancel, try_map};
use crate::simd::Scalar;

impl Fitted {
    /// Returns the density of the columns that the model sees, in their units. It is the posterior predictive, with the
    /// left-over weight on the prior, or the density at point estimates, whose weights sum to one. Fits of an objective
    /// other than the variational one have only the latter.
    ///
    /// # Errors
    /// [`crate::Error::NotSupported`] for a likelihood without closed marginals; as [`Fitted::model`];
    /// [`crate::Error::Numerical`]; [`crate::Error::Cancelled`].
    pub fn law(&self, plug_in: bool, cancel: &Cancel) -> Result<MixtureLaw> {
        let PackedFit { model, allocation, .. } = self.packed::<f64>()?;
        let is_posterior = self.specification.objective == Objective::Variational && !plug_in;
        let mut weights = allocation.expected_weights.clone();
        if is_posterior && allocation.leftover > 0.0 {
            weights.push(allocation.leftover);
        }
        let estimate = (!is_posterior).then(|| self.estimate());
        let nothing = vec![0.0; self.summary.n_statistics];
        let components = self.components_and_prior(&nothing);
        let units = self.coordinates.units();
        let mut laws = try_map(weights.len(), |k| {
            cancel.check()?;
            let law = model.likelihood.law(components[k], estimate).map_err(|error| error.of_component(k))?;
            self.of_data_columns(law.in_units(units))
        })?;
        if let Some(background) = &model.background {
            for (weight, law) in background.laws() {
                weights.push(allocation.background_weight * weight);
                laws.push(self.of_data_columns(law.in_units(units))?);
            }
        }
        Ok(MixtureLaw::new(&weights, laws))
    }

    /// The distribution of the columns themselves where the model sees what others leave of them.
    fn of_data_columns(&self, law: Law) -> Result<Law> {
        let coordinates = &self.coordinates;
        coordinates.residuals().iter().try_fold(law, |law, residual| {
            let (place, shift) = coordinates.place_and_shift(residual);
            law.sheared(place, shift, &residual.slopes)
        })
    }
}

/// Returns ln p(x) of every row, (n,), nats; minus infinity for rows outside the support of the fit.
///
/// # Errors
/// [`crate::Error::InvalidArgument`] for a value that is not finite; [`crate::Error::Cancelled`].
pub fn log_densities<F: Scalar>(law: &MixtureLaw, rows: &dyn Rows<F>, cancel: &Cancel) -> Result<Vec<f64>> {
    check_rows(&RowUnits::all(rows, None), &Domain::Real.into(), false, "X", cancel)?;
    let read = |number: usize, out: &mut [f64]| {
        let mut row = vec![F::ZERO; out.len()];
        rows.read_row(number, &mut row);
        out.iter_mut().zip(&row).for_each(|(to, value)| *to = value.to_f64());
    };
    law.log_densities(rows.n_rows(), read, cancel)
}
