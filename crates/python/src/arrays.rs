//! NumPy arrays as rows of the core. Only this file dispatches on dtypes.

use numpy::ndarray::ArrayView2;
use numpy::{
    Element, PyArray1, PyArray2, PyArrayDescrMethods, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
    PyUntypedArray, PyUntypedArrayMethods, dtype,
};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use stickbreak::data::{Csr, CsrRows, Rows, copy_rows};
use stickbreak::simd::Scalar;

use crate::errors::to_python;
use crate::shards::GivenShards;

/// A NumPy array of either type, borrowed while the core works on it.
pub enum AnyRows<'py> {
    /// float32.
    Single(PyReadonlyArray2<'py, f32>),
    /// float64.
    Double(PyReadonlyArray2<'py, f64>),
    /// float32 in compressed sparse rows.
    SparseSingle(Sparse<'py, f32>),
    /// float64 in compressed sparse rows.
    SparseDouble(Sparse<'py, f64>),
}

/// Asks for the form first: an extraction that fails formats an error, while Python may handle a signal and drop the
/// `KeyboardInterrupt`.
impl<'py> FromPyObject<'_, 'py> for AnyRows<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let is_single = |array: &Bound<'py, PyAny>| {
            array.cast::<PyUntypedArray>().is_ok_and(|array| array.dtype().is_equiv_to(&dtype::<f32>(array.py())))
        };
        Ok(match object.cast::<PyTuple>() {
            Ok(parts) if parts.iter().nth(2).is_some_and(|values| is_single(&values)) => {
                Self::SparseSingle(object.extract()?)
            }
            Ok(_) => Self::SparseDouble(object.extract()?),
            Err(_) if is_single(&object) => Self::Single(object.extract()?),
            Err(_) => Self::Double(object.extract()?),
        })
    }
}

/// Starts, columns and values of compressed sparse rows, and the number of columns.
type Sparse<'py, F> = (PyReadonlyArray1<'py, u64>, PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, F>, usize);

/// Returns the table that the core reads.
pub fn csr<'a, F: Scalar + Element>(
    (starts, columns, values, n_columns): &'a Sparse<'_, F>,
) -> PyResult<CsrRows<'a, F>> {
    let table = Csr { starts: starts.as_slice()?, columns: columns.as_slice()?, values: values.as_slice()? };
    CsrRows::new(table, *n_columns).map_err(|error| to_python(&error))
}

/// Calls a generic function with the rows of an [`AnyRows`] of any type.
macro_rules! with_rows {
    ($rows:expr, |$view:ident| $body:expr) => {
        match $rows {
            $crate::arrays::AnyRows::Single(array) => {
                let $view = $crate::arrays::View(array.as_array());
                $body
            }
            $crate::arrays::AnyRows::Double(array) => {
                let $view = $crate::arrays::View(array.as_array());
                $body
            }
            $crate::arrays::AnyRows::SparseSingle(parts) => {
                let $view = $crate::arrays::csr(parts)?;
                $body
            }
            $crate::arrays::AnyRows::SparseDouble(parts) => {
                let $view = $crate::arrays::csr(parts)?;
                $body
            }
        }
    };
}
pub(crate) use with_rows;

/// The rows of a fit: an array, or the type, the number of columns and the function of a source of blocks.
pub enum AnyData<'py> {
    /// In memory or in a memory map.
    Rows(AnyRows<'py>),
    /// In blocks.
    Blocks(String, usize, Py<PyAny>),
    /// In shards.
    Shards(GivenShards),
}

impl<'py> FromPyObject<'_, 'py> for AnyData<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let first = object.cast::<PyTuple>().ok().and_then(|parts| parts.iter().next());
        if first.is_some_and(|first| first.is_instance_of::<PyString>()) {
            if object.cast::<PyTuple>().is_ok_and(|parts| parts.len() > 3) {
                return Ok(Self::Shards(object.extract()?));
            }
            let (dtype, n_columns, start) = object.extract()?;
            return Ok(Self::Blocks(dtype, n_columns, start));
        }
        Ok(Self::Rows(object.extract()?))
    }
}

