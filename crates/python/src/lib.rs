//! The Python interface of `stickbreak`: converts arrays to rows and results to states. Contains no mathematics.

#![allow(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]

mod arrays;
mod blocks;
mod components;
mod coordinates;
mod density;
mod diagnostics;
mod errors;
mod estimated;
mod fields;
mod fit;
mod hierarchy;
mod history;
mod instructions;
mod model_file;
mod panics;
mod partitions;
mod posterior;
mod registry;
mod reports;
mod run;
mod sampling;
#[cfg(feature = "sections")]
mod sections;
mod settings;
mod shards;
mod specification;
mod state;
mod summary;
mod topics;
mod updates;
mod values;

use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;

#[pymodule(gil_used = false)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    panics::silence();
    // Loads NumPy's interface. At its first use it imports modules, and an interrupt then would be taken for an
    // argument of another type.
    drop(PyArray1::<f64>::zeros(module.py(), 0, false).readonly());
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(registry::registry, module)?)?;
    module.add_function(wrap_pyfunction!(specification::check_likelihood, module)?)?;
    module.add_function(wrap_pyfunction!(specification::check_process, module)?)?;
    module.add_function(wrap_pyfunction!(specification::check_background, module)?)?;
    module.add_function(wrap_pyfunction!(specification::check_move, module)?)?;
    module.add_function(wrap_pyfunction!(fit::fit, module)?)?;
    module.add_function(wrap_pyfunction!(sampling::check_sampler, module)?)?;
    module.add_function(wrap_pyfunction!(sampling::check_model, module)?)?;
    module.add_function(wrap_pyfunction!(sampling::check_copy, module)?)?;
    module.add_function(wrap_pyfunction!(sampling::cut_to_clusters, module)?)?;
    module.add_function(wrap_pyfunction!(sampling::estimate, module)?)?;
    module.add_function(wrap_pyfunction!(sampling::sample, module)?)?;
    module.add_function(wrap_pyfunction!(diagnostics::ess, module)?)?;
    module.add_function(wrap_pyfunction!(diagnostics::rhat, module)?)?;
    module.add_function(wrap_pyfunction!(diagnostics::autocorrelation, module)?)?;
    module.add_function(wrap_pyfunction!(diagnostics::run_length, module)?)?;
    module.add_function(wrap_pyfunction!(components::log_densities, module)?)?;
    module.add_function(wrap_pyfunction!(components::density_band, module)?)?;
    module.add_function(wrap_pyfunction!(components::parameters_of_draws, module)?)?;
    module.add_function(wrap_pyfunction!(components::sample_prior, module)?)?;
    module.add_function(wrap_pyfunction!(partitions::similarity, module)?)?;
    module.add_function(wrap_pyfunction!(partitions::partition_distances, module)?)?;
    module.add_function(wrap_pyfunction!(partitions::point_estimate, module)?)?;
    module.add_function(wrap_pyfunction!(partitions::distances, module)?)?;
    module.add_function(wrap_pyfunction!(partitions::credible_ball, module)?)?;
    module.add_class::<sampling::SampledModel>()?;
    module.add_function(wrap_pyfunction!(topics::topics, module)?)?;
    module.add_function(wrap_pyfunction!(topics::document_prior, module)?)?;
    module.add_function(wrap_pyfunction!(topics::word_counts, module)?)?;
    module.add_function(wrap_pyfunction!(topics::top_words, module)?)?;
    module.add_function(wrap_pyfunction!(topics::check_documents, module)?)?;
    module.add_function(wrap_pyfunction!(topics::proportions, module)?)?;
    module.add_function(wrap_pyfunction!(topics::complete, module)?)?;
    module.add_function(wrap_pyfunction!(topics::coherence, module)?)?;
    module.add_function(wrap_pyfunction!(posterior::sample_parameters, module)?)?;
    module.add_function(wrap_pyfunction!(posterior::intervals, module)?)?;
    module.add_function(wrap_pyfunction!(posterior::cost_of_components, module)?)?;
    module.add_function(wrap_pyfunction!(hierarchy::check_hierarchy, module)?)?;
    module.add_function(wrap_pyfunction!(hierarchy::hierarchy, module)?)?;
    module.add_class::<hierarchy::HierarchyState>()?;
    module.add_function(wrap_pyfunction!(instructions::instruction_sets, module)?)?;
    module.add_function(wrap_pyfunction!(instructions::instructions_in_use, module)?)?;
    module.add_function(wrap_pyfunction!(instructions::force_instructions, module)?)?;
    module.add_function(wrap_pyfunction!(density::density, module)?)?;
    module.add_class::<density::DensityState>()?;
    module.add_class::<shards::ShardWorker>()?;
    module.add_class::<shards::Stop>()?;
    module.add_function(wrap_pyfunction!(shards::read_shards, module)?)?;
    module.add_function(wrap_pyfunction!(shards::pick_rows, module)?)?;
    module.add_function(wrap_pyfunction!(shards::add_visits, module)?)?;
    module.add_function(wrap_pyfunction!(shards::add_sums, module)?)?;
    #[cfg(feature = "sections")]
    module.add_function(wrap_pyfunction!(sections::log_sections, module)?)?;
    module.add_class::<state::FitState>()
}
