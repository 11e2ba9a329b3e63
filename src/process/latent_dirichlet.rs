//! Latent Dirichlet allocation: a symmetric Dirichlet prior on the weights of the topics in every document
//! (mathematics 11; Blei, Ng & Jordan 2003).

use std::sync::Arc;

use crate::component::MOST_COMPONENTS;
use crate::error::Result;
use crate::likelihood::{GUARD, dirichlet_divergence, maximum_at};
use crate::objective::Objective;
use crate::parameters::Parameters;
use crate::process::{Allocation, Concentration, Documents, Process, Weights, refused};
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

    fn concentration(&self) -> Concentration {
        Concentration::Fixed(self.concentration.unwrap_or(USUAL))
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
