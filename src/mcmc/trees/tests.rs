//! Trees against brute force over tree-consistent partitions, and the laws of their growth.

use std::sync::Arc;

use crate::data::{Coordinates, DenseRows, Tree};
use crate::mcmc::tests::cases::{
    dirichlet, finite, gaussian, generalized_gamma, named, others, pitman_yor, points, specification, target, words,
};
use crate::mcmc::tests::paths::partitions;
use crate::mcmc::trees::{
    Arena, Hierarchy, HierarchyPlan, MOST_ROWS, Method, TreeCut, agglomerate, check_hierarchy, incremental, shape,
};
use crate::mcmc::{ChainState, RowTable, Start, Target};
use crate::model::Named;
use crate::parallel::{Cancel, with_threads};
use crate::parameters::{Value, vector};
use crate::process::{Auxiliary, ProcessState};
use crate::rng::{Purpose, permutation, stream};
use crate::special::log_sum_exp;

fn targets() -> Vec<Target> {
    let mut all = others(&generalized_gamma(0.7, 0.5), 6);
    for process in [dirichlet(0.8), generalized_gamma(0.7, 0.5), pitman_yor(0.4, 0.5)] {
        all.extend([points(process.clone(), 6), words(process.clone(), 6, true), words(process, 6, false)]);
    }
    all
}

/// A process of product form.
fn process(target: &Target) -> ProcessState {
    target.process.start(true).expect("a random measure")
}

/// Returns all tree-consistent partitions of the rows below a node, as roots.
fn consistent(arena: &Arena<'_>, node: u32) -> Vec<Vec<u32>> {
    let mut found = vec![vec![node]];
    if let Some([left, right]) = arena.children(node) {
        for a in consistent(arena, left) {
            found.extend(consistent(arena, right).into_iter().map(|b| [&a[..], &b].concat()));
        }
    }
    found
}

fn log_h(arena: &Arena<'_>, roots: &[u32]) -> f64 {
    roots.iter().map(|&root| arena.node(root).log_cluster).sum()
}

/// A random tree by random joins.
fn random(arena: &mut Arena<'_>, seed: u64) -> u32 {
    let n = arena.target().n_rows() as u32;
    let mut open = permutation(n, &mut stream(seed, Purpose::Trees, 0));
    let mut turn = 0;
    while open.len() > 1 {
        turn += 1;
        let a = open.swap_remove((seed as usize * 7 + turn * 3) % open.len());
        let b = open.swap_remove((seed as usize + turn) % open.len());
        open.push(arena.join(a, b).expect("definite"));
    }
    open[0]
}

/// log p(X, partition, u) summed over all partitions.
fn log_evidence(target: &Target, process: &ProcessState) -> f64 {
    let log = |labels: &Vec<u32>| {
        let state = ChainState::new(target, labels).expect("allowed");
        let sizes = state.clusters.sizes();
        let prior = target.process.log_probability(&sizes, &state.process.integrated());
        state.log_joint(target).expect("definite") - prior + target.process.log_probability(&sizes, process)
    };
    log_sum_exp(&partitions(target.n_rows()).iter().map(log).collect::<Vec<_>>())
}

#[test]
fn potentials_are_sums_over_consistent_partitions() {
    for target in targets() {
        let process = process(&target);
        let evidence = log_evidence(&target, &process) + target.n_rows() as f64 * target.log_volume;
        for seed in 0..6 {
            let mut arena = Arena::new(&target, &process);
            let root = random(&mut arena, seed);
            for node in arena.inner_below(root) {
                let logs: Vec<f64> = consistent(&arena, node).iter().map(|roots| log_h(&arena, roots)).collect();
                assert!((arena.node(node).log_potential - log_sum_exp(&logs)).abs() < 1e-9);
                let [left, right] = arena.children(node).expect("an inner node");
                let log_d = arena.log_dissimilarity(left, right).expect("definite");
                assert!((arena.node(node).log_dissimilarity - log_d).abs() < 1e-9);
                assert!(arena.node(left).least < arena.node(right).least);
            }
            let all = crate::process::Occupancy { units: target.n_rows(), blocks: 1 };
            let bound = arena.node(root).log_potential + target.process.log_rest(all, &process);
            assert!(bound < evidence + 1e-9, "{bound} {evidence}");
        }
    }
}

