//! The Dirichlet process, and sticks of any Beta prior, under three truncations of the variational family (mathematics
//! 2a to 2c).

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::objective::Objective;
use crate::parameters::Parameters;
use crate::process::concentration::{CONCENTRATION, USUAL};
use crate::process::partitions::{foreign_values, gamma_weights};
use crate::process::random_measure::RandomMeasure;
use crate::process::slice::slice;
use crate::process::sticks::{break_sticks, modes, stick_source};
use crate::process::{
    Allocation, Auxiliary, Concentration, FreeSticks, Gamma, Hyperparameters, Occupancy, Partitions, Process,
    ProcessState, Sticks, WeightSource, Weights, gamma_sticks, point, refused, tail,
};
use crate::registry::{DefaultValue, Entry, Feature, Parameter, ParameterKind, Range, Support};
use crate::rng::Draws;
use crate::special::{ln_gamma, ln_gamma_difference};

/// w_k = v_k prod_{l<k} (1 - v_l), with v_k ~ Beta(1, concentration) or v_k ~ Beta(a, b).
#[derive(Debug)]
pub struct DirichletProcess {
    prior: SticksPrior,
    truncation: Truncation,
}

/// The prior of all sticks.
#[derive(Debug, Clone, Copy, PartialEq)]
enum SticksPrior {
    /// Beta(a, b) (Kurihara, Welling & Vlassis 2006, section 5). With a = 1 this is a Dirichlet process.
    Beta(f64, f64),
    /// Beta(1, concentration) with a prior of the concentration.
    Learned(Gamma),
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
const STICKS: Parameter = Parameter::new("sticks", ParameterKind::Pair(Range::closed(1e-3, 1e6)), DefaultValue::Data);

impl DirichletProcess {
    /// Entry in the registry.
    pub const ENTRY: Entry = Entry {
        faces: &["weights", "partitions", "sticks"],
        supports: &[Support { feature: Feature::Moves, unless: Some((TRUNCATION.name, "stick")) }],
        parameters: &[CONCENTRATION, TRUNCATION, STICKS],
        ..Entry::new("DirichletProcess")
    };

    /// Builds the process from the parameters of [`DirichletProcess::ENTRY`].
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] naming the parameter, or `sticks` beside a concentration other than the default;
    /// [`Error::NotSupported`] for a tail with a prior on the concentration.
    pub fn new(parameters: &Parameters) -> Result<Self> {
        parameters.check(&Self::ENTRY)?;
        let concentration = Concentration::new(parameters)?;
        let prior = match parameters.pair(&STICKS)? {
            None => match concentration {
                Concentration::Fixed(value) => SticksPrior::Beta(1.0, value),
                Concentration::Unknown(prior) => SticksPrior::Learned(prior),
            },
            Some((a, b)) if concentration == Concentration::Fixed(USUAL) => SticksPrior::Beta(a, b),
            Some((a, b)) => {
                let beside = match concentration {
                    Concentration::Fixed(value) => format!("concentration={value}"),
                    Concentration::Unknown(_) => "a prior on the concentration".to_owned(),
                };
                let found = format!("({a}, {b}) beside {beside}");
                return Err(Error::invalid(STICKS.name, found, "given without a concentration, or None"));
            }
        };
        let truncation = match parameters.word(&TRUNCATION)? {
            "nested" => Truncation::Nested,
            "stick" => Truncation::Stick,
            _ => {
                concentration.fixed("DirichletProcess under truncation=\"tail\"", "the tail makes it not conjugate")?;
                Truncation::Tail
            }
        };
        Ok(Self { prior, truncation })
    }

    /// The prior of the concentration, if it is learned.
    fn learned(&self) -> Option<Gamma> {
        match self.prior {
            SticksPrior::Learned(prior) => Some(prior),
            SticksPrior::Beta(..) => None,
        }
    }

