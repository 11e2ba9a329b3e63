//! Clusters that rows join and leave, for every likelihood of the registry, compared with differences of log marginals.

use proptest::prelude::*;
use rand::RngExt;
use rand_distr::StandardNormal;
use stickbreak::data::{DenseRows, Domain, RowBlock, TableRows, moments};
use stickbreak::likelihood::{self, Density, ENTRIES, Eight, Frame, Likelihood, Urn, demands};
use stickbreak::parallel::Cancel;
use stickbreak::parameters::{Parameters, Value, table, vector};
use stickbreak::scoring::Row;
use stickbreak::simd::Lines;
use stickbreak::special::ln_gamma;
use stickbreak::suffstats::Sufficient;

use crate::common;

/// Rows of a likelihood relative to its origin, and the likelihood with its default parameters for them.
struct Case {
    name: &'static str,
    likelihood: std::sync::Arc<dyn Likelihood<f64>>,
    rows: Vec<Vec<f64>>,
}

/// Rows that suit a likelihood; some values are missing where it allows that.
fn rows(domain: Domain, n: usize, d: usize, missing: bool, seed: u64) -> Vec<f64> {
    let mut generator = common::generator(seed);
    if domain == Domain::Mixed {
        let (real, mut counts) = (rows(Domain::Real, n, d, false, seed), rows(Domain::Counts, n, 1, missing, seed));
        let mut all = real;
        for (index, row) in all.chunks_exact_mut(d).enumerate() {
            // A row lacks all real numbers or none.
            if missing && index % 4 == 1 {
                row.fill(f64::NAN);
            }
            row[d - 1] = counts.remove(0);
        }
        return all;
    }
    let mut value = || match domain {
        Domain::Real | Domain::Centred => generator.sample::<f64, _>(StandardNormal) + 3.0,
        Domain::Counts => {
            f64::from(generator.random_range(0_u32..6)) * [0.0, 0.0, 1.0, 1.0, 10.0, 1e4][generator.random_range(0..6)]
        }
        Domain::Binary => f64::from(generator.random_range(0_u32..2)),
        Domain::Codes | Domain::Mixed => f64::from(generator.random_range(0_u32..4)),
    };
    let mut rows: Vec<f64> = (0..n * d).map(|_| value()).collect();
    if missing {
        rows.iter_mut().step_by(3).for_each(|x| *x = f64::NAN);
    }
    rows
}

/// What a likelihood requires in `d` columns: a covariance, or the blocks of a Gaussian and of counts.
fn required(name: &str, d: usize) -> Parameters {
    match name {
        "KnownCovarianceGaussian" => {
            let covariance = (0..d * d).map(|index| if index % d == index / d { 1.5 } else { 0.3 }).collect();
            Parameters::from_pairs([("covariance", table(d, covariance))])
        }
        "Columns" => {
            let real: Vec<String> = (0..d - 1).map(|column| column.to_string()).collect();
            let gaussian = if d > 1 { format!("ZeroMeanGaussian {}; ", real.join(" ")) } else { String::new() };
            Parameters::from_pairs([("blocks", Value::Text(format!("{gaussian}Poisson {}", d - 1)))])
        }
        _ => Parameters::default(),
    }
}

impl Case {
    fn new(name: &'static str, n: usize, d: usize, missing: bool, seed: u64) -> Self {
        let parameters = required(name, d);
        let asked = demands(name, &parameters).expect("a name of the registry");
        let values = rows(asked.domain, n, d, missing, seed);
        let rows = DenseRows::new(&values[..], d);
        let data = moments(
            &TableRows { rows: &rows, weights: None },
            asked.sought.needs,
            &likelihood::allowed(name, &parameters).expect("valid"),
            missing,
            &Cancel::default(),
        );
        let data = data.expect("rows of the domain");
        let complete = likelihood::resolve(name, &parameters, &data).expect("defaults");
        let has_origin = matches!(asked.domain, Domain::Real | Domain::Centred | Domain::Mixed);
        let origin = if has_origin { data.mean } else { vec![0.0; d] };
        let likelihood =
            likelihood::build::<f64>(name, &complete, Frame { origin, missing, ..Frame::default() }).expect("defaults");
        let moved = |row: &[f64]| row.iter().zip(likelihood.origin()).map(|(x, o)| x - o).collect();
        let rows = values.chunks_exact(d).map(moved).collect();
        Self { name, likelihood, rows }
    }

