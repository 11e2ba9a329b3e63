//! Responsibilities: at most `L` (component, value) pairs a unit. Dense is `L = K`, hard is `L = 1`.

use crate::error::{Error, Result};
use crate::real::Real;

/// Collects the `L` best components of each row of one block as a scorer offers them.
///
/// Maximising `sum_k r_k W_k - r_k ln r_k` over simplex rows with at most `L` non-zeros keeps the `L` largest
/// weights and normalises them (Hughes & Sudderth 2016, Eq. 8 and Alg. 1; spec 3.1). Ties go to the lower component.
#[derive(Debug, Default)]
pub struct TopL<F> {
    n_rows: usize,
    width: usize,
    dense: bool,
    scores: Vec<F>,
    components: Vec<u32>,
    threshold: Vec<F>,
}

/// Marks a slot that no component has taken.
const FREE: u32 = u32::MAX;

impl<F: Real> TopL<F> {
    /// Makes room for `n_rows` rows that keep `width` of `n_components` components.
    pub fn reset(&mut self, n_rows: usize, width: usize, n_components: usize) {
        (self.n_rows, self.width, self.dense) = (n_rows, width, width >= n_components);
        self.scores.clear();
        self.scores.resize(n_rows * width, F::NEG_INFINITY);
        self.components.clear();
        self.components.resize(n_rows * width, FREE);
        self.threshold.clear();
        self.threshold.resize(n_rows, F::NEG_INFINITY);
    }

    /// The score a component must exceed to be kept, by row: what a scorer needs to abandon a pair early.
    pub fn threshold(&self) -> &[F] {
        &self.threshold
    }

    /// The kept scores, (rows, width): in the order of the components where all are kept.
    pub fn scores(&self) -> &[F] {
        &self.scores
    }

    /// Offers the scores of one component for all rows. Components must come in increasing order.
    pub fn offer(&mut self, component: u32, scores: &[F]) {
        debug_assert_eq!(scores.len(), self.n_rows);
        if self.dense {
            let slots = self.scores.chunks_exact_mut(self.width).zip(self.components.chunks_exact_mut(self.width));
            for ((row_scores, row_components), &score) in slots.zip(scores) {
                // A NaN stays a free slot and is reported when the row is normalised.
                if score > F::NEG_INFINITY {
                    row_scores[component as usize] = score;
                    row_components[component as usize] = component;
                }
            }
            return;
        }
        for (row, (&score, threshold)) in scores.iter().zip(&mut self.threshold).enumerate() {
            if score > *threshold {
                let row_scores = &mut self.scores[row * self.width..][..self.width];
                let row_components = &mut self.components[row * self.width..][..self.width];
                *threshold = insert(row_scores, row_components, score, component);
            }
        }
    }

    /// Normalises every row in `f64`: pairs into `components` and `values` (`L` a row), the log-sum-exp of the kept
    /// weights into `log_normalizers`.
    ///
    /// # Errors
    /// The position of the first row in which no component has a finite weight.
    pub fn normalize(
        &self,
        components: &mut [u32],
        values: &mut [f64],
        log_normalizers: &mut [f64],
    ) -> std::result::Result<(), usize> {
        let width = self.width;
        for (row, log_normalizer) in log_normalizers.iter_mut().enumerate() {
            let scores = &self.scores[row * width..][..width];
            let values = &mut values[row * width..][..width];
            let best = scores.iter().fold(F::NEG_INFINITY, |a, &b| if b > a { b } else { a });
            if !best.is_finite() {
                return Err(row);
            }
            let best = best.to_f64();
            let mut total = 0.0;
            for (value, &score) in values.iter_mut().zip(scores) {
                *value = (score.to_f64() - best).exp();
                total += *value;
            }
            for value in values {
                *value /= total;
            }
            *log_normalizer = best + total.ln();
            for (to, &from) in components[row * width..][..width].iter_mut().zip(&self.components[row * width..]) {
                *to = if from == FREE { 0 } else { from };
            }
        }
        Ok(())
    }
}

