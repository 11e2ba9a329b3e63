//! From scores to responsibilities: selects the components of each row and normalises their weights.

use pulp::{Simd, WithSimd};

use crate::component::Class;
use crate::responsibilities::classes::number_of;
use crate::responsibilities::collects::{Collects, lists};
use crate::responsibilities::insert::{FREE, insert};
use crate::responsibilities::near::{NearList, RowBests};
use crate::responsibilities::offers::Offers;
use crate::simd::{Instructions, Lines, Scalar, rows_of_part};
use crate::special::{exp_of_nonpositive, ln_of_positive};

/// Collects the `L` best components of each row of one block, in any order in which a scorer offers them.
///
/// Maximising `sum_k r_k W_k - r_k ln r_k` over simplex rows with at most `L` nonzeros keeps the `L` largest weights
/// and normalises them (Hughes & Sudderth 2016, Eq. 8 and Alg. 1; mathematics 3.1). Ties go to the lower component.
///
/// Rows are stored side by side, padded to whole groups, so that a vector of rows is processed at once.
#[derive(Debug, Default)]
pub struct TopL<F> {
    /// Number of rows, including the padding of the last group.
    n_padded: usize,
    width: usize,
    n_components: usize,
    collects: Collects,
    /// (width or K, rows), depending on [`Collects`].
    scores: Lines<F>,
    /// Component indices of the scores, which a float represents exactly.
    components: Lines<F>,
    /// For [`Collects::Near`]: the best scores so far and their components, (rows,), and lists of the components near
    /// them.
    best: Lines<F>,
    leads: Lines<F>,
    near: NearList<F>,
    /// Responsibilities, (width, rows), then totals of exponentials and best scores, (rows,) each.
    weights: Lines<f64>,
    /// Drop components whose log weight is more than this many nats below the row's best.
    margin: f64,
    /// Whether scores that cannot be kept may be abandoned; never if all are kept.
    abandon: bool,
    /// The classes of components, (K,), and of rows; empty if every row may keep any component.
    component_classes: Vec<F>,
    row_classes: Lines<F>,
    /// Number of (row, component) pairs whose score was computed.
    pub n_evaluated: usize,
}

/// The `width` largest scores of a row with their components, largest first, and their log-sum-exp.
pub fn largest(scores: &[f64], width: usize) -> (Vec<(usize, f64)>, f64) {
    let mut pairs: Vec<(usize, f64)> = scores.iter().copied().enumerate().collect();
    let order = |a: &(usize, f64), b: &(usize, f64)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    let width = width.max(1);
    if width < pairs.len() {
        pairs.select_nth_unstable_by(width, order);
        pairs.truncate(width);
    }
    pairs.sort_unstable_by(order);
    let best = pairs.first().map_or(f64::NEG_INFINITY, |pair| pair.1);
    if best == f64::NEG_INFINITY {
        return (pairs, best);
    }
    let sum: f64 = pairs.iter().map(|(_, score)| (score - best).exp()).sum();
    (pairs, best + sum.ln())
}

impl<F: Scalar> TopL<F> {
    /// Prepares for `n_rows` rows that keep `width` of `n_components` components, and of these only components at most
    /// `margin` nats below the best. `abandon` sets whether scores that cannot be kept may be abandoned.
    ///
    /// With `sorts`, lists of fewer than all components are sorted as scores arrive. This is for blocks so large that
    /// the scores of all components would not fit in the cache.
    pub fn reset(
        &mut self,
        n_rows: usize,
        width: usize,
        n_components: usize,
        margin: Option<f64>,
        abandon: bool,
        sorts: bool,
    ) {
        self.n_padded = n_rows.next_multiple_of(F::GROUP);
        (self.width, self.n_components) = (width, n_components);
        self.collects = Collects::new(width, n_components, margin, sorts);
        self.abandon = abandon && self.collects != Collects::All;
        self.margin = margin.unwrap_or(f64::INFINITY);
        self.component_classes.clear();
        self.clear();
    }

    /// Gives the log weight minus infinity to pairs of a row of a class and a component of another one, or a free one,
    /// until the next reset. They are left out before the best are selected (mathematics 3.2).
    pub fn restrict(&mut self, rows: impl Iterator<Item = Class>, components: &[Class]) {
        self.component_classes.extend(components.iter().map(|&class| number_of::<F>(class)));
        self.row_classes.reset(self.n_padded, number_of::<F>(None));
        self.row_classes.iter_mut().zip(rows).for_each(|(number, class)| *number = number_of(class));
    }

    /// Whether a row may keep a component.
    #[inline(always)]
    fn may_keep(&self, row: usize, component: usize) -> bool {
        let Some(&class) = self.component_classes.get(component) else { return true };
        let of_row = self.row_classes[row];
        of_row == number_of::<F>(None) || of_row == class
    }

