//! Helpers of the integration tests: generated data and small models.

use rand::RngExt;
use rand_distr::StandardNormal;
use stickbreak::component::EditLog;
use stickbreak::data::{DenseRows, RowBlock, TableRows, moments};
use stickbreak::global_step::Globals;
use stickbreak::likelihood::demands;
use stickbreak::model::{Model, Named, Objective, Specification};
use stickbreak::parallel::Cancel;
use stickbreak::parameters::{Parameters, Value, vector};
use stickbreak::rng::{Generator, Purpose, stream};
use stickbreak::simd::Scalar;
use stickbreak::suffstats::Summary;

/// Returns a random generator for tests.
pub fn generator(seed: u64) -> Generator {
    stream(seed, Purpose::Draws, 77)
}

/// Rows around `k` centres, (n, d).
pub fn clustered<F: Scalar>(n: usize, d: usize, k: usize, seed: u64) -> Vec<F> {
    let mut generator = generator(seed);
    let centres: Vec<f64> = (0..k * d).map(|_| 4.0 * generator.sample::<f64, _>(StandardNormal)).collect();
    (0..n)
        .flat_map(|row| {
            let centre = &centres[row % k * d..][..d];
            centre.iter().map(|c| F::from_f64(c + generator.sample::<f64, _>(StandardNormal))).collect::<Vec<_>>()
        })
        .collect()
}

/// Returns a specification whose parameters all follow the data where they can. Words after the name of a process give
/// the exceptions: its truncation, or "gamma" for a prior on its concentration.
pub fn specification(likelihood: &str, process: &str, k: usize) -> Specification {
    let mut words = process.split(' ');
    let process = words.next().unwrap_or_default();
    let mut parameters = match process {
        "FiniteDirichlet" => Parameters::from_pairs([("n_components", Value::Number(k as f64))]),
        "PitmanYor" => Parameters::from_pairs([("discount", Value::Number(0.3))]),
        _ => Parameters::default(),
    };
    for word in words {
        let (name, value) = if word == "gamma" {
            ("concentration", vector(vec![2.0, 1.0]))
        } else {
            ("truncation", Value::Text(word.into()))
        };
        parameters.0.insert(name.into(), value);
    }
    Specification {
        estimated: None,
        learned: None,
        values: None,
        background: None,
        likelihood: Named { name: likelihood.into(), parameters: Parameters::default() },
        process: Named { name: process.into(), parameters },
        objective: Objective::Variational,
        missing: false,
    }
}

/// Builds the model of that specification for these rows.
pub fn model<F: Scalar>(likelihood: &str, process: &str, k: usize, rows: &[F], d: usize) -> Model<F> {
    let table = DenseRows::new(rows, d);
    let asked = demands(likelihood, &Parameters::default()).expect("a name of the registry");
    let rows = TableRows { rows: &table, weights: None };
    let data =
        moments(&rows, asked.sought.needs, &asked.domain.into(), false, &Cancel::default()).expect("finite rows");
    let origin = data.mean.iter().map(|&x| F::from_f64(x).to_f64()).collect();
    specification(likelihood, process, k).resolve(&data).expect("defaults").build(origin).expect("defaults")
}

/// Returns globals from a summary with one row per component.
pub fn globals_of_rows<F: Scalar>(model: &Model<F>, rows: &[F], d: usize, k: usize) -> Globals {
    let ids = EditLog::with_components(k).components().expect("one append");
    let mut summary = Summary::empty(ids, model.likelihood.n_statistics(), false);
    let origin = model.likelihood.origin();
    for (component, row) in rows.chunks_exact(d).take(k).enumerate() {
        let centred: Vec<f64> = row.iter().zip(origin).map(|(&x, &o)| (x - F::from_f64(o)).to_f64()).collect();
        let statistics = &mut summary.statistics[component * summary.n_statistics..][..summary.n_statistics];
        model.likelihood.accumulate(
            RowBlock::Dense(&centred),
            &[1.0],
            statistics,
            &mut stickbreak::simd::Lines::default(),
        );
        summary.counts[component] = 1.0;
    }
    Globals::new(model, &summary, 0)
}

/// The largest difference between two arrays, relative to the largest value.
pub fn distance(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let scale = a.iter().chain(b).fold(1.0_f64, |m, x| m.max(x.abs()));
    a.iter().zip(b).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max) / scale
}
