//! Collections of rows in shards: loaded by a Python function, or in other processes to which Python passes requests;
//! and what these processes do.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use numpy::{Element, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator, PyList};
use stickbreak::data::{DenseRows, RowUnits, Rows, Shards};
use stickbreak::executor::{Ask, Came, ReadBranch, RemoteShards, RequestPart, VisitBranch, Worker};
use stickbreak::parallel::{Cancel, with_threads};
use stickbreak::simd::Scalar;
use stickbreak::{Error, Result, executor};

use crate::arrays::{AnyRows, View, weights};
use crate::blocks::failed;
use crate::errors::{from_python, to_python};
use crate::panics;

/// Rows in shards: their type, the number of columns, the number of rows of each shard, and an object. Its
/// `load(shard)` returns the rows, or it passes requests to other processes.
pub struct GivenShards {
    pub dtype: String,
    pub n_columns: usize,
    pub sizes: Vec<usize>,
    pub is_remote: bool,
    pub object: Py<PyAny>,
}

impl<'py> FromPyObject<'_, 'py> for GivenShards {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (dtype, n_columns, sizes, is_remote, object) = object.extract()?;
        Ok(Self { dtype, n_columns, sizes, is_remote, object })
    }
}

/// The shards during a fit.
pub struct PythonShards<'a> {
    given: GivenShards,
    weights: Option<&'a [f64]>,
    /// Ends requests.
    cancel: OnceLock<Cancel>,
}

impl<'a> PythonShards<'a> {
    /// Of no fit yet.
    pub fn new(given: GivenShards, weights: Option<&'a [f64]>) -> Self {
        Self { given, weights, cancel: OnceLock::new() }
    }

    /// The weights of the rows of a shard.
    fn weights_of(&self, shard: usize) -> Option<Vec<f64>> {
        let first: usize = self.given.sizes[..shard].iter().sum();
        self.weights.map(|weights| weights[first..first + self.given.sizes[shard]].to_vec())
    }

    /// Who passes requests on, if the shards are in other processes.
    pub fn ask(&self) -> Option<&dyn Ask> {
        self.given.is_remote.then_some(self as &dyn Ask)
    }

    /// The shards, if they are in other processes.
    pub fn remote(&self) -> Option<RemoteShards<'_>> {
        let GivenShards { n_columns, ref sizes, .. } = self.given;
        self.ask().map(|ask| RemoteShards { ask, n_columns, sizes, weights: self.weights })
    }

    /// Ends requests when the work is cancelled.
    pub fn follow(&self, cancel: &Cancel) {
        self.cancel.get_or_init(|| cancel.clone());
    }

    fn call<T>(&self, ask: impl FnOnce(&Bound<'_, PyAny>, Stop) -> PyResult<T>) -> Result<T> {
        let cancel = self.cancel.get().cloned().unwrap_or_default();
        cancel.check()?;
        Python::attach(|py| ask(self.given.object.bind(py), Stop(cancel)).map_err(|error| understood(py, &error)))
    }
}

fn understood(py: Python<'_>, error: &PyErr) -> Error {
    from_python(py, error).unwrap_or_else(|| failed(py, error))
}

/// Loads shards by a Python function.
impl<F: Scalar + Element> Shards<F> for PythonShards<'_> {
    fn n_columns(&self) -> usize {
        self.given.n_columns
    }

    fn sizes(&self) -> &[usize] {
        &self.given.sizes
    }

    fn weights(&self) -> Option<&[f64]> {
        self.weights
    }

    fn load(&self, shard: usize) -> Result<RowUnits<'_, F>> {
        // Loads follow each other without other work where rows are copied.
        self.cancel.get().map_or(Ok(()), Cancel::check)?;
        let read = |py: Python<'_>| -> PyResult<Vec<F>> {
            let rows: PyReadonlyArray2<'_, F> = self.given.object.bind(py).call_method1("load", (shard,))?.extract()?;
            Ok(rows.as_slice()?.to_vec())
        };
        let values = Python::attach(|py| read(py).map_err(|error| understood(py, &error)))?;
        Ok(RowUnits::owned(Box::new(DenseRows::new(values, self.given.n_columns)), self.weights_of(shard)))
    }
}

