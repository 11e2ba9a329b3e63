//! Conditional samplers: drawn densities average to the predictive, sweeps keep the prior (Geweke 2004), the same bits
//! for any number of threads and whatever a chain remembers of its last sweep, and damaged states.

use std::sync::atomic::Ordering;

use rand::RngExt;
use rand_distr::StandardNormal;

use super::*;
use crate::data::DenseRows;
use crate::grounds::Grounds;
use crate::likelihood::Density;
use crate::local_step::RawScores;
use crate::mcmc::tests::cases::{finite, gaussian, generalized_gamma, named, pitman_yor, specification};
use crate::mcmc::{Sampler, Setup, Start};
use crate::model::Named;
use crate::parallel::with_threads;
use crate::parameters::{Parameters, Value, table, vector};
use crate::process::ProcessState;
use crate::registry::Entry;
use crate::rng::stream;
use crate::suffstats::Sufficient;

/// The scores of rows with the terms of the rows alone, (n, K).
fn scores(field: &Field<'_>, scorer: &dyn crate::scoring::Scorer<f64>) -> Vec<f64> {
    struct Table(Vec<f64>);
    impl crate::local_step::Tap for Table {
        fn observe(&mut self, chunk: &crate::local_step::Chunk<'_>) -> Result<()> {
            self.0.extend(&chunk.responsibilities.values);
            Ok(())
        }
    }
    let mut found = Table(Vec::new());
    let ids: Vec<_> = (0..scorer.n_components() as u32).map(crate::component::ComponentId).collect();
    let step = crate::local_step::LocalStep {
        likelihood: field.likelihood.as_ref(),
        ids: &ids,
        assign: &RawScores { scorer },
        keep: crate::local_step::Keep::Nothing,
        cancel: &Cancel::default(),
    };
    step.run(field.units(), None, &mut [&mut found]).expect("finite");
    found.0
}

/// Whole parameters and rows for every likelihood with draws of parameters.
fn likelihoods() -> Vec<(Named, Vec<f64>, bool)> {
    let real = vec![0.3, -1.2, 0.8, 0.4, 1.9, -0.6, -0.7, 0.2, 1.1, 0.5];
    let counts = vec![3.0, 0.0, 1.0, 2.0, 0.0, 4.0, 1.0, 1.0, 2.0, 0.0];
    let flags = vec![1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0];
    let number = Value::Number;
    let shape_and_rate = [
        ("mean", vector(vec![0.1, 0.2])),
        ("mean_precision", number(0.7)),
        ("shape", number(3.0)),
        ("rate", number(2.0)),
    ];
    let covariance = || ("covariance", table(2, vec![1.0, 0.3, 0.3, 0.8]));
    let mean = [covariance(), ("mean", vector(vec![0.1, 0.2])), ("mean_precision", number(0.7))];
    let scale = [("dof", number(6.0)), ("scale", table(2, vec![2.0, 0.3, 0.3, 1.5]))];
    let with_holes = |values: &[f64]| {
        values.iter().enumerate().map(|(i, x)| if i % 5 == 3 { f64::NAN } else { *x }).collect::<Vec<f64>>()
    };
    // Two blocks of one likelihood, whose draws must not hang together.
    let blocks = [
        ("blocks", Value::Text("Poisson 1; Poisson 0".into())),
        ("0.shape", number(2.0)),
        ("0.rate", number(1.5)),
        ("1.shape", number(0.7)),
        ("1.rate", number(0.4)),
    ];
    let whole = [
        ("blocks", Value::Text("ZeroMeanGaussian 1; Poisson 0".into())),
        ("0.dof", number(6.0)),
        ("0.scale", table(1, vec![2.0])),
        ("1.shape", number(2.0)),
        ("1.rate", number(1.5)),
    ];
    vec![
        (named("Columns", blocks), counts.clone(), false),
        (named("Columns", whole), with_holes(&counts), true),
        (gaussian(2), real.clone(), false),
        (named("ZeroMeanGaussian", scale), real.clone(), false),
        (named("DiagonalGaussian", shape_and_rate.clone()), real.clone(), false),
        (named("DiagonalGaussian", shape_and_rate.clone()), with_holes(&real), true),
        (named("SphericalGaussian", shape_and_rate.clone()), real.clone(), false),
        (named("SphericalGaussian", shape_and_rate), with_holes(&real), true),
        (named("KnownCovarianceGaussian", mean.clone()), real.clone(), false),
        (named("KnownCovarianceGaussian", mean), with_holes(&real), true),
        (named("Poisson", [("shape", number(2.0)), ("rate", number(1.5))]), counts.clone(), false),
        (
            named("NegativeBinomial", [("dispersion", number(1.7)), ("shape", number(2.0)), ("rate", number(1.5))]),
            counts.clone(),
            false,
        ),
        (named("Multinomial", [("pseudo_counts", vector(vec![0.8, 1.3]))]), counts, false),
        (named("Bernoulli", [("successes", number(1.2)), ("failures", number(0.8))]), flags.clone(), false),
        (named("Categorical", [("pseudo_counts", number(0.9)), ("n_levels", vector(vec![2.0, 2.0]))]), flags, false),
    ]
}

