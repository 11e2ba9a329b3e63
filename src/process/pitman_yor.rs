//! The Pitman-Yor process with the nested truncation q(z > K) = 0 (mathematics 2e).

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::objective::Objective;
use crate::parameters::{Parameters, Value};
use crate::process::beta::DISCOUNT;
use crate::process::concentration::USUAL;
use crate::process::learned::{TwoParameters, counted};
use crate::process::partitions::gamma_weights;
use crate::process::random_measure::{LEAST_DISCOUNT, RandomMeasure, softplus};
use crate::process::slice::slice_between;
use crate::process::sticks::{break_sticks, modes, stick_source};
use crate::process::{
    Allocation, Auxiliary, Concentration, Discount, FreeSticks, Hyperparameters, Occupancy, Partitions, Process,
    ProcessState, Sticks, WeightSource, Weights, point, refused,
};
use crate::registry::{DefaultValue, Entry, Feature, Parameter, ParameterKind, Range, Support};
use crate::rng::Draws;
use crate::special::{ln_gamma, ln_gamma_difference};

/// v_k ~ Beta(1 - discount, concentration + k discount), w_k = v_k prod_{l<k} (1 - v_l).
#[derive(Debug)]
pub struct PitmanYor(TwoParameters);

/// The concentration, which must also exceed minus the discount. A learned one is positive.
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
    /// [`Error::InvalidArgument`] naming the parameter, [`Error::NotSupported`] for a tail.
    pub fn new(parameters: &Parameters) -> Result<Self> {
        parameters.check(&Self::ENTRY)?;
        let discount = Discount::new(parameters, &DISCOUNT)?;
        let concentration = Concentration::of(parameters, &CONCENTRATION)?;
        if let Concentration::Fixed(value) = concentration {
            check_concentration(value, discount)?;
        }
        if parameters.word(&TRUNCATION)? == "nested" {
            let (name, range) = (CONCENTRATION.name, Range::POSITIVE);
            return Ok(Self(TwoParameters { concentration, discount, name, range }));
        }
        Err(Error::not_supported(
            "truncation",
            "truncation=\"tail\" of PitmanYor",
            "its sticks differ from one to the next, so the weights of the tail are no geometric series",
            "\"nested\", or a DirichletProcess",
        ))
    }

    /// The prior Beta(a, b) of stick `k` of a fit, which counts from 0. No parameter is learned there.
    fn stick_of_fit(&self) -> impl Fn(usize) -> (f64, f64) {
        let (concentration, discount) = self.0.start();
        move |k| stick(k, concentration, discount)
    }

    /// One slice-sampling step of each learned parameter given the labels of all rows (mathematics 8.4, item 4). Their
    /// probability is exp(`log_rest`), a function of the concentration and the discount, times a product over blocks of
    /// these sizes. It may have several modes, so steps start from the whole range.
    fn learn(
        &self,
        sizes: &[usize],
        log_rest: impl Fn(f64, f64) -> f64,
        state: &mut ProcessState,
        draws: &mut dyn Draws,
    ) {
        if let Concentration::Unknown(prior) = self.0.concentration {
            let log_density = |log: f64| {
                let concentration = log.exp();
                prior.shape * log - prior.rate * concentration + log_rest(concentration, state.discount)
            };
            let ends = (self.0.range.least.ln(), self.0.range.greatest.ln());
            let drawn = slice_between(log_density, state.concentration.ln(), ends, draws).exp();
            state.concentration = self.0.within(drawn);
        }
        if let Discount::Unknown(prior) = self.0.discount {
            let (concentration, counted) = (state.concentration, counted(sizes));
            let log_density = |discount: f64| {
                let block = |&(n, times): &(f64, f64)| times * ln_gamma_difference(1.0 - discount, n - 1.0);
                let blocks: f64 = counted.iter().map(block).sum();
                prior.log_density(discount) + log_rest(concentration, discount) + blocks
            };
            state.discount = slice_between(log_density, state.discount, Discount::LIMITS, draws);
        }
    }
}

/// Refuses a concentration that is not above minus the discount.
fn check_concentration(value: f64, discount: Discount) -> Result<()> {
    let least = match discount {
        Discount::Fixed(discount) => discount,
        Discount::Unknown(_) => 0.0,
    };
    // The smallest parameter of the first stick for which its logarithms are finite.
    if value + least >= 1e-300 {
        return Ok(());
    }
    let allowed = match discount {
        Discount::Unknown(_) => "at least 1e-300, because the prior of the discount reaches down to 0".to_owned(),
        Discount::Fixed(least) if value > -least => "at least 1e-300 above minus the discount".to_owned(),
        Discount::Fixed(least) => {
            format!("greater than minus the discount, {}, and at most 1e300", Value::Number(least))
        }
    };
    Err(Error::invalid(CONCENTRATION.name, Value::Number(value), allowed))
}