/// Puts a score that beats the last one into a descending list and returns the new last one.
// only-one: top-L selection
fn insert<F: Real>(scores: &mut [F], components: &mut [u32], score: F, component: u32) -> F {
    let last = scores.len() - 1;
    let mut slot = last;
    while slot > 0 && score > scores[slot - 1] {
        scores[slot] = scores[slot - 1];
        components[slot] = components[slot - 1];
        slot -= 1;
    }
    scores[slot] = score;
    components[slot] = component;
    scores[last]
}

/// The responsibilities of consecutive units: `width` pairs a unit.
#[derive(Debug, Clone, PartialEq)]
pub struct Responsibilities {
    /// Pairs a unit.
    pub width: usize,
    /// Positions of the components, (n, width).
    pub components: Vec<u32>,
    /// Their responsibilities, (n, width); a pair with value 0 carries nothing.
    pub values: Vec<f64>,
    /// Log-sum-exp of the kept log weights, (n,), nats.
    pub log_normalizers: Vec<f64>,
}

impl Responsibilities {
    /// Room for `n` units.
    pub fn zeros(n: usize, width: usize) -> Self {
        Self { width, components: vec![0; n * width], values: vec![0.0; n * width], log_normalizers: vec![0.0; n] }
    }

    /// Number of units.
    pub fn len(&self) -> usize {
        self.log_normalizers.len()
    }

    /// Whether there is no unit.
    pub fn is_empty(&self) -> bool {
        self.log_normalizers.is_empty()
    }

    /// The component with the largest responsibility of unit `unit`; the lower one of equals.
    pub fn best(&self, unit: usize) -> u32 {
        let row = unit * self.width..(unit + 1) * self.width;
        let mut best = row.start;
        for slot in row {
            let (value, leader) = (self.values[slot], self.values[best]);
            if value > leader || (value == leader && self.components[slot] < self.components[best]) {
                best = slot;
            }
        }
        self.components[best]
    }
}

/// The error of a row without any finite log weight: it is not finite itself, or too far away.
pub(crate) fn no_finite_weight<F: Real>(row_number: usize, row: &[F]) -> Error {
    if let Some(column) = row.iter().position(|value| !value.is_finite()) {
        return Error::invalid("X", format!("{} in row {row_number}, column {column}", row[column]), "finite");
    }
    Error::numerical(
        None,
        format!(
            "row {row_number} is so far from every component that its log weights overflow {}; \
             rescale the data or remove the row",
            F::NAME
        ),
    )
}

/// How many components a unit keeps: `Auto` is at most 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sparsity {
    /// All.
    Dense,
    /// At most 8: what is dropped is below 1e-5 nats a unit on the image and digit data we measured, and can reach a few
    /// 1e-3 where more than 8 components overlap.
    Auto,
    /// This many.
    Limited(usize),
}

