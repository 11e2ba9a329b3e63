//! The entry points that sample, and what draws say of new rows.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray3, PyReadwriteArray3};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use stickbreak::data::{Rows, in_f64};
use stickbreak::grounds::Grounds;
use stickbreak::mcmc::checkpoint::{identity, read as resume, write as write_states};
use stickbreak::mcmc::{
    Attempts, ChainDraws, ChainPlan, Predictive, Sampling, Setup, Start, Target, Until, at_most, build,
    check_room_for_copy, log_predictive, predict,
};
use stickbreak::model::{Named, Objective};
use stickbreak::parallel::Cancel;
use stickbreak::simd::Scalar;
use stickbreak::{Error, Result};

use crate::arrays::{AnyRows, vector, with_rows};
use crate::coordinates::{basis, lost_columns, residual_columns};
use crate::errors::to_python;
use crate::fields::format_error;
use crate::panics::caught;
use crate::reports::GivenObserver;
use crate::run::{run, run_quietly};
use crate::specification::{GivenPair, read, specification, write};
use crate::state::FitState;

/// Checks the parameters of a sampler.
#[pyfunction]
pub fn check_sampler(name: &str, parameters: Bound<'_, PyDict>) -> PyResult<()> {
    let parameters = read(&parameters)?;
    caught(|| build(name, &parameters).map(|_| ()).map_err(|error| to_python(&error)))
}

/// Refuses a model that a sampler does not sample.
#[pyfunction]
pub fn check_model(likelihood: GivenPair<'_>, process: GivenPair<'_>, sampler: GivenPair<'_>) -> PyResult<()> {
    let mixture = specification(&likelihood, &process, Objective::Variational.name(), false)?;
    let parameters = read(&sampler.1)?;
    let checked = || build(&sampler.0, &parameters)?.check_model(&mixture);
    caught(|| checked().map_err(|error| to_python(&error)))
}

/// The likelihood with which to sample, and the fit that estimated its parameters, if any were None.
#[pyfunction]
pub fn estimate<'py>(
    py: Python<'py>,
    rows: AnyRows<'_>,
    likelihood: GivenPair<'_>,
    process: GivenPair<'_>,
    seed: u64,
    always: bool,
    threads: Option<usize>,
) -> PyResult<(GivenPair<'py>, Option<FitState>)> {
    let given = specification(&likelihood, &process, Objective::Variational.name(), false)?;
    let (complete, fitted) = with_rows!(&rows, |view| {
        run_quietly(py, threads, |cancel| stickbreak::estimate::estimate(&given, &view, seed, always, &(), cancel))
    })?;
    let Named { name, parameters } = &complete.likelihood;
    Ok(((name.clone(), write(py, &complete.with_prior(parameters))?), fitted.map(FitState::new)))
}

/// Refuses rows whose copy in float64 does not fit in memory.
#[pyfunction]
pub fn check_copy(rows: AnyRows<'_>, argument: &str) -> PyResult<()> {
    with_rows!(&rows, |view| {
        caught(|| check_room_for_copy(&view, view.n_columns(), argument).map_err(|error| to_python(&error)))
    })
}

/// Labels of at most `most` clusters: the largest ones, of which the last one takes the rows of all others.
#[pyfunction]
pub fn cut_to_clusters<'py>(
    py: Python<'py>,
    labels: PyReadonlyArray1<'py, u32>,
    most: usize,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let found = caught(|| Ok(at_most(labels.as_slice()?, most)))?;
    Ok(vector(py, found.into_iter().map(i64::from).collect()))
}

/// How chains run.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct GivenPlan<'py> {
    sampler: GivenPair<'py>,
    draws: usize,
    warmup: usize,
    thin: usize,
    chains: usize,
    seed: u64,
    max_seconds: Option<f64>,
    keep_rows: Option<PyReadonlyArray1<'py, u32>>,
    threads: Option<usize>,
    until: Option<(f64, f64)>,
    resumed: Option<Vec<u8>>,
}

/// A start as Python may write it.
#[derive(FromPyObject)]
pub enum GivenLabels<'py> {
    /// One of [`STARTS`].
    Name(String),
    /// The number of labels that are drawn at random.
    Random(u32),
    /// One label a row.
    Labels(PyReadonlyArray1<'py, i64>),
}

