//! Nodes of kd-trees as units. For every likelihood, a node contributes what its rows contribute with the same
//! responsibilities, and opening nodes never lowers the bound (mathematics 12).

use std::borrow::Cow;

use proptest::prelude::*;
use rand::RngExt;
use stickbreak::data::{DenseRows, NodeCut, RowUnits, TableRows, moments};
use stickbreak::global_step::Globals;
use stickbreak::likelihood::demands;
use stickbreak::local_step::{
    BatchTree, ByScore, Chunk, FromPairs, Judging, Keep, LocalStep, NodeUnits, OpeningRule, Outcome, Tap, TreeOptions,
    Units,
};
use stickbreak::model::Model;
use stickbreak::parallel::Cancel;
use stickbreak::parameters::table;
use stickbreak::simd::Scalar;

use crate::common::{clustered, distance, generator, globals_of_rows, specification};

const D: usize = 3;
const K: usize = 4;
const LIKELIHOODS: [&str; 9] = [
    "Bernoulli",
    "Categorical",
    "DiagonalGaussian",
    "Gaussian",
    "KnownCovarianceGaussian",
    "Multinomial",
    "Poisson",
    "SphericalGaussian",
    "ZeroMeanGaussian",
];

/// Rows in the domain of a likelihood; some of them occur twice.
fn rows_of<F: Scalar>(likelihood: &str, n: usize, seed: u64) -> Vec<F> {
    let rows: Vec<f64> = clustered(n, D, K, seed);
    let value = |x: f64| match likelihood {
        "Bernoulli" => f64::from(u8::from(x > 0.0)),
        "Categorical" => (x.abs() / 2.0).floor().min(3.0),
        "Poisson" | "Multinomial" => x.abs().round(),
        _ => x,
    };
    let mut rows: Vec<f64> = rows.into_iter().map(value).collect();
    let twice = rows[..D * (n / 4)].to_vec();
    rows[D * (n / 2)..][..twice.len()].copy_from_slice(&twice);
    rows.into_iter().map(F::from_f64).collect()
}

fn model_of<F: Scalar>(likelihood: &str, process: &str, rows: &[F]) -> Model<F> {
    let mut specification = specification(likelihood, process, K);
    if likelihood == "KnownCovarianceGaussian" {
        let covariance = table(D, vec![2.0, 0.5, 0.0, 0.5, 1.0, 0.2, 0.0, 0.2, 0.7]);
        specification.likelihood.parameters.0.insert("covariance".into(), covariance);
    }
    let table_rows = DenseRows::new(rows, D);
    let asked = demands(likelihood, &specification.likelihood.parameters).expect("a name of the registry");
    let table_rows = TableRows { rows: &table_rows, weights: None };
    let data =
        moments(&table_rows, asked.sought.needs, &asked.domain.into(), false, &Cancel::default()).expect("finite rows");
    let origin = data.mean.iter().map(|&x| F::from_f64(x).to_f64()).collect();
    specification.resolve(&data).expect("defaults").build(origin).expect("defaults")
}

/// Responsibilities, in the order in which they are computed.
#[derive(Default)]
struct All {
    width: usize,
    components: Vec<u32>,
    values: Vec<f64>,
}

impl Tap for All {
    fn observe(&mut self, chunk: &Chunk<'_>) -> stickbreak::Result<()> {
        self.width = chunk.responsibilities.width;
        self.components.extend_from_slice(&chunk.responsibilities.components);
        self.values.extend_from_slice(&chunk.responsibilities.values);
        Ok(())
    }
}

struct Case<'a, F: Scalar> {
    model: &'a Model<F>,
    globals: Globals,
    width: usize,
}

impl<F: Scalar> Case<'_, F> {
    fn visit(&self, units: &dyn Units<F>) -> (Outcome, All) {
        let scorer = self.globals.scorer(self.model).expect("definite");
        let has_tail = self.globals.allocation.tail_log_weight.is_some();
        let (width, margin, abandon) = (self.width.min(scorer.n_components()), None, true);
        let assign =
            ByScore { scorer: scorer.as_ref(), has_tail, width, margin, abandon, row_terms: false, mask: None };
        self.run(units, &assign)
    }

    fn run(&self, units: &dyn Units<F>, assign: &dyn stickbreak::local_step::Assign<F>) -> (Outcome, All) {
        let (likelihood, ids, keep) = (self.model.likelihood.as_ref(), &self.globals.ids, Keep::SummaryAndGaps);
        let cancel = &Cancel::default();
        let mut seen = All::default();
        let step = LocalStep { likelihood, ids, assign, keep, cancel };
        let outcome = step.run(units, None, &mut [&mut seen]).expect("finite");
        (outcome, seen)
    }

    fn nodes<'b>(&self, tree: &'b BatchTree) -> NodeUnits<'b, F> {
        NodeUnits::new(self.model.likelihood.as_ref(), Cow::Borrowed(tree.nodes()))
    }
}

