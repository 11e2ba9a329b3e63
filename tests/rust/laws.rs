//! Laws of the engine as properties (mathematics 7), the fast path against plain loops.

use crate::common::{clustered, distance, generator, globals_of_rows, model, specification};
use proptest::prelude::*;
use rand::RngExt;
use stickbreak::component::EditLog;
use stickbreak::data::{DenseRows, RowBlock, RowUnits, Rows, TableRows, moments, whole};
use stickbreak::elbo::collapsed;
use stickbreak::fit::{Cut, Job, Settings, fit};
use stickbreak::fitted::Fitted;
use stickbreak::init::{Beginning, Init};
use stickbreak::likelihood::{Density, demands};
use stickbreak::local_step::{ByScore, FromTable, Keep, LocalStep, Outcome};
use stickbreak::model::Model;
use stickbreak::parallel::{Cancel, with_threads};
use stickbreak::parameters::Parameters;
use stickbreak::responsibilities::Sparsity;
use stickbreak::rng::Choices;
use stickbreak::simd::{Lines, Scalar};
use stickbreak::suffstats::Summary;
use stickbreak::visits::LocalOptions;

const LIKELIHOODS: [&str; 2] = ["Gaussian", "ZeroMeanGaussian"];
const PROCESSES: [&str; 2] = ["DirichletProcess", "FiniteDirichlet"];

fn settings(k: usize, batches: usize, sparsity: Sparsity, max_passes: usize) -> Settings {
    Settings {
        n_components: Some(k),
        batches: Cut::Number(batches),
        shuffle: true,
        local: LocalOptions { sparsity, ..Settings::default().local },
        max_passes,
        seed: 11,
        ..Settings::default()
    }
}

fn local_step<F: Scalar>(
    model: &Model<F>,
    rows: &[F],
    d: usize,
    weights: Option<&[f64]>,
    k: usize,
    width: usize,
    keep: Keep,
) -> Outcome {
    let globals = globals_of_rows(model, rows, d, k);
    let scorer = globals.scorer(model).expect("definite");
    let table = DenseRows::new(rows, d);
    let step = LocalStep {
        likelihood: model.likelihood.as_ref(),
        ids: &globals.ids,
        assign: &ByScore {
            scorer: scorer.as_ref(),
            has_tail: false,
            width,
            margin: None,
            abandon: true,
            row_terms: false,
            mask: None,
        },
        keep,
        cancel: &Cancel::default(),
    };
    step.run(&RowUnits::all(&table, weights), None, &mut []).expect("finite")
}

/// Computes the same summary by plain loops: one score at a time, selection by sorting, sums row by row.
fn plain_local_step(
    model: &Model<f64>,
    rows: &[f64],
    d: usize,
    weights: &[f64],
    k: usize,
    width: usize,
) -> (Summary, f64) {
    let globals = globals_of_rows(model, rows, d, k);
    let scorer = globals.scorer(model).expect("definite");
    let mut summary = Summary::empty(globals.ids.clone(), model.likelihood.n_statistics(), true);
    let mut log_normalizer = 0.0;
    for (row, &mass) in rows.chunks_exact(d).zip(weights) {
        let centred: Vec<f64> = row.iter().zip(model.likelihood.origin()).map(|(x, o)| x - o).collect();
        let mut scores: Vec<(usize, f64)> = (0..k)
            .map(|component| {
                let mut one = [0.0];
                scorer.score_component(component, &centred, &mut one);
                (component, one[0])
            })
            .collect();
        scores.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        scores.truncate(width);
        let total: f64 = scores.iter().map(|(_, w)| (w - scores[0].1).exp()).sum();
        log_normalizer += mass * (scores[0].1 + total.ln());
        let shares: Vec<(usize, f64)> = scores.iter().map(|(c, w)| (*c, (w - scores[0].1).exp() / total)).collect();
        for (index, &(component, r)) in shares.iter().enumerate() {
            summary.counts[component] += mass * r;
            summary.entropies[component] -= if r > 0.0 { mass * r * r.ln() } else { 0.0 };
            let statistics = &mut summary.statistics[component * summary.n_statistics..][..summary.n_statistics];
            model.likelihood.accumulate(RowBlock::Dense(&centred), &[mass * r], statistics, &mut Lines::default());
            for &(other, s) in &shares[index + 1..] {
                let h = |x: f64| if x > 0.0 { -x * x.ln() } else { 0.0 };
                let gap = if r > 0.0 && s > 0.0 { h(r) + h(s) - h(r + s) } else { 0.0 };
                summary.gaps.add_pair(summary.ids[component], summary.ids[other], mass * gap);
            }
        }
        summary.mass += mass;
    }
    (summary, log_normalizer)
}

