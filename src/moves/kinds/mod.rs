//! The registry of moves, and the moves of a run by name.

pub mod birth;
pub mod delete;
pub mod merge;
pub mod split;

use crate::error::{Error, Result};
use crate::likelihood::Conjugate;
use crate::moves::{Move, MoveKind, Subsample};
use crate::objective::Objective;
use crate::parameters::Parameters;
use crate::process::Weights;
use crate::registry::Entry;
use crate::simd::Scalar;

macro_rules! registry {
    ($($module:ident::$name:ident),* $(,)?) => {
        $(pub use $module::$name;)*

        /// The entries of all moves, in the order in which they plan and settle.
        pub const ENTRIES: &[Entry] = &[$($name::ENTRY),*];

        /// A move of the registry with its parameters.
        #[derive(Debug, Clone, Copy, PartialEq)]
        enum Registered {
            $($name($name)),*
        }

        impl Registered {
            fn new(name: &str, parameters: &Parameters) -> Result<Self> {
                $(if name == $name::ENTRY.name {
                    parameters.check(&$name::ENTRY)?;
                    return $name::new(parameters).map(Self::$name);
                })*
                Err(Error::unknown("moves", name, ENTRIES.iter().map(|entry| entry.name)))
            }

            fn as_move<F: Scalar>(&self) -> &dyn Move<F> {
                match self {
                    $(Self::$name(one) => one,)*
                }
            }

            fn name(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => $name::ENTRY.name,)*
                }
            }
        }

        $(impl From<$name> for Moves {
            fn from(one: $name) -> Self {
                let mut moves = Self::default();
                moves.put(Registered::$name(one));
                moves
            }
        })*
    };
}

// Rows are split between parts before pairs are merged; components are deleted last.
registry!(birth::Birth, split::Split, merge::Merge, delete::Delete);

impl MoveKind {
    /// The kind with that name, if a registered move has it.
    pub fn from_name(name: &str) -> Option<Self> {
        Moves::all().list::<f64>().iter().map(|one| one.kind()).find(|kind| kind.name() == name)
    }
}

/// The registered moves that a run makes: at most one of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Moves([Option<Registered>; ENTRIES.len()]);

impl Moves {
    /// One move of each kind, with default parameters.
    pub fn all() -> Self {
        let mut moves = Self::default();
        let parsed = ENTRIES.iter().filter_map(|entry| Registered::new(entry.name, &Parameters::default()).ok());
        parsed.for_each(|one| moves.put(one));
        moves
    }

    /// The moves of a fit for which the user has not chosen any.
    pub fn usual() -> Self {
        let is_usual =
            |one: &Registered| matches!(one, Registered::Birth(_) | Registered::Merge(_) | Registered::Delete(_));
        Self(Self::all().0.map(|one| one.filter(is_usual)))
    }

    /// These moves and those of `other`, which replace moves of the same kind.
    #[must_use]
    pub fn with(mut self, other: impl Into<Self>) -> Self {
        other.into().0.into_iter().flatten().for_each(|one| self.put(one));
        self
    }

    /// Adds the move called `name`. Missing parameters take their defaults.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] naming the parameter, or if no move has that name.
    pub fn add(&mut self, name: &str, parameters: &Parameters) -> Result<()> {
        self.put(Registered::new(name, parameters)?);
        Ok(())
    }

    fn put(&mut self, one: Registered) {
        if let Some(place) = ENTRIES.iter().position(|entry| entry.name == one.name()) {
            self.0[place] = Some(one);
        }
    }

    /// The moves in the order of the registry, for rows of type `F`.
    pub fn list<F: Scalar>(&self) -> Vec<&dyn Move<F>> {
        self.0.iter().flatten().map(Registered::as_move).collect()
    }

    /// Whether there are no moves.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// Whether the number of components can grow.
    pub fn grow(&self) -> bool {
        self.list::<f64>().iter().any(|one| one.subsample().is_some())
    }

    /// Options for the rows from which parts of components are made.
    pub fn subsample(&self) -> Subsample {
        Subsample::of(&self.list::<f64>())
    }

    /// Refuses moves if bounds with different numbers of components cannot be compared.
    ///
    /// # Errors
    /// [`Error::NotSupported`] giving the reason.
    pub fn check(&self, likelihood: &dyn Conjugate, process: &dyn Weights, objective: Objective) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let refuse = |with: String, reason: &str, allowed: &str| {
            Err(Error::not_supported("moves", format!("a move with {with}"), reason, allowed))
        };
        if objective != Objective::Variational {
            return refuse(
                format!("objective={:?}", objective.name()),
                "a point estimate has no bound by which different numbers of components compare",
                "moves=() or objective=\"variational\"",
            );
        }
        if !process.is_nested() {
            return refuse(
                format!("a process whose bound is {:?}", process.bound()),
                "its bound is not nested, so those of different numbers of components do not compare",
                "moves=(), or a DirichletProcess with truncation=\"nested\" or \"tail\"",
            );
        }
        likelihood.check_marginal()
    }

    /// The settings as text.
    pub fn name(&self) -> String {
        format!("{:?}", self.0.iter().flatten().collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Feature;

    #[test]
    fn the_entries_of_the_registry_match_the_moves() {
        let moves = Moves::all();
        let all = moves.list::<f32>();
        assert_eq!(all.len(), ENTRIES.len());
        for (one, entry) in all.into_iter().zip(ENTRIES) {
            assert_eq!(one.kind().name(), entry.name.to_lowercase());
            assert_eq!(MoveKind::from_name(one.kind().name()), Some(one.kind()));
            assert_eq!(one.subsample().is_some(), entry.support(Feature::Growth).is_some());
        }
        assert_eq!(MoveKind::from_name("Birth"), None);
    }

    #[test]
    fn moves_are_in_the_order_of_the_registry() {
        let mut moves = Moves::default();
        assert!(moves.is_empty() && !moves.grow());
        for name in ["Merge", "Split"] {
            moves.add(name, &Parameters::default()).expect("defaults");
        }
        let kinds: Vec<MoveKind> = moves.list::<f64>().iter().map(|one| one.kind()).collect();
        assert_eq!(kinds, ["split", "merge"].map(MoveKind::new));
        assert!(moves.grow() && moves.name().starts_with("[Split"), "{}", moves.name());
        assert!(moves.add("Swap", &Parameters::default()).is_err());
    }
}
