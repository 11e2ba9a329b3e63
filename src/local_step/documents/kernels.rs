//! Loops over the words of one document, vectorised over topics (mathematics 11.3).

use pulp::{Simd, WithSimd};

use crate::local_step::documents::table::{LANES, LEAST};
use crate::responsibilities::RowBest;
use crate::special::{digamma_of_positive, exp_of_nonpositive};

/// Weights of the words of a document in a subset of the topics.
#[derive(Debug, Clone, Copy)]
pub struct WordRows<'a> {
    /// Rows, stored consecutively.
    pub values: &'a [f32],
    /// Length of a row, a multiple of the vector length.
    pub width: usize,
    /// The row of each word.
    pub places: &'a [u32],
}

impl<'a> WordRows<'a> {
    #[inline(always)]
    fn row(&self, word: usize) -> &'a [f32] {
        &self.values[self.places[word] as usize * self.width..][..self.width]
    }
}

/// Computes expected counts under dense responsibilities: `N_k = sum_u w_u p_k e_uk / sum_l p_l e_ul`.
pub struct Expect<'a> {
    /// Word weights e.
    pub rows: WordRows<'a>,
    /// Word counts w.
    pub counts: &'a [f32],
    /// Topic weights p.
    pub weights: &'a [f32],
    /// `sum_l p_l e_ul`, one per word.
    pub sums: &'a mut [f32],
    /// Expected counts N.
    pub out: &'a mut [f32],
}

/// Number of words that are processed together.
const TOGETHER: usize = 4;

impl WithSimd for Expect<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { rows, counts, weights, sums: of_words, out } = self;
        out.fill(0.0);
        let weights: &[S::f32s] = bytemuck::cast_slice(weights);
        let out: &mut [S::f32s] = bytemuck::cast_slice_mut(out);
        let n = counts.len();
        let whole = n / TOGETHER * TOGETHER;
        for first in (0..whole).step_by(TOGETHER) {
            let of: [&[S::f32s]; TOGETHER] =
                std::array::from_fn(|offset| &bytemuck::cast_slice(rows.row(first + offset))[..weights.len()]);
            let mut sums = [simd.splat_f32s(0.0); TOGETHER];
            for (column, &weight) in weights.iter().enumerate() {
                for (sum, row) in sums.iter_mut().zip(&of) {
                    *sum = simd.mul_add_e_f32s(weight, row[column], *sum);
                }
            }
            let mut shares = [simd.splat_f32s(0.0); TOGETHER];
            for (offset, (share, sum)) in shares.iter_mut().zip(sums).enumerate() {
                let sum = simd.reduce_sum_f32s(sum);
                of_words[first + offset] = sum;
                *share = simd.splat_f32s(counts[first + offset] / sum);
            }
            for (column, out) in out.iter_mut().enumerate() {
                let mut sum = *out;
                for (&share, row) in shares.iter().zip(&of) {
                    sum = simd.mul_add_e_f32s(share, row[column], sum);
                }
                *out = sum;
            }
        }
        for word in whole..n {
            let row: &[S::f32s] = bytemuck::cast_slice(rows.row(word));
            let mut sum = simd.splat_f32s(0.0);
            for (&weight, &word_weight) in weights.iter().zip(row) {
                sum = simd.mul_add_e_f32s(weight, word_weight, sum);
            }
            let sum = simd.reduce_sum_f32s(sum);
            of_words[word] = sum;
            let share = simd.splat_f32s(counts[word] / sum);
            for (out, &word_weight) in out.iter_mut().zip(row) {
                *out = simd.mul_add_e_f32s(share, word_weight, *out);
            }
        }
        for (out, &weight) in out.iter_mut().zip(weights) {
            *out = simd.mul_f32s(*out, weight);
        }
    }
}

/// Selects the `width` best topics of each word, and computes expected counts under responsibilities restricted to
/// them.
pub struct Select<'a> {
    /// Word weights e.
    pub rows: WordRows<'a>,
    /// Word counts w.
    pub counts: &'a [f32],
    /// Topic weights p.
    pub weights: &'a [f32],
    /// Maximum number of topics to keep per word.
    pub width: usize,
    /// The kept topics, (n, width), best first; unused entries repeat the first topic. On entry the topics kept before,
    /// which are likely to be kept again.
    pub kept: &'a mut [u32],
    /// Number of topics kept per word; on entry 0 if none are known.
    pub lengths: &'a mut [u32],
    /// Scratch space: the products of one word.
    pub products: &'a mut [f32],
    /// Scratch space of the selection.
    pub best: &'a mut RowBest<f32>,
    /// Sums of the kept products, one per word.
    pub sums: &'a mut [f32],
    /// Expected counts N.
    pub out: &'a mut [f32],
}

