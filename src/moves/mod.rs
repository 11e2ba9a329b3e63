//! Moves change the number of components. They are judged by the exact bound of all data (Hughes & Sudderth 2013,
//! sections 3.2 and 3.3; Kurihara et al. 2006, section 4; mathematics 4.4 to 4.8).
//!
//! Before a pass, moves make a [`Plan`] of what its visits look for. The visits find it besides their own work, under
//! the same responsibilities. At the end of the pass sums over batches are therefore exact, every move is judged by
//! them, and no visit is made for a move alone. This is the same for data in memory and for streams.
//!
//! A move is one file: a type that implements [`Move`]. It defines what visits look for, what they find and how it is
//! judged. To add one, write that file in `kinds/`, add it to the registry there and add a dataclass in Python. Moves
//! request shared services in the plan: parts of components between which rows are split (`growth.rs`, `deal.rs`), rows
//! to make parts of (`collect.rs`), gaps of pairs (`gaps.rs`), a memory of failures (`memory.rs`), and the base measure
//! after edits (`lookahead.rs`).

mod adoption;
mod bags;
mod collect;
mod contrast;
mod create;
mod deal;
mod finder;
mod gaps;
mod growth;
mod joined;
mod judge;
mod kinds;
mod look;
mod lookahead;
mod memory;
mod nearest;
mod parts;
mod pass;
mod payload;
mod plan;
mod planning;
mod refit;
mod round;
mod row_pairs;
mod seeding;
mod seen;
mod settling;
mod starts;
mod state;
mod transfer;
mod weighing;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::simd::Scalar;

pub use crate::payload::{Content, Payload};
pub use bags::{Bag, Collect, Subsample};
pub use collect::{KeyLimits, SmallestKeys};
pub use deal::Visited;
pub use finder::Finder;
pub use judge::{Judge, Part, is_gain, tried};
pub use kinds::*;
pub use look::Look;
pub use memory::Failures;
pub use payload::Payloads;
pub use plan::{Findings, Found, Plan, Proposal};
pub use planning::Planning;
pub use refit::RowCopies;
pub use round::Round;
pub use row_pairs::RowShares;
pub(crate) use seeding::part_labels;
pub use seen::Seen;
pub use settling::Settling;
pub use starts::{MANY_ROWS, PartsStart};
pub use state::{MoveState, RunShape};

/// The kind of a move, identified by the word used in reports.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MoveKind(Cow<'static, str>);

impl MoveKind {
    /// The kind called `name`. Each move of a run has its own kind.
    pub const fn new(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// One kind of change of the number of components. Moves plan and settle in the order in which a run lists them.
pub trait Move<F: Scalar>: Send + Sync {
    /// The kind of the move.
    fn kind(&self) -> MoveKind;

    /// Options for the rows from which it makes parts; `None` if it does not raise the number of components.
    fn subsample(&self) -> Option<Subsample> {
        None
    }

    /// Before a pass: proposes parts of components. All moves propose before any of them plans. The call may be
    /// cancelled, so it changes only its own state and `planning.plan.proposals`, with provisional identities.
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

    /// During a visit: returns what the move `wanted` from this shard. It may run in another process.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`]; [`crate::Error::Numerical`]; [`crate::Error::Format`].
    fn look(&self, _wanted: &Payload, _visited: &Visited<'_, F>) -> Result<Option<Payload>> {
        Ok(None)
    }

    /// After a visit: adds its findings to what earlier visits of the pass `found`, which is of the same type: findings
    /// of shards are added up before they are added to those of earlier batches.
    ///
    /// # Errors
    /// [`crate::Error::Format`] for bytes that the move did not write.
    fn take(&self, _wanted: &Payload, _found: Option<Payload>, findings: Payload) -> Result<Payload> {
        Ok(findings)
    }

    /// After a pass: judges the findings and carries out the edits that raise the bound. It must not be interrupted,
    /// because an intermediate state would be invalid.
    ///
    /// # Errors
    /// [`crate::Error::Numerical`].
    fn settle(&self, settling: &mut Settling<'_, '_, F>) -> Result<Report>;

    /// Whether the payloads of this kind are consistent with such a run, since files may hold anything.
    fn fits(&self, _state: &MoveState, _shape: &RunShape<'_>) -> bool {
        true
    }
}

/// The moves of one kind in a pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The kind.
    pub kind: MoveKind,
    /// Number proposed.
    pub proposed: usize,
    /// Number accepted.
    pub accepted: usize,
    /// Gain of the accepted moves, nats. For births by adoption it includes the gain of the pass, because the two
    /// cannot be separated.
    pub gain: f64,
    /// Reasons why the others were not accepted, with counts.
    pub refused: Vec<(String, usize)>,
}

impl Report {
    /// Creates a report. Reasons with a count of zero are left out.
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
