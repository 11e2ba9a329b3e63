//! The finite symmetric Dirichlet of total mass `concentration` (mathematics 2d).

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::objective::Objective;
use crate::parameters::Parameters;
use crate::process::concentration::CONCENTRATION;
use crate::process::partitions::gamma_weights;
use crate::process::{
    Allocation, Concentration, Exchangeable, Hyperparameters, Occupancy, Partitions, Process, ProcessState,
    WeightSource, Weights, point, refused,
};
use crate::registry::{DefaultValue, Entry, Parameter, ParameterKind};
use crate::rng::Draws;
use crate::special::{digamma, ln_gamma, ln_gamma_difference};

/// w ~ Dir(concentration / K, ..., concentration / K).
#[derive(Debug)]
pub struct FiniteDirichlet {
    n_components: usize,
    concentration: f64,
}

const N_COMPONENTS: Parameter = Parameter::new("n_components", ParameterKind::integer_from(1), DefaultValue::Required);

impl FiniteDirichlet {
    /// Entry in the registry.
    pub const ENTRY: Entry = Entry {
        faces: &["weights", "partitions", "shares"],
        parameters: &[N_COMPONENTS, CONCENTRATION],
        ..Entry::new("FiniteDirichlet")
    };

    /// Builds the process from the parameters of [`FiniteDirichlet::ENTRY`].
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] naming the parameter, [`Error::NotSupported`] for a prior on the concentration.
    pub fn new(parameters: &Parameters) -> Result<Self> {
        parameters.check(&Self::ENTRY)?;
        let why = "it is conjugate to the sticks of a DirichletProcess only";
        let concentration = Concentration::new(parameters)?.fixed("FiniteDirichlet", why)?;
        Ok(Self { n_components: parameters.integer(&N_COMPONENTS)?, concentration })
    }
}

impl Process for FiniteDirichlet {
    fn n_components(&self) -> Option<usize> {
        Some(self.n_components)
    }

    fn weights(self: Arc<Self>) -> Option<Arc<dyn Weights>> {
        Some(self)
    }

    fn partitions(self: Arc<Self>) -> Option<Arc<dyn Partitions>> {
        Some(self)
    }

    fn shares(self: Arc<Self>) -> Option<Arc<dyn Exchangeable>> {
        Some(self)
    }
}

impl Exchangeable for FiniteDirichlet {
    fn share(&self) -> f64 {
        self.concentration / self.n_components as f64
    }
}

impl Weights for FiniteDirichlet {
    fn bound(&self) -> &'static str {
        "finite"
    }

    fn concentration(&self) -> Option<Concentration> {
        Some(Concentration::Fixed(self.concentration))
    }

    fn is_nested(&self) -> bool {
        false
    }

    fn is_ordered(&self) -> bool {
        false
    }

    fn check_objective(&self, objective: Objective) -> Result<()> {
        if objective == Objective::Map && self.concentration < self.n_components as f64 {
            return Err(refused(
                objective,
                "a concentration below n_components",
                "the density is infinite where a component has no weight",
                &format!("a concentration of at least {}", self.n_components),
            ));
        }
        Ok(())
    }

    /// theta_k = alpha / K + N_k.
    fn allocate(&self, counts: &[f64], _tail: f64, objective: Objective) -> Allocation {
        match objective {
            Objective::Variational => self.posterior(counts),
            Objective::Map => self.mode(counts),
            Objective::Ml => point::maximum_likelihood(counts),
        }
    }

    fn weight_source(&self, counts: &[f64], _tail: f64) -> Result<WeightSource> {
        let pseudo_counts: Vec<f64> = counts.iter().map(|n| self.share() + n).collect();
        Ok(Box::new(move |weights, generator| generator.simplex(&pseudo_counts, weights)))
    }
}

