//! Distances between partitions, and what represents many.

use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use stickbreak::partitions::{Contingency, CredibleBall, LabelDraws, Loss, SearchPlan, estimate, similarity_between};
use stickbreak::{Error, Result};

use crate::arrays::{table, vector};
use crate::errors::to_python;
use crate::fields::format_error;
use crate::panics::caught;
use crate::run::run_quietly;

/// The names of losses.
const LOSSES: [(&str, Loss); 2] = [("vi", Loss::Variation), ("binder", Loss::Binder)];

fn loss_of(name: &str) -> Result<Loss> {
    LOSSES.iter().find(|(known, _)| *known == name).map(|(_, loss)| *loss).ok_or_else(|| {
        let allowed = LOSSES.map(|(name, _)| format!("{name:?}")).join(", ");
        Error::invalid("loss", format!("{name:?}"), allowed)
    })
}

/// How far two labellings of the same rows differ: their variation of information (nats), Binder's loss, and adjusted
/// Rand index.
#[pyfunction]
pub fn partition_distances(one: PyReadonlyArray1<'_, u32>, other: PyReadonlyArray1<'_, u32>) -> PyResult<[f64; 3]> {
    let (one, other) = (one.as_slice()?, other.as_slice()?);
    if one.len() != other.len() {
        return Err(format_error("labels of different lengths".into()));
    }
    caught(|| {
        let found = Contingency::new(one, other);
        Ok([found.loss(Loss::Variation), found.loss(Loss::Binder), found.adjusted_rand()])
    })
}

/// The share of draws in which rows are in the same cluster as others, (m, l), from contiguous labels, (T, m), (T, l).
#[pyfunction]
pub fn similarity<'py>(
    py: Python<'py>,
    rows: PyReadonlyArray2<'py, i32>,
    columns: PyReadonlyArray2<'py, i32>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let (m, l) = (rows.as_array().ncols(), columns.as_array().ncols());
    if rows.as_array().nrows() != columns.as_array().nrows() {
        return Err(format_error("labels of different draws".into()));
    }
    let (rows, columns) = (rows.as_slice()?, columns.as_slice()?);
    table(py, run_quietly(py, threads, |cancel| similarity_between((rows, m), (columns, l), cancel))?, l)
}

/// The partition with the lowest expected loss, from contiguous labels, (T, m), and that loss.
#[pyfunction]
pub fn point_estimate<'py>(
    py: Python<'py>,
    draws: PyReadonlyArray2<'py, i32>,
    loss: &str,
    plan: (Option<usize>, Option<usize>, u64),
    threads: Option<usize>,
) -> PyResult<(Bound<'py, PyArray1<i64>>, f64)> {
    let (m, labels) = (draws.as_array().ncols(), draws.as_slice()?);
    let loss = loss_of(loss).map_err(|error| to_python(&error))?;
    let (runs, max_clusters, seed) = plan;
    let found = run_quietly(py, threads, |cancel| {
        let draws = LabelDraws::new(labels, m)?;
        let max_clusters = max_clusters.unwrap_or_else(|| draws.most_clusters());
        estimate(&draws, loss, SearchPlan { runs, max_clusters, seed }, cancel)
    })?;
    Ok((vector(py, found.labels.into_iter().map(i64::from).collect()), found.loss))
}

/// The loss of labels, (m,), where each draw is true, from contiguous labels, (T, m).
#[pyfunction]
pub fn distances<'py>(
    py: Python<'py>,
    draws: PyReadonlyArray2<'py, i32>,
    labels: PyReadonlyArray1<'py, u32>,
    loss: &str,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (draws, labels) = (draws.as_slice()?, labels.as_slice()?);
    let loss = loss_of(loss).map_err(|error| to_python(&error))?;
    let found = run_quietly(py, threads, |cancel| stickbreak::partitions::distances(draws, labels, loss, cancel))?;
    Ok(vector(py, found))
}

/// The radius of the smallest ball with a share of the draws, and the draws at its edge, given their distances from the
/// centre and their numbers of clusters, (T,).
#[pyfunction]
pub fn credible_ball(
    distances: PyReadonlyArray1<'_, f64>,
    n_clusters: PyReadonlyArray1<'_, i64>,
    level: f64,
) -> PyResult<(f64, [usize; 3])> {
    let (distances, n_clusters) = (distances.as_slice()?, n_clusters.as_slice()?);
    if distances.is_empty() || distances.len() != n_clusters.len() {
        return Err(format_error("distances that are not those of draws".into()));
    }
    caught(|| {
        let CredibleBall { radius, upper, lower, horizontal } = CredibleBall::new(distances, n_clusters, level);
        Ok((radius, [upper, lower, horizontal]))
    })
}
