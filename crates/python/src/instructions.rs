//! Instruction sets: list them, and force one for tests and comparisons.

use pyo3::prelude::*;
use stickbreak::Error;
use stickbreak::simd::Instructions;

use crate::errors::to_python;

fn name(set: Instructions) -> String {
    format!("{set:?}").to_lowercase()
}

/// Return the names of the instruction sets of this machine, the widest last.
#[pyfunction]
pub fn instruction_sets() -> Vec<String> {
    Instructions::available().into_iter().map(name).collect()
}

/// Return the name of the instruction set that the kernels of this process use.
#[pyfunction]
pub fn instructions_in_use() -> String {
    name(Instructions::widest())
}

/// Make the kernels of this process use the named instruction set; `None` selects the widest.
#[pyfunction]
#[pyo3(signature = (instructions))]
pub fn force_instructions(instructions: Option<&str>) -> PyResult<()> {
    let set = match instructions {
        None => None,
        Some(wanted) => {
            Some(Instructions::available().into_iter().find(|&set| name(set) == wanted).ok_or_else(|| {
                let allowed = instruction_sets().join(", ");
                to_python(&Error::invalid("instructions", format!("{wanted:?}"), format!("one of {allowed}, or None")))
            })?)
        }
    };
    Instructions::force(set).map_err(|error| to_python(&error))
}
