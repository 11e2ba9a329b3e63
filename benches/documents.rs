//! The local step of a batch of documents: L topics a word or all, on one thread.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use rand_distr::{Distribution, Gamma};
use stickbreak::component::ComponentId;
use stickbreak::data::{Csr, CsrRows, RowUnits};
use stickbreak::local_step::{ByDocument, DocumentOptions, DocumentWords, Keep, LocalStep, TopicTable};
use stickbreak::model::{Model, Named, Objective, Specification};
use stickbreak::parallel::{Cancel, with_threads};
use stickbreak::parameters::{Parameters, Value, vector};
use stickbreak::rng::{Generator, Purpose, stream};
use stickbreak::suffstats::Sufficient;

const WORDS: usize = 5000;
const DOCUMENTS: usize = 100;

/// Sums of words by topic, most of which are small.
fn sums(k: usize, generator: &mut Generator) -> Vec<f64> {
    let gamma = Gamma::new(0.05, 200.0).expect("a law");
    (0..k * WORDS).map(|_| gamma.sample(generator)).collect()
}

/// Documents of some 400 distinct words, from a few topics each.
fn documents(k: usize, sums: &[f64], generator: &mut Generator) -> (Vec<u64>, Vec<u32>, Vec<f64>) {
    let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    let share = Gamma::new(0.05, 1.0).expect("a law");
    for _ in 0..DOCUMENTS {
        let weights: Vec<f64> = (0..k).map(|_| share.sample(generator)).collect();
        for word in 0..WORDS {
            let rate: f64 = weights.iter().enumerate().map(|(topic, weight)| weight * sums[topic * WORDS + word]).sum();
            let count = (rate / (40.0 * weights.iter().sum::<f64>())).floor();
            if count > 0.0 {
                columns.push(word as u32);
                values.push(count);
            }
        }
        starts.push(columns.len() as u64);
    }
    (starts, columns, values)
}

fn model(k: usize) -> Model<f64> {
    let likelihood = Named {
        name: "Multinomial".into(),
        parameters: Parameters::from_pairs([("pseudo_counts", vector(vec![0.1; WORDS]))]),
    };
    let process = Named {
        name: "LatentDirichlet".into(),
        parameters: Parameters::from_pairs([
            ("n_topics", Value::Number(k as f64)),
            ("concentration", Value::Number(0.5)),
        ]),
    };
    Specification {
        likelihood,
        process,
        objective: Objective::Map,
        ..Specification::new("Multinomial", "LatentDirichlet")
    }
    .build(vec![0.0; WORDS])
    .expect("a topic model")
}

fn visits(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("documents");
    for k in [100, 400] {
        let mut generator = stream(0, Purpose::Draws, k as u64);
        let sums = sums(k, &mut generator);
        let (starts, columns, values) = documents(k, &sums, &mut generator);
        let table = Csr { starts: &starts, columns: &columns, values: &values };
        let rows = CsrRows::new(table, WORDS).expect("whole rows");
        let words = DocumentWords::of(&RowUnits::all(&rows, None));
        let (model, cancel) = (model(k), Cancel::default());
        let ids: Vec<ComponentId> = (0..k as u32).map(ComponentId).collect();
        let topics: Vec<Sufficient<'_>> = sums
            .chunks_exact(WORDS)
            .map(|statistics| Sufficient { count: statistics.iter().sum(), statistics })
            .collect();
        let (likelihood, prior) = (model.likelihood.as_ref(), vec![0.5 / k as f64; k]);
        let emissions = likelihood.emissions().expect("words");
        for width in [8, k] {
            let visit = || {
                let mut table = TopicTable::default();
                table.fill(emissions, model.objective, &topics, 1.0, &[true; WORDS]);
                let assign = ByDocument::new(&words, &table, &prior, width, DocumentOptions::USUAL, None);
                let step = LocalStep { likelihood, ids: &ids, assign: &assign, keep: Keep::Summary, cancel: &cancel };
                let outcome = step.run_compact(&words, None, &mut []).expect("finite weights");
                (outcome, assign.finish(&ids))
            };
            let id = BenchmarkId::new(format!("K{k}"), format!("L{width}"));
            group.bench_function(id, |bencher| {
                with_threads(Some(1), || bencher.iter(|| black_box(visit()))).expect("a pool");
            });
        }
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = visits
}
criterion_main!(benches);