/// Calls a generic function with the dataset of an [`AnyData`] of any type, and with its shards, if it has any.
macro_rules! with_data {
    ($data:expr, $weights:expr, |$dataset:ident, $shards:ident| $body:expr) => {
        match $data {
            $crate::arrays::AnyData::Rows(rows) => $crate::arrays::with_rows!(&rows, |view| {
                let $dataset = stickbreak::data::TableRows { rows: &view, weights: $weights };
                let $shards = None::<&$crate::shards::PythonShards>;
                $body
            }),
            $crate::arrays::AnyData::Blocks(dtype, n_columns, start) => {
                let blocks = $crate::blocks::PythonBlocks { start, n_columns };
                let $shards = None::<&$crate::shards::PythonShards>;
                if dtype == "float32" {
                    let $dataset = stickbreak::data::Stream::<f32>::new(&blocks, $weights);
                    $body
                } else {
                    let $dataset = stickbreak::data::Stream::<f64>::new(&blocks, $weights);
                    $body
                }
            }
            $crate::arrays::AnyData::Shards(given) => {
                let is_single = given.dtype == "float32";
                let shards = $crate::shards::PythonShards::new(given, $weights);
                let (remote, $shards) = (shards.remote(), Some(&shards));
                if is_single {
                    let source: &dyn stickbreak::data::Shards<f32> = remote.as_ref().map_or(&shards, |remote| remote);
                    let $dataset = stickbreak::data::Collection::new(source);
                    $body
                } else {
                    let source: &dyn stickbreak::data::Shards<f64> = remote.as_ref().map_or(&shards, |remote| remote);
                    let $dataset = stickbreak::data::Collection::new(source);
                    $body
                }
            }
        }
    };
}
pub(crate) use with_data;

/// View of an array with any strides.
pub struct View<'a, F>(pub ArrayView2<'a, F>);

impl<F: Scalar + Element> Rows<F> for View<'_, F> {
    fn n_rows(&self) -> usize {
        self.0.nrows()
    }

    fn n_columns(&self) -> usize {
        self.0.ncols()
    }

    fn read_row(&self, row: usize, out: &mut [F]) {
        let values = self.0.row(row);
        match values.as_slice() {
            Some(values) => out.copy_from_slice(values),
            None => out.iter_mut().zip(values).for_each(|(to, &from)| *to = from),
        }
    }

    fn read_rows(&self, rows: &[usize], out: &mut [F]) {
        match self.0.as_slice() {
            Some(table) => copy_rows(table, self.n_columns(), rows, out),
            None => {
                for (&row, out) in rows.iter().zip(out.chunks_exact_mut(self.n_columns())) {
                    self.read_row(row, out);
                }
            }
        }
    }
}

/// Returns weights as a slice. Python passes them contiguous.
pub fn weights<'a>(array: Option<&'a PyReadonlyArray1<'_, f64>>) -> PyResult<Option<&'a [f64]>> {
    array.map(|array| array.as_slice().map_err(PyErr::from)).transpose()
}

/// Returns a vector as a NumPy array.
pub fn vector<T: Element>(py: Python<'_>, values: Vec<T>) -> Bound<'_, PyArray1<T>> {
    PyArray1::from_vec(py, values)
}

/// Returns a table of `columns` columns as a NumPy array.
pub fn table<T: Element>(py: Python<'_>, values: Vec<T>, columns: usize) -> PyResult<Bound<'_, PyArray2<T>>> {
    let rows = values.len() / columns.max(1);
    PyArray1::from_vec(py, values).reshape([rows, columns])
}

/// Checks that a number of components or rows is at least one.
pub fn at_least_one(name: &str, value: usize) -> PyResult<usize> {
    if value == 0 {
        return Err(to_python(&stickbreak::Error::invalid(name, value, "at least 1")));
    }
    Ok(value)
}
