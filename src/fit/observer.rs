//! Events of a run.

use crate::fitted::Record;

/// Receives events of a run: progress bars, callbacks, checkpoints.
pub trait Observer {
    /// Called when `done` of `n_batches` batches of pass `pass` have been visited.
    fn on_batch(&mut self, pass: usize, done: usize, n_batches: usize);
    /// Called when a pass is complete; returning `true` ends the run.
    fn on_pass(&mut self, record: &Record) -> bool;
    /// Whether to write a checkpoint now; `last`: whether the run has ended.
    fn wants_checkpoint(&mut self, _last: bool) -> bool {
        false
    }
    /// Receives a requested checkpoint.
    fn on_checkpoint(&mut self, _bytes: Vec<u8>) {}
}

/// Ignores all events.
impl Observer for () {
    fn on_batch(&mut self, _pass: usize, _done: usize, _n_batches: usize) {}

    fn on_pass(&mut self, _record: &Record) -> bool {
        false
    }
}