impl FiniteDirichlet {
    fn posterior(&self, counts: &[f64]) -> Allocation {
        let share = self.concentration / self.n_components as f64;
        let total = self.concentration + counts.iter().sum::<f64>();
        let log_total = digamma(total);
        let expected_log_weights: Vec<f64> = counts.iter().map(|n| digamma(share + n) - log_total).collect();
        // Differences, because next to a large concentration the logarithms themselves have lost the counts.
        let gains: f64 = counts.iter().map(|&n| ln_gamma_difference(share, n)).sum();
        let bound = gains - ln_gamma_difference(self.concentration, counts.iter().sum());
        let weighted: f64 = counts.iter().zip(&expected_log_weights).map(|(n, w)| n * w).sum();
        Allocation {
            expected_weights: counts.iter().map(|n| (share + n) / total).collect(),
            expected_log_weights,
            leftover: 0.0,
            divergence: weighted - bound,
            bound,
            concentration: None,
            tail_log_weight: None,
            background_weight: 0.0,
            of_documents: None,
            guard: 0.0,
        }
    }

    /// w_k proportional to N_k + alpha / K - 1, which is never negative if alpha is at least K (mathematics 2g). If all
    /// are zero, all weights are equally good.
    fn mode(&self, counts: &[f64]) -> Allocation {
        let (k, share) = (self.n_components as f64, self.concentration / self.n_components as f64);
        let masses: Vec<f64> = counts.iter().map(|n| n + (share - 1.0).max(0.0)).collect();
        let best = point::maximum_likelihood(&masses).expected_log_weights;
        let spread: f64 = if share > 1.0 { (share - 1.0) * best.iter().sum::<f64>() } else { 0.0 };
        let log_prior = ln_gamma(self.concentration) - k * ln_gamma(share) + spread;
        point::point_allocation(counts, best, 0.0, log_prior)
    }
}

impl Hyperparameters for FiniteDirichlet {
    fn start(&self, augmented: bool) -> Result<ProcessState> {
        if augmented {
            return Err(Error::not_supported(
                "process",
                "FiniteDirichlet for this sampler",
                "its partitions have no product form",
                "a DirichletProcess, or a sampler of single rows",
            ));
        }
        Ok(ProcessState { concentration: self.concentration, discount: 0.0, auxiliary: None })
    }
}

/// Labels are summed out: a partition into K blocks has M! / (M - K)! labellings by M components (mathematics 8.1).
impl Partitions for FiniteDirichlet {
    fn log_join(&self, size: usize, _: &ProcessState) -> f64 {
        (size as f64 + self.share()).ln()
    }

    fn log_open(&self, others: Occupancy, _: &ProcessState) -> f64 {
        (self.n_components.saturating_sub(others.blocks) as f64).ln() + self.share().ln()
    }

    fn log_block(&self, size: usize, _: &ProcessState) -> f64 {
        ln_gamma_difference(self.share(), size as f64)
    }

    fn log_rest(&self, all: Occupancy, _: &ProcessState) -> f64 {
        let Some(empty) = self.n_components.checked_sub(all.blocks) else { return f64::NEG_INFINITY };
        let labellings = ln_gamma_difference(empty as f64 + 1.0, all.blocks as f64);
        labellings - ln_gamma_difference(self.concentration, all.units as f64)
    }

    fn draw_weights(&self, sizes: &[usize], _: &ProcessState, draws: &mut dyn Draws) -> Vec<f64> {
        let outside = self.n_components.saturating_sub(sizes.len()) as f64 * self.share();
        gamma_weights(sizes, self.share(), outside, draws)
    }

