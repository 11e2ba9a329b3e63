//! Values from an independent implementation in NumPy and SciPy, to 12 digits.

use crate::data::DenseRows;
use crate::mcmc::ChainState;
use crate::mcmc::Target;
use crate::mcmc::tests::cases::{dirichlet, finite_mixtures, generalized_gamma, named, pitman_yor, posterior, target};
use crate::mcmc::tests::paths::partitions;
use crate::model::Named;
use crate::parameters::{Value, table, vector};
use crate::special::log_sum_exp;

/// x | theta ~ N(theta, 1), theta ~ N(0, 4).
pub fn example(process: Named) -> Target {
    let likelihood = named(
        "KnownCovarianceGaussian",
        [("covariance", table(1, vec![1.0])), ("mean", vector(vec![0.0])), ("mean_precision", Value::Number(0.25))],
    );
    target(likelihood, process, &DenseRows::new(&[-1.8, -1.0, 0.2, 0.9, 2.0][..], 1))
}

pub fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 5e-12 * expected.abs().max(1.0), "{found} {expected}");
}

/// ln p(X), the distribution of the number of clusters, and the probability that two rows share one.
pub fn summary(target: &Target) -> (f64, Vec<f64>, impl Fn(usize, usize) -> f64) {
    let all = partitions(target.n_rows());
    let log_joint = |labels: &Vec<u32>| {
        let state = ChainState::new(target, labels).expect("allowed");
        state.log_joint(target).expect("definite")
    };
    let log: Vec<f64> = all.iter().map(log_joint).collect();
    let total = log_sum_exp(&log);
    let exact: Vec<f64> = log.iter().map(|log| (log - total).exp()).collect();
    let mut law = vec![0.0; target.n_rows()];
    for (labels, probability) in all.iter().zip(&exact) {
        law[labels.iter().max().map_or(0, |&most| most as usize)] += probability;
    }
    let together = move |i: usize, j: usize| {
        all.iter().zip(&exact).filter(|(labels, _)| labels[i] == labels[j]).map(|(_, probability)| probability).sum()
    };
    (total, law, together)
}

#[test]
fn laws_of_partitions() {
    for (process, expected) in [
        (generalized_gamma(0.7, 0.5), -5.264_962_316_268),
        (dirichlet(0.7), -4.043_303_115_817),
        (pitman_yor(0.35, 0.8), -4.742_051_668_627),
        (finite_mixtures(0.7, 1.5), -3.895_820_032_322),
    ] {
        near(log_prior(&example(process), &[0, 0, 1, 1, 0]), expected);
    }
    let target = example(generalized_gamma(0.7, 0.5));
    let mut law = [0.0; 5];
    for labels in partitions(5) {
        law[labels.iter().max().map_or(0, |&most| most as usize)] += log_prior(&target, &labels).exp();
    }
    let expected = [0.051_331_620_978, 0.180_935_574_190, 0.306_684_347_259, 0.305_304_190_099, 0.155_744_267_474];
    law.iter().zip(expected).for_each(|(found, expected)| near(*found, expected));
}

/// ln p(partition) with auxiliary values integrated out.
fn log_prior(target: &Target, labels: &[u32]) -> f64 {
    let state = ChainState::new(target, labels).expect("allowed");
    target.process.log_probability(&state.clusters.sizes(), &state.process.integrated())
}

#[test]
fn five_numbers_under_a_dirichlet_process() {
    let target = example(dirichlet(1.0));
    let (total, law, together) = summary(&target);
    near(total, -9.924_383_674_186);
    let expected = [0.096_478_345_521, 0.406_758_372_176, 0.366_788_227_700, 0.117_579_229_096, 0.012_395_825_507];
    law.iter().zip(expected).for_each(|(found, expected)| near(*found, expected));
    near(together(0, 1), 0.547_591_607_167);
    near(together(0, 4), 0.180_252_493_430);
    near(together(2, 3), 0.532_594_175_586);
    let one = ChainState::new(&target, &[0; 5]).expect("allowed");
    let prior = target.process.log_probability(&[5], &one.process);
    near(one.log_joint(&target).expect("definite") - prior, -10.653_382_456_314);
    let (_, exact) = posterior(&target);
    near(exact.iter().sum(), 1.0);
}

#[test]
fn five_numbers_under_a_generalized_gamma_process() {
    let target = example(generalized_gamma(0.7, 0.5));
    let (total, law, together) = summary(&target);
    near(total, -9.712_548_730_449);
    let expected = [0.020_034_849_451, 0.136_641_276_807, 0.307_345_950_709, 0.348_534_579_039, 0.187_443_343_994];
    law.iter().zip(expected).for_each(|(found, expected)| near(*found, expected));
    near(together(0, 1), 0.291_748_838_067);
    near(together(0, 4), 0.062_661_336_185);
    near(together(2, 3), 0.303_264_659_711);
}

#[test]
fn five_numbers_under_a_mixture_of_finite_mixtures() {
    let target = example(finite_mixtures(0.7, 1.5));
    let (total, law, together) = summary(&target);
    near(total, -10.120_589_410_613);
    let expected = [0.252_008_473_315, 0.519_474_224_708, 0.201_168_607_146, 0.026_272_750_047, 0.001_075_944_784];
    law.iter().zip(expected).for_each(|(found, expected)| near(*found, expected));
    near(together(0, 1), 0.711_708_873_549);
    near(together(0, 4), 0.339_458_588_586);
    near(together(2, 3), 0.666_489_335_272);
}

#[test]
fn marginals_of_clusters() {
    let likelihood = named(
        "Gaussian",
        [
            ("mean", vector(vec![0.0; 2])),
            ("mean_precision", Value::Number(0.1)),
            ("dof", Value::Number(8.0)),
            ("scale", table(2, vec![1.0, 0.2, 0.2, 0.5])),
        ],
    );
    let rows = [1.0, 0.0, 0.0, 1.0, -1.0, 2.0, 0.5, -0.5];
    let words = named("Multinomial", [("pseudo_counts", vector(vec![0.1; 4]))]);
    let counts = [3.0, 0.0, 1.0, 0.0, 0.0, 2.0, 2.0, 0.0];
    let cases: [(Named, &[f64], usize, usize, f64); 5] = [
        (likelihood.clone(), &rows, 2, 1, -2.325_640_107_737),
        (likelihood.clone(), &rows, 2, 2, -7.774_103_954_199),
        (likelihood, &rows, 2, 4, -18.070_044_613_227),
        (words.clone(), &counts, 4, 1, -3.901_053_974_057),
        (words, &counts, 4, 2, -10.505_103_378_556),
    ];
    for (likelihood, values, d, n, expected) in cases {
        let target = target(likelihood, dirichlet(1.0), &DenseRows::new(&values[..n * d], d));
        let state = ChainState::new(&target, &vec![0; n]).expect("allowed");
        let prior = target.process.log_probability(&[n], &state.process);
        near(state.log_joint(&target).expect("definite") - prior, expected);
    }
}