    /// One case for each likelihood with urns, and one more with missing values if it allows them.
    fn all(n: usize, d: usize, seed: u64) -> Vec<Self> {
        let kinds = ENTRIES.iter().flat_map(|entry| [(entry.name, false), (entry.name, true)]);
        let allowed = kinds
            .filter(|(name, missing)| !missing || demands(name, &required(name, d)).is_ok_and(|asked| asked.missing));
        let cases = allowed.map(|(name, missing)| Self::new(name, n, d, missing, seed));
        cases.filter(|case| case.likelihood.urn().is_some()).collect()
    }

    fn urn(&self) -> &dyn Urn {
        self.likelihood.urn().expect("a closed marginal likelihood")
    }

    fn row(&self, row: usize) -> Row<'_> {
        Row::Dense(&self.rows[row])
    }

    fn empty(&self) -> Vec<f64> {
        let mut cache = vec![f64::NAN; self.urn().cache_len()];
        self.urn().clear(&mut cache).expect("a prior");
        cache
    }

    fn cluster(&self, rows: impl IntoIterator<Item = usize>) -> Vec<f64> {
        let mut cache = self.empty();
        rows.into_iter().for_each(|row| self.urn().add(&mut cache, self.row(row)).expect("definite"));
        cache
    }

    fn flat(&self, list: &[usize]) -> Vec<f64> {
        list.iter().flat_map(|&row| self.rows[row].clone()).collect()
    }

    /// The total statistics of the listed rows.
    fn statistics(&self, list: &[usize]) -> Vec<f64> {
        let (mut statistics, ones) = (vec![0.0; self.likelihood.n_statistics()], vec![1.0; list.len()]);
        self.likelihood.accumulate(RowBlock::Dense(&self.flat(list)), &ones, &mut statistics, &mut Lines::default());
        statistics
    }

    /// ln m of the listed rows, computed from their total statistics.
    fn log_marginal(&self, list: &[usize]) -> f64 {
        let (rows, statistics) = (self.flat(list), self.statistics(list));
        let component = Sufficient { count: list.len() as f64, statistics: &statistics };
        let gain = self.likelihood.log_marginal(component).expect("definite");
        let mut base = vec![0.0; list.len()];
        self.likelihood.scores().expect("for the local step").log_base_measures(RowBlock::Dense(&rows), &mut base);
        gain + base.iter().sum::<f64>()
    }

    fn log_predictives(&self, caches: &[f64], row: Row<'_>) -> Vec<f64> {
        let mut out = vec![f64::NAN; caches.len() / self.urn().cache_len()];
        self.urn().log_predictives(caches, row, &mut out).expect("definite");
        out
    }

    fn near(&self, found: f64, expected: f64) {
        assert!((found - expected).abs() <= 1e-9 * (1.0 + expected.abs()), "{}: {found} {expected}", self.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn predictives_are_differences_of_log_marginals(n in 3_usize..14, d in 1_usize..6, seed in any::<u64>()) {
        for case in Case::all(n, d, seed) {
            let cut = 1 + seed as usize % (n - 2);
            let (a, b): (Vec<usize>, Vec<usize>) = (0..n - 1).partition(|&row| row < cut);
            let caches = [case.cluster(a.clone()), case.empty(), case.cluster(b.clone())].concat();
            let found = case.log_predictives(&caches, case.row(n - 1));
            for (found, members) in found.into_iter().zip([&a, &vec![], &b]) {
                let with: Vec<usize> = members.iter().copied().chain([n - 1]).collect();
                case.near(found, case.log_marginal(&with) - case.log_marginal(members));
            }
        }
    }

    #[test]
    fn predictives_of_joining_rows_add_up_to_the_log_marginal(n in 1_usize..14, d in 1_usize..6, seed in any::<u64>()) {
        for case in Case::all(n, d, seed) {
            let (mut cache, mut total) = (case.empty(), 0.0);
            for row in 0..n {
                total += case.log_predictives(&cache, case.row(row))[0];
                case.urn().add(&mut cache, case.row(row)).expect("definite");
            }
            let all: Vec<usize> = (0..n).collect();
            case.near(total, case.log_marginal(&all));
            case.near(case.urn().log_marginal_likelihood(&cache).expect("definite"), total);
            assert!((cache[0] - n as f64).abs() < 1e-12, "the count comes first");
        }
    }

    #[test]
    fn neither_the_order_nor_visitors_matter(n in 3_usize..14, d in 1_usize..6, seed in any::<u64>()) {
        for case in Case::all(n, d, seed) {
            let stay: Vec<usize> = (0..n).filter(|row| row % 3 != 0).collect();
            let mut cache = case.cluster((0..n).rev());
            for row in (0..n).step_by(3) {
                case.urn().remove(&mut cache, case.row(row)).expect("definite");
            }
            let fresh = case.cluster(stay.clone());
            let log_marginal = |cache: &[f64]| case.urn().log_marginal_likelihood(cache).expect("definite");
            case.near(log_marginal(&cache), case.log_marginal(&stay));
            let of = |cache: &[f64]| case.log_predictives(cache, case.row(0))[0];
            case.near(of(&cache), of(&fresh));
            for row in stay {
                case.urn().remove(&mut cache, case.row(row)).expect("definite");
            }
            prop_assert_eq!(cache, case.empty());
        }
    }

    #[test]
    fn leaving_one_out_is_removing_it(n in 3_usize..14, d in 1_usize..6, seed in any::<u64>()) {
        for case in Case::all(n, d, seed) {
            let cache = case.cluster(0..n);
            for row in 0..n {
                let Some(found) = case.urn().log_leave_one_out(&cache, case.row(row)) else { continue };
                let others = case.cluster((0..n).filter(|&other| other != row));
                case.near(found, case.log_predictives(&others, case.row(row))[0]);
            }
        }
    }

    #[test]
    fn clusters_in_lanes_have_the_same_predictives(n in 2_usize..30, d in 1_usize..12, seed in any::<u64>()) {
        for case in Case::all(n, d, seed) {
            let len = case.urn().lane_len();
            if len == 0 {
                continue;
            }
            // Clusters of growing size, in as many lane groups as necessary.
            let caches: Vec<Vec<f64>> = (0..n).map(|size| case.cluster(0..size)).collect();
            let mut groups = vec![Eight::default(); n.div_ceil(8) * len];
            for (slot, cache) in caches.iter().enumerate() {
                let group = &mut groups[slot / 8 * len..][..len];
                group[0].0[slot % 8] = 0.25;
                case.urn().write_lane(cache, slot % 8, group);
            }
            let mut out = vec![[f64::NAN; 8]; n.div_ceil(8)];
            case.urn().score_lanes(&groups, case.row(n - 1), &mut out);
            let plain = case.log_predictives(&caches.concat(), case.row(n - 1));
            for (found, expected) in out.as_flattened().iter().zip(plain) {
                case.near(*found, expected + 0.25);
            }
        }
    }

    #[test]
    fn lanes_follow_rows_that_join_and_leave(n in 2_usize..14, d in 1_usize..6, seed in any::<u64>()) {
        for case in Case::all(n, d, seed) {
            let mut cache = case.empty();
            let mut group = vec![Eight([0.25; 8]); case.urn().lane_len()];
            if group.is_empty() {
                continue;
            }
            let written = |cache: &[f64]| {
                let mut group = vec![Eight([0.25; 8]); case.urn().lane_len()];
                case.urn().write_lane(cache, 3, &mut group);
                group
            };
            case.urn().write_lane(&cache, 3, &mut group);
            for row in 0..n {
                case.urn().add(&mut cache, case.row(row)).expect("definite");
                case.urn().update_lane(&cache, case.row(row), 3, &mut group);
                prop_assert_eq!(&group, &written(&cache));
            }
            for row in 0..n {
                case.urn().remove(&mut cache, case.row(row)).expect("definite");
                case.urn().update_lane(&cache, case.row(row), 3, &mut group);
                prop_assert_eq!(&group, &written(&cache));
            }
        }
    }

    #[test]
    fn merged_clusters_are_those_of_all_rows(n in 2_usize..14, d in 1_usize..6, seed in any::<u64>()) {
        for case in Case::all(n, d, seed) {
            let cut = seed as usize % (n + 1);
            let (mut a, b) = (case.cluster(0..cut), case.cluster(cut..n));
            let both = case.urn().log_marginal_likelihood_of_both(&a, &b).expect("definite");
            case.urn().merge(&mut a, &b).expect("definite");
            let all: Vec<usize> = (0..n).collect();
            case.near(both, case.log_marginal(&all));
            case.near(case.urn().log_marginal_likelihood(&a).expect("definite"), both);
            let of = |cache: &[f64]| case.log_predictives(cache, case.row(0))[0];
            case.near(of(&a), of(&case.cluster(0..n)));
        }
    }

    #[test]
    fn scores_of_one_component_are_its_predictives(n in 3_usize..14, d in 1_usize..6, seed in any::<u64>()) {
        for case in Case::all(n, d, seed) {
            let cache = case.cluster(0..n - 1);
            let statistics = case.statistics(&(0..n - 1).collect::<Vec<_>>());
            let component = Sufficient { count: (n - 1) as f64, statistics: &statistics };
            let scores = case.likelihood.scores().expect("for the local step");
            let scorer = scores.scorer(&[component], &[0.25], Density::Predictive).expect("definite");
            let rows = case.rows.concat();
            let (mut found, mut terms) = (vec![f64::NAN; n], vec![0.0; n]);
            scorer.score_component(0, &rows, &mut found);
            scorer.add_row_terms(RowBlock::Dense(&rows), &mut terms);
            for (row, (found, term)) in found.into_iter().zip(terms).enumerate() {
                case.near(found + term, case.log_predictives(&cache, case.row(row))[0] + 0.25);
            }
        }
    }

    #[test]
    fn sparse_rows_equal_dense_ones(n in 2_usize..14, d in 1_usize..6, seed in any::<u64>()) {
        let takes_sparse = |name: &&str| demands(name, &required(name, d)).is_ok_and(|asked| asked.sparse);
        let sparse = ENTRIES.iter().map(|entry| entry.name).filter(takes_sparse);
        for case in sparse.map(|name| Case::new(name, n, d, false, seed)) {
            let stored = |row: &Vec<f64>| -> (Vec<u32>, Vec<f64>) {
                let kept = row.iter().enumerate().filter(|(_, x)| **x != 0.0);
                kept.map(|(column, &x)| (column as u32, x)).unzip()
            };
            let rows: Vec<_> = case.rows.iter().map(stored).collect();
            let row = |row_number: usize| Row::Sparse(&rows[row_number].0, &rows[row_number].1);
            let mut cache = case.empty();
            (0..n).for_each(|row_number| case.urn().add(&mut cache, row(row_number)).expect("definite"));
            case.urn().remove(&mut cache, row(0)).expect("definite");
            let dense = case.cluster(1..n);
            case.near(case.log_predictives(&cache, row(0))[0], case.log_predictives(&dense, case.row(0))[0]);
            let log_marginal = |cache: &[f64]| case.urn().log_marginal_likelihood(cache).expect("definite");
            case.near(log_marginal(&cache), log_marginal(&dense));
        }
    }
}

#[test]
fn thousands_of_visits_leave_no_drift() {
    for case in Case::all(60, 5, 3) {
        let (mut cache, stay) = (case.cluster(0..40), case.cluster(0..40));
        for visit in 0..2400 {
            let row = case.row(visit % 60);
            if visit % 60 < 40 {
                case.urn().remove(&mut cache, row).expect("definite");
                case.urn().add(&mut cache, row).expect("definite");
            } else {
                case.urn().add(&mut cache, row).expect("definite");
                case.urn().remove(&mut cache, row).expect("definite");
            }
        }
        let log_marginal = |cache: &[f64]| case.urn().log_marginal_likelihood(cache).expect("definite");
        let (found, expected) = (log_marginal(&cache), log_marginal(&stay));
        assert!((found / expected - 1.0).abs() < 1e-10, "{}: {found} {expected}", case.name);
        let of = |cache: &[f64]| case.log_predictives(cache, case.row(50))[0];
        assert!((of(&cache) / of(&stay) - 1.0).abs() < 1e-10, "{}", case.name);
    }
}

/// A row so far away that the other digits of the factor are lost.
#[test]
fn a_far_visitor_makes_the_factor_be_computed_again() {
    for name in ["Gaussian", "ZeroMeanGaussian"] {
        let case = Case::new(name, 12, 3, false, 4);
        let (mut cache, stay) = (case.cluster(0..12), case.cluster(0..12));
        let far = [1e7, -2e7, 3e7];
        case.urn().add(&mut cache, Row::Dense(&far)).expect("definite");
        case.urn().remove(&mut cache, Row::Dense(&far)).expect("definite");
        let of = |cache: &[f64]| case.log_predictives(cache, case.row(0))[0];
        assert!((of(&cache) - of(&stay)).abs() < 0.1, "{name}: {} {}", of(&cache), of(&stay));
    }
}

#[test]
fn what_has_no_closed_marginal_has_no_urn() {
    let parameters = Parameters::from_pairs([
        ("mean", vector(vec![0.0; 2])),
        ("mean_precision", Value::Number(0.1)),
        ("shape", Value::Number(1.5)),
        ("rate", Value::Number(1.0)),
        ("base", Value::Text("product".into())),
    ]);
    let frame = Frame { origin: vec![0.0; 2], ..Frame::default() };
    let product = likelihood::build::<f64>("SphericalGaussian", &parameters, frame).expect("allowed");
    assert!(product.urn().is_none() && product.check_marginal().is_err());
    for case in Case::all(5, 2, 1) {
        assert!(case.likelihood.urn().is_some() && case.likelihood.check_marginal().is_ok(), "{}", case.name);
    }
}

/// Mathematics 1a for two columns, with determinants written out; m = 0, r = 0.5, nu = 4, Psi = I.
#[test]
fn a_gaussian_cluster_equals_the_textbook_formula() {
    let parameters = Parameters::from_pairs([
        ("mean", vector(vec![0.0; 2])),
        ("mean_precision", Value::Number(0.5)),
        ("dof", Value::Number(4.0)),
        ("scale", table(2, vec![1.0, 0.0, 0.0, 1.0])),
    ]);
    let frame = Frame { origin: vec![0.0; 2], ..Frame::default() };
    let gaussian = likelihood::build::<f64>("Gaussian", &parameters, frame).expect("allowed");
    let urn = gaussian.urn().expect("closed");
    let rows = [[1.0, 2.0], [0.5, -1.0], [3.0, 0.25]];
    let mut cache = vec![0.0; urn.cache_len()];
    urn.clear(&mut cache).expect("a prior");
    for row in &rows {
        urn.add(&mut cache, Row::Dense(row)).expect("definite");
    }
    let (n, mean) = (3.0, [1.5, 1.25 / 3.0]);
    let entry = |i: usize, j: usize| {
        let scatter: f64 = rows.iter().map(|row| (row[i] - mean[i]) * (row[j] - mean[j])).sum();
        f64::from(u8::from(i == j)) + scatter + 0.5 * n / (0.5 + n) * mean[i] * mean[j]
    };
    let determinant = entry(0, 0) * entry(1, 1) - entry(0, 1) * entry(0, 1);
    let pi = std::f64::consts::PI;
    let ln_gamma_2 = |x: f64| 0.5 * pi.ln() + ln_gamma(x) + ln_gamma(x - 0.5);
    let expected = -n * pi.ln() + (0.5_f64 / 3.5).ln() - 3.5 * determinant.ln() + ln_gamma_2(3.5) - ln_gamma_2(2.0);
    let found = urn.log_marginal_likelihood(&cache).expect("definite");
    assert!((found - expected).abs() < 1e-12, "{found} {expected}");
}

/// Mathematics 1e: 2 rows of 2 words, pseudo-counts 1, by hand.
#[test]
fn a_cluster_of_words_equals_the_textbook_formula() {
    let parameters =
        Parameters::from_pairs([("pseudo_counts", vector(vec![1.0; 3])), ("coefficient", Value::Number(1.0))]);
    let frame = Frame { origin: vec![0.0; 3], ..Frame::default() };
    let words = likelihood::build::<f64>("Multinomial", &parameters, frame).expect("allowed");
    let urn = words.urn().expect("closed");
    let mut cache = vec![0.0; urn.cache_len()];
    urn.clear(&mut cache).expect("a prior");
    urn.add(&mut cache, Row::Dense(&[1.0, 1.0, 0.0])).expect("definite");
    urn.add(&mut cache, Row::Sparse(&[0], &[2.0])).expect("definite");
    // Coefficients 2 and 1; Gamma(3) / Gamma(7) * Gamma(4) Gamma(2) Gamma(1).
    let expected = (2.0_f64 * 2.0 / 720.0 * 6.0).ln();
    let found = urn.log_marginal_likelihood(&cache).expect("definite");
    assert!((found - expected).abs() < 1e-13, "{found} {expected}");
}