/// Tells Python whether the work has been cancelled.
#[pyclass(frozen)]
pub struct Stop(Cancel);

#[pymethods]
impl Stop {
    /// Whether to stop.
    fn is_set(&self) -> bool {
        self.0.check().is_err()
    }
}

fn sent<'py>(py: Python<'py>, part: &RequestPart) -> (&'static str, u64, Bound<'py, PyBytes>) {
    (part.name, part.key, PyBytes::new(py, &part.bytes))
}

/// Passes requests to other processes through a Python object.
impl Ask for PythonShards<'_> {
    fn visit(&self, shards: &[usize], parts: &[RequestPart; 4]) -> Result<Vec<u8>> {
        self.call(|object, stop| {
            let py = object.py();
            let parts = PyList::new(py, parts.iter().map(|part| sent(py, part)))?;
            object.call_method1("visit", (shards.to_vec(), parts, stop))?.extract()
        })
    }

    fn read(&self, reading: &RequestPart) -> Result<Vec<u8>> {
        self.call(|object, stop| object.call_method1("read", (sent(object.py(), reading), stop))?.extract())
    }

    fn pick(&self, rows: &[(usize, Vec<u32>)]) -> Result<Vec<Vec<u8>>> {
        self.call(|object, stop| object.call_method1("pick", (rows.to_vec(), stop))?.extract())
    }
}

/// A shard that a worker has: its number, rows and weights.
type GivenShard<'py> = (usize, AnyRows<'py>, Option<PyReadonlyArray1<'py, f64>>);

/// Rows of a shard.
macro_rules! with_dense {
    ($rows:expr, |$view:ident| $body:expr) => {
        match $rows {
            AnyRows::Single(array) => {
                let $view = View(array.as_array());
                $body
            }
            AnyRows::Double(array) => {
                let $view = View(array.as_array());
                $body
            }
            AnyRows::SparseSingle(_) | AnyRows::SparseDouble(_) => Err(other_rows()),
        }
    };
}

fn on_pool<T: Send>(py: Python<'_>, threads: Option<usize>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    let guarded = || catch_unwind(AssertUnwindSafe(|| with_threads(threads, work).and_then(|outcome| outcome)));
    match py.detach(guarded) {
        Ok(outcome) => outcome.map_err(|error| to_python(&error)),
        // Dask would wait for ever for a task that ends with what is no Exception.
        Err(panic) => Err(panics::to_python(panic.as_ref())),
    }
}

