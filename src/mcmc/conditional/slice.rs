//! Slice sampling without truncation: of sticks (Walker 2007; Kalli, Griffin & Walker 2011), and of the jumps of a
//! random measure (Griffin & Walker 2011; Favaro & Teh 2013; mathematics 8.11).

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::likelihood;
use crate::local_step::Slices;
use crate::mcmc::conditional::field::Field;
use crate::mcmc::conditional::{COLLAPSED, ConditionalChains, DrawnWeights, LabelState, WeightDraws};
use crate::mcmc::{Chains, Sampler, Setup};
use crate::model::{Named, Specification};
use crate::parameters::{Parameters, Value};
use crate::process::{self, Jumps, MOST_ATOMS, Stick, Sticks, draw_sticks, log_weights};
use crate::registry::Entry;
use crate::rng::{Generator, Purpose, key};
use crate::special::ln_gamma;

/// Draws a level for each row, the weights and parameters of all components above the lowest one, then all labels.
#[derive(Debug, Clone, Copy, Default)]
pub struct Slice;

/// Levels of sticks fall by this factor. Smaller ones make fewer components without rows, and larger ones let rows move
/// to more components.
const FALL: f64 = 0.6;

/// Runs of the usual length that end with too many components, at most.
const MOST_ENDED: f64 = 0.01;
/// Number of sweeps of a run of the usual length.
const USUAL_SWEEPS: f64 = 6000.0;
/// If w is the weight of the last component that a sweep may have, about this many times `w^(1 - discount)` of the
/// sweeps end, because some cluster of one row has a smaller weight. The factor is rough, from a few runs of 40 rows.
const ENDED: f64 = 450.0;

impl Slice {
    /// Entry in the registry.
    pub const ENTRY: Entry = Entry::new("Slice");

    /// Builds the sampler, which has no parameters.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for any parameter.
    pub fn new(parameters: &Parameters) -> Result<Self> {
        parameters.check(&Self::ENTRY)?;
        Ok(Self)
    }
}

impl Sampler for Slice {
    fn check(&self, _n_rows: usize) -> Result<()> {
        Ok(())
    }

    /// Refuses models under which chains end early, or hardly move.
    fn check_model(&self, specification: &Specification) -> Result<()> {
        likelihood::check_closed(&specification.likelihood.name, &specification.likelihood.parameters)?;
        specification.law()?;
        weighing(&specification.process)?;
        let Named { name, parameters } = &specification.process;
        let refuse = |found: &str, reason: &str, other: &str| {
            let allowed = format!("{COLLAPSED}, or {other}");
            Err(Error::not_supported("sampler", format!("Slice with {found} of {name}"), reason, allowed))
        };
        match parameters.0.get("discount") {
            Some(Value::Array { .. }) => {
                refuse("a learned discount", "chains hardly change it, and most end early", "a given discount")
            }
            Some(Value::Number(discount)) if name == "NormalizedGeneralizedGamma" => {
                let mass = match parameters.0.get("mass") {
                    // A value that is hardly exceeded under its prior.
                    Some(Value::Array { data, .. }) => (data[0] + 3.0 * data[0].sqrt()) / data[1],
                    Some(Value::Number(mass)) => *mass,
                    _ => 1.0,
                };
                if ended(mass, *discount) <= MOST_ENDED {
                    return Ok(());
                }
                let reason =
                    format!("more than one of a hundred runs needs a sweep of more than {MOST_ATOMS} components");
                refuse(&format!("a discount of {discount} and a mass of {mass:.3}"), &reason, "smaller ones")
            }
            _ => Ok(()),
        }
    }

    fn chains<'a>(&'a mut self, setup: Setup<'a>) -> Result<Box<dyn Chains + 'a>> {
        let weighing = weighing(&setup.grounds.specification.process)?;
        let field = Field::new(setup.grounds, setup.rows)?;
        let starts = field.labels(setup.starts, setup.seed, setup.cancel)?;
        Ok(Box::new(ConditionalChains { field, weighing, starts }))
    }
}

