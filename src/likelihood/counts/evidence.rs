//! Estimation of the base measures of counts and flags by evidence (mathematics 10.4): code common to the families.

use crate::error::Result;
use crate::likelihood::counts::family::{CountFamily, Counts};
use crate::likelihood::counts::repeats::Repeats;
use crate::likelihood::counts::tally::Tallied;
use crate::likelihood::evidence::{Caution, Evidence, GUARD, Given, Loosening, maximum_at};
use crate::parallel::map;
use crate::parameters::Parameters;
use crate::registry::Range;
use crate::special::{Last, digamma, digamma_difference, ln_gamma, sum_of_digamma_differences};

/// Range of estimated pseudo-counts.
pub const PSEUDO_COUNTS: Range = Range::closed(1e-6, 1e6);

impl<M: CountFamily> Counts<M> {
    fn of_parameters(&self, parameters: &Parameters) -> Result<M> {
        M::build(parameters, self.frame())
    }
}

impl<M: CountFamily> Evidence for Counts<M> {
    fn cautions(&self) -> Vec<(String, Caution)> {
        M::CAUTIONS.iter().map(|&(name, caution)| (name.to_owned(), caution)).collect()
    }

    fn divergence_of(&self, start: &Parameters) -> Result<f64> {
        Ok(self.family().divergence_of(&self.of_parameters(start)?))
    }

    fn estimate(&self, given: &Given<'_>) -> Result<Parameters> {
        let occupied = given.occupied();
        if occupied.is_empty() {
            return Ok(given.parameters.clone());
        }
        let (now, start) = (self.of_parameters(given.parameters)?, self.of_parameters(given.start)?);
        let components: Vec<Tallied<'_>> = occupied.iter().map(|component| self.tally().of(*component)).collect();
        Ok(now.estimate(&components, &start, given))
    }

    fn loose(&self, given: &Given<'_>, by: Loosening<'_>) -> Result<Option<Parameters>> {
        let is_free = by.certainty == 1.0 && M::PRIOR_COUNTS.iter().all(|name| given.is_free(name));
        let (true, Some(divisor)) = (is_free, by.common_divisor()) else { return Ok(None) };
        let mut found = given.parameters.clone();
        for name in M::PRIOR_COUNTS {
            found.map_numbers(name, |count| (count / divisor).max(PSEUDO_COUNTS.least));
        }
        Ok(Some(found))
    }
}

/// KL(Dir(start) || Dir(other)), nats.
pub fn dirichlet_divergence(start: &[f64], other: &[f64]) -> f64 {
    Repeats::none(start.len()).dirichlet_divergence(start, other)
}

impl Repeats {
    /// As the function of this name, of the pseudo-counts of the columns of the data.
    pub fn dirichlet_divergence(self, start: &[f64], other: &[f64]) -> f64 {
        let [total, other_total] = [start, other].map(|counts| self.sum(counts.iter().copied()));
        let of_total = digamma(total);
        let term = |(a, b): (f64, f64)| (a - b) * (digamma(a) - of_total) - ln_gamma(a) + ln_gamma(b);
        let mut last = Last::default();
        let each = start.iter().zip(other).map(|(a, b)| last.of((*a, *b), term));
        self.sum(each) + ln_gamma(total) - ln_gamma(other_total)
    }
}

/// Counts that share one symmetric Dirichlet base measure: the number of levels, and the positive counts of each
/// component.
pub struct SharedCounts {
    levels: f64,
    /// The sum of each component, and its positive counts.
    components: Vec<(f64, Vec<f64>)>,
}

impl SharedCounts {
    /// Collects the counts of all columns of the tallies.
    pub fn of<'a>(levels: f64, components: impl Iterator<Item = Tallied<'a>>) -> Self {
        let counted = |component: Tallied<'_>| {
            let counts: Vec<f64> = component.sums.iter().copied().filter(|s| *s > 0.0).collect();
            (counts.iter().sum(), counts)
        };
        Self { levels, components: components.map(counted).collect() }
    }
}

/// The pseudo-count, shared by all groups of counts, that maximises the evidence. `start` is its initial value.
pub fn pseudo_count(now: f64, start: f64, groups: &[SharedCounts]) -> f64 {
    let derivative = |b: f64| {
        let group = |group: &SharedCounts| {
            let levels = group.levels;
            let gain = |k: usize| {
                let (total, counts) = &group.components[k];
                sum_of_digamma_differences(b, counts) - levels * digamma_difference(levels * b, *total)
            };
            let guard = digamma(start) - digamma(levels * start) - digamma(b) + digamma(levels * b);
            map(group.components.len(), gain).into_iter().sum::<f64>() + GUARD * levels * guard
        };
        groups.iter().map(group).sum()
    };
    maximum_at(now, PSEUDO_COUNTS, derivative)
}
