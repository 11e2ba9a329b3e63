//! Hierarchies of rows.

use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2};
use pyo3::prelude::*;
use stickbreak::data::Tree;
use stickbreak::grounds::Grounds;
use stickbreak::mcmc::{Hierarchy, HierarchyPlan, Method, Target, TreeCut, check_hierarchy as check};
use stickbreak::model::Objective;
use stickbreak::parallel::Cancel;
use stickbreak::process::{Auxiliary, ProcessState};
use stickbreak::simd::Scalar;
use stickbreak::{Error, Result};

use crate::arrays::{AnyRows, vector, with_rows};
use crate::coordinates::lost_columns;
use crate::errors::to_python;
use crate::fields::format_error;
use crate::panics::caught;
use crate::run::run_quietly;
use crate::specification::{GivenPair, specification, write};

/// A tree over rows, with the model under which it was built.
#[pyclass(frozen, module = "stickbreak._core")]
pub struct HierarchyState {
    grounds: Grounds,
    hierarchy: Hierarchy,
    log_evidence_bound: f64,
}

fn method_of(name: &str) -> Method {
    if name == "bhc" { Method::Greedy } else { Method::Incremental }
}

/// Refuses a model, or a number of rows, of which no hierarchy can be built.
#[pyfunction]
pub fn check_hierarchy(likelihood: GivenPair<'_>, process: GivenPair<'_>, method: &str, n: usize) -> PyResult<()> {
    let specification = specification(&likelihood, &process, Objective::Variational.name(), false)?;
    caught(|| check(&specification, method_of(method), n).map_err(|error| to_python(&error)))
}

/// Builds a hierarchy; see `stickbreak.hierarchy`.
#[pyfunction]
#[pyo3(signature = (rows, *, likelihood, process, method, n_trials, seed, threads))]
#[allow(clippy::too_many_arguments, reason = "those of the Python function")]
pub fn hierarchy(
    py: Python<'_>,
    rows: AnyRows<'_>,
    likelihood: GivenPair<'_>,
    process: GivenPair<'_>,
    method: &str,
    n_trials: usize,
    seed: u64,
    threads: Option<usize>,
) -> PyResult<HierarchyState> {
    let specification = specification(&likelihood, &process, Objective::Variational.name(), false)?;
    let method = method_of(method);
    let plan = HierarchyPlan { method, n_trials, seed };
    with_rows!(&rows, |view| run_quietly(py, threads, |cancel| {
        let grounds = Grounds::for_sampler(&specification, &view, cancel)?;
        let target = grounds.target(&view)?;
        let hierarchy = Hierarchy::build(&target, plan, cancel)?;
        Ok(HierarchyState::of(grounds, hierarchy, &target))
    }))
}

/// Renames the argument in an error about new rows.
fn of_new(error: Error) -> Error {
    match error {
        Error::Numerical { message, .. } => {
            Error::invalid("X_new", format!("an array: {message}"), "rows with a finite density")
        }
        other => other,
    }
}

impl HierarchyState {
    fn of(grounds: Grounds, hierarchy: Hierarchy, target: &Target) -> Self {
        let log_evidence_bound = hierarchy.log_evidence_bound(target);
        Self { grounds, hierarchy, log_evidence_bound }
    }

    fn with_more<F: Scalar>(&self, all: &dyn stickbreak::data::Rows<F>, cancel: &Cancel) -> Result<Self> {
        let target = self.grounds.target(all)?;
        let hierarchy = self.hierarchy.insert(&target, cancel)?;
        Ok(Self::of(self.grounds.clone(), hierarchy, &target))
    }
}

