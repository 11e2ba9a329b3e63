//! Trees over rows: insertion, descent, restriction of a guide tree and one global move, on one thread; and greedy
//! clustering by threads.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use stickbreak::data::{DenseRows, Restrictions};
use stickbreak::grounds::Grounds;
use stickbreak::mcmc::{
    Arena, ChainState, Collapsed, Evenness, Hierarchy, HierarchyPlan, Method, Target, TreeGuided, Turn, Walk,
};
use stickbreak::model::{Named, Objective, Specification};
use stickbreak::parallel::{Cancel, with_threads};
use stickbreak::parameters::{Parameters, Value, table, vector};
use stickbreak::rng::{Choices, Purpose, permutation, stream};
use stickbreak_benches::{Sizes, generate};

const SIZES: [(usize, usize, usize); 2] = [(1300, 2, 13), (10_000, 6, 119)];

/// The target of generated rows, and their labels.
fn target(n: usize, d: usize, k: usize) -> (Target, Vec<u32>) {
    let data = generate::<f64>(Sizes { n, d, k, width: 1, threads: 1 });
    let identity = (0..d * d).map(|at| f64::from(u8::from(at % (d + 1) == 0))).collect();
    let parameters = Parameters::from_pairs([
        ("mean", vector(vec![0.0; d])),
        ("mean_precision", Value::Number(0.1)),
        ("dof", Value::Number(d as f64 + 6.0)),
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
    let rows = DenseRows::new(&data.rows[..], d);
    let grounds = Grounds::for_sampler(&specification, &rows, &Cancel::default()).expect("valid");
    (grounds.target(&rows).expect("closed"), data.labels)
}

/// All rows into one tree, a draw of its nodes, and its restriction to a tenth of the rows.
fn trees(criterion: &mut Criterion) {
    for (n, d, k) in SIZES {
        let (target, labels) = target(n, d, k);
        let process = ChainState::new(&target, &labels).expect("allowed").process;
        let order = permutation(n as u32, &mut stream(1, Purpose::Trees, 0));
        let grow = || {
            let mut arena = Arena::new(&target, &process);
            let mut root = order[0];
            for &row in &order[1..1000] {
                root = arena.insert(root, row).expect("definite");
            }
            (arena, root)
        };
        let mut group = criterion.benchmark_group("trees");
        group.sample_size(10);
        let id = |name: &str| BenchmarkId::new(name, format!("n={n}/D={d}/K={k}"));
        group.bench_function(id("insertion of 1000 rows"), |bencher| bencher.iter(|| black_box(grow().1)));
        let (arena, root) = grow();
        let mut generator = stream(1, Purpose::Sweeps, 0);
        group.bench_function(id("descent in 1000 rows"), |bencher| {
            bencher.iter(|| {
                let walk = Walk::new(&arena, root);
                black_box(generator.choose(&walk.probabilities(&arena, 0, false, Evenness::Max)))
            });
        });
        let plan = HierarchyPlan { method: Method::Incremental, n_trials: 1, seed: 0 };
        let guide = Restrictions::new(Hierarchy::build(&target, plan, &Cancel::default()).expect("definite").tree);
        let mut some: Vec<u32> = (0..n as u32).step_by(10).collect();
        guide.sort(&mut some);
        group.bench_function(id("restriction to a tenth"), |bencher| {
            bencher.iter(|| black_box(guide.joins(&some)));
        });
        group.finish();
    }
}

/// A sweep of one global move and one row, and of 21 of them: the difference is that of 20 global moves.
fn moves(criterion: &mut Criterion) {
    for (n, d, k) in SIZES {
        let (target, labels) = target(n, d, k);
        let mut group = criterion.benchmark_group("tree_guided");
        group.sample_size(10);
        for global_moves in [1.0, 21.0] {
            let given = [("global_moves", Value::Number(global_moves)), ("subset", Value::Number(1.0))];
            let mut sampler = TreeGuided::new(&Parameters::from_pairs(given)).expect("valid");
            sampler.prepare(&target, 0, &Cancel::default()).expect("definite");
            let mut state = ChainState::new(&target, &labels).expect("allowed");
            let mut generator = stream(1, Purpose::Sweeps, 0);
            group.bench_function(
                BenchmarkId::new(format!("moves={global_moves}"), format!("n={n}/D={d}/K={k}")),
                |bencher| {
                    bencher.iter(|| {
                        let mut turn = Turn { target: &target, draws: &mut generator, cancel: &Cancel::default() };
                        black_box(sampler.step(&mut state, &mut turn).expect("definite"));
                    });
                },
            );
        }
        group.finish();
    }
}

/// Greedy clustering of 1300 rows by threads.
fn greedy(criterion: &mut Criterion) {
    let (n, d, k) = SIZES[0];
    let (target, _) = target(n, d, k);
    let mut group = criterion.benchmark_group("hierarchy");
    group.sample_size(10);
    for threads in [1, 2] {
        let plan = HierarchyPlan { method: Method::Greedy, n_trials: 1, seed: 0 };
        group.bench_function(BenchmarkId::new("bhc", format!("n={n}/threads={threads}")), |bencher| {
            bencher.iter(|| {
                with_threads(Some(threads), || black_box(Hierarchy::build(&target, plan, &Cancel::default()).is_ok()))
            });
        });
    }
    group.finish();
}

criterion_group!(benches, trees, moves, greedy);
criterion_main!(benches);
