//! Judges edits of the list of components under the base measure that is estimated after them (mathematics 10.7).

use crate::error::Result;
use crate::evidence;
use crate::model::Model;
use crate::moves::{Judge, is_gain};
use crate::simd::Scalar;
use crate::suffstats::Summary;

/// Number of updates of the base measure. A pass makes one update, but edits change more at once.
const TIMES: usize = 3;

/// A prefix of a list of edits that together are a gain.
pub(super) struct Ahead<F: Scalar> {
    /// Number of edits.
    pub n_edits: usize,
    /// The model with the base measure estimated after the edits.
    pub model: Model<F>,
    /// Gain of the edits and the new base measure together, nats.
    pub gain: f64,
}

/// Tries the first 1, 2, 4, ..., `n_edits` edits, each time with the base measure estimated after them, and returns the
/// number with the highest objective. Returns `None` if estimating the base measure for the unedited `total` gains as
/// much. `after(n)` is the summary after the first n edits; estimation starts from the base measure of `from`.
///
/// # Errors
/// Those of `after`; [`crate::Error::Numerical`].
pub(super) fn look_ahead<F: Scalar>(
    model: &Model<F>,
    from: &Model<F>,
    total: &Summary,
    n_edits: usize,
    after: impl Fn(usize) -> Result<Summary>,
) -> Result<Option<Ahead<F>>> {
    let before = objective(model, total)?;
    let alone = raised(model, total).map_or(before, |(_, objective)| objective);
    let mut best = None;
    let mut most = alone;
    let doubled = std::iter::successors(Some(1), |n| Some(2 * n)).take_while(|n| *n < n_edits);
    for n in doubled.chain((n_edits > 0).then_some(n_edits)) {
        let Some((model, objective)) = raised(from, &after(n)?) else { continue };
        if objective > most && is_gain(objective - alone, [alone]) {
            most = objective;
            best = Some(Ahead { n_edits: n, model, gain: objective - before });
        }
    }
    Ok(best)
}

/// The model with the base measure estimated for these components, and its objective. `None` if it cannot be computed.
fn raised<F: Scalar>(model: &Model<F>, total: &Summary) -> Option<(Model<F>, f64)> {
    let mut model = model.clone();
    for _ in 0..TIMES {
        let Some((next, _)) = evidence::raise(&model, total) else { break };
        model = next;
    }
    let objective = objective(&model, total).ok()?;
    Some((model, objective))
}

fn objective<F: Scalar>(model: &Model<F>, total: &Summary) -> Result<f64> {
    Ok(Judge::new(model).bound(total)? + evidence::guard(model)?)
}
