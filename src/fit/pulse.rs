//! Shows observers during long work between passes that a run goes on, and lets them end it.

use std::time::{Duration, Instant};

use crate::events::{Event, Observer};
use crate::fitted::Record;

/// Time between two events.
const SECOND: Duration = Duration::from_secs(1);

/// Shows the record of the last pass every second.
pub struct Pulse<'a> {
    observer: &'a dyn Observer,
    record: Option<Record>,
    begun: Instant,
    last: Instant,
    /// Whether the observer has asked to stop.
    pub has_stopped: bool,
}

impl<'a> Pulse<'a> {
    pub(super) fn new(observer: &'a dyn Observer, record: Option<Record>) -> Self {
        let begun = Instant::now();
        Self { observer, record, begun, last: begun, has_stopped: false }
    }

    /// Whether to end the work.
    pub(super) fn stops(&mut self) -> bool {
        if self.last.elapsed() >= SECOND {
            self.last = Instant::now();
            self.has_stopped |= self.show();
        }
        self.has_stopped
    }

    /// Shows the record with the current time. Returns whether to stop.
    fn show(&self) -> bool {
        let Some(record) = &self.record else { return false };
        let seconds = record.seconds + self.begun.elapsed().as_secs_f64();
        self.observer.on_event(0, Event::Pass(Record { seconds, ..record.clone() }))
    }
}
