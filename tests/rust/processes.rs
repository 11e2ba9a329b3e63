//! Requirements of priors on the local step and the engine: a tail, and components without weight.

use crate::common::{clustered, distance, generator, globals_of_rows, model, specification};
use proptest::prelude::*;
use rand::RngExt;
use stickbreak::component::{ComponentId, Edit};
use stickbreak::data::{DenseRows, RowUnits, TableRows};
use stickbreak::elbo::collapsed;
use stickbreak::fit::{Cut, Job, Settings, fit};
use stickbreak::global_step::Globals;
use stickbreak::init::Init;
use stickbreak::local_step::{ByScore, Keep, LocalState, LocalStep, Outcome};
use stickbreak::model::Model;
use stickbreak::parallel::Cancel;
use stickbreak::responsibilities::Sparsity;
use stickbreak::simd::Scalar;
use stickbreak::suffstats::Summary;
use stickbreak::visits::LocalOptions;

fn step<F: Scalar>(
    model: &Model<F>,
    globals: &Globals,
    rows: &[F],
    weights: Option<&[f64]>,
    width: usize,
    state: Option<&mut LocalState>,
) -> Outcome {
    let scorer = globals.scorer(model).expect("definite");
    let table = DenseRows::new(rows, model.likelihood.dimension());
    let has_tail = globals.allocation.tail_log_weight.is_some();
    let step = LocalStep {
        likelihood: model.likelihood.as_ref(),
        ids: &globals.ids,
        assign: &ByScore {
            scorer: scorer.as_ref(),
            has_tail,
            width,
            margin: None,
            abandon: true,
            row_terms: true,
            mask: None,
        },
        keep: Keep::SummaryAndGaps,
        cancel: &Cancel::default(),
    };
    step.run(&RowUnits::all(&table, weights), state, &mut []).expect("finite")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Mathematics 2c: the sums of the tail equal those of its responsibilities, and the collapsed bound equals the
    /// general one once globals and responsibilities agree.
    #[test]
    fn the_tail_is_one_more_column(
        (d, k, n, seed) in (1_usize..5, 1_usize..6, 9_usize..400, 0_u64..1000),
        width in 1_usize..7,
        which in 0_usize..4,
    ) {
        let likelihood = ["Gaussian", "ZeroMeanGaussian", "DiagonalGaussian", "SphericalGaussian"][which];
        let rows = clustered::<f64>(n, d, k, seed);
        let mut random = generator(seed + 1);
        let weights: Vec<f64> = (0..n).map(|_| f64::from(random.random_range(0_u32..4)) / 2.0).collect();
        let model = model(likelihood, "DirichletProcess tail", k, &rows, d);
        let globals = globals_of_rows(&model, &rows, d, k);
        let width = width.min(k + 1);
        let outcome = step(&model, &globals, &rows, Some(&weights), width, None);
        let scorer = globals.scorer(&model).expect("definite");
        prop_assert_eq!(scorer.n_components(), k + 1);
        let (mut count, mut entropy, mut expected) = (0.0, 0.0, 0.0);
        for (row, &mass) in rows.chunks_exact(d).zip(&weights) {
            let centred: Vec<f64> = row.iter().zip(model.likelihood.origin()).map(|(x, o)| x - o).collect();
            let score = |component: usize| {
                let mut one = [0.0];
                scorer.score_component(component, &centred, &mut one);
                one[0]
            };
            let mut scores: Vec<(usize, f64)> = (0..=k).map(|component| (component, score(component))).collect();
            scores.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            scores.truncate(width);
            let total: f64 = scores.iter().map(|(_, w)| (w - scores[0].1).exp()).sum();
            let last_of_row = scores.iter().find(|(component, _)| *component == k);
            let r = last_of_row.map_or(0.0, |(_, w)| (w - scores[0].1).exp() / total);
            count += mass * r;
            entropy -= if r > 0.0 { mass * r * r.ln() } else { 0.0 };
            expected += mass * r * (score(k) - globals.allocation.tail_log_weight.expect("it has a tail"));
        }
        let tail = outcome.summary.tail.as_ref().expect("it has a tail");
        let at_prior = model.likelihood.expected_at_prior(tail.sufficient()).expect("definite");
        let log_base_of_one = -0.5 * d as f64 * (2.0 * std::f64::consts::PI).ln();
        let found = [tail.count, tail.entropy, at_prior + log_base_of_one * tail.count];
        prop_assert!(distance(&found, &[count, entropy, expected]) < 1e-10);
        let mass = outcome.summary.mass;
        prop_assert!((outcome.summary.log_base_measure - log_base_of_one * mass).abs() < 1e-9 * (1.0 + mass));
        prop_assert!((outcome.summary.counts.iter().sum::<f64>() + tail.count - mass).abs() < 1e-9);
        prop_assert_eq!(outcome.work.pairs, n * (k + 1));
        // The optimal globals of these responsibilities, in the general form, by hand.
        let next = Globals::new(&model, &outcome.summary, 1);
        let bound = collapsed(&model, &outcome.summary).expect("definite").total();
        let again = step(&model, &next, &rows, Some(&weights), k + 1, None);
        let general = again.log_normalizer - next.divergence(&model).expect("definite");
        prop_assert!(general >= bound - 1e-9 * bound.abs(), "one more step uphill: {} {}", general, bound);
        let twice = collapsed(&model, &again.summary).expect("definite").total();
        prop_assert!(twice >= general - 1e-9 * general.abs());
    }

    /// At a fixed point both forms give the same bound.
    #[test]
    fn both_forms_of_the_bound_meet(seed in 0_u64..1000) {
        let (d, k, n) = (2, 3, 60);
        let rows = clustered::<f64>(n, d, k, seed);
        let model = model("Gaussian", "DirichletProcess tail", k, &rows, d);
        let mut globals = globals_of_rows(&model, &rows, d, k);
        let mut summary = Summary::empty(globals.ids.clone(), model.likelihood.n_statistics(), true);
        for version in 1..20_000 {
            let before = std::mem::replace(&mut summary, step(&model, &globals, &rows, None, k + 1, None).summary);
            globals = Globals::new(&model, &summary, version);
            if distance(&before.counts, &summary.counts) < 1e-12 {
                break;
            }
        }
        let general = step(&model, &globals, &rows, None, k + 1, None).log_normalizer
            - globals.divergence(&model).expect("definite");
        let bound = collapsed(&model, &summary).expect("definite").total();
        prop_assert!((general - bound).abs() < 1e-7 * bound.abs(), "{} {}", general, bound);
    }

    /// Property 1 for every prior, with any batches and any sparsity. Components end in decreasing order. While a base
    /// measure is estimated, the bound with its guard rises; the bound alone may fall by what the guard gains.
    #[test]
    fn the_bound_never_falls(seed in 0_u64..1000, batches in 1_usize..5, width in 1_usize..6, which in 0_usize..7) {
        let process = PROCESSES[which];
        let (d, k, n) = (3, 5, 200);
        let rows = clustered::<f64>(n, d, 4, seed);
        let table = DenseRows::new(&rows, d);
        let settings = Settings {
            n_components: Some(k),
            batches: Cut::Number(batches),
            shuffle: true,
            local: LocalOptions { sparsity: Sparsity::Limited(width), ..Settings::default().local },
            max_passes: 8,
            seed,
            ..Settings::default()
        };
        let specification = specification("Gaussian", process, k);
        let rows = TableRows { rows: &table, weights: None };
        let init = &Init::Random;
        let job = Job { specification: &specification, rows: &rows, init, settings: &settings, ask: None };
        let fitted = fit(&job, None, &(), &Cancel::default())
            .expect("well-behaved data");
        for pair in fitted.history.windows(2) {
            prop_assert!(pair[1].objective >= pair[0].objective - 1e-9 * pair[0].objective.abs(), "{}", process);
        }
        let evaluated = fitted.evaluate(&table, None, &Cancel::default()).expect("finite");
        prop_assert!(evaluated >= fitted.elbo - 1e-9 * fitted.elbo.abs());
        let counts = &fitted.summary.counts;
        prop_assert!(process == "FiniteDirichlet" || process.ends_with("stick") || counts.is_sorted_by(|a, b| a >= b));
        prop_assert!(fitted.check().is_ok());
    }

    /// Mathematics 2g: a component of zero weight gets no row, even if it was a row's best before.
    #[test]
    fn a_component_without_weight_gets_no_row(
        (d, n, seed) in (1_usize..45, 20_usize..300, 0_u64..1000), width in 1_usize..5, narrow in any::<bool>(),
    ) {
        if narrow {
            without_weight::<f32>(d, n, seed, width)?;
        } else {
            without_weight::<f64>(d, n, seed, width)?;
        }
    }
}

