//! The objective of inference.

use serde::{Deserialize, Serialize};

/// The objective of inference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Objective {
    /// The evidence lower bound over distributions of weights and components.
    #[default]
    Variational,
    /// The same with point estimates of the weights and components, plus their log prior density (mathematics 2g).
    Map,
    /// The same with point estimates and no prior (mathematics 2g).
    Ml,
}

impl Objective {
    const ALL: [Self; 3] = [Self::Variational, Self::Map, Self::Ml];

    /// Public name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Variational => "variational",
            Self::Map => "map",
            Self::Ml => "ml",
        }
    }

    /// Returns the objective with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|objective| objective.name() == name)
    }
}
