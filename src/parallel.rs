//! The only module that starts parallel work. Blocks are fixed and results are combined in block order, so that no
//! number depends on the number of threads.

use std::cell::Cell;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;

use crate::error::{Error, Result};

#[cfg(feature = "sections")]
pub mod sections;

/// A flag that requests long-running work to stop; it is checked between blocks.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Requests the work to stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns [`Error::Cancelled`] once a stop has been requested.
    pub fn check(&self) -> Result<()> {
        if self.0.load(Ordering::Relaxed) { Err(Error::Cancelled) } else { Ok(()) }
    }
}

/// The threads that were asked for (`None`: all cores), but at most `most` of them.
pub fn at_most(most: usize, threads: Option<usize>) -> Option<usize> {
    let of_cores = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let all = || std::env::var("RAYON_NUM_THREADS").ok().and_then(|number| number.parse().ok()).filter(|n| *n > 0);
    Some(threads.or_else(all).unwrap_or_else(of_cores).min(most))
}

/// Runs `work` on a pool of its own with `threads` threads (`None`: all cores).
pub fn with_threads<T: Send>(threads: Option<usize>, work: impl FnOnce() -> T + Send) -> Result<T> {
    let pool = pool(threads)?;
    let (work, result) = (Mutex::new(Some(work)), Mutex::new(None));
    install(&pool, &|| {
        let taken = locked(&work).take();
        let value = taken.map(|work| work());
        *locked(&result) = value;
    });
    let value = result.into_inner().unwrap_or_else(PoisonError::into_inner);
    value.ok_or_else(|| Error::numerical(None, "the thread pool has done no work"))
}

/// Runs `work` in the pool; not generic, as [`run_all`].
fn install(pool: &rayon::ThreadPool, work: &(dyn Fn() + Sync)) {
    pool.install(work);
}

fn pool(threads: Option<usize>) -> Result<rayon::ThreadPool> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads.unwrap_or(0))
        .thread_name(|index| format!("stickbreak-{index}"))
        .build()
        .map_err(|error| no_thread(&error))
}

/// The error for a thread that the system cannot start. The number of threads is seldom at fault: there may be no
/// memory for the stack of a single one.
pub fn no_thread(error: &dyn std::error::Error) -> Error {
    let cure = "there may be too little memory left, or too many processes; fewer `threads` need less";
    Error::numerical(None, format!("no thread could be started: {error}; {cure}"))
}

