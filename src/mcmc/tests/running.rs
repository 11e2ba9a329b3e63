//! Runs of chains: the same bits for any number of threads, draws that follow the posterior, and early stops.

use std::time::{Duration, Instant};

use crate::data::DenseRows;
use crate::error::Error;
use crate::events::{Event, Observer};
use crate::grounds::Grounds;
use crate::identity::Identity;
use crate::mcmc::checkpoint;
use crate::mcmc::tests::cases::{
    POINTS, dirichlet, finite, gaussian, named, points, posterior, specification, target, words,
};
use crate::mcmc::tests::paths::partitions;
use crate::mcmc::{
    ChainDraws, ChainPlan, ChainState, Collapsed, CollapsedChains, CollapsedGibbs, Predictive, RowTable, Sampling,
    Start, Target, log_predictive, predict,
};
use crate::parallel::{Cancel, with_threads};
use crate::parameters::vector;
use crate::special::log_sum_exp;

const PLAN: ChainPlan = ChainPlan { draws: 40, warmup: 5, thin: 2, chains: 3, seed: 7, limit: None, until: None };

fn run(target: Target, sampler: &dyn Collapsed, plan: ChainPlan, threads: usize) -> (Vec<i32>, Vec<ChainDraws>) {
    run_keeping(None, target, sampler, plan, threads)
}

/// As `run`, with the labels of some rows only.
fn run_keeping(
    kept: Option<&[u32]>,
    target: Target,
    sampler: &dyn Collapsed,
    plan: ChainPlan,
    threads: usize,
) -> (Vec<i32>, Vec<ChainDraws>) {
    let n = kept.map_or(target.n_rows(), <[u32]>::len);
    let mut partitions = vec![-1; plan.chains * plan.draws * n];
    let labels = Start::Single.labels(&target, 0, &Cancel::default()).expect("as many");
    let (identity, started) = (Identity::default(), Instant::now());
    let chains = &CollapsedChains { target, sampler, starts: labels.into() };
    let sampling = Sampling { chains, plan, kept, started, identity };
    let outcome = with_threads(Some(threads), || sampling.run(&mut partitions, None, &(), &Cancel::default()));
    (partitions, outcome.and_then(|outcome| outcome).expect("small").draws)
}

#[test]
fn threads_change_no_bit_and_chains_differ() {
    let sampler = CollapsedGibbs::default();
    let (one, draws) = run(points(dirichlet(0.8), 6), &sampler, PLAN, 1);
    let (two, others) = run(points(dirichlet(0.8), 6), &sampler, PLAN, 2);
    assert_eq!(one, two);
    for (a, b) in draws.iter().zip(&others) {
        assert_eq!((&a.log_joint, &a.n_clusters, &a.proposals), (&b.log_joint, &b.n_clusters, &b.proposals));
        assert_eq!(a.proposals[0].1.proposed, 80 * 6, "warm-up does not count");
    }
    assert_ne!(one[..240], one[240..480]);
    assert!(one.chunks_exact(6).all(|labels| labels[0] == 0));
}

/// Labels of some rows are those of the whole draw, and the sizes of clusters count all rows.
#[test]
fn kept_rows_are_those_of_whole_draws() {
    let sampler = CollapsedGibbs::default();
    let (all, draws) = run(points(dirichlet(0.8), 6), &sampler, PLAN, 1);
    let (some, others) = run_keeping(Some(&[4, 1]), points(dirichlet(0.8), 6), &sampler, PLAN, 1);
    let expected: Vec<i32> = all.chunks_exact(6).flat_map(|labels| [labels[4], labels[1]]).collect();
    assert_eq!(some, expected);
    let mut labellings = all.chunks_exact(6);
    for (of_chain, other) in draws.iter().zip(&others) {
        assert_eq!((&of_chain.log_joint, &of_chain.sizes), (&other.log_joint, &other.sizes));
        let mut sizes = &*of_chain.sizes;
        for (&n_clusters, labels) in of_chain.n_clusters.iter().zip(&mut labellings) {
            let of_draw;
            (of_draw, sizes) = sizes.split_at(n_clusters as usize);
            for (label, &size) in of_draw.iter().enumerate() {
                assert_eq!(labels.iter().filter(|&&own| usize::try_from(own) == Ok(label)).count(), size as usize);
            }
        }
        assert!(sizes.is_empty());
    }
}

#[test]
fn threads_that_share_the_clusters_of_a_row_change_no_bit() {
    for (d, n) in [(2, 20_000), (20, 1_000)] {
        let values: Vec<f64> = (0..n * d).map(|index| (index as f64 * 0.7).sin()).collect();
        let target = target(gaussian(d), dirichlet(0.8), &DenseRows::new(&values[..], d));
        let labels: Vec<u32> = (0..n as u32).collect();
        let mut state = ChainState::new(&target, &labels).expect("any partition");
        state.take_out(&target, 7).expect("it is there");
        let weigh = |threads: usize| {
            let mut space = Vec::new();
            let n_options = with_threads(Some(threads), || state.weigh(&target, 7, &mut space)).expect("threads");
            assert_eq!(n_options.expect("finite"), n + 1);
            space.as_flattened()[..=n].to_vec()
        };
        let found = weigh(1);
        assert_eq!(found, weigh(3));
        let density = |slot: usize| {
            let mut density = [0.0];
            let cache = state.clusters.cache(&target, slot);
            target.urn().log_predictives(cache, target.table.row(7), &mut density).expect("finite");
            density[0]
        };
        for slot in [1, 500, 999, n - 1] {
            // All other clusters have one row, so their weights differ by the density alone.
            assert!((found[slot] - found[0] - (density(slot) - density(0))).abs() < 1e-9, "{d} {slot}");
        }
    }
}

