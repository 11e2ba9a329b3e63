//! Local states as bytes.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// Serialises a local state.
///
/// # Errors
/// [`Error::Format`] if serialisation fails.
pub fn save_state<T: Serialize>(state: &T) -> Result<Vec<u8>> {
    postcard::to_stdvec(state).map_err(|error| Error::Format { message: error.to_string() })
}

/// Reads a local state from the bytes of [`save_state`].
///
/// # Errors
/// [`Error::Format`] for anything else.
pub fn load_state<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    let (state, rest) =
        postcard::take_from_bytes(bytes).map_err(|error| Error::Format { message: error.to_string() })?;
    if rest.is_empty() { Ok(state) } else { Err(Error::Format { message: "it is longer than a local state".into() }) }
}
