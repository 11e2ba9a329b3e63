//! Places for the components of a fit in the form that the kernels read.

use std::any::Any;
use std::fmt;
use std::sync::OnceLock;

use crate::error::Result;
use crate::model::Model;
use crate::process::Allocation;
use crate::scoring::Scorer;
use crate::simd::Scalar;

/// Packed components, by the type of the rows. They are derived from the fit and change no result, so a clone starts
/// without them and files do not store them.
#[derive(Default)]
pub struct Packs {
    single: OnceLock<PackedFit<f32>>,
    double: OnceLock<PackedFit<f64>>,
}

impl Packs {
    /// Returns the place for rows of type `F`.
    pub(super) fn of<F: Scalar>(&self) -> Option<&OnceLock<PackedFit<F>>> {
        let both: [&dyn Any; 2] = [&self.single, &self.double];
        both.into_iter().find_map(<dyn Any>::downcast_ref)
    }
}

impl Clone for Packs {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl fmt::Debug for Packs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packs").finish_non_exhaustive()
    }
}

/// The quantity that a scorer computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prediction {
    /// E log w_k + E log p(x | phi_k).
    Components,
    /// The same, followed by the tail if there is one.
    WithTail,
    /// The posterior predictive, followed by the prior with the left-over weight, if that is positive, and by the
    /// background.
    Predictive,
    /// The same without the background.
    PredictiveOfComponents,
    /// Densities at point estimates, whose weights sum to one.
    PlugIn,
}

/// The components for rows of type `F`.
pub(super) struct PackedFit<F: Scalar> {
    /// The model.
    pub model: Model<F>,
    /// q of the weights.
    pub allocation: Allocation,
    /// One scorer for each [`Prediction`].
    pub scorers: [OnceLock<Box<dyn Scorer<F>>>; 5],
    /// KL(q || p) of all global factors, nats.
    pub divergence: OnceLock<f64>,
}

/// Returns the value in a cell, computed on first use. Concurrent threads may both compute it, with identical bits. No
/// lock is held meanwhile, so that no thread waits for another thread's pool.
pub(super) fn made<T>(place: &OnceLock<T>, make: impl FnOnce() -> Result<T>) -> Result<&T> {
    if let Some(value) = place.get() {
        return Ok(value);
    }
    let value = make()?;
    Ok(place.get_or_init(|| value))
}