/// The mean of the densities at 40 000 draws is the predictive density, for a component without rows and one with all:
/// within 6 standard errors of the mean, which is exceeded once in 500 million draws.
#[test]
fn drawn_densities_average_to_the_predictive() {
    const DRAWS: usize = 40_000;
    let cancel = Cancel::default();
    let streams = ComponentStreams { key: 11, cancel: &cancel };
    let cancelled = Cancel::default();
    cancelled.cancel();
    let stopped = ComponentStreams { key: 11, cancel: &cancelled };
    for (likelihood, rows, missing) in likelihoods() {
        let name = likelihood.name.clone();
        let rows = DenseRows::new(&rows[..], 2);
        let model = crate::model::Specification { missing, ..specification(likelihood, dirichlet()) };
        let grounds = Grounds::for_sampler(&model, &rows, &Cancel::default()).expect(&name);
        let field = Field::new(&grounds, &rows).expect("complete");
        let state = LabelState::new(&field, &[0; 5]).expect("one cluster");
        let nothing = vec![0.0; field.likelihood.n_statistics()];
        for label in [None, Some(0)] {
            let component = state.component(label, &nothing);
            let draws: Vec<Sufficient<'_>> = vec![component; DRAWS];
            let drawn = field.likelihood.drawn_scorer(&draws, &vec![0.0; DRAWS], streams).expect("proper");
            let drawn = scores(&field, drawn.as_ref());
            let stopped = field.likelihood.drawn_scorer(&draws, &vec![0.0; DRAWS], stopped);
            assert!(matches!(stopped, Err(Error::Cancelled)), "{name}");
            let predictive = field.likelihood.scorer(&[component], &[0.0], Density::Predictive).expect("proper");
            for (drawn, predictive) in drawn.chunks_exact(DRAWS).zip(scores(&field, predictive.as_ref())) {
                let ratios: Vec<f64> = drawn.iter().map(|score| (score - predictive).exp()).collect();
                let mean = ratios.iter().sum::<f64>() / DRAWS as f64;
                let variance = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / DRAWS as f64;
                let error = (variance / DRAWS as f64).sqrt();
                assert!((mean - 1.0).abs() < 6.0 * error, "{name} {missing} {label:?}: {mean} {error}");
            }
        }
    }
}

fn dirichlet() -> Named {
    named("DirichletProcess", [("concentration", vector(vec![2.0, 1.5]))])
}

/// A discount that is rarely large, so that few components have much weight.
fn learned_pitman_yor() -> Named {
    named("PitmanYor", [("discount", vector(vec![2.0, 18.0])), ("concentration", vector(vec![2.0, 1.5]))])
}

