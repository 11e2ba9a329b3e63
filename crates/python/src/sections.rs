//! The log of parallel sections, for `benches/scaling.py`.

use pyo3::prelude::*;
use stickbreak::parallel::sections;

type Events = (Vec<String>, Vec<u64>, Vec<i32>);

/// Call `work` and return the callers, the nanoseconds and the kinds of the events of its sections.
#[pyfunction]
pub fn log_sections(work: &Bound<'_, PyAny>) -> PyResult<Events> {
    sections::start();
    let done = work.call0();
    let log = sections::take();
    done?;
    let (nanoseconds, kinds) = log.iter().flat_map(|log| &log.events).copied().unzip();
    Ok((log.map(|log| log.callers).unwrap_or_default(), nanoseconds, kinds))
}
