//! The finite symmetric Dirichlet of total mass `concentration` (spec 2d).

use crate::error::{Error, Result};
use crate::parameters::Parameters;
use crate::process::{Allocation, Process, concentration};
use crate::special::{digamma, ln_gamma};

/// w ~ Dir(concentration / K, ..., concentration / K).
#[derive(Debug)]
pub struct FiniteDirichlet {
    n_components: usize,
    concentration: f64,
}

impl FiniteDirichlet {
    /// From the parameters `n_components` and `concentration`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] naming the parameter.
    pub fn new(parameters: &Parameters) -> Result<Self> {
        parameters.only(&["n_components", "concentration"])?;
        let allowed = "a whole number of at least 1";
        match parameters.number("n_components")? {
            Some(k) if k >= 1.0 && k.fract() == 0.0 && k < f64::from(u32::MAX) => {
                Ok(Self { n_components: k as usize, concentration: concentration(parameters)? })
            }
            Some(k) => Err(Error::invalid("n_components", k, allowed)),
            None => Err(Error::invalid("n_components", "absent", allowed)),
        }
    }
}

impl Process for FiniteDirichlet {
    fn bound(&self) -> &'static str {
        "finite"
    }

    fn n_components(&self) -> Option<usize> {
        Some(self.n_components)
    }

    fn concentration(&self) -> f64 {
        self.concentration
    }

    /// theta_k = alpha / K + N_k.
    fn allocate(&self, counts: &[f64]) -> Allocation {
        let share = self.concentration / self.n_components as f64;
        let total = self.concentration + counts.iter().sum::<f64>();
        let log_total = digamma(total);
        let expected_log_weights: Vec<f64> = counts.iter().map(|n| digamma(share + n) - log_total).collect();
        let gains: f64 = counts.iter().map(|n| ln_gamma(share + n) - ln_gamma(share)).sum();
        let bound = gains - ln_gamma(total) + ln_gamma(self.concentration);
        let weighted: f64 = counts.iter().zip(&expected_log_weights).map(|(n, w)| n * w).sum();
        Allocation {
            expected_weights: counts.iter().map(|n| (share + n) / total).collect(),
            expected_log_weights,
            leftover: 0.0,
            divergence: weighted - bound,
            bound,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// KL(Dir(theta) || Dir(alpha / K)) by its textbook form.
        #[test]
        fn the_divergence_is_the_textbook_one(
            counts in prop::collection::vec(0.0_f64..50.0, 1..10), alpha in 0.05_f64..20.0,
        ) {
            let k = counts.len();
            let allocation = FiniteDirichlet { n_components: k, concentration: alpha }.allocate(&counts);
            let share = alpha / k as f64;
            let theta: Vec<f64> = counts.iter().map(|n| share + n).collect();
            let total: f64 = theta.iter().sum();
            let textbook = ln_gamma(total) - ln_gamma(alpha) + k as f64 * ln_gamma(share)
                - theta.iter().map(|&t| ln_gamma(t)).sum::<f64>()
                + theta.iter().map(|&t| (t - share) * (digamma(t) - digamma(total))).sum::<f64>();
            prop_assert!((allocation.divergence - textbook).abs() < 1e-9 * (1.0 + textbook.abs() + total));
            prop_assert!((allocation.expected_weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }

        /// Property 13: the labels do not matter.
        #[test]
        fn labels_do_not_matter(
            counts in prop::collection::vec(0.0_f64..50.0, 2..10), alpha in 0.05_f64..20.0,
        ) {
            let process = FiniteDirichlet { n_components: counts.len(), concentration: alpha };
            let mut turned = counts.clone();
            turned.rotate_left(1);
            let (a, b) = (process.allocate(&counts).bound, process.allocate(&turned).bound);
            prop_assert!((a - b).abs() < 1e-10 * (1.0 + a.abs()));
        }
    }
}
