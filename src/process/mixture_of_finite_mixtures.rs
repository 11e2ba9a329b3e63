//! Mixtures of finite mixtures: a symmetric Dirichlet over a random number of components (Miller & Harrison 2018;
//! mathematics 8.1).

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use crate::error::{Error, Result};
use crate::parameters::Parameters;
use crate::process::concentration::USUAL;
use crate::process::partitions::gamma_weights;
use crate::process::{Hyperparameters, Occupancy, Partitions, Process, ProcessState};
use crate::registry::{DefaultValue, Entry, Parameter, ParameterKind, Range};
use crate::rng::Draws;
use crate::special::{ln_gamma, ln_gamma_difference, log_sum_exp};

/// K - 1 ~ Poisson(rate), and w ~ Dir(concentration, ..., concentration) over K components.
#[derive(Debug)]
pub struct MixtureOfFiniteMixtures {
    concentration: f64,
    rate: f64,
    /// What is known of V_n(t), by n.
    coefficients: RwLock<BTreeMap<usize, Coefficients>>,
}

const CONCENTRATION: Parameter =
    Parameter::new("concentration", ParameterKind::Number(Range::POSITIVE), DefaultValue::Number(USUAL));
/// The expected number of components less one. Sums over the number of components have at least as many terms.
const RATE: Parameter =
    Parameter::new("rate", ParameterKind::Number(Range::closed(1e-300, 1e4)), DefaultValue::Number(1.0));

/// Terms below this fraction of the largest are left out of sums.
const NEGLIGIBLE: f64 = 1e-20;

impl MixtureOfFiniteMixtures {
    /// Entry in the registry.
    pub const ENTRY: Entry =
        Entry { faces: &["partitions"], parameters: &[CONCENTRATION, RATE], ..Entry::new("MixtureOfFiniteMixtures") };

    /// Builds the process from the parameters of [`MixtureOfFiniteMixtures::ENTRY`].
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] naming the parameter.
    pub fn new(parameters: &Parameters) -> Result<Self> {
        parameters.check(&Self::ENTRY)?;
        Ok(Self {
            concentration: Parameters::required(CONCENTRATION.name, parameters.given(&CONCENTRATION)?)?,
            rate: Parameters::required(RATE.name, parameters.given(&RATE)?)?,
            coefficients: RwLock::default(),
        })
    }

    /// ln V_n(t), in mathematics 8.1 ln W_(N, K), for `all.units` = n and `all.blocks` = t, both at least 1. It is
    /// computed when it is first needed.
    fn log_coefficient(&self, all: Occupancy) -> f64 {
        let known = self.coefficients.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(&found) = known.get(&all.units).and_then(|of_units| of_units.log_sums.get(&all.blocks)) {
            return found;
        }
        drop(known);
        let log_sum = log_sum_exp(&self.log_terms(all));
        let mut known = self.coefficients.write().unwrap_or_else(PoisonError::into_inner);
        *known.entry(all.units).or_default().log_sums.entry(all.blocks).or_insert(log_sum)
    }

    /// The logs of the terms of V_n(t), for t components, t + 1 and so on, until they are negligible.
    fn log_terms(&self, all: Occupancy) -> Vec<f64> {
        let mut known = self.coefficients.write().unwrap_or_else(PoisonError::into_inner);
        let of_units = known.entry(all.units).or_default();
        let log_term = |k: usize| {
            let k = k as f64;
            k.ln() + (k - 1.0) * self.rate.ln()
                - self.rate
                - ln_gamma_difference(self.concentration * k, all.units as f64)
        };
        of_units.terms(all.blocks, self.rate, log_term)
    }
}

/// V_n(t) = sum_{k >= t} r_k / (k - t)! for one n, with r_k = k! p(k) / (concentration k)_n.
#[derive(Debug, Default)]
struct Coefficients {
    /// ln r_k, from k = 1.
    log_terms: Vec<f64>,
    /// ln V_n(t), by t.
    log_sums: BTreeMap<usize, f64>,
}