/// The names of starts.
const STARTS: [(&str, Start<'static>); 4] = [
    ("single", Start::Single),
    ("singletons", Start::Singletons),
    ("ibhc", Start::Incremental),
    ("one-on-top", Start::OnTop),
];

impl GivenLabels<'_> {
    /// The labels that are given, none if there are none.
    fn given(&self) -> Result<Vec<u32>> {
        let Self::Labels(labels) = self else { return Ok(Vec::new()) };
        let label = |&label: &i64| {
            u32::try_from(label).map_err(|_| Error::invalid("init", label, "labels from 0 to 4294967295"))
        };
        labels.as_array().iter().map(label).collect()
    }

    /// The start, of these labels if it is one of labels.
    fn start<'a>(&self, labels: &'a [u32]) -> Result<Start<'a>> {
        let name = match self {
            Self::Labels(_) => return Ok(Start::Labels(labels)),
            Self::Random(most) => return Ok(Start::Random(*most)),
            Self::Name(name) => name,
        };
        let known = STARTS.iter().find(|(known, _)| known == name).map(|(_, start)| *start);
        known.ok_or_else(|| {
            let allowed = STARTS.map(|(name, _)| format!("{name:?}")).join(", ");
            Error::invalid("init", format!("{name:?}"), format!("{allowed}, labels or a Fit"))
        })
    }
}

/// Samples partitions into `partitions`, (chains, draws, kept rows); see `stickbreak.sample`. Returns what the chains
/// say of them, and the model. `known`: the model of chains that go on, to the last bit.
#[pyfunction]
#[pyo3(signature = (rows, *, likelihood, process, plan, init, partitions, observer, known = None))]
#[allow(clippy::too_many_arguments, reason = "those of the Python function")]
pub fn sample<'py>(
    py: Python<'py>,
    rows: AnyRows<'_>,
    likelihood: GivenPair<'_>,
    process: GivenPair<'_>,
    plan: GivenPlan<'_>,
    init: Vec<GivenLabels<'_>>,
    mut partitions: PyReadwriteArray3<'_, i32>,
    observer: GivenObserver<'_>,
    known: Option<PyRef<'_, SampledModel>>,
) -> PyResult<(Bound<'py, PyDict>, SampledModel)> {
    let specification = specification(&likelihood, &process, Objective::Variational.name(), false)?;
    let mut sampler = build(&plan.sampler.0, &read(&plan.sampler.1)?).map_err(|error| to_python(&error))?;
    let given = init.iter().map(GivenLabels::given).collect::<Result<Vec<_>>>().map_err(|error| to_python(&error))?;
    let starts = init.iter().zip(&given).map(|(start, labels)| start.start(labels)).collect::<Result<Vec<_>>>();
    let starts = starts.map_err(|error| to_python(&error))?;
    let limit = plan.max_seconds.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
    let kept = plan.keep_rows.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
    let GivenPlan { draws, warmup, thin, chains, seed, threads, until, resumed, .. } = plan;
    let until = until.map(|(ess, r_hat)| Until { ess, r_hat });
    let plan = ChainPlan { draws, warmup, thin, chains, seed, limit, until };
    let (known, started) = (known.map(|known| known.grounds.clone()), Instant::now());
    let room = partitions.as_slice_mut()?;
    let reports = observer.reports();
    let checkpoint = observer.checkpoint.as_ref().and_then(|checkpoint| checkpoint.read().run);
    // A trace says that it is incomplete by its number of draws.
    let (((outcome, state), model), _) = with_rows!(&rows, |view| {
        run(py, threads, observer.show(), |cancel, events| {
            let own = || Grounds::for_sampler(&specification, &view, cancel);
            let grounds = known.as_ref().map_or_else(own, |known| Ok(known.clone()))?;
            let outcome = {
                let (rows, shown) = (in_f64(&view), format!("{sampler:?}"));
                sampler.check(rows.n_rows())?;
                if kept.is_some_and(|kept| kept.iter().any(|&row| row as usize >= rows.n_rows())) {
                    return Err(Error::Format { message: "kept rows that the data do not have".to_owned() });
                }
                let setup = Setup { grounds: &grounds, rows: rows.as_ref(), starts: &starts, seed, cancel };
                let chains = sampler.chains(setup)?;
                let mut identity = identity(chains.as_ref(), &shown, plan, kept, &grounds);
                if resumed.is_some() {
                    // Chains that go on have no start.
                    identity.0.retain(|(name, _)| name != "init");
                }
                let sampling = Sampling { chains: chains.as_ref(), plan, kept, started, identity };
                let from = resumed.as_deref().or(checkpoint).map(|bytes| resume(bytes, &sampling)).transpose()?;
                let outcome = sampling.run(room, from, &reports(events), cancel)?;
                let n_draws = outcome.draws.iter().map(|chain| chain.log_joint.len()).min().unwrap_or(0);
                let state = (!outcome.states.is_empty())
                    .then(|| write_states(&outcome.states, n_draws, &sampling.identity, plan));
                (outcome, state.transpose()?)
            };
            Ok((outcome, SampledModel { grounds }))
        })
    })?;
    let ahead = outcome.states.iter().map(|chain| chain.draws.log_joint.len()).max().unwrap_or(0);
    let found = to_dict(py, outcome.draws, &model)?;
    found.set_item("ahead", ahead)?;
    found.set_item("stopped", outcome.ended.name())?;
    found.set_item("state", state.map(|bytes| PyArray1::from_vec(py, bytes)))?;
    found.set_item("error", outcome.error.map(|error| to_python(&error).into_value(py)))?;
    Ok((found, model))
}