/// ln h of a node depends only on its rows, for any process: the product over blocks is the joint probability of a
/// partition.
#[test]
fn weights_are_those_of_partitions() {
    for target in targets() {
        let process = process(&target);
        let arena = Arena::new(&target, &process);
        for labels in partitions(6).iter().step_by(7) {
            let mut grown = arena.clone();
            let mut total = 0.0;
            for label in 0..6 {
                let mut rows = (0..6).filter(|&row| labels[row as usize] == label);
                let Some(mut root) = rows.next() else { continue };
                for row in rows {
                    root = grown.insert(root, row).expect("definite");
                }
                total += grown.node(root).log_cluster;
                assert!((grown.log_weight(root, &process) - grown.node(root).log_cluster).abs() < 1e-9);
            }
            let state = ChainState::new(&target, labels).expect("allowed");
            let sizes = state.clusters.sizes();
            let law = &target.process;
            let expected = state.log_joint(&target).expect("definite") + target.n_rows() as f64 * target.log_volume
                - law.log_probability(&sizes, &state.process.integrated())
                + law.log_probability(&sizes, &process);
            let rest = law.log_rest(crate::process::Occupancy { units: 6, blocks: 1 }, &process);
            assert!((total + rest - expected).abs() < 1e-9, "{total} {expected}");
        }
    }
}

/// Of the three positions one level deep, the one with the least dissimilarity has the largest potential. All marginals
/// on the path are those of the rows.
#[test]
fn insertion_takes_the_best_of_three() {
    for target in targets() {
        let process = process(&target);
        for seed in 0..8 {
            let mut arena = Arena::new(&target, &process);
            let order = permutation(6, &mut stream(seed, Purpose::Trees, 0));
            let mut root = order[0];
            for &row in &order[1..] {
                if let Some([left, right]) = arena.children(root) {
                    let mut copy = arena.clone();
                    let with_left = copy.join(left, row).expect("definite");
                    let with_right = copy.join(right, row).expect("definite");
                    let options = [copy.join(root, row), copy.join(with_left, right), copy.join(left, with_right)].map(
                        |option| {
                            let option = option.expect("definite");
                            copy.node(option).log_potential
                        },
                    );
                    let log_d = [(left, right), (left, row), (right, row)]
                        .map(|(a, b)| copy.log_dissimilarity(a, b).expect("definite"));
                    let best = (0..3).fold(0, |best, option| if log_d[option] < log_d[best] { option } else { best });
                    assert!(options.iter().all(|option| *option <= options[best] + 1e-9));
                }
                root = arena.insert(root, row).expect("definite");
            }
            let mut rows = arena.rows_below(root);
            rows.sort_unstable();
            assert_eq!(rows, [0, 1, 2, 3, 4, 5]);
            for node in arena.inner_below(root) {
                let cache = arena.cache(node).expect("definite");
                let log_m = target.urn().log_marginal_likelihood(&cache).expect("definite");
                assert!((arena.node(node).log_marginal - log_m).abs() < 1e-9);
            }
        }
    }
}

/// Trees equal newly built ones after a reduction to some roots, and after a change of the process.
#[test]
fn trees_survive_tidying_and_new_parameters() {
    let target = points(generalized_gamma(0.7, 0.5), 6);
    let first = process(&target);
    let mut later = first;
    target.process.update(&[3, 3], &mut later, &mut stream(1, Purpose::Trees, 0));
    let mut arena = Arena::new(&target, &first);
    let old = random(&mut arena, 1);
    let root = random(&mut arena, 2);
    let expected = Hierarchy::restore(&target, &shape(&arena, root).0, later).expect("definite");
    let mut roots = [root];
    arena.keep(&mut roots);
    assert_eq!(arena.n_nodes(), 11);
    assert_eq!((old, root, roots[0]), (10, 15, 10));
    let (tree, nodes) = shape(&arena, roots[0]);
    assert_eq!(tree, expected.tree);
    let again = Hierarchy::restore(&target, &tree, later).expect("definite");
    assert_eq!(again.log_potential, expected.log_potential);
    assert_eq!(nodes.len(), 11);
}