impl Coefficients {
    /// The logs of the terms of V_n(t). `log_term` returns ln r_k, which is kept.
    fn terms(&mut self, t: usize, rate: f64, log_term: impl Fn(usize) -> f64) -> Vec<f64> {
        let (mut terms, mut most) = (Vec::new(), f64::NEG_INFINITY);
        loop {
            let n_more = terms.len();
            while self.log_terms.len() < t + n_more {
                self.log_terms.push(log_term(self.log_terms.len() + 1));
            }
            let term = self.log_terms[t + n_more - 1] - ln_gamma(n_more as f64 + 1.0);
            terms.push(term);
            most = most.max(term);
            // The ratio of a term to the one before is below rate / (k - t). Up to there terms may fall and rise again.
            if n_more as f64 > rate && term < most + NEGLIGIBLE.ln() {
                return terms;
            }
        }
    }
}

impl Process for MixtureOfFiniteMixtures {
    fn partitions(self: Arc<Self>) -> Option<Arc<dyn Partitions>> {
        Some(self)
    }
}

impl Hyperparameters for MixtureOfFiniteMixtures {
    fn start(&self, augmented: bool) -> Result<ProcessState> {
        if augmented {
            return Err(Error::not_supported(
                "process",
                "MixtureOfFiniteMixtures for this sampler",
                "its partitions have no product form",
                "a DirichletProcess, or a sampler of single rows",
            ));
        }
        Ok(ProcessState { concentration: self.concentration, discount: 0.0, auxiliary: None })
    }
}

/// Labels and the number of components are summed out.
impl Partitions for MixtureOfFiniteMixtures {
    fn log_join(&self, size: usize, _: &ProcessState) -> f64 {
        (size as f64 + self.concentration).ln()
    }

    fn log_open(&self, others: Occupancy, _: &ProcessState) -> f64 {
        // The first unit has only one option.
        if others.blocks == 0 {
            return 0.0;
        }
        let of = |blocks: usize| self.log_coefficient(Occupancy { units: others.units + 1, blocks });
        self.concentration.ln() + of(others.blocks + 1) - of(others.blocks)
    }

    fn log_block(&self, size: usize, _: &ProcessState) -> f64 {
        ln_gamma_difference(self.concentration, size as f64)
    }

    fn log_rest(&self, all: Occupancy, _: &ProcessState) -> f64 {
        if all.units == 0 { 0.0 } else { self.log_coefficient(all) }
    }

    /// The number of components is drawn first, from its posterior: the terms of V_n(t).
    fn draw_weights(&self, sizes: &[usize], _: &ProcessState, draws: &mut dyn Draws) -> Vec<f64> {
        let terms = self.log_terms(Occupancy::of(sizes));
        let total = log_sum_exp(&terms);
        let n_empty = draws.choose(&terms.iter().map(|term| (term - total).exp()).collect::<Vec<_>>());
        gamma_weights(sizes, self.concentration, n_empty as f64 * self.concentration, draws)
    }

    /// No parameter is learned.
    fn update(&self, _: &[usize], _: &mut ProcessState, _: &mut dyn Draws) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::Value;

    fn law(concentration: f64, rate: f64) -> MixtureOfFiniteMixtures {
        let pairs = [("concentration", Value::Number(concentration)), ("rate", Value::Number(rate))];
        MixtureOfFiniteMixtures::new(&Parameters::from_pairs(pairs)).expect("valid")
    }

    /// ln V_n(t) as Miller and Harrison write it, without shared terms.
    fn brute_force(concentration: f64, rate: f64, n: usize, t: usize, most: usize) -> f64 {
        let term = |k: usize| {
            let (k, t, n) = (k as f64, t as f64, n as f64);
            let labellings = ln_gamma(k + 1.0) - ln_gamma(k - t + 1.0);
            let log_p = (k - 1.0) * rate.ln() - rate - ln_gamma(k);
            labellings - ln_gamma_difference(concentration * k, n) + log_p
        };
        log_sum_exp(&(t..=most).map(term).collect::<Vec<_>>())
    }

