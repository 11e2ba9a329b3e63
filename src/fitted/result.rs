//! A fitted mixture and its queries.

use std::sync::Arc;

use crate::background;
use crate::component::ComponentId;
use crate::data::{Coordinates, RepeatedRows, RowUnits, Rows, Strays, strays};
use crate::elbo::collapsed;
use crate::error::{Error, Result};
use crate::evidence;
use crate::fitted::history::{Record, RunnerUp, Searched, StopReason};
use crate::fitted::packs::{PackedFit, Packs, Prediction};
use crate::global_step::Globals;
use crate::grounds::{check_numbers, check_values};
use crate::likelihood::{self, Estimate};
use crate::local_step::{ByScore, DocumentOptions, Keep, LocalStep, Outcome, Tap};
use crate::model::{Model, Named, Objective, Specification};
use crate::parallel::Cancel;
use crate::parameters::Parameters;
use crate::process::Allocation;
use crate::real::Plain;
use crate::scoring::Scorer;
use crate::simd::Scalar;
use crate::suffstats::{Summary, Tail};

/// The result of a fit, independent of the type of the rows.
#[derive(Debug, Clone)]
pub struct Fitted {
    /// The coordinates of the rows. The specification, the origin and the summary refer to these coordinates.
    pub coordinates: Arc<Coordinates>,
    /// Whether there were too few rows to span all columns.
    pub lacks_rows: bool,
    /// The specification with all parameters filled in.
    pub specification: Specification,
    /// The origin of the statistics, (r,).
    pub origin: Vec<f64>,
    /// Number of rows of the data.
    pub n_rows: usize,
    /// Number of components kept per unit.
    pub sparsity: usize,
    /// Drop components whose log weight is more than this many nats below the row's best.
    pub margin: Option<f64>,
    /// How documents are visited, in a topic model.
    pub documents: DocumentOptions,
    /// The class of each component, (K,), -1 for free ones; empty if no row had a label.
    pub classes: Vec<i64>,
    /// The summary that produced the components.
    pub summary: Summary,
    /// The bound of that summary, nats.
    pub elbo: f64,
    /// One record per pass.
    pub history: Vec<Record>,
    /// Why the run ended.
    pub stop_reason: StopReason,
    /// The error of the source, for [`StopReason::SourceError`].
    pub error: Option<Error>,
    /// The second best of several starts, if there were any and rows have labels.
    pub runner_up: Option<RunnerUp>,
    /// What is known of repeated rows; nothing in a fit from a file.
    pub repeats: RepeatedRows,
    /// The rows in which structure was sought, if these were not all.
    pub searched: Option<Searched>,
    /// Packed components for predictions. They are valid only for the current values of the other fields. To change a
    /// field, modify a clone, which starts without packed components.
    pub packs: Packs,
}

impl Fitted {
    /// Builds the model for rows of type `F`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the stored parameters are invalid, as in a damaged file.
    pub fn model<F: Scalar>(&self) -> Result<Model<F>> {
        self.specification.build_in(self.origin.clone(), &self.coordinates)
    }

    /// Returns the parameters of the likelihood in the data's columns and units. In columns that are left out they are
    /// tiny and positive.
    ///
    /// # Errors
    /// As [`Fitted::model`].
    pub fn parameters(&self) -> Result<Parameters> {
        let Named { name, parameters } = &self.specification.likelihood;
        likelihood::of_data(name, parameters, &self.coordinates)
    }

    /// Returns the parameters of the background, if there is one, in the data's columns and units.
    pub fn background(&self) -> Option<Parameters> {
        Some(background::of_data(self.specification.background.as_ref()?, &self.coordinates))
    }

    /// Number of columns of the data.
    pub fn n_data_columns(&self) -> usize {
        self.coordinates.n_columns()
    }

    /// Returns the bound plus the guard of the base measure (mathematics 10.1), which compares fits of the same data,
    /// nats: of the search rows, if there were any.
    ///
    /// # Errors
    /// As [`Fitted::model`], and [`Error::Numerical`].
    pub fn objective(&self) -> Result<f64> {
        if let Some(searched) = &self.searched {
            return Ok(searched.objective);
        }
        let model = self.model::<f64>()?;
        Ok(self.elbo + evidence::guard(&model)? + model.allocate(&self.summary).guard)
    }

