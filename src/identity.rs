//! What must agree for one run to continue another.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Arguments that must agree for one run to continue another, and their values as text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity(pub Vec<(String, String)>);

impl Identity {
    /// Refuses a file that was written for a different run.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] naming the first argument that differs.
    pub fn expect(&self, written: &Self) -> Result<()> {
        for (name, ours) in &self.0 {
            match written.0.iter().find(|(other, _)| other == name) {
                Some((_, theirs)) if theirs == ours => {}
                Some((_, theirs)) if theirs.len() + ours.len() < 100 => {
                    return Err(checkpoint(format!("it was written for {name} = {theirs}, but now {name} = {ours}")));
                }
                _ => return Err(checkpoint(format!("it was written for another {name}"))),
            }
        }
        Ok(())
    }
}

fn checkpoint(message: String) -> Error {
    Error::Checkpoint { message }
}
