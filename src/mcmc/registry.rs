//! The registry of samplers.

use crate::error::{Error, Result};
use crate::mcmc::{BlockedGibbs, CollapsedGibbs, Sampler, Slice, SplitMerge, TreeGuided};
use crate::parameters::Parameters;
use crate::registry::Entry;

macro_rules! registry {
    ($($sampler:ty),* $(,)?) => {
        /// The entries of all samplers.
        pub const ENTRIES: &[Entry] = &[$(<$sampler>::ENTRY),*];

        /// Builds the sampler called `name` with these parameters.
        ///
        /// # Errors
        /// [`Error::InvalidArgument`] naming the parameter, or if no sampler has that name.
        pub fn build(name: &str, parameters: &Parameters) -> Result<Box<dyn Sampler>> {
            $(if name == <$sampler>::ENTRY.name {
                return Ok(Box::new(<$sampler>::new(parameters)?));
            })*
            Err(Error::unknown("sampler", name, ENTRIES.iter().map(|entry| entry.name)))
        }
    };
}

registry!(BlockedGibbs, CollapsedGibbs, Slice, SplitMerge, TreeGuided);
