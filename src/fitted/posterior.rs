//! Draws of the weights and the parameters of the components from their posterior q, and intervals from the draws
//! (mathematics 6.5).

use crate::error::{Error, Result};
use crate::fitted::Fitted;
use crate::likelihood::{ParameterSource, parameters_of_draws};
use crate::model::Objective;
use crate::parallel::{Cancel, for_each_with, map, try_map};
use crate::parameters::{Parameters, Value};
use crate::rng::{Purpose, stream, stream_of_component};
use crate::room::check_room;
use crate::special::quantile;

/// Name of the weights among the parameters.
const WEIGHTS: &str = "weights";

impl Fitted {
    /// Draws weights and parameters of the components, each with the shape (n, K, ...), in the data's units. Every
    /// component of every draw has its own random stream.
    ///
    /// # Errors
    /// [`Error::NotSupported`] for point estimates; [`Error::InvalidArgument`] for more draws than fit in memory; as
    /// [`Fitted::model`]; [`Error::Numerical`]; [`Error::Cancelled`].
    pub fn sample_parameters(&self, n: usize, seed: u64, cancel: &Cancel) -> Result<Parameters> {
        if self.specification.objective != Objective::Variational {
            let found = format!("a fit of the objective {:?}", self.specification.objective.name());
            let reason = "point estimates have no posterior";
            return Err(Error::not_supported("objective", found, reason, "objective=\"variational\""));
        }
        let (model, components) = (self.model::<f64>()?, self.summary.components());
        let sources = try_map(components.len(), |k| {
            model.likelihood.parameter_source(components[k]).map_err(|error| error.of_component(k))
        })?;
        let Some(ParameterSource { shapes, .. }) = sources.first() else { return Ok(Parameters::default()) };
        let width: usize = shapes.iter().map(|(_, shape)| shape.iter().product::<usize>()).sum();
        let size = n.saturating_mul(components.len()).saturating_mul(width + 1);
        // The draws once side by side and once by parameter.
        check_room(size.saturating_mul(2), |size| {
            Error::invalid(
                "n",
                format!("{n}, for which draws take {size}"),
                "small enough for the draws to fit in memory",
            )
        })?;
        let mut drawn = vec![0.0; size - n * components.len()];
        let rows = drawn.chunks_mut(components.len() * width).enumerate().collect();
        for_each_with(
            rows,
            || (),
            |(), (draw, rows)| {
                cancel.check()?;
                for (k, (source, row)) in sources.iter().zip(rows.chunks_exact_mut(width)).enumerate() {
                    (source.rows)(row, &mut stream_of_component(seed, Purpose::Parameters, draw as u64, k as u64));
                }
                Ok(())
            },
        )?;
        let parameters = parameters_of_draws(&drawn, [n, components.len()], shapes);
        Ok(self.of_data(&parameters)?.with([(WEIGHTS, self.sample_weights(n, seed)?)]))
    }

    /// Draws weights, (n, K).
    fn sample_weights(&self, n: usize, seed: u64) -> Result<Value> {
        // Rounding may leave counts of emptied components below zero.
        let counts: Vec<f64> = self.summary.counts.iter().map(|count| count.max(0.0)).collect();
        let model = self.model::<f64>()?;
        let source = model.process.weight_source(&counts, model.count_beyond(&self.summary))?;
        let drawn = map(n, |draw| {
            let mut weights = vec![0.0; counts.len()];
            let generator = &mut stream(seed, Purpose::Weights, draw as u64);
            source(&mut weights, generator);
            if let Some(background) = &model.background {
                let left = background.draw_left(&self.summary, generator);
                for weight in &mut weights {
                    *weight *= left;
                }
            }
            weights
        });
        Ok(Value::Array { shape: vec![n, counts.len()], data: drawn.concat() })
    }

    /// Returns two quantiles of `n` draws of each weight and parameter, (2, K, ...).
    ///
    /// # Errors
    /// As [`Fitted::sample_parameters`].
    pub fn intervals(&self, ends: [f64; 2], n: usize, seed: u64, cancel: &Cancel) -> Result<Parameters> {
        let mut all = self.sample_parameters(n, seed, cancel)?;
        for value in all.0.values_mut() {
            let Value::Array { shape, data } = value else { continue };
            let width = data.len() / n;
            let pairs = try_map(width, |column| {
                cancel.check()?;
                let mut draws: Vec<f64> = data.iter().skip(column).step_by(width).copied().collect();
                draws.sort_unstable_by(f64::total_cmp);
                Ok(ends.map(|end| quantile(&draws, end)))
            })?;
            *data = [0, 1].into_iter().flat_map(|end| pairs.iter().map(move |pair| pair[end])).collect();
            shape[0] = 2;
        }
        Ok(all)
    }
}
