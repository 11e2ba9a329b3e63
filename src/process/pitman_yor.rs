//! The Pitman-Yor process with the nested truncation q(z > K) = 0 (mathematics 2e).

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::objective::Objective;
use crate::parameters::{Parameters, Value};
use crate::process::concentration::USUAL;
use crate::process::partitions::gamma_weights;
use crate::process::random_measure::{LEAST_DISCOUNT, RandomMeasure, softplus};
use crate::process::sticks::{break_sticks, modes, stick_source};
use crate::process::{
    Allocation, Auxiliary, Concentration, FreeSticks, Occupancy, Partitions, Process, ProcessState, Sticks,
    WeightSource, Weights, point, refused,
};
use crate::registry::{DefaultValue, Entry, Feature, Parameter, ParameterKind, Range, Support};
use crate::rng::Draws;
use crate::special::{ln_gamma, ln_gamma_difference};

/// v_k ~ Beta(1 - discount, concentration + k discount), w_k = v_k prod_{l<k} (1 - v_l).
#[derive(Debug)]
pub struct PitmanYor {
    discount: f64,
    concentration: f64,
}

const DISCOUNT: Parameter =
    Parameter::new("discount", ParameterKind::Number(Range::half_open(0.0, 1.0)), DefaultValue::Required);
/// The concentration, which must also exceed minus the discount.
const CONCENTRATION: Parameter = Parameter::new(
    "concentration",
    ParameterKind::NumberOrGamma(Range::closed(-1.0, 1e300)),
    DefaultValue::Number(USUAL),
);
const TRUNCATION: Parameter =
    Parameter::new("truncation", ParameterKind::Word(&["nested", "tail"]), DefaultValue::Word("nested"));

impl PitmanYor {
    /// Entry in the registry.
    pub const ENTRY: Entry = Entry {
        faces: &["weights", "partitions", "sticks"],
        supports: &[Support::always(Feature::Moves)],
        parameters: &[DISCOUNT, CONCENTRATION, TRUNCATION],
        ..Entry::new("PitmanYor")
    };

    /// Builds the process from the parameters of [`PitmanYor::ENTRY`].
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] naming the parameter, [`Error::NotSupported`] for a tail or for a prior on the
    /// concentration.
    pub fn new(parameters: &Parameters) -> Result<Self> {
        parameters.check(&Self::ENTRY)?;
        let discount = Parameters::required(DISCOUNT.name, parameters.given(&DISCOUNT)?)?;
        let concentration = Self::concentration(parameters, discount)?;
        if parameters.word(&TRUNCATION)? == "nested" {
            return Ok(Self { discount, concentration });
        }
        Err(Error::not_supported(
            "truncation",
            "truncation=\"tail\" of PitmanYor",
            "its sticks differ from one to the next, so the weights of the tail are no geometric series",
            "\"nested\", or a DirichletProcess",
        ))
    }

    fn concentration(parameters: &Parameters, discount: f64) -> Result<f64> {
        if matches!(parameters.0.get("concentration"), Some(Value::Array { .. })) {
            Concentration::new(parameters)?
                .fixed("PitmanYor", "it is conjugate to the sticks of a DirichletProcess only")?;
        }
        match parameters.number(CONCENTRATION.name)?.unwrap_or(USUAL) {
            // The smallest parameter of the first stick for which its logarithms are finite.
            value if value + discount >= 1e-300 && value <= 1e300 => Ok(value),
            value if value > -discount && value <= 1e300 => {
                Err(Error::invalid("concentration", Value::Number(value), "at least 1e-300 above minus the discount"))
            }
            value => {
                let discount = Value::Number(discount);
                let allowed = format!("greater than minus the discount, {discount}, and at most 1e300");
                Err(Error::invalid("concentration", Value::Number(value), allowed))
            }
        }
    }
}

impl Process for PitmanYor {
    fn weights(self: Arc<Self>) -> Option<Arc<dyn Weights>> {
        Some(self)
    }

    fn partitions(self: Arc<Self>) -> Option<Arc<dyn Partitions>> {
        Some(self)
    }

    fn sticks(self: Arc<Self>) -> Option<Arc<dyn Sticks>> {
        Some(self)
    }
}

impl Sticks for PitmanYor {
    fn stick(&self, k: usize, _: &ProcessState) -> (f64, f64) {
        (1.0 - self.discount, self.concentration + (k + 1) as f64 * self.discount)
    }
}

