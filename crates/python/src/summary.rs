//! A summary for Python and in a file, and the classes of its components.

use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use stickbreak::component::ComponentId;
use stickbreak::suffstats::{PairGaps, Summary, Tail};

use crate::arrays::{table, vector};
use crate::fields::{field, format_error, optional};

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
    if let Some(tail) = summary.tail {
        dict.set_item("tail", vector(py, vec![tail.count, tail.entropy]))?;
        dict.set_item("tail_statistics", vector(py, tail.statistics))?;
    }
    dict.set_item("mass", summary.mass)?;
    dict.set_item("log_base_measure", summary.log_base_measure)?;
    dict.set_item("log_normalizer", log_normalizer)?;
    Ok(dict)
}

/// Reads a vector of a file.
pub fn numbers(arrays: &Bound<'_, PyDict>, name: &str) -> PyResult<Vec<f64>> {
    let array: PyReadonlyArray1<'_, f64> = field(arrays, name)?;
    Ok(array.as_array().iter().copied().collect())
}

/// Reads the summary of a file.
pub fn read_summary(header: &Bound<'_, PyDict>, arrays: &Bound<'_, PyDict>) -> PyResult<Summary> {
    let counts = numbers(arrays, "counts")?;
    let statistics: PyReadonlyArray2<'_, f64> = field(arrays, "statistics")?;
    // A table without rows takes no space in a file, whatever its stated width.
    if statistics.shape()[0] != counts.len() {
        return Err(format_error(format!("statistics of {} components", statistics.shape()[0])));
    }
    let ids = (0..counts.len() as u32).map(ComponentId).collect();
    let mut summary = Summary::empty(ids, statistics.shape()[1], false);
    summary.counts = counts;
    summary.entropies = numbers(arrays, "entropies")?;
    summary.statistics = statistics.as_array().iter().copied().collect();
    summary.mass = field(header, "mass")?;
    summary.log_base_measure = field(header, "log_base_measure")?;
    summary.tail = read_tail(header, arrays)?;
    Ok(summary)
}

/// Writes the classes of components, which only fits with labels have.
pub fn write_classes(py: Python<'_>, classes: &[i64], arrays: &Bound<'_, PyDict>) -> PyResult<()> {
    if classes.is_empty() { Ok(()) } else { arrays.set_item("classes", vector(py, classes.to_vec())) }
}

/// Reads what [`write_classes`] has written.
pub fn read_classes(arrays: &Bound<'_, PyDict>) -> PyResult<Vec<i64>> {
    let classes: Option<PyReadonlyArray1<'_, i64>> = optional(arrays, "classes")?;
    Ok(classes.map_or_else(Vec::new, |array| array.as_array().iter().copied().collect()))
}

/// Writes the tail of a process that has one.
pub fn write_tail(
    py: Python<'_>,
    tail: Option<&Tail>,
    header: &Bound<'_, PyDict>,
    arrays: &Bound<'_, PyDict>,
) -> PyResult<()> {
    header.set_item("tail", tail.map(|tail| [tail.count, tail.entropy]))?;
    tail.map_or(Ok(()), |tail| arrays.set_item("tail_statistics", vector(py, tail.statistics.clone())))
}

/// Reads what [`write_tail`] has written.
fn read_tail(header: &Bound<'_, PyDict>, arrays: &Bound<'_, PyDict>) -> PyResult<Option<Tail>> {
    let sums: Option<Vec<f64>> = optional(header, "tail")?;
    let Some(sums) = sums else { return Ok(None) };
    let &[count, entropy] = &sums[..] else {
        return Err(format_error("a tail without its statistics, as files had before this release; fit again".into()));
    };
    let statistics: PyReadonlyArray1<'_, f64> = field(arrays, "tail_statistics")?;
    Ok(Some(Tail { count, entropy, statistics: statistics.as_array().iter().copied().collect() }))
}
