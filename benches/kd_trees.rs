//! Nodes of kd-trees as units: the build of a first frontier, a round of opening, and a visit of the nodes, by sizes,
//! types and threads.

use std::borrow::Cow;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use stickbreak::data::{DenseRows, NodeCut, RowUnits};
use stickbreak::local_step::{BatchTree, ByScore, Judging, Keep, LocalStep, NodeUnits, OpeningRule, TreeOptions};
use stickbreak::parallel::{Cancel, with_threads};
use stickbreak::simd::Scalar;
use stickbreak_benches::{Data, Sizes, State, generate, short_name};

const K: usize = 10;
const SIZES: [(usize, usize); 3] = [(200_000, 2), (200_000, 16), (20_000, 128)];

fn measure<F: Scalar>(criterion: &mut Criterion, n: usize, d: usize, threads: usize) {
    let sizes = Sizes { n, d, k: K, width: 4, threads };
    // Far apart, as nodes have it in practice.
    let Data { mut rows, labels } = generate::<F>(sizes);
    for (row, label) in rows.chunks_exact_mut(d).zip(&labels) {
        for x in row.iter_mut() {
            *x += F::from_f64(8.0 * f64::from(*label));
        }
    }
    let data = Data { rows, labels };
    let state = State::new(&data, sizes);
    let table = DenseRows::new(&data.rows[..], d);
    let units = RowUnits::all(&table, None);
    let likelihood = state.model.likelihood.as_ref();
    let globals = state.globals();
    let scorer = globals.scorer(&state.model).expect("definite");
    let judging = Judging {
        likelihood,
        scorer: scorer.as_ref(),
        width: 4,
        rule: OpeningRule::Gain,
        tolerance: 1e-3,
        seed: 1,
        n_rows: 32,
        cancel: &Cancel::default(),
    };
    let mut group = criterion.benchmark_group("kd_trees");
    group.sample_size(10);
    let id = |name: &str| BenchmarkId::new(name, format!("n={n}/D={d}/{}/threads={threads}", short_name::<F>()));
    for (name, cut) in [("build, axis", NodeCut::Axis), ("build, principal", NodeCut::Principal)] {
        let options = TreeOptions { depth: 8, cut };
        group.bench_function(id(name), |bencher| {
            let build = || BatchTree::new(likelihood, &units, options);
            with_threads(Some(threads), || bencher.iter(|| black_box(build().starts().len()))).expect("threads");
        });
    }
    let first = BatchTree::new(likelihood, &units, TreeOptions { depth: 8, cut: NodeCut::Axis });
    group.bench_function(id("opening"), |bencher| {
        let open = |mut tree: BatchTree| {
            let found = judging.candidates(&mut tree, &units, false).expect("finite");
            let list: Vec<usize> = found.iter().map(|candidate| candidate.node as usize).collect();
            tree.open(likelihood, &units, &list);
            tree.starts().len()
        };
        let measured = || {
            bencher.iter_batched(|| first.clone(), |tree| black_box(open(tree)), criterion::BatchSize::LargeInput);
        };
        with_threads(Some(threads), measured).expect("threads");
    });
    let nodes = NodeUnits::new(likelihood, Cow::Borrowed(first.nodes()));
    group.bench_function(id("visit of the nodes"), |bencher| {
        let assign = ByScore {
            scorer: scorer.as_ref(),
            has_tail: false,
            width: 4,
            margin: Some(20.0),
            abandon: true,
            row_terms: false,
            mask: None,
        };
        let (ids, keep, cancel) = (&globals.ids, Keep::Summary, &Cancel::default());
        let step = LocalStep { likelihood, ids, assign: &assign, keep, cancel };
        let visit = || step.run(&nodes, None, &mut []).expect("finite").summary.mass;
        with_threads(Some(threads), || bencher.iter(|| black_box(visit()))).expect("threads");
    });
    group.finish();
}

fn kd_trees(criterion: &mut Criterion) {
    for (n, d) in SIZES {
        measure::<f64>(criterion, n, d, 1);
    }
    let (n, d) = SIZES[1];
    measure::<f32>(criterion, n, d, 1);
    measure::<f64>(criterion, n, d, 2);
}

criterion_group!(benches, kd_trees);
criterion_main!(benches);
