//! Latent Dirichlet allocation: a symmetric Dirichlet prior on the weights of the topics in every document
//! (mathematics 11; Blei, Ng & Jordan 2003).

use std::sync::Arc;

use crate::component::MOST_COMPONENTS;
use crate::error::{Error, Result};
use crate::likelihood::{GUARD, dirichlet_divergence, maximum_at};
use crate::objective::Objective;
use crate::parameters::Parameters;
use crate::process::{Allocation, Concentration, Documents, Process, WeightSource, Weights, refused};
use crate::registry::{DefaultValue, Entry, Parameter, ParameterKind, Range};
use crate::special::{digamma, ln_gamma};
use crate::suffstats::DocumentTerms;

/// pi_d ~ Dir(concentration / K, ..., concentration / K) for every document d.
#[derive(Debug)]
pub struct LatentDirichlet {
    n_topics: usize,
    /// The total mass; `None` if it is estimated.
    concentration: Option<f64>,
}

/// Initial total mass if it is estimated.
const USUAL: f64 = 0.5;
/// Range of estimated pseudo-counts per topic.
const SHARES: Range = Range::closed(1e-6, 1e6);

const N_TOPICS: Parameter =
    Parameter::new("n_topics", ParameterKind::Integer { least: 1, greatest: MOST_COMPONENTS }, DefaultValue::Required);
const CONCENTRATION: Parameter = Parameter::new(
    "concentration",
    ParameterKind::Number(Range::closed(1e-9, 1e9)),
    DefaultValue::NumberOrEvidence(USUAL),
);

impl LatentDirichlet {
    /// Entry in the registry.
    pub const ENTRY: Entry =
        Entry { faces: &["documents"], parameters: &[N_TOPICS, CONCENTRATION], ..Entry::new("LatentDirichlet") };

    /// Builds the process from the parameters of [`LatentDirichlet::ENTRY`].
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] naming the parameter.
    pub fn new(parameters: &Parameters) -> Result<Self> {
        parameters.check(&Self::ENTRY)?;
        Ok(Self { n_topics: parameters.integer(&N_TOPICS)?, concentration: parameters.number("concentration")? })
    }

    /// The pseudo-count of each topic in every document. A single topic has all the weight under any pseudo-count, so
    /// documents do not determine it.
    fn share(&self, documents: Option<&DocumentTerms>) -> f64 {
        let k = self.n_topics as f64;
        let start = self.concentration.unwrap_or(USUAL) / k;
        let is_estimated = self.concentration.is_none() && self.n_topics > 1;
        match documents {
            Some(documents) if is_estimated && documents.n_documents > 0.0 => best_share(start, k, documents),
            _ => start,
        }
    }
}

/// The pseudo-count a that maximises the bound with the documents' factors fixed, including the guard towards the
/// initial value (mathematics 11.6): `D {ln Gamma(K a) - K ln Gamma(a)} + a sum_k T_k` minus [`GUARD`] times the
/// divergence from the initial value.
fn best_share(start: f64, k: f64, documents: &DocumentTerms) -> f64 {
    let log_weights: f64 = documents.log_weights.iter().sum();
    let of_start = k * (digamma(start) - digamma(k * start));
    let derivative = |a: f64| {
        let of_prior = k * (digamma(k * a) - digamma(a));
        documents.n_documents * of_prior + log_weights + GUARD * (of_prior + of_start)
    };
    maximum_at(start, SHARES, derivative)
}

impl Process for LatentDirichlet {
    fn n_components(&self) -> Option<usize> {
        Some(self.n_topics)
    }

    fn documents(self: Arc<Self>) -> Option<Arc<dyn Documents>> {
        Some(self)
    }
}

impl Weights for LatentDirichlet {
    fn bound(&self) -> &'static str {
        "documents"
    }

    fn concentration(&self) -> Option<Concentration> {
        Some(Concentration::Fixed(self.concentration.unwrap_or(USUAL)))
    }

    fn is_nested(&self) -> bool {
        false
    }

    fn is_ordered(&self) -> bool {
        false
    }

    fn check_objective(&self, objective: Objective) -> Result<()> {
        if objective == Objective::Ml {
            let reason = "words that a topic has not seen would have no probability";
            return Err(refused(objective, "topics", reason, "objective=\"map\" or \"variational\""));
        }
        Ok(())
    }

    fn allocate(&self, counts: &[f64], _tail: f64, _objective: Objective) -> Allocation {
        self.allocate_documents(counts, None)
    }

    fn weight_source(&self, _counts: &[f64], _tail: f64) -> Result<WeightSource> {
        let reason = "every document has weights of its own";
        Err(Error::not_supported("process", "draws of the weights of topics", reason, "a Mixture"))
    }
}