/// The prior Beta(a, b) of stick `k`, which counts from 0.
fn stick(k: usize, concentration: f64, discount: f64) -> (f64, f64) {
    (1.0 - discount, concentration + (k + 1) as f64 * discount)
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
    fn stick(&self, k: usize, state: &ProcessState) -> (f64, f64) {
        stick(k, state.concentration, state.discount)
    }

    /// The probability of the labels is that of mathematics 8.11, item 1.
    fn update_given_counts(&self, counts: &[f64], behind: f64, state: &mut ProcessState, draws: &mut dyn Draws) {
        let mut left = behind + counts.iter().sum::<f64>();
        let all = left;
        let later: Vec<f64> = counts
            .iter()
            .map(|count| {
                left -= count;
                left
            })
            .collect();
        // The products over sticks telescope, except for one fraction for each stick but the first.
        let log_rest = |concentration: f64, discount: f64| {
            let Some((_, between)) = later.split_last() else { return 0.0 };
            let fraction = |(k, left): (usize, &f64)| {
                let from = concentration + k as f64 * discount;
                from.ln() - (from + left).ln()
            };
            let last = ln_gamma_difference(concentration + counts.len() as f64 * discount, behind);
            let fractions: f64 = (1..).zip(between).map(fraction).sum();
            fractions + last - ln_gamma_difference(concentration + 1.0, all)
        };
        // The factor (1 - d)_N of a stick is that of a block of one more unit.
        let sizes: Vec<usize> = counts.iter().map(|&count| count as usize + 1).collect();
        self.learn(&sizes, log_rest, state, draws);
    }

    /// Four standard deviations above the means of the priors.
    fn furthest(&self, mut state: ProcessState) -> ProcessState {
        if let Concentration::Unknown(prior) = self.0.concentration {
            state.concentration = self.0.within(prior.mean() + 4.0 * prior.mean() / prior.shape.sqrt());
        }
        if let Discount::Unknown(prior) = self.0.discount {
            state.discount = (prior.mean() + 4.0 * prior.deviation()).min(Discount::LIMITS.1);
        }
        state
    }
}

impl Weights for PitmanYor {
    fn bound(&self) -> &'static str {
        "nested"
    }

    fn concentration(&self) -> Option<Concentration> {
        Some(self.0.concentration)
    }

    fn is_nested(&self) -> bool {
        true
    }

    fn is_ordered(&self) -> bool {
        true
    }

    fn free_sticks(&self) -> Option<FreeSticks> {
        let (concentration, discount) = self.0.start();
        Some(FreeSticks { discount, concentration })
    }

    fn check_objective(&self, objective: Objective) -> Result<()> {
        if let Concentration::Unknown(_) = self.0.concentration {
            return Err(no_bound(CONCENTRATION.name, "Gamma"));
        }
        if let Discount::Unknown(_) = self.0.discount {
            return Err(no_bound(DISCOUNT.name, "Beta"));
        }
        let (concentration, discount) = self.0.start();
        if objective != Objective::Map {
            return Ok(());
        }
        if discount > 0.0 {
            let reason = "the density of a stick is infinite at zero";
            return Err(refused(objective, "a discount above 0", reason, "discount=0, or another objective"));
        }
        if concentration < 1.0 {
            let reason = "the density of a stick is infinite at its end";
            return Err(refused(objective, "a concentration below 1", reason, "a concentration of at least 1"));
        }
        Ok(())
    }

    /// eta_k1 = 1 - d + N_k, eta_k0 = alpha + k d + N_{>k}.
    fn allocate(&self, counts: &[f64], _tail: f64, objective: Objective) -> Allocation {
        match objective {
            Objective::Variational => break_sticks(counts, 0.0, counts.len(), self.stick_of_fit()).allocation,
            Objective::Map => modes(counts, counts.len(), (1.0, self.0.start().0)),
            Objective::Ml => point::maximum_likelihood(counts),
        }
    }

    fn weight_source(&self, counts: &[f64], _tail: f64) -> Result<WeightSource> {
        Ok(stick_source(counts, 0.0, counts.len(), self.stick_of_fit()))
    }
}

/// The error for a fit with a prior on a parameter.
fn no_bound(name: &'static str, prior: &str) -> Error {
    Error::not_supported(
        name,
        format!("a fit with a {prior} prior on the {name} of PitmanYor"),
        "it is not conjugate to the sticks",
        "a number, or sb.sample, which draws it",
    )
}

