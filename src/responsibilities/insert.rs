//! Sorted lists of the best components, a vector of rows at a time.

use pulp::Simd;

use crate::simd::Scalar;

/// Marks an empty slot.
pub(super) const FREE: f64 = -1.0;

/// Inserts scores that beat the last ones into the descending lists, whose slots are `stride` vectors apart.
// only-one: top-L selection
#[inline(always)]
pub(super) fn insert<S: Simd, F: Scalar>(
    simd: S,
    mut score: F::Vector<S>,
    mut number: F::Vector<S>,
    scores: &mut [F::Vector<S>],
    numbers: &mut [F::Vector<S>],
    stride: usize,
) {
    // From the first beaten slot on, everything moves down by one; in sorted lists all later slots are then beaten in
    // turn.
    for (kept, kept_number) in scores.iter_mut().step_by(stride).zip(numbers.iter_mut().step_by(stride)) {
        let before = F::both(simd, F::equal(simd, score, *kept), F::greater(simd, *kept_number, number));
        let moved = F::either(simd, F::greater(simd, score, *kept), before);
        let (old, old_number) = (*kept, *kept_number);
        *kept = F::select(simd, moved, score, old);
        *kept_number = F::select(simd, moved, number, old_number);
        score = F::select(simd, moved, old, score);
        number = F::select(simd, moved, old_number, number);
    }
}
