//! Changes of the number of components: births, splits, merges and deletes, judged by the exact bound of all data
//! (Hughes & Sudderth 2013, sections 3.2 and 3.3; Kurihara et al. 2006, section 4; spec 4.4 to 4.8).
//!
//! A pass knows from the first visit on what it looks for (a [`Plan`]): fresh parts of some components, gaps of pairs that
//! might be merged, rows of components that might end, and rows that the next parts can be made of. Its visits find all that
//! beside their own work, under the same responsibilities; so at its end sums over batches are exact, every move is judged by
//! them, and no visit is made for a move alone. It is the same for data in memory and for data that are read in order.

mod adoption;
mod create;
mod deal;
mod delete;
mod judge;
mod look;
mod memory;
mod merge;
mod plan;
mod round;
mod seeding;
mod settle;
mod split;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::likelihood::Conjugate;
use crate::objective::Objective;
use crate::parameters::Parameters;
use crate::process::Weights;

pub use look::{Look, Packed, Seen};
pub use plan::{Bag, Collect, Findings, Found, Plan, Proposal, SharedRows};
pub use round::{Round, State};

/// The largest value of a parameter that is a whole number.
const MOST: f64 = 4_294_967_294.0;

/// The kinds of moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    /// Several fresh parts in the place of a component.
    Birth,
    /// Two halves in the place of a component.
    Split,
    /// One component in the place of two.
    Merge,
    /// The rows of a component go to the others.
    Delete,
}

impl Kind {
    /// The name used outside.
    pub fn name(self) -> &'static str {
        match self {
            Self::Birth => "birth",
            Self::Split => "split",
            Self::Merge => "merge",
            Self::Delete => "delete",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Birth, Self::Split, Self::Merge, Self::Delete].into_iter().find(|kind| kind.name() == name)
    }
}

/// How births are made (moves recipe, section 2).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Birth {
    /// Whether fresh parts compete with all components for the rows of a pass, as in the paper; else they share what their
    /// target has.
    pub adopt: bool,
    /// Rows of a component that fresh parts are made of, at most.
    pub max_subsample: usize,
    /// A row can be one of them if its responsibility is above this.
    pub threshold: f64,
    /// Fresh parts, at most.
    pub fresh: usize,
}

/// How splits are made (spec 4.8).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Split {
    /// Components that are tried in a pass, of which the best is split.
    pub candidates: usize,
}

/// How deletes are made (spec 4.7).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Delete {
    /// Components that are tried in a pass, the smallest first.
    pub candidates: usize,
}

/// Which moves a run makes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Moves {
    /// Births.
    pub birth: Option<Birth>,
    /// Splits.
    pub split: Option<Split>,
    /// Whether components are merged.
    pub merge: bool,
    /// Deletes.
    pub delete: Option<Delete>,
}

impl Moves {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the number of components can grow.
    pub fn grow(&self) -> bool {
        !self.growing().is_empty()
    }

    /// The kinds by which the number of components grows.
    pub fn growing(&self) -> Vec<Kind> {
        let kinds = [self.birth.map(|_| Kind::Birth), self.split.map(|_| Kind::Split)];
        kinds.into_iter().flatten().collect()
    }

    /// Refuses moves where the bounds of different numbers of components do not compare.
    ///
    /// # Errors
    /// [`Error::NotSupported`] saying why.
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

    /// Adds the move called `name`; what its parameters do not say has its usual value.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] naming the parameter, or where there is no move of that name.
    pub fn add(&mut self, name: &str, parameters: &Parameters) -> Result<()> {
        let whole = |parameter: &str, usual: usize, least: usize| match parameters.number(parameter)? {
            None => Ok(usual),
            Some(value) if value >= least as f64 && value.fract() == 0.0 && value <= MOST => Ok(value as usize),
            Some(value) => Err(Error::invalid(parameter, value, format!("an integer from {least} to {MOST}"))),
        };
        match name {
            "Birth" => {
                parameters.only(&["adoption", "max_subsample", "threshold", "fresh"])?;
                let adopt = match parameters.text("adoption", "split")? {
                    "split" => false,
                    "pass" => true,
                    other => {
                        return Err(Error::invalid("adoption", format!("{other:?}"), "\"split\" or \"pass\""));
                    }
                };
                let threshold = match parameters.number("threshold")? {
                    None => 0.1,
                    Some(value) if (0.0..1.0).contains(&value) => value,
                    Some(value) => return Err(Error::invalid("threshold", value, "a number from 0 on, below 1")),
                };
                let (max_subsample, fresh) = (whole("max_subsample", 5000, 4)?, whole("fresh", 10, 2)?);
                self.birth = Some(Birth { adopt, max_subsample, threshold, fresh });
            }
            "Split" => {
                parameters.only(&["candidates"])?;
                self.split = Some(Split { candidates: whole("candidates", 10, 1)? });
            }
            "Merge" => {
                parameters.only(&[])?;
                self.merge = true;
            }
            "Delete" => {
                parameters.only(&["candidates"])?;
                self.delete = Some(Delete { candidates: whole("candidates", 10, 1)? });
            }
            _ => return Err(Error::invalid("moves", format!("{name:?}"), "Birth, Split, Merge or Delete")),
        }
        Ok(())
    }

    /// The settings in words.
    pub fn name(&self) -> String {
        format!("{self:?}")
    }
}

/// What became of the moves of one kind in a pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The kind.
    pub kind: Kind,
    /// How many were proposed.
    pub proposed: usize,
    /// How many of them were accepted.
    pub accepted: usize,
    /// What these gained, nats; births by adoption cannot be told from the pass in which they came, so of them it is what both
    /// gained.
    pub gain: f64,
    /// Why the others were not, and how many.
    pub refused: Vec<(String, usize)>,
}