/// Opens some of the nodes that have more than one row.
fn open_some<F: Scalar>(case: &Case<'_, F>, tree: &mut BatchTree, rows: &RowUnits<'_, F>, share: f64, seed: u64) {
    let mut generator = generator(seed);
    let ends: Vec<u32> = tree.starts().iter().skip(1).copied().chain([rows.len() as u32]).collect();
    let list: Vec<usize> = tree
        .starts()
        .iter()
        .zip(ends)
        .enumerate()
        .filter(|(_, (start, end))| end - *start > 1 && generator.random::<f64>() < share)
        .map(|(node, _)| node)
        .collect();
    tree.open(case.model.likelihood.as_ref(), rows, &list);
}

/// The rows of every node, by its position in the tree.
fn members(tree: &BatchTree) -> Vec<Vec<u32>> {
    (0..tree.starts().len()).map(|node| tree.rows_below(node).to_vec()).collect()
}

fn weights_of(n: usize, seed: u64) -> Vec<f64> {
    let mut generator = generator(seed);
    (0..n).map(|_| [0.0, 0.5, 1.0, 3.0][generator.random_range(0..4)]).collect()
}

fn process() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["DirichletProcess", "DirichletProcess tail", "FiniteDirichlet"])
}

/// Checks that rows with the responsibilities of their nodes contribute what the nodes contribute.
fn check_ties<F: Scalar>(name: &str, process: &str, n: usize, width: usize, seed: u64, tolerance: f64) {
    let rows = rows_of::<F>(name, n, seed);
    let model = model_of(name, process, &rows);
    let case = Case { model: &model, globals: globals_of_rows(&model, &rows, D, K), width };
    let weights = weights_of(n, seed);
    let table_rows = DenseRows::new(&rows, D);
    let units = RowUnits::all(&table_rows, Some(&weights));
    let cut = if seed.is_multiple_of(2) { NodeCut::Axis } else { NodeCut::Principal };
    let mut tree = BatchTree::new(model.likelihood.as_ref(), &units, TreeOptions { depth: 2, cut });
    for turn in 0..3 {
        open_some(&case, &mut tree, &units, 0.5, seed + turn);
    }
    let (of_nodes, seen) = case.visit(&case.nodes(&tree));
    let (mut components, mut values) = (vec![0; n * seen.width], vec![0.0; n * seen.width]);
    for (node, list) in members(&tree).iter().enumerate() {
        for &row in list {
            let (from, to) = (node * seen.width..(node + 1) * seen.width, row as usize * seen.width);
            components[to..][..seen.width].copy_from_slice(&seen.components[from.clone()]);
            values[to..][..seen.width].copy_from_slice(&seen.values[from]);
        }
    }
    let (a, b) = (of_nodes.summary, {
        // The tail has no column there.
        let k = case.globals.n_components() as u32;
        values.iter_mut().zip(&mut components).filter(|(_, k_of)| **k_of >= k).for_each(|(value, k_of)| {
            (*value, *k_of) = (0.0, 0);
        });
        case.run(&units, &FromPairs { width: seen.width, components: &components, values: &values }).0.summary
    });
    assert!(distance(&a.counts, &b.counts) < 1e-12, "{name}");
    assert!(distance(&a.entropies, &b.entropies) < 1e-12, "{name}");
    assert!(distance(&a.statistics, &b.statistics) < tolerance, "{name} {}", distance(&a.statistics, &b.statistics));
    assert!(distance(&[a.mass, a.log_base_measure], &[b.mass, b.log_base_measure]) < 1e-11, "{name}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn nodes_contribute_what_their_rows_do(
        name in prop::sample::select(LIKELIHOODS.to_vec()),
        process in process(),
        n in K..400,
        width in 1_usize..=K,
        seed in 0_u64..1000,
    ) {
        check_ties::<f64>(name, process, n, width, seed, 1e-11);
        check_ties::<f32>(name, process, n, width, seed, 1e-11);
    }

    /// From the root to single rows, the local bound under fixed components never falls, and ends at the bound of the
    /// rows.
    #[test]
    fn opening_never_lowers_the_bound(
        name in prop::sample::select(LIKELIHOODS.to_vec()),
        process in process(),
        n in K..300,
        width in 1_usize..=K + 1,
        seed in 0_u64..1000,
    ) {
        let rows = rows_of::<f64>(name, n, seed);
        let model = model_of(name, process, &rows);
        let case = Case { model: &model, globals: globals_of_rows(&model, &rows, D, K), width };
        let weights = weights_of(n, seed);
        let table_rows = DenseRows::new(&rows, D);
        let units = RowUnits::all(&table_rows, Some(&weights));
        let likelihood = model.likelihood.as_ref();
        let mut tree = BatchTree::new(likelihood, &units, TreeOptions { depth: 0, cut: NodeCut::Axis });
        prop_assert_eq!(tree.starts(), [0]);
        // Base measures that depend on rows are equal in all frontiers; scores omit them.
        let of_rows = case.visit(&units).0;
        let scale = 1.0 + of_rows.log_normalizer.abs();
        let mut last = f64::NEG_INFINITY;
        for turn in 0..40 {
            let outcome = case.visit(&case.nodes(&tree)).0;
            let bound = outcome.log_normalizer;
            let nodes = tree.nodes();
            let excess: f64 = (0..nodes.len()).map(|node| nodes.masses()[node] * nodes.excess(node)).sum();
            // Scores of squares contain the base measure of the mean.
            let bound = if name == "KnownCovarianceGaussian" { bound + excess } else { bound };
            prop_assert!(bound >= last - 1e-9 * scale, "{} {} {}", name, last, bound);
            prop_assert!(bound <= of_rows.log_normalizer + 1e-9 * scale, "{} {}", name, bound);
            last = bound;
            if tree.starts().len() == n {
                break;
            }
            open_some(&case, &mut tree, &units, if turn < 3 { 0.5 } else { 1.0 }, seed + turn);
        }
        prop_assert_eq!(tree.starts().len(), n);
        prop_assert!((last - of_rows.log_normalizer).abs() < 1e-10 * scale, "{}", name);
        let summary = case.visit(&case.nodes(&tree)).0.summary;
        prop_assert!(distance(&summary.statistics, &of_rows.summary.statistics) < 1e-10);
        prop_assert!(distance(&summary.counts, &of_rows.summary.counts) < 1e-10);
    }

    /// A frontier read from a checkpoint has the same nodes, to the bit.
    #[test]
    fn a_frontier_is_found_again(
        name in prop::sample::select(LIKELIHOODS.to_vec()),
        n in K..500,
        seed in 0_u64..1000,
        wrong in 0_usize..500,
    ) {
        let rows = rows_of::<f64>(name, n, seed);
        let model = model_of(name, "DirichletProcess", &rows);
        let case = Case { model: &model, globals: globals_of_rows(&model, &rows, D, K), width: 2 };
        let table_rows = DenseRows::new(&rows, D);
        let (units, likelihood) = (RowUnits::all(&table_rows, None), model.likelihood.as_ref());
        let options = TreeOptions { depth: 1, cut: NodeCut::Principal };
        let mut tree = BatchTree::new(likelihood, &units, options);
        for turn in 0..4 {
            open_some(&case, &mut tree, &units, 0.6, seed + turn);
        }
        let found = BatchTree::of_frontier(likelihood, &units, options, tree.starts()).expect("its own");
        prop_assert_eq!(found.starts(), tree.starts());
        prop_assert_eq!(members(&found), members(&tree));
        // The positions of the stored spreads may differ.
        let all = |tree: &BatchTree| (0..tree.nodes().len()).map(|node| tree.nodes().node(node)).collect::<Vec<_>>();
        prop_assert_eq!(all(&found), all(&tree));
        // Any other list of positions is refused or is a frontier; none may panic.
        let mut other = tree.starts().to_vec();
        let index = wrong % other.len();
        other[index] = other[index].wrapping_add(1 + wrong as u32);
        if let Some(tree) = BatchTree::of_frontier(likelihood, &units, options, &other) {
            prop_assert_eq!(tree.starts(), other);
        }
        prop_assert!(BatchTree::of_frontier(likelihood, &units, options, &[]).is_none());
    }

    /// Nodes of equal rows gain nothing at any tolerance; nodes with rows of several components gain.
    #[test]
    fn nodes_of_equal_rows_gain_nothing(
        name in prop::sample::select(LIKELIHOODS.to_vec()),
        n in 2_usize..200,
        weighted in any::<bool>(),
        seed in 0_u64..100,
    ) {
        let some = rows_of::<f64>(name, 50, seed);
        let model = model_of(name, "DirichletProcess", &some);
        let globals = globals_of_rows(&model, &some, D, K);
        let scorer = globals.scorer(&model).expect("definite");
        let equal = some[..D].repeat(n);
        let weights = weighted.then(|| weights_of(n, seed));
        for rule in [OpeningRule::Gain, OpeningRule::Responsibility] {
            let judging = Judging {
                likelihood: model.likelihood.as_ref(),
                scorer: scorer.as_ref(),
                width: K,
                rule,
                tolerance: if rule == OpeningRule::Gain { 0.0 } else { 1e-9 },
                seed,
                n_rows: 32,
                cancel: &Cancel::default(),
            };
            let found = |rows: &[f64], weights: Option<&[f64]>| {
                let table_rows = DenseRows::new(rows, D);
                let units = RowUnits::all(&table_rows, weights);
                let options = TreeOptions { depth: 0, cut: NodeCut::Axis };
                let mut tree = BatchTree::new(model.likelihood.as_ref(), &units, options);
                judging.candidates(&mut tree, &units, false).expect("finite").len()
            };
            prop_assert_eq!(found(&equal, weights.as_deref()), 0);
            if rule == OpeningRule::Gain && !matches!(name, "Bernoulli" | "Categorical" | "Poisson" | "Multinomial") {
                prop_assert_eq!(found(&some, None), 1, "{}", name);
            }
        }
    }
}