    /// The prior of the sticks at a value of the concentration, which matters if it is learned.
    fn sticks_at(&self, concentration: f64) -> (f64, f64) {
        match self.prior {
            SticksPrior::Beta(a, b) => (a, b),
            SticksPrior::Learned(_) => (1.0, concentration),
        }
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
        if self.concentration().is_some() { Some(self) } else { None }
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

    fn concentration(&self) -> Option<Concentration> {
        match self.prior {
            SticksPrior::Learned(prior) => Some(Concentration::Unknown(prior)),
            SticksPrior::Beta(a, b) => (a == 1.0).then_some(Concentration::Fixed(b)),
        }
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
        match self.prior {
            SticksPrior::Beta(1.0, concentration) if self.is_nested() => {
                Some(FreeSticks { discount: 0.0, concentration })
            }
            _ => None,
        }
    }

    fn check_objective(&self, objective: Objective) -> Result<()> {
        match (objective, self.prior) {
            (Objective::Variational, _) => Ok(()),
            _ if self.has_tail() => Err(refused(
                objective,
                "truncation=\"tail\"",
                "the tail averages over its prior, of which a point estimate has none",
                "\"nested\" or \"stick\"",
            )),
            (_, SticksPrior::Learned(_)) => Err(refused(
                objective,
                "a Gamma prior on the concentration",
                "only objective=\"variational\" has its posterior",
                "a number",
            )),
            (Objective::Map, SticksPrior::Beta(a, b)) if a < 1.0 || b < 1.0 => {
                let of_sticks = ["sticks with a number below 1", "sticks of which both numbers are at least 1"];
                let of_concentration = ["a concentration below 1", "a concentration of at least 1"];
                let [found, allowed] = if a == 1.0 { of_concentration } else { of_sticks };
                Err(refused(objective, found, "the density of a stick is infinite at its end", allowed))
            }
            _ => Ok(()),
        }
    }

    /// eta_k1 = a + N_k, eta_k0 = b + N_{>k}.
    fn allocate(&self, counts: &[f64], tail: f64, objective: Objective) -> Allocation {
        let n_free = self.n_free(counts.len());
        let prior = match (objective, self.prior) {
            (Objective::Ml, _) => return point::maximum_likelihood(counts),
            (_, SticksPrior::Learned(prior)) => return gamma_sticks::allocate(counts, n_free, prior),
            (Objective::Map, SticksPrior::Beta(a, b)) => return modes(counts, n_free, (a, b)),
            (Objective::Variational, SticksPrior::Beta(a, b)) => (a, b),
        };
        let broken = break_sticks(counts, tail, n_free, |_| prior);
        if self.has_tail() { tail::attach(broken, tail, prior) } else { broken.allocation }
    }

    /// Sticks use the mean of an uncertain concentration.
    fn weight_source(&self, counts: &[f64], tail: f64) -> Result<WeightSource> {
        let posterior = self.allocate(counts, tail, Objective::Variational).concentration;
        let sticks = self.sticks_at(posterior.map_or(USUAL, Gamma::mean));
        Ok(stick_source(counts, tail, self.n_free(counts.len()), |_| sticks))
    }
}

impl Hyperparameters for DirichletProcess {
    fn start(&self, augmented: bool) -> Result<ProcessState> {
        let concentration = self.sticks_at(self.learned().map_or(USUAL, |prior| within(prior.mean()))).1;
        let auxiliary = augmented.then(|| Auxiliary { log_u: 0.0, log_mass: concentration.ln() });
        Ok(ProcessState { concentration, discount: 0.0, auxiliary })
    }

    fn traced(&self, state: &ProcessState) -> Vec<(&'static str, f64)> {
        self.learned().map(|_| (CONCENTRATION.name, state.concentration)).into_iter().collect()
    }

    fn restored(&self, traced: &[f64]) -> Result<ProcessState> {
        match (self.learned(), traced) {
            (None, []) => self.start(false),
            (Some(_), &[concentration]) if Range::POSITIVE.has(concentration) => {
                Ok(ProcessState { concentration, discount: 0.0, auxiliary: None })
            }
            _ => Err(foreign_values()),
        }
    }

    fn log_prior(&self, state: &ProcessState) -> f64 {
        self.learned().map_or(0.0, |prior| prior.log_density(state.concentration))
    }
}

/// The law of the untruncated Dirichlet process; `truncation` concerns the variational family only.
impl Partitions for DirichletProcess {
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
        if state.auxiliary.is_none() && self.learned().is_none() {
            return;
        }
        let all = Occupancy::of(sizes);
        let log_u = measure(state).draw(all, 0.0, draws);
        if let Some(prior) = self.learned() {
            let log_rate = (prior.rate + measure(state).exponent(log_u)).ln();
            state.concentration = within((draws.log_gamma(prior.shape + all.blocks as f64) - log_rate).exp());
        }
        let log_mass = state.concentration.ln();
        state.auxiliary = state.auxiliary.map(|_| Auxiliary { log_u, log_mass });
    }
}

impl Sticks for DirichletProcess {
    fn stick(&self, _: usize, state: &ProcessState) -> (f64, f64) {
        self.sticks_at(state.concentration)
    }

    /// The density is p(a) prod_k a Gamma(a + N_{>k}) / Gamma(1 + a + N_k + N_{>k}), log-concave in ln a.
    fn update_given_counts(&self, counts: &[f64], behind: f64, state: &mut ProcessState, draws: &mut dyn Draws) {
        let Some(prior) = self.learned() else { return };
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
        let Some(prior) = self.learned() else { return state };
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
mod tests;
