//! The Dirichlet process under three truncations of the variational family (mathematics 2a to 2c).

use std::sync::Arc;

use crate::error::Result;
use crate::objective::Objective;
use crate::parameters::Parameters;
use crate::process::concentration::CONCENTRATION;
use crate::process::partitions::{foreign_values, gamma_weights};
use crate::process::random_measure::RandomMeasure;
use crate::process::slice::slice;
use crate::process::sticks::{break_sticks, modes, stick_source};
use crate::process::{
    Allocation, Auxiliary, Concentration, FreeSticks, Occupancy, Partitions, Process, ProcessState, Sticks,
    WeightSource, Weights, gamma_sticks, point, refused, tail,
};
use crate::registry::{DefaultValue, Entry, Feature, Parameter, ParameterKind, Range, Support};
use crate::rng::Draws;
use crate::special::{ln_gamma, ln_gamma_difference};

/// v_k ~ Beta(1, concentration), w_k = v_k prod_{l<k} (1 - v_l).
#[derive(Debug)]
pub struct DirichletProcess {
    concentration: Concentration,
    truncation: Truncation,
}

/// How the variational family is truncated at K components.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Truncation {
    /// q(z > K) = 0, and later sticks keep their prior (Hughes & Sudderth 2013, Eq. 4 and 10).
    Nested,
    /// The last stick is one: exact for a process that is itself truncated (Blei & Jordan 2006).
    Stick,
    /// Later components and sticks keep their prior but have responsibilities (Kurihara, Welling & Vlassis 2006).
    Tail,
}

const TRUNCATION: Parameter =
    Parameter::new("truncation", ParameterKind::Word(&["nested", "stick", "tail"]), DefaultValue::Word("nested"));

impl DirichletProcess {
    /// Entry in the registry.
    pub const ENTRY: Entry = Entry {
        faces: &["weights", "partitions", "sticks"],
        supports: &[Support { feature: Feature::Moves, unless: Some((TRUNCATION.name, "stick")) }],
        parameters: &[CONCENTRATION, TRUNCATION],
        ..Entry::new("DirichletProcess")
    };

    /// Builds the process from the parameters of [`DirichletProcess::ENTRY`].
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] naming the parameter, [`crate::Error::NotSupported`] for a tail with a prior
    /// on the concentration.
    pub fn new(parameters: &Parameters) -> Result<Self> {
        parameters.check(&Self::ENTRY)?;
        let concentration = Concentration::new(parameters)?;
        let truncation = match parameters.word(&TRUNCATION)? {
            "nested" => Truncation::Nested,
            "stick" => Truncation::Stick,
            _ => {
                concentration.fixed("DirichletProcess under truncation=\"tail\"", "the tail makes it not conjugate")?;
                Truncation::Tail
            }
        };
        Ok(Self { concentration, truncation })
    }

    fn n_free(&self, n_components: usize) -> usize {
        n_components - usize::from(self.truncation == Truncation::Stick && n_components > 0)
    }
}

impl Process for DirichletProcess {
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

impl Weights for DirichletProcess {
    fn bound(&self) -> &'static str {
        match self.truncation {
            Truncation::Nested => "nested",
            Truncation::Stick => "truncated_stick",
            Truncation::Tail => "tail",
        }
    }

    fn concentration(&self) -> Concentration {
        self.concentration
    }

    fn has_tail(&self) -> bool {
        self.truncation == Truncation::Tail
    }

    fn is_nested(&self) -> bool {
        self.truncation != Truncation::Stick
    }

    fn is_ordered(&self) -> bool {
        true
    }

    fn free_sticks(&self) -> Option<FreeSticks> {
        match self.concentration {
            Concentration::Fixed(concentration) if self.is_nested() => {
                Some(FreeSticks { discount: 0.0, concentration })
            }
            _ => None,
        }
    }

    fn check_objective(&self, objective: Objective) -> Result<()> {
        match (objective, self.concentration) {
            (Objective::Variational, _) => Ok(()),
            _ if self.has_tail() => Err(refused(
                objective,
                "truncation=\"tail\"",
                "the tail averages over its prior, of which a point estimate has none",
                "\"nested\" or \"stick\"",
            )),
            (_, Concentration::Unknown(_)) => Err(refused(
                objective,
                "a Gamma prior on the concentration",
                "only objective=\"variational\" has its posterior",
                "a number",
            )),
            (Objective::Map, Concentration::Fixed(value)) if value < 1.0 => Err(refused(
                objective,
                "a concentration below 1",
                "the density of a stick is infinite at its end",
                "a concentration of at least 1",
            )),
            _ => Ok(()),
        }
    }