const PROCESSES: [&str; 7] = [
    "DirichletProcess",
    "DirichletProcess stick",
    "DirichletProcess tail",
    "DirichletProcess gamma",
    "DirichletProcess gamma stick",
    "PitmanYor",
    "FiniteDirichlet",
];

fn without_weight<F: Scalar>(d: usize, n: usize, seed: u64, width: usize) -> Result<(), TestCaseError> {
    let k = 4;
    let rows = clustered::<F>(n, d, k, seed);
    let model = model("Gaussian", "DirichletProcess", k, &rows, d);
    let mut globals = globals_of_rows(&model, &rows, d, k);
    let mut state = LocalState::default();
    step(&model, &globals, &rows, None, width, Some(&mut state));
    globals.allocation.expected_log_weights[1] = f64::NEG_INFINITY;
    let outcome = step(&model, &globals, &rows, None, width, Some(&mut state));
    prop_assert_eq!((outcome.summary.counts[1], outcome.summary.entropies[1]), (0.0, 0.0));
    prop_assert!(state.last_best().iter().all(|best| *best != Some(ComponentId(1))));
    prop_assert!(outcome.log_normalizer.is_finite());
    // The result is the same as without that component.
    let mut fewer = Summary::empty(globals.ids.clone(), model.likelihood.n_statistics(), false);
    (fewer.counts, fewer.statistics) = (globals.counts.clone(), globals.statistics.clone());
    fewer.apply(&Edit::Delete { id: ComponentId(1) }).expect("it was there");
    let mut others = Globals::new(&model, &fewer, 1);
    others.allocation.expected_log_weights = [0, 2, 3].map(|k| globals.allocation.expected_log_weights[k]).to_vec();
    let expected = step(&model, &others, &rows, None, width.min(3), None);
    let found = [0, 2, 3].map(|k| outcome.summary.counts[k]);
    prop_assert!(distance(&found, &expected.summary.counts) < 1e-5);
    Ok(())
}
