//! Compares transition matrices over all partitions of a few rows, enumerating every random choice, with the exact
//! posterior.

pub(crate) mod cases;
pub(in crate::mcmc) mod exactness;
mod geweke;
pub(in crate::mcmc) mod golden;
mod learned_base;
pub(in crate::mcmc) mod paths;
mod running;