/// 40 000 sweeps, every fifth kept: 8000 nearly independent draws. The chi-squared statistic has 14 degrees of freedom,
/// the number of partitions of four rows minus one, and exceeds 44 once in 17 000 streams.
#[test]
fn draws_follow_the_posterior() {
    for (seed, target) in [points(dirichlet(0.8), 4), words(finite(9, 2.0), 4, true)].into_iter().enumerate() {
        let plan =
            ChainPlan { draws: 8000, warmup: 20, thin: 5, chains: 1, seed: seed as u64, limit: None, until: None };
        let (states, exact) = posterior(&target);
        let (partitions, _) = run(target, &CollapsedGibbs::default(), plan, 1);
        let statistic: f64 = states
            .iter()
            .zip(&exact)
            .map(|(state, probability)| {
                let mut labels = vec![0; 4];
                state.clusters.write_labels(&mut labels);
                let count = partitions.chunks_exact(4).filter(|labelling| *labelling == labels).count() as f64;
                (count - 8000.0 * probability).powi(2) / (8000.0 * probability)
            })
            .sum();
        assert!(statistic < 44.0, "{statistic}");
    }
}

/// Stops after a number of sweeps of all chains.
struct Stops(usize);

impl Observer for Stops {
    fn wants_progress(&self, _run: usize) -> bool {
        false
    }

    fn on_event(&self, _run: usize, event: Event) -> bool {
        matches!(event, Event::Sweep(sweep) if sweep.index >= self.0)
    }
}

#[test]
fn a_chain_that_is_stopped_keeps_its_draws() {
    let target = points(dirichlet(0.8), 6);
    let labels = Start::Singletons.labels(&target, 0, &Cancel::default()).expect("as many");
    let chains = &CollapsedChains { target, sampler: &CollapsedGibbs::default(), starts: labels.into() };
    let stopped = |plan: ChainPlan, n_sweeps: usize| {
        let mut partitions = vec![-1; plan.chains * plan.draws * 6];
        let (identity, started) = (Identity::default(), Instant::now());
        let sampling = Sampling { chains, plan, kept: None, started, identity };
        let outcome =
            with_threads(Some(1), || sampling.run(&mut partitions, None, &Stops(n_sweeps), &Cancel::default()));
        outcome
            .expect("a thread")
            .map(|found| found.draws.iter().map(|of_chain| of_chain.log_joint.len()).min().unwrap_or(0))
    };
    let plan = ChainPlan { chains: 1, ..PLAN };
    assert_eq!(stopped(plan, 24), Ok(10));
    assert_eq!(stopped(PLAN, 24), Ok(10), "the other chains catch up");
    let late = stopped(ChainPlan { limit: Some(Duration::ZERO), ..plan }, usize::MAX);
    assert!(matches!(late, Err(Error::InvalidArgument { argument, .. }) if argument == "max_seconds"));
}

#[test]
fn impossible_starts_are_refused() {
    let target = points(finite(2, 1.0), 6);
    let start = |start: Start<'_>| {
        let labels = start.labels(&target, 0, &Cancel::default())?;
        ChainState::new(&target, &labels).map(|state| state.clusters.n_clusters())
    };
    assert_eq!(start(Start::Labels(&[0, 9, 9, 0, 0, 9])), Ok(2));
    for refused in [Start::Singletons, Start::Labels(&[0, 1])] {
        assert!(matches!(start(refused), Err(Error::InvalidArgument { argument, .. }) if argument == "init"));
    }
}

