//! The concentration and the discount of a process, each a number or learned, as chains see them.

use crate::error::Result;
use crate::process::partitions::foreign_values;
use crate::process::{Concentration, Discount, ProcessState};
use crate::registry::Range;

/// A concentration, or the mass of a random measure, and a discount.
#[derive(Debug, Clone, Copy)]
pub(super) struct TwoParameters {
    /// The concentration or the mass.
    pub concentration: Concentration,
    /// The discount.
    pub discount: Discount,
    /// The name of the first parameter, as the user writes it.
    pub name: &'static str,
    /// The range of the first parameter if it is learned.
    pub range: Range,
}

impl TwoParameters {
    /// The given numbers, and the prior means of what is learned: concentration and discount.
    pub fn start(self) -> (f64, f64) {
        let concentration = match self.concentration {
            Concentration::Fixed(value) => value,
            Concentration::Unknown(prior) => self.within(prior.mean()),
        };
        let discount = match self.discount {
            Discount::Fixed(value) => value,
            Discount::Unknown(prior) => prior.mean().clamp(Discount::LIMITS.0, Discount::LIMITS.1),
        };
        (concentration, discount)
    }

    /// Clamps to the range of a learned concentration.
    pub fn within(self, concentration: f64) -> f64 {
        concentration.clamp(self.range.least, self.range.greatest)
    }

    /// See [`crate::process::Partitions::traced`].
    pub fn traced(self, state: &ProcessState) -> Vec<(&'static str, f64)> {
        let concentration = self.learns_concentration().then_some((self.name, state.concentration));
        let discount = self.learns_discount().then_some((Discount::NAME, state.discount));
        concentration.into_iter().chain(discount).collect()
    }

    /// Puts traced values into a state.
    ///
    /// # Errors
    /// [`crate::Error::Format`] if they are not those of the process.
    pub fn restored(self, mut state: ProcessState, traced: &[f64]) -> Result<ProcessState> {
        let mut values = traced.iter().copied();
        if self.learns_concentration() {
            let allowed = |&value: &f64| value == self.within(value);
            state.concentration = values.next().filter(allowed).ok_or_else(foreign_values)?;
        }
        if self.learns_discount() {
            let allowed = |discount: &f64| (Discount::LIMITS.0..=Discount::LIMITS.1).contains(discount);
            state.discount = values.next().filter(allowed).ok_or_else(foreign_values)?;
        }
        if values.next().is_none() { Ok(state) } else { Err(foreign_values()) }
    }

    /// See [`crate::process::Partitions::log_prior`].
    pub fn log_prior(self, state: &ProcessState) -> f64 {
        let concentration = match self.concentration {
            Concentration::Fixed(_) => 0.0,
            Concentration::Unknown(prior) => prior.log_density(state.concentration),
        };
        concentration
            + match self.discount {
                Discount::Fixed(_) => 0.0,
                Discount::Unknown(prior) => prior.log_density(state.discount),
            }
    }

    fn learns_concentration(self) -> bool {
        matches!(self.concentration, Concentration::Unknown(_))
    }

    fn learns_discount(self) -> bool {
        matches!(self.discount, Discount::Unknown(_))
    }
}

/// Each size above 1, with the number of blocks of that size.
pub(super) fn counted(sizes: &[usize]) -> Vec<(f64, f64)> {
    let mut sorted: Vec<usize> = sizes.iter().copied().filter(|&size| size > 1).collect();
    sorted.sort_unstable();
    sorted.chunk_by(|a, b| a == b).map(|same| (same[0] as f64, same.len() as f64)).collect()
}
