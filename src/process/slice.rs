//! Univariate slice sampling (Neal 2003).

use crate::rng::Draws;

/// A slice-sampling step from `current` that leaves the density exp(`log_density`) invariant. The density must be
/// unimodal.
///
/// An interval of `width` around `current` is doubled until both ends are below the slice. It then shrinks onto a point
/// of the slice. Neither loop has an iteration limit, because stopping early would change the distribution. Doubling
/// needs no acceptance test here: with one mode, an interval whose ends are both below the slice contains all of it, so
/// every point of the slice leads to that interval.
pub(super) fn slice(log_density: impl Fn(f64) -> f64, current: f64, width: f64, draws: &mut dyn Draws) -> f64 {
    let level = log_density(current) + draws.uniform().ln();
    debug_assert!(level.is_finite(), "a slice starts where the density is positive");
    let mut low = current - width * draws.uniform();
    let mut high = low + width;
    while log_density(low) > level || log_density(high) > level {
        let step = high - low;
        if draws.choose(&[1.0, 1.0]) == 0 { low -= step } else { high += step }
    }
    loop {
        let proposed = low + (high - low) * draws.uniform();
        if log_density(proposed) >= level || proposed == current {
            return proposed;
        }
        if proposed < current { low = proposed } else { high = proposed }
    }
}

/// As [`slice`], for a density of any shape on a bounded interval. Sampling starts with the whole interval, which
/// shrinks onto a point of the slice.
pub(crate) fn slice_between(
    log_density: impl Fn(f64) -> f64,
    current: f64,
    (mut low, mut high): (f64, f64),
    draws: &mut dyn Draws,
) -> f64 {
    let level = log_density(current) + draws.uniform().ln();
    debug_assert!(level.is_finite(), "a slice starts where the density is positive");
    loop {
        let proposed = low + (high - low) * draws.uniform();
        if log_density(proposed) >= level || proposed == current {
            return proposed;
        }
        if proposed < current { low = proposed } else { high = proposed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, stream};

    /// A step from an exact draw of a bimodal density, x^2 on (-1, 1), of mean 0 and variance 3/5. A check of 20 000
    /// draws fails once in 1.7 million streams.
    #[test]
    fn a_draw_of_two_modes_is_exact() {
        let mut generator = stream(4, Purpose::Draws, 1);
        let drawn: Vec<f64> = (0..20_000)
            .map(|_| {
                let start = (2.0 * generator.uniform() - 1.0).cbrt();
                slice_between(|x: f64| 2.0 * x.abs().ln(), start, (-1.0, 1.0), &mut generator)
            })
            .collect();
        let (mean, square) = (drawn.iter().sum::<f64>() / 2e4, drawn.iter().map(|x| x * x).sum::<f64>() / 2e4);
        assert!(mean.abs() < 5.0 * (0.6_f64 / 2e4).sqrt(), "{mean}");
        // E x^4 = 3/7.
        assert!((square - 0.6).abs() < 5.0 * ((3.0 / 7.0 - 0.36_f64) / 2e4).sqrt(), "{square}");
    }

    /// A step from an exact draw gives an exact draw: 20 000 values of the logarithm of an exponential variable, whose
    /// mean is -0.5772 (Euler) and whose variance is pi^2 / 6. Each check fails once in 1.7 million streams.
    #[test]
    fn a_draw_from_an_exact_one_is_exact() {
        let mut generator = stream(4, Purpose::Draws, 0);
        let n = 20_000;
        let drawn: Vec<f64> = (0..n)
            .map(|_| {
                let start = generator.log_gamma(1.0);
                slice(|x| x - x.exp(), start, 1.0, &mut generator)
            })
            .collect();
        let mean = drawn.iter().sum::<f64>() / f64::from(n);
        let variance = std::f64::consts::PI.powi(2) / 6.0;
        assert!((mean + 0.577_215_664_901_532_9).abs() < 5.0 * (variance / f64::from(n)).sqrt(), "{mean}");
        // The fourth central moment of the Gumbel distribution is 5.4 times its squared variance.
        let found = drawn.iter().map(|x| (x + 0.577_215_664_901_532_9).powi(2)).sum::<f64>() / f64::from(n);
        assert!((found - variance).abs() < 5.0 * variance * (4.4 / f64::from(n)).sqrt(), "{found}");
    }
}