/// The arrays of all chains, cut to the number of draws that every chain has.
fn to_dict<'py>(py: Python<'py>, chains: Vec<ChainDraws>, model: &SampledModel) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let draws = chains.iter().map(|chain| chain.log_joint.len()).min().unwrap_or(0);
    let names = model.names()?;
    let traced = chains.iter().flat_map(|chain| chain.traced[..draws * names.len()].to_vec()).collect();
    dict.set_item("draws", draws)?;
    dict.set_item("names", names)?;
    dict.set_item("traced", vector(py, traced))?;
    let log_joint = chains.iter().flat_map(|chain| chain.log_joint[..draws].to_vec()).collect();
    dict.set_item("log_joint", vector(py, log_joint))?;
    let n_clusters = chains.iter().flat_map(|chain| chain.n_clusters[..draws].to_vec());
    dict.set_item("n_clusters", vector(py, n_clusters.map(i64::from).collect()))?;
    let sizes = chains.iter().flat_map(|chain| {
        let n: usize = chain.n_clusters[..draws].iter().map(|&n| n as usize).sum();
        &chain.sizes[..n]
    });
    dict.set_item("sizes", vector(py, sizes.copied().map(i64::from).collect()))?;
    dict.set_item("seconds", vector(py, chains.iter().map(|chain| chain.seconds).collect()))?;
    let proposals = PyDict::new(py);
    let mut by_name: BTreeMap<String, Attempts> = BTreeMap::new();
    for (name, attempts) in chains.into_iter().flat_map(|chain| chain.proposals) {
        *by_name.entry(name).or_default() += attempts;
    }
    for (name, Attempts { proposed, accepted, judged, log_ratio }) in by_name {
        proposals.set_item(name, (proposed, accepted, judged, log_ratio))?;
    }
    dict.set_item("proposals", proposals)?;
    Ok(dict)
}

/// The model of a trace, with all parameters filled in.
#[pyclass(frozen, module = "stickbreak._core")]
pub struct SampledModel {
    pub(crate) grounds: Grounds,
}

impl SampledModel {
    fn target(&self, rows: &AnyRows<'_>) -> PyResult<Target> {
        with_rows!(rows, |view| self.grounds.target(&view).map_err(|error| to_python(&error)))
    }

    /// Runs `work` with the target of the data and the table of new rows, in which rows off the support are marked.
    fn with_new<T: Send>(
        &self,
        py: Python<'_>,
        (rows, new, threads): (&AnyRows<'_>, &AnyRows<'_>, Option<usize>),
        work: impl Fn(&Target, &stickbreak::mcmc::RowTable, &Cancel) -> Result<T> + Send + Sync,
    ) -> PyResult<(T, Vec<usize>)> {
        let target = self.target(rows)?;
        with_rows!(new, |view| run_quietly(py, threads, |cancel| self.scored(&target, &view, cancel, &work)))
    }

    fn scored<F: Scalar, T>(
        &self,
        target: &Target,
        new: &dyn Rows<F>,
        cancel: &Cancel,
        work: &(impl Fn(&Target, &stickbreak::mcmc::RowTable, &Cancel) -> Result<T> + Sync),
    ) -> Result<(T, Vec<usize>)> {
        let off = self.grounds.check_new(new, "X", cancel)?;
        Ok((work(target, &self.grounds.table(target, new)?, cancel)?, off))
    }
}