/// The predictive density of one more row is p(X, x) / p(X), with both sums over all partitions.
#[test]
fn the_predictive_density_is_a_ratio_of_evidences() {
    let values = &POINTS[..12];
    let specification = specification(gaussian(2), dirichlet(0.8));
    let grounds =
        Grounds::for_sampler(&specification, &DenseRows::new(&values[..10], 2), &Cancel::default()).expect("valid");
    let first = grounds.target(&DenseRows::new(&values[..10], 2)).expect("closed");
    let new = RowTable::new(&DenseRows::new(&values[10..], 2), &grounds.coordinates, first.likelihood.origin());
    let log_joint = |target: &Target, labels: &Vec<u32>| {
        ChainState::new(target, labels).and_then(|state| state.log_joint(target)).expect("allowed")
    };
    let five = partitions(5);
    let logs: Vec<f64> = five.iter().map(|labels| log_joint(&first, labels)).collect();
    let evidence = log_sum_exp(&logs);
    let all = points(dirichlet(0.8), 6);
    let with: Vec<f64> = partitions(6).iter().map(|labels| log_joint(&all, labels)).collect();
    let terms = five.iter().zip(&logs).map(|(labels, log)| {
        let labels: Vec<i32> = labels.iter().map(|&label| label.cast_signed()).collect();
        let draw = Predictive { labels: &labels, traced: &[] };
        let clusters = predict(&first, draw, &new, &Cancel::default()).expect("definite");
        assert!((0..=5).contains(&clusters[0]));
        log - evidence + log_predictive(&first, &[draw], &new, &Cancel::default()).expect("definite")[0]
    });
    let found = log_sum_exp(&terms.collect::<Vec<_>>());
    let expected = log_sum_exp(&with) - evidence;
    assert!((found - expected).abs() < 1e-10, "{found} {expected}");
    // Draws are averaged on the scale of densities.
    let draws = [Predictive { labels: &[0; 5], traced: &[] }, Predictive { labels: &[0, 0, 1, 1, 0], traced: &[] }];
    let each = draws.map(|draw| log_predictive(&first, &[draw], &new, &Cancel::default()).expect("definite")[0]);
    let both = log_predictive(&first, &draws, &new, &Cancel::default()).expect("definite")[0];
    assert!((both - (log_sum_exp(&each) - 2.0_f64.ln())).abs() < 1e-12);
}

/// Stores the checkpoints of a run, one per turn.
#[derive(Default)]
struct Keeps(std::sync::Mutex<Vec<Vec<u8>>>);

impl Observer for Keeps {
    fn wants_checkpoint(&self, _last: bool) -> bool {
        true
    }

    fn on_event(&self, _run: usize, event: Event) -> bool {
        if let Event::Checkpoint(bytes) = event {
            self.0.lock().expect("no panic").push(bytes);
        }
        false
    }
}

/// The first checkpoint (the start), an intermediate one and the last one all lead to the same draws.
#[test]
fn a_resumed_run_equals_an_uninterrupted_one() {
    let rows = DenseRows::new(&POINTS[..], 2);
    let process =
        named("NormalizedGeneralizedGamma", [("mass", vector(vec![1.0, 1.0])), ("discount", vector(vec![1.5, 1.5]))]);
    let grounds = Grounds::for_sampler(&specification(gaussian(2), process), &rows, &Cancel::default()).expect("valid");
    let target = grounds.target(&rows).expect("closed");
    let chains = &CollapsedChains { target, sampler: &CollapsedGibbs::default(), starts: vec![0; 6].into() };
    for kept in [None, Some(&[5, 2, 3][..])] {
        let of = |plan| {
            let identity = checkpoint::identity(chains, "CollapsedGibbs", plan, kept, &grounds);
            Sampling { chains, plan, kept, started: Instant::now(), identity }
        };
        check_resuming(&of);
    }
}

/// Runs and continues chains that `of` makes of a plan.
fn check_resuming<'a>(of: &dyn Fn(ChainPlan) -> Sampling<'a>) {
    let run = |plan: ChainPlan, resumed, observer: &dyn Observer| {
        let mut partitions = vec![-1; plan.chains * plan.draws * of(plan).n_kept()];
        let draws = of(plan).run(&mut partitions, resumed, observer, &Cancel::default()).expect("small").draws;
        (partitions, draws.into_iter().map(|of_chain| ChainDraws { seconds: 0.0, ..of_chain }).collect::<Vec<_>>())
    };
    let whole = run(PLAN, None, &());
    let keeps = Keeps::default();
    run(ChainPlan { draws: 17, ..PLAN }, None, &keeps);
    let kept = keeps.0.into_inner().expect("no panic");
    let read = |bytes: &[u8]| checkpoint::read(bytes, &of(ChainPlan { draws: 17, ..PLAN }));
    let ends = [&kept[0], &kept[kept.len() - 1]].map(|bytes| read(bytes).expect("its own").remove(0));
    assert!(kept.len() >= 2 && ends[0].sweep == 0 && ends[1].draws.log_joint.len() == 17);
    for bytes in &kept {
        let resumed = checkpoint::read(bytes, &of(PLAN)).expect("its own");
        assert_eq!(run(PLAN, Some(resumed), &()), whole);
        let message = |plan: ChainPlan| match checkpoint::read(bytes, &of(plan)) {
            Err(Error::Checkpoint { message }) => message,
            other => panic!("{:?}", other.map(|chains| chains.len())),
        };
        assert!(message(ChainPlan { seed: 8, ..PLAN }).contains("seed = 7"));
        assert!(message(ChainPlan { chains: 2, ..PLAN }).contains("chains"));
        for bit in (0..8 * bytes.len()).step_by(7) {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            // Some bit flips leave a possible chain; none of them may panic.
            drop(checkpoint::read(&bytes, &of(PLAN)));
        }
        assert!((0..bytes.len()).step_by(5).all(|length| checkpoint::read(&bytes[..length], &of(PLAN)).is_err()));
    }
}