#[pymethods]
impl HierarchyState {
    /// Restores the hierarchy of a file from joins, (n - 1, 2), and the state of the process: concentration, discount
    /// and, if it has auxiliary values, log u and the log mass.
    #[staticmethod]
    fn from_parts(
        py: Python<'_>,
        likelihood: GivenPair<'_>,
        process: GivenPair<'_>,
        rows: AnyRows<'_>,
        joins: PyReadonlyArray2<'_, i64>,
        state: Vec<f64>,
    ) -> PyResult<Self> {
        let specification = specification(&likelihood, &process, Objective::Variational.name(), false)?;
        let damaged = || format_error("a tree that does not fit the rows".into());
        let joins = joins.as_array();
        let mut pairs = Vec::with_capacity(joins.nrows());
        for join in joins.rows() {
            let [Ok(left), Ok(right)] = [join[0], join[1]].map(u32::try_from) else { return Err(damaged()) };
            pairs.push([left, right]);
        }
        let tree = Tree::new(pairs).ok_or_else(damaged)?;
        let auxiliary = match state[..] {
            [_, _] => None,
            [_, _, log_u, log_mass] if log_u.is_finite() && log_mass.is_finite() => Some(Auxiliary { log_u, log_mass }),
            _ => return Err(format_error("a state of the process that no hierarchy has".into())),
        };
        let state = ProcessState { concentration: state[0], discount: state[1], auxiliary };
        with_rows!(&rows, |view| run_quietly(py, Some(1), |cancel| {
            let grounds = Grounds::for_sampler(&specification, &view, cancel)?;
            let target = grounds.target(&view)?;
            if tree.n_rows() != target.n_rows() {
                return Err(Error::Format { message: "a tree that does not fit the rows".into() });
            }
            let hierarchy = Hierarchy::restore(&target, &tree, state)?;
            hierarchy.check_state(&target)?;
            Ok(Self::of(grounds, hierarchy, &target))
        }))
    }

    #[getter]
    fn likelihood<'py>(&self, py: Python<'py>) -> PyResult<GivenPair<'py>> {
        let parameters = self.grounds.parameters().map_err(|error| to_python(&error))?;
        Ok((self.grounds.specification.likelihood.name.clone(), write(py, &parameters)?))
    }

    /// Constant and dependent columns, which the model does not use.
    #[getter]
    fn lost_columns(&self) -> (Vec<usize>, Vec<usize>) {
        lost_columns(&self.grounds.coordinates)
    }

    /// Concentration and discount, followed by log u and the log mass if the process has auxiliary values.
    #[getter]
    fn state(&self) -> Vec<f64> {
        let ProcessState { concentration, discount, auxiliary } = self.hierarchy.process;
        let more = auxiliary.map_or_else(Vec::new, |auxiliary| vec![auxiliary.log_u, auxiliary.log_mass]);
        [&[concentration, discount][..], &more].concat()
    }

    #[getter]
    fn log_evidence_bound(&self) -> f64 {
        self.log_evidence_bound
    }

    /// Children of the inner nodes, (n - 1, 2).
    fn joins<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<i64>>> {
        let joins = self.hierarchy.tree.joins();
        let flat = joins.iter().flatten().map(|&node| i64::from(node)).collect();
        PyArray1::from_vec(py, flat).reshape([joins.len(), 2])
    }

    /// The joins in the format of SciPy, (n - 1, 4).
    fn linkage<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let rows = self.hierarchy.linkage();
        PyArray1::from_vec(py, rows.as_flattened().to_vec()).reshape([rows.len(), 4])
    }

    /// ln h, ln phi and ln d of all nodes, leaves first, nats, in the units of the data.
    fn potentials<'py>(&self, py: Python<'py>) -> [Bound<'py, PyArray1<f64>>; 3] {
        let [log_cluster, log_potential] = self.hierarchy.log_densities(self.grounds.coordinates.log_volume());
        let log_dissimilarity = self.hierarchy.log_dissimilarity.clone();
        [log_cluster, log_potential, log_dissimilarity].map(|values| vector(py, values))
    }

    /// Labels of the rows under a cut.
    fn cut<'py>(&self, py: Python<'py>, method: &str) -> Bound<'py, PyArray1<i64>> {
        let cut = if method == "bhc" { TreeCut::Bhc } else { TreeCut::Map };
        vector(py, self.hierarchy.cut(cut).into_iter().map(i64::from).collect())
    }

    /// Inserts more rows: those of `all` after the rows of the hierarchy.
    fn insert(&self, py: Python<'_>, all: AnyRows<'_>, new: AnyRows<'_>, threads: Option<usize>) -> PyResult<Self> {
        let off =
            with_rows!(&new, |view| run_quietly(py, threads, |cancel| self.grounds.check_new(&view, "X_new", cancel)))?;
        if let Some(row) = off.first() {
            let found = format!("row {row}, which varies where the rows of the hierarchy do not");
            return Err(to_python(&Error::invalid("X_new", found, "rows within the columns that vary")));
        }
        // Row numbers in errors count from the first new row.
        with_rows!(&new, |view| run_quietly(py, threads, |_| self.grounds.target(&view).map(drop).map_err(of_new)))?;
        with_rows!(&all, |view| run_quietly(py, threads, |cancel| self.with_more(&view, cancel)))
    }
}