fn learned_generalized_gamma() -> Named {
    let mass = ("mass", vector(vec![2.0, 1.5]));
    named("NormalizedGeneralizedGamma", [mass, ("discount", Value::Number(0.2))])
}

fn sampler(entry: &Entry, truncation: Option<f64>) -> Box<dyn Sampler> {
    let pairs = truncation.map(|value| ("truncation".to_owned(), Value::Number(value)));
    crate::mcmc::build(entry.name, &Parameters(pairs.into_iter().collect())).expect("a sampler")
}

/// Runs `n` sweeps of one chain on some rows; `forgets`: without what it remembers of the last sweep.
fn run(sampler: &mut dyn Sampler, process: Named, n: u64, forgets: bool) -> (Vec<i32>, Vec<u8>, Vec<f64>) {
    let values: Vec<f64> = (0..4000).map(|i| (f64::from(i) * 0.7).sin() + f64::from(i / 2 % 3)).collect();
    let rows = DenseRows::new(&values[..], 2);
    let grounds = Grounds::for_sampler(&specification(gaussian(2), process), &rows, &Cancel::default()).expect("valid");
    let cancel = Cancel::default();
    let labels: Vec<u32> = (0..2000).map(|row| row % 3).collect();
    let setup = Setup { grounds: &grounds, rows: &rows, starts: &[Start::Labels(&labels)], seed: 1, cancel: &cancel };
    let chains = sampler.chains(setup).expect("supported");
    let mut chain = chains.start(0).expect("allowed");
    let mut joints = Vec::new();
    for sweep in 0..n {
        if forgets {
            chain = chains.restore(&chain.save().expect("small")).expect("its own");
        }
        chain.sweep(&mut stream(5, Purpose::Sweeps, sweep), key(5, [sweep]), &cancel).expect("definite");
        joints.push(chain.log_joint().expect("definite"));
    }
    let mut labels = vec![0; 2000];
    chain.write_labels(&mut labels);
    (labels, chain.save().expect("small"), joints)
}

#[test]
fn threads_and_what_is_remembered_change_no_bit() {
    for (entry, truncation, process) in [
        (&BlockedGibbs::ENTRY, Some(40.0), dirichlet()),
        (&BlockedGibbs::ENTRY, None, finite(40, 2.0)),
        (&BlockedGibbs::ENTRY, Some(40.0), sticks(2.0, 3.0)),
        (&Slice::ENTRY, None, pitman_yor(0.2, 0.5)),
        (&Slice::ENTRY, None, learned_pitman_yor()),
        (&Slice::ENTRY, None, generalized_gamma(0.7, 0.2)),
    ] {
        let of = |threads: usize, forgets: bool| {
            let mut sampler = sampler(entry, truncation);
            with_threads(Some(threads), || run(sampler.as_mut(), process.clone(), 6, forgets)).expect("threads")
        };
        let one = of(1, false);
        assert_eq!(one, of(3, false), "{}", process.name);
        assert_eq!(one, of(1, true), "{}", process.name);
    }
}

#[test]
fn damaged_states_are_refused() {
    let values: Vec<f64> = (0..12).map(|i| f64::from(i).sin()).collect();
    let rows = DenseRows::new(&values[..], 2);
    let cancel = Cancel::default();
    let model = specification(gaussian(2), dirichlet());
    let grounds = Grounds::for_sampler(&model, &rows, &cancel).expect("valid");
    let setup = || Setup { grounds: &grounds, rows: &rows, starts: &[Start::Single], seed: 1, cancel: &cancel };
    let mut slice = Slice;
    let chains = slice.chains(setup()).expect("supported");
    let mut chain = chains.start(0).expect("allowed");
    chain.sweep(&mut stream(5, Purpose::Sweeps, 0), 3, &cancel).expect("definite");
    let bytes = chain.save().expect("small");
    assert!(chains.restore(&bytes).is_some());
    for bit in 0..8 * bytes.len() {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        // Some bit flips leave a possible chain, whose next sweep must not panic.
        if let Some(mut chain) = chains.restore(&bytes) {
            drop(chain.sweep(&mut stream(5, Purpose::Sweeps, 1), 4, &cancel));
        }
    }
    assert!((0..bytes.len()).all(|length| chains.restore(&bytes[..length]).is_none()));
    let mut few = BlockedGibbs::new(&Parameters::from_pairs([("truncation", Value::Number(1.0))])).expect("valid");
    let start = Setup { starts: &[Start::Labels(&[0, 1, 0, 1, 0, 1])], ..setup() };
    let refused = few.chains(start).and_then(|chains| chains.check_room(1, 1));
    assert!(matches!(refused, Err(Error::InvalidArgument { argument, .. }) if argument == "init"));
}

