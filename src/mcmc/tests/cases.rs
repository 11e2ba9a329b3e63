//! Targets with a few rows.

use std::sync::Arc;

use crate::data::{Csr, CsrRows, DenseRows, Rows};
use crate::grounds::Grounds;
use crate::mcmc::tests::paths::partitions;
use crate::mcmc::{ChainState, Target};
use crate::model::{Named, Objective, Specification};
use crate::parallel::Cancel;
use crate::parameters::{Parameters, Value, table, vector};
use crate::special::log_sum_exp;

/// A name and parameters.
pub fn named<const N: usize>(name: &str, pairs: [(&str, Value); N]) -> Named {
    Named { name: name.to_owned(), parameters: Parameters::from_pairs(pairs) }
}

pub fn specification(likelihood: Named, process: Named) -> Specification {
    Specification {
        likelihood,
        process,
        objective: Objective::Variational,
        missing: false,
        estimated: None,
        learned: None,
        values: None,
        background: None,
    }
}

pub fn target(likelihood: Named, process: Named, rows: &dyn Rows<f64>) -> Target {
    let specification = specification(likelihood, process);
    let grounds = Grounds::for_sampler(&specification, rows, &Cancel::default()).expect("valid");
    grounds.target(rows).expect("closed")
}

pub fn gaussian(d: usize) -> Named {
    let scale = (0..d * d).map(|index| if index % (d + 1) == 0 { 1.0 } else { 0.2 }).collect();
    named(
        "Gaussian",
        [
            ("mean", vector(vec![0.3; d])),
            ("mean_precision", Value::Number(0.1)),
            ("dof", Value::Number(d as f64 + 2.0)),
            ("scale", table(d, scale)),
        ],
    )
}

/// Two loose groups of rows in two columns.
pub const POINTS: [f64; 12] = [0.1, 0.4, -0.6, 0.2, 2.1, 1.7, 1.6, 2.4, 0.9, 1.0, -0.2, 2.0];

/// Words of six rows in four columns.
pub const WORDS: [f64; 24] = [
    3.0, 0.0, 1.0, 0.0, 2.0, 1.0, 0.0, 0.0, 0.0, 2.0, 2.0, 1.0, 0.0, 0.0, 1.0, 3.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0,
    2.0,
];

pub fn dirichlet(concentration: f64) -> Named {
    named("DirichletProcess", [("concentration", Value::Number(concentration))])
}

pub fn pitman_yor(discount: f64, concentration: f64) -> Named {
    named("PitmanYor", [("discount", Value::Number(discount)), ("concentration", Value::Number(concentration))])
}

pub fn generalized_gamma(mass: f64, discount: f64) -> Named {
    named("NormalizedGeneralizedGamma", [("mass", Value::Number(mass)), ("discount", Value::Number(discount))])
}

pub fn finite(n_components: u32, concentration: f64) -> Named {
    let n_components = Value::Number(n_components.into());
    named("FiniteDirichlet", [("n_components", n_components), ("concentration", Value::Number(concentration))])
}

pub fn finite_mixtures(concentration: f64, rate: f64) -> Named {
    let pairs = [("concentration", Value::Number(concentration)), ("rate", Value::Number(rate))];
    named("MixtureOfFiniteMixtures", pairs)
}

/// The processes under which every sampler is tested.
pub fn processes() -> Vec<Named> {
    vec![
        dirichlet(0.8),
        pitman_yor(0.4, 0.5),
        pitman_yor(0.6, -0.3),
        generalized_gamma(0.7, 0.5),
        finite(3, 1.5),
        finite(9, 2.0),
        finite_mixtures(0.7, 1.5),
    ]
}

/// The first `n` points under a Gaussian.
pub fn points(process: Named, n: usize) -> Target {
    target(gaussian(2), process, &DenseRows::new(&POINTS[..2 * n], 2))
}

/// The first `n` rows of words under a multinomial, dense or sparse.
pub fn words(process: Named, n: usize, sparse: bool) -> Target {
    let likelihood = named("Multinomial", [("pseudo_counts", vector(vec![0.4, 0.7, 1.0, 0.5]))]);
    let values = &WORDS[..4 * n];
    if !sparse {
        return target(likelihood, process, &DenseRows::new(values, 4));
    }
    let (mut starts, mut columns, mut stored) = (vec![0_u64], Vec::new(), Vec::new());
    for row in values.chunks_exact(4) {
        for (column, &value) in row.iter().enumerate().filter(|(_, value)| **value != 0.0) {
            columns.push(column as u32);
            stored.push(value);
        }
        starts.push(stored.len() as u64);
    }
    let table = Csr { starts: &starts, columns: &columns, values: &stored };
    target(likelihood, process, &CsrRows::new(table, 4).expect("fits together"))
}

