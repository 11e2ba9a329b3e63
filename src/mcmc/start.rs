//! Initial partitions of chains.

use std::collections::BTreeMap;

use rand::RngExt;

use crate::error::{Error, Result};
use crate::mcmc::Target;
use crate::mcmc::clusters::n_distinct;
use crate::mcmc::trees::{Arena, agglomerate, first_process, incremental, on_top_of_nearest};
use crate::parallel::Cancel;
use crate::process::ProcessState;
use crate::rng::{Purpose, key, permutation, stream};

/// How chains start.
#[derive(Debug, Clone, Copy)]
pub enum Start<'a> {
    /// All rows in one cluster.
    Single,
    /// Each row in a cluster of its own.
    Singletons,
    /// The trees of incremental hierarchical clustering, in random order.
    Incremental,
    /// One-on-top trees, in random order: each row joins the nearest tree if a common cluster is more probable than
    /// two.
    OnTop,
    /// A label of this many for each row, drawn with equal probability.
    Random(u32),
    /// The given labels, one per row.
    Labels(&'a [u32]),
}

/// The labels with which chains start, one per row. Chains take the starts in turn.
#[derive(Debug, Clone)]
pub struct StartLabels(Vec<Vec<u32>>);

impl StartLabels {
    /// The labels of these starts. Those that are drawn differ by their place.
    ///
    /// # Errors
    /// As `labels`.
    pub fn new(starts: &[Start<'_>], seed: u64, labels: impl Fn(Start<'_>, u64) -> Result<Vec<u32>>) -> Result<Self> {
        let of_place = |(place, start): (u64, &Start<'_>)| {
            labels(*start, if place == 0 { seed } else { key(seed, [Purpose::Start as u64, place]) })
        };
        (0..).zip(starts).map(of_place).collect::<Result<_>>().map(Self)
    }

    /// The labels with which a chain starts.
    pub fn of(&self, chain: usize) -> &[u32] {
        &self.0[chain % self.0.len()]
    }

    /// The largest number of clusters of a start.
    pub fn most_clusters(&self) -> usize {
        self.0.iter().map(|labels| n_distinct(labels)).max().unwrap_or(0)
    }

    /// All labels, start by start.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().flatten().copied()
    }
}

impl From<Vec<u32>> for StartLabels {
    fn from(labels: Vec<u32>) -> Self {
        Self(vec![labels])
    }
}

/// Numbers clusters by falling size; the rows of all but the largest `most` - 1 share the last one.
pub fn at_most(labels: &[u32], most: usize) -> Vec<u32> {
    let mut sizes: BTreeMap<u32, usize> = BTreeMap::new();
    for &label in labels {
        *sizes.entry(label).or_default() += 1;
    }
    let mut order: Vec<(u32, usize)> = sizes.into_iter().collect();
    order.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
    let last = most.max(1) - 1;
    let places: BTreeMap<u32, u32> =
        order.iter().enumerate().map(|(place, (label, _))| (*label, place.min(last) as u32)).collect();
    labels.iter().map(|label| places[label]).collect()
}

impl Start<'_> {
    /// Returns the labels of `n` rows for a start that does not depend on their values.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a wrong number of labels, and for a start by trees.
    pub fn of_rows(self, n: usize, seed: u64) -> Result<Vec<u32>> {
        match self {
            Self::Random(most) => {
                let mut generator = stream(seed, Purpose::Start, 0);
                Ok((0..n).map(|_| generator.random_range(0..most.max(1))).collect())
            }
            Self::Single => Ok(vec![0; n]),
            Self::Singletons => Ok((0..n as u32).collect()),
            Self::Labels(labels) if labels.len() == n => Ok(labels.to_vec()),
            Self::Labels(labels) => {
                Err(Error::invalid("init", format!("{} labels", labels.len()), format!("{n}, the number of rows")))
            }
            Self::Incremental | Self::OnTop => Err(Error::invalid("init", "trees", "a start without them")),
        }
    }

    /// Returns the labels of all rows.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a wrong number of labels, or trees that do not fit in memory; as
    /// [`crate::likelihood::Conjugate::log_marginal`]; [`Error::Cancelled`].
    pub fn labels(self, target: &Target, seed: u64, cancel: &Cancel) -> Result<Vec<u32>> {
        let n = target.n_rows();
        match self {
            Self::Single | Self::Singletons | Self::Random(_) | Self::Labels(_) => self.of_rows(n, seed),
            Self::Incremental | Self::OnTop => {
                let mut generator = stream(seed, Purpose::Trees, 1);
                let process = first_process(target, target.process.augments(), &mut generator)?;
                let order = permutation(n as u32, &mut generator);
                let allowed = "\"single\" or labels where trees do not fit in memory";
                let mut arena = Arena::with_room(target, &process, "init", allowed)?;
                let mut forest = Vec::new();
                if matches!(self, Self::Incremental) {
                    incremental(&mut arena, &mut forest, &order, cancel)?;
                } else {
                    forest = on_top_of_nearest(&mut arena, &order, cancel)?;
                }
                let roots = possible(&mut arena, forest, &process, cancel)?;
                let mut labels = vec![0; n];
                for (label, root) in (0..).zip(roots) {
                    arena.rows_below(root).into_iter().for_each(|row| labels[row as usize] = label);
                }
                Ok(labels)
            }
        }
    }
}