    /// Checks that the parts are consistent and that every component has a posterior. Every file that is read must pass
    /// this check.
    ///
    /// # Errors
    /// [`Error::Format`] stating the inconsistency.
    pub fn check(&self) -> Result<()> {
        let format = |message: String| Error::Format { message };
        let (summary, k, named) = (&self.summary, self.summary.n_components(), &self.specification.likelihood);
        let missing = likelihood::missing(&named.name, &named.parameters).map_err(|error| format(error.to_string()))?;
        if let Some(name) = missing {
            return Err(format(format!("the likelihood has no parameter {name}")));
        }
        if self.origin.is_empty() || self.origin.iter().any(|value| !value.is_finite()) {
            return Err(format("the origin is not a vector of finite numbers".into()));
        }
        if self.origin.len() != self.coordinates.rank() || !self.coordinates.log_volume().is_finite() {
            return Err(format("the coordinates do not fit the origin, or have no volume".into()));
        }
        let model = self.model::<f64>().map_err(|error| format(error.to_string()))?;
        if model.likelihood.origin() != self.origin {
            return Err(format("the origin is not zero, as the likelihood has it".into()));
        }
        let n_statistics = model.likelihood.n_statistics();
        if summary.n_statistics != n_statistics || summary.statistics.len() != k * n_statistics {
            return Err(format(format!("statistics should have the shape ({k}, {n_statistics})")));
        }
        if ![0, k].contains(&self.classes.len()) || self.classes.iter().any(|&class| class < -1) {
            return Err(format(format!("classes should be {k} integers from -1")));
        }
        if self.margin.is_some_and(|margin| margin.is_nan() || margin < 0.0) {
            return Err(format("the margin is not a number of at least 0".into()));
        }
        if self.runner_up.is_some_and(|second| !(-1.0..=1.0).contains(&second.ari)) {
            return Err(format("the agreement of two starts is not between -1 and 1".into()));
        }
        let has_tail = model.has_tail();
        if k == 0 || summary.entropies.len() != k || !(1..=k + usize::from(has_tail)).contains(&self.sparsity) {
            return Err(format(format!("counts, entropies and sparsity do not fit {k} components")));
        }
        if (summary.documents.is_some() && model.documents.is_none())
            || summary.documents.as_ref().is_some_and(|documents| !documents.fits(k))
        {
            return Err(format(format!("the terms of documents do not fit {k} components")));
        }
        if summary.tail.as_ref().is_some_and(|tail| !has_tail || tail.statistics.len() != n_statistics) {
            return Err(format("the tail does not fit the process or the likelihood".into()));
        }
        let nothing = Tail::zeros(n_statistics);
        let tail = summary.tail.as_ref().unwrap_or(&nothing);
        if model.process.n_components().is_some_and(|fixed| fixed != k) {
            return Err(format(format!("the process does not have {k} components")));
        }
        check_sums(summary, tail)?;
        // The statistic of a background is not one of rows.
        let of_tail = model.background.is_none().then(|| tail.sufficient());
        model.likelihood.check_statistics(&[summary.components(), of_tail.into_iter().collect()].concat())?;
        let known = self.stop_reason == StopReason::Converged
            || (self.stop_reason == StopReason::MaxPasses && !self.history.is_empty());
        if known && self.elbo.is_nan() {
            return Err(format(format!("the bound is nan, but the fit ended by {}", self.stop_reason.name())));
        }
        let bound = collapsed(&model, summary).map_err(|error| format(error.to_string()))?.total();
        evidence::guard(&model).map_err(|error| format(error.to_string()))?;
        let close = (bound - self.elbo).abs() <= 1e-6 * (1.0 + bound.abs());
        if !bound.is_finite() || !(close || self.elbo.is_nan()) {
            return Err(format(format!("the bound of the summary is {}, not {}", Plain(bound), Plain(self.elbo))));
        }
        Ok(())
    }

    /// Marks a fit that had just ended on its own when an interrupt came, so that a loop over fits ends too.
    #[must_use]
    pub fn interrupted(self) -> Self {
        let stop_reason = match self.stop_reason {
            StopReason::Converged | StopReason::MaxPasses => StopReason::Interrupted,
            other => other,
        };
        Self { stop_reason, ..self }
    }

    /// Number of columns of the local step: the components, plus the tail if there is one.
    ///
    /// # Errors
    /// As [`Fitted::model`].
    pub fn n_columns(&self) -> Result<usize> {
        Ok(self.summary.n_components() + usize::from(self.specification.has_tail()?))
    }