/// Runs `task(0), ..., task(n - 1)` concurrently, each with a share of the threads of the current pool; if there are
/// fewer threads than tasks, some run one after another. Returns the results in order.
///
/// # Errors
/// If the system cannot start another thread.
pub fn side_by_side<T: Send>(n: usize, task: impl Fn(usize) -> T + Sync) -> Result<Vec<T>> {
    let threads = n_threads();
    let at_once = n.min(threads);
    if at_once <= 1 {
        return Ok((0..n).map(task).collect());
    }
    let next = AtomicUsize::new(0);
    let take = || {
        let index = next.fetch_add(1, Ordering::Relaxed);
        (index < n).then(|| (index, task(index)))
    };
    let results = std::thread::scope(|scope| {
        let start = |worker: usize| {
            let inner = threads / at_once + usize::from(worker < threads % at_once);
            let work = move || with_threads(Some(inner), || std::iter::from_fn(take).collect::<Vec<_>>());
            std::thread::Builder::new().spawn_scoped(scope, work).map_err(|error| no_thread(&error))
        };
        let workers: Vec<_> = (0..at_once).map(start).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, Result<Vec<(usize, T)>>>| {
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        workers.into_iter().map(|worker| worker.and_then(join)).collect::<Result<Vec<_>>>()
    })?;
    let mut results: Vec<_> = results.into_iter().flatten().collect();
    results.sort_unstable_by_key(|(index, _)| *index);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

/// Nanoseconds of work over components that pay for waking other threads.
const WORTHWHILE: f64 = 2e4;

thread_local! {
    /// Whether this thread does all work by itself.
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` on this thread alone, without a pool, for work that takes less time than starting a thread.
pub fn alone<T>(work: impl FnOnce() -> T) -> T {
    struct Reset(bool);
    impl Drop for Reset {
        fn drop(&mut self) {
            ALONE.set(self.0);
        }
    }
    let _reset = Reset(ALONE.replace(true));
    work()
}

/// Runs `work` over `n` components with this many statistics each: on this thread alone where it is so little that
/// sharing it would take longer.
pub fn over_components<T>(n: usize, n_statistics: usize, work: impl FnOnce() -> T) -> T {
    // A component takes about as many nanoseconds as a decomposition of its matrix has products.
    let nanoseconds = n as f64 * (n_statistics as f64).powf(1.5);
    if nanoseconds < WORTHWHILE { alone(work) } else { work() }
}

/// Whether this thread does all work by itself: it was asked to, or it belongs to no pool. Nothing uses the pool that
/// all threads of a process may share, because in a forked process it has no threads, and work would wait for ever.
fn is_alone() -> bool {
    ALONE.get() || rayon::current_thread_index().is_none()
}

/// Number of tasks that run at once.
pub fn n_threads() -> usize {
    if is_alone() { 1 } else { rayon::current_num_threads() }
}

/// Divides `0..n` into ranges of at most `size`, in order.
pub fn blocks(n: usize, size: usize) -> impl ExactSizeIterator<Item = Range<usize>> + Clone {
    (0..n.div_ceil(size)).map(move |i| i * size..n.min((i + 1) * size))
}

/// Runs `task(0), ..., task(n - 1)` in parallel. It is not generic, so that the thread pool's code is compiled once.
#[cfg_attr(feature = "sections", track_caller)]
fn run_all(n: usize, task: &(dyn Fn(usize) + Sync)) {
    if n == 1 || is_alone() {
        return (0..n).for_each(task);
    }
    // Tasks are long enough that none waits for a neighbour while another thread is idle.
    let run = |task: &(dyn Fn(usize) + Sync)| (0..n).into_par_iter().with_max_len(1).for_each(task);
    #[cfg(feature = "sections")]
    sections::logged(std::panic::Location::caller(), task, run);
    #[cfg(not(feature = "sections"))]
    run(task);
}

/// Runs `task(0), ..., task(n - 1)` in parallel; returns the results in order.
#[cfg_attr(feature = "sections", track_caller)]
pub fn map<T: Send>(n: usize, task: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let results: Vec<Mutex<Option<T>>> = (0..n).map(|_| Mutex::new(None)).collect();
    run_all(n, &|index| {
        let result = task(index);
        *locked(&results[index]) = Some(result);
    });
    results.into_iter().filter_map(|result| result.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

/// Runs `task` on every item in parallel; returns the results in order.
#[cfg_attr(feature = "sections", track_caller)]
pub fn map_all<I: Send, T: Send>(items: Vec<I>, task: impl Fn(I) -> T + Sync) -> Vec<T> {
    let items: Vec<Mutex<Option<I>>> = items.into_iter().map(|item| Mutex::new(Some(item))).collect();
    map(items.len(), |index| locked(&items[index]).take().map(&task)).into_iter().flatten().collect()
}

/// As [`map`] for tasks that can fail. Returns the error of the first failing index, regardless of which failed first
/// in time.
#[cfg_attr(feature = "sections", track_caller)]
pub fn try_map<T: Send>(n: usize, task: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
    map(n, task).into_iter().collect()
}

/// Runs `task` on every item in parallel.
#[cfg_attr(feature = "sections", track_caller)]
pub fn for_each<I: Send>(items: Vec<I>, task: impl Fn(I) + Sync) {
    map_all(items, task);
}

/// Runs `task` on every item, with scratch space that tasks reuse.
#[cfg_attr(feature = "sections", track_caller)]
pub fn for_each_with<I: Send, W: Send>(
    items: Vec<I>,
    scratch: impl Fn() -> W + Sync,
    task: impl Fn(&mut W, I) -> Result<()> + Sync,
) -> Result<()> {
    let spare = Mutex::new(Vec::new());
    map_all(items, |item| with_spare(&spare, &scratch, |work| task(work, item))).into_iter().collect()
}

/// As [`try_map`], with scratch space that tasks reuse.
#[cfg_attr(feature = "sections", track_caller)]
pub fn try_map_with<T: Send, W: Send>(
    n: usize,
    scratch: impl Fn() -> W + Sync,
    task: impl Fn(&mut W, usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let spare = Mutex::new(Vec::new());
    try_map(n, |index| with_spare(&spare, &scratch, |work| task(work, index)))
}

/// Runs `task` with scratch space that another task has left, or that is new.
fn with_spare<W, T>(spare: &Mutex<Vec<W>>, scratch: impl Fn() -> W, task: impl FnOnce(&mut W) -> T) -> T {
    let left = locked(spare).pop();
    let mut work = left.unwrap_or_else(scratch);
    let result = task(&mut work);
    locked(spare).push(work);
    result
}

/// Locks a value that is whole even after a panic.
fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn work_alone_stays_on_its_thread_even_after_a_panic() {
        let this_thread = std::thread::current().id();
        let threads = || map(100, |_| std::thread::current().id());
        assert!(alone(threads).into_iter().all(|id| id == this_thread));
        assert!(std::panic::catch_unwind(|| alone(|| panic!("as tasks may"))).is_err());
        assert!(!ALONE.get());
    }

    #[test]
    fn work_outside_a_pool_stays_on_its_thread() {
        let this_thread = std::thread::current().id();
        assert!(map(100, |_| std::thread::current().id()).into_iter().all(|id| id == this_thread));
        let found = side_by_side(3, |_| std::thread::current().id()).expect("no thread is started");
        assert_eq!((found, n_threads()), (vec![this_thread; 3], 1));
        assert_eq!(with_threads(Some(3), n_threads), Ok(3));
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
    fn tasks_side_by_side_share_the_threads_and_come_back_in_order() {
        let shares = |threads, n| {
            with_threads(Some(threads), || side_by_side(n, |index| (index, rayon::current_num_threads())))
                .and_then(|results| results)
                .expect("a few threads")
        };
        assert_eq!(shares(1, 3), [(0, 1), (1, 1), (2, 1)]);
        assert_eq!(shares(3, 1), [(0, 3)]);
        let results = shares(5, 3);
        assert_eq!(results.iter().map(|(index, _)| *index).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(results.iter().all(|(_, threads)| [1, 2].contains(threads)));
        assert_eq!(shares(2, 9).len(), 9);
    }

    #[test]
    fn threads_are_limited_however_many_are_asked_for() {
        assert_eq!((at_most(4, Some(64)), at_most(64, Some(2)), at_most(1, None)), (Some(4), Some(2), Some(1)));
        assert!(at_most(usize::MAX, None).is_some_and(|threads| threads >= 1));
    }

    #[test]
    fn a_pool_has_the_number_of_threads_asked_for() {
        for threads in [1, 3] {
            let found = with_threads(Some(threads), rayon::current_num_threads).expect("a pool");
            assert_eq!(found, threads);
        }
    }
}