/// Nodes far from the origin keep their spread: a difference of squares would have lost it.
#[test]
fn spreads_survive_huge_offsets() {
    let mut rows = rows_of::<f64>("Gaussian", 400, 3);
    rows.iter_mut().enumerate().for_each(|(index, x)| *x += if index < 200 * D { 1e9 } else { -1e9 });
    let model = model_of("Gaussian", "DirichletProcess", &rows);
    let table_rows = DenseRows::new(&rows, D);
    let units = RowUnits::all(&table_rows, None);
    let options = TreeOptions { depth: 1, cut: NodeCut::Axis };
    let tree = BatchTree::new(model.likelihood.as_ref(), &units, options);
    for (node, list) in members(&tree).iter().enumerate() {
        let mean: f64 = list.iter().map(|&row| rows[row as usize * D] - rows[list[0] as usize * D]).sum::<f64>();
        let mean = mean / list.len() as f64;
        let square = |&row: &u32| (rows[row as usize * D] - rows[list[0] as usize * D] - mean).powi(2);
        let expected = list.iter().map(square).sum::<f64>() / list.len() as f64;
        let found = tree.nodes().spread(node).expect("different rows")[0];
        assert!((found - expected).abs() < 1e-6 * expected, "{found} {expected}");
    }
}

/// Memory of a tree: four bytes per row, and the values of each node of the frontier.
#[test]
fn memory_is_stated() {
    let (n, depth) = (20_000, 6);
    let rows = rows_of::<f64>("Gaussian", n, 5);
    let model = model_of("Gaussian", "DirichletProcess", &rows);
    let table_rows = DenseRows::new(&rows, D);
    let units = RowUnits::all(&table_rows, None);
    let tree = BatchTree::new(model.likelihood.as_ref(), &units, TreeOptions { depth, cut: NodeCut::Axis });
    let n_nodes = tree.nodes().len();
    assert_eq!(n_nodes, 1 << depth);
    // Means, squares, mass and two base measures; a row, a position, a start and a flag. Lists may double.
    let of_node = 8 * (D + D * (D + 1) / 2 + 3) + 13;
    assert!((4 * n..=4 * n + 2 * n_nodes * of_node).contains(&tree.bytes()), "{}", tree.bytes());
}
