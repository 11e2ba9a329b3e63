//! Moves: changes of the number of components, judged by the exact bound of all data (Hughes & Sudderth 2013, sections
//! 3.2 and 3.3; Kurihara et al. 2006, section 4; mathematics 4.4 to 4.8).
//!
//! A pass knows from its first visit on what it looks for (a [`Plan`]). Its visits find it beside their own work, under
//! the same responsibilities. So at its end sums over batches are exact, every move is judged by them, and no visit is
//! made for a move alone. It is the same for data in memory and for streams.
//!
//! A move is one file: a type that implements [`Move`]. It defines what visits look for, what they find and how it is
//! judged. To add one, write that file in `kinds/`, add it to the registry there and a dataclass in Python. What moves
//! share are services that they ask for in the plan: parts of components to which rows are dealt (`growth.rs`,
//! `deal.rs`), rows to make parts of (`bags.rs`), gaps of pairs (`gaps.rs`), a memory of failures (`memory.rs`), and
//! the base measure that edits lead to (`lookahead.rs`).

mod adoption;
mod bags;
mod create;
mod deal;
mod gaps;
mod growth;
mod judge;
mod kinds;
mod look;
mod lookahead;
mod memory;
mod parts;
mod payload;
mod plan;
mod planning;
mod refit;
mod round;
mod seeding;
mod seen;
mod settling;
mod state;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::simd::Scalar;

pub use bags::{Bag, Collect, Subsample};
pub use judge::{Judge, Part, is_gain, tried};
pub use kinds::*;
pub use look::{Finder, Look, Visited};
pub use memory::Failures;
pub use payload::{Content, Payload, Payloads};
pub use plan::{Findings, Found, Plan, Proposal};
pub use planning::Planning;
pub use refit::RowCopies;
pub use round::Round;
pub use seen::Seen;
pub use settling::Settling;
pub use state::{MoveState, RunShape};

/// The kind of a move: the word that reports call it by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MoveKind(Cow<'static, str>);

impl MoveKind {
    /// The kind called `name`. Each move of a run has its own.
    pub const fn new(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// The word.
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// One kind of change of the number of components. The order of the moves of a run is that in which they plan and
/// settle.
pub trait Move<F: Scalar>: Send + Sync {
    /// Its kind.
    fn kind(&self) -> MoveKind;

    /// The rows that it makes parts of; `None` if it does not raise the number of components.
    fn subsample(&self) -> Option<Subsample> {
        None
    }

    /// Before a pass: proposes parts of components. All moves do this before any of them plans. It may be cancelled, so
    /// it changes nothing but its own state and `planning.plan.proposals`, under identities that are not final.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`]; [`crate::Error::Numerical`].
    fn propose(&self, _planning: &mut Planning<'_, '_, F>) -> Result<()> {
        Ok(())
    }

    /// Before a pass: adds to the plan what its visits are to look for.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`]; [`crate::Error::Numerical`].
    fn plan(&self, _planning: &mut Planning<'_, '_, F>) -> Result<()> {
        Ok(())
    }

    /// In a visit: what the batch has of what the move `wanted`. It may run in another process.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`]; [`crate::Error::Numerical`]; [`crate::Error::Format`].
    fn look(&self, _wanted: &Payload, _visited: &Visited<'_, F>) -> Result<Option<Payload>> {
        Ok(None)
    }

    /// After a visit: adds what it found to what earlier visits of the pass `found`.
    ///
    /// # Errors
    /// [`crate::Error::Format`] for bytes that are not the move's own.
    fn take(&self, _wanted: &Payload, _found: Option<Payload>, findings: Payload) -> Result<Payload> {
        Ok(findings)
    }

    /// After a pass: judges what was found and carries out what raises the bound. It is not to be interrupted: half of
    /// it would be no valid state.
    ///
    /// # Errors
    /// [`crate::Error::Numerical`].
    fn settle(&self, settling: &mut Settling<'_, '_, F>) -> Result<Report>;

    /// Whether the payloads of this kind can belong to such a run: what is read from a file may be anything.
    fn fits(&self, _state: &MoveState, _shape: &RunShape<'_>) -> bool {
        true
    }
}

/// The moves of one kind in a pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The kind.
    pub kind: MoveKind,
    /// How many were proposed.
    pub proposed: usize,
    /// How many of them were accepted.
    pub accepted: usize,
    /// What these gained, nats. Births by adoption cannot be told from the pass in which they came: for them it is the
    /// gain of both.
    pub gain: f64,
    /// Why the others were not accepted, and how many.
    pub refused: Vec<(String, usize)>,
}

impl Report {
    /// A report; reasons that apply to none are left out.
    pub fn new<const N: usize>(
        kind: MoveKind,
        proposed: usize,
        accepted: usize,
        gain: f64,
        refused: [(&str, usize); N],
    ) -> Self {
        let refused = refused.into_iter().filter(|(_, n)| *n > 0).map(|(reason, n)| (reason.to_owned(), n)).collect();
        Self { kind, proposed, accepted, gain, refused }
    }
}
