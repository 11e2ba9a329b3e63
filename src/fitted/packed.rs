//! Packs the components of a fit once for all predictions.

use std::sync::OnceLock;

use crate::data::Rows;
use crate::error::Result;
use crate::fitted::Fitted;
use crate::fitted::packs::{PackedFit, Prediction, made};
use crate::global_step::Globals;
use crate::likelihood::Density;
use crate::model::Model;
use crate::scoring::Scorer;
use crate::simd::Scalar;

/// Number of multiply-adds below which starting threads takes longer than the work.
const QUICK: usize = 1 << 22;

impl Fitted {
    /// Whether a prediction of these rows takes less time than starting threads: the components are already packed, and
    /// the rows are few.
    pub fn is_quick<F: Scalar>(&self, rows: &dyn Rows<F>, prediction: Prediction) -> bool {
        let packed = self.packs.of::<F>().and_then(OnceLock::get);
        let is_packed = packed.is_some_and(|packed| packed.scorers[prediction as usize].get().is_some());
        is_packed && rows.n_rows().saturating_mul(self.summary.statistics.len()) <= QUICK
    }

    /// Returns the model and q of the weights.
    pub(super) fn packed<F: Scalar>(&self) -> Result<&PackedFit<F>> {
        let Some(place) = self.packs.of::<F>() else { unreachable!("rows are of f32 or f64") };
        made(place, || {
            let model = self.model::<F>()?;
            let allocation = model.allocate(&self.summary);
            Ok(PackedFit { model, allocation, scorers: Default::default(), divergence: OnceLock::new() })
        })
    }

    /// Returns the components packed for these scores.
    pub(super) fn scorer<F: Scalar>(&self, prediction: Prediction) -> Result<&dyn Scorer<F>> {
        let packed = self.packed::<F>()?;
        let model = &packed.model;
        let scorer = made(&packed.scorers[prediction as usize], || {
            let globals = self.globals(model);
            match prediction {
                Prediction::Components => globals.scorer_without_tail(model),
                Prediction::WithTail => globals.scorer(model),
                Prediction::Predictive => {
                    let components = globals.predictive_scorer(model)?;
                    Ok(model.before_background(components, globals.allocation.background_weight.ln()))
                }
                Prediction::PredictiveOfComponents => globals.predictive_scorer(model),
                Prediction::PlugIn => self.plug_in(&globals, model),
            }
        })?;
        Ok(scorer.as_ref())
    }

    /// KL(q || p) of all global factors, nats.
    pub(super) fn divergence<F: Scalar>(&self) -> Result<f64> {
        let packed = self.packed::<F>()?;
        made(&packed.divergence, || self.globals(&packed.model).divergence(&packed.model)).copied()
    }

    fn plug_in<F: Scalar>(&self, globals: &Globals, model: &Model<F>) -> Result<Box<dyn Scorer<F>>> {
        let weights = &globals.allocation.expected_weights;
        let total = weights.iter().sum::<f64>() + globals.allocation.background_weight;
        let log_weights: Vec<f64> = weights.iter().map(|weight| (weight / total).ln()).collect();
        let scorer = model.likelihood.scorer(&globals.components(), &log_weights, Density::PlugIn(self.estimate()))?;
        Ok(model.before_background(scorer, (globals.allocation.background_weight / total).ln()))
    }
}