/// Checks that sticks follow the concentration that a sweep has drawn, not the one before it: `v ~ Beta(1 + N_k,
/// concentration + N_{>k})`. Their sum is within 6 standard deviations of that of the means, which each of two checks
/// exceeds once in 500 million streams.
pub(super) fn check_sticks(weighing: &dyn WeightDraws, process: &Named) {
    let values = [0.1, 0.4, -0.6, 2.1, 1.7];
    let rows = DenseRows::new(&values[..], 1);
    let model = specification(gaussian(1), process.clone());
    let grounds = Grounds::for_sampler(&model, &rows, &Cancel::default()).expect("valid");
    let field = Field::new(&grounds, &rows).expect("complete");
    let (mut away, mut variances) = ([0.0; 2], [0.0_f64; 2]);
    for seed in 0..300 {
        let mut state = LabelState::new(&field, &[0, 0, 0, 1, 1]).expect("two clusters");
        state.process.concentration = 1.0;
        let drawn = weighing.weigh(&mut state, &mut stream(seed, Purpose::Sweeps, 0), seed).expect("few");
        let (_, sticks) = drawn.sticks.expect("of all components");
        for (cluster, (size, behind)) in [(3.0, 2.0), (2.0, 0.0)].into_iter().enumerate() {
            let (a, b) = (1.0 + size, state.process.concentration + behind);
            let mean = a / (a + b);
            away[cluster] += sticks[cluster].log_on.exp() - mean;
            variances[cluster] += mean * (1.0 - mean) / (a + b + 1.0);
        }
    }
    for (away, variance) in away.into_iter().zip(variances) {
        assert!(away.abs() < 6.0 * variance.sqrt(), "{away} {variance}");
    }
}

/// A concentration that is far above 1 once it is drawn.
pub(super) fn large() -> Named {
    named("DirichletProcess", [("concentration", vector(vec![4.0, 0.04]))])
}

/// A known variance of rows about their means, and of the means.
fn normal() -> Named {
    named(
        "KnownCovarianceGaussian",
        [("covariance", table(1, vec![1.0])), ("mean", vector(vec![0.0])), ("mean_precision", Value::Number(0.25))],
    )
}

/// Number of statistics of a state.
const N_STATISTICS: usize = 5;

