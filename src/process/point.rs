//! Point estimates of the weights (mathematics 2g).

use crate::process::Allocation;

/// The allocation of point estimates with these log weights. `log_prior` is the log density of their prior, nats, with
/// all constants.
pub(super) fn point_allocation(counts: &[f64], log_weights: Vec<f64>, leftover: f64, log_prior: f64) -> Allocation {
    let pairs = counts.iter().zip(&log_weights);
    let weighted: f64 = pairs.map(|(&count, weight)| if count > 0.0 { count * weight } else { 0.0 }).sum();
    Allocation {
        expected_weights: log_weights.iter().map(|weight| weight.exp()).collect(),
        expected_log_weights: log_weights,
        leftover,
        divergence: -log_prior,
        bound: weighted + log_prior,
        concentration: None,
        tail_log_weight: None,
        background_weight: 0.0,
        of_documents: None,
        guard: 0.0,
    }
}

/// w_k = N_k / N; equal weights if all counts are zero.
pub(super) fn maximum_likelihood(counts: &[f64]) -> Allocation {
    let total: f64 = counts.iter().sum();
    let log_weights = if total > 0.0 {
        counts.iter().map(|count| (count / total).ln()).collect()
    } else {
        vec![-(counts.len() as f64).ln(); counts.len()]
    };
    point_allocation(counts, log_weights, 0.0, 0.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Gibbs' inequality: no other weights make these counts more probable.
        #[test]
        fn shares_of_the_counts_are_the_best_weights(
            pairs in prop::collection::vec((0.0_f64..50.0, 0.01_f64..1.0), 1..9),
        ) {
            let (counts, other): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let best = maximum_likelihood(&counts);
            let total: f64 = other.iter().sum();
            let value: f64 = counts.iter().zip(&other).map(|(n, w)| n * (w / total).ln()).sum();
            prop_assert!(best.bound >= value - 1e-10 * (1.0 + value.abs()));
            prop_assert!((best.expected_weights.iter().sum::<f64>() - 1.0).abs() < 1e-13);
        }
    }

    #[test]
    fn a_component_without_rows_has_no_weight() {
        let best = maximum_likelihood(&[3.0, 0.0, 1.0]);
        assert_eq!(best.expected_log_weights[1], f64::NEG_INFINITY);
        assert!((best.bound - (3.0 * 0.75_f64.ln() + 0.25_f64.ln())).abs() < 1e-14);
        assert_eq!(maximum_likelihood(&[0.0, 0.0]).expected_weights, [0.5, 0.5]);
    }
}