    /// Clears all collected scores.
    pub fn clear(&mut self) {
        self.n_evaluated = 0;
        if self.collects == Collects::Near {
            self.scores.reset(self.n_padded * self.n_components, F::NEG_INFINITY);
            self.best.reset(self.n_padded, F::NEG_INFINITY);
            self.leads.reset(self.n_padded, F::from_f64(FREE));
            return;
        }
        self.scores.reset(self.n_padded * self.width, F::NEG_INFINITY);
        self.components.reset(self.n_padded * self.width, F::from_f64(FREE));
    }

    /// Whether lists of `width` components have the best first and empty slots last.
    pub fn is_compact(width: usize, n_components: usize, margin: Option<f64>) -> bool {
        width < n_components || lists(n_components, margin)
    }

    /// Whether scores that cannot be kept may be abandoned.
    pub fn drops(&self) -> bool {
        self.abandon
    }

    /// The score in one slot of one row; the slot is the component index if all are collected.
    pub fn score(&self, row: usize, slot: usize) -> F {
        self.scores[slot * self.n_padded + row]
    }

    /// The scores of all components, one component after another, and their number for each; minus infinity for those
    /// that were abandoned. Only if no list is sorted as they arrive.
    pub fn all_scores(&self) -> (&[F], usize) {
        debug_assert!(self.collects != Collects::Best, "sorted lists do not hold all scores");
        (&self.scores, self.n_padded)
    }

    /// The rows of the block as vectors. Call only inside [`Instructions::run`].
    #[inline(always)]
    pub fn offers<S: Simd>(&mut self, simd: S) -> Offers<'_, S, F> {
        let is_near = self.collects == Collects::Near;
        Offers {
            simd,
            collects: self.collects,
            stride: self.n_padded / rows_of_part::<S, F>(),
            scores: bytemuck::cast_slice_mut(&mut self.scores),
            components: bytemuck::cast_slice_mut(if is_near { &mut self.leads } else { &mut self.components }),
            best: if is_near { bytemuck::cast_slice_mut(&mut self.best) } else { &mut [] },
            margin: F::from_f64(self.margin),
            abandon: self.abandon,
            component_classes: &self.component_classes,
            row_classes: bytemuck::cast_slice(&self.row_classes),
            n_evaluated: &mut self.n_evaluated,
        }
    }

    /// Minimum score to be kept, for one row.
    #[inline(always)]
    pub fn least_of(&self, row: usize) -> F {
        if self.collects == Collects::Near {
            return self.best[row] - F::from_f64(self.margin);
        }
        let near = self.scores[row] - F::from_f64(self.margin);
        let last = self.scores[(self.width - 1) * self.n_padded + row];
        if near > last { near } else { last }
    }

    /// Writes the minimum score to be kept for listed rows, and infinity in the remaining entries.
    #[inline(always)]
    pub fn least_listed(&self, list: &[u32], out: &mut [F]) {
        out.fill(F::INFINITY);
        for (out, &row) in out.iter_mut().zip(list) {
            *out = self.least_of(row as usize);
        }
    }

    /// Collects the scores of one component for listed rows.
    #[inline(always)]
    pub fn offer_listed(&mut self, component: usize, list: &[u32], scores: &[F]) {
        let (n, plain) = (self.n_padded, pulp::Scalar::new());
        if self.collects == Collects::Near {
            for (&row, &score) in list.iter().zip(scores) {
                let row = row as usize;
                if !self.may_keep(row, component) {
                    continue;
                }
                let (best, lead) = (&mut self.best[row], &mut self.leads[row]);
                if score > *best || (score == *best && F::from_f64(component as f64) < *lead) {
                    (*best, *lead) = (score, F::from_f64(component as f64));
                }
                self.scores[component * n + row] = score;
            }
            return;
        }
        let number = F::from_f64(component as f64);
        let last = (self.width - 1) * n;
        for (&row, &score) in list.iter().zip(scores) {
            let row = row as usize;
            if score >= self.scores[last + row] && self.may_keep(row, component) {
                let kept: &mut [[F::Vector<pulp::Scalar>; 1]] = bytemuck::cast_slice_mut(&mut self.scores);
                let numbers: &mut [[F::Vector<pulp::Scalar>; 1]] = bytemuck::cast_slice_mut(&mut self.components);
                let (score, number) = ([F::splat(plain, score)], [F::splat(plain, number)]);
                insert::<_, F, 1>(plain, score, number, kept, numbers, (row, n));
            }
        }
    }

    /// Normalises every row in `f64`. Writes pairs to `components` and `values` (`L` per row), and the log-sum-exp of
    /// the kept weights to `log_normalizers`.
    ///
    /// # Errors
    /// The index of the first row without a finite weight.
    pub fn normalize(
        &mut self,
        components: &mut [u32],
        values: &mut [f64],
        log_normalizers: &mut [f64],
    ) -> std::result::Result<(), usize> {
        Instructions::widest().run(Normalize { sink: self, components, values, log_normalizers })
    }
}

/// [`TopL::normalize`], compiled for each instruction set.
struct Normalize<'a, F> {
    sink: &'a mut TopL<F>,
    components: &'a mut [u32],
    values: &'a mut [f64],
    log_normalizers: &'a mut [f64],
}

