//! What a background asks of a mixture, and where it stands: behind the components.

use std::sync::Arc;

use crate::data::{Domain, Freedom, Needs};
use crate::error::{Error, Result};
use crate::likelihood;
use crate::model::{Model, Named, Objective, Specification};
use crate::process::Weights;
use crate::scoring::Scorer;
use crate::simd::Scalar;
use crate::suffstats::Summary;

impl Specification {
    /// The columns of each likelihood for which their scales are equal, among the `d` columns that the model sees.
    pub(super) fn columns_alike(&self, d: usize) -> Result<Vec<Vec<usize>>> {
        let Named { name, parameters } = &self.likelihood;
        let parts = likelihood::members(name, parameters)?;
        let is_alike = |part: &likelihood::Member| part.entry.freedom <= Freedom::Common;
        if let [part] = &parts[..]
            && part.columns.is_none()
        {
            return Ok(if is_alike(part) { vec![(0..d).collect()] } else { Vec::new() });
        }
        let seen = likelihood::seen(&parts, parameters)?;
        Ok(parts.iter().zip(seen).filter(|(part, _)| is_alike(part)).map(|(_, columns)| columns).collect())
    }

    /// The moments of the data that a background needs, if there is one.
    pub fn needs_of_background(&self) -> Needs {
        if self.background.is_some() { Needs::Variances } else { Needs::Means }
    }

    /// Refuses what a mixture with a background cannot be.
    pub(super) fn check_background(&self, weights: &dyn Weights) -> Result<()> {
        if self.background.is_none() {
            return Ok(());
        }
        let refused =
            |with: String, reason: &str, allowed: &str| Err(Error::not_supported("background", with, reason, allowed));
        let Named { name, parameters } = &self.likelihood;
        let is_real = |member: &likelihood::Member| matches!(member.entry.domain, Some(Domain::Real | Domain::Centred));
        if let Some(other) = likelihood::members(name, parameters)?.iter().find(|member| !is_real(member)) {
            let with = format!("a background with {}", other.entry.name);
            let allowed = "background=None, or a likelihood of real numbers, such as Gaussian or StudentT";
            return refused(with, "its density is for columns of real numbers", allowed);
        }
        if weights.has_tail() {
            let with = format!("a background with {}(truncation=\"tail\")", self.process.name);
            let reason = "rows belong to no component in one way only";
            return refused(with, reason, "background=None, or another truncation");
        }
        if self.objective == Objective::Variational {
            return Ok(());
        }
        let with = format!("a background with objective={:?}", self.objective.name());
        let reason = "its share has a posterior distribution";
        refused(with, reason, "background=None, or objective=\"variational\"")
    }
}

impl<F: Scalar> Model<F> {
    /// Whether there is a column behind the components: the background, or the tail of the process.
    pub fn has_tail(&self) -> bool {
        self.background.is_some() || self.process.has_tail()
    }

    /// Puts the background, if there is one, with this log weight behind components.
    pub fn before_background(&self, components: Box<dyn Scorer<F>>, log_weight: f64) -> Box<dyn Scorer<F>> {
        match &self.background {
            Some(background) => background.behind(components, Arc::clone(&self.likelihood), log_weight),
            None => components,
        }
    }

    /// Count of the components beyond K; 0 unless the process gives them rows. The weights do not see the background.
    pub fn count_beyond(&self, summary: &Summary) -> f64 {
        if self.background.is_some() { 0.0 } else { summary.tail_count() }
    }
}
