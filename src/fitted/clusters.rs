//! Clusters made of several components, joined where they overlap (mathematics 6.3; after Baudry et al. 2010).

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::fitted::Assigned;
use crate::local_step::pair_gap;
use crate::parallel::Cancel;
use crate::special::x_ln_x;

/// Minimum number of rows of a component that belongs to a cluster.
const OCCUPIED: f64 = 0.5;
// When to stop joining; docs/decisions/clusters.md has the measurements. Joining stops where the overlap falls by the
// factor FALL from at least FALLS_FROM. Without such a fall, it stops when the overlap is below LEAST_OVERLAP.
const FALL: f64 = 10.0;
const FALLS_FROM: f64 = 0.01;
const LEAST_OVERLAP: f64 = 0.15;

/// Two clusters that are joined. A cluster is named by its lowest component.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Join {
    /// Names of the two clusters, the lower first. The joined cluster takes the lower name.
    pub clusters: (usize, usize),
    /// The entropy that the join removes, nats.
    pub gap: f64,
    /// `gap` divided by its value if no row distinguished the two clusters.
    pub overlap: f64,
}

/// The sequence of joins down to a single cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Joins {
    /// Entropy of the responsibilities before the first join, nats.
    pub entropy: f64,
    /// The joins, in order.
    pub joins: Vec<Join>,
    /// Number of rows of each component, (K,).
    counts: Vec<f64>,
    /// Whether each component belongs to a cluster, (K,).
    occupied: Vec<bool>,
}

impl Joins {
    /// Joins components by the responsibilities of rows with these masses, the pair with the largest overlap first.
    /// Ties go to the first pair.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn new(found: &Assigned, masses: &[f64], n_components: usize, cancel: &Cancel) -> Result<Self> {
        let mut joining = Joining::new(found, masses, n_components);
        let (entropy, counts, occupied) = (joining.entropy, joining.sizes.clone(), joining.is_cluster.clone());
        let mut joins = Vec::new();
        while let Some(join) = joining.join() {
            cancel.check()?;
            joins.push(join);
        }
        Ok(Self { entropy, joins, counts, occupied })
    }

    /// Returns the cluster of each component for `n` clusters, numbered from 0 by decreasing size, or -1 for components
    /// without rows. Without `n`, the overlaps determine the number of clusters (`number_of_joins`).
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for more clusters than components.
    pub fn groups(&self, n: Option<usize>) -> Result<Vec<i64>> {
        let most = self.joins.len() + 1;
        let n_made = match n {
            Some(n) if n == 0 || n > most => {
                let allowed = format!("from 1 to {most}, the number of components with rows");
                return Err(Error::invalid("n_clusters", n, allowed));
            }
            Some(n) => most - n,
            None => number_of_joins(&self.joins),
        };
        let mut names: Vec<usize> = (0..self.counts.len()).collect();
        for join in &self.joins[..n_made] {
            names.iter_mut().filter(|name| **name == join.clusters.1).for_each(|name| *name = join.clusters.0);
        }
        let mut sizes = BTreeMap::new();
        for (k, &name) in names.iter().enumerate().filter(|(k, _)| self.occupied[*k]) {
            *sizes.entry(name).or_insert(0.0) += self.counts[k];
        }
        let mut order: Vec<(usize, f64)> = sizes.into_iter().collect();
        order.sort_by(|a, b| b.1.total_cmp(&a.1));
        let number = |name: usize| (0..).zip(&order).find(|(_, of)| of.0 == name).map_or(-1, |(number, _)| number);
        Ok(names
            .iter()
            .zip(&self.occupied)
            .map(|(&name, &occupied)| if occupied { number(name) } else { -1 })
            .collect())
    }
}

/// Number of joins to make: up to the largest fall of the overlap; without a fall, as long as the overlap is large
/// enough.
fn number_of_joins(joins: &[Join]) -> usize {
    let mut fall = None;
    for (made, pair) in (1..).zip(joins.windows(2)) {
        let (before, after) = (pair[0].overlap, pair[1].overlap);
        let ratio = before / after.max(1e-9);
        if before >= FALLS_FROM && before >= FALL * after && fall.is_none_or(|(largest, _)| ratio > largest) {
            fall = Some((ratio, made));
        }
    }
    let enough = || joins.iter().take_while(|join| join.overlap >= LEAST_OVERLAP).count();
    fall.map_or_else(enough, |(_, made)| made)
}

/// State of the joining: rows and clusters.
struct Joining<'a> {
    masses: &'a [f64],
    /// The clusters of each row and their positive responsibilities.
    rows: Vec<Vec<(usize, f64)>>,
    /// The rows with a responsibility for each cluster.
    members: Vec<Vec<usize>>,
    sizes: Vec<f64>,
    is_cluster: Vec<bool>,
    /// Pair gaps of each cluster with the clusters that share rows with it.
    gaps: Vec<BTreeMap<usize, f64>>,
    entropy: f64,
}