    /// eta_k1 = 1 + N_k, eta_k0 = alpha + N_{>k}.
    fn allocate(&self, counts: &[f64], tail: f64, objective: Objective) -> Allocation {
        let n_free = self.n_free(counts.len());
        let alpha = match (objective, self.concentration) {
            (Objective::Ml, _) => return point::maximum_likelihood(counts),
            (_, Concentration::Unknown(prior)) => return gamma_sticks::allocate(counts, n_free, prior),
            (Objective::Map, Concentration::Fixed(alpha)) => return modes(counts, n_free, alpha),
            (Objective::Variational, Concentration::Fixed(alpha)) => alpha,
        };
        let broken = break_sticks(counts, tail, n_free, |_| (1.0, alpha));
        if self.has_tail() { tail::attach(broken, tail, alpha) } else { broken.allocation }
    }

    /// Sticks use the mean of an uncertain concentration.
    fn weight_source(&self, counts: &[f64], tail: f64) -> Result<WeightSource> {
        let posterior = self.allocate(counts, tail, Objective::Variational).concentration;
        let alpha = match (self.concentration, posterior) {
            (Concentration::Fixed(alpha), _) => alpha,
            (Concentration::Unknown(prior), posterior) => posterior.unwrap_or(prior).mean(),
        };
        Ok(stick_source(counts, tail, self.n_free(counts.len()), |_| (1.0, alpha)))
    }
}

/// The law of the untruncated process; `truncation` concerns the variational family only.
impl Partitions for DirichletProcess {
    fn start(&self, augmented: bool) -> Result<ProcessState> {
        let concentration = match self.concentration {
            Concentration::Fixed(value) => value,
            Concentration::Unknown(prior) => within(prior.mean()),
        };
        let auxiliary = augmented.then(|| Auxiliary { log_u: 0.0, log_mass: concentration.ln() });
        Ok(ProcessState { concentration, discount: 0.0, auxiliary })
    }

    fn traced(&self, state: &ProcessState) -> Vec<(&'static str, f64)> {
        match self.concentration {
            Concentration::Fixed(_) => Vec::new(),
            Concentration::Unknown(_) => vec![(CONCENTRATION.name, state.concentration)],
        }
    }

    fn restored(&self, traced: &[f64]) -> Result<ProcessState> {
        match (self.concentration, traced) {
            (Concentration::Fixed(_), []) => self.start(false),
            (Concentration::Unknown(_), &[concentration]) if Range::POSITIVE.has(concentration) => {
                Ok(ProcessState { concentration, discount: 0.0, auxiliary: None })
            }
            _ => Err(foreign_values()),
        }
    }

    fn log_prior(&self, state: &ProcessState) -> f64 {
        match self.concentration {
            Concentration::Fixed(_) => 0.0,
            Concentration::Unknown(prior) => prior.log_density(state.concentration),
        }
    }

    fn log_join(&self, size: usize, state: &ProcessState) -> f64 {
        measure(state).log_join(size)
    }

    fn log_open(&self, _: Occupancy, state: &ProcessState) -> f64 {
        state.concentration.ln()
    }

    fn log_block(&self, size: usize, state: &ProcessState) -> f64 {
        match state.auxiliary {
            Some(auxiliary) => measure(state).log_block(size, auxiliary.log_u),
            None => state.concentration.ln() + ln_gamma(size as f64),
        }
    }

    fn log_rest(&self, all: Occupancy, state: &ProcessState) -> f64 {
        match state.auxiliary {
            _ if all.units == 0 => 0.0,
            Some(auxiliary) => measure(state).log_rest(all.units, auxiliary.log_u),
            None => -ln_gamma_difference(state.concentration, all.units as f64),
        }
    }

    fn draw_weights(&self, sizes: &[usize], state: &ProcessState, draws: &mut dyn Draws) -> Vec<f64> {
        gamma_weights(sizes, 0.0, state.concentration, draws)
    }

    /// An exact draw through u: given u, the concentration has a Gamma distribution (mathematics 8.4, item 2).
    fn update(&self, sizes: &[usize], state: &mut ProcessState, draws: &mut dyn Draws) {
        if state.auxiliary.is_none() && matches!(self.concentration, Concentration::Fixed(_)) {
            return;
        }
        let all = Occupancy::of(sizes);
        let log_u = measure(state).draw(all, 0.0, draws);
        if let Concentration::Unknown(prior) = self.concentration {
            let log_rate = (prior.rate + measure(state).exponent(log_u)).ln();
            state.concentration = within((draws.log_gamma(prior.shape + all.blocks as f64) - log_rate).exp());
        }
        let log_mass = state.concentration.ln();
        state.auxiliary = state.auxiliary.map(|_| Auxiliary { log_u, log_mass });
    }
}

