//! Blocks of rows from a Python function, as a source of the core. A separate thread requests them.

use numpy::{Element, PyReadonlyArray2};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyIterator;
use stickbreak::data::{BlockReader, Blocks};
use stickbreak::simd::Scalar;
use stickbreak::{Error, Result};

/// A Python function that returns a new iterator over C-contiguous arrays of `n_columns` columns, all of one type.
pub struct PythonBlocks {
    /// The function.
    pub start: Py<PyAny>,
    /// Number of columns of every array.
    pub n_columns: usize,
}

impl<F: Scalar + Element> Blocks<F> for PythonBlocks {
    fn n_columns(&self) -> usize {
        self.n_columns
    }

    fn start(&self) -> Result<Box<dyn BlockReader<F>>> {
        let iterator = Python::attach(|py| self.start.bind(py).call0()?.try_iter().map(Bound::unbind))
            .map_err(|error| failed(&error))?;
        Ok(Box::new(Reader(iterator)))
    }
}

struct Reader(Py<PyIterator>);

impl<F: Scalar + Element> BlockReader<F> for Reader {
    fn next_block(&mut self) -> Result<Option<Vec<F>>> {
        Python::attach(|py| {
            let Some(block) = self.0.bind(py).clone().next() else { return Ok(None) };
            let block: PyReadonlyArray2<'_, F> = block?.extract()?;
            Ok(Some(block.as_slice()?.to_vec()))
        })
        .map_err(|error| failed(&error))
    }
}

/// Converts an exception. The message is Python's own text; errors of this package already have a complete message.
/// Ctrl-C is not a failure of the source.
fn failed(error: &PyErr) -> Error {
    if Python::attach(|py| error.is_instance_of::<PyKeyboardInterrupt>(py)) {
        return Error::Cancelled;
    }
    let message = Python::attach(|py| {
        let kind = error.get_type(py);
        let ours = kind.getattr("__module__").is_ok_and(|module| module.eq("stickbreak.errors").unwrap_or(false));
        let name = kind.name().map_or_else(|_| "an exception".into(), |name| name.to_string());
        let text = error.value(py).str().map_or_else(|_| String::new(), |text| text.to_string());
        match (ours, text.is_empty()) {
            (true, _) => text,
            (false, true) => name,
            (false, false) => format!("{name}: {text}"),
        }
    });
    Error::Source { batch: None, message }
}
