//! How parts start, and what is tried after a failure.

use serde::{Deserialize, Serialize};

/// How parts are initialised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PartsStart {
    /// At most this many parts, by k-means++.
    Fresh(usize),
    /// Two parts, on either side of the plane across the leading principal component. By k-means++ for models without
    /// one.
    Bisector,
    /// Two parts, on either side of the plane across the direction in which rows look least like a normal distribution.
    Contrast,
}

/// Number of rows of a component for each part of [`PartsStart::Fresh`] beyond those that the move asks for.
const ROWS_A_PART: f64 = 8.0;
/// Maximum number of parts.
const MOST_PARTS: usize = 40;

/// Number of rows above which a search tries little, because passes with moves have enough rows to find most of it.
pub const MANY_ROWS: f64 = 20_000.0;

/// How much is tried to split a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effort {
    /// Few starts, because there will be other occasions.
    Usual,
    /// All starts with the usual number of parts.
    Last,
    /// All starts, with more and more parts.
    Loose,
}

impl PartsStart {
    /// What to try when this start did not lead to a gain, for a component with this count.
    pub(super) fn next(self, effort: Effort, count: f64) -> Option<Self> {
        match self {
            Self::Fresh(fresh)
                if effort == Effort::Loose && 2 * fresh <= MOST_PARTS && 2.0 * ROWS_A_PART * fresh as f64 <= count =>
            {
                Some(Self::Fresh(2 * fresh))
            }
            Self::Fresh(fresh) if fresh > 2 => Some(Self::Bisector),
            Self::Fresh(_) | Self::Bisector => (effort != Effort::Usual).then_some(Self::Contrast),
            Self::Contrast => None,
        }
    }
}