impl<'a> Joining<'a> {
    fn new(found: &Assigned, masses: &'a [f64], n_components: usize) -> Self {
        let mut members = vec![Vec::new(); n_components];
        let mut sizes = vec![0.0; n_components];
        let mut entropy = 0.0;
        let slots = found.components.chunks(found.width).zip(found.values.chunks(found.width));
        let rows: Vec<Vec<(usize, f64)>> = slots
            .map(|(components, values)| {
                components.iter().map(|&k| k as usize).zip(values.iter().copied()).filter(|pair| pair.1 > 0.0).collect()
            })
            .collect();
        for (row, pairs) in rows.iter().enumerate() {
            for &(k, value) in pairs {
                members[k].push(row);
                sizes[k] += masses[row] * value;
                entropy -= masses[row] * x_ln_x(value);
            }
        }
        let least = sizes.iter().copied().fold(0.0, f64::max).min(OCCUPIED);
        let is_cluster: Vec<bool> = sizes.iter().map(|&size| size > 0.0 && size >= least).collect();
        let gaps = vec![BTreeMap::new(); n_components];
        let mut joining = Self { masses, rows, members, sizes, is_cluster, gaps, entropy };
        for name in 0..n_components {
            joining.measure(name);
        }
        joining
    }

    /// Computes the gaps between one cluster and all others (mathematics 4.4).
    fn measure(&mut self, name: usize) {
        let mut gaps = BTreeMap::new();
        if self.is_cluster[name] {
            for &row in &self.members[name] {
                let pairs = &self.rows[row];
                let responsibility = pairs.iter().find(|pair| pair.0 == name).map_or(0.0, |pair| pair.1);
                for &(other, value) in pairs.iter().filter(|pair| pair.0 != name && self.is_cluster[pair.0]) {
                    *gaps.entry(other).or_insert(0.0) += self.masses[row] * pair_gap(responsibility, value);
                }
            }
        }
        for (&other, &gap) in &gaps {
            self.gaps[other].insert(name, gap);
        }
        self.gaps[name] = gaps;
    }

    /// Joins the two clusters with the largest overlap, if at least two are left.
    fn join(&mut self) -> Option<Join> {
        let join = self.best_pair()?;
        let (one, other) = join.clusters;
        for row in std::mem::take(&mut self.members[other]) {
            let pairs = &mut self.rows[row];
            let Some(index) = pairs.iter().position(|pair| pair.0 == other) else { continue };
            let (_, value) = pairs.swap_remove(index);
            if let Some(pair) = pairs.iter_mut().find(|pair| pair.0 == one) {
                pair.1 += value;
            } else {
                pairs.push((one, value));
                self.members[one].push(row);
            }
        }
        self.sizes[one] += self.sizes[other];
        self.is_cluster[other] = false;
        for gaps in &mut self.gaps {
            gaps.remove(&other);
        }
        self.gaps[other].clear();
        self.measure(one);
        Some(join)
    }

    /// The pair with the largest overlap, or the first two clusters if none share a row.
    fn best_pair(&self) -> Option<Join> {
        let mut alive = (0..self.sizes.len()).filter(|&k| self.is_cluster[k]);
        let mut best = Join { clusters: (alive.next()?, alive.next()?), gap: 0.0, overlap: 0.0 };
        for (one, gaps) in self.gaps.iter().enumerate() {
            for (&other, &gap) in gaps.range(one + 1..) {
                let (a, b) = (self.sizes[one], self.sizes[other]);
                let overlap = gap / (a * (b / a).ln_1p() + b * (a / b).ln_1p());
                if overlap > best.overlap {
                    best = Join { clusters: (one, other), gap, overlap };
                }
            }
        }
        Some(best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_stop_at_a_fall_or_at_little_overlap() {
        let n = |overlaps: &[f64]| {
            let join = |&overlap: &f64| Join { clusters: (0, 1), gap: overlap, overlap };
            number_of_joins(&overlaps.iter().map(join).collect::<Vec<_>>())
        };
        assert_eq!((n(&[]), n(&[0.14]), n(&[0.3, 0.2, 0.14, 0.1]), n(&[0.3, 0.2])), (0, 0, 2, 2));
        assert_eq!(n(&[0.5, 0.04, 0.02, 0.0]), 3, "of two falls the larger one");
        assert_eq!(n(&[0.12, 0.1, 0.002, 0.0]), 2);
        assert_eq!(n(&[0.009, 0.0]), 0, "a fall from almost nothing is none");
    }
}
