//! Scores as a scorer finds them: three vectors of rows, a part, under one component at a time.

use pulp::Simd;

use crate::responsibilities::classes::number_of;
use crate::responsibilities::collects::Collects;
use crate::responsibilities::insert::insert;
use crate::simd::{Scalar, VECTORS, Vectors, parts_of_group};

/// A [`super::TopL`] whose rows are in vectors, for one block. Only for code inside
/// [`crate::simd::Instructions::run`].
pub struct Offers<'a, S: Simd, F: Scalar> {
    pub(super) simd: S,
    pub(super) collects: Collects,
    /// Number of parts of a slot.
    pub(super) stride: usize,
    /// (slots, parts).
    pub(super) scores: &'a mut [Vectors<S, F>],
    /// Components of the scores, (slots, parts); or with [`Collects::Near`] those of the best scores.
    pub(super) components: &'a mut [Vectors<S, F>],
    /// With [`Collects::Near`], the best scores so far.
    pub(super) best: &'a mut [Vectors<S, F>],
    pub(super) margin: F,
    pub(super) abandon: bool,
    /// The classes of components, empty if every row may keep any component, and of rows, (parts,).
    pub(super) component_classes: &'a [F],
    pub(super) row_classes: &'a [Vectors<S, F>],
    pub(super) n_evaluated: &'a mut usize,
}

impl<S: Simd, F: Scalar> Offers<'_, S, F> {
    /// The score that each row of a part needs to be kept, if lower ones may be abandoned.
    #[inline(always)]
    pub fn least(&self, part: usize) -> Option<Vectors<S, F>> {
        if !self.abandon {
            return None;
        }
        let margin = F::splat(self.simd, self.margin);
        let is_near = self.collects == Collects::Near;
        let mut least = if is_near { self.best[part] } else { self.scores[part] };
        for least in &mut least {
            *least = F::minus(self.simd, *least, margin);
        }
        if !is_near {
            let last = self.scores[self.scores.len() - self.stride + part];
            for (least, last) in least.iter_mut().zip(last) {
                *least = F::select(self.simd, F::greater(self.simd, *least, last), *least, last);
            }
        }
        Some(least)
    }

    /// The scores of the rows that may keep a component, and minus infinity for the others.
    #[inline(always)]
    fn allowed(&self, component: usize, part: usize, mut scores: Vectors<S, F>) -> Vectors<S, F> {
        let (simd, Some(&class)) = (self.simd, self.component_classes.get(component)) else { return scores };
        let (class, unknown) = (F::splat(simd, class), F::splat(simd, number_of::<F>(None)));
        for (score, &of_row) in scores.iter_mut().zip(&self.row_classes[part]) {
            let allowed = F::either(simd, F::equal(simd, of_row, class), F::equal(simd, of_row, unknown));
            *score = F::select(simd, allowed, *score, F::splat(simd, F::NEG_INFINITY));
        }
        scores
    }

    /// Collects the scores of one component for a part, of which `n_rows` are rows and the others padding.
    #[inline(always)]
    pub fn offer(&mut self, component: usize, part: usize, scores: Vectors<S, F>, n_rows: usize) {
        let scores = self.allowed(component, part, scores);
        let (simd, number) = (self.simd, F::splat(self.simd, F::from_f64(component as f64)));
        *self.n_evaluated += n_rows;
        if self.collects == Collects::Best {
            let last = &self.scores[self.scores.len() - self.stride + part];
            let mut enters = F::at_least(simd, scores[0], last[0]);
            for (score, &last) in scores.iter().zip(last).skip(1) {
                enters = F::either(simd, enters, F::at_least(simd, *score, last));
            }
            if F::any(simd, enters) {
                insert::<S, F, _>(simd, scores, [number; VECTORS], self.scores, self.components, (part, self.stride));
            }
            return;
        }
        let slot = component * self.stride + part;
        self.scores[slot] = scores;
        if self.collects == Collects::All {
            self.components[slot] = [number; VECTORS];
            return;
        }
        let (best, leads) = (&mut self.best[part], &mut self.components[part]);
        for ((best, lead), score) in best.iter_mut().zip(leads).zip(scores) {
            let before = F::both(simd, F::equal(simd, score, *best), F::greater(simd, *lead, number));
            let leads = F::either(simd, F::greater(simd, score, *best), before);
            *best = F::select(simd, leads, score, *best);
            *lead = F::select(simd, leads, number, *lead);
        }
    }

    /// As [`Offers::offer`] for the parts of a group, whose scores are in memory. The caller counts the rows.
    ///
    /// # Panics
    /// If a row of the group has no score.
    #[inline(always)]
    pub fn offer_group(&mut self, component: usize, group: usize, scores: &[F]) {
        let first = group * parts_of_group::<S, F>();
        for (part, &scores) in bytemuck::cast_slice(&scores[..F::GROUP]).iter().enumerate() {
            self.offer(component, first + part, scores, 0);
        }
    }
}