/// Ties, also between equal rows, go to the lowest rows, so the tree does not depend on the number of threads.
#[test]
fn greedy_trees_do_not_depend_on_threads() {
    let rows: Vec<f64> = (0..200).map(|row| f64::from(row % 7) + f64::from(row % 3) * 0.25).collect();
    let target = target(gaussian(2), dirichlet(0.8), &DenseRows::new(&rows[..], 2));
    let build = |threads| {
        with_threads(Some(threads), || {
            let mut arena = Arena::new(&target, &process(&target));
            let root = agglomerate(&mut arena, (0..100).collect(), &Cancel::default()).expect("definite");
            shape(&arena, root).0
        })
        .expect("a thread")
    };
    let one = build(1);
    assert_eq!(one, build(2));
    let [first, second] = one.joins()[0].map(|row| &rows[2 * row as usize..][..2]);
    assert_eq!(first, second);
    let equal = crate::mcmc::tests::cases::target(gaussian(2), dirichlet(0.8), &DenseRows::new(&[1.0; 12][..], 2));
    let hierarchy = Hierarchy::build(&equal, plan(Method::Greedy), &Cancel::default()).expect("definite");
    assert_eq!(hierarchy.tree.joins()[0], [0, 1]);
}

/// The greedy tree equals one from comparing all pairs anew at each step.
#[test]
fn greedy_trees_join_the_most_similar_pair() {
    for target in targets() {
        let process = process(&target);
        let mut arena = Arena::new(&target, &process);
        let root = agglomerate(&mut arena, (0..6).collect(), &Cancel::default()).expect("definite");
        let mut plain = Arena::new(&target, &process);
        let mut open: Vec<u32> = (0..6).collect();
        while open.len() > 1 {
            let mut best = (f64::INFINITY, 0, 0);
            for i in 0..open.len() {
                for j in i + 1..open.len() {
                    let log_d = plain.log_dissimilarity(open[i], open[j]).expect("definite");
                    if log_d < best.0 - 1e-12 {
                        best = (log_d, i, j);
                    }
                }
            }
            let (_, i, j) = best;
            open[i] = plain.join(open[i], open[j]).expect("definite");
            open.remove(j);
            open.sort_unstable_by_key(|&root| plain.node(root).least);
        }
        assert!((arena.node(root).log_potential - plain.node(open[0]).log_potential).abs() < 1e-9);
    }
}

fn plan(method: Method) -> HierarchyPlan {
    HierarchyPlan { method, n_trials: 3, seed: 1 }
}

#[test]
fn cuts_are_what_they_say() {
    for target in targets() {
        for method in [Method::Greedy, Method::Incremental] {
            let hierarchy = Hierarchy::build(&target, plan(method), &Cancel::default()).expect("definite");
            let mut arena = Arena::new(&target, &hierarchy.process);
            let root = super::grow(&mut arena, &[0, 1, 2, 3, 4, 5], hierarchy.tree.joins()).expect("definite");
            let best = consistent(&arena, root).iter().map(|roots| log_h(&arena, roots)).fold(f64::MIN, f64::max);
            let of =
                |cut| hierarchy.clusters(cut).iter().map(|&node| hierarchy.log_cluster[node as usize]).sum::<f64>();
            assert!((of(TreeCut::Map) - best).abs() < 1e-9);
            assert!(of(TreeCut::Bhc) <= best + 1e-9);
            for node in hierarchy.clusters(TreeCut::Bhc) {
                assert!(hierarchy.log_dissimilarity[node as usize] <= 0.0);
                let mut above = node;
                while let Some(parent) = hierarchy.tree.parent(above) {
                    assert!(hierarchy.log_dissimilarity[parent as usize] > 0.0);
                    above = parent;
                }
            }
            let linkage = hierarchy.linkage();
            assert!(linkage.windows(2).all(|pair| pair[0][2] <= pair[1][2]));
            assert!(linkage.iter().enumerate().all(|(join, row)| row[0] < row[1] && (row[1] as usize) < 6 + join));
            assert_eq!((linkage[4][3], linkage.len()), (6.0, 5));
        }
    }
}

