//! Releases the GIL and handles Ctrl-C, events and panics, for every function that computes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use stickbreak::Result;
use stickbreak::events::Event;
use stickbreak::parallel::{Cancel, alone, no_thread, with_threads};

use crate::errors::to_python;
use crate::panics;

/// Interval between checks for signals.
const POLL: Duration = Duration::from_millis(100);

/// An event of a run to show to Python while the work continues.
pub struct Sent {
    pub run: usize,
    pub event: Event,
    /// Takes the answer: whether to stop.
    pub answer: Sender<bool>,
}

/// Runs `work` on a pool of `threads` threads without the GIL. The calling thread polls signals and shows events. After
/// Ctrl-C the work stops and may return its result so far. Without a result, the `KeyboardInterrupt` is raised, as is
/// any exception raised by `show`. Returns the result, and whether there was an interrupt, also if it came too late to
/// stop the work.
pub fn run<T: Send>(
    py: Python<'_>,
    threads: Option<usize>,
    show: impl Fn(Python<'_>, usize, Event) -> PyResult<bool> + Send,
    work: impl FnOnce(&Cancel, &Sender<Sent>) -> Result<T> + Send,
) -> PyResult<(T, bool)> {
    let (outcome, raised) = attended(py, threads, show, work)?;
    // An interrupt after the last look would be raised in Python, where the result would be lost.
    match (outcome, raised.or_else(|| py.check_signals().err())) {
        (Ok(value), Some(error)) if error.is_instance_of::<PyKeyboardInterrupt>(py) => Ok((value, true)),
        (_, Some(error)) => Err(error),
        (outcome, None) => outcome.map(|value| (value, false)),
    }
}

/// The outcome of `work`, and the first exception that was raised meanwhile.
fn attended<T: Send>(
    py: Python<'_>,
    threads: Option<usize>,
    show: impl Fn(Python<'_>, usize, Event) -> PyResult<bool> + Send,
    work: impl FnOnce(&Cancel, &Sender<Sent>) -> Result<T> + Send,
) -> PyResult<(PyResult<T>, Option<PyErr>)> {
    let cancel = Cancel::default();
    let (sender, receiver) = channel::<Sent>();
    let (outcome, raised) = py.detach(move || {
        std::thread::scope(|scope| {
            let flag = cancel.clone();
            let worker = std::thread::Builder::new().name("stickbreak".into()).spawn_scoped(scope, move || {
                let events = sender;
                catch_unwind(AssertUnwindSafe(|| with_threads(threads, || work(&flag, &events))))
            });
            match worker {
                Ok(worker) => {
                    let raised = attend(&receiver, &cancel, &show);
                    (worker.join().unwrap_or_else(Err), raised)
                }
                Err(error) => (Ok(Err(no_thread(&error))), None),
            }
        })
    });
    match outcome {
        Err(panic) => Err(panics::to_python(panic.as_ref())),
        Ok(outcome) => Ok((outcome.flatten().map_err(|error| to_python(&error)), raised)),
    }
}

/// Shows events and polls signals until the worker ends. Returns the first exception.
fn attend(
    receiver: &Receiver<Sent>,
    cancel: &Cancel,
    show: &(impl Fn(Python<'_>, usize, Event) -> PyResult<bool> + Send),
) -> Option<PyErr> {
    let mut raised = None;
    let mut keep = |outcome: PyResult<bool>| match outcome {
        Ok(stop) => stop,
        Err(error) => {
            cancel.cancel();
            raised.get_or_insert(error);
            true
        }
    };
    loop {
        match receiver.recv_timeout(POLL) {
            Ok(Sent { run, event, answer }) => {
                let stop = keep(Python::attach(|py| {
                    py.check_signals()?;
                    show(py, run, event)
                }));
                // Without a run that waits for the answer, all work stops.
                if answer.send(stop).is_err() && stop {
                    cancel.cancel();
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                keep(Python::attach(|py| py.check_signals().map(|()| false)));
            }
            Err(RecvTimeoutError::Disconnected) => return raised,
        }
    }
}

/// Runs work without events: quick work on this thread, because starting a thread would take longer.
pub fn run_soon<T: Send>(
    py: Python<'_>,
    threads: Option<usize>,
    is_quick: bool,
    work: impl FnOnce(&Cancel) -> Result<T> + Send,
) -> PyResult<T> {
    if !is_quick {
        return run_quietly(py, threads, work);
    }
    match py.detach(|| catch_unwind(AssertUnwindSafe(|| alone(|| work(&Cancel::default()))))) {
        Ok(outcome) => outcome.map_err(|error| to_python(&error)),
        Err(panic) => Err(panics::to_python(panic.as_ref())),
    }
}

/// Runs work without events. After an interrupt the `KeyboardInterrupt` is raised even if the result is complete,
/// because the result does not say that it was interrupted.
pub fn run_quietly<T: Send>(
    py: Python<'_>,
    threads: Option<usize>,
    work: impl FnOnce(&Cancel) -> Result<T> + Send,
) -> PyResult<T> {
    let (outcome, raised) = attended(py, threads, |_, _, _| Ok(false), |cancel, _| work(cancel))?;
    raised.map_or(outcome, Err)
}