impl Sticks for DirichletProcess {
    fn stick(&self, _: usize, state: &ProcessState) -> (f64, f64) {
        (1.0, state.concentration)
    }

    /// The density is p(a) prod_k a Gamma(a + N_{>k}) / Gamma(1 + a + N_k + N_{>k}), log-concave in ln a.
    fn update_given_counts(&self, counts: &[f64], behind: f64, state: &mut ProcessState, draws: &mut dyn Draws) {
        let Concentration::Unknown(prior) = self.concentration else { return };
        let mut left = behind + counts.iter().sum::<f64>();
        let pairs: Vec<(f64, f64)> = counts
            .iter()
            .map(|count| {
                left -= count;
                (*count, left)
            })
            .collect();
        let log_density = |log: f64| {
            let alpha = log.exp();
            // The fraction a / (a + N_{>k}) is one for the last stick, also where a underflows.
            let of_stick = |(count, after): &(f64, f64)| {
                let fraction = if *after > 0.0 { log - (alpha + after).ln() } else { 0.0 };
                fraction - ln_gamma_difference(1.0 + alpha + after, *count)
            };
            prior.shape * log - prior.rate * alpha + pairs.iter().map(of_stick).sum::<f64>()
        };
        state.concentration = within(slice(log_density, state.concentration.ln(), 1.0, draws).exp());
    }

    /// Four standard deviations above the mean of the prior.
    fn furthest(&self, state: ProcessState) -> ProcessState {
        let Concentration::Unknown(prior) = self.concentration else { return state };
        ProcessState { concentration: within(prior.mean() + 4.0 * prior.mean() / prior.shape.sqrt()), ..state }
    }
}

/// Clamps to the concentrations that a process may have.
fn within(concentration: f64) -> f64 {
    concentration.clamp(Range::POSITIVE.least, Range::POSITIVE.greatest)
}