    pub(super) fn globals<F: Scalar>(&self, model: &Model<F>) -> Globals {
        Globals::new(model, &self.summary, 0)
    }

    /// Returns q of the weights.
    ///
    /// # Errors
    /// As [`Fitted::model`].
    pub fn allocation(&self) -> Result<Allocation> {
        Ok(self.globals(&self.model::<f64>()?).allocation)
    }

    /// Returns the posterior parameters of all components, in the data's units.
    ///
    /// # Errors
    /// As [`Fitted::model`], and [`Error::Numerical`].
    pub fn components(&self) -> Result<Parameters> {
        self.of_data(&self.model::<f64>()?.likelihood.posterior_parameters(&self.summary.components())?)
    }

    pub(super) fn of_data(&self, values: &Parameters) -> Result<Parameters> {
        let Named { name, parameters } = &self.specification.likelihood;
        likelihood::components_of_data(name, parameters, values, &self.coordinates)
    }

    /// Returns the rows off the subspace on which the fit has a density.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a different number of columns; [`Error::Cancelled`].
    pub fn strays<F: Scalar>(&self, rows: &dyn Rows<F>, weights: Option<&[f64]>, cancel: &Cancel) -> Result<Strays> {
        self.check_columns(rows)?;
        strays(&RowUnits::all(rows, weights), &self.coordinates, cancel)
    }

    fn check_columns<F: Scalar>(&self, rows: &dyn Rows<F>) -> Result<()> {
        let d = self.n_data_columns();
        if rows.n_columns() == d {
            return Ok(());
        }
        let found = format!("an array with {} columns", rows.n_columns());
        Err(Error::invalid("X", found, format!("an array with {d} columns, as the fit had")))
    }

    /// Runs one dense or sparse local step over new rows with the components fixed.
    pub(super) fn local_step<F: Scalar>(
        &self,
        rows: &dyn Rows<F>,
        weights: Option<&[f64]>,
        scored: &Scored<'_, F>,
        taps: &mut [&mut dyn Tap],
        cancel: &Cancel,
    ) -> Result<Outcome> {
        check_numbers("X", rows.n_rows())?;
        self.check_columns(rows)?;
        check_values(&self.specification, rows, "X", cancel)?;
        scored.step(&RowUnits::all(rows, weights).seen_through(&self.coordinates), taps, cancel)
    }

    /// Evaluates the general form of the bound (mathematics 0) on these rows with the components fixed, nats. The
    /// responsibilities are optimal given the components, so the data part is the sum of log normalisers. Rows off the
    /// subspace of the fit are left out.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a different number of columns; [`Error::Numerical`]; [`Error::Cancelled`].
    pub fn evaluate<F: Scalar>(&self, rows: &dyn Rows<F>, weights: Option<&[f64]>, cancel: &Cancel) -> Result<f64> {
        let (PackedFit { model, allocation, .. }, scorer) = (self.packed()?, self.scorer(Prediction::WithTail)?);
        let (has_tail, width, margin) = (allocation.tail_log_weight.is_some(), self.sparsity, self.margin);
        let scored = Scored { model, scorer, has_tail, width, margin, keep: Keep::Nothing };
        let on_subspace = self.weights_on_subspace(rows, weights, cancel)?;
        let weights = on_subspace.as_deref().or(weights);
        let outcome = self.local_step(rows, weights, &scored, &mut [], cancel)?;
        let mass = RowUnits::all(rows, weights).total_mass();
        let bound = outcome.log_normalizer - mass * model.log_volume - self.cost_of_components::<F>()?;
        if bound.is_finite() {
            return Ok(bound);
        }
        Err(Error::numerical(None, format!("the bound of these rows is {bound}; rescale the data or leave rows out")))
    }

    /// What the components and weights cost in every bound, whatever the rows are, nats.
    ///
    /// # Errors
    /// [`Error::Numerical`].
    pub fn cost_of_components<F: Scalar>(&self) -> Result<f64> {
        let log_jacobian = self.packed::<F>()?.model.log_jacobian;
        Ok(self.divergence::<F>()? - log_jacobian * self.summary.n_components() as f64)
    }

