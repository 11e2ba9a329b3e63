//! Sorted lists of the best components, a vector of rows at a time.

use pulp::Simd;

use crate::simd::Scalar;

/// Marks an empty slot.
pub(super) const FREE: f64 = -1.0;

/// Inserts scores that beat the last ones into descending lists, whose slots are at `first` and every `stride` after
/// it.
// only-one: top-L selection
#[inline(always)]
pub(super) fn insert<S: Simd, F: Scalar, const N: usize>(
    simd: S,
    mut score: [F::Vector<S>; N],
    mut number: [F::Vector<S>; N],
    scores: &mut [[F::Vector<S>; N]],
    numbers: &mut [[F::Vector<S>; N]],
    (first, stride): (usize, usize),
) {
    // From the first beaten slot on, everything moves down by one; in sorted lists all later slots are then beaten in
    // turn.
    let slots = scores[first..].iter_mut().step_by(stride).zip(numbers[first..].iter_mut().step_by(stride));
    for (kept, kept_number) in slots {
        for v in 0..N {
            let before = F::both(simd, F::equal(simd, score[v], kept[v]), F::greater(simd, kept_number[v], number[v]));
            let moved = F::either(simd, F::greater(simd, score[v], kept[v]), before);
            let (old, old_number) = (kept[v], kept_number[v]);
            kept[v] = F::select(simd, moved, score[v], old);
            kept_number[v] = F::select(simd, moved, number[v], old_number);
            score[v] = F::select(simd, moved, old, score[v]);
            number[v] = F::select(simd, moved, old_number, number[v]);
        }
    }
}
