//! Updates of fits.

use pyo3::prelude::*;
use stickbreak::Error;
use stickbreak::data::{Collection, Shards};
use stickbreak::fit::Limits;
use stickbreak::fitted::Fitted;

use crate::arrays::{AnyData, with_rows};
use crate::errors::to_python;
use crate::run::run_quietly;
use crate::shards::PythonShards;

/// A fit with further rows, in memory or in shards of float64.
pub fn updated(
    py: Python<'_>,
    fitted: &Fitted,
    rows: AnyData<'_>,
    weights: Option<&[f64]>,
    limits: Limits,
    threads: Option<usize>,
) -> PyResult<Fitted> {
    match rows {
        AnyData::Rows(rows) => with_rows!(&rows, |view| {
            run_quietly(py, threads, |cancel| fitted.update(&view, weights, limits, cancel))
        }),
        AnyData::Shards(shards) => {
            let shards = PythonShards::new(shards, weights);
            let remote = shards.remote();
            let source: &dyn Shards<f64> = remote.as_ref().map_or(&shards, |remote| remote);
            run_quietly(py, threads, |cancel| {
                shards.follow(cancel);
                fitted.update_in_shards(&Collection::new(source), shards.ask(), limits, cancel)
            })
        }
        AnyData::Blocks(..) => Err(to_python(&Error::Format { message: "rows that are read in blocks".to_owned() })),
    }
}