/// The first `n` rows of words, with exposures in place of the second column.
fn counts_with_exposures(n: usize) -> Vec<f64> {
    let mut values = WORDS[..4 * n].to_vec();
    for (row, values) in values.chunks_exact_mut(4).enumerate() {
        values[1] = 0.5 + 0.75 * row as f64;
    }
    values
}

/// One target for each remaining likelihood of the registry, with `n` rows.
pub fn others(process: &Named, n: usize) -> Vec<Target> {
    let real = DenseRows::new(&POINTS[..2 * n], 2);
    let flags: Vec<f64> = POINTS[..2 * n].iter().map(|x| f64::from(u8::from(*x > 0.95))).collect();
    let counts = DenseRows::new(&WORDS[..4 * n], 4);
    let identity = table(2, vec![1.0, 0.1, 0.1, 0.8]);
    let mean = || ("mean", vector(vec![0.3, 0.4]));
    let precision = || ("mean_precision", Value::Number(0.2));
    // Two real columns, a count, and a code.
    let mixed: Vec<f64> = (0..n).flat_map(|row| [&POINTS[2 * row..][..2], &WORDS[4 * row..][..2]].concat()).collect();
    let blocks = Value::Text("Poisson 2; Gaussian 1 0; Categorical 3".to_owned());
    let values: Vec<f64> = counts_with_exposures(n);
    let with_exposures = DenseRows::new(&values[..], 4);
    let exposures = || ("exposure", Value::Number(1.0));
    let total = || ("exposure", Value::Text("total".to_owned()));
    let likelihoods: [(Named, &dyn Rows<f64>); 14] = [
        (named("Columns", [("blocks", blocks)]), &DenseRows::new(&mixed[..], 4)),
        (named("ZeroMeanGaussian", [("dof", Value::Number(3.0)), ("scale", identity.clone())]), &real),
        (
            named(
                "DiagonalGaussian",
                [mean(), precision(), ("shape", Value::Number(2.0)), ("rate", Value::Number(1.0))],
            ),
            &real,
        ),
        (
            named(
                "SphericalGaussian",
                [mean(), precision(), ("shape", Value::Number(2.0)), ("rate", Value::Number(1.0))],
            ),
            &real,
        ),
        (named("KnownCovarianceGaussian", [("covariance", identity), mean(), precision()]), &real),
        (named("Bernoulli", []), &DenseRows::new(&flags[..], 2)),
        (named("Poisson", []), &counts),
        (named("NegativeBinomial", []), &counts),
        (named("Poisson", [total()]), &counts),
        (named("NegativeBinomial", [total()]), &counts),
        (named("Poisson", [exposures()]), &with_exposures),
        (named("NegativeBinomial", [exposures()]), &with_exposures),
        (named("Categorical", []), &counts),
        (named("Multinomial", []), &counts),
    ];
    likelihoods.into_iter().map(|(likelihood, rows)| target(likelihood, process.clone(), rows)).collect()
}

/// The chain states of all partitions that the process allows, each with its exact posterior probability.
pub fn posterior(target: &Target) -> (Vec<ChainState>, Vec<f64>) {
    let states: Vec<ChainState> =
        partitions(target.n_rows()).iter().filter_map(|labels| ChainState::new(target, labels).ok()).collect();
    let log: Vec<f64> = states.iter().map(|state| log_conditional(target, state)).collect();
    let total = log_sum_exp(&log);
    (states, log.iter().map(|log| (log - total).exp()).collect())
}

/// log p(X, partition | auxiliary values), from the statistics of whole clusters and the distribution over partitions.
fn log_conditional(target: &Target, state: &ChainState) -> f64 {
    let mut labels = vec![0; target.n_rows()];
    state.clusters.write_labels(&mut labels);
    let n_clusters = labels.iter().max().map_or(0, |most| most + 1);
    let mut total = target.process.log_probability(&state.clusters.sizes(), &state.process);
    for cluster in 0..n_clusters {
        let mut cache = target.empty.clone();
        for (row, _) in labels.iter().enumerate().filter(|(_, label)| **label == cluster) {
            target.urn().add(&mut cache, target.table.row(row)).expect("definite");
        }
        total += target.urn().log_marginal_likelihood(&cache).expect("definite");
    }
    total
}

/// The same target under another distribution over partitions.
pub fn under(target: &Target, law: Arc<dyn crate::process::Partitions>) -> Target {
    let likelihood = target.likelihood.clone();
    Target::new(likelihood, law, target.table.clone(), target.log_volume).expect("closed")
}
