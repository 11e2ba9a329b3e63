//! The distribution of a single column.

use rand::RngExt;
use rand_distr::{Distribution, Gamma, Poisson, StandardNormal};

use crate::error::{Error, Result};
use crate::laws::elliptical::{drawn_scale, log_constant, log_kernel, spread};
use crate::rng::{Chances, Generator};
use crate::special::{ln_factorial, ln_gamma_difference};

/// The distribution of one column that is independent of the others.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnLaw {
    /// A Student t distribution; normal if the degrees of freedom are infinite.
    Student {
        /// Location.
        place: f64,
        /// Scale, in units of the column.
        scale: f64,
        /// Degrees of freedom.
        dof: f64,
    },
    /// A uniform distribution.
    Uniform {
        /// Its lower end.
        least: f64,
        /// Its upper end.
        most: f64,
    },
    /// The probabilities of 0, 1, 2, ...
    Table(Vec<f64>),
    /// A Poisson distribution with this rate.
    Poisson(f64),
    /// A Poisson distribution with a gamma-distributed rate: a negative binomial.
    NegativeBinomial {
        /// Shape of the gamma distribution.
        shape: f64,
        /// Rate of the gamma distribution.
        rate: f64,
    },
    /// A negative binomial distribution with this dispersion, and a probability with distribution Beta(a, b).
    BetaNegativeBinomial {
        /// First parameter of the distribution of the probability.
        a: f64,
        /// Second parameter.
        b: f64,
        /// Dispersion of the negative binomial distribution.
        dispersion: f64,
    },
}

/// Whether x is a nonnegative integer.
fn is_count(x: f64) -> bool {
    x >= 0.0 && x.is_finite() && x.fract() == 0.0
}

/// Draws a Poisson count with this rate; 0 if the rate is zero.
pub fn count(rate: f64, generator: &mut Generator) -> f64 {
    Poisson::new(rate).map_or(0.0, |poisson| poisson.sample(generator))
}

/// Draws a Poisson count whose rate was drawn, and may be larger than all counts.
pub fn mixed_count(rate: f64, generator: &mut Generator) -> f64 {
    count(rate.min(LARGEST), generator)
}

/// Rates beyond draw this one: float64 does not represent every larger count.
const LARGEST: f64 = 9e15;

impl ColumnLaw {
    /// ln p(x), nats; minus infinity outside the support.
    pub fn log_density(&self, x: f64) -> f64 {
        match self {
            Self::Student { place, scale, dof } => {
                log_constant(1, *dof, 2.0 * scale.ln()) + log_kernel(1, *dof, ((x - place) / scale).powi(2))
            }
            Self::Uniform { least, most } => {
                if x >= *least && x <= *most {
                    -(most - least).ln()
                } else {
                    f64::NEG_INFINITY
                }
            }
            _ if !is_count(x) => f64::NEG_INFINITY,
            Self::Table(probabilities) => probabilities.get(x as usize).map_or(f64::NEG_INFINITY, |p| p.ln()),
            // With a rate of zero only the count 0 is possible.
            Self::Poisson(rate) => (if x == 0.0 { 0.0 } else { x * rate.ln() }) - rate - ln_factorial(x),
            Self::NegativeBinomial { shape, rate } => {
                let none = -shape * rate.recip().ln_1p();
                if x == 0.0 {
                    return none;
                }
                none + ln_gamma_difference(*shape, x) - x * rate.ln_1p() - ln_factorial(x)
            }
            Self::BetaNegativeBinomial { a, b, dispersion } => {
                let none = ln_gamma_difference(*b, *a) - ln_gamma_difference(b + dispersion, a + x);
                let base = ln_gamma_difference(*dispersion, x) - ln_factorial(x);
                none + ln_gamma_difference(*a, x) + base
            }
        }
    }

    /// The mean. Without one: the location of a Student t distribution, the mean count at the mean of a probability.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Student { place, .. } => *place,
            Self::Uniform { least, most } => 0.5 * (least + most),
            Self::Table(probabilities) => probabilities.iter().enumerate().map(|(x, p)| x as f64 * p).sum(),
            Self::Poisson(rate) => *rate,
            Self::NegativeBinomial { shape, rate } => shape / rate,
            Self::BetaNegativeBinomial { a, b, dispersion } => dispersion * a / if *b > 1.0 { b - 1.0 } else { *b },
        }
    }

    /// The variance; infinite if it does not exist.
    pub fn variance(&self) -> f64 {
        match self {
            Self::Student { scale, dof, .. } => spread(*dof) * scale * scale,
            Self::Uniform { least, most } => (most - least).powi(2) / 12.0,
            Self::Table(probabilities) => {
                let mean = self.mean();
                probabilities.iter().enumerate().map(|(x, p)| p * (x as f64 - mean).powi(2)).sum()
            }
            Self::Poisson(rate) => *rate,
            Self::NegativeBinomial { shape, rate } => shape / rate * (1.0 + rate.recip()),
            Self::BetaNegativeBinomial { b, .. } if *b <= 2.0 => f64::INFINITY,
            Self::BetaNegativeBinomial { a, b, dispersion } => {
                dispersion / (b - 1.0) * a * ((dispersion + b - 1.0) / (b - 2.0)) * ((a + b - 1.0) / (b - 1.0))
            }
        }
    }

    /// See [`super::Law::in_units`].
    #[must_use]
    pub fn in_units(self, unit: f64) -> Self {
        match self {
            Self::Student { place, scale, dof } => Self::Student { place: place * unit, scale: scale * unit, dof },
            Self::Uniform { least, most } => Self::Uniform { least: least * unit, most: most * unit },
            other => other,
        }
    }

    /// Draws a value.
    ///
    /// # Errors
    /// [`Error::Numerical`] for parameters that do not allow a draw.
    pub fn draw(&self, generator: &mut Generator) -> Result<f64> {
        Ok(match self {
            Self::Student { place, scale, dof } => {
                let times = drawn_scale(*dof, generator)?;
                place + times * scale * generator.sample::<f64, _>(StandardNormal)
            }
            Self::Uniform { least, most } => least + (most - least) * generator.random::<f64>(),
            Self::Table(probabilities) => Chances::new(probabilities).choose(generator) as f64,
            Self::Poisson(rate) => count(*rate, generator),
            Self::NegativeBinomial { shape, rate } => {
                let gamma = Gamma::new(*shape, rate.recip())
                    .map_err(|_| Error::numerical(None, format!("a gamma distribution of shape {shape:e}")))?;
                let rate = gamma.sample(generator);
                count(rate, generator)
            }
            Self::BetaNegativeBinomial { a, b, dispersion } => {
                let [a, b, dispersion] = [*a, *b, *dispersion].map(|shape| {
                    Gamma::new(shape, 1.0)
                        .map(|gamma| gamma.sample(generator))
                        .map_err(|_| Error::numerical(None, format!("a gamma distribution of shape {shape:e}")))
                });
                mixed_count(dispersion? * a? / b?, generator)
            }
        })
    }
}
