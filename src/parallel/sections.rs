//! A log of parallel sections and their tasks, from which `benches/scaling.py` predicts times on more threads. Built
//! with the feature `sections` only, and meant for one thread: events of several would interleave.

use std::panic::Location;
use std::sync::Mutex;
use std::time::Instant;

use super::locked;

/// What happened, when it is not the beginning of a section: sections are named by their place in
/// [`Log::callers`].
const TASK: i32 = -1;
const TASK_DONE: i32 = -2;
const END: i32 = -3;

static LOG: Mutex<Option<Log>> = Mutex::new(None);

/// Events in the order in which they happened.
#[derive(Debug)]
pub struct Log {
    start: Instant,
    /// File and line of the calls that began sections.
    pub callers: Vec<String>,
    /// Nanoseconds since the start, and what happened: a section begins at the caller with this index (0 or more), a
    /// task begins (-1), it is done (-2), or the section ends (-3).
    pub events: Vec<(u64, i32)>,
}

/// Begins a log.
pub fn start() {
    *locked(&LOG) = Some(Log { start: Instant::now(), callers: Vec::new(), events: Vec::new() });
}

/// Ends the log and returns it.
pub fn take() -> Option<Log> {
    locked(&LOG).take()
}

fn note(event: impl FnOnce(&mut Log) -> i32) {
    if let Some(log) = locked(&LOG).as_mut() {
        let event = event(log);
        log.events.push((log.start.elapsed().as_nanos() as u64, event));
    }
}

/// Runs `task(0), ..., task(n - 1)` by `run`, and notes when each began and ended.
pub(super) fn logged(caller: &Location<'_>, task: &(dyn Fn(usize) + Sync), run: impl FnOnce(&(dyn Fn(usize) + Sync))) {
    note(|log| {
        let name = format!("{}:{}", caller.file(), caller.line());
        let place = log.callers.iter().position(|known| *known == name).unwrap_or_else(|| {
            log.callers.push(name);
            log.callers.len() - 1
        });
        i32::try_from(place).unwrap_or(i32::MAX)
    });
    run(&|index| {
        note(|_| TASK);
        task(index);
        note(|_| TASK_DONE);
    });
    note(|_| END);
}
