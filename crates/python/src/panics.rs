//! Panics are mistakes in this package. Each becomes `InternalError`, and nothing is printed.

use std::any::Any;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook};
use std::sync::Mutex;

use pyo3::prelude::*;

use crate::errors::internal;

/// Messages and locations of panics that have not been caught yet. A panic is caught in another thread. If several
/// threads panic at once, only one panic is reported.
static PANICS: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());
/// Maximum number of locations to keep.
const MOST: usize = 64;

/// Silences the printing of panics permanently. The exception contains the text instead.
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

/// Runs work and converts a panic to `InternalError`.
pub fn caught<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(to_python(panic.as_ref())))
}

/// Returns the exception for a caught panic, with its message and location.
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