/// Labels and reported values of draws.
pub fn draws_of<'a>(labels: &'a [i32], traced: &'a [f64], n: usize) -> Result<Vec<Predictive<'a>>> {
    let n_draws = labels.len() / n.max(1);
    let n_traced = traced.len() / n_draws.max(1);
    if n == 0 || n_draws == 0 || labels.len() != n * n_draws || traced.len() != n_traced * n_draws {
        return Err(Error::Format { message: "draws that do not fit the rows".to_owned() });
    }
    let draw = |index: usize| Predictive {
        labels: &labels[index * n..][..n],
        traced: &traced[index * n_traced..][..n_traced],
    };
    Ok((0..n_draws).map(draw).collect())
}

#[pymethods]
impl SampledModel {
    /// The model of these parameters for the rows that it was sampled for, as a file has them.
    #[staticmethod]
    fn from_parts(
        py: Python<'_>,
        likelihood: GivenPair<'_>,
        process: GivenPair<'_>,
        rows: AnyRows<'_>,
    ) -> PyResult<Self> {
        let specification = specification(&likelihood, &process, Objective::Variational.name(), false)?;
        let grounds = with_rows!(&rows, |view| run_quietly(py, Some(1), |cancel| Grounds::for_sampler(
            &specification,
            &view,
            cancel
        )))?;
        Ok(Self { grounds })
    }

    #[getter]
    fn likelihood<'py>(&self, py: Python<'py>) -> PyResult<GivenPair<'py>> {
        let parameters = caught(|| self.grounds.parameters().map_err(|error| to_python(&error)))?;
        Ok((self.grounds.specification.likelihood.name.clone(), write(py, &parameters)?))
    }

    #[getter]
    fn process<'py>(&self, py: Python<'py>) -> PyResult<GivenPair<'py>> {
        let named = &self.grounds.specification.process;
        Ok((named.name.clone(), write(py, &named.parameters)?))
    }

    /// Names of the values that draws report: those of the process, and a learned parameter of the base measure.
    #[getter]
    fn names(&self) -> PyResult<Vec<&'static str>> {
        let names = || {
            let law = self.grounds.specification.law()?;
            let of_process = law.hyperparameters();
            let state = of_process.start(of_process.augments())?;
            let of_base = self.grounds.specification.learned.map(|learned| learned.name);
            Ok(of_process.traced(&state).into_iter().map(|(name, _)| name).chain(of_base).collect())
        };
        caught(|| names().map_err(|error: Error| to_python(&error)))
    }

    /// Constant columns, and columns that follow from others.
    #[getter]
    fn lost_columns(&self) -> (Vec<usize>, Vec<usize>) {
        lost_columns(&self.grounds.coordinates)
    }

    /// Columns that nearly follow from others.
    #[getter]
    fn residual_columns(&self) -> Vec<usize> {
        residual_columns(&self.grounds.coordinates)
    }

    /// An orthonormal basis of the other directions, (D, r).
    #[getter]
    fn basis<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        basis(py, &self.grounds.coordinates)
    }

    /// A fingerprint of the rows.
    #[getter]
    fn fingerprint(&self) -> u64 {
        self.grounds.fingerprint
    }

    /// Log of the posterior predictive density of each new row, and the rows off the support.
    fn log_predictive<'py>(
        &self,
        py: Python<'py>,
        rows: AnyRows<'_>,
        labels: PyReadonlyArray3<'_, i32>,
        traced: PyReadonlyArray1<'_, f64>,
        new: AnyRows<'_>,
        threads: Option<usize>,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, Vec<usize>)> {
        let (labels, traced) = (labels.as_slice()?, traced.as_slice()?);
        let (values, off) = self.with_new(py, (&rows, &new, threads), |target, new, cancel| {
            log_predictive(target, &draws_of(labels, traced, target.n_rows())?, new, cancel)
        })?;
        Ok((vector(py, values), off))
    }

    /// The cluster of one draw that each new row most probably joins, and the rows off the support.
    fn predict<'py>(
        &self,
        py: Python<'py>,
        rows: AnyRows<'_>,
        labels: PyReadonlyArray1<'_, i32>,
        traced: PyReadonlyArray1<'_, f64>,
        new: AnyRows<'_>,
        threads: Option<usize>,
    ) -> PyResult<(Bound<'py, PyArray1<i64>>, Vec<usize>)> {
        let (labels, traced) = (labels.as_slice()?, traced.as_slice()?);
        if labels.is_empty() {
            return Err(format_error("a draw of no rows".into()));
        }
        let (values, off) = self.with_new(py, (&rows, &new, threads), |target, new, cancel| {
            predict(target, Predictive { labels, traced }, new, cancel)
        })?;
        Ok((vector(py, values), off))
    }
}