fn bytes(py: Python<'_>, outcome: Vec<u8>) -> Bound<'_, PyBytes> {
    PyBytes::new(py, &outcome)
}

fn other_rows() -> PyErr {
    to_python(&Error::Format { message: "rows of another type".to_owned() })
}

/// Visits shards on behalf of a fit in another process, one at a time.
#[pyclass(frozen)]
pub struct ShardWorker(Mutex<AnyWorker>);

enum AnyWorker {
    Single(Box<Worker<f32>>),
    Double(Box<Worker<f64>>),
}

#[pymethods]
impl ShardWorker {
    /// Return a worker of a fit with this setup.
    #[staticmethod]
    fn of_setup(dtype: &str, setup: &[u8]) -> PyResult<Self> {
        let made = if dtype == "float32" {
            Worker::new(setup).map(|worker| AnyWorker::Single(Box::new(worker)))
        } else {
            Worker::new(setup).map(|worker| AnyWorker::Double(Box::new(worker)))
        };
        made.map(|worker| Self(Mutex::new(worker))).map_err(|error| to_python(&error))
    }

    /// Return the sum of the visits of shards that are a branch of the tree. `shards` are the number, the rows and the
    /// weights of each, one after another; `parts` are keys and bytes of plan, globals and head.
    #[pyo3(signature = (shards, parts, threads))]
    fn visit<'py>(
        &self,
        py: Python<'py>,
        shards: Bound<'py, PyIterator>,
        parts: [(u64, Bound<'py, PyBytes>); 3],
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let came = parts.each_ref().map(|(key, bytes)| Came { key: *key, bytes: bytes.as_bytes() });
        let mut branch = VisitBranch::new(came).map_err(|error| to_python(&error))?;
        for shard in shards {
            let (shard, rows, weights): GivenShard<'_> = shard?.extract()?;
            let weights = self::weights(weights.as_ref())?;
            with_dense!(&rows, |view| on_pool(py, threads, || self.add(&mut branch, shard, &view, weights)))?;
        }
        let sum = on_pool(py, threads, || match &mut *self.worker() {
            AnyWorker::Single(worker) => worker.finish(branch),
            AnyWorker::Double(worker) => worker.finish(branch),
        })?;
        Ok(bytes(py, sum))
    }
}

impl ShardWorker {
    /// Taken without the GIL, for which its holder may wait.
    fn worker(&self) -> MutexGuard<'_, AnyWorker> {
        // What a visit that failed has left behind is no more than what may be lost.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add<V: AnyView>(
        &self,
        branch: &mut VisitBranch<'_>,
        shard: usize,
        view: &V,
        weights: Option<&[f64]>,
    ) -> Result<()> {
        match (&mut *self.worker(), view.single(), view.double()) {
            (AnyWorker::Single(worker), Some(rows), _) => worker.visit(branch, shard, rows, weights),
            (AnyWorker::Double(worker), _, Some(rows)) => worker.visit(branch, shard, rows, weights),
            _ => Err(Error::Format { message: "rows of another type".to_owned() }),
        }
    }
}

/// Rows of one of the two types.
trait AnyView {
    fn single(&self) -> Option<&dyn Rows<f32>> {
        None
    }

    fn double(&self) -> Option<&dyn Rows<f64>> {
        None
    }
}

impl AnyView for View<'_, f32> {
    fn single(&self) -> Option<&dyn Rows<f32>> {
        Some(self)
    }
}

impl AnyView for View<'_, f64> {
    fn double(&self) -> Option<&dyn Rows<f64>> {
        Some(self)
    }
}

/// Return the sum of a reading over shards that are a branch of the tree, given as to `ShardWorker.visit`.
#[pyfunction]
#[pyo3(signature = (shards, reading, threads))]
pub fn read_shards<'py>(
    py: Python<'py>,
    shards: Bound<'py, PyIterator>,
    reading: &[u8],
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut branch = ReadBranch::new(reading).map_err(|error| to_python(&error))?;
    for shard in shards {
        let (_, rows, weights): GivenShard<'_> = shard?.extract()?;
        let weights = self::weights(weights.as_ref())?;
        with_dense!(&rows, |view| on_pool(py, threads, || branch.read(&view, weights)))?;
    }
    Ok(bytes(py, on_pool(py, threads, || branch.finish())?))
}

/// Return copies of listed rows of a shard.
#[pyfunction]
#[pyo3(signature = (rows, weights, list))]
pub fn pick_rows<'py>(
    py: Python<'py>,
    rows: AnyRows<'py>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    list: PyReadonlyArray1<'py, u32>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (list, weights) = (list.as_slice()?, self::weights(weights.as_ref())?);
    let sample = with_dense!(&rows, |view| on_pool(py, Some(1), || executor::pick_rows(&view, weights, list)))?;
    Ok(bytes(py, sample))
}

/// Return the sum of two neighbours in the tree of visits under a plan.
#[pyfunction]
pub fn add_visits<'py>(py: Python<'py>, plan: &[u8], left: &[u8], right: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    // Findings do not depend on the type of rows.
    let sum = on_pool(py, Some(1), || executor::add_visits::<f64>(plan, left, right))?;
    Ok(bytes(py, sum))
}

/// Return the sum of two neighbours in the tree of a reading.
#[pyfunction]
pub fn add_sums<'py>(py: Python<'py>, reading: &[u8], left: &[u8], right: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let sum = on_pool(py, Some(1), || executor::add_sums(reading, left, right))?;
    Ok(bytes(py, sum))
}
