//! Another start of a small table: a hierarchy of its rows, whose evidence tells how wide components are, and whose cut
//! how many there are (mathematics 10.9).

use crate::data::{Dataset, SeenRows};
use crate::error::{Error, Result};
use crate::fit::prepare::Prepared;
use crate::likelihood::{self, Given, Loosening, demands};
use crate::mcmc::{Hierarchy, HierarchyPlan, Method, RowTable, Target, TreeCut};
use crate::parameters::{Parameters, Value};
use crate::registry::RESOLUTION;
use crate::simd::Scalar;

/// Maximum number of rows.
const MOST_ROWS: usize = 2_000;
/// Maximum number of columns. A tree costs their square for every row and level.
const MOST_COLUMNS: usize = 6;
/// Precision of the prior mean, in rows.
const PRECISION: f64 = 0.001;
/// Number of successive trees without a higher evidence after which no further one is built.
const FALLS: usize = 2;
/// The variances that trees expect, as divisors of that of the data.
const DIVISORS: [f64; 6] = [4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0];

impl<F: Scalar> Prepared<'_, F> {
    /// Labels of all rows, and the parameters of the base measure under which they were found: the cut of the tree with
    /// the highest evidence. `None` if trees do not take such rows or such a model.
    ///
    /// # Errors
    /// [`Error::Cancelled`]; [`Error::Source`].
    pub(super) fn tree_labels(&self) -> Result<Option<(Vec<u32>, Parameters)>> {
        let rows = SeenRows { rows: self.job.rows, coordinates: &self.grounds.coordinates };
        let is_small = self.n_rows <= MOST_ROWS && self.model.likelihood.dimension() <= MOST_COLUMNS;
        let specification = &self.grounds.specification;
        let is_plain = rows.weights().is_none() && !rows.is_sparse() && !specification.missing;
        let (Some(estimated), true) = (&specification.estimated, is_small && is_plain) else { return Ok(None) };
        let Ok(process) = specification.partitions() else { return Ok(None) };
        let table = self.table(&rows)?;
        let mut best: Option<(f64, Vec<u32>, Parameters)> = None;
        let mut n_worse = 0;
        for divisor in DIVISORS {
            if n_worse == FALLS {
                break;
            }
            let Some(parameters) = self.narrow(&estimated.start, &estimated.free, divisor)? else { return Ok(None) };
            let build = || {
                let without_cells = Self::without_cells(&specification.likelihood.name, &parameters)?;
                let frame = self.model.frame();
                let likelihood = likelihood::build::<f64>(&specification.likelihood.name, &without_cells, frame)?;
                let target = Target::new(likelihood, process.clone(), table.clone(), 0.0)?;
                let plan = HierarchyPlan { method: Method::Incremental, n_trials: 1, seed: self.settings.seed };
                let tree = Hierarchy::build(&target, plan, self.cancel)?;
                Ok((tree.log_evidence_bound(&target), tree.cut(TreeCut::Bhc)))
            };
            match build() {
                Ok((evidence, labels)) if best.as_ref().is_none_or(|(most, ..)| evidence > *most) => {
                    best = Some((evidence, labels, parameters));
                    n_worse = 0;
                }
                Ok(_) | Err(Error::Numerical { .. }) => n_worse += 1,
                Err(error @ Error::Cancelled) => return Err(error),
                // A likelihood or a process without trees, or too little memory: there is no such start.
                Err(_) => return Ok(None),
            }
        }
        Ok(best.map(|(_, labels, parameters)| (labels, parameters)))
    }

    /// The initial base measure, with narrower components.
    fn narrow(&self, start: &Parameters, free: &[String], divisor: f64) -> Result<Option<Parameters>> {
        let Some(evidence) = self.model.likelihood.evidence() else { return Ok(None) };
        let by = Loosening { divisor, precision: PRECISION };
        evidence.loose(&Given { components: &[], parameters: start, start, free }, by)
    }

    /// Rounding cells have no closed marginal likelihood.
    fn without_cells(name: &str, parameters: &Parameters) -> Result<Parameters> {
        let has_cells = demands(name)?.resolution;
        Ok(if has_cells { parameters.with([(RESOLUTION.name, Value::Number(0.0))]) } else { parameters.clone() })
    }

    /// All rows, relative to the origin.
    fn table(&self, rows: &dyn Dataset<F>) -> Result<RowTable> {
        let list: Vec<u32> = (0..self.n_rows as u32).collect();
        let origin: Vec<F> = self.model.likelihood.origin().iter().map(|&value| F::from_f64(value)).collect();
        let mut values = vec![F::ZERO; list.len() * origin.len()];
        rows.pick(&list)?.read(0..list.len(), &origin, &mut values);
        Ok(RowTable::dense(values.iter().map(|value| value.to_f64()).collect(), origin.len()))
    }
}