impl Sparsity {
    /// The number of pairs a unit keeps of `n_components`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where it is not between 1 and `n_components`.
    pub fn width(self, n_components: usize) -> Result<usize> {
        match self {
            Self::Dense => Ok(n_components),
            Self::Auto => Ok(n_components.min(8)),
            Self::Limited(width) if (1..=n_components).contains(&width) => Ok(width),
            Self::Limited(width) => Err(Error::invalid(
                "sparsity",
                width,
                format!("between 1 and the number of components, {n_components}"),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn select(scores: &[Vec<f64>], width: usize) -> Responsibilities {
        let (n, k) = (scores.len(), scores[0].len());
        let mut sink = TopL::default();
        sink.reset(n, width, k);
        for component in 0..k {
            let column: Vec<f64> = scores.iter().map(|row| row[component]).collect();
            sink.offer(component as u32, &column);
        }
        let mut out = Responsibilities::zeros(n, width);
        sink.normalize(&mut out.components, &mut out.values, &mut out.log_normalizers).expect("finite");
        out
    }

    /// The same by sorting: the plain way that the sink must agree with.
    fn by_sorting(row: &[f64], width: usize) -> (Vec<(u32, f64)>, f64) {
        let mut order: Vec<usize> = (0..row.len()).collect();
        order.sort_by(|&a, &b| row[b].partial_cmp(&row[a]).expect("finite").then(a.cmp(&b)));
        order.truncate(width);
        let total: f64 = order.iter().map(|&k| (row[k] - row[order[0]]).exp()).sum();
        let mut pairs: Vec<_> = order.iter().map(|&k| (k as u32, (row[k] - row[order[0]]).exp() / total)).collect();
        pairs.sort_by_key(|pair| pair.0);
        (pairs, row[order[0]] + total.ln())
    }

    proptest! {
        #[test]
        fn the_sink_keeps_what_sorting_keeps(
            scores in (1_usize..7).prop_flat_map(|k| prop::collection::vec(
                prop::collection::vec((-4_i32..4).prop_map(|x| f64::from(x) * 0.7), k), 1..9)),
            width in 1_usize..7,
        ) {
            // Few distinct values, so that ties are common.
            let width = width.min(scores[0].len());
            let found = select(&scores, width);
            for (unit, row) in scores.iter().enumerate() {
                let (pairs, log_normalizer) = by_sorting(row, width);
                let slots = unit * width..(unit + 1) * width;
                let mut ours: Vec<_> =
                    slots.map(|slot| (found.components[slot], found.values[slot])).collect();
                ours.sort_by_key(|pair| pair.0);
                for (mine, theirs) in ours.iter().zip(&pairs) {
                    prop_assert_eq!(mine.0, theirs.0);
                    prop_assert!((mine.1 - theirs.1).abs() < 1e-14);
                }
                prop_assert!((found.log_normalizers[unit] - log_normalizer).abs() < 1e-13);
                let best = (0..row.len()).fold(0, |a, b| if row[b] > row[a] { b } else { a });
                prop_assert_eq!(found.best(unit) as usize, best);
            }
        }

        #[test]
        fn no_other_support_is_better(row in prop::collection::vec(-5.0_f64..5.0, 1..7), width in 1_usize..7) {
            // Spec 3.1: over all supports of at most L components the largest value is the log-sum-exp of the top L.
            let k = row.len();
            let width = width.min(k);
            let value = |mask: u32| {
                let kept: Vec<f64> = (0..k).filter(|i| mask >> i & 1 == 1).map(|i| row[i]).collect();
                kept.iter().map(|w| w.exp()).sum::<f64>().ln()
            };
            let best = (1_u32..1 << k)
                .filter(|mask| mask.count_ones() as usize <= width)
                .map(value)
                .fold(f64::NEG_INFINITY, f64::max);
            let found = select(std::slice::from_ref(&row), width);
            prop_assert!((found.log_normalizers[0] - best).abs() < 1e-12);
        }
    }

    #[test]
    fn a_row_without_a_finite_weight_is_reported() {
        for width in [1, 2] {
            let mut sink = TopL::default();
            sink.reset(3, width, 2);
            sink.offer(0, &[0.0, f64::NAN, 1.0]);
            sink.offer(1, &[0.0, f64::NEG_INFINITY, 1.0]);
            let mut out = Responsibilities::zeros(3, width);
            let outcome = sink.normalize(&mut out.components, &mut out.values, &mut out.log_normalizers);
            assert_eq!(outcome, Err(1));
        }
    }

    #[test]
    fn sparsity_is_between_one_and_the_number_of_components() {
        assert_eq!(Sparsity::Auto.width(5), Ok(5));
        assert_eq!(Sparsity::Auto.width(50), Ok(8));
        assert_eq!(Sparsity::Dense.width(50), Ok(50));
        assert_eq!(Sparsity::Limited(4).width(50), Ok(4));
        assert!(Sparsity::Limited(51).width(50).is_err());
        assert!(Sparsity::Limited(0).width(50).is_err());
    }
}
