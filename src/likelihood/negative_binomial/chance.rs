//! The distribution of one column of overdispersed counts (mathematics 1i).

use crate::laws::ColumnLaw;
use crate::likelihood::counts::LEAST;
use crate::scoring::Column;
use crate::special::{digamma_difference, ln_gamma_difference};

/// Beta(a, b), the distribution of the probability p of one column with this dispersion.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Chance {
    pub(super) a: f64,
    pub(super) b: f64,
    pub(super) dispersion: f64,
}

impl Chance {
    /// The expected count per exposure at the mean of p, which is also the centre of the rows' divergences.
    pub(super) fn centre(self) -> f64 {
        self.dispersion * self.a / self.b
    }

    /// The expected count per exposure, or the one at the mean of p if it is infinite.
    pub(super) fn mean(self) -> f64 {
        if self.b > 1.0 { self.dispersion * self.a / (self.b - 1.0) } else { self.centre() }
    }

    /// The posterior after rows of `n` exposures with the sum `s`.
    pub(super) fn after(self, n: f64, s: f64) -> Self {
        Self { a: self.a + s, b: self.b + self.dispersion * n, ..self }
    }

    /// `ln B(a + s, b + f) - ln B(a, b)` with f successes of the other kind, free of cancellation where f and b are
    /// large.
    pub(super) fn gain(self, s: f64, f: f64) -> f64 {
        ln_gamma_difference(self.a, s) - ln_gamma_difference(self.b + f, self.a + s)
            + ln_gamma_difference(self.b, self.a)
    }

    /// KL(posterior || self) after rows of `n` exposures with the sum `s`.
    pub(super) fn divergence_to(self, n: f64, s: f64) -> f64 {
        let (Self { a, b, .. }, f) = (self.after(n, s), self.dispersion * n);
        -s * digamma_difference(a, b) - f * digamma_difference(b, a) - self.gain(s, f)
    }

    /// `E [x ln p + dispersion ln(1 - p)]`, of which the second term is multiplied by exposures.
    pub(super) fn expected(self) -> Column {
        let Self { a, b, dispersion } = self;
        Column::line(-digamma_difference(a, b), -dispersion * digamma_difference(b, a))
    }

    /// `x ln p + dispersion ln(1 - p)` at the expected count `mean`.
    pub(super) fn column(self, mean: f64) -> Column {
        let mean = mean.max(LEAST);
        Column::line(-(self.dispersion / mean).ln_1p(), -self.dispersion * (mean / self.dispersion).ln_1p())
    }

    /// Negative divergence of a row's smoothed mean from the centre, without the term that depends on the row alone;
    /// `rate` is that of the prior, `shape` its shape, `usual` the exposure of an average row.
    pub(super) fn divergence(self, shape: f64, rate: f64, usual: f64) -> Column {
        let Column { slope, constant, .. } = self.column(self.centre());
        let total = rate + usual;
        Column::line(usual * slope / total, shape / total * slope + constant)
    }

    /// The term that depends on the row alone, per exposure; `self` is the prior, of this rate, and `x` the count per
    /// exposure.
    pub(super) fn smoothed_part(self, rate: f64, x: f64, usual: f64) -> f64 {
        let (mean, dispersion) = (((self.a + usual * x) / (rate + usual)).max(LEAST), self.dispersion);
        mean * ((mean + dispersion).ln() - mean.ln()) + dispersion * (mean / dispersion).ln_1p()
    }

    /// ln p(x | lambda) without its base measure.
    pub(super) fn log_predictive(self, x: f64, exposure: f64) -> f64 {
        self.gain(x, self.dispersion * exposure)
    }

    pub(super) fn law(self) -> ColumnLaw {
        ColumnLaw::BetaNegativeBinomial { a: self.a, b: self.b, dispersion: self.dispersion }
    }
}