impl WithSimd for Select<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { rows, counts, weights, width, kept, lengths, products, best, sums, out } = self;
        out.fill(0.0);
        let of_words = kept.chunks_exact_mut(width).zip(lengths).zip(counts.iter().zip(sums)).enumerate();
        for (word, ((kept, length), (&count, of_word))) in of_words {
            list_topics(simd, rows.row(word), weights, width, &kept[..*length as usize], products, best);
            let mut sum = 0.0;
            for &score in &best.scores {
                sum += score;
            }
            *of_word = sum;
            let share = count / sum;
            *length = best.scores.len() as u32;
            for ((slot, &score), &topic) in kept.iter_mut().zip(&best.scores).zip(&best.components) {
                *slot = topic;
                out[topic as usize] += share * score;
            }
            // The unused entries have no meaning.
            kept[best.scores.len()..].fill(best.components[0]);
        }
    }
}

/// Lists the `width` best topics of one word in `best`.
pub struct ListTopics<'a> {
    /// Weights of the word in the topics.
    pub row: &'a [f32],
    /// Topic weights p.
    pub weights: &'a [f32],
    /// Maximum number of topics.
    pub width: usize,
    /// Scratch space: the products of the word.
    pub products: &'a mut [f32],
    /// The result: the products of the best topics, best first, and these topics.
    pub best: &'a mut RowBest<f32>,
}

impl WithSimd for ListTopics<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        list_topics(simd, self.row, self.weights, self.width, &[], self.products, self.best);
    }
}

#[inline(always)]
fn list_topics<S: Simd>(
    simd: S,
    row: &[f32],
    weights: &[f32],
    width: usize,
    likely: &[u32],
    products: &mut [f32],
    best: &mut RowBest<f32>,
) {
    let (row, weights): (&[S::f32s], &[S::f32s]) = (bytemuck::cast_slice(row), bytemuck::cast_slice(weights));
    let all: &mut [S::f32s] = bytemuck::cast_slice_mut(products);
    for ((product, &weight), &word_weight) in all.iter_mut().zip(weights).zip(row) {
        *product = simd.mul_f32s(weight, word_weight);
    }
    best.list(simd, products, width, likely);
}

/// Computes the weights of topics, `exp(digamma(N_k + a_k) + ln c_k)` relative to the largest and at least
/// [`super::table::LEAST`]. They are zero where ln c_k is minus infinity, and in the padding.
pub struct WeighTopics<'a> {
    /// Expected counts N.
    pub counts: &'a [f32],
    /// Prior pseudo-counts a.
    pub prior: &'a [f64],
    /// ln c.
    pub log_factors: &'a [f64],
    /// Logarithms of the weights.
    pub logs: &'a mut Vec<f64>,
    /// The weights.
    pub out: &'a mut [f32],
}

impl WithSimd for WeighTopics<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { counts, prior, log_factors, logs, out } = self;
        let n = prior.len();
        logs.resize(n, 0.0);
        for (((log, &count), a), log_factor) in logs.iter_mut().zip(counts).zip(prior).zip(log_factors) {
            *log = digamma_of_positive(f64::from(count) + a) + log_factor;
        }
        scale_weights(logs, out);
    }
}

/// Exponentiates weights relative to the largest.
#[inline(always)]
pub fn scale_weights(logs: &mut [f64], out: &mut [f32]) {
    let n = logs.len();
    let mut bests = [f64::NEG_INFINITY; LANES];
    for chunk in logs.chunks(LANES) {
        for (best, &log) in bests.iter_mut().zip(chunk) {
            *best = if log > *best { log } else { *best };
        }
    }
    let best = bests.into_iter().fold(f64::NEG_INFINITY, f64::max);
    for (log, out) in logs.iter_mut().zip(out.iter_mut()) {
        let weight = exp_of_nonpositive(*log - best) as f32;
        let least = if *log > f64::NEG_INFINITY { LEAST } else { 0.0 };
        *out = if weight > least { weight } else { least };
    }
    out[n..].fill(0.0);
}