fn measure(state: &ProcessState) -> RandomMeasure {
    RandomMeasure { log_mass: state.concentration.ln(), discount: 0.0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::process::Gamma;
    use crate::process::sticks::tests::check;
    use crate::special::{digamma, ln_beta, log_sum_exp};

    fn process(truncation: Truncation, alpha: f64) -> DirichletProcess {
        DirichletProcess { concentration: Concentration::Fixed(alpha), truncation }
    }

    fn allocate(truncation: Truncation, alpha: f64, counts: &[f64], tail: f64) -> Allocation {
        process(truncation, alpha).allocate(counts, tail, Objective::Variational)
    }

    fn bound(truncation: Truncation, alpha: f64, counts: &[f64]) -> f64 {
        allocate(truncation, alpha, counts, 0.0).bound
    }

    fn some_counts() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(0.01_f64..50.0, 1..12)
    }

    const ALL: [Truncation; 3] = [Truncation::Nested, Truncation::Stick, Truncation::Tail];

    /// Property 3 of mathematics 7 in the form of 2a.3: for hard counts, the sum over orders of exp L* with the gap
    /// factors is Ewens' formula.
    #[test]
    fn the_orders_sum_to_the_ewens_formula() {
        let alpha = 1.7;
        let sizes = [3.0, 1.0, 4.0];
        let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        let total: f64 = orders
            .iter()
            .map(|order| {
                let counts = order.map(|i| sizes[i]);
                let gaps: f64 =
                    (0..3).map(|i| counts[i..].iter().sum::<f64>()).map(|from| (alpha + from) / from).product();
                bound(Truncation::Nested, alpha, &counts).exp() * gaps
            })
            .sum();
        // alpha^3 Gamma(alpha) / Gamma(alpha + 8) * 2! 0! 3!
        let rising: f64 = (0..8).map(|i| alpha + f64::from(i)).product();
        assert!((total - alpha.powi(3) / rising * 12.0).abs() < 1e-12 * total);
    }

    /// Mathematics 2b: the process itself is truncated, so the probabilities of all hard assignments to K components
    /// sum to one.
    #[test]
    fn truncated_sticks_give_every_assignment_its_probability() {
        let (n, k) = (5_u32, 3_u32);
        let total: f64 = (0..k.pow(n))
            .map(|code| {
                let mut counts = [0.0; 3];
                (0..n).for_each(|row| counts[(code / k.pow(row) % k) as usize] += 1.0);
                bound(Truncation::Stick, 0.8, &counts).exp()
            })
            .sum();
        assert!((total - 1.0).abs() < 1e-12, "{total}");
    }

    /// Property 22: the closed form equals the sum over 4000 components beyond K.
    #[test]
    fn the_tail_is_a_sum_over_components() {
        let counts = [4.0, 1.5];
        for (alpha, tail) in [(0.3, 0.0), (1.0, 2.0), (20.0, 0.7)] {
            let found = allocate(Truncation::Tail, alpha, &counts, tail);
            let (e_v, e_0) = (digamma(1.0) - digamma(1.0 + alpha), digamma(alpha) - digamma(1.0 + alpha));
            let log_left: f64 = [(5.0, alpha + 1.5 + tail), (2.5, alpha + tail)]
                .iter()
                .map(|(on, off)| digamma(*off) - digamma(on + off))
                .sum();
            let each: Vec<f64> = (0..4000).map(|j| log_left + e_v + f64::from(j) * e_0).collect();
            let weight = found.tail_log_weight.expect("it has a tail");
            assert!((log_sum_exp(&each) - weight).abs() < 1e-11, "{alpha}");
            // Their stick terms and the entropy of the geometric law add up to the bound's term.
            let shares: Vec<f64> = each.iter().map(|w| (w - weight).exp()).collect();
            let inside: f64 =
                shares.iter().zip(&each).map(|(r, w)| if *r > 0.0 { r * (w - r.ln()) } else { 0.0 }).sum();
            assert!((inside - weight).abs() < 1e-11);
        }
    }

    /// Property 22: the tail loses all weight as the concentration goes to zero.
    /// The mean of ln a given the sizes of two components, by the rectangle rule: 60 000 draws, of which every tenth is
    /// as good as independent, are within 5 standard errors of it, and none is far below all others.
    #[test]
    fn a_concentration_given_counts_has_its_posterior() {
        let prior = Gamma { shape: 2.0, rate: 2.0 };
        let process = DirichletProcess { concentration: Concentration::Unknown(prior), truncation: Truncation::Nested };
        let counts = [20.0, 20.0];
        let weight = |alpha: f64| {
            let sticks =
                alpha.powi(2) / ((20.0 + alpha) * (0..20).map(|i| 21.0 + alpha + f64::from(i)).product::<f64>());
            alpha.powi(2) * (-2.0 * alpha).exp() * sticks
                / (alpha * (0..20).map(|i| 1.0 + alpha + f64::from(i)).product::<f64>())
        };
        let points: Vec<f64> = (-1000..400).map(|i| f64::from(i) / 100.0).collect();
        let total: f64 = points.iter().map(|log| weight(log.exp())).sum();
        let moment = |power: i32| points.iter().map(|log| log.powi(power) * weight(log.exp())).sum::<f64>() / total;
        let (expected, deviation) = (moment(1), (moment(2) - moment(1).powi(2)).sqrt());
        let mut state = process.start(false).expect("learned");
        let mut generator = crate::rng::stream(9, crate::rng::Purpose::Draws, 0);
        let draws: Vec<f64> = (0..60_000)
            .map(|_| {
                process.update_given_counts(&counts, 0.0, &mut state, &mut generator);
                state.concentration.ln()
            })
            .collect();
        let mean = draws.iter().sum::<f64>() / 6e4;
        assert!((mean - expected).abs() < 5.0 * deviation / 6000.0_f64.sqrt(), "{mean} {expected} {deviation}");
        assert!(draws.iter().all(|&log| log > -14.0), "a draw that far has a probability below 1e-10");
    }

    #[test]
    fn no_concentration_leaves_no_tail() {
        let found = allocate(Truncation::Tail, 1e-9, &[4.0, 1.5], 0.0);
        assert!(found.tail_log_weight.expect("it has a tail") < -1e8);
        assert_eq!(found.bound, bound(Truncation::Nested, 1e-9, &[4.0, 1.5]));
    }

    #[test]
    fn objectives_are_refused_with_the_reason() {
        let unknown = Concentration::Unknown(Gamma { shape: 1.0, rate: 1.0 });
        let of = |concentration, truncation, objective| {
            let refused = DirichletProcess { concentration, truncation }.check_objective(objective);
            refused.err().map(|error| error.to_string())
        };
        assert_eq!(of(unknown, Truncation::Nested, Objective::Variational), None);
        assert_eq!(of(Concentration::Fixed(1.0), Truncation::Stick, Objective::Map), None);
        assert_eq!(of(Concentration::Fixed(0.1), Truncation::Nested, Objective::Ml), None);
        for (concentration, truncation, objective, reason) in [
            (Concentration::Fixed(0.9), Truncation::Nested, Objective::Map, "at least 1"),
            (unknown, Truncation::Stick, Objective::Map, "use a number"),
            (unknown, Truncation::Nested, Objective::Ml, "use a number"),
            (Concentration::Fixed(2.0), Truncation::Tail, Objective::Map, "averages over its prior"),
        ] {
            assert!(of(concentration, truncation, objective).is_some_and(|said| said.contains(reason)), "{reason}");
        }
    }

    proptest! {
        #[test]
        fn the_collapsed_bound_is_the_general_one(
            counts in prop::collection::vec(0.0_f64..50.0, 1..12), alpha in 0.05_f64..20.0, tail in 0.0_f64..9.0,
        ) {
            for truncation in ALL {
                let tail = if truncation == Truncation::Tail { tail } else { 0.0 };
                let allocation = allocate(truncation, alpha, &counts, tail);
                check(&allocation, &counts, tail)?;
                prop_assert!(allocation.divergence > -1e-9);
            }
        }

        /// Property 11: an empty component at the end changes nothing. At position j it costs ln(alpha / (alpha +
        /// N_{>=j})).
        #[test]
        fn an_empty_component_at_the_end_is_free(
            counts in some_counts(), alpha in 0.05_f64..20.0, position in 0_usize..12,
        ) {
            let before = bound(Truncation::Nested, alpha, &counts);
            let position = position % (counts.len() + 1);
            let behind: f64 = counts[position..].iter().sum();
            let mut longer = counts.clone();
            longer.insert(position, 0.0);
            let after = bound(Truncation::Nested, alpha, &longer);
            let cost = (alpha / (alpha + behind)).ln();
            prop_assert!((after - before - cost).abs() < 1e-9 * (1.0 + before.abs()));
        }

        /// Property 11: if the last stick is one, an empty component at the end turns it into a free stick (mathematics
        /// 2b; erratum 6).
        #[test]
        fn an_empty_truncated_stick_costs_its_gain(counts in some_counts(), alpha in 0.05_f64..20.0) {
            let longer = [&counts[..], &[0.0]].concat();
            let (before, after) = (bound(Truncation::Stick, alpha, &counts), bound(Truncation::Stick, alpha, &longer));
            let cost = ln_beta(1.0 + counts[counts.len() - 1], alpha) - ln_beta(1.0, alpha);
            prop_assert!((after - before - cost).abs() < 1e-9 * (1.0 + before.abs()));
            prop_assert!(cost < 0.0);
            // Erratum 6: this bound exceeds the bound of the untruncated process, so the two must not be compared.
            let nested = bound(Truncation::Nested, alpha, &counts);
            prop_assert!((before - nested + cost).abs() < 1e-9 * (1.0 + before.abs()));
        }

        /// Property 12: decreasing counts are optimal, with any mass in the tail.
        #[test]
        fn decreasing_order_is_best(
            mut counts in prop::collection::vec(0.0_f64..50.0, 1..12).prop_shuffle(), alpha in 0.05_f64..20.0,
            tail in 0.0_f64..50.0,
        ) {
            let shuffled = counts.clone();
            counts.sort_by(|a, b| b.total_cmp(a));
            for (truncation, alpha, tail) in
                [
                    (Truncation::Nested, alpha, 0.0),
                    (Truncation::Tail, alpha, tail),
                    (Truncation::Stick, alpha.min(1.0), 0.0),
                ]
            {
                let any = allocate(truncation, alpha, &shuffled, tail).bound;
                let sorted = allocate(truncation, alpha, &counts, tail).bound;
                prop_assert!(sorted >= any - 1e-10 * (1.0 + any.abs()), "{:?}", truncation);
            }
        }
    }

    /// With truncated sticks and a concentration above 1 the last component, which has no stick, should not be the
    /// smallest. A run must therefore compare bounds before it reorders.
    #[test]
    fn truncated_sticks_may_want_another_order() {
        let (falling, rising) = ([10.0, 1.0], [1.0, 10.0]);
        assert!(bound(Truncation::Stick, 3.0, &falling) < bound(Truncation::Stick, 3.0, &rising));
        assert!(bound(Truncation::Stick, 0.5, &falling) > bound(Truncation::Stick, 0.5, &rising));
    }
}