    /// No parameter is learned.
    fn update(&self, _: &[usize], _: &mut ProcessState, _: &mut dyn Draws) {}
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compares with KL(Dir(theta) || Dir(alpha / K)) in its textbook form.
        #[test]
        fn the_divergence_is_the_textbook_one(
            counts in prop::collection::vec(0.0_f64..50.0, 1..10), alpha in 0.05_f64..20.0,
        ) {
            let k = counts.len();
            let allocation = FiniteDirichlet { n_components: k, concentration: alpha };
            let allocation = allocation.allocate(&counts, 0.0, Objective::Variational);
            let share = alpha / k as f64;
            let theta: Vec<f64> = counts.iter().map(|n| share + n).collect();
            let total: f64 = theta.iter().sum();
            let textbook = ln_gamma(total) - ln_gamma(alpha) + k as f64 * ln_gamma(share)
                - theta.iter().map(|&t| ln_gamma(t)).sum::<f64>()
                + theta.iter().map(|&t| (t - share) * (digamma(t) - digamma(total))).sum::<f64>();
            prop_assert!((allocation.divergence - textbook).abs() < 1e-9 * (1.0 + textbook.abs() + total));
            prop_assert!((allocation.expected_weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }

        /// Property 13: permuting the labels changes nothing.
        #[test]
        fn labels_do_not_matter(
            counts in prop::collection::vec(0.0_f64..50.0, 2..10), alpha in 0.05_f64..20.0,
        ) {
            let process = FiniteDirichlet { n_components: counts.len(), concentration: alpha };
            let mut turned = counts.clone();
            turned.rotate_left(1);
            let bound = |counts: &[f64]| process.allocate(counts, 0.0, Objective::Variational).bound;
            let (a, b) = (bound(&counts), bound(&turned));
            prop_assert!((a - b).abs() < 1e-10 * (1.0 + a.abs()));
        }

        /// Property 11: the family is not nested. Another empty component changes all weights.
        #[test]
        fn an_empty_component_changes_every_share(
            counts in prop::collection::vec(0.01_f64..50.0, 1..10), alpha in 0.05_f64..20.0,
        ) {
            let longer = [&counts[..], &[0.0]].concat();
            let bound = |counts: &[f64]| {
                let process = FiniteDirichlet { n_components: counts.len(), concentration: alpha };
                process.allocate(counts, 0.0, Objective::Variational).bound
            };
            let rising = |k: usize| -> f64 {
                let share = alpha / k as f64;
                counts.iter().map(|n| ln_gamma(share + n) - ln_gamma(share)).sum()
            };
            let k = counts.len();
            let change = bound(&longer) - bound(&counts);
            prop_assert!((change - (rising(k + 1) - rising(k))).abs() < 1e-9 * (1.0 + bound(&counts).abs()));
            prop_assert!(change != 0.0);
        }

        /// Mathematics 2g: no other weights have a larger `sum N_k log pi_k + log p(pi)`.
        #[test]
        fn the_mode_is_the_best_point(
            pairs in prop::collection::vec((0.0_f64..50.0, 0.01_f64..1.0), 1..10),
            above in prop_oneof![Just(0.0), 0.0_f64..20.0],
        ) {
            let (counts, other): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let k = counts.len();
            let process = FiniteDirichlet { n_components: k, concentration: k as f64 + above };
            prop_assert!(process.check_objective(Objective::Map).is_ok());
            let best = process.allocate(&counts, 0.0, Objective::Map);
            let (share, total) = (process.concentration / k as f64, other.iter().sum::<f64>());
            let constant = ln_gamma(process.concentration) - k as f64 * ln_gamma(share);
            let value: f64 = counts.iter().zip(&other).map(|(n, w)| (n + share - 1.0) * (w / total).ln()).sum();
            prop_assert!(best.bound >= constant + value - 1e-10 * (1.0 + value.abs()));
            let value_of_mode: f64 = counts.iter().zip(&best.expected_log_weights)
                .map(|(n, w)| if n + share > 1.0 { (n + share - 1.0) * w } else { 0.0 }).sum();
            prop_assert!((best.bound - constant - value_of_mode).abs() < 1e-9 * (1.0 + value_of_mode.abs()));
        }
    }

    #[test]
    fn objectives_are_refused_with_the_reason() {
        let process = FiniteDirichlet { n_components: 4, concentration: 3.9 };
        assert!(process.check_objective(Objective::Ml).is_ok());
        let refused = process.check_objective(Objective::Map).expect_err("a density without a mode").to_string();
        assert!(refused.contains("a concentration of at least 4"), "{refused}");
    }
}
