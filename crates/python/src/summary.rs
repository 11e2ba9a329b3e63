//! A summary for Python.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use stickbreak::suffstats::{PairGaps, Summary};

use crate::arrays::{table, vector};

/// Returns the parts of a summary, and the sum of the log normalizers of its rows.
pub fn summary_to_dict(py: Python<'_>, summary: Summary, log_normalizer: f64) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    let gaps = match &summary.gaps {
        PairGaps::Unknown => None,
        PairGaps::Known(gaps) | PairGaps::Listed(gaps) => {
            let pairs = PyDict::new(py);
            for (&(a, b), gap) in gaps {
                pairs.set_item((a.0, b.0), gap)?;
            }
            Some(pairs)
        }
    };
    dict.set_item("pair_gaps", gaps)?;
    dict.set_item("counts", vector(py, summary.counts))?;
    dict.set_item("entropies", vector(py, summary.entropies))?;
    dict.set_item("statistics", table(py, summary.statistics, summary.n_statistics)?)?;
    let tail = summary.tail.map(|tail| vec![tail.count, tail.entropy, tail.expected_log_likelihood]);
    dict.set_item("tail", tail.map(|tail| vector(py, tail)))?;
    dict.set_item("mass", summary.mass)?;
    dict.set_item("log_base_measure", summary.log_base_measure)?;
    dict.set_item("log_normalizer", log_normalizer)?;
    Ok(dict)
}
