//! The error type of the core.

/// Result of every fallible function of the core.
pub type Result<T> = std::result::Result<T, Error>;

/// Errors of the core. A mistake of the user names the argument; other errors are distinguished by kind.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument has a value that is not allowed.
    #[error("{argument} must be {allowed}, but it is {found}")]
    InvalidArgument {
        /// Name of the argument as the user typed it.
        argument: String,
        /// The value that was found.
        found: String,
        /// The allowed values.
        allowed: String,
    },
    /// A valid request that this version, model or algorithm does not support.
    #[error("{found} is not supported: {reason}; use {allowed}")]
    NotSupported {
        /// Name of the argument as the user typed it.
        argument: String,
        /// The request, and what it cannot be combined with.
        found: String,
        /// Why it is not supported.
        reason: String,
        /// What to use instead.
        allowed: String,
    },
    /// A computation overflowed or underflowed.
    #[error("{}{message}", component.map_or_else(String::new, |k| format!("component {k}: ")))]
    Numerical {
        /// Position of the component concerned, if any.
        component: Option<usize>,
        /// What happened, and what to do about it.
        message: String,
    },
    /// The batch source failed.
    #[error("the data source failed{}: {message}", batch.map_or_else(String::new, |b| format!(" at batch {b}")))]
    Source {
        /// The batch that could not be loaded, if the source has batches.
        batch: Option<usize>,
        /// The source's own message.
        message: String,
    },
    /// A saved state cannot be read.
    #[error("the saved state cannot be read: {message}")]
    Format {
        /// What is wrong with it.
        message: String,
    },
    /// A checkpoint from which this run cannot continue.
    #[error("the run cannot go on from the checkpoint: {message}")]
    Checkpoint {
        /// What does not match.
        message: String,
    },
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
}

impl Error {
    /// Names the batch at which the source failed, unless it is known.
    #[must_use]
    pub(crate) fn at_batch(self, batch: usize) -> Self {
        match self {
            Self::Source { batch: None, message } => Self::Source { batch: Some(batch), message },
            other => other,
        }
    }

    /// An [`Error::InvalidArgument`] for any displayable value.
    pub fn invalid(argument: impl Into<String>, found: impl std::fmt::Display, allowed: impl Into<String>) -> Self {
        Self::InvalidArgument { argument: argument.into(), found: found.to_string(), allowed: allowed.into() }
    }

    /// An [`Error::InvalidArgument`] for a name that is not among the `known` ones.
    pub fn unknown<'a>(argument: &str, name: &str, known: impl Iterator<Item = &'a str>) -> Self {
        let known: Vec<&str> = known.collect();
        Self::invalid(argument, format!("{name:?}"), format!("one of {}", known.join(", ")))
    }

    /// An [`Error::NotSupported`]: `found` is not supported: `reason`; use `allowed`.
    pub fn not_supported(
        argument: impl Into<String>,
        found: impl Into<String>,
        reason: impl Into<String>,
        allowed: impl Into<String>,
    ) -> Self {
        let (argument, found, reason, allowed) = (argument.into(), found.into(), reason.into(), allowed.into());
        Self::NotSupported { argument, found, reason, allowed }
    }

    /// An [`Error::Numerical`] of one component.
    pub fn numerical(component: Option<usize>, message: impl Into<String>) -> Self {
        Self::Numerical { component, message: message.into() }
    }

    /// Adds the component to a numerical error that does not name one.
    #[must_use]
    pub fn of_component(self, k: usize) -> Self {
        match self {
            Self::Numerical { component: None, message } => Self::Numerical { component: Some(k), message },
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_and_why_and_what_instead() {
        let error = Error::not_supported("moves", "a move with X", "it has no bound", "moves=()");
        assert_eq!(error.to_string(), "a move with X is not supported: it has no bound; use moves=()");
    }

    #[test]
    fn a_numerical_error_names_its_component_once() {
        let error = Error::numerical(None, "too large");
        assert_eq!(error.to_string(), "too large");
        let named = error.of_component(3).of_component(5);
        assert_eq!(named.to_string(), "component 3: too large");
    }
}
