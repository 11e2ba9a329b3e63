//! The order of components.

use crate::component::Edit;
use crate::error::Result;
use crate::model::Model;
use crate::simd::Scalar;
use crate::suffstats::Summary;

/// The edit that sorts components by decreasing counts, if the process is ordered (mathematics 2a.1). With
/// truncated sticks another component may be better as the last one (mathematics 2b); then the last component stays
/// and the others are sorted.
pub(super) fn falling<F: Scalar>(model: &Model<F>, total: &Summary) -> Result<Option<Edit>> {
    if !model.process.is_ordered() || total.counts.is_sorted_by(|a, b| a >= b) {
        return Ok(None);
    }
    let before = model.allocate(total).bound;
    let k = total.n_components();
    for n_moved in [k, k - 1] {
        let mut order: Vec<usize> = (0..k).collect();
        order[..n_moved].sort_by(|&a, &b| total.counts[b].total_cmp(&total.counts[a]));
        if order.is_sorted() {
            break;
        }
        let edit = Edit::Reorder { order: order.iter().map(|&place| total.ids[place]).collect() };
        let mut sorted = Summary::empty(total.ids.clone(), 0, false);
        (sorted.counts, sorted.tail) = (total.counts.clone(), total.tail.clone());
        sorted.apply(&edit)?;
        // For a point estimate the order changes the bound only by rounding.
        if model.allocate(&sorted).bound >= before - 1e-12 * before.abs() {
            return Ok(Some(edit));
        }
    }
    Ok(None)
}
