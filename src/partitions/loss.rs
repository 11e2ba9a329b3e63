//! Losses between two partitions that are sums over their clusters and over the cells of their table.

/// How much one partition loses where another is the truth: with n_cd rows in cluster c of one and d of the other,
/// {sum_c f(n_c) + sum_d f(n_d) - 2 sum_cd f(n_cd)} / [`Loss::unit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The variation of information, nats (Meila 2007): f(x) = x ln x. A metric, from 0 to ln n.
    Variation,
    /// Binder's loss (Binder 1978): f(x) = x (x - 1) / 2. The number of pairs of rows that are together in one
    /// partition only.
    Binder,
}

impl Loss {
    /// f(x), convex, 0 at 0 and 1.
    pub fn weight(self, count: f64) -> f64 {
        match self {
            Self::Variation if count > 0.0 => count * count.ln(),
            Self::Variation => 0.0,
            Self::Binder => count * (count - 1.0) / 2.0,
        }
    }

    /// What the sum is divided by, for n rows.
    pub fn unit(self, n: f64) -> f64 {
        match self {
            Self::Variation => n.max(1.0),
            Self::Binder => 1.0,
        }
    }
}