    /// For a rate of 900 and a concentration of 1000 the terms fall from the first one, for 60 units to less than a
    /// negligible part of it, and rise later.
    #[test]
    fn coefficients_are_whole_sums() {
        for (concentration, rate, n) in [
            (1.0, 1.0, 5),
            (0.3, 4.0, 20),
            (2.5, 0.01, 300),
            (1e-8, 3.0, 12),
            (1000.0, 900.0, 10),
            (1000.0, 900.0, 60),
            (1.0, 1.0, 1_000_000),
        ] {
            let law = law(concentration, rate);
            // The order in which they are computed changes nothing.
            for t in [3, 1, 2, 5, 4, 1] {
                let found = law.log_coefficient(Occupancy { units: n, blocks: t });
                let expected = brute_force(concentration, rate, n, t, 4000);
                // A few roundings of logarithms as large as the result or as ln 900!.
                let most = 1e-14 * expected.abs().max(5e3);
                assert!((found - expected).abs() < most, "{concentration} {rate} {n} {t}: {found} {expected}");
            }
        }
    }

    /// V_n(t) = (concentration t + n) V_{n+1}(t) + concentration V_{n+1}(t + 1), up to a million units.
    #[test]
    fn coefficients_obey_their_recurrence() {
        for (concentration, rate) in [(1.0, 1.0), (0.05, 30.0), (40.0, 0.2)] {
            let law = law(concentration, rate);
            for (n, t) in [(1, 1), (7, 3), (1000, 1), (1000, 40), (1_000_000, 5), (1_000_000, 200)] {
                let of = |units: usize, blocks: usize| law.log_coefficient(Occupancy { units, blocks });
                let joined = (concentration * t as f64 + n as f64).ln() + of(n + 1, t);
                let both = log_sum_exp(&[joined, concentration.ln() + of(n + 1, t + 1)]);
                // A few roundings of logarithms as large as these.
                let most = 1e-14 * of(n, t).abs().max(100.0);
                assert!((both - of(n, t)).abs() < most, "{concentration} {rate} {n} {t}");
            }
        }
    }

    /// With next to no chance of a second component, all units are in one block.
    #[test]
    fn extremes_are_finite() {
        for (concentration, rate) in [(1e-300, 1e-300), (1e300, 1e4), (1e-300, 1e4), (1e300, 1e-300), (1.0, 1e4)] {
            let law = law(concentration, rate);
            let state = law.start(false).expect("always");
            for sizes in [vec![1], vec![1, 1], vec![100_000, 3, 1], vec![1; 200]] {
                assert!(law.log_probability(&sizes, &state).is_finite(), "{concentration} {rate}");
                assert!(law.log_open(Occupancy::of(&sizes), &state).is_finite(), "{concentration} {rate}");
            }
        }
        let one = law(1.0, 1e-300);
        let state = one.start(false).expect("always");
        assert!(one.log_probability(&[7], &state).abs() < 1e-12);
    }

    #[test]
    fn parameters_are_checked() {
        let of = |name: &str, value: Value| {
            MixtureOfFiniteMixtures::new(&Parameters::from_pairs([(name, value)]))
                .map(|law| (law.concentration, law.rate))
        };
        assert_eq!(of("rate", Value::Absent), Ok((1.0, 1.0)));
        assert_eq!(of("rate", Value::Number(1e4)), Ok((1.0, 1e4)));
        for (name, value) in [("concentration", 0.0), ("concentration", f64::NAN), ("rate", 0.0), ("rate", 10_001.0)] {
            let refused = of(name, Value::Number(value));
            assert!(
                matches!(refused, Err(Error::InvalidArgument { argument, .. }) if argument == name),
                "{name} {value}"
            );
        }
    }
}