/// Sums over blocks, pieces and gathered rows are those of plain loops over rows and components.
fn equals_plain_loops(n: usize, d: usize, k: usize, width: usize, likelihood: &str, seed: u64) {
    let width = width.min(k);
    let rows = clustered::<f64>(n, d, k, seed);
    let mut random = generator(seed + 1);
    let weights: Vec<f64> = (0..n).map(|_| f64::from(random.random_range(0_u32..4)) / 2.0).collect();
    let model = model(likelihood, "DirichletProcess", k, &rows, d);
    let fast = local_step(&model, &rows, d, Some(&weights), k, width, Keep::SummaryAndGaps);
    let (plain, log_normalizer) = plain_local_step(&model, &rows, d, &weights, k, width);
    assert!(distance(&fast.summary.counts, &plain.counts) < 1e-11);
    assert!(distance(&fast.summary.statistics, &plain.statistics) < 1e-11);
    assert!(distance(&fast.summary.entropies, &plain.entropies) < 1e-11);
    assert!((fast.log_normalizer - log_normalizer).abs() < 1e-10 * (1.0 + log_normalizer.abs()));
    for a in 0..k {
        for b in 0..a {
            let pair = (plain.ids[a], plain.ids[b]);
            let (x, y) = (fast.summary.gaps.get(pair.0, pair.1), plain.gaps.get(pair.0, pair.1));
            assert!((x.expect("kept") - y.expect("kept")).abs() < 1e-10 * n as f64);
        }
    }
}

