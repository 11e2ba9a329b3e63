//! Responsibilities: at most `L` (component, value) pairs per unit. Dense is `L = K`, hard is `L = 1`.

mod classes;
mod collects;
mod draw;
mod insert;
mod near;
mod offers;
mod row;
mod top_l;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::real::Real;

pub use draw::{DrawBlock, DrawSpace, far};
pub use offers::Offers;
pub use row::RowBest;
pub use top_l::{TopL, largest};

/// The responsibilities of consecutive units: `width` pairs per unit.
#[derive(Debug, Clone, PartialEq)]
pub struct Responsibilities {
    /// Number of pairs per unit.
    pub width: usize,
    /// Positions of the components, (n, width).
    pub components: Vec<u32>,
    /// Responsibilities, (n, width); pairs with value 0 are ignored.
    pub values: Vec<f64>,
    /// Log-sum-exp of the kept log weights, (n,), nats.
    pub log_normalizers: Vec<f64>,
}

impl Responsibilities {
    /// Zero responsibilities of `n` units.
    pub fn zeros(n: usize, width: usize) -> Self {
        Self { width, components: vec![0; n * width], values: vec![0.0; n * width], log_normalizers: vec![0.0; n] }
    }

    /// Resizes to `n` units; their contents are undefined.
    pub fn resize(&mut self, n: usize) {
        self.components.resize(n * self.width, 0);
        self.values.resize(n * self.width, 0.0);
        self.log_normalizers.resize(n, 0.0);
    }

    /// Number of units.
    pub fn len(&self) -> usize {
        self.log_normalizers.len()
    }

    /// Whether there are no units.
    pub fn is_empty(&self) -> bool {
        self.log_normalizers.is_empty()
    }

    /// The component with the largest responsibility of unit `unit`; ties go to the lower one.
    pub fn best(&self, unit: usize) -> u32 {
        let slots = unit * self.width..(unit + 1) * self.width;
        best_of(&self.components[slots.clone()], &self.values[slots])
    }
}

/// The component with the largest responsibility of one unit; ties go to the lower one.
pub(crate) fn best_of(components: &[u32], values: &[f64]) -> u32 {
    let (mut best, mut leader) = (components[0], values[0]);
    for (&component, &value) in components.iter().zip(values).skip(1) {
        if value > leader || (value == leader && component < best) {
            (best, leader) = (component, value);
        }
    }
    best
}

/// The error for a row without any finite log weight: the row is not finite itself, or too far away.
pub(crate) fn no_finite_weight<F: Real>(row_number: usize, row: &[F]) -> Error {
    if let Some(column) = row.iter().position(|value| !value.is_finite()) {
        // Rows of predictions were checked before. A row with such a value belongs to a fit and has changed since.
        return Error::invalid("data", format!("{} in row {row_number}, column {column}", row[column]), "finite");
    }
    Error::numerical(
        None,
        format!(
            "row {row_number} is so far from every component that its log weights overflow {}; \
             rescale the data or remove the row",
            F::NAME
        ),
    )
}

/// Maximum number of components for [`Sparsity::Auto`].
const AUTO: usize = 16;
/// Maximum number for [`Sparsity::Auto`] for the words of documents.
const AUTO_OF_WORDS: usize = 8;

/// Number of components kept per unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sparsity {
    /// All components.
    Dense,
    /// At most 16. On the image and digit data measured, the dropped part is below 1e-5 nats per unit, even with 8.
    /// Where many components overlap, moves need free slots: a row without a free slot cannot be split between parts.
    Auto,
    /// This number.
    Limited(usize),
}

impl Sparsity {
    /// Refuses a number that is not between 1 and `n_components`, which the message calls `what`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`].
    pub fn check(self, n_components: usize, what: &str) -> Result<()> {
        match self {
            Self::Limited(width) if !(1..=n_components).contains(&width) => {
                let allowed = format!("at most {n_components}, the number of {what}, or None for all of them");
                Err(Error::invalid("sparsity", width, allowed))
            }
            _ => Ok(()),
        }
    }

    /// Returns the setting for the words of documents, where "auto" keeps 8 of `n_components`.
    #[must_use]
    pub fn of_words(self, n_components: usize) -> Self {
        if self == Self::Auto { Self::Limited(n_components.min(AUTO_OF_WORDS)) } else { self }
    }

    /// The number of pairs that a unit keeps, given `n_components`.
    pub fn clamp(self, n_components: usize) -> usize {
        match self {
            Self::Dense => n_components,
            Self::Auto => n_components.min(AUTO),
            Self::Limited(width) => n_components.min(width),
        }
    }
}

#[cfg(test)]
mod tests;
