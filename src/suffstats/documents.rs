//! The local part of a process with separate weights for every document: the contribution of the documents' factors to
//! the bound, by component (mathematics 11.2).

use serde::{Deserialize, Serialize};

use crate::suffstats::merges::retain;

/// Sums over documents d of terms of q(pi_d) = Dir(theta_d), each document times its weight. Given these sums, the
/// bound is a function of the common prior a of all documents (mathematics 11.2).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DocumentTerms {
    /// Sum of the documents' weights.
    pub n_documents: f64,
    /// sum_d ln Gamma(theta_dk), (K,), nats.
    pub log_gammas: Vec<f64>,
    /// sum_d E log pi_dk, (K,), nats.
    pub log_weights: Vec<f64>,
    /// sum_d (N_dk - theta_dk) E log pi_dk, (K,), nats.
    pub slacks: Vec<f64>,
    /// sum_d ln Gamma(sum_k theta_dk), nats.
    pub log_gamma_of_totals: f64,
}

impl DocumentTerms {
    /// Terms of no documents.
    pub fn zeros(k: usize) -> Self {
        Self { log_gammas: vec![0.0; k], log_weights: vec![0.0; k], slacks: vec![0.0; k], ..Self::default() }
    }

    fn arrays(&self) -> [&Vec<f64>; 3] {
        [&self.log_gammas, &self.log_weights, &self.slacks]
    }

    fn arrays_mut(&mut self) -> [&mut Vec<f64>; 3] {
        [&mut self.log_gammas, &mut self.log_weights, &mut self.slacks]
    }

    /// Adds another's terms, times `sign`; `from` maps components of this one to components of the other.
    pub(super) fn combine(&mut self, other: &Self, from: &[Option<usize>], sign: f64) {
        self.n_documents += sign * other.n_documents;
        self.log_gamma_of_totals += sign * other.log_gamma_of_totals;
        for (mine, theirs) in self.arrays_mut().into_iter().zip(other.arrays()) {
            for (sum, from) in mine.iter_mut().zip(from) {
                *sum += from.map_or(0.0, |from| sign * theirs[from]);
            }
        }
    }

    /// All terms times a factor.
    #[must_use]
    pub(super) fn scale(&self, factor: f64) -> Self {
        let mut scaled = self.clone();
        scaled.n_documents *= factor;
        scaled.log_gamma_of_totals *= factor;
        scaled.arrays_mut().into_iter().flatten().for_each(|value| *value *= factor);
        scaled
    }

    /// Resizes to `k` components; the terms of new components are unknown until the next visit.
    pub(super) fn resize(&mut self, k: usize) {
        self.arrays_mut().into_iter().for_each(|values| values.resize(k, 0.0));
    }

    /// Adds the terms of the component at `gone` to those of the one at `keep`. ln Gamma(a + n) - ln Gamma(a) is convex
    /// in n and zero at zero, so the sum of two terms is at most the term of the sum: until the next visit the bound
    /// can only be too low.
    pub(super) fn merge(&mut self, keep: usize, gone: usize) {
        self.arrays_mut().into_iter().for_each(|values| values[keep] += values[gone]);
    }

    pub(super) fn retain(&mut self, is_kept: &[bool]) {
        self.arrays_mut().into_iter().for_each(|values| retain(values, is_kept));
    }

    pub(super) fn permute(&mut self, from: &[usize]) {
        self.arrays_mut().into_iter().for_each(|values| *values = from.iter().map(|&k| values[k]).collect());
    }

    /// Whether these can be terms of `k` components, since files are not trusted.
    pub fn fits(&self, k: usize) -> bool {
        let all = self.arrays();
        let numbers = [self.n_documents, self.log_gamma_of_totals];
        all.iter().all(|values| values.len() == k)
            && all.into_iter().flatten().chain(&numbers).all(|value| value.is_finite())
            && self.n_documents >= -1e-6
    }
}