/// Tests components with more rows than one piece.
#[test]
fn many_rows_equal_plain_loops() {
    for likelihood in LIKELIHOODS {
        equals_plain_loops(30_001, 2, 2, 2, likelihood, 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_fused_local_step_equals_plain_loops(
        (d, k, n, seed) in (1_usize..7, 1_usize..9, 9_usize..700, 0_u64..1000),
        width in 1_usize..9,
        which in 0_usize..2,
    ) {
        equals_plain_loops(n, d, k, width, LIKELIHOODS[which], seed);
    }

    /// Property 5: statistics of a union of disjoint sets add, and subtracting gives the rest back.
    #[test]
    fn summaries_add(seed in 0_u64..1000, cut in 1_usize..299, which in 0_usize..2) {
        let (d, k, n) = (3, 4, 300);
        let rows = clustered::<f64>(n, d, k, seed);
        let model = model(LIKELIHOODS[which], "FiniteDirichlet", k, &rows, d);
        let all = local_step(&model, &rows, d, None, k, k, Keep::SummaryAndGaps).summary;
        let globals = globals_of_rows(&model, &rows, d, k);
        let scorer = globals.scorer(&model).expect("definite");
        let table = DenseRows::new(&rows, d);
        let step = LocalStep {
            likelihood: model.likelihood.as_ref(),
            ids: &globals.ids,
            assign: &ByScore {
                scorer: scorer.as_ref(),
                has_tail: false,
                width: k,
                margin: None,
                abandon: true,
                row_terms: false,
                mask: None,
            },
            keep: Keep::SummaryAndGaps,
            cancel: &Cancel::default(),
        };
        let part = |range| step.run(&RowUnits::range(&table, None, range), None, &mut []).expect("finite").summary;
        let (first, second) = (part(0..cut), part(cut..n));
        let mut sum = first.clone();
        sum.add(&second).expect("same components");
        prop_assert!(distance(&sum.statistics, &all.statistics) < 1e-12);
        prop_assert!(distance(&sum.counts, &all.counts) < 1e-12);
        prop_assert!(distance(&sum.entropies, &all.entropies) < 1e-12);
        prop_assert!((sum.log_base_measure - all.log_base_measure).abs() < 1e-9);
        sum.sub(&second).expect("same components");
        prop_assert!(distance(&sum.statistics, &first.statistics) < 1e-12);
        let half = all.scale(0.5);
        prop_assert!(distance(&half.counts, &all.counts.iter().map(|x| x / 2.0).collect::<Vec<_>>()) < 1e-15);
    }

    /// Properties 1 and 6: the bound never falls from pass to pass, whatever the batches and the sparsity.
    #[test]
    fn the_bound_never_falls(
        seed in 0_u64..1000, batches in 1_usize..7, width in 1_usize..6, which in 0_usize..4,
    ) {
        let (d, k, n) = (3, 5, 240);
        let rows = clustered::<f64>(n, d, 4, seed);
        let table = DenseRows::new(&rows, d);
        let specification = specification(LIKELIHOODS[which % 2], PROCESSES[which / 2], k);
        let settings = settings(k, batches, Sparsity::Limited(width), 8);
        let rows = TableRows { rows: &table, weights: None };
        let init = &Init::Random;
        let job = Job { specification: &specification, rows: &rows, init, settings: &settings, ask: None };
        let fitted = fit(&job, None, &(), &Cancel::default())
            .expect("well-behaved data");
        for pair in fitted.history.windows(2) {
            prop_assert!(pair[1].objective >= pair[0].objective - 1e-9 * pair[0].objective.abs());
        }
        prop_assert_eq!(fitted.history.len(), 8);
    }

    /// Property 21: the same bits for any number of threads.
    #[test]
    fn threads_change_no_bit(seed in 0_u64..1000, batches in 1_usize..4, wide in any::<bool>()) {
        fn run<F: Scalar>(threads: usize, seed: u64, batches: usize) -> Fitted {
            let rows = clustered::<F>(3000, 4, 5, seed);
            let table = DenseRows::new(&rows, 4);
            let specification = specification("Gaussian", "DirichletProcess", 6);
            let settings = settings(6, batches, Sparsity::Limited(3), 3);
            let (rows, init) = (TableRows { rows: &table, weights: None }, Init::KmeansPlusPlus);
            let job = Job { specification: &specification, rows: &rows, init: &init, settings: &settings, ask: None };
            with_threads(Some(threads), || fit(&job, None, &(), &Cancel::default()))
            .expect("a pool")
            .expect("well-behaved data")
        }
        let both = |threads| if wide { run::<f64>(threads, seed, batches) } else { run::<f32>(threads, seed, batches) };
        let (one, three) = (both(1), both(3));
        prop_assert_eq!(&one.summary, &three.summary);
        prop_assert_eq!(one.elbo.to_bits(), three.elbo.to_bits());
        let draws = |threads| with_threads(Some(threads), || one.sample_parameters(9, seed, &Cancel::default()));
        prop_assert_eq!(draws(1).expect("a pool"), draws(3).expect("a pool"));
    }

    /// Property 10: a unit of mass two equals two identical rows with the same responsibilities.
    #[test]
    fn a_mass_of_two_is_two_rows(seed in 0_u64..1000) {
        let (d, k, n) = (2, 3, 60);
        let rows = clustered::<f64>(n, d, k, seed);
        let model = model("Gaussian", "DirichletProcess", k, &rows, d);
        let doubled: Vec<f64> = rows.chunks_exact(d).flat_map(|row| [row, row].concat()).collect();
        let mut random = generator(seed);
        let shares: Vec<f64> = (0..n).flat_map(|_| {
            let raw: Vec<f64> = (0..k).map(|_| random.random::<f64>()).collect();
            let total: f64 = raw.iter().sum();
            raw.into_iter().map(move |x| x / total)
        }).collect();
        let twice: Vec<f64> = shares.chunks_exact(k).flat_map(|row| [row, row].concat()).collect();
        let summarize = |rows: &[f64], shares: &[f64], weights: Option<&[f64]>| {
            let ids = EditLog::with_components(k).components().expect("one append");
            let table = DenseRows::new(rows, d);
            let step = LocalStep {
                likelihood: model.likelihood.as_ref(),
                ids: &ids,
                assign: &FromTable { values: shares, n_components: k },
                keep: Keep::SummaryAndGaps,
                cancel: &Cancel::default(),
            };
            step.run(&RowUnits::all(&table, weights), None, &mut []).expect("finite").summary
        };
        let (a, b) = (summarize(&doubled, &twice, None), summarize(&rows, &shares, Some(&vec![2.0; n])));
        let [x, y] = [&a, &b].map(|summary| collapsed(&model, summary).expect("definite").total());
        prop_assert!((x - y).abs() < 1e-10 * x.abs());
    }
}

/// Property 19: no rows give a bound of zero, with one component or many.
#[test]
fn no_rows_give_a_bound_of_zero() {
    for which in 0..4 {
        let rows = clustered::<f64>(20, 3, 2, 1);
        let model = model(LIKELIHOODS[which % 2], PROCESSES[which / 2], 4, &rows, 3);
        let ids = EditLog::with_components(4).components().expect("one append");
        let empty = Summary::empty(ids, model.likelihood.n_statistics(), false);
        let bound = collapsed(&model, &empty).expect("the prior").total();
        assert!(bound.abs() < 1e-12, "{bound}");
    }
}

/// Property 19: one row and one component, L = ln m(x) + ln(1 / (1 + alpha)).
#[test]
fn one_row_gives_its_marginal_likelihood() {
    let rows = clustered::<f64>(20, 3, 2, 1);
    let model = model("Gaussian", "DirichletProcess", 1, &rows, 3);
    let table = DenseRows::new(&rows[..3], 3);
    let ids = EditLog::with_components(1).components().expect("one append");
    let step = LocalStep {
        likelihood: model.likelihood.as_ref(),
        ids: &ids,
        assign: &FromTable { values: &[1.0], n_components: 1 },
        keep: Keep::Summary,
        cancel: &Cancel::default(),
    };
    let summary = step.run(&RowUnits::all(&table, None), None, &mut []).expect("finite").summary;
    let bound = collapsed(&model, &summary).expect("definite").total();
    // ln m(x) is the prior predictive of the row.
    let nothing = Summary::empty(ids.clone(), model.likelihood.n_statistics(), false);
    let scorer = model.likelihood.scorer(&nothing.components(), &[0.0], Density::Predictive).expect("the prior");
    let centred: Vec<f64> = rows[..3].iter().zip(model.likelihood.origin()).map(|(x, o)| x - o).collect();
    let mut marginal = [0.0];
    scorer.score_component(0, &centred, &mut marginal);
    assert!((bound - (marginal[0] + 0.5_f64.ln())).abs() < 1e-11);
}

/// Takes a fixed path of choices and keeps the probability of each step.
struct Path {
    steps: Vec<usize>,
    taken: usize,
    sizes: Vec<usize>,
    probability: f64,
}

impl Choices for Path {
    fn choose(&mut self, weights: &[f64]) -> usize {
        let choice = self.steps.get(self.taken).copied().unwrap_or(0);
        self.sizes.push(weights.len());
        self.taken += 1;
        self.probability *= weights[choice] / weights.iter().sum::<f64>();
        choice
    }
}

/// Takes every path of the seeding in turn. The probabilities sum to one, no row is a seed twice, and the marginal of
/// the first seed is proportional to the masses.
#[test]
fn seeding_can_be_enumerated() {
    let rows = [0.0, 0.0, 1.0, 0.5, 4.0, 4.0, -3.0, 5.0];
    let (n, d, k) = (4, 2, 2);
    let weights = [1.0, 2.0, 3.0, 4.0];
    let table = DenseRows::new(&rows[..], d);
    let units = RowUnits::all(&table, Some(&weights));
    let model = model::<f64>("Gaussian", "DirichletProcess", k, &rows, d);
    let source = whole(&table, Some(&weights)).expect("four rows");
    let ids = EditLog::with_components(k).components().expect("one append");
    let cancel = Cancel::default();
    let data = TableRows { rows: &table, weights: Some(&weights) };
    let begin = Beginning {
        model: &model,
        data: &data,
        source: &source,
        ids: &ids,
        keep: Keep::Summary,
        by_batch: true,
        mass: 10.0,
        seed: 0,
        cancel: &cancel,
    };
    let asked = demands("Gaussian", &Parameters::default()).expect("a name of the registry");
    assert!(moments(&data, asked.sought.needs, &asked.domain.into(), false, &cancel).is_ok());
    let (mut total, mut first) = (0.0, [0.0; 4]);
    // One seed, then two trials for the second.
    for code in 0..n * n * n {
        let steps = vec![code % n, code / n % n, code / n / n];
        let mut path = Path { steps, taken: 0, sizes: Vec::new(), probability: 1.0 };
        let seeds = begin.seeding().seed_rows(&units, &mut path).expect("finite");
        assert_eq!(path.sizes, vec![n; 3]);
        if path.probability > 0.0 {
            assert_ne!(seeds[0], seeds[1]);
        }
        total += path.probability;
        first[seeds[0] as usize] += path.probability;
    }
    assert!((total - 1.0_f64).abs() < 1e-12);
    for (share, weight) in first.iter().zip(weights) {
        assert!((share - weight / 10.0).abs() < 1e-12);
    }
}

/// More rows than can be numbered. None of them is ever read.
struct TooMany;

impl Rows<f64> for TooMany {
    fn n_rows(&self) -> usize {
        1 << 32
    }

    fn n_columns(&self) -> usize {
        1
    }

    fn read_row(&self, _: usize, _: &mut [f64]) {
        unreachable!("refused before any row is read")
    }
}

#[test]
fn rows_that_cannot_be_numbered_are_refused() {
    let job = Job {
        specification: &specification("Gaussian", "DirichletProcess", 2),
        rows: &TableRows { rows: &TooMany, weights: None },
        init: &Init::Random,
        settings: &settings(2, 1, Sparsity::Auto, 1),
        ask: None,
    };
    let error = fit(&job, None, &(), &Cancel::default()).expect_err("2^32 rows");
    assert!(error.to_string().contains("4294967296 rows"), "{error}");
}
