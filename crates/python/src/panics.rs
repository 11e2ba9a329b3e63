//! Broken invariants of ours: a panic anywhere becomes `InternalError`, and nothing is printed.

use std::any::Any;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook};
use std::sync::Mutex;

use pyo3::prelude::*;

use crate::errors::internal;

/// Texts and places of panics that have not been caught yet. They are caught in another thread, and several threads may
/// panic at once, of which one is heard.
static PANICS: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());
/// Places worth keeping.
const MOST: usize = 64;

/// Silences panics for good: the exception says what they would have printed.
pub fn silence() {
    set_hook(Box::new(|info: &PanicHookInfo<'_>| {
        let place = info.location().map_or_else(String::new, ToString::to_string);
        if let Ok(mut panics) = PANICS.lock()
            && panics.len() < MOST
        {
            panics.push((text(info.payload()), place));
        }
    }));
}

/// Runs work; a panic in it is an `InternalError`.
pub fn caught<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(to_python(panic.as_ref())))
}

/// The exception for a caught panic: what it said, and where.
pub fn to_python(panic: &(dyn Any + Send)) -> PyErr {
    let text = text(panic);
    let panics = PANICS.lock().map(|mut panics| std::mem::take(&mut *panics)).unwrap_or_default();
    let place = panics.into_iter().find(|(said, _)| *said == text);
    let place = place.map_or_else(String::new, |(_, place)| format!(" ({place})"));
    internal(&format!("a bug in stickbreak, please report it: {text}{place}"))
}

fn text(panic: &(dyn Any + Send)) -> String {
    let owned = panic.downcast_ref::<String>().cloned();
    owned.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned())).unwrap_or_else(|| "unknown".into())
}
