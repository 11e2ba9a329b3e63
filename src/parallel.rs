//! The only place that starts parallel work: fixed blocks, results in block order, so that no number depends
//! on the number of threads.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use crate::error::{Error, Result};

/// A flag that asks long work to stop; the work looks at it between blocks.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Asks the work to stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// [`Error::Cancelled`] once somebody asked to stop.
    pub fn check(&self) -> Result<()> {
        if self.0.load(Ordering::Relaxed) { Err(Error::Cancelled) } else { Ok(()) }
    }
}

/// Runs `work` on a pool of its own with `threads` threads (`None`: all cores).
pub fn with_threads<T: Send>(threads: Option<usize>, work: impl FnOnce() -> T + Send) -> Result<T> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads.unwrap_or(0))
        .thread_name(|index| format!("stickbreak-{index}"))
        .build()
        .map_err(|error| {
            Error::invalid("threads", format!("{threads:?} ({error})"), "a number the system can start")
        })?;
    Ok(pool.install(work))
}

/// The ranges of at most `size` that cut `0..n`, in order.
pub fn blocks(n: usize, size: usize) -> impl ExactSizeIterator<Item = Range<usize>> + Clone {
    (0..n.div_ceil(size)).map(move |i| i * size..n.min((i + 1) * size))
}

/// `task(0), ..., task(n - 1)` in parallel, the results in order.
pub fn map<T: Send>(n: usize, task: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    (0..n).into_par_iter().map(task).collect()
}

/// As [`map`] for tasks that can fail; the error is that of the first failing index, whichever failed first.
pub fn try_map<T: Send>(n: usize, task: impl Fn(usize) -> Result<T> + Sync + Send) -> Result<Vec<T>> {
    map(n, task).into_iter().collect()
}

/// Calls `task` on every item, each with a scratch space that its thread reuses.
pub fn for_each_with<I: Send, W: Send>(
    items: Vec<I>,
    scratch: impl Fn() -> W + Sync + Send,
    task: impl Fn(&mut W, I) -> Result<()> + Sync + Send,
) -> Result<()> {
    let outcomes: Vec<Result<()>> = items.into_par_iter().map_init(scratch, |work, item| task(work, item)).collect();
    outcomes.into_iter().collect()
}

/// As [`try_map`], each task with a scratch space that its thread reuses.
pub fn try_map_with<T: Send, W: Send>(
    n: usize,
    scratch: impl Fn() -> W + Sync + Send,
    task: impl Fn(&mut W, usize) -> Result<T> + Sync + Send,
) -> Result<Vec<T>> {
    let outcomes: Vec<Result<T>> = (0..n).into_par_iter().map_init(scratch, |work, index| task(work, index)).collect();
    outcomes.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cut_a_range_without_gap() {
        assert_eq!(blocks(10, 4).collect::<Vec<_>>(), vec![0..4, 4..8, 8..10]);
        assert_eq!(blocks(0, 4).count(), 0);
    }

    #[test]
    fn the_first_failing_index_is_reported() {
        let outcome = try_map(100, |i| if i >= 40 { Err(Error::invalid("i", i, "below 40")) } else { Ok(i) });
        assert_eq!(outcome, Err(Error::invalid("i", 40, "below 40")));
    }

    #[test]
    fn cancelling_is_seen_by_every_clone() {
        let flag = Cancel::default();
        let seen = flag.clone();
        assert_eq!(seen.check(), Ok(()));
        flag.cancel();
        assert_eq!(seen.check(), Err(Error::Cancelled));
    }

    #[test]
    fn a_pool_has_the_number_of_threads_asked_for() {
        for threads in [1, 3] {
            let found = with_threads(Some(threads), rayon::current_num_threads).expect("a pool");
            assert_eq!(found, threads);
        }
    }
}