/// Roughly the share of runs that end. The number of jumps above w is
/// `mass w^-discount / (discount Gamma(1 - discount))`.
fn ended(mass: f64, discount: f64) -> f64 {
    if discount == 0.0 {
        return 0.0;
    }
    let log_last = (mass.ln() - discount.ln() - ln_gamma(1.0 - discount) - (MOST_ATOMS as f64).ln()) / discount;
    USUAL_SWEEPS * ENDED * ((1.0 - discount) * log_last).exp()
}

/// How weights of a process are drawn.
fn weighing(named: &Named) -> Result<Box<dyn WeightDraws>> {
    let process = process::build(&named.name, &named.parameters)?;
    if let Some(process) = process.clone().sticks() {
        return Ok(Box::new(SlicedSticks(process)));
    }
    if let Some(process) = process.clone().jumps() {
        return Ok(Box::new(SlicedJumps(process)));
    }
    let found = format!("Slice with {}", named.name);
    let (reason, allowed) = if process.shares().is_some() {
        ("it has a fixed number of components, which need no slices", "BlockedGibbs()")
    } else {
        ("its weights are neither pieces of a stick nor jumps of a random measure", COLLAPSED)
    };
    Err(Error::not_supported("sampler", found, reason, allowed))
}

/// The error for more components than a sweep may have.
fn too_many(row: usize) -> Error {
    Error::numerical(
        None,
        format!(
            "the slice of row {row} is so low that a sweep needs more than {MOST_ATOMS} components; \
             use CollapsedGibbs() where it runs, a smaller concentration, discount or mass, or sticks of a larger mean"
        ),
    )
}

/// Sticks whose levels fall geometrically.
#[derive(Debug)]
struct SlicedSticks(Arc<dyn Sticks>);

impl WeightDraws for SlicedSticks {
    fn weigh(&self, state: &mut LabelState, draws: &mut Generator, key_of_sweep: u64) -> Result<DrawnWeights<'_>> {
        let process = self.0.as_ref();
        let n_labels = state.counts.len();
        process.update_given_counts(&state.counts, 0.0, &mut state.process, draws);
        let mut sticks = draw_sticks(process, &state.counts, 0.0, &state.process, draws);
        let log_level = |k: usize| (1.0 - FALL).ln() + k as f64 * FALL.ln();
        let log_levels = (0..n_labels).map(log_level).collect();
        let places = (0..n_labels as u32).collect();
        let mut slices = Slices { key: key(key_of_sweep, [Purpose::Slices as u64]), places, log_levels };
        let (log_slice, row) = slices.lowest(&state.labels);
        while log_level(sticks.len()) > log_slice || sticks.len() > MOST_ATOMS {
            if sticks.len() >= MOST_ATOMS {
                return Err(too_many(row));
            }
            sticks.push(Stick::draw(process.stick(sticks.len(), &state.process), draws));
            slices.log_levels.push(log_level(slices.log_levels.len()));
        }
        let log_weights = log_weights(&sticks).iter().zip(&slices.log_levels).map(|(w, level)| w - level).collect();
        let sources = (0..sticks.len()).map(|k| (k < n_labels).then_some(k)).collect();
        Ok(DrawnWeights { sources, log_weights, slices: Some(slices), sticks: Some((process, sticks)) })
    }

    fn n_components(&self) -> Option<usize> {
        None
    }
}

/// Jumps of a random measure, which are their own levels.
#[derive(Debug)]
struct SlicedJumps(Arc<dyn Jumps>);

