//! The gamma distribution of shape a and rate b, the base measure of a precision or a rate in several families.

use rand_distr::Gamma;

use crate::error::{Error, Result};
use crate::special::{digamma, ln_gamma, ln_gamma_difference};

/// KL(Gamma(a0 + da, b0 + db) || Gamma(a0, b0)), mathematics 1c. Takes the increments, because float64 loses them in
/// the sums if the prior is large.
pub fn divergence((a0, b0): (f64, f64), (da, db): (f64, f64)) -> f64 {
    let (a, b) = (a0 + da, b0 + db);
    da * digamma(a) - ln_gamma_difference(a0, da) + a0 * (db / b0).ln_1p() - a * db / b
}

/// Log-normaliser `ln Gamma(a) - a ln b` of the posterior minus that of the prior.
pub fn cumulant_above((a0, b0): (f64, f64), (da, db): (f64, f64)) -> f64 {
    ln_gamma_difference(a0, da) - (a0 + da) * (db / b0).ln_1p() - da * b0.ln()
}

/// ln p(x).
pub fn log_density(x: f64, a: f64, b: f64) -> f64 {
    a * b.ln() - ln_gamma(a) + (a - 1.0) * x.ln() - b * x
}

/// The distribution as a sampler.
pub fn distribution(a: f64, b: f64) -> Result<Gamma<f64>> {
    Gamma::new(a, b.recip())
        .map_err(|_| Error::numerical(None, format!("a gamma distribution of shape {a:e} and rate {b:e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with numerical integration over a fine grid of logarithms.
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
}