/// Deviations of means from those of independent draws of the prior, in standard errors: of the number of clusters, the
/// sum of squared sizes, the logarithm of the concentration, the discount, and the product of the first and the third,
/// where rows are drawn anew after each sweep. Labels and learned parameters persist. Labels that follow the
/// concentration of the sweep before have the right distribution, and so has the concentration, but they do not go
/// together.
fn away(entry: &Entry, truncation: Option<f64>, process: &Named, n: usize) -> [f64; N_STATISTICS] {
    const SWEEPS: u64 = 40_000;
    const BATCHES: usize = 100;
    let mut generator = stream(23, Purpose::Draws, 0);
    let cancel = Cancel::default();
    let mut saved: Option<LabelState> = None;
    let mut means = vec![[0.0; N_STATISTICS]; BATCHES];
    for sweep in 0..SWEEPS {
        let mut places = std::collections::HashMap::new();
        let rows: Vec<f64> = (0..n)
            .map(|row| {
                let label = saved.as_ref().map_or(0, |state| state.labels[row].load(Ordering::Relaxed));
                let place = *places.entry(label).or_insert_with(|| 2.0 * generator.sample::<f64, _>(StandardNormal));
                place + generator.sample::<f64, _>(StandardNormal)
            })
            .collect();
        let rows = DenseRows::new(&rows[..], 1);
        let grounds = Grounds::for_sampler(&specification(normal(), process.clone()), &rows, &cancel).expect("valid");
        let mut sampler = sampler(entry, truncation);
        let setup = Setup { grounds: &grounds, rows: &rows, starts: &[Start::Single], seed: 0, cancel: &cancel };
        let chains = sampler.chains(setup).expect("supported");
        let field = Field::new(&grounds, &rows).expect("valid");
        let state = match saved.take() {
            None => LabelState::new(&field, &vec![0; n]).expect("allowed"),
            Some(state) => state.on(&field).expect("finite"),
        };
        let mut chain = chains.restore(&postcard::to_stdvec(&state).expect("small")).expect("sound");
        chain.sweep(&mut stream(29, Purpose::Sweeps, sweep), key(29, [sweep]), &cancel).expect("definite");
        let state: LabelState = postcard::from_bytes(&chain.save().expect("small")).expect("its own");
        let sizes = state.sizes();
        let squares: usize = sizes.iter().map(|size| size * size).sum();
        let ProcessState { concentration, discount, .. } = state.process;
        let (k, log) = (sizes.len() as f64, concentration.ln());
        let found = [k, squares as f64, log, discount, k * log];
        let mean = &mut means[sweep as usize * BATCHES / SWEEPS as usize];
        mean.iter_mut().zip(found).for_each(|(mean, value)| *mean += value * BATCHES as f64 / SWEEPS as f64);
        saved = Some(state);
    }
    let expected = expected(process, n);
    std::array::from_fn(|statistic| {
        let values: Vec<f64> = means.iter().map(|mean| mean[statistic]).collect();
        let mean = values.iter().sum::<f64>() / BATCHES as f64;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (BATCHES - 1) as f64;
        let away = mean - expected[statistic];
        if away.abs() < 1e-8 { 0.0 } else { away / (variance / BATCHES as f64).sqrt() }
    })
}

fn sticks(a: f64, b: f64) -> Named {
    named("DirichletProcess", [("sticks", vector(vec![a, b]))])
}

/// Prior means under sticks v ~ Beta(a, b) in closed form: with m_i = sum_k E w_k^i = E v^i / (1 - E (1 - v)^i), the
/// number of clusters of n rows has the mean -sum_i (-1)^i binomial(n, i) m_i, and the sum of their squared sizes
/// n + n (n - 1) m_2.
fn expected_of_sticks(a: f64, b: f64, n: usize) -> [f64; N_STATISTICS] {
    let rising = |x: f64, i: usize| (0..i).map(|j| x + j as f64).product::<f64>();
    let moment = |i: usize| rising(a, i) / (rising(a + b, i) - rising(b, i));
    let binomial = |i: usize| (0..i).map(|j| (n - j) as f64 / (j + 1) as f64).product::<f64>();
    let sign = |i: usize| if i % 2 == 1 { 1.0 } else { -1.0 };
    let clusters: f64 = (1..=n).map(|i| sign(i) * binomial(i) * moment(i)).sum();
    [clusters, n as f64 + (n * (n - 1)) as f64 * moment(2), b.ln(), 0.0, clusters * b.ln()]
}

