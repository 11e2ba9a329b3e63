//! A plain scalar collapsed Gibbs loop for Gaussians under a Dirichlet process: what the lanes of the core are compared
//! with. One cluster after another, rank-one changes of Cholesky factors, gamma functions from a table.

#![allow(clippy::needless_range_loop, reason = "a plain loop, as one would write it first")]

use stickbreak::rng::{Choices, Generator};
use stickbreak::special::ln_gamma;

/// One cluster: rows, mean and Cholesky factor (lower, row by row) of the posterior scale.
#[derive(Clone)]
struct Cluster {
    n: usize,
    mean: Vec<f64>,
    factor: Vec<f64>,
    log_determinant: f64,
}

/// The state of one chain. The base measure has mean 0 and the identity as its scale.
pub struct PlainGibbs {
    d: usize,
    precision: f64,
    dof: f64,
    concentration: f64,
    rows: Vec<f64>,
    clusters: Vec<Cluster>,
    assignments: Vec<usize>,
    /// ln Gamma((dof + n + 1) / 2) - ln Gamma((dof + n + 1 - D) / 2), by n.
    constants: Vec<f64>,
}

impl PlainGibbs {
    /// Rows with their labels, from 0.
    pub fn new(rows: &[f64], d: usize, labels: &[u32], precision: f64, dof: f64, concentration: f64) -> Self {
        let half = |n: usize| 0.5 * (dof + n as f64 + 1.0);
        let constant = |n: usize| ln_gamma(half(n)) - ln_gamma(half(n) - 0.5 * d as f64);
        let mut own = Self {
            d,
            precision,
            dof,
            concentration,
            rows: rows.to_vec(),
            clusters: Vec::new(),
            assignments: labels.iter().map(|&label| label as usize).collect(),
            constants: (0..=labels.len()).map(constant).collect(),
        };
        let n_clusters = own.assignments.iter().max().map_or(0, |most| most + 1);
        own.clusters = vec![own.empty(); n_clusters];
        for row in 0..labels.len() {
            let mut cluster = own.clusters[own.assignments[row]].clone();
            own.change(&mut cluster, row, 1.0);
            own.clusters[own.assignments[row]] = cluster;
        }
        own
    }

    /// Number of clusters.
    pub fn n_clusters(&self) -> usize {
        self.clusters.len()
    }

    fn empty(&self) -> Cluster {
        let factor = (0..self.d * self.d).map(|at| f64::from(u8::from(at % (self.d + 1) == 0))).collect();
        Cluster { n: 0, mean: vec![0.0; self.d], factor, log_determinant: 0.0 }
    }

    /// Adds a row to a cluster, or removes it.
    fn change(&self, cluster: &mut Cluster, row: usize, sign: f64) {
        let (d, kappa) = (self.d, self.precision + cluster.n as f64);
        let root = (kappa / (kappa + sign)).sqrt();
        let mut w: Vec<f64> = (0..d).map(|j| self.rows[row * d + j] - cluster.mean[j]).collect();
        for (m, w) in cluster.mean.iter_mut().zip(&mut w) {
            *m += sign * *w / (kappa + sign);
            *w *= root;
        }
        cluster.log_determinant = 0.0;
        for j in 0..d {
            let pivot = cluster.factor[j * d + j];
            let next = (pivot * pivot + sign * w[j] * w[j]).sqrt();
            let (c, s) = (next / pivot, w[j] / pivot);
            cluster.factor[j * d + j] = next;
            cluster.log_determinant += 2.0 * next.ln();
            for i in j + 1..d {
                let own = &mut cluster.factor[i * d + j];
                *own = (*own + sign * s * w[i]) / c;
                w[i] = c * w[i] - s * *own;
            }
        }
        cluster.n = if sign > 0.0 { cluster.n + 1 } else { cluster.n - 1 };
    }

    fn log_predictive(&self, cluster: &Cluster, row: usize) -> f64 {
        let (d, kappa) = (self.d, self.precision + cluster.n as f64);
        let mut y = [0.0; 64];
        let mut square = 0.0;
        for i in 0..d {
            let mut value = self.rows[row * d + i] - cluster.mean[i];
            for j in 0..i {
                value -= cluster.factor[i * d + j] * y[j];
            }
            y[i] = value / cluster.factor[i * d + i];
            square += y[i] * y[i];
        }
        let shrink = kappa / (kappa + 1.0);
        self.constants[cluster.n] + 0.5 * d as f64 * (shrink / std::f64::consts::PI).ln()
            - 0.5 * cluster.log_determinant
            - 0.5 * (self.dof + cluster.n as f64 + 1.0) * (shrink * square).ln_1p()
    }

    /// One sweep over all rows.
    pub fn sweep(&mut self, generator: &mut Generator) {
        for row in 0..self.assignments.len() {
            let own = self.assignments[row];
            let empty = self.empty();
            let mut cluster = std::mem::replace(&mut self.clusters[own], empty);
            self.change(&mut cluster, row, -1.0);
            self.clusters[own] = cluster;
            if self.clusters[own].n == 0 {
                self.clusters.swap_remove(own);
                let last = self.clusters.len();
                self.assignments.iter_mut().filter(|other| **other == last).for_each(|other| *other = own);
            }
            let mut weights: Vec<f64> = self
                .clusters
                .iter()
                .map(|cluster| (cluster.n as f64).ln() + self.log_predictive(cluster, row))
                .collect();
            weights.push(self.concentration.ln() + self.log_predictive(&self.empty(), row));
            let most = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            for weight in &mut weights {
                *weight = (*weight - most).exp();
            }
            let chosen = generator.choose(&weights);
            if chosen == self.clusters.len() {
                self.clusters.push(self.empty());
            }
            let mut cluster = self.clusters[chosen].clone();
            self.change(&mut cluster, row, 1.0);
            self.clusters[chosen] = cluster;
            self.assignments[row] = chosen;
        }
    }
}
