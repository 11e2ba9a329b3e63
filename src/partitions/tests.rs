//! The search against all partitions, and its tables against losses counted from scratch.

use rand::RngExt;

use super::search::{PartitionEstimate, SearchPlan, estimate};
use super::table::{CellCounts, ExpectedLoss};
use super::{LabelDraws, Loss, distances};
use crate::error::Error;
use crate::parallel::{Cancel, with_threads};
use crate::rng::{Purpose, stream};

const LOSSES: [Loss; 2] = [Loss::Variation, Loss::Binder];

/// All partitions of n rows, as labels in the order of first appearance.
fn all_partitions(n: usize) -> Vec<Vec<u32>> {
    (0..n).fold(vec![vec![]], |some, _| {
        let longer = |labels: &Vec<u32>| {
            let next = labels.iter().max().map_or(0, |most| most + 1);
            (0..=next).map(|label| [&labels[..], &[label]].concat()).collect::<Vec<_>>()
        };
        some.iter().flat_map(longer).collect()
    })
}

/// Draws around a partition: each row keeps its label or gets any other.
fn noisy(n: usize, draws: usize, noise: f64, seed: u64) -> Vec<i32> {
    let mut generator = stream(seed, Purpose::Draws, 7);
    let centre: Vec<i32> = (0..n).map(|_| generator.random_range(0..4)).collect();
    let mut label = |row: usize| if generator.random_bool(noise) { generator.random_range(0..5) } else { centre[row] };
    (0..draws * n).map(|index| label(index % n)).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn expected(labels: &[i32], estimate: &[u32], loss: Loss) -> f64 {
    mean(&distances(labels, estimate, loss, &Cancel::default()).expect("labels of the same rows"))
}

fn search(labels: &[i32], n: usize, loss: Loss, max_clusters: usize) -> PartitionEstimate {
    let draws = LabelDraws::new(labels, n).expect("draws");
    let plan = SearchPlan { runs: None, max_clusters, seed: 0 };
    estimate(&draws, loss, plan, &Cancel::default()).expect("a small table")
}

/// No partition has a lower expected loss, whatever the noise, and however many clusters are allowed.
#[test]
fn the_best_of_all_partitions_is_found() {
    for n in [1, 2, 3, 5, 7, 8] {
        let all = all_partitions(n);
        for (noise, seed) in [(0.1, 1), (0.3, 2), (0.3, 3), (0.6, 4), (1.0, 5), (1.0, 6)] {
            let labels = noisy(n, 9, noise, seed);
            for (loss, most) in LOSSES.into_iter().flat_map(|loss| (1..=n).map(move |most| (loss, most))) {
                let allowed = all.iter().filter(|labels| labels.iter().all(|&label| (label as usize) < most));
                let best = allowed.map(|one| expected(&labels, one, loss)).fold(f64::INFINITY, f64::min);
                let found = search(&labels, n, loss, most);
                let own = expected(&labels, &found.labels, loss);
                assert!((found.loss - own).abs() <= 1e-12 * (1.0 + own), "{loss:?}: {} {own}", found.loss);
                assert!(own <= best + 1e-12 * (1.0 + best), "{loss:?}, n = {n}, noise {noise}: {own} {best}");
                assert!(found.labels.iter().all(|&label| (label as usize) < most));
                assert_eq!(found.labels[0], 0);
            }
        }
    }
}

/// Four rows of five draws, for which moves of single rows end at 2.4.
#[test]
fn a_limit_is_met_by_exchanges() {
    let labels = [0, 1, 2, 3, 0, 1, 2, 0, 0, 0, 1, 2, 0, 1, 0, 2, 0, 1, 2, 0];
    assert!((search(&labels, 4, Loss::Binder, 2).loss - 2.0).abs() < 1e-12);
}

/// A higher limit never ends worse, also with more rows than can be tried in all ways.
#[test]
fn higher_limits_never_end_worse() {
    for (loss, seed) in LOSSES.into_iter().flat_map(|loss| (0..8).map(move |seed| (loss, seed))) {
        let labels = noisy(24, 12, 0.6, seed);
        let losses: Vec<f64> = (1..=8).map(|most| search(&labels, 24, loss, most).loss).collect();
        assert!(losses.windows(2).all(|pair| pair[1] <= pair[0] + 1e-12), "{loss:?} {seed}: {losses:?}");
    }
}

/// No group lowers the loss by a move to another cluster or to one of its own, whether all were visited last or not.
#[test]
fn no_single_move_lowers_the_loss_of_an_estimate() {
    // With 250 draws a run begins with 84 of them. Of 300 rows, some that could not move after one scan can after more.
    let sizes = [(120, 40, 0.55), (120, 250, 0.55), (300, 12, 0.6)];
    for ((n, n_draws, noise), seed) in sizes.into_iter().flat_map(|size| (0..9).map(move |seed| (size, seed))) {
        let draws = LabelDraws::new(&noisy(n, n_draws, noise, seed), n).expect("draws");
        let plan = SearchPlan { runs: Some(1), max_clusters: n, seed };
        for loss in LOSSES {
            let found = estimate(&draws, loss, plan, &Cancel::default()).expect("a small table");
            let objective = ExpectedLoss::new(&draws, loss);
            let mut of_groups = vec![0; draws.n_groups()];
            draws.groups.iter().zip(&found.labels).for_each(|(&group, &label)| of_groups[group as usize] = label);
            let table = CellCounts::of(&objective, &of_groups).expect("a small table");
            let mut changes = Vec::new();
            for group in 0..draws.n_groups() {
                table.changes(group, &mut changes);
                let best = changes.iter().copied().fold(f64::INFINITY, f64::min);
                assert!(changes[table.label(group)] <= best + 1e-9 * n as f64, "{loss:?} {n} {seed} {group}");
            }
        }
    }
}

/// More runs of a seed begin with the same ones, so that they never end higher.
#[test]
fn more_runs_never_end_higher() {
    let n = 40;
    for (loss, seed) in LOSSES.into_iter().flat_map(|loss| (0..6).map(move |seed| (loss, seed))) {
        let draws = LabelDraws::new(&noisy(n, 30, 0.6, seed), n).expect("draws");
        let of = |runs| {
            let plan = SearchPlan { runs: Some(runs), max_clusters: 4, seed };
            estimate(&draws, loss, plan, &Cancel::default()).expect("a small table").loss
        };
        let losses = [1, 2, 4, 7, 16, 20].map(of);
        assert!(losses.windows(2).all(|pair| pair[1] <= pair[0]), "{loss:?} {seed}: {losses:?}");
    }
}

/// Changes that a table predicts are those of the loss counted again, and its counts stay those of its labels.
#[test]
fn predicted_changes_are_those_of_the_loss() {
    let (n, seed) = (40, 11);
    let labels = noisy(n, 25, 0.3, seed);
    let draws = LabelDraws::new(&labels, n).expect("draws");
    let mut generator = stream(seed, Purpose::Start, 0);
    for loss in LOSSES {
        let objective = ExpectedLoss::new(&draws, loss);
        let start: Vec<u32> = (0..draws.n_groups() as u32).map(|group| group % 5).collect();
        let mut table = CellCounts::of(&objective, &start).expect("a small table");
        let mut changes = Vec::new();
        let close = |one: f64, other: f64| (one - other).abs() < 1e-9 * (1.0 + one.abs());
        for _ in 0..200 {
            let group = generator.random_range(0..draws.n_groups());
            let (old, before) = (table.label(group), table.loss());
            let mut in_place = Vec::new();
            table.changes(group, &mut in_place);
            table.take(group);
            table.changes(group, &mut changes);
            assert_eq!(in_place, changes);
            let new = generator.random_range(0..changes.len());
            table.add(group, new).expect("room");
            let predicted = (changes[new] - changes[old]) / loss.unit(n as f64);
            assert!(close(table.loss() - before, predicted), "{loss:?}: {} {predicted}", table.loss() - before);
            if table.size(old) == 0 {
                table.drop_empty(old);
            }
            let of_rows: Vec<u32> = draws.groups.iter().map(|&group| table.labels()[group as usize]).collect();
            assert!(close(expected(&labels, &of_rows, loss), table.loss()));
        }
        while table.n_clusters() > 1 {
            let (from, before) = (table.n_clusters() / 2, table.loss());
            let into = from - 1;
            let predicted = table.changes_by_merges(from)[into] / loss.unit(n as f64);
            table.merge(from, into);
            assert!(close(table.loss() - before, predicted), "{loss:?}");
        }
    }
}

#[test]
fn threads_change_nothing_and_a_stop_is_seen() {
    let labels = noisy(200, 30, 0.4, 3);
    let found = [1, 3].map(|threads| with_threads(Some(threads), || search(&labels, 200, Loss::Variation, 200)));
    assert_eq!(found[0], found[1]);
    let (stop, draws) = (Cancel::default(), LabelDraws::new(&labels, 200).expect("draws"));
    stop.cancel();
    let plan = SearchPlan { runs: Some(2), max_clusters: 200, seed: 0 };
    assert_eq!(estimate(&draws, Loss::Binder, plan, &stop), Err(Error::Cancelled));
}
