//! A shard as a visitor sees it, and options of its local step.

use std::cell::{OnceCell, RefCell};

use serde::{Deserialize, Serialize};

use crate::component::{Class, EditLog};
use crate::data::{BatchSource, RowUnits};
use crate::error::Result;
use crate::global_step::Globals;
use crate::local_step::{Assign, Buffers, ByScore, Keep, LocalState, LocalStep, Mask, Outcome, Tap, Units};
use crate::model::Model;
use crate::parallel::Cancel;
use crate::responsibilities::Sparsity;
use crate::scoring::Scorer;
use crate::simd::Scalar;

/// Options of local steps.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct LocalOptions {
    /// Number of components kept per unit.
    pub sparsity: Sparsity,
    /// Drop components whose log weight is more than this many nats below the row's best.
    pub margin: Option<f64>,
    /// Memory limit in bytes for distance bounds; with 0 every score is computed in full.
    pub bounds_memory: usize,
    /// What a visit keeps.
    pub keep: Keep,
}

/// A piece of a batch that is loaded and visited at once, with everything that its visits need besides their kind of
/// unit.
pub struct Shard<'a, F: Scalar> {
    /// Index of the shard.
    pub index: usize,
    /// The model.
    pub model: &'a Model<F>,
    /// Options of local steps.
    pub options: LocalOptions,
    /// Checked between blocks.
    pub cancel: &'a Cancel,
    source: &'a dyn BatchSource<F>,
    /// The class of each row of the data and the edits that know the classes of components, if rows have classes.
    classes: Option<(&'a [Class], &'a EditLog)>,
    /// Of its local steps.
    buffers: &'a RefCell<Buffers<F>>,
    rows: OnceCell<RowUnits<'a, F>>,
}

impl<'a, F: Scalar> Shard<'a, F> {
    /// A shard whose rows have not been loaded.
    pub fn new(
        index: usize,
        model: &'a Model<F>,
        source: &'a dyn BatchSource<F>,
        options: LocalOptions,
        cancel: &'a Cancel,
        buffers: &'a RefCell<Buffers<F>>,
    ) -> Self {
        Self { index, model, options, cancel, source, classes: None, buffers, rows: OnceCell::new() }
    }

    /// Sets the class of each row of the data, and the edits that know the classes of components.
    #[must_use]
    pub fn with_classes(mut self, rows: Option<&'a [Class]>, edits: &'a EditLog) -> Self {
        self.classes = rows.map(|rows| (rows, edits));
        self
    }

    /// The rows of the shard, which are loaded at the first call.
    pub fn rows(&self) -> Result<&RowUnits<'a, F>> {
        if let Some(rows) = self.rows.get() {
            return Ok(rows);
        }
        let rows = self.source.load(self.index)?;
        Ok(self.rows.get_or_init(|| rows))
    }

    /// Number of components kept per unit.
    pub fn width(&self, scorer: &dyn Scorer<F>) -> usize {
        self.options.sparsity.clamp(scorer.n_components())
    }

    /// Runs the local step of units that are assigned by their scores.
    pub fn score(
        &self,
        units: &dyn Units<F>,
        scorer: &dyn Scorer<F>,
        globals: &Globals,
        state: &mut LocalState,
        taps: &mut [&mut dyn Tap],
    ) -> Result<Outcome> {
        let classes = self.classes.map(|(rows, edits)| {
            let mut components = edits.classes(&globals.ids);
            // The tail is free.
            components.resize(scorer.n_components(), None);
            (rows, components)
        });
        let assign = ByScore {
            scorer,
            has_tail: globals.allocation.tail_log_weight.is_some(),
            width: self.width(scorer),
            margin: self.options.margin,
            abandon: self.options.bounds_memory > 0,
            row_terms: false,
            mask: classes.as_ref().map(|(rows, components)| Mask { rows, components }),
        };
        self.assign(units, &assign, globals, Some(state), taps)
    }

    /// Runs the local step of units with given responsibilities.
    pub fn assign(
        &self,
        units: &dyn Units<F>,
        assign: &dyn Assign<F>,
        globals: &Globals,
        state: Option<&mut LocalState>,
        taps: &mut [&mut dyn Tap],
    ) -> Result<Outcome> {
        let likelihood = self.model.likelihood.as_ref();
        let step = LocalStep { likelihood, ids: &globals.ids, assign, keep: self.options.keep, cancel: self.cancel };
        step.run_in(&mut self.buffers.borrow_mut(), units, state, taps)
    }
}