impl WeightDraws for SlicedJumps {
    /// Jumps are drawn after u and learned parameters, for which they are integrated out, and before anything uses
    /// them.
    fn weigh(&self, state: &mut LabelState, draws: &mut Generator, key_of_sweep: u64) -> Result<DrawnWeights<'_>> {
        self.0.update(&state.sizes(), &mut state.process, draws);
        let measure = self.0.measure(&state.process);
        let log_u = state.process.auxiliary.map_or(0.0, |auxiliary| auxiliary.log_u);
        let log_levels = measure.draw_jumps(&state.counts, draws);
        let places = (0..state.counts.len() as u32).collect();
        let mut slices = Slices { key: key(key_of_sweep, [Purpose::Slices as u64]), places, log_levels };
        let (log_slice, row) = slices.lowest(&state.labels);
        let empty = measure.draw_empty_jumps(log_u, log_slice, draws).ok_or_else(|| too_many(row))?;
        let occupied = slices.log_levels.iter().enumerate().map(|(k, &jump)| (jump, Some(k)));
        let mut jumps: Vec<(f64, Option<usize>)> = occupied.chain(empty.into_iter().map(|jump| (jump, None))).collect();
        jumps.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (place, (_, label)) in (0..).zip(&jumps) {
            if let Some(label) = label {
                slices.places[*label] = place;
            }
        }
        slices.log_levels = jumps.iter().map(|(jump, _)| *jump).collect();
        let sources: Vec<_> = jumps.into_iter().map(|(_, label)| label).collect();
        // All components above the slice of a row are equally probable before its values are seen.
        Ok(DrawnWeights { log_weights: vec![0.0; sources.len()], sources, slices: Some(slices), sticks: None })
    }

    fn n_components(&self) -> Option<usize> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::DenseRows;
    use crate::grounds::Grounds;
    use crate::mcmc::conditional::tests::{check_sticks, large};
    use crate::mcmc::tests::cases::{gaussian, named, specification};
    use crate::parallel::Cancel;
    use crate::parameters::vector;
    use crate::rng::stream;
    use crate::special::ln_gamma;

    /// The number of jumps of a measure above `least` by the midpoint rule in their logarithm: the integral of
    /// `a (1 + u)^sigma / Gamma(1 - sigma) s^(-1 - sigma) e^-s`.
    fn expected_jumps(mass: f64, discount: f64, log_u: f64, least: f64) -> f64 {
        let rate = mass * log_u.exp().ln_1p().mul_add(discount, -ln_gamma(1.0 - discount)).exp();
        let (low, steps) = (least.ln(), 2_000);
        let width = (60.0_f64.ln() - low) / f64::from(steps);
        let middle = |step: i32| (low + (f64::from(step) + 0.5) * width).exp();
        (0..steps).map(middle).map(|s| rate * s.powf(-discount) * (-s).exp() * width).sum()
    }

    /// A chain that starts with a mass of one draws a mass near 100. The jumps without rows are those of the drawn
    /// mass: their number in all sweeps is within 6 standard deviations of its mean, which a Poisson number exceeds
    /// once in 500 million.
    #[test]
    fn jumps_follow_the_mass_that_the_sweep_has_drawn() {
        let mass = [("mass", vector(vec![1e6, 1e4])), ("discount", Value::Number(0.3))];
        let process = named("NormalizedGeneralizedGamma", mass);
        let values = [0.1, 0.4, -0.6, 2.1, 1.7];
        let rows = DenseRows::new(&values[..], 1);
        let cancel = Cancel::default();
        let grounds = Grounds::for_sampler(&specification(gaussian(1), process.clone()), &rows, &cancel);
        let grounds = grounds.expect("valid");
        let field = Field::new(&grounds, &rows).expect("complete");
        let jumps = process::build(&process.name, &process.parameters).expect("valid").jumps().expect("a measure");
        let weighing = SlicedJumps(jumps);
        let (mut found, mut expected) = (0.0, 0.0);
        for seed in 0..30 {
            let mut state = LabelState::new(&field, &[0, 0, 0, 1, 1]).expect("two clusters");
            state.process.concentration = 1.0;
            let drawn = weighing.weigh(&mut state, &mut stream(seed, Purpose::Sweeps, 0), seed).expect("few");
            found += drawn.sources.iter().filter(|source| source.is_none()).count() as f64;
            let (log_slice, _) = drawn.slices.expect("of every row").lowest(&state.labels);
            let (mass, log_u) = (state.process.concentration, state.process.auxiliary.expect("drawn").log_u);
            assert!((mass - 100.0).abs() < 5.0, "{mass}");
            expected += expected_jumps(mass, 0.3, log_u, log_slice.exp());
        }
        assert!((found - expected).abs() < 6.0 * expected.sqrt() && expected > 200.0, "{found} {expected}");
    }

    #[test]
    fn sticks_follow_the_concentration_that_the_sweep_has_drawn() {
        let process = large();
        let built = process::build(&process.name, &process.parameters).expect("valid");
        check_sticks(&SlicedSticks(built.sticks().expect("of a Dirichlet process")), &process);
    }
}
