//! The result of a fit, and what can be asked of it.

mod agreement;
mod clusters;
mod coherence;
mod completion;
mod densities;
mod draws;
mod history;
mod imputation;
mod packed;
mod packs;
mod posterior;
mod predictions;
mod result;
mod standing;
mod topics;

pub use clusters::{Join, Joins};
pub use coherence::{Coherence, coherence};
pub use completion::Completion;
pub use densities::log_densities;
pub use history::{Record, RunnerUp, Searched, StopReason};
pub use packs::{Packs, Prediction};
pub use predictions::Assigned;
pub use result::Fitted;
pub(crate) use standing::Ended;
pub use standing::{Resumed, Standing};
