//! Transition matrices over all partitions of a few rows, with every random choice taken in turn, against the exact
//! posterior.

mod cases;
mod exactness;
mod geweke;
mod golden;
mod paths;
mod running;
