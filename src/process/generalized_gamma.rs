//! Normalized generalized gamma processes (mathematics 8.1 and 8.2; James, Lijoi & Pruenster 2009), sampled with their
//! auxiliary variable u.

use std::sync::Arc;

use crate::error::Result;
use crate::parameters::Parameters;
use crate::process::beta::DISCOUNT;
use crate::process::learned::{TwoParameters, counted};
use crate::process::random_measure::{RandomMeasure, softplus};
use crate::process::slice::slice_between;
use crate::process::{
    Auxiliary, Concentration, Discount, Hyperparameters, Jumps, Occupancy, Partitions, Process, ProcessState,
};
use crate::registry::{DefaultValue, Entry, Parameter, ParameterKind, Range};
use crate::rng::Draws;
use crate::special::ln_gamma_difference;

/// The Levy intensity a / Gamma(1 - sigma) s^(-1 - sigma) e^-s, normalized: a is the mass, sigma the discount.
#[derive(Debug)]
pub struct NormalizedGeneralizedGamma(TwoParameters);

const MASSES: Range = Range::closed(1e-100, 1e100);
const MASS: Parameter = Parameter::new("mass", ParameterKind::NumberOrGamma(MASSES), DefaultValue::Required);

impl NormalizedGeneralizedGamma {
    /// Entry in the registry.
    pub const ENTRY: Entry = Entry {
        faces: &["partitions", "jumps"],
        parameters: &[MASS, DISCOUNT],
        ..Entry::new("NormalizedGeneralizedGamma")
    };

    /// Builds the process from the parameters of [`NormalizedGeneralizedGamma::ENTRY`].
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] naming the parameter.
    pub fn new(parameters: &Parameters) -> Result<Self> {
        parameters.check(&Self::ENTRY)?;
        let (mass, discount) = (Concentration::of(parameters, &MASS)?, Discount::new(parameters, &DISCOUNT)?);
        Ok(Self(TwoParameters { concentration: mass, discount, name: MASS.name, range: MASSES }))
    }
}

impl Process for NormalizedGeneralizedGamma {
    fn partitions(self: Arc<Self>) -> Option<Arc<dyn Partitions>> {
        Some(self)
    }

    fn jumps(self: Arc<Self>) -> Option<Arc<dyn Jumps>> {
        Some(self)
    }
}

impl Jumps for NormalizedGeneralizedGamma {
    fn measure(&self, state: &ProcessState) -> RandomMeasure {
        measure(state)
    }
}

fn measure(state: &ProcessState) -> RandomMeasure {
    RandomMeasure { log_mass: state.concentration.ln(), discount: state.discount }
}

impl Hyperparameters for NormalizedGeneralizedGamma {
    fn start(&self, augmented: bool) -> Result<ProcessState> {
        let (concentration, discount) = self.0.start();
        let auxiliary = augmented.then(|| Auxiliary { log_u: 0.0, log_mass: concentration.ln() });
        Ok(ProcessState { concentration, discount, auxiliary })
    }

    /// Without u the weights need one integral for each number of units and blocks.
    fn augments(&self) -> bool {
        true
    }

    fn traced(&self, state: &ProcessState) -> Vec<(&'static str, f64)> {
        self.0.traced(state)
    }

    fn restored(&self, traced: &[f64]) -> Result<ProcessState> {
        self.0.restored(self.start(false)?, traced)
    }

    fn log_prior(&self, state: &ProcessState) -> f64 {
        self.0.log_prior(state)
    }
}

impl Partitions for NormalizedGeneralizedGamma {
    fn log_join(&self, size: usize, state: &ProcessState) -> f64 {
        measure(state).log_join(size)
    }

    fn log_open(&self, others: Occupancy, state: &ProcessState) -> f64 {
        if let Some(auxiliary) = state.auxiliary {
            return measure(state).log_open(auxiliary.log_u);
        }
        let Occupancy { units, blocks } = others;
        let all = |blocks: usize| Occupancy { units: units + 1, blocks };
        // The first unit has only one option.
        let joined = if blocks == 0 { 0.0 } else { measure(state).log_integrated(all(blocks)) };
        measure(state).log_integrated(all(blocks + 1)) - joined
    }

    fn log_block(&self, size: usize, state: &ProcessState) -> f64 {
        match state.auxiliary {
            Some(auxiliary) => measure(state).log_block(size, auxiliary.log_u),
            None => ln_gamma_difference(1.0 - state.discount, size as f64 - 1.0),
        }
    }

    fn log_rest(&self, all: Occupancy, state: &ProcessState) -> f64 {
        match state.auxiliary {
            _ if all.units == 0 => 0.0,
            Some(auxiliary) => measure(state).log_rest(all.units, auxiliary.log_u),
            None => measure(state).log_integrated(all),
        }
    }

