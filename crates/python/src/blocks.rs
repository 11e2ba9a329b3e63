//! Blocks of rows from a Python function, as a source of the core. A thread of each reading calls Python, and reads the
//! next block while the last one is in use.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use numpy::{Element, PyReadonlyArray2};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyIterator;
use stickbreak::data::{BlockReader, Blocks};
use stickbreak::parallel::no_thread;
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
        let start = Python::attach(|py| self.start.clone_ref(py));
        // Of no length: the thread waits with a block until it is asked for the one before.
        let (sender, blocks) = sync_channel(0);
        let thread = Builder::new().name("stickbreak-reader".into()).spawn(move || read(&start, &sender));
        let thread = thread.map_err(|error| no_thread(&error))?;
        let mut reader = Reader { blocks: Some(blocks), thread: Some(thread) };
        // The thread says that the function has returned an iterator, or what failed.
        reader.next_block()?;
        Ok(Box::new(reader))
    }
}

/// What the thread of a reading sends: an empty block when the function has returned, then its blocks, and `None` or an
/// error at the end.
type Message<F> = Result<Option<Vec<F>>>;

/// Calls the function and sends its blocks. Ends after the last block, after an error, or when the reader is dropped.
///
/// The iterator and all exceptions are dropped while this thread holds the interpreter: dropped without it, they would
/// be freed by whichever thread holds it next, and a generator would release a lock or close a connection there,
/// perhaps after the next reading has begun.
fn read<F: Scalar + Element>(start: &Py<PyAny>, sender: &SyncSender<Message<F>>) {
    let begin = |py: Python<'_>| start.bind(py).call0()?.try_iter().map(Bound::unbind);
    let iterator = match Python::attach(|py| begin(py).map_err(|error| failed(py, &error))) {
        Ok(iterator) => iterator,
        Err(error) => return drop(sender.send(Err(error))),
    };
    let mut block = Ok(Some(Vec::new()));
    let mut is_read = true;
    while is_read && matches!(block, Ok(Some(_))) {
        is_read = sender.send(std::mem::replace(&mut block, Ok(None))).is_ok();
        if is_read {
            block = next(&iterator);
        }
    }
    Python::attach(|_| drop(iterator));
    if is_read {
        // The last message; the reader may be gone.
        drop(sender.send(block));
    }
}

fn next<F: Scalar + Element>(iterator: &Py<PyIterator>) -> Message<F> {
    let read = |py: Python<'_>| {
        let Some(block) = iterator.bind(py).clone().next() else { return Ok(None) };
        let block: PyReadonlyArray2<'_, F> = block?.extract()?;
        Ok(Some(block.as_slice()?.to_vec()))
    };
    Python::attach(|py| read(py).map_err(|error: PyErr| failed(py, &error)))
}

/// The blocks of one reading.
struct Reader<F> {
    /// `None` after the last message.
    blocks: Option<Receiver<Message<F>>>,
    thread: Option<JoinHandle<()>>,
}

impl<F> Reader<F> {
    /// Waits for the thread to end.
    fn join(&mut self) {
        self.blocks = None;
        let Some(thread) = self.thread.take() else { return };
        // The thread may need the interpreter, which the one that drops a reader may hold.
        let ended = Python::attach(|py| py.detach(|| thread.join()));
        if let Err(panic) = ended
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

impl<F> Drop for Reader<F> {
    fn drop(&mut self) {
        self.join();
    }
}

impl<F: Scalar> BlockReader<F> for Reader<F> {
    fn next_block(&mut self) -> Result<Option<Vec<F>>> {
        let Some(message) = self.blocks.as_ref().map(Receiver::recv) else { return Ok(None) };
        if !matches!(message, Ok(Ok(Some(_)))) {
            self.join();
        }
        // A thread that sends nothing any more has panicked, which `join` passes on.
        message.unwrap_or(Ok(None))
    }
}

/// Converts an exception. The message is Python's own text; errors of this package already have a complete message.
/// Ctrl-C is not a failure of the source.
pub fn failed(py: Python<'_>, error: &PyErr) -> Error {
    if error.is_instance_of::<PyKeyboardInterrupt>(py) {
        return Error::Cancelled;
    }
    let kind = error.get_type(py);
    let ours = kind.getattr("__module__").is_ok_and(|module| module.eq("stickbreak.errors").unwrap_or(false));
    let name = kind.name().map_or_else(|_| "an exception".into(), |name| name.to_string());
    let text = error.value(py).str().map_or_else(|_| String::new(), |text| text.to_string());
    let message = match (ours, text.is_empty()) {
        (true, _) => text,
        (false, true) => name,
        (false, false) => format!("{name}: {text}"),
    };
    Error::Source { batch: None, message }
}
