//! Sweeps of collapsed Gibbs and split-merge chains, on one thread, and a plain scalar Gibbs loop beside them.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use stickbreak::data::{DenseRows, Rows};
use stickbreak::grounds::Grounds;
use stickbreak::mcmc::{
    BlockedGibbs, ChainState, Collapsed, CollapsedGibbs, Sampler, Setup, Slice, SplitMerge, Start, Target, Turn,
};
use stickbreak::model::{Named, Objective, Specification};
use stickbreak::parallel::Cancel;
use stickbreak::parameters::{Parameters, Value, table, vector};
use stickbreak::partitions::{LabelDraws, Loss, SearchPlan, estimate};
use stickbreak::rng::{Purpose, chance, stream};
use stickbreak_benches::plain_gibbs::PlainGibbs;
use stickbreak_benches::{Sizes, generate};

const PRECISION: f64 = 0.1;

fn dof(d: usize) -> f64 {
    d as f64 + 6.0
}

/// The model: base measure of mean 0 and scale I, concentration 1.
fn grounds(rows: &DenseRows<'_, f64>) -> Grounds {
    let d = rows.n_columns();
    let identity = (0..d * d).map(|at| f64::from(u8::from(at % (d + 1) == 0))).collect();
    let parameters = Parameters::from_pairs([
        ("mean", vector(vec![0.0; d])),
        ("mean_precision", Value::Number(PRECISION)),
        ("dof", Value::Number(dof(d))),
        ("scale", table(d, identity)),
    ]);
    let specification = Specification {
        likelihood: Named { name: "Gaussian".into(), parameters },
        process: Named { name: "DirichletProcess".into(), parameters: Parameters::default() },
        objective: Objective::Variational,
        missing: false,
        estimated: None,
        learned: None,
        values: None,
        background: None,
    };
    Grounds::for_sampler(&specification, rows, &Cancel::default()).expect("valid")
}

fn target(rows: &[f64], d: usize) -> Target {
    let rows = DenseRows::new(rows, d);
    grounds(&rows).target(&rows).expect("closed")
}

/// Moves clusters to the points of a grid, so far from each other that chains keep them.
fn part(rows: &mut [f64], labels: &[u32], d: usize, k: usize) {
    let side = (1..=k).find(|side| side.pow(d as u32) >= k).unwrap_or(k);
    for (row, &label) in rows.chunks_exact_mut(d).zip(labels) {
        let mut place = label as usize;
        for x in row {
            *x += 20.0 * (place % side) as f64;
            place /= side;
        }
    }
}

/// Sweeps from the generating labels on.
fn sweeps(criterion: &mut Criterion) {
    for (n, d, k) in [(1300, 2, 13), (10_000, 6, 119)] {
        let mut data = generate::<f64>(Sizes { n, d, k, width: 1, threads: 1 });
        part(&mut data.rows, &data.labels, d, k);
        let target = target(&data.rows, d);
        let mut group = criterion.benchmark_group("samplers");
        group.sample_size(10);
        let samplers: [(&str, Box<dyn Collapsed>); 3] = [
            ("gibbs", Box::new(CollapsedGibbs::default())),
            ("restricted", Box::new(split_merge("restricted"))),
            ("sequential", Box::new(split_merge("sequential"))),
        ];
        for (name, sampler) in samplers {
            let mut state = ChainState::new(&target, &data.labels).expect("allowed");
            let mut generator = stream(1, Purpose::Sweeps, 0);
            let id = BenchmarkId::new(name, format!("n={n}/D={d}/K={k}"));
            group.bench_function(id, |bencher| {
                bencher.iter(|| {
                    let mut turn = Turn { target: &target, draws: &mut generator, cancel: &Cancel::default() };
                    black_box(sampler.step(&mut state, &mut turn).expect("definite"));
                });
            });
        }
        let mut plain = PlainGibbs::new(&data.rows, d, &data.labels, PRECISION, dof(d), 1.0);
        let mut generator = stream(1, Purpose::Sweeps, 0);
        group.bench_function(BenchmarkId::new("plain", format!("n={n}/D={d}/K={k}")), |bencher| {
            bencher.iter(|| {
                plain.sweep(&mut generator);
                black_box(plain.n_clusters());
            });
        });
        group.finish();
    }
}

/// Sweeps of conditional samplers from the generating labels on.
fn conditional_sweeps(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("conditional");
    group.sample_size(10);
    for (n, d, k) in [(100_000, 16, 50), (100_000, 2, 6)] {
        let mut data = generate::<f64>(Sizes { n, d, k, width: 1, threads: 1 });
        part(&mut data.rows, &data.labels, d, k);
        let rows = DenseRows::new(&data.rows[..], d);
        let (grounds, cancel) = (grounds(&rows), Cancel::default());
        let truncated = Parameters::from_pairs([("truncation", Value::Number(k as f64))]);
        let samplers: [(&str, Box<dyn Sampler>); 2] =
            [("blocked", Box::new(BlockedGibbs::new(&truncated).expect("valid"))), ("slice", Box::new(Slice))];
        for (name, mut sampler) in samplers {
            let start = Start::Labels(&data.labels);
            let setup = Setup { grounds: &grounds, rows: &rows, starts: &[start], seed: 1, cancel: &cancel };
            let chains = sampler.chains(setup).expect("supported");
            let mut chain = chains.start(0).expect("allowed");
            let (mut generator, mut sweep) = (stream(1, Purpose::Sweeps, 0), 0);
            let id = BenchmarkId::new(name, format!("n={n}/D={d}/K={k}"));
            group.bench_function(id, |bencher| {
                bencher.iter(|| {
                    sweep += 1;
                    black_box(chain.sweep(&mut generator, sweep, &cancel).expect("definite"));
                });
            });
        }
    }
    group.finish();
}

/// One run of the search of a partition that represents 100 draws: labels with noise.
fn searches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("search");
    group.sample_size(10);
    let (n, n_draws, k) = (2_000_usize, 100_u64, 10);
    let label = |draw: u64, row: usize| {
        let noise = chance(draw, row as u64);
        let own = row % k;
        if noise < 0.2 { (own as f64 + 1.0 + 5.0 * noise * (k - 1) as f64) as usize % k } else { own }
    };
    let number = |draw: u64, row: usize| i32::try_from(label(draw, row)).expect("below ten");
    let labels: Vec<i32> = (0..n_draws).flat_map(|draw| (0..n).map(move |row| number(draw, row))).collect();
    let draws = LabelDraws::new(&labels, n).expect("labels of draws");
    for (name, loss) in [("vi", Loss::Variation), ("binder", Loss::Binder)] {
        group.bench_function(BenchmarkId::new(name, format!("n={n}/T={n_draws}/K={k}")), |bencher| {
            let plan = SearchPlan { runs: Some(1), max_clusters: n, seed: 0 };
            bencher.iter(|| black_box(estimate(&draws, loss, plan, &Cancel::default()).expect("a small table")));
        });
    }
    group.finish();
}

fn split_merge(proposal: &str) -> SplitMerge {
    SplitMerge::new(&Parameters::from_pairs([("proposal", Value::Text(proposal.into()))])).expect("valid")
}

criterion_group!(benches, sweeps, conditional_sweeps, searches);
criterion_main!(benches);