impl Weights for PitmanYor {
    fn bound(&self) -> &'static str {
        "nested"
    }

    fn concentration(&self) -> Concentration {
        Concentration::Fixed(self.concentration)
    }

    fn is_nested(&self) -> bool {
        true
    }

    fn is_ordered(&self) -> bool {
        true
    }

    fn free_sticks(&self) -> Option<FreeSticks> {
        Some(FreeSticks { discount: self.discount, concentration: self.concentration })
    }

    fn check_objective(&self, objective: Objective) -> Result<()> {
        if objective != Objective::Map {
            return Ok(());
        }
        if self.discount > 0.0 {
            let reason = "the density of a stick is infinite at zero";
            return Err(refused(objective, "a discount above 0", reason, "discount=0, or another objective"));
        }
        if self.concentration < 1.0 {
            let reason = "the density of a stick is infinite at its end";
            return Err(refused(objective, "a concentration below 1", reason, "a concentration of at least 1"));
        }
        Ok(())
    }

    /// eta_k1 = 1 - d + N_k, eta_k0 = alpha + k d + N_{>k}.
    fn allocate(&self, counts: &[f64], _tail: f64, objective: Objective) -> Allocation {
        let (d, alpha) = (self.discount, self.concentration);
        match objective {
            Objective::Variational => {
                break_sticks(counts, 0.0, counts.len(), |k| (1.0 - d, alpha + (k + 1) as f64 * d)).allocation
            }
            Objective::Map => modes(counts, counts.len(), alpha),
            Objective::Ml => point::maximum_likelihood(counts),
        }
    }

    fn weight_source(&self, counts: &[f64], _tail: f64) -> Result<WeightSource> {
        let (d, alpha) = (self.discount, self.concentration);
        Ok(stick_source(counts, 0.0, counts.len(), |k| (1.0 - d, alpha + (k + 1) as f64 * d)))
    }
}

impl Partitions for PitmanYor {
    /// With a positive concentration the process is a normalized random measure of random mass (mathematics 8.2).
    /// Otherwise it has no auxiliary values.
    fn start(&self, augmented: bool) -> Result<ProcessState> {
        if augmented && self.concentration <= 0.0 {
            return Err(Error::not_supported(
                "concentration",
                "PitmanYor with a concentration of at most 0 for this sampler",
                "its partitions have no product form",
                "a positive concentration, or a sampler of single rows",
            ));
        }
        let auxiliary = augmented.then(|| Auxiliary { log_u: 0.0, log_mass: self.concentration.ln() });
        Ok(ProcessState { concentration: self.concentration, discount: self.discount, auxiliary })
    }

    fn log_join(&self, size: usize, _: &ProcessState) -> f64 {
        (size as f64 - self.discount).ln()
    }

    fn log_open(&self, others: Occupancy, state: &ProcessState) -> f64 {
        match state.auxiliary {
            Some(auxiliary) => self.measure(auxiliary).log_open(auxiliary.log_u),
            // The first unit has only one option.
            None if others.blocks == 0 => 0.0,
            None => (self.concentration + others.blocks as f64 * self.discount).ln(),
        }
    }

    fn log_block(&self, size: usize, state: &ProcessState) -> f64 {
        match state.auxiliary {
            Some(auxiliary) => self.measure(auxiliary).log_block(size, auxiliary.log_u),
            None => ln_gamma_difference(1.0 - self.discount, size as f64 - 1.0),
        }
    }

    fn log_rest(&self, all: Occupancy, state: &ProcessState) -> f64 {
        if all.units == 0 {
            return 0.0;
        }
        if let Some(auxiliary) = state.auxiliary {
            return self.measure(auxiliary).log_rest(all.units, auxiliary.log_u) + self.log_density(auxiliary.log_mass);
        }
        let opened = (1..all.blocks).map(|k| (self.concentration + k as f64 * self.discount).ln());
        opened.sum::<f64>() - ln_gamma_difference(self.concentration + 1.0, all.units as f64 - 1.0)
    }

    fn draw_weights(&self, sizes: &[usize], state: &ProcessState, draws: &mut dyn Draws) -> Vec<f64> {
        let outside = state.concentration + sizes.len() as f64 * state.discount;
        gamma_weights(sizes, -state.discount, outside, draws)
    }