impl Documents for LatentDirichlet {
    fn allocate_documents(&self, counts: &[f64], documents: Option<&DocumentTerms>) -> Allocation {
        let (k, share) = (self.n_topics, self.share(documents));
        let total: f64 = counts.iter().sum();
        let weight = |n: &f64| if total > 0.0 { n / total } else { 1.0 / k as f64 };
        let expected_weights: Vec<f64> = counts.iter().map(weight).collect();
        let bound = documents.map_or(0.0, |documents| documents.bound(&vec![share; k]));
        let start = self.share(None);
        let guard = if self.concentration.is_none() {
            -GUARD * dirichlet_divergence(&vec![start; k], &vec![share; k])
        } else {
            0.0
        };
        Allocation {
            expected_log_weights: expected_weights.iter().map(|weight| weight.ln()).collect(),
            expected_weights,
            leftover: 0.0,
            divergence: -bound,
            bound,
            concentration: None,
            tail_log_weight: None,
            background_weight: 0.0,
            of_documents: Some(vec![share; k]),
            guard,
        }
    }
}

impl DocumentTerms {
    /// Contribution of the documents to the bound under the prior Dir(a), nats. With A the sum of a: `sum_d {ln
    /// B(theta_d) - ln B(a) + sum_k (N_dk + a_k - theta_dk) E log pi_dk}` (mathematics 11.2).
    pub fn bound(&self, a: &[f64]) -> f64 {
        let log_beta = a.iter().map(|&a| ln_gamma(a)).sum::<f64>() - ln_gamma(a.iter().sum());
        let log_gammas = self.log_gammas.iter().sum::<f64>() - self.log_gamma_of_totals;
        let slack: f64 = a.iter().zip(&self.slacks).zip(&self.log_weights).map(|((a, s), t)| s + a * t).sum();
        log_gammas - self.n_documents * log_beta + slack
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: f64 = USUAL / 3.0;

    /// The terms of documents with these factors Dir(theta) over three topics that the estimate reads.
    fn terms(thetas: &[[f64; 3]]) -> DocumentTerms {
        let mut terms = DocumentTerms { n_documents: thetas.len() as f64, ..DocumentTerms::zeros(3) };
        for theta in thetas {
            for (sum, value) in terms.log_weights.iter_mut().zip(theta) {
                *sum += digamma(*value) - digamma(theta.iter().sum());
            }
        }
        terms
    }

    /// KL(Dir(START) || Dir(a)) of symmetric priors over three topics.
    fn divergence(a: f64) -> f64 {
        let log_normaliser = |a: f64| ln_gamma(3.0 * a) - 3.0 * ln_gamma(a);
        let of_log_weights = 3.0 * (START - a) * (digamma(START) - digamma(3.0 * START));
        log_normaliser(START) - log_normaliser(a) + of_log_weights
    }

    /// The maximum by thirds of an interval that becomes shorter and shorter.
    fn best(objective: impl Fn(f64) -> f64) -> f64 {
        let (mut low, mut high) = (-12.0_f64, 12.0_f64);
        for _ in 0..200 {
            let third = (high - low) / 3.0;
            if objective((low + third).exp()) < objective((high - third).exp()) { low += third } else { high -= third }
        }
        low.midpoint(high).exp()
    }

    #[test]
    fn the_estimate_has_the_largest_bound_plus_guard() {
        let process = LatentDirichlet { n_topics: 3, concentration: None };
        for thetas in [[[5.2, 0.2, 1.2], [0.05, 9.1, 0.02]], [[5.0, 4.0, 4.5], [2.0, 2.2, 2.1]]] {
            let documents = terms(&thetas);
            let allocation = process.allocate_documents(&[1.0; 3], Some(&documents));
            let found = allocation.of_documents.expect("one pseudo-count of each topic")[0];
            let bound = |a: f64| documents.bound(&[a; 3]);
            let with_guard = best(|a| bound(a) - 0.001 * divergence(a));
            assert!((found / with_guard - 1.0).abs() < 1e-6, "{found} {with_guard}");
            // The guard is seen.
            let without = best(bound);
            assert!((without / with_guard - 1.0).abs() > 1e-5, "{without} {with_guard}");
            assert!((allocation.guard + 0.001 * divergence(found)).abs() < 1e-15);
        }
    }
}