/// Prior means by enumeration of all partitions, and of a grid of learned parameters.
fn expected(process: &Named, n: usize) -> [f64; N_STATISTICS] {
    if let Some(Value::Array { data, .. }) = process.parameters.0.get("sticks") {
        return expected_of_sticks(data[0], data[1], n);
    }
    let law = crate::process::build(&process.name, &process.parameters).expect("valid").partitions().expect("a law");
    let state = law.start(law.augments()).expect("fixed").integrated();
    let given = &process.parameters.0;
    let concentrations: Vec<(f64, f64)> = match given.get("concentration").or_else(|| given.get("mass")) {
        // Gamma(2, 1.5) by the rectangle rule in its logarithm.
        Some(Value::Array { .. }) => {
            let points = (-600..=300).map(|i| (f64::from(i) / 50.0).exp());
            let weights: Vec<(f64, f64)> = points.map(|a| (a, a.powi(2) * (-1.5 * a).exp())).collect();
            let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
            weights.into_iter().map(|(a, weight)| (a, weight / total)).collect()
        }
        _ => vec![(state.concentration, 1.0)],
    };
    let discounts: Vec<(f64, f64)> = match process.parameters.0.get("discount") {
        // Beta(2, 18) by the rectangle rule.
        Some(Value::Array { .. }) => {
            let points = (0..400).map(|i| (f64::from(i) + 0.5) / 400.0);
            let weights: Vec<(f64, f64)> = points.map(|d| (d, d * (1.0 - d).powi(17))).collect();
            let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
            weights.into_iter().map(|(d, weight)| (d, weight / total)).collect()
        }
        _ => vec![(state.discount, 1.0)],
    };
    let pairs = concentrations.iter().flat_map(|a| discounts.iter().map(move |d| (a.0, d.0, a.1 * d.1)));
    let mut sums = [0.0; N_STATISTICS];
    for (concentration, discount, weight) in pairs {
        let state = ProcessState { concentration, discount, ..state };
        for labels in crate::mcmc::tests::paths::partitions(n) {
            let k = labels.iter().max().map_or(0, |most| *most as usize + 1);
            let sizes: Vec<usize> =
                (0..k).map(|c| labels.iter().filter(|&&label| label as usize == c).count()).collect();
            let probability = weight * law.log_probability(&sizes, &state).exp();
            let squares: usize = sizes.iter().map(|size| size * size).sum();
            sums[0] += probability * k as f64;
            sums[1] += probability * squares as f64;
            sums[2] += probability * concentration.ln();
            sums[3] += probability * discount;
            sums[4] += probability * k as f64 * concentration.ln();
        }
    }
    sums
}

/// A mean of 100 batches deviates by 5.2 standard errors once in 950 000 streams.
const MOST: f64 = 5.2;

#[test]
#[ignore = "slow: half a million sweeps, each on new rows"]
fn sweeps_keep_the_prior() {
    for (entry, truncation, process) in [
        (&BlockedGibbs::ENTRY, Some(60.0), sticks(2.0, 3.0)),
        (&BlockedGibbs::ENTRY, Some(90.0), sticks(0.6, 1.5)),
        (&Slice::ENTRY, None, sticks(2.0, 3.0)),
        (&BlockedGibbs::ENTRY, Some(60.0), named("DirichletProcess", [("concentration", Value::Number(1.3))])),
        (&BlockedGibbs::ENTRY, Some(90.0), dirichlet()),
        (&BlockedGibbs::ENTRY, None, finite(3, 2.0)),
        (&Slice::ENTRY, None, dirichlet()),
        (&Slice::ENTRY, None, pitman_yor(0.3, 0.7)),
        (&Slice::ENTRY, None, generalized_gamma(0.9, 0.2)),
        (&Slice::ENTRY, None, learned_generalized_gamma()),
        (&BlockedGibbs::ENTRY, Some(200.0), learned_pitman_yor()),
        (&Slice::ENTRY, None, learned_pitman_yor()),
    ] {
        let found = away(entry, truncation, &process, 5);
        assert!(found.iter().all(|score| score.abs() < MOST), "{} {}: {found:?}", entry.name, process.name);
    }
}

/// Negative control: two components are too few.
#[test]
#[ignore = "slow: as above"]
fn too_few_components_do_not_keep_the_prior() {
    let found = away(&BlockedGibbs::ENTRY, Some(2.0), &dirichlet(), 5);
    assert!(found.iter().any(|score| score.abs() > 2.0 * MOST), "{found:?}");
}
