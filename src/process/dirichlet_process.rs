//! The Dirichlet process with the nested truncation q(z > K) = 0 (spec 2a; Hughes & Sudderth 2013, Eq. 4 and 10).

use crate::error::{Error, Result};
use crate::parameters::Parameters;
use crate::process::{Allocation, Process, concentration};
use crate::special::{digamma, ln_beta};

/// v_k ~ Beta(1, concentration), w_k = v_k prod_{l<k} (1 - v_l).
#[derive(Debug)]
pub struct DirichletProcess {
    concentration: f64,
}

impl DirichletProcess {
    /// From the parameters `concentration` and `truncation`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] naming the parameter, [`Error::NotSupported`] for other truncations.
    pub fn new(parameters: &Parameters) -> Result<Self> {
        parameters.only(&["concentration", "truncation"])?;
        match parameters.text("truncation", "nested")? {
            "nested" => Ok(Self { concentration: concentration(parameters)? }),
            other @ ("stick" | "tail") => {
                Err(Error::NotSupported { what: format!("truncation {other:?}"), instead: "use \"nested\"".into() })
            }
            other => Err(Error::invalid("truncation", format!("{other:?}"), "one of \"nested\", \"stick\", \"tail\"")),
        }
    }
}

impl Process for DirichletProcess {
    fn bound(&self) -> &'static str {
        "nested"
    }

    fn n_components(&self) -> Option<usize> {
        None
    }

    fn concentration(&self) -> f64 {
        self.concentration
    }

    /// eta_k1 = 1 + N_k, eta_k0 = alpha + N_{>k}.
    fn allocate(&self, counts: &[f64]) -> Allocation {
        let k = counts.len();
        let mut behind = vec![0.0; k];
        for j in (1..k).rev() {
            behind[j - 1] = behind[j] + counts[j];
        }
        let prior = ln_beta(1.0, self.concentration);
        let mut allocation = Allocation {
            expected_log_weights: Vec::with_capacity(k),
            expected_weights: Vec::with_capacity(k),
            leftover: 1.0,
            divergence: 0.0,
            bound: 0.0,
        };
        let mut log_left = 0.0;
        for (&count, &after) in counts.iter().zip(&behind) {
            let (on, off) = (1.0 + count, self.concentration + after);
            let total = digamma(on + off);
            let (log_on, log_off) = (digamma(on) - total, digamma(off) - total);
            allocation.expected_log_weights.push(log_left + log_on);
            log_left += log_off;
            allocation.expected_weights.push(allocation.leftover * (on / (on + off)));
            allocation.leftover *= off / (on + off);
            let gain = ln_beta(on, off) - prior;
            allocation.bound += gain;
            allocation.divergence += count * log_on + after * log_off - gain;
        }
        allocation
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn process(concentration: f64) -> DirichletProcess {
        DirichletProcess { concentration }
    }

    /// Property 3 of spec 7 in the form of 2a.3: for hard counts, exp L* with the gap factors, summed over the orders,
    /// is Ewens' formula.
    #[test]
    fn the_orders_sum_to_the_ewens_formula() {
        let alpha = 1.7;
        let sizes = [3.0, 1.0, 4.0];
        let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        let total: f64 = orders
            .iter()
            .map(|order| {
                let counts = order.map(|i| sizes[i]);
                let gaps: f64 =
                    (0..3).map(|i| counts[i..].iter().sum::<f64>()).map(|from| (alpha + from) / from).product();
                process(alpha).allocate(&counts).bound.exp() * gaps
            })
            .sum();
        // alpha^3 Gamma(alpha) / Gamma(alpha + 8) * 2! 0! 3!
        let rising: f64 = (0..8).map(|i| alpha + f64::from(i)).product();
        assert!((total - alpha.powi(3) / rising * 12.0).abs() < 1e-12 * total);
    }

    proptest! {
        #[test]
        fn the_collapsed_bound_is_the_general_one(
            counts in prop::collection::vec(0.0_f64..50.0, 1..12), alpha in 0.05_f64..20.0,
        ) {
            let allocation = process(alpha).allocate(&counts);
            let weighted: f64 =
                counts.iter().zip(&allocation.expected_log_weights).map(|(n, w)| n * w).sum();
            let general = weighted - allocation.divergence;
            prop_assert!((general - allocation.bound).abs() < 1e-9 * (1.0 + weighted.abs()));
            let total: f64 = allocation.expected_weights.iter().sum::<f64>() + allocation.leftover;
            prop_assert!((total - 1.0).abs() < 1e-12);
            prop_assert!(allocation.divergence > -1e-9);
        }

        /// Property 11: an empty component at the end changes nothing; at position j it costs
        /// ln(alpha / (alpha + N_{>=j})).
        #[test]
        fn an_empty_component_at_the_end_is_free(
            counts in prop::collection::vec(0.01_f64..50.0, 1..12), alpha in 0.05_f64..20.0, at in 0_usize..12,
        ) {
            let before = process(alpha).allocate(&counts).bound;
            let at = at % (counts.len() + 1);
            let behind: f64 = counts[at..].iter().sum();
            let mut longer = counts.clone();
            longer.insert(at, 0.0);
            let after = process(alpha).allocate(&longer).bound;
            let cost = (alpha / (alpha + behind)).ln();
            prop_assert!((after - before - cost).abs() < 1e-9 * (1.0 + before.abs()));
        }

        /// Property 12: decreasing counts are best.
        #[test]
        fn decreasing_order_is_best(
            mut counts in prop::collection::vec(0.0_f64..50.0, 1..12).prop_shuffle(), alpha in 0.05_f64..20.0,
        ) {
            let any = process(alpha).allocate(&counts).bound;
            counts.sort_by(|a, b| b.total_cmp(a));
            let sorted = process(alpha).allocate(&counts).bound;
            prop_assert!(sorted >= any - 1e-10 * (1.0 + any.abs()));
        }
    }
}
