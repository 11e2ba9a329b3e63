//! The kinds of units that a run can have.

use crate::error::Result;
use crate::local_step::DocumentOptions;
use crate::model::Specification;
use crate::simd::Scalar;
use crate::visits::{FirstPass, RowKind, TreeSettings, UnitKind, WordOptions};

/// The kinds of units, each with its options.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum UnitOptions {
    /// The rows of a mixture.
    #[default]
    Rows,
    /// Nodes of trees over the rows of a mixture.
    Nodes(TreeSettings),
    /// The words of the documents of a topic model.
    Words(WordOptions),
}

impl UnitOptions {
    /// The units of a model without trees: words with these options in a topic model, otherwise rows.
    pub fn usual(specification: &Specification, words: WordOptions) -> Result<Self> {
        Ok(if specification.documents()?.is_some() { Self::Words(words) } else { Self::Rows })
    }

    /// The kind with these options.
    pub fn kind<F: Scalar>(&self) -> &dyn UnitKind<F> {
        match self {
            Self::Rows => &RowKind,
            Self::Nodes(tree) => tree,
            Self::Words(words) => words,
        }
    }

    /// The units of `n_rows` rows: a tree that would end on few rows is left out.
    #[must_use]
    pub fn for_rows(self, n_rows: usize) -> Self {
        match self {
            Self::Nodes(tree) if tree.ends_on_few(n_rows) => Self::Rows,
            other => other,
        }
    }

    /// The settings of trees, if units are nodes.
    pub fn tree(&self) -> Option<TreeSettings> {
        if let Self::Nodes(tree) = self { Some(*tree) } else { None }
    }

    /// How documents are visited; the default if units are not words.
    pub fn documents(&self) -> DocumentOptions {
        if let Self::Words(words) = self { words.visits } else { DocumentOptions::USUAL }
    }

    /// Whether sums are scaled to all data in the first pass.
    pub fn scales_first_pass(&self) -> bool {
        matches!(self, Self::Words(WordOptions { first_pass: FirstPass::Scaled, .. }))
    }
}