/// Incremental forests contain every row once. No root has ln d above zero, unless its subtree has reached the limit of
/// removals.
#[test]
fn incremental_forests_are_whole() {
    let rows: Vec<f64> = (0..400).map(|row| f64::from(row % 5) * 6.0 + f64::from(row * 37 % 101) * 0.02).collect();
    let target = target(gaussian(2), dirichlet(0.8), &DenseRows::new(&rows[..], 2));
    let mut arena = Arena::new(&target, &process(&target));
    let mut forest = Vec::new();
    incremental(&mut arena, &mut forest, &(0..200).collect::<Vec<_>>(), &Cancel::default()).expect("definite");
    let mut all: Vec<u32> = forest.iter().flat_map(|&root| arena.rows_below(root)).collect();
    all.sort_unstable();
    assert_eq!(all, (0..200).collect::<Vec<_>>());
    assert!(forest.len() >= 5 && forest.iter().all(|&root| arena.node(root).log_dissimilarity <= 0.0));
    // Unused nodes were released.
    assert!(arena.n_nodes() < 450, "{}", arena.n_nodes());
}

#[test]
fn one_row_and_equal_rows_have_trees() {
    for values in [vec![0.5, 1.0], [0.5, 1.0].repeat(30)] {
        let target = target(gaussian(2), dirichlet(0.8), &DenseRows::new(&values[..], 2));
        let n = target.n_rows();
        for method in [Method::Greedy, Method::Incremental] {
            let hierarchy = Hierarchy::build(&target, plan(method), &Cancel::default()).expect("definite");
            assert_eq!((hierarchy.tree.n_rows(), hierarchy.cut(TreeCut::Bhc)), (n, vec![0; n]));
        }
    }
}

/// A one-on-top tree over many rows can have the maximum height.
#[test]
fn tall_trees_are_grown() {
    let rows: Vec<f64> = (0..6000).map(|row| f64::from(row) * 1e-4).collect();
    let target = target(gaussian(1), dirichlet(0.8), &DenseRows::new(&rows[..], 1));
    let joins: Vec<[u32; 2]> = (1..6000).map(|k| [k, if k == 1 { 0 } else { 6000 + k - 2 }]).collect();
    let tree = Tree::new(joins).expect("a tree");
    let hierarchy = Hierarchy::restore(&target, &tree, process(&target)).expect("definite");
    assert_eq!(hierarchy.sizes[hierarchy.tree.root() as usize], 6000);
    assert_eq!(hierarchy.linkage().len(), 5999);
    assert!(hierarchy.log_potential.iter().all(|log| log.is_finite()));
}

#[test]
fn processes_without_product_form_are_refused() {
    for process in [finite(3, 1.5), pitman_yor(0.6, -0.3)] {
        let target = points(process, 6);
        let refused = Hierarchy::build(&target, plan(Method::Greedy), &Cancel::default());
        assert!(matches!(refused, Err(crate::Error::NotSupported { .. })));
        // Chains can still start from trees, in a partition that the process allows.
        for start in [Start::Incremental, Start::OnTop] {
            let labels = start.labels(&target, 0, &Cancel::default()).expect("definite");
            assert!(ChainState::new(&target, &labels).is_ok());
        }
    }
}

#[test]
fn more_rows_are_inserted() {
    let rows: Vec<f64> = (0..80).map(|row| f64::from(row % 2) * 20.0 + f64::from(row * 13 % 17) * 0.1).collect();
    let part = target(gaussian(1), dirichlet(0.8), &DenseRows::new(&rows[..60], 1));
    let hierarchy = Hierarchy::build(&part, plan(Method::Greedy), &Cancel::default()).expect("definite");
    let table =
        RowTable::new(&DenseRows::new(&rows[..], 1), &Arc::new(Coordinates::identity(1)), part.likelihood.origin());
    let all = Target::new(part.likelihood.clone(), part.process.clone(), table, part.log_volume).expect("closed");
    let more = hierarchy.insert(&all, &Cancel::default()).expect("definite");
    assert_eq!((hierarchy.tree.n_rows(), more.tree.n_rows()), (60, 80));
    let labels = more.cut(TreeCut::Bhc);
    assert!(labels.iter().enumerate().all(|(row, label)| *label == labels[row % 2]));
    assert_ne!(labels[0], labels[1]);
}

/// Values of nodes depend only on the tree, not on how it was built: a hierarchy read from a file has the same bits.
#[test]
fn restored_hierarchies_have_the_same_bits() {
    let rows: Vec<f64> = (0..300).map(|row| f64::from(row % 4) * 5.0 + f64::from(row * 37 % 101) * 0.03).collect();
    let target = target(gaussian(2), dirichlet(0.8), &DenseRows::new(&rows[..], 2));
    for method in [Method::Greedy, Method::Incremental] {
        let hierarchy = Hierarchy::build(&target, plan(method), &Cancel::default()).expect("definite");
        let again = Hierarchy::restore(&target, &hierarchy.tree, hierarchy.process).expect("definite");
        assert_eq!(again.tree, hierarchy.tree);
        assert_eq!(again.log_potential, hierarchy.log_potential);
        assert_eq!(again.log_cluster, hierarchy.log_cluster);
        assert_eq!(again.log_dissimilarity, hierarchy.log_dissimilarity);
    }
}

