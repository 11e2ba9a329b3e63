//! The gamma distribution of shape a and rate b, which several families have as base measure of a precision or a rate.

use rand_distr::Gamma;

use crate::error::{Error, Result};
use crate::special::{digamma, ln_gamma, ln_gamma_difference, log_sum_exp};

/// KL(Gamma(a0 + da, b0 + db) || Gamma(a0, b0)), mathematics 1c; in terms of what the data add, because beside a large
/// prior the sums have lost it.
pub fn divergence((a0, b0): (f64, f64), (da, db): (f64, f64)) -> f64 {
    let (a, b) = (a0 + da, b0 + db);
    da * digamma(a) - ln_gamma_difference(a0, da) + a0 * (db / b0).ln_1p() - a * db / b
}

/// log-normaliser `ln Gamma(a) - a ln b` of the posterior less that of the prior.
pub fn cumulant_above((a0, b0): (f64, f64), (da, db): (f64, f64)) -> f64 {
    ln_gamma_difference(a0, da) - (a0 + da) * (db / b0).ln_1p() - da * b0.ln()
}

/// ln p(x).
pub fn log_density(x: f64, a: f64, b: f64) -> f64 {
    a * b.ln() - ln_gamma(a) + (a - 1.0) * x.ln() - b * x
}

/// The distribution, to draw from.
pub fn distribution(a: f64, b: f64) -> Result<Gamma<f64>> {
    Gamma::new(a, b.recip())
        .map_err(|_| Error::numerical(None, format!("a gamma distribution of shape {a:e} and rate {b:e}")))
}

/// Log weights and nodes of an integral over Gamma(shape, rate): the trapezoidal rule in the logarithm of the variable,
/// from where the density has fallen by 45 nats on the left to where it has on the right.
pub fn nodes(shape: f64, rate: f64) -> Vec<(f64, f64)> {
    const NODES: usize = 257;
    // With t = ln(lambda rate / shape) the log density is shape (t - exp t + 1), 0 at its mode, t = 0.
    let fall = |t: f64| shape * (t.exp() - t - 1.0);
    let edge = |direction: f64| {
        let (mut near, mut far) = (0.0, direction);
        while fall(far) < 45.0 {
            far *= 2.0;
        }
        for _ in 0..60 {
            let middle = 0.5 * (near + far);
            if fall(middle) < 45.0 { near = middle } else { far = middle }
        }
        far
    };
    let (left, right) = (edge(-1.0), edge(1.0));
    let nodes = (0..NODES).map(|i| left + (right - left) * i as f64 / (NODES - 1) as f64);
    let raw: Vec<(f64, f64)> = nodes.map(|t| (-fall(t), shape / rate * t.exp())).collect();
    let total = log_sum_exp(&raw.iter().map(|(log_weight, _)| *log_weight).collect::<Vec<_>>());
    raw.into_iter().map(|(log_weight, lambda)| (log_weight - total, lambda)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Integrals over a fine grid of logarithms.
    #[test]
    fn the_divergence_is_an_integral() {
        let (a, b, a0, b0) = (2.3, 3.7, 1.1, 3.0);
        let step = 1e-3;
        let mut total = 0.0;
        let mut mass = 0.0;
        for i in -20_000..6_000 {
            let x = (f64::from(i) * step).exp();
            let p = log_density(x, a, b).exp() * x * step;
            mass += p;
            total += p * (log_density(x, a, b) - log_density(x, a0, b0));
        }
        assert!((mass - 1.0).abs() < 1e-10, "{mass}");
        assert!((total - divergence((a0, b0), (a - a0, b - b0))).abs() < 1e-9);
        let c = |a: f64, b: f64| ln_gamma(a) - a * b.ln();
        assert!((cumulant_above((a0, b0), (a - a0, b - b0)) - c(a, b) + c(a0, b0)).abs() < 1e-13);
    }

    /// E[1 / (1 + lambda)] and the mean by a fine sum.
    #[test]
    fn the_nodes_integrate() {
        for (shape, rate) in [(0.6, 2.0), (1.5, 0.3), (40.0, 7.0), (1e5, 1e5)] {
            let nodes = nodes(shape, rate);
            let mean: f64 = nodes.iter().map(|(w, lambda)| w.exp() * lambda).sum();
            assert!((mean / (shape / rate) - 1.0).abs() < 1e-8, "{shape} {mean}");
        }
    }
}
