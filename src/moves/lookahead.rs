//! Judges edits of the list of components under the base measure that is estimated after them (mathematics 10.7).

use std::cell::Cell;

use crate::error::Result;
use crate::evidence;
use crate::model::Model;
use crate::moves::{Judge, is_gain};
use crate::simd::Scalar;
use crate::suffstats::Summary;

/// Maximum number of updates of the base measure. A pass makes few updates, but edits change more at once.
const UPDATES: usize = 9;

/// The objective of the components as they are.
#[derive(Debug, Clone, Copy)]
pub struct Unedited {
    /// Under the base measure of the pass.
    now: f64,
    /// After estimating the base measure. Edits must reach more.
    raised: f64,
}

/// A prefix of a list of edits that together are a gain.
pub(super) struct Ahead<F: Scalar> {
    /// Number of edits.
    pub n_edits: usize,
    /// The model with the base measure estimated after the edits.
    pub model: Model<F>,
    /// Gain of the edits and the new base measure together, nats.
    pub gain: f64,
}

impl Unedited {
    /// Computes the objective unless it is `known`.
    ///
    /// # Errors
    /// [`crate::Error::Numerical`].
    pub(super) fn of<F: Scalar>(known: &Cell<Option<Self>>, model: &Model<F>, total: &Summary) -> Result<Self> {
        if let Some(unedited) = known.get() {
            return Ok(unedited);
        }
        let now = objective(model, total)?;
        let gain = evidence::raise_further(model, total, UPDATES, f64::NEG_INFINITY).map_or(0.0, |(_, gain)| gain);
        let unedited = Self { now, raised: now + gain };
        known.set(Some(unedited));
        Ok(unedited)
    }

    /// Tries the first 1, 2, 4, ..., `n_edits` edits, each time with the base measure estimated after them, and returns
    /// the number with the highest objective. `after(n)` is the summary after the first n edits; estimation starts from
    /// the base measure of `from`. Returns `None` if no number of edits is a gain.
    ///
    /// # Errors
    /// Those of `after`.
    pub(super) fn look_ahead<F: Scalar>(
        self,
        from: &Model<F>,
        n_edits: usize,
        after: impl Fn(usize) -> Result<Summary>,
    ) -> Result<Option<Ahead<F>>> {
        let (mut best, mut most) = (None, self.raised);
        let doubled = std::iter::successors(Some(1), |n| Some(2 * n)).take_while(|n| *n < n_edits);
        for n in doubled.chain((n_edits > 0).then_some(n_edits)) {
            let Some((model, objective)) = raised(from, &after(n)?, most) else { continue };
            if objective > most && is_gain(objective - self.raised, [self.raised]) {
                most = objective;
                best = Some(Ahead { n_edits: n, model, gain: objective - self.now });
            }
        }
        Ok(best)
    }
}

/// The model with the base measure estimated for these components, and its objective. Gives up where the objective will
/// not exceed `most`. `None` if it cannot be computed.
fn raised<F: Scalar>(model: &Model<F>, total: &Summary, most: f64) -> Option<(Model<F>, f64)> {
    let before = objective(model, total).ok()?;
    let (model, gain) =
        evidence::raise_further(model, total, UPDATES, most - before).unwrap_or_else(|| (model.clone(), 0.0));
    Some((model, before + gain))
}

fn objective<F: Scalar>(model: &Model<F>, total: &Summary) -> Result<f64> {
    Ok(Judge::new(model).bound(total)? + evidence::guard(model)?)
}