/// The trees of a forest if the process allows that many clusters. Otherwise joins them all, and then splits the joins
/// with the largest dissimilarity as long as the process allows it.
fn possible(arena: &mut Arena<'_>, forest: Vec<u32>, process: &ProcessState, cancel: &Cancel) -> Result<Vec<u32>> {
    let target = arena.target();
    let sizes = |arena: &Arena<'_>, roots: &[u32]| -> Vec<usize> {
        roots.iter().map(|&root| arena.node(root).size as usize).collect()
    };
    let allowed =
        |arena: &Arena<'_>, roots: &[u32]| target.process.log_probability(&sizes(arena, roots), process).is_finite();
    if allowed(arena, &forest) {
        return Ok(forest);
    }
    let mut roots = vec![agglomerate(arena, forest, cancel)?];
    loop {
        let log_d = |tree: &usize| arena.node(roots[*tree]).log_dissimilarity;
        let worst = (0..roots.len()).max_by(|a, b| log_d(a).total_cmp(&log_d(b))).unwrap_or(0);
        let Some(children) = arena.children(roots[worst]) else { return Ok(roots) };
        let mut opened = roots.clone();
        opened.splice(worst..=worst, children);
        if !allowed(arena, &opened) {
            return Ok(roots);
        }
        roots = opened;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::DenseRows;
    use crate::mcmc::tests::cases::{finite, named, target};
    use crate::parameters::{Value, table, vector};

    /// The largest clusters are kept whole, and all others become one.
    #[test]
    fn the_largest_clusters_are_kept() {
        let labels = [7, 5, 2, 5, 9, 5, 9, 3, 9, 5];
        for most in [1, 2, 3, 5, 6] {
            let found = at_most(&labels, most);
            for (one, a) in labels.iter().zip(&found) {
                for (other, b) in labels.iter().zip(&found) {
                    // 5 has four rows, 9 three, and the others have one each.
                    let rank = |label: u32| [5, 9].iter().position(|&large| large == label).unwrap_or(2);
                    let both_small = most <= 3 && rank(*one).min(rank(*other)) >= most - 1;
                    assert_eq!(a == b, one == other || both_small, "{most}: {one} {other}");
                }
            }
        }
    }

    /// Where there are more trees than clusters may be, the least alike parts of all rows are kept apart: three groups
    /// far from each other, of which one is a pair of groups.
    #[test]
    fn at_most_as_many_clusters_as_the_process_has() {
        let centres = [[-20.0, 0.0], [20.0, 0.0], [0.0, 30.0], [5.0, 30.0]];
        let noise = |row: i32, step: i32| f64::from(row * step % 11 - 5) / 5.0;
        let gaussian = named(
            "Gaussian",
            [
                ("mean", vector(vec![0.0; 2])),
                ("mean_precision", Value::Number(1e-3)),
                ("dof", Value::Number(50.0)),
                ("scale", table(2, vec![20.0, 0.0, 0.0, 20.0])),
            ],
        );
        let values = (0..40).flat_map(|row| {
            let [x, y] = centres[row as usize % 4];
            [x + noise(row, 7), y + noise(row, 5)]
        });
        let values: Vec<f64> = values.collect();
        let rows = DenseRows::new(&values, 2);
        for (n_components, start) in [(3, Start::Incremental), (3, Start::OnTop), (2, Start::Incremental)] {
            let labels =
                start.labels(&target(gaussian.clone(), finite(n_components, 1.0), &rows), 3, &Cancel::default());
            let labels = labels.expect("a partition");
            let pair = |row: usize| if row % 4 == 3 { 2 } else { row % 4 };
            for (row, label) in labels.iter().enumerate() {
                let same: Vec<usize> = (0..40).filter(|&other| labels[other] == *label).collect();
                let together: Vec<usize> = (0..40).filter(|&other| pair(other) == pair(row)).collect();
                assert!(together.iter().all(|other| same.contains(other)), "{n_components} {start:?} {labels:?}");
            }
            let distinct: std::collections::BTreeSet<_> = labels.iter().collect();
            assert_eq!(distinct.len(), n_components as usize);
        }
    }
}