    fn draw_weights(&self, sizes: &[usize], state: &ProcessState, draws: &mut dyn Draws) -> Vec<f64> {
        let measure = measure(state);
        let log_u = measure.draw_independent(Occupancy::of(sizes), draws);
        let sizes: Vec<f64> = sizes.iter().map(|&size| size as f64).collect();
        let mut log_weights = measure.draw_jumps(&sizes, draws);
        log_weights.push(measure.draw_total(log_u, draws));
        log_weights
    }

    /// Updates u, then the mass, then the discount given the mass (mathematics 8.4).
    fn update(&self, sizes: &[usize], state: &mut ProcessState, draws: &mut dyn Draws) {
        let Some(auxiliary) = state.auxiliary else { return };
        let all = Occupancy::of(sizes);
        let log_u = measure(state).draw(all, auxiliary.log_u, draws);
        if let Concentration::Unknown(prior) = self.0.concentration {
            let log_rate = (prior.rate + measure(state).exponent(log_u)).ln();
            state.concentration = self.0.within((draws.log_gamma(prior.shape + all.blocks as f64) - log_rate).exp());
        }
        if let Discount::Unknown(prior) = self.0.discount {
            let (mass, power) = (state.concentration, all.blocks as f64 * softplus(log_u));
            let counted = counted(sizes);
            let log_density = |discount: f64| {
                let measure = RandomMeasure { log_mass: 0.0, discount };
                let blocks: f64 =
                    counted.iter().map(|&(n, times)| times * ln_gamma_difference(1.0 - discount, n - 1.0)).sum();
                prior.log_density(discount) + power * discount - mass * measure.exponent(log_u) + blocks
            };
            state.discount = slice_between(log_density, state.discount, Discount::LIMITS, draws);
        }
        state.auxiliary = Some(Auxiliary { log_u, log_mass: state.concentration.ln() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::{Value, vector};

    fn law(mass: Value, discount: Value) -> Result<NormalizedGeneralizedGamma> {
        NormalizedGeneralizedGamma::new(&Parameters::from_pairs([("mass", mass), ("discount", discount)]))
    }

    /// Values from an independent implementation: mass 0.7, discount 0.5.
    #[test]
    fn golden_values() {
        let law = law(Value::Number(0.7), Value::Number(0.5)).expect("valid");
        let state = law.start(false).expect("always");
        let expected =
            [-4.850_819_951_284, -4.284_133_063_256, -3.602_304_373_816, -2.795_884_567_239, -1.859_539_927_937];
        for (k, expected) in expected.into_iter().enumerate() {
            let found = law.log_rest(Occupancy { units: 5, blocks: k + 1 }, &state);
            assert!((found - expected).abs() < 2e-12, "{k}: {found}");
        }
        assert!((law.log_probability(&[3, 2], &state) + 5.264_962_316_268).abs() < 2e-12);
        let augmented =
            ProcessState { auxiliary: Some(Auxiliary { log_u: 2.0_f64.ln(), log_mass: 0.7_f64.ln() }), ..state };
        assert!((law.log_block(1, &augmented) + 0.905_981_088_273).abs() < 2e-12);
        assert!((law.log_block(4, &augmented) + 3.573_209_294_855).abs() < 2e-12);
        let psi = -(law.log_rest(Occupancy { units: 1, blocks: 1 }, &augmented));
        assert!((psi - 1.024_871_130_596).abs() < 2e-12);
    }

    #[test]
    fn parameters_are_checked() {
        let number = Value::Number;
        assert!(law(number(1.0), number(0.0)).is_ok() && law(vector(vec![2.0, 1.0]), vector(vec![1.5, 1.5])).is_ok());
        let named = |outcome: Result<NormalizedGeneralizedGamma>| match outcome {
            Err(crate::Error::InvalidArgument { argument, .. }) => argument,
            other => panic!("{other:?}"),
        };
        assert_eq!(named(law(number(0.0), number(0.5))), "mass");
        assert_eq!(named(law(number(1.0), number(1.0))), "discount");
        assert_eq!(named(law(number(1.0), vector(vec![1.0]))), "discount");
        assert_eq!(named(law(number(1.0), vector(vec![1.0, -1.0]))), "b");
        assert_eq!(named(law(Value::Absent, number(0.5))), "mass");
    }

    #[test]
    fn reported_values_restore_the_state() {
        let law = law(vector(vec![2.0, 1.0]), vector(vec![1.5, 1.5])).expect("valid");
        let mut state = law.start(true).expect("always");
        (state.concentration, state.discount) = (0.8, 0.3);
        let traced: Vec<f64> = law.traced(&state).into_iter().map(|(_, value)| value).collect();
        assert_eq!(law.restored(&traced).expect("its own"), state.integrated());
        for foreign in [vec![], vec![0.8], vec![0.8, 1.0], vec![-1.0, 0.3], vec![0.8, 0.3, 0.1]] {
            assert!(law.restored(&foreign).is_err());
        }
    }
}