/// Scores of trials include the prior of learned parameters.
#[test]
fn scores_have_the_prior() {
    let learned = named("DirichletProcess", [("concentration", vector(vec![2.0, 3.0]))]);
    let target = points(learned, 6);
    let hierarchy = Hierarchy::build(&target, plan(Method::Greedy), &Cancel::default()).expect("definite");
    let concentration = hierarchy.process.concentration;
    let fixed = points(dirichlet(concentration), 6);
    for labels in partitions(6).iter().step_by(11) {
        let joint = ChainState::new(&fixed, labels).expect("allowed").log_joint(&fixed).expect("definite");
        // Gamma(2, 3): 9 x exp(-3 x).
        let expected = joint + 9.0_f64.ln() + concentration.ln() - 3.0 * concentration;
        assert!((hierarchy.score(&target, labels).expect("definite") - expected).abs() < 1e-9);
    }
}

/// Refusals need no rows.
#[test]
fn models_are_refused_before_rows_are_read() {
    let of = |likelihood, process: Named, method, n| check_hierarchy(&specification(likelihood, process), method, n);
    let product = || named("SphericalGaussian", [("base", Value::Text("product".into()))]);
    let refused = |process| of(gaussian(2), process, Method::Greedy, 10).expect_err("no product").to_string();
    assert!(refused(finite(3, 1.0)).starts_with("a hierarchy under FiniteDirichlet is not supported"));
    assert!(refused(finite(1, 1.0)).contains("no product"));
    assert!(refused(pitman_yor(0.6, -0.3)).starts_with("a hierarchy under PitmanYor is not supported"));
    let said = of(product(), dirichlet(1.0), Method::Greedy, 10).expect_err("no marginal").to_string();
    assert!(said.contains("SphericalGaussian(base=\"product\")"), "{said}");
    assert!(of(gaussian(2), dirichlet(1.0), Method::Greedy, MOST_ROWS + 1).is_err());
    assert!(of(gaussian(2), dirichlet(1.0), Method::Incremental, MOST_ROWS + 1).is_ok());
    for process in [dirichlet(1.0), pitman_yor(0.4, 0.5), pitman_yor(0.0, 0.5), generalized_gamma(0.7, 0.5)] {
        assert!(of(gaussian(2), process, Method::Greedy, 10).is_ok());
    }
}

/// A file may hold the state of a hierarchy that was built, and no other state.
#[test]
fn foreign_states_are_refused() {
    for process in [dirichlet(0.8), pitman_yor(0.4, 0.5), generalized_gamma(0.7, 0.5)] {
        let target = points(process, 6);
        let hierarchy = Hierarchy::build(&target, plan(Method::Greedy), &Cancel::default()).expect("definite");
        hierarchy.check_state(&target).expect("its own");
        let of = |state: ProcessState| {
            let again = Hierarchy::restore(&target, &hierarchy.tree, state).expect("definite");
            again.check_state(&target).is_err()
        };
        let ProcessState { concentration, auxiliary, .. } = hierarchy.process;
        let other = Auxiliary { log_u: 0.0, log_mass: 0.1 };
        let changed = if auxiliary.is_some() { None } else { Some(other) };
        assert!(of(ProcessState { auxiliary: changed, ..hierarchy.process }));
        assert!(of(ProcessState { concentration: concentration + 0.1, ..hierarchy.process }));
        assert!(of(ProcessState { discount: 0.9, ..hierarchy.process }));
        for log_u in [1e308, -1e308] {
            let far = auxiliary.map(|auxiliary| Auxiliary { log_u, ..auxiliary });
            assert!(far.is_none() || of(ProcessState { auxiliary: far, ..hierarchy.process }));
        }
        let heavy = Some(Auxiliary { log_mass: 1e308, ..auxiliary.unwrap_or(other) });
        assert!(of(ProcessState { auxiliary: heavy, ..hierarchy.process }));
    }
}
