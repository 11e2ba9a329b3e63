//! How the scores of a row are collected.

/// How the scores of a row are collected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Collects {
    /// The `L` best in descending order, sorted as they arrive.
    #[default]
    Best,
    /// All scores, in component order.
    All,
    /// All scores; those within the margin are listed at the end.
    Near,
}

/// Maximum number of components for which lists are used.
const MOST_COMPONENTS: usize = 128;
/// With fewer slots than this, sorting is faster.
const FEW_SLOTS: usize = 8;
/// Within this many nats no responsibility is rounded to 0.
const MOST_NATS: f64 = 600.0;

impl Collects {
    /// The fastest way for `width` of `n_components` components; with `sorts`, never one that lists fewer than all.
    pub fn new(width: usize, n_components: usize, margin: Option<f64>, sorts: bool) -> Self {
        match width < n_components {
            true if width < FEW_SLOTS || sorts => Self::Best,
            _ if lists(n_components, margin) => Self::Near,
            true => Self::Best,
            false => Self::All,
        }
    }
}

/// Whether components within the margin are listed at the end.
pub(super) fn lists(n_components: usize, margin: Option<f64>) -> bool {
    n_components <= MOST_COMPONENTS && margin.is_some_and(|margin| margin <= MOST_NATS)
}