impl Hyperparameters for PitmanYor {
    /// With a positive concentration the process is a normalized random measure of random mass (mathematics 8.2).
    /// Otherwise it has no auxiliary values.
    fn start(&self, augmented: bool) -> Result<ProcessState> {
        let (concentration, discount) = self.0.start();
        if augmented && concentration <= 0.0 {
            return Err(Error::not_supported(
                "concentration",
                "PitmanYor with a concentration of at most 0 for this sampler",
                "its partitions have no product form",
                "a positive concentration, or a sampler of single rows",
            ));
        }
        let auxiliary = augmented.then(|| Auxiliary { log_u: 0.0, log_mass: concentration.ln() });
        Ok(ProcessState { concentration, discount, auxiliary })
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

impl Partitions for PitmanYor {
    fn log_join(&self, size: usize, state: &ProcessState) -> f64 {
        (size as f64 - state.discount).ln()
    }

    fn log_open(&self, others: Occupancy, state: &ProcessState) -> f64 {
        match state.auxiliary {
            Some(auxiliary) => measure(auxiliary, state).log_open(auxiliary.log_u),
            // The first unit has only one option.
            None if others.blocks == 0 => 0.0,
            None => (state.concentration + others.blocks as f64 * state.discount).ln(),
        }
    }

    fn log_block(&self, size: usize, state: &ProcessState) -> f64 {
        match state.auxiliary {
            Some(auxiliary) => measure(auxiliary, state).log_block(size, auxiliary.log_u),
            None => ln_gamma_difference(1.0 - state.discount, size as f64 - 1.0),
        }
    }

    fn log_rest(&self, all: Occupancy, state: &ProcessState) -> f64 {
        let (concentration, discount) = (state.concentration, state.discount);
        match state.auxiliary {
            _ if all.units == 0 => 0.0,
            None => log_rest(all, concentration, discount),
            Some(auxiliary) if discount < LEAST_DISCOUNT => {
                measure(auxiliary, state).log_rest(all.units, auxiliary.log_u)
            }
            // With m = mass / discount, the density Gamma(m; shape, 1) and the factor of u.
            Some(Auxiliary { log_u, log_mass }) => {
                let (shape, log_m, units) = (concentration / discount, log_mass - discount.ln(), all.units as f64);
                (units - 1.0) * log_u - ln_gamma(units) + (shape - 1.0) * log_m
                    - ln_gamma(shape)
                    - (log_m + discount * softplus(log_u)).exp()
            }
        }
    }

    fn draw_weights(&self, sizes: &[usize], state: &ProcessState, draws: &mut dyn Draws) -> Vec<f64> {
        let outside = state.concentration + sizes.len() as f64 * state.discount;
        gamma_weights(sizes, -state.discount, outside, draws)
    }

    /// Updates learned parameters given the partition alone, then draws u and the mass anew.
    fn update(&self, sizes: &[usize], state: &mut ProcessState, draws: &mut dyn Draws) {
        let all = Occupancy::of(sizes);
        self.learn(sizes, |concentration, discount| log_rest(all, concentration, discount), state, draws);
        let Some(auxiliary) = &mut state.auxiliary else { return };
        // Given the partition, with the mass integrated out, u has the density u^(N - 1) (1 + u)^-(N + concentration).
        auxiliary.log_u = match all.units {
            0 => f64::NEG_INFINITY,
            units => draws.log_gamma(units as f64) - draws.log_gamma(state.concentration),
        };
        if state.discount < LEAST_DISCOUNT {
            auxiliary.log_mass = state.concentration.ln();
            return;
        }
        // With a concentration near the maximum and a small discount the shape exceeds float64, and the draw equals its
        // mean.
        let shape = (state.concentration / state.discount + all.blocks as f64).min(Range::POSITIVE.greatest);
        let log_rate = state.discount * softplus(auxiliary.log_u);
        auxiliary.log_mass = draws.log_gamma(shape) - log_rate + state.discount.ln();
    }
}

fn measure(auxiliary: Auxiliary, state: &ProcessState) -> RandomMeasure {
    RandomMeasure { log_mass: auxiliary.log_mass, discount: state.discount }
}

/// ln of prod_{i<K} (concentration + i discount) / (concentration + 1)_{N - 1}.
fn log_rest(all: Occupancy, concentration: f64, discount: f64) -> f64 {
    let opened: f64 = (1..all.blocks).map(|k| (concentration + k as f64 * discount).ln()).sum();
    opened - ln_gamma_difference(concentration + 1.0, all.units.saturating_sub(1) as f64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parameters::vector;
    use crate::process::sticks::tests::check;

    fn bound(discount: f64, concentration: f64, counts: &[f64]) -> f64 {
        fixed(discount, concentration).allocate(counts, 0.0, Objective::Variational).bound
    }

    fn made(discount: Value, concentration: Value) -> Result<PitmanYor> {
        PitmanYor::new(&Parameters::from_pairs([("discount", discount), ("concentration", concentration)]))
    }

    fn fixed(discount: f64, concentration: f64) -> PitmanYor {
        made(Value::Number(discount), Value::Number(concentration)).expect("valid")
    }

    fn learned() -> PitmanYor {
        made(vector(vec![1.5, 2.5]), vector(vec![2.0, 1.5])).expect("valid")
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
                let process = fixed(d, alpha);
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
            .map(|process| process.0.concentration)
        };
        assert_eq!(of(0.5, Value::Absent, "nested"), Ok(Concentration::Fixed(1.0)));
        assert_eq!(of(0.5, Value::Number(-0.4), "nested"), Ok(Concentration::Fixed(-0.4)));
        let named = |result: Result<Concentration>| match result {
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
        assert!(matches!(of(0.5, vector(vec![1.0, 1.0]), "nested"), Ok(Concentration::Unknown(_))));
        assert_eq!(named(of(0.5, vector(vec![1.0]), "nested")), "concentration");
        assert_eq!(named(of(0.5, vector(vec![1.0, -1.0]), "nested")), "rate");
        let of_prior = |concentration: f64| made(vector(vec![1.5, 1.5]), Value::Number(concentration));
        assert!(of_prior(1e-300).is_ok());
        for refused in [0.0, -1e-7] {
            assert_eq!(named(of_prior(refused).map(|process| process.0.concentration)), "concentration");
        }
        let exponents = made(vector(vec![1.5, 0.0]), Value::Absent);
        assert_eq!(named(exponents.map(|process| process.0.concentration)), "b");
    }

    #[test]
    fn reported_values_restore_the_state() {
        let law = learned();
        let mut state = law.start(true).expect("positive");
        assert_eq!((state.concentration, state.discount), (2.0 / 1.5, 0.375));
        (state.concentration, state.discount) = (0.8, 0.3);
        let traced: Vec<f64> = law.traced(&state).into_iter().map(|(_, value)| value).collect();
        assert_eq!(traced, [0.8, 0.3]);
        assert_eq!(law.restored(&traced).expect("its own"), state.integrated());
        for foreign in [vec![], vec![0.8], vec![0.8, 1.0], vec![0.0, 0.3], vec![f64::NAN, 0.3], vec![0.8, 0.3, 0.1]] {
            assert!(law.restored(&foreign).is_err(), "{foreign:?}");
        }
        assert!(fixed(0.3, 1.0).restored(&[0.8]).is_err());
    }

    #[test]
    fn fits_refuse_priors_and_name_them() {
        let number = Value::Number;
        let gamma = made(number(0.5), vector(vec![1.0, 1.0])).expect("valid");
        let beta = made(vector(vec![1.0, 1.0]), number(1.0)).expect("valid");
        for (process, named) in [(gamma, "concentration"), (beta, "discount"), (learned(), "concentration")] {
            for objective in [Objective::Variational, Objective::Map, Objective::Ml] {
                match process.check_objective(objective) {
                    Err(Error::NotSupported { argument, allowed, .. }) => {
                        assert_eq!(argument, named);
                        assert!(allowed.contains("sb.sample"), "{allowed}");
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    #[test]
    fn the_furthest_state_is_above_the_means() {
        let law = learned();
        let state = law.start(false).expect("always");
        let far = law.furthest(state);
        // Gamma(2, 1.5) and Beta(1.5, 2.5): variances 2 / 1.5^2 and 3.75 / 80.
        assert!((far.concentration - (2.0 / 1.5 + 4.0 * 2.0_f64.sqrt() / 1.5)).abs() < 1e-12);
        assert_eq!(far.discount, Discount::LIMITS.1);
        let narrow = made(vector(vec![20.0, 180.0]), Value::Number(0.7)).expect("valid");
        let far = narrow.furthest(narrow.start(false).expect("always"));
        assert!((far.discount - (0.1 + 4.0 * (0.09_f64 / 201.0).sqrt())).abs() < 1e-12);
        assert_eq!(far.concentration, 0.7);
    }

    #[test]
    fn objectives_are_refused_with_the_reason() {
        let of = |discount, concentration, objective| {
            fixed(discount, concentration).check_objective(objective).err().map(|error| error.to_string())
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
            let process = fixed(d, above - d);
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
            let process = fixed(0.0, alpha);
            for objective in [Objective::Variational, Objective::Map, Objective::Ml] {
                prop_assert_eq!(process.allocate(&counts, 0.0, objective), other.allocate(&counts, 0.0, objective));
            }
        }
    }
}