    fn update(&self, sizes: &[usize], state: &mut ProcessState, draws: &mut dyn Draws) {
        let Some(auxiliary) = &mut state.auxiliary else { return };
        let all = Occupancy::of(sizes);
        auxiliary.log_u = self.measure(*auxiliary).draw(all, auxiliary.log_u, draws);
        if self.discount >= LEAST_DISCOUNT {
            // With a concentration near the maximum and a small discount the shape exceeds float64, and the draw equals
            // its mean.
            let shape = (self.concentration / self.discount + all.blocks as f64).min(Range::POSITIVE.greatest);
            let log_rate = self.discount * softplus(auxiliary.log_u);
            auxiliary.log_mass = draws.log_gamma(shape) - log_rate + self.discount.ln();
        }
    }
}

impl PitmanYor {
    fn measure(&self, auxiliary: Auxiliary) -> RandomMeasure {
        RandomMeasure { log_mass: auxiliary.log_mass, discount: self.discount }
    }

    /// Log density of the mass over the discount, Gamma(concentration / discount, 1).
    fn log_density(&self, log_mass: f64) -> f64 {
        if self.discount < LEAST_DISCOUNT {
            return 0.0;
        }
        let (shape, log) = (self.concentration / self.discount, log_mass - self.discount.ln());
        (shape - 1.0) * log - log.exp() - ln_gamma(shape)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parameters::vector;
    use crate::process::sticks::tests::check;

    fn bound(discount: f64, concentration: f64, counts: &[f64]) -> f64 {
        PitmanYor { discount, concentration }.allocate(counts, 0.0, Objective::Variational).bound
    }

    /// The permutations of three values.
    const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

    /// Pitman (1995): the probability of a partition in blocks of these sizes, prod_{i<K} (alpha + i d) / (alpha +
    /// 1)_{n-1} times prod_k (1 - d)_{n_k - 1}.
    fn partition_probability(d: f64, alpha: f64, sizes: &[u32]) -> f64 {
        let n: u32 = sizes.iter().sum();
        let rising = |from: f64, steps: u32| (0..steps).map(|i| from + f64::from(i)).product::<f64>();
        let new: f64 = (1..sizes.len()).map(|i| alpha + i as f64 * d).product();
        new / rising(alpha + 1.0, n - 1) * sizes.iter().map(|&size| rising(1.0 - d, size - 1)).product::<f64>()
    }

    /// In order of appearance, the first unit of each component is a size-biased draw. Given v, a partition in that
    /// order has the probability prod_k v_k^(n_k - 1) (1 - v_k)^(N_{>k}), whose expectation is Pitman's formula.
    #[test]
    fn the_order_of_appearance_gives_the_partition_probability() {
        for (d, alpha) in [(0.0, 1.7), (0.3, 1.0), (0.7, -0.4)] {
            for sizes in ORDERS.map(|order| order.map(|i| [3_u32, 1, 4][i])) {
                // Counts without the unit that opened the component. Later components had no units at that time.
                let process = PitmanYor { discount: d, concentration: alpha };
                let mut log = 0.0;
                for k in 0..3 {
                    let behind: u32 = sizes[k + 1..].iter().sum();
                    let (a, b) = (1.0 - d, alpha + (k + 1) as f64 * d);
                    log += crate::special::ln_beta(a + f64::from(sizes[k] - 1), b + f64::from(behind))
                        - crate::special::ln_beta(a, b);
                }
                let expected = partition_probability(d, alpha, &sizes);
                assert!((log.exp() - expected).abs() < 1e-12 * expected, "{d} {alpha} {sizes:?}");
                // The bound is that probability with the opening unit counted in its stick.
                let counts = sizes.map(f64::from);
                let found = process.allocate(&counts, 0.0, Objective::Variational).bound;
                let steps: f64 = (0..3)
                    .map(|k| {
                        let behind: f64 = counts[k + 1..].iter().sum();
                        let (a, b) = (1.0 - d, alpha + (k + 1) as f64 * d);
                        ((a + counts[k] - 1.0) / (a + counts[k] - 1.0 + b + behind)).ln()
                    })
                    .sum();
                assert!((found - (log + steps)).abs() < 1e-11, "{d} {alpha} {sizes:?}");
            }
        }
    }

    /// Mathematics 2e: the telescoped form.
    #[test]
    fn the_bound_is_the_telescoped_one() {
        let (d, alpha, counts) = (0.4, 0.7, [5.0, 2.5, 0.0, 1.0]);
        let (n, k) = (counts.iter().sum::<f64>(), counts.len() as f64);
        let mut expected = crate::special::ln_gamma(alpha + k * d) - crate::special::ln_gamma(alpha + n);
        for (k, count) in counts.iter().enumerate() {
            let from: f64 = counts[k..].iter().sum();
            expected += crate::special::ln_gamma(1.0 - d + count)
                - (alpha + k as f64 * d + from).ln()
                - crate::special::ln_beta(1.0 - d, alpha + (k + 1) as f64 * d);
        }
        assert!((bound(d, alpha, &counts) - expected).abs() < 1e-12);
    }

    #[test]
    fn parameters_are_checked() {
        let of = |discount: f64, concentration: Value, truncation: &str| {
            PitmanYor::new(&Parameters::from_pairs([
                ("discount", Value::Number(discount)),
                ("concentration", concentration),
                ("truncation", Value::Text(truncation.into())),
            ]))
            .map(|process| process.concentration)
        };
        assert_eq!(of(0.5, Value::Absent, "nested"), Ok(1.0));
        assert_eq!(of(0.5, Value::Number(-0.4), "nested"), Ok(-0.4));
        let named = |result: Result<f64>| match result {
            Err(Error::InvalidArgument { argument, .. }) => argument,
            other => panic!("{other:?}"),
        };
        for discount in [-0.1, 1.0, f64::NAN] {
            assert_eq!(named(of(discount, Value::Absent, "nested")), "discount");
        }
        for (discount, concentration) in [(0.5, -0.5), (0.0, 0.0), (0.0, 1e-301), (0.5, 1e301)] {
            assert_eq!(named(of(discount, Value::Number(concentration), "nested")), "concentration");
        }
        assert_eq!(named(of(0.5, Value::Absent, "stick")), "truncation");
        let tail = of(0.5, Value::Absent, "tail").expect_err("no geometric series").to_string();
        assert!(tail.contains("geometric"), "{tail}");
        let unknown = of(0.5, vector(vec![1.0, 1.0]), "nested").expect_err("not conjugate").to_string();
        assert!(unknown.contains("conjugate"), "{unknown}");
    }

    #[test]
    fn objectives_are_refused_with_the_reason() {
        let of = |discount, concentration, objective| {
            PitmanYor { discount, concentration }.check_objective(objective).err().map(|error| error.to_string())
        };
        assert_eq!(of(0.5, 0.1, Objective::Ml), None);
        assert_eq!(of(0.0, 1.0, Objective::Map), None);
        assert!(of(0.5, 2.0, Objective::Map).is_some_and(|said| said.contains("discount=0")));
        assert!(of(0.0, 0.5, Objective::Map).is_some_and(|said| said.contains("at least 1")));
    }

    proptest! {
        #[test]
        fn the_collapsed_bound_is_the_general_one(
            counts in prop::collection::vec(0.0_f64..50.0, 1..12), d in 0.0_f64..0.99, above in 0.05_f64..20.0,
        ) {
            let process = PitmanYor { discount: d, concentration: above - d };
            let allocation = process.allocate(&counts, 0.0, Objective::Variational);
            check(&allocation, &counts, 0.0)?;
            prop_assert!(allocation.divergence > -1e-9);
        }

        /// Property 11: nested at the end. Property 12: decreasing counts are optimal.
        #[test]
        fn it_is_nested_and_wants_falling_counts(
            mut counts in prop::collection::vec(0.0_f64..50.0, 1..12).prop_shuffle(), d in 0.0_f64..0.99,
            above in 0.05_f64..20.0,
        ) {
            let any = bound(d, above - d, &counts);
            let longer = [&counts[..], &[0.0]].concat();
            prop_assert!((bound(d, above - d, &longer) - any).abs() < 1e-9 * (1.0 + any.abs()));
            counts.sort_by(|a, b| b.total_cmp(a));
            prop_assert!(bound(d, above - d, &counts) >= any - 1e-10 * (1.0 + any.abs()));
        }

        /// At discount 0 the process is the Dirichlet process.
        #[test]
        fn no_discount_is_a_dirichlet_process(
            counts in prop::collection::vec(0.0_f64..50.0, 1..12), alpha in 1.0_f64..20.0,
        ) {
            let parameters = Parameters::from_pairs([("concentration", Value::Number(alpha))]);
            let other = crate::process::DirichletProcess::new(&parameters).expect("positive");
            let process = PitmanYor { discount: 0.0, concentration: alpha };
            for objective in [Objective::Variational, Objective::Map, Objective::Ml] {
                prop_assert_eq!(process.allocate(&counts, 0.0, objective), other.allocate(&counts, 0.0, objective));
            }
        }
    }
}