impl<F: Scalar> WithSimd for Normalize<'_, F> {
    type Output = std::result::Result<(), usize>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
        let Self { sink, components, values, log_normalizers } = self;
        let TopL { n_padded, width, collects, scores, components: numbers, weights, margin, .. } = sink;
        let (found, leads, near) = (&sink.best, &sink.leads, &mut sink.near);
        let (n, n_rows, margin) = (*n_padded, log_normalizers.len(), F::from_f64(*margin));
        weights.resize((*width + 2) * n);
        let (weights, totals) = weights.split_at_mut(*width * n);
        let (totals, best) = totals.split_at_mut(n);
        totals.fill(0.0);
        best.fill(f64::NEG_INFINITY);
        let leaders = match collects {
            Collects::Best => &scores[..n],
            Collects::All => &**scores,
            Collects::Near => &**found,
        };
        for scores in leaders.chunks_exact(n) {
            for (best, score) in best.iter_mut().zip(scores) {
                let score = score.to_f64();
                *best = if score > *best { score } else { *best };
            }
        }
        if let Some(row) = best[..n_rows].iter().position(|best| !best.is_finite()) {
            return Err(row);
        }
        let (n_slots, scores, numbers) = if *collects == Collects::Near {
            let best = RowBests { n_rows, scores: found, numbers: leads };
            let n_slots = near.list(simd, scores, best, *width, margin);
            (n_slots, &near.scores, &near.numbers)
        } else {
            (*width, &*scores, &*numbers)
        };
        for (weights, scores) in weights.chunks_exact_mut(n).zip(scores.chunks_exact(n)).take(n_slots) {
            for (((weight, total), &score), best) in weights.iter_mut().zip(&mut *totals).zip(scores).zip(&*best) {
                // Rounded as in `least`, so that it does not matter which of the two dropped it. NaN gets weight zero.
                let near = score >= F::from_f64(*best) - margin;
                *weight = if near { exp_of_nonpositive(score.to_f64() - best) } else { 0.0 };
                *total += *weight;
            }
        }
        for ((log_normalizer, best), total) in log_normalizers.iter_mut().zip(&*best).zip(&*totals) {
            *log_normalizer = best + ln_of_positive(*total);
        }
        for total in &mut *totals {
            *total = 1.0 / *total;
        }
        if n_slots < *width {
            components.fill(0);
            values.fill(0.0);
        }
        let slots = Slots { n, width: *width, numbers, weights, shares: totals };
        match n_slots {
            1 => slots.write::<1>(components, values),
            2 => slots.write::<2>(components, values),
            4 => slots.write::<4>(components, values),
            8 => slots.write::<8>(components, values),
            16 => slots.write::<16>(components, values),
            _ => slots.write_one_by_one(n_slots, components, values),
        }
        Ok(())
    }
}

/// The kept components of a block of rows, slot by slot; each slot has `n` rows.
struct Slots<'a, F> {
    n: usize,
    /// Number of pairs per row; only the first ones are written.
    width: usize,
    numbers: &'a [F],
    weights: &'a [f64],
    /// Normalisers, one per row.
    shares: &'a [f64],
}

impl<F: Scalar> Slots<'_, F> {
    /// Writes the slots row by row; a fixed number of slots lets the compiler vectorise this.
    #[inline(always)]
    fn write<const W: usize>(&self, components: &mut [u32], values: &mut [f64]) {
        let rows = values.len() / self.width;
        let weights: [&[f64]; W] = std::array::from_fn(|slot| &self.weights[slot * self.n..][..rows]);
        let numbers: [&[F]; W] = std::array::from_fn(|slot| &self.numbers[slot * self.n..][..rows]);
        let shares = &self.shares[..rows];
        let rows_of_pairs = components.chunks_exact_mut(self.width).zip(values.chunks_exact_mut(self.width));
        for (row, (components, values)) in rows_of_pairs.enumerate() {
            let (components, values) = (&mut components[..W], &mut values[..W]);
            for slot in 0..W {
                values[slot] = weights[slot][row] * shares[row];
                components[slot] = position(numbers[slot][row]);
            }
        }
    }

    #[inline(always)]
    fn write_one_by_one(&self, n_slots: usize, components: &mut [u32], values: &mut [f64]) {
        let width = self.width;
        for slot in 0..n_slots {
            let weights = self.weights[slot * self.n..].iter().zip(self.shares);
            for (value, (weight, share)) in values[slot..].iter_mut().step_by(width).zip(weights) {
                *value = weight * share;
            }
            let numbers = &self.numbers[slot * self.n..];
            for (component, &number) in components[slot..].iter_mut().step_by(width).zip(numbers) {
                *component = position(number);
            }
        }
    }
}

/// Converts a float component index to a position; 0 for an empty slot.
#[inline(always)]
fn position<F: Scalar>(number: F) -> u32 {
    /// Adding this to an integer leaves the integer in the lowest bits. Unlike a checked conversion, this can be
    /// vectorised.
    const TO_WHOLE: f64 = 4_503_599_627_370_496.0;
    let number = number.to_f64();
    ((if number > 0.0 { number } else { 0.0 }) + TO_WHOLE).to_bits() as u32
}