    /// The weights, set to zero for rows off the subspace if there are any.
    fn weights_on_subspace<F: Scalar>(
        &self,
        rows: &dyn Rows<F>,
        weights: Option<&[f64]>,
        cancel: &Cancel,
    ) -> Result<Option<Vec<f64>>> {
        let off = self.strays(rows, weights, cancel)?.units;
        if off.is_empty() {
            return Ok(None);
        }
        let mut kept = weights.map_or_else(|| vec![1.0; rows.n_rows()], <[f64]>::to_vec);
        for row in off {
            kept[row] = 0.0;
        }
        if kept.iter().any(|&weight| weight > 0.0) {
            return Ok(Some(kept));
        }
        Err(Error::invalid(
            "X",
            "off the subspace of the fit in every row",
            "an array with a row on the subspace of the fit",
        ))
    }

    /// Returns the summary of one local step over these rows.
    ///
    /// # Errors
    /// As [`Fitted::evaluate`].
    pub fn summarize<F: Scalar>(
        &self,
        rows: &dyn Rows<F>,
        weights: Option<&[f64]>,
        width: usize,
        keep: Keep,
        cancel: &Cancel,
    ) -> Result<Outcome> {
        let (PackedFit { model, allocation, .. }, scorer) = (self.packed()?, self.scorer(Prediction::WithTail)?);
        let has_tail = allocation.tail_log_weight.is_some();
        let scored = Scored { model, scorer, has_tail, width, margin: None, keep };
        self.local_step(rows, weights, &scored, &mut [], cancel)
    }

    /// Returns point estimates of all components, in the data's units.
    ///
    /// # Errors
    /// As [`Fitted::model`], and [`Error::Numerical`].
    pub fn point_estimates(&self) -> Result<Parameters> {
        let likelihood = self.model::<f64>()?.likelihood;
        self.of_data(&likelihood.point_estimates(&self.summary.components(), self.estimate())?)
    }

    /// The kind of point estimate of the objective; posterior means for the variational objective.
    pub(super) fn estimate(&self) -> Estimate {
        match self.specification.objective {
            Objective::Variational => Estimate::Mean,
            Objective::Map => Estimate::Mode,
            Objective::Ml => Estimate::MaximumLikelihood,
        }
    }
}

/// Refuses sums that no rows have.
fn check_sums(summary: &Summary, tail: &Tail) -> Result<()> {
    let format = |message: String| Error::Format { message };
    let arrays = [&summary.counts, &summary.statistics, &summary.entropies, &tail.statistics];
    let of_tail = [&tail.count, &tail.entropy];
    if arrays.into_iter().flatten().chain(of_tail).any(|value| !value.is_finite()) {
        return Err(format("the summary has values that are not finite".into()));
    }
    let scale = 1.0 + summary.mass.abs();
    if summary.counts.iter().chain([&tail.count]).any(|&count| count < -1e-6 * scale) {
        return Err(format("a count is negative".into()));
    }
    let counted = summary.counts.iter().sum::<f64>() + tail.count;
    if !summary.mass.is_finite() || (counted - summary.mass).abs() > 1e-6 * scale {
        return Err(format(format!("the counts do not add up to the mass, {}", Plain(summary.mass))));
    }
    if summary.entropies.iter().chain([&tail.entropy]).any(|&entropy| entropy < -1e-6 * scale) {
        return Err(format("an entropy is negative".into()));
    }
    Ok(())
}

/// Packed components and how to process their scores.
pub(super) struct Scored<'a, F: Scalar> {
    pub model: &'a Model<F>,
    pub scorer: &'a dyn Scorer<F>,
    /// Whether the last column is the tail.
    pub has_tail: bool,
    pub width: usize,
    pub margin: Option<f64>,
    pub keep: Keep,
}

impl<F: Scalar> Scored<'_, F> {
    /// Runs a local step over rows in the coordinates of the fit, which were checked.
    pub(super) fn step(&self, units: &RowUnits<'_, F>, taps: &mut [&mut dyn Tap], cancel: &Cancel) -> Result<Outcome> {
        let n_components = self.scorer.n_components() - usize::from(self.has_tail);
        let ids: Vec<ComponentId> = (0..n_components as u32).map(ComponentId).collect();
        let Self { scorer, has_tail, width, margin, .. } = *self;
        let step = LocalStep {
            likelihood: self.model.likelihood.as_ref(),
            ids: &ids,
            assign: &ByScore { scorer, has_tail, width, margin, abandon: true, row_terms: true, mask: None },
            keep: self.keep,
            cancel,
        };
        step.run(units, None, taps)
    }
}
